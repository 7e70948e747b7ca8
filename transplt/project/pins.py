"""Which versions of some packages a project asks for, in the order of trust; nothing of the project is executed."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from transplt.base.errors import reason
from transplt.base.text.regular_file import LOCKS, REQUIREMENTS, read_regular
from transplt.base.text.requirement import Requirement, normalised
from transplt.engine.files.dependency_files import FOLDERS, requirements_of
from transplt.engine.files.kind import FileKind, kind_of

#: What describes a project, and its environments, in the order of trust.
PROJECT_FILES = (
    "pyproject.toml", "setup.cfg", "setup.py", "environment.yml", "environment.yaml", "conda.yaml", "conda.yml",
    "Pipfile", "pixi.toml", "Pipfile.lock",
)  # fmt: skip
LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
#: What lists of packages for NPUs alone are called; they stand beside those of CUDA.
LIST_FOR_NPUS = re.compile(r"-npu(?=\.(?:txt|ya?ml)\Z)")
_YAML = (".yml", ".yaml")
_DOCKER = re.compile(r"(?:.+[-_.])?(?:docker|container)file(?:[-_.].+)?|(?:docker-)?compose(?:[-_.].*)?\.ya?ml")
#: The section of what a container begins with.
IMAGE = "image"
#: Scripts that install, by their names.
_INSTALLS = re.compile(r"(?:.*[-_.])?(?:install|setup|env|environment|requirements)(?:[-_.].*)?\.(?:sh|bash)")
_IMAGE = re.compile(
    r"^\s*(?:FROM\s+(?:--\S+\s+)*|image:\s*[\"']?)(?:[\w.-]+/)*pytorch:(\d\.\d+(?:\.\d+)?)",
    re.IGNORECASE | re.MULTILINE,
)
#: `ARG PYTORCH="1.6.0"`: what stands for `${PYTORCH}` below it unless a build says otherwise.
_ARGUMENT = re.compile(r"^\s*ARG\s+(\w+)=[\"']?([\w.+-]+)[\"']?\s*$", re.IGNORECASE | re.MULTILINE)
#: `-r requirements/train.txt`, `--constraint=versions.txt`, in a file of requirements or behind a command.
_INCLUDED = re.compile(r"(?:^|(?<=[\s\"']))(?:-r|-c|--requirements?|--constraint)(?:[ \t]+|=|(?=\w))([\w./-]+)", re.M)
#: So many files are read on behalf of others.
_MOST_INCLUDED = 40


@dataclass(frozen=True, slots=True)
class Pin:
    """What a file asks for of a package: `path` is relative to the project, `specifier` never empty.

    `at` are the characters of its name in the text of the file; (0, 0) where the reader does not know. `line` counts
    from 1. `text` is the file's.
    """

    path: str
    package: str
    specifier: str
    marker: str
    section: str
    at: tuple[int, int]
    text: str

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.at[0]) + 1


def asked_versions(root: Path, packages: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Packages with the versions that the project at `root` asks for (`==4.46.0`; `@` for one from an address), of each
    the first one found: in what lists those for NPUs, where something does.
    """
    found: dict[str, str] = {}
    asked = (each for each in pins(root, packages, [], every=True) if each.specifier != "*")
    for pin in sorted(asked, key=lambda each: LIST_FOR_NPUS.search(each.path) is None):
        found.setdefault(pin.package, pin.specifier)
    return tuple(sorted(found.items()))


