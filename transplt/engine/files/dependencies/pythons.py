"""Whether a project's Python is one that there are wheels of torch_npu for, by what it says and by its other pins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from transplt.base.text.requirement import Requirement, ceiling, normalised
from transplt.rules.companions import first_wheel

#: Pins of what is for Python 3.6 alone, of which newer ones have it in themselves (its Requires-Python, in the index).
_OF_PYTHON_36 = frozenset({("dataclasses", "==0.7"), ("dataclasses", "==0.8")})
_TAG = re.compile(r"-cp([23])(\d{1,2})-")
#: A clause that bounds from above; `==1.18.*` ends before 1.19.
_BOUND = re.compile(r"(==|===|<=|<|~=)(\d[\w.]*?)(?:\.\*)?")
_TOML = re.compile(r"^[ \t]*(?:requires-python|python)[ \t]*=[ \t]*([\"'])(.+?)\1", re.M)
_PIPFILE = re.compile(r"^[ \t]*python_(?:full_)?version[ \t]*=[ \t]*([\"'])(.+?)\1", re.M)
_CFG = re.compile(r"^python_requires[ \t]*=[ \t]*(\S[^\n#;]*)", re.M)
_CONDA = re.compile(
    r"^[ \t]*-[ \t]+[\"']?(?:[\w./-]+::)?python[ \t]*"
    r"([<>=!~]+[ \t]*[^\s\"'#,]*(?:[ \t]*,[ \t]*[<>=!~]*[ \t]*[^\s\"'#,]+)*)",
    re.M,
)
#: An image with a Python, for what is installed in it.
_IMAGE = re.compile(r"(?:docker\.io/)?(?:library/)?python:(3\.\d+)[\w.-]*")


def python_of_image(name: str) -> str:
    """The minor version of Python of an image that is made for it (`python:3.8-slim`); empty for any other."""
    match = _IMAGE.fullmatch(name)
    return match[1] if match is not None else ""


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


def python_of_wheel(requirement: Requirement, text: str) -> str:
    """The minor version of Python in the name of a wheel (`cp27`, `cp310`); empty where none is named by its file."""
    match = _TAG.search(text[requirement.whole[0] : requirement.whole[1]]) if requirement.address else None
    return f"{match[1]}.{match[2]}" if match is not None else ""


def older_pins(requirements: Iterable[Requirement], pythons: tuple[str, ...]) -> list[Requirement]:
    """The requirements that bound a package to releases without a wheel for any of some Pythons, oldest first: pip
    would have to build them from source, with a compiler of their time.
    """
    if not pythons:
        return []
    every = list(requirements)
    older = older_than(every, lambda name: first_wheel(name, pythons[0]))
    return older + [each for each in every if (normalised(each.name), each.specifier) in _OF_PYTHON_36]


def older_than(requirements: Iterable[Requirement], first_of: Callable[[str], str]) -> list[Requirement]:
    """The requirements that bound a package to releases before one, `first_of` its name; that is empty for others."""
    firsts = [(each, first_of(normalised(each.name))) for each in requirements if not each.marker and not each.address]
    return [each for each, first in firsts if first and _ends_before(each.specifier, first)]


def _ends_before(specifier: str, first: str) -> bool:
    """True where a clause of a specifier leaves out a release and all that are newer."""
    from packaging.version import InvalidVersion, Version

    for clause in specifier.split(",") if specifier else ():
        match = _BOUND.fullmatch(clause.strip())
        if match is None:
            continue
        try:
            bound, wanted = Version(match[2]), Version(first)
        except InvalidVersion:
            continue
        if match[1] == "~=":
            bound = Version(".".join(map(str, ceiling("~=", bound.release))))
        if bound < wanted or (bound == wanted and match[1] in ("<", "~=")):
            return True
    return False
