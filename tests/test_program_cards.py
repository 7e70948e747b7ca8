"""Whether a program puts anything on a card, as its text says."""

from __future__ import annotations

import pytest

from transplt.program.cards import puts_on_card


@pytest.mark.parametrize(
    "texts",
    [
        (b"model = net().cuda()",),
        (b"model = net()", b'device = "cuda" if torch.cuda.is_available() else "cpu"'),
        (b"model.npu()",),
        (b"model = nn.DataParallel(net())",),
        (b"accelerator = Accelerator()",),
        (b"model.to(args.device)",),
        (b'model.to(device)\nstate = torch.load(path, map_location="cpu")',),
    ],
)
def test_on_a_card(texts: tuple[bytes, ...]) -> None:
    assert puts_on_card(texts)


@pytest.mark.parametrize(
    "texts",
    [
        (b"model = net()",),
        (b"mask = mask.to(torch.float32)",),
        (b'model.to("cpu")',),
        (b'device = torch.device("cpu")\nmodel.to(device)',),
        (b'device = "cpu"', b"model.to(device)"),
        (b'parser.add_argument("--device", default="cpu")\nmodel.to(args.device)',),
        (b'device = "mps" if torch.backends.mps.is_available() else "cpu"\nmodel.to(device)',),
        (b'config = {"device": "cpu"}', b"model.to(config.device)"),
    ],
)
def test_not_on_a_card(texts: tuple[bytes, ...]) -> None:
    assert not puts_on_card(texts)
