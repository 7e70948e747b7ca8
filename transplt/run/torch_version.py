"""Which torch a project asks for, read from its requirement files; nothing of the project is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from transplt.errors import UsageError, reason
from transplt.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS, TorchTarget
from transplt.text.regular_file import REQUIREMENTS, read_regular

_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "environment.yml", "environment.yaml", "conda.yaml", "conda.yml")
#: Lines that may hold a version of torch; the others are not worth a parser.
_TORCH = re.compile(r"\s*(?:py)?torch\s*[\[(<>=!~]", re.IGNORECASE)
#: What may follow a requirement: a marker, a comment, options of pip.
_BEHIND = re.compile(r"[;#]|--")
_CONDA = re.compile(r"^\s*-\s*[\"']?(?:[\w.-]+::)?(pytorch|torch)\s*([<>!~=]=|=|[<>])?\s*([^\"'#]*)")


def choose_target(root: Path, asked: str | None, configured: str | None = None) -> TorchTarget:
    """The version asked for, else that of the settings, else what the project at `root` pins, else the default.

    UsageError for one that is not known.
    """
    if asked is not None:
        return _target(check_version(asked), "--torch-version")
    if configured is not None:
        return _target(check_version(configured), "[tool.transplt] in pyproject.toml")
    unread: list[str] = []
    for path, requirement in _requirements(root, unread):
        version = _highest(requirement)
        if version is not None:
            return _target(version, f"{path} asks for torch{requirement}")
    return _target(DEFAULT_TORCH_VERSION, "; ".join(("the default: no requirement file pins torch", *unread)))


def check_version(text: str) -> str:
    """The minor version that `text` (`2.8` or `2.8.0`) names. UsageError when it is not one that we know."""
    match = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?", text.strip())
    if match is None or match[1] not in TORCH_VERSIONS:
        known = f"{TORCH_VERSIONS[0]} to {TORCH_VERSIONS[-1]}"
        raise UsageError(f"torch version {text!r} is not known; choose one of {known}")
    return match[1]


def _target(version: str, why: str) -> TorchTarget:
    releases = _releases().get(version, {})
    npu, cann, release = (str(releases.get(key) or "") for key in ("torch_npu", "cann", "torch"))
    return TorchTarget(version, why, npu, cann, release)


def _releases() -> dict[str, dict[str, Any]]:
    from transplt.rules.tables import read_table

    try:
        table = read_table("support/versions.json")
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in table.get("torch", {}).items() if isinstance(value, dict)}


def _requirements(root: Path, unread: list[str]) -> Iterator[tuple[str, str]]:
    """(file name, specifier of torch) in the order of trust; the file is relative to `root`.

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
        for specifier in _in_file(name, text):
            yield name, specifier


def _in_file(name: str, text: str) -> Iterator[str]:
    if name.endswith((".yml", ".yaml")):
        yield from _in_conda(text)
    else:
        lines: Iterable[str]
        if name == "setup.py":
            lines = _strings_of_setup(text)
        elif name == "pyproject.toml":
            lines = _strings_of_pyproject(text)
        else:
            lines = text.splitlines()
        yield from filter(None, map(_specifier, lines))


def _specifier(line: str) -> str:
    """The versions of torch that a requirement asks for, as they are written; empty where it asks for none."""
    if not _TORCH.match(line):
        return ""
    from packaging.requirements import InvalidRequirement, Requirement

    text = _BEHIND.split(line, maxsplit=1)[0].strip()
    try:
        name = Requirement(text).name
    except InvalidRequirement:
        return ""
    return "".join(text[len(name) :].rpartition("]")[2].split()).strip("()")


def _in_conda(text: str) -> Iterator[str]:
    """Dependencies of a conda environment, whose single `=` means `this version and its patches`."""
    for line in text.splitlines():
        match = _CONDA.match(line)
        if match is None or match[2] is None:
            continue
        if match[2] == "=":
            version = match[3].split("=")[0].strip().rstrip(".*")
            yield f"=={version}.*" if version else ""
        else:
            yield match[2] + re.sub(r"\s+", "", match[3])


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


def _strings_of_pyproject(text: str) -> Iterator[str]:
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
    pin = poetry.get("torch") if isinstance(poetry, dict) else None
    pin = pin.get("version") if isinstance(pin, dict) else pin
    if isinstance(pin, str):
        yield "torch" + _from_poetry(pin)


def _from_poetry(pin: str) -> str:
    """Poetry's caret as a PEP 440 specifier."""
    if pin.startswith("^") and re.fullmatch(r"\^\d+(\.\d+)*", pin):
        major = int(pin[1:].split(".")[0])
        return f">={pin[1:]},<{major + 1}"
    if pin.startswith("~") and not pin.startswith("~="):
        return f"~={pin[1:]}" if pin.count(".") > 1 else f"=={pin[1:]}.*"
    return pin if pin[:1] in "<>=!~" else f"=={pin}"


def _highest(specifier: str) -> str | None:
    """The highest minor version inside `specifier` when it says one from above, else None.

    `>=1.10` alone pins nothing: any later version will do.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        wanted = SpecifierSet(specifier)
        if not any(part.operator in {"==", "===", "~=", "<", "<="} for part in wanted):
            return None
        pinned = [part.version for part in wanted if part.operator in {"==", "==="} and not part.version.endswith(".*")]
        releases = {Version(pin).release[:2] for pin in pinned}
    except (InvalidSpecifier, InvalidVersion):
        return None
    for version in reversed(TORCH_VERSIONS):
        if Version(version).release[:2] in releases:
            return version
        if not pinned and any(wanted.contains(f"{version}.{patch}") for patch in range(4)):
            return version
    return None
