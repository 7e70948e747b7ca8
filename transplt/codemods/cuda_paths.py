"""Gates that lead to CUDA-only code stay: on an NPU they answer no, and the program takes its other path.

`if x.is_cuda: return median_filter_cuda(x)` must not become `if x.is_npu`: the branch calls a kernel that no NPU runs.
Runs after the codemods that plan edits, and takes back those of such gates.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator

from transplt.edits.edit import Edit, Extent, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.finding import Effort
from transplt.syntax.asks import following, index_in, last_name
from transplt.syntax.modules import import_base
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.values.callees import FOREIGN

fixer = Fixer(__name__, code="NPU270", rank=610)

#: Findings that mark code which needs CUDA: packages without a form for NPU, kernels, extensions.
_BOUND = ("NPU246", "NPU510", "NPU512", "NPU55")
#: Of these codes those whose names are CUDA code wherever they are called, not only where they are imported.
_KERNEL_CODES = ("NPU510", "NPU553", "NPU554")
#: Packages under these codes that hold no kernels: what they do on a device is torch's.
_NO_KERNELS = ("lightning", "pytorch_lightning")
#: A branch longer than this many lines is a program, no call of a kernel; a test of one tensor guards no program.
_LINES = 30
_LINES_OF_A_TENSOR = 100
_NAMED_CUDA = re.compile(r"(?:^|_)cuda(?:$|_|\d)|Cuda[A-Z]|CUDA[A-Z]|(?:^|_)triton(?:$|_)", re.I)
#: What marks a file whose functions end in kernels of its own.
_KERNELS = re.compile(rb"cpp_extension|load_inline|get_plugin|custom_ops|\b_C\b|\b_ext\b|\.cu\b|\btriton|\bcupy\b")
#: What --annotate puts into a file.
_MARKER = re.compile(rb"# TODO\(transplt\): ")
#: How compiled modules of a project are called: `from detectron2 import _C`.
_COMPILED = re.compile(r"_?C|\w+_ext|_ext|\w+_extension|_backend")
#: Packages and methods of other libraries that need a card of NVIDIA.
_OF_OTHERS = re.compile(
    r"(?:onnxruntime|paddlepaddle|tensorflow|faiss|mxnet)-gpu(?:[=<>~!\[].*)?|(?:CUDA|Tensorrt)ExecutionProvider"
)
_GPU_METHODS = frozenset({"enable_use_gpu", "index_cpu_to_gpu", "index_cpu_to_all_gpus", "StandardGpuResources"})


@fixer.on(ast.Module)
def gates_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Take back the edits of gates whose branch is CUDA-only."""
    taken_back: set[int] = set()
    bound = _Bound(work)
    for edit in [edit for edit in work.rewrites if not edit.user and _is_gate(edit)]:
        limit = _LINES_OF_A_TENSOR if edit.api == "torch.Tensor.is_cuda" else _LINES
        branch = _branch(edit.node)
        why = (_cuda_only(work, bound, branch, limit) if branch else "") or _by_name(work, bound, edit.node)
        if why:
            taken_back.add(id(edit))
            yield work.note(
                edit.node,
                fixer.code,
                f"this test leads to code that needs CUDA ({why}); it stays, and the NPU takes the other path",
                api=edit.api,
                help="see that the other path is right on the NPU; port the CUDA code where its speed is needed",
                effort=Effort.MEDIUM,
            )
    if taken_back:
        work.withdraw_edits(lambda edit: id(edit) in taken_back)


