"""`transplt prove`: the command. Imports nothing heavy; torch only ever runs in the processes of the two programs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transplt.base.errors import shown
from transplt.base.render.options import taking
from transplt.base.render.spelling import formerly
from transplt.base.render.verdict import Word
from transplt.base.settings import DEFAULT_TORCH_VERSION
from transplt.proof.launch.options import RunOptions, UsageError
from transplt.proof.launch.shared_options import ScriptCommand, spelled_options
from transplt.proof.prove.options import REPORT, Prove

if TYPE_CHECKING:
    from transplt.proof.launch.interpreter import Versions

_HELP = """Run ORIGINAL and MIGRATED with ARGS on the CPU of this machine, and compare how they train.

ORIGINAL and MIGRATED are the folders of the project before and after its migration, or two scripts. The original runs
on a stand-in for CUDA (--against names another way), the migrated program on the emulated NPU, each in a fresh copy of
its folder and in separate processes, with the same seeds, the same order of data, and dropout off. Scripts in
sub-folders start in the folder of their project. prove compares the loss, gradients, parameters, buffers and learning
rate at every step, printed and saved results, and the events of the training. With several processes it also compares
the ranks with each other, and with one process that gets the same global batches. Both programs run with your
permissions, as if you started them yourself: run only what you trust.

\b
Verdicts (the worst of all comparisons):
{words}

\b
Exit codes: 0 equal, 1 anything else, 2 wrong usage or PyTorch missing, 3 internal error.""".format(
    words="\n".join(f"  {word:8} {word.meaning}" for word in Word)
)


@click.command(
    "prove",
    help=_HELP,
    cls=ScriptCommand,
    context_settings={"allow_interspersed_args": True, "help_option_names": ["-h", "--help"]},
)
@formerly("--json", "--report FILE.json", "json_path", type=REPORT)
@formerly("--html", "--report FILE.html", "html_path", type=REPORT)
@taking(Prove)
def prove_command(given: Prove) -> int:
    from transplt.proof.prove.record import command_line

    context = click.get_current_context()
    try:
        again = command_line(context)
        if given.kernels:
            code = kernels_alone(given, again)
        elif given.calls is not None or given.save_calls is not None or given.tolerance:
            raise UsageError("--calls, --save-calls and --tolerance need --kernels.")
        else:
            code = prove(given, again, spelled_options(context.command))
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        return 2
    return 0 if given.exit_zero and code == 1 else code


def prove(given: Prove, command: str, own: Collection[str]) -> int:
    """Prove, report, and return the exit code. `command` is what makes the proof again, `own` are the command's
    options. UsageError when no run can be started."""
    from transplt.proof.launch.warm import Warm
    from transplt.proof.prove.card_pack import check_pack, write_pack
    from transplt.proof.prove.compile_mode import eager_and_compiled
    from transplt.proof.prove.known import Known
    from transplt.proof.prove.page import report
    from transplt.proof.prove.portable import tests_on_a_cpu
    from transplt.proof.prove.projects import find_projects
    from transplt.proof.prove.proof import between
    from transplt.proof.prove.proof_text import as_json, as_text
    from transplt.proof.prove.record import setup
    from transplt.proof.prove.witness import CUDA, WITNESSES

    worlds, witness = worlds_of(given.nproc), WITNESSES[given.against]
    if given.style == "portable" and witness is not CUDA:
        raise UsageError("--style portable compares MIGRATED with the original on CUDA: remove --against.")
    _check_folders(given.json_report, given.html_report)
    before, after = find_projects(given.original, given.migrated, given.main, given.data)
    pack = check_pack(given.card_pack, before.root, after.root) if given.card_pack is not None else None
    options, versions = for_output(given.run_options(), after.root, before.root)
    made = setup(command, options, versions, worlds, given.folders, (before, after))
    known = None if given.no_cache else Known.of_user(versions)
    with Warm() as warm:
        say = partial(click.echo, err=True)
        prover = between(before, after, options, lambda text: say(f"transplt prove: {text} ..."), warm, known, witness)
        prover.shuffled = given.shuffle_ranks
        proof = prover.prove(worlds, own)
        if given.compile_mode:
            proof.parts.append(eager_and_compiled(prover.migrated, prover.announce))
    if given.tests is not None:
        say("transplt prove: the project's own tests on a CPU ...")
        proof.parts.append(tests_on_a_cpu(before, after, options, given.tests))
    torchrun = prover.migrated.torchrun
    text = as_text(proof)
    click.echo(text)  # before files that may not be written
    report(given, command, after.root, proof, as_json(proof, made), text)
    if pack is not None:
        written = write_pack(after, options, pack, lambda text: say(f"transplt prove: {text} ..."), torchrun=torchrun)
        say(f"card pack: {written}")
    return 0 if proof.verdict.word is Word.EQUAL else 1


def kernels_alone(given: Prove, command: str) -> int:
    """`--kernels`: as `prove`, with the Triton kernels that the script launches."""
    from transplt.proof.kernels.command import prove_kernels
    from transplt.proof.prove.projects import find_projects

    _check_folders(given.json_report, given.html_report, given.save_calls)
    if given.card_pack is not None:
        raise UsageError("--kernels cannot write a card pack: prove the whole program instead.")
    if given.compile_mode:
        raise UsageError("--kernels runs no networks: remove --compile-mode.")
    if given.against != "cuda":
        raise UsageError("--kernels takes the calls of ORIGINAL on the stand-in for CUDA: remove --against.")
    before, after = find_projects(given.original, given.migrated, given.main, given.data)
    options, versions = for_output(given.run_options(), after.root, before.root)
    return prove_kernels(given, command, before, after, options, versions)


def _check_folders(*reports: Path | None) -> None:
    for path in reports:
        if path is not None and not path.resolve().parent.is_dir():
            raise UsageError(f"no such folder for the report: {shown(path.parent)}.")


def for_output(options: RunOptions, migrated: Path, project: Path) -> tuple[RunOptions, Versions]:
    """The options with the version and the style that a migrated folder records, and with the interpreter of the
    project; the versions of what runs.

    Raises UsageError where the interpreter has no torch that will do.
    """
    from transplt.proof.launch.device_backend import torch_npu_of
    from transplt.proof.launch.edits import find_migration
    from transplt.proof.launch.environments import choose

    chosen = choose(options.python, project)
    migration = find_migration(migrated)
    version = options.torch_version or (migration.torch_version if migration else "") or DEFAULT_TORCH_VERSION
    portable = options.portable or (migration is not None and migration.style == "portable")
    if chosen.in_words:
        click.echo(f"transplt prove: with {chosen.in_words}", err=True)
    options = replace(options, python=chosen.python, torch_version=version, portable=portable)
    torch_npu = torch_npu_of(options, chosen.versions, project)
    if torch_npu is not None and not torch_npu.version.startswith(f"{version}."):
        tried = f"on torch {chosen.versions.torch} with torch_npu {torch_npu.version}"
        click.echo(f"transplt prove: {tried}; the migration is for torch {version}", err=True)
    return replace(options, torch_npu=torch_npu), chosen.versions


def worlds_of(text: str) -> tuple[int, ...]:
    """(1, 2, 4) for "1,2,4". UsageError for anything but whole numbers from 1 to 64."""
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isdecimal() and 1 <= int(number) <= 64 for number in numbers):
        raise UsageError(f"--nproc {shown(text)}: numbers of processes from 1 to 64, with commas between them.")
    return tuple(sorted({int(number) for number in numbers}))
