"""Where the processes find each other: one line in front of the first one that works with cards, models or data."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.current_program import Bench
from transplt.syntax.scan import parent


def write_start(bench: Bench) -> None:
    """Put the line into the main file; a place whose line cannot be parted is left to the user."""
    start = bench.start
    if bench.file is not start.file:
        return
    if not bench.fits(start.first):
        bench.left(
            start.first,
            "the process group has to be made here, and this line cannot be split",
            "put each statement on its own line and run transplt again",
        )
        return
    lines = [f"{bench.call('start')}()"]
    if start.guard:
        lines = ['if __name__ == "__main__":', f"    {lines[0]}"]
    if start.function is None and isinstance(parent(start.first), ast.Module):
        above = bench.file.source.line_text(start.first.lineno - 1) if start.first.lineno > 1 else ""
        lines = [*([""] if above.strip() else []), *lines, ""]
    bench.before(
        start.first,
        lines,
        "NPU333",
        "the device of the rank, the process group, and the same random state on all ranks",
    )
