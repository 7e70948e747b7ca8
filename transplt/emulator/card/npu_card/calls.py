"""The one function that the driver calls for an operator: read its arguments, look at the card's limits, compute."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from npu_emulator.host_memory import HostTooSmall, raise_if_host_is_full
from npu_emulator.names import read_table
from npu_emulator.record import record as run_record

from . import libraries, limits
from .operators import OWN, Own, of_straight, of_table
from .outputs import put, resize
from .records import reader

#: Error codes of CANN (aclnn): a parameter that an operator does not take; an operator that is not there.
_PARAMETER, _NOT_THERE = 161002, 561103
#: What a kernel of the CPU says of a type that the card has and it has not.
_NO_TYPE = re.compile(r"not implemented for '(Half|BFloat16|Bool|Char|Byte|Short|Float8\w*)'|not support half")
_SMALL = (torch.float16, torch.bfloat16)
#: Keys under which an operator of the CPU would be recorded, cast or counted as the program's own.
_ABOVE = torch._C._dispatch_keyset_full() - torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.ADInplaceOrView)
_quiet = torch._C.DisableTorchFunction
_modes = torch._C._len_torch_function_stack
_below = torch._C._ExcludeDispatchKeyGuard


@dataclass(frozen=True)
class Operator:
    """One function of aclnn: how its arguments are read, what looks at their types (None: nothing is known), and what
    computes it."""

    name: str
    read: Callable[[int], list[Any]]
    check: Callable[[list[Any]], None] | None
    run: Callable[[list[Any]], None]


_operators: dict[int, Operator] = {}
#: Called with (operator, arguments, None) before each operator.
hooks: list[Callable[[Operator, list[Any], None], None]] = []


def compute(number: int, address: int) -> int:
    """Compute operator `number` of `libraries.names` with the arguments at `address`; an error code of CANN, or 0."""
    try:
        operator = _operators.get(number) or _prepare(number)
        run_record.operators[operator.name] += 1
        if _modes():
            with _quiet():
                _compute(operator, address)
        else:
            _compute(operator, address)
        return 0
    except Exception as error:
        return failed(libraries.names[number], error)
    except BaseException as error:
        return libraries.after(error)


def _compute(operator: Operator, address: int) -> None:
    guard = _below(_ABOVE)  # as a context it costs twice as much
    try:
        arguments = operator.read(address)
        if operator.check is not None:
            operator.check(arguments)
        for hook in hooks:
            hook(operator, arguments, None)
        operator.run(arguments)
    finally:
        del guard  # an error keeps this frame


@contextlib.contextmanager
def below_the_program() -> Iterator[None]:
    """Tensors here are no tensors of the program: nothing of them is recorded, cast or differentiated."""
    with _quiet(), _below(_ABOVE):
        yield


def failed(name: str, error: Exception) -> int:
    """Say why an operator failed, and give its error code."""
    if isinstance(error, limits.Refused):
        libraries.say(str(error))
        return _PARAMETER
    try:
        raise_if_host_is_full(error)
    except HostTooSmall as full:
        libraries.say(f"HostTooSmall: {full}")
        return _PARAMETER
    libraries.say(f"{name}: {error}" if str(error) else f"{name}: {type(error).__name__}")
    return _NOT_THERE if isinstance(error, NotImplementedError) else _PARAMETER


def _prepare(number: int) -> Operator:
    """The operator, made at its first call."""
    name = libraries.names[number]
    arguments, aten = read_table("functions").get(name, (None, ""))
    own = OWN.get(name)
    if own is not None and own.arguments is not None:
        arguments = own.arguments
    if arguments is None:
        raise NotImplementedError(f"the operator {name} is not emulated")
    parts = [word.partition(":") for word in arguments.split()]
    names = [part[0] for part in parts]
    kinds = "".join(part[2][0] for part in parts)
    written = [at for at, part in enumerate(parts) if ">" in part[2]]
    if own is None:
        run = of_table(aten, names, written)
        if run is None:
            raise NotImplementedError(f"the operator {name} is not emulated")
    elif own.straight:
        run = of_straight(own.function, in_place=name.startswith("aclnnInplace"))
    else:
        if own.sized:
            kinds = "".join("p" if at in written else kind for at, kind in enumerate(kinds))
        run = _of_own(own, written)
    check = limits.check_of(name, names, kinds, written, aten)
    operator = _operators[number] = Operator(name, reader(kinds), check, _widening(run))
    return operator


def _of_own(own: Own, written: Sequence[int]) -> Callable[[list[Any]], None]:
    """What computes an operator of ours, and puts what it gives into the outputs (at the places `written`)."""
    function, outputs = own.function, frozenset(written)
    if not written:
        return lambda arguments: function(*arguments)
    store = resize if own.sized else put

    def run(arguments: list[Any]) -> None:
        given = [value for at, value in enumerate(arguments) if at not in outputs]
        targets = [arguments[at] for at in written]
        results = function(*given, outputs=targets) if own.wants_outputs else function(*given)
        if len(written) == 1:
            results = (results,)
        for target, value in zip(targets, results or (), strict=bool(results)):
            store(target, value)

    return run


def _widening(run: Callable[[list[Any]], None]) -> Callable[[list[Any]], None]:
    """`run`, and again in float32 where the CPU has no kernel for a small type; the outputs keep their types."""

    def carefully(arguments: list[Any]) -> None:
        try:
            run(arguments)
        except RuntimeError as error:
            if _NO_TYPE.search(str(error)) is None:
                raise
            made: dict[int, Any] = {}
            wide = [_wide(value, made) for value in arguments]
            run(wide)
            for value, computed in zip(arguments, wide, strict=True):
                _narrow(value, computed)

    return carefully


def _wide(value: Any, made: dict[int, Any]) -> Any:
    """A wider copy, one for all places of a tensor: it may be an input and the output."""
    if isinstance(value, torch.Tensor) and value.dtype in _SMALL:
        return made.setdefault(id(value), value.float())
    if isinstance(value, list):
        return [_wide(each, made) for each in value]
    return value


def _narrow(value: Any, computed: Any) -> None:
    """Write back what was computed in a wider copy of an argument."""
    if isinstance(value, list):
        for each, part in zip(value, computed, strict=True):
            _narrow(each, part)
    elif value is not computed and isinstance(value, torch.Tensor):
        value.copy_(computed)
