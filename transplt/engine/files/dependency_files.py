"""The packages that a dependency file asks for, one reader a format; nothing of a project is executed.

What asks for torch or another package by version (transplt/project/pins.py) and what finds packages that an NPU cannot
have (transplt/engine/files/requirements.py) read through here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transplt.base.grouped import grouped
from transplt.base.text.markers import holds_on_linux
from transplt.base.text.requirement import NAME, Requirement, requirement_in
from transplt.base.text.toml import parse_toml
from transplt.base.text.toml_places import ITEM, TomlValue, toml_values
from transplt.engine.files.install_commands import install_commands
from transplt.engine.files.kind import COG, FileKind, is_environment

if TYPE_CHECKING:
    import ast

LOCK_FILES = re.compile(r"(?:poetry|uv|pdm|pipfile|pixi|conda)\.lock|pylock(?:\..*)?\.toml|conda-lock\.ya?ml")
#: Sections of an environment of conda, and the list of what builds a project.
CONDA, PIP = "conda", "pip"
#: The section of what is in `extras_require` of a setup.py.
EXTRAS = "extras"
BUILD = ("build-system", "requires")
#: Folders beside the project in which its dependency files lie, too.
FOLDERS = (
    "requirements", "conda", "env", "envs", "environment", "environments", "docker", "dockerfile", "dockerfiles",
    ".devcontainer",
)  # fmt: skip
#: Files in which commands install packages.
INSTALLING = frozenset({FileKind.SHELL, FileKind.DOCKER, FileKind.CONFIG, FileKind.NOTEBOOK})
#: An item of a list of YAML, in quotes or plain; a plain one may hold quotes, as conditions do.
_ITEM = re.compile(
    r"^[ \t]*-[ \t]+(?:([\"'])(?:[\w./-]+::)?(?P<quoted>[^\s\"'](?:(?!\1)[^\n])*)"
    r"|(?:[\w./-]+::)?(?P<plain>[^\s\"'#][^#\n]*))",
    re.M,
)
#: The table of a package in a lock file begins with its name and its version, in TOML or YAML.
_LOCKED = re.compile(
    r"^\[\[(?:packages?|metadata\.files)\]\]\s*?\n(?:[^\[\n][^\n]*\n)??name = [\"']([^\"'\n]+)[\"']"
    r"(?:\r?\nversion = [\"'](\d[\w.+!]*)[\"'])?"
    rf"|^- name: ({NAME})[ \t]*$(?:\n[ \t]+version: [\"']?(\d[\w.+!]*))?",
    re.M,
)
#: Rows of a table that are the condition of a requirement, as Pipfile has them.
_CONDITIONS = ("sys_platform", "platform_system", "platform_machine", "os_name")
#: Version clauses of a table are read so far.
_LONGEST = 200


def requirements_of(text: str, path: str, kind: FileKind) -> list[Requirement]:
    """The packages that a file asks for, in the order of trust; none for a file that asks for none."""
    name = path.rpartition("/")[2].lower()
    if kind is FileKind.CONFIG and name.endswith((".yml", ".yaml")) and is_environment(text.encode("utf-8", "replace")):
        return list(_conda(text))
    if kind in INSTALLING:
        if not any(word in text for word in ("install", " add ", "create")):
            return []
        return [each for command in install_commands(text) for each in command.requirements]
    if name == "setup.py":
        return list(_setup(text))
    if kind is not FileKind.REQUIREMENTS:
        return []
    if LOCK_FILES.fullmatch(name):
        reader: Callable[[str], Iterator[Requirement]] = _locked_json if name == "pipfile.lock" else _locked
    elif name.endswith(".toml") or name == "pipfile":
        reader = _toml
    elif name == "setup.cfg":
        reader = _setup_cfg
    elif name in COG:
        reader = _cog
    elif name.endswith((".yml", ".yaml")):
        reader = _conda
    else:
        reader = _lines
    return list(reader(text))


def _lines(text: str) -> Iterator[Requirement]:
    """requirements.txt: a requirement a line, which may go on behind a backslash; `-e` may stand before it."""
    joined = re.sub(r"\\\r?\n", lambda match: " " * len(match.group()), text)
    for match in re.finditer(r"^[ \t]*(?:(?:-e|--editable)[= \t]+)?([\w./][^\n]*)", joined, re.M):
        yield from _requirement(re.split(r"\s#(?!egg)", match[1], maxsplit=1)[0], match.start(1))


def _requirement(piece: str, start: int, section: str = "") -> Iterator[Requirement]:
    found = requirement_in(piece, start)
    if found is not None:
        yield replace(found, section=section) if section else found


def _conda(text: str) -> Iterator[Requirement]:
    """environment.yml: the items of its lists, those below `pip` too."""
    begin = re.search(r"^dependencies:", text, re.M)
    if begin is None:
        return
    end = re.compile(r"^[A-Za-z]", re.M).search(text, begin.end())
    pip = None  # how far the list of pip is indented
    for match in _ITEM.finditer(text, begin.end(), end.start() if end else len(text)):
        indent = match.group().index("-")
        pip = pip if pip is not None and indent > pip else None
        form = "quoted" if match["quoted"] else "plain"
        yield from _requirement(match[form], match.start(form), PIP if pip is not None else CONDA)
        if pip is None and match[form].rstrip() == "pip:":
            pip = indent


def _cog(text: str) -> Iterator[Requirement]:
    """cog.yaml: the items of `python_packages`."""
    begin = re.search(r"^([ \t]*)python_packages:[^\n\[]*\n", text, re.M)
    if begin is None:
        return
    end = re.compile(rf"^[ \t]{{0,{len(begin[1])}}}[A-Za-z]", re.M).search(text, begin.end())
    for match in _ITEM.finditer(text, begin.end(), end.start() if end else len(text)):
        form = "quoted" if match["quoted"] else "plain"
        yield from _requirement(match[form], match.start(form))


def _locked(text: str) -> Iterator[Requirement]:
    for match in _LOCKED.finditer(text):
        group = 1 if match[1] else 3
        versions = f"=={match[group + 1]}" if match[group + 1] else ""
        yield Requirement(match[group], versions, match.start(group), match.end(group))


def _locked_json(text: str) -> Iterator[Requirement]:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return
    places: dict[str, tuple[int, int]] = {}
    for match in re.finditer(r'"([^"\n]+)"\s*:', text):
        places.setdefault(match[1], match.span(1))
    for section in ("default", "develop"):
        for name, held in _below(table, section).items():
            yield Requirement(name, _versions(held), *places.get(name, (0, 0)))


def _setup(text: str) -> Iterator[Requirement]:
    """The lines of the string literals of a setup.py, which is parsed and never run; all at its top."""
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    of_extras = {id(inner) for each in _extras(tree) for inner in ast.walk(each)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in map(requirement_in, node.value.splitlines()):
                if found is not None:
                    section = EXTRAS if id(node) in of_extras else ""
                    yield Requirement(found.name, found.versions, 0, 0, marker=found.marker, section=section)


def _extras(tree: ast.Module) -> list[ast.expr]:
    """The values of a setup.py that `extras_require` alone is made of, those of its variables too."""
    import ast

    values = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    }
    keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    others = {name.id for node in keywords if node.arg != "extras_require" for name in _names(node.value)}
    found = [node.value for node in keywords if node.arg == "extras_require"]
    seen = set[str]()
    for value in found:  # grows
        for name in _names(value):
            if name.id in values and name.id not in others and name.id not in seen:
                seen.add(name.id)
                found.append(values[name.id])
    return found


def _names(node: ast.expr) -> Iterator[ast.Name]:
    import ast

    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _setup_cfg(text: str) -> Iterator[Requirement]:
    """setup.cfg: the lines below `install_requires` and its like, and those of `[options.extras_require]`."""
    section, extra, inside, at = "", "", False, 0
    for line in text.splitlines(keepends=True):
        value = re.match(r"\s*", line)
        header = re.match(r"\s*\[([^\]]+)\]", line)
        if header is not None:
            section, inside = header[1].strip(), False
        elif not line.lstrip().startswith(("#", ";")):
            key = re.match(r"([^\s=]+)[ \t]*=[ \t]*", line)
            if key is not None:
                value, extra = key, f"extras_require:{key[1]}" if section == "options.extras_require" else ""
                inside = bool(extra) or (
                    section == "options" and key[1] in ("install_requires", "setup_requires", "tests_require")
                )
            elif line.strip() and not line[0].isspace():
                inside = False
            if inside and value is not None:
                yield from _requirement(line[value.end() :].rstrip(), at + value.end(), extra)
        at += len(line)


def _toml(text: str) -> Iterator[Requirement]:
    """pyproject.toml, Pipfile, pixi.toml: lists of requirements, and tables of names and versions."""
    try:
        table = parse_toml(text)
    except ValueError:
        return
    places = grouped((value.path, value) for value in toml_values(text))
    for path in _lists(table):
        for place in places.get((*path, ITEM), ()):
            if text[place.start] in "\"'" and not text.startswith(('"""', "'''"), place.start):
                # An escape is as long as two characters, and none stands in a name or a version.
                content = text[place.start + 1 : place.end - 1]
                yield from _requirement(content, place.start + 1, ".".join(path))
    for path in _tables(table):
        for name, value in _below(table, *path).items():
            if name != "python":
                yield _of_table(text, name, value, path, places)


