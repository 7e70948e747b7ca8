"""`transplt check`: parses options, calls, renders, returns the exit code."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.language import spoken_on
from transplt.faces.cli.command import (
    CODEMODS,
    DONE,
    EXIT_ZERO,
    FIXERS,
    ISOLATED,
    JOBS,
    LANGUAGE,
    RULES,
    Command,
    discard_stdout,
    to_stderr,
)
from transplt.faces.cli.completing import FILE
from transplt.render.cell import visible
from transplt.render.spelling import QUIET, formerly

if TYPE_CHECKING:
    from transplt.disk.cache_folder import Cache
    from transplt.project.options import Options
    from transplt.report.checked import NumberedEdit

#: In `FORMATS` of transplt.report.formats, named here so that --help imports nothing.
_FORMATS = ("text", "concise", "json", "json-lines", "github", "gitlab", "sarif", "junit")
_STDIN = "-"


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("paths", nargs=-1, type=FILE, metavar="[PATHS]...")
@click.option("--fix", is_flag=True, help="Apply the safe edits in place (with `-`: print the result).")
@click.option("--fix-only", is_flag=True, help="Like --fix, but print no remaining findings and exit with 0.")
@click.option(
    "--unsafe-fixes", is_flag=True, default=None, help="Also apply edits that may change what the program does."
)
@click.option("--style", type=click.Choice(("npu", "portable")), help="Edit for NPUs only, or keep CUDA working too.")
@click.option("--texts", is_flag=True, default=None, help="Also edit messages and help texts.")
@click.option("--docs", is_flag=True, default=None, help="Also edit commands and code in documents (.md, .rst).")
@click.option(
    "--torch-npu-import", type=click.Choice(("auto", "each-file", "entry")), help="Where to put `import torch_npu` "
    "(auto: depends on torch)."
)
@click.option("--pick", metavar="NUMBERS", help="With --fix: apply only these edits of --diff (1,3-5).")
@click.option("--add-ignores", metavar="REASON", help="With --fix: add an ignore comment for each remaining finding.")
@click.option("--allow-dirty", is_flag=True, help="With --fix: edit even if git has uncommitted changes.")
@click.option("--diff", is_flag=True, help="Print the edits as a patch; change nothing.")
@click.option("--watch", is_flag=True, help="Check again when a file changes, until Ctrl-C.")
@click.option("--since", metavar="REF", help="Only report lines changed since this commit (main, HEAD~1).")
@click.option("--baseline", type=FILE, metavar="FILE", help="Ignore the findings listed in this file.")
@click.option("--update-baseline", is_flag=True, help="Write all findings to the baseline file and exit with 0.")
@click.option("--select", metavar="CODES", multiple=True, help="Only report these codes or prefixes (NPU2,NPU501).")
@click.option("--ignore", metavar="CODES", multiple=True, help="Do not report these codes or prefixes.")
@click.option(
    "--format", "output_format", type=click.Choice(_FORMATS), default="text", help="Output format (text)."
)
@formerly("--output-format", "--format", "output_format", type=click.Choice(_FORMATS))
@click.option("--output-file", type=FILE, metavar="FILE", help="Write the findings to this file instead of stdout.")
@click.option("--show-files", is_flag=True, help="Only list the files that would be checked.")
@click.option("--statistics", is_flag=True, help="Count the findings of each code.")
@click.option(
    "--stdin-filename", type=FILE, metavar="PATH", default="stdin.py", help="The path to assume for the text of `-`."
)
@RULES
@FIXERS
@CODEMODS
@click.option("-sim", "--similar", is_flag=True, default=None, help="Replace some unsupported APIs with similar ones.")
@click.option("--torch-version", metavar="X.Y", help="Target version of torch (default: what the project pins).")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Skip paths that match GLOB.")
@ISOLATED
@JOBS
@EXIT_ZERO
@LANGUAGE
@click.option("--no-cache", is_flag=True, envvar="TRANSPLT_NO_CACHE", help="Do not read or write the cache.")
@click.option("-v", "--verbose", is_flag=True, help="Print more details.")
@QUIET
def check(
    paths: tuple[str, ...],
    *,
    fix: bool,
    fix_only: bool,
    pick: str | None,
    add_ignores: str | None,
    allow_dirty: bool,
    diff: bool,
    watch: bool,
    since: str | None,
    baseline: str | None,
    update_baseline: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    output_format: str,
    output_file: str | None,
    show_files: bool,
    statistics: bool,
    stdin_filename: str,
    exit_zero: bool,
    no_cache: bool,
    verbose: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """List the code in PATHS that depends on CUDA (`-`: standard input; default: the current folder).

    Exits with 1 if something is left to do. No file is changed without --fix.
    """
    from transplt.project.collector import collect_rarely

    collect_rarely()
    from transplt.project.checking.check_run import check_paths, check_text
    from transplt.project.checking.codes import parse_codes, switched_off
    from transplt.project.options import Options
    from transplt.report.console import progress_bar
    from transplt.report.formats import STATISTICS, render
    from transplt.report.formats.findings_text import footer

    fix, exit_zero = fix or fix_only, exit_zero or fix_only
    if fix_only and (output_file is not None or statistics or diff):
        raise UsageError("--fix-only cannot be combined with --output-file, --statistics or --diff")
    if update_baseline and (baseline is None or fix):
        raise UsageError("--update-baseline needs --baseline FILE, and cannot be combined with --fix")
    if statistics and output_format not in STATISTICS:
        raise UsageError(f"--statistics has no form in {output_format}; it goes with {', '.join(STATISTICS)}")
    stdin = paths == (_STDIN,)
    if _STDIN in paths and not stdin:
        raise UsageError("`-` reads standard input: give no other path")
    if stdin and since is not None:
        raise UsageError("--since cannot be combined with `-`")
    for name in [name for name, value in (("--pick", pick), ("--add-ignores", add_ignores)) if value is not None]:
        if diff or watch or stdin:
            raise UsageError(f"{name} cannot be combined with --diff, --watch or `-`")
        if not fix:
            raise UsageError(f"{name} needs --fix")
    options, fixing = Options(**given), fix and not diff
    inputs = [Path(path) for path in paths or (".",)]
    if show_files:
        from transplt.project.checking.check_run import files_in

        if stdin or fix or diff or watch or update_baseline:
            raise UsageError("--show-files cannot be combined with `-`, --fix, --diff, --watch or "
                             "--update-baseline")  # fmt: skip
        names = files_in(inputs, options, since)
        _write(output_file, _encoded("".join(f"{visible(name)}\n" for name in names)), inputs)
        return DONE
    if watch:
        if stdin or diff or output_file is not None or update_baseline:
            raise UsageError("--watch cannot be combined with `-`, --diff, "
                             "--output-file or --update-baseline")  # fmt: skip
        return _watch(inputs, options)
    styled = options.style is not None or _styled([Path(stdin_filename)] if stdin else inputs, options.isolated)
    if fixing and not styled:
        raise UsageError(
            "--fix needs a style: use --style npu (for NPUs only) or --style portable (CUDA keeps "
            'working), or set style = "npu" in [tool.transplt] of pyproject.toml'
        )
    ignores = switched_off(parse_codes(select, "--select"), parse_codes(ignore, "--ignore"))
    data = _standard_input() if stdin else b""
    if stdin:
        result = check_text(data, stdin_filename, options, ignores=ignores, fix=fix, diff=diff)
    else:
        with progress_bar(not quiet) as progress:
            picked: list[NumberedEdit] | None = None
            edits: tuple[NumberedEdit, ...] = ()
            if pick is not None:
                from transplt.project.checking.picking import picked_edits

                edits = check_paths(inputs, options, ignores=ignores, diff=True, since=since, progress=progress).edits
                picked = picked_edits(pick, edits)
            result = check_paths(
                inputs, options, ignores=ignores, fix=fixing, diff=diff, since=since, picked=picked, progress=progress,
                cache=None if no_cache else _cache(verbose and not quiet),
            )  # fmt: skip
        if picked is not None:
            from transplt.project.checking.picking import said_of

            result = replace(result, notes=(*result.notes, *said_of(picked, edits, result)))
    known = None
    if baseline is not None:
        from transplt.project.checking.baseline import mark_known, read_baseline, write_baseline

        if update_baseline:
            write_baseline(Path(baseline), result.items, inputs)
            if not quiet:
                to_stderr(f"{len(result.items)} findings written to {shown(baseline)}")
            return DONE
        known = read_baseline(Path(baseline))
        result = mark_known(result, known)
    if add_ignores is not None:
        from transplt.project.checking.added_ignores import reason_of, with_comments

        result = with_comments(result, reason_of(add_ignores))
    if fixing and not stdin and result.changes:
        from transplt.project.checking.in_place import refuse_uncommitted, write_changes

        if not allow_dirty:
            refuse_uncommitted(result.changes)
        result = replace(result, notes=(*result.notes, *write_changes(result.changes)))
        if add_ignores is not None:  # what is left now is what the comments do not hold for
            again = check_paths(inputs, options, ignores=ignores, since=since)
            again = mark_known(again, known) if known is not None else again
            result = replace(again, changes=result.changes, notes=result.notes)
    if diff:
        _write(output_file, result.patch, inputs)
    elif stdin and fixing:
        _write(output_file, result.changes[0].data if result.changes else data, inputs)
    elif not fix_only:
        color = output_file is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        text = render(result, output_format, color=color, verbose=verbose, counts=statistics)
        _write(output_file, _encoded(text), inputs)
    if not quiet:
        with spoken_on(sys.stderr):
            for line in footer(result, styled, fixing, fix_only, verbose):
                to_stderr(line)
    return DONE if exit_zero else result.exit_code


def _cache(reported: bool) -> Cache | None:
    """The user's cache; why there is none is `reported` or not."""
    from transplt.disk.cache_folder import Cache, NoCache
    from transplt.project.versions import versions_digest

    try:
        cache = Cache.of_user()
        if not versions_digest(cache):
            raise NoCache("the versions of the packages that read files cannot be told")
        return cache
    except NoCache as why:
        if reported:
            to_stderr(f"nothing is cached: {why}")
        return None


def _watch(inputs: Sequence[Path], options: Options) -> int:
    """Does the same check again, each time on a clear screen where there is one. KeyboardInterrupt ends it."""
    from transplt.project.checking.watching import each_change

    context = click.get_current_context()
    for count in each_change(inputs, options):
        if sys.stdout.isatty():
            click.clear()
        try:
            context.invoke(check, **{**context.params, "watch": False})
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


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _write(name: str | None, data: bytes, inputs: Sequence[Path]) -> None:
    try:
        if name is not None:
            from transplt.disk.replace import write_asked_for

            write_asked_for(name, data, inputs)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()  # who reads it has seen enough
    except OSError as error:
        if name is None:
            discard_stdout()
        raise CannotFinish(f"cannot write standard output: {reason(error)}") from error
