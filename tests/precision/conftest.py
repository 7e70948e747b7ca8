"""What holds of every comparison that a test makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from transplt.precision import first_line as sentence
from transplt.precision.compare import Comparison
from transplt.precision.rank_detail import Detail


@pytest.fixture(autouse=True)
def no_row_is_wrong_where_nothing_diverges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`Accuracy Reached or Not` says No of no row, in no step and rank, where the first line says `no divergence`."""
    agreeing, same = sentence.agreeing, Comparison.same
    seen: list[Comparison] = []

    def check(found: Comparison) -> None:
        if any(each is found for each in seen):
            return
        seen.append(found)
        for each in found.compared:
            if not each.noisy:
                wrong = [line.npu_name for line in Detail(found, each).lines if line.reached == "No"]
                assert not wrong, (each.step, each.rank, wrong[:5])

    def checked(found: Comparison) -> str:
        check(found)
        return agreeing(found)

    def checked_same(found: Comparison) -> bool:
        assert isinstance(same, property) and same.fget is not None
        if found.first is None:
            check(found)
        return bool(same.fget(found))

    monkeypatch.setattr(sentence, "agreeing", checked)
    monkeypatch.setattr(Comparison, "same", property(checked_same))
    yield
