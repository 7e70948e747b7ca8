"""Arguments of DistributedDataParallel: buffers that need not be sent, gradients that need not be copied."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "ddp-arguments"
SCRIPT = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.fc = nn.Linear(size, size)
        {buffer}

    def forward(self, x):
        {use}
        return self.fc(x)


def main(rank):
    model = {model}
    {wrap}
"""
WRAP = "model = DDP(model, device_ids=[rank]{})"
SYNC = ", forward_sync_buffers=False"
VIEW = ", gradient_as_bucket_view=True"
BUFFER = 'self.register_buffer("mask", torch.ones(size))'


def script(arguments: str = "", buffer: str = BUFFER, use: str = "x = x * self.mask", model: str = "Net(8)") -> str:
    return SCRIPT.format(buffer=buffer, use=use, model=model, wrap=WRAP.format(arguments))


def trained(arguments: str = "", optimizer: str = "torch.optim.SGD(model.parameters())", more: str = "pass") -> str:
    """A model without buffers: only the gradients are looked at."""
    after = f"optimizer = {optimizer}\n    {more}"
    return SCRIPT.format(buffer="pass", use="pass", model="Net(8)", wrap=WRAP.format(arguments) + "\n    " + after)


# --- buffers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "argument"),
    [("2.1", "broadcast_buffers"), ("2.12", "broadcast_buffers"), ("2.13", "forward_sync_buffers")],
)
def test_constant_buffers(version: str, argument: str) -> None:
    check_tuned(TUNE, script(), script(f", {argument}=False"), torch_version=version)


@pytest.mark.parametrize("model", ["Net(8).to(rank)", "torch.compile(Net(8))", "nn.Sequential(Net(8), nn.ReLU())"])
def test_models_of_the_program(model: str) -> None:
    open_codes = ["NPU512"] if "compile" in model else []
    check_tuned(TUNE, script(model=model), script(SYNC, model=model), open_codes=open_codes)


@pytest.mark.parametrize(
    "buffer",
    [
        'self.register_buffer("mask", torch.rand(size))',
        'self.register_buffer("mask", np.load("mask.npy"))',
        'start = torch.randn(size)\n        self.register_buffer("mask", start)',
        'self.register_buffer("mask", torch.empty(size))',
    ],
)
def test_buffers_that_every_rank_makes_in_its_own_way(buffer: str) -> None:
    """Before torch 2.13 nothing sends them from rank 0 when the argument is given."""
    check_untuned(TUNE, script(buffer=buffer), open_codes=["NPU755"], torch_version="2.12")
    check_tuned(TUNE, script(buffer=buffer), script(SYNC, buffer=buffer), torch_version="2.13")


@pytest.mark.parametrize(
    ("buffer", "use"),
    [
        (BUFFER, "self.mask = x"),
        (BUFFER, "self.mask += 1"),
        (BUFFER, "self.mask[0] = 1"),
        (BUFFER, "self.mask.mul_(2)"),
        (BUFFER, "self.mask[0].copy_(x)"),
        (BUFFER, "self.mask.data = x"),
        (BUFFER, "torch.mul(x, 2, out=self.mask)"),
        ("self.norm = nn.BatchNorm1d(size)", "x = self.norm(x)"),
        ("self.norm = nn.utils.spectral_norm(nn.Linear(size, size))", "x = self.norm(x)"),
        ("for name in 'ab':\n            self.register_buffer(name, torch.ones(1))", "pass"),
        ("self.mask = nn.Buffer(torch.ones(1))", "pass"),
    ],
)
def test_buffers_that_change(buffer: str, use: str) -> None:
    check_untuned(TUNE, script(buffer=buffer, use=use), open_codes=["NPU755"])


@pytest.mark.parametrize(
    "arguments", [", broadcast_buffers=True", ", broadcast_buffers=False", ", forward_sync_buffers=True", ", **{}"]
)
def test_what_is_said_stays(arguments: str) -> None:
    check_untuned(TUNE, script(arguments))


@pytest.mark.parametrize("model", ["make(8)", "torch.hub.load('a', 'b')", "[Net(8)][0]"])
def test_models_that_nobody_sees(model: str) -> None:
    check_untuned(TUNE, script(model=model), open_codes=["NPU755"])


