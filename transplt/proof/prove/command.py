"""`transplt prove`: the command. Imports nothing heavy; torch only ever runs in the processes of the two programs."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transplt.base.errors import shown
from transplt.base.settings import DEFAULT_TORCH_VERSION
from transplt.disk.replace import write_asked_for
from transplt.proof.kernels.asked import Asked
from transplt.proof.launch.options import RunOptions, Trace, UsageError
from transplt.proof.launch.shared_options import (
    CARD_PACK,
    DATA,
    NPUS,
    PYTHON,
    SECONDS,
    STUBS,
    TORCH_VERSION,
    ScriptCommand,
    spelled_options,
)
from transplt.render.spelling import formerly

if TYPE_CHECKING:
    from transplt.proof.launch.interpreter import Versions
    from transplt.proof.prove.proof import Proof
    from transplt.render.proofs import Seen

_HELP = """Run ORIGINAL and MIGRATED with ARGS on the CPU of this machine, and compare how they train.

ORIGINAL and MIGRATED are the folders of the project before and after its migration, or two scripts. The original runs
on a stand-in for CUDA, the migrated program on the emulated NPU, each in a fresh copy of its folder and in processes
of its own, with the same seeds, the same order of data, and dropout off. Scripts in sub-folders start in the folder of
their project. prove compares the loss, gradients, parameters, buffers and learning rate at every step, printed and
saved results, and the events of the training. With several processes it also compares the ranks with each other, and
with one process that gets the same global batches.

\b
Verdicts (the worst of all comparisons):
  equal     everything compared agrees; the sentence says how much was compared, and how closely it agrees
  runs      ran, but nothing was or could be compared
  differs   the first difference, and the line that causes it
  stops     the migrated program stops: file, line and reason
  not run   could not be started, computed nothing on a card, or stops before a step as the original does

