"""Lightning's Trainer, Fabric and LightningCLI on NPUs."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import distributed

from transplt.helper.ranks import card_kind

__all__ = ["lightning_on_npu"]

Made = TypeVar("Made")

_PACKAGES = ("lightning", "pytorch_lightning", "lightning_fabric")
_KINDS = ("Trainer", "Fabric", "LightningCLI")
_GPUS = ("gpu", "cuda", "auto", "npu")


def lightning_on_npu(make: Callable[..., Made], /, *args: Any, **kwargs: Any) -> Made:
    """`make(*args, **kwargs)`, on the NPU where there is one and it would take a GPU; elsewhere just that.

    `make` is a Trainer, Fabric or LightningCLI, `Trainer.from_argparse_args`, or `super().__init__` of a class that
    derives from one. A strategy that is not DDP or of one device is Lightning's own affair, which may refuse an NPU.

    Source: Lightning 1.8.6 to 2.6.6: accelerator_connector.py, fabric/connector.py and strategies/ddp.py.
    """
    if card_kind() != "npu":
        return make(*args, **kwargs)
    owner = make if inspect.isclass(make) else getattr(make, "__self__", None)
    kind, package = _lightning_of(owner if inspect.isclass(owner) else type(owner))
    parameters = inspect.signature(make).parameters
    if kind == "LightningCLI":
        given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        trainer = given.get("trainer_class", parameters["trainer_class"].default)
        return make(**{**given, "trainer_class": _trainer_class_on_npu(trainer)})
    if inspect.isclass(owner) and make is not owner:  # from_argparse_args makes the trainer itself
        made: Made = getattr(_trainer_class_on_npu(owner), getattr(make, "__name__", ""))(*args, **kwargs)
        return made
    given = {**dict(zip(parameters, args, strict=False)), **kwargs}
    return make(**_lightning_options(kind, package, given, _is_lightning_1(package)))


def _lightning_of(owner: type) -> tuple[str, str]:
    """("Trainer", "lightning.pytorch") of a class of Lightning, or of one that derives from it."""
    for base in owner.__mro__:
        package, _, rest = base.__module__.partition(".")
        if package in _PACKAGES and base.__name__ in _KINDS:
            inner = rest.partition(".")[0] if package == "lightning" else ""
            return base.__name__, f"lightning.{inner}" if inner in ("pytorch", "fabric") else package
    raise TypeError(f"{owner!r} is no Trainer, Fabric or LightningCLI of Lightning")


def _trainer_class_on_npu(trainer: type) -> type:
    """A class that makes objects of another one, for who makes the trainer out of its options later."""
    kind, package = _lightning_of(trainer)
    older = _is_lightning_1(package)
    own = trainer.__init__  # type: ignore[misc]

    @functools.wraps(own)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(inspect.signature(trainer).parameters, args, strict=False)), **kwargs}
        own(self, **_lightning_options(kind, package, given, older))
        self.__class__ = trainer

    return type(trainer.__name__, (trainer,), {"__init__": init, "__module__": trainer.__module__})


def _is_lightning_1(package: str) -> bool:
    """True for Lightning 1, which has `gpus`, and takes the CPU where it is told no accelerator."""
    return str(importlib.import_module(package.partition(".")[0]).__version__).startswith("1.")


def _lightning_options(kind: str, package: str, options: dict[str, Any], older: bool) -> dict[str, Any]:
    """The options of a Trainer or Fabric as they are for NPUs; `older`: those of Lightning 1."""
    options = {**options, **_options_of_the_command(kind, options)}
    accelerator = options.get("accelerator", None if older else "auto")
    gpus = options.get("gpus") if older and options.get("gpus") not in (0, "0", "", []) else None
    if accelerator is None and gpus is not None:
        accelerator = "gpu"
    strategy = options.get("strategy")
    taken = [getattr(strategy, name, None) for name in ("_accelerator", "parallel_devices")]
    if not isinstance(accelerator, str) or accelerator not in _GPUS or any(taken):
        return options
    accelerator = _npu_accelerator(package)
    cards = accelerator.parse_devices(options.get("devices") if gpus is None else gpus)
    several = len(cards) > 1 or int(options.get("num_nodes") or 1) > 1
    strategy = _npu_strategy(package, strategy, cards, several, older)
    options = {**options, "accelerator": accelerator, "devices": cards, "strategy": strategy}
    for name in ("gpus", "auto_select_gpus"):
        options.pop(name, None)
    if options.get("amp_backend") in (None, "native"):
        options |= _npu_precision(package, options, older)
    return options


def _options_of_the_command(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options that the environment has: PL_TRAINER_DEVICES for a Trainer, LT_DEVICES by `fabric run` for a Fabric."""
    found = {}
    for name in ("accelerator", "strategy", "devices", "num_nodes", "precision"):
        if kind == "Fabric" and os.environ.get("LT_CLI_USED") == "1":
            value = os.environ.pop(f"LT_{name.upper()}", None)  # Fabric takes it for a contradiction from here on
        else:
            value = os.environ.get(f"PL_TRAINER_{name.upper()}") if kind == "Trainer" and name not in given else None
        if value is not None:
            found[name] = value
    return found


