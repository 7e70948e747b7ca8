"""`transplt survey`: parses options, calls, renders, writes, returns the exit code."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from transplt.base.errors import UsageError, shown
from transplt.faces.cli.analyze import card
from transplt.faces.cli.command import DONE, EXIT_ZERO, ISOLATED, LEFT, RULES, Command, to_stderr
from transplt.faces.cli.completing import FILE
from transplt.render.spelling import QUIET


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("paths", nargs=-1, type=FILE, metavar="[PATH|GIT_URL]...")
@click.option(
    "-o", "--output", "out", required=True, metavar="DIR", help="Folder of the survey; an earlier one is continued."
)
@click.option("--list", "lists", type=FILE, multiple=True, metavar="FILE", help="A file with one path or URL per line.")
@click.option(
    "--executor",
    default="processes",
    show_default=True,
    metavar="WHERE",
    help="inline, processes[:N], dask://HOST:PORT, dask://local[:N], ray://HOST:PORT, ray://local[:N].",
)
@click.option("--since", metavar="DIR", help="Compare with an earlier survey.")
@click.option("--parquet", is_flag=True, help="Also write survey.parquet (needs pyarrow).")
@click.option(
    "--time-limit",
    default=600,
    show_default=True,
    type=click.IntRange(1),
    help="Time limit per repository, in seconds.",
)
@click.option(
    "--memory-limit",
    default=4096,
    show_default=True,
    type=click.IntRange(256),
    help="Memory limit per repository, in MB.",
)
@click.option("--size-limit", default=2048, show_default=True, type=click.IntRange(1), help="Limit for the files of "
"a repository, in MB.")
@click.option("--torch-version", metavar="X.Y", help="Target version of torch (default: what each project pins).")
@card
@RULES
@click.option("--exclude", metavar="GLOB", multiple=True, help="Skip paths that match GLOB.")
@ISOLATED
@EXIT_ZERO
@QUIET
def survey(
    paths: tuple[str, ...],
    *,
    out: str,
    lists: tuple[str, ...],
    executor: str,
    since: str | None,
    parquet: bool,
    time_limit: int,
    memory_limit: int,
    size_limit: int,
    rules: tuple[str, ...],
    exclude: tuple[str, ...],
    exit_zero: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Analyze many repositories and rank what blocks most of them.

    Takes folders, and repositories that git can clone by https, ssh or file. No input is changed. Results are kept in
    DIR: another call analyzes only what is missing or has changed. A repository that cannot be analyzed is reported,
    and the others go on.
    """
    from transplt.project.executors import parse_executor
    from transplt.project.survey.page import survey_page
    from transplt.project.survey.sources import read_list, sources_of
    from transplt.project.survey.survey import DOCUMENT, read_document, write_reports
    from transplt.project.survey.survey import survey as carry_out
    from transplt.project.survey.survey_text import survey_text
    from transplt.project.survey.table import parquet_bytes
    from transplt.project.survey.task import Task
    from transplt.project.survey.trend import trend
    from transplt.project.survey.workbook import survey_workbook

    where = parse_executor(executor)
    sources = sources_of([*paths, *(line for each in lists for line in read_list(Path(each)))])
    if not sources:
        raise UsageError("nothing to survey: give folders or URLs, or a --list of them")
    before = read_document(Path(since)) if since is not None else None
    if parquet:
        parquet_bytes([], [])  # absent pyarrow is reported before the work
    asked = Task(
        name="", source="", rules=tuple(os.path.abspath(each) for each in rules), exclude=exclude, seconds=time_limit,
        memory_mb=memory_limit, most_mb=size_limit, **given,
    )  # fmt: skip
    folder = Path(out)
    done = carry_out(sources, folder, where, asked, lambda line: None if quiet else to_stderr(line))
    value = done.document
    if before is not None:
        value["trend"] = trend(before, value)
    files = {
        DOCUMENT: (json.dumps(value, indent=1, ensure_ascii=True, sort_keys=True) + "\n").encode("ascii"),
        "report.html": survey_page(value),
        "survey.xlsx": survey_workbook(value),
    }
    if parquet:
        files["survey.parquet"] = parquet_bytes(value["repositories"], value["failed"])
    write_reports(folder, files)
    if not quiet:
        click.echo(survey_text(value), nl=False)
        to_stderr(f"{done.made} analysed now, {done.known} unchanged; written to {shown(folder)}")
    total = value["total"]
    left = total["left"] or total["failed"] or not all(row["complete"] for row in value["repositories"])
    return LEFT if left and not exit_zero else DONE
