"""What the files of a project ask of torch: one reader a kind of file; nothing of the project is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from transplt.errors import reason
from transplt.text.regular_file import LOCKS, REQUIREMENTS, read_regular

#: Lines that may hold a version of torch; the others are not worth a parser.
_TORCH = re.compile(r"\s*(?:py)?torch\s*[\[(<>=!~@]", re.IGNORECASE)
#: What may follow a requirement: a marker, a comment, options of pip.
_BEHIND = re.compile(r"[;#]|\s--")
_CONDA = re.compile(r"^\s*-\s*[\"']?(?:[\w.-]+::)?(pytorch|torch)\s*([<>!~=]=|=|[<>])?\s*([^\"'#]*)")
#: A wheel of torch in an address, whose `+` may be written `%2B`.
_WHEEL = re.compile(r"[/\\]torch-(\d+(?:\.\d+)+)(?:(?:\+|%2B)[\w.]+)?-", re.IGNORECASE)
_LOCKED = re.compile(r"""^name = ["']torch["']\s*^version = ["'](\d[\w.+]*)["']""", re.MULTILINE)
_INSTALLER = re.compile(r"\b(?:pip[\d.]*|uv|conda|mamba|micromamba|poetry|pdm)\b")
_INSTALLS = re.compile(r"\b(?:install|add|create)\s+([^|&;#]*)")
_IMAGE = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*(?:[\w.-]+/)*pytorch:(\d\.\d+(?:\.\d+)?)", re.IGNORECASE | re.MULTILINE)
_WORD = re.compile(r"""["']?((?:[\w.-]+::)?(?:py)?torch(?:\[\w*\])?[=<>!~]=?=?[^\s"']+)["']?""", re.IGNORECASE)


def pins(root: Path, unread: list[str]) -> Iterator[tuple[str, str]]:
    """(file, specifier of torch, never empty) in the order of trust; files are relative to `root`.

    Requirement files come first, then what describes the project, environments, containers, and lock files, which hold
    what a tool chose. `unread` is told why a file is passed over.
    """
    folder = root if root.is_dir() else root.parent
    for name, reader in _files(folder):
        try:
            limit = LOCKS if name.endswith(".lock") else REQUIREMENTS
            text = read_regular(folder / name, limit).decode("utf-8", "replace")
        except OSError as error:
            unread.append(f"{name} is not read: {reason(error)}")
            continue
        for specifier in reader(text):
            if specifier:
                yield name, specifier


def _files(folder: Path) -> Iterator[tuple[str, Callable[[str], Iterable[str]]]]:
    names = _names(folder)
    listed = [name for name in names if re.fullmatch(r"(requirements|constraints).*\.(txt|in)", name)]
    if "requirements" in names:
        listed += [f"requirements/{name}" for name in _names(folder / "requirements") if name.endswith((".txt", ".in"))]
    for name in sorted(listed, key=lambda name: (name.startswith("constraints"), len(name), name)):
        yield name, _in_lines
    for name, reader in _READERS.items():
        if name in names:
            yield name, reader
    inner = [f"docker/{name}" for name in _names(folder / "docker")] if "docker" in names else []
    for name in (*names, *inner):
        if re.fullmatch(r"(docker/)?(Dockerfile|Containerfile)([.-].+)?|(docker/)?.+\.(d|D)ockerfile", name):
            yield name, _in_container
    for name in _LOCKS:
        if name in names:
            yield name, _in_lock


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


# --- one line --------------------------------------------------------------------------------------------------------


def specifier_of(line: str) -> str:
    """The versions of torch that a requirement asks for, as they are written; empty where it asks for none."""
    wheel = _WHEEL.search(line.split("#")[0])
    if wheel is not None:
        return f"=={wheel[1]}"
    if not _TORCH.match(line):
        return ""
    from packaging.requirements import InvalidRequirement, Requirement

    text = _BEHIND.split(line, maxsplit=1)[0].strip()
    try:
        name = Requirement(text).name
    except InvalidRequirement:
        return ""
    return "".join(text[len(name) :].rpartition("]")[2].split()).strip("()") if "@" not in text else ""


def _in_lines(text: str) -> Iterator[str]:
    joined = re.sub(r"\\\r?\n", " ", text)
    return map(specifier_of, joined.splitlines())


def _of_conda(operator: str, version: str) -> str:
    """Versions as conda writes them: a single `=` means this version and its patches."""
    version = re.sub(r"\s+", "", version)
    if operator != "=":
        return operator + version
    version = version.split("=")[0].rstrip(".*")
    return f"=={version}.*" if version else ""


# --- one file --------------------------------------------------------------------------------------------------------


