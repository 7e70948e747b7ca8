"""Strings that hold a CUDA word and spell no device: why each stays, or what it binds the program to."""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort
from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Finds
from transplt.edits.work import Work
from transplt.flow.optional_imports import can_fail
from transplt.flow.place import Place
from transplt.syntax.scan import FUNCTIONS, chain, parent

_LIBRARY = re.compile(
    r"(?:^|/)(?:lib)?(?:cuda|cudart|cudnn|cublas|cublasLt|cufft|curand|cusparse|cusolver|nccl|nvrtx|nvrtc|nvToolsExt|nvidia-ml)"
    r"[\w.*-]*\.(?:so|dll|dylib)\b|^-l(?:cu\w+|nccl|nv\w+)$",
    re.I,
)
_TOOLKIT = re.compile(
    r"(?:^|/)cuda(?:-\d[\d.]*)?(?:/|$)|^/\S*/cuda-|\bnvcc\b|\.(?:cu|cuh|ptx|cubin)$|^-[DU]\w*CUDA\w*(?:=\w*)?$|^--?gencode|compute_\d\d"
)
_MACRO = re.compile(r"-[DU]\w*CUDA\w*(?:=\w*)?")
_SOURCE = re.compile(
    r"__global__|__device__|#include\s*<(?:cuda|cublas|cudnn)|<<<|\bcudaStream|\bcudaMem|\b(?:at|c10|torch)::cuda\b|\bat::Tensor\b"
)
#: Code of C++ that speaks of CUDA: `tv::cuda::Launch`, `cublasLtMatmul(`, `#if CUDART_VERSION`, `return CUDA_R_16F;`.
_CPP = re.compile(
    r"(?<![\w.:])(?:\w+::)+\w*(?:cuda|CUDA)\w*|\bcuda::\w|\b(?:cuda|cublas|cublasLt|cudnn|nccl)[A-Z]\w*\s*\("
    r"|^[ \t]*#[ \t]*(?:if|ifdef|ifndef|define|include)\b.*(?:CUDA|CUDART|cuda)"
    r"|\b(?:CUDART_VERSION|__CUDACC__|__CUDA_ARCH__|CUDA_R_\d+\w*)\b|\b(?:CUDA|CUBLAS|CUDNN)_[A-Z0-9_]+\s*[;?:]",
    re.M,
)
#: A type of CUDA's C interface, and a header of it.
_C_NAME = re.compile(
    r"(?:cuda|cublas|cublasLt|cudnn|nccl)[A-Z]\w*_t|[\w./-]+\.(?:h|hpp)|cublas(?:Lt)?|cudart"
)
#: A variable in front of a command: `env CUDA_VISIBLE_DEVICES=0 python ...`.
_SET_FOR_COMMAND = re.compile(r"(?:^|['\"`;&|]\s{0,9}|\b(?:env|export)\s{1,9})(?:CUDA|NCCL)_[A-Z_]+=")
#: A path to torch.cuda through a module that imports torch.
_THROUGH_MODULE = re.compile(r"\w[\w.]*\.torch\.(?:cuda|backends\.cud)[\w.]*")
#: Source code where text for people may stand: `out.write(...)` makes files of both.
_WRITTEN = re.compile(r"__global__|#include\s*[<\"]|\b(?:at|c10|torch)::cuda\b|\bat::Tensor\b")
_OPERATOR = re.compile(r"\w+::\w*(?:cuda|cudnn|nccl|cublas)\w*(?:\.\w+)?")
_ENVIRONMENT = re.compile(
    r"CUDA_(?:VISIBLE|LAUNCH|DEVICE|HOME|PATH|CACHE|MODULE|MPS)[A-Z0-9_]*|CUBLAS_WORKSPACE_CONFIG"
    r"|(?:NCCL|NVIDIA|NVTE|TORCH_CUDA|TORCH_NCCL|PYTORCH_CUDA)_[A-Z0-9_]+"
)
_ADDRESS = re.compile(
    r"://|@[\w.-]+\.\w+|^[\w./-]+(?::[\w.-]+)$|^[\w.-]+/[\w./-]+$|\.(?:py|md|txt|json|ya?ml|so|whl|png|log|html)$"
)
_IN_COMMAND = re.compile(r"(?:^|[\s=])(?:cuda|nccl|nvcc|nvidia-smi|nsys|ncu)(?:$|[\s:,])", re.I)
_CONFIGURATION = re.compile(
    r"^[\s\"'{,]*[\w.-]*(?:device|backend|accelerator)[\"']?\s*[:=]\s*[\"']?(?:cuda|nccl)\b", re.M | re.I
)
_COMMAND_LINE = re.compile(r"\s*(?:[A-Z_]+=\S*\s+)*(?:python3?|torchrun|accelerate|deepspeed|srun|mpirun|bash|sh)\s")
#: `rc,ud,cuda`: transports, devices or backends.
_LIST = re.compile(r"(?=.*(?:^|,)(?:cuda|nccl)(?:,|$))[\w:-]+(?:,[\w:-]+)+")
_EXAMPLE_COMMENT = re.compile(r"#.*")
#: What is caught where a library cannot be loaded.
_LOAD_FAILS = frozenset({"OSError", "Exception", "BaseException"})
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")


