"""Renderers of the record of a run."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from transplt.base.disk.manifest import CHANGE_LIST, LOG, PAGE, PAGES, TOKENS, UNSUPPORTED
from transplt.base.disk.mirror import write_file, write_pieces
from transplt.project.report.migration_record import RunResult


def write_reports(
    result: RunResult, folder: Path, taken: Collection[str], page: bool = False
) -> tuple[RunResult, dict[str, str]]:
    """Writes the reports to the top of `folder`; returns the result that names them, and their sha256 by path.

    With `page` there is an HTML page too, for which the records of the files must hold their patches, and a folder with
    the pages of files whose diffs are large. A migration with tunings gets a script with settings of the host.

    A name that is taken by a file of the project is left to it: the report is called transplt_<name> then.
    WriteError or OSError when the system refuses.
    """
    from transplt.project.report.change_list import render_change_list
    from transplt.project.report.host_script import HOST_SCRIPT, render_host_script
    from transplt.project.report.log import render_log
    from transplt.project.report.tokens import render_tokens
    from transplt.project.report.unsupported_op import render_unsupported

    host = [HOST_SCRIPT] if result.settings.tune else []
    wanted = (CHANGE_LIST, TOKENS, UNSUPPORTED, LOG, *([PAGE] if page else []), *host)
    names = {name: _free_name(name, taken) for name in wanted}
    result = replace(result, reports=names)
    contents = {
        CHANGE_LIST: render_change_list(result),
        UNSUPPORTED: render_unsupported(result, None if result.written == "reports" else ""),
        LOG: render_log(result),
    }
    if host:
        contents[HOST_SCRIPT] = render_host_script()
    hashes = {names[name]: write_file(str(folder), names[name], data, 0o644) for name, data in contents.items()}
    if page:
        hashes |= _write_page(result, folder, taken)
    # A large project has some 100,000 rows.
    hashes[names[TOKENS]] = write_pieces(str(folder), names[TOKENS], render_tokens(result), 0o644)
    return result, hashes


def prepare_reports(page: bool) -> None:
    """What `write_reports` needs in any case, for whoever waits for the files meanwhile."""
    import transplt.base.render.workbooks
    import transplt.project.report.change_list
    import transplt.project.report.log
    import transplt.project.report.tokens
    import transplt.project.report.unsupported_op  # noqa: F401

    if page:
        from transplt.base.render.templates import prepare
        from transplt.project.report.html import TEMPLATE

        prepare(TEMPLATE)


def _write_page(result: RunResult, folder: Path, taken: Collection[str]) -> dict[str, str]:
    """The page and those of single files: their sha256 by path."""
    from transplt.project.report.html import render_report

    name = result.reports[PAGE]
    report = render_report(result, _free_name(PAGES, taken))
    hashes = {name: write_file(str(folder), name, report.page, 0o644)}
    for path, data in report.pages(name):
        os.makedirs((folder / path).parent, mode=0o755, exist_ok=True)
        hashes[path] = write_file(str(folder), path, data, 0o644)
    return hashes


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name = f"transplt_{name}"
    return name
