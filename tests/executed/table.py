"""Which built-in rules that rewrite are run, and how; without torch, for the tests and the documents."""

from __future__ import annotations

import re
from functools import cache

from tests.executed.fixes import FIXES
from tests.executed.packages import PACKAGES
from tests.executed.reasons import missing_package, reason_of
from tests.executed.renames import snippet_of
from tests.executed.snippet import Rule, Snippet, rewriting_rules
from tests.executed.themes import THEMES
from tests.page_examples import asked_for
from transplt.rules.pages import load

BY_NAME = {**FIXES, **THEMES, **PACKAGES}


def example_of(rule: Rule) -> Snippet | None:
    """The example on the page of a code, where it leaves something in `result`."""
    page = load(rule.code)
    examples = page.examples()
    if len(examples) != 2 or not re.search(r"^result = ", examples[0], re.MULTILINE):
        return None
    return Snippet(examples[0], settings=asked_for(page.sections["Example"]))


@cache
def snippets() -> dict[str, Snippet]:
    """By the name of the rule; a rule for other versions of torch has none."""
    found = {}
    for name, rule in rewriting_rules().items():
        snippet = BY_NAME.get(name) or (snippet_of(rule) if rule.new else example_of(rule))
        if snippet is not None and (name in BY_NAME or rule.runs):
            found[name] = snippet
    return found


def said_of(rule: Rule) -> str:
    """`yes`, with what is compared where that is not all, or `no`, with the reason."""
    snippet = snippets().get(rule.name)
    if snippet is None:
        return f"no: {reason_of(rule) or missing_package(rule)}"
    words = ["yes"]
    if snippet.ranks:
        words.append(f"{snippet.ranks} processes" if snippet.ranks > 1 else "with a process group")
    if snippet.nature:
        words.append(f"types and shapes alone: {snippet.nature}")
    elif snippet.tolerance:
        words.append(f"within {snippet.tolerance:g} of the largest number")
    if snippet.before:
        words.append("against the documented formula of the package, which is not installed")
    if snippet.note:
        words.append(snippet.note)
    return ", ".join(words)
