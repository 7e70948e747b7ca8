"""Commands that are given as a list of words: no shell reads them, unless the words call one.

`CMD ["python", "train.py", "--device", "cuda"]` of a Dockerfile, `command:` and `args:` of Kubernetes and compose.
What the words mean is what they mean in a shell script (transplt/engine/files/shell/arguments.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Extent, Finds, Note
from transplt.engine.files.document import Document
from transplt.engine.files.embedded_pieces import in_lines
from transplt.engine.files.kind import FileKind
from transplt.engine.files.shell.arguments import PERHAPS, program_changes
from transplt.engine.files.variables import variable_set
from transplt.flow.command_options import options, spells_cuda
from transplt.flow.command_words import SHELLS, Word, base, started

_SETS = re.compile(r"([A-Za-z_]\w*)=(.*)", re.S)
_STRING = re.compile(rb'"((?:[^"\\\r\n]|\\.)*)"')
#: Between the words of a list in JSON, with the lines of a Dockerfile that go on.
_BETWEEN = re.compile(rb"[\s,]*(?:\\[ \t]*\r?\n[\s,]*)*")


@dataclass(frozen=True, slots=True)
class Item:
    """A word of a list, and the byte ranges of its text; none where its bytes are not its text."""

    word: Word
    lines: tuple[Extent, ...] = ()


def json_words(utf8: bytes, start: int, end: int) -> list[Item] | None:
    """The words of a list of strings in JSON between two places; None for anything else."""
    text = utf8[start:end]
    opened = re.match(rb"\s*\[", text)
    closed = re.search(rb"\]\s*\Z", text)
    if opened is None or closed is None:
        return None
    found: list[Item] = []
    at, last = start + opened.end(), start + closed.start()
    while True:
        between = _BETWEEN.match(utf8, at, last)
        at = at if between is None else between.end()
        if at >= last:
            return found
        match = _STRING.match(utf8, at, last)
        if match is None:
            return None
        at = match.end()
        found.append(_item(utf8, match.span(1)))


def _item(utf8: bytes, inner: Extent) -> Item:
    raw = utf8[inner[0] : inner[1]]
    if b"\\" not in raw:
        text = raw.decode()
        return Item(Word(inner, text, text), (inner,))
    try:
        text = json.loads(b'"' + raw + b'"')
    except ValueError:
        text = ""
    return Item(Word(inner, raw.decode(), text))


def list_changes(document: Document, items: Sequence[Item]) -> Finds:
    """What becomes of a command that is given as these words."""
    words = [item.word for item in items]
    shell = next((at for at, word in enumerate(words) if base(word) in SHELLS), len(words))
    for at, item in enumerate(items):
        if at - 1 > shell and re.fullmatch(r"-\w*c", words[at - 1].source) and item.lines:
            yield from in_lines(document, item.lines, FileKind.SHELL)
            return
    program = started(words)
    yield from _variables(document, words)
    if document.settings.style != "npu":
        return
    if program is not None:
        sound = all(item.lines for item in items)
        yield from program_changes(document, program, sound)
        return
    # The image's own entry point takes the words: what it starts stands in no file of the project.
    for option, _, value, start in options(words):
        if option is not None and spells_cuda(value):
            extent = (start, start + len(value.encode()))
            message = f"{option} is given {value}"
            help_ = "write the NPU device or backend if the program of the image takes one"
            yield Note(extent, PERHAPS, Level.MANUAL, message, option, help_, Effort.LOW)


def _variables(document: Document, words: Sequence[Word]) -> Finds:
    """What `env` sets for the program behind it."""
    first = next((at + 1 for at, word in enumerate(words) if base(word) == "env"), len(words))
    for word in words[first:]:
        match = _SETS.fullmatch(word.value or "")
        if match is None or word.source != word.value:
            return
        start = word.extent[0]
        yield from variable_set(document, match[1], (start, start + len(match[1].encode())), match[2], word.extent)
