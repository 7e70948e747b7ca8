"""What goes to its card: models behind their optimizers, and cards that a program chooses by a number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.running import launched, migrated
from tests.distributed.test_pairs import distributed, left, output, script

RANK = "torch.npu.current_device()"
PROGRAM = Path(__file__).parent / "programs" / "moved.py"


@pytest.mark.torch
@pytest.mark.xdist_group("distributed_cards")
@pytest.mark.parametrize("loss", ["model.energy(x.cuda())", "model(x.cuda()).mean()"])
def test_a_model_that_goes_to_its_card_late(loss: str, tmp_path: Path) -> None:
    """Without a wrapper, and with one: HCCL takes nothing that lies on the CPU."""
    source = tmp_path / "train.py"
    source.write_text(PROGRAM.read_text().replace("model.energy(x.cuda())", loss))
    folder = migrated(source, tmp_path / "out", "distributed", "-m", str(source))
    found = (folder / "train.py").read_text()
    # A single file has the functions in it.
    assert ("\n    model = wrap(model.to(card()))\n" in found) is ("energy" not in loss)
    assert ("\n    alike(optimizer)\n" in found) is ("energy" in loss)
    assert launched(folder, 2).count("done") == 1


@pytest.mark.parametrize(
    "model",
    [
        "model = net()\nmodel.to(device)",
        "model = net()\nif torch.cuda.is_available():\n    model.cuda()",
        "model = net().to(device).train()",
        "model = net().to(device)\nmodel = torch.nn.DataParallel(model)",
        "model = torch.nn.DataParallel(net().to(device))",
    ],
)
def test_a_model_that_is_moved_before_is_wrapped_where_it_is(model: str) -> None:
    """Which is the CPU, where the device is an option."""
    found = output(script(head="device = torch.device(net.device)\nx = net.x.to(device)", model=model))
    assert "model = npu_port.wrap(" in found and found.count("npu()") == model.count("cuda()")
    assert "npu_port.card()" not in found


@pytest.mark.parametrize(
    ("model", "after"),
    [
        ("model = net()", "model.to(CARD))"),
        ("model = torch.nn.DataParallel(net())", "net().to(CARD))"),
        ("model = torch.nn.DataParallel(net() or 0)", "(net() or 0).to(CARD))"),
        ("model = torch.nn.DataParallel(net()).to(device)", "net().to(CARD)).to(device)"),
        ("model = net()\nmodel.head.cuda()", "model.to(CARD))\nmodel.module.head.npu()"),
        # Nobody looks into the function.
        ("def built():\n    return net().cuda()\n\nmodel = built()", "model.to(CARD))"),
    ],
)
def test_one_that_is_not_goes_to_the_card_of_the_rank(model: str, after: str) -> None:
    found = output(script(head="device = torch.device(net.device)\nx = net.x.to(device)", model=model))
    assert f"model = npu_port.wrap({after.replace('CARD', 'npu_port.card()')}\noptimizer = " in found


@pytest.mark.parametrize("other", ["torch.float32", "dtype=torch.float32", "'cpu'", "non_blocking=True"])
def test_another_type_is_no_card(other: str) -> None:
    loop = "def train():\n    model.cuda()\n    for x in loader:\n        model(x.cuda()).backward()\n\ntrain()"
    found = output(script(model=f"model = net()\nmodel.to({other})", loop=loop))
    assert f"model = net()\nmodel.to({other})\nmodel = npu_port.wrap(model.to(npu_port.card()))\noptimizer = " in found


def test_a_model_that_a_function_moves_is_on_its_card_when_it_is_wrapped() -> None:
    found = output(script(model="def moved(model):\n    model.cuda()\n\nmodel = net()\nmoved(model)"))
    assert "model = net()\nmodel = npu_port.wrap(model.to(npu_port.card()))\nmoved(model.module)\noptimizer = " in found


def test_an_optimizer_that_not_every_rank_makes() -> None:
    loop = "for x in loader:\n    model.energy(x).backward()\n    optimizer.step()"
    made = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    source = script(head="import time", loop=loop)
    apart = source.replace(made, f"if time.time() % 2 > 1:\n    {made}\nelse:\n    {made}")
    result = distributed(source)
    assert "NPU332" not in left(result) and b"npu_port.alike(optimizer)\n" in result.data
    result = distributed(apart)
    assert "NPU332" in left(result) and b"npu_port.alike(" not in result.data


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with torch.cuda.device(net.gpu):", f"with torch.npu.device({RANK}):"),
        ("with torch.cuda.device(0), torch.no_grad():", f"with torch.npu.device({RANK}), torch.no_grad():"),
        ("with torch.cuda.device(device=net.gpus[0]):", f"with torch.npu.device(device={RANK}):"),
        ("with torch.cuda.device('cuda:0'):", "with torch.npu.device('npu'):"),
        ("with torch.cuda.device(f'cuda:{net.gpu}'):", 'with torch.npu.device("npu"):'),
        (f"with torch.cuda.device({RANK.replace('npu', 'cuda')}):", f"with torch.npu.device({RANK}):"),
        ("with torch.cuda.device(None):", "with torch.npu.device(None):"),
        ("with torch.cuda.device_of(net.x):", "with torch.npu.device_of(net.x):"),
    ],
)
def test_a_block_on_one_card_is_on_that_of_the_rank(before: str, after: str) -> None:
    found = output(script(head=f"{before}\n    x = net.x"))
    assert f"\n{after}\n    x = net.x\n" in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("net.x().cuda(device=net.gpu)", 'net.x().npu(device="npu")'),
        ("net.x.to(0)", 'net.x.to("npu")'),
        ("net.x.to(net.dtype)", "net.x.to(net.dtype)"),
        ("net.x.to(net.y)", "net.x.to(net.y)"),
        ("torch.zeros(1, device=0)", 'torch.zeros(1, device="npu")'),
        ("net.pipeline(device=0)", "net.pipeline(device=0)"),
        ("torch.device(0)", 'torch.device("npu")'),
        ("torch.device('cuda', index=net.gpu)", 'torch.device("npu")'),
        ("torch.device('cpu', index=0)", "torch.device('cpu', index=0)"),
        ("torch.device(net.device)", "torch.device(net.device)"),
    ],
)
def test_a_card_by_its_number_is_that_of_the_rank(before: str, after: str) -> None:
    assert f"\nx = {after}\n" in output(script(head=f"x = {before}"))


@pytest.mark.parametrize("call", ["torch.cuda.device(1)", "net.x.to(1)", "net.x.cuda(device=1)", "torch.device(2)"])
def test_another_card_than_the_first_is_in_the_way(call: str) -> None:
    result = distributed(script(head=f"x = {call}"))
    assert left(result) == ["NPU335"] and b"npu_port" not in result.data
