"""Weights that were saved on a GPU, loaded silently about the device.

`torch.load` puts tensors back where they were saved, and raises where torch has no CUDA (torch/serialization.py,
"Attempting to deserialize object on a CUDA device"); torch_npu leaves that as it is (torch_npu/utils/serialization.py).
"""

from __future__ import annotations

import ast
import itertools
import re

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import with_keyword
from transplt.edits.work import Work
from transplt.flow.entry_points import named_after
from transplt.flow.last_value import last_value
from transplt.flow.program_switches import OFFERS, is_set
from transplt.flow.saved_files import PUBLISHED, saved_as, saved_files
from transplt.flow.slot_stores import is_map_location
from transplt.program.program import enclosing_function
from transplt.syntax.nodes import (
    argument_at,
    called_name,
    defaults_of,
    hides_arguments,
    is_none,
    last_name,
    of_kind,
    string_of,
)  # fmt: skip
from transplt.syntax.scan import chain, parent

fixer = Fixer(__name__, code="NPU152", rank=170, needs=(b"torch",), words=("torch.load", "th.load(", "jit.load"))

_MESSAGE = "{name} without map_location fails for a file that was saved on a GPU"
_HELP = "add map_location='cpu' (or the device) if the file may come from a GPU; files saved on an NPU need no change"
#: What takes a state without tensors.
_SCHEDULER = re.compile(r"sched(?:uler)?\.load_state_dict$", re.IGNORECASE)
#: How functions are called that load what somebody else has trained.
_LOADER = re.compile(r"pre_?train", re.IGNORECASE)
#: Takers of a state that may keep its tensors as they come.
_NO_MODULE = re.compile(r"optim|sched|scaler|ema(?![a-z])|average", re.IGNORECASE)
_FROM_ELSEWHERE = "{name} without map_location: a file from elsewhere may have been saved on a GPU"


@fixer.on(ast.Call, name=("torch.load", "torch.jit.load"))
def loads_without_a_device(work: Work, call: ast.Call) -> Finds:
    """Report a load without a device: work where the file comes from somebody else, else a remark. In the portable
    style what only modules copy of such a file is loaded to the CPU: the same for them on every device.
    """
    if b".load(" not in work.source.utf8 or hides_arguments(call) or not call.args:
        return
    above = parent(call)
    if _SCHEDULER.search(ast.unparse(getattr(above, "func", above))):
        return  # its state holds numbers
    place = argument_at(call, 1, "map_location")
    if place is not None and not _is_none_on_a_device(work, place):
        return
    saved = (*work.project.saved, *saved_files(work.source.utf8))
    path = call.args[0]
    if isinstance(path, ast.Name) and isinstance(value := last_value(work.scan, path), ast.expr):
        path = value
    name = _name(path)
    on_cpu = saved_as(name, saved) if name else None
    if on_cpu:
        return
    api = str(work.names.qualified(call.func))
    named = all((name, work.project.known, api == "torch.load"))  # who saves a script is not known
    if on_cpu is None and (_is_foreign(work, path) or _is_foreign(work, call.args[0]) or named):
        level, message = Level.MANUAL, _FROM_ELSEWHERE
        blocks = "later" if named_after(work.scan.path) else ""
    elif _may_be_offered(work, call) or _may_be_published(work, call.args[0], on_cpu):
        level, message, blocks = Level.MANUAL, _FROM_ELSEWHERE, "later"
    else:
        level, message, blocks = Level.INFO, _MESSAGE, ""
    if level is Level.MANUAL and _is_copied(work, call, place):
        said = "a file of a GPU loads on every device; load_state_dict copies"
        yield Edit(call, fixer.code, said, with_keyword("map_location", "'cpu'"), api=api)
        return
    yield work.note(call.func, "NPU152", message.format(name=api), level=level, api=api, help=_HELP, blocks=blocks)


def _is_copied(work: Work, call: ast.Call, place: ast.expr | None) -> bool:
    """True for a state that goes into nothing but the load_state_dict of modules that the file moves to a device."""
    if place is not None or work.settings.style != "portable" or work.names.qualified(call.func) != "torch.load":
        return False
    uses: list[ast.expr] = [call]
    match parent(call):
        case ast.Assign(targets=[ast.Name(id=name)]):
            uses = [each for each in work.scan.names.get(name, ()) if isinstance(each.ctx, ast.Load)]
    return bool(uses) and work.once(_copied).issuperset(map(id, uses)) and work.share(call)


def _copied(work: Work) -> set[int]:
    """The ids of what is given to load_state_dict of modules that the file moves to a device."""
    named = {word: [(getattr(call.func, "value", call), call) for call in work.scan.calls_by_last_name((word,))]
             for word in ("cuda", "to", "load_state_dict")}  # fmt: skip
    moves = [(value, *getattr(parent(call), "targets", ())) for value, call in (*named["cuda"], *named["to"])]
    modules = {name for each in moves for name in map(ast.unparse, each) if not _NO_MODULE.search(name)}
    loads = [call for value, call in named["load_state_dict"] if ast.unparse(value) in modules]
    plain = (call for call in loads if {each.arg for each in call.keywords} <= {"strict"})
    return {id(call.args[0]) for call in plain if len(call.args) == 1}


