"""`transplt loss`: parses options, reads two logs, prints, returns the exit code."""

from __future__ import annotations

import json
import re

import click

from transplt.base.errors import UsageError
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command
from transplt.faces.cli.completing import FILE
from transplt.render.spelling import formerly, json_format

_MORE_THAN_ZERO = click.FloatRange(0)


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("a", type=FILE, metavar="A")
@click.argument("b", type=FILE, metavar="B")
@click.option("--name", metavar="NAME", help="The value to read, as named in the log: val_loss, accuracy.")
@click.option(
    "--pattern", metavar="REGEX", help="Read values with this regex: group `value`, or the first; and `step`."
)
@click.option("--abs", "absolute", type=_MORE_THAN_ZERO, metavar="X", help="Accept this mean difference (1e-4).")
@click.option("--share", type=_MORE_THAN_ZERO, metavar="X", help="Or accept this share of the loss of B (0.01).")
@click.option("--total", type=click.IntRange(1), metavar="N", help="Total epochs (or steps) of the training.")
@json_format
@click.option("--report", "html", type=FILE, metavar="FILE.html", help="Also write an HTML page with both curves.")
@formerly("--html", "--report", "html", type=FILE)
@EXIT_ZERO
def loss(
    a: str, b: str, *, name: str | None, pattern: str | None, absolute: float | None, share: float | None,
    total: int | None, as_json: bool, html: str | None, exit_zero: bool,
) -> int:  # fmt: skip
    """Compare the loss curves of two logs: A from the NPU, B from the GPU.

    A and B are text logs (any format that names its values), JSON lines, trainer_state.json, TensorBoard's event
    files or a folder of them. Shows whether they agree, where they first differ, whether the difference grows,
    and how close they are in the first fifth. Exit codes: 0 they agree, 1 they differ, 2 nothing can be compared.
    """
    from transplt.precision.loss.answer_text import Answer, loss_json, loss_text
    from transplt.precision.loss.line import Words
    from transplt.precision.loss.log import read_log
    from transplt.precision.loss.pairing import paired
    from transplt.precision.loss.verdict import ABSOLUTE, SHARE, Limits, first_fifth, judged

    words, expression = Words(name), _compiled(pattern)
    logs = [read_log(path, words, expression) for path in (a, b)]
    found = paired(*logs)
    limits = Limits(ABSOLUTE if absolute is None else absolute, SHARE if share is None else share)
    epochs = total or max(log.total_epochs for log in logs)
    steps = total or max(log.total_steps for log in logs)
    answer = Answer((a, b), found, judged(found, limits), first_fifth(found, limits, epochs, steps))
    if html is not None:
        from transplt.disk.replace import write_asked_for
        from transplt.precision.loss.page import loss_page

        write_asked_for(html, loss_page(answer), (a, b))
    if as_json:
        click.echo(json.dumps(loss_json(answer), indent=1))
    else:
        click.echo(loss_text(answer), nl=False)
    return DONE if answer.judged.same or exit_zero else LEFT


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise UsageError(f"--pattern {pattern!r} is no regular expression: {error}") from error
