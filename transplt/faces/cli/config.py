"""`transplt config`: the settings in force, and where each comes from."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from transplt.base.errors import shown
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, ISOLATED, Command, to_stderr
from transplt.faces.cli.completing import FILE
from transplt.project.checking.inputs import CheckedProject, open_project, real_path
from transplt.project.excluded_files import may_keep_back, settings_file
from transplt.project.options import Options

DEFAULT = "default"


@click.command(cls=Command)
@click.argument("path", type=FILE, default=".", metavar="[PATH]")
@json_format
@ISOLATED
def config(path: str, as_json: bool, isolated: bool) -> int:
    """Show the settings that apply to a file or folder, and where each comes from."""
    full = real_path(Path(path))
    project = open_project(full if full.is_dir() else full.parent, Options(isolated=isolated))
    rows = settings_in_force(project, Path(path))
    for note in may_keep_back(project.config):
        to_stderr(note)
    if as_json:
        click.echo(json.dumps({name: {"value": value, "source": source} for name, value, source in rows}, indent=1))
        return DONE
    width = max(len(name) for name, _, _ in rows)
    for name, value, source in rows:
        click.echo(f"{name:{width}} = {json.dumps(value)}  # {source}")
    return DONE


_BY_NAME = (
    "style", "helper", "torch_npu_import", "specify_device", "similar", "unsafe_fixes", "annotate", "annotate_edits",
    "texts", "docs",
)  # fmt: skip


def settings_in_force(project: CheckedProject, path: Path) -> list[tuple[str, Any, str]]:
    """(name, value, where it comes from) of every setting of the project around `path`."""
    found, settings = project.config, project.settings

    def source(given: bool, key: str) -> str:
        return settings_file(found, key) if given else DEFAULT

    return [
        ("project", shown(project.root), "found upward" if project.root != real_path(path) else "as given"),
        (
            "torch-version", settings.torch_version,
            project.torch.why if found.torch_version is None else source(True, "torch-version"),
        ),
        *(
            (key, getattr(settings, name), source(getattr(found, name) is not None, key))
            for name, key in ((name, name.replace("_", "-")) for name in _BY_NAME)
        ),
        ("copy-all", bool(found.copy_all), source(found.copy_all is not None, "copy-all")),
        ("prove", found.prove or "", source(found.prove is not None, "prove")),
        ("file-budget", project.budget.text(), source(found.file_budget is not None, "file-budget")),
        *((key, value, source(bool(value), key)) for key, value in (
            ("rules", [shown(os.path.relpath(rule, project.root)) for rule in found.rules]),
            ("exclude", list(found.exclude)),
            ("per-file-ignores", dict(found.per_file_ignores)),
        )),
    ]