def pins(root: Path, packages: Iterable[str], unread: list[str], every: bool = False) -> Iterator[Pin]:
    """What the files of a project ask for of some packages, in the order of trust.

    Requirement files come first, each with those that it includes, then what describes the project, environments of
    conda under any name, containers, scripts that install, and lock files, which hold what a tool chose. A container
    image of PyTorch counts as `pytorch`. `unread` gets why files are passed over. What has no version is given
    with `every` alone, as `@` where it has an address, else as `*`.
    """
    wanted = {normalised(package): package for package in packages}
    folder = root if root.is_dir() else root.parent
    waiting, known, included = list(_files(folder)), set[str](), 0
    while waiting:
        name = waiting.pop(0)
        if name in known:
            continue
        known.add(name)
        try:
            limit = LOCKS if name.endswith(".lock") else REQUIREMENTS
            text = read_regular(folder / name, limit).decode("utf-8", "replace")
        except OSError as error:
            unread.append(f"{name} cannot be read: {reason(error)}")
            continue
        yield from _of_file(name, text, wanted, every)
        if included < _MOST_INCLUDED:
            more = [each for each in _included(name, text, folder) if each not in known]
            included += len(more)
            waiting[:0] = more


def _of_file(name: str, text: str, wanted: dict[str, str], every: bool) -> Iterator[Pin]:
    kind = kind_of(name, text[:4096].encode("utf-8", "replace")) if name.endswith(_YAML) else kind_of(name, b"")
    if kind is FileKind.CONFIG:
        return  # no environment: the commands of a workflow are not the project's
    if kind is FileKind.DOCKER:
        # The defaults of its arguments in the place of their names, line by line.
        if values := dict(_ARGUMENT.findall(text)) if "$" in text else {}:
            text = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda at: values.get(at[1] or at[2], at.group()), text)
        if "pytorch" in wanted:
            for image in _IMAGE.finditer(text):
                yield Pin(name, wanted["pytorch"], f"=={image[1]}", "", IMAGE, image.span(1), text)
    for asked in requirements_of(text, name, kind):
        package = wanted.get(normalised(asked.name))
        if package is not None and (asked.specifier or every):
            specifier = asked.specifier or ("@" if asked.address else "*")
            yield Pin(name, package, specifier, asked.marker, asked.section, _place(asked, text), text)


def _place(asked: Requirement, text: str) -> tuple[int, int]:
    """Where a requirement stands; one of a setup.py is looked for by its words."""
    if asked.end:
        return asked.start, asked.end
    at = re.search(rf"(?<![\w.-]){re.escape(asked.name)}(?=[ \t]*{re.escape(asked.versions.strip()[:3])})", text)
    return at.span() if at is not None else (0, 0)


def _included(name: str, text: str, folder: Path) -> Iterator[str]:
    """The files of requirements that a file includes and that the project has: from its folder, else from the top."""
    if name.endswith((".lock", ".toml", ".py", ".cfg")):
        return
    for match in _INCLUDED.finditer(text):
        if text[text.rfind("\n", 0, match.start()) + 1 : match.start()].lstrip().startswith("#"):
            continue
        for base in dict.fromkeys((os.path.dirname(name), "")):
            path = os.path.normpath(os.path.join(base, match[1])).replace(os.sep, "/")
            if path.startswith(("..", "/")) or kind_of(path, b"") is not FileKind.REQUIREMENTS:
                continue
            if (folder / path).is_file():
                yield path
                break


def _files(folder: Path) -> Iterator[str]:
    names = _names(folder)
    inner = [f"{each}/{name}" for each in names if each.lower() in FOLDERS for name in _names(folder / each)]
    inner += [f"{each}/{name}" for each in inner if "." not in each for name in _names(folder / each)]
    every = [name for name in (*names, *inner) if "." in name or not (folder / name).is_dir()]
    listed = [name for name in every if name.endswith((".txt", ".in")) and kind_of(name, b"") is FileKind.REQUIREMENTS]
    yield from sorted(listed, key=lambda name: ("constraint" in name, "/" in name, len(name), name))
    yield from (name for name in PROJECT_FILES if name in names)
    yield from (name for name in every if name.endswith(_YAML) and not _is_docker(name) and name not in LOCK_FILES)
    yield from (name for name in every if _is_docker(name))
    yield from (name for name in names if _INSTALLS.fullmatch(name.lower()))
    yield from (name for name in LOCK_FILES if name in names)


def _is_docker(path: str) -> bool:
    return _DOCKER.fullmatch(path.lower().rpartition("/")[2]) is not None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
