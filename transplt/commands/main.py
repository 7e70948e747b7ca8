"""The command line: parses options, calls, renders, returns the exit code. What is slow to import is imported late."""

from __future__ import annotations

import importlib
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

import transplt
from transplt.commands.completing import FILE, FOLDER, Tunings
from transplt.errors import TranspltError, UsageError

_F = TypeVar("_F", bound=Callable[..., Any])

#: Exit codes of every command.
DONE, LEFT, USAGE, UNFINISHED, INTERRUPTED = 0, 1, 2, 3, 130


def migrate_options(function: _F) -> _F:
    """The options of a migration, for the group and for the commands that migrate first."""
    for option in reversed(
        (
            click.option(
                "-i", "--input", "source", type=FILE, metavar="PATH", help="A folder or one .py file; never changed."
            ),
            click.option(
                "-o", "--output", "out", type=FOLDER, metavar="DIR", help="Where <name>_msft goes (beside the input)."
            ),
            click.option(
                "-r", "--rule", "rules", type=FILE, metavar="FILE", multiple=True, help="A JSON file of rules."
            ),
            click.option("-s", "--specify-device", is_flag=True, help="Take the running device from the environment."),
            click.option("-sim", "--similar", is_flag=True, help="Replace some unsupported APIs by similar ones."),
            click.option("--torch-version", metavar="X.Y", help="The torch to migrate to (what the project pins)."),
            click.option("--style", type=click.Choice(("npu", "portable")), help="For NPUs alone, or for CUDA too."),
            click.option("--amp", type=click.Choice(("native", "apex", "off")), help="Insert mixed precision (off)."),
            click.option("--amp-dtype", type=click.Choice(("float16", "bfloat16")), help="Of --amp native (float16)."),
            click.option("--opt-level", type=click.Choice(("O1", "O2")), help="Of --amp apex (O2)."),
            click.option("--loss-scale", metavar="dynamic|N", help="For float16: dynamic, or a number (dynamic)."),
            click.option("--combine-ddp", is_flag=True, help="Of --amp apex: apex makes the model distributed."),
            click.option("--amp-flag", is_flag=True, help="The script gets a flag --amp, and follows it."),
            click.option(
                "--tune",
                type=Tunings(),
                metavar="NAMES",
                help="Tunings, or all; `transplt rules --tunings` lists them.",
            ),
            click.option("--exclude", metavar="GLOB", multiple=True, help="Leave these paths out of the output."),
            click.option("--force", is_flag=True, help="Replace an output that transplt wrote."),
            click.option("--discard-edits", is_flag=True, help="With --force: also when it was edited since."),
            click.option("--copy-all", is_flag=True, help="Copy files over 10 MB too."),
            click.option("--unsafe-fixes", is_flag=True, help="Apply edits that may change what the program does."),
            click.option("--diff", is_flag=True, help="Print the edits as a patch for `git apply`; write nothing."),
            click.option("--no-html", is_flag=True, help="Leave out report.html."),
            click.option("--report-only", is_flag=True, help="Write the reports, without the migrated project."),
            click.option("--no-analysis", is_flag=True, help="Do not look up what the project uses of torch."),
            click.option("--annotate", is_flag=True, help="Mark what is left with a comment in the output."),
            click.option("--jobs", metavar="N", type=click.IntRange(0, 256), help="Worker processes (0: none)."),
            click.option("--exit-zero", is_flag=True, help="Exit with 0 also when something is left."),
            click.option("-v", "--verbose", count=True, help="Say more."),
            click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
        )
    ):
        function = option(function)
    return function


def refuse_bundles(ctx: click.Context, arguments: list[str]) -> None:
    """-s and -sim stand alone: `-sims` or `-si` would be read as something nobody means."""
    takes_value = {name for option in ctx.command.params if not _is_flag(option) for name in option.opts}
    value = False
    for argument in arguments:
        if value:
            value = False
            continue
        if argument == "--" or (isinstance(ctx.command, Group) and argument in ctx.command.list_commands(ctx)):
            return
        if re.match(r"-s.+", argument) and argument != "-sim":
            ctx.fail(f"No such option: {argument} (options are not bundled; -s and -sim stand alone)")
        if re.match(r"-\w=", argument):
            ctx.fail(f"write {argument[:2]} {argument[3:]!r} with a space instead of {argument!r}")
        value = argument in takes_value


def _is_flag(option: click.Parameter) -> bool:
    return not isinstance(option, click.Option) or option.is_flag or option.count


#: Sub-commands that live in modules of their own, imported when they are called: name -> where, and the short help.
LAZY_COMMANDS = {
    "distributed": ("transplt.commands.distributed:distributed", "Migrate, and make a script run on many cards."),
    "analyze": ("transplt.commands.analyze:analyze", "What projects use that an NPU lacks, limits or does faster."),
    "check": ("transplt.commands.check:check", "Findings about files and folders; --fix edits them in place."),
    "config": ("transplt.commands.config:config", "Show the settings in force and where they come from."),
    "explain": ("transplt.commands.rules:explain", "Print the page of a code such as NPU201."),
    "rules": ("transplt.commands.rules:rules", "List the codes and the rules, or check rule files."),
    "run": ("transplt.emulator.command:run_command", "Run a script on the emulated NPU."),
}


