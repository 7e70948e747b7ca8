"""The tunings that were asked for, on one file, after everything else was planned."""

from __future__ import annotations

import importlib

from transplt.edits.work import Work
from transplt.edits.writing import Writer
from transplt.finding import Level
from transplt.themes.tunings.table import TUNINGS


def plan(work: Work) -> None:
    """Let each tuning look at the file, but those that the settings switch off for it."""
    if b"torch" not in work.source.utf8 and b"flash_attn" not in work.source.utf8:
        return
    off = work.settings.ignored_codes(work.scan.path)
    for name, value in work.settings.tune:
        tuning = TUNINGS[name]
        if not tuning.code.startswith(off or ("-",)):
            writer = Writer(work, tuning.code, f"an import for the tuning {name}", Level.UNSAFE, asked=True)
            importlib.import_module(tuning.module).plan(writer, value)