def _in_conda(text: str) -> Iterator[str]:
    for line in text.splitlines():
        match = _CONDA.match(line)
        if match is not None and match[2] is not None:
            yield _of_conda(match[2], match[3])
        elif match is None:
            yield specifier_of(line.strip().removeprefix("- "))


def _in_container(text: str) -> Iterator[str]:
    """Lines of a Dockerfile that install with pip, uv or conda, and images of PyTorch."""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        if line.lstrip().startswith("#"):
            continue
        image = _IMAGE.match(line)
        if image is not None:
            yield f"=={image[1]}"
        for installs in _INSTALLS.finditer(line) if _INSTALLER.search(line) else ():
            for word in _WORD.findall(installs[1]):
                bare = word.rpartition("::")[2]
                single = re.fullmatch(r"(?:py)?torch=([^=].*)", bare, re.IGNORECASE)
                yield _of_conda("=", single[1]) if single else specifier_of(bare)


def _in_setup(text: str) -> Iterator[str]:
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
            yield from map(specifier_of, node.value.splitlines())


def _in_lock(text: str) -> Iterator[str]:
    """The torch of a lock file of poetry, pdm, uv or pip: the table of the package begins with its name and version."""
    for match in _LOCKED.finditer(text):
        yield f"=={match[1]}"


def _in_pyproject(text: str) -> Iterator[str]:
    table = _toml(text)
    project = _table(table, "project")
    yield from _strings(project.get("dependencies"))
    for group in (
        _table(project, "optional-dependencies"),
        _table(table, "dependency-groups"),
        _table(table, "tool", "pdm", "dev-dependencies"),
    ):
        for listed in group.values():
            yield from _strings(listed)
    yield from _strings(_table(table, "tool", "uv").get("constraint-dependencies"))
    poetry = _table(table, "tool", "poetry")
    yield _of_table(_table(poetry, "dependencies"))
    for name in _table(poetry, "group"):
        yield _of_table(_table(poetry, "group", name, "dependencies"))
    yield from _of_pixi(_table(table, "tool", "pixi"))


def _in_pipfile(text: str) -> Iterator[str]:
    table = _toml(text)
    yield _of_table(_table(table, "packages"))
    yield _of_table(_table(table, "dev-packages"))


def _in_pipfile_lock(text: str) -> Iterator[str]:
    match = re.search(r'"torch":\s*\{[^{}]*"version":\s*"(==[\w.+]+)"', text)
    return iter([match[1]] if match else [])


def _in_pixi(text: str) -> Iterator[str]:
    return _of_pixi(_toml(text))


def _of_pixi(table: dict[str, Any]) -> Iterator[str]:
    for section in ("dependencies", "pypi-dependencies"):
        yield _of_table(_table(table, section))


def _toml(text: str) -> dict[str, Any]:
    from transplt.disk.toml import parse_toml

    try:
        return parse_toml(text)
    except ValueError:
        return {}


def _table(table: Any, *path: str) -> dict[str, Any]:
    for key in path:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def _strings(listed: Any) -> Iterator[str]:
    if isinstance(listed, list):
        yield from (specifier_of(item) for item in listed if isinstance(item, str))


def _of_table(dependencies: dict[str, Any]) -> str:
    """The torch of a table of names and versions, as poetry, Pipfile and pixi write them."""
    pin = dependencies.get("torch", dependencies.get("pytorch"))
    if isinstance(pin, list):  # one entry a platform or Python
        pin = next((each for each in pin if isinstance(each, dict) and "version" in each), None)
    if isinstance(pin, dict):
        pin = pin.get("version") or (specifier_of(str(pin["url"])) if "url" in pin else None)
    return _from_poetry(pin) if isinstance(pin, str) and pin not in ("*", "") else ""


def _from_poetry(pin: str) -> str:
    """Poetry's caret, tilde and bare version as a PEP 440 specifier."""
    pin = "".join(pin.split())
    if re.fullmatch(r"\^\d+(\.\d+)*", pin):
        return f">={pin[1:]},<{int(pin[1:].split('.')[0]) + 1}"
    if pin.startswith("~") and not pin.startswith("~="):
        return f"~={pin[1:]}" if pin.count(".") > 1 else f"=={pin[1:]}.*"
    return pin if pin[:1] in "<>=!~" else f"=={pin}"


_READERS: dict[str, Callable[[str], Iterable[str]]] = {
    "pyproject.toml": _in_pyproject,
    "setup.cfg": _in_lines,
    "setup.py": _in_setup,
    "environment.yml": _in_conda,
    "environment.yaml": _in_conda,
    "conda.yaml": _in_conda,
    "conda.yml": _in_conda,
    "Pipfile": _in_pipfile,
    "pixi.toml": _in_pixi,
    "Pipfile.lock": _in_pipfile_lock,
}
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