def _passing_on(name: str, called: Callable[[list[str]], int | None], text: str) -> click.Command:
    """A sub-command that parses its own arguments."""

    @click.command(
        name,
        cls=Command,
        help=text,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def command(arguments: tuple[str, ...]) -> int:
        return int(called(list(arguments)) or DONE)

    return command


class Command(click.Command):
    """A sub-command; bundled options are refused here too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.ignore_unknown_options:
            refuse_bundles(ctx, args)
        return super().parse_args(ctx, args)


class Group(click.Group):
    """The group; without a sub-command it migrates."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and ctx.parent is None and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(USAGE)
        refuse_bundles(ctx, args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the sub-commands, those of other modules included."""
        return sorted({*self.commands, *(LAZY_COMMANDS if ctx.parent is None else ())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A sub-command; its module is imported now."""
        if ctx.parent is not None or cmd_name not in LAZY_COMMANDS:
            return super().get_command(ctx, cmd_name)
        target, text = LAZY_COMMANDS[cmd_name]
        module, _, attribute = target.partition(":")
        called = getattr(importlib.import_module(module), attribute)
        return called if isinstance(called, click.Command) else _passing_on(cmd_name, called, text)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of sub-commands, without importing them."""
        rows = []
        for name in self.list_commands(ctx):
            lazy = LAZY_COMMANDS.get(name) if ctx.parent is None else None
            rows.append((name, lazy[1] if lazy else self.commands[name].get_short_help_str(100)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.parent is None and args[0] not in self.list_commands(ctx):
            ctx.fail(f"no command {args[0]!r}; to migrate a project: transplt -i {args[0]} -o OUT")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Group,
    invoke_without_command=True,
    epilog="Exit codes: 0 nothing left to do, 1 something is left for a person, 2 wrong usage, input, rules or "
    "settings, 3 could not finish, 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@migrate_options
@click.version_option(transplt.__version__)
@click.pass_context
def main(ctx: click.Context, /, **options: Any) -> int:
    """Migrates a PyTorch project from CUDA GPUs to Ascend NPUs: transplt -i PROJECT -o OUT.

    The input is never changed; the output is OUT/<name>_msft.
    """
    given = given_options(ctx)
    spelled = {option.name: "/".join(option.opts) for option in ctx.command.params}
    if ctx.invoked_subcommand is None:
        if not options["source"]:
            ctx.fail("Missing option '-i' / '--input'.")
        return migrate(options)
    if given and ctx.invoked_subcommand not in MIGRATING_COMMANDS:
        ctx.fail(f"{', '.join(sorted(spelled[name] for name in given))}: not for {ctx.invoked_subcommand!r}")
    ctx.obj = {name: options[name] for name in given}
    return DONE


#: Sub-commands that migrate first, and so take the options of the group.
MIGRATING_COMMANDS = frozenset({"distributed"})


def given_options(ctx: click.Context) -> set[str]:
    """The names of the options that stand on the command line."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def migrate(options: dict[str, Any]) -> int:
    """Runs a migration with the options of `migrate_options`; returns the exit code."""
    from transplt.report.console import progress_bar, summary
    from transplt.run.options import Options, make_plan
    from transplt.run.pool import collect_rarely
    from transplt.run.tree import diff_tree, migrate_tree

    if options["diff"] and options["report_only"]:
        raise UsageError("--diff writes nothing, and --report-only writes reports: give one of them")
    plan = make_plan(
        Options(
            source=Path(options["source"]),
            out=Path(options["out"]) if options["out"] is not None else None,
            rules=tuple(Path(rule) for rule in options["rules"]),
            exclude=tuple(options["exclude"]),
            torch_version=options["torch_version"],
            style=options["style"],
            specify_device=options["specify_device"] or None,
            similar=options["similar"] or None,
            unsafe_fixes=options["unsafe_fixes"] or None,
            annotate=options["annotate"] or None,
            copy_all=options["copy_all"] or None,
            force=options["force"],
            discard_edits=options["discard_edits"],
            jobs=options["jobs"],
            report_only=options["report_only"],
            page=not options["no_html"],
            analysis=not options["no_analysis"],
            amp=options["amp"],
            amp_dtype=options["amp_dtype"],
            opt_level=options["opt_level"],
            loss_scale=options["loss_scale"],
            combine_ddp=options["combine_ddp"],
            amp_flag=options["amp_flag"],
            tune=options["tune"],
            entry=options.get("entry", ""),
            targets=options.get("targets", ()),
        )
    )
    collect_rarely()
    with progress_bar(not options["quiet"]) as progress:
        result = diff_tree(plan, progress) if options["diff"] else migrate_tree(plan, progress)
    if options["diff"]:
        sys.stdout.buffer.write(b"".join(record.patch for record in result.files))
        sys.stdout.buffer.flush()
    if not options["quiet"]:
        for line in summary(result, options["verbose"]):
            say(line)
    return DONE if options["exit_zero"] else result.exit_code


def say(line: str) -> None:
    """One line to stderr; what the terminal cannot show is escaped."""
    encoding = sys.stderr.encoding or "utf-8"
    click.echo(line.encode(encoding, "backslashreplace").decode(encoding), err=True)


def entry_point() -> int:
    """The command `transplt`: the exit code, whatever happens."""
    _catch_signals()
    try:
        return main.main(prog_name="transplt", standalone_mode=False) or DONE
    except click.ClickException as error:
        error.show()
        return USAGE
    except TranspltError as error:
        say(f"Error: {error}")
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("interrupted; no half-written output is left")
        return INTERRUPTED
    except Exception as error:
        return _defect(error)


def _defect(error: Exception) -> int:
    import traceback

    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("transplt"):
        say(f"Error: this needs the package {error.name!r}, which is not installed")
        return USAGE
    traceback.print_exc()
    say(f"Error: a defect of transplt ({type(error).__name__}); no half-written output is left")
    return UNFINISHED


def _catch_signals() -> None:
    """Ctrl-C and SIGTERM end a run cleanly; a second one does not disturb the cleaning up."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, interrupt)
