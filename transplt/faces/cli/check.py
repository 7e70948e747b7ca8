"""`transplt check`: parses options, calls, renders, returns the exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.language import spoken_on
from transplt.base.render.cell import visible
from transplt.base.render.options import argument, flag, option, shared, taking
from transplt.base.render.spelling import QUIET, formerly
from transplt.faces.cli import command
from transplt.faces.cli.command import DONE, Command, to_stderr, write_out
from transplt.faces.cli.completing import FILE

if TYPE_CHECKING:
    from transplt.base.disk.cache_folder import Cache
    from transplt.project.options import Options
    from transplt.project.report.check_results import CheckResult, NumberedEdit

#: In `FORMATS` of transplt.project.report.formats, named here so that --help imports nothing.
_FORMATS = ("text", "concise", "json", "json-lines", "github", "gitlab", "sarif", "junit")
_STDIN = "-"


@dataclass(frozen=True)
class Check:
    """What is asked of a check."""

    paths: tuple[str, ...] = argument(nargs=-1, type=FILE, metavar="[PATHS]...")
    fix: bool = flag("Apply the safe edits in place (with `-`: print the result).")
    fix_only: bool = flag("Like --fix, but print no remaining findings and exit with 0.")
    unsafe_fixes: bool | None = shared(command.UNSAFE_FIXES)
    style: str | None = shared(command.STYLE)
    helper: str | None = shared(command.HELPER)
    texts: bool | None = shared(command.TEXTS)
    docs: bool | None = shared(command.DOCS)
    torch_npu_import: str | None = shared(command.TORCH_NPU_IMPORT)
    pick: str | None = option("With --fix: apply only these edits of --diff (1,3-5).", metavar="NUMBERS")
    add_ignores: str | None = option("With --fix: add an ignore comment for each remaining finding.", metavar="REASON")
    allow_dirty: bool = flag("With --fix: edit even if git has uncommitted changes.")
    diff: bool = flag("Print the edits as a patch; change nothing.")
    compiled: bool = flag(
        "Also compile the Triton kernels that are launched with sizes in the text, for --card (`transplt compiler`).",
        "--compile",
    )
    card: str = option("With --compile: the card (910B, A3, 950).", default="910B", show_default=True, metavar="CARD")
    watch: bool = flag("Check again when a file changes, until Ctrl-C.")
    since: str | None = option("Only report lines changed since this commit (main, HEAD~1).", metavar="REF")
    baseline: str | None = option("Ignore the findings listed in this file.", type=FILE, metavar="FILE")
    update_baseline: bool = flag("Write all findings to the baseline file and exit with 0.")
    select: tuple[str, ...] = option(
        "Only report these codes or prefixes (NPU2,NPU501).", metavar="CODES", multiple=True
    )
    ignore: tuple[str, ...] = option("Do not report these codes or prefixes.", metavar="CODES", multiple=True)
    output_format: str = option("Output format (text).", "--format", type=click.Choice(_FORMATS), default="text")
    output_file: str | None = option("Write the findings to this file instead of stdout.", type=FILE, metavar="FILE")
    show_files: bool = flag("Only list the files that would be checked.")
    statistics: bool = flag("Count the findings of each code.")
    stdin_filename: str = option(
        "The path to assume for the text of `-`.", type=FILE, metavar="PATH", default="stdin.py"
    )
    rules: tuple[str, ...] = shared(command.RULES)
    fixers: tuple[str, ...] = shared(command.FIXERS)
    codemods: tuple[str, ...] = shared(command.CODEMODS)
    similar: bool | None = shared(command.SIMILAR)
    torch_version: str | None = shared(command.TORCH_VERSION)
    exclude: tuple[str, ...] = shared(command.EXCLUDE)
    isolated: bool = shared(command.ISOLATED)
    jobs: int | None = shared(command.JOBS)
    exit_zero: bool = shared(command.EXIT_ZERO)
    no_cache: bool = flag("Do not read or write the cache.", envvar="TRANSPLT_NO_CACHE")
    verbose: bool = flag("Print more details.", "-v", "--verbose")
    quiet: bool = shared(QUIET)


@click.command(cls=Command)
@formerly("--output-format", "--format", "output_format", type=click.Choice(_FORMATS))
@command.LANGUAGE
@taking(Check)
def check(given: Check) -> int:
    """List the code in PATHS that depends on CUDA (`-`: standard input; default: the current folder).

    Exits with 1 if something is left to do. No file is changed without --fix.
    """
    return _check(given)


def _check(given: Check) -> int:
    from transplt.project.garbage_collection import collect_rarely

    collect_rarely()
    from transplt.project.checking.check_run import check_paths, check_text
    from transplt.project.checking.codes import parse_codes, switched_off
    from transplt.project.options import Options

    if given.fix_only:
        given = replace(given, fix=True, exit_zero=True)
    stdin, fixing = given.paths == (_STDIN,), given.fix and not given.diff
    for refused, why in _refusals(given, stdin):
        if refused:
            raise UsageError(why)
    in_common = (each.name for each in fields(Options) if hasattr(given, each.name))
    options = Options(**{name: getattr(given, name) for name in in_common})
    inputs = [Path(path) for path in given.paths or (".",)]
    if given.show_files:
        from transplt.project.checking.check_run import files_in

        names = files_in(inputs, options, given.since)
        write_out(given.output_file, "".join(f"{visible(name)}\n" for name in names), inputs)
        return DONE
    if given.watch:
        return _watch(given, inputs, options)
    styled = options.style is not None or _styled([Path(given.stdin_filename)] if stdin else inputs, options.isolated)
    if fixing and not styled:
        raise UsageError(
            "--fix needs a style: use --style npu (for NPUs only) or --style portable (CUDA keeps "
            'working), or set style = "npu" in [tool.transplt] of pyproject.toml'
        )
    ignores = switched_off(parse_codes(given.select, "--select"), parse_codes(given.ignore, "--ignore"))
    look = partial(check_paths, inputs, options, ignores=ignores, since=given.since)
    data = _standard_input() if stdin else b""
    if stdin:
        result = check_text(data, given.stdin_filename, options, ignores=ignores, fix=given.fix, diff=given.diff)
    else:
        result = _found(given, fixing, look)
    known = None
    if given.baseline is not None:
        from transplt.project.checking.baseline import mark_known, read_baseline, write_baseline

        if given.update_baseline:
            write_baseline(Path(given.baseline), result.items, inputs)
            if not given.quiet:
                to_stderr(f"{len(result.items)} findings written to {shown(given.baseline)}")
            return DONE
        known = read_baseline(Path(given.baseline))
        result = mark_known(result, known)
    if given.add_ignores is not None:
        from transplt.project.checking.added_ignores import reason_of, with_comments

        result = with_comments(result, reason_of(given.add_ignores))
    if fixing and not stdin and result.changes:
        result = _changed(given, look, result)
        result = mark_known(result, known) if known is not None and given.add_ignores is not None else result
    if given.compiled:
        result = _compiled(given, result, inputs, options)
    _print(given, inputs, result, data, styled, fixing)
    return DONE if given.exit_zero else result.exit_code


def _compiled(given: Check, result: CheckResult, inputs: list[Path], options: Options) -> CheckResult:
    """The result in which the compiler of the card has the last word on kernels."""
    from transplt.project.checking.check_run import files_in
    from transplt.project.checking.compiled import with_compiled
    from transplt.proof.compiler.compiling import Compiler
    from transplt.proof.launch.options import UsageError as CannotRun
    from transplt.rules.card_limits import card_named

    say = (lambda text: None) if given.quiet else to_stderr
    try:
        compiler = Compiler.of(card_named(given.card))
        result, lines = with_compiled(result, files_in(inputs, options, given.since), compiler, say)
    except CannotRun as error:
        raise UsageError(str(error)) from error
    for line in lines:
        say(line)
    return result


def _found(given: Check, fixing: bool, look: Callable[..., CheckResult]) -> CheckResult:
    """What a check of files finds and would change; with --pick of the edits those that were picked."""
    from transplt.project.report.console import progress_bar

    with progress_bar(not given.quiet) as progress:
        picked: list[NumberedEdit] | None = None
        edits: tuple[NumberedEdit, ...] = ()
        if given.pick is not None:
            from transplt.project.checking.picking import picked_edits

            edits = look(diff=True, progress=progress).edits
            picked = picked_edits(given.pick, edits)
        cache = None if given.no_cache else _cache(given.verbose and not given.quiet)
        result = look(fix=fixing, diff=given.diff, picked=picked, progress=progress, cache=cache)
    if picked is None:
        return result
    from transplt.project.checking.picking import said_of

    return replace(result, notes=(*result.notes, *said_of(picked, edits, result)))


def _changed(given: Check, look: Callable[..., CheckResult], result: CheckResult) -> CheckResult:
    """The result once its changes are in the files; with comments that were added it is that of another look."""
    from transplt.project.checking.in_place import refuse_uncommitted, write_changes

    if not given.allow_dirty:
        refuse_uncommitted(result.changes)
    result = replace(result, notes=(*result.notes, *write_changes(result.changes)))
    return result if given.add_ignores is None else replace(look(), changes=result.changes, notes=result.notes)


def _print(given: Check, inputs: list[Path], result: CheckResult, data: bytes, styled: bool, fixing: bool) -> None:
    """The patch, the text with its edits, or the findings; on stderr what they come to."""
    from transplt.base.finding import KERNEL_CODES
    from transplt.project.report.formats import render
    from transplt.project.report.formats.findings_text import footer

    if given.diff:
        write_out(given.output_file, result.patch, inputs, verbatim=True)
    elif given.paths == (_STDIN,) and fixing:
        write_out(given.output_file, result.changes[0].data if result.changes else data, inputs, verbatim=True)
    elif not given.fix_only:
        color = given.output_file is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        text = render(result, given.output_format, color=color, verbose=given.verbose, counts=given.statistics)
        write_out(given.output_file, text, inputs)
    if not given.quiet:
        with spoken_on(sys.stderr):
            for line in footer(result, styled, fixing, given.fix_only, given.verbose):
                to_stderr(line)
        every = (*result.items, *result.info)
        if not given.compiled and any(each.finding.code.startswith(KERNEL_CODES) for each in every):
            from transplt.proof.compiler.place import hint

            to_stderr(hint())


def _refusals(given: Check, stdin: bool) -> Iterator[tuple[bool, str]]:
    """Combinations of options, whether they were given, and why they are refused."""
    from transplt.project.report.formats import STATISTICS

    fix, diff, watch = given.fix, given.diff, given.watch
    written, updated = given.output_file is not None, given.update_baseline
    yield (
        given.fix_only and (written or given.statistics or diff),
        "--fix-only cannot be combined with --output-file, --statistics or --diff",
    )
    yield (
        updated and (given.baseline is None or fix),
        "--update-baseline needs --baseline FILE, and cannot be combined with --fix",
    )
    yield (
        given.statistics and given.output_format not in STATISTICS,
        f"--statistics has no form in {given.output_format}; it works with {', '.join(STATISTICS)}",
    )
    yield given.compiled and (stdin or fix or diff), "--compile cannot be combined with `-`, --fix or --diff"
    yield _STDIN in given.paths and not stdin, "`-` reads standard input: give no other path"
    yield stdin and given.since is not None, "--since cannot be combined with `-`"
    for name, value in (("--pick", given.pick), ("--add-ignores", given.add_ignores)):
        yield value is not None and (diff or watch or stdin), f"{name} cannot be combined with --diff, --watch or `-`"
        yield value is not None and not fix, f"{name} needs --fix"
    yield (
        given.show_files and (stdin or fix or diff or watch or updated),
        "--show-files cannot be combined with `-`, --fix, --diff, --watch or --update-baseline",
    )
    yield (
        watch and (stdin or diff or written or updated),
        "--watch cannot be combined with `-`, --diff, --output-file or --update-baseline",
    )


def _cache(reported: bool) -> Cache | None:
    """The user's cache; why there is none is `reported` or not."""
    from transplt.base.disk.cache_folder import Cache, NoCache
    from transplt.project.versions import versions_digest

    try:
        cache = Cache.of_user()
        if not versions_digest(cache):
            raise NoCache("the versions of the packages that read files are not known")
        return cache
    except NoCache as why:
        if reported:
            to_stderr(f"nothing is cached: {why}")
        return None


def _watch(given: Check, inputs: Sequence[Path], options: Options) -> int:
    """Does the same check again, each time on a clear screen where there is one. KeyboardInterrupt ends it."""
    from transplt.project.checking.watching import each_change

    for count in each_change(inputs, options):
        if sys.stdout.isatty():
            click.clear()
        try:
            _check(replace(given, watch=False))
        except (UsageError, CannotFinish) as error:
            to_stderr(f"Error: {error}")
        to_stderr(f"{time.strftime('%H:%M:%S')} watching {count} {'file' if count == 1 else 'files'}; Ctrl-C ends")
    return DONE


def _standard_input() -> bytes:
    from transplt.base.text.regular_file import SOURCE, read_stream

    try:
        return read_stream(sys.stdin.buffer, SOURCE)
    except OSError as error:
        raise UsageError(f"cannot read standard input: {reason(error)}") from error


def _styled(paths: Sequence[Path], isolated: bool) -> bool:
    """True when the settings of all the paths name a style."""
    from transplt.project.config import find_config

    real = [Path(os.path.realpath(path)) for path in paths]
    folders = [path if path.is_dir() else path.parent for path in real]
    return all(find_config(folder, isolated=isolated).style is not None for folder in folders)
