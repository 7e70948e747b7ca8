"""A judgement as text, JSON, SARIF and as a page."""

from __future__ import annotations

import json
from typing import Any

import transplt
from transplt.base.render.cell import visible
from transplt.base.render.templates import asset, fill
from transplt.project.judging.judge import Judgement
from transplt.project.report.check_results import CheckedFinding
from transplt.project.report.formats.json_document import finding_table
from transplt.project.report.formats.sarif import render_sarif

FORMAT = 1
#: So many findings of one part, or of what is also changed, are shown to people; the JSON has all.
_SHOWN = 20


def rendered(done: Judgement, name: str) -> bytes:
    """A judgement in one of the formats: text, json, sarif, html."""
    if name == "html":
        return fill(
            "judge.html.j2", done=_table(done), css=asset("colors.css") + asset("report.css") + asset("proof.css"),
            script=asset("theme.js"),
        )  # fmt: skip
    if name == "json":
        return f"{json.dumps(_table(done), indent=1)}\n".encode()
    text = render_sarif(done.result) if name == "sarif" else _text(done)
    return text.encode("utf-8", "backslashreplace")


def _text(done: Judgement) -> str:
    lines = [f"transplt judge: {visible(done.sentence)}"]
    for part in done.parts:
        lines.append(f"  {part.title}: {part.mark.value}: {visible(part.sentence)}")
        lines += [f"    {visible(line)}" for line in part.lines]
        lines += _places(part.findings)
    if done.also:
        lines += [f"  also changed ({len(done.also)}), which does not speak against it", *_places(done.also)]
    lines += ["  what this cannot know", *(f"    {visible(each)}" for each in done.unknown)]
    return "\n".join(lines) + "\n"


def _places(findings: tuple[CheckedFinding, ...]) -> list[str]:
    shown = [each.finding for each in findings[:_SHOWN]]
    lines = [f"    {visible(f'{each.path}:{each.span.line}: {each.code} {each.text}')}" for each in shown]
    more = len(findings) - len(shown)
    return [*lines, f"    ... and {more} more (--format json)"] if more else lines


def _table(done: Judgement) -> dict[str, Any]:
    """A judgement for programs: described in docs/judge.md."""
    word = "accepted" if done.accepted else "not accepted"
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
        "badge": {
            "schemaVersion": 1, "label": "transplt judge", "message": word, "color": "green" if done.accepted else "red"
        },
    }  # fmt: skip


def _finding(each: CheckedFinding) -> dict[str, Any]:
    return {**finding_table(each), "text": "\n".join(visible(text) for _, text in each.lines[:3])}