@functools.lru_cache(8)
def _npu_accelerator_class(package: str) -> Any:
    base: Any = importlib.import_module(f"{package}.accelerators").Accelerator

    class NPUAccelerator(base):  # type: ignore[misc]
        """The accelerator of NPUs."""

        def setup_device(self, device: torch.device) -> None:
            torch.npu.set_device(device)

        def get_device_stats(self, device: Any) -> dict[str, Any]:
            return dict(torch.npu.memory_stats(device))

        def teardown(self) -> None:
            torch.npu.empty_cache()

        @staticmethod
        def parse_devices(devices: Any) -> list[int]:
            return _cards_of(devices)

        @staticmethod
        def get_parallel_devices(devices: list[int]) -> list[torch.device]:
            return [torch.device("npu", index) for index in devices]

        @staticmethod
        def auto_device_count() -> int:
            return int(torch.npu.device_count())

        @staticmethod
        def is_available() -> bool:
            return bool(torch.npu.is_available())

        @staticmethod
        def name() -> str:
            return "npu"

        def __reduce__(self) -> tuple[Any, ...]:
            return _npu_accelerator, (package,)

    return NPUAccelerator


def _npu_accelerator(package: str) -> Any:
    return _npu_accelerator_class(package)()


def _cards_of(devices: Any) -> list[int]:
    """The cards that `devices` of Lightning asks for: 2, "2", -1, "auto", [0, 1], "0,1", "1,"."""
    there = int(torch.npu.device_count())
    if isinstance(devices, str):
        text = devices.strip()
        devices = [int(each) for each in text.split(",") if each.strip()] if "," in text else text
        if isinstance(devices, str):
            devices = -1 if text in ("auto", "-1") else int(text)
    if devices is None or devices == -1:
        devices = there
    cards = list(range(devices)) if isinstance(devices, int) else list(devices)
    if not cards:
        raise ValueError(f"devices={devices!r} asks for no card")
    launched = "TORCHELASTIC_RUN_ID" in os.environ and there == 1  # each process may see its own card alone
    if not launched and (len({*cards}) < len(cards) or not {*cards} <= {*range(there)}):
        raise ValueError(f"devices={devices!r} asks for the cards {cards}; this machine has {there}")
    return cards


