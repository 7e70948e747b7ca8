"""The options of a migration, and what they start. Each goes by its name to `Options`, and so to `Settings`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from transplt.base.errors import UsageError
from transplt.base.language import spoken_on
from transplt.base.render.spelling import QUIET
from transplt.faces.cli import command
from transplt.faces.cli.command import DONE, LEFT, Command, to_stderr
from transplt.faces.cli.completing import FILE, FOLDER, AdaptorNames, TuningNames

#: Of the migration and of `port`.
CARD_PACK = click.option(
    "--card-pack", type=FOLDER, metavar="DIR", help="With --prove: write a folder that repeats the proof on a real "
    "card."
)
#: Likewise.
PLAN = click.option("--plan", type=FILE, metavar="FILE", help="Follow this plan (written by `transplt plan`).")
_F = TypeVar("_F", bound=Callable[..., Any])


def _not(ctx: click.Context, option: click.Parameter, value: bool) -> bool:
    return not value


def _stubs(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if "list" in given:
        from transplt.proof.launch.shared_options import list_stubs

        return list_stubs(ctx, option, given)
    return given


STUBS = click.option(
    "--stubs", multiple=True, is_eager=True, callback=_stubs, metavar="FILE",
    help="With --prove: replace data sets by FILE or a built-in stub: torchvision=256 makes 256 random pictures "
         "(`--stubs list`).",
)  # fmt: skip
DATA = click.option("--data", multiple=True, metavar="PATH", help="With --prove: link this data instead of copying it.")
COMPILE = click.option(
    "--compile", "compiled", is_flag=True, help="With --prove: also compile the Triton kernels for the card (`transplt "
    "compiler`)."
)  # fmt: skip
PYTHON = click.option(
    "--python", default="", metavar="PATH", help="With --prove: the Python interpreter or environment with PyTorch "
    "(default: the project's own, else this one)."
)
_PLACES = (
    click.option(
        "-i", "--input", "source", type=FILE, metavar="PATH", help="The folder or .py file to migrate; never changed."
    ),
    click.option(
        "-o", "--output", "out", type=FOLDER, metavar="DIR", help="Where to write <name>_msft (default: next to the "
        "input)."
    ),
    PLAN,
)
#: What is asked of the edits.
_EDITS = (
    *(command.RULES, command.FIXERS, command.CODEMODS),
    click.option(
        "-s", "--specify-device", is_flag=True, default=None, help="Read the device number from the environment."
    ),
    *(command.SIMILAR, command.TORCH_VERSION, command.STYLE, command.HELPER),
    click.option("--amp", type=click.Choice(("native", "apex", "off")), help="Add mixed precision (off)."),
    click.option("--amp-dtype", type=click.Choice(("float16", "bfloat16")), help="Number format for --amp native "
    "(float16)."),
    click.option("--opt-level", type=click.Choice(("O1", "O2")), help="Level for --amp apex (O2 where possible, "
    "else O1)."),
    click.option("--loss-scale", metavar="dynamic|N", help="Loss scale for float16: dynamic, or a number (dynamic)."),
    click.option("--combine-ddp", is_flag=True, help="With --amp apex: combine gradients for DistributedDataParallel."),
    click.option("--amp-flag", is_flag=True, help="Add a flag --amp to the script that turns it on."),
    click.option(
        "--tune", type=TuningNames(), metavar="NAMES", help="Apply tunings, or all (list: `transplt rules --tunings`)."
    ),
    click.option(
        "--adapt", type=AdaptorNames(), metavar="NAMES", help="Apply adaptors, or all (list: `transplt rules "
        "--adaptors`)."
    ),
    *(command.EXCLUDE, command.UNSAFE_FIXES, command.TEXTS, command.DOCS, command.TORCH_NPU_IMPORT),
    click.option("--inline", is_flag=True, help="Write helper functions into the files that call them."),
    command.ISOLATED,
    command.JOBS,
)
_OUTPUT = (
    command.EXECUTOR,
    click.option("--force", is_flag=True, help="Replace an earlier output, but keep files added to it."),
    click.option("--discard-edits", is_flag=True, help="With --force: also discard what was edited or added since."),
    click.option("--copy-all", is_flag=True, default=None, help="Also copy files over 10 MB."),
    click.option(
        "--prove",
        metavar="[COMMAND]",
        is_flag=False,
        flag_value=".",
        help="Run COMMAND ('train.py --epochs 1') before and after, compare, and undo edits that change the result. "
        "Without COMMAND, as the last option: that of `prove` in [tool.transplt].",
    ),
    STUBS,
    DATA,
    PYTHON,
    COMPILE,
    CARD_PACK,
    click.option("--diff", is_flag=True, help="Print the edits as a patch; change nothing."),
    click.option("--no-html", "page", is_flag=True, callback=_not, help="Leave out report.html."),
    click.option("--report-only", is_flag=True, help="Write only the reports, not the migrated project."),
    click.option(
        "--no-analysis", "analysis", is_flag=True, callback=_not, help="Do not analyze the APIs of torch that the "
        "project uses."
    ),
    click.option(
        "--annotate", is_flag=True, default=None, help="Add a comment above each line that needs manual work."
    ),
    click.option(
        "--annotate-edits", is_flag=True, default=None, help="Put comments above and below edits in Python files."
    ),
    command.EXIT_ZERO,
    command.LANGUAGE,
    click.option("-v", "--verbose", count=True, help="Print more details."),
    QUIET,
)


def _options(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


#: The options of a migration, for the group and for the commands that migrate first.
migrate_options = _options(*_PLACES, *_EDITS, *_OUTPUT)
#: Those that choose which edits are made, for commands that put them elsewhere.
edit_options = _options(*_EDITS)


def migrate(
    *,
    prove: str | None,
    stubs: tuple[str, ...],
    data: tuple[str, ...],
    python: str,
    compiled: bool,
    card_pack: str | None,
    diff: bool,
    exit_zero: bool,
    verbose: int,
    quiet: bool,
    **given: Any,
) -> int:
    """Runs a migration with what `migrate_options` took; returns the exit code."""
    from transplt.project.garbage_collection import collect_rarely

    collect_rarely()
    from transplt.base.finding import KERNEL_CODES
    from transplt.project.options import Options, make_plan
    from transplt.project.report.console import progress_bar
    from transplt.project.report.summary import summary
    from transplt.project.tree import diff_tree, migrate_tree

    options = Options(**given)
    if diff and options.report_only:
        raise UsageError("--diff and --report-only cannot be combined")
    if prove is not None and (diff or options.report_only):
        raise UsageError("--prove cannot be combined with --diff or --report-only")
    if prove is None and (stubs or data or python or compiled or card_pack is not None):
        raise UsageError("--stubs, --data, --python, --compile and --card-pack need --prove")
    proof, proving = None, None
    with progress_bar(not quiet) as progress:
        if prove is not None:
            from transplt.project.proving import Proving

            print_step = lambda text: None if quiet else to_stderr(f"prove: {text} ...")  # noqa: E731
            proving = Proving(options, prove, print_step, stubs, data, card_pack, python, compiled)
            result, proof = proving.migrate(lambda plan: migrate_tree(plan, progress))
        else:
            plan = make_plan(options)
            result = diff_tree(plan, progress) if diff else migrate_tree(plan, progress)
    if diff:
        command.write_out(None, b"".join(record.patch for record in result.files), verbatim=True)
    if not quiet:
        width = shutil.get_terminal_size().columns if sys.stderr.isatty() else 0
        with spoken_on(sys.stderr):
            for line in summary(result, verbose, width):
                to_stderr(line)
        if not compiled and any(each.code.startswith(KERNEL_CODES) for each in result.findings):
            from transplt.proof.compiler.place import hint

            to_stderr(f"  {hint('transplt check --compile')}")
    if proof is not None:
        from transplt.proof.prove.proof_text import as_text

        to_stderr(as_text(proof))
        if proving is not None and proving.pack is not None:
            to_stderr(f"card pack: {proving.pack}")
    failed = proof is not None and proof.verdict.word.value != "equal"
    return DONE if exit_zero else max(result.exit_code, LEFT if failed else DONE)


@click.command("migrate", cls=Command)
@click.argument("project", type=FILE)
@_options(*_PLACES[1:], *_EDITS, *_OUTPUT)
def migrate_command(project: str, **given: Any) -> int:
    """Write PROJECT (a folder or one .py file) for Ascend NPUs; PROJECT itself is never changed.

    The same as `transplt -i PROJECT` with these options.
    """
    return migrate(source=project, **given)
