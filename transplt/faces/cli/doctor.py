"""`transplt doctor`: looks at the host, prints, returns the exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command

FORMAT = 1


@click.command(cls=Command)
@json_format
@EXIT_ZERO
def doctor(as_json: bool, exit_zero: bool) -> int:
    """Check whether this host can train on NPUs: what is installed, and whether the versions match.

    Checks Python, torch, torch_npu, CANN, driver, cards, libraries, processes on the cards and the environment, and
    changes nothing. It checks the Python that runs transplt: install transplt into the environment of the training.
    Exits with 1 if something is missing or does not match.
    """
    from transplt.base.render.cell import many, visible
    from transplt.precision.diagnose.advice import State, checks_of
    from transplt.precision.diagnose.host import examine
    from transplt.precision.diagnose.npu_smi import npu_smi

    host = examine(Path("/"), os.environ, smi=npu_smi)
    checks = checks_of(host)
    wrong = [check for check in checks if check.state in (State.WRONG, State.MISSING)]
    if as_json:
        rows = [
            {"what": check.what, "state": check.state.value, "text": visible(check.text), "do": visible(check.do)}
            for check in checks
        ]
        versions = {
            name: getattr(host, name) for name in ("python", "torch", "torch_npu", "cann", "driver", "firmware")
        }
        document = {"format": FORMAT, "executable": visible(sys.executable), "versions": versions, "cards": host.cards}
        click.echo(json.dumps({**document, "checks": rows}, indent=1))
    else:
        if not (host.torch_npu or host.cann or host.driver or host.cards):
            click.echo("No torch_npu, CANN, driver or card: this is not an NPU host (yet).\n")
        for check in checks:
            click.echo(f"{check.state.value:<8}{check.what:<24}{visible(check.text)}".rstrip())
            if check.do and check.state is not State.FINE:
                click.echo(f"{'':<32}-> {visible(check.do)}")
        click.echo(f"\n{many(len(wrong), 'thing')} to fix" if wrong else "\nnothing to fix")
        click.echo(f"(looked at with {visible(sys.executable)})")
    return LEFT if wrong and not exit_zero else DONE
