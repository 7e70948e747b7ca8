"""What holds of every comparison that a test makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from transplt.precision import sentence
from transplt.precision.compare import Comparison
from transplt.precision.detail import Detail


@pytest.fixture(autouse=True)
def no_row_is_wrong_where_nothing_diverges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`Accuracy Reached or Not` says No of no row, in no step and rank, where the first line says `no divergence`."""
    original = sentence.agreeing

    def checked(found: Comparison) -> str:
        for each in found.compared:
            if not each.noisy:
                wrong = [line.npu_name for line in Detail(found, each).lines if line.reached == "No"]
                assert not wrong, (each.step, each.rank, wrong[:5])
        return original(found)

    monkeypatch.setattr(sentence, "agreeing", checked)
    yield
