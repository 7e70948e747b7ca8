"""`transplt survey`: parses options, calls, renders, writes, returns the exit code."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.options import argument, flag, option, shared, taking
from transplt.base.render.spelling import QUIET
from transplt.faces.cli.analyze import card
from transplt.faces.cli.command import DONE, EXCLUDE, EXIT_ZERO, ISOLATED, LEFT, RULES, Command, to_stderr
from transplt.faces.cli.completing import FILE


@dataclass(frozen=True)
class Survey:
    """Which repositories are analyzed, within which limits, and what is written."""

    paths: tuple[str, ...] = argument(nargs=-1, type=FILE, metavar="[PATH|GIT_URL]...")
    out: str = option(
        "Folder of the survey; an earlier one is continued.", "-o", "--output", required=True, metavar="DIR"
    )
    lists: tuple[str, ...] = option(
        "A file with one path or URL per line.", "--list", type=FILE, multiple=True, metavar="FILE"
    )
    executor: str = option(
        "inline, processes[:N], dask://HOST:PORT, dask://local[:N], ray://HOST:PORT, ray://local[:N].",
        default="processes", show_default=True, metavar="WHERE"
    )
    since: str | None = option("Compare with an earlier survey.", metavar="DIR")
    parquet: bool = flag("Also write survey.parquet (needs pyarrow).")
    time_limit: int = option(
        "Time limit per repository, in seconds.", default=600, show_default=True, type=click.IntRange(1)
    )
    memory_limit: int = option(
        "Memory limit per repository, in MB.", default=4096, show_default=True, type=click.IntRange(256)
    )
    size_limit: int = option(
        "Limit for the files of a repository, in MB.", default=2048, show_default=True, type=click.IntRange(1)
    )
    torch_version: str | None = option("Target torch (default: the newest that each project allows).", metavar="X.Y")
    hardware: str | None = shared(card)
    rules: tuple[str, ...] = shared(RULES)
    exclude: tuple[str, ...] = shared(EXCLUDE)
    isolated: bool = shared(ISOLATED)
    exit_zero: bool = shared(EXIT_ZERO)
    quiet: bool = shared(QUIET)


@click.command(cls=Command)
@taking(Survey)
def survey(given: Survey) -> int:
    """Analyze many repositories and rank what blocks most of them.

    Takes folders, and repositories that git can clone by https, ssh or file. No input is changed. Results are kept in
    DIR: another call analyzes only what is missing or has changed. A repository that cannot be analyzed is reported,
    and the others go on.
    """
    from transplt.project.executors import parse_executor
    from transplt.project.survey.page import survey_page
    from transplt.project.survey.sources import projects_in, read_list, sources_of
    from transplt.project.survey.survey import DOCUMENT, read_document, write_reports
    from transplt.project.survey.survey import survey as carry_out
    from transplt.project.survey.survey_text import survey_text
    from transplt.project.survey.table import parquet_bytes
    from transplt.project.survey.task import Task
    from transplt.project.survey.trend import trend
    from transplt.project.survey.workbook import survey_workbook

    where = parse_executor(given.executor)
    sources = sources_of([*given.paths, *(line for each in given.lists for line in read_list(Path(each)))])
    if not sources:
        raise UsageError("nothing to survey: give folders or URLs, or a --list of them")
    before = read_document(Path(given.since)) if given.since is not None else None
    if given.parquet:
        parquet_bytes([], [])  # absent pyarrow is reported before the work
    asked = Task(
        name="", source="", rules=tuple(os.path.abspath(each) for each in given.rules), exclude=given.exclude,
        seconds=given.time_limit, memory_mb=given.memory_limit, most_mb=given.size_limit,
        torch_version=given.torch_version, hardware=given.hardware, isolated=given.isolated,
    )  # fmt: skip
    folder = Path(given.out)
    done = carry_out(sources, folder, where, asked, lambda line: None if given.quiet else to_stderr(line))
    value = done.document
    if before is not None:
        value["trend"] = trend(before, value)
    files = {
        DOCUMENT: (json.dumps(value, indent=1, ensure_ascii=True, sort_keys=True) + "\n").encode("ascii"),
        "report.html": survey_page(value),
        "survey.xlsx": survey_workbook(value),
    }
    if given.parquet:
        files["survey.parquet"] = parquet_bytes(value["repositories"], value["failed"])
    write_reports(folder, files)
    for each in () if given.quiet else sources:
        if not each.is_url and len(inner := projects_in(Path(each.text))) > 1:
            to_stderr(f"{each.shown} counts as one repository; to count its {len(inner)} folders apart: {each.shown}/*")
    if not given.quiet:
        click.echo(survey_text(value), nl=False)
        to_stderr(f"reports in {shown(folder)} ({done.made} analyzed now, {done.known} unchanged)")
    total = value["total"]
    left = total["left"] or total["failed"] or not all(row["complete"] for row in value["repositories"])
    return LEFT if left and not given.exit_zero else DONE
