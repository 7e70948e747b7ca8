"""Leftover CUDA use in the user's own files fails loudly, with file:line and a diagnostic code.

Libraries may probe torch.cuda freely: they see a build without CUDA, as on an NPU host. With `record`, a use is noted
and
then carried out on the npu, so that one run lists them all; with `alias` (reference runs) it is carried out silently.
"""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType, ModuleType
from typing import Any

from . import codes, cuda_alias, limits
from .config import config
from .names import exists
from .record import record
from .start import when_imported
from .user_code import caller, is_user

#: Probing calls that are legal on an NPU host and answer "no".
PROBES = {"is_available", "device_count", "is_initialized", "is_bf16_supported"}
#: Modules of torch.cuda that a script may import without torch having done so.
_SUBMODULES = (
    "amp",
    "amp.autocast_mode",
    "amp.common",
    "amp.grad_scaler",
    "comm",
    "graphs",
    "memory",
    "nccl",
    "nvtx",
    "profiler",
    "random",
    "sparse",
    "streams",
)
_SKIPPED = "it answers no on an NPU host: the CUDA branch is skipped"
_ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": "warning", "CUDA_LAUNCH_BLOCKING": "info", "CUDA_DEVICE_ORDER": "info"}


class CudaLeftover(RuntimeError):
    """A use of CUDA in a user's file, stopped."""


def report(frame: FrameType, code: str, what: str, hint: str, level: str = "error") -> None:
    """Note a leftover; print it when the run goes on, raise CudaLeftover when errors are to stop it. What torch_npu
    redirects by itself is none."""
    if config.cuda == "alias" or "torch_npu.contrib.transfer_to_npu" in sys.modules:
        return
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    new = record.finding(frame, code, what, hint, level)
    if level == "error" and config.cuda == "error":
        raise CudaLeftover(f"{place}: leftover CUDA use: {what}. {hint} [{code}]")
    if new and level != "info":
        print(f"{place}: {code} leftover CUDA use: {what}: {hint}", file=sys.stderr)


def found(code: str, what: str, hint: str, level: str = "error", depth: int = 3) -> bool:
    """`report` for the user's frame that called into torch; False when a library did."""
    frame = caller(depth)
    if frame is None:
        return False
    report(frame, code, what, hint, level)
    return True


def check_device(device: Any, what: str) -> Any:
    """`device`, reported (and turned into an npu one where the run goes on) when it means CUDA."""
    if not cuda_alias.is_cuda(device):
        return device
    if found(codes.DEVICE, f"{what} on device '{device}'", "use 'npu'") or config.cuda == "alias":
        return cuda_alias.to_npu(device)
    return device


class GuardedModule(ModuleType):
    """torch.cuda and its submodules, as the user's files see them."""

    def __getattribute__(self, name: str) -> Any:
        if name[:2] != "__" and name != "_lazy_init":
            frame = sys._getframe(1)
            if is_user(frame.f_code.co_filename):
                return _user_access(self, name, frame)
        return ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        frame = sys._getframe(1)
        if is_user(frame.f_code.co_filename):
            module = ModuleType.__getattribute__(self, "__name__")
            report(
                frame,
                codes.of_cuda_name(f"{module}.{name}"),
                f"assignment to {module}.{name}",
                "patching torch.cuda has no effect on npu",
                "warning",
            )
        ModuleType.__setattr__(self, name, value)


def _user_access(module: ModuleType, name: str, frame: FrameType) -> Any:
    path = ModuleType.__getattribute__(module, "__name__")
    full = f"{path}.{name}"
    if isinstance(sys.modules.get(full), GuardedModule):
        return sys.modules[full]
    if path == "torch.cuda" and name in PROBES:
        report(frame, codes.of_cuda_name(full), full, _SKIPPED, config.probes)
    else:
        report(frame, codes.of_cuda_name(full), full, _counterpart(path, name))
    if config.cuda in ("record", "alias"):
        return cuda_alias.npu_attribute(path, name)
    return ModuleType.__getattribute__(module, name)


def _counterpart(path: str, name: str) -> str:
    """What to do about `path.name`: the help of the static check, where it has a rule about this name."""
    rule = limits.call(f"{path}.{name}")
    if rule is not None:
        return f"{rule.message}: {rule.help}" if rule.help else rule.message
    target = path.replace("torch.cuda", "torch_npu.npu", 1)
    if exists(target, name):
        return f"use {path.replace('torch.cuda', 'torch.npu', 1)}.{name}"
    return f"torch_npu for PyTorch {config.torch_version} has no {path.replace('torch.cuda', 'torch.npu', 1)}.{name}"


