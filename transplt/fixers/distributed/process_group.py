"""Where the processes find each other: the device of the rank, the process group, and its end."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.bench import Bench
from transplt.fixers.distributed.seeds import shared_seed
from transplt.syntax.scan import parent


def write_start(bench: Bench) -> None:
    """Put the lines into the main file; a place whose line cannot be parted is left to the user."""
    start = bench.start
    if bench.file is not start.file:
        return
    ends = [start.last] if start.last is not None else []
    if not bench.fits(start.first, *ends):
        bench.left(
            start.first,
            "the process group has to be made here, and this line cannot be parted",
            "write the statements on lines of their own and run transplt again",
        )
        return
    torch, dist, os_ = bench.torch, bench.dist, bench.standard("os")
    lines = [
        f'{torch}.npu.set_device(int({os_}.environ["LOCAL_RANK"]))',
        f'{dist}.init_process_group(backend="hccl")',
    ]
    lines += shared_seed(bench)
    ending = f"{dist}.destroy_process_group()"
    if start.last is None:
        lines.append(f"{bench.standard('atexit')}.register({dist}.destroy_process_group)")
    if start.guard:
        lines = ['if __name__ == "__main__":', *(f"    {line}" for line in lines)]
    bare = start.function is None and isinstance(parent(start.first), ast.Module)
    if bare:
        above = bench.file.source.line_text(start.first.lineno - 1) if start.first.lineno > 1 else ""
        lines = [*([""] if above.strip() else []), *lines, ""]
    bench.before(start.first, lines, "NPU333", "the device of the rank, and the process group")
    if start.last is not None:
        place = bench.before if start.last_exits else bench.after
        place(
            start.last,
            ["", ending] if bare and not start.last_exits else [ending],
            "NPU333",
            "the end of the process group",
        )
