"""`.view(-1)` of the first rows of what was transposed becomes `.reshape(-1)`; `prec1[0]` of a sum is reported."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate

ACCURACY = """
    import torch

    def accuracy(output, target, topk=(1,)):
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = {correct}
        res = []
        for k in topk:
            correct_k = {rows}.float().sum(0{keep})
            res.append(correct_k.mul_(100.0 / target.size(0)))
        return res
"""
EQ = "pred.eq(target.view(1, -1).expand_as(pred))"


def accuracy(rows: str = "correct[:k].reshape(-1)", correct: str = EQ, keep: str = "") -> str:
    return ACCURACY.format(rows=rows, correct=correct, keep=keep)


@pytest.mark.parametrize(
    "correct",
    [
        EQ,
        "(pred == target.view(1, -1).expand_as(pred))",
        "torch.eq(pred, target.view(1, -1).expand_as(pred))",
        "pred.eq(target).float()",
    ],
)
@pytest.mark.parametrize("rows", ["correct[:k]", "correct[0:k]", "correct[:5]"])
def test_a_view_of_the_first_rows_of_what_is_transposed(correct: str, rows: str) -> None:
    check_rewrite(
        accuracy(f"{rows}.view(-1)", correct), accuracy(f"{rows}.reshape(-1)", correct), codes_applied=["NPU159"]
    )


def test_in_the_portable_style_too() -> None:
    check_rewrite(accuracy("correct[:k].view(-1)"), accuracy("correct[:k].reshape(-1)"), style="portable")


@pytest.mark.parametrize(
    ("rows", "correct"),
    [
        ("correct[:k].reshape(-1)", EQ),
        ("correct[:k].contiguous().view(-1)", EQ),
        ("correct[:1].view(-1)", EQ),  # one row
        ("correct[k].view(-1)", EQ),
        ("correct[:k].view(k, -1)", EQ),
        ("correct[:, :k].view(-1)", EQ),
        ("correct[::2].view(-1)", EQ),
        ("correct[:k].view(-1)", "output.eq(target)"),  # nothing is transposed
        ("correct[:k].view(-1)", "pred.contiguous().eq(target)"),
        ("correct[:k].view(-1)", "pred.t().contiguous().eq(target)"),
        ("correct[:k].view(-1)", "compare(pred, target)"),
    ],
)
def test_a_view_that_may_be_one(rows: str, correct: str) -> None:
    check_noop(accuracy(rows, correct))


def test_a_tensor_that_was_given_as_it_is() -> None:
    check_noop("import torch\n\ndef f(correct, k):\n    x = k.topk(3)\n    return correct[:k].view(-1), x\n")




def numbers(use: str, keep: str = "", call: str = "accuracy(output, target, topk=(1, 5))") -> str:
    lines = ["def train(meter, output, target):", f"    prec1, prec5 = {call}", f"    meter.update({use}, 1)"]
    return "\n    ".join([accuracy(keep=keep), *lines, ""])


@pytest.mark.parametrize("use", ["prec1[0]", "prec5[0]"])
def test_a_number_has_no_first_element(use: str) -> None:
    check_noop(numbers(use), open_codes=["NPU293"])


@pytest.mark.parametrize(
    ("use", "keep", "call"),
    [
        ("prec1.item()", "", "accuracy(output, target, topk=(1, 5))"),
        ("prec1[0]", ", keepdim=True", "accuracy(output, target, topk=(1, 5))"),
        ("prec1[0]", ", True", "accuracy(output, target, topk=(1, 5))"),
        ("prec1[0]", "", "measure(output, target)"),
        ("prec1[1]", "", "accuracy(output, target, topk=(1, 5))"),
        ("output[0]", "", "accuracy(output, target, topk=(1, 5))"),
    ],
)
def test_what_may_have_a_first_element(use: str, keep: str, call: str) -> None:
    assert not migrate(numbers(use, keep, call)).findings
