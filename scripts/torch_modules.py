"""Brings rules/support/torch_names.json up to the newest wheel: the public modules that scripts/facts/ know of.

`torch_names.py` writes the table by introspection of an installed torch, which may be older than the newest version:
what takes a running torch to know (aliases, values, results) is that version's. Public modules are read from wheels.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import fact_store

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path("rules") / "support" / "torch_names.json"

#: Modules that need what is not installed, start something, or are written for the tests of torch.
SKIPPED = ("torch.testing._internal", "torch.utils.benchmark.examples", "torch.utils.tensorboard", "torch.contrib")


def is_public(module: str) -> bool:
    """True for a module that a program may import by name."""
    parts = module.split(".")
    return not module.startswith(SKIPPED) and "__main__" not in module and not any(p.startswith("_") for p in parts)


def write(table: dict[str, Any], path: Path) -> None:
    """Write the table, one part a line, with the modules of the wheels."""
    facts = fact_store.read("torch_names")
    made_with = re.split("[;]", table["source"])[0]
    said = f"{made_with}; modules of the wheels of {' and '.join(facts['read'])} too (scripts/facts/torch_names.json)"
    modules = sorted({*table["modules"], *filter(is_public, facts["lists"])})
    lines = [
        f' "{key}": {json.dumps(value, ensure_ascii=False)}'
        for key, value in {**table, "source": said, "modules": modules}.items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")


def main(root: Path = ROOT) -> None:
    """Write the table of this checkout below `root`."""
    write(json.loads((ROOT / TABLE).read_bytes()), root / TABLE)
