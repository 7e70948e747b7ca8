"""How training code is read: what statements read and write, which calls run a network, what is an optimizer.

Variables go by their text: `loss`, or `self.loss` for attributes of an object.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.program.models import defines_optimizer
from transplt.program.program import File, Function, Program
from transplt.program.variable_values import assigned, values_of
from transplt.rules.torch_callables import MODULE, TENSOR, names_of
from transplt.syntax.nodes import arguments_of, call_of, class_of_method, last_name, of_kind, plain_name, variable
from transplt.syntax.scan import FUNCTIONS, parent

#: Callable objects that prepare data or write logs: they run no network.
_NO_NETWORK = re.compile(
    r"tokeniz|transforms?$|_transform|augment|collat|convert|timer|logg?er|sampler|loader|prefetch|writer|iterator"
    r"|callback|hook|lambda|format|parse|^print|^log|^get|^load|^fn$|^f$",
    re.I,
)
#: Why a program that makes a model gets no mixed precision when it stays on the CPU, and what to do.
NO_CARD = (
    "no code that puts this program on a card was found",
    'move the model and its data there, model.to("npu"), and run transplt again',
)
_TENSOR_TYPE = re.compile(r"torch(\.\w+)?\.\w*Tensor")
_HOUSEKEEPING = (
    names_of(MODULE, "runs_nothing")
    | names_of("torch.nn.parallel.DistributedDataParallel", "runs_nothing")
    | names_of(TENSOR, "casts", "same_tensor", "reads", "shape")
    | {*"keys values items get append extend add update reset".split()}
)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, but not what functions and classes inside of it hold."""
    pending = [node]
    while pending:
        at = pending.pop()
        yield at
        if at is node or not isinstance(at, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(at))


def reads(node: ast.AST) -> set[str]:
    """The variables that code reads."""
    return {
        name
        for at in ast.walk(node)
        if isinstance(at, (ast.Name, ast.Attribute)) and (name := variable(at)) and name not in ("self", "cls")
    }


def writes(node: ast.stmt) -> set[str]:
    """The variables that a statement writes, those that it changes in place among them."""
    found: set[str] = set()
    for at in own_nodes(node):
        match at:
            case ast.Name(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                found.add(variable(at))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=changed, attr=name))):
                if name in ("append", "extend", "insert", "update") or (name.endswith("_") and name[0] != "_"):
                    found.add(variable(changed))
    return found - {"", "self", "cls"}


def networks(file: File) -> set[str]:
    """Variables whose parameters or modes the file asks for: they hold networks. Modules have functions called so."""
    found: set[str] = set()
    for name in sorted(names_of(MODULE, "module_only")):
        for node in file.scan.attributes.get(name, ()):
            call = call_of(node)
            if call is None or not all(isinstance(given, ast.Constant) for given in call.args):
                continue
            imported = file.names.qualified(node.value) is not None
            if (base := variable(node.value)) not in ("", "self") and not (imported and name in ("train", "eval")):
                found.add(base)
    return found


def runs_network(program: Program, file: File, call: ast.Call, known: set[str], depth: int = 0) -> bool:
    """True for a call that runs a network or a loss: an object that is called, a method of a network, a function
    of the program that does so."""
    func = call.func
    last = last_name(func)
    if _NO_NETWORK.search(last) and last not in known:
        return False
    callee = program.callee(file, call)
    if isinstance(callee, FUNCTIONS) and is_abstract(callee):
        return last not in _HOUSEKEEPING
    if isinstance(callee, FUNCTIONS):
        given = {variable(item) for item in arguments_of(call)}
        return bool(given & known) or _body_runs(program, callee, depth)
    if isinstance(callee, ast.ClassDef):
        return False
    if isinstance(func, (ast.Name, ast.Attribute)) and _is_tensor_type(program, file, func):
        return False
    match func:
        case ast.Name(id=name):
            found = file.names.lookup(name, file.scan.scope_of(func))
            kinds = {item.kind for item in found[1]} if found is not None else set()
            return bool(kinds & {"assign", "param"}) or ("import" in kinds and name in known)
        case ast.Attribute(value=value):
            return last not in _HOUSEKEEPING and _is_method_of_network(program, file, func, value, known)
        case ast.Subscript():
            return variable(func) != ""
    return False


