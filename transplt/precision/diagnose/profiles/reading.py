"""What lies under a path: profiler runs of torch_npu or msprof, single files of theirs, host logs; all of it read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO

from transplt.base.errors import reason
from transplt.base.render.cell import visible
from transplt.base.text.regular_file import Limit, open_regular, read_stream
from transplt.precision.diagnose.log_pieces import UnreadableLog, refuse_what_is_no_text
from transplt.precision.diagnose.logs import NoLogs, log_files
from transplt.precision.diagnose.profiles.autograd_table import AutogradTable
from transplt.precision.diagnose.profiles.lines import lines_of
from transplt.precision.diagnose.profiles.op_info import OpInfo
from transplt.precision.diagnose.profiles.profile import Profile
from transplt.precision.diagnose.profiles.readers import Stacks, read_communication, read_table
from transplt.precision.diagnose.profiles.tables import UnreadableProfile
from transplt.precision.diagnose.profiles.trace import ALL, read_trace
from transplt.precision.diagnose.stacks import Project

_COMMUNICATION = Limit("communication.json is read", 256 * 1024 * 1024)
#: The files of a run, in the order in which they are read: what says kernels best comes first.
_KERNELS = ("kernel_details*.csv", "op_summary*.csv")
_TABLES = ("operator_details*.csv", "step_trace_time*.csv", "api_statistic*.csv")
_STATISTIC, _COLLECTIVES = "op_statistic*.csv", "communication.json"
_TRACES = ("trace_view*.json", "msprof*.json", "*.pt.trace.json", "chrome_trace*.json")
_KNOWN = (*_KERNELS, *_TABLES, _STATISTIC, _COLLECTIVES, *_TRACES)
_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_MOST_RUNS, _MOST_FOLDERS = 256, 20_000
_LONGEST = 64 * 1024


@dataclass(slots=True)
class Reading:
    """Profiles, and the operators of host logs where logs were given."""

    profiles: list[Profile] = field(default_factory=list)
    logs: OpInfo | None = None
    read_logs: list[str] = field(default_factory=list)


def read_profiles(path: str, project: Project | None) -> Reading:
    """Everything below a path. UnreadableProfile, a clause for the user, where there is nothing to read; OSError."""
    stacks = Stacks(project)
    if not os.path.isdir(path):
        return _single(path, stacks)
    runs = _runs(path)
    if not runs:
        return _logs(path)
    reading = Reading()
    for name, files in runs:
        profile = Profile(name)
        _run(files, profile, stacks)
        if profile.read:
            reading.profiles.append(profile)
    if not reading.profiles:
        remarks = visible("; ".join(profile.remarks[:3]))
        raise UnreadableProfile(f"it holds no file of a profiler that can be read: {remarks}")
    return reading


def _single(path: str, stacks: Stacks) -> Reading:
    profile = Profile(os.path.basename(path))
    with open_regular(path) as file:
        start = file.read(4096)
        try:
            refuse_what_is_no_text(start)
        except UnreadableLog as error:
            raise UnreadableProfile(str(error)) from error
        file.seek(0)
        bare = start.removeprefix(b"\xef\xbb\xbf").lstrip()
        if start.startswith(b"SQLite format 3"):
            raise UnreadableProfile(_DATABASE)
        if fnmatch(profile.name, _COLLECTIVES):
            read_communication(read_stream(file, _COMMUNICATION), profile)
        elif bare[:1] in (b"[", b"{") and not bare.startswith((b"[rank", b"[INFO", b"[ERROR", b"[WARN", b"[DEBUG")):
            read_trace(file, profile, stacks)
            profile.traces.append(Path(path))
        elif path.lower().endswith(".csv"):
            if not read_table(file, profile, stacks):
                raise UnreadableProfile("its columns are of no table that says where time goes")
        else:
            logs = Reading(logs=OpInfo())
            _log(file, profile, logs)
            return _complete(logs, profile)
    profile.finish()
    profile.read.append(profile.name)
    return Reading([profile])


def _run(files: list[Path], profile: Profile, stacks: Stacks) -> None:
    """The files of one run. What cannot be read is a remark."""

    def each(*patterns: str) -> Iterator[Path]:
        return (file for pattern in patterns for file in files if fnmatch(file.name, pattern))

    for file in each(*_KERNELS, *_TABLES):
        _tried(file, profile, lambda opened: _table(opened, profile, stacks))
    if not profile.operators:
        for file in each(_STATISTIC):
            _tried(file, profile, lambda opened: _table(opened, profile, stacks))
    for file in each(_COLLECTIVES):
        _tried(file, profile, lambda opened: read_communication(read_stream(opened, _COMMUNICATION), profile))
    # What the tables of a run do not hold, its trace may.
    tables = {"kernels": profile.operators, "steps": profile.steps, "apis": profile.apis, "host": profile.host}
    wanted = frozenset(name for name in ALL if not tables.get(name)) - ({"lines"} if profile.lines else set())
    if wanted - {"lines"} or not profile.host:
        for file in each(*_TRACES):
            _tried(file, profile, lambda opened: read_trace(opened, profile, stacks, wanted))
    profile.traces = list(each(*_TRACES))
    profile.finish()


def _table(file: BinaryIO, profile: Profile, stacks: Stacks) -> None:
    if not read_table(file, profile, stacks):
        raise UnreadableProfile("its columns are not known")


def _tried(file: Path, profile: Profile, read: object) -> None:
    assert callable(read)
    try:
        with open_regular(file) as opened:
            read(opened)
        profile.read.append(file.name)
    except UnreadableProfile as error:
        profile.remarks.append(f"{file.name} is left out: {error}")
    except OSError as error:
        profile.remarks.append(f"{file.name} is left out: {reason(error)}")


def _runs(path: str) -> list[tuple[str, list[Path]]]:
    """(name, files) of the profiler runs below a folder. Of a run of torch_npu the tables of CANN are left out."""
    found: dict[str, list[Path]] = {}
    for count, (where, folders, files) in enumerate(os.walk(path)):
        if count > _MOST_FOLDERS or len(found) >= _MOST_RUNS:
            break
        folders.sort()
        if _OUTPUT in folders:
            folders[:] = [_OUTPUT]
        known = sorted(Path(where, file) for file in files if any(fnmatch(file, each) for each in _KNOWN))
        if known:
            folder = Path(where)
            named = folder.parent if folder.name in (_OUTPUT, "mindstudio_profiler_output") else folder
            name = os.path.relpath(named, path) if named != Path(path) else Path(os.path.abspath(named)).name
            found[Path(os.path.abspath(named)).name if name.startswith("..") else name] = known
    return list(found.items())


def _logs(path: str) -> Reading:
    try:
        files = list(log_files([path]))
    except NoLogs as error:
        raise UnreadableProfile(_missing(path)) from error
    reading, profile = Reading(logs=OpInfo()), Profile(os.path.basename(os.path.abspath(path)))
    for name in files:
        with open_regular(name) as file:
            _log(file, profile, reading)
    return _complete(reading, profile)


def _log(file: BinaryIO, profile: Profile, reading: Reading) -> None:
    """Looks through one log for the operators that acl was asked for, and for tables of the autograd profiler."""
    assert reading.logs is not None
    reading.logs.begin()
    table = AutogradTable(profile)
    for line in lines_of(file, _LONGEST):
        if b"aclop" in line or b" compile op" in line or b"Match op " in line:
            reading.logs.line(line.decode("utf-8", "replace"))
        elif table.awaits or line.lstrip()[:4] == b"----":
            table.line(line.decode("utf-8", "replace").rstrip("\r\n"))
    reading.logs.end()


def _complete(reading: Reading, profile: Profile) -> Reading:
    if profile.host:
        profile.read.append("table of the autograd profiler")
        reading.profiles.append(profile)
    if reading.logs is not None and not reading.logs.operators:
        reading.logs = None
    if not reading.profiles and reading.logs is None:
        raise UnreadableProfile(
            "it holds no table of a profiler, and no lines of acl with operators (level INFO of the host log)"
        )
    return reading


_DATABASE = (
    "it is a database, and tables are read: profile with export_type=torch_npu.profiler.ExportType.Text, or analyse "
    "the run again with it"
)


def _missing(path: str) -> str:
    names = [name for _, folders, files in os.walk(path) for name in (*folders, *files)]
    if any(name.endswith(".db") for name in names):
        return _DATABASE.replace("it is a database", "it holds only a database")
    if any(name.startswith("PROF_") for name in names):
        return 'it is not analysed yet: torch_npu.profiler.profiler.analyse("DIR") or msprof --export=on writes tables'
    return "it holds no file of a profiler (kernel_details.csv, op_summary_*.csv, trace_view.json ...) and no logs"
