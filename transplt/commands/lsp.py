"""`transplt lsp`: parses options, and serves."""

from __future__ import annotations

import click

from transplt.commands.command import DONE, ISOLATED, RULES, Command
from transplt.errors import UsageError


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@RULES
@click.option("--torch-version", metavar="X.Y", help="The torch to migrate to (what the project pins).")
@click.option("--style", type=click.Choice(("npu", "portable")), help="For NPUs alone, or for CUDA too.")
@ISOLATED
def lsp(rules: tuple[str, ...], torch_version: str | None, style: str | None, isolated: bool) -> int:
    """Serve an editor: findings while you type, edits as quick fixes, pages on hover; on stdio.

    The editor starts it: docs/editors.md says how. Needs pip install 'transplt[lsp]'.
    """
    try:
        from transplt.editor.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise UsageError("transplt lsp needs the extra `lsp`: pip install 'transplt[lsp]'") from error
    from transplt.run.options import Options

    serve(Options(rules=rules, torch_version=torch_version, style=style, isolated=isolated))
    return DONE
