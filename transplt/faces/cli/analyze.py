"""`transplt analyze`: parses options, calls, renders, writes, returns the exit code."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.language import spoken_on, translated
from transplt.base.render.spelling import QUIET, formerly
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.faces.cli.command import (
    DONE,
    EXCLUDE,
    EXECUTOR,
    EXIT_ZERO,
    ISOLATED,
    JOBS,
    LANGUAGE,
    LEFT,
    RULES,
    TORCH_VERSION,
    Command,
    to_stderr,
)
from transplt.faces.cli.completing import FILE
from transplt.project.report.analysis_reports import DOCUMENT, RANKING
from transplt.proof.launch.shared_options import CardName, card_option
from transplt.rules.card_limits import documented_as, documented_cards

_FORMATS = ("table", "json", "csv")


def _documented(name: str) -> str:
    """The name that the documentation of torch_npu has for a card. ValueError for one that it does not tell apart."""
    found = documented_as(name)
    if found not in documented_cards():
        known = ", ".join(documented_cards())
        raise ValueError(f"the documentation of torch_npu does not mention {name}; it lists {known}")
    return found


_CARD = CardName(_documented)
_F = TypeVar("_F", bound=Callable[..., Any])


def card(function: _F) -> _F:
    """`--card` of an analysis, for the parameter `hardware`; it was called `--hardware`."""
    option = card_option(_CARD, "Target card; A2, A3 and 950DT have separate documentation.", "hardware")
    return option(formerly("--hardware", "--card", "hardware", type=_CARD)(function))


#: Folders in which projects keep their packages: what lies in them is imported without their name.
_LAYOUTS = ("src", "python", "lib")


@click.command(cls=Command)
@click.argument("paths", nargs=-1, type=FILE, required=True, metavar="PATH...")
@TORCH_VERSION
@card
@click.option("-o", "--output", "out", metavar="DIR", help="Write a workbook, CSV files and JSON to this folder.")
@click.option("--format", "form", type=click.Choice(_FORMATS), default="table", help="Output format (table).")
@click.option(
    "--library", metavar="DIR", multiple=True, help="A saved analysis (-o) of a library that the project imports."
)
@RULES
@EXCLUDE
@ISOLATED
@JOBS
@EXECUTOR
@EXIT_ZERO
@LANGUAGE
@QUIET
def analyze(
    paths: tuple[str, ...],
    *,
    out: str | None,
    form: str,
    library: tuple[str, ...],
    exit_zero: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """List the APIs and packages of a project that NPUs lack, limit, or run faster in another form.

    No file is changed. Several paths are listed in one table, the least work first.
    """
    from transplt.project.garbage_collection import collect_rarely

    collect_rarely()
    from transplt.project.options import Options, make_plan
    from transplt.project.report.analysis_reports import analysis_csv, analysis_json, analysis_text
    from transplt.project.report.analysis_summary import summarize
    from transplt.project.report.console import progress_bar
    from transplt.project.tree import analyse_tree

    names = tuple(sorted({pair for folder in library for pair in read_library(Path(folder)).items()}))
    target = Path(out) if out is not None else None
    if target is not None:
        check_target(target, [Path(path) for path in paths])
    summaries = []
    for path in paths:
        plan = make_plan(Options(source=path, analysis=True, library=names, **given))
        with progress_bar(not quiet) as progress:
            summaries.append(summarize(analyse_tree(plan, progress)))
    if target is not None:
        write(target, summaries)
    if not quiet:
        with spoken_on(sys.stdout):
            text = {"table": analysis_text, "json": analysis_json, "csv": analysis_csv}[form](summaries)
        click.echo(text, nl=False)
        with spoken_on(sys.stderr):
            for note in [note for summary in summaries for note in summary.result.notes]:
                to_stderr(translated(note))
        if target is not None:
            to_stderr(f"written to {shown(target)}")
    left = any(summary.effort.left or not summary.result.complete for summary in summaries)
    return LEFT if left and not exit_zero else DONE


def read_library(folder: Path) -> dict[str, str]:
    """Names of a library that need a compiled extension, from its saved analysis. UsageError when that is none."""
    path = folder / DOCUMENT if folder.is_dir() else folder
    try:
        table = json.loads(read_regular(path, RECORDS))
        names = {str(name): str(extension) for name, extension in table["extensions"].items()}
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{shown(path)} is not an analysis by transplt; make one with transplt analyze -o") from error
    for name, extension in list(names.items()):
        first, _, rest = name.partition(".")
        if first in _LAYOUTS and rest:
            names.setdefault(rest, extension)
    return names


def check_target(target: Path, sources: Sequence[Path]) -> None:
    """UsageError when a folder holds something else than an analysis, or lies inside of what is analysed."""
    real = Path(os.path.realpath(target))
    for source in sources:
        inside = Path(os.path.realpath(source))
        if inside.is_dir() and (real == inside or inside in real.parents):
            raise UsageError(f"{shown(target)} is inside {shown(source)}, which is never changed")
    if target.exists() and not target.is_dir():
        raise UsageError(f"{shown(target)} is not a folder")
    ours = (target / DOCUMENT).is_file() or (target / RANKING).is_file()
    if target.is_dir() and not ours and any(target.iterdir()):
        raise UsageError(f"{shown(target)} is not empty and has no analysis by transplt")


def write(target: Path, summaries: Sequence[Any]) -> None:
    """Writes the reports: into `target`, or for several projects into a folder each below it, with the ranking.

    CannotFinish when the system refuses; a folder that held nothing holds nothing then.
    """
    from transplt.project.report.analysis_reports import ranking_csv

    there = target.is_dir()
    empty = not there or not any(target.iterdir())
    try:
        if len(summaries) == 1:
            _write_one(target, summaries[0])
            return
        target.mkdir(parents=True, exist_ok=True)
        names: set[str] = set()
        for summary in summaries:
            name, count = summary.result.name, 2
            while name in names:
                name, count = f"{summary.result.name}_{count}", count + 1
            names.add(name)
            _write_one(target / name, summary)
        (target / RANKING).write_bytes(ranking_csv(summaries))
    except OSError as error:
        if empty:
            shutil.rmtree(target, ignore_errors=True)
            if there:
                target.mkdir(exist_ok=True)
        raise CannotFinish(f"cannot write {shown(target)}: {reason(error)}") from error


def _write_one(folder: Path, summary: Any) -> None:
    from transplt.project.report.analysis_reports import analysis_json, csv_files
    from transplt.project.report.unsupported_op import render_unsupported

    folder.mkdir(parents=True, exist_ok=True)
    source = summary.result.source if summary.result.source.is_dir() else summary.result.source.parent
    try:
        links: str | None = Path(os.path.relpath(source, os.path.realpath(folder))).as_posix() + "/"
    except ValueError:
        links = None  # another drive
    (folder / "unsupported_op.xlsx").write_bytes(render_unsupported(summary.result, links))
    for name, data in csv_files(summary).items():
        (folder / name).write_bytes(data)
    (folder / DOCUMENT).write_text(analysis_json([summary]), encoding="utf-8", newline="\n")
