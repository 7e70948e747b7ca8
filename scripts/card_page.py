"""docs/reference/card.md: what the card under the vendor's torch_npu computes, by PyTorch's own samples of operators.

    python scripts/card_page.py             # runs op_db on the card (a few minutes), writes card.json and card.md
    python scripts/card_page.py --text      # writes card.md from card.json alone

card.json holds every entry of op_db that is not `right`, by type and direction, with what torch_npu or the card said;
tests/card/test_operators.py runs the same and holds each verdict to it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.card.op_table import RUNS, SLICES, TABLE, verdicts  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "card.md"
_HEAD = """# The card under torch_npu

What the emulated card computes when the vendor's own torch_npu {torch_npu} runs on it with torch {torch}: each entry of
PyTorch's database of operators (`op_db`), up to six of its samples, beside the same call on the CPU. Made by
`python scripts/card_page.py`; tests hold every verdict.

- *right*: values, types and shapes are the CPU's (float32 within 2e-4, float16 5e-3, bfloat16 4e-2; float64 is float32
  on a card).
- *form alone*: drawn, not initialised, or not to be compared for a reason that `tests/card/op_database.py` gives; types
  and shapes are the CPU's.
- *refused*: torch_npu or the card's limits refuse, in the words below; an operator that nobody has written says so by
  its name.
- *partly refused*: some samples are, and the others are right.
- *own form*: torch_npu itself gives another type or shape than the CPU, such as the int8 mask of a max pool.
- *wrong*: another value.
- *no sample*: the CPU computes none of the samples.

| type, direction | right | form alone | refused | partly | own form | wrong | no sample | all |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
"""
_KINDS = ("right", "form alone", "refused", "partly refused", "own form", "wrong", "no sample")


def measure() -> dict[str, Any]:
    """The verdicts of all runs: what is not right, and how many are."""
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as scratch:
        asked = [(run, at) for run in RUNS for at in range(SLICES)]

        def ask(number: int) -> dict[str, list[str]]:
            folder = Path(scratch) / str(number)
            folder.mkdir()
            return verdicts(*asked[number], folder)

        parts = list(pool.map(ask, range(len(asked))))
    found: dict[str, Any] = {}
    for (run, _), part in zip(asked, parts, strict=True):
        row = found.setdefault(run, {"right": 0, "others": {}})
        row["right"] += sum(verdict == "right" for verdict, _ in part.values())
        row["others"] |= {name: each for name, each in sorted(part.items()) if each[0] != "right"}
    return found


def table_text(found: dict[str, Any]) -> str:
    """The table as JSON, an entry a line."""
    runs = [
        f'  "{run}": {{"right": {row["right"]}, "others": {{\n'
        + ",\n".join(f"    {json.dumps(name)}: {json.dumps(each)}" for name, each in row["others"].items())
        + "\n  }}"
        for run, row in found["runs"].items()
    ]
    return f'{{"versions": {json.dumps(found["versions"])}, "runs": {{\n' + ",\n".join(runs) + "\n}}\n"


def words(why: str) -> str:
    """What was said, without places, numbers and times."""
    why = re.sub(r"^\S*:\S*\.\./third_party\S+ ", "", why)
    why = re.sub(r"\[ERROR\] \S+ \(PID:\d+, Device:\d+, RankID:-?\d+\) ", "", why)
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z'])|PTA call acl api failed\. ", why)
    return " ".join(sentences[-1 if "aclnn" in why else 0].split())[:160]


def page(table: dict[str, Any]) -> str:
    """The text of the page."""
    lines = []
    for run, row in table["runs"].items():
        counts = Counter(verdict for verdict, _ in row["others"].values()) | Counter(right=row["right"])
        total = sum(counts.values())
        lines.append(f"| {run} | " + " | ".join(str(counts[kind]) for kind in _KINDS) + f" | {total} |")
    lines += ["", "## What is not as on the CPU", ""]
    for run, row in table["runs"].items():
        by_words: dict[str, list[str]] = {}
        for name, (verdict, why) in row["others"].items():
            if verdict not in ("right", "form alone", "no sample"):
                by_words.setdefault(f"{verdict}: {words(why)}", []).append(f"`{name}`")
        lines += [f"### {run}", ""]
        lines += [f"- {said}: {', '.join(names)}" for said, names in sorted(by_words.items())] + [""]
    return _HEAD.format(**table["versions"]) + "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the table and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    if not options.text:
        found = {"versions": {"torch": "2.13.0", "torch_npu": "2.13.0"}, "runs": measure()}
        TABLE.write_text(table_text(found), encoding="utf-8")
    PAGE.write_text(page(json.loads(TABLE.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
