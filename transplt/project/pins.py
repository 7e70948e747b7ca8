"""Which versions of some packages a project asks for, in the order of trust; nothing of the project is executed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from transplt.base.errors import reason
from transplt.base.text.regular_file import LOCKS, REQUIREMENTS, read_regular
from transplt.base.text.requirement import normalised
from transplt.files.dependency_files import requirements_of
from transplt.files.kind import FileKind, kind_of

#: What describes a project, and its environments, in the order of trust.
PROJECT_FILES = (
    "pyproject.toml", "setup.cfg", "setup.py", "environment.yml", "environment.yaml", "conda.yaml", "conda.yml",
    "Pipfile", "pixi.toml", "Pipfile.lock",
)  # fmt: skip
LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
_IMAGE = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(?:[\w.-]+/)*pytorch:(\d\.\d+(?:\.\d+)?)", re.IGNORECASE | re.MULTILINE)


def asked_versions(root: Path, packages: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Packages with the versions that the project at `root` asks for (`==4.46.0`), of each the first one found."""
    found: dict[str, str] = {}
    for _, package, specifier in pins(root, packages, []):
        found.setdefault(package, specifier)
    return tuple(sorted(found.items()))


def pins(root: Path, packages: Iterable[str], unread: list[str]) -> Iterator[tuple[str, str, str]]:
    """(file, package, specifier, never empty) of some packages in the order of trust; files are relative to `root`.

    Requirement files come first, then what describes the project, environments, containers, and lock files, which hold
    what a tool chose. A container image of PyTorch counts as `pytorch`. `unread` gets why files are passed over.
    """
    wanted = {normalised(package): package for package in packages}
    folder = root if root.is_dir() else root.parent
    for name in _files(folder):
        try:
            limit = LOCKS if name.endswith(".lock") else REQUIREMENTS
            text = read_regular(folder / name, limit).decode("utf-8", "replace")
        except OSError as error:
            unread.append(f"{name} is not read: {reason(error)}")
            continue
        kind = kind_of(name, b"")
        if kind is FileKind.DOCKER and "pytorch" in wanted:
            yield from ((name, wanted["pytorch"], f"=={image[1]}") for image in _IMAGE.finditer(text))
        for asked in requirements_of(text, name, kind):
            package = wanted.get(normalised(asked.name))
            if package is not None and (specifier := asked.specifier):
                yield name, package, specifier


def _files(folder: Path) -> Iterator[str]:
    names = _names(folder)
    listed = [name for name in names if re.fullmatch(r"(requirements|constraints).*\.(txt|in)", name)]
    if "requirements" in names:
        listed += [f"requirements/{name}" for name in _names(folder / "requirements") if name.endswith((".txt", ".in"))]
    yield from sorted(listed, key=lambda name: (name.startswith("constraints"), len(name), name))
    yield from (name for name in PROJECT_FILES if name in names)
    inner = [f"docker/{name}" for name in _names(folder / "docker")] if "docker" in names else []
    for name in (*names, *inner):
        if re.fullmatch(r"(docker/)?(Dockerfile|Containerfile)([.-].+)?|(docker/)?.+\.(d|D)ockerfile", name):
            yield name
    yield from (name for name in LOCK_FILES if name in names)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
