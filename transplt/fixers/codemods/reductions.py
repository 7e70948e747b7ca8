"""64-bit floats that are summed over the ranks: HCCL refuses them.

ProcessGroupHCCL checks the type before all_reduce, reduce and reduce_scatter and raises for float64 on every card
before Ascend 950 (`checkSupportedDataType`, torch_npu/csrc/distributed/ProcessGroupHCCL.cpp, from the branches for
torch 2.1 to master). Meters that count in float64 (`torch.tensor([count, total], dtype=torch.float64)`) meet it first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.default_type import sets_double
from transplt.flow.last_value import last_value
from transplt.flow.marks import DEVICE, marks_by_name
from transplt.program.held_values import HeldValues, Passed
from transplt.program.program import ProgramValue, program_of
from transplt.rules.card_limits import collectives_under, limit_text
from transplt.rules.torch_callables import TENSOR, full_names, names_of
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import argument_at, defaults_of, inner_nodes, keyword_of, last_name, plain_name, string_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU314", rank=260)

_LIMIT = "sum of float64"
_REDUCTIONS = collectives_under(_LIMIT)
_DOUBLE = frozenset({"torch.float64", "torch.double"})
_MADE = full_names("default_type") | {"torch.tensor"}
_ARRAYS = frozenset({"numpy.zeros", "numpy.ones", "numpy.empty"})
_JOINING = frozenset({"torch.stack", "torch.cat", "torch.concat"})
#: Methods that hand on the type of a tensor.
_SAME_TYPE = names_of(TENSOR, "keeps_type")


@fixer.on(ast.Call, name=(f"torch.distributed.{name}" for name in sorted(_REDUCTIONS)))
def reduced(work: Work, call: ast.Call) -> Finds:
    """Report a float64 tensor on the device that goes into a reduction, itself or through functions of the file."""
    for given in _ways_in(work, argument_at(call, 0, "tensor")):
        yield from _refused(work, call, given)


@fixer.on(ast.Call, last="reduce")
def reduced_by_accelerate(work: Work, call: ast.Call) -> Finds:
    """The same of `accelerator.reduce(tensor)`."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="accelerator") | ast.Attribute(attr="accelerator")):
            if b"accelerate" in work.source.utf8:
                yield from reduced(work, call)
        case ast.Attribute(value=ast.Name() as holder):
            match last_value(work.scan, holder):
                case ast.Call(func=made) if work.names.qualified(made) == "accelerate.Accelerator":
                    yield from reduced(work, call)


def _ways_in(work: Work, given: ast.expr | None, depth: int = 3) -> Iterator[ast.expr]:
    """What is reduced; another name that it had, and what calls in the file give where that is a parameter: once for
    all collectives of a function."""
    if given is None:
        return
    yield given
    held, asked = work.once(_held)
    for source in held.sources(work.file, given) if depth and plain_name(given) else ():
        match source:
            case Passed(values=values, argument=argument) if argument not in asked:
                asked.add(argument)
                for each in values:
                    yield from _ways_in(work, each.node, depth - 1)
            case ProgramValue(node=ast.Name() as node):
                yield from _ways_in(work, node, depth - 1)


def _held(work: Work) -> tuple[HeldValues, set[ast.arg]]:
    """The values of the file's variables, and the parameters that were asked for."""
    return HeldValues(program_of([work.file], work.project)), set()


def _refused(work: Work, call: ast.Call, given: ast.expr) -> Finds:
    value = _value(work, given)
    typed = _double(work, value) if value is not None else None
    last, limit = last_name(call.func), limit_text(_LIMIT)
    if not _on_device(work, value) or last not in _REDUCTIONS:
        return
    message, api = limit.message.format(name=last), f"torch.distributed.{last}"
    if typed is None:
        double = work.project.default_is_double or sets_double(work.scan, work.names)
        if value is not None and double and _of_default_type(work, value):
            message = f"{message}, and the default type of this program is float64"
            of_all = (("status", "default type"),)  # one decision with what makes it the default
            yield work.note(given, fixer.code, message, api=api, help=limit.help, details=of_all)
        return
    extent = work.source.extent(typed)
    work.withdraw_notes(
        lambda note: note.code == "NPU127" and extent[0] <= note.extent[0] and note.extent[1] <= extent[1]
    )
    match value, parent(typed):
        case ast.Call(args=[ast.List() | ast.Tuple(), *_]), ast.keyword() if (  # a few numbers of a meter
            work.settings.style == "portable"
            and work.names.qualified(value.func) == "torch.tensor"
            and work.names.qualified(typed) in _DOUBLE
        ):
            yield Edit(typed, fixer.code, message, "torch.float32", api=api, help=limit.help)
        case _:
            yield Note(extent, fixer.code, Level.MANUAL, message, api, limit.help, Effort.LOW)


