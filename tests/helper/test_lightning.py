"""lightning_on_npu(): options of Trainer and Fabric, against classes of Lightning's published signatures."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from transplt.helper import lightning  # noqa: E402

pytestmark = pytest.mark.torch


class Accelerator:
    """Of lightning.pytorch.accelerators."""


class SingleDeviceStrategy:
    def __init__(self, device: Any) -> None:
        self.device = device


class DDPStrategy:
    def __init__(self, process_group_backend: str | None = None, start_method: str = "popen", **kwargs: Any) -> None:
        self._process_group_backend, self._start_method, self._ddp_kwargs = process_group_backend, start_method, kwargs
        self._ddp_comm_hook = self._accelerator = self.parallel_devices = None

    def determine_ddp_device_ids(self) -> list[int]:
        return [0]

    def reduce(self, tensor: Any, group: Any = None, reduce_op: Any = "mean") -> Any:
        return tensor, reduce_op


class FSDPStrategy:
    pass


class Precision:
    pass


class MixedPrecision(Precision):
    def __init__(self, precision: str, device: str, scaler: Any = None) -> None:
        self.precision, self.device, self.scaler = precision, device, scaler


class Trainer:
    def __init__(
        self, logger: Any = None, *, accelerator: Any = "auto", strategy: Any = "auto", devices: Any = "auto",
        num_nodes: int = 1, precision: Any = None, plugins: Any = None, gpus: Any = None, max_epochs: int = 1,
    ) -> None:  # fmt: skip
        self.given = {name: value for name, value in locals().items() if name != "self"}

    @classmethod
    def from_argparse_args(cls, args: Any, **kwargs: Any) -> Trainer:
        return cls(**{**vars(args), **kwargs})


class LightningCLI:
    def __init__(self, model: Any, trainer_class: Any = Trainer) -> None:
        self.trainer = trainer_class(max_epochs=3)


@pytest.fixture(params=["2.6.6", "1.9.5"])
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Packages `pytorch_lightning` of a version, on a machine with four NPUs."""
    registry = {
        "ddp": {"strategy": DDPStrategy, "init_params": {}},
        "ddp_spawn": {"strategy": DDPStrategy, "init_params": {"start_method": "spawn"}},
        "ddp_find_unused_parameters_true": {
            "strategy": DDPStrategy, "init_params": {"find_unused_parameters": True},
        },
        "fsdp": {"strategy": FSDPStrategy, "init_params": {}},
    }  # fmt: skip
    contents: dict[str, dict[str, Any]] = {
        "": {"__version__": request.param},
        ".accelerators": {"Accelerator": Accelerator},
        ".strategies": {
            "SingleDeviceStrategy": SingleDeviceStrategy, "DDPStrategy": DDPStrategy, "StrategyRegistry": registry,
        },
        ".plugins": {"Precision": Precision, "MixedPrecision": MixedPrecision},
    }  # fmt: skip
    for name, content in contents.items():
        module = ModuleType(f"pytorch_lightning{name}")
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    for made in (Trainer, LightningCLI):
        monkeypatch.setattr(made, "__module__", "pytorch_lightning.trainer.trainer")
    host(monkeypatch, cards=4)
    lightning._npu_accelerator_class.cache_clear()
    return str(request.param)


def host(monkeypatch: pytest.MonkeyPatch, cards: int) -> None:
    """A machine with some NPUs."""
    npu = SimpleNamespace(is_available=lambda: cards > 0, device_count=lambda: cards, set_device=lambda device: None)
    monkeypatch.setattr(torch, "npu", npu, raising=False)
    # A plain torch knows the device npu under the name that it has for others alone.
    monkeypatch.setattr(torch, "device", lambda kind, index=None: f"{kind}:{index}")
    monkeypatch.setattr(lightning, "_npu_scaler", lambda: "scaler")


def options(**given: Any) -> dict[str, Any]:
    return dict(lightning.lightning_on_npu(Trainer, **given).given)