def install() -> None:
    """Put the guard on torch.cuda and on what silently ignores or accepts "cuda". torch is imported."""
    if config.cuda == "off":
        return
    import importlib

    import torch

    for name in _SUBMODULES:
        try:
            importlib.import_module("torch.cuda." + name)
        except ImportError:
            continue
    for name, module in list(sys.modules.items()):
        if (name == "torch.cuda" or name.startswith("torch.cuda.")) and type(module) is ModuleType:
            module.__class__ = GuardedModule
    _guard_devices(torch)
    _guard_methods(torch)
    _guard_silent(torch)
    _guard_environment()
    if config.cuda in ("record", "alias"):
        import torch_npu  # noqa: F401  the device that "cuda" means from here on

        cuda_alias.install(_seen)


def _seen(what: str, code: str) -> None:
    """Called by the alias before it carries out something that was asked of "cuda"."""
    found(code, what, "use 'npu'", depth=4)


def _guard_devices(torch: Any) -> None:
    """Whatever puts a tensor on "cuda" calls this function from C++ first."""
    original = torch.cuda._lazy_init

    @functools.wraps(original)
    def lazy_init() -> None:
        found(codes.DEVICE, "a tensor or module is put on a 'cuda' device", "use 'npu'")
        original()

    ModuleType.__setattr__(torch.cuda, "_lazy_init", lazy_init)


def _wrap(owner: Any, name: str, code: str, what: str, hint: str, when: Any, level: str = "error") -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if when(args, kwargs):
            found(code, what, hint, level)
        return original(*args, **kwargs)

    setattr(owner, name, guarded)


def _argument(position: int, keyword: str) -> Any:
    def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[position] if len(args) > position else kwargs.get(keyword)

    return given


def _guard_methods(torch: Any) -> None:
    if config.cuda in ("record", "alias"):
        return  # cuda_alias wraps the same functions, reports and goes on
    for owner, label in ((torch.Tensor, "Tensor.cuda()"), (torch.nn.Module, "Module.cuda()")):
        _wrap(owner, "cuda", codes.METHOD, label, "use .npu()", lambda a, k: True)

    def when(test: Any, position: int, keyword: str) -> Any:
        pick = _argument(position, keyword)
        return lambda a, k: test(pick(a, k))

    def legacy(value: Any) -> bool:
        return "torch.cuda" in (value if isinstance(value, str) else getattr(value, "__module__", "") or "")

    device = cuda_alias.is_cuda
    _wrap(
        torch.Tensor,
        "type",
        codes.TYPE_STRING,
        "Tensor.type of a torch.cuda tensor type",
        "use the npu one",
        when(legacy, 1, "dtype"),
    )
    _wrap(
        torch,
        "set_default_tensor_type",
        codes.DEFAULT_TENSOR_TYPE,
        "set_default_tensor_type of a torch.cuda tensor type",
        "use torch.set_default_device('npu')",
        when(legacy, 0, "t"),
    )
    _wrap(
        torch,
        "set_default_device",
        codes.DEVICE,
        "torch.set_default_device('cuda')",
        "use 'npu'",
        when(device, 0, "device"),
    )
    _wrap(
        torch,
        "load",
        codes.DEVICE,
        "torch.load with map_location 'cuda'",
        "use 'npu'",
        when(_mentions_cuda, 1, "map_location"),
    )


def _mentions_cuda(value: Any) -> bool:
    if isinstance(value, dict):
        return any(cuda_alias.is_cuda(v) for v in value.values())
    return cuda_alias.is_cuda(value)


