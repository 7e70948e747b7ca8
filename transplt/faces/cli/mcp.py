"""`transplt mcp`: parses options, and serves."""

from __future__ import annotations

import os
from pathlib import Path

import click

from transplt.base.errors import UsageError, reason, shown
from transplt.base.extras import install_command
from transplt.faces.cli.command import DONE, Command
from transplt.faces.cli.completing import FOLDER


@click.command(cls=Command)
@click.argument("root", type=FOLDER, metavar="DIR")
@click.option(
    "-o", "--output", type=FOLDER, metavar="DIR", help="Write migrated copies to this folder; created if missing."
)
@click.option("--allow-run", is_flag=True, help="Also offer `run` and `prove`, which start programs in DIR.")
def mcp(root: str, output: str | None, allow_run: bool) -> int:
    """Serve agents over the Model Context Protocol: survey, check, explain, migrate and diagnose projects in DIR.

    No path outside DIR and --output can be named for reading or writing, and no program in DIR is started without
    --allow-run. Needs the extra `mcp`.
    """
    try:
        import anyio

        from transplt.faces.mcp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("anyio", "mcp", "mcp_types"):
            raise
        raise UsageError(f"transplt mcp needs the extra `mcp`: {install_command('mcp')}") from error
    from transplt.faces.mcp.bench import Bench
    from transplt.faces.mcp.folders import Folders

    if not os.path.isdir(root):
        raise UsageError(f"{shown(root)} is not a folder")
    if output is not None:
        try:
            os.makedirs(output, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {shown(output)}: {reason(error)}") from error
    real = [Path(os.path.realpath(folder)) for folder in (root, output) if folder is not None]
    anyio.run(lambda: serve(Bench(Folders(*real)), allow_run=allow_run))
    return DONE
