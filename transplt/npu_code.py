"""Code that handles the NPU already: it stays as it is, and what is left for CUDA alone is said.

A file is *portable* when it chooses between CUDA and the NPU: a condition, a tuple or a pair of definitions that names
both. A project is when a tenth of its CUDA-bound files are. What they do on CUDA, on the CPU and on an NPU
must not change, so nothing in them is edited but what the user's own rules say. An edit that was planned is dropped
where the code is CUDA's side of such a choice, and becomes a finding everywhere else.
A file that merely uses the NPU (`torch.npu.set_device(0)` next to a forgotten `.cuda()`) makes no choice: it is edited.
"""

from __future__ import annotations

import ast
import re

from transplt.finding import Effort, Level
from transplt.rewrite import Change
from transplt.scan import FUNCTIONS, Scan, parent
from transplt.source import Source
from transplt.tokens import literal_areas
from transplt.work import Note, Work

#: What speaks of the NPU. `_` counts as a border: `is_npu_available`, `self.is_npu`.
NPU = re.compile(rb"(?<![A-Za-z0-9])npu(?![A-Za-z0-9])|torch_npu|(?<![A-Za-z0-9])hccl(?![A-Za-z0-9])", re.I)
#: What certainly deals with another accelerator; `args.no_cuda` or `gpu_id` may be the NPU's by now.
_OTHER = re.compile(
    rb"\.CUDA\b|torch\.(?:cuda|xpu|mlu|hpu|musa)\b|\bis_(?:torch_)?(?:cuda|xpu|mlu|hpu|musa)(?:_\w+)?\b"
    rb"|['\"](?:(?:cuda|xpu|mlu|hpu|musa)(?::[^'\"]*)?|nccl)['\"]"
)
_NPU_END = re.compile(rb"npu(?![a-z0-9])")
_NPU_NAME = re.compile(r"(?:^|_)npu(?:_|$)", re.I)
_TRIPLE = (b'"""', b"'''")
_EXPRESSIONS = (ast.IfExp, ast.BoolOp, ast.Dict, ast.Tuple, ast.List, ast.Set)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
REASON = "CUDA's side of code that handles the NPU too"
CODE = "NPU200"


def mentions_npu(utf8: bytes) -> bool:
    """A quick look at the text, comments included."""
    lowered = utf8.lower()
    if b"torch_npu" in lowered or b"hccl" in lowered:
        return NPU.search(utf8) is not None
    # `input` holds the word: a pattern that begins with a literal is fast, so the border before it is looked at here.
    return any(not lowered[match.start() - 1 : match.start()].isalnum() for match in _NPU_END.finditer(lowered))


def is_portable(source: Source, scan: Scan) -> bool:
    """True for a file that chooses between the NPU and CUDA (or another accelerator)."""
    places = _places(source)
    return bool(places) and _chooses(scan, _choices(source, scan, places))


def leave_npu_code(work: Work) -> None:
    """Take back what was planned in a portable file or project; say what is left for CUDA alone."""
    mentions = mentions_npu(work.source.utf8)
    if not mentions and not work.project.portable:
        return
    places = _places(work.source) if mentions else []
    choices = _choices(work.source, work.scan, places) if places else []
    if not work.project.portable and not (places and _chooses(work.scan, choices)):
        return
    where = "file" if places else "project"
    sides = [side for choice in choices for side in _sides(work.source, choice)]
    planned, work.changes = work.changes, []
    said = [work.source.extent(change.node)[0] for change in planned]
    work.additions.clear()
    for change in planned:
        extent = work.source.extent(change.node)
        if change.user:
            work.changes.append(change)
        elif _inside(extent, sides):
            work.kept.append((*extent, REASON))
        elif change.code == "NPU207":
            work.kept.append((*extent, "text for people"))
        elif _under_a_cuda_condition(work.source, change.node, said):
            work.kept.append((*extent, "under a condition that asks for CUDA"))
        else:
            work.notes.append(_left(change, extent, where))
    work.notes = [note for note in work.notes if note.code == CODE or not _inside(note.extent, sides)]
    work.kept += [(start, end, REASON) for start, end in sides]


def _left(change: Change, extent: tuple[int, int], where: str) -> Note:
    return Note(
        extent,
        CODE,
        Level.MANUAL,
        f"{change.api or change.message} is for CUDA alone, in a {where} that handles the NPU",
        change.api,
        f"if the NPU needs it too, add its case beside it (for an NPU alone: {change.message})",
        Effort.LOW,
    )


def _inside(extent: tuple[int, int], areas: list[tuple[int, int]]) -> bool:
    return any(start <= extent[0] and extent[1] <= end for start, end in areas)


def _under_a_cuda_condition(source: Source, node: ast.AST, said: list[int]) -> bool:
    """True for code that runs only where a condition around it has asked for CUDA; the condition is reported itself."""
    while not isinstance(node, (ast.Module, *FUNCTIONS, ast.ClassDef)):
        above = parent(node)
        if isinstance(above, ast.If) and node in above.body:
            start, end = source.extent(above.test)
            if any(start <= at < end for at in said):
                return True
        node = above
    return False


# --- what names both -----------------------------------------------------------------------------------------------


