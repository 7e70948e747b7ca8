"""How commands read their arguments (no bundles; sub-commands are imported when they are called), and exit codes."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

import click
from click.core import ParameterSource

from transplt.base.language import ENGLISH, LANGUAGES, spoken
from transplt.base.render.spelling import short_version, version_after_v
from transplt.faces.cli.completing import FILE

#: Exit codes of every command.
DONE, LEFT, USAGE, UNFINISHED, INTERRUPTED = 0, 1, 2, 3, 130


def _with_own(ctx: click.Context, option: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """The fixers, or codemods, that were named, and those of the user's own settings."""
    from transplt.project.own_settings import own_codemods, own_fixers

    own = own_fixers if option.name == "fixers" else own_codemods
    return (*value, *(name for name in own(os.environ) if name not in value))


def _speak(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    """Renderers speak what was asked for: here, in front of the command's name, by a variable, in the user's settings.
    """
    from transplt.project.own_settings import own_language

    if value is None:
        value = ctx.meta.get(SPOKEN) or own_language(os.environ) or ENGLISH
    ctx.meta[SPOKEN] = value
    if not isinstance(ctx.command, CommandGroup):  # commands without the option speak English
        ctx.with_resource(spoken(value))


#: Where a context has the language.
SPOKEN = "transplt.language"
#: Options that several commands have.
LANGUAGE = click.option(
    "--language", type=click.Choice(LANGUAGES), envvar="TRANSPLT_LANGUAGE", expose_value=False, callback=_speak,
    help="Language of the summary and of report.html (en).",
)  # fmt: skip
RULES = click.option(
    "-r", "--rule", "rules", type=FILE, metavar="FILE", multiple=True, help="Also apply the rules in this JSON file."
)
FIXERS = click.option(
    "--fixer", "fixers", multiple=True, metavar="NAME", callback=_with_own,
    help="Also apply this fixer of an installed package.",
)  # fmt: skip
CODEMODS = click.option(
    "--codemod", "codemods", multiple=True, metavar="NAME", callback=_with_own,
    help="Also apply this LibCST codemod of an installed package.",
)  # fmt: skip
JOBS = click.option(
    "--jobs", metavar="N", type=click.IntRange(0, 256), help="Number of worker processes (0: work in this one)."
)
EXECUTOR = click.option(
    "--executor", metavar="WHERE",
    help="Where files are processed: inline, processes:N, dask://HOST:PORT, dask://local:N, ray://...",
)  # fmt: skip
EXCLUDE = click.option("--exclude", metavar="GLOB", multiple=True, help="Skip paths that match GLOB.")
TORCH_VERSION = click.option(
    "--torch-version", metavar="X.Y", help="Target torch (default: the newest that project and torch_npu allow)."
)
STYLE = click.option(
    "--style", type=click.Choice(("npu", "portable")), help="Edit for NPUs only, or keep CUDA working too."
)
HELPER = click.option(
    "--helper", metavar="NAME", help="With --style portable: the name of the module that chooses the accelerator."
)
#: A flag with the default None leaves the decision to the project's settings.
SIMILAR = click.option(
    "-sim", "--similar", is_flag=True, default=None, help="Replace some unsupported APIs with similar ones."
)
UNSAFE_FIXES = click.option(
    "--unsafe-fixes", is_flag=True, default=None, help="Also apply edits that may change what the program does."
)
TEXTS = click.option("--texts", is_flag=True, default=None, help="Also edit messages and help texts.")
DOCS = click.option("--docs", is_flag=True, default=None, help="Also edit commands and code in documents (.md, .rst).")
TORCH_NPU_IMPORT = click.option(
    "--torch-npu-import", type=click.Choice(("auto", "each-file", "entry")),
    help="Where to put `import torch_npu` (auto: depends on torch).",
)  # fmt: skip
ISOLATED = click.option("--isolated", is_flag=True, help="Ignore the settings of the input ([tool.transplt]).")
EXIT_ZERO = click.option("--exit-zero", is_flag=True, help="Exit with 0 even if something is left to do.")

#: Sub-commands that live in modules of their own, imported when they are called: name -> where, and the short help; in
#: the order in which people need them.
LAZY_COMMANDS = {
    "migrate": (
        "transplt.faces.cli.migrate:migrate_command", "Migrate a project to NPUs (same as `transplt -i PROJECT`)."
    ),
    "check": ("transplt.faces.cli.check:check", "List code that depends on CUDA; with --fix, edit it in place."),
    "analyze": (
        "transplt.faces.cli.analyze:analyze",
        "List APIs and packages that NPUs lack, limit or run faster.",
    ),
    "survey": (
        "transplt.faces.cli.survey:survey",
        "Analyze many repositories and rank what blocks most of them.",
    ),
    "plan": ("transplt.faces.cli.plan:plan_command", "Write the decisions of a migration to a file that you edit."),
    "distributed": (
        "transplt.faces.cli.distributed:distributed", "Migrate a project and make a script train on several cards."
    ),
    "run": ("transplt.faces.cli.run:run_command", "Run a migrated script on an emulated NPU."),
    "emulator": ("transplt.faces.cli.emulator:emulator", "Download the torch_npu that `transplt run` uses."),
    "compiler": ("transplt.faces.cli.compiler:compiler", "Download the compiler for Ascend cards for --compile."),
    "prove": (
        "transplt.proof.prove.command:prove_command",
        "Run the original and the migrated program and compare them.",
    ),
    "judge": ("transplt.faces.cli.judge:judge_command", "Judge a port, whoever made it, against its original."),
    "instrument": (
        "transplt.faces.cli.instrument:instrument_command",
        "Copy a project and make the copy record what it computes.",
    ),
    "port": ("transplt.faces.cli.port:port_command", "Migrate a git repository as a branch of small commits."),
    "loss": ("transplt.faces.cli.loss:loss", "Compare the loss curves of an NPU log and a GPU log."),
    "compare": ("transplt.faces.cli.compare:compare", "Find the first operator that differs between two dumps."),
    "replay": ("transplt.faces.cli.replay:replay", "Recompute the operators of a dump to find the wrong one."),
    "show": ("transplt.faces.cli.show:show", "Show one operator of a dump, or write a test for it."),
    "anomalies": (
        "transplt.faces.cli.anomalies:anomalies",
        "Find zeros, overflows and unchanged weights in a dump.",
    ),
    "convert": ("transplt.faces.cli.convert:convert", "Convert dumped tensors to .npy and text; write acl.json."),
    "diagnose": ("transplt.faces.cli.diagnose:diagnose", "Find the cause of a failed training on NPUs from its logs."),
    "profile-read": (
        "transplt.faces.cli.profile_read:profile_read",
        "Find where training time goes, from a profile or host logs.",
    ),
    "doctor": ("transplt.faces.cli.doctor:doctor", "Check whether this host can train on NPUs; changes nothing."),
    "card-read": (
        "transplt.faces.cli.card_read:card_read",
        "Read the results that a card pack brought back from a card.",
    ),
    "mcp": ("transplt.faces.cli.mcp:mcp", "Serve agents over MCP: check, migrate, prove."),
    "lsp": ("transplt.faces.cli.lsp:lsp", "Serve an editor over LSP: findings, fixes, pages."),
    "explain": ("transplt.faces.cli.explain:explain", "Explain a code, an API, a variable or a package."),
    "rules": ("transplt.faces.cli.rules:rules", "List codes and rules; write, try and check your own."),
    "config": ("transplt.faces.cli.config:config", "Show the settings in force and where they come from."),
    "facts": ("transplt.faces.cli.facts:facts", "Read the current list of packages for Ascend."),
    "cache": ("transplt.faces.cli.cache:cache", "Show or clear the cached results of earlier checks."),
}

#: The sections of a long help, by the names of parameters; what is in none of them comes last.
SECTIONS = (
    ("Input and output", "source out plan exclude force discard_edits copy_all diff report_only branch"),
    ("What is edited", "style helper torch_version specify_device similar unsafe_fixes tune adapt texts docs inline "
                       "torch_npu_import rules fixers codemods fix allow_dirty targets entry check_ranks"),
    ("Mixed precision", "amp amp_dtype opt_level loss_scale combine_ddp amp_flag"),
    ("Proof on the emulated card", "prove command stubs data card_pack"),
    ("Which findings", "select ignore since baseline update_baseline"),
    ("What is reported", "output_format output_file statistics page analysis annotate annotate_edits language verbose "
                         "quiet exit_zero"),
)  # fmt: skip
#: Options from which on a help has sections.
_LONG = 15
#: Commands that have another name now: the old one works and says so.
FORMER_COMMANDS = {"watch": "anomalies"}


def to_stderr(line: str) -> None:
    """One line to stderr; what the terminal cannot show is escaped."""
    encoding = sys.stderr.encoding or "utf-8"
    click.echo(line.encode(encoding, "backslashreplace").decode(encoding), err=True)


def write_out(
    name: str | None, data: str | bytes, inputs: Sequence[str | os.PathLike[str]] = (), *, verbatim: bool = False
) -> None:
    """Write to the file of that name, which is none of the inputs, or to standard output; `verbatim`: the data holds
    what the files hold, which no terminal should obey.
    """
    from transplt.base.errors import CannotFinish, reason
    from transplt.base.render.cell import for_terminal

    data = data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace")
    try:
        if name is not None:
            from transplt.base.disk.replace import write_asked_for

            write_asked_for(name, data, inputs)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(for_terminal(data) if verbatim and sys.stdout.isatty() else data)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()  # who reads it has seen enough
    except OSError as error:
        if name is None:
            discard_stdout()
        raise CannotFinish(f"cannot write standard output: {reason(error)}") from error


def discard_stdout() -> None:
    """What is still buffered for standard output goes nowhere, or the interpreter fails on it again as it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def given_options(ctx: click.Context) -> set[str]:
    """The names of the options that stand on the command line."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def spelled(command: click.Command) -> dict[str, str]:
    """The options of a command as they are written, by their names: `-s/--specify-device`."""
    return {option.name or "": "/".join(option.opts) for option in command.params}


def refuse_bundles(ctx: click.Context, arguments: list[str]) -> None:
    """Options of one letter stand alone, with their value behind a space: `-sims`, `-si` or `-out DIR` would be read as
    something nobody means, the last as `-o ut`."""
    takes_value = {name for option in ctx.command.params if not _is_flag(option) for name in option.opts}
    known = {name: option for option in ctx.command.params if isinstance(option, click.Option) for name in option.opts}
    value = False
    for argument in arguments:
        if value:
            value = False
            continue
        if argument == "--" or (isinstance(ctx.command, CommandGroup) and argument in ctx.command.list_commands(ctx)):
            return
        if re.match(r"-s.+", argument) and argument != "-sim":
            ctx.fail(f"No such option: {argument} (short options cannot be combined)")
        if re.match(r"-\w=", argument):
            ctx.fail(f"write {argument[:2]} {argument[3:]!r} with a space instead of {argument!r}")
        if re.match(r"-\w{2}", argument) and argument not in known:
            for name, option in known.items():
                if name.startswith(f"-{argument}"):
                    ctx.fail(f"No such option: {argument}; did you mean {_with_value(name, option)}?")
            if argument[:2] in takes_value:
                ctx.fail(f"write {argument[:2]} {argument[2:]!r} with a space instead of {argument!r}")
        value = argument in takes_value


def _with_value(name: str, option: click.Option) -> str:
    """An option as it is written, with what its value is called and its short form: `--output DIR (-o DIR)`."""
    value = f" {option.metavar or 'VALUE'}" if not _is_flag(option) else ""
    short = next((f" ({each}{value})" for each in option.opts if re.fullmatch(r"-\w", each)), "")
    return f"{name}{value}{short}"


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


class Formatter(click.HelpFormatter):
    """Help that fits terminals from 40 columns on; click's own is never narrower than 50."""

    def __init__(self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None) -> None:
        if width is None:
            width = max(min(shutil.get_terminal_size().columns, max_width or 80) - 2, 38)
        super().__init__(indent_increment, width, max_width)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """A table of two columns; what is too long for the first one has a line of its own."""
        super().write_dl(rows, min(col_max, self.width * 2 // 5), col_spacing)


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """The options of a command, those of a long help by sections."""
    options = (each for each in command.get_params(ctx) if isinstance(each, click.Option))
    rows = {each.name: row for each in options if (row := each.get_help_record(ctx)) is not None}
    if len(rows) >= _LONG:
        for title, names in SECTIONS:
            if found := [rows.pop(name) for name in names.split() if name in rows]:
                with formatter.section(title):
                    formatter.write_dl(found)
    with formatter.section("Options"):
        formatter.write_dl(list(rows.values()))


class Context(click.Context):
    """The context of a command, whose help fits the terminal."""

    formatter_class = Formatter


class Command(click.Command):
    """A sub-command; bundled options are refused here too."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.ignore_unknown_options:
            refuse_bundles(ctx, args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, by sections where they are many."""
        write_options(self, ctx, formatter)


class CommandGroup(click.Group):
    """The group; without a sub-command it migrates."""

    command_class = Command
    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and ctx.parent is None and not ctx.resilient_parsing:
            click.echo(self.beginning(ctx), err=True)
            ctx.exit(USAGE)
        refuse_bundles(ctx, args)
        if version := version_after_v(args):
            ctx.fail(f"-v means --verbose; to migrate to torch {version}: --torch-version {short_version(version)}")
        return super().parse_args(ctx, args)

    def beginning(self, ctx: click.Context) -> str:
        """What a person reads first: how to call it, and the commands that are needed first."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text("All commands and options: transplt --help")
        return formatter.getvalue().rstrip("\n")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the sub-commands, those of other modules included; of the main command in the order of need."""
        return [*(LAZY_COMMANDS if ctx.parent is None else ()), *sorted(self.commands)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A sub-command; its module is imported now."""
        if ctx.parent is not None or cmd_name not in LAZY_COMMANDS:
            return super().get_command(ctx, cmd_name)
        target, text = LAZY_COMMANDS[cmd_name]
        module, _, attribute = target.partition(":")
        called = getattr(importlib.import_module(module), attribute)
        if not isinstance(called, click.Command):
            return _passing_on(cmd_name, called, text)
        called.context_class = Context
        return called

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The sub-commands, and the options below them."""
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of sub-commands, without importing them."""
        rows = []
        for name in self.list_commands(ctx):
            lazy = LAZY_COMMANDS.get(name) if ctx.parent is None else None
            rows.append((name, lazy[1] if lazy else self.commands[name].get_short_help_str(100)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
        if ctx.parent is None:
            formatter.write_paragraph()
            formatter.write_text("Options of a migration (of other commands: transplt COMMAND --help):")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.parent is None and args[0] in FORMER_COMMANDS:
            former, args = args[0], [FORMER_COMMANDS[args[0]], *args[1:]]
            to_stderr(f"transplt {former} is now transplt {args[0]}")
        if ctx.parent is None and args[0] not in self.list_commands(ctx):
            # What is there is a project rather than a mistyped command.
            near = [] if os.path.exists(args[0]) else get_close_matches(args[0], self.list_commands(ctx), 1, 0.75)
            hint = f"did you mean {near[0]!r}?" if near else f"to migrate a project: transplt -i {args[0]} -o OUT"
            ctx.fail(f"no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)
