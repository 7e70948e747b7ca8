"""What a run reports of a program on the vendor's own torch_npu: installed once torch_npu is imported."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from npu_emulator import codes, limits, silent
from npu_emulator.config import config
from npu_emulator.cuda_guard import check_device
from npu_emulator.record import record
from npu_emulator.saves import tensors_of
from npu_emulator.user_code import caller, is_user, kind, nearest
from torch.jit._builtins import _register_builtin

from . import fallback, memory, refusals
from .operators.activations import remember_gelu
from .records import host_view

#: Names of torch.npu that only warn or give a constant, as the rules have them about torch.cuda.
_CONSTANT = ("get_device_capability", "current_blas_handle")
#: What Dynamo traces it calls with no values to look at, and a look would break its graph. From torch 2.3 on.
_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", bool)


def install() -> None:
    """Watch this process. What concerns the card alone is left out where "cuda" means the npu."""
    # A finding of backward has a line only in the thread that called it.
    torch.autograd.set_multithreading_enabled(False)
    memory.install()
    # Parameters of a lazy module refuse all but a few methods, which they know by identity.
    mixin: Any = torch.nn.parameter.UninitializedTensorMixin
    mixin._allowed_methods = _Allowed(mixin._allowed_methods)
    torch.Generator = _Generator  # type: ignore[misc]
    silent.on_host = host_view
    remember_gelu(torch.nn.functional)
    # Nothing records what a stream is given: said where a program asks for it, in place of a function of CANN.
    graph = getattr(torch.npu, "NPUGraph", None)  # type: ignore[attr-defined]
    if graph is not None:
        graph.capture_begin = _no_graphs
    if config.shapes:
        from npu_emulator import shapes

        from . import calls

        shapes.install(calls.hooks)
    if not config.enforced:
        return
    fallback.install()
    if torch.distributed.is_available():
        refusals.install()
    npu: Any = torch.npu  # type: ignore[attr-defined]
    for name in _CONSTANT:
        setattr(npu, name, _told(getattr(npu, name), f"torch.cuda.{name}"))
    _watch_casts()
    torch.load = _report_unmapped(torch.load)
    _watch_silent()
    _watch_data_parallel()


def _no_graphs(*args: Any, **kwargs: Any) -> None:
    told = "the emulated card records no graphs (torch.npu.NPUGraph): run the program without them here"
    raise NotImplementedError(told)


def _told(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`original`, which does not do on an NPU what it does on CUDA; no error, since a migration writes it where the
    answer is only shown."""
    rule = limits.call(name)

    @functools.wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        frame = None if _compiling() else caller(2)
        if rule is not None and frame is not None:
            record.finding(frame, rule.code, rule.message, rule.help, "info")
        return original(*args, **kwargs)

    return called


def _watch_casts() -> None:
    """A cast to float64, without a device, gives float32: torch_npu says so once, in C++."""
    rows = limits.casts().get("_to_copy", ())
    if not rows:
        return
    limit, wide = rows[0], torch.float64
    tensor: Any = torch.Tensor

    def casting(original: Any, asks: Callable[[Any, Any], bool]) -> Any:
        @functools.wraps(original)
        def cast(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if not _compiling() and asks(args, kwargs) and result.dtype is not wide and result.device.type == "npu":
                frame: Any = sys._getframe(1)
                while frame is not None and kind(frame.f_code.co_filename) == "transparent":
                    frame = frame.f_back
                # The user's own line asks for it; PyTorch's lines may (GradScaler casts its scale).
                if frame is not None and is_user(frame.f_code.co_filename):
                    record.finding(frame, limit.code, limit.message, limit.help, "warning")
            return result

        return cast

    def named(args: Any, kwargs: Any) -> bool:
        return any(each is wide for each in args) or kwargs.get("dtype") is wide

    tensor.double = casting(tensor.double, lambda args, kwargs: True)
    tensor.to, tensor.type = casting(tensor.to, named), casting(tensor.type, named)


def _report_unmapped(original: Any) -> Any:
    """A map_location that only names CUDA devices moves nothing of a checkpoint that was saved on an npu."""

    @functools.wraps(original)
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        result = original(f, map_location, *args, **kwargs)
        keys = list(map_location) if isinstance(map_location, dict) else []
        of_cuda = bool(keys) and all(str(key).startswith("cuda") for key in keys)
        if of_cuda and any(tensor.device.type == "npu" for _, tensor in tensors_of(result)):
            what = f"torch.load with map_location of {', '.join(map(repr, keys))}, for a checkpoint saved on npu"
            hint = "nothing is mapped: name the 'npu:N' it was saved on"
            record.finding(nearest(), codes.DEVICE, what, hint, "warning")
        return result

    return load


class _GeneratorKind(type(torch.Generator)):  # type: ignore[misc]
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, _Generator.__base__)


