"""`torch.nn.DataParallel` takes its first card: torch_npu does not divide a batch among the cards of one process.

The class that takes its place is transplt/helper/data_parallel.py, where the reasons stand.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

from transplt.base.finding import Effort, Level
from transplt.base.language import marked
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.helper import helper, in_file
from transplt.edits.imports import import_head
from transplt.edits.new_names import new_names
from transplt.edits.shared_lines import can_part
from transplt.edits.trees.names import dotted
from transplt.edits.unused_imports import drop_unused, is_exported
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.codemods.replicas import WRAPPERS
from transplt.fixers.codemods.whole_objects import parts_saved, saved_objects
from transplt.flow.callees import DATA_PARALLEL
from transplt.flow.last_value import last_value
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.nodes import (
    argument_at,
    begins,
    defaults_of,
    first_code,
    inner_nodes,
    last_name,
    of_kind,
    root_name,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

fixer = Fixer(__name__, code="NPU135", rank=405, versions=">=2.1", words=("DataParallel", "data_parallel"))

CLASS_NAME = "OneCardDataParallel"
_EFFORT = Effort.MEDIUM
#: What divides a batch among the cards of one process.
REPLICAS = (*DATA_PARALLEL, "torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel")
#: What they are called, in torch and in projects.
REPLICA_NAMES = ("DataParallel", "data_parallel")
_SEVERAL = "several cards need one process per card"
#: On one card it calls the module itself.
_FOR_SEVERAL = (("condition", marked("several visible NPUs")),)
_HAS_BOTH = (("name", "beside DistributedDataParallel"),)


@fixer.on(ast.Call, name=DATA_PARALLEL)
def on_its_first_card(work: Work, call: ast.Call) -> Finds:
    """Call the subclass; the class itself goes in once."""
    if work.settings.style == "portable":
        return  # on CUDA it would be another class: a person guards it
    api = str(work.names.qualified(call.func))
    if reason := _reason_to_stay(work, call):
        if work.take(call.func):
            message = f"{api} works on one NPU only"
            yield work.note(
                call, "NPU507", message, api=api, help=reason, effort=_EFFORT, blocks="later", details=_FOR_SEVERAL
            )
        return
    if in_file(work) and ((place := _place(work, call)) is None or not can_part(work.source, place)):
        return
    message = f"{api} -> {CLASS_NAME}: DataParallel works on one NPU only"
    called = helper(work, CLASS_NAME, group=fixer.code, code=fixer.code, message=message, at=call)
    if not called.text:
        yield from (each for each in called.found if isinstance(each, Note))
        return
    if not work.take(call.func):
        return
    yield from called.found
    new_names(work)[id(call.func)] = called.text
    message = message.replace(CLASS_NAME, called.text)
    yield Edit(call.func, fixer.code, message, dotted(called.text), api=api, group=fixer.code)
    yield _one_card(work, call, api, f"{api} works on one NPU only")


@fixer.on(ast.Call, last=CLASS_NAME)
def on_its_first_card_already(work: Work, call: ast.Call) -> Finds:
    """What a migration has made of it stays an action, where there may be several cards."""
    if _is_for_several(work, call):
        message = f"{CLASS_NAME} uses one card, as torch.nn.DataParallel works on one NPU only"
        yield _one_card(work, call, "torch.nn.DataParallel", message)


def _one_card(work: Work, call: ast.Call, api: str, message: str) -> Note:
    aside, path = work.project.aside, work.scan.path
    infers = (aside.late(path) == "other" or aside.holds(path)) and b".backward(" not in work.source.utf8
    level = Level.MANUAL if _is_for_several(work, call) and not (infers or _started_with(work)) else Level.INFO
    effort, details = (Effort.LOW, _HAS_BOTH) if b"DistributedDataParallel" in work.source.utf8 else (_EFFORT, ())
    return work.note(
        call, "NPU507", message, level=level, api=api, help=_advice(work), effort=effort, blocks="slow", details=details
    )


def _is_for_several(work: Work, call: ast.Call) -> bool:
    """True for all cards of the host, as where none are named, and where more than one is given."""
    cards = argument_at(call, 1, "device_ids")
    if isinstance(cards, ast.Name):
        cards = last_value(work.scan, cards) or _default_of(cards) or cards
    return not isinstance(cards, (ast.List, ast.Tuple)) or len(cards.elts) > 1


def _default_of(name: ast.Name) -> ast.expr | None:
    """What a parameter is where nobody gives it."""
    functions = (each for each in chain(name) if isinstance(each, FUNCTIONS))
    return next((value for each in functions for given, value in defaults_of(each.args) if given.arg == name.id), None)


@fixer.on(ast.Call, name=REPLICAS)
def behind_a_question(work: Work, call: ast.Call) -> Finds:
    """In the portable style a question for CUDA's cards stays one: nothing behind it stops on an NPU."""
    if work.settings.style == "portable" and (gate := gate_of(call)) is not None and work.take(call.func):
        yield cuda_alone(work, gate.test, call)


