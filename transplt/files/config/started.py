"""Which program gets the options that a configuration lists: `"program": "train.py", "args": ["--device", "cuda"]`."""

from __future__ import annotations

import re

from transplt.files.config.values import Holder, Value
from transplt.files.document import Document
from transplt.flow.command_options import path_of
from transplt.flow.command_words import Started, Word, started

#: Keys beside the options that name a Python file: launch.json of editors, jobs of schedulers and of sweeps.
_PROGRAMS = ("program", "script", "script_path", "entry_point", "entrypoint", "main")
#: Those that name the first words of the command.
_COMMANDS = ("command", "cmd", "executable")
_FOLDER = re.compile(r"^\$\{\w+\}/")


def script_of(document: Document, value: Value) -> str:
    """The path in the project of what gets the options in a value, or in the list that it stands in; else empty."""
    inner = value.holder if value.holder.is_list else None
    around = value.holder.above if inner is not None else value.holder
    program = _named(around) if around is not None else None
    if program is None and inner is not None:
        before = [around.texts.get(key, "") for key in _COMMANDS] if around is not None else []
        texts = [*" ".join(before).split(), *inner.texts.values()]
        program = started([Word((0, 0), text, text) for text in texts])
    return "" if program is None else path_of(document.project, document.path, program)


def _named(holder: Holder) -> Started | None:
    if (module := holder.texts.get("module")) is not None and re.fullmatch(r"[\w.]+", module):
        return Started(module.replace(".", "/") + ".py", (), ())
    named = (holder.texts.get(key, "") for key in _PROGRAMS)
    path = next((text for text in named if text.endswith(".py")), "")
    return Started(_FOLDER.sub("", path), (), ()) if path else None
