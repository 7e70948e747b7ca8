"""The files of a comparison, in a folder that is complete or absent."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transplt.base.disk.publish import publish, staging
from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.precision.compare import Comparison
from transplt.precision.first_line import place, sentence
from transplt.precision.page import render
from transplt.precision.rank_detail import Detail
from transplt.precision.table import Line, cells, csv_text, header

FORMATS = ("csv", "xlsx", "html", "json")
FORMAT = 1
#: What a folder may hold that is written anew.
_OURS = ("compare", "advisor_summary.txt", ".transplt")
#: A worksheet has no more.
_MOST_ROWS = 1_000_000


def check_target(out: Path, ours: tuple[str, ...] = _OURS) -> None:
    """UsageError where `out` is there and holds other files than those of a comparison, whose names begin so."""
    if not os.path.lexists(out):
        return
    if out.is_symlink() or not out.is_dir():
        raise UsageError(f"{shown(out)} is not a folder")
    if foreign := sorted(name for name in os.listdir(out) if not name.startswith(ours)):
        raise UsageError(f"{shown(out)} holds {shown(foreign[0])}, which is not from a comparison; choose another "
                         "folder")


def write(
    out: Path, found: Comparison, details: Sequence[Detail], formats: Sequence[str], rule: str, *, advice: bool,
    graph: str = "",
) -> None:  # fmt: skip
    """Writes the files of `formats` and the advice into `out`, which is replaced when a comparison wrote it."""
    check_target(out)
    target = Path(os.path.abspath(out))
    with staging(target) as stage:
        try:
            for detail in details:
                suffix = "" if len(details) == 1 else f"_step{detail.compared.step}_rank{detail.compared.rank}"
                for name, data in _files(found, detail, formats, rule, advice, graph):
                    (stage.folder / name.replace("compare", f"compare{suffix}", 1)).write_bytes(data)
                if advice and detail is details[0]:
                    (stage.folder / "advisor_summary.txt").write_text(str(detail.advice), encoding="utf-8")
        except OSError as error:
            raise CannotFinish(f"cannot write {shown(target)}: {reason(error)}") from error
        publish(stage, replace=True)


def _files(
    found: Comparison, detail: Detail, formats: Sequence[str], rule: str, advice: bool, graph: str
) -> list[tuple[str, bytes]]:
    made = []
    if "csv" in formats:
        made.append(("compare.csv", csv_text(detail.lines, rule, detail.stacks).encode("utf-8", "backslashreplace")))
    if "json" in formats:
        made.append(("compare.json", (json.dumps(document(found, detail, advice=advice), indent=1) + "\n").encode()))
    if "xlsx" in formats:
        from transplt.base.render.workbooks import Sheet, workbook

        rows = (cells(line, rule, detail.stacks) for line in detail.lines[:_MOST_ROWS])
        made.append(("compare.xlsx", workbook([Sheet("compare", header(rule), rows, frozen="B2")])))
    if "html" in formats:
        made.append(("compare.html", render(found, detail, advice=advice, graph=graph)))
    return made


def document(found: Comparison, detail: Detail, *, advice: bool = True) -> dict[str, Any]:
    """The comparison as JSON; numbers that JSON has not (nan, infinities) are null."""
    compared = []
    for each in found.compared:
        verdict = each.verdict
        judgement = verdict and {
            "kind": verdict.kind, "name": verdict.name, "how": verdict.how, "operator": verdict.match.row.name,
            "place": place(each.source),
        }  # fmt: skip
        figures = {"operators": each.operators, "differing": each.differing}
        compared.append({"step": each.step, "rank": each.rank, "verdict": judgement, **figures})
    return {
        "format": FORMAT,
        "sentence": sentence(found),
        "same": found.same,
        "notes": [*found.notes, *([found.noise] if found.noise else [])],
        "behind": {"covered": found.behind.covered, "not_compared": found.behind.not_compared},
        "compared": compared,
        "step": detail.compared.step,
        "rank": detail.compared.rank,
        "advice": str(detail.advice).splitlines() if advice else None,
        "ptdbg": detail.ptdbg and detail.ptdbg.npu_name,
        "rows": plain_rows(detail.lines),
    }


def plain_rows(lines: Sequence[Line]) -> list[dict[str, object]]:
    """The table as objects, without the stacks."""
    names = [name.lower().replace(" ", "_") for name in header("auto")]
    rows: list[dict[str, object]] = []
    for line in lines:
        values = cells(line, "auto", {})[:-1]
        known = [None if v == "" or (isinstance(v, float) and not math.isfinite(v)) else v for v in values]
        rows.append(dict(zip(names, known, strict=False)))
    return rows
