"""What a tensor is where it is read: the value that its name holds there, its rank, the layer that made it.

Everything is read from the function around a name. What is not certain is None, or an empty origin.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import EllipsisType

from transplt.edits.work import Work
from transplt.program.loops import loops_around
from transplt.program.program import enclosing_function
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import begins, block_of, call_of, last_name, of_kind
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
    assigned = sorted((node for node in stores if isinstance(node, ast.Name)), key=begins)
    here = begins(statement(name))
    above = [node for node in assigned if begins(statement(node)) < here]
    if not above:
        return None
    last = above[-1]
    if not runs_before(statement(last), name):
        return None
    inner = [loop for loop in loops_around(name) if loop not in chain(last)]
    if any(loop in chain(node) for node in assigned if node not in above for loop in inner):
        return None
    return _value_of(last)


def is_closed_over(work: Work, name: str, scope: Scope) -> bool:
    """True when a function inside of a scope reads one of its names."""
    others = (node for node in work.scan.names.get(name, ()) if work.scan.scope_of(node) is not scope)
    return any((found := work.names.lookup(name, work.scan.scope_of(node))) and found[0] is scope for node in others)


def _value_of(store: ast.Name) -> Value | None:
    above = parent(store)
    match above, parent(above):
        case ast.Assign(value=value), _:
            return Value(value)
        case ast.AnnAssign(value=ast.expr() as value), _:
            return Value(value)
        case ((ast.Tuple(elts=items) | ast.List(elts=items)), ast.Assign(value=value)):
            if any(isinstance(each, ast.Starred) for each in items):
                return None
            index = items.index(store)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(items):
                return Value(value.elts[index])
            return Value(value, index)
    return None


def describe(work: Work, node: ast.expr, depth: int = 0) -> Tensor:
    """Rank and origin of a tensor."""
    if depth > 20:
        return Tensor()
    match node:
        case ast.Name():
            value = held(work, node)
            return _described(work, value, depth + 1) if value is not None else Tensor()
        case ast.Subscript(value=whole, slice=index):
            return _of_rank(describe(work, whole, depth + 1), _indexed(index))
        case ast.Call():
            return _called(work, node, depth)
    return Tensor()


def _of_rank(tensor: Tensor, more: int | None) -> Tensor:
    """A tensor with more or fewer dimensions; how many is not known for None."""
    return Tensor(None if tensor.rank is None or more is None else tensor.rank + more, tensor.origin)


def _described(work: Work, value: Value, depth: int) -> Tensor:
    node = value.node
    if value.index is None:
        return describe(work, node, depth)
    match node:
        case ast.Call(func=ast.Attribute(value=whole, attr="unbind")):
            return _of_rank(describe(work, whole, depth), -1)
        case ast.Call(func=ast.Attribute(value=whole, attr="chunk" | "split" | "tensor_split")):
            return describe(work, whole, depth)
        case ast.Call(func=ast.Name() as func, args=[whole, *_]) if not isinstance(whole, ast.Starred):
            full = work.names.qualified(func)
            if full in ("torch.chunk", "torch.split", "torch.unbind"):
                return _of_rank(describe(work, whole, depth), -(full == "torch.unbind"))
        case ast.Name() | ast.Subscript():  # q, k, v = qkv
            return _of_rank(describe(work, node, depth), -1)
    return Tensor()


def _called(work: Work, call: ast.Call, depth: int) -> Tensor:
    match call.func:
        case ast.Attribute(value=whole, attr="view" | "reshape" | "permute"):
            return Tensor(_count(call.args), describe(work, whole, depth + 1).origin)
        case ast.Attribute(value=whole, attr=name) if name in ("transpose", "swapaxes", *SAME_SHAPE):
            return describe(work, whole, depth + 1)
        case ast.Attribute(value=whole, attr=name) if name in names_of(TENSOR, "casts"):
            return Tensor(describe(work, whole, depth + 1).rank, "")
        case ast.Attribute(value=whole, attr="unsqueeze"):
            return _of_rank(describe(work, whole, depth + 1), 1)
        case ast.Attribute(value=whole, attr="unflatten" | "flatten" | "squeeze" | "expand" | "repeat" as name):
            match call.args:
                case [_, ast.Tuple(elts=sizes) | ast.List(elts=sizes)] if name == "unflatten":
                    return _of_rank(describe(work, whole, depth + 1), len(sizes) - 1)
            return _of_rank(describe(work, whole, depth + 1), None)
    if is_linear(work, call.func) or work.names.qualified(call.func) == "torch.nn.functional.linear":
        return Tensor(None, "linear")
    return Tensor(None, f"{call.lineno}:{call.col_offset}")


def is_linear(work: Work, func: ast.expr) -> bool:
    """True for `self.x` that the class sets to one `nn.Linear` (a choice between it and None included)."""
    values = attribute_values(work, func)
    made = [value for value in values if not (isinstance(value, ast.Constant) and value.value is None)]
    return bool(made) and all(is_call_of(work, value, "torch.nn.Linear") for value in made)


def is_call_of(work: Work, node: ast.expr, full: str) -> bool:
    """True for a call of a function or class with a full name."""
    return isinstance(node, ast.Call) and work.names.qualified(node.func) == full


def attribute_values(work: Work, node: ast.expr) -> list[ast.expr]:
    """What the class around `self.x` assigns to it; empty when that is not all plain assignments."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            cls = class_around(node)
        case _:
            return []
    stores = (store for store in work.scan.stores if store.attr == name and class_around(store) is cls is not None)
    values: list[ast.expr] = []
    for store in stores:
        match parent(store):
            case (
                ast.Assign(value=ast.IfExp(body=body, orelse=other))
                | ast.AnnAssign(value=ast.IfExp(body=body, orelse=other))
            ):
                values += [body, other]
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                values.append(value)
            case _:
                return []
    return values


