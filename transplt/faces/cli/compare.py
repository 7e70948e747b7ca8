"""`transplt compare`: parses options, compares two dumps, prints and writes, returns the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.options import argument, flag, option, taking
from transplt.faces.cli.command import DONE, LEFT, Command
from transplt.faces.cli.completing import FILE, FOLDER


@dataclass(frozen=True)
class Compare:
    """What is compared, and what is written of it."""

    npu: str = argument(type=FOLDER, metavar="NPU")
    bench: str = argument(type=FOLDER, metavar="BENCH")
    output: str | None = option("Write tables and pages to this folder.", "-o", "--output", type=FOLDER, metavar="OUT")
    formats: str = option(
        "Formats to write: csv, xlsx, html, json.", "--format", default="csv,html,json", metavar="LIST"
    )
    tol: float | None = option(
        "Allowed relative difference (default: depends on the dtype).", type=click.FloatRange(min=0), metavar="T"
    )
    rule: str = option("The rules of the verdict.", type=click.Choice(["auto", "ptdbg"]), default="auto")
    op: str | None = option("Compare one operator element by element.", metavar="NAME")
    tensor: str = option("With --op: one of its tensors, such as input.0.", metavar="NAME", default="")
    top: int = option("Number of elements to show, worst first.", type=click.IntRange(1, 10_000), default=20)
    ranks: str = option("The ranks to write tables of.", type=click.Choice(["first", "all"]), default="first")
    graph: str | None = option("Draw this ONNX or construct.json graph into the page.", type=FILE, metavar="FILE")
    logprobs: bool = flag("Compare the log-probabilities of tokens of a trainer (NPU) and a rollout (BENCH).")
    config: bool = flag("Compare the setup of both trainings, before the first step.")
    no_advice: bool = flag("Omit the advice on the whole network.")


@click.command(cls=Command)
@taking(Compare)
def compare(given: Compare) -> int:
    """Find the first operator that differs between two dumps of a training: NPU, and BENCH (a GPU or CPU).

    Reads dumps of msprobe and ptdbg and folders of .npy files. The first line names the operator, where the source
    calls it, and how it differs. Exit codes: 0 they are the same, 1 they differ, or something after the last backward
    pass has no counterpart or other inputs, 2 they cannot be compared.
    With --config both are folders of a probe copy (or of transplt run --dump), and their versions, environment,
    hyperparameters, order of data and first weights are compared.
    With --logprobs both are JSON lines of verl, OpenRLHF, trl, vLLM or sglang, or one file that holds both.
    """
    if given.logprobs:
        return _engines(given.npu, given.bench)
    if given.config:
        return _set_up(given.npu, given.bench)
    from transplt.precision.compare import compare as compared
    from transplt.precision.comparison_text import by_ptdbg, known_at, one_operator, ranks_text
    from transplt.precision.dumps import open_dump
    from transplt.precision.first_line import sentence
    from transplt.precision.output import FORMATS, check_target, write
    from transplt.precision.rank_detail import Detail

    if given.graph is not None and given.output is None:
        raise UsageError("--graph needs -o")
    if given.tensor and given.op is None:
        raise UsageError("--tensor needs --op")
    wanted = [name.strip() for name in given.formats.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in FORMATS]:
        raise UsageError(f"--format: {shown(unknown[0])} is none of {', '.join(FORMATS)}")
    if given.output is not None:
        check_target(Path(given.output))
    found = compared(open_dump(given.npu), open_dump(given.bench), given.tol)
    at = found.first or found.compared[0]
    detail = Detail(found, at)
    if given.op is not None:
        click.echo(one_operator(detail, given.op, given.top, given.tensor), nl=False)
        return DONE if found.same else LEFT
    if given.rule == "ptdbg":
        click.echo(by_ptdbg(detail, verdict=True))
        click.echo(sentence(found))
    else:
        click.echo(sentence(found))
        click.echo(by_ptdbg(detail, verdict=False))
    if text := ranks_text(found):
        click.echo(text, nl=False)
    for line in known_at(detail):
        click.echo(line)
    if not given.no_advice:
        click.echo(f"\n{detail.advice}", nl=False)
    if given.output is not None:
        others = [each for each in found.compared if each.step == at.step] if given.ranks == "all" else [at]
        details = [detail if each is at else Detail(found, each) for each in others]
        details.sort(key=lambda each: each is not detail)
        advice, graph = not given.no_advice, given.graph or ""
        write(Path(given.output), found, details, wanted, given.rule, advice=advice, graph=graph)
        click.echo(f"\nwritten: {shown(given.output)}")
    if given.rule == "ptdbg":
        verdict = found.first.verdict if found.first is not None else None
        return LEFT if detail.ptdbg is not None or (verdict is not None and verdict.behind) else DONE
    return DONE if found.same else LEFT


def _set_up(a: str, b: str) -> int:
    from transplt.precision.configuration import configuration_text, others, read_configurations

    found = others(read_configurations(a), read_configurations(b))
    click.echo(configuration_text(found, a, b), nl=False)
    return LEFT if any(each.counts for each in found) else DONE


def _engines(trainer: str, rollout: str) -> int:
    from transplt.precision.engines import Engines, engines_text
    from transplt.precision.token_logprobs import ROLLOUT, TRAINER, read_logprobs

    found = Engines(read_logprobs(trainer, TRAINER), read_logprobs(rollout, ROLLOUT))
    click.echo(engines_text(found), nl=False)
    return DONE if found.verdict == "same" else LEFT
