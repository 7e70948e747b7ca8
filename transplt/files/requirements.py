"""The packages that a file asks for: requirements, project files, conda environments, lock files, `pip install` lines.

Each reader gives names, version clauses and byte places; what is known of a package stands in rules/support/.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from transplt.files.kind import FileKind
from transplt.finding import Effort, Finding, Level, Span
from transplt.rules.packages import BOUND, NAME, REQUIREMENT, PackageAdvice, advice_on_requirement
from transplt.text.ignore_comments import ignore_comments

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: `git+https://github.com/NVIDIA/apex.git@22.04#egg=apex`: the last part of the address, or its egg.
_ADDRESS = re.compile(
    rf"(?:git\+|https?://|ssh://)\S*?(?:/({NAME}?)(?:\.git)?(?:@[^\s#]*)?)(?:#(?:egg=({NAME}))?\S*)?(?=\s|\Z)"
)
_CONDA = re.compile(rf"^[ \t]*-[ \t]+[\"']?(?:[\w./-]+::)?({NAME})(?:\[[^\]\n]*\])?[ \t]*([=<>!~][^#\n\"']*)?", re.M)
_PACKAGE = re.compile(r"^\[\[(?:packages?|metadata\.files)\]\]\s*?\n(?:[^\[\n][^\n]*\n)??name = \"([^\"\n]+)\"", re.M)
_CONDA_LOCK = re.compile(rf"^- name: ({NAME})[ \t]*$", re.M)
_INSTALL = re.compile(
    r"\b(?:pip[\d.]*|conda|mamba|micromamba)[ \t]+install\b|\b(?:uv|poetry|pdm)[ \t]+add\b|\bpipenv[ \t]+install\b"
)
_WORD = re.compile(r"\\\r?\n|\"[^\"\n]*\"|'[^'\n]*'|&&|\|\||[;|\n]|(?:[^\s\\\"';|&]|\\(?!\r?\n|n|\"))+|\\n|\\\"|&")
_WITH_VALUE = re.compile(
    r"-[a-zA-Z]$|--(?:index-url|extra-index-url|find-links|requirement|constraint|target|prefix|channel|name|root|"
    r"trusted-host|cache-dir|timeout|no-binary|only-binary|global-option|config-settings|group|source|python)$"
)
_ENDS = frozenset({"&&", "||", ";", "|", "&", "\n", "\\n", '\\"'})
_LOCKS = re.compile(r"(?:poetry|uv|pdm|pipfile|pixi|conda)\.lock|pylock(?:\..*)?\.toml|conda-lock\.ya?ml")
_CONDA_FILES = re.compile(r".*\.ya?ml")
_INSTALLING = frozenset({FileKind.SHELL, FileKind.DOCKER, FileKind.CONFIG, FileKind.NOTEBOOK})
_LARGEST = 2_000_000
#: More requirements than this are not looked up: each is searched for in the text.
_MOST = 1_000
_MOST_SHOWN = 8
#: So many characters say enough of one requirement.
_LONGEST = 400
#: Short options of installers that take no value.
_FLAGS = frozenset({"-U", "-q", "-y", "-e", "-v", "-I"})


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that is asked for: its name as written, its version clauses, the characters where it stands."""

    name: str
    versions: str
    start: int
    end: int


def requirements_of(text: str, path: str, kind: FileKind) -> list[Requirement]:
    """The packages that a file asks for, by place; none for a file that is no dependency file and installs nothing."""
    name = path.rpartition("/")[2].lower()
    if len(text) > _LARGEST:
        return []
    if kind in _INSTALLING:
        return list(_installed(text)) if "install" in text or " add " in text else []
    if kind is not FileKind.REQUIREMENTS:
        return []
    if _LOCKS.fullmatch(name):
        reader: Callable[[str], Iterator[Requirement]] = _locked_json if name == "pipfile.lock" else _locked
    elif name.endswith(".toml") or name == "pipfile":
        reader = _toml
    elif name == "setup.cfg":
        reader = _setup_cfg
    elif _CONDA_FILES.fullmatch(name):
        reader = _conda
    else:
        reader = _lines
    return sorted(reader(text), key=lambda each: each.start)


def with_requirements(
    others: tuple[Finding, ...], data: bytes, path: str, kind: FileKind, ignored_codes: tuple[str, ...]
) -> tuple[Finding, ...]:
    """The findings of a file and those of its requirements; where a line has one for its words, that one says both."""
    found = [each for each in requirement_findings(data, path, kind) if not each.code.startswith(ignored_codes)]
    if not found:
        return others
    lines = data.split(b"\n")
    found = [
        each
        for each in found
        if not any(comment.holds_for(each.code) for comment in ignore_comments(lines[each.span.line - 1]))
    ]
    bound = {each.span.line: each for each in found if each.code == BOUND}
    said = {each.span.line for each in others}
    both = tuple(_both(each, bound.get(each.span.line)) for each in others)
    return (*both, *(each for each in found if each.code != BOUND or each.span.line not in said))


