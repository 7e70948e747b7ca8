"""Strings that hold a CUDA word and spell no device: why each stays, or what it binds the program to."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

from transplt.base.finding import Effort
from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Finds
from transplt.edits.work import Work
from transplt.flow.gates.optional_imports import can_fail
from transplt.flow.reached_place import ReachedPlace
from transplt.syntax.nodes import of_kind
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
_C_NAME = re.compile(r"(?:cuda|cublas|cublasLt|cudnn|nccl)[A-Z]\w*_t|[\w./-]+\.(?:h|hpp)|cublas(?:Lt)?|cudart")
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
_EXPORTS = re.compile(r"\s*export(?:\s+\w+=[^\s;&|]*)+\s*")
#: CUDA in a line of a command, without the variable that no NPU reads, and that programs ask for all the same.
_WORD = re.compile(r"cuda(?!_DEVICE_MAX_CONNECTIONS=)|nccl|nvcc|nvidia|nsys|\bncu\b", re.I)
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


def explain(work: Work, node: ast.expr, value: str, found: list[ReachedPlace]) -> Finds:
    """Keep a string for a true reason, or report what it binds the program to."""
    if isinstance(parent(node), ast.Expr):
        if is_docstring(node) and ">>>" in value and _in_doctest(value):
            yield work.note(node, "NPU206", "a doctest uses CUDA", help="rewrite the example by hand if it is run")
        else:
            yield work.keep(node, "docstring" if is_docstring(node) else "text")
        return
    text = _Text(work, node, value, {place.kind for place in found})
    means = next((means for asks, means in _MEANINGS if asks(text)), "") or _reason(value, text.kinds, found)
    if isinstance(means, str):
        yield work.keep(node, means)
    else:
        message = means.message.format(value=value)
        yield work.note(node, means.code, message, help=means.help, effort=means.effort, blocks=means.blocks)


class _Text(NamedTuple):
    """A string of a program, and the kinds of the places that it comes to."""

    work: Work
    node: ast.expr
    value: str
    kinds: set[str]

    def is_prose(self) -> bool:
        return bool(self.kinds) and self.kinds <= {"prose", "help"}

    def is_source(self) -> bool:
        if self.is_prose():
            return _WRITTEN.search(self.value) is not None
        cpp = not _OPERATOR.fullmatch(self.value) and _CPP.search(self.value)
        return bool(cpp or _SOURCE.search(self.value))

    def is_python(self) -> bool:
        """Several lines of Python, a template for `exec` for example."""
        if "\n" not in self.value or not (".cuda(" in self.value or "torch.cuda." in self.value):
            return False
        return any(line.split(" ", 1)[0] in ("def", "class", "import", "from") for line in self.value.splitlines())

    def has_statements(self) -> bool:
        """Statements of a language with semicolons: code that somebody compiles, whatever it says of CUDA."""
        ends = [line.rstrip() for line in self.value.splitlines() if line.rstrip().endswith(";")]
        if any(line.endswith(");") for line in ends):
            return True
        return len(ends) > 1 and ("::" in self.value or "->" in self.value or self.value.rstrip().endswith("}"))

    def is_command(self) -> bool:
        runs = "command" in self.kinds or _COMMAND_LINE.match(self.value)
        return bool(_SET_FOR_COMMAND.search(self.value) or (runs and _IN_COMMAND.search(self.value)))

    def is_idle_command(self) -> bool:
        """Commands that name CUDA where a shell of their own exports a variable and ends, or where they are shown."""
        exports = _EXPORTS.fullmatch(self.value) and isinstance(parent(parent(self.node)), ast.Expr)
        named = [line.strip() for line in self.value.splitlines() if _WORD.search(line)]
        return bool(exports) or (self.is_command() and all(line.startswith("echo ") for line in named))

    def is_tried_library(self) -> bool:
        """A library that is loaded in a `try` whose handler goes on without it, as all of the function are."""
        if not _LIBRARY.search(self.value):
            return False
        around = (self.node, *chain(self.node))
        function = next(each for each in around if isinstance(each, (ast.Module, *FUNCTIONS)))
        loads = [call for call in self.work.scan.calls_by_last_name(("CDLL", "LoadLibrary")) if function in chain(call)]
        return bool(loads) and all(can_fail(call, caught=_LOAD_FAILS) for call in loads)

    def is_macro(self) -> bool:
        """A macro for the compiler of an extension that is reported, or one that a build takes away."""
        if not _MACRO.fullmatch(self.value):
            return False
        extension = any(note.code in ("NPU550", "NPU554") for note in self.work.notes)
        return extension or (self.value.startswith("-U") and b"cpp_extension" in self.work.source.utf8)

    def is_shipped(self) -> bool:
        """A file that a package brings along: `package_data={"nets": ["ops/scan.cu"]}` builds nothing."""
        keywords = (each.arg for each in of_kind(ast.keyword, chain(self.node)))
        return not {"package_data", "data_files"}.isdisjoint(keywords)

    def is_of_the_toolkit(self) -> bool:
        """A word or path of CUDA's toolkit; no label with slashes (`rl/build-cuda-graphs`, `nvidia/cuda:11.8`)."""
        path = self.value.startswith(("/", ".", "{", "$", "~")) or "." in self.value.rpartition("/")[2]
        one = " " not in self.value.strip() and "://" not in self.value and ("/" not in self.value or path)
        return one and _TOOLKIT.search(self.value) is not None


