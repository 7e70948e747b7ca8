"""`transplt run`: the command. Imports nothing heavy; torch only ever runs in the script's own processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import click
from click.core import ParameterSource

from transplt.base.disk.replace import write_asked_for
from transplt.base.errors import shown
from transplt.base.render.options import argument, flag, option, shared, taking
from transplt.base.render.verdict import Word
from transplt.base.settings import DEFAULT_TORCH_VERSION
from transplt.proof.launch.dumping import FAULTS, asked_for, folder_summary
from transplt.proof.launch.options import LIMITS, RunOptions, UsageError
from transplt.proof.launch.shared_options import (
    COMPILE,
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
from transplt.rules.card_limits import card_named

HELP = """Run a migrated SCRIPT with ARGS on an NPU that is emulated on the CPU of this machine.

SCRIPT is a Python file, or a launch script that ends in .sh. It is executed with your permissions, as if you started it
yourself: run only what you trust. Everything it starts (torchrun ranks, spawned and loader
processes) sees `import torch_npu`, torch.npu, "npu:N" devices and the hccl backend. The report begins with a
verdict (at best `runs`, without --reference):

\b
{words}

\b
What a run does not promise:
{limits}

\b
Exit codes: 0 equal or runs, 1 any other verdict, 2 wrong usage or PyTorch missing, 3 internal error.""".format(
    words="\n".join(f"  {word:8} {word.meaning}" for word in Word), limits="\n".join(f"  - {limit}" for limit in LIMITS)
)

as_run = click.command(
    "run",
    help=HELP,
    cls=ScriptCommand,
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]},
)


@dataclass(frozen=True)
class Run:
    """What is run, and how."""

    module: bool = flag("SCRIPT is the name of a module, as with python -m.", "-m", "--module")
    torch_version: str | None = shared(TORCH_VERSION)
    card: str = shared(card_option(
        CardName(card_named), "The card to emulate: its memory, and the dtypes that its operators and HCCL support."
    ))  # fmt: skip
    npus: int = shared(NPUS)
    nproc: int = option("Start N processes with torchrun.", type=click.IntRange(0, 64), default=0, metavar="N")
    cuda: str = option(
        "What a leftover use of CUDA does: stop the script, be listed and run on the npu, or be ignored.",
        type=click.Choice(["error", "record", "off"]), default="error", show_default=True
    )
    cpu_fallback: str = option(
        "What an operator without an NPU kernel does: be a finding, stop the script, or only be listed.",
        type=click.Choice(["warn", "error", "ignore"]), default="warn", show_default=True
    )
    random: str = option(
        "Use random generators of the npu, or those of the CPU (then results can equal a CPU run to the bit).",
        type=click.Choice(["npu", "cpu"]), default="npu", show_default=True
    )
    stubs: tuple[str, ...] = shared(STUBS)
    host: str = option(
        "What to emulate: an NPU, or CUDA, to run the original.",
        type=click.Choice(["npu", "cuda"]), default="npu", show_default=True,
    )
    dump_folder: Path | None = option(
        "Record every operator of the training steps, as msprobe does, to DIR/step0/rank0/dump.json etc. Seeds are "
        "set, and dropout is off.",
        "--dump", type=click.Path(path_type=Path), metavar="DIR",
    )
    dump_task: str = option(
        "Record maximum, minimum, mean and norm of tensors; also their elements; or only operators that overflow.",
        type=click.Choice(["statistics", "tensor", "overflow"]), default="statistics", show_default=True,
    )
    dump_level: str = option(
        "Record modules, functions of torch, or both.",
        type=click.Choice(["L0", "L1", "mix"]), default="mix", show_default=True,
    )
    dump_format: str = option(
        "File format of the elements.", type=click.Choice(["pt", "npy"]), default="pt", show_default=True
    )
    dump_steps: str = option("The steps to record (default: all).", default="", metavar="0,2-4")
    seed: int = option("Random seed for --dump and --fault.", default=1234, show_default=True)
    faults: tuple[str, ...] = option(
        "Make an operator compute a wrong result, before it is recorded: linear=scale:1.02, or relu.3@1=nan for the "
        f"fourth call in a step, on rank 1. {'; '.join(f'{kind}: {what}' for kind, what in FAULTS.items())}.",
        "--fault", multiple=True, metavar="OP=KIND[:VALUE]",
    )
    compiled: bool = shared(COMPILE)
    shapes: bool = flag("List operators whose input shapes change between steps.")
    reference: Path | None = option(
        "Also run the unmigrated FILE twice on the same device, and compare printed numbers and saved checkpoints.",
        type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"
    )
    report: Path | None = option(
        "Write the full report, and add it to report.html of the migrated folder.",
        type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.json"
    )
    timeout: float | None = option("Stop the script after this time.", type=SECONDS, metavar="SECONDS")
    python: str = shared(PYTHON)
    exit_zero: bool = flag("Exit with 0 instead of 1.")
    script: str = argument(type=click.Path())
    args: tuple[str, ...] = argument(nargs=-1, type=click.UNPROCESSED)


@as_run
@taking(Run)
def run_command(given: Run) -> int:
    return run_given(given)


def run_given(given: Run) -> int:
    context = click.get_current_context()
    try:
        dump = asked_for(
            given.dump_folder, given.dump_task, given.dump_level, given.dump_format, given.dump_steps, given.seed,
            given.faults,
        )  # fmt: skip
        random = given.random
        if dump is not None and context.get_parameter_source("random") is ParameterSource.DEFAULT:
            random = "cpu"  # or the two hosts would draw other numbers
        args = given.args[1:] if given.args[:1] == ("--",) else given.args  # as `transplt prove` has it
        options = RunOptions(
            given.script, args, given.python, given.module, given.torch_version or "", given.npus, given.nproc,
            given.cuda, given.cpu_fallback, random, given.stubs, given.shapes, given.reference, given.timeout,
            card=given.card, host=given.host, dump=dump, compiled=given.compiled,
        )  # fmt: skip
        code = run(options, given.report, context.find_object(Warm), spelled_options(context.command))
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        return 2
    return 0 if given.exit_zero and code == 1 else code


def run(options: RunOptions, report_path: Path | None, warm: Warm | None = None, own: Collection[str] = ()) -> int:
    """Run, report, and return the exit code; `warm` forks the processes, `own` are the command's options. UsageError
    when the run cannot start."""
    from transplt.base.disk.manifest import read_manifest
    from transplt.proof.compiler.compiling import Compiler
    from transplt.proof.compiler.launches import compile_launches, launches_below
    from transplt.proof.compiler.place import hint
    from transplt.proof.launch import reference, runner
    from transplt.proof.launch.advice import Asked, advice, foretold
    from transplt.proof.launch.device_backend import ran_on, torch_npu_of
    from transplt.proof.launch.edits import find_migration
    from transplt.proof.launch.environments import choose
    from transplt.proof.launch.report import as_text, build

    start = Path.cwd() if options.module else Path(options.script).resolve().parent
    chosen = choose(options.python, start)
    options = replace(options, python=chosen.python)
    if not options.module and not os.path.isfile(options.script):
        raise UsageError(f"no such script: {shown(options.script)}")
    if options.reference is not None and (options.host != "npu" or options.dump is not None):
        raise UsageError("--reference cannot be combined with --host, --dump and --fault.")
    if options.nproc and options.shell:
        raise UsageError("--nproc is only for Python scripts: a launch script starts its own processes.")
    if report_path is not None and not report_path.resolve().parent.is_dir():
        raise UsageError(f"no such folder for the report: {report_path.parent}.")
    compiler = Compiler.of(options.card) if options.compiled and options.host == "npu" else None
    torch_npu = torch_npu_of(options, chosen.versions, start)
    migration = find_migration(start)
    root = migration.root if migration is not None else Path.cwd()
    wanted = options.torch_version or (migration.torch_version if migration else "")
    version = wanted or DEFAULT_TORCH_VERSION
    portable = migration is not None and migration.style == "portable"
    options = replace(options, torch_version=version, portable=portable, torch_npu=torch_npu)
    if chosen.in_words:
        click.echo(f"transplt run: with {chosen.in_words}", err=True)
    originals = []
    if options.reference is not None:
        original = replace(options, script=str(options.reference), module=False)
        originals = [runner.start(original, cuda="alias", capture=True, echo=False, warm=warm) for _ in range(2)]
    edited = migration.files if migration else ()
    outcome = runner.start(options, edited, capture=options.reference is not None, host=options.host, warm=warm)
    compiled = None
    if compiler is not None:
        launched = launches_below(outcome.processes, root)
        compiled = compile_launches(launched, compiler, lambda text: click.echo(f"transplt run: {text} ...", err=True))
    compared = None
    if originals:
        compared = {"original": str(options.reference), **reference.compare(originals[0], originals[1], outcome)}
    command = [options.script, *options.arguments]
    weigh = None if compiled is None else compiled.weigh
    result = build(outcome, migration, command, chosen.versions.torch, version, options.timeout, compared, weigh)
    result.compiled = compiled
    if torch_npu is not None:
        result.runs_on = ran_on(torch_npu, options.card, wanted)
    known, asked = foretold(root, result.stops), Asked("run", options, root, Path.cwd(), own)
    result.advice = advice(asked, outcome.code, outcome.processes, known, too_long=outcome.timed_out)
    if migration is not None:
        result.prove(read_manifest(migration.root))
    sys.stdout.flush()
    click.echo(as_text(result), err=True)  # before files that may not be written
    if not options.compiled and options.host == "npu" and any(each.startswith("triton::") for each in result.operators):
        click.echo(f"  {hint()}", err=True)
    if report_path is not None:
        write_asked_for(report_path, f"{json.dumps(result.as_json(), indent=1)}\n".encode())
        if migration is not None:
            from transplt.proof.run_section import add_run

            add_run(migration.root, str(result.verdict.word), result.verdict.sentence, as_text(result), result.seen)
    if options.dump is not None and options.dump.folder is not None:
        click.echo(f"  {folder_summary(options.dump.folder)}", err=True)
    return 0 if result.verdict.word in (Word.EQUAL, Word.RUNS) else 1
