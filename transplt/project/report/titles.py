"""The title of a code, for reports."""

from __future__ import annotations

from transplt.rules.pages import DiagnosticError, load


def title(code: str) -> str:
    """What the page of `code` is called, empty when it has none."""
    try:
        return load(code).title
    except DiagnosticError:
        return ""
