"""What a tensor is where it is read: the value that its name holds there, its rank, the layer that made it.

Everything is read from the function around a name. What is not certain is None, or an empty origin.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.edits.work import Work
from transplt.program.loops import loops_around
from transplt.program.program import enclosing_function
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.asks import block_of, last_name
from transplt.syntax.scan import chain, parent, statement
from transplt.syntax.scopes import Scope

SAME_SHAPE = names_of(TENSOR, "same_tensor")
#: Functions and methods that only tensors of torch have, unlike arrays of numpy.
_OF_TORCH = names_of(TENSOR, "torch_only")
#: Modules whose functions take and give tensors.
_MODULES = frozenset({"torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"})
#: Functions of torch that take arrays of numpy, or anything.
_TAKE_ARRAYS = frozenset("tensor as_tensor from_numpy asarray is_tensor save Size device manual_seed Tensor".split())
#: Functions of torch that give something else than one tensor.
_NO_TENSOR = frozenset("load numpy topk sort split chunk unbind unique max min Size device dtype where nonzero".split())


@dataclass(frozen=True, slots=True)
class Value:
    """An expression, or the item of it at `index` where a statement takes it apart."""

    node: ast.expr
    index: int | None = None


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: its number of dimensions, and what made it. Tensors of one origin have one dtype, also in autocast."""

    rank: int | None = None
    origin: str = ""


def runs_before(first: ast.stmt, node: ast.AST) -> bool:
    """True when a statement has run whenever `node` is reached, and stands above it."""
    held = {id(each) for each in (node, *chain(node))}
    block = block_of(first)
    return any(id(each) in held for each in block) and id(first) not in held


def held(work: Work, name: ast.Name) -> Value | None:
    """The value that a local name holds where it is read; None for parameters and where several may reach it."""
    scope = work.scan.scope_of(name)
    found = work.names.lookup(name.id, scope)
    if found is None or found[0] is not scope:
        return None
    stores = [binding.node for binding in found[1]]
    if any(binding.kind not in ("assign", "param") for binding in found[1]):
        return None
    assigned = sorted((node for node in stores if isinstance(node, ast.Name)), key=_place)
    here = _place(statement(name))
    above = [node for node in assigned if _place(statement(node)) < here]
    if not above:
        return None
    last = above[-1]
    if not runs_before(statement(last), name):
        return None
    inner = [loop for loop in loops_around(name) if loop not in chain(last)]
    if any(loop in chain(node) for node in assigned if node not in above for loop in inner):
        return None
    return _value_of(last)