def is_docstring(node: ast.AST) -> bool:
    """True for the string that documents a module, class or function."""
    statement = parent(node)
    if not isinstance(statement, ast.Expr):
        return False
    owner = parent(statement)
    if isinstance(owner, (ast.Module, ast.ClassDef, *FUNCTIONS)):
        return owner.body[0] is statement
    return False


def _in_doctest(text: str) -> bool:
    """True for a docstring with a word of CUDA in the code of its examples, or in what they are to print."""
    runs = False
    for line in text.splitlines():
        stripped = line.strip()
        code = stripped.startswith((">>>", "..."))
        runs = code or (runs and bool(stripped))
        shown = _EXAMPLE_COMMENT.sub("", stripped) if code else stripped
        if runs and mentions_cuda(shown.lower().encode()):
            return True
    return False


def explain(work: Work, node: ast.expr, value: str, found: list[Place]) -> Finds:
    """Keep a string for a true reason, or report what it binds the program to."""
    if isinstance(parent(node), ast.Expr):
        if is_docstring(node) and ">>>" in value and _in_doctest(value):
            yield work.note(node, "NPU206", "a doctest uses CUDA", help="rewrite the example by hand if it is run")
        else:
            yield work.keep(node, "docstring" if is_docstring(node) else "text")
        return
    kinds = {place.kind for place in found}
    prose = bool(kinds) and kinds <= {"prose", "help"}
    cpp = not prose and not _OPERATOR.fullmatch(value) and _CPP.search(value)
    if cpp or (_WRITTEN if prose else _SOURCE).search(value):
        help_ = "write the kernel for the NPU, or use its operators"
        yield from _bound(work, node, "CUDA source code in a string", help_, Effort.HIGH)
    elif prose:
        yield work.keep(node, "text")
    elif _OPERATOR.fullmatch(value) and "operator" not in kinds:
        help_ = "call the operator of torch that does the same; the NPU has no kernel under this name"
        yield from _bound(work, node, f"the operator {value!r} runs on CUDA alone", help_, Effort.MEDIUM)
    elif _THROUGH_MODULE.fullmatch(value):
        help_ = "use the NPU counterpart"
        yield work.note(node, "NPU204", f"{value!r} is a CUDA name in a string", help=help_, effort=Effort.LOW)
    elif _is_python(value):
        help_ = "write it for the NPU by hand, if the program runs it"
        yield from _bound(work, node, "Python code in a string uses CUDA", help_, Effort.LOW)
    elif _has_statements(value):
        help_ = "see what the program makes of it; a kernel has to be written for the NPU"
        yield from _bound(work, node, "source code of another language in a string names CUDA", help_, Effort.MEDIUM)
    elif _C_NAME.fullmatch(value) and "key" not in kinds:
        help_ = "use the CANN counterpart"
        yield from _bound(work, node, f"{value!r} is a name of CUDA's C interface", help_, Effort.MEDIUM)
    elif _SET_FOR_COMMAND.search(value) or (
        ("command" in kinds or _COMMAND_LINE.match(value)) and _IN_COMMAND.search(value)
    ):
        yield from _bound(work, node, "a command line that names CUDA", "give the command of the NPU", Effort.LOW)
    elif _CONFIGURATION.search(value):
        help_ = "write npu and hccl in it if the program reads it as a configuration"
        yield from _bound(work, node, "a configuration in a string mentions CUDA", help_, Effort.LOW)
    elif _LIST.fullmatch(value) and not kinds & {"key", "flag"}:
        help_ = "use the NPU counterpart, if the program reads it"
        yield from _bound(work, node, f"the list {value!r} has names of CUDA", help_, Effort.LOW)
    elif "kernel" in kinds:
        yield from _bound(
            work,
            node,
            f"{value!r} says for which device a kernel is",
            "register a kernel for the NPU (dispatch key PrivateUse1)",
            Effort.HIGH,
        )
    elif _LIBRARY.search(value) and _is_tried(work, node):
        yield work.keep(node, "library-tried")
    elif _LIBRARY.search(value):
        help_ = "load the one of CANN that does the same"
        yield from _bound(work, node, f"the library {value!r} belongs to CUDA", help_, Effort.MEDIUM)
    elif _MACRO.fullmatch(value) and (
        any(note.code in ("NPU550", "NPU554") for note in work.notes)
        or (value.startswith("-U") and b"cpp_extension" in work.source.utf8)  # it takes a macro away
    ):
        yield work.keep(node, "compiler-flag")
    elif " " not in value.strip() and _TOOLKIT.search(value) and "://" not in value and not _tag(value):
        yield from _bound(
            work, node, f"{value!r} belongs to the CUDA toolkit", "use the CANN counterpart", Effort.MEDIUM
        )
    elif _ENVIRONMENT.fullmatch(value) and "key" not in kinds:
        help_ = "name the variable of the NPU if the program reads it"
        yield from _bound(work, node, f"the environment variable {value} is named", help_, Effort.LOW)
    else:
        yield work.keep(node, _reason(value, kinds, found))


