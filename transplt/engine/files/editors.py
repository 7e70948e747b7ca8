"""Which modules edit which kind of file: imported, with their parsers, when such a file names what they look for.

An editor is a module with a function `changes(document)`, which yields edits of byte ranges, notes and reasons why
words stay (transplt/edits/edit.py), and may have one `broken(document, changed)`, which returns why the text `changed`
must not be written: an empty text where it holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from transplt.base.text.cuda_words import WORDS
from transplt.edits.edit import Finds
from transplt.engine.files.document import Document
from transplt.engine.files.kind import LONGEST_JSON, FileKind


class Editor(Protocol):
    """What is asked of the module of an editor."""

    def changes(self, document: Document) -> Finds: ...


@dataclass(frozen=True, slots=True)
class _Entry:
    """An editor, the kinds it looks at, and what a file holds (lowered bytes, any of them) that it has work in."""

    module: str
    kinds: frozenset[FileKind]
    words: tuple[bytes, ...]


#: What a recipe for containers or a CI service holds, before it is edited or after.
_RECIPES = (b"cuda", b"nccl", b"nvidia", b"gpu", b"torch", b"ascend", b"hccl", b"npu", b"pip", b"conda")
#: In the order in which they are asked; where two edit the same bytes, the first has it.
EDITORS: tuple[_Entry, ...] = (
    _Entry("transplt.engine.files.dependencies.editor", frozenset({FileKind.REQUIREMENTS}),
           (b"torch", b"nvidia", b"cuda", b"flash", b"xformers", b"triton", b"==")),
    _Entry("transplt.engine.files.dependencies.commands", frozenset({FileKind.SHELL}),
           (b"torch", b"nvidia", b"cudatoolkit", b"python=", b"python<")),
    _Entry("transplt.engine.files.shell.editor", frozenset({FileKind.SHELL}), WORDS),
    _Entry("transplt.engine.files.shell.build_time", frozenset({FileKind.SHELL}), (b"import", b"from", b"-m torch")),
    _Entry("transplt.engine.files.shell.system_packages", frozenset({FileKind.SHELL}), WORDS),
    _Entry("transplt.engine.files.docker", frozenset({FileKind.DOCKER}), _RECIPES),
    _Entry("transplt.engine.files.makefiles", frozenset({FileKind.NATIVE}), _RECIPES),
    _Entry("transplt.engine.files.recipes", frozenset({FileKind.DOCKER, FileKind.CONFIG}), _RECIPES),
    _Entry("transplt.engine.files.config.editor", frozenset({FileKind.CONFIG}), (*WORDS, b"multi_gpu")),
    _Entry("transplt.engine.files.notebook.editor", frozenset({FileKind.NOTEBOOK}), (b"",)),  # a rule may name any word
    _Entry("transplt.engine.files.submodules", frozenset({FileKind.PROSE}), (b"[submodule",)),
    _Entry("transplt.engine.files.documents.editor", frozenset({FileKind.PROSE}), (*WORDS, b"torch", b"--gpus")),
)


def editors_of(document: Document) -> Iterator[Editor]:
    """The editors that have work in a document. Of a piece those are left out that read the whole file as well."""
    # JSON that is too long for those who read configurations is data; what a shell reads (`.env.json`) is not.
    is_long = document.kind is FileKind.CONFIG and len(document.utf8) > LONGEST_JSON
    if is_long and document.name.endswith(".json") and not document.name.startswith(".env"):
        return
    host = None if document.host is document.kind else document.host
    fitting = [entry for entry in EDITORS if document.kind in entry.kinds and host not in entry.kinds]
    lowered = document.utf8.lower() if fitting else b""
    for entry in fitting:
        if any(word in lowered for word in entry.words):
            yield cast(Editor, import_module(entry.module))
