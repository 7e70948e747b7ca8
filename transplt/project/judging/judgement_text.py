"""A judgement as text, JSON, SARIF and as a page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import transplt
from transplt.base.disk.whole_folder import whole_folder
from transplt.base.errors import UsageError, shown
from transplt.base.render.cell import many, visible
from transplt.base.render.templates import asset, fill
from transplt.project.judging.judge import ROUND, Judgement, in_order
from transplt.project.judging.orders import written
from transplt.project.report.check_results import CheckedFinding
from transplt.project.report.formats.json_document import finding_table
from transplt.project.report.formats.sarif import render_sarif

FORMAT = 1
#: So many findings of one part, or of what is also changed, are shown to people; the JSON has all.
_SHOWN = 20
#: So many of what reading cannot decide, which is in the order in which it matters.
_TO_LOOK_AT = 10


def rendered(done: Judgement, name: str) -> bytes:
    """A judgement in one of the formats: text, json, sarif, html, badge."""
    if name == "html":
        return fill(
            "judge.html.j2", done=_table(replace(done, parts=in_order(done.parts))),
            undecided=[_finding(each) for each in _undecided(done)[:_TO_LOOK_AT]],
            css=asset("colors.css") + asset("report.css") + asset("proof.css"), script=asset("theme.js"),
        )  # fmt: skip
    if name in ("json", "badge"):
        return f"{json.dumps(_table(done) if name == 'json' else _badge(done), indent=1)}\n".encode()
    text = render_sarif(done.result) if name == "sarif" else _text(done)
    return text.encode("utf-8", "backslashreplace")


def _text(done: Judgement) -> str:
    lines = [f"transplt judge: {visible(done.sentence)}"]
    undecided = _undecided(done)
    for part in in_order(done.parts):
        said = f": {visible(part.sentence)}" * (part.sentence not in done.sentence)
        lines.append(f"  {part.title} ({part.mark.value}){said}")
        lines += [f"    {visible(line)}" for line in part.lines]
        lines += _places([each for each in part.findings if each.finding.open])
        if undecided and part.title in (ROUND, "the action"):
            lines += [f"  to look at ({len(undecided)}), no reason to refuse the port by itself:"]
            lines += _places(undecided, _TO_LOOK_AT)
    if done.also:
        lines += [f"  also changed ({len(done.also)}), but no reason to refuse the port:", *_places(done.also)]
    if done.orders and not done.action:
        orders = many(len(done.orders), "work order")
        lines.append(f"  what is left to do, by code and function: {orders} (--work-orders DIR writes them)")
        lines += [f"    {visible(each.id)}" for each in done.orders[:_SHOWN]]
    if done.unknown:
        lines += ["  not checked:", *(f"    {visible(each)}" for each in done.unknown)]
    return "\n".join(lines) + "\n"


def _undecided(done: Judgement) -> list[CheckedFinding]:
    """What reading cannot decide, what matters most first."""
    return [each for part in in_order(done.parts) for each in part.findings if not each.finding.open]


def _places(findings: Sequence[CheckedFinding], most: int = _SHOWN) -> list[str]:
    lines = []
    for each in findings[:most]:
        at = each.finding
        lines.append(f"    {visible(f'{at.path}:{at.span.line}: {at.code} {at.text}')}")
        lines += (f"      {visible(text)}" for _, text in each.lines if text.startswith(("- ", "+ ")))
    more = len(findings[most:])
    return [*lines, f"    ... and {more} more (--format json)"] if more else lines


def _table(done: Judgement) -> dict[str, Any]:
    """A judgement for programs: described in docs/judge.md."""
    return {
        "tool": "transplt",
        "version": transplt.__version__,
        "format": FORMAT,
        "accepted": done.accepted,
        "sentence": visible(done.sentence),
        "original": visible(done.original),
        "port": visible(done.port),
        "parts": [
            {
                "title": part.title,
                "mark": part.mark.value,
                "sentence": visible(part.sentence),
                "lines": [visible(each) for each in part.lines],
                "findings": [_finding(each) for each in part.findings],
            }
            for part in done.parts
        ],
        "also": [_finding(each) for each in done.also],
        "unknown": [visible(each) for each in done.unknown],
        "actions": [
            {"id": visible(each.id), "code": each.code, "path": visible(each.path), "function": each.scope or None}
            for each in done.orders
        ],
        "badge": _badge(done),
    }


def _badge(done: Judgement) -> dict[str, Any]:
    """What shields.io shows of a judgement (its endpoint badge)."""
    word = done.sentence.partition(":")[0] if done.action else done.word
    color = "green" if done.accepted else "lightgrey" if word in ("not judged", "not decided") else "red"
    return {"schemaVersion": 1, "label": "transplt judge", "message": word, "color": color}


def write_orders(done: Judgement, folder: Path) -> None:
    """The work orders of a judgement, a file each, in a folder that is new or empty. UsageError where it is neither."""
    if os.path.lexists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{shown(folder)} is not empty; --work-orders writes to a new folder")
    with whole_folder(folder) as made:
        for each in done.orders:
            path = made / each.file
            while path.exists():
                path = path.with_stem(f"{path.stem}-")
            path.write_bytes(written(each, done.original, done.port))


def _finding(each: CheckedFinding) -> dict[str, Any]:
    return {**finding_table(each), "text": "\n".join(visible(text) for _, text in each.lines[:3])}
