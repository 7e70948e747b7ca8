"""float64 on the device becomes float32 where nobody but a reader sees it."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "float32"
HEAD = "import torch\nimport torch_npu\nimport torch.distributed as dist\n\n\ndef f(a, b, device):\n    "


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.tensor([a, b], dtype=torch.float64, device='npu')",
            "torch.tensor([a, b], dtype=torch.float32, device='npu')",
        ),
        ("torch.tensor([a, b], dtype=torch.double).npu()", "torch.tensor([a, b], dtype=torch.float).npu()"),
        ("torch.tensor([a, b]).double().npu()", "torch.tensor([a, b]).float().npu()"),
        ("torch.tensor([a, b]).to(torch.float64).npu()", "torch.tensor([a, b]).to(torch.float32).npu()"),
    ],
)
def test_sums_over_the_ranks(before: str, after: str) -> None:
    rest = "\n    dist.all_reduce(t)\n    return t.tolist()\n"
    check_tuned(TUNE, f"{HEAD}t = {before}{rest}", f"{HEAD}t = {after}{rest}")


METER = "t = torch.zeros(2, dtype={}, device=device)\n    "


@pytest.mark.parametrize(
    "rest",
    [
        "return t.item()",
        "t += a\n    return t.tolist()",
        "t[0] += a\n    t[1] = b\n    return (t[0] / t[1]).item()",
        "t = t.tolist()\n    return t[0]",
        "print(float(t[0]))",
        "dist.broadcast(t, 0)\n    return t.cpu()",
    ],
)
def test_meters(rest: str) -> None:
    check_tuned(TUNE, HEAD + METER.format("torch.float64") + rest, HEAD + METER.format("torch.float32") + rest)


@pytest.mark.parametrize(
    "rest",
    [
        "return t",  # somebody else sees its dtype
        "return torch.matmul(t, a)",
        "return t * a",
        "t = t * a\n    return t.item()",
        "for t in a:\n        print(t.item())",
        "return lambda: t.item()",
        "b.total = t",
        "return t.dtype",
        "return t[a]",
        "t.mul_(a)",
    ],
)
def test_what_others_see(rest: str) -> None:
    refused = ["NPU137"] if "matmul" in rest else []
    check_untuned(TUNE, HEAD + METER.format("torch.float64") + rest, open_codes=refused)


@pytest.mark.parametrize(
    "made",
    [
        "torch.zeros(2, dtype=torch.float64)",
        "torch.zeros(2, dtype=torch.float64, device='cpu')",
        "torch.zeros(2, dtype=torch.float64).to('cpu')",
        "torch.zeros(2, dtype=torch.float64).to(torch.float64)",
        "torch.linspace(0, 1, 2, dtype=torch.float64)",
        "torch.tensor(a.double())",
        "a.to(torch.float64)",
    ],
)
def test_tensors_on_the_host_stay(made: str) -> None:
    check_untuned(TUNE, f"{HEAD}t = {made}\n    return t.item()\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.from_numpy(a).to(device=b.device)[b].float()",
            "torch.from_numpy(a).float().to(device=b.device)[b]",
        ),
        ("torch.from_numpy(a).to(device).float()", "torch.from_numpy(a).float().to(device)"),
        ("torch.from_numpy(a).npu()[b].float() * 2", "torch.from_numpy(a).float().npu()[b] * 2"),
        ("(torch.from_numpy(a).to(device)).float()", "(torch.from_numpy(a).float().to(device))"),
        ("torch.from_numpy(a * 255 + 1).to(device=b.device)[b[0], b[1], b[2], b[3]].float() + 1",
         "torch.from_numpy(a * 255 + 1).float().to(device=b.device)[b[0], b[1], b[2], b[3]] + 1"),
    ],
)  # fmt: skip
def test_what_is_float32_in_the_end(before: str, after: str) -> None:
    check_tuned(TUNE, f"{HEAD}return {before}\n", f"{HEAD}return {after}\n")


@pytest.mark.parametrize(
    "value",
    [
        "torch.from_numpy(a).float().to(device)",
        "torch.from_numpy(a)[b].float()",
        "torch.from_numpy(a).to(device)[b]",
        "torch.from_numpy(a).to(torch.int64).float()",
        "torch.from_numpy(a).to(device, torch.int32).float()",
        "torch.from_numpy(a).to(b).float()",
        "a.to(device)[b].float()",
        "torch.from_numpy(a) + b.float()",
        "torch.from_numpy(a) + b[0].float() + len(a)[b].float()",
    ],
)
def test_casts_that_stay(value: str) -> None:
    check_untuned(TUNE, f"{HEAD}return {value}\n")


COMMENT = "  # transplt: ignore[NPU770]"


def test_a_comment_keeps_a_line_as_it_is_and_what_is_said_of_it() -> None:
    made = f"t = torch.tensor([a, b], dtype=torch.float64, device='npu'){COMMENT}"
    result = migrate(f"{HEAD}{made}\n    dist.all_reduce(t)\n", tune=((TUNE, ""),))
    assert not result.changed
    assert [finding.code for finding in result.findings if not finding.ignored] == ["NPU314"]
    check_untuned(TUNE, f"{HEAD}return torch.from_numpy(a).to(device)[b].float(){COMMENT}\n")


def test_a_method_that_nobody_calls_here_is_left() -> None:
    check_untuned(TUNE, f"{HEAD}return torch.from_numpy(a).to(device).float\n")
