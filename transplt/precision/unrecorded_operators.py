"""Operators that the recorder of the other side does not know.

msprobe 8.3 records `torch.flatten` and 26.2 does not; a dump names no version. So an operator that one side alone has
is no divergence of its own where the other side has no call of that API at all: it is one if what takes its results
differs. Two dumps of transplt's own recorder know the same operators, and there it counts as any other.
"""

from __future__ import annotations

from functools import cached_property

from transplt.precision.harmless_operators import Print, print_of
from transplt.precision.match import Match, Matched
from transplt.precision.record import FORWARD, TRANSPLT, Tensor


class Unrecorded:
    """Such operators of a step, as they come by."""

    def __init__(self, matched: Matched) -> None:
        self._both = matched.npu, matched.bench
        self._same_recorder = all(each.recorder == TRANSPLT for each in self._both)
        self._made: tuple[dict[Print, Match], dict[Print, Match]] = {}, {}

    @cached_property
    def _apis(self) -> tuple[frozenset[str], frozenset[str]]:
        """The APIs of each side; most steps have no operator that asks for them."""
        npu, bench = (frozenset(row.api for row in record.rows) for record in self._both)
        return npu, bench

    def passes(self, each: Match) -> bool:
        """Whether an operator of one side may be one that the other side's recorder does not know; kept if so."""
        if self._same_recorder:
            return False
        npu, bench = self._apis
        if each.row.api in (bench if each.bench is None else npu):
            return False
        if each.row.phase == FORWARD:
            made = self._made[each.npu is None]
            for tensor in each.row.outputs:
                made.setdefault(print_of(tensor), each)
        return True

    def behind(self, each: Match) -> Match | None:
        """The first of those whose results, passed on from one to the next, an operator takes that is fed otherwise."""
        worst = each.worst_input
        if each.inputs <= 1 or worst is None:
            return None
        for tensor, made in zip(worst, self._made, strict=True):
            if (found := self._first(tensor, made)) is not None:
                return found
        return None

    def _first(self, tensor: Tensor, made: dict[Print, Match]) -> Match | None:
        found = made.get(print_of(tensor))
        seen = {id(found)}
        while found is not None:
            before = next((one for each in found.row.inputs if (one := made.get(print_of(each))) is not None), None)
            if before is None or id(before) in seen:
                return found
            seen.add(id(before))
            found = before
        return None
