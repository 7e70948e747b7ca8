"""The tables of docs/reference/executed_rules.md: which built-in rules that rewrite are run, and why others are not.

    python scripts/executed_table.py

prints them; the documents as a site (`mkdocs serve`) have them on the page. They come from tests/executed and from the
pages of the codes, without torch.
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

_HEAD = """**{run} of {all} rules are run**, with torch {torch}.

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


def tables() -> str:
    """The two tables: by code, and each rule."""
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


if __name__ == "__main__":
    print(tables(), end="")
