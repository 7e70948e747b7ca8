"""Text for people that lists the values of an option: it follows them, also without `--texts`.

The help of a flag whose default or choices became the NPU's, and the message of the error that is raised where a test
of the same value fails: `--device {npu,cpu}: cuda or cpu` tells people to give what the program now refuses. Only the
words that are values change: `CUDA` in a sentence, versions of CUDA and the help of flags that switch kernels stay.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Extent, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import in_literals
from transplt.edits.trees.transform import OfText
from transplt.edits.work import Work
from transplt.fixers.codemods.texts import OF_NVIDIA, WORD
from transplt.flow import read_as
from transplt.flow.callees import ABSL_CALLS, FIELD_CALLS, PARSER_CALLS
from transplt.flow.device_strings import whole_value
from transplt.flow.marks import BACKEND, DEVICE, marks_by_name
from transplt.flow.option_defaults import destination
from transplt.program.call_conditions import defaults
from transplt.syntax.nodes import index_in, last_name, of_kind, plain_name, string_of
from transplt.syntax.scan import FUNCTIONS, ancestor, chain, parent, statement

fixer = Fixer(__name__, code="NPU207", rank=625)

#: Codes of edits that write the NPU's value for CUDA's: of a device, of a backend.
_VALUES = {"NPU201": DEVICE, "NPU301": BACKEND}
_NEW = {DEVICE: ("cuda", "npu"), BACKEND: ("nccl", "hccl")}
_DEFINES = frozenset({*PARSER_CALLS, *FIELD_CALLS, "Option", "Argument"})
#: An option in a usage, with its text up to the next one.
_LINE = re.compile(
    r"^[ \t]*(?:-\w[^\n-]*)?--(?P<name>[a-z][\w-]*)(?P<text>[^\n]*(?:\n(?![ \t]*-)[ \t]+\S[^\n]*)*)", re.M
)
_FOR_PEOPLE = ("help", "description")
_RAISES = frozenset({"error", "exit", "fail", "abort"})


@fixer.on(ast.Module)
def texts_about_options(work: Work, tree: ast.Module) -> Finds:
    """Let text that names the values of an option name the new ones."""
    if work.settings.style != "npu":
        return
    yield from _usages(work, tree)
    edits = _Edits.of(work)
    for outer in work.strings_left():
        value = whole_value(outer)
        words = {match.group() for match in WORD.finditer(value)} & {"cuda", "nccl"}
        if not words or OF_NVIDIA.search(value):
            continue
        call = _described(outer)
        tests = _tests(work, outer) if call is None else []
        marks = _of_flag(work, edits, call) if call is not None else edits.moved(tests)
        pairs = dict(_NEW[mark] for mark in sorted(marks) if _NEW[mark][0] in words)
        if pairs and any(True for area in tests for _ in _within(edits.asks, area)):
            pairs |= {"CUDA": "NPU", "Cuda": "NPU"}  # "the device is 'cuda', but CUDA is not available"
        if pairs and not (call is None and _is_looked_for(work, value)) and work.take(outer):
            named = ", ".join(f"{old} -> {new}" for old, new in pairs.items())
            swap = partial(WORD.sub, lambda match, pairs=pairs: pairs.get(match.group(), match.group()))
            yield Edit(outer, fixer.code, f"help text updated to match the values: {named}", in_literals(swap))


# --- docopt ----------------------------------------------------------------------------------------------------------


def _usages(work: Work, tree: ast.Module) -> Finds:
    """The usage text that docopt reads: the default of an option there is its value, and the line speaks of it."""
    for call in work.scan.calls_by_last_name(("docopt",)):
        given = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "doc"), None)
        if plain_name(given) == "__doc__":
            first = tree.body[0] if tree.body else None
            given = first.value if isinstance(first, ast.Expr) else None
        if not (isinstance(given, ast.Constant) and isinstance(given.value, str)) or id(given) in work.taken:
            continue
        marks = frozenset(
            mark
            for line in _LINE.finditer(given.value)
            for mark in marks_by_name(line["name"].replace("-", "_"))
            if re.search(rf"\[default: {_NEW[mark][0]}\b", line["text"])
        )
        if marks and work.take(given):
            pairs = dict(_NEW[mark] for mark in sorted(marks))
            message = "docopt reads the default of an option from its usage text: " + ", ".join(pairs.values())
            yield Edit(given, "NPU201", message, _swap_lines(pairs), writes_npu=True)


def _swap_lines(pairs: dict[str, str]) -> OfText:
    """Write other values in the lines of options whose default is one of them."""

    def line(match: re.Match[str]) -> str:
        if not any(f"[default: {old}" in match["text"] for old in pairs):
            return match[0]
        return WORD.sub(lambda word: pairs.get(word.group(), word.group()), match[0])

    return in_literals(lambda text: _LINE.sub(line, text))


# --- whose text it is ------------------------------------------------------------------------------------------------


def _described(outer: ast.expr) -> ast.Call | None:
    """The call that defines the option of which a text is the help; None for other text."""
    above = parent(outer)
    match above:
        case ast.Call() if last_name(above.func) in ABSL_CALLS:
            return above if outer in above.args[2:] else None
        case ast.Dict(keys=keys):  # field(metadata={"help": "..."})
            at = index_in(above, "values", outer)
            if at < 0 or string_of(keys[at]) not in _FOR_PEOPLE:
                return None
            above = parent(above)
            if not (isinstance(above, ast.keyword) and above.arg == "metadata"):
                return None
        case ast.keyword(arg=name) if name in _FOR_PEOPLE:
            pass
        case _:
            return None
    call = parent(above)
    return call if isinstance(call, ast.Call) and last_name(call.func) in (*_DEFINES, *ABSL_CALLS) else None


def _of_flag(work: Work, edits: _Edits, call: ast.Call) -> frozenset[str]:
    """What the values of an option are that were edited where it is defined; else what the project reads it as."""
    moved = edits.moved([work.source.extent(call), *_annotated_default(work, call)])
    if moved or last_name(call.func) not in PARSER_CALLS:
        return moved
    values = (each.value for each in call.keywords if each.arg in ("default", "choices", "const", "action"))
    if any(not (isinstance(each, ast.Constant) and each.value is None) for each in values):
        return moved  # its values are others
    return read_as.option(work.project, destination(call), work.scan.path).marks & {DEVICE, BACKEND}


def _annotated_default(work: Work, call: ast.Call) -> Iterator[Extent]:
    """`device: Annotated[str, typer.Option(help="...")] = "cuda"`: where the default stands."""
    above = parent(call)
    while isinstance(above, (ast.Tuple, ast.Subscript)):
        above = parent(above)
    if isinstance(above, ast.AnnAssign) and above.value is not None:
        yield work.source.extent(above.value)
    elif isinstance(above, ast.arg) and isinstance(function := parent(parent(above)), FUNCTIONS):
        yield from (work.source.extent(value) for name, value in defaults(function) if name == above.arg)


def _tests(work: Work, outer: ast.expr) -> list[Extent]:
    """The tests under which an error is raised with a text; none for other text."""
    current = statement(outer)
    if isinstance(current, ast.Assert):
        message = current.msg
        if message is None or outer not in ast.walk(message):
            return []
        return [work.source.extent(current.test)]
    if not isinstance(current, ast.Raise) and not (isinstance(current, ast.Expr) and _is_said(outer)):
        return []
    around = takewhile(lambda each: not isinstance(each, (ast.ClassDef, *FUNCTIONS)), chain(current))
    return [work.source.extent(each.test) for each in of_kind(ast.If, around)]


def _is_said(node: ast.AST) -> bool:
    """True for an argument of a call that ends the program: `parser.error(...)`."""
    while isinstance(node := ancestor(node, (ast.Call, ast.stmt), "_call"), ast.Call):
        if last_name(node.func) in _RAISES:
            return True
    return False


def _is_looked_for(work: Work, text: str) -> bool:
    """True for the text of an error that a test of the project looks for, and where the project is not known."""
    if not work.project.known:
        return True
    for needle in work.project.matched:
        try:
            if re.search(needle, text):
                return True
        except re.error:
            continue
    return False


@dataclass(frozen=True, slots=True)
class _Edits:
    """The edits of the fixers before, by where they begin: each text asks for those of some places."""

    values: list[tuple[int, int, str]]
    asks: list[tuple[int, int, str]]

    @classmethod
    def of(cls, work: Work) -> _Edits:
        safe = [(work.source.extent(each.node), each) for each in work.rewrites if each.level is Level.SAFE]
        values = [(*extent, _VALUES[each.code]) for extent, each in safe if each.code in _VALUES]
        asks = [(*extent, each.api) for extent, each in safe if each.api.startswith("torch.cuda.")]
        return cls(sorted(values), sorted(asks))

    def moved(self, areas: Iterable[Extent]) -> frozenset[str]:
        """The marks of the values that are edited in some places."""
        return frozenset(mark for area in areas for mark in _within(self.values, area))


def _within(spans: list[tuple[int, int, str]], area: Extent) -> Iterator[str]:
    for at in range(bisect_left(spans, (area[0],)), len(spans)):
        start, end, what = spans[at]
        if start > area[1]:
            break
        if end <= area[1]:
            yield what
