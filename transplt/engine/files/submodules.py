"""Submodules of git that are not checked out: code of the project that nobody has seen.

https://git-scm.com/docs/gitmodules: a section `[submodule "name"]` with `path` and `url` for each. A folder without a
Python file counts as empty: what it holds, if it holds anything, is nothing that a program imports.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Extent, Finds, Note
from transplt.engine.files.document import Document
from transplt.rules.packages import package_imported_as

CODE = "NPU866"
_NAME = ".gitmodules"
_SECTION = re.compile(rb"^[ \t]*\[submodule[ \t][^\n]*", re.M)
_ENTRY = re.compile(rb"^[ \t]*(path|url)[ \t]*=[ \t]*\"?([^\r\n\"]+?)\"?[ \t]*\r?$", re.M)


def changes(document: Document) -> Finds:
    """Say which submodules are missing: work where a file of the project imports one, else a remark."""
    if document.name != _NAME or not document.project.known:
        return
    top = posixpath.dirname(document.path)
    paths = document.project.modules.values()
    for path, url, extent in _submodules(document.utf8):
        folder = posixpath.normpath(posixpath.join(top, path))
        if any(each.startswith(f"{folder}/") for each in paths):
            continue
        name = _imported(document, folder)
        message = f"the submodule {path} is not checked out"
        message += f", and the project imports {name} from it" if name else ""
        source = f" ({url})" if url else ""
        help_ = f"git submodule update --init {path}{source}, and migrate it with the project: it may contain CUDA code"
        level, effort = (Level.MANUAL, Effort.HIGH) if name else (Level.INFO, None)
        yield Note(extent, CODE, level, message, path, help_, effort)


def _submodules(text: bytes) -> Iterator[tuple[str, str, Extent]]:
    """The path and the address of each submodule, and where its path stands."""
    begins = [match.end() for match in _SECTION.finditer(text)]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        found = {match[1]: match for match in _ENTRY.finditer(text, begin, end)}
        if b"path" in found:
            path, url = (found[key][2].decode("utf-8", "replace") if key in found else "" for key in (b"path", b"url"))
            yield path.strip("/"), url, found[b"path"].span(2)


def _imported(document: Document, folder: str) -> str:
    """A name that the project imports from below a folder: by its whole path, or by the name of the folder alone where
    no known package is called so."""
    roots = [folder.replace("/", ".")]
    last = posixpath.basename(folder)
    if last != folder and package_imported_as(last) is None:
        roots.append(last)
    names = [*sorted(document.project.used_names), *sorted(document.project.imported)]
    return next((name for root in roots for name in names if name == root or name.startswith(f"{root}.")), "")
