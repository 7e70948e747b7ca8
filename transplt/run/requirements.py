"""What a project asks for of packages, read from its requirement files; nothing of the project is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from transplt.errors import reason
from transplt.text.regular_file import REQUIREMENTS, read_regular

_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "environment.yml", "environment.yaml", "conda.yaml", "conda.yml")
#: What may follow a requirement: a marker, a comment, options of pip.
_BEHIND = re.compile(r"[;#]|--")


def asked_versions(root: Path, packages: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Packages with the versions that the project at `root` asks for (`==4.46.0`), of each what is said first."""
    found: dict[str, str] = {}
    for _, package, specifier in requirements(root, tuple(packages), []):
        found.setdefault(package, specifier)
    return tuple(sorted(found.items()))


def requirements(root: Path, packages: tuple[str, ...], unread: list[str]) -> Iterator[tuple[str, str, str]]:
    """(file name, package, specifier) of some packages in the order of trust; the file is relative to `root`.

    `unread` is told why a file is passed over.
    """
    folder = root if root.is_dir() else root.parent
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return
    requirement_files = [name for name in names if re.fullmatch(r"requirements.*\.(txt|in)", name)]
    if (folder / "requirements").is_dir():
        try:
            inner = sorted(entry.name for entry in (folder / "requirements").iterdir())
        except OSError:
            inner = []
        requirement_files += [f"requirements/{name}" for name in inner if name.endswith((".txt", ".in"))]
    requirement_files.sort(key=lambda name: (len(name), name))
    for name in [*requirement_files, *_FILES]:
        if "/" not in name and name not in names:
            continue
        try:
            text = read_regular(folder / name, REQUIREMENTS).decode("utf-8", "replace")
        except OSError as error:
            unread.append(f"{name} is not read: {reason(error)}")
            continue
        for package, specifier in _in_file(name, text, packages):
            yield name, package, specifier


def _in_file(name: str, text: str, packages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    names = "|".join(map(re.escape, packages))
    if name.endswith((".yml", ".yaml")):
        yield from _in_conda(text, names)
    else:
        lines: Iterable[str]
        if name == "setup.py":
            lines = _strings_of_setup(text)
        elif name == "pyproject.toml":
            lines = _strings_of_pyproject(text, packages)
        else:
            lines = text.splitlines()
        # Lines that may hold a version of one of them; the others are not worth a parser.
        worth = re.compile(rf"\s*(?:{names})\s*[\[(<>=!~]", re.IGNORECASE)
        for line in filter(worth.match, lines):
            package, specifier = _specifier(line)
            if specifier:
                yield package, specifier


def _specifier(line: str) -> tuple[str, str]:
    """A package and its versions that a requirement asks for, as they are written; empty where it asks for none."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = _BEHIND.split(line, maxsplit=1)[0].strip()
    try:
        name = Requirement(text).name
    except InvalidRequirement:
        return "", ""
    return name.lower(), "".join(text[len(name) :].rpartition("]")[2].split()).strip("()")


def _in_conda(text: str, names: str) -> Iterator[tuple[str, str]]:
    """Dependencies of a conda environment, whose single `=` means `this version and its patches`."""
    entry = re.compile(rf"^\s*-\s*[\"']?(?:[\w.-]+::)?({names})\s*([<>!~=]=|=|[<>])?\s*([^\"'#]*)")
    for line in text.splitlines():
        match = entry.match(line)
        if match is None or match[2] is None:
            continue
        if match[2] == "=":
            version = match[3].split("=")[0].strip().rstrip(".*")
            if version:
                yield match[1], f"=={version}.*"
        else:
            yield match[1], match[2] + re.sub(r"\s+", "", match[3])


def _strings_of_setup(text: str) -> Iterator[str]:
    """The string literals of a setup.py, which is parsed and never run."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from node.value.splitlines()


def _strings_of_pyproject(text: str, packages: tuple[str, ...]) -> Iterator[str]:
    from transplt.disk.toml import parse_toml

    try:
        table = parse_toml(text)
    except ValueError:
        return
    project = table.get("project", {})
    if isinstance(project, dict):
        yield from (item for item in project.get("dependencies", []) if isinstance(item, str))
    poetry: Any = table.get("tool", {})
    for key in ("poetry", "dependencies"):
        poetry = poetry.get(key, {}) if isinstance(poetry, dict) else {}
    for package in packages:
        pin = poetry.get(package) if isinstance(poetry, dict) else None
        pin = pin.get("version") if isinstance(pin, dict) else pin
        if isinstance(pin, str):
            yield package + _from_poetry(pin)


def _from_poetry(pin: str) -> str:
    """Poetry's caret as a PEP 440 specifier."""
    if pin.startswith("^") and re.fullmatch(r"\^\d+(\.\d+)*", pin):
        major = int(pin[1:].split(".")[0])
        return f">={pin[1:]},<{major + 1}"
    if pin.startswith("~") and not pin.startswith("~="):
        return f"~={pin[1:]}" if pin.count(".") > 1 else f"=={pin[1:]}.*"
    return pin if pin[:1] in "<>=!~" else f"=={pin}"
