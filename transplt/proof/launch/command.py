"""`transplt run`: the command. Imports nothing heavy; torch only ever runs in the script's own processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from pathlib import Path

import click
from click.core import ParameterSource

from transplt.base.errors import shown
from transplt.base.settings import DEFAULT_TORCH_VERSION
from transplt.disk.replace import write_asked_for
from transplt.proof.launch.dumping import asked_for, folder_summary, with_dump_options
from transplt.proof.launch.options import LIMITS, RunOptions, UsageError
from transplt.proof.launch.shared_options import (
    NPUS,
    PYTHON,
    SECONDS,
    STUBS,
    TORCH_VERSION,
    CardName,
    ScriptCommand,
    card_option,
    spelled_options,
)
from transplt.proof.launch.warm import Warm
from transplt.render.verdict import Word
from transplt.rules.card_limits import card_named

_HELP = """Run a migrated SCRIPT with ARGS on an NPU that is emulated on the CPU of this machine.

SCRIPT is a Python file, or a launch script that ends in .sh. Everything it starts (torchrun ranks, spawned and loader
processes) sees `import torch_npu`, torch.npu, "npu:N" devices and the hccl backend. The report begins with a
verdict (at best `runs`, without --reference):

\b
{words}

\b
What a run does not promise:
{limits}

\b
Exit codes: 0 equal or runs, 1 any other verdict, 2 wrong usage or PyTorch missing, 3 internal error."""

_WORDS = "\n".join(f"  {word:8} {word.meaning}" for word in Word)


@click.command(
    "run",
    help=_HELP.format(words=_WORDS, limits="\n".join(f"  - {limit}" for limit in LIMITS)),
    cls=ScriptCommand,
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)
@click.option("-m", "--module", is_flag=True, help="SCRIPT is the name of a module, as with python -m.")
@TORCH_VERSION
@card_option(
    CardName(card_named), "The card to emulate: its memory, and the dtypes that its operators and HCCL support."
)
@NPUS
@click.option("--nproc", type=click.IntRange(0, 64), default=0, metavar="N", help="Start N processes with torchrun.")
@click.option(
    "--cuda",
    type=click.Choice(["error", "record", "off"]),
    default="error",
    show_default=True,
    help="What a leftover use of CUDA does: stop the script, be listed and run on the npu, or be ignored.",
)
@click.option(
    "--cpu-fallback",
    type=click.Choice(["warn", "error", "ignore"]),
    default="warn",
    show_default=True,
    help="What an operator without an NPU kernel does: be a finding, stop the script, or only be listed.",
)
@click.option(
    "--random",
    type=click.Choice(["npu", "cpu"]),
    default="npu",
    show_default=True,
    help="Use random generators of the npu, or those of the CPU (then results can equal a CPU run to the bit).",
)
@STUBS
@with_dump_options
@click.option("--shapes", is_flag=True, help="List operators whose input shapes change between steps.")
@click.option(
    "--reference",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also run the unmigrated FILE twice on the same device, and compare printed numbers and saved checkpoints.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.json",
    help="Write the full report, and add it to report.html of the migrated folder.",
)
@click.option("--timeout", type=SECONDS, metavar="SECONDS", help="Stop the script after this time.")
@PYTHON
@click.option("--exit-zero", is_flag=True, help="Exit with 0 instead of 1.")
@click.argument("script", type=click.Path())
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run_command(
    context: click.Context,
    module: bool,
    torch_version: str | None,
    card: str,
    npus: int,
    nproc: int,
    cuda: str,
    cpu_fallback: str,
    random: str,
    stubs: tuple[str, ...],
    host: str,
    dump_folder: Path | None,
    dump_task: str,
    dump_level: str,
    dump_format: str,
    dump_steps: str,
    seed: int,
    faults: tuple[str, ...],
    shapes: bool,
    reference: Path | None,
    report: Path | None,
    timeout: float | None,
    python: str,
    exit_zero: bool,
    script: str,
    args: tuple[str, ...],
) -> int:
    try:
        dump = asked_for(dump_folder, dump_task, dump_level, dump_format, dump_steps, seed, faults)
        if dump is not None and context.get_parameter_source("random") is ParameterSource.DEFAULT:
            random = "cpu"  # or the two hosts would draw other numbers
        if args[:1] == ("--",):  # as `transplt prove` has it
            args = args[1:]
        options = RunOptions(
            script, args, python, module, torch_version or "", npus, nproc, cuda, cpu_fallback, random, stubs, shapes,
            reference, timeout, card=card, host=host, dump=dump,
        )  # fmt: skip
        code = run(options, report, context.find_object(Warm), spelled_options(context.command))
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        return 2
    return 0 if exit_zero and code == 1 else code


def run(
    options: RunOptions, report_path: Path | None, warm: Warm | None = None, own: Collection[str] = ()
) -> int:
    """Run, report, and return the exit code; `warm` forks the processes, `own` are the command's options. UsageError
    when the run cannot start."""
    from dataclasses import replace

    from transplt.disk.manifest import read_manifest
    from transplt.proof.launch import interpreter, reference, runner
    from transplt.proof.launch.advice import Asked, advice, foretold
    from transplt.proof.launch.edits import find_migration
    from transplt.proof.launch.report import as_text, build

    torch = interpreter.torch_of(options.python)
    if not options.module and not os.path.isfile(options.script):
        raise UsageError(f"no such script: {shown(options.script)}")
    if options.reference is not None and (options.host != "npu" or options.dump is not None):
        raise UsageError("--reference cannot be combined with --host, --dump and --fault.")
    if options.nproc and options.shell:
        raise UsageError("--nproc is only for Python scripts: a launch script starts its own processes.")
    if report_path is not None and not report_path.resolve().parent.is_dir():
        raise UsageError(f"no such folder for the report: {report_path.parent}.")
    migration = find_migration(Path.cwd() if options.module else Path(options.script).resolve().parent)
    version = options.torch_version or (migration.torch_version if migration else "") or DEFAULT_TORCH_VERSION
    options = replace(options, torch_version=version, portable=migration is not None and migration.style == "portable")
    originals = []
    if options.reference is not None:
        original = replace(options, script=str(options.reference), module=False)
        for _ in range(2):
            originals.append(runner.start(original, cuda="alias", capture=True, echo=False, warm=warm))
    edited = migration.files if migration else ()
    outcome = runner.start(options, edited, capture=options.reference is not None, host=options.host, warm=warm)
    compared = None
    if originals:
        compared = {"original": str(options.reference), **reference.compare(originals[0], originals[1], outcome)}
    command = [options.script, *options.arguments]
    result = build(outcome, migration, command, torch, version, options.timeout, compared)
    asked = Asked("run", options, migration.root if migration is not None else Path.cwd(), Path.cwd(), own)
    result.advice = advice(asked, outcome.code, outcome.processes, foretold(asked.root, result.stops))
    if migration is not None:
        result.prove(read_manifest(migration.root))
    sys.stdout.flush()
    click.echo(as_text(result), err=True)  # before files that may not be written
    if report_path is not None:
        write_asked_for(report_path, f"{json.dumps(result.as_json(), indent=1)}\n".encode())
        if migration is not None:
            from transplt.proof.run_section import add_run

            add_run(migration.root, str(result.verdict.word), result.verdict.sentence, as_text(result), result.seen)
    if options.dump is not None and options.dump.folder is not None:
        click.echo(f"  {folder_summary(options.dump.folder)}", err=True)
    return 0 if result.verdict.word in (Word.EQUAL, Word.RUNS) else 1