def cuda_alone(work: Work, node: ast.expr | ast.stmt | ast.arg, call: ast.Call) -> Note:
    """The finding on a question that stays CUDA's, or on a part of what it guards; `call` divides the batch there."""
    api = work.names.qualified(call.func) or work.text(call.func)
    message = f"{api} works on one NPU only; here the program uses it on CUDA only"
    help_ = f"{_SEVERAL}, with torch.nn.parallel.DistributedDataParallel"
    return work.note(node, "NPU507", message, api=api, help=help_, effort=_EFFORT, blocks="slow")


def gate_of(node: ast.AST) -> ast.If | None:
    """The `if` that asks for tensors on CUDA, or for how many cards it has, in front of a node, as before a call that
    divides a batch.
    """
    inner = node
    for above in chain(node):
        match above:
            case ast.If(test=test, body=body) if any(inner is each for each in body):
                if not {"is_cuda", "device_count"}.isdisjoint(map(last_name, ast.walk(test))) or for_cuda_alone(above):
                    return above
        inner = above
    return None


def for_cuda_alone(node: ast.AST) -> TypeGuard[ast.If]:
    """True for an `if` that divides batches where a device is CUDA, and leaves the model where it should be elsewhere:
    it moves nothing, or its `else` moves to the device that it asked for.
    """
    match node:
        case ast.If(
            test=ast.Compare(left=asked, ops=[ast.Eq()], comparators=[ast.Constant(value="cuda")]),
            body=body,
            orelse=others,
        ) if replicas_in(body):
            device = ast.unparse(asked).removesuffix(".type")
            calls = [call for each in others or body for call in inner_nodes(each, ast.Call)]
            if others:
                moved = [each.args for each in calls if last_name(each.func) == "to"]
                return any([*map(ast.unparse, given)] == [device] for given in moved)
            return {"cuda", "to"}.isdisjoint(last_name(each.func) for each in calls)
    return False


def replicas_in(body: list[ast.stmt]) -> list[ast.Call]:
    """The calls that divide a batch."""
    calls = (call for each in body for call in inner_nodes(each, ast.Call))
    return [call for call in calls if last_name(call.func) in REPLICA_NAMES]


@fixer.on(ast.ClassDef)
def goes_in(work: Work, node: ast.ClassDef) -> Finds:
    """The class that goes in is for one card; another one with a `scatter` of its own still makes replicas."""
    for base in node.bases:
        api = work.names.qualified(base)
        if api not in DATA_PARALLEL or not work.take(base):
            continue
        if not (node.name.startswith(CLASS_NAME) and "scatter" in work.scan.scopes[node].bindings):
            message = f"{node.name} derives from {api}, which works on one NPU only"
            help_ = f"{node.name} runs on one card; {_advice(work)}"
            level = Level.INFO if node.name in WRAPPERS else Level.MANUAL  # a call of one has a finding of its own
            yield work.note(
                base, "NPU507", message, level=level, api=api, help=help_, effort=_EFFORT, blocks="later",
                details=_FOR_SEVERAL,
            )  # fmt: skip


@fixer.on(ast.Module)
def imports_of_it(work: Work, tree: ast.Module) -> Finds:
    """An import of the class by its name: each use speaks for itself, and what no use needs any more goes. One that
    no file uses is only an import.
    """
    imported = [
        (node, alias, alias.asname or alias.name)
        for node in of_kind(ast.ImportFrom, work.scan.imports)
        if node.module
        for alias in node.names
        if f"{node.module}.{alias.name}" in DATA_PARALLEL
    ]
    if not imported:
        return
    used = work.scan.names
    # A note covers the statement, its name, or all from the one to the other, where it is the first of several.
    ends = [
        (*work.source.extent(node), *work.source.extent(alias))
        for node, alias, name in imported
        if name in used or (work.project.known and not is_exported(work, name))
    ]
    covered = {pair for start, end, first, last in ends for pair in ((start, end), (start, last), (first, last))}
    work.withdraw_notes(lambda note: note.code == "NPU507" and note.extent in covered)
    done = [edit.node for edit in work.rewrites if edit.group == fixer.code and isinstance(edit.node, ast.expr)]
    if done and not in_file(work):
        writer = Writer(work, fixer.code, fixer.code, "")
        drop_unused(writer, done, fixer.code)
        yield from writer.found


def _place(work: Work, call: ast.Call) -> ast.stmt | None:
    """The statement above which the class goes: below the import of its base, above its use."""
    root = root_name(call.func)
    binding = work.names.import_of(root) if root is not None else None
    head = import_head(work.scan.tree.body, set()) if binding is None else []  # a star import brings torch
    if binding is None and not head:
        return None
    above = head[-1] if binding is None else statement(binding.node)
    if not isinstance(parent(above), ast.Module):
        return None
    place = first_code(work.scan.tree, above)
    return place if begins(above) < begins(place) <= begins(call) else None


