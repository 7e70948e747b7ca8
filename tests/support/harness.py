"""The analysis of small sources: `findings` runs the whole way of a file and keeps what the analysis says."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from transplt.base.finding import Finding
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts, migrate_source

ANALYSIS = ("NPU513", "NPU52", "NPU556", "NPU7")


def findings(
    source: str, *, path: str = "train.py", files: Mapping[str, str] | None = None, **more: Any
) -> list[Finding]:
    """Findings of the analysis about one file; `files` are the others of its project. Settings by keyword."""
    settings = Settings(analysis=True, **more)
    every = {name: textwrap.dedent(text).lstrip("\n") for name, text in {**(files or {}), path: source}.items()}
    facts = [index_source(text.encode(), name, settings) for name, text in sorted(every.items())]
    project = join_facts(facts, settings)
    plain = migrate_source(every[path].encode(), path, Settings(torch_version=settings.torch_version))
    result = migrate_source(every[path].encode(), path, settings, project)
    if not files:
        assert result.data == plain.data, "the analysis changes the output"
    return [finding for finding in result.findings if finding.code.startswith(ANALYSIS)]


def said(source: str, code: str = "", **more: Any) -> list[tuple[str, str, int]]:
    """(code, api, line) of the findings whose code begins with `code`."""
    return [(each.code, each.api, each.span.line) for each in findings(source, **more) if each.code.startswith(code)]