class _Generator(torch.Generator, metaclass=_GeneratorKind):
    """torch.Generator, which is asked for "cuda" as all else is."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return cls.__base__(check_device(device, "torch.Generator"))


class _Allowed(list[Any]):
    """Methods, and whatever is wrapped around one of them."""

    def __contains__(self, function: Any) -> bool:
        return super().__contains__(function) or super().__contains__(inspect.unwrap(function))


class _Looked:
    """An operator of torch_npu, looked at before it runs; in all else it is the operator itself."""

    def __init__(self, operator: Any, name: str) -> None:
        self._operator, self._name = operator, name
        self._arguments = [each.name for each in operator.default._schema.arguments]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        silent.look(self._name, lambda: {**dict(zip(self._arguments, args, strict=False)), **kwargs})
        return self._operator(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)


def _watch_silent() -> None:
    """Operators of torch_npu with known silent errors, and functions of torch that are such operators."""
    import torch_npu

    for full in silent.operators():
        namespace, _, name = full.partition("::")
        if namespace == "aten" and hasattr(torch.nn.functional, name):
            function = _looking(getattr(torch.nn.functional, name), full)
            setattr(torch.nn.functional, name, function)
            _register_builtin(function, full)
        operator = getattr(torch.ops.npu, name, None) if namespace == "npu" else None
        if operator is not None:
            looked = _Looked(operator, full)
            for owner in (torch_npu, torch.ops.npu):
                setattr(owner, name, looked)


def _looking(original: Any, name: str) -> Any:
    arguments = [each.name for each in getattr(torch.ops.aten, name.partition("::")[2]).default._schema.arguments]

    @functools.wraps(original)
    def looking(*args: Any, **kwargs: Any) -> Any:
        given = () if _compiling() else (*args, *kwargs.values())
        if any(isinstance(each, torch.Tensor) and each.device.type == "npu" for each in given):
            silent.look(name, lambda: {**dict(zip(arguments, args, strict=False)), **kwargs})
        return original(*args, **kwargs)

    return looking


def _watch_data_parallel() -> None:
    """nn.DataParallel over several cards, which torch_npu does not support."""
    parallel: Any = torch.nn.DataParallel
    original_init, original_call = parallel.__init__, torch.nn.parallel.data_parallel

    def tell(name: str, count: int) -> None:
        rule = limits.call(name)
        if count > 1 and rule is not None:
            record.finding(nearest(3), rule.code, f"{rule.message} (over {count} cards)", rule.help, "warning")

    @functools.wraps(original_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original_init(self, *args, **kwargs)
        tell("torch.nn.DataParallel", len(self.device_ids))

    @functools.wraps(original_call)
    def data_parallel(module: Any, inputs: Any, device_ids: Any = None, *args: Any, **kwargs: Any) -> Any:
        cards = torch.npu.device_count() if device_ids is None else len(list(device_ids))  # type: ignore[attr-defined]
        tell("torch.nn.parallel.data_parallel", cards)
        return original_call(module, inputs, device_ids, *args, **kwargs)

    parallel.__init__ = init
    torch.nn.parallel.data_parallel = data_parallel
