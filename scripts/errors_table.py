"""The tables of docs/reference/errors.md: the errors that `transplt diagnose` knows, by area, with what foretells them.

    python scripts/errors_table.py

prints them; the documents as a site (`mkdocs serve`) have them on the page. The data is rules/errors/*.json.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from transplt.rules.errors import KnownError, known_errors  # noqa: E402
from transplt.rules.tables import read_table  # noqa: E402

_HEAD = "{all} errors, {seen} of them with a text in which they were seen.\n"
_COLUMNS = "| code or name | what | kind | foretold by |\n|---|---|---|---|\n"


def _row(error: KnownError) -> str:
    links = ", ".join(f"[{code}](../../rules/diagnostics/{code}.md)" for code in error.predicted_by)
    title = error.title.replace("|", "\\|")
    name = f'<a id="{error.name}"></a>`{error.code or error.name}`'
    return f"| {name} | {title} | {error.kind.name.lower()} | {links} |"


def tables() -> str:
    """A table for each area."""
    errors = known_errors()
    parts = [_HEAD.format(all=len(errors), seen=sum(bool(error.seen) for error in errors))]
    for area in dict.fromkeys(error.area for error in errors):
        what = read_table(f"errors/{area}.json")["what"]
        parts += [f"\n## {area.replace('_', ' ')}\n\n{what}\n\n", _COLUMNS]
        parts += ["".join(f"{_row(error)}\n" for error in errors if error.area == area)]
    return "".join(parts)


if __name__ == "__main__":
    print(tables(), end="")
