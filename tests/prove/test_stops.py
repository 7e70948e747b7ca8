"""Whether two programs stop for the same reason."""

from __future__ import annotations

import pytest

from transplt.proof.prove.runs import Stop
from transplt.proof.prove.training import Place


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("NameError: name 'x' is not defined", "NameError: name 'x' is not defined", True),
        ("RuntimeError: modified: [torch.cuda.FloatTensor [64, 1]] is at version 2",
         "RuntimeError: modified: [npuFloatType [64, 1]] is at version 2", True),
        ("RuntimeError: found cuda:0 and cpu", "RuntimeError: found npu:0 and cpu", True),
        ("NameError: name 'x' is not defined", "NameError: name 'y' is not defined", False),
        ("RuntimeError: modified: [torch.cuda.FloatTensor [64, 1]] is at version 2",
         "RuntimeError: modified: [npuHalfType [64, 1]] is at version 2", False),
    ],
)  # fmt: skip
def test_the_same_reason(one: str, other: str, same: bool) -> None:
    assert Stop(one, Place("a.py", 1)).is_that_of(Stop(other, Place("a.py", 2))) == same


def test_a_program_that_ends_stops_for_no_reason() -> None:
    assert not Stop("NameError", None).is_that_of(None)