\b
Exit codes: 0 equal, 1 anything else, 2 wrong usage or PyTorch missing, 3 internal error."""


_REPORT = click.Path(dir_okay=False, path_type=Path)


@click.command(
    "prove",
    help=_HELP,
    cls=ScriptCommand,
    context_settings={"allow_interspersed_args": True, "help_option_names": ["-h", "--help"]},
)
@click.option("--main", default="", metavar="FILE", help="The script to run in both folders (default: main.py).")
@click.option(
    "--nproc", default="1", show_default=True, metavar="N,...", help="Numbers of processes to try, one after another."
)
@NPUS
@click.option(
    "--steps",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="Stop the programs after N optimizer steps; 0: let them finish.",
)
@click.option("--seed", type=int, default=1234, show_default=True, help="Random seed, if the program sets none.")
@click.option(
    "--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads per process."
)
@STUBS
@DATA
@TORCH_VERSION
@click.option(
    "--timeout",
    type=SECONDS,
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop a run after this time.",
)
@PYTHON
@click.option(
    "--no-cache",
    is_flag=True,
    envvar="TRANSPLT_NO_CACHE",
    help="Run the original again instead of using its cached runs.",
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=_REPORT,
    metavar="FILE",
    help="Write a report, FILE.json or FILE.html, and add the result to report.html of MIGRATED.",
)
@formerly("--json", "--report FILE.json", "json_path", type=_REPORT)
@formerly("--html", "--report FILE.html", "html_path", type=_REPORT)
@CARD_PACK
@click.option(
    "--kernels",
    is_flag=True,
    help="Only compare the Triton kernels: repeat the launches of ORIGINAL with the kernels of both.",
)
@click.option(
    "--calls",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --kernels: use the calls in FILE (from --save-calls) instead of running the script.",
)
@click.option(
    "--save-calls",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --kernels: write the recorded calls.",
)
@click.option(
    "--programs",
    type=click.IntRange(0),
    default=512,
    show_default=True,
    metavar="N",
    help="With --kernels: of larger grids, only run N programs (first, last and a sample); 0: all.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SHARE",
    help="With --kernels: allowed difference of floats, as a share of the largest in the tensor (default: not at all, "
    "and by roundings where a kernel or its launch was changed).",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 instead of 1.")
@click.argument("original", type=click.Path(exists=True, path_type=Path))
@click.argument("migrated", type=click.Path(exists=True, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def prove_command(
    context: click.Context,
    main: str,
    nproc: str,
    npus: int,
    steps: int,
    seed: int,
    threads: int,
    stubs: tuple[str, ...],
    data: tuple[str, ...],
    torch_version: str | None,
    timeout: float,
    python: str,
    no_cache: bool,
    reports: tuple[Path, ...],
    card_pack: Path | None,
    kernels: bool,
    calls: Path | None,
    save_calls: Path | None,
    programs: int,
    tolerance: float,
    exit_zero: bool,
    original: Path,
    migrated: Path,
    args: tuple[str, ...],
    json_path: Path | None = None,
    html_path: Path | None = None,
) -> int:
    for each in reports:
        if each.suffix == ".html":
            html_path = each
        else:
            json_path = each
    options = RunOptions(
        main, args, python, torch_version=torch_version or "", random="cpu", stubs=stubs, timeout=timeout,
        trace=Trace(seed, steps), threads=threads, npus=npus,
    )  # fmt: skip
    from transplt.proof.prove.record import command_line

    try:
        again = command_line(context)
        if kernels:
            asked = Asked(calls, save_calls, programs, tolerance)
            code = kernels_alone(original, migrated, options, again, data, asked, json_path, html_path, card_pack)
            return 0 if exit_zero and code == 1 else code
        if calls is not None or save_calls is not None or tolerance:
            raise UsageError("--calls, --save-calls and --tolerance need --kernels.")
        code = prove(
            original, migrated, options, _worlds(nproc), again, data, json_path, html_path, card_pack,
            no_cache=no_cache, own=spelled_options(context.command),
        )  # fmt: skip
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        return 2
    return 0 if exit_zero and code == 1 else code


def prove(
    original: Path,
    migrated: Path,
    options: RunOptions,
    worlds: tuple[int, ...],
    command: str,
    data: tuple[str, ...] = (),
    json_path: Path | None = None,
    html_path: Path | None = None,
    card_pack: Path | None = None,
    *,
    no_cache: bool = False,
    own: Collection[str] = (),
) -> int:
    """Prove, report, and return the exit code. `command` is what makes the proof again, `own` are the command's
    options. UsageError when no run can be started."""
    from transplt.proof.launch.warm import Warm
    from transplt.proof.prove.card_pack import check_pack, write_pack
    from transplt.proof.prove.known import Known
    from transplt.proof.prove.page import render_page
    from transplt.proof.prove.projects import find_projects
    from transplt.proof.prove.proof import between
    from transplt.proof.prove.proof_text import as_json, as_text
    from transplt.proof.prove.record import setup
    from transplt.proof.run_section import add_proof
    from transplt.render.cell import visible
    from transplt.render.verdict import Word

    for path in (json_path, html_path):
        if path is not None and not path.resolve().parent.is_dir():
            raise UsageError(f"no such folder for the report: {shown(path.parent)}.")
    before, after = find_projects(original, migrated, options.script, data)
    pack = check_pack(card_pack, before.root, after.root) if card_pack is not None else None
    options, versions = for_output(options, after.root)
    made = setup(command, options, versions, worlds, (str(original), str(migrated)), (before, after))
    known = None if no_cache else Known.of_user(versions)
    with Warm() as warm:
        say = partial(click.echo, err=True)
        prover = between(before, after, options, lambda text: say(f"transplt prove: {text} ..."), warm, known)
        proof = prover.prove(worlds, own)
    torchrun = prover.migrated.torchrun
    text, record = as_text(proof), as_json(proof, made)
    click.echo(text)  # before files that may not be written
    if json_path is not None:
        write_asked_for(json_path, f"{json.dumps(record, indent=1)}\n".encode())
    if html_path is not None:
        write_asked_for(html_path, render_page(proof, record))
        told = f"$ {visible(command)}\n{text}"
        add_proof(after.root, str(proof.verdict.word), proof.verdict.sentence, told, _seen(proof))
    if pack is not None:
        written = write_pack(after, options, pack, lambda text: say(f"transplt prove: {text} ..."), torchrun=torchrun)
        say(f"card pack: {written}")
    return 0 if proof.verdict.word is Word.EQUAL else 1


def kernels_alone(
    original: Path, migrated: Path, options: RunOptions, command: str, data: tuple[str, ...], asked: Asked,
    json_path: Path | None, html_path: Path | None, card_pack: Path | None,
) -> int:  # fmt: skip
    """`--kernels`: as `prove`, with the Triton kernels that the script launches."""
    from transplt.proof.kernels.command import prove_kernels
    from transplt.proof.prove.projects import find_projects

    for path in (json_path, html_path, asked.save):
        if path is not None and not path.resolve().parent.is_dir():
            raise UsageError(f"no such folder for the report: {shown(path.parent)}.")
    if card_pack is not None:
        raise UsageError("--kernels cannot write a card pack: prove the whole program instead.")
    before, after = find_projects(original, migrated, options.script, data)
    options, versions = for_output(options, after.root)
    given = str(original), str(migrated)
    return prove_kernels(before, after, given, options, versions, asked, command, json_path, html_path)


def _seen(proof: Proof) -> list[Seen]:
    """What the proof found in single lines of the migrated program."""
    from transplt.render.proofs import Seen

    found = [each for part in proof.parts for each in part.findings.differences]
    return [Seen(each.place.path, each.place.line, each.what) for each in found if each.place is not None]


def for_output(options: RunOptions, migrated: Path) -> tuple[RunOptions, Versions]:
    """The options with the version and the style that a migrated folder records, and the versions of what runs.

    Raises UsageError where the interpreter has no torch that will do.
    """
    from dataclasses import replace

    from transplt.proof.launch import interpreter
    from transplt.proof.launch.edits import find_migration

    versions = interpreter.versions_of(options.python)
    migration = find_migration(migrated)
    version = options.torch_version or (migration.torch_version if migration else "") or DEFAULT_TORCH_VERSION
    portable = migration is not None and migration.style == "portable"
    return replace(options, torch_version=version, portable=portable), versions


def _worlds(text: str) -> tuple[int, ...]:
    """(1, 2, 4) for "1,2,4". UsageError for anything but whole numbers from 1 to 64."""
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isdecimal() and 1 <= int(number) <= 64 for number in numbers):
        raise UsageError(f"--nproc {shown(text)}: numbers of processes from 1 to 64, with commas between them.")
    return tuple(sorted({int(number) for number in numbers}))
