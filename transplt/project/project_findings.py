"""Findings about a project as a whole, which no file gives alone: the same for a migration, a check and a survey."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from transplt.base.finding import Finding, Level, Span
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.regular_file import SOURCE, read_regular

_IMPORT = re.compile(rb"^import torch_npu\b", re.M)


def of_the_whole(
    first: Finding | None,
    asks: bool,
    kinds: Mapping[str, str],
    root: Path,
    target: TorchTarget,
    settings: Settings,
) -> dict[str, list[Finding]]:
    """By path: what a project imports and does not ask for, and where its files disagree.

    `first` is the first import of torch_npu that goes in; without one the first that is there counts. `asks`: a file
    asks for torch-npu, or will, or has a finding that it does not. `kinds` are the files of the tree `root`; empty
    where only a part of it is looked at. What the settings switch off is left out.
    """
    found = [*target.disagreements]
    if not asks and kinds:
        from transplt.project.torch_npu_requirements import (
            unasked,  # what is remembered needs no reader of requirements
        )

        missing = unasked(lambda: first or _there(kinds, root), dict(sorted(kinds.items())), root, target)
        found += [missing] if missing is not None else []
    held: dict[str, list[Finding]] = {}
    for finding in found:
        if not finding.code.startswith(settings.ignored_codes(finding.path) or ("-",)):
            held.setdefault(finding.path, []).append(finding)
    return held


def _there(kinds: Mapping[str, str], root: Path) -> Finding | None:
    """The first import of torch_npu that a file makes as it is loaded."""
    for path in sorted(path for path, kind in kinds.items() if kind == "python"):
        try:
            data = read_regular(root / path, SOURCE)
        except OSError:
            continue
        if (match := _IMPORT.search(data)) is not None:
            line = data.count(b"\n", 0, match.start()) + 1
            span = Span(line, 1, line, match.end() - match.start() + 1, match.start(), match.end())
            return Finding(path, span, "", Level.INFO, "")
    return None
