"""The options of a migration, and what they start. Each goes by its name to `Options`, and so to `Settings`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from transplt.base.errors import UsageError
from transplt.faces.cli.command import (
    DONE,
    EXECUTOR,
    EXIT_ZERO,
    FIXERS,
    ISOLATED,
    JOBS,
    LEFT,
    RULES,
    Command,
    to_stderr,
)
from transplt.faces.cli.completing import FILE, FOLDER, AdaptorNames, TuningNames
from transplt.render.spelling import QUIET

#: Of the migration and of `port`.
CARD_PACK = click.option(
    "--card-pack", type=FOLDER, metavar="DIR", help="With --prove: write a folder to take to the machine with the card."
)
#: Likewise.
PLAN = click.option("--plan", type=FILE, metavar="FILE", help="Do as this file says (`transplt plan` writes it).")
_F = TypeVar("_F", bound=Callable[..., Any])


def _not(ctx: click.Context, option: click.Parameter, value: bool) -> bool:
    return not value


def _stubs(ctx: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    if "list" in given:
        from transplt.proof.launch.shared_options import list_stubs

        return list_stubs(ctx, option, given)
    return given


STUBS = click.option(
    "--stubs",
    multiple=True,
    is_eager=True,
    callback=_stubs,
    metavar="FILE",
    help="With --prove: run FILE, or a ready one, beside it: torchvision=256 draws 256 pictures (`--stubs list`).",
)
DATA = click.option("--data", multiple=True, metavar="PATH", help="With --prove: data that are linked, not copied.")
_PLACES = (
    click.option("-i", "--input", "source", type=FILE, metavar="PATH", help="A folder or one .py file; never changed."),
    click.option(
        "-o", "--output", "out", type=FOLDER, metavar="DIR", help="Where <name>_msft goes (beside the input)."
    ),
    PLAN,
)
#: What is asked of the edits. A flag with the default None leaves the decision to the project's settings.
_EDITS = (
    RULES,
    FIXERS,
    click.option(
        "-s", "--specify-device", is_flag=True, default=None, help="Take the running device from the environment."
    ),
    click.option(
        "-sim", "--similar", is_flag=True, default=None, help="Replace some unsupported APIs by similar ones."
    ),
    click.option("--torch-version", metavar="X.Y", help="The torch to migrate to (what the project pins)."),
    click.option("--style", type=click.Choice(("npu", "portable")), help="For NPUs alone, or for CUDA too."),
    click.option("--amp", type=click.Choice(("native", "apex", "off")), help="Insert mixed precision (off)."),
    click.option("--amp-dtype", type=click.Choice(("float16", "bfloat16")), help="Of --amp native (float16)."),
    click.option("--opt-level", type=click.Choice(("O1", "O2")), help="Of --amp apex (O2 where it is right, else O1)."),
    click.option("--loss-scale", metavar="dynamic|N", help="For float16: dynamic, or a number (dynamic)."),
    click.option("--combine-ddp", is_flag=True, help="Of --amp apex: apex makes the model distributed."),
    click.option("--amp-flag", is_flag=True, help="The script gets a flag --amp, and follows it."),
    click.option(
        "--tune", type=TuningNames(), metavar="NAMES", help="Tunings, or all; `transplt rules --tunings` lists them."
    ),
    click.option(
        "--adapt", type=AdaptorNames(), metavar="NAMES", help="Adaptors, or all: `transplt rules --adaptors`."
    ),
    click.option("--exclude", metavar="GLOB", multiple=True, help="Leave these paths out of the output."),
    click.option(
        "--unsafe-fixes", is_flag=True, default=None, help="Apply edits that may change what the program does."
    ),
    click.option(
        "--texts", is_flag=True, default=None, help="Messages and help texts follow the code too."
    ),
    click.option("--docs", is_flag=True, default=None, help="Commands and code in documents (.md, .rst) follow too."),
    click.option(
        "--torch-npu-import",
        type=click.Choice(("auto", "each-file", "entry")),
        help="Where `import torch_npu` goes (auto: what the version of torch needs).",
    ),
    click.option("--inline", is_flag=True, help="Functions of the port go into the files that call them."),
    ISOLATED,
    JOBS,
)
_OUTPUT = (
    EXECUTOR,
    click.option("--force", is_flag=True, help="Replace an output that transplt wrote; what was added to it is kept."),
    click.option("--discard-edits", is_flag=True, help="With --force: also what was edited or added since goes."),
    click.option("--copy-all", is_flag=True, default=None, help="Copy files over 10 MB too."),
    click.option(
        "--prove",
        metavar="COMMAND",
        help="Run COMMAND ('train.py --epochs 1') before and after, compare, and take back what does not hold.",
    ),
    STUBS,
    DATA,
    CARD_PACK,
    click.option("--diff", is_flag=True, help="Print the edits as a patch for `git apply`; write nothing."),
    click.option("--no-html", "page", is_flag=True, callback=_not, help="Leave out report.html."),
    click.option("--report-only", is_flag=True, help="Write the reports, without the migrated project."),
    click.option(
        "--no-analysis", "analysis", is_flag=True, callback=_not, help="Do not look up what the project uses of torch."
    ),
    click.option("--annotate", is_flag=True, default=None, help="Mark what is left with a comment in the output."),
    click.option(
        "--annotate-edits", is_flag=True, default=None, help="Put comments above and below edits in Python files."
    ),
    EXIT_ZERO,
    click.option("-v", "--verbose", count=True, help="Say more."),
    QUIET,
)


def _options(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    def decorate(function: _F) -> _F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def migrate_options(function: _F) -> _F:
    """The options of a migration, for the group and for the commands that migrate first."""
    return _options(*_PLACES, *_EDITS, *_OUTPUT)(function)


def edit_options(function: _F) -> _F:
    """Those that choose which edits are made, for commands that put them elsewhere."""
    return _options(*_EDITS)(function)


def migrate(
    *,
    prove: str | None,
    stubs: tuple[str, ...],
    data: tuple[str, ...],
    card_pack: str | None,
    diff: bool,
    exit_zero: bool,
    verbose: int,
    quiet: bool,
    **given: Any,
) -> int:
    """Runs a migration with what `migrate_options` took; returns the exit code."""
    from transplt.project.pool import collect_rarely

    collect_rarely()
    from transplt.project.options import Options, make_plan
    from transplt.project.tree import diff_tree, migrate_tree
    from transplt.report.console import progress_bar, summary

    options = Options(**given)
    if diff and options.report_only:
        raise UsageError("--diff writes nothing, and --report-only writes reports: give one of them")
    if prove is not None and (diff or options.report_only):
        raise UsageError("--prove runs what was written; it goes neither with --diff nor with --report-only")
    if prove is None and (stubs or data or card_pack is not None):
        raise UsageError("--stubs, --data and --card-pack are for what --prove runs")
    if not diff:
        from transplt.render.workbook_writer import import_writer

        import_writer()
    proof, proving = None, None
    with progress_bar(not quiet) as progress:
        if prove is not None:
            from transplt.project.proving import Proving

            print_step = lambda text: None if quiet else to_stderr(f"prove: {text} ...")  # noqa: E731
            proving = Proving(options, prove, print_step, stubs, data, card_pack)
            result, proof = proving.migrate(lambda plan: migrate_tree(plan, progress))
        else:
            plan = make_plan(options)
            result = diff_tree(plan, progress) if diff else migrate_tree(plan, progress)
    if diff:
        sys.stdout.buffer.write(b"".join(record.patch for record in result.files))
        sys.stdout.buffer.flush()
    if not quiet:
        width = shutil.get_terminal_size().columns if sys.stderr.isatty() else 0
        for line in summary(result, verbose, width):
            to_stderr(line)
    if proof is not None:
        from transplt.proof.prove.proof_text import as_text

        to_stderr(as_text(proof))
        if proving is not None and proving.pack is not None:
            to_stderr(f"card pack: {proving.pack}")
    failed = proof is not None and proof.verdict.word.value != "equal"
    return DONE if exit_zero else max(result.exit_code, LEFT if failed else DONE)


@click.command(
    "migrate", cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.argument("project", type=FILE)
@_options(*_PLACES[1:], *_EDITS, *_OUTPUT)
def migrate_command(project: str, **given: Any) -> int:
    """Write PROJECT (a folder or one .py file) for Ascend NPUs; PROJECT itself is never changed.

    The same as `transplt -i PROJECT` with these options.
    """
    return migrate(source=project, **given)
