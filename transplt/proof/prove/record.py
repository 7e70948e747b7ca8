"""What a proof was made with, so that somebody else can make it again, and see whether its record was changed."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import click

import transplt
from transplt.base.disk.git_command import commit_of
from transplt.proof.launch.interpreter import Versions
from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.shared_options import typed_again
from transplt.proof.prove.projects import Project, hash_of

#: Options that say where a report goes and not what is compared.
_REPORTS = frozenset(
    "reports json_path html_path formerly_json formerly_html card_pack save_calls exit_zero no_cache".split()
)


@dataclass(frozen=True)
class Program:
    """One of the two programs: its folder as it was named, the commit that the folder is at ("": of no repository), and
    the sha256 of its files (see `hash_of`)."""

    path: str
    main: str
    commit: str
    sha256: str


@dataclass(frozen=True)
class Setup:
    """When, how and with what a proof was made. `command` is typed in `folder`; `settings` are those of every run."""

    made: str
    command: str
    folder: str
    versions: dict[str, str]
    settings: dict[str, Any]
    original: Program
    migrated: Program


def setup(
    command: str, options: RunOptions, versions: Versions, worlds: tuple[int, ...], given: tuple[str, str],
    projects: tuple[Project, Project],
) -> Setup:  # fmt: skip
    """The setup of a proof that begins now; `given` are the two programs as they were named."""
    assert options.trace is not None
    original, migrated = (
        Program(path, project.main, commit_of(project.root), hash_of(project))
        for path, project in zip(given, projects, strict=True)
    )
    known = {"transplt": transplt.__version__, "python": versions.python, "torch": versions.torch}
    numpy = {"numpy": versions.numpy} if versions.numpy else {}
    used = {"torch_npu_emulated": options.torch_npu.version} if options.torch_npu is not None else {}
    settings = {
        "processes": list(worlds), "npus": options.npus, "steps": options.trace.steps, "seed": options.trace.seed,
        "threads": options.threads, "timeout": options.timeout, "stubs": list(options.stubs),
    }  # fmt: skip
    return Setup(
        datetime.now(timezone.utc).isoformat(timespec="seconds"), command, os.getcwd(),
        {**known, **numpy, "torch_npu": options.torch_version, **used}, settings, original, migrated,
    )  # fmt: skip


def sealed(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its own `sha256`: of the record without it, as JSON with sorted keys and without spaces."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**record, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def command_line(context: click.Context) -> str:
    """The command that makes this proof again, quoted for a shell: what was typed, without defaults and reports."""
    return typed_again(context, left_out=_REPORTS)
