"""Questions whether a model stands in a wrapper: they are asked of the wrapper, and they know the one there is now.

By the answers of `hasattr(model, "module")`, `isinstance(model, nn.DataParallel)`, `type(model) is nn.DataParallel` or
`is_parallel(model)` programs take `.module`. Asked of the model inside, each says that there is no wrapper, and the
names in a checkpoint begin with `module.`.
"""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from transplt.edits.trees.displays import with_twin
from transplt.edits.trees.expressions import between, left_side
from transplt.fixers.distributed.current_program import Bench
from transplt.flow.callees import DATA_PARALLEL
from transplt.program.program import File, Program
from transplt.rules.torch_callables import full_names
from transplt.syntax.conditions import leaves
from transplt.syntax.files import names_and_attributes
from transplt.syntax.nodes import attribute_of, called_name, is_plain, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent

_KNOWS = "the wrapper is DistributedDataParallel"
_OURS = full_names("distributes")
_WRAPPERS = DATA_PARALLEL | _OURS | full_names("shards")
_BY_CLASS = ("isinstance", "issubclass")
#: Functions of libraries that say whether a model is wrapped: `is_model_wrapper` of mmengine, `is_parallel`.
_ASKING = re.compile("(?:is|has)_.*(?:parallel|wrapp)")
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)
_IS_NOT = (ast.IsNot, ast.NotEq, ast.NotIn)
#: DataParallel, the class of the helper that goes in for it on one card, and the wrapper of many cards.
_NAMES = ("DataParallel", "OneCardDataParallel", "DistributedDataParallel")


# --- who is asked ----------------------------------------------------------------------------------------------------


def asks_for_wrapper(program: Program, file: File, node: ast.expr) -> bool:
    """True for a model of which a test, or a function that only tests, wants to know whether it is wrapped.

    `while hasattr(model, "module"): model = model.module` takes all wrappers off, and would not end where ours stays;
    what an assertion says holds of the model inside. What is done to a bare model alone (`_is_for_bare`) goes on.
    """
    if _is_question(program, file, node):
        around = (each for each in chain(node) if isinstance(each, (ast.While, ast.Assert)) or _is_for_bare(each))
        return not any(node in ast.walk(each.test) for each in around)
    call = parent(node)
    callee = program.callee(file, call) if isinstance(call, ast.Call) and node is not call.func else None
    if not isinstance(call, ast.Call) or not isinstance(callee, FUNCTIONS):
        return False
    name = next((name for name, given in program.arguments(call, callee) if given is node), "")
    at, slot = program.owner[callee], program.parameter_slot(callee, name)
    reads = [each for each in names_and_attributes(at) if program.slot(at, each) == slot]
    return bool(reads) and all(_is_question(program, at, each) for each in reads)


def _is_for_bare(node: ast.AST) -> TypeGuard[ast.If]:
    """True for `if not hasattr(model, "module"): model.freeze()`: nothing takes the place of that for a wrapped model,
    as an `else`, what follows a `return`, or a wrapper that is made there would.
    """
    match node:
        case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=ast.Call(args=[model, *_])), orelse=[], body=body):
            stored = (each for each in ast.walk(node) if isinstance(getattr(each, "ctx", None), ast.Store))
            return not leaves(body) and ast.unparse(model) not in {ast.unparse(each) for each in stored}
    return False


def _is_question(program: Program, file: File, node: ast.expr) -> bool:
    above = parent(node)
    if isinstance(above, ast.Attribute) and above.attr == "__class__":
        return _is_class_of_wrapper(above)
    if not isinstance(above, ast.Call) or node not in above.args:
        return False
    match last_name(above.func), above.args:
        case "hasattr" | "getattr", [_, ast.Constant("module"), *_]:
            return True
        case "isinstance" | "issubclass", [given, classes] if given is node:
            return any(_is_wrapper(program, file, each) for each in _classes(program, file, classes))
        case "type", [_]:
            return _is_class_of_wrapper(above)
        case "dir", [_]:
            test = parent(above)
            return isinstance(test, ast.Compare) and string_of(test.left) == "module"
        case name, _:
            return program.callee(file, above) is None and _ASKING.match(name) is not None
    return False


def _classes(program: Program, file: File, node: ast.expr) -> list[ast.Name | ast.Attribute]:
    """The names in the second argument of isinstance, and those in the tuple that a variable there holds."""
    slot = program.slot(file, node)
    held = [value.node for value in program.values.get(slot, ())] if slot is not None else []
    return [each for item in (node, *held) for each in ast.walk(item) if isinstance(each, (ast.Name, ast.Attribute))]


def _is_wrapper(program: Program, file: File, node: ast.Name | ast.Attribute) -> bool:
    """True for the name of a class that wraps models; of the program's own classes, for one that is made of these."""
    own = program.named(file, node)
    if isinstance(own, ast.ClassDef):
        return any(program.owner[own].names.qualified(base) in _WRAPPERS for base in own.bases)
    return file.names.qualified(node) in _WRAPPERS or last_name(node).endswith(("Parallel", "DDP", "FSDP"))


def _is_class_of_wrapper(node: ast.expr) -> bool:
    """True for the class of a model that is held against a wrapper, or its name against that of one."""
    tops = [
        above for above in chain(node)
        if isinstance(above, ast.Compare)
        or (called_name(above) in (*_BY_CLASS, "startswith", "endswith"))
    ]  # fmt: skip
    return any("Parallel" in (string_of(each) or last_name(each)) for top in tops for each in ast.walk(top))