def _started_with(work: Work) -> str:
    """The option with which all commands of the project start this file, where that asks for its other wrapper."""
    given = work.project.given_at.items() if b"DistributedDataParallel" in work.source.utf8 else ()
    found = (words for (path, words), value in given if path == work.scan.path and value == (True,))
    return next((words for words in found if "distributed" in words or "ddp" in words), "")


def _advice(work: Work) -> str:
    if option := _started_with(work):
        return f"nothing to edit: for several cards start it with {option}, as all commands of the project do"
    if b"DistributedDataParallel" in work.source.utf8:
        return f"{_SEVERAL}: this file already has DistributedDataParallel for that; start it that way"
    return (
        f"{_SEVERAL}: `transplt -i PROJECT -o OUT distributed -m SCRIPT` writes that into a training script, "
        "or says why it cannot; until then one card gets the whole batch, which has to fit in its memory"
    )


def _reason_to_stay(work: Work, call: ast.Call) -> str:
    """Why the class cannot take its place, and what to do then; empty where it can."""
    if _gives_elsewhere(work, call):
        return "remove output_device: the outputs stay on the first card then, where they are used on"
    # the wrapper may be pickled as an object: its class would be looked for where it is loaded
    saved_here = work.once(_names_saved)
    names = _names_of(work, call) if saved_here else set[str]()
    saved = next((saved for saved, parts in saved_here if not names.isdisjoint(parts)), None)
    if saved is None:
        return ""
    return (
        f"line {saved.lineno} saves the whole model, so that loading the file needs its class: save the state_dict() "
        "there, and the next migration puts the model on one card"
    )


def _gives_elsewhere(work: Work, call: ast.Call) -> bool:
    """True when outputs are asked for on another card than the first, or may be: they stay on the first."""
    wanted, cards = argument_at(call, 2, "output_device"), argument_at(call, 1, "device_ids")
    if isinstance(wanted, ast.Name):
        wanted = last_value(work.scan, wanted) or _default_of(wanted) or wanted
    if wanted is None or (isinstance(wanted, ast.Constant) and wanted.value is None):
        return False
    return ast.unparse(wanted) not in _first_card(cards)


def _first_card(cards: ast.expr | None) -> tuple[str, ...]:
    """How the first of the cards may be written."""
    match cards:
        case ast.Call(func=func, args=[given, *_]) if last_name(func) == "list":
            return _first_card(given)
        case None | ast.Constant(value=None):
            return ("0",)
        case ast.Call(func=func, args=args) if last_name(func) == "range":
            return ("0",) if len(args) == 1 else (ast.unparse(args[0]),)
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]):
            return (ast.unparse(first),)
    return (f"{ast.unparse(cards)}[0]",)


def _names_saved(work: Work) -> list[tuple[ast.expr, set[str]]]:
    """What a file pickles, and the names in it."""
    return [(saved, {_name_of(each) for each in (saved, *parts_saved(work, saved))}) for saved in saved_objects(work)]


def _names_handed_on(work: Work) -> list[tuple[set[str], set[str]]]:
    """Of each assignment of a file the names that it reads, and those that it gives their values to."""
    return [
        (
            {_name_of(each) for each in (node.value, *parts_saved(work, node.value))},
            {ast.unparse(each.value if isinstance(each, ast.Subscript) else each) for each in node.targets},
        )
        for node in work.scan.assigns
    ]


def _names_of(work: Work, call: ast.Call) -> set[str]:
    """What the wrapper is called in the file: where it is stored, in what it is put, and as which parameter."""
    stored_by = statement(call)
    names = {ast.unparse(target) for target in stored_by.targets} if isinstance(stored_by, ast.Assign) else set()
    assigned = work.once(_names_handed_on)
    known = -1
    while known < len(names):
        known = len(names)
        for read, given in assigned:
            if not names.isdisjoint(read):
                names |= given
        for use in work.scan.calls:
            names |= _parameters(work, use, names)
    return names


def _name_of(value: ast.expr) -> str:
    """A name or attribute as it is written, through a copy and calls of its own methods; empty for anything else."""
    while isinstance(value, ast.Call):
        match value:
            case ast.Call(func=func, args=[copied, *_]) if last_name(func) in ("deepcopy", "copy"):
                value = copied
            case ast.Call(func=ast.Attribute(value=of, attr=method)) if method in names_of(MODULE, "returns_self"):
                value = of
            case _:
                return ""
    return ast.unparse(value) if isinstance(value, (ast.Name, ast.Attribute)) else ""


def _parameters(work: Work, use: ast.Call, names: set[str]) -> set[str]:
    """The parameters of a function of the file that get the wrapper from a call."""
    if not isinstance(use.func, ast.Name):
        return set()
    for binding in work.scan.root.bindings.get(use.func.id, ()):
        if isinstance(binding.node, FUNCTIONS) and not isinstance(binding.node, ast.Lambda):
            places = [each.arg for each in (*binding.node.args.posonlyargs, *binding.node.args.args)]
            given = [*zip(places, use.args, strict=False), *((each.arg or "", each.value) for each in use.keywords)]
            return {name for name, value in given if any(_name_of(each) in names for each in parts_saved(work, value))}
    return set()
