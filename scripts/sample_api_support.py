"""Draws the 200 entries of native_api_support.json that tests/support/test_tables.py compares: once, with a fixed seed.

    python scripts/sample_api_support.py FACTS_DIR

The entries are kept as they are in the source; drawing again with the same source gives the same file.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from transplt.settings import TORCH_VERSIONS  # noqa: E402

SEED, COUNT = 20261120, 200


def main(folder: Path) -> None:
    """Write tests/data/api_support_sample.json."""
    tables = json.loads((folder / "native_api_support.json").read_bytes())
    every = [(version, api) for version in TORCH_VERSIONS for api in sorted(tables[version])]
    chosen = random.Random(SEED).sample(every, COUNT)
    rows = [
        {"torch": version, "api": api, "base": tables["_meta"][version].get("source_base", ""), **tables[version][api]}
        for version, api in sorted(chosen)
    ]
    lines = ",\n".join(" " + json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows)
    path = ROOT / "tests" / "data" / "api_support_sample.json"
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sample_api_support.py FACTS_DIR")
    main(Path(sys.argv[1]))
