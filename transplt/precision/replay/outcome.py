"""What a replay computed beside what the dump has of the same calls."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from transplt.base.errors import shown
from transplt.precision.compare import matched_with_metrics
from transplt.precision.distance import TOLERANCES
from transplt.precision.dumps import open_dump
from transplt.precision.files import read_json
from transplt.precision.judge import output_difference
from transplt.precision.record import API, Part, Record, Row, Tensor, UnusableDump
from transplt.precision.replay.plan import Plan
from transplt.precision.silent_errors import known_lines, rows_called
from transplt.precision.table import Line, lines

_LATE = "writes into its input, which the dump has only as it was afterwards"


@dataclass(frozen=True, slots=True)
class Differing:
    """A row that was computed otherwise of the same inputs."""

    row: str
    how: str  #: a clause about the NPU's side: `scaled by 1.02`
    times: float  #: of the tolerance


@dataclass(slots=True)
class Outcome:
    """`device` computed the rows again; the recorded side is the NPU's unless `device` is one."""

    device: str
    calls: int  #: that were computed again
    failed: list[tuple[str, str]]  #: (row, error)
    left: list[tuple[str, str, str]]  #: as Plan.left
    stacks: Mapping[str, tuple[str, ...]]
    differing: list[Differing] = field(default_factory=list)
    #: What is known of operators that differ: each a line about numbers that an NPU gives wrong without an error.
    known: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    #: Of the rows that differ from another dump: those that compute otherwise, that only pass on, and those of which
    #: nobody knows. None without another dump.
    beside: tuple[list[str], list[str], list[str]] | None = None

    @property
    def on_npu(self) -> bool:
        return self.device.startswith("npu")


@dataclass(slots=True)
class Replayed:
    """What the script wrote."""

    record: Record
    device: str
    failed: dict[str, str] = field(default_factory=dict)


def read_replayed(path: str, step: int, rank: int) -> Replayed:
    """What the script wrote into `path`. UnusableDump where it did not, or of another step or rank."""
    dump = open_dump(path)
    if (part := dump.parts.get((step, rank))) is None:
        raise UnusableDump(f"{shown(path)} has nothing of step {step}, rank {rank}")
    document = read_json(os.path.join(part.where, "dump.json")) if dump.kind == "msprobe" else {}
    replay_info = document.get("replay") if isinstance(document, dict) else None
    if not isinstance(replay_info, dict) or not isinstance(replay_info.get("device"), str):
        raise UnusableDump(f"{shown(path)} is no replay: the script of `transplt replay --script` writes one")
    failed = replay_info.get("failed")
    errors = failed if isinstance(failed, dict) else {}
    return Replayed(part.read(), replay_info["device"], {str(name): str(error) for name, error in errors.items()})


def outcome(plan: Plan, part: Part, replayed: Replayed, given: float | None = None) -> Outcome:
    """The recorded rows of `part` beside those that were computed again; `given` is a tolerance for all types."""
    again = {row.name: row for row in replayed.record.rows}
    groups: dict[float | None, tuple[list[Row], list[Row]]] = {}
    failed: list[tuple[str, str]] = []
    for row, expected, allowed in _expected(plan):
        if row.name not in again:
            failed.append((row.name, replayed.failed.get(row.name, "was not computed again")))
            continue
        # Inputs are the same ones on both sides, and only outputs are compared.
        made = [tensor for tensor in again[row.name].outputs if tensor.is_tensor]
        recorded, computed = groups.setdefault(allowed if given is None else given, ([], []))
        recorded.append(_bare(row, expected))
        computed.append(_bare(row, [new._replace(name=old.name) for new, old in zip(made, expected, strict=False)]))
    calls = sum(call.row.name in again for call in plan.calls)
    found = Outcome(replayed.device, calls, failed, plan.left, part.stacks())
    for allowed, (recorded, computed) in groups.items():
        theirs, ours = _Given(plan.folder, recorded), _Given(replayed.record.folder, computed)
        matched, metrics = matched_with_metrics(*((ours, theirs) if found.on_npu else (theirs, ours)), allowed)
        found.differing += [
            Differing(each.row.name, clause, each.outputs)
            for each in matched.model
            if (clause := output_difference(each, metrics))
        ]
        found.lines += lines(matched, metrics, allowed)
    _leave_out(found, plan)
    order = {row.name: number for number, (row, _, _) in enumerate(_expected(plan))}
    found.differing.sort(key=lambda each: order[each.row])
    found.lines.sort(key=lambda line: order[line.operator])
    found.known = known_lines(rows_called([call.row for call in plan.calls], (each.row for each in found.differing)))
    for number, line in enumerate(found.lines):
        line.index = number
    return found


def _leave_out(found: Outcome, plan: Plan) -> None:
    """Takes out what was given an input of after the call, and so gives something else."""
    late = {call.row.name: call for call in plan.calls if call.afterwards}
    for name in [each.row for each in found.differing if each.row in late]:
        back = late[name].backward
        rows = [name, back.row.name] if back is not None else [name]
        found.calls -= 1
        found.left = [*found.left, *((row, _LATE, "") for row in rows)]
        found.differing = [each for each in found.differing if each.row not in rows]
        found.lines = [line for line in found.lines if line.operator not in rows]


def _expected(plan: Plan) -> list[tuple[Row, Sequence[Tensor], float | None]]:
    """The recorded rows of a plan, forward and then backward, with the tensors that a replay should give, and the
    tolerance of an operator that computes in a coarser type than its tensors have: None for all others."""
    found: list[tuple[Row, Sequence[Tensor], float | None]] = []
    for call in plan.calls:
        coarse = TOLERANCES.get(call.cast) if call.cast != "float32" else None
        found.append((call.row, call.outputs, coarse))
        if call.backward is not None:
            found.append((call.backward.row, [tensor for _, tensor in call.backward.wanted], coarse))
    return found


def _bare(row: Row, outputs: Sequence[Tensor]) -> Row:
    return Row(row.name, row.api, row.kind, row.phase, row.index, (), tuple(outputs))


@dataclass(frozen=True)
class _Given(Part):
    """Rows that are known already."""

    folder: str
    rows: list[Row]

    def read(self) -> Record:
        return Record(self.folder, self.rows, "tensor")

    @property
    def where(self) -> str:
        return self.folder


def beside(found: Outcome, part: Part, bench: Part, given: float | None = None) -> None:
    """Sorts the rows in which two dumps differ by whether they compute otherwise of their own."""
    matched, metrics = matched_with_metrics(part, bench, given)
    both = [each for each in (*matched.model, *matched.optimizer) if each.npu is not None and each.row.kind == API]
    apart = [each.row.name for each in both if output_difference(each, metrics)]
    own = {each.row for each in found.differing}
    known = {line.operator for line in found.lines}
    found.beside = (
        [name for name in apart if name in own],
        [name for name in apart if name in known and name not in own],
        [name for name in apart if name not in known],
    )
