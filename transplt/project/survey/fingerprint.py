"""The key of an analysis: all that goes into it, as one digest."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from transplt.base.errors import UsageError
from transplt.base.text.regular_file import OTHER, RULES, read_regular
from transplt.project.options import Options, Plan, make_plan
from transplt.project.survey.task import Task
from transplt.project.tree import inventory
from transplt.project.versions import versions_digest

#: Goes up when the rows have another form or another meaning.
SCHEMA = 3
_MB = 1024 * 1024


def plan_of(task: Task, folder: str) -> Plan:
    """The plan of the analysis of a folder. UsageError as `make_plan`."""
    return make_plan(
        Options(
            source=folder, rules=task.rules, exclude=task.exclude, isolated=task.isolated,
            torch_version=task.torch_version, hardware=task.hardware, jobs=0, analysis=True,
        )
    )  # fmt: skip


def of_folder(task: Task, plan: Plan) -> str:
    """The key of a folder, from the content of all files that are read. UsageError for too much of it.

    A file that is not read whole (it is larger than any reader takes) counts by its size.
    """
    begin = time.monotonic()
    found = inventory(plan)
    size = sum(entry.size for entry in found.files)
    if size > task.most_mb * _MB:
        raise UsageError(f"it holds {size // _MB} MB, more than the limit of {task.most_mb} MB")
    digest = hashlib.blake2b(_task_text(task).encode(), digest_size=16)
    for entry in found.files:
        if time.monotonic() - begin > task.seconds:
            raise UsageError(f"it could not be read within {task.seconds} s")
        digest.update(f"\0{entry.path}\0{entry.size}\0".encode("utf-8", "surrogateescape"))
        if entry.size <= OTHER.size or entry.is_python:
            try:
                digest.update(read_regular(plan.folder / entry.path, OTHER))
            except OSError:
                digest.update(b"unread")
    return digest.hexdigest()


def of_commit(task: Task, commit: str) -> str:
    """The key of a commit of a URL."""
    return hashlib.blake2b(f"{_task_text(task)}\0{commit}".encode(), digest_size=16).hexdigest()


def _task_text(task: Task) -> str:
    """What decides besides the repository; of rules the content."""
    versions = versions_digest()
    if not versions:
        return str(time.time_ns())  # nothing counts as the same
    try:
        rules = [hashlib.blake2b(read_regular(Path(each), RULES)).hexdigest() for each in task.rules]
    except OSError:
        rules = list(task.rules)
    asked = (SCHEMA, versions, task.torch_version, task.hardware, rules, task.exclude, task.isolated)
    return repr(asked)
