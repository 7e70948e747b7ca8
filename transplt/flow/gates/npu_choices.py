"""Where a file chooses between the NPU and CUDA: a condition, a tuple or a pair of definitions that names both."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right

from transplt.base.text.lexer import lex
from transplt.base.text.source import Source
from transplt.syntax.nodes import following, inner_nodes, place_in_block
from transplt.syntax.positions import Inside
from transplt.syntax.scan import Scan

#: What is said of a remark in a project that chooses by itself: it trains on NPUs as it is.
HANDLED = "the project supports NPUs itself"
#: What speaks of the NPU. `_` counts as a border: `is_npu_available`, `self.is_npu`.
NPU = re.compile(rb"(?<![A-Za-z0-9])npu(?![A-Za-z0-9])|torch_npu|(?<![A-Za-z0-9])hccl(?![A-Za-z0-9])", re.I)
#: What certainly deals with another accelerator; `args.no_cuda` or `gpu_id` may be the NPU's by now.
_OTHER = re.compile(
    rb"\.CUDA\b|torch\.(?:cuda|xpu|mlu|hpu|musa)\b|\bis_(?:torch_)?(?:cuda|xpu|mlu|hpu|musa)(?:_\w+)?\b"
    rb"|['\"](?:(?:cuda|xpu|mlu|hpu|musa)(?::[^'\"]*)?|nccl|CUDA|CUDA_VISIBLE_DEVICES)['\"]"
)
_NPU_END = re.compile(rb"npu(?![a-z0-9])")
_NPU_NAME = re.compile(r"(?:^|_)npu(?:_|$)", re.I)
#: How libraries call the question whether there is an NPU: transformers.utils, accelerate.utils, diffusers.utils.
_ASKED = frozenset({"is_torch_npu_available", "is_npu_available"})
#: A variable or a function of the project that holds the answer for CUDA.
_ANSWER = re.compile(r"_?is_(?:torch_)?cuda(?:_available)?")
_ASSIGNED = re.compile(rb"(\w*(?:npu|cuda)\w*)\s*(?::[^=]*)?=(?!=)")
_NAMED = re.compile(rb"cuda|xpu|mlu|hpu|musa|npu", re.I)
_AVAILABLE = re.compile(rb"[\w.]*(?:is_available|_available)\(\)")
_JOINED = re.compile(rb"\b(?:and|or|not)\b")
#: The arms of one choice stand so near each other: of thousands of `if` in a row none looks at all.
_ARMS = 16
_TRIPLE = (b'"""', b"'''")
_EXPRESSIONS = (ast.IfExp, ast.BoolOp, ast.Dict, ast.Tuple, ast.List, ast.Set)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def mentions_npu(utf8: bytes) -> bool:
    """A quick look at the text, comments included."""
    lowered = utf8.lower()
    if b"torch_npu" in lowered or b"hccl" in lowered:
        return NPU.search(utf8) is not None
    # `input` holds the word: a pattern that begins with a literal is fast, so the border before it is looked at here.
    return any(not lowered[match.start() - 1 : match.start()].isalnum() for match in _NPU_END.finditer(lowered))

#: `"cuda" in state and ...`: an entry of that name, which a migration leaves, chooses no device.
_KEY_ASKED = re.compile(rb"""["']cuda["']\s+(?:not\s+)?in\s+(?=[\w.]+\s+and\b)""")


def is_portable(source: Source, scan: Scan) -> bool:
    """True for a file that chooses between the NPU and CUDA (or another accelerator)."""
    places = npu_places(source)
    return bool(places) and chooses(scan, choices(source, scan, places))


def npu_places(source: Source) -> list[int]:
    """Where live code or strings speak of the NPU; comments and strings in triple quotes left out."""
    utf8 = source.utf8
    found = _places_in(utf8)
    if not found:
        return []
    areas = [
        (each.start, each.end) for each in lex(utf8) if each.is_comment or utf8[each.end - 3 : each.end] in _TRIPLE
    ]
    starts = [start for start, _ in areas]
    return [at for at in found if not (before := bisect_right(starts, at)) or areas[before - 1][1] <= at]


def _places_in(utf8: bytes) -> list[int]:
    """Where `NPU` matches, one after the other: looked for by the words that it begins or ends with, which is fast."""
    lowered = utf8.lower()
    starts = set[int]()
    for word in (b"npu", b"hccl"):
        at = lowered.find(word)
        while at >= 0:
            start = at - 6 if word == b"npu" and lowered[max(at - 6, 0) : at] == b"torch_" else at
            if NPU.match(utf8, start) is not None:
                starts.add(start)
            at = lowered.find(word, at + 1)
    return sorted(starts)


def chooses(scan: Scan, choices: list[ast.AST]) -> bool:
    """True when a file decides between the two; a table alone does not, for a migration adds rows to tables."""
    names = [node.name for node in (*scan.functions, *scan.classes)]
    if any(_NPU_NAME.search(name) for name in names) and any("cuda" in name.lower() for name in names):
        return True  # `is_npu_available` and `is_cuda_available` side by side
    return any(not isinstance(choice, ast.Dict) for choice in choices)


def asks_whether_there_is_one(scan: Scan) -> bool:
    """True for a file that imports the question whether there is an NPU, and asks it. That says nothing of its project:
    of many examples some ask.
    """
    imported = {alias.name for node in scan.imports if isinstance(node, ast.ImportFrom) for alias in node.names}
    return bool(_ASKED & imported) and bool(scan.calls_by_last_name(_ASKED & imported))