def class_around(node: ast.AST) -> ast.ClassDef | None:
    """The class in whose body a node stands."""
    return next(of_kind(ast.ClassDef, chain(node)), None)


def _count(args: list[ast.expr]) -> int | None:
    """How many sizes or dimensions a call of `view` or `permute` is given."""
    match args:
        case [ast.Tuple(elts=sizes) | ast.List(elts=sizes)]:
            args = sizes
        case [ast.Constant() | ast.UnaryOp()]:
            pass
        case [_]:
            return None
    count = 0
    for arg in args:
        match arg:
            case ast.Starred(
                value=ast.Subscript(
                    value=ast.Attribute(attr="shape"),
                    slice=ast.Slice(lower=None, upper=ast.Constant(value=int() as more), step=None),
                )
            ):
                count += more
            case ast.Starred():
                return None
            case _:
                count += 1
    return count


def _indexed(index: ast.expr) -> int | None:
    """By how much indexing changes the rank."""
    change = 0
    for each in index.elts if isinstance(index, ast.Tuple) else [index]:
        match each:
            case ast.Slice() | ast.Constant(value=EllipsisType()):
                continue
            case ast.Constant(value=None):
                change += 1
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
                change -= 1
            case _:
                return None
    return change


def is_torch_tensor(work: Work, node: ast.expr) -> bool:
    """True when the function or module shows that a name is a tensor of torch: what made it, or what is asked of it."""
    if not isinstance(node, ast.Name):
        return False
    scope = work.scan.scope_of(node)
    bindings = scope.bindings.get(node.id, ())
    if scope.kind not in ("module", "function"):
        return False
    if scope.kind == "module" and any(enclosing_function(binding.node) is not None for binding in bindings):
        return False  # when a function sets it too its calls tell
    first, last = _lifetime(work, node)
    for other in work.scan.names.get(node.id, ()):
        if work.scan.scope_of(other) is not scope:
            continue
        here = first < statement(other).lineno <= last
        match parent(other):
            case ast.Call(func=func) if last_name(func) in {*names_of("builtins", "asks"), "is_tensor"}:
                return False
            case ast.Attribute(attr=name) as above if here and name in _OF_TORCH and call_of(above) is not None:
                return True
            case ast.Call(func=func, args=[given, *_]) if here and given is other:
                module, _, name = (work.names.qualified(func) or "").rpartition(".")
                if module in _MODULES and name not in _TAKE_ARRAYS:
                    return True
    match held(work, node):
        case Value(ast.Call(func=func), None):
            module, _, name = (work.names.qualified(func) or "").rpartition(".")
            if module:
                return module in _MODULES and name not in _NO_TENSOR
            return isinstance(func, ast.Attribute) and func.attr in _OF_TORCH
    return False


def _lifetime(work: Work, name: ast.Name) -> tuple[int, int]:
    """The lines between which a local name holds what it holds at one place: behind the first, up to the last."""
    bindings = work.scan.scope_of(name).bindings.get(name.id, ())
    lines = sorted(statement(each.node).lineno for each in bindings if isinstance(each.node, ast.Name))
    here = statement(name).lineno
    return max((line for line in lines if line < here), default=0), min(
        (line for line in lines if line >= here), default=10**9
    )