class _Bound:
    """What the findings so far say of a file: where code needs CUDA, and under which names; gone through once."""

    def __init__(self, work: Work) -> None:
        bound = ((*note.extent, index) for index, note in enumerate(work.notes) if note.code.startswith(_BOUND))
        self.notes = work.notes
        self.places = sorted(bound)  # (start, end, index of the note)
        self.kernels: dict[str, int] = {}  # the name of a kernel, and the index of the first note of it
        for index, note in enumerate(work.notes):
            if note.api and note.code in _KERNEL_CODES:
                self.kernels.setdefault(note.api, index)
        self.markers = [match.start() for match in _MARKER.finditer(work.source.utf8)]
        self.has_kernels = bool(_KERNELS.search(work.source.utf8))

    def first_in(self, extents: list[Extent]) -> str:
        """What the first of the findings says that speaks of code in some places; empty where none does."""
        inside = []
        for start, end in extents if self.places else ():
            first, behind = (bisect_left(self.places, (at,)) for at in (start, end))
            inside += [index for _, last, index in self.places[first:behind] if last <= end]
        note = self.notes[min(inside)] if inside else None
        return "" if note is None else note.api or note.message

    def lines_between(self, start: int, end: int) -> int:
        """How many lines of a byte range are markers of --annotate."""
        return bisect_left(self.markers, end) - bisect_left(self.markers, start)

    def kernel(self, full: str) -> str:
        """The name in the findings of CUDA-only code that a full name is or begins with."""
        if not self.kernels or full.partition(".")[0] in _NO_KERNELS:
            return ""
        found = []
        while full:
            if full in self.kernels:
                found.append(full)
            full = full.rpartition(".")[0]
        return min(found, key=self.kernels.__getitem__, default="")


def _is_gate(edit: Edit) -> bool:
    if edit.api in ("torch.cuda.is_available", "torch.Tensor.is_cuda") or edit.code == "NPU211":
        return True
    return edit.api.startswith("device string") and isinstance(parent(edit.node), ast.Compare)


def _branch(node: ast.AST) -> list[ast.AST]:
    """What runs only if the gate says CUDA; empty where the gate decides nothing that can be seen."""
    positive = True
    found: list[ast.AST] = []
    while not isinstance(node, ast.stmt):
        above = parent(node)
        if isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
            positive = not positive
        elif isinstance(above, ast.Compare):
            if any(isinstance(op, (ast.NotEq, ast.NotIn, ast.IsNot)) for op in above.ops):
                positive = not positive
        elif isinstance(above, ast.BoolOp):
            if isinstance(above.op, ast.And) and positive:
                found += above.values[index_in(above, "values", node) + 1 :]
        elif isinstance(above, ast.IfExp):
            if above.test is node:
                return [*found, above.body if positive else above.orelse]
            return []
        elif isinstance(above, (ast.If, ast.While)):
            if above.test is not node:
                return []
            if positive:
                return [*found, *above.body]
            return [*above.orelse, *(following(above) if _leaves(above.body) else [])]
        elif not isinstance(above, (ast.Call, ast.Attribute, ast.Tuple, ast.NamedExpr)):
            return found
        node = above
    return found


