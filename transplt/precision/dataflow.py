"""Which operator made what another one takes in: dumps do not record it, and the figures of the tensors show it."""

from __future__ import annotations

from transplt.precision.harmless_operators import Print, print_of
from transplt.precision.match import Match
from transplt.precision.record import Tensor


class Wiring:
    """What the operators made that were looked at so far."""

    def __init__(self) -> None:
        self._npu: dict[Print, list[tuple[Match, str]]] = {}
        self._bench: dict[Print, str] = {}

    def made(self, each: Match) -> None:
        """An operator has run."""
        if each.npu is not None:
            for tensor in each.npu.outputs:
                self._npu.setdefault(print_of(tensor), []).append((each, f"{each.npu.name} {tensor.name}"))
        if each.bench is not None:
            for tensor in each.bench.outputs:
                self._bench[print_of(tensor)] = f"{each.bench.name} {tensor.name}"

    def unknown(self, npu: Tensor) -> bool:
        """Whether no operator of the NPU made this tensor."""
        return print_of(npu) not in self._npu

    def makers(self, npu: Tensor, bench: Tensor) -> tuple[str, str] | None:
        """What made the two tensors, where both were made by operators that agree, and not by the same one."""
        ours, theirs = self._npu.get(print_of(npu), []), self._bench.get(print_of(bench))
        if not ours or theirs is None or any(each.one_sided or max(each.inputs, each.outputs) > 1 for each, _ in ours):
            return None
        return None if any(name == theirs for _, name in ours) else (ours[-1][1], theirs)
