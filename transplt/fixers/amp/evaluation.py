"""Evaluation in a file that trains: autocast around the networks that run without gradients.

Only where the outputs go on to what half precision cannot harm (losses under the same autocast, argmax, accuracy):
all other evaluation stays in float32, which is as right as before.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.writer import Writer
from transplt.fixers.amp.float_only import is_float_only
from transplt.fixers.amp.reading import in_functions, networks, own_nodes, reads, runs_network, writes
from transplt.fixers.amp.spelling import Spelling
from transplt.fixers.amp.training_units import Unit
from transplt.program.gradients import without_gradients
from transplt.program.program import enclosing_function
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import begins, block_of, by_place, ends, inner_nodes, last_name, of_kind, variable
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

#: What is left of an output behind these is the same in half precision, but for ties.
_ENDS = names_of(TENSOR, "shape") | {"argmax", "argsort"}
#: These give numbers and where they stand.
_BOTH = frozenset({"max", "topk"})
_SOFT = frozenset({"softmax", "log_softmax", "sigmoid"})
_HARMLESS = names_of(TENSOR, "keeps_type") | _ENDS | _BOTH | _SOFT | {"float", "item"}
_METRICS = re.compile(r"accuracy|^acc|argmax|^len$|^print$|correct", re.I)
#: What compares an output with a number.
_THRESHOLDS = frozenset("gt lt ge le round where masked_fill greater less bool threshold histc bucketize".split())


def write_evaluation(writer: Writer, spelling: Spelling, units: list[Unit]) -> list[list[ast.stmt]]:
    """Autocast in the code without gradients beside what trains; the statements that stand under it now."""
    unit = units[0]
    program, file = unit.program, unit.file
    known = networks(file)
    inside = {id(at) for one in units for region in one.regions for item in region for at in ast.walk(item)}
    taken: set[int] = set()
    written: list[list[ast.stmt]] = []
    for call in by_place(file.scan.calls):
        if id(call) in inside or id(call) in taken or not without_gradients(call):
            continue
        if not (runs_network(program, file, call, known) and variable(call.func) in known):
            continue
        stmt = statement(call)
        if not isinstance(stmt, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            continue
        region = _region(stmt)
        taken |= {id(at) for item in region for at in ast.walk(item)}
        if not all(writer.fits(item) for item in (region[0], region[-1])):
            continue
        if spelling.enabled(stmt) is None or not _harmless(unit, call, region):
            continue
        message = "evaluation under autocast, as in training"
        writer.wrap(region, spelling.autocast(stmt), "NPU740", message)
        written.append(region)
    return written


def _region(stmt: ast.stmt) -> list[ast.stmt]:
    """The statement with those right behind it that work out a loss from what it gives."""
    block = block_of(stmt)
    given = writes(stmt)
    first = last = block.index(stmt)
    for index in range(first + 1, len(block)):
        item = block[index]
        if not isinstance(item, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If)):
            break
        called = (last_name(at.func) for at in of_kind(ast.Call, own_nodes(item)))
        if reads(item) & given and any(re.search(r"loss|crit|entropy|mse", name, re.I) for name in called):
            last = index
            given |= writes(item)
        elif not reads(item) & given or not isinstance(item, ast.Assign):
            break
    return block[first : last + 1]


def _harmless(unit: Unit, call: ast.Call, region: list[ast.stmt]) -> bool:
    """True when nothing in a region needs float32, nor what uses that which leaves it in half precision."""
    first = region[0]
    run = (each for item in region for each in in_functions(unit.program, unit.file, item))
    if any(is_float_only(unit.program, *each) for each in run) or isinstance(first, ast.Return):
        return False
    if _compared(call, first):
        return False
    outputs = writes(first) if isinstance(first, ast.Assign) else set()
    inside = {id(at) for item in region for at in ast.walk(item)}
    function = enclosing_function(first)
    scope: ast.AST = function if function is not None else unit.file.scan.tree
    outside = (at for at in of_kind(ast.Name, own_nodes(scope)) if at.id in outputs and id(at) not in inside)
    later = (at for at in outside if isinstance(at.ctx, ast.Load) and begins(at) >= ends(first))
    return all(map(_harmless_use, later)) and all(not name.startswith("self.") for name in outputs)


def _compared(call: ast.Call, stmt: ast.stmt) -> bool:
    """True for an output that the statement itself compares with a number: a mask of it would hang on the precision."""
    at: ast.AST = call
    while at is not stmt:
        above = parent(at)
        name = last_name(at.func) if isinstance(at, ast.Call) else getattr(above, "attr", "")
        if name in _ENDS:
            return False
        if isinstance(above, ast.Compare) or (isinstance(at, ast.Call) and name in _THRESHOLDS):
            return True
        at = above
    return False


def _harmless_use(node: ast.Name) -> bool:
    at: ast.AST = node
    while True:
        above = parent(at)
        match above:
            case ast.Attribute(attr=attr):
                if attr not in _HARMLESS:
                    return False
                if attr in _ENDS:
                    return True
                if attr in _BOTH:
                    return _takes_places(parent(above))
            case ast.Call(func=func) if func is not at:
                name = last_name(func)
                if name in _BOTH:
                    return _takes_places(above)
                if name not in _SOFT:
                    return bool(_METRICS.search(name))
            case ast.Call():
                pass
            case ast.Subscript(value=value) if value is at:
                pass
            case _:
                return False
        at = above


def _takes_places(call: ast.AST) -> bool:
    """True where only the second of what `max` and `topk` give is used: `_, predicted = torch.max(outputs, 1)`."""
    match parent(call):
        case ast.Subscript(slice=index):
            return isinstance(index, ast.Constant) and index.value == 1
        case ast.Attribute(attr=attr):
            return attr == "indices"
        case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=name), _]), *_]):
            scope = next(at for at in chain(call) if isinstance(at, (*FUNCTIONS, ast.Module)))
            used = (at for at in inner_nodes(scope, ast.Name) if isinstance(at.ctx, ast.Load))
            return name == "_" or not any(at.id == name for at in used)
    return False