def _name(path: ast.expr) -> str:
    """The file name at the end of a path that is written out; empty where it is not."""
    while True:
        match path:
            case ast.Call(func=func, args=[*_, part]) if last_name(func) == "join":
                path = part
            case ast.Call(func=func, args=[part, *_]) if last_name(func) in ("Path", "open", "expanduser"):
                path = part
            case _:
                break
    match path:
        case ast.BinOp(op=ast.Add() | ast.Div(), right=right):
            path = right
    last = (string_of(path) or "").replace("\\", "/").rpartition("/")[2]
    return last if "." in last[1:] else ""


def _is_foreign(work: Work, path: ast.expr) -> bool:
    """True for what is named after weights of somebody else, and for an option that a README gives such weights."""
    names = {last_name(each) for each in ast.walk(path) if isinstance(each, (ast.Attribute, ast.Name))}
    return any(PUBLISHED.search(each) or (work.scan.path, each) in work.project.published for each in names)


def _may_be_published(work: Work, path: ast.expr, on_cpu: bool | None) -> bool:
    """True for a parameter of `load_pretrained(path)`, and of what such a function of the file calls; under
    `if pretrained:`; for what the file loads to the CPU as well, as where there is no card: somebody has files of a GPU
    in mind. Not for what the project is seen to save.
    """
    if on_cpu is not None:
        return False
    if ast.unparse(path) in work.once(_placed) or _asked_for_published(path):
        return True
    function = enclosing_function(path)
    if function is None or not isinstance(path, ast.Name):
        return False
    bindings = work.scan.scope_of(path).bindings.get(path.id, ())
    if "param" not in {each.kind for each in bindings}:
        return False
    callers = (enclosing_function(each) for each in work.scan.calls_by_last_name((function.name,)))
    return any(each is not None and _LOADER.search(each.name) for each in (function, *callers))


def _may_be_offered(work: Work, call: ast.Call) -> bool:
    """True where a README offers checkpoints, for what a module takes; not where an optimizer takes its part each time,
    as training goes on."""
    at, loads = enclosing_function(call), work.scan.calls_by_last_name(("load_state_dict",))
    takers = [ast.unparse(each.func) for each in loads if enclosing_function(each) is at]
    without = at is not None and any("optim" in each.arg for each, _ in defaults_of(at.args))
    goes_on = any("optim" in each for each in takers) and not without
    return bool(takers) and not goes_on and is_set(work.project.switches, OFFERS)


def _asked_for_published(node: ast.AST) -> bool:
    """True for what runs only where weights of somebody else are asked for."""
    for inside, above in itertools.pairwise((node, *chain(node))):
        match above:
            case ast.If(test=ast.Name() | ast.Attribute() as test, body=body) if any(inside is each for each in body):
                if _LOADER.search(last_name(test)):
                    return True
    return False


def _placed(work: Work) -> set[str]:
    """The paths of files that are loaded to the CPU."""
    loads = [(each, argument_at(each, 1, "map_location")) for each in work.scan.calls_by_last_name(("load",))]
    return {ast.unparse(each.args[0]) for each, place in loads if each.args and place and "cpu" in ast.unparse(place)}


def _is_none_on_a_device(work: Work, place: ast.expr) -> bool:
    """True for None, for `None if torch.cuda.is_available() else "cpu"`, and for a name that got one of them."""
    if isinstance(place, ast.Name):
        bindings = work.scan.scope_of(place).bindings.get(place.id, ())
        above = [parent(each.node) for each in bindings]
        values = [(each, each.value) for each in of_kind(ast.Assign, above)]
        if len(values) != len(above):
            return False
        return any(
            (is_none(value) and (len(values) == 1 or _asked_above(each))) or _is_none_if_asked(value)
            for each, value in values
        )
    return is_none(place) or _is_none_if_asked(place)


def _is_none_if_asked(value: ast.expr) -> bool:
    if not isinstance(value, ast.IfExp):
        return False
    asked, negated = _asks_for_device(value.test)
    if not negated and string_of(value.orelse) == "cpu" and is_map_location(value):
        return False  # that test stays (idle.py): the CPU, on an NPU
    return asked and is_none(value.orelse if negated else value.body)


def _asked_above(assigned: ast.stmt) -> bool:
    """True for a statement in the branch of an `if` that runs where a device is there."""
    above = parent(assigned)
    if not isinstance(above, ast.If):
        return False
    asked, negated = _asks_for_device(above.test)
    return asked and assigned in (above.orelse if negated else above.body)


def _asks_for_device(test: ast.expr) -> tuple[bool, bool]:
    """Whether a test is the question for a device, and whether it is negated."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return called_name(inner) == "is_available", True
    return called_name(test) == "is_available", False
