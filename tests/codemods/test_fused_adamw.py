"""AdamW is not fused under a scaler of torch: its step on an NPU uses neither the scale nor the overflow."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, codes, migrate

HEAD = "import functools, torch, torch_npu\n"
FUSED = "optimizer = torch.optim.AdamW(model.parameters(), fused=True)\n"
SCALER = 'scaler = torch.amp.GradScaler("npu")\n'


@pytest.mark.parametrize(
    "scaler",
    [
        'scaler = torch.amp.GradScaler("npu", enabled=on)',
        'scaler = torch.GradScaler("npu")',
        "make = functools.partial(torch.amp.GradScaler, device='npu')",
    ],
)
def test_adamw_does_not_step_by_itself_under_a_scaler_of_torch(scaler: str) -> None:
    """The kernel of an NPU is given neither the scale nor the overflow."""
    after = f"{HEAD}{FUSED.replace('True', 'False')}{scaler}\n"
    check_rewrite(f"{HEAD}{FUSED}{scaler}\n", after, codes_applied=["NPU161"])


def test_nor_under_one_that_becomes_one_of_torch() -> None:
    check_rewrite(
        f"{HEAD}{FUSED}scaler = torch.cuda.amp.GradScaler()\n", f"{HEAD}{FUSED.replace('True', 'False')}{SCALER}"
    )


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("torch.optim.AdamW(p, fused=on)", ["NPU161"]),
        ("torch.optim.AdamW(p, fused=False)", []),
        ("torch.optim.AdamW(p)", []),
        ("torch.optim.AdamW(p, **extra)", []),
        ("extra = dict(fused=True)\ntorch.optim.AdamW(p, **extra)", ["NPU161"]),
        ("torch.optim.Adam(p, fused=True)", []),
        ("torch.optim.SGD(p, 0.1, momentum=0.9, fused=True)", []),
        ("own.AdamW(p, fused=True)", []),
    ],
)
def test_other_steps_stay(line: str, left: list[str]) -> None:
    check_noop(f"{HEAD}import own\n{line}\n{SCALER}", open_codes=left)
    check_noop(f"{HEAD}import own\n{line}\n")


def test_without_a_scaler_the_fused_step_stays() -> None:
    check_noop(HEAD + FUSED)
    check_noop(HEAD + FUSED, files={"other.py": HEAD})


def test_the_scaler_of_another_file_is_a_remark() -> None:
    given = "def f(s: torch.amp.GradScaler): return isinstance(s, torch.amp.GradScaler)\n"
    for source, other in ((HEAD + FUSED, HEAD + SCALER), (HEAD + FUSED + given, HEAD)):
        result = check_noop(source, files={"other.py": other}, open_codes=["NPU161"])
        assert [each.level.value for each in result.findings] == ["info"]


def test_with_an_older_torch_there_is_no_such_scaler() -> None:
    source = HEAD + FUSED + "scaler = torch.cuda.amp.GradScaler()\n"
    assert "NPU161" not in codes(migrate(source, torch_version="2.2"), applied=True)
