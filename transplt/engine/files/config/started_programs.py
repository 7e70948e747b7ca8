"""Which program gets the options that a configuration lists: `"program": "train.py", "args": ["--device", "cuda"]`."""

from __future__ import annotations

import re

from transplt.engine.files.config.values import Value
from transplt.engine.files.document import Document
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
    beside = around.texts if around is not None else {}
    path = next((text for key in _PROGRAMS if (text := beside.get(key, "")).endswith(".py")), "")
    program = None
    if re.fullmatch(r"[\w.]+", module := beside.get("module", "")):
        program = Started(module.replace(".", "/") + ".py", (), ())
    elif path:
        program = Started(_FOLDER.sub("", path), (), ())
    elif inner is not None:
        texts = [*" ".join(beside.get(key, "") for key in _COMMANDS).split(), *inner.texts.values()]
        program = started([Word((0, 0), text, text) for text in texts])
    return "" if program is None else path_of(document.project, document.path, program)
