"""What is looked at in every output with mixed precision; a file whose output does not hold stays as it was."""

from __future__ import annotations

import pytest

from tests.harness import clean, migrate
from transplt.fixers.amp import native
from transplt.fixers.amp import output_checks as holds

SOUND = """
import torch
from project import net, loader

model = net().npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.npu.amp.GradScaler()
for x in loader:
    with torch.autocast("npu", dtype=torch.float16):
        loss = model(x)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
MADE = "scaler = torch.npu.amp.GradScaler()\n"
FUNCTION = """
import torch


def train(model, optimizer, loader):
    for x in loader:
        scaler.scale(model(x)).backward()
        scaler.step(optimizer)
        scaler.update()


def main():
    train(None, None, [])


"""


def unsound(text: str) -> str:
    return holds.unsound("train.py", clean(text).encode())


@pytest.mark.parametrize(
    "text",
    [
        SOUND,
        FUNCTION.replace("import torch\n", f"import torch\n{MADE}"),
        FUNCTION + MADE + "main()\n",
        FUNCTION.replace("loader):", "loader, scaler):") + MADE + "train(None, None, [], scaler)\n",
        SOUND.replace("    scaler.unscale_", "    if x:\n        continue\n    scaler.unscale_"),
        SOUND.replace("    scaler.up", "    if x:\n        scaler.update()\n        continue\n    scaler.up"),
        "import torch\n",
        "def broken(:\n",
    ],
)
def test_what_holds(text: str) -> None:
    assert unsound(text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SOUND.replace(MADE, "") + MADE, "line 9: scaler may not exist yet"),
        (SOUND.replace(MADE, f"if loader:\n    {MADE}"), "line 11: scaler may not exist yet"),
        (SOUND.replace("    scaler.update()\n", ""), "scaler is created and has no update()"),
        (SOUND.replace("scaler.step(optimizer)", "optimizer.step()"), "scaler is created and has no step()"),
        (SOUND.replace("scaler.scale(loss)", "loss"), "scaler is created and has no scale()"),
        (SOUND.replace("    scaler.step", "    scaler.unscale_(optimizer)\n    scaler.step"),
         "line 13: scaler.unscale_(optimizer) comes twice before scaler.update()"),
        (SOUND.replace("    scaler.step", "    scaler.step(optimizer)\n    scaler.step"),
         "line 14: scaler.step(optimizer) comes twice before scaler.update()"),
        (FUNCTION + "main()\n" + MADE, "line 6: scaler may not exist yet where train is called"),
        (FUNCTION.replace("main():\n", f"main():\n    {MADE}") + "main()\n",
         "line 6: scaler is created in another function"),
        ("import torch\nwith amp.scale_loss(loss, optimizer) as scaled:\n    scaled.backward()\n",
         "line 2: amp is not imported"),
        ("from apex import amp\nwith amp.scale_loss(loss, o) as scaled:\n    scaled.backward()\n"
         "model, o = amp.initialize(model, o)\n", "line 2: the loss is scaled before amp.initialize has run"),
    ],
)  # fmt: skip
def test_what_does_not_hold(text: str, why: str) -> None:
    assert unsound(text) == why


def test_a_file_whose_output_does_not_hold_is_left_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the scaler were written below the loop that uses it."""
    source = """
    import torch
    from project import net, loader

    model = net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
    print("done")
    """
    make = native._make

    def late(writer, spelling, part, names):  # type: ignore[no-untyped-def]
        name = make(writer, spelling, part, names)
        found = next(edit for edit in writer.found if "GradScaler" in str(edit.new))
        writer.found.remove(found)
        writer.after(writer.work.scan.tree.body[-1], [str(found.new)], "NPU741", "too late")
        return name

    monkeypatch.setattr(native, "_make", late)
    result = migrate(source, amp="native")
    assert result.data.decode() == "import torch\nimport torch_npu  # noqa: F401\n" + "\n".join(
        clean(source).replace("cuda", "npu").split("\n")[1:]
    )
    left = [item.message for item in result.findings if item.code == "NPU743"]
    assert left == ["undone: everything that gave this file mixed precision (line 10: scaler may not exist yet)"]
