"""Words that bind to a GPU without naming CUDA, as arguments of calls and as what such an argument is given elsewhere.

What they are, where they count and what is right on an NPU is data: rules/support/gpu_words.json.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.base.finding import Level
from transplt.base.grouped import grouped
from transplt.edits.edit import Finds
from transplt.edits.work import Work
from transplt.fixers.codemods.nvidia_tools import tries_around
from transplt.flow.gates.conditions import goes_on_without
from transplt.flow.gates.npu_choices import NPU, mentions_npu
from transplt.rules.gpu_words import CallPlace, GpuWord, Value, level_and_help, places_of
from transplt.syntax.modules import modules_of
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import defaults_of, has_key, inner_nodes, keyword_of, lacks, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent

_LONGEST = 120

#: What a condition says that asks for a device.
_DEVICES = re.compile(r"npu|gpu|cuda|mps|xpu|device|accelerator|backend", re.IGNORECASE)
#: What catches whatever is raised.
_WHATEVER = frozenset({"Exception", "BaseException"})


def note_of(
    work: Work,
    node: ast.expr | ast.stmt | ast.keyword,
    word: GpuWord,
    api: str,
    value: str = "",
    text: str = "",
    condition: str = "",
) -> Finds:
    """The note of a word; `text` is what stands there (the node's own by default), `value` its value, which is given
    only on a `condition`.
    """
    pins = work.settings.pins
    if work.settings.torch_version not in word.versions or not word.is_for(pins) or _beside_the_npu(work, node):
        return
    level, help_ = level_and_help(word, pins)
    text = " ".join((text or work.text(node)).split())[:_LONGEST]
    message = word.message.replace("{text}", text).replace("{value}", value)
    caught = (len(above.body) == 1 and goes_on_without(above, _WHATEVER) for above in tries_around(node))
    if level is not Level.INFO and any(caught):  # a `try` holds it alone that goes on whatever is raised
        level, message = Level.INFO, f"{message}; the program also runs without it"
    details = (("condition", condition),) if condition else ()
    yield work.note(
        node, word.code, message, level=level, api=word.of or api, help=help_, effort=word.effort, details=details
    )


def _beside_the_npu(work: Work, node: ast.AST) -> bool:
    """True in a condition on the device of which another arm speaks of the NPU (`if kind == "gpu": ... elif kind ==
    "npu": ...`); one on anything else chooses no device, whatever a migration has written into an arm.
    """
    if not mentions_npu(work.source.utf8):
        return False
    while not isinstance(node, (ast.Module, *FUNCTIONS)):
        inner, node = node, parent(node)
        if isinstance(node, (ast.If, ast.IfExp)):
            body, orelse = ([each] if isinstance(each, ast.expr) else each for each in (node.body, node.orelse))
            others = [node.test, *(orelse if inner in body else body)]
            speaks = any(NPU.search(work.source.utf8, *work.source.extent(each)) for each in others)
            if speaks and _DEVICES.search(work.text(node.test)):
                return True
    return False


def arguments(work: Work, imported: set[str]) -> Finds:
    by_keyword: dict[str, list[tuple[CallPlace, GpuWord]]] = {}
    for place, word in places_of(CallPlace):
        if not place.imports or not imported.isdisjoint(place.imports):
            if place.absent:
                yield from _without(work, place, word)
                continue
            by_keyword.setdefault(place.argument, []).append((place, word))
    by_place: dict[int, list[tuple[CallPlace, GpuWord]]] = {}  # those of each call, by its id
    for place, word in [each for places in by_keyword.values() for each in places if each[0].position >= 0]:
        by_last = work.scan.calls_by_last_name(place.lasts) if place.by_last_name else work.scan.calls
        for call in work.calls_by_name(place.calls) if place.by_full_name else by_last:
            by_place.setdefault(id(call), []).append((place, word))
    for call in work.scan.calls:
        noted: set[str] = set()
        for keyword in call.keywords:
            for place, word in by_keyword.get(keyword.arg or "", ()):
                yield from _argument(work, call, keyword, keyword.value, place, word, noted)
        for place, word in by_place.get(id(call), ()):
            if len(call.args) > place.position:
                value = call.args[place.position]
                yield from _argument(work, call, value, value, place, word, noted)


def _argument(
    work: Work,
    call: ast.Call,
    node: ast.keyword | ast.expr,
    value: ast.expr,
    place: CallPlace,
    word: GpuWord,
    noted: set[str],
) -> Finds:
    if word.word in noted:
        return
    full = work.names.qualified(call.func)
    if not place.names(full, last_name(call.func), isinstance(call.func, ast.Name)):
        return
    wanted = place.value
    given = next((each for each in _may_be(work, value) if is_value(wanted, each)), None)
    if wanted.kind == "unseen":
        # nothing is known here of a parameter, an attribute, an item
        unseen = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) and len(list(_may_be(work, value))) == 1
        given = value if unseen else None
    if given is None:
        return
    noted.add(word.word)
    if place.value.kind == "holds":
        for constant in _constants(wanted, given):
            if work.take(constant) and call not in chain(constant) and constant in work.scan.strings:
                yield from note_of(work, constant, word, full or "", repr(constant.value))
                yield from _gate_of(work, constant)
    shown = repr(given.value) if isinstance(given, ast.Constant) else work.text(value)
    match value:
        case ast.IfExp(test=test, body=body, orelse=other) if body is given and not is_value(wanted, other):
            condition = work.text(test)
        case _:
            condition = ""
    yield from note_of(work, call if place.whole else node, word, full or "", shown, work.text(node), condition)


def _gate_of(work: Work, constant: ast.Constant) -> Finds:
    """The question for CUDA in front of a word that stays: moved alone, it would choose CUDA where there is an NPU."""
    node: ast.AST = constant
    while not isinstance(node, (ast.Module, *FUNCTIONS)):
        inner, node = node, parent(node)
        if not isinstance(node, (ast.If, ast.IfExp)):
            continue
        body = node.body if isinstance(node.body, list) else [node.body]
        if inner in body and "cuda.is_available" in (asked := work.text(node.test)) and "not" not in asked:
            for each in ast.walk(node.test):
                work.take(each)
            yield work.keep(node.test, "cuda-condition")
            return


def _without(work: Work, place: CallPlace, word: GpuWord) -> Finds:
    """Calls that do not have an argument, also where a star may bring it, and those of derived classes of the file."""
    bases = ((each.name, base) for each in work.scan.classes for base in each.bases)
    derived = [name for name, base in bases if work.names.qualified(base) in place.calls]
    for call in (*work.calls_by_name(place.calls), *work.scan.calls_by_last_name((*derived, *place.lasts))):
        full = work.names.qualified(call.func) or last_name(call.func)
        if (full in place.calls and work.defines_package(full)) or any(
            (given := keyword_of(call, each)) and not (place.lacks and not _brings(work, given, place.lacks))
            for each in place.absent
        ):
            continue
        missing = lacks(call, place.argument, place.position if place.position >= 0 else len(call.args))
        stars = (keyword.value for keyword in call.keywords if keyword.arg is None)
        if (missing is not False and not any(_brings(work, star, place.argument) for star in stars)) or place.lacks:
            yield from note_of(work, call, word, full)


def _brings(work: Work, star: ast.expr, argument: str) -> bool:
    """True where what stands behind `**` is seen to have a key of the name of an argument."""
    for value in (star, *_may_be(work, star)):
        match value:
            case ast.Dict() if has_key(value, argument):
                return True
            case ast.Call(func=func) if last_name(func) == "dict" and keyword_of(value, argument) is not None:
                return True
    return isinstance(star, ast.Name) and any(
        isinstance(above := parent(each), ast.Subscript) and string_of(above.slice) == argument
        for each in work.scan.names.get(star.id, ())
    )


def _may_be(work: Work, value: ast.expr) -> Iterator[ast.expr]:
    """An expression, what a variable of the file was given that it reads, and the arms of conditional expressions."""
    yield value
    values = [assigned_value(binding.node) for binding in work.names.bindings_of(value) if binding.kind == "assign"]
    stack = [value, *(each for each in values if each is not None)]
    while stack:
        match stack.pop():
            case ast.IfExp(body=body, orelse=other):
                stack += [other, body]
            case ast.BoolOp(values=parts):
                stack += reversed(parts)
            case node if node is not value and not isinstance(node, ast.Name):
                yield node


def is_value(wanted: Value, value: ast.expr | None) -> bool:
    """True for an expression that is, or may be, such a value."""
    if wanted.kind == "any":
        return True
    if value is None:
        return False
    if wanted.kind == "holds":
        return bool(_constants(wanted, value))
    if isinstance(value, ast.Constant):
        return wanted.takes(value.value)
    if wanted.kind == "integer" and isinstance(value, ast.UnaryOp):
        return False
    return wanted.kind == "given"


def _constants(wanted: Value, value: ast.expr) -> list[ast.Constant]:
    return [node for node in inner_nodes(value, ast.Constant) if node.value in wanted.values]


def imported_packages(work: Work) -> set[str]:
    """The first names of what the file imports."""
    return {name.partition(".")[0] for node in work.scan.imports for name in modules_of(node)}


# --- defaults --------------------------------------------------------------------------------------------------------


def defaults(work: Work) -> Finds:
    """Values that such an argument gets elsewhere: of a parameter, an attribute, a field or an option of its name."""
    wanted = grouped((place.argument, (place, word)) for place, word in places_of(CallPlace) if place.anywhere)
    text = work.source.utf8.replace(b"-", b"_")
    if not any(argument.encode() in text for argument in wanted):
        return
    found: list[tuple[str, ast.expr | ast.stmt, ast.expr]] = [
        (argument.arg, default, default)
        for function in work.scan.functions
        for argument, default in defaults_of(function.args)
    ]
    found += _of_assignments(work)
    for call in work.scan.calls_by_last_name(("add_argument", "option")):
        default_ = keyword_of(call, "default")
        names = [name for each in call.args if (name := string_of(each)) is not None]
        if default_ is not None and names:
            found.append((names[-1].lstrip("-").replace("-", "_").rpartition(".")[2], default_, default_))
    for name, node, value in found:
        if name not in wanted:
            continue
        if isinstance(value, ast.Call) and last_name(value.func) in ("field", "Field"):
            value = keyword_of(value, "default") or value
        for place, word in wanted[name]:
            if isinstance(value, ast.Constant) and is_value(place.value, value):
                yield from note_of(work, node, word, name, repr(value.value))


def _of_assignments(work: Work) -> Iterator[tuple[str, ast.expr | ast.stmt, ast.expr]]:
    for target in work.scan.stores:
        above = parent(target)
        if isinstance(above, (ast.Assign, ast.AnnAssign)) and above.value is not None:
            yield target.attr, above, above.value
    for owner in work.scan.classes:
        for statement in owner.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                field = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                yield last_name(field), statement, statement.value
