"""Under which key the state of mixed precision goes into checkpoints: one that nothing else of the program has."""

from __future__ import annotations

import pytest

from tests.harness import migrate

SOURCE = """\
import torch
from project import loader, net, args, normal

model = net.to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{load}
for x in loader:
    optimizer.zero_grad()
    loss = model(x)
    loss.backward()
    optimizer.step()
{save}
"""
LOAD = 'state = torch.load("x.pt")\noptimizer.load_state_dict(state["optimizer"])'
SAVE = 'torch.save({"optimizer": optimizer.state_dict()}, "x.pt")'
#: (loads, saves, the key of the scaler)
KEYS = [
    (LOAD, SAVE, "scaler"),
    (LOAD, SAVE.replace("}", ', "epoch": 1}'), "scaler"),
    # a key that the program writes with something else
    (LOAD, SAVE.replace("}", ', "scaler": normal.mean}'), "grad_scaler"),
    (LOAD, SAVE.replace("}", ', "scaler": normal.state_dict()}'), "grad_scaler"),
    (LOAD, SAVE.replace("}", ', "scaler": 1, "grad_scaler": 2}'), "grad_scaler_2"),
    (LOAD, 'torch.save(dict(optimizer=optimizer.state_dict(), scaler=normal), "x.pt")', "grad_scaler"),
    (LOAD, 'kept = {}\nkept["optimizer"] = optimizer.state_dict()\nkept["scaler"] = normal', "grad_scaler"),
    (LOAD, 'kept = {"scaler": normal}\nkept["optimizer"] = optimizer.state_dict()', "grad_scaler"),
    # one that it reads
    (f'{LOAD}\nnormal.scaler = state["scaler"]', SAVE, "grad_scaler"),
    (f'{LOAD}\nnormal.scaler = state.get("scaler", 1)', SAVE, "grad_scaler"),
    # what is no checkpoint
    (LOAD, f'{SAVE}\nprint({{"scaler": args.scaler}}, args["scaler"], args.get("scaler"))', "scaler"),
]


@pytest.mark.parametrize(("load", "save", "key"), KEYS)
def test_the_key_of_the_scaler(load: str, save: str, key: str) -> None:
    text = migrate(SOURCE.format(load=load, save=save), amp="native").data.decode()
    words = ("scaler.load_state_dict", "scaler.state_dict")
    first, *_, last = (line for line in text.split("\n") if any(word in line for word in words))
    assert first == f'    scaler.load_state_dict(state["{key}"])'
    assert f'if "{key}" in state:\n{first}\n' in text
    assert any(f"{form}scaler.state_dict()" in last for form in (f'"{key}": ', f"{key}=", f'["{key}"] = '))


def test_the_key_of_amp() -> None:
    source = SOURCE.format(load=LOAD, save=SAVE.replace("}", ', "amp": args.amp}'))
    text = migrate(source, amp="apex").data.decode()
    assert 'if "amp_state" in state:\n    amp.load_state_dict(state["amp_state"])\n' in text
    assert '"optimizer": optimizer.state_dict(), "amp_state": amp.state_dict(), "amp": args.amp}' in text


def test_a_key_that_another_file_of_the_program_writes() -> None:
    other = """\
        import torch
        import train

        torch.save({"optimizer": train.optimizer.state_dict(), "scaler": 3}, "x.pt")
        """
    text = migrate(SOURCE.format(load=LOAD, save=""), amp="native", files={"other.py": other}).data.decode()
    assert 'scaler.load_state_dict(state["grad_scaler"])' in text


def test_files_that_have_nothing_to_do_with_the_program_do_not_count() -> None:
    other = 'import torch\n\ntorch.save({"optimizer": x.state_dict(), "scaler": 3}, "x.pt")\n'
    text = migrate(SOURCE.format(load=LOAD, save=SAVE), amp="native", files={"other.py": other}).data.decode()
    assert 'scaler.load_state_dict(state["scaler"])' in text


TWO = """\
import torch
from project import G, D, loader, criterion

netG = G().to("npu")
netD = D().to("npu")
optD = torch.optim.Adam(netD.parameters())
optG = torch.optim.Adam(netG.parameters())
for x in loader:
    optD.zero_grad()
    errD = criterion(netD(x))
    errD.backward()
    optD.step()
    optG.zero_grad()
    errG = criterion(netD(netG(x)))
    errG.backward()
    optG.step()
"""


#: What saves the states of two optimizers; ROWS stands for what goes in, written in the way of each.
SAVES = [
    ('torch.save({"D": optD.state_dict(), "G": optG.state_dict(), ROWS"net": netG.state_dict()}, "x")\n', '"{}": {}, '),
    ('torch.save(dict(D=optD.state_dict(), G=optG.state_dict()ROWS), "x")\n', ", {}={}"),
    ('state = {}\nstate["D"] = optD.state_dict()\nstate["G"] = optG.state_dict()\nROWS', 'state["{}"] = {}\n'),
]


def saved(after: str, row: str, **states: str) -> str:
    return after.replace("ROWS", "".join(row.format(key, f"{name}.state_dict()") for key, name in states.items()))


@pytest.mark.parametrize(("after", "row"), SAVES)
def test_one_state_beside_those_of_several_optimizers(after: str, row: str) -> None:
    text = migrate(TWO + saved(after, row), amp="apex").data.decode()
    assert text.endswith(saved(after, row, amp="amp"))


@pytest.mark.parametrize(("after", "row"), SAVES)
def test_one_scaler_of_several_optimizers(after: str, row: str) -> None:
    """Nothing sets the gradients to zero that the other's backward pass leaves: they share a scaler."""
    source = TWO.replace("    optG.zero_grad()\n", "") + saved(after, row)
    assert migrate(source, amp="native").data.decode().endswith(saved(after, row, scaler="scaler"))


@pytest.mark.parametrize(("after", "row"), SAVES)
def test_several_scalers_go_by_their_names(after: str, row: str) -> None:
    text = migrate(TWO + saved(after, row), amp="native").data.decode()
    assert text.endswith(saved(after, row, scaler_d="scaler_d", scaler_g="scaler_g"))


def test_a_name_of_a_scaler_that_is_a_key_of_the_program() -> None:
    source = TWO + 'torch.save({"D": optD.state_dict(), "G": optG.state_dict(), "scaler_d": 3}, "x")\n'
    rows = '"scaler_d_state": scaler_d.state_dict(), "scaler_g": scaler_g.state_dict(), "scaler_d": 3}'
    assert rows in migrate(source, amp="native").data.decode()


@pytest.mark.parametrize("amp", ["native", "apex"])
def test_functions_that_load_by_themselves(amp: str) -> None:
    load = 'def {name}(state):\n    optimizer.load_state_dict(state["optimizer"])\n\n\n'
    source = SOURCE.format(load=load.format(name="one") + load.format(name="two"), save="")
    assert migrate(source, amp=amp).data.decode().count(".load_state_dict(state[") == 4
