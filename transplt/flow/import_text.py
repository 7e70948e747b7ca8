"""What a file says of how it is found: the modules that it imports, by its text, and whether it is started.

This is asked of every file of a project, most of which nothing else has to read; so it is looked for in the text. A
line in a docstring that reads like an import counts as one: it only says that two files belong together.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from transplt.base.text.text_search import on_lines_with


class Placing(NamedTuple):
    """`imported`: names as the file spells them (`pkg.mod`, `.mod`, `pkg.mod.Class`, `pkg.mod.*`).

    `guarded`: it has a main guard. `ours`: the functions of a module that transplt wrote (edits/helper_file.py); `own`:
    those of a module of the project that chooses its device (edits/device_choosers.py); None for every other file.
    `extends`: the folders that it adds to those in which the interpreter looks for modules, "" for one that its text
    does not name. `speaks_of`: names that a module beside it may get (accelerator_place.py) and the file, an
    `__init__`, has for something. `asks`: whether there is an accelerator, by torch.cuda. `speaks`: the lines that
    speak of CUDA. `for_npus`: it chooses NPUs too, for others.
    """

    imported: tuple[str, ...] = ()
    guarded: bool = False
    ours: tuple[str, ...] | None = None
    extends: tuple[str, ...] = ()
    speaks_of: tuple[str, ...] = ()
    asks: bool = False
    speaks: int = 0
    own: tuple[str, ...] | None = None
    for_npus: bool = False


_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\r\n#;]*)|import[ \t]+([^\r\n#;]+))", re.M
)
GUARD = re.compile(rb"^if[ \t(]+__name__[ \t]*==[ \t]*['\"]__main__['\"]", re.M)
_CANDIDATES = re.compile(rb"\b(device|accelerator)\b")
_CUDA = re.compile(rb"(?:cuda|nccl|CUDA_|NCCL_)[^\n]*")
_NAME = re.compile(r"[.\w]+|\*")
_ADDED = re.compile(rb"sys\.path(?:\.append\([\"']([^\"'\\]+)[\"']\))?")
_COMMENT = re.compile(r"#[^\r\n]*")


def placing_of(data: bytes, path: str) -> Placing:
    """What the text of a file says."""
    found: dict[str, None] = {}
    for match in on_lines_with(b"import", _IMPORT, data):
        base, taken, plain = match.groups(b"")
        if plain:
            found.update((name, None) for name in _names(plain))
            continue
        module = base.decode("utf-8", "replace")
        found[module] = None
        stem = module if module.endswith(".") else f"{module}."
        found.update((stem + name, None) for name in _names(taken))
    guarded = next(on_lines_with(b"__name__", GUARD, data), None) is not None
    spoken = {each.decode() for each in _CANDIDATES.findall(data)} if path.endswith("__init__.py") else ()
    return Placing(
        tuple(found), guarded, extends=tuple(each.decode("utf-8", "replace") for each in _ADDED.findall(data)),
        speaks_of=tuple(sorted(spoken)), asks=b"torch.cuda.is_available()" in data,
        speaks=len(_CUDA.findall(data)),
    )  # fmt: skip


def _names(text: bytes) -> list[str]:
    """The names in `a.b as c, d`, without those that they get."""
    parts = _COMMENT.sub("", text.decode("utf-8", "replace")).strip("() \t\r\n").split(",")
    return [match[0] for part in parts if (match := _NAME.match(part.strip())) is not None]
