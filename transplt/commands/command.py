"""How commands read their arguments (no bundles; sub-commands are imported when they are called), and exit codes."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable

import click
from click.core import ParameterSource

from transplt.commands.completing import FILE

#: Exit codes of every command.
DONE, LEFT, USAGE, UNFINISHED, INTERRUPTED = 0, 1, 2, 3, 130

#: Options that several commands have.
RULES = click.option("-r", "--rule", "rules", type=FILE, metavar="FILE", multiple=True, help="A JSON file of rules.")
JOBS = click.option("--jobs", metavar="N", type=click.IntRange(0, 256), help="Worker processes (0: none).")
ISOLATED = click.option("--isolated", is_flag=True, help="Read no settings of the input ([tool.transplt]).")
EXIT_ZERO = click.option("--exit-zero", is_flag=True, help="Exit with 0 also when something is left.")

#: Sub-commands that live in modules of their own, imported when they are called: name -> where, and the short help.
LAZY_COMMANDS = {
    "distributed": ("transplt.commands.distributed:distributed", "Migrate, and make a script run on many cards."),
    "analyze": ("transplt.commands.analyze:analyze", "What projects use that an NPU lacks, limits or does faster."),
    "check": ("transplt.commands.check:check", "Findings about files and folders; --fix edits them in place."),
    "config": ("transplt.commands.config:config", "Show the settings in force and where they come from."),
    "explain": ("transplt.commands.explain:explain", "What a code, an API, a variable or a package is."),
    "rules": ("transplt.commands.rules:rules", "List the codes and the rules, or check rule files."),
    "run": ("transplt.emulator.command:run_command", "Run a script on the emulated NPU."),
}


def say(line: str) -> None:
    """One line to stderr; what the terminal cannot show is escaped."""
    encoding = sys.stderr.encoding or "utf-8"
    click.echo(line.encode(encoding, "backslashreplace").decode(encoding), err=True)


def given_options(ctx: click.Context) -> set[str]:
    """The names of the options that stand on the command line."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def spelled(command: click.Command) -> dict[str, str]:
    """The options of a command as they are written, by their names: `-s/--specify-device`."""
    return {option.name or "": "/".join(option.opts) for option in command.params}


def refuse_bundles(ctx: click.Context, arguments: list[str]) -> None:
    """-s and -sim stand alone: `-sims` or `-si` would be read as something nobody means."""
    takes_value = {name for option in ctx.command.params if not _is_flag(option) for name in option.opts}
    value = False
    for argument in arguments:
        if value:
            value = False
            continue
        if argument == "--" or (isinstance(ctx.command, CommandGroup) and argument in ctx.command.list_commands(ctx)):
            return
        if re.match(r"-s.+", argument) and argument != "-sim":
            ctx.fail(f"No such option: {argument} (options are not bundled; -s and -sim stand alone)")
        if re.match(r"-\w=", argument):
            ctx.fail(f"write {argument[:2]} {argument[3:]!r} with a space instead of {argument!r}")
        value = argument in takes_value


def _is_flag(option: click.Parameter) -> bool:
    return not isinstance(option, click.Option) or option.is_flag or option.count


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


class CommandGroup(click.Group):
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
