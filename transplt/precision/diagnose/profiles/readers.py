"""The files of a profiler, each read into a `Profile`. They are known by what they hold, not by their names.

Columns: the Ascend PyTorch Profiler user guide (Ascend/pytorch, docs/en/developer_notes, 2026-08) and
torch_npu/profiler/analysis for kernel_details, operator_details and step_trace_time; Ascend/msprof,
profile_data_file_references.md (2026) for op_summary, op_statistic and api_statistic; the events of trace_view.json as
in the traces among the tests of Ascend/msprof-analyze.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, BinaryIO

from transplt.precision.diagnose.profiles.calls import shapes_of
from transplt.precision.diagnose.profiles.names import called_by, type_of
from transplt.precision.diagnose.profiles.profile import MOST_STEPS, Collective, Profile, ProfiledStep
from transplt.precision.diagnose.profiles.tables import Table, UnreadableProfile, cell, finite, number
from transplt.precision.diagnose.stacks import Frame, Project, own_frame
from transplt.rules.profiles import COMMUNICATION

_FRAME = re.compile(r"(?P<path>[^\r\n]{1,1000})\((?P<line>\d{1,9})\)(?:: (?P<function>[^\r\n]{1,200}))?$")
_MOST_STACKS = 20_000


class Stacks:
    """Call stacks as a profiler writes them, the innermost frame first; the user's own line of each."""

    def __init__(self, project: Project | None) -> None:
        self._project = project
        self._known: dict[str, Frame | None] = {}

    def own(self, stack: str) -> Frame | None:
        """The innermost line of the user's source, None for none."""
        if stack in self._known:
            return self._known[stack]
        frames = []
        for part in stack.split(";"):
            if match := _FRAME.match(part.strip()):
                frames.append(Frame(match["path"].strip(), int(match["line"]), (match["function"] or "").strip()))
        found = own_frame(reversed(frames), self._project)
        if len(self._known) < _MOST_STACKS:
            self._known[stack] = found
        return found


def read_table(file: BinaryIO, profile: Profile, stacks: Stacks) -> str:
    """Reads a CSV; gives what it is, empty for a table of a profiler that says nothing of time.

    UnreadableProfile for what is no table.
    """
    table = Table(file)
    for what, columns, read in _TABLES:
        if table.has(*columns):
            read(table, profile, stacks)
            if table.broken:
                profile.remarks.append(f"{what} is read to {table.broken}")
            return what
    if len(table.columns) < 2:
        raise UnreadableProfile("it is no table of a profiler")
    return ""


def _kernels(table: Table, profile: Profile, stacks: Stacks) -> None:
    name, type_ = table.place("Name", "Op Name"), table.place("Type", "OP Type")
    core, start = table.place("Accelerator Core", "Task Type"), table.place("Start Time(us)", "Task Start Time(us)")
    us = table.place("Duration(us)", "Task Duration(us)")
    shapes, step, device = table.place("Input Shapes"), table.place("Step Id"), table.place("Device_id")
    takes = table.place("Input Data Types")
    for row in table:
        kernel, on = cell(row, name), cell(row, core)
        if not kernel:
            continue
        kind = cell(row, type_)
        operator = profile.operator(type_of(kernel) if not kind or kind.endswith("_") else kind, on)
        took = number(row, us)
        profile.kernel(
            operator, took, shapes=cell(row, shapes), step=cell(row, step), takes=cell(row, takes),
            called=called_by(kernel),
        )  # fmt: skip
        communicates = operator.kind == COMMUNICATION
        profile.interval(cell(row, device), number(row, start), took, kernel, communicates=communicates)


def _statistic(table: Table, profile: Profile, stacks: Stacks) -> None:
    type_, core = table.place("OP Type"), table.place("Core Type")
    count, us, most = table.place("Count"), table.place("Total Time(us)"), table.place("Max Time(us)")
    for row in table:
        if kind := cell(row, type_):
            total = profile.operator(kind, cell(row, core)).total
            total.add(number(row, us), int(number(row, count)), number(row, most))


def _host_operators(table: Table, profile: Profile, stacks: Stacks) -> None:
    name, stack, shapes = table.place("Name"), table.place("Call Stack"), table.place("Input Shapes")
    host, device = table.place("Host Self Duration(us)"), table.place("Device Self Duration(us)")
    for row in table:
        operator = cell(row, name)
        if not operator:
            continue
        profile.host_operator(operator, number(row, host))
        profile.on_card(operator, number(row, device))
        profile.call(operator, shapes_of(cell(row, shapes)), number(row, host), number(row, device))
        called = cell(row, stack)
        if called and (frame := stacks.own(called)) is not None:
            profile.line(frame, operator, number(row, device), number(row, host))


def _steps(table: Table, profile: Profile, stacks: Stacks) -> None:
    places = [
        table.place(each)
        for each in ("Computing", "Communication", "Communication(Not Overlapped)", "Free", "Preparing")
    ]
    device, step = table.place("Device_id"), table.place("Step")
    for row in table:
        if row and len(profile.steps) < MOST_STEPS:
            times = (number(row, each) for each in places)
            profile.steps.append(ProfiledStep(cell(row, device), cell(row, step), *times))


def _apis(table: Table, profile: Profile, stacks: Stacks) -> None:
    name, us, count = table.place("API Name", "Name"), table.place("Time(us)"), table.place("Count")
    most = table.place("Max(us)")
    for row in table:
        if api := cell(row, name):
            profile.api(api, number(row, us), int(number(row, count)), number(row, most))


_TABLES: tuple[tuple[str, tuple[str, ...], Callable[[Table, Profile, Stacks], None]], ...] = (
    ("kernel_details", ("Name", "Accelerator Core", "Duration(us)"), _kernels),
    ("op_summary", ("Op Name", "Task Type", "Task Duration(us)"), _kernels),
    ("op_statistic", ("OP Type", "Count", "Total Time(us)"), _statistic),
    ("operator_details", ("Name", "Host Self Duration(us)", "Device Self Duration(us)"), _host_operators),
    ("step_trace_time", ("Step", "Computing", "Free"), _steps),
    ("api_statistic", ("API Name", "Time(us)", "Count"), _apis),
)


def read_communication(data: bytes, profile: Profile) -> None:
    """communication.json: how long collectives took, and how much of it they waited. UnreadableProfile for others."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableProfile("it is no JSON") from error
    for name, times in _collectives(document, 0):
        if name.lower().startswith("total"):
            continue
        kind = type_of(name.partition("@")[0])
        if kind not in profile.collectives and len(profile.collectives) >= 256:
            continue
        found = profile.collectives.setdefault(kind, Collective())
        found.total.add(1000 * finite(times.get("Elapse Time(ms)")))
        found.waited += 1000 * finite(times.get("Wait Time(ms)"))


def _collectives(document: Any, depth: int) -> Any:
    if not isinstance(document, dict) or depth > 6:
        return
    for name, value in document.items():
        if isinstance(value, dict):
            times = value.get("Communication Time Info")
            if isinstance(times, dict):
                yield name, times
            else:
                yield from _collectives(value, depth + 1)
