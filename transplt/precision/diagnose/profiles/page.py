"""A profile as one page that needs no network: parts of the time, by kind, by operator, by line, and what to do."""

from __future__ import annotations

from typing import Any

import transplt
from transplt.base.render.cell import shortened, visible
from transplt.base.render.templates import asset, fill
from transplt.precision.diagnose.profiles.against import Against, headline, remarks_of, sections
from transplt.precision.diagnose.profiles.findings import Found, findings_of, findings_of_logs
from transplt.precision.diagnose.profiles.op_info import OpInfo
from transplt.precision.diagnose.profiles.profile import Profile
from transplt.precision.diagnose.profiles.reading import Reading
from transplt.precision.diagnose.profiles.report import costs, line_text, lines_by_time, parts_of
from transplt.precision.diagnose.profiles.units import ms, share_of
from transplt.precision.diagnose.stacks import Project
from transplt.rules.pages import load

_MOST_OPERATORS, _MOST_LINES, _MOST_PROFILES, _MOST_TEXT = 200, 100, 16, 300
_PARTS = ("computing", "communication", "idle")


def render(reading: Reading, project: Project | None, beside: Against | None = None) -> bytes:
    """The bytes of the page, UTF-8; with what stands `beside`, a profile of a GPU."""
    names = [visible(each.name) for each in reading.profiles]
    return fill(
        "profile.html.j2",
        name=names[0] if len(names) == 1 else f"{len(names)} runs" if names else "host logs",
        version=transplt.__version__,
        profiles=[_profile(each, project) for each in reading.profiles[:_MOST_PROFILES]],
        logs=None if reading.logs is None else _logs(reading.logs, project),
        against=beside and {"name": headline(beside), "remarks": remarks_of(beside), "sections": [*sections(beside)]},
        css=asset("colors.css") + asset("report.css") + asset("profile.css"),
        script=asset("theme.js"),
    )


def _profile(profile: Profile, project: Project | None) -> dict[str, Any]:
    card, whole, operators, kinds = profile.card, profile.whole, profile.dearest(), profile.by_kind()
    most = max((total.us for total in kinds.values()), default=0.0)
    tiles = [
        (f"{profile.counted}s", f"{sum(each.total.count for each in operators):,}"),
        (f"time of {profile.counted}s", ms(card)),
        *([("time", ms(whole))] if whole else []),
    ]
    return {
        "name": visible(profile.name),
        "read": ", ".join(map(visible, profile.read)),
        "remarks": [_cut(each) for each in profile.remarks[:10]],
        "tiles": [{"name": name, "text": text} for name, text in tiles],
        "parts": _parts(profile),
        "kinds": [
            {"name": kind, "width": _width(total.us, most), "time": ms(total.us), "share": share_of(total.us, card),
             "calls": total.count}
            for kind, total in kinds.items()
        ],
        "operators": [
            {"name": _cut(each.type), "width": _width(each.total.us, operators[0].total.us), "time": ms(each.total.us),
             "share": share_of(each.total.us, card), "calls": each.total.count, "mean": ms(each.total.mean),
             "shapes": len(each.shapes) or "", "kind": each.kind, "core": _cut(each.core)}
            for each in operators[:_MOST_OPERATORS]
        ],
        "more": max(len(operators) - _MOST_OPERATORS, 0),
        "lines": [
            {"line": _cut(line), "device": ms(device), "host": ms(host), "operators": _cut(called)}
            for line, device, host, called in lines_by_time(profile)[:_MOST_LINES]
        ],
        "findings": [_finding(each, project) for each in findings_of(profile)],
    }  # fmt: skip


def _parts(profile: Profile) -> list[dict[str, Any]]:
    rows, at = [], 0.0
    for kind, (name, us) in zip(_PARTS, parts_of(profile.steps), strict=True):
        width = _width(us, profile.whole)
        rows.append(
            {"kind": kind, "name": name, "x": at, "width": width, "text": ms(us), "share": share_of(us, profile.whole)}
        )
        at = round(at + width, 3)
    return rows if profile.whole else []


def _finding(found: Found, project: Project | None) -> dict[str, Any]:
    remedy = found.remedy
    return {
        "title": remedy.title,
        "name": remedy.name,
        "costs": costs(found),
        "seen": [_cut(each) for each in found.seen],
        "means": remedy.means,
        "do": remedy.do,
        "lines": [_cut(line_text(each, project)) for each in found.lines],
        "codes": [{"code": code, "title": load(code).title} for code in remedy.codes],
        "source": remedy.source,
    }


def _logs(logs: OpInfo, project: Project | None) -> dict[str, Any]:
    asked = sorted(logs.operators.values(), key=lambda each: (-each.times, each.type))
    return {
        "operators": [
            {"name": visible(each.type), "times": each.times, "forms": len(each.forms), "compiled": each.compiled,
             "form": _cut(each.forms.most_common(1)[0][0]) if each.forms else ""}
            for each in asked[:_MOST_OPERATORS]
        ],
        "findings": [_finding(each, project) for each in findings_of_logs(logs)],
    }  # fmt: skip


def _width(us: float, whole: float) -> float:
    return round(min(us * 100 / whole, 100.0), 3) if whole else 0.0


def _cut(text: str) -> str:
    return shortened(text, _MOST_TEXT)