def _npu_strategy(package: str, strategy: Any, cards: list[int], several: bool, older: bool) -> Any:
    """The strategy for some cards: that which Lightning would choose, with the collectives of HCCL."""
    module = importlib.import_module(f"{package}.strategies")
    if strategy in (None, "auto") and not several:
        strategy = "single_device"
    elif strategy in (None, "auto"):
        strategy = "ddp_spawn" if older and strategy is None and len(cards) > 1 else "ddp"
    if isinstance(strategy, str):
        registry = getattr(module, "StrategyRegistry", None) or module.STRATEGY_REGISTRY
        name = strategy.lower()
        if name == "single_device":
            return module.SingleDeviceStrategy(device=torch.device("npu", cards[0]))
        if name not in registry:
            return strategy
        row = registry[name]
        kinds = tuple(getattr(module, each) for each in ("DDPStrategy", "DDPSpawnStrategy") if hasattr(module, each))
        if row["strategy"] not in kinds:
            raise ValueError(f"strategy={strategy!r} of Lightning takes no NPU: take 'ddp', or one device")
        strategy = row["strategy"](**row["init_params"])
    if hasattr(strategy, "_process_group_backend") and hasattr(strategy, "_ddp_kwargs"):
        if strategy._process_group_backend in (None, "nccl"):
            strategy._process_group_backend = "hccl"
        kind: Any = type(strategy)
        strategy.__class__ = _ddp_class_on_npu(kind)
    return strategy


@functools.lru_cache(8)
def _ddp_class_on_npu(kind: Any) -> Any:
    """A class of Lightning's DDP strategies, without what it does for CUDA alone."""

    class DDPOnNPU(kind):  # type: ignore[misc]
        """DDP on NPUs."""

        def determine_ddp_device_ids(self) -> None:
            """With card numbers Lightning 2 wraps a model on a stream of CUDA; one on its card needs none."""

        _determine_ddp_device_ids = determine_ddp_device_ids

        def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
            return _mean_by_sum(super().reduce, tensor, group, reduce_op)

        def all_reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
            return _mean_by_sum(super().all_reduce, tensor, group, reduce_op)

        def _register_ddp_hooks(self) -> None:
            """The hook of the communication, which Lightning registers on CUDA alone."""
            if (hook := self._ddp_comm_hook) is not None:
                hook = self._ddp_comm_wrapper(hook) if self._ddp_comm_wrapper else hook
                self.model.register_comm_hook(state=self._ddp_comm_state, hook=hook)

        def __reduce__(self) -> tuple[Any, ...]:
            return _new_ddp_on_npu, (kind,), self.__dict__

    DDPOnNPU.__name__ = DDPOnNPU.__qualname__ = kind.__name__
    return DDPOnNPU


def _new_ddp_on_npu(kind: Any) -> Any:
    made = _ddp_class_on_npu(kind)
    return made.__new__(made)


def _mean_by_sum(own: Callable[..., Any], tensor: Any, group: Any, reduce_op: Any) -> Any:
    """A reduction over the ranks; HCCL has no mean, and a sum of integers cannot be divided in place."""
    mean = torch.is_tensor(tensor) and distributed.is_initialized() and str(reduce_op).lower() in ("mean", "avg")
    result = own(tensor, group, "sum" if mean else reduce_op)
    return result.copy_(result / distributed.get_world_size(group)) if mean else result


def _npu_precision(package: str, options: Mapping[str, Any], older: bool) -> dict[str, Any]:
    """The plugin of mixed precision that autocasts and scales on the NPU, in the place of `precision`."""
    wanted = str(options.get("precision") or "")
    plugins = options.get("plugins") or []
    plugins = [*plugins] if isinstance(plugins, (list, tuple)) else [plugins]
    module = importlib.import_module(f"{package}.plugins")
    base = getattr(module, "Precision", None) or module.PrecisionPlugin
    strategy = options.get("strategy")
    own = any(getattr(strategy, name, None) for name in ("_precision_plugin", "_precision"))
    if wanted not in ("16", "16-mixed", "bf16", "bf16-mixed") or own or any(isinstance(each, base) for each in plugins):
        return {}
    names = ("MixedPrecision", "MixedPrecisionPlugin", "NativeMixedPrecisionPlugin")
    plugin = next(getattr(module, name) for name in names if hasattr(module, name))
    kind = wanted.removesuffix("-mixed")
    scaler = _npu_scaler() if kind == "16" else None
    made = plugin(kind if older else f"{kind}-mixed", "npu", scaler)
    return {"precision": 32 if older else None, "plugins": [*plugins, made]}


def _npu_scaler() -> Any:
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("npu")
    return torch.npu.amp.GradScaler()  # torch before 2.3
