"""`transplt anomalies`: parses options, looks through dumps, prints, returns the exit code."""

from __future__ import annotations

import json

import click

from transplt.base.errors import UsageError
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command
from transplt.faces.cli.completing import FOLDER


@click.command(cls=Command)
@click.argument("dumps", nargs=-1, type=FOLDER, metavar="DUMP...")
@click.option(
    "--checks", default="recommended", show_default=True, metavar="NAME,...", help="Run these checks, or all."
)
@click.option("--bound", "bounds", multiple=True, metavar="NAME=VALUE", help="Change the bound of a check.")
@click.option(
    "--range", "between", metavar="LOW,HIGH", help="Set the range of tensor-range (default: that of float16)."
)
@click.option("--list", "listed", is_flag=True, help="List the checks and their bounds.")
@json_format
@EXIT_ZERO
def anomalies(
    dumps: tuple[str, ...], *, checks: str, bounds: tuple[str, ...], between: str | None, listed: bool, as_json: bool,
    exit_zero: bool,
) -> int:  # fmt: skip
    """Check the steps of a training for problems: zeros, overflows, unchanged weights, labels.

    DUMP is a dump of statistics of several steps, with all ranks; no second dump is needed. Sixteen checks are those of
    the model tuning guide, three look at data and labels. Exit codes: 1 a check found something, 2 a DUMP cannot be
    read.
    """
    from transplt.precision.dumps import open_dump
    from transplt.precision.watch import points, watched_text
    from transplt.precision.watch.watching import watch as looked_at

    if listed:
        click.echo(watched_text.list_text(), nl=False)
        return DONE
    wanted, limits, ends = points.chosen(checks), points.bounds(bounds), _range(between)
    if not dumps:
        raise UsageError("give a DUMP, the folder that msprobe or ptdbg wrote")
    watched = looked_at([open_dump(path) for path in dumps], wanted, limits, ends)
    if as_json:
        click.echo(json.dumps(watched_text.watch_json(watched), indent=1))
    else:
        click.echo(watched_text.watch_text(watched, len(dumps)), nl=False)
    return LEFT if watched.hits and not exit_zero else DONE


def _range(text: str | None) -> tuple[float, float]:
    from transplt.precision.distance import FLOAT16_MAX

    if text is None:
        return -FLOAT16_MAX, FLOAT16_MAX
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--range {text!r}: two numbers, LOW,HIGH") from None
    if not low <= high:
        raise UsageError(f"--range {text!r}: LOW is above HIGH")
    return low, high
