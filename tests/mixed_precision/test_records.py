"""Each edit of existing code has a record of its own, on the smallest piece that changes."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from transplt.base.finding import FileResult, Operation

HEAD = """\
import torch
from project import net, loader, criterion

model = net.to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    {body}
    optimizer.step()
"""
FUNCTION = """\
import torch
from project import net, loader


def train(model, optimizer: torch.optim.Optimizer, epochs):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()


model = net.to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{call}
"""


def records(result: FileResult, code: str) -> list[tuple[str, str, str]]:
    """(before, after, message) of the edits of existing code, by place; lines and indentation are none."""
    made = [(item.edit, item.message) for item in result.findings if item.edit is not None and item.code == code]
    return [
        (edit.before, edit.after, message)
        for edit, message in made
        if edit.operation is not Operation.INSERT or (edit.after.strip() and "\n" not in edit.after)
    ]


FIRST, OUTSIDE = "the loss is computed first", "the backward pass runs outside autocast"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("criterion(model(x), y).backward()", [("", "loss = ", FIRST), (".backward()", "", OUTSIDE)]),
        ("(criterion(model(x), y) + 1).backward()", [("(", "loss = ", FIRST), (").backward()", "", OUTSIDE)]),
        ("(\n        criterion(model(x), y)\n        + 1\n    ).backward()",
         [("", "loss = ", FIRST), (".backward()", "", OUTSIDE)]),
        ("criterion(model(x), y).backward(retain_graph=True if x is y else False)",
         [("", "loss = ", FIRST), (".backward(retain_graph=True if x is y else False)", "", OUTSIDE)]),
        ("criterion(model(x), y).backward()  # transplt: ignore",
         [("", "loss = ", FIRST), (".backward()", "", OUTSIDE)]),
    ],
)  # fmt: skip
def test_a_loss_in_the_statement_of_its_backward_pass(body: str, expected: list[tuple[str, str, str]]) -> None:
    result = migrate(HEAD.format(body=body), amp="native")
    assert records(result, "NPU740") == expected


def test_edits_of_others_inside_of_the_loss_stay_records_of_their_own() -> None:
    result = migrate(HEAD.format(body="(criterion(model(x.cuda()), y) + 1).backward()"), amp="native")
    assert "loss = criterion(model(x.npu()), y) + 1\n" in result.data.decode()
    assert records(result, "NPU740") == [("(", "loss = ", FIRST), (").backward()", "", OUTSIDE)]


def test_under_apex_brackets_stay_and_the_rest_of_the_call_goes_on_as_it_was() -> None:
    body = "(criterion(model(x), y) + 1).backward(\n        retain_graph=True\n    )"
    source = HEAD.format(body=body).replace("\n", "\r\n")
    result = migrate(source, amp="apex")
    named, gone = "the loss has a name", "the backward pass uses the scaled loss"
    rest = ".backward(\r\n        retain_graph=True\r\n    )"
    assert records(result, "NPU747") == [("", "loss = ", named), (rest, "", gone)]
    assert f"        scaled_loss{rest}\r\n".encode() in result.data


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("loss = criterion(model(x), y)\n    (loss / 4).backward(\n        retain_graph=True\n    )",
         "    scaler.scale(loss / 4).backward(\n        retain_graph=True\n    )\n"),
        ("loss = criterion(model(x), y)\n    ((loss)).backward()", "    scaler.scale((loss)).backward()\n"),
        ("loss = criterion(model(x), y)\n    (  # of two\n        loss / 2\n    ).backward()",
         "    scaler.scale(  # of two\n        loss / 2\n    ).backward()\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_brackets_around_a_loss_become_those_of_the_call(body: str, after: str, newline: str) -> None:
    result = migrate(HEAD.format(body=body).replace("\n", newline), amp="native")
    assert after.replace("\n", newline).encode() in result.data
    assert newline == "\n" or b"\n" not in result.data.replace(b"\r\n", b"")


@pytest.mark.parametrize(
    ("call", "handed"),
    [
        ("train(model, optimizer, 3)", ", scaler"),
        ("train(model, optimizer=optimizer, epochs=3)", ", scaler=scaler"),
        ("train(\n    model,\n    optimizer,\n    3,\n)", ", scaler"),
    ],
)
def test_parameters_and_arguments(call: str, handed: str) -> None:
    result = migrate(FUNCTION.format(call=call), amp="native")
    found = [item for item in records(result, "NPU741") if not item[0]]
    assert found == [("", ", scaler", "train gets the scaler"), ("", handed, "the scaler is passed on")]
    assert "optimizer: torch.optim.Optimizer, scaler, epochs)" in result.data.decode()


def test_an_optimizer_in_brackets_of_its_own_is_handed_over_alone() -> None:
    text = migrate(FUNCTION.format(call="train(model, (optimizer), (3))"), amp="native").data.decode()
    assert "\ntrain(model, (optimizer), (3))\n" in text and "optimizer: torch.optim.Optimizer, epochs):" in text
    assert '\nscaler = torch.amp.GradScaler("npu")\n\n\ndef train(' in text


def test_two_scalers_behind_one_argument_are_one_record() -> None:
    loop = "\n    for x in loader:\n        loss = model(x)\n        loss.backward()\n        optimizer.step()\n\n\n"
    source = (
        "import torch\nfrom project import net, loader\n\n\n"
        f"def g(model, optimizer):{loop}def h(model, optimizer):{loop}"
        "def f(model, opt):\n    g(model, optimizer=opt)\n    h(model, opt)\n\n\n"
        "model = net.to('npu')\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\nf(model, opt=opt)\n"
        "other = torch.optim.SGD(model.parameters(), lr=0.1)\nh(model, other)\n"
    )
    text = migrate(source, amp="native").data.decode()
    assert "def f(model, opt, scaler, grad_scaler):" in text
    assert "f(model, opt=opt, scaler=scaler, grad_scaler=grad_scaler)" in text


KEPT = "the checkpoint keeps the scaler's state"


@pytest.mark.parametrize(
    ("saved", "after"),
    [
        ("{'model': 1, 'optimizer': optimizer.state_dict(), 'epoch': 1}", ", 'scaler': scaler.state_dict()"),
        ('{\n    "optimizer": optimizer.state_dict(),\n    "epoch": 1,\n}', ',\n    "scaler": scaler.state_dict()'),
        ("dict(optimizer=optimizer.state_dict(), epoch=1)", ", scaler=scaler.state_dict()"),
    ],
)
def test_checkpoints(saved: str, after: str) -> None:
    source = HEAD.format(body="loss = model(x)\n    loss.backward()") + f"torch.save({saved}, 'last.pt')\n"
    result = migrate(source, amp="native")
    (item,) = (item for item in result.findings if item.code == "NPU744")
    assert item.edit is not None and item.message == KEPT
    assert (item.edit.operation, item.edit.before, item.edit.after) == (Operation.INSERT, "", after)


def test_a_method_that_keeps_the_optimizer_of_its_object_keeps_the_scaler_too() -> None:
    source = """\
