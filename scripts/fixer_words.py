"""What the prefilter asks of the fixers of every migration, as one table: a clean file is told by it alone, and pays
for no module of theirs.

    python -m scripts.fixer_words [--write]

The fixers state their words (transplt/edits/fixer.py); this writes them down in rules/support/fixer_words.json: by
module rows of torch versions, texts that a file must hold too, and words. A module that is not in it is imported for
them. Without --write it exits 1 when the table is another one.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from transplt.edits.fixer import fixers_of
from transplt.engine.prefilter import CODEMODS, KERNELS, WORDS

PAGE = Path(__file__).resolve().parent.parent / "rules" / WORDS


def rows_of(package: str) -> dict[str, list[list[object]]]:
    """By module: what each of its fixers states that has words."""
    fixers = [fixer for fixer in fixers_of(package) if fixer.words]
    found: dict[str, list[list[object]]] = {each.name: [] for each in iter_modules(import_module(package).__path__)}
    for fixer in sorted(fixers, key=lambda fixer: fixer.module):
        found[fixer.name].extend(map(list, fixer.stated()))
    return found


def table() -> str:
    """A line for each module."""
    packages = [
        f" {json.dumps(package)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(rows)}" for name, rows in rows_of(package).items())
        for package in (CODEMODS, KERNELS)
    ]
    return "{\n" + "\n },\n".join(packages) + "\n }\n}\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(table(), encoding="ascii")
    sys.exit(PAGE.read_text(encoding="ascii") != table())