class _Binds(NamedTuple):
    """What is said of a string that binds the program to CUDA."""

    message: str
    help: str
    effort: Effort
    code: str = "NPU208"
    blocks: str = ""


#: What a string is, asked in turn: the reason for which it stays, or what is said of it.
_MEANINGS: tuple[tuple[Callable[[_Text], object], str | _Binds], ...] = (
    (_Text.is_source, _Binds(
        "CUDA source code in a string", "rewrite the kernel in Ascend C, or call operators of torch or torch_npu",
        Effort.HIGH)),
    (_Text.is_prose, "text"),
    (lambda text: _OPERATOR.fullmatch(text.value) and "operator" not in text.kinds, _Binds(
        "the operator {value!r} only runs on CUDA",
        "call the operator of torch that does the same; the NPU has no kernel under this name", Effort.MEDIUM)),
    (lambda text: _THROUGH_MODULE.fullmatch(text.value), _Binds(
        "{value!r} is a CUDA name in a string", "write the name of the NPU counterpart", Effort.LOW, "NPU204")),
    (_Text.is_python, _Binds(
        "Python code in a string uses CUDA", "write it for the NPU by hand, if the program runs it", Effort.LOW)),
    (_Text.has_statements, _Binds(
        "source code of another language in a string names CUDA",
        "check how the program uses it; a kernel must be rewritten for the NPU", Effort.MEDIUM)),
    (lambda text: _C_NAME.fullmatch(text.value) and "key" not in text.kinds, _Binds(
        "{value!r} is a name of CUDA's C interface", "use the function of CANN that does the same", Effort.MEDIUM)),
    (_Text.is_idle_command, _Binds(
        "a command that names CUDA has no effect here", "remove it, or set its variable in os.environ",
        Effort.LOW, blocks="tidy")),
    (_Text.is_command, _Binds("a command line that names CUDA", "write the command for the NPU", Effort.LOW)),
    (lambda text: _CONFIGURATION.search(text.value), _Binds(
        "a configuration in a string mentions CUDA",
        "write npu and hccl in it if the program reads it as a configuration", Effort.LOW)),
    (lambda text: _LIST.fullmatch(text.value) and not text.kinds & {"key", "flag"}, _Binds(
        "the list {value!r} contains CUDA names", "use the NPU counterpart, if the program reads it", Effort.LOW)),
    (lambda text: "kernel" in text.kinds, _Binds(
        "{value!r} names the device of a kernel", "register a kernel for the NPU (dispatch key PrivateUse1)",
        Effort.HIGH)),
    (_Text.is_tried_library, "library-tried"),
    (lambda text: _LIBRARY.search(text.value), _Binds(
        "the library {value!r} belongs to CUDA", "load the CANN library that does the same", Effort.MEDIUM)),
    (_Text.is_macro, "compiler-flag"),
    (_Text.is_shipped, "own-string"),
    (lambda text: re.fullmatch(r"\S+\.cuh?", text.value), _Binds(
        "{value!r} is a CUDA source, which an NPU host cannot compile",
        "rewrite the kernel in Ascend C, or call operators of torch or torch_npu", Effort.MEDIUM)),
    (_Text.is_of_the_toolkit, _Binds(
        "{value!r} belongs to the CUDA toolkit", "an NPU host has none: skip this there", Effort.MEDIUM)),
    (lambda text: _ENVIRONMENT.fullmatch(text.value) and "key" not in text.kinds, _Binds(
        "this text names the environment variable {value}", "write the NPU variable if the program reads it",
        Effort.LOW)),
)  # fmt: skip


def _reason(value: str, kinds: set[str], found: list[ReachedPlace]) -> str:
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