def _value(work: Work, given: ast.expr | None) -> ast.expr | None:
    """What a variable was given last, or an attribute in the only statement of the file that sets it."""
    match given:
        case ast.Name():
            value = last_value(work.scan, given, past_sums=True)
            return _only_part(work, value) or value
        case ast.Attribute(value=ast.Name(), attr=attr):
            stores = [parent(each) for each in work.scan.stores if each.attr == attr]
            values = [each.value for each in stores if isinstance(each, (ast.Assign, ast.AnnAssign))]
            return values[0] if len(values) == len(stores) == 1 else None
    return given


def _only_part(work: Work, value: ast.expr | None) -> ast.expr | None:
    """What `torch.stack(parts)` is made of, where one statement appends all parts."""
    match value:
        case ast.Call(args=[ast.Name(id=parts) as name, *_]) if work.names.qualified(value.func) in _JOINING:
            scope = work.scan.scope_of(name)
            appends = [each for each in work.scan.attributes.get("append", ()) if plain_name(each.value) == parts]
            match [parent(each) for each in appends if work.scan.scope_of(each) is scope]:
                case [ast.Call(args=[ast.Name() as part])]:
                    return last_value(work.scan, part, past_sums=True)
                case [ast.Call(args=[part])]:
                    return part
    return None


def is_double(work: Work, dtype: ast.expr) -> bool:
    """True for float64, also where a variable, an attribute or the default of a parameter holds it."""
    if work.names.qualified(dtype) in _DOUBLE:
        return True
    if isinstance(dtype, ast.Name):
        bindings = work.names.bindings_of(dtype)
        for binding in bindings:
            if binding.kind == "param" and (default := default_of(binding.node)) is not None:
                return work.names.qualified(default) in _DOUBLE
            if binding.kind == "assign":
                value = assigned_value(binding.node)
                return value is not None and len(bindings) == 1 and work.names.qualified(value) in _DOUBLE
        return False
    value = _value(work, dtype)
    return value is not None and value is not dtype and work.names.qualified(value) in _DOUBLE


def default_of(arg: ast.AST) -> ast.expr | None:
    """The default of a parameter."""
    args = parent(arg)
    if not isinstance(args, ast.arguments):
        return None
    return next((default for each, default in defaults_of(args) if each is arg), None)


def _links(value: ast.expr | None) -> Iterator[ast.Call]:
    """The calls of a chain such as `x.to(device).float()`, the last one first."""
    while isinstance(value, ast.Call):
        yield value
        value = value.func.value if isinstance(value.func, ast.Attribute) else None


def _of_default_type(work: Work, value: ast.expr) -> bool:
    """True for a tensor of floats that is made without a type."""
    for call in _links(value):
        if keyword_of(call, "dtype") is not None:
            return False
        full, last = work.names.qualified(call.func), getattr(call.func, "attr", "")
        if full in _MADE:
            numbers = inner_nodes(call, ast.Constant)
            return full != "torch.tensor" or any(isinstance(node.value, float) for node in numbers)
        if last not in (*_SAME_TYPE, "to") or (last == "to" and not all(names_device(work, arg) for arg in call.args)):
            return False
    return False


def _double(work: Work, value: ast.expr | None) -> ast.expr | None:
    """The part of an expression that makes its tensor float64."""
    for call in _links(value):
        last, dtype = getattr(call.func, "attr", ""), keyword_of(call, "dtype")
        if dtype is not None:
            return dtype if is_double(work, dtype) else None
        if last == "DoubleTensor" or (last == "double" and not call.args):
            return call
        if last in ("from_numpy", "as_tensor", "tensor") and call.args and _of_numpy(work, call.args[0]):
            return call
        if last in ("to", "type"):
            named = next((arg for arg in call.args if work.names.qualified(arg) in _DOUBLE), None)
            if named is not None or not all(names_device(work, arg) for arg in call.args):
                return named
        elif last not in _SAME_TYPE:
            return None
    return None


def _of_numpy(work: Work, given: ast.expr) -> bool:
    """True for an array that NumPy makes without a type, of float64: `np.zeros(3)`."""
    value = last_value(work.scan, given) if isinstance(given, ast.Name) else given
    if not isinstance(value, ast.Call) or work.names.qualified(value.func) not in _ARRAYS:
        return False
    typed = argument_at(value, 1, "dtype")
    return typed is None or last_name(typed) in ("float", "float64", "double")


def _on_device(work: Work, value: ast.expr | None) -> bool:
    """True when an expression puts its tensor on a device that is not the CPU."""
    for call in _links(value):
        last, device = getattr(call.func, "attr", ""), keyword_of(call, "device")
        if device is not None:
            return string_of(device) != "cpu"
        if last in ("cuda", "npu", "cpu"):
            return last != "cpu"
        if last == "to" and call.args and names_device(work, call.args[0]):
            return string_of(call.args[0]) != "cpu"
        if last == "DoubleTensor":
            return (work.names.qualified(call.func) or "").startswith("torch.cuda.")
    return False


def on_device(work: Work, given: ast.expr) -> bool:
    """True for a tensor that some statement of the file puts on a device that is not the CPU."""
    return _on_device(work, _value(work, given))


def names_device(work: Work, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return work.names.qualified(node.func) == "torch.device"
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, int))
    last = last_name(node)
    return DEVICE in marks_by_name(last)
