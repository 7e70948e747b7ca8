"""Makefiles: recipe lines as shell, and variables that the file sets for what it runs.

https://www.gnu.org/software/make/manual/ (recipe syntax, variables, export). A variable of CUDA that the file sets is
renamed in all places or in none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transplt.edits.edit import Edit, Extent, Finds
from transplt.engine.files.document import Document
from transplt.engine.files.inserted import Inserted, hide
from transplt.engine.files.variables import RENAMED, together, variable_set
from transplt.rules.environment import variables

_NAMES = ("makefile", "gnumakefile")
#: What is longer is generated.
_LONGEST = 500_000
#: $(X), ${X}, $(X:.c=.o), $@, $<, and those of functions up to the first bracket inside.
_EXPANSION = re.compile(rb"\$\$|\$(?:\([^()\r\n$]*\)|\{[^{}\r\n$]*\}|[@<^*?%+|])")
#: A line ends at a line feed alone: a carriage return elsewhere is a character as any other.
_LINE = re.compile(rb"([^\r\n]*(?:\r(?!\n)[^\r\n]*)*)(\r?\n|\Z)")
_PREFIX = re.compile(rb"[ \t]*[@+-]*[ \t]*")
_ASSIGNS = re.compile(
    rb"(?:[^\t#=:][^#=:]*:(?!:?=)[ \t]*)?(?:(?:export|override|private)[ \t]+)*([A-Z][A-Z0-9_]+)[ \t]*"
    rb"(?:\?|:{1,3}|\+|!)?=[ \t]*((?:[^#\r\n]*[^#\r\n \t])?)[ \t]*(?:#|\Z)"
)
_EXPORTS = re.compile(rb"(?:un)?export[ \t]+((?:[A-Za-z_]\w*(?:[ \t]+|\Z))+)\Z")


def changes(document: Document) -> Finds:
    """What is changed in a Makefile, and what is noted of its commands."""
    if not (document.name in _NAMES or document.name.endswith(".mk")) or len(document.utf8) > _LONGEST:
        return
    if b".RECIPEPREFIX" in document.utf8 or document.settings.style == "portable":
        return
    yield from together(document, _changes(document))


def _changes(document: Document) -> Finds:
    hidden = hide(document, _EXPANSION)
    assigned: set[bytes] = set()
    for lines, recipe in _logical(document.utf8):
        if recipe:
            yield from hidden.shell(_shell_lines(document.utf8, lines))
        else:
            yield from _assigned(document, lines, assigned)
    for name in sorted(assigned):
        yield from _uses_of(document, name, hidden)


def _logical(utf8: bytes) -> Iterator[tuple[list[Extent], bool]]:
    """Lines with those that continue them, and whether they are a recipe's; definitions (`define`) are passed by."""
    at, size, recipes = 0, len(utf8), False
    while at < size:
        lines = []
        while True:
            line = _LINE.match(utf8, at)
            assert line is not None
            goes_on = line[1].endswith(b"\\")
            lines.append((at, line.end() if goes_on else line.end(1)))
            at = line.end()
            if not goes_on or at >= size:
                break
        first = utf8[lines[0][0] : lines[0][1]]
        recipe = first.startswith(b"\t") and recipes
        if not recipe and first.strip() and not first.lstrip().startswith(b"#"):
            recipes = recipes or b":" in first
        yield lines, recipe


def _shell_lines(utf8: bytes, lines: list[Extent]) -> list[Extent]:
    """A recipe line as the shell gets it: without the tab, the signs before the command, the tabs of further lines."""
    found = []
    for index, (start, end) in enumerate(lines):
        match = _PREFIX.match(utf8, start, end)
        assert match is not None
        begin = match.end() if not index else start + utf8.startswith(b"\t", start)
        found.append((min(begin, end), end))
    return found


def _assigned(document: Document, lines: list[Extent], assigned: set[bytes]) -> Finds:
    start, end = lines[0]
    text = document.utf8[start:end]
    match = _ASSIGNS.match(text) if len(lines) == 1 else None
    if match is None:
        exported = _EXPORTS.match(text) if len(lines) == 1 else None
        if exported is not None:
            assigned.update(name for name in exported[1].split() if name.decode() in variables())
        return
    name = match[1].decode()
    variable = variables().get(name)
    if variable is None or not variable.npu:
        return
    at = start + match.start(1), start + match.end(1)
    assigned.add(match[1])
    yield from variable_set(document, name, at, match[2].decode(), (at[0], start + match.end(2)))


def _uses_of(document: Document, name: bytes, hidden: Inserted) -> Finds:
    """The places that name a variable of the file: `$(X)`, `export X`."""
    new = variables()[name.decode()].npu
    if not new or new == name.decode():
        return
    message = f"environment variable {name.decode()} -> {new}"
    pattern = re.compile(rb"(?:\$[({](?=%s[)}])|^(?:un)?export[ \t]+(?=%s[ \t]*\r?$))(%s)" % (name, name, name), re.M)
    for match in pattern.finditer(document.utf8):
        yield Edit(match.span(1), RENAMED, message, new, api=name.decode())