def is_bare_here(program: Program, file: File, node: ast.expr) -> bool:
    """True where a test says that a model is in no wrapper: below the `else` of `if hasattr(model, "module")`."""
    child: ast.AST = node
    for above in chain(node):
        if isinstance(above, (ast.If, ast.IfExp)) and child is not above.test and not _is_for_bare(above):
            test, negated = above.test, False
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, negated = test.operand, True
            in_else = child is above.orelse if isinstance(above, ast.IfExp) else child in above.orelse
            if in_else is not negated and _says_of(program, file, test, node):
                return True
        child = above
    return False


def _says_of(program: Program, file: File, test: ast.expr, node: ast.expr) -> bool:
    """True for a test that holds whenever a model is in DistributedDataParallel."""
    match test:
        case ast.Call(func=ast.Name("hasattr"), args=[model, ast.Constant("module")]):
            pass
        case ast.Call(func=ast.Name("isinstance"), args=[model, classes]):
            named = {file.names.qualified(each) for each in _classes(program, file, classes)}
            if named.isdisjoint(DATA_PARALLEL | _OURS):
                return False
        case _:
            return False
    return program.slot(file, model) == program.slot(file, node)


# --- what is asked ---------------------------------------------------------------------------------------------------


def claim_asked(bench: Bench) -> None:
    """Let tests for DataParallel hold for DistributedDataParallel too, before other codemods see them."""
    scan, names = bench.file.scan, bench.file.names
    for node in [*scan.attributes.get("DataParallel", ()), *scan.names.get("DataParallel", ())]:
        holder = parent(node)
        every = holder.elts if isinstance(holder, _DISPLAYS) else [node]
        known = [each for each in every if names.qualified(each) in DATA_PARALLEL | _OURS]
        if known[:1] == [node] and not any(names.qualified(each) in _OURS for each in known):
            _let_know_class(bench, node, every)
    for text in scan.texts:
        holder = parent(text)
        test = parent(holder) if isinstance(holder, _DISPLAYS) else holder
        if string_of(text) == _NAMES[0] and isinstance(test, ast.Compare) and len(test.ops) == 1:
            _let_know_name(bench, text, test)


def _let_know_class(bench: Bench, node: ast.expr, every: list[ast.expr]) -> None:
    """`isinstance(x, nn.DataParallel)` and `type(x) is nn.DataParallel`, where `every` are the classes asked for."""
    classes = node if every == [node] and not isinstance(parent(node), _DISPLAYS) else parent(node)
    above = parent(classes)
    if isinstance(above, ast.Compare):
        what = _instance(above.left)
        if len(above.ops) == 1 and what is not None and is_plain(what):
            text = ", ".join([*map(bench.work.text, every), bench.parallel])
            negated = "not " if isinstance(above.ops[0], _IS_NOT) else ""
            bench.change(above, "NPU336", _KNOWS, f"{negated}isinstance({bench.work.text(what)}, ({text}))")
        return
    united = isinstance(above, ast.BinOp)  # nn.DataParallel | Other
    top = next(each for each in (classes, *chain(classes)) if not isinstance(parent(each), ast.BinOp))
    call = parent(top)
    held = call.targets if isinstance(call, ast.Assign) and isinstance(classes, ast.Tuple) else []
    given = call.args[1:] if isinstance(call, ast.Call) and last_name(call.func) in _BY_CLASS else []
    if top in given or (held and _is_asked_for(bench, held[0])):
        joined = f" | {bench.parallel}" if united else f", {bench.parallel}"
        single = classes is node and not united
        bench.change(node, "NPU336", _KNOWS, between("(" * single, joined + ")" * single))


def _is_asked_for(bench: Bench, target: ast.expr) -> bool:
    """True for a variable of classes that goes to isinstance anywhere in the program."""
    slot = bench.program.slot(bench.file, target)
    calls = [(file, call) for file in bench.program.files for call in file.scan.calls]
    return slot is not None and any(
        last_name(call.func) in _BY_CLASS and bench.program.slot(file, call.args[-1]) == slot
        for file, call in calls if len(call.args) == 2
    )  # fmt: skip


def _instance(node: ast.expr) -> ast.expr | None:
    """`x` of `type(x)` and `x.__class__`."""
    match node:
        case ast.Call(func=ast.Name("type"), args=[what]) | ast.Attribute(value=what, attr="__class__"):
            return what
    return None


def _let_know_name(bench: Bench, text: ast.expr, test: ast.Compare) -> None:
    """`type(x).__name__ == "DataParallel"`, and among other names."""
    owner = test.left.value if isinstance(test.left, ast.Attribute) else None
    named = attribute_of(test.left) in ("__name__", "__qualname__")
    if not named or owner is None or _instance(owner) is None:
        return
    given = test.comparators[0]
    if given is text and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        operator = "in" if isinstance(test.ops[0], ast.Eq) else "not in"
        every = ", ".join(f'"{each}"' for each in _NAMES)
        bench.change(test, "NPU336", _KNOWS, left_side(f" {operator} ({every})"))
    elif given is not text and not any(string_of(each) == _NAMES[-1] for each in ast.walk(given)):
        old = bench.work.text(text)
        bench.change(given, "NPU336", _KNOWS, with_twin(old, *(old.replace(_NAMES[0], each) for each in _NAMES[1:])))
