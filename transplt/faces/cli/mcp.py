"""`transplt mcp`: parses options, and serves."""

from __future__ import annotations

import os
from pathlib import Path

import click

from transplt.base.errors import UsageError, reason, shown
from transplt.base.extras import install_command
from transplt.faces.cli.command import DONE, Command
from transplt.faces.cli.completing import FOLDER

#: The token that a client of --http has to send.
_TOKEN = "TRANSPLT_MCP_TOKEN"


@click.command(cls=Command)
@click.argument("root", type=FOLDER, metavar="DIR")
@click.option(
    "-o", "--output", type=FOLDER, metavar="DIR", help="Write migrated copies to this folder; created if missing."
)
@click.option("--allow-run", is_flag=True, help="Also offer `run`, `prove` and judge's `prove`, which start programs.")
@click.option(
    "--http", "port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve http://127.0.0.1:PORT/mcp instead of "
    "standard input and output."
)  # fmt: skip
def mcp(root: str, output: str | None, allow_run: bool, port: int | None) -> int:
    """Serve agents over the Model Context Protocol: survey, plan, migrate, check and judge projects in DIR.

    No path outside DIR and --output can be named for reading or writing, and no program in DIR is started without
    --allow-run. Needs the extra `mcp`.
    """
    try:
        import anyio

        from transplt.faces.mcp.server import serve, serve_http
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
    bench, token = Bench(Folders(*real)), os.environ.get(_TOKEN, "")
    if port is None:
        anyio.run(lambda: serve(bench, allow_run=allow_run))
    elif allow_run and not token:
        raise UsageError(f"anyone who reaches the port could start programs: set {_TOKEN}, the bearer token of clients")
    else:
        anyio.run(lambda: serve_http(bench, port, token, allow_run=allow_run))
    return DONE