def _place(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _value_of(store: ast.Name) -> Value | None:
    above = parent(store)
    if isinstance(above, ast.Assign):
        return Value(above.value)
    if isinstance(above, ast.AnnAssign) and above.value is not None:
        return Value(above.value)
    if isinstance(above, (ast.Tuple, ast.List)) and isinstance(parent(above), ast.Assign):
        value = parent(above).value  # type: ignore[attr-defined]
        if any(isinstance(each, ast.Starred) for each in above.elts):
            return None
        index = above.elts.index(store)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(above.elts):
            return Value(value.elts[index])
        return Value(value, index)
    return None


def describe(work: Work, node: ast.expr, depth: int = 0) -> Tensor:
    """Rank and origin of a tensor."""
    if depth > 20:
        return Tensor()
    if isinstance(node, ast.Name):
        value = held(work, node)
        if value is None:
            return Tensor()
        return _described(work, value, depth + 1)
    if isinstance(node, ast.Subscript):
        inner = describe(work, node.value, depth + 1)
        change = _indexed(node.slice)
        rank = None if inner.rank is None or change is None else inner.rank + change
        return Tensor(rank, inner.origin)
    if isinstance(node, ast.Call):
        return _called(work, node, depth)
    return Tensor()


def _described(work: Work, value: Value, depth: int) -> Tensor:
    node = value.node
    if value.index is None:
        return describe(work, node, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inner = describe(work, node.func.value, depth)
        if node.func.attr == "unbind":
            return Tensor(None if inner.rank is None else inner.rank - 1, inner.origin)
        if node.func.attr in ("chunk", "split", "tensor_split"):
            return inner
        return Tensor()
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        full = work.names.qualified(node.func)
        if full in ("torch.chunk", "torch.split", "torch.unbind"):
            inner = describe(work, node.args[0], depth)
            less = full == "torch.unbind"
            return Tensor(None if inner.rank is None else inner.rank - less, inner.origin)
        return Tensor()
    if isinstance(node, (ast.Name, ast.Subscript)):  # q, k, v = qkv
        inner = describe(work, node, depth)
        return Tensor(None if inner.rank is None else inner.rank - 1, inner.origin)
    return Tensor()


def _called(work: Work, call: ast.Call, depth: int) -> Tensor:
    func = call.func
    if isinstance(func, ast.Attribute):
        name = func.attr
        if name in ("view", "reshape", "permute"):
            return Tensor(_count(call.args), describe(work, func.value, depth + 1).origin)
        if name in ("transpose", "swapaxes", *SAME_SHAPE):
            return describe(work, func.value, depth + 1)
        if name in names_of(TENSOR, "casts"):
            inner = describe(work, func.value, depth + 1)
            return Tensor(inner.rank, "")
        if name in ("unflatten", "unsqueeze", "flatten", "squeeze", "expand", "repeat"):
            inner = describe(work, func.value, depth + 1)
            more = 1 if name == "unsqueeze" else None
            if name == "unflatten" and len(call.args) == 2 and isinstance(call.args[1], (ast.Tuple, ast.List)):
                more = len(call.args[1].elts) - 1
            return Tensor(None if inner.rank is None or more is None else inner.rank + more, inner.origin)
        if is_linear(work, func):
            return Tensor(None, "linear")
    if work.names.qualified(func) == "torch.nn.functional.linear":
        return Tensor(None, "linear")
    return Tensor(None, f"{call.lineno}:{call.col_offset}")


def is_linear(work: Work, func: ast.expr) -> bool:
    """True for `self.x` that the class sets to one `nn.Linear` (a choice between it and None included)."""
    values = attribute_values(work, func)
    made = [value for value in values if not (isinstance(value, ast.Constant) and value.value is None)]
    return bool(made) and all(
        isinstance(value, ast.Call) and work.names.qualified(value.func) == "torch.nn.Linear" for value in made
    )


def attribute_values(work: Work, node: ast.expr) -> list[ast.expr]:
    """What the class around `self.x` assigns to it; empty when that is not all plain assignments."""
    if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"):
        return []
    cls = class_around(node)
    if cls is None:
        return []
    values: list[ast.expr] = []
    for store in work.scan.stores:
        if store.attr != node.attr or class_around(store) is not cls:
            continue
        above = parent(store)
        value = above.value if isinstance(above, (ast.Assign, ast.AnnAssign)) else None
        if value is None:
            return []
        values += [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    return values


def class_around(node: ast.AST) -> ast.ClassDef | None:
    """The class in whose body a node stands."""
    return next((above for above in chain(node) if isinstance(above, ast.ClassDef)), None)


def _count(args: list[ast.expr]) -> int | None:
    """How many sizes or dimensions a call of `view` or `permute` is given."""
    if len(args) == 1 and isinstance(args[0], (ast.Tuple, ast.List)):
        args = args[0].elts
    elif len(args) == 1 and not isinstance(args[0], (ast.Constant, ast.UnaryOp)):
        return None
    count = 0
    for arg in args:
        if not isinstance(arg, ast.Starred):
            count += 1
            continue
        value = arg.value
        if (
            isinstance(value, ast.Subscript)
            and isinstance(value.slice, ast.Slice)
            and value.slice.lower is None
            and value.slice.step is None
            and isinstance(value.slice.upper, ast.Constant)
            and isinstance(value.slice.upper.value, int)
            and getattr(value.value, "attr", "") == "shape"
        ):
            count += value.slice.upper.value
        else:
            return None
    return count


def _indexed(index: ast.expr) -> int | None:
    """By how much indexing changes the rank."""
    change = 0
    for each in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(each, ast.Slice) or (isinstance(each, ast.Constant) and each.value is ...):
            continue
        if isinstance(each, ast.Constant) and each.value is None:
            change += 1
        elif isinstance(getattr(each, "operand", each), ast.Constant):
            change -= 1
        else:
            return None
    return change


def is_torch_tensor(work: Work, node: ast.expr) -> bool:
    """True when the function or module shows that a name is a tensor of torch: what made it, or what is asked of it."""
    if not isinstance(node, ast.Name):
        return False
    scope = work.scan.scope_of(node)
    if scope.kind not in ("module", "function") or _is_set_elsewhere(work, node.id, scope):
        return False
    first, last = _lifetime(work, node)
    for other in work.scan.names.get(node.id, ()):
        if work.scan.scope_of(other) is not scope:
            continue
        above = parent(other)
        if isinstance(above, ast.Call) and last_name(above.func) in {*names_of("builtins", "asks"), "is_tensor"}:
            return False
        if not first < statement(other).lineno <= last:
            continue
        if isinstance(above, ast.Attribute) and above.attr in _OF_TORCH:
            call = parent(above)
            if isinstance(call, ast.Call) and call.func is above:
                return True
        if isinstance(above, ast.Call) and above.args and above.args[0] is other:
            module, _, function_name = (work.names.qualified(above.func) or "").rpartition(".")
            if module in _MODULES and function_name not in _TAKE_ARRAYS:
                return True
    value = held(work, node)
    if value is None or value.index is not None:
        return False
    made = value.node
    if isinstance(made, ast.Call):
        module, _, name = (work.names.qualified(made.func) or "").rpartition(".")
        if module:
            return module in _MODULES and name not in _NO_TENSOR
        return isinstance(made.func, ast.Attribute) and made.func.attr in _OF_TORCH
    return False


def _is_set_elsewhere(work: Work, name: str, scope: Scope) -> bool:
    """True for a variable of the module that a function sets too: when that happens its calls tell."""
    bound = scope.bindings.get(name, ()) if scope.kind == "module" else ()
    return any(enclosing_function(binding.node) is not None for binding in bound)


def _lifetime(work: Work, name: ast.Name) -> tuple[int, int]:
    """The lines between which a local name holds what it holds at one place: behind the first, up to the last."""
    bindings = work.scan.scope_of(name).bindings.get(name.id, ())
    lines = sorted(statement(each.node).lineno for each in bindings if isinstance(each.node, ast.Name))
    here = statement(name).lineno
    return max((line for line in lines if line < here), default=0), min(
        (line for line in lines if line >= here), default=10**9
    )