import torch
from project import loader


class Trainer:
    def __init__(self, model):
        self.model = model.to("npu")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for x in loader:
            loss = self.model(x)
            loss.backward()
            self.optimizer.step()

    def save(self):
        torch.save({"optimizer": self.optimizer.state_dict()}, "last.pt")
"""
    text = migrate(source, amp="native").data.decode()
    assert 'torch.save({"optimizer": self.optimizer.state_dict(), "scaler": self.scaler.state_dict()}, ' in text


def test_the_scaler_is_loaded_once_behind_all_optimizers_of_a_checkpoint() -> None:
    source = """\
import torch
from project import G, D, loader, criterion

netG = G().to("npu")
netD = D().to("npu")
optD = torch.optim.Adam(netD.parameters())
optG = torch.optim.Adam(netG.parameters())
state = torch.load("x")
optD.load_state_dict(state["D"])
optG.load_state_dict(state["G"])
for x in loader:
    errD = criterion(netD(x))
    errD.backward()
    optD.step()
    errG = criterion(netD(netG(x)))
    errG.backward()
    optG.step()
"""
    text = migrate(source, amp="native").data.decode()
    loads = 'optD.load_state_dict(state["D"])\noptG.load_state_dict(state["G"])\n'
    assert f'{loads}if "scaler" in state:\n    scaler.load_state_dict(state["scaler"])\nfor x in' in text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_wrapper_that_moves_keeps_its_lines(newline: str) -> None:
    wrap = (
        "if many:\n        model = torch.nn.parallel.DistributedDataParallel(\n            model,\n        )\n"
        "    elif some:\n        model = torch.nn.DataParallel(model)\n"
    )
    source = (
        "import torch\nfrom project import net, loader, many, some\n\n\ndef main():\n    model = net.to('npu')\n"
        f"    {wrap}    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for x in loader:\n        loss = model(x)\n        loss.backward()\n        optimizer.step()\n\n\nmain()\n"
    )
    data = migrate(source.replace("\n", newline), amp="apex").data
    wrap = wrap.replace("torch.nn.DataParallel", "OneCardDataParallel")
    assert f"combine_grad=True)\n    {wrap}    for x in loader:\n".replace("\n", newline).encode() in data
