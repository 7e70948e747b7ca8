"""Checkpoints with more in them than tensors and plain values, which `torch.load` refuses since torch 2.6.

From 2.6 on `weights_only` is True unless a call sets it (torch/serialization.py,
`_default_to_weights_only`; torch_npu/utils/serialization.py goes by it). An `argparse.Namespace`, a configuration
object, a whole module or a scalar of NumPy in the file then ends the load with an UnpicklingError. That a value is
such an object shows in attributes that no tensor, container or text has (`args.lr`, `model.parameters`), or in where
it comes from (`np.mean(scores)`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from operator import is_
from typing import TypeGuard

from transplt.base.finding import Level
from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.last_value import last_value
from transplt.flow.program_switches import loads_objects
from transplt.flow.saved_files import PUBLISHED, may_be_loaded, path_names
from transplt.program.numpy_values import NumpyValues
from transplt.program.program import program_of
from transplt.rules.tables import read_table
from transplt.syntax.nodes import argument_at, by_place, call_of, called_name, last_name, of_kind, plain_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent

fixer = Fixer(__name__, code="NPU154", rank=180, versions=">=2.6", needs=(b"save",))

_PLAIN = frozenset({"state_dict", "vars", "dict", "get_state", "asdict", "to_dict", "tolist", "item"})
_PICKLES = tuple(f"{each}.{name}" for each in ("pickle", "dill", "cloudpickle", "joblib") for name in ("dump", "dumps"))
_SAVER = re.compile(
    r"save\w*(?:checkpoint|ckpt|state|snapshot)|save_on_(?:master|main)\w*|(?:checkpoint|ckpt)\w*save", re.I
)
#: What makes examples and features, which are objects of a class, and running means of observations.
_MAKES_OBJECTS = re.compile(r"\w*convert_examples_to_features|get_(?:\w+_)?examples|(?:get_)?(?:obs?|ret)_rms")
_NUMPY_HELP = ("if you trust the file, load it with weights_only=False; or save {name} as a number (float), or as a "
               "tensor (torch.from_numpy)")
_STATE_HELP = "load the file with weights_only=False: the state of NumPy's random numbers holds an array"
_HELP = ("if you trust the file, load it with weights_only=False (torch>=1.13). Or save plain values instead of {name} "
         "(of a module its state_dict()), and create the object from them where the file is loaded")


@fixer.on(ast.Module)
def saves_of_objects(work: Work, tree: ast.Module) -> Finds:
    """Report `torch.save` of dicts that hold such objects, and of the objects themselves; so of functions of the
    project that are named after it and get such a dict with a state in it."""
    if b"weights_only=False" in work.source.utf8 or b"weights_only = False" in work.source.utf8:
        return
    if loads_objects(work.scan.path, work.project.switches):
        return
    calls = {id(call): call for call in (*_saves(work), *(by_place(_handed_on(work)) if work.project.loads else ()))}
    numpy = None  # what is known of values of NumPy, in a file that names it, where the project loads checkpoints
    if calls and (b"numpy" in work.source.utf8 or work.project.numpy_results) and work.project.loads:
        numpy = NumpyValues(program_of([work.file], work.project))
    said: set[object] = set()
    for call in calls.values():
        saved = argument_at(call, 0, "obj")
        if saved is not None and _may_be_loaded(work, call):
            yield from _refused_parts(work, call, saved, numpy, said)


def _refused_parts(work: Work, call: ast.Call, saved: ast.expr, numpy: NumpyValues | None, said: set[object]) -> Finds:
    """The parts of a checkpoint for which torch.load refuses it; `said` are those of other calls, by their ids, and
    what was said of loads."""
    parts = [*parts_saved(work, saved)]
    objects = [value for value in parts if _is_object(work, value)]
    objects += [each for value in parts for each in _functions_of(work, value)]
    arrays = [
        value
        for value in parts
        if numpy is not None and (_is_random_state(work, value) or numpy.holds(work.file, value))
    ]
    if objects or arrays:
        named = [*map(work.text, objects), *(f"{work.text(value)} (a NumPy value)" for value in arrays)]
        message = f"torch.load refuses this checkpoint since torch 2.6: it contains {', '.join(dict.fromkeys(named))}"
        at = (objects or arrays)[0]
        if id(at) in said:
            return  # the dict is saved in two places
        said.add(id(at))
        of_arrays = _STATE_HELP if _is_random_state(work, at) else _NUMPY_HELP
        help = (_HELP if objects else of_arrays).format(name=work.text(at))
        if work.scan.path not in (loading := work.project.loads) and len(loading) == 1:
            help = f"{help}. {loading[0]} loads the file"
        for load in _loads_of(work, call, at):
            if (id(load), message) not in said:  # another call saves the same
                said.add((id(load), message))
                yield refused_load(work, load, message, help)


def refused_load(work: Work, load: ast.expr, message: str, help: str) -> Note:
    """What is said at a call of torch.load, in place of what is said there of map_location: both are one change. Of
    another place it is said as of torch.save."""
    if not isinstance(load, ast.Call) or work.names.qualified(load.func) != "torch.load":
        return work.note(load, fixer.code, message, api="torch.save", help=help)
    here, blocks = (work.source.extent(load.func), "NPU152"), ""  # checkpoints.py
    for each in [each for each in work.notes if (each.extent, each.code) == here]:
        work.withdraw_notes(partial(is_, each))
        help = help.replace("weights_only=False", "map_location='cpu' and weights_only=False", 1)
        blocks = (each.blocks or "first step") if each.level is Level.MANUAL else ""
    return work.note(load.func, fixer.code, message, api="torch.load", help=help, blocks=blocks)


def _loads_of(work: Work, call: ast.Call, other: ast.expr) -> list[ast.expr]:
    """Where the file loads what it saves: the last load of that path, or of a file that may have its name, and the
    others that are written like it, but for those of another branch.
    """
    path, text = argument_at(call, 1, "f"), work.source.utf8
    every = by_place(work.calls_by_name(("torch.load",)))
    loads = {each: work.text(each.args[0]) for each in every if each.args}
    if path is None or not loads:
        return [other]
    same = [each for each, name in loads.items() if name == work.text(path)]
    saved = path_names(work.text(path).encode(), text)
    may_be = [each for each, name in loads.items() if not PUBLISHED.search(name)
              and may_be_loaded(saved, path_names(name.encode(), text))]  # fmt: skip
    last = next(reversed(same or may_be), None)
    if last is None:
        return [other]
    alike, arms = (each for each in same or may_be if loads[each] == loads[last]), _arms(last)
    return [each for each in alike if all(arms.get(above, arm) == arm for above, arm in _arms(each).items())]


def _arms(node: ast.AST) -> dict[ast.AST, object]:
    """Which arm of each `if` and `match` around it a node stands in."""
    around = pairwise((node, *chain(node)))
    held = [(inside, above) for inside, above in around if isinstance(above, (ast.If, ast.Match))]
    return {above: inside in above.orelse if isinstance(above, ast.If) else inside for inside, above in held}


def _may_be_loaded(work: Work, call: ast.Call) -> bool:
    """False for a file of which all that the project loads has another name."""
    path = argument_at(call, 1, "f")
    if path is None or work.names.qualified(call.func) != "torch.save":
        return True
    names = path_names(work.text(path).encode(), work.source.utf8)
    return may_be_loaded({*names, work.text(path)}, work.project.loaded)  # a variable that is loaded here as well


def _is_random_state(work: Work, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and work.names.qualified(value.func) == "numpy.random.get_state"


def saved_objects(work: Work) -> Iterator[ast.expr]:
    """What a file pickles: the first argument of torch.save and its wrappers, of pickle.dump and its relatives."""
    for call in (*_saves(work), *work.calls_by_name(_PICKLES)):
        saved = argument_at(call, 0, "obj")
        if saved is not None:
            yield saved


def _saves(work: Work) -> Iterator[ast.Call]:
    """Calls of torch.save, and of functions of the file that hand all their arguments on to it (`save_on_master`)."""
    wrappers = set()
    for node in work.scan.attributes.get("save", ()):
        call = call_of(node)
        if call is None or work.names.qualified(node) != "torch.save":
            continue
        if call.args and isinstance(call.args[0], ast.Starred):
            wrappers |= {above.name for above in chain(call) if isinstance(above, FUNCTIONS)}
        else:
            yield call
    for name in sorted(wrappers):
        yield from (call for use in work.scan.names.get(name, ()) if (call := call_of(use)) is not None)


def _handed_on(work: Work) -> Iterator[ast.Call]:
    """Calls of functions of other files that save what they are given, by their name and by a state in the dict."""
    text = work.source.utf8
    if not any(word in text for word in (b"heckpoint", b"ckpt", b"state", b"snapshot")) or b"state_dict" not in text:
        return
    for name in work.scan.names.keys() | work.scan.attributes.keys():
        if not _SAVER.search(name):
            continue
        for use in (*work.scan.names.get(name, ()), *work.scan.attributes.get(name, ())):
            call = call_of(use)
            if call is not None and call.args and not (work.names.qualified(use) or "").startswith("torch."):
                parts = list(parts_saved(work, call.args[0]))
                if len(parts) > 1 and any(called_name(p) == "state_dict" for p in parts):
                    yield call


def parts_saved(work: Work, saved: ast.expr) -> Iterator[ast.expr]:
    """The values of a dict that is saved, also those that get their key later, or what is saved itself."""
    match last_value(work.scan, saved) if isinstance(saved, ast.Name) else saved:
        case ast.Dict(values=values):
            yield from values
            if isinstance(saved, ast.Name):
                scope = work.scan.scope_of(saved)
                uses = (parent(each) for each in work.scan.names[saved.id] if work.scan.scope_of(each) is scope)
                keyed = (parent(each) for each in of_kind(ast.Subscript, uses) if string_of(each.slice))
                yield from (each.value for each in of_kind(ast.Assign, keyed))
                yield saved
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            yield from (keyword.value for keyword in keywords)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from parts
        case _:
            yield saved


def _is_object(work: Work, value: ast.expr) -> bool:
    """True for a name whose attributes show that it is no tensor, container, number or text, and for what a function
    makes that is named after objects."""
    reads: list[ast.expr]
    if any(_MAKES_OBJECTS.fullmatch(last_name(getattr(each, "func", each))) for each in _made_as(work, value)):
        return True
    if isinstance(value, ast.Name):
        match last_value(work.scan, value):
            case ast.Dict() | ast.DictComp() | ast.Constant():
                return False
            case ast.Call(func=func) if last_name(func) in _PLAIN:  # a state_dict(), vars(...): it loads again
                return False
        scope = work.scan.scope_of(value)
        reads = [each for each in work.scan.names.get(value.id, ()) if work.scan.scope_of(each) is scope]
    elif _is_own(value):
        reads = [each for each in work.scan.attributes.get(value.attr, ()) if _is_own(each)]
    else:
        return False
    above = [parent(each) for each in reads]
    return any(node.attr not in _common() for node in of_kind(ast.Attribute, above))


def _functions_of(work: Work, value: ast.expr) -> Iterator[ast.expr]:
    """The functions that an optimizer of the file keeps in its defaults, which its state_dict holds."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="state_dict")):
            made = last_value(work.scan, owner)
            for each in made.keywords if isinstance(made, ast.Call) else ():
                named = {plain_name(made.func), plain_name(each.value)}  # type: ignore[union-attr]
                defined = [node for node in work.scan.tree.body if getattr(node, "name", None) in named]
                calls = of_kind(ast.Call, (node for one in of_kind(ast.ClassDef, defined) for node in ast.walk(one)))
                kept = (one.arg for call in calls if plain_name(call.func) == "dict" for one in call.keywords)
                if any(isinstance(node, FUNCTIONS) for node in defined) and each.arg in kept:
                    yield each.value


def _made_as(work: Work, value: ast.expr) -> Iterator[ast.expr]:
    """A value itself, where it is a call or an attribute, and what a name or an attribute of self is set to."""
    above = last_value(work.scan, value) if isinstance(value, ast.Name) else value
    if isinstance(above, (ast.Call, ast.Attribute)):
        yield above
    stores = work.scan.attributes.get(value.attr, ()) if _is_own(value) else ()
    yield from of_kind(ast.Call, (each.value for each in of_kind(ast.Assign, map(parent, stores))))


def _is_own(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and plain_name(node.value) == "self"


@cache
def _common() -> frozenset[str]:
    members = read_table("support/torch_names.json")["tensor_members"]
    plain = (dict, list, set, str, int, float, tuple)
    return frozenset([*members, *(name for kind in plain for name in dir(kind)), "astype"])
