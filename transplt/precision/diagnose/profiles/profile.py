"""What was read of one profile, of bounded size: operators, host operators, steps, collectives, lines of source.

All times are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from transplt.precision.diagnose.profiles.names import type_of
from transplt.precision.diagnose.stacks import Frame
from transplt.rules.profiles import api_kind, kind_of

#: Where the names of a table are more than that, the rest is summed up under one name.
MOST_NAMES, MOST_SHAPES, MOST_STEPS, MOST_LINES, MOST_GAPS = 20_000, 256, 10_000, 5_000, 5
MOST_CALLED, MOST_DEVICES = 8, 64
THE_REST = "(all others)"


@dataclass(slots=True)
class Total:
    """Calls and their time."""

    count: int = 0
    us: float = 0.0
    most: float = 0.0

    def add(self, us: float, count: int = 1, most: float | None = None) -> None:
        """Counts calls that took so long together."""
        self.count += count
        self.us += us
        self.most = max(self.most, us / max(count, 1) if most is None else most)

    @property
    def mean(self) -> float:
        """Microseconds a call."""
        return self.us / self.count if self.count else 0.0


@dataclass(slots=True)
class Operator:
    """The kernels of one type on one core. `new_shapes`: launches with shapes that the first step had not;
    `takes`: types of the inputs; `called`: aclnn functions that launch it."""

    type: str
    core: str
    kind: str
    total: Total = field(default_factory=Total)
    new_shapes: Total = field(default_factory=Total)
    shapes: set[str] = field(default_factory=set)
    takes: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)


@dataclass(slots=True)
class ProfiledStep:
    """One row of step_trace_time: microseconds."""

    device: str
    step: str
    computing: float
    communication: float
    not_hidden: float
    free: float
    preparing: float

    @property
    def whole(self) -> float:
        """All that the step took."""
        return self.computing + self.not_hidden + self.free


@dataclass(slots=True)
class Gap:
    """Times in which the card had nothing to do between kernels of the same two types, as they come in each step:
    how many, all of them, and the longest with the kernels around it; microseconds."""

    us: float
    before: str
    after: str
    total: float = 0.0
    times: int = 0

    def add(self, us: float, before: str, after: str) -> None:
        """Counts one more."""
        self.times += 1
        self.total += us
        if us > self.us:
            self.us, self.before, self.after = us, before, after


@dataclass(slots=True)
class _Clock:
    """One device: until when it is busy, with anything and with computing, and for how long it was."""

    start: float = 0.0
    last: str = ""
    until: float = 0.0
    computing_until: float = 0.0
    busy: float = 0.0
    computing: float = 0.0
    idle: float = 0.0
    communicating: float = 0.0


@dataclass(slots=True)
class Collective:
    """A kind of collective: elapsed and waited, in microseconds."""

    total: Total = field(default_factory=Total)
    waited: float = 0.0


@dataclass(slots=True)
class LineTime:
    """What one line of the user's source took through one PyTorch operator."""

    frame: Frame
    operator: str
    count: int = 0
    device: float = 0.0
    host: float = 0.0


