"""The page of every code: `rules/diagnostics/NPU101.md`, whose first line is `# NPU101: title`."""

from __future__ import annotations

import difflib
from functools import cache

from transplt.errors import UsageError
from transplt.resources import rules_dir


def codes() -> list[str]:
    """All codes that have a page, sorted."""
    return sorted(path.stem for path in (rules_dir() / "diagnostics").glob("NPU*.md"))


def page(code: str) -> str:
    """The page of a code, in Markdown. UsageError for a code that does not exist."""
    name = code.strip().upper()
    known = codes()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3)
        raise UsageError(f"there is no code {code!r}" + (f"; did you mean {', '.join(close)}?" if close else ""))
    return (rules_dir() / "diagnostics" / f"{name}.md").read_text("utf-8")


@cache
def title(code: str) -> str:
    """The title of a code, empty when it has no page."""
    try:
        with open(rules_dir() / "diagnostics" / f"{code}.md", encoding="utf-8") as file:
            line = file.readline()
    except OSError:
        return ""
    return line.lstrip("# ").removeprefix(code).lstrip(": -\u2014").strip()