def _is_method_of_network(program: Program, file: File, func: ast.Attribute, value: ast.expr, known: set[str]) -> bool:
    if plain_name(value) in known:
        return True
    if file.names.qualified(func) is not None:
        return False
    if plain_name(value) == "self" or variable(value) in known:
        return True
    # what a method of a class with a `forward` is called on cannot be followed
    networks_ = (cls for cls in program.classes if f"{cls}.forward" in program.functions)
    return any(f"{cls}.{func.attr}" in program.functions for cls in networks_)


def _is_tensor_type(program: Program, file: File, func: ast.expr) -> bool:
    """True for `Tensor` of `Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor`: it makes data."""
    pending = assigned(program, file, func)
    found = False
    while pending:
        at, node = pending.pop()
        if isinstance(node, ast.IfExp):
            pending += [(at, node.body), (at, node.orelse)]
        elif _TENSOR_TYPE.fullmatch(at.names.qualified(node) or ""):
            found = True
        else:
            return False
    return found


def _body_runs(program: Program, function: ast.AST, depth: int) -> bool:
    if depth > 3:
        return False
    owner = program.owner[function]
    known = networks(owner)
    return any(
        (
            runs_network(program, owner, node, known, depth + 1)
            or (owner.names.qualified(node.func) or "").startswith("torch.nn.functional.")
        )
        for node in of_kind(ast.Call, own_nodes(function))
    )


def is_abstract(function: Function) -> bool:
    """True for a method that derived classes have to write: it has no statement, or raises NotImplementedError."""
    if class_of_method(function) is None:
        return False
    for item in function.body:
        match item:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                continue
            case ast.Raise(exc=ast.expr() as error) if "NotImplemented" in ast.dump(error):
                continue
        return False
    return True


def overriding(program: Program, function: Function) -> list[Function]:
    """The methods of the same name in other classes of the program."""
    return [
        other for other in program.owner if isinstance(other, FUNCTIONS) and other is not function
        and other.name == function.name and class_of_method(other) is not None and not is_abstract(other)
    ]  # fmt: skip


def in_functions(program: Program, file: File, node: ast.AST, depth: int = 0) -> Iterator[tuple[File, ast.Call]]:
    """The calls in a piece of code and in the functions and methods of the program that it calls, to some depth."""
    for at in own_nodes(node):
        if not isinstance(at, ast.Call):
            continue
        yield file, at
        callee = program.callee(file, at)
        if isinstance(callee, FUNCTIONS) and depth < 3:
            for function in (callee, *(overriding(program, callee) if is_abstract(callee) else ())):
                yield from in_functions(program, program.owner[function], function, depth + 1)


def makes_models(program: Program) -> bool:
    """True for a program that makes a model whose parameters it asks for: how it comes to a card is in sight, then."""
    for file in program.files:
        for node in file.scan.attributes.get("parameters", ()):
            for at, value in values_of(program, file, node.value):
                if not isinstance(value, ast.Call):
                    continue
                full = at.names.qualified(value.func) or ""
                if full.startswith("torch.nn.") or isinstance(program.callee(at, value), ast.ClassDef):
                    return True
    return False


def made_by_class(program: Program, file: File, node: ast.expr) -> ast.ClassDef | None:
    """The class of the program, not of optimizers, of which a variable holds an object."""
    for at, value in values_of(program, file, node):
        made = program.callee(at, value) if isinstance(value, ast.Call) else None
        if isinstance(made, ast.ClassDef) and not defines_optimizer(program, made):
            return made
    return None


def zeroes(node: ast.Attribute) -> bool:
    """True for `p.grad.zero_()` and `p.grad.data.zero_()`: what the gradient holds does not matter there."""
    above = parent(node)
    while isinstance(above, ast.Attribute):
        if above.attr in ("zero_", "detach_"):
            return True
        above = parent(above)
    return False
