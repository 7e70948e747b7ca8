"""`transplt card-read`: reads what a card pack sent back, keeps what it says of operators, prints, returns the exit
code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command, to_stderr
from transplt.faces.cli.completing import FILE

if TYPE_CHECKING:
    from transplt.rules.own_card import Outcome


@click.command(cls=Command)
@click.argument("file", type=FILE, metavar="FILE")
@json_format
@EXIT_ZERO
def card_read(file: str, *, as_json: bool, exit_zero: bool) -> int:
    """Read the results that a card pack brought back from a card, and remember what its operators did.

    `transplt prove --card-pack DIR` writes the pack. Results of operators go to operators-on-this-card.json in
    the folder of your settings. Exits with 1 if something differed, failed or was missing on that host.
    """
    from transplt.precision.diagnose.card_report import result_json, result_text
    from transplt.precision.diagnose.card_result import BrokenResult, read_result
    from transplt.rules.own_card import outcomes

    try:
        result = read_result(file, Path(file).name)
    except OSError as error:
        raise UsageError(f"cannot read {shown(file)}: {reason(error)}") from error
    except BrokenResult as error:
        raise UsageError(f"{shown(file)} is not a result of a card pack: {error}") from error
    new = result.outcomes()
    written = _keep([*outcomes()], new) if new else ""
    if as_json:
        click.echo(json.dumps(result_json(result, written, len(new)), indent=1))
    else:
        click.echo(result_text(result), nl=False)
    if written:
        to_stderr(f"{len(new)} outcomes of operators are kept in {shown(written)}")
    elif not as_json:
        to_stderr("nothing new was kept")
    return LEFT if result.left and not exit_zero else DONE


def _keep(known: list[Outcome], new: list[Outcome]) -> str:
    """Write the table; its path. UsageError for a user without a folder for settings."""
    from transplt.base.disk.replace import write_whole
    from transplt.rules.own_card import as_bytes, merged, table_path

    path = table_path()
    if path is None:
        raise UsageError("there is no folder for settings: set XDG_CONFIG_HOME or HOME")
    try:
        os.makedirs(path.parent, exist_ok=True)
        write_whole(path, as_bytes(merged(known, new)))
    except OSError as error:
        raise CannotFinish(f"cannot write {shown(path)}: {reason(error)}") from error
    return str(path)
