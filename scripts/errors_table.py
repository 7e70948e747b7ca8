"""Writes docs/reference/errors.md: the errors that `transplt diagnose` knows, by area, with what foretells them.

    python scripts/errors_table.py

Run from the top of the checkout. The data is rules/errors/*.json.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from transplt.rules.errors import KnownError, known_errors  # noqa: E402
from transplt.rules.tables import read_table  # noqa: E402

DOCUMENT = ROOT / "docs" / "reference" / "errors.md"
_HEAD = """# Errors that are known

What [`transplt diagnose`](../diagnose.md) knows by its text or code: {all} errors, {seen} of them with a text in which
they were seen, the others with the form that the vendor's definition gives them. `transplt explain NAME` prints one:
what it means, the likely cause, what to do, where it was seen. The last column names the findings of a migration that
foretell it. This page is made from `rules/errors/` (`python scripts/errors_table.py`).

A *cause* says what is wrong, a *fault* which part failed, a *consequence* follows from what another process did, a
*wrapper* says only that something below failed, and an *aftermath* comes when a process has failed already.
"""
_COLUMNS = "| code or name | what | kind | foretold by |\n|---|---|---|---|\n"


def _row(error: KnownError) -> str:
    links = ", ".join(f"[{code}](../../rules/diagnostics/{code}.md)" for code in error.predicted_by)
    title = error.title.replace("|", "\\|")
    name = f'<a id="{error.name}"></a>`{error.code or error.name}`'
    return f"| {name} | {title} | {error.kind.name.lower()} | {links} |"


def document() -> str:
    """The text of the page."""
    errors = known_errors()
    parts = [_HEAD.format(all=len(errors), seen=sum(bool(error.seen) for error in errors))]
    for area in dict.fromkeys(error.area for error in errors):
        what = read_table(f"errors/{area}.json")["what"]
        parts += [f"\n## {area.replace('_', ' ')}\n\n{what}\n\n", _COLUMNS]
        parts += ["".join(f"{_row(error)}\n" for error in errors if error.area == area)]
    return "".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8", newline="\n")
