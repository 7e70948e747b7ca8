"""Two curves: what belongs together, what is said of it, and how the command ends."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.base.errors import UsageError
from transplt.faces.cli.loss import loss
from transplt.precision.loss.answer_text import Answer, loss_text, sentence
from transplt.precision.loss.line import Words
from transplt.precision.loss.log import read_text
from transplt.precision.loss.pairing import Paired, paired
from transplt.precision.loss.verdict import Judged, Limits, first_fifth, judged


def pair(a: str, b: str, name: str | None = None) -> Paired:
    return paired(read_text(a.encode(), Words(name)), read_text(b.encode(), Words(name)))


def log(values: list[float], form: str = "step {}: loss {:.9g}\n") -> str:
    return "".join(form.format(step, value) for step, value in enumerate(values, 1))


DOWN = [2 * math.exp(-step / 50) + 0.5 for step in range(200)]


def judge(ours: list[float], theirs: list[float] | None = None) -> tuple[Judged, str]:
    found = pair(log(ours), log(DOWN if theirs is None else theirs))
    result = judged(found, Limits())
    return result, sentence(Answer(("a", "b"), found, result, None))


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        (DOWN, "same: mean difference 0, 0 % of the loss over 200 values"),
        ([v + 5e-5 for v in DOWN], "same: mean difference 0.00005, 0.00502 % of the loss"),
        ([v * 1.005 for v in DOWN], "same: mean difference 0.004979, 0.5 % of the loss"),
        ([v + (0.1 if n == 30 else 0) for n, v in enumerate(DOWN)],
         "same: mean difference 0.0005, 0.0502 % of the loss over 200 values; 1 single value beyond that, the first at step 31"),
        ([v * 1.02 for v in DOWN], "different: A is 1.02 times B at every value"),
        ([v / 4 for v in DOWN], "different: A is 0.25 times B at every value"),
        ([v + 0.3 for v in DOWN], "different from the first value on: step 1 (A 2.8, B 2.5)"),
        ([v + max(0, n - 99) * 1e-3 for n, v in enumerate(DOWN)],
         "different: first divergence at step 108 (A 0.74"),
        ([v if n < 150 else math.nan for n, v in enumerate(DOWN)],
         "different: A is nan from step 151 on (B 0.599574); the same up to there"),
        ([v + (0.1 if n < 40 else 0) for n, v in enumerate(DOWN)], "different from the first value on"),
    ],
)  # fmt: skip
def test_sentences(ours: list[float], says: str) -> None:
    result, said = judge(ours)
    assert says in said and result.same == says.startswith("same")


def test_a_late_drift_is_seen_beside_a_large_beginning() -> None:
    """The mean over all is 0.7 % of the loss; that of the last fifth is not."""
    theirs = [10.0] * 80 + [0.1] * 20
    ours = [10.0] * 80 + [0.4] * 20
    assert not judge(ours, theirs)[0].same


def test_both_become_nan_at_the_same_step() -> None:
    values = [1.0] * 10 + [math.nan] * 3
    result, _ = judge(values, values)
    assert result.same and result.both_not_finite == 3


def test_apart_for_good_is_later_than_the_first_divergence() -> None:
    ours = [v + (0.2 if n == 20 or n >= 120 else 0) for n, v in enumerate(DOWN)]
    _, said = judge(ours)
    assert said.startswith("different: first divergence at step 21 (") and said.endswith("; apart on average from step 121 to the end")


UP = [v + max(0, n - 150) * 0.02 for n, v in enumerate(DOWN)]


@pytest.mark.parametrize(
    ("ours", "theirs", "hint"),
    [
        (UP, DOWN, "A rises again after its lowest and B does not: compare the learning rates"),
        (UP, UP, "both rise again after their lowest value, usually"),
        (DOWN, UP, ""),
        (DOWN, DOWN, ""),
        ([v + 0.01 for v in DOWN], DOWN, ""),
        (UP[145:160], DOWN[145:160], ""),  # too short to have a course
    ],
)
def test_a_loss_that_rises_again(ours: list[float], theirs: list[float], hint: str) -> None:
    found = pair(log(ours), log(theirs))
    text = loss_text(Answer(("a", "b"), found, judged(found, Limits()), None))
    assert hint in text and ("rise" in text) == bool(hint)


@pytest.mark.parametrize(
    ("validation", "hint"),
    [
        ([1.0, 0.6, 0.5, 0.6, 0.7, 0.9], "rises from 0.5 at value 3 to 0.9 at the end while `loss` falls"),
        ([1.0, 0.6, 0.5, 0.5, 0.5, 0.51], ""),
        ([1.0, 0.6, 0.5, 0.6, 0.9, 0.5], ""),
        ([0.5, 0.9], ""),
    ],
)
def test_a_validation_that_rises_while_the_training_falls(validation: list[float], hint: str) -> None:
    text = log(DOWN) + "".join(f"epoch {epoch}: val_loss {value}\n" for epoch, value in enumerate(validation, 1))
    hints = pair(text, log(DOWN)).hints
    assert [hint in each for each in hints] == [True] * bool(hint)
    flat = pair(text.replace(log(DOWN), log(UP)), log(UP))
    assert flat.hints == [], "the training rises itself"


PAIRED: dict[str, tuple[str, str, list[tuple[float, float]]]] = {
    "by step": ("step 2 loss 2\nstep 3 loss 3\n", "step 1 loss 10\nstep 2 loss 20\nstep 3 loss 30\n", [(2, 20), (3, 30)]),
    "by order": ("loss 1\nloss 2\n", "loss 10\nloss 20\nloss 30\n", [(1, 10), (2, 20)]),
    "other shapes": ("step 1 loss 1\nstep 2 loss 2\n", '{"loss": 10, "epoch": 0.5}\n{"loss": 20, "epoch": 1}\n',
                     [(1, 10), (2, 20)]),
    "steps begin again with each epoch": (
        "".join(f"[{step}/3] loss {step}\n" for _ in range(2) for step in (1, 2, 3)),
        "".join(f"[{step}/3] loss {step}\n" for _ in range(2) for step in (1, 2, 3)),
        [(1, 1), (2, 2), (3, 3)] * 2,
    ),
    "a restart": (
        "".join(f"step {step} loss {step}\n" for step in (*range(1, 101), *range(20, 121))),
        "".join(f"step {step} loss {step}\n" for step in range(1, 121)),
        [(step, step) for step in range(1, 121)],
    ),
    "several processes in one log": (
        "step 1 loss 1\nstep 1 loss 3\nstep 2 loss 5\nstep 2 loss 5\n", "step 1 loss 2\nstep 2 loss 5\n", [(2, 2), (5, 5)]
    ),
    "rank 0": ("[rank1]: step 1 loss 7\n[rank0]: step 1 loss 1\n", "step 1 loss 1\n", [(1, 1)]),
    "the likeliest name": ("loss_cls: 9 total_loss: 1 val_loss: 8\n", "loss_cls: 9 total_loss: 2 val_loss: 8\n", [(1, 2)]),
    "one name here, another there": ("train_loss: 1\n", "lm loss: 2\n", [(1, 2)]),
    "the training, not the validation": ("step 1: val loss 5, train loss 1\n", "step 1: val loss 5, train loss 2\n", [(1, 2)]),
    "values, not their average": ("Loss 1 (5)\n", "Loss 2 (5)\n", [(1, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRED)
def test_what_belongs_together(case: str) -> None:
    a, b, expected = PAIRED[case]
    found = pair(a, b)
    assert [(each.a, each.b) for each in found.pairs] == expected


def test_no_step_in_common() -> None:
    with pytest.raises(UsageError, match=r"hardly any steps in common \(step 1 to step 2 and step 5 to step 6\)"):
        pair("step 1 loss 1\nstep 2 loss 1\n", "step 5 loss 1\nstep 6 loss 1\n")


def test_a_fifth_of_the_training() -> None:
    lines = "".join(f"Epoch [{epoch}][1/2], loss: 1\n" for epoch in range(1, 11))
    late = lines.replace("[10][1/2], loss: 1", "[10][1/2], loss: 2")
    found = pair(late, lines)
    fifth = first_fifth(found, Limits(), 20, 0)
    assert fifth is not None
    assert (fifth.unit, fifth.end, fifth.planned, fifth.reached, fifth.aligned) == ("epoch", 4, True, 10, True)
    early = first_fifth(found, Limits(), 100, 0)
    assert early is not None and (early.end, early.reached, early.aligned) == (20, 10, False)
    unknown = first_fifth(pair("loss 1\n" * 10, "loss 1\n" * 10), Limits(), 0, 0)
    assert unknown is not None and (unknown.unit, unknown.end, unknown.planned) == ("value", 2, False)


@pytest.fixture
def logs(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "npu.log").write_text(log([v + max(0, n - 99) * 1e-3 for n, v in enumerate(DOWN)]))
    (tmp_path / "gpu.log").write_text(log(DOWN))
    return str(tmp_path / "npu.log"), str(tmp_path / "gpu.log")


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(loss, arguments, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def test_the_text(logs: tuple[str, str]) -> None:
    code, out = call(*logs, "--total", "1000")
    assert code == 1
    lines = [line.strip() for line in out.splitlines()]
    assert "drift       the difference grows: 0 % of the loss in the first part, 14.5 % in the last" in lines
    assert "first fifth not aligned so far, up to step 200; it ends at 200 of 1000 steps" not in lines
    assert "first fifth not aligned: up to step 200 of 1000 steps; make it agree before training on" in lines
    assert "part 1 of 5 fine   mean |A - B| 0, 0 % of the loss; step 1 to step 40" in lines
    assert call(*logs, "--exit-zero")[0] == 0 and call(logs[1], logs[1])[0] == 0
    assert call(*logs, "--share", "1")[0] == 0


def test_the_json(logs: tuple[str, str]) -> None:
    document: dict[str, Any] = json.loads(call(*logs, "--format=json")[1])
    assert document["format"] == 1 and document["same"] is False and len(document["points"]) == 200
    assert document["first_divergence"]["step"] == 108 and document["points"][0] == [None, 1, 2.5, 2.5]
    assert document["first_fifth"]["aligned"] is True


def test_the_page(logs: tuple[str, str], tmp_path: Path) -> None:
    call(*logs, "--report", str(tmp_path / "o.html"))
    page = (tmp_path / "o.html").read_text()
    assert page.count("<polyline") >= 3 and "first divergence at step 108" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("a", "arguments", "says"),
    [
        ("nothing here\n", (), "a.log has no loss; name the value with --name"),
        ("loss 1\n", ("--pattern", "("), r"--pattern '\(' is not a regular expression"),
        ("loss 1\n", ("--name", "acc"), "has no loss"),
    ],
)
def test_what_cannot_be_compared(a: str, arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(a)
    with pytest.raises(UsageError, match=says):
        call(str(tmp_path / "a.log"), str(tmp_path / "a.log"), *arguments)


def test_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("it=5 J 0.5\nit=6 J 0.25\n")
    out = call(str(tmp_path / "a.log"), str(tmp_path / "a.log"), "--pattern", r"it=(?P<step>\d+) J (?P<value>\S+)")[1]
    assert "step 5 to step 6" in out


def test_the_text_names_what_else_is_there() -> None:
    found = pair("loss: 1 loss_cls: 2\n", "loss: 1\n")
    assert "also there: `loss_cls` (--name)" in loss_text(Answer(("a", "b"), found, judged(found, Limits()), None))


def test_one_is_numbered_from_1() -> None:
    values = [2.0, 1.5, 1.2, 1.1]
    zero = "".join(f"step {number} loss {value}\n" for number, value in enumerate(values))
    one = "".join(f"step {number} loss {value}\n" for number, value in enumerate(values, 1))
    found = pair(zero, one)
    assert [(pair.a, pair.b) for pair in found.pairs] == [(value, value) for value in values]
    assert "B numbers its steps from 1 and the other from 0: the first values of both are compared" in found.remarks


def test_a_log_that_begins_later_is_numbered_as_it_is() -> None:
    zero = "".join(f"step {number} loss {number + 1}\n" for number in range(5))
    later = "".join(f"step {number} loss {number + 1}\n" for number in range(1, 5))
    found = pair(zero, later)
    assert [(pair.a, pair.b) for pair in found.pairs] == [(2, 2), (3, 3), (4, 4), (5, 5)] and not found.remarks


NOISY = [v * (1 + (0.004 if n < 9 else 0.02) * (-1 if n % 2 else 1)) for n, v in enumerate(DOWN[:40])]


def test_noise_from_the_first_value_on() -> None:
    """No value is equal, the first fifth is within the limit, and the others are not: each is said once, alike."""
    found = pair(log(NOISY), log(DOWN[:40]))
    result, fifth = judged(found, Limits()), first_fifth(found, Limits(), 0, 0)
    text = loss_text(Answer(("a", "b"), found, result, fifth))
    assert "many equal values" not in text and "another order of the data" in text
    assert "part 1 of 5 fine" in text and "first fifth aligned, of the 40 steps compared" in text and "part 2 of 5 apart" in text
    assert result.stays == result.first and "to the end" not in text.splitlines()[0]


def test_three_values_of_which_two_are_no_numbers() -> None:
    found = pair("loss 1\nloss nan\nloss nan\n", "loss 1\nloss 0.9\nloss 0.8\n")
    text = loss_text(Answer(("a", "b"), found, judged(found, Limits()), first_fifth(found, Limits(), 0, 0)))
    assert "3 values of `loss`, in the order of the logs; 1 before one side is nan or inf" in text
    assert "drift" not in text and "first fifth" not in text


def test_no_number_behind_the_first_divergence() -> None:
    _, said = judge([1.0, 1.0, 1.0, 2.0, math.nan, math.nan], [1.0] * 6)
    assert "first divergence at step 4" in said and "A is nan from step 5 on (B 1)" in said