def _both(finding: Finding, requirement: Finding | None) -> Finding:
    if requirement is None or not requirement.help or requirement.help in (finding.help or ""):
        return finding
    return replace(finding, help="; ".join(part for part in (finding.help, requirement.help) if part))


def requirement_findings(data: bytes, path: str, kind: FileKind) -> list[Finding]:
    """One finding for each package of a file that needs something else on Ascend; one for a whole lock file."""
    if kind not in _INSTALLING and kind is not FileKind.REQUIREMENTS:
        return []
    text = data.decode("utf-8", "surrogateescape")
    found: dict[str, tuple[Requirement, PackageAdvice]] = {}
    for each in requirements_of(text, path, kind):
        advice = advice_on_requirement(each.name, each.versions)
        if advice is not None:
            found.setdefault(f"{each.name.lower()} {advice.code}", (each, advice))
    if _LOCKS.fullmatch(path.rpartition("/")[2].lower()):
        return _of_a_lock(text, path, [each for each, advice in found.values() if advice.code == BOUND])
    return [_finding(text, path, each, advice) for each, advice in found.values()]


def _of_a_lock(text: str, path: str, bound: list[Requirement]) -> list[Finding]:
    if not bound:
        return []
    names = [each.name for each in bound]
    shown = ", ".join(names[:_MOST_SHOWN]) + (f" and {len(names) - _MOST_SHOWN} more" if names[_MOST_SHOWN:] else "")
    advice = PackageAdvice(
        BOUND,
        f"this lock file holds packages that are bound to CUDA: {shown}",
        "change the file it is made from and lock again; transplt explain NAME says what takes the place of each",
    )
    return [_finding(text, path, bound[0], advice)]


def _finding(text: str, path: str, at: Requirement, advice: PackageAdvice) -> Finding:
    before = text[: at.start]
    line = before.count("\n") + 1
    column = at.start - (before.rfind("\n") + 1) + 1
    start = len(before.encode("utf-8", "surrogateescape"))
    end = start + len(text[at.start : at.end].encode("utf-8", "surrogateescape"))
    span = Span(line, column, line, column + at.end - at.start, start, end)
    api = advice.package or at.name
    return Finding(path, span, advice.code, Level.MANUAL, advice.message, api, effort=Effort.LOW, help=advice.help)


# --- readers, one a format -------------------------------------------------------------------------------------------


def _at(text: str, start: int, end: int) -> Iterator[Requirement]:
    """The requirement that a piece of text says, if it says one."""
    end = min(end, start + _LONGEST)
    address = _ADDRESS.match(text, start, end)
    if address is not None:
        name = address[2] or address[1].removesuffix(".git")
        if name:
            at = address.start(2 if address[2] else 1)
            yield Requirement(name, "", at, at + len(name))
        return
    match = REQUIREMENT.match(text, start, end)
    if match is not None and not text.startswith(("://", "/"), match.end(1)):
        yield Requirement(match[1], match[2].strip(), match.start(1), match.end(1))


def _lines(text: str) -> Iterator[Requirement]:
    """requirements.txt: a requirement a line; `-e` may stand before it."""
    for match in re.finditer(r"^[ \t]*(?:-e[ \t]+|--editable[= \t]+)?(?=[\w])[^\n]*", text, re.M):
        start = match.start() + len(match.group()) - len(match.group().lstrip())
        editable = re.match(r"(?:-e|--editable)[= \t]+", text[start : match.end()])
        start += editable.end() if editable else 0
        comment = re.search(r"(?:^|\s)#(?!egg)", text[start : match.end()])
        yield from _at(text, start, start + comment.start() if comment else match.end())


def _conda(text: str) -> Iterator[Requirement]:
    """environment.yml: the items of its lists; `=` of conda pins like `==`."""
    begin = re.search(r"^dependencies:", text, re.M)
    if begin is None:
        return
    end = re.compile(r"^[A-Za-z]", re.M).search(text, begin.end())
    for match in _CONDA.finditer(text, begin.end(), end.start() if end else len(text)):
        yield Requirement(match[1], _conda_versions(match[2] or ""), match.start(1), match.end(1))


def _conda_versions(clauses: str) -> str:
    """`=1.7.1=py3.8_cuda11` is `=1.7.1`."""
    return re.sub(r"^(=[^=<>!~,]+)=.*", r"\1", clauses.strip())


