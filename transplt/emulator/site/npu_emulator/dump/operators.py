"""The rows of functions of torch, and the faults that are planted in them."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..trace.log import is_quiet, quiet
from . import faults, steps
from . import gradients as backward
from .entries import entry

_F: Any = torch.nn.functional
_RECURRENT = frozenset("lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell".split())
_ARITHMETIC = frozenset(
    f"__{each}__"
    for name in "add sub mul truediv floordiv mod pow matmul and or xor".split()
    for each in (name, f"r{name}", f"i{name}")
) | {"__neg__", "__getitem__", "__setitem__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__invert__"}
#: What moves a tensor, or only speaks of it: another number of these is no difference of two programs.
_NONE = frozenset(
    "to cuda npu cpu type detach detach_ requires_grad_ backward retain_grad pin_memory is_pinned item tolist numpy "
    "data_ptr size dim numel is_floating_point is_complex register_hook share_memory_ storage record_stream".split()
)
_names: dict[Any, str] = {}


def api_of(function: Any) -> str:
    """`Functional.linear`, `Torch.matmul`, `Tensor.view`, `VF.lstm`; "" for what is no operator."""
    known = _names.get(function)
    if known is None:
        known = _names[function] = _api_of(function)
    return known


def _api_of(function: Any) -> str:
    name = str(getattr(function, "__name__", ""))
    # An overload (`broadcast_.default`) is what torch's own code calls, as DistributedDataParallel does.
    if not name or "." in name or name in _NONE or (name.startswith("__") and name not in _ARITHMETIC):
        return ""
    kind = type(function).__name__
    if getattr(torch.Tensor, name, None) is function or kind in ("method_descriptor", "wrapper_descriptor"):
        return "" if name.startswith("_") and name not in _ARITHMETIC else f"Tensor.{name}"
    module = str(getattr(function, "__module__", "") or "")
    own = getattr(_F, name, None)
    if (own is not None and inspect.unwrap(own) is function) or module == "torch.nn.functional":
        return f"Functional.{name.strip('_') if name.startswith('_') else name}"
    if module == "torch.nn.init":
        return f"Init.{name}"
    if name in _RECURRENT:
        return f"VF.{name}"
    return "" if name.startswith("_") else f"Torch.{name}"


class _Recorder(TorchFunctionMode):
    """Sees the functions of torch that the program calls, and not those that they call in turn."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        api = "" if is_quiet() else api_of(func)
        if not api:
            return func(*args, **kwargs)
        fault = faults.planted(api, steps.current.counts.get(api, 0))
        if fault is not None and fault.kind == "drop":
            return args[0] if args else next(iter(kwargs.values()))
        if not steps.recording() or api.startswith("Init."):
            return _planted(api, func, args, kwargs, fault)
        result = _record(api, func, args, kwargs, fault)
        if fault is None or fault.kind != "extra":
            return result
        added = fault.added()
        return _record(api_of(added), added, (faults.first(result),), {}, None)


def _planted(api: str, func: Any, args: Any, kwargs: Any, fault: Any) -> Any:
    """An operator that is no row, with its fault."""
    if fault is None:
        return func(*args, **kwargs)
    steps.current.count(api)
    result = fault.call(func, args, kwargs)
    return fault.added()(faults.first(result)) if fault.kind == "extra" else result


def _record(api: str, func: Any, args: Any, kwargs: Any, fault: Any) -> Any:
    from . import modules
    from .files import keeper

    stem = f"{api}.{steps.current.counts.get(api, 0)}"
    name = f"{stem}.forward"
    keep = keeper(name)
    waiting: list[tuple[str, Any]] = []

    def hold(plain: Any, place: str) -> str:
        """An operator may write into its inputs, and may turn out to give no tensor."""
        waiting.append((place, plain.clone()))
        return f"{name}.{place}.{steps.asked()['format']}"

    holding = hold if keep is not None else None
    with steps.busy():
        given = entry(list(args), "input", holding)
        named = entry(kwargs, "input", holding)
    before = backward.edges([list(args), kwargs])
    result = func(*args, **kwargs) if fault is None else fault.call(func, args, kwargs)
    outputs = list(result) if isinstance(result, (list, tuple)) else [result]
    if not backward.tensors(outputs):
        return result
    steps.current.count(api)
    frames, frame = steps.frames_here()
    with steps.busy(), quiet():
        made = entry(outputs, "output", keep)
        over = steps.look_for_overflow(name, [given, named], made, frame)
        if steps.asked()["level"] == "L0" or (steps.asked()["task"] == "overflow" and not over):
            return result
        if keep is not None:
            for place, plain in waiting:
                keep(plain, place)
        parent = modules.inside()
        steps.add(name, {"input_args": given, "input_kwargs": named, "output": made}, parent, frames)
    if steps.asked()["task"] != "overflow":
        above = parent.replace(".forward.", ".backward.") if parent else None
        backward.watch(f"{stem}.backward", above, before, outputs, keeper(f"{stem}.backward"), frame)
    return result


def install() -> None:
    """Record, and plant, from here on in the thread that runs the script."""
    faults.read(steps.asked()["faults"])
    _Recorder().__enter__()
