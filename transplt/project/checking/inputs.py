"""What a check looks at: the files under the paths given, each with its project and the settings in force."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transplt.base.budget import Budget
from transplt.base.disk.manifest import MANIFEST, read_manifest, reports_of
from transplt.base.disk.walk import Entry, Excluded, walk
from transplt.base.errors import UsageError, reason, shown
from transplt.base.settings import Settings, TorchTarget
from transplt.project.config import Config, find_config
from transplt.project.options import Options, settings_of
from transplt.project.own_settings import budget_for
from transplt.project.torch_version import choose_target

#: What makes a folder the top of a project.
PROJECT_MARKS = (".git", "pyproject.toml", "setup.py", "requirements.txt", MANIFEST)


@dataclass(slots=True)
class CheckedProject:
    """A project and what of it is looked at. Paths of entries are relative to `root`, a real path.

    `every` holds all its files when a folder was given, so that their facts are known to each other; `excluded` are
    paths that were asked for and are left out.
    """

    root: Path
    config: Config
    settings: Settings
    torch: TorchTarget
    budget: Budget  # of each file
    wanted: list[Entry] = field(default_factory=list)
    every: list[Entry] | None = None
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)

    def shown(self, path: str) -> str:
        """A path of the project as it is shown: relative to the current folder when it lies in it, else absolute."""
        return path_from_here(str(self.root), path) or (self.root / path).as_posix()


def path_from_here(root: str, path: str) -> str:
    """`path` of the project at `root`, relative to the current folder; empty when it does not lie in it."""
    here = os.path.realpath(".").rstrip(os.sep) + os.sep
    full = os.path.join(root, path)
    return full[len(here) :].replace(os.sep, "/") if full.startswith(here) else ""


def project_root(folder: Path, config: Config) -> Path:
    """The folder of the settings, else the nearest from `folder` upward that looks like a project, else itself."""
    if config.folder is not None:
        return config.folder
    return next((above for above in (folder, *folder.parents) if is_marked(above)), folder)


def is_marked(folder: Path) -> bool:
    """True for a folder that looks like the top of a project."""
    return any(os.path.lexists(folder / mark) for mark in PROJECT_MARKS)


def open_project(folder: Path, options: Options) -> CheckedProject:
    """The project around `folder` with the settings in force. UsageError when these are wrong."""
    config = find_config(folder, isolated=options.isolated)
    return _project(project_root(folder, config), config, options)


def _project(root: Path, config: Config, options: Options) -> CheckedProject:
    torch = choose_target(root, options.torch_version, config.torch_version)
    budget = budget_for(config.file_budget, os.environ)
    return CheckedProject(root, config, settings_of(options, config, torch, root), torch, budget)


def find_inputs(paths: Sequence[Path], options: Options) -> list[CheckedProject]:
    """The projects of `paths`, which are files or folders. UsageError for a path that is not there."""
    projects: dict[Path, CheckedProject] = {}
    folders: dict[Path, list[str]] = {}
    for path in paths:
        full = real_path(path)
        folder = full if full.is_dir() else full.parent
        config = find_config(folder, isolated=options.isolated)
        root = project_root(folder, config)
        if root not in projects:
            projects[root] = _project(root, config, options)
        inner = os.path.relpath(full, root).replace(os.sep, "/")
        if full.is_dir():
            folders.setdefault(root, []).append("" if inner == "." else inner + "/")
        else:
            _add_file(projects[root], full, inner, options)
    for root, prefixes in folders.items():
        add_folders(projects[root], tuple(prefixes), options)
    for project in projects.values():
        project.wanted = sorted({entry.path: entry for entry in project.wanted}.values(), key=lambda each: each.path)
    return [project for _, project in sorted(projects.items())]


def real_path(path: Path) -> Path:
    """The real path of a file or folder. UsageError when there is none."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        raise UsageError(f"no such file or folder: {shown(path)}") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise UsageError(f"{shown(path)} is neither a file nor a folder")
    return Path(os.path.realpath(path))


def _add_file(project: CheckedProject, full: Path, inner: str, options: Options) -> None:
    """A file that was named; what the settings exclude stays out, as it does in a folder."""
    base = project.config.base(project.root)
    try:
        excluded = Excluded(("", options.exclude), (base, project.config.exclude))
    except ValueError as error:
        raise UsageError(f"a pattern of --exclude cannot be read: {error}") from error
    if excluded.matches(inner):
        project.excluded.append(inner)
        return
    info = os.stat(full)
    project.wanted.append(Entry(inner, info.st_size, stat.S_IMODE(info.st_mode)))


def add_folders(project: CheckedProject, prefixes: tuple[str, ...], options: Options) -> None:
    """The files below these folders of the project (paths that end with a slash, or empty for all of it)."""
    found = walk(
        project.root,
        options.exclude,
        skip=reports_of(project.root, read_manifest(project.root)),
        above=(project.config.base(project.root), project.config.exclude),
    )
    project.every = found.files
    project.wanted += [entry for entry in found.files if entry.path.startswith(prefixes)]
    project.excluded += [item.path for item in found.left_out if item.path.startswith(prefixes)]
    project.unreadable += [(path, why) for path, why in found.unreadable if path.startswith(prefixes)]