def _of_table(
    text: str, name: str, value: Any, path: tuple[str, ...], places: dict[tuple[str, ...], list[TomlValue]]
) -> Requirement:
    """A row of a table, or a table of its own, with the versions that it gives."""
    found = places.get((*path, name)) or next((each for at, each in places.items() if at[:-1] == (*path, name)), [])
    section, marker = ".".join(path), condition_of(value)
    if not found:
        return Requirement(name, _versions(value), 0, 0, marker=marker, section=section)
    row = found[0]
    start = row.key + (text[row.key] in "\"'")
    if row.path != (*path, name):  # [tool.poetry.dependencies.torch]
        start = max(text.rfind(name, 0, row.key), 0)
        return Requirement(name, _versions(value), start, start + len(name), marker=marker, section=section)
    version = [row] if isinstance(value, str) else places.get((*path, name, "version"), [])
    clauses = (version[0].start + 1, version[0].end - 1) if version else (0, 0)
    versions = _versions(value)
    whole = (row.key, row.end)
    return Requirement(name, versions, start, start + len(name), clauses, whole, marker=marker, section=section)


def _below(table: Any, *keys: str) -> dict[str, Any]:
    """The table below some keys; an empty one where there is none."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else {}


def _lists(table: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where the requirements of a project stand as lists of texts; what only builds it comes last."""
    yield ("project", "dependencies")
    for keys in (("project", "optional-dependencies"), ("dependency-groups",), ("tool", "pdm", "dev-dependencies")):
        yield from ((*keys, name) for name in _below(table, *keys))
    yield from (("tool", "uv", "dev-dependencies"), ("tool", "uv", "constraint-dependencies"), BUILD)


