"""Which scaler `--amp native` writes, and what becomes of fused optimizers that it steps."""

from __future__ import annotations

import pytest

from tests.harness import migrate

LOOP = """
import torch

model = torch.nn.Linear(4, 4).npu()
optimizer = torch.optim.{optimizer}
criterion = torch.nn.MSELoss()
for x, y in [(torch.ones(2, 4).npu(), torch.zeros(2, 4).npu())]:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
"""
STATIC = {"loss_scale": "1024"}


@pytest.mark.parametrize(
    ("settings", "scaler"),
    [
        ({}, 'torch.amp.GradScaler("npu")'),
        ({"torch_version": "2.3"}, 'torch.amp.GradScaler("npu")'),
        ({"torch_version": "2.2"}, "torch.npu.amp.GradScaler()"),
        (STATIC, "torch.npu.amp.GradScaler(init_scale=1024.0, dynamic=False)"),
    ],
)
def test_the_scaler_is_that_of_torch_where_it_has_one(settings: dict[str, str], scaler: str) -> None:
    result = migrate(LOOP.format(optimizer="SGD(model.parameters(), lr=0.1)"), amp="native", **settings)
    assert f"\nscaler = {scaler}\n" in result.data.decode()


@pytest.mark.parametrize(
    ("optimizer", "settings", "after"),
    [
        ("AdamW(model.parameters(), fused=True)", {}, "AdamW(model.parameters(), fused=False)"),
        ("AdamW(model.parameters(), fused=True)", STATIC, "AdamW(model.parameters(), fused=False)"),
        ("Adam(model.parameters(), fused=True)", STATIC, "Adam(model.parameters(), fused=False)"),
        ("Adam(model.parameters(), fused=True)", {}, "Adam(model.parameters(), fused=True)"),
        (
            "AdamW(model.parameters(), fused=True)",
            {"amp_dtype": "bfloat16"},
            "AdamW(model.parameters(), fused=True)",
        ),
        ("AdamW(model.parameters(), fused=False)", {}, "AdamW(model.parameters(), fused=False)"),
    ],
)
def test_a_step_that_the_scaler_cannot_take_is_not_fused(optimizer: str, settings: dict[str, str], after: str) -> None:
    result = migrate(LOOP.format(optimizer=optimizer), amp="native", **settings)
    text = result.data.decode()
    assert f"\noptimizer = torch.optim.{after}\n" in text and "torch.autocast" in text


@pytest.mark.parametrize("optimizer", ["AdamW(model.parameters(), fused=on)", "AdamW(model.parameters(), **extra)"])
def test_where_it_may_be_fused_nothing_is_written(optimizer: str) -> None:
    source = LOOP.format(optimizer=optimizer).replace("model =", "on = True\nextra = dict(fused=on)\nmodel =")
    result = migrate(source, amp="native")
    left = [item for item in result.findings if item.code == "NPU743"]
    assert not result.changed and [item.message for item in left] == [
        "no mixed precision here: AdamW may be fused, and its fused step on an NPU does not work with a scaler"
    ]
    assert left[0].help == "write fused=False there and run transplt again"
