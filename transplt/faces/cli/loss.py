"""`transplt loss`: parses options, reads two logs, prints, returns the exit code."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import click

from transplt.base.errors import UsageError
from transplt.base.render.options import argument, option, shared, taking
from transplt.base.render.spelling import formerly, json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command
from transplt.faces.cli.completing import FILE

_MORE_THAN_ZERO = click.FloatRange(0)


@dataclass(frozen=True)
class Loss:
    """Which logs are compared, and how."""

    a: str = argument(type=FILE, metavar="A")
    b: str = argument(type=FILE, metavar="B")
    name: str | None = option("The value to read, as named in the log: val_loss, accuracy.", metavar="NAME")
    pattern: str | None = option(
        "Read values with this regex: group `value`, or the first; and `step`.", metavar="REGEX"
    )
    absolute: float | None = option("Accept this mean difference (1e-4).", "--abs", type=_MORE_THAN_ZERO, metavar="X")
    share: float | None = option("Or accept this share of the loss of B (0.01).", type=_MORE_THAN_ZERO, metavar="X")
    total: int | None = option("Total epochs (or steps) of the training.", type=click.IntRange(1), metavar="N")
    as_json: bool = shared(json_format)
    html: str | None = option("Also write an HTML page with both curves.", "--report", type=FILE, metavar="FILE.html")
    exit_zero: bool = shared(EXIT_ZERO)


@click.command(cls=Command)
@formerly("--html", "--report", "html", type=FILE)
@taking(Loss)
def loss(given: Loss) -> int:
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

    words, expression = Words(given.name), _compiled(given.pattern)
    logs = [read_log(path, words, expression) for path in (given.a, given.b)]
    found = paired(*logs)
    absolute = ABSOLUTE if given.absolute is None else given.absolute
    limits = Limits(absolute, SHARE if given.share is None else given.share)
    epochs = given.total or max(log.total_epochs for log in logs)
    steps = given.total or max(log.total_steps for log in logs)
    answer = Answer((given.a, given.b), found, judged(found, limits), first_fifth(found, limits, epochs, steps))
    if given.html is not None:
        from transplt.base.disk.replace import write_asked_for
        from transplt.precision.loss.page import loss_page

        write_asked_for(given.html, loss_page(answer), (given.a, given.b))
    if given.as_json:
        click.echo(json.dumps(loss_json(answer), indent=1))
    else:
        click.echo(loss_text(answer), nl=False)
    return DONE if answer.judged.same or given.exit_zero else LEFT


def _compiled(pattern: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern) if pattern is not None else None
    except re.error as error:
        raise UsageError(f"--pattern {pattern!r} is not a regular expression: {error}") from error