def _guard_silent(torch: Any) -> None:
    """What a host without CUDA accepts and silently disables."""

    def on_init(cls: Any, default: Any, keyword: str, what: str) -> None:
        original = cls.__init__

        @functools.wraps(original)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            device = args[0] if args else kwargs.get(keyword, default)
            code = codes.DEVICE if args or keyword in kwargs else codes.DEFAULT_DEVICE
            if (
                device == "cuda"
                and (found(code, what, "it is silently disabled on an NPU host; give 'npu'") or config.cuda == "alias")
                and config.cuda in ("record", "alias")
            ):
                args, kwargs = (("npu", *args[1:]), kwargs) if args else (args, {**kwargs, keyword: "npu"})
            original(self, *args, **kwargs)

        cls.__init__ = init

    on_init(torch.autocast, None, "device_type", "torch.autocast('cuda')")
    on_init(torch.amp.GradScaler, "cuda", "device", "torch.amp.GradScaler for 'cuda', its default device")
    for name in ("custom_fwd", "custom_bwd"):
        _wrap(
            torch.amp,
            name,
            codes.DEVICE,
            f"torch.amp.{name}(device_type='cuda')",
            "give device_type='npu'",
            lambda a, k: k.get("device_type") == "cuda",
        )
    # A question is answered for CUDA, and stops no card.
    for name, level in (("set_autocast_gpu_dtype", "error"), ("get_autocast_gpu_dtype", config.probes)):
        hint = "use torch.npu." + name.replace("_gpu", "")
        _wrap(torch, name, codes.AMP, f"torch.{name}", hint, lambda a, k: True, level)

    original = torch._C.TensorBase.is_cuda

    def is_cuda(self: Any) -> Any:
        frame = sys._getframe(1)
        if not is_user(frame.f_code.co_filename):
            return original.__get__(self)
        report(frame, codes.IS_CUDA, "Tensor.is_cuda", "always False on npu; use Tensor.is_npu", config.probes)
        return self.is_npu if config.cuda in ("record", "alias") else original.__get__(self)

    torch.Tensor.is_cuda = property(is_cuda)
    when_imported("torch.distributed", _guard_distributed)
    when_imported("torch.profiler.profiler", _guard_profiler)
    when_imported("torch.utils.data.dataloader", _guard_loader)


def _guard_distributed(dist: Any) -> None:
    if not dist.is_available():
        return

    record.grouped = False

    def nccl(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return any("nccl" in str(v) for v in (*args[:1], *args[2:4], kwargs.get("backend", "")) if isinstance(v, str))

    alias = config.cuda in ("record", "alias")
    for name in ("init_process_group", "new_group"):
        original = getattr(dist, name)

        def guarded(*args: Any, _original: Any = original, _name: str = name, **kwargs: Any) -> Any:
            record.grouped = True
            if nccl(args, kwargs):
                found(codes.BACKEND, f"{_name} with backend 'nccl'", "use 'hccl'")
                if alias:
                    args = tuple(cuda_alias.backend(v) for v in args)
                    kwargs = {k: cuda_alias.backend(v) if k == "backend" else v for k, v in kwargs.items()}
            return _original(*args, **kwargs)

        setattr(dist, name, functools.wraps(original)(guarded))
    _wrap(
        dist,
        "is_nccl_available",
        codes.NCCL_NAME,
        "torch.distributed.is_nccl_available",
        "it answers no on an NPU host; use is_hccl_available",
        lambda a, k: True,
        config.probes,
    )
    when_imported("torch.distributed.device_mesh", _guard_mesh)


def _guard_mesh(module: Any) -> None:
    owners: tuple[Any, ...] = (module, sys.modules.get("torch.distributed"))
    for owner in owners:
        original = getattr(owner, "init_device_mesh", None)
        if original is None:
            continue

        def guarded(device_type: str, *args: Any, _original: Any = original, **kwargs: Any) -> Any:
            return _original(check_device(device_type, "init_device_mesh"), *args, **kwargs)

        owner.init_device_mesh = functools.wraps(original)(guarded)


def _guard_profiler(module: Any) -> None:
    import torch

    original = module._KinetoProfile.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        activities = kwargs.get("activities") or ()
        if torch.profiler.ProfilerActivity.CUDA in activities:
            found(codes.PROFILER, "ProfilerActivity.CUDA", "nothing is recorded on npu; use torch_npu.profiler")
        original(self, *args, **kwargs)

    module._KinetoProfile.__init__ = init


def _guard_loader(module: Any) -> None:
    original = module.DataLoader.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if "pin_memory_device" in kwargs:
            kwargs["pin_memory_device"] = check_device(kwargs["pin_memory_device"], "DataLoader.pin_memory_device")
        original(self, *args, **kwargs)

    module.DataLoader.__init__ = init


def _guard_environment() -> None:
    original = os._Environ.__setitem__

    def setitem(self: Any, key: Any, value: Any) -> None:
        level = _ENVIRONMENT.get(key) or (
            "info" if isinstance(key, str) and key.startswith(("NCCL_", "TORCH_NCCL_")) else None
        )
        if level is not None and config.cuda != "alias":
            frame = caller()
            if frame is not None:
                report(frame, codes.ENVIRONMENT, f"os.environ[{key!r}] is set", "no NPU program reads it", level)
        original(self, key, value)

    os._Environ.__setitem__ = setitem  # type: ignore[method-assign]