class Profile:
    """One profiler run, or one file of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.read: list[str] = []
        self.remarks: list[str] = []
        self.operators: dict[tuple[str, str], Operator] = {}
        self.host: dict[str, Total] = {}
        self.apis: dict[str, Total] = {}
        self.steps: list[ProfiledStep] = []
        self.collectives: dict[str, Collective] = {}
        self.lines: dict[tuple[str, int, str, str], LineTime] = {}
        self.garbage = Total()
        #: Calls of PyTorch by name and shapes: on the host, on the card; and the traces that say what calls what.
        self.calls: dict[tuple[str, str], tuple[Total, Total]] = {}
        self.traces: list[Path] = []
        #: What the operators are that have a time on the card: a kernel, or a call of PyTorch where none has kernels.
        self.counted = "kernel"
        self._called: dict[str, Total] = {}
        self._gaps: dict[tuple[str, str], Gap] = {}
        self._first_step = ""
        self._clocks: dict[str, _Clock] = {}
        self._ordered = True

    def operator(self, type_: str, core: str) -> Operator:
        """The operator of a type and core, new where it was not seen."""
        if (found := self.operators.get((type_, core))) is None:
            if len(self.operators) >= MOST_NAMES:
                type_, core = THE_REST, ""
            found = self.operators.setdefault((type_, core), Operator(type_, core, kind_of(type_, core)))
        return found

    def kernel(
        self, operator: Operator, us: float, *, shapes: str = "", step: str = "", takes: str = "", called: str = ""
    ) -> None:
        """Counts one launch."""
        operator.total.add(us)
        for name, names in ((takes, operator.takes), (called, operator.called)):
            if name and len(names) < MOST_CALLED:
                names.add(name)
        self._first_step = self._first_step or step
        if shapes and shapes not in operator.shapes:
            if step != self._first_step and operator.shapes:
                operator.new_shapes.add(us)
            if len(operator.shapes) < MOST_SHAPES:
                operator.shapes.add(shapes)

    def interval(self, device: str, start: float, us: float, what: str, *, communicates: bool) -> None:
        """A kernel on the clock. Kernels of a device come in the order of their start; else nothing is made of them."""
        if start <= 0:
            return
        if (clock := self._clocks.get(device)) is None:
            if len(self._clocks) >= MOST_DEVICES:
                return
            clock = self._clocks[device] = _Clock(start, what, start, start)
        self._ordered = self._ordered and start >= clock.start
        if start > clock.until:
            clock.idle += start - clock.until
            self._gap(start - clock.until, what, clock.last)
        end = start + us
        clock.busy += max(end - max(start, clock.until), 0.0)
        clock.until = max(end, clock.until)
        if communicates:
            clock.communicating += us
        else:
            clock.computing += max(end - max(start, clock.computing_until), 0.0)
            clock.computing_until = max(end, clock.computing_until)
        clock.start, clock.last = start, what

    def _gap(self, us: float, before: str, after: str) -> None:
        key = type_of(before), type_of(after)
        if (gap := self._gaps.get(key)) is None:
            if len(self._gaps) >= MOST_NAMES:
                return
            gap = self._gaps[key] = Gap(us, before, after)
        gap.add(us, before, after)

    def finish(self) -> None:
        """Where no file has kernels, the calls of PyTorch have the time on the card; where none says the parts of the
        time, the clock of the kernels does."""
        if not self.operators and any(total.us for total in self._called.values()):
            self.counted = "call"
            for name, total in self._called.items():
                if total.us:
                    self.operator(name, "").total = total
        if self.steps or not self._ordered:
            return
        for device, clock in self._clocks.items():
            not_hidden = clock.busy - clock.computing
            step = ProfiledStep(device, "", clock.computing, clock.communicating, not_hidden, clock.idle, 0.0)
            self.steps.append(step)

    def host_operator(self, name: str, us: float, count: int = 1) -> None:
        """Counts a call of PyTorch on the host."""
        _total_of(self.host, name).add(us, count)

    def on_card(self, name: str, us: float) -> None:
        """Counts the time on the card of a call of PyTorch."""
        if us:
            _total_of(self._called, name).add(us)

    def call(self, name: str, shapes: str, host: float, card: float) -> None:
        """Counts a call of PyTorch by its shapes, too."""
        if len(self.calls) < MOST_NAMES:
            times = self.calls.setdefault((name, shapes), (Total(), Total()))
            times[0].add(host)
            if card:
                times[1].add(card)

    def api(self, name: str, us: float, count: int, most: float) -> None:
        """Counts calls of a function of CANN."""
        _total_of(self.apis, name).add(us, count, most)

    def line(self, frame: Frame, operator: str, device: float, host: float) -> None:
        """Counts what a line of source called."""
        key = frame.path, frame.line, frame.function, operator
        if (found := self.lines.get(key)) is None:
            if len(self.lines) >= MOST_LINES:
                return
            found = self.lines[key] = LineTime(frame, operator)
        found.count += 1
        found.device += device
        found.host += host

    @property
    def card(self) -> float:
        """The time of all kernels, microseconds."""
        return sum(each.total.us for each in self.operators.values())

    @property
    def whole(self) -> float:
        """The time of all steps; 0 where nothing tells it."""
        return sum(step.whole for step in self.steps)

    def by_kind(self) -> dict[str, Total]:
        """Kernels by kind, the dearest first."""
        found: dict[str, Total] = {}
        for each in self.operators.values():
            total = found.setdefault(each.kind, Total())
            total.add(each.total.us, each.total.count, each.total.most)
        return dict(sorted(found.items(), key=lambda item: -item[1].us))

    def dearest(self) -> list[Operator]:
        """Operators, the dearest first."""
        return sorted(self.operators.values(), key=lambda each: (-each.total.us, each.type, each.core))

    def longest_gaps(self) -> list[Gap]:
        """The gaps that cost most, the dearest first; none where the kernels came in no order."""
        dear = sorted(self._gaps.values(), key=lambda gap: (-gap.total, -gap.us, gap.before))
        return dear[:MOST_GAPS] if self._ordered else []

    def apis_that(self, kind: str) -> Iterator[tuple[str, Total]]:
        """Functions of CANN that compile or wait, the dearest first."""
        yield from sorted(((n, t) for n, t in self.apis.items() if api_kind(n) == kind), key=lambda item: -item[1].us)


def _total_of(totals: dict[str, Total], name: str) -> Total:
    if name not in totals and len(totals) >= MOST_NAMES:
        name = THE_REST
    return totals.setdefault(name, Total())
