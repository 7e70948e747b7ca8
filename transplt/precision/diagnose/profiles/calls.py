"""Calls of PyTorch operators by name and shapes: their own time on the host, and that of the kernels they launch.

A kernel belongs to the innermost operator that its launch lies in. In a trace of torch.profiler (Kineto, torch 2.13:
`correlation` of `kernel`, `gpu_memcpy`, `gpu_memset` and `cuda_runtime`, `Input Dims` of `cpu_op`) the operators are
events; in a database of Nsight Systems (SQLite Export Schema Reference, 2026) they are the NVTX ranges that
`torch.autograd.profiler.emit_nvtx(record_shapes=True)` writes. torch_npu writes `Input Dims` as a text.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO

from transplt.precision.diagnose.profiles.events import Events
from transplt.precision.diagnose.profiles.names import operator_of, type_of
from transplt.precision.diagnose.profiles.profile import Profile, Total
from transplt.precision.diagnose.profiles.tables import UnreadableProfile, finite
from transplt.rules.profiles import COMMUNICATION

_MOST_EVENTS, _DEEPEST = 4_000_000, 16
_ON_CARD = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_LAUNCHES = frozenset({"cuda_runtime", "cuda_driver"})
_COLLECTIVE = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send|recv|reduce", re.IGNORECASE
)
_NVTX = re.compile(r"(?P<name>.+?), (?:seq|op_id|sizes) = ")
_NVTX_SIZES = re.compile(r", sizes = (?P<sizes>\[[\[\]\d, ]*\])")

#: An operator and the shapes of its tensors.
Key = tuple[str, str]


@dataclass(slots=True)
class Called:
    """The calls of one operator with the same shapes: its own time on the host, that of its kernels, and what calls
    it, from the inside outwards. Microseconds."""

    name: str
    inside: tuple[Key, ...] = ()
    host: Total = field(default_factory=Total)
    card: Total = field(default_factory=Total)


@dataclass(slots=True)
class Calls:
    """The calls of a profile, and how many steps it has; 0 where it does not say."""

    of: dict[Key, Called] = field(default_factory=dict)
    steps: int = 0

    def add(self, name: str, shapes: str, inside: tuple[Key, ...] = ()) -> Called:
        """The calls of an operator with these shapes, new where there are none."""
        return self.of.setdefault((operator_of(name), shapes), Called(name, inside))

    def collective(self, kernel: str, us: float, count: int = 1) -> None:
        """Counts collectives, by what they do: their kernels have other names on each card."""
        found = _COLLECTIVE.search(kernel)
        name = found[0].lower().replace("_", "") if found else type_of(kernel)
        self.add(f"collective {name}", "").card.add(us, count)


@dataclass(slots=True)
class _Trace:
    """What happened: ranges of operators by thread, launches by correlation, and kernels; microseconds."""

    ranges: dict[Any, list[tuple[float, float, str, str]]] = field(default_factory=dict)
    launches: dict[Any, tuple[Any, float]] = field(default_factory=dict)
    kernels: list[tuple[float, float, str, Any, str]] = field(default_factory=list)
    steps: set[str] = field(default_factory=set)
    count: int = 0

    def full(self) -> bool:
        """Counts one more; True when that is too many."""
        self.count += 1
        return self.count > _MOST_EVENTS

    def range(self, thread: Any, start: float, us: float, name: str, shapes: str) -> None:
        if name.startswith("ProfilerStep"):
            self.steps.add(name)
        else:
            self.ranges.setdefault(thread, []).append((start, start + us, name, shapes))


def read_calls(path: Path, file: BinaryIO, profile: Profile) -> Calls:
    """The calls of a trace or a database; kernels, and the parts of the time, into the profile.

    UnreadableProfile for what is neither.
    """
    start = file.read(16)
    file.seek(0)
    trace = _Trace()
    if start.startswith(b"SQLite format 3"):
        try:
            _read_database(path, trace)
        except sqlite3.Error as error:
            raise UnreadableProfile(f"it is no database of Nsight Systems ({error})") from error
    else:
        _read_events(file, trace, profile)
    if trace.count > _MOST_EVENTS:
        profile.remarks.append(f"only the first {_MOST_EVENTS:,} events are read")
    calls = Calls(steps=len(trace.steps))
    launched: dict[Any, list[tuple[float, float, str, str]]] = {}
    for began, us, name, correlation, device in sorted(trace.kernels, key=lambda kernel: kernel[0]):
        operator = profile.operator(type_of(name), "")
        profile.kernel(operator, us)
        communicates = operator.kind == COMMUNICATION
        profile.interval(device, began, us, name, communicates=communicates)
        thread, at = trace.launches.get(correlation, (None, 0.0))
        if communicates:
            calls.collective(name, us)
        elif thread in trace.ranges:
            launched.setdefault(thread, []).append((at, us, name, ""))
        else:
            calls.add(name, "").card.add(us)
    profile.finish()
    for thread, ranges in trace.ranges.items():
        _nest(ranges, launched.get(thread, []), calls)
    return calls


def shapes_of(dims: object) -> str:
    """The shapes of the tensors of a call, `16x1568 1568x32`; what has no dimensions, and lists of tensors, are out.

    >>> shapes_of([[16, 1568], [], [1568, 32], [[3], [2, 2]]]), shapes_of("16,1568;\\r\\n;\\r\\n1568,32")
    ('16x1568 1568x32', '16x1568 1568x32')
    """
    if isinstance(dims, str):
        return " ".join(each.strip().replace(",", "x") for each in dims.strip('"').split(";") if each.strip())
    if not isinstance(dims, list):
        return ""
    plain = (each for each in dims if isinstance(each, list) and each and all(isinstance(size, int) for size in each))
    return " ".join("x".join(map(str, each)) for each in plain)


def _nest(
    ranges: list[tuple[float, float, str, str]], launched: list[tuple[float, float, str, str]], calls: Calls
) -> None:
    """Counts the ranges of one thread, each without what lies in it, and kernels where they are launched."""
    events = [(start, -end, name, shapes, 0.0) for start, end, name, shapes in ranges]
    events += [(at, -at, name, shapes, us) for at, us, name, shapes in launched]
    stack: list[tuple[float, Called, tuple[Key, ...]]] = []
    for start, end, name, shapes, us in sorted(events):
        while stack and stack[-1][0] <= start:
            stack.pop()
        outer = stack[-1] if stack else None
        if us:
            (outer[1] if outer else calls.add(name, "")).card.add(us)
            continue
        call = calls.add(name, shapes, outer[2] if outer else ())
        call.host.add(-end - start)
        if outer:
            outer[1].host.us = max(outer[1].host.us - (-end - start), 0.0)
        stack.append((-end, call, ((operator_of(name), shapes), *(outer[2] if outer else ()))[:_DEEPEST]))


def _read_events(file: BinaryIO, trace: _Trace, profile: Profile) -> None:
    events = Events(file)
    first: Decimal | None = None
    for event in events:
        if event.get("ph") != "X" or trace.full():
            continue
        try:
            at = Decimal(str(event.get("ts")))
        except InvalidOperation:
            continue
        # Doubles are too coarse for microseconds since 1970.
        first = at - 1 if first is None else first
        start, us = float(at - first), finite(event.get("dur"))
        name, category = str(event.get("name", ""))[:500], str(event.get("cat", ""))
        given = event.get("args")
        given = given if isinstance(given, dict) else {}
        thread = event.get("pid"), event.get("tid")
        if category in _ON_CARD:
            trace.kernels.append((start, us, name, given.get("correlation"), str(given.get("device", ""))))
        elif category in _LAUNCHES:
            trace.launches[given.get("correlation")] = thread, start
        elif category == "cpu_op" or (
            category == "user_annotation" and name.startswith(("ProfilerStep", "Optimizer."))
        ):
            trace.range(thread, start, us, name, shapes_of(given.get("Input Dims")))
    if events.cut:
        profile.remarks.append("the trace is truncated: the events before the end are counted")


def _read_database(path: Path, trace: _Trace) -> None:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        names: dict[int, str] = dict(database.execute("SELECT id, value FROM StringIds"))
        for table, name, kept in _ACTIVITIES:
            if table in tables:
                for start, end, device, process, correlation, of in database.execute(
                    f"SELECT start, end, deviceId, globalPid >> 24, correlationId, {name} FROM {table}"
                ):
                    if not trace.full():
                        launch = process, correlation
                        what = kept or names.get(of, "")
                        trace.kernels.append((start / 1000, (end - start) / 1000, what, launch, str(device)))
        for start, thread, process, correlation in database.execute(
            "SELECT start, globalTid, globalTid >> 24, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"
        ):
            trace.launches[process, correlation] = thread, start / 1000
        if "NVTX_EVENTS" in tables:
            for each in _nvtx_ranges(database, names):
                if not trace.full():
                    trace.range(*each)


_ACTIVITIES = (
    ("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName", ""),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind", "Memcpy"),
    ("CUPTI_ACTIVITY_KIND_MEMSET", "value", "Memset"),
)


def _nvtx_ranges(
    database: sqlite3.Connection, names: dict[int, str]
) -> Iterator[tuple[object, float, float, str, str]]:
    """The ranges that say the name of an operator, as `emit_nvtx` writes them."""
    columns = {row[1] for row in database.execute("PRAGMA table_info(NVTX_EVENTS)")}
    text = "text, textId" if "textId" in columns else "text, NULL"
    query = f"SELECT start, end, globalTid, {text} FROM NVTX_EVENTS WHERE end IS NOT NULL"
    for start, end, thread, said, number in database.execute(query):
        label = said or names.get(number, "")
        if match := _NVTX.match(f"{label}, op_id = "):
            sizes = _NVTX_SIZES.search(label)
            shapes = shapes_of(json.loads(sizes["sizes"])) if sizes else ""
            yield thread, start / 1000, (end - start) / 1000, match["name"], shapes
