"""Which tensors of a step overflow: what is infinite on purpose, and what nobody has written yet, does not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from transplt.precision.distance import FLOAT16_MAX, overflows
from transplt.precision.harmless_operators import Print, print_of
from transplt.precision.match import is_unwritten, taken_in
from transplt.precision.record import BACKWARD, FORWARD, Row, Tensor
from transplt.precision.watch.roles import is_floating

#: A mask that is added has no number of the largest size among the arguments of its row, but a tensor.
_MASKS = frozenset({"masked_fill", "masked_fill_", "where", "full", "full_like", "new_full", "fill_", "tensor"})


class Flow:
    """The rows of a step, in their order: those inside of a module before its own. `parents` as in `Record`."""

    def __init__(self, parents: Mapping[str, str]) -> None:
        self._parents = parents
        self._inside: set[str] = set()  # modules around a row that overflows, such as one with a weight that is nan
        self._spared: set[Print] = set()  # infinite on purpose, or not written
        self._bad: dict[tuple[str, int], bool] = {}  # whether a forward call was given, or gave, what overflows

    def overflows(self, row: Row) -> tuple[list[Tensor], bool]:
        """The tensors of a row that overflow, and whether what came in does: for a backward row in its forward call,
        too."""
        # Buffers that a collective fills are among its inputs.
        inputs = () if row.api.startswith("Distributed") else (*taken_in(row), *row.parameters)
        given = [tensor for tensor in inputs if self._counts(tensor)]
        if is_unwritten(row):
            self._spared.update(map(print_of, row.outputs))
            return given, bool(given)
        if not given and self._on_purpose(row):
            self._spared.update(print_of(tensor) for tensor in row.outputs if _is_bounded(tensor))
        bad = [*given, *(tensor for tensor in row.outputs if self._counts(tensor))]
        call = row.api, row.index
        came_in = bool(given) or row.name in self._inside
        outer = self._parents.get(row.name, "") if bad else ""
        while outer and outer not in self._inside:
            self._inside.add(outer)
            outer = self._parents.get(outer, "")
        if row.phase == FORWARD:
            self._bad[call] = bool(bad)
        elif row.phase == BACKWARD:
            came_in |= self._bad.get(call, False)
        return bad, came_in

    def _counts(self, tensor: Tensor) -> bool:
        return is_floating(tensor) and overflows(tensor) and print_of(tensor) not in self._spared

    def _on_purpose(self, row: Row) -> bool:
        """Whether an operator is told to write the largest number, or is given what was written so."""
        numbers = (tensor.max for tensor in row.inputs if not tensor.is_tensor and tensor.max is not None)
        if any(math.isinf(number) or abs(number) >= FLOAT16_MAX for number in numbers):
            return True
        if row.api.rpartition(".")[2] in _MASKS and any(
            tensor.is_tensor and tensor.size == 1 and overflows(tensor) for tensor in row.inputs
        ):
            return True
        return any(print_of(tensor) in self._spared for tensor in row.inputs if tensor.is_tensor)


def _is_bounded(tensor: Tensor) -> bool:
    """Infinite to one side alone: no mask leaves both, and none leaves nan."""
    if tensor.max is None or tensor.min is None or tensor.max != tensor.max:
        return False
    return overflows(tensor) and (abs(tensor.max) < FLOAT16_MAX or abs(tensor.min) < FLOAT16_MAX or tensor.max < 0)
