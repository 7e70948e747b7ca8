"""Edits that an editor offers for a finding: those of the finding, of the whole file, and a comment that ignores it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transplt.base.finding import Finding, Level
from transplt.engine.files.add_ignores import tree_of

#: What edits of other findings need: `import torch_npu`.
_IMPORT = "NPU403"
_IGNORED = re.compile(r"# transplt: ignore\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement of characters `start` to `end` of the text."""

    start: int
    end: int
    after: str


@dataclass(frozen=True, slots=True)
class Fix:
    """What is offered, in words; `safe`: a migration does it, too."""

    title: str
    edits: tuple[TextEdit, ...]
    safe: bool = True


def fixes_of(text: str, path: str, finding: Finding, every: Sequence[Finding]) -> list[Fix]:
    """What can be done about one finding of a text, in the order in which it is offered.

    Edits with the same words belong together (a class and its uses), or are the same replacement again: they are one
    offer. What would not compile is not offered.
    """
    offered = []
    if finding.edit is not None:
        same = [each for each in every if each.edit is not None and (each.code, each.message) == (
            finding.code, finding.message)]  # fmt: skip
        needed = [each for each in every if each.code == _IMPORT and each.edit is not None and each not in same]
        edits = _edits(text, [*same, *needed])
        if _compiles(text, edits, path):
            count = f" ({len(same)} places)" if len(same) > 1 else ""
            offered.append(Fix(f"{finding.message}{count}", edits, finding.level is Level.SAFE))
    if finding.open and (ignored := _ignore(text, path, finding)) is not None:
        offered.append(ignored)
    return offered


def fix_all(text: str, path: str, every: Iterable[Finding]) -> Fix | None:
    """All safe edits of a text; None where there are none."""
    safe = [each for each in every if each.edit is not None and each.level is Level.SAFE]
    edits = _edits(text, safe)
    if not edits or not _compiles(text, edits, path):
        return None
    return Fix(f"Make all safe edits of this file ({len(safe)})", edits)


def applied(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with the edits made."""
    for edit in sorted(edits, key=lambda each: (each.start, each.end), reverse=True):
        text = text[: edit.start] + edit.after + text[edit.end :]
    return text


def _edits(text: str, findings: Iterable[Finding]) -> tuple[TextEdit, ...]:
    """The edits by place, each once: insertions at one place keep their order, and are one edit."""
    utf8 = text.encode("utf-8", "surrogatepass")
    by_place: dict[tuple[int, int], str] = {}
    for finding in sorted(findings, key=Finding.sort_key):
        assert finding.edit is not None
        place = finding.span.start, finding.span.end
        if place[0] == place[1] or place not in by_place:
            by_place[place] = by_place.get(place, "") + finding.edit.after

    def characters(offset: int) -> int:
        return len(utf8[:offset].decode("utf-8", "replace"))

    return tuple(TextEdit(characters(start), characters(end), after) for (start, end), after in by_place.items())


def _ignore(text: str, path: str, finding: Finding) -> Fix | None:
    """A comment behind the line; None where a comment would not be one: in a string, before a continuation."""
    if not path.endswith((".py", ".pyw", ".pyi")):
        return None
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    if finding.span.line > len(starts):
        return None
    start = starts[finding.span.line - 1]
    line = re.match(r"[^\r\n]*", text[start:])
    assert line is not None
    shown = line[0].rstrip()
    known = _IGNORED.search(shown)
    if known is not None:
        at = start + known.end(1)
        edit = TextEdit(at, at, f", {finding.code}")
    else:
        edit = TextEdit(start + len(shown), start + len(line[0]), f"  # transplt: ignore[{finding.code}]")
    before, after = tree_of(text), tree_of(applied(text, [edit]))
    if before is None or before != after:
        return None
    return Fix(f"Ignore {finding.code} in this line", (edit,), safe=False)


def _compiles(text: str, edits: Iterable[TextEdit], path: str) -> bool:
    """True when the text compiles with the edits, or is no Python."""
    return not path.endswith((".py", ".pyw")) or tree_of(text) is None or tree_of(applied(text, edits)) is not None