def test_a_model_of_a_file_that_says_nothing_of_training() -> None:
    source = script()
    layers = source[: source.index("\n\ndef main")]
    train = source.replace(source[source.index("class Net") : source.index("def main")], "")
    train = train.replace("from torch import nn\n", "from layers import Net\n")
    layers = layers.replace("from torch.nn.parallel import DistributedDataParallel as DDP\n", "")
    check_tuned(TUNE, train, train.replace("[rank]", f"[rank]{SYNC}"), files={"layers.py": layers})
    changed = layers.replace("x = x *", "self.mask += 1\n        x = x *")
    check_untuned(TUNE, train, files={"layers.py": changed}, open_codes=["NPU755"])


def test_models_of_libraries() -> None:
    source = script(model="torchvision.models.resnet18()").replace(
        "import torch\n", "import torch\nimport torchvision\n"
    )
    check_untuned(TUNE, source, open_codes=["NPU755"])


def test_models_without_buffers() -> None:
    """There is nothing to send."""
    check_untuned(TUNE, script(buffer="pass", use="pass"))


CONVERTED = "nn.SyncBatchNorm.convert_sync_batchnorm"


def test_statistics_that_are_kept_alike() -> None:
    norm = "self.norm = nn.BatchNorm1d(size)"
    model = f"{CONVERTED}(Net(8))"
    check_tuned(TUNE, script(buffer=norm, model=model), script(SYNC, buffer=norm, model=model))


@pytest.mark.parametrize("test", ["if rank:", "for _ in range(rank):"])
def test_statistics_that_may_be_kept_alike(test: str) -> None:
    model = f"Net(8)\n    {test}\n        model = {CONVERTED}(model)"
    check_untuned(TUNE, script(buffer="self.norm = nn.BatchNorm1d(size)", model=model), open_codes=["NPU755"])


def test_a_checkpoint_that_one_rank_loads() -> None:
    model = f"{CONVERTED}(Net(8))\n    if rank == 0:\n        model.load_state_dict(state)"
    source = script(buffer="self.norm = nn.BatchNorm1d(size)", model=model)
    check_untuned(TUNE, source, open_codes=["NPU755"], torch_version="2.12")


# --- gradients -------------------------------------------------------------------------------------------------------


def test_plain_optimizers() -> None:
    check_tuned(TUNE, trained(), trained(VIEW))


@pytest.mark.parametrize(
    "optimizer",
    ["torch_npu.optim.NpuFusedSGD(model.parameters())", "make_optimizer(model)", "Lion(model.parameters())"],
)
def test_optimizers_that_may_move_gradients(optimizer: str) -> None:
    check_untuned(TUNE, trained(optimizer=optimizer))


def test_optimizers_of_packages_may_move_gradients() -> None:
    source = trained(optimizer="adabelief_pytorch.AdaBelief(model.parameters())")
    check_untuned(TUNE, source.replace("import torch\n", "import adabelief_pytorch\nimport torch\n", 1))


@pytest.mark.parametrize(
    "optimizer", ["getattr(torch.optim, name)(model.parameters())", "torch.optim.RAdam(params=model.parameters())"]
)
def test_optimizers_of_torch_leave_gradients_in_their_place(optimizer: str) -> None:
    check_tuned(TUNE, trained(optimizer=optimizer), trained(VIEW, optimizer=optimizer))


@pytest.mark.parametrize(
    "more",
    [
        "construct('torch.optim.Adam', params=model.parameters())",
        "model.fc.weight.grad = None",
        "model.fc.weight.grad.detach_()",
        "model.fc.weight.grad.data.zero_()",
    ],
)
def test_gradients_that_the_script_handles(more: str) -> None:
    check_untuned(TUNE, trained(more=more))


@pytest.mark.parametrize("arguments", [", gradient_as_bucket_view=False", ", **{}"])
def test_what_is_said_of_gradients_stays(arguments: str) -> None:
    check_untuned(TUNE, trained(arguments))


def test_fused_optimizers_come_first() -> None:
    """What they pack takes the size of the bucket for that of a gradient."""
    chosen = (("ddp-arguments", ""), ("fused-optimizer", ""))
    result = migrate(trained(more="for x in range(3):\n        optimizer.step()"), tune=chosen)
    assert b"gradient_as_bucket_view" not in result.data


def test_other_classes_of_that_name() -> None:
    check_untuned(TUNE, trained().replace("torch.nn.parallel", "project.parallel"))
