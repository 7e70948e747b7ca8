"""`transplt show`: parses options, finds an operator in a dump, prints it or writes its test, returns the exit code."""

from __future__ import annotations

import json

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, LEFT, Command
from transplt.faces.cli.completing import FILE, FOLDER


@click.command(cls=Command)
@click.argument("dump", type=FOLDER, metavar="DUMP")
@click.argument("name", metavar="NAME")
@click.option(
    "--step", type=click.IntRange(0), metavar="N", help="The step to use (default: the first with the operator)."
)
@click.option(
    "--rank", type=click.IntRange(0), metavar="N", help="The rank to use (default: the first with the operator)."
)
@click.option("--bench", type=FOLDER, metavar="DUMP", help="Compare with the same operator of another dump.")
@click.option(
    "--top", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Number of elements to show."
)
@click.option("--case", type=FILE, metavar="OUT.py", help="Write a test of this operator, for python or pytest.")
@json_format
def show(
    dump: str, name: str, *, step: int | None, rank: int | None, bench: str | None, top: int, case: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Show one operator of a dump (values, stack, elements), compare it with another dump, or write a test for it.

    NAME is a name of the dump, such as Functional.conv2d.0.forward or 67_VF_lstm_backward; without the phase: both.
    DUMP may be a file of weights, and NAME one of them. With --bench, the exit code is 1 if anything differs.
    """
    from transplt.precision.dumps import open_dump
    from transplt.precision.elements import elements
    from transplt.precision.show import operator_text
    from transplt.precision.show.beside import Beside, beside
    from transplt.precision.show.operator import find

    found = find(open_dump(dump), name, step, rank)
    if case is not None:
        return _case(found, case)
    other = find(open_dump(bench), name, step, rank) if bench is not None else None
    lines: list[str] = []
    rows, apart = [], False
    for row in found.rows:
        besides: list[Beside] = []
        if other is not None:
            match = next((each for each in other.rows if (each.api, each.phase, each.index) ==
                          (row.api, row.phase, row.index)), None)  # fmt: skip
            if match is None:
                raise UsageError(f"{shown(other.dump.path)} has no operator {shown(row.name)}; transplt compare aligns")
            besides = list(beside((found.record, row), (other.record, match), top))
            apart |= any(not each.how.startswith("the same") for each in besides)
        rows.append(operator_text.row_json(found, row, besides))
        if not as_json:
            lines += ["", f"{row.name}, step {found.step}, rank {found.rank}", ""]
            arrays = {} if other is not None else {
                tensor.name: array for tensor in row.tensors if (array := elements(found.record, tensor)) is not None
            }  # fmt: skip
            lines += operator_text.row_text(found, row, arrays, top)
            lines += [""] * bool(besides) + [line for each in besides for line in operator_text.beside_text(each)]
    if as_json:
        click.echo(json.dumps({"format": operator_text.FORMAT, "operators": rows, "more": found.more}, indent=1))
    else:
        more = [f"\nand {found.more} more operators of that name"] if found.more else []
        click.echo("\n".join([*lines[1:], *more]))
    return LEFT if apart else DONE


def _case(found: object, path: str) -> int:
    from transplt.precision.show.case import case_text
    from transplt.precision.show.operator import Found

    assert isinstance(found, Found)
    row = found.rows[0]
    if len({(each.api, each.index) for each in found.rows}) > 1:
        names = ", ".join(shown(each.name) for each in found.rows[:5])
        raise UsageError(f"a test is for one operator, and the name matches {names}")
    text = case_text(found, row)
    from transplt.base.disk.replace import write_asked_for

    write_asked_for(path, text.encode("utf-8"))
    click.echo(f"{shown(path)} written: python {shown(path)} (or python -m pytest, where that is installed)")
    return DONE
