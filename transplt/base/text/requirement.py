"""One requirement as pip, conda, Poetry and Pipfile write it: its name, its version clauses, and the place of the name.

Nothing of a project is executed. Sources: PEP 440 and 508, PEP 427 (names of wheels); python-poetry.org, dependency
specification; docs.conda.io, package match specifications.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from transplt.base.text.markers import holds_on_linux

NAME = r"[A-Za-z0-9](?:[\w.-]{0,80}[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"({NAME})[ \t]*(?:\[[^\]\n]{{0,200}}\])?[ \t]*\(?((?:[<>=!~^][^;#\n\"')@]{{0,200}})?)")
#: `git+https://github.com/NVIDIA/apex.git@22.04#egg=apex`: the last part of the path, or the egg.
_ADDRESS = re.compile(
    rf"(?:git\+(?:\w+://)?|https?://|ssh://)(?:[^\s/#]*/)+?({NAME}?)(?:\.git)?(?:@[^\s#]*)?/?"
    rf"(?:#(?:(?:[^\s&]*&)*egg=({NAME}))?\S*)?(?=\s|\Z)"
)
#: A wheel in an address or a path, whose `+` may be written `%2B`.
_WHEEL = re.compile(r"\S*[/\\](\w[\w.]*)-(\d+(?:\.\w+)*)(?:(?:\+|%2B)[\w.]+)?-[^\s/\\]*\.whl", re.IGNORECASE)
#: The condition of a requirement, up to the options of pip behind it: `; python_version < "3.9" --hash=...`.
_MARKER = re.compile(r"[ \t]*(?:\)[ \t]*)?;[ \t]*((?:(?![ \t]-)[^\n#])+)")
_OPTION = re.compile(r"(?:(?<=[ \t])|(?<=[ \t]\\))--(?:hash|config-settings|global-option)\b")
_BUILD = re.compile(r"^(==?[^=<>!~,]+)=.*")
_CLAUSE = re.compile(r"(===|==|~=|<=|<|>=|>|!=|\^|~|=)?v?(\d[\w.!+-]*(?:\.?\*)?)")
_SPACE = re.compile(r"\s*([<>=!~^,]+)\s*")
#: So many characters say enough of one requirement.
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that is asked for: its name as written, its version clauses, the characters where its name stands.

    `clauses`: where the version clauses stand; empty, and right behind the name, where there are none.
    `whole`: where all of it stands, without quotes, comment and hashes; (0, 0) where the reader does not know. `marker`
    is the condition behind `;`, `section` the list that it is in, as its format calls it. `address`: it is asked for by
    an address or a path.
    """

    name: str
    versions: str
    start: int
    end: int
    clauses: tuple[int, int] = (0, 0)
    whole: tuple[int, int] = (0, 0)
    marker: str = ""
    section: str = ""
    address: bool = False

    @property
    def is_elsewhere(self) -> bool:
        """True for one whose condition holds on no host with NPUs: it is another system's, and stays as it is."""
        return holds_on_linux(self.marker) is False

    @property
    def specifier(self) -> str:
        """The versions in the form of PEP 440; empty where none are asked for, or they have none."""
        clauses = [_of_pep440(clause) for clause in _SPACE.sub(r"\1", self.versions.strip()).rstrip(",").split(",")]
        return ",".join(clauses) if all(clauses) else ""

    def allows(self, version: str) -> bool | None:
        """True where a release is among those that are asked for; None where none are, or they cannot be read."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        if not self.specifier:
            return None
        try:
            return SpecifierSet(self.specifier).contains(version, prereleases=True)
        except InvalidSpecifier:
            return None


def requirement_in(text: str, offset: int = 0) -> Requirement | None:
    """The requirement that a piece of text begins with; `offset` is where the piece begins in its file."""
    found = _parse(text[:_LONGEST], offset)
    if found is None:
        return None
    behind = text[max(found.end, found.clauses[1]) - offset :][:_LONGEST]
    marker = _MARKER.search(behind) if found.address else _MARKER.match(behind)
    end = len(_OPTION.split(text, maxsplit=1)[0].rstrip(" \t\r\\"))
    return replace(found, marker=marker[1].strip() if marker else "", whole=(offset, offset + end))


def _parse(text: str, offset: int) -> Requirement | None:
    wheel = _WHEEL.match(text)
    if wheel is not None:
        return Requirement(wheel[1], f"=={wheel[2]}", offset + wheel.start(1), offset + wheel.end(1), address=True)
    address = _ADDRESS.match(text)
    if address is not None:
        group = 2 if address[2] else 1
        name = address[group].removesuffix(".git")
        start = offset + address.start(group)
        return Requirement(name, "", start, start + len(name), address=True)
    match = _REQUIREMENT.match(text)
    if match is None or text.startswith(("://", "/"), match.end(1)):
        return None
    written = re.split(r"\s-", match[2], maxsplit=1)[0].rstrip(" \t\r\\")
    begin = offset + match.start(2)
    clauses = (begin, begin + len(written)) if written else (offset + match.end(1),) * 2
    versions = _BUILD.sub(r"\1", written)
    at = re.match(r"\s*@\s*", text[match.end() :])
    if at is not None and (wheel := _WHEEL.match(text, match.end() + at.end())) is not None:
        versions = f"=={wheel[2]}"
    start, end = offset + match.start(1), offset + match.end(1)
    return Requirement(match[1], versions, start, end, clauses, address=at is not None)


def normalised(name: str) -> str:
    """The name of a distribution as package indexes compare it: `Flash_Attn` is `flash-attn`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def ceiling(sign: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The version from which on `~=1.8`, `~1.8` or `^1.8` does not fit any more."""
    if sign == "^":
        keep = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1) + 1
    elif sign == "~":
        keep = min(2, len(numbers))
    else:
        keep = max(1, len(numbers) - 1)
    return (*numbers[: keep - 1], numbers[keep - 1] + 1)


def _of_pep440(clause: str) -> str:
    """One clause: the bare version of Poetry, its caret and tilde, and conda's `=` for a version and its patches."""
    match = _CLAUSE.fullmatch(clause)
    if match is None:
        return ""
    sign, version = match[1] or "==", match[2]
    if sign == "=":
        return f"=={version.rstrip('.*')}.*"
    if sign not in "^~":
        return sign + version
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})*", version) is None:
        return ""
    return f">={version},<{'.'.join(map(str, ceiling(sign, tuple(map(int, version.split('.'))))))}"
