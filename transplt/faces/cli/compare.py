"""`transplt compare`: parses options, compares two dumps, prints and writes, returns the exit code."""

from __future__ import annotations

from pathlib import Path

import click

from transplt.base.errors import UsageError, shown
from transplt.faces.cli.command import DONE, LEFT, Command
from transplt.faces.cli.completing import FILE, FOLDER


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("npu", type=FOLDER, metavar="NPU")
@click.argument("bench", type=FOLDER, metavar="BENCH")
@click.option("-o", "--output", type=FOLDER, metavar="OUT", help="Write tables and pages to this folder.")
@click.option(
    "--format", "formats", default="csv,html,json", metavar="LIST", help="Formats to write: csv, xlsx, html, json."
)
@click.option(
    "--tol",
    type=click.FloatRange(min=0),
    metavar="T",
    help="Allowed relative difference (default: depends on the dtype).",
)
@click.option("--rule", type=click.Choice(["auto", "ptdbg"]), default="auto", help="The rules of the verdict.")
@click.option("--op", metavar="NAME", help="Compare one operator element by element.")
@click.option("--tensor", metavar="NAME", default="", help="With --op: one of its tensors, such as input.0.")
@click.option("--top", type=click.IntRange(1, 10_000), default=20, help="Number of elements to show, worst first.")
@click.option("--ranks", type=click.Choice(["first", "all"]), default="first", help="The ranks to write tables of.")
@click.option("--graph", type=FILE, metavar="FILE", help="Draw this ONNX or construct.json graph into the page.")
@click.option("--config", is_flag=True, help="Compare the setup of both trainings, before the first step.")
@click.option("--no-advice", is_flag=True, help="Omit the advice on the whole network.")
def compare(
    npu: str,
    bench: str,
    *,
    output: str | None,
    formats: str,
    tol: float | None,
    rule: str,
    op: str | None,
    tensor: str,
    top: int,
    ranks: str,
    graph: str | None,
    config: bool,
    no_advice: bool,
) -> int:
    """Find the first operator that differs between two dumps of a training: NPU, and BENCH (a GPU or CPU).

    Reads dumps of msprobe and ptdbg and folders of .npy files. The first line names the operator, where the source
    calls it, and how it differs. Exit codes: 0 they are the same, 1 they differ, or something after the last backward
    pass has no counterpart or other inputs, 2 they cannot be compared.
    With --config both are folders of a probe copy (or of transplt run --dump), and their versions, environment,
    hyperparameters, order of data and first weights are compared.
    """
    if config:
        return _set_up(npu, bench)
    from transplt.precision.compare import compare as compared
    from transplt.precision.comparison_text import by_ptdbg, known_at, one_operator, ranks_text
    from transplt.precision.detail import Detail
    from transplt.precision.dumps import open_dump
    from transplt.precision.output import FORMATS, check_target, write
    from transplt.precision.sentence import sentence

    if graph is not None and output is None:
        raise UsageError("--graph needs -o")
    if tensor and op is None:
        raise UsageError("--tensor needs --op")
    wanted = [name.strip() for name in formats.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in FORMATS]:
        raise UsageError(f"--format: {shown(unknown[0])} is none of {', '.join(FORMATS)}")
    if output is not None:
        check_target(Path(output))
    found = compared(open_dump(npu), open_dump(bench), tol)
    at = found.first or found.compared[0]
    detail = Detail(found, at)
    if op is not None:
        click.echo(one_operator(detail, op, top, tensor), nl=False)
        return DONE if found.same else LEFT
    if rule == "ptdbg":
        click.echo(by_ptdbg(detail, verdict=True))
        click.echo(sentence(found))
    else:
        click.echo(sentence(found))
        click.echo(by_ptdbg(detail, verdict=False))
    if text := ranks_text(found):
        click.echo(text, nl=False)
    for line in known_at(detail):
        click.echo(line)
    if not no_advice:
        click.echo(f"\n{detail.advice}", nl=False)
    if output is not None:
        others = [each for each in found.compared if each.step == at.step] if ranks == "all" else [at]
        details = [detail if each is at else Detail(found, each) for each in others]
        details.sort(key=lambda each: each is not detail)
        write(Path(output), found, details, wanted, rule, advice=not no_advice, graph=graph or "")
        click.echo(f"\nwritten: {shown(output)}")
    if rule == "ptdbg":
        verdict = found.first.verdict if found.first is not None else None
        return LEFT if detail.ptdbg is not None or (verdict is not None and verdict.behind) else DONE
    return DONE if found.same else LEFT


def _set_up(a: str, b: str) -> int:
    from transplt.precision.configuration import configuration_text, others, read_configurations

    found = others(read_configurations(a), read_configurations(b))
    click.echo(configuration_text(found, a, b), nl=False)
    return LEFT if any(each.counts for each in found) else DONE
