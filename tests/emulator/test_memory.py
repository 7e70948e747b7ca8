"""What a run held of the memory of its cards: the line of the summary, the report, and the state of optimizers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.test_report import judge, process
from transplt.proof.launch.memory import Use, in_words, shown, uses
from transplt.proof.launch.report import as_text

GIB = 1 << 30


def row(peak: float, state: float = 0, at_peak: float = 0, card: int = 0) -> dict[str, int]:
    sizes = {"peak": peak, "optimizer_state": state, "optimizer_state_at_peak": at_peak}
    return {"card": card, **{name: int(size * GIB) for name, size in sizes.items()}}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(16)], "16.00 GiB at most on npu:0: 50 % of a 32 GiB card, 25 % of a 64 GiB card"),
        ([row(40, 12, 12)],
         "40.00 GiB at most on npu:0, of which 12.00 GiB is optimizer state: 125 % of a 32 GiB card, "
         "62 % of a 64 GiB card"),
        # the peak lies before the first step of the optimizer: its state comes on top
        ([row(20, 12)],
         "20.00 GiB at most on npu:0; 32.00 GiB with all optimizer state (12.00 GiB): "
         "100 % of a 32 GiB card, 50 % of a 64 GiB card"),
        ([row(0.001)], "1.02 MiB at most on npu:0: less than 1 % of a 32 or 64 GiB card"),
        ([row(4), row(8, card=1)], "8.00 GiB at most on npu:1: 25 % of a 32 GiB card, 12 % of a 64 GiB card"),
        ([], ""),
    ],
)  # fmt: skip
def test_the_line(rows: list[dict[str, int]], said: str) -> None:
    assert in_words(uses([process(memory=rows)])) == said


def test_the_rank_that_needs_the_most_is_named() -> None:
    found = uses([process(rank="0", memory=[row(4)]), process(rank="1", memory=[row(2, 6, card=1)])])
    assert [(use.rank, use.card) for use in found] == [("1", 1), ("0", 0)]
    said = "2.00 GiB at most on npu:1 (rank 1 of 2); 8.00 GiB with all optimizer state (6.00 GiB): "
    assert in_words(found).startswith(said)


def test_the_report() -> None:
    report = judge(process(memory=[row(20, 12)]))
    assert "\n  memory: 20.00 GiB at most on npu:0; 32.00 GiB with all optimizer state (12.00 GiB): " in as_text(report)
    assert report.as_json()["memory"] == [
        {
            "rank": None, "card": 0, "peak_bytes": 20 * GIB, "optimizer_state_bytes": 12 * GIB,
            "optimizer_state_at_peak_bytes": 0, "needs_bytes": 32 * GIB, "shares": {"32 GiB": 1.0, "64 GiB": 0.5},
        }
    ]  # fmt: skip


def test_a_process_that_held_nothing_or_told_nothing_is_none() -> None:
    report = judge(process(), process(memory=[]))
    assert report.as_json()["memory"] == []
    assert "memory:" not in as_text(report)


@pytest.mark.parametrize(
    ("size", "text"), [(3 * GIB // 2, "1.50 GiB"), (1 << 20, "1.00 MiB"), (1536, "1.50 KiB"), (512, "512 bytes")]
)
def test_sizes(size: int, text: str) -> None:
    assert shown(size) == text


# --- on the emulated card --------------------------------------------------------------------------------------------

TRAIN = """\
import sys
import torch
import torch_npu
net = torch.nn.Linear(256, 256, bias=False).npu()
optimizer = torch.optim.{optimizer}(net.parameters(), lr=0.1)
for step in range({steps}):
    optimizer.zero_grad()
    net(torch.ones(1024, 256, device="npu")).square().mean().backward()
    {call}
torch.npu.reset_peak_memory_stats()
"""
#: Bytes of one matrix of the program on the card: 32 more, in blocks of 512.
MATRIX = 256 * 256 * 4 + 512


def measured(transplt_run: Any, optimizer: str, steps: int, call: str = "optimizer.step()") -> Use:
    code, report, err = transplt_run(TRAIN.format(optimizer=optimizer, steps=steps, call=call))
    assert code == 0, err
    ((table,),) = [report["memory"]]
    assert "  memory: " in err
    return Use(
        "", table["card"], table["peak_bytes"], table["optimizer_state_bytes"], table["optimizer_state_at_peak_bytes"]
    )


@pytest.mark.torch
def test_what_of_the_peak_is_state_of_the_optimizer(transplt_run: Any) -> None:
    use = measured(transplt_run, "AdamW", 3)
    assert (use.state, use.state_at_peak) == (2 * MATRIX, 2 * MATRIX)  # both moments; the count of steps is the host's
    assert use.needs == use.peak
    # what one step says of the next ones
    first = measured(transplt_run, "AdamW", 1)
    assert (first.state, first.state_at_peak) == (2 * MATRIX, 0)
    assert first.peak < use.peak
    assert first.needs == use.peak


@pytest.mark.torch
@pytest.mark.parametrize(
    ("optimizer", "call"), [("SGD", "optimizer.step()"), ("AdamW", "pass")], ids=["no state", "no step"]
)
def test_without_state_nothing_is_added(transplt_run: Any, optimizer: str, call: str) -> None:
    use = measured(transplt_run, optimizer, 2, call)
    assert (use.state, use.state_at_peak) == (0, 0)
    assert use.peak > 2 * MATRIX
