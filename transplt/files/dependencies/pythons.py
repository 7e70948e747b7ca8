"""Whether a project's Python is one that there are wheels of torch_npu for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transplt.base.text.requirement import Requirement

#: Patch versions of Python are below this.
_PATCHES = 40
_TOML = re.compile(r"^[ \t]*(?:requires-python|python)[ \t]*=[ \t]*([\"'])(.+?)\1", re.M)
_PIPFILE = re.compile(r"^[ \t]*python_(?:full_)?version[ \t]*=[ \t]*([\"'])(.+?)\1", re.M)
_CFG = re.compile(r"^python_requires[ \t]*=[ \t]*(\S[^\n#;]*)", re.M)
_CONDA = re.compile(r"^[ \t]*-[ \t]+[\"']?(?:[\w./-]+::)?python[ \t]*([<>=!~][^\s\"'#]*(?:[ \t]*,[^\s\"'#]*)*)", re.M)


def pythons_asked_for(text: str, name: str) -> Iterator[tuple[str, int, int]]:
    """The versions of Python that a file asks for, and where it does; `name` is that of the file."""
    if name.endswith((".yml", ".yaml")):
        pattern, group = _CONDA, 1
    elif name == "setup.cfg":
        pattern, group = _CFG, 1
    elif name.endswith(".toml"):
        pattern, group = _TOML, 2
    elif name == "pipfile":
        pattern, group = _PIPFILE, 2
    else:
        return
    for match in pattern.finditer(text):
        versions = match[group].strip()
        if pattern is _PIPFILE and re.fullmatch(r"3\.\d+", versions):
            versions += ".*"
        yield versions, match.start(group), match.end(group)


def fits(versions: str, pythons: tuple[str, ...]) -> bool:
    """True where one of the minor versions is allowed, or it cannot be decided."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    specifier = Requirement("python", versions, 0, 0).specifier
    if not specifier or not pythons:
        return True
    try:
        allowed = SpecifierSet(specifier)
    except InvalidSpecifier:
        return True
    return any(allowed.contains(f"{python}.{patch}") for python in pythons for patch in range(_PATCHES))
