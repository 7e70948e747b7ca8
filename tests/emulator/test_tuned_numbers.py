"""Fused operators against what they replace: the tuned text of a program computes what the program computes.

Shapes, half precision, masks, grouped heads, causal masks with more queries than keys and less, gradients.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.harness import migrate

PROGRAMS = Path(__file__).resolve().parents[1] / "data" / "tuned"
ATTENTION = ("fusion-attention",)
LAYERS = ("rms-norm", "rotary", "swiglu", "finite-masks", "masked-assignment")
Case = dict[str, Any]


def normal(*sizes: int) -> dict[str, Any]:
    return {"normal": sizes}


def everywhere(name: str, *inputs: dict[str, Any], halves: bool = True) -> list[Case]:
    """A case in float32, and in both half precisions."""
    dtypes = ["float32", "float16", "bfloat16"] if halves else ["float32"]
    return [{"name": name, "inputs": list(inputs), "dtype": dtype} for dtype in dtypes]


def value(given: object) -> dict[str, Any]:
    return {"value": given}


CASES: dict[str, tuple[tuple[str, ...], int, list[Case]]] = {
    "attention": (
        ATTENTION,
        5,
        [
            *everywhere("Packed", normal(2, 5, 24)),
            *everywhere("Causal", normal(2, 5, 24), normal(2, 5, 24)),
            *everywhere("Causal", normal(2, 3, 24), normal(2, 7, 24)),
            *everywhere("Causal", normal(2, 7, 24), normal(2, 3, 24)),
            *everywhere("Grouped", normal(2, 6, 24), value(True)),
            *everywhere("Grouped", normal(2, 6, 24), value(False)),
            *everywhere("Masked", normal(2, 6, 24), value(1)),
            *everywhere("Masked", normal(1, 9, 24), value(4)),
        ],
    ),
    "flash": (
        ATTENTION,
        13,
        [
            *everywhere("plain", normal(2, 5, 4, 8), normal(2, 7, 4, 8), normal(2, 7, 4, 8)),
            *everywhere("plain", normal(2, 5, 4, 8), normal(2, 7, 2, 8), normal(2, 7, 2, 8)),
            *everywhere("causal", normal(2, 5, 4, 8), normal(2, 5, 4, 8), normal(2, 5, 4, 8)),
            *everywhere("causal", normal(2, 3, 4, 8), normal(2, 7, 1, 8), normal(2, 7, 1, 8)),
            *everywhere("asked", *[normal(2, 5, 4, 8)] * 3, value(True), value(None)),
            *everywhere("asked", *[normal(2, 5, 4, 8)] * 3, value(False), value(0.3)),
            *everywhere("window", normal(2, 5, 4, 8), normal(2, 9, 4, 8), normal(2, 9, 4, 8)),
            *everywhere("causal_window", normal(2, 5, 4, 8), normal(2, 9, 4, 8), normal(2, 9, 4, 8)),
            *everywhere("endless_window", normal(2, 5, 4, 8), normal(2, 9, 4, 8), normal(2, 9, 4, 8)),
            *everywhere("turned", normal(2, 4, 5, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 8)),
            *everywhere("packed", normal(2, 5, 3, 4, 8)),
            *everywhere("half_packed", normal(2, 4, 4, 8), normal(2, 6, 2, 2, 8)),
            *everywhere("lengths", *[normal(9, 4, 8)] * 3, *[{"ends": [0, 2, 5, 9]}] * 2),
            *everywhere(
                "lengths",
                normal(4, 4, 8),
                normal(9, 2, 8),
                normal(9, 2, 8),
                {"ends": [0, 1, 2, 4]},
                {"ends": [0, 2, 5, 9]},
            ),
            *everywhere("packed_lengths", normal(9, 3, 4, 8), {"ends": [0, 4, 9]}),
            *everywhere(
                "half_packed_lengths", normal(4, 4, 8), normal(9, 2, 4, 8), {"ends": [0, 2, 4]}, {"ends": [0, 6, 9]}
            ),
        ],
    ),
    "layers": (
        LAYERS,
        13,
        [
            *everywhere("Norm", normal(3, 5, 16)),
            *everywhere("LlamaNorm", normal(3, 5, 16)),
            *everywhere("DividedNorm", normal(3, 16)),
            *everywhere("rotary", *[normal(2, 4, 5, 8)] * 2, *[{"uniform": (2, 5, 8)}] * 2, value(1)),
            *everywhere("rotary", *[normal(2, 5, 4, 8)] * 2, *[{"uniform": (2, 5, 8)}] * 2, value(2)),
            *everywhere("Gated", normal(3, 5, 16)),
            *everywhere("gated", normal(3, 6, 5)),
            *everywhere("scores", normal(2, 3, 5, 8), normal(2, 3, 7, 8), {"mask": (2, 1, 5, 7)}),
            *everywhere("scores_in_place", normal(4, 6), {"mask": (4, 6)}),
            *everywhere("added", normal(2, 6, 6), value(True)),
            *everywhere("best", normal(4, 9), value(3), halves=False),
            *everywhere("without_nan", {"uniform": (4, 6)}, halves=False),
            *everywhere("clipped", normal(4, 6)),
            *everywhere("labels", {"integers": (5, 7)}, halves=False),
        ],
    ),
    "windows": (
        ("window-roll",),
        2,
        [
            *everywhere("shifted", normal(2, 16, 3), value(4), value(4), value(1)),
            *everywhere("shifted", normal(1, 24, 5), value(6), value(4), value(3)),
        ],
    ),
    "shuffles": (
        ("channel-shuffle",),
        3,
        [
            case
            for groups in (2, 4, 8)
            for name in ("channel_shuffle", "permuted", "ShuffleBlock")
            for case in everywhere(name, normal(2, 24, 5, 3), value(groups))
        ],
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("which", sorted(CASES))
def test_the_tuned_text_computes_the_same(
    which: str, program: Callable[..., CompletedProcess[str]], tmp_path: Path
) -> None:
    names, edits, cases = CASES[which]
    path = PROGRAMS / f"{which}.py"
    result = migrate(path.read_text(encoding="utf-8"), path=path.name, tune=tuple((name, "") for name in names))
    calls = [finding for finding in result.findings if finding.applied and "->" in finding.message]
    assert len(calls) == edits, [(finding.span.line, finding.message) for finding in calls]
    assert not [finding for finding in result.findings if not finding.applied]
    (tmp_path / "tuned.py").write_bytes(result.data)
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    done = program("tuned_pair.py", str(path), str(tmp_path / "tuned.py"), str(tmp_path / "cases.json"))
    assert done.stdout.count(" equal\n") == len(cases)
