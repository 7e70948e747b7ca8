"""`transplt explain`: what a code means."""

from __future__ import annotations

import os
import sys

import click

from transplt.commands.command import DONE, Command
from transplt.commands.completing import CodeText
from transplt.errors import UsageError
from transplt.rules.pages import DiagnosticError, load


@click.command(cls=Command)
@click.argument("code", type=CodeText())
def explain(code: str) -> int:
    """Print the page of a code such as NPU201."""
    try:
        page = load(code).text()
    except DiagnosticError as error:
        raise UsageError(str(error)) from error
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(page))
    else:
        click.echo(page.rstrip("\n"))
    return DONE