def choices(source: Source, scan: Scan, places: list[int], *, arms: bool = False) -> list[ast.AST]:
    """The nodes that name the NPU and CUDA as alternatives, found from the places that speak of the NPU.

    With `arms` also statements of their own for CUDA beside a condition that asks for the NPU.
    """
    found: dict[int, ast.AST] = {}
    inside = Inside(source)
    seen: set[int] = set()
    for at in places:
        for node in inside.around(scan.tree, at):
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, (ast.If, ast.Match)):
                heads = _heads(source, node)
                if NPU.search(heads) and (_OTHER.search(heads) or _other_arm(source, node)):
                    found[id(node)] = node
            elif isinstance(node, _EXPRESSIONS):
                start, end = source.extent(node)
                if end - start < 4000 and _OTHER.search(source.utf8, start, end) and _names_another(source, node):
                    found[id(node)] = node
            if isinstance(node, ast.stmt):
                found.update((id(twin), twin) for twin in _twins(source, node))
                found.update((id(arm), arm) for arm in (_arms(source, node) if arms else ()))
    return list(found.values())


def _names_another(source: Source, node: ast.expr) -> bool:
    """Whether an expression names another accelerator outside of its tables, and not as a key that it asks for."""
    start, end = source.extent(node)
    text = bytearray(source.utf8[start:end])
    for table in inner_nodes(node, ast.Dict):
        if table is not node:
            first, last = source.extent(table)
            text[first - start : last - start] = b" " * (last - first)
    return _OTHER.search(_KEY_ASKED.sub(b"", bytes(text))) is not None


def _twins(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """Statements of the same block that say for CUDA what this one says for the NPU."""
    head = _head(source, node)
    if not NPU.search(head):
        return []
    block, at = place_in_block(node)
    heads = [(twin, _head(source, twin)) for twin in block[max(0, at - 3) : at + 4]]
    name = _assigned(head)
    return [
        twin
        for twin, line in heads
        if b"cuda" in line
        and (line.replace(b"cuda", b"npu") == head or (name and _assigned(line).replace(b"cuda", b"npu") == name))
    ]


def _assigned(head: bytes) -> bytes:
    """The name that the first line of a statement assigns to, where it is one that speaks of the NPU or of CUDA."""
    match = _ASSIGNED.match(head)
    return match[1] if match is not None else b""


def _arms(source: Source, node: ast.stmt) -> list[ast.stmt]:
    """What is done for CUDA where an `if npu: ...` stands beside it: `if cuda: ...`, or the same call for all."""
    if not isinstance(node, ast.If) or not NPU.search(_heads(source, node)):
        return []
    block, at = place_in_block(node)
    same = {_head(source, each) for each in node.body}
    first, last = at, at
    while first > max(0, at - _ARMS) and isinstance(block[first - 1], ast.If):
        first -= 1
    while last + 1 < min(len(block), at + _ARMS) and isinstance(block[last + 1], ast.If):
        last += 1
    around = [each for each in block[first : last + 1] if isinstance(each, ast.If) and each is not node]
    asked = _question(_text(source, node.test))
    found: list[ast.stmt] = [
        each
        for each in around
        if asked and not each.orelse and _OTHER.search(test := _text(source, each.test)) and _question(test) == asked
    ]
    heads = ((each, _head(source, each)) for each in block[max(0, first - 1) : first])
    return found + [each for each, line in heads if b"cuda" in line and line.replace(b"cuda", b"npu") in same]


def _question(test: bytes) -> bytes:
    """What a condition asks, whichever the accelerator: two that ask alike are arms of one choice; empty for others."""
    if _JOINED.search(test):
        return b""
    return b"available" if _AVAILABLE.fullmatch(test) else _NAMED.sub(b"", test)


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
    rest = last.orelse or (following(node) if isinstance(node.body[-1], _LEAVES) else [])
    return any(_OTHER.search(source.utf8, *source.extent(statement)) for statement in rest)


def _heads(source: Source, node: ast.If | ast.Match) -> bytes:
    """The conditions of an if chain, without what is asked for as a key; the patterns of a match."""
    if isinstance(node, ast.Match):
        constants = [item for case in node.cases for item in inner_nodes(case.pattern, ast.MatchValue)]
        return b" ".join(_text(source, item.value) for item in constants)
    tests = []
    here: ast.stmt = node
    while isinstance(here, ast.If):
        tests.append(_KEY_ASKED.sub(b"", _text(source, here.test)))
        here = here.orelse[0] if len(here.orelse) == 1 else ast.Pass()
    return b" ".join(tests)


def answered(source: Source, scan: Scan) -> list[tuple[int, int]]:
    """The ranges that run where a name of the project says that there is CUDA: `if is_cuda_available: ...`."""
    if b"is_cuda" not in source.utf8 and b"is_torch_cuda" not in source.utf8:
        return []
    found = []
    for node in scan.ifs:
        test = node.test.func if isinstance(node.test, ast.Call) else node.test
        if isinstance(test, ast.Name) and _ANSWER.fullmatch(test.id):
            body = node.body if isinstance(node, ast.If) else [node.body]
            found += [source.extent(each) for each in body]
    return found


def sides(source: Source, node: ast.AST) -> list[tuple[int, int]]:
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
        found += [source.extent(item) for item in following(node)]
    return found


def _text(source: Source, node: ast.expr) -> bytes:
    start, end = source.extent(node)
    return source.utf8[start:end]
