"""What a migration tells its user: renderers of `RunResult`, which decide nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from transplt.disk.mirror import write_file
from transplt.disk.records import RunResult

CHANGE_LIST = "change_list.csv"
UNSUPPORTED = "unsupported_op.xlsx"
LOG = "msFmkTranspltlog.txt"
PAGE = "report.html"


def write_reports(
    result: RunResult, folder: Path, taken: Collection[str], page: bool = False
) -> tuple[RunResult, dict[str, str]]:
    """Writes the reports to the top of `folder`; returns the result that names them, and their sha256 by path.

    With `page` there is an HTML page too, for which the records of the files must hold their patches.

    A name that is taken by a file of the project is left to it: the report is called transplt_<name> then.
    WriteError or OSError when the system refuses.
    """
    from transplt.report.change_list import render_change_list
    from transplt.report.log import render_log
    from transplt.report.unsupported_op import render_unsupported

    names = {name: _free_name(name, taken) for name in (CHANGE_LIST, UNSUPPORTED, LOG, *([PAGE] if page else []))}
    result = replace(result, reports=names)
    contents = {
        CHANGE_LIST: render_change_list(result),
        UNSUPPORTED: render_unsupported(result, folder, None if result.written == "reports" else ""),
        LOG: render_log(result),
    }
    if page:
        from transplt.report.html import render_html

        contents[PAGE] = render_html(result)
    for name, data in contents.items():
        write_file(str(folder), names[name], data, 0o644)
    return result, {names[name]: hashlib.sha256(data).hexdigest() for name, data in contents.items()}


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name = f"transplt_{name}"
    return name