def _is_tried(work: Work, node: ast.AST) -> bool:
    """True for a library that is loaded in a `try` whose handler goes on without it, as all of the function are."""
    function = next(each for each in (node, *chain(node)) if isinstance(each, (ast.Module, *FUNCTIONS)))
    loads = [call for call in work.scan.calls_by_last_name(("CDLL", "LoadLibrary")) if function in chain(call)]
    return bool(loads) and all(can_fail(call, caught=_LOAD_FAILS) for call in loads)


def _is_python(value: str) -> bool:
    """Several lines of Python, a template for `exec` for example."""
    if "\n" not in value or not (".cuda(" in value or "torch.cuda." in value):
        return False
    return any(line.split(" ", 1)[0] in ("def", "class", "import", "from") for line in value.splitlines())


def _has_statements(value: str) -> bool:
    """Statements of a language with semicolons: code that somebody compiles, whatever it says of CUDA."""
    ends = [line.rstrip() for line in value.splitlines() if line.rstrip().endswith(";")]
    if any(line.endswith(");") for line in ends):
        return True
    return len(ends) > 1 and ("::" in value or "->" in value or value.rstrip().endswith("}"))


def _tag(value: str) -> bool:
    """A label with slashes (`rl/build-cuda-graphs`, `nvidia/cuda:11.8`), no path of a file system."""
    return "/" in value and not value.startswith(("/", ".", "{", "$", "~")) and "." not in value.rpartition("/")[2]


def _bound(work: Work, node: ast.expr, message: str, help_: str, effort: Effort) -> Finds:
    yield work.note(node, "NPU208", message, help=help_, effort=effort)


def _reason(value: str, kinds: set[str], found: list[Place]) -> str:
    if any(place.kind == "compare" and place.detail == "regex" for place in found):
        return "pattern"
    if "key" in kinds or "row" in kinds:
        return "key"
    if "flag" in kinds or _FLAG.fullmatch(value):
        return "flag"
    if _ENVIRONMENT.fullmatch(value):
        return "variable-name"
    if "environment" in kinds:
        return "variable-value"
    if _ADDRESS.search(value):
        return "address"
    if "annotation" in kinds:
        return "annotation"
    if "compare" in kinds:
        return "pattern"
    if value.isupper() and value.isalpha():
        return "label"
    return "words" if " " in value.strip() else "own-string"
