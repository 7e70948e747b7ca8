"""`transplt lsp`: parses options, and serves."""

from __future__ import annotations

from typing import Any

import click

from transplt.base.errors import UsageError
from transplt.base.extras import install_command
from transplt.faces.cli.command import DONE, FIXERS, ISOLATED, RULES, STYLE, TORCH_VERSION, Command


@click.command(cls=Command)
@RULES
@FIXERS
@TORCH_VERSION
@STYLE
@ISOLATED
def lsp(**given: Any) -> int:
    """Serve an editor over LSP (stdio): findings while you type, edits as quick fixes, pages on hover.

    The editor starts it: see docs/editors.md. Needs the extra `lsp`.
    """
    try:
        from transplt.faces.lsp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise UsageError(f"transplt lsp needs the extra `lsp`: {install_command('lsp')}") from error
    from transplt.project.options import Options

    serve(Options(**given))
    return DONE
