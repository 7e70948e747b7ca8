"""A survey: what is known already is taken, the rest is carried out, every result is kept as soon as it is there."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import transplt
from transplt.base.disk.replace import remove_unfinished, write_whole
from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.project.executors import Where, carry_out
from transplt.project.report.action_lines import converted
from transplt.project.survey.alone import analyse
from transplt.project.survey.fingerprint import SCHEMA
from transplt.project.survey.portfolio import document
from transplt.project.survey.sources import Source
from transplt.project.survey.task import Answer, Task
from transplt.project.unread_files import Died

#: The survey itself, and the folder with a file for each repository.
DOCUMENT, STATES = "survey.json", "repositories"
_UNSAFE = re.compile(r"[^\w.-]+", re.ASCII)
_MOST_NAME = 80


@dataclass(frozen=True, slots=True)
class State:
    """What is kept of one repository."""

    key: str
    row: dict[str, Any]
    cpu: float
    peak_mb: int


@dataclass(frozen=True, slots=True)
class Done:
    """A survey: the document, how many analyses were made now, and how many were there already."""

    document: dict[str, Any]
    made: int
    known: int


def check_folder(out: Path, sources: Sequence[Source]) -> None:
    """UsageError when `out` lies in a repository, or holds something else than a survey."""
    real = Path(os.path.realpath(out))
    for source in sources:
        inside = Path(source.text)
        if not source.is_url and (real == inside or inside in real.parents):
            raise UsageError(f"{shown(out)} is inside {source.shown}, which is never changed")
    if os.path.lexists(out) and not out.is_dir():
        raise UsageError(f"{shown(out)} is not a folder")
    if out.is_dir() and not (out / STATES).is_dir() and any(out.iterdir()):
        raise UsageError(f"{shown(out)} is not empty and has no survey by transplt")


def survey(
    sources: Sequence[Source], out: Path, where: Where, asked: Task, progress: Callable[[str], None]
) -> Done:
    """Surveys into the folder `out`. `asked` has what is asked of every repository, `progress` gets a line for each.

    UsageError as `check_folder`; CannotFinish when the system refuses to write.
    """
    check_folder(out, sources)
    states = out / STATES
    files = [states / state_name(source) for source in sources]
    try:
        states.mkdir(parents=True, exist_ok=True)
        for note in remove_unfinished([*files, out / DOCUMENT]):
            progress(note)
    except OSError as error:
        raise CannotFinish(f"cannot write {shown(states)}: {reason(error)}") from error
    known = {source.name: read_state(path) for source, path in zip(sources, files, strict=True)}
    keys = {name: state.key for name, state in known.items() if state is not None}
    tasks = [
        replace(asked, name=source.name, source=source.text, is_url=source.is_url, known=keys.get(source.name, ""))
        for source in sources
    ]
    by_name = {source.name: (source, path) for source, path in zip(sources, files, strict=True)}
    rows: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    made = 0
    for task, answer in carry_out(where, analyse, tasks):
        source, path = by_name[task.name]
        before = f"[{len(rows) + len(failed) + 1}/{len(tasks)}] {shown(task.name)}"
        if isinstance(answer, Died):
            answer = Answer(failed=answer.why)
        if answer.failed:
            why = answer.failed.replace(source.text, source.shown)  # only the user may know all of the URL
            failed[task.name] = "".join(each if each.isprintable() else " " for each in why)
            progress(f"{before}: failed: {failed[task.name]}")
            continue
        state = known[task.name]
        if answer.same and state is not None:
            rows[task.name] = {**state.row, "name": task.name}
            progress(f"{before}: unchanged")
            continue
        state = State(answer.key, {**json.loads(answer.row), "source": source.shown}, answer.cpu, answer.peak_mb)
        value = {"schema": SCHEMA, "key": state.key, "cpu": state.cpu, "peak_mb": state.peak_mb, "row": state.row}
        _write(path, (json.dumps(value, indent=1, ensure_ascii=True, sort_keys=True) + "\n").encode("ascii"))
        rows[task.name] = state.row
        made += 1
        places = converted(state.row["done"], state.row["counted"])
        progress(f"{before}: {places} ({answer.cpu:.1f} s, {answer.peak_mb} MB)")
    read = [rows[source.name] for source in sources if source.name in rows]
    unread = [
        {"name": one.name, "source": one.shown, "reason": failed[one.name]} for one in sources if one.name in failed
    ]
    value = document(read, unread, transplt.__version__)
    return Done(value, made, len(rows) - made)


def state_name(source: Source) -> str:
    """The name of the file of a repository: readable, and its own whatever the name."""
    digest = hashlib.blake2b(source.text.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return f"{_UNSAFE.sub('_', source.name)[:_MOST_NAME]}-{digest}.json"


def read_state(path: Path) -> State | None:
    """What is kept of a repository; None where there is nothing, or nothing of this form."""
    try:
        value = json.loads(read_regular(path, RECORDS, follow=False))
        if value["schema"] != SCHEMA:
            return None
        return State(str(value["key"]), dict(value["row"]), float(value["cpu"]), int(value["peak_mb"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise CannotFinish(f"cannot write {shown(path)}: {reason(error)}") from error


def write_reports(out: Path, files: dict[str, bytes]) -> None:
    """Writes the reports of a survey, each whole. CannotFinish when the system refuses."""
    for name, data in files.items():
        _write(out / name, data)


def read_document(folder: Path) -> dict[str, Any]:
    """The document of an earlier survey. UsageError when there is none, or one of another form."""
    path = folder / DOCUMENT if folder.is_dir() else folder
    try:
        value = json.loads(read_regular(path, RECORDS))
        schema = value["schema"]
        if value["tool"] != "transplt" or not isinstance(value["repositories"], list):
            raise ValueError
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"{shown(path)} is not a survey by transplt") from error
    if schema != SCHEMA:
        raise UsageError(f"{shown(path)} is a survey of schema {schema}; this transplt reads {SCHEMA}: make it again")
    return dict(value)
