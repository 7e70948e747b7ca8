"""Whether a project's Python is one that there are wheels of torch_npu for, by what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from transplt.base.text.requirement import Requirement

_TAG = re.compile(r"-cp([23])(\d{1,2})-")
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
