"""Text that another program puts into a shell command before the shell sees it: make, a CI service.

Each such text is hidden behind an expansion of the shell of the same length, so that offsets stay and the shell's
editors see a value that they do not know. What they would change over such a text is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from transplt.base.text.source import Source
from transplt.edits.edit import Extent, Finds, Note, extent_of
from transplt.engine.files.document import Document
from transplt.engine.files.embedded_pieces import in_lines
from transplt.engine.files.kind import FileKind

_LETTER = re.compile(rb"[^\r\n]")


@dataclass(frozen=True, slots=True)
class Inserted:
    """A document, the places that are filled, and the text with a shell expansion in each of them."""

    document: Document
    hidden: Document
    places: Sequence[Extent]

    def shell(self, lines: Sequence[Extent]) -> Finds:
        """What the shell's editors find in a command that is made of these byte ranges."""
        for found in in_lines(self.hidden, lines, FileKind.SHELL):
            within = self.within(extent_of(found))
            if isinstance(found, Note) and within:
                yield self._restored(found, within)
            elif not within:
                yield found

    def within(self, extent: Extent) -> list[Extent]:
        """The filled places that share bytes with a range."""
        at = bisect_right(self.places, (extent[1], -1))
        found = []
        while at and self.places[at - 1][1] > extent[0]:
            at -= 1
            if self.places[at][0] < extent[1]:
                found.append(self.places[at])
        return found

    def _restored(self, note: Note, within: Sequence[Extent]) -> Note:
        """The note with the texts as the file has them."""
        for start, end in sorted(within, key=lambda each: each[0] - each[1]):
            shown = self.hidden.utf8[start:end].decode("utf-8", "replace")
            text = self.document.utf8[start:end].decode("utf-8", "replace")
            note = replace(note, message=note.message.replace(shown, text), api=note.api.replace(shown, text))
        return note


def hide(document: Document, pattern: re.Pattern[bytes]) -> Inserted:
    """The document with an expansion for each text that the pattern finds: as many bytes, and the same lines."""
    places = [match.span() for match in pattern.finditer(document.utf8)]
    utf8 = pattern.sub(lambda match: _expansion(match[0]), document.utf8)
    hidden = replace(document, source=Source(utf8))
    return Inserted(document, hidden, places)


def _expansion(text: bytes) -> bytes:
    if text == b"$$":
        return b"X$"  # the dollar that make hands on
    if len(text) < 4:
        return b"$1" + b" " * (len(text) - 2) if len(text) > 1 else text
    return b"${" + _LETTER.sub(b"X", text[2:-1]) + b"}"