def _locked(text: str) -> Iterator[Requirement]:
    for pattern in (_PACKAGE, _CONDA_LOCK):
        for match in pattern.finditer(text):
            yield Requirement(match[1], "", match.start(1), match.end(1))


def _locked_json(text: str) -> Iterator[Requirement]:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return
    for section in ("default", "develop"):
        held = table.get(section) if isinstance(table, dict) else None
        for name in list(held)[:_MOST] if isinstance(held, dict) else ():
            at = text.find(f'"{name}"')
            if at >= 0:
                yield Requirement(name, "", at + 1, at + 1 + len(name))


def _setup_cfg(text: str) -> Iterator[Requirement]:
    """setup.cfg: the lines below `install_requires` and its like, and those of `[options.extras_require]`."""
    section, inside, at = "", False, 0
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        header = re.match(r"\[([^\]]+)\]", stripped)
        if header is not None:
            section, inside = header[1].strip(), False
        elif stripped and not stripped.startswith(("#", ";")):
            indent = len(line) - len(line.lstrip())
            value = at + indent
            if not line[0].isspace():
                key, sign, _ = line.partition("=")
                inside = bool(sign) and (
                    key.strip() in ("install_requires", "setup_requires", "tests_require")
                    if section == "options"
                    else section == "options.extras_require"
                )
                value = at + len(key) + 1
                value += len(line[len(key) + 1 :]) - len(line[len(key) + 1 :].lstrip(" \t"))
            if inside and value < at + len(line.rstrip()):
                yield from _at(text, value, at + len(line.rstrip()))
        at += len(line)


def _toml(text: str) -> Iterator[Requirement]:
    """pyproject.toml, Pipfile, pixi.toml: lists of requirements, and tables of names and versions."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    lists, tables = _tables(table)
    for said in lists[:_MOST]:
        for quote in ('"', "'"):
            at = text.find(f"{quote}{said}{quote}")
            if at >= 0:
                yield from _at(text, at + 1, at + 1 + len(said))
                break
    for name, value in tables[:_MOST]:
        match = re.search(rf"^[ \t]*[\"']?({re.escape(name)})[\"']?[ \t]*=", text, re.M)
        versions = value.get("version", "") if isinstance(value, dict) else value
        if match is not None and name != "python" and isinstance(versions, str):
            yield Requirement(name, versions, match.start(1), match.end(1))


def _tables(table: dict[str, Any]) -> tuple[list[str], list[tuple[str, Any]]]:
    """The requirements of a project table as text, and those that are a name and a version."""

    def below(*keys: str) -> Any:
        found: Any = table
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    texts: list[Any] = [below("project", "dependencies"), below("build-system", "requires")]
    texts += [below("tool", "uv", "dev-dependencies"), below("tool", "uv", "constraint-dependencies")]
    for keys in (("project", "optional-dependencies"), ("dependency-groups",), ("tool", "pdm", "dev-dependencies")):
        texts += list((below(*keys) or {}).values()) if isinstance(below(*keys), dict) else []
    named = [below(key) for key in ("packages", "dev-packages", "dependencies", "pypi-dependencies")]
    named += [below("tool", "poetry", key) for key in ("dependencies", "dev-dependencies")]
    groups = below("tool", "poetry", "group")
    for group in groups.values() if isinstance(groups, dict) else ():
        named.append(group.get("dependencies") if isinstance(group, dict) else None)
    named += [below("tool", "pixi", key) for key in ("dependencies", "pypi-dependencies")]
    lists = [each for said in texts if isinstance(said, list) for each in said if isinstance(each, str)]
    tables = [pair for said in named if isinstance(said, dict) for pair in said.items()]
    return lists, tables


def _installed(text: str) -> Iterator[Requirement]:
    """What `pip install`, `conda install` and `uv add` name, to the end of their command."""
    done = 0
    for command in _INSTALL.finditer(text):
        if command.start() < done:
            continue  # a word of the command before
        line = text[text.rfind("\n", 0, command.start()) + 1 : command.start()]
        if re.search(r"(?:^|[\s\"])#(?!!)", line):
            continue
        skip = False
        for word in _WORD.finditer(text, command.end()):
            said, done = word.group(), word.end()
            if said in _ENDS or said.startswith("#"):
                break
            if said.startswith("\\"):
                continue
            start, end = word.span()
            if said[0] in "\"'":
                start, end = start + 1, end - 1
            option = text[start:end].startswith("-")
            if skip or option:
                said = text[start:end]
                skip = option and _WITH_VALUE.fullmatch(said) is not None and said not in _FLAGS
                continue
            for each in _at(text, start, end):
                yield Requirement(each.name, _conda_versions(each.versions), each.start, each.end)
