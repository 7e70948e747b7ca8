"""Writes docs/reference/executed_rules.md: which built-in rules that rewrite are run, and why the others are not.

    python scripts/executed_table.py

Run from the top of the checkout. The tables are those of tests/executed, whose tests run the rules; without torch.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.executed.snippet import TORCH, Rule, rewriting_rules  # noqa: E402
from tests.executed.table import said_of, snippets  # noqa: E402
from transplt.rules.pages import load  # noqa: E402

DOCUMENT = ROOT / "docs" / "reference" / "executed_rules.md"
_HEAD = """# Rules that are run

Rates of renamed calls say nothing of what the calls do. Each built-in rule that rewrites is run here: a few lines for
CUDA on the [stand-in for a CUDA host](inside.md#a-cuda-host), and what the migration makes of them on the
[emulated NPU](../emulator.md), on one machine with the memory of the CPU and torch {torch}. The test first sees
that the rule was applied; then type, dtype, shape, device and value of the result have to agree, bit for bit
where nothing else is said. That shows what a rule means, not how an NPU rounds or how fast it is.

**{run} of {all} rules are run.** The snippets are in `tests/executed/`; this page is generated from them
(`python scripts/executed_table.py`).

| code | what | rules | run |
|---|---|---:|---:|
"""


def counts() -> dict[str, tuple[int, int]]:
    """By code: how many rules rewrite, and how many of them are run."""
    found: dict[str, tuple[int, int]] = {}
    for rule in rewriting_rules().values():
        every, run = found.get(rule.code, (0, 0))
        found[rule.code] = every + 1, run + (rule.name in snippets())
    return dict(sorted(found.items()))


def document() -> str:
    """The text of the page."""
    head = _HEAD.format(torch=TORCH, run=len(snippets()), all=len(rewriting_rules()))
    rows = [
        f"| [{code}](../../rules/diagnostics/{code}.md) | {_cell(load(code).title)} | {every} | {run} |"
        for code, (every, run) in counts().items()
    ]
    by_code: dict[str, list[Rule]] = defaultdict(list)
    for rule in sorted(rewriting_rules().values(), key=lambda rule: (rule.code, rule.name)):
        by_code[rule.code].append(rule)
    lines = ["", "## Each rule", "", "| code | rule | run |", "|---|---|---|"]
    for code, rules in by_code.items():
        lines += [f"| {code} | {_name(rule)} | {_cell(said_of(rule))} |" for rule in rules]
    return head + "\n".join([*rows, *lines]) + "\n"


def _name(rule: Rule) -> str:
    return f"`{rule.name}`" if rule.new else _cell(load(rule.code).title)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    DOCUMENT.write_text(document(), encoding="utf-8")
    print(f"{DOCUMENT.relative_to(ROOT)}: {len(snippets())} of {len(rewriting_rules())} rules are run")


if __name__ == "__main__":
    main()
