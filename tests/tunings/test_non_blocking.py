"""Copies of batches to the device that the host does not wait for."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "non-blocking"
SCRIPT = """
import torch
from torch.utils.data import DataLoader
from project import collate, dataset, device, step

loader = DataLoader(dataset, {arguments})
for {targets} in {header}:
    {body}
"""


def script(body: str, arguments: str = "pin_memory=True", targets: str = "x, y", header: str = "loader") -> str:
    return SCRIPT.format(body=body, arguments=arguments, targets=targets, header=header)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.to(device)", "x = x.to(device, non_blocking=True)"),
        ("x, y = x.npu(), y.npu(0)", "x, y = x.npu(non_blocking=True), y.npu(0, non_blocking=True)"),
        ("x = x.to(device=device)", "x = x.to(device=device, non_blocking=True)"),
        ("x = x.to('npu:0', dtype=torch.half)", "x = x.to('npu:0', dtype=torch.half, non_blocking=True)"),
        ("step(x.to(device))", "step(x.to(device, non_blocking=True))"),
        (
            "n = x.size(0)\n    c = x.clone()\n    z = x.to(device)\n    n += 1\n    c.zero_()",
            "n = x.size(0)\n    c = x.clone()\n    z = x.to(device, non_blocking=True)\n    n += 1\n    c.zero_()",
        ),
        ("x = x.to(device)\n    x.mul_(2)", "x = x.to(device, non_blocking=True)\n    x.mul_(2)"),
        ("if step():\n        x = x.to(device)", "if step():\n        x = x.to(device, non_blocking=True)"),
    ],
)
def test_what_a_loop_gets(before: str, after: str) -> None:
    check_tuned(TUNE, script(before), script(after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = batch[0].to(device)", "x = batch[0].to(device, non_blocking=True)"),
        ("x = batch['x'].to(device)", "x = batch['x'].to(device, non_blocking=True)"),
        (
            "batch = {k: v.to(device) for k, v in batch.items()}",
            "batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}",
        ),
        ("batch = [t.to(device) for t in batch]", "batch = [t.to(device, non_blocking=True) for t in batch]"),
        ("step(*(t.to(device) for t in batch))", "step(*(t.to(device, non_blocking=True) for t in batch))"),
    ],
)
@pytest.mark.parametrize(
    ("targets", "header"), [("batch", "loader"), ("i, batch", "enumerate(loader)"), ("batch", "step.tqdm(loader)")]
)
def test_entries_of_a_batch(before: str, after: str, targets: str, header: str) -> None:
    check_tuned(TUNE, script(before, targets=targets, header=header), script(after, targets=targets, header=header))


@pytest.mark.parametrize(
    "body",
    [
        "x = x.to('cpu')",
        "x = x.to('cpu:0')",
        "x = x.to(torch.device('cpu:0'))",
        "x = x.to(torch.device(type='cpu'))",
        "x = x.to(torch.device(device='cpu'))",
        "x = x.cpu()",
        "x = x.to(torch.float16)",
        "x = x.to(y)",
        "x = x.to(device, non_blocking=False)",
        "x = x.to(device, torch.half, True)",
        "x = x.to(*step())",
        "x = x.to(device, **step())",
        "x = step(x)\n    x = x.to(device)",  # no batch any more
        "z = step()\n    z = z.to(device)",
        "z = x.to(device)\n    x.add_(1)",  # the host writes into what is still copied
        "z = x.to(device)\n    x[0] = 1",
        "z = x.to(device)\n    x += 1",
        "z = x.to(device)\n    n = x.numpy()\n    n += 1",  # in the same memory
        "n = step.asarray(x[0].view(-1))\n    z = x.to(device)\n    n[0] = 1",
        "a = x\n    b = a.data.T\n    z = x.to(device)\n    b.zero_()",
        "step(lambda: x.to(device))",
        "x = [t.to(device) for t in step(x)]",
        "x = x.detach().to(device)",
    ],
)
def test_copies_that_stay(body: str) -> None:
    check_untuned(TUNE, script(body))


@pytest.mark.parametrize(
    "arguments",
    [
        "batch_size=8",
        "pin_memory=False",
        "pin_memory=collate.pin",
        "pin_memory=True, collate_fn=collate",  # what it makes may have a `.to` of its own
        "pin_memory=True, batch_size=None",
        "pin_memory=True, **collate",
    ],
)
def test_loaders_whose_batches_are_not_pinned_tensors(arguments: str) -> None:
    check_untuned(TUNE, script("x = x.to(device)", arguments))


def test_settings_that_switch_it_off() -> None:
    check_untuned(TUNE, script("x = x.to(device)"), per_file_ignores=(("train.py", ("NPU758",)),))


def test_two_loaders_one_of_which_does_not_pin() -> None:
    other = "zip(loader, DataLoader(dataset))"
    check_untuned(TUNE, script("x = x.to(device)", header=other))


def test_what_the_tuning_of_loaders_pins() -> None:
    check_tuned(
        f"data-loader,{TUNE}",
        script("step(x.to(device))", "batch_size=8"),
        script("step(x.to(device, non_blocking=True))", "batch_size=8, pin_memory=True"),
    )


def test_the_loop_is_in_another_file() -> None:
    check_tuned(
        TUNE,
        """
        import torch

        def train(loader):
            for x in loader:
                x = x.to("npu")
                x.sum().backward()
        """,
        """
        import torch

        def train(loader):
            for x in loader:
                x = x.to("npu", non_blocking=True)
                x.sum().backward()
        """,
        path="engine.py",
        files={
            "main.py": "from torch.utils.data import DataLoader\nfrom engine import train\nfrom project import data\n\n"
            "train(DataLoader(data, pin_memory=True))\n"
        },
    )
