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
@click.option("-o", "--output", "out", required=True, metavar="DIR", help="The folder of the survey; it is resumed.")
@click.option("--list", "lists", type=FILE, multiple=True, metavar="FILE", help="Paths and URLs, one a line.")
@click.option(
    "--executor",
    default="processes",
    show_default=True,
    metavar="WHERE",
    help="inline, processes[:N], dask://HOST:PORT, dask://local[:N], ray://HOST:PORT, ray://local[:N].",
)
@click.option("--since", metavar="DIR", help="An earlier survey, to say what changed.")
@click.option("--parquet", is_flag=True, help="Write survey.parquet too (needs pyarrow).")
@click.option("--time-limit", default=600, show_default=True, type=click.IntRange(1), help="Seconds a repository.")
@click.option("--memory-limit", default=4096, show_default=True, type=click.IntRange(256), help="MB a repository.")
@click.option("--size-limit", default=2048, show_default=True, type=click.IntRange(1), help="MB of its files.")
@click.option("--torch-version", metavar="X.Y", help="The torch to look at (what each project pins).")
@card
@RULES
@click.option("--exclude", metavar="GLOB", multiple=True, help="Leave these paths out.")
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
    """Analyse many repositories, and say what would unblock most of them.

    Folders, and repositories that git can clone by https, ssh or file. No input is changed. What is done is kept in
    DIR: called again, only what is missing or has changed is analysed, and a repository that cannot be analysed costs
    only itself.
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
        raise UsageError("nothing to survey: name folders or URLs, or a --list that has some")
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
