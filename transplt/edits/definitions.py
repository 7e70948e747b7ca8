"""Functions and classes of our own in a file: above all code that may use them."""

from __future__ import annotations

from collections.abc import Sequence

from transplt.edits.lines import blank_lines_above
from transplt.edits.writer import Writer
from transplt.syntax.asks import first_code


def define(writer: Writer, lines: Sequence[str], code: str, message: str) -> None:
    """Write a definition above the first statement that is neither an import nor a setting of one."""
    place = first_code(writer.work.scan.tree)
    lead = blank_lines_above(writer.work.source, place).splitlines()
    writer.before(place, [*lead, *lines, "", ""], code, message, above_comments=True)
