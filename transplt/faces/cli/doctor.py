"""`transplt doctor`: looks at the host, prints, returns the exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, EXIT_ZERO, LEFT, Command

if TYPE_CHECKING:
    from transplt.precision.diagnose.host import Host

FORMAT = 1


@click.command(cls=Command)
@click.option(
    "--for", "framework", metavar="PACKAGE", default="",
    help="Only print which releases work together for one package (vllm, torch), and how to install them.",
)
@json_format
@EXIT_ZERO
def doctor(framework: str, as_json: bool, exit_zero: bool) -> int:
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
    if framework:
        return _set_for(framework, host, as_json)
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
        click.echo(f"(checked with {visible(sys.executable)})")
    return LEFT if wrong and not exit_zero else DONE


def _set_for(framework: str, host: Host, as_json: bool) -> int:
    """The releases that go together for a package: those of the torch that is here, else the newest."""
    from transplt.rules.package_releases import freshest, sets_of, stand_ins

    found = [each for package in stand_ins(framework) for each in sets_of(package)]
    if not found:
        raise UsageError(
            f"no table of matching releases for {shown(framework)} (only for vllm and torch); see transplt explain "
            f"{shown(framework)}"
        )
    torch = host.torch.partition("+")[0]
    chosen = next((each for each in found if each.torch == torch), found[0])
    other = chosen.contradicted({"torch": torch, "torch-npu": host.torch_npu, "CANN": host.cann}, host.python)
    missing = chosen.missing(freshest())
    if as_json:
        document = {"format": FORMAT, "set": chosen.described, "commands": chosen.commands, "not_in_index": missing}
        rest = {"otherwise_here": other, "others": [each.described for each in found if each is not chosen]}
        click.echo(json.dumps({**document, **rest}, indent=1))
        return DONE
    click.echo(chosen.described)
    for command in chosen.commands:
        click.echo(f"  {command}")
    click.echo(f"  CANN {chosen.cann} is installed on the host" if chosen.cann else "  CANN: not documented")
    for each in missing:
        click.echo(f"  {each} is not in the index: see the installation page of {chosen.package}")
    for each in other:
        click.echo(f"  {each}")
    click.echo("\nother matching releases:")
    for row in found:
        if row is not chosen:
            click.echo(f"  {row.described}")
    click.echo(f"\n(releases of the index on {freshest().read}; transplt facts update reads them again)")
    return DONE