def test_without_an_npu_it_is_the_call_itself(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host(monkeypatch, cards=0)
    assert options(accelerator="gpu", devices=2, precision=16)["accelerator"] == "gpu"


@pytest.mark.parametrize(
    ("devices", "cards"),
    [(1, [0]), ("2", [0, 1]), ("0,2", [0, 2]), ("1,", [1]), ([3], [3]), (-1, [0, 1, 2, 3]), ("auto", [0, 1, 2, 3])],
)
def test_devices_in_all_forms(version: str, devices: Any, cards: list[int]) -> None:
    found = options(accelerator="gpu", devices=devices)
    assert found["devices"] == cards
    assert isinstance(found["accelerator"], Accelerator)
    if len(cards) == 1:
        assert found["strategy"].device == f"npu:{cards[0]}"
    else:
        assert found["strategy"]._process_group_backend == "hccl"


@pytest.mark.parametrize("devices", [5, "0,9", [1, 1], []])
def test_cards_that_are_not_there(version: str, devices: Any) -> None:
    with pytest.raises(ValueError, match="asks for"):
        options(accelerator="gpu", devices=devices)


def test_who_asks_for_no_gpu_gets_none(version: str) -> None:
    assert options(accelerator="cpu", devices=2)["devices"] == 2
    assert options(accelerator="gpu", strategy=SimpleNamespace(parallel_devices=["cpu"]))["accelerator"] == "gpu"
    if version.startswith("1"):
        assert options(max_epochs=3)["accelerator"] == "auto"  # the default: nothing was given
    else:
        assert isinstance(options(max_epochs=3)["accelerator"], Accelerator)


def test_gpus_of_lightning_1(version: str) -> None:
    found = options(gpus=2) if version.startswith("1") else options(accelerator="gpu", devices=2)
    assert found["devices"] == [0, 1] and found["gpus"] is None
    if version.startswith("1"):
        assert found["strategy"]._start_method == "spawn"
        assert options(gpus=0)["devices"] == "auto"


def test_strategies(version: str) -> None:
    found = options(accelerator="gpu", devices=2, strategy="ddp_find_unused_parameters_true")["strategy"]
    assert found._ddp_kwargs == {"find_unused_parameters": True} and found.determine_ddp_device_ids() is None
    assert isinstance(found, DDPStrategy) and type(found).__name__ == "DDPStrategy"
    own = DDPStrategy(process_group_backend="gloo")
    assert options(accelerator="gpu", devices=2, strategy=own)["strategy"] is own
    assert own._process_group_backend == "gloo" and own.reduce(1, reduce_op="max") == (1, "max")
    other = FSDPStrategy()
    assert options(accelerator="gpu", devices=2, strategy=other)["strategy"] is other
    with pytest.raises(ValueError, match="fsdp"):
        options(accelerator="gpu", devices=2, strategy="fsdp")


def test_what_is_sent_to_other_processes(version: str) -> None:
    found = options(accelerator="gpu", devices=2)
    again = pickle.loads(pickle.dumps(found["strategy"]))
    assert again._process_group_backend == "hccl" and again.determine_ddp_device_ids() is None
    assert isinstance(pickle.loads(pickle.dumps(found["accelerator"])), Accelerator)


@pytest.mark.parametrize("precision", [16, "16", "16-mixed", "bf16", "bf16-mixed"])
def test_mixed_precision(version: str, precision: Any) -> None:
    found = options(accelerator="gpu", devices=1, precision=precision, plugins="other")
    plugin = found["plugins"][1]
    kind = str(precision).removesuffix("-mixed")
    assert found["plugins"][0] == "other" and plugin.device == "npu"
    assert plugin.scaler == ("scaler" if kind == "16" else None)
    assert plugin.precision == (kind if version.startswith("1") else f"{kind}-mixed")
    assert found["precision"] == (32 if version.startswith("1") else None)


def test_other_precision_stays(version: str) -> None:
    assert options(accelerator="gpu", devices=1, precision="bf16-true")["precision"] == "bf16-true"
    own = MixedPrecision("16-mixed", "npu")
    assert options(accelerator="gpu", devices=1, plugins=[own])["plugins"] == [own]


def test_who_makes_a_trainer_later(version: str) -> None:
    args = SimpleNamespace(accelerator="gpu", devices="1")
    made = lightning.lightning_on_npu(Trainer.from_argparse_args, args, max_epochs=2)
    assert type(made) is Trainer and made.given["devices"] == [0] and made.given["max_epochs"] == 2
    command = lightning.lightning_on_npu(LightningCLI, "model")
    assert type(command.trainer) is Trainer
    if not version.startswith("1"):
        assert command.trainer.given["devices"] == [0, 1, 2, 3]


def test_a_class_that_derives(version: str) -> None:
    class Own(Trainer):
        def __init__(self, epochs: int) -> None:
            lightning.lightning_on_npu(super().__init__, max_epochs=epochs, accelerator="gpu", devices=1)

    assert Own(3).given["devices"] == [0]


def test_options_of_the_environment(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_TRAINER_ACCELERATOR", "cpu")
    assert options(max_epochs=1)["accelerator"] == "cpu"
    assert isinstance(options(accelerator="gpu", devices=1)["accelerator"], Accelerator)


def test_something_else_is_told(version: str) -> None:
    with pytest.raises(TypeError, match="Lightning"):
        lightning.lightning_on_npu(dict)