def _places(source: Source) -> list[int]:
    """Where live code or strings speak of the NPU; docstrings and comments left out."""
    utf8 = source.utf8
    found = [match.start() for match in NPU.finditer(utf8)]
    if not found:
        return []
    areas = [
        (start, end) for start, end, kind in literal_areas(utf8) if kind == "comment" or utf8[end - 3 : end] in _TRIPLE
    ]
    return [at for at in found if not any(start <= at < end for start, end in areas)]


def _chooses(scan: Scan, choices: list[ast.AST]) -> bool:
    """True when a file decides between the two; a table alone does not, for a migration adds rows to tables."""
    return _defines_both(scan) or any(not isinstance(choice, ast.Dict) for choice in choices)


def _defines_both(scan: Scan) -> bool:
    """`is_npu_available` and `is_cuda_available` side by side."""
    names = [node.name for node in (*scan.functions, *scan.classes)]
    return any(_NPU_NAME.search(name) for name in names) and any("cuda" in name.lower() for name in names)


def _choices(source: Source, scan: Scan, places: list[int]) -> list[ast.AST]:
    """The nodes that name the NPU and CUDA as alternatives, found from the places that speak of the NPU."""
    found: dict[int, ast.AST] = {}
    for at in places:
        for node in _around(source, scan.tree, at):
            if isinstance(node, (ast.If, ast.Match)):
                heads = _heads(source, node)
                if NPU.search(heads) and (_OTHER.search(heads) or _other_arm(source, node)):
                    found[id(node)] = node
            elif isinstance(node, _EXPRESSIONS):
                start, end = source.extent(node)
                if end - start < 4000 and _OTHER.search(source.utf8, start, end):
                    found[id(node)] = node
            if isinstance(node, ast.stmt):
                found.update((id(twin), twin) for twin in _twins(source, node))
    return list(found.values())


def _twins(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """Statements of the same block that say for CUDA what this one says for the NPU."""
    head = _head(source, node)
    if not NPU.search(head):
        return []
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent(node), name, None)
        if isinstance(block, list) and node in block:
            at = block.index(node)
            near = block[max(0, at - 3) : at + 4]
            heads = ((twin, _head(source, twin)) for twin in near)
            return [twin for twin, line in heads if b"cuda" in line and line.replace(b"cuda", b"npu") == head]
    return []


def _head(source: Source, node: ast.stmt) -> bytes:
    """The first line of a statement, lowered."""
    start, end = source.extent(node)
    return source.utf8[start:end].partition(b"\n")[0].lower().replace(b"nccl", b"hccl")


def _other_arm(source: Source, node: ast.If | ast.Match) -> bool:
    """`if npu: ... else: <CUDA>`, and `if npu: return ...` with CUDA's code after it."""
    if isinstance(node, ast.Match):
        return False
    last = node
    while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If):
        last = last.orelse[0]
    rest = last.orelse or (_after(node) if isinstance(node.body[-1], _LEAVES) else [])
    return any(_OTHER.search(source.utf8, *source.extent(statement)) for statement in rest)


def _after(node: ast.stmt) -> list[ast.stmt]:
    """The statements that follow one in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent(node), name, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []


def _heads(source: Source, node: ast.If | ast.Match) -> bytes:
    """The conditions of an if chain; the patterns of a match."""
    if isinstance(node, ast.Match):
        constants = [item for case in node.cases for item in ast.walk(case.pattern) if isinstance(item, ast.MatchValue)]
        return b" ".join(_text(source, item.value) for item in constants)
    tests = []
    here: ast.stmt = node
    while isinstance(here, ast.If):
        tests.append(_text(source, here.test))
        here = here.orelse[0] if len(here.orelse) == 1 else ast.Pass()
    return b" ".join(tests)


def _around(source: Source, tree: ast.Module, at: int) -> list[ast.AST]:
    """The nodes around a byte offset, outermost first."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.expr, ast.stmt)):
            start, end = source.extent(node)
            for decorator in getattr(node, "decorator_list", ()):
                start = min(start, source.extent(decorator)[0])
            if not start <= at < end:
                continue
            found.append(node)
            stack = []
        stack += ast.iter_child_nodes(node)
    return found


def _sides(source: Source, node: ast.AST) -> list[tuple[int, int]]:
    """The ranges in which a choice deals with one accelerator or the other: they are handled."""
    if not isinstance(node, ast.If) or not NPU.search(_heads(source, node)):
        assert isinstance(node, (ast.expr, ast.stmt))
        return [source.extent(node)]
    found = []
    here = node
    while True:
        test = _text(source, here.test)
        found.append(source.extent(here.test))
        if _OTHER.search(test) or NPU.search(test):
            found += [source.extent(item) for item in here.body]
        if len(here.orelse) != 1 or not isinstance(here.orelse[0], ast.If):
            break
        here = here.orelse[0]
    if here.orelse:
        found += [source.extent(item) for item in here.orelse]
    elif isinstance(node.body[-1], _LEAVES) and NPU.search(_text(source, node.test)):
        found += [source.extent(item) for item in _after(node)]
    return found


def _text(source: Source, node: ast.expr) -> bytes:
    start, end = source.extent(node)
    return source.utf8[start:end]
