"""Draws the sample of facts that tests/test_tables.py compares the tables with; a fixed seed, once.

python scripts/sample_facts.py FACTS_DIR > tests/data/fact_sample.json
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

SEED, SIZE = 20, 120


def main(folder: Path) -> None:
    """Print SIZE facts with what a test needs: name, NPU name, status, wheels that have it, wheels that stub it."""
    facts = json.loads((folder / "cuda_to_npu.json").read_bytes())
    facts.pop("_meta")
    names = random.Random(SEED).sample(sorted(facts), SIZE)
    keys = ("npu", "status", "exists_in", "stub_in")
    rows = {name: {key: facts[name][key] for key in keys if facts[name].get(key)} for name in sorted(names)}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    print(f"{{\n{lines}\n}}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sample_facts.py FACTS_DIR")
    main(Path(sys.argv[1]))