def _leaves(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _by_name(work: Work, bound: _Bound, node: ast.AST) -> str:
    """What the branches need that ask for the gate by a name of its own: `gpu = torch.cuda.is_available()`."""
    above = parent(node)
    while isinstance(above, (ast.Call, ast.BoolOp)) and not isinstance(getattr(above, "op", None), ast.Or):
        node, above = above, parent(above)
    if not isinstance(above, ast.Assign) or above.value is not node or len(above.targets) != 1:
        return ""
    target = above.targets[0]
    if not isinstance(target, ast.Name):
        return ""
    scope = work.scan.scope_of(target)
    found = work.names.lookup(target.id, scope)
    if found is None or len(found[1]) != 1:
        return ""
    why = ""
    for use in work.scan.names.get(target.id, ()):
        if use is target:
            continue
        if (seen := work.names.lookup(use.id, work.scan.scope_of(use))) is None or seen[0] is not found[0]:
            continue
        branch = _branch(use)
        why = _cuda_only(work, bound, branch, _LINES) if branch else ""
        if not why:
            return ""
    return why


def _cuda_only(work: Work, bound: _Bound, branch: list[ast.AST], limit: int) -> str:
    """What in a branch needs CUDA, in a few words; empty when nothing does."""
    first, last = branch[0], branch[-1]
    lines = getattr(last, "end_lineno", 0) - getattr(first, "lineno", 0)
    extent = work.source.extent
    # The markers of --annotate are no lines of the program: they must not make a second run decide otherwise.
    lines -= bound.lines_between(extent(first)[0], extent(last)[1])  # type: ignore[arg-type]
    if lines > limit:
        return ""
    if why := bound.first_in([extent(node) for node in branch] if bound.places else []):  # type: ignore[arg-type]
        return why
    for node in branch:
        for inner in ast.walk(node):
            if isinstance(inner, ast.ImportFrom):
                module = work.project.canonical(import_base(work.scan.path, inner))
                if module in work.project.kernel_modules:
                    return module
            elif isinstance(inner, ast.Call) and (
                name := _compiled(work, bound, inner) or _kernel_call(work, bound, inner)
            ):
                return name
            elif isinstance(inner, ast.Constant) and isinstance(inner.value, str) and _OF_OTHERS.fullmatch(inner.value):
                return inner.value
            elif isinstance(inner, ast.Attribute) and inner.attr == "CUDA":
                full = work.names.qualified(inner) or ""
                if full.partition(".")[0] in FOREIGN:
                    return full
    return ""


def _compiled(work: Work, bound: _Bound, call: ast.Call) -> str:
    """The name of a function that is compiled for CUDA, by where it comes from; empty for any other call."""
    func = call.func
    full = work.names.qualified(func) or ""
    if full.startswith("torch.ops._caffe2.") or (isinstance(func, ast.Attribute) and func.attr in _GPU_METHODS):
        return full or func.attr  # type: ignore[attr-defined]
    if known := bound.kernel(full):
        return known
    root: ast.expr = func
    while isinstance(root, ast.Attribute):
        root = root.value
    found = work.names.lookup(root.id, work.scan.scope_of(root)) if isinstance(root, ast.Name) else None
    for binding in found[1] if found is not None else ():
        if isinstance(binding.node, ast.ClassDef):
            for base in binding.node.bases:
                if known := bound.kernel(work.names.qualified(base) or ""):
                    return known
        elif binding.kind == "import" and root is not func and _COMPILED.fullmatch(binding.target.rpartition(".")[2]):
            known = work.project.canonical(binding.target)
            if work.project.known and known not in work.project.modules and known not in work.project.defined:
                return f"{binding.target.rpartition('.')[2]}.{func.attr}"  # type: ignore[attr-defined]
    return ""


def _kernel_call(work: Work, bound: _Bound, call: ast.Call) -> str:
    """The name of a called function that is called after CUDA and ends in a kernel; empty for any other call."""
    func = call.func
    last = last_name(func)
    spelled = [last, *_roots(func)]
    if last in ("cuda", "is_cuda") or not any(_NAMED_CUDA.search(name) for name in spelled if name != "cuda"):
        return ""
    full = work.names.qualified(func)
    if full is not None and full.startswith("torch."):
        return ""
    if isinstance(func, ast.Name):
        found = work.names.lookup(func.id, work.scan.scope_of(func))
        if found is not None and any(isinstance(b.node, (*FUNCTIONS, ast.ClassDef)) for b in found[1]):
            return last if bound.has_kernels else ""
    if full is not None:
        module = work.project.canonical(full).rpartition(".")[0]
        if module in work.project.modules:
            return last if module in work.project.kernel_modules else ""
        return full
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
        return last if bound.has_kernels else ""
    return ""


def _roots(func: ast.expr) -> Iterator[str]:
    while isinstance(func, ast.Attribute):
        func = func.value
    if isinstance(func, ast.Name) and func.id not in ("self", "cls", "torch"):
        yield func.id
