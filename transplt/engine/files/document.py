"""A file that is not Python, as those who edit one kind of file get to see it."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.source import Source
from transplt.engine.files.kind import FileKind

if TYPE_CHECKING:
    from transplt.flow.facts import ProjectFacts  # a check of what is remembered needs none


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a file, with what its editors may ask. Places are byte offsets into `source.utf8` (no BOM).

    `host` is the kind of the file of which the document is a piece, None for a whole file. `building`: it is a piece
    that runs while an image is built. `lock`: the file that holds a hash of what it asks for.
    """

    source: Source
    path: str
    kind: FileKind
    settings: Settings
    target: TorchTarget
    project: ProjectFacts
    host: FileKind | None = None
    building: bool = False
    lock: str = ""

    @property
    def utf8(self) -> bytes:
        return self.source.utf8

    @property
    def name(self) -> str:
        """The last part of the path, in small letters."""
        return self.path.rpartition("/")[2].lower()


def text_of(data: bytes) -> Source | None:
    """The text of a file in UTF-8, with or without a byte order mark; None for other bytes: nothing edits them."""
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    utf8 = data[len(bom) :]
    try:
        utf8.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return Source(utf8, bom=bom)