def _tables(table: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where requirements are a name and a version, or a table with one, as Poetry, Pipfile and pixi write them."""
    yield from ((key,) for key in ("packages", "dev-packages", "dependencies", "pypi-dependencies"))
    yield from (("tool", "poetry", "dependencies"), ("tool", "poetry", "dev-dependencies"))
    yield from (("tool", "poetry", "group", name, "dependencies") for name in _below(table, "tool", "poetry", "group"))
    yield from (("tool", "pixi", key) for key in ("dependencies", "pypi-dependencies"))


def _versions(value: Any) -> str:
    """The versions of one package in a table: text, a table with it or an address, or one for each system."""
    value = _of_a_list(value)
    if isinstance(value, dict):
        wheel = requirement_in(str(value.get("url", "")))
        value = value.get("version") or (wheel.versions if wheel else "")
    return value[:_LONGEST] if isinstance(value, str) else ""


def _of_a_list(value: Any) -> Any:
    """Of a list of alternatives the first with a version that a host with NPUs may take; any other value itself."""
    if not isinstance(value, list):
        return value
    versions = [each for each in value if isinstance(each, dict) and "version" in each]
    here = (each for each in versions if holds_on_linux(condition_of(each)) is not False)
    return next(here, next(iter(versions), None))


def condition_of(value: Any) -> str:
    """The condition of a row as PEP 508 writes it: uv's `marker`, Poetry's `markers` and `platform`, Pipfile's
    `sys_platform = "== 'win32'"`.
    """
    value = _of_a_list(value)
    if not isinstance(value, dict):
        return ""
    parts = [f"({value[name]})" for name in ("marker", "markers") if isinstance(value.get(name), str)]
    parts += [f"{name} {value[name]}" for name in _CONDITIONS if isinstance(value.get(name), str)]
    platform = value.get("platform")
    parts += [f"sys_platform == '{platform}'"] if isinstance(platform, str) else []
    return " and ".join(parts)
