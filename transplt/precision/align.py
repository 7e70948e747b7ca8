"""Which operator of one run is which of the other: the longest common subsequence of the two.

Names do not show it: one operator more, and every later counter is off by one. Operators are alike when API, phase and
the shapes of inputs and outputs are; what is left over between such pairs is paired by API and phase alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from transplt.precision.record import API, BACKWARD, FORWARD, GRADIENT, OPTIMIZER, Record, Row

#: More differences than this are not looked for: the two are programs of their own, and what is found is approximate.
_MOST_EDITS = 1500
_WRAPPED = re.compile(r"^(Module\.(?:\d+\.)?)(?:module\.)+")
#: What a recorder calls by one of these names, another may call by another.
_FAMILIES = frozenset({"Functional", "Tensor", "Torch", "VF", "Aten", "Mint"})
_ARITHMETIC = frozenset("add sub mul truediv floordiv mod pow matmul and or xor".split())
_SPELLED = {
    "truediv": "div", "divide": "div", "true_divide": "div", "multiply": "mul", "subtract": "sub", "negative": "neg",
    "floordiv": "floor_divide", "mod": "remainder", "concat": "cat", "radd": "add", "rmul": "mul",
}  # fmt: skip
_WRAPPERS = re.compile(r"\.(?:DistributedDataParallel|DataParallel)$")


@dataclass(slots=True)
class Sequences:
    """The rows of one record, by what they are compared for."""

    model: list[Row]  #: operators and modules, forward and backward
    optimizer: list[Row]  #: what ran after the last backward pass, and what an optimizer called
    gradients: list[Row]
    steps: list[Row]  #: those of optimizers


def sequences(record: Record, stacks: Mapping[str, tuple[str, ...]] | None = None) -> Sequences:
    """`record` taken apart. With `stacks`, optimizers that step between two backward passes are seen, too."""
    # Gradients of parameters may be recorded last, behind what clips them.
    backward = [number for number, row in enumerate(record.rows) if row.phase == BACKWARD and row.kind != GRADIENT]
    last = max(backward, default=len(record.rows))
    found = Sequences([], [], [], [])
    for number, row in enumerate(record.rows):
        if row.kind == GRADIENT:
            found.gradients.append(row)
        elif row.kind == OPTIMIZER:
            found.steps.append(row)
        elif _WRAPPERS.search(row.api):
            continue
        elif row.phase == FORWARD and (number > last or (stacks is not None and in_optimizer(stacks.get(row.name)))):
            found.optimizer.append(row)
        else:
            found.model.append(row)
    return found


def backward_passes(record: Record) -> int:
    """How often the forward direction follows on the backward one, and one more."""
    phases = [row.phase for row in record.rows if row.kind == API]
    return sum(one == BACKWARD and other == FORWARD for one, other in pairwise(phases)) + 1


def in_optimizer(frames: tuple[str, ...] | None) -> bool:
    """Whether an operator was called by an optimizer."""
    return any("/optim/" in frame and "torch" in frame for frame in frames or ())


def api_of(row: Row) -> str:
    """The API of a row; a model that DistributedDataParallel wraps has the names of its own."""
    return _WRAPPED.sub(r"\1", row.api) if row.kind != API else row.api


def _key(row: Row) -> Hashable:
    """What operators have to share to be the same, beside their order."""
    taken, made = ([tensor.shape for tensor in side if tensor.is_tensor] for side in (row.inputs, row.outputs))
    return (_function(row), row.phase, tuple(taken), tuple(made))


def _function(row: Row) -> str:
    """The function of a row, which recorders call by different names: `Tensor.__add__`, `Tensor.add`, `Torch.add`."""
    family, _, name = row.api.partition(".")
    if row.kind != API or family not in _FAMILIES:
        return api_of(row)
    if name.startswith("__") and name.endswith("__"):
        bare = name.strip("_")
        in_place = bare[:1] == "i" and bare[1:] in _ARITHMETIC
        name = bare[1:] if in_place else bare
        name = f"{_SPELLED.get(name, name)}{'_' * in_place}"
    return _SPELLED.get(name, name)


#: What operators have to share, first all of it, then what is asked of those that are left over.
_KEYS: tuple[Callable[[Row], Hashable], ...] = (_key, lambda row: (api_of(row), row.phase))


def paired(
    npu: Sequence[Row], bench: Sequence[Row], keys: Sequence[Callable[[Row], Hashable]] = _KEYS
) -> Iterator[tuple[Row | None, Row | None]]:
    """The two sequences as one, in their order; None where the other side has no such operator."""
    if not npu or not bench or not keys:
        yield from ((row, None) for row in npu)
        yield from ((None, row) for row in bench)
        return
    alike = aligned([*map(keys[0], npu)], [*map(keys[0], bench)])
    first = second = 0
    for i, j in (*alike, (len(npu), len(bench))):
        yield from paired(npu[first:i], bench[second:j], keys[1:])
        if i < len(npu):
            yield npu[i], bench[j]
        first, second = i + 1, j + 1


def aligned(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The positions of a longest common subsequence, in order.

    E. Myers, An O(ND) difference algorithm and its variations, 1986; equal ends are taken off before.
    """
    numbers: dict[Hashable, int] = {}
    a = [numbers.setdefault(key, len(numbers)) for key in one]
    b = [numbers.setdefault(key, len(numbers)) for key in other]
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < shorter - head and a[len(a) - 1 - tail] == b[len(b) - 1 - tail]:
        tail += 1
    found = [(number, number) for number in range(head)]
    found += [(head + i, head + j) for i, j in _myers(a[head : len(a) - tail], b[head : len(b) - tail])]
    found += [(len(a) - number, len(b) - number) for number in range(tail, 0, -1)]
    return found


def _myers(a: list[int], b: list[int]) -> list[tuple[int, int]]:
    if not a or not b:
        return []
    trace: list[dict[int, int]] = []
    reach = {1: 0}
    for edits in range(min(len(a) + len(b), _MOST_EDITS) + 1):
        trace.append(dict(reach))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
            x = reach[k + 1] if down else reach[k - 1] + 1
            y = x - k
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            reach[k] = x
            if x >= len(a) and y >= len(b):
                return _back(trace, len(a), len(b))
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    return [(i + n, j + n) for i, j, size in blocks for n in range(size)]


def _back(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        reach, k = trace[edits], x - y
        down = k == -edits or (k != edits and reach[k - 1] < reach[k + 1])
        before = k + 1 if down else k - 1
        x_before = reach[before]
        y_before = x_before - before
        while x > x_before and y > max(y_before, 0):
            x, y = x - 1, y - 1
            found.append((x, y))
        x, y = x_before, y_before
    return found[::-1]
