"""What a profile says, as text and as JSON. What comes from a profile is shown with escapes, and cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transplt.base.render.cell import labelled, many, shortened, visible
from transplt.precision.diagnose.profiles.findings import Found, findings_of, findings_of_logs
from transplt.precision.diagnose.profiles.op_info import OpInfo
from transplt.precision.diagnose.profiles.profile import LineTime, Operator, Profile, ProfiledStep
from transplt.precision.diagnose.profiles.reading import Reading
from transplt.precision.diagnose.profiles.units import ms, percent, share_of
from transplt.precision.diagnose.stacks import Project
from transplt.rules.pages import load

FORMAT = 1
_MOST_TEXT = 160
_WHOLES = {"card": "of the time of kernels", "communication": "of the collectives"}
_MOST_OPERATORS, _MOST_HOST, _MOST_STEPS, _MOST_FORMS = 15, 10, 8, 3


def slowest(profiles: list[Profile]) -> Profile:
    """The profile that the others wait for: the one that computes longest."""
    return max(profiles, key=lambda each: (sum(step.computing for step in each.steps), each.card))


def profiles_text(reading: Reading, project: Project | None) -> str:
    """For people: where the time goes, and what to do about it, the dearest first."""
    lines: list[str] = []
    if len(reading.profiles) > 1:
        lines += _ranks(reading.profiles)
        lines += ["", "The one that computes longest is shown; name a folder to see another one.", ""]
    if reading.profiles:
        lines += _profile(slowest(reading.profiles), project)
    if reading.logs is not None:
        lines += [*([""] if lines else []), *_logs(reading.logs, project)]
    return "\n".join(lines) + "\n"


def profiles_json(reading: Reading, project: Project | None) -> dict[str, Any]:
    """One document: every profile with its findings, and the operators of logs."""
    return {
        "format": FORMAT,
        "profiles": [_profile_table(each) for each in reading.profiles],
        "logs": None if reading.logs is None else _logs_table(reading.logs),
    }


def left(reading: Reading) -> bool:
    """True where there is a finding that is not only worth knowing."""
    found = [each for profile in reading.profiles for each in findings_of(profile)]
    found += findings_of_logs(reading.logs) if reading.logs is not None else []
    return any(not each.remedy.info for each in found)


def parts_of(steps: list[ProfiledStep]) -> list[tuple[str, float]]:
    """The parts of all steps, in microseconds: together they are the whole."""
    return [
        ("computing", sum(step.computing for step in steps)),
        ("communication that is not overlapped by computation", sum(step.not_hidden for step in steps)),
        ("the card is idle", sum(step.free for step in steps)),
    ]


def _profile(profile: Profile, project: Project | None) -> Iterator[str]:
    launches = sum(each.total.count for each in profile.operators.values())
    on_card = f"{many(launches, profile.counted)}, {ms(profile.card)} on the card" if launches else "nothing on a card"
    yield f"transplt profile-read: {cut(profile.name)}: {on_card} ({', '.join(map(visible, profile.read))})"
    for remark in profile.remarks[:5]:
        yield f"note: {cut(remark)}"
    if profile.steps:
        numbered = len({step.step for step in profile.steps if step.step})
        yield from ("", f"Where the time goes ({many(numbered, 'step') + ', ' if numbered else ''}{ms(profile.whole)})")
        for name, us in parts_of(profile.steps):
            yield f"   {name:<34}{ms(us):>12}{percent(us / profile.whole if profile.whole else 0):>9}"
    if profile.operators:
        yield from ("", "By kind")
        for kind, total in profile.by_kind().items():
            yield f"   {kind:<34}{ms(total.us):>12}{share_of(total.us, profile.card):>9}  {many(total.count, 'call')}"
        yield from ("", f"By operator ({_of(len(profile.operators), _MOST_OPERATORS)})")
        for each in profile.dearest()[:_MOST_OPERATORS]:
            yield _operator(each, profile.card)
    if profile.host and (not profile.operators or not profile.steps):
        yield from ("", f"On the host ({_of(len(profile.host), _MOST_HOST)})")
        for name, total in sorted(profile.host.items(), key=lambda item: -item[1].us)[:_MOST_HOST]:
            yield f"   {cut(name, 33):<34}{ms(total.us):>12}{'':>9}  {many(total.count, 'call')}"
    if dear := lines_by_time(profile):
        yield from ("", "By line of your source (time on the card, on the host)")
        for line, device, host, operators in dear[:_MOST_OPERATORS]:
            yield f"   {cut(line, 60):<62}{ms(device):>10}{ms(host):>11}  {cut(operators, 60)}"
    found = findings_of(profile)
    yield from ("", "What to do, most expensive first" if found else "Nothing in it is slow for a known reason.")
    for number, one in enumerate(found, 1):
        yield from ("", *_finding(number, one, project))


def lines_by_time(profile: Profile) -> list[tuple[str, float, float, str]]:
    """(path:line in function, us on the card, us on the host, operators) of lines of source, the dearest first."""
    merged: dict[str, tuple[float, float, dict[str, float]]] = {}
    for line in profile.lines.values():
        where = f"{line.frame.path}:{line.frame.line}" + (f" in {line.frame.function}" if line.frame.function else "")
        device, host, operators = merged.get(where, (0.0, 0.0, {}))
        operators[line.operator] = operators.get(line.operator, 0.0) + line.device + line.host
        merged[where] = device + line.device, host + line.host, operators
    rows = [
        (where, device, host, ", ".join(sorted(operators, key=lambda name: -operators[name])[:3]))
        for where, (device, host, operators) in merged.items()
    ]
    return sorted(rows, key=lambda row: (-row[1], -row[2], row[0]))


def _operator(each: Operator, card: float) -> str:
    shapes = f", {many(len(each.shapes), 'shape')}" if each.shapes else ""
    core = f"  {each.core}" if each.core else ""
    return (
        f"   {cut(each.type, 33):<34}{ms(each.total.us):>12}{share_of(each.total.us, card):>9}  "
        f"{many(each.total.count, 'call')}, {ms(each.total.mean)} each{shapes}{visible(core)}"
    )


def _finding(number: int, found: Found, project: Project | None) -> Iterator[str]:
    remedy = found.remedy
    yield f"{number}. {remedy.title}  [{remedy.name}]"
    if costs(found):
        yield from labelled("costs", costs(found))
    yield from labelled("seen", *map(cut, found.seen))
    yield from labelled("means", remedy.means)
    yield from labelled("do", *(f"- {step}" for step in remedy.do))
    yield from labelled("lines", *(cut(line_text(each, project)) for each in found.lines))
    yield from labelled("foretold", *(f"{code}: {load(code).title}" for code in remedy.codes))


def costs(found: Found) -> str:
    """What a finding costs: `12.3 ms, 4.1 % of the time of kernels`; empty where that is not known."""
    if not found.us:
        return ""
    share = f", {percent(found.share)} {_WHOLES.get(found.remedy.of, 'of the time')}" if found.share is not None else ""
    return ms(found.us) + share


def line_text(each: LineTime, project: Project | None) -> str:
    """One line of source with what it called: `net.py:31 in forward: x.permute(0, 2, 1)`, and the operator."""
    frame = each.frame
    function = f" in {frame.function}" if frame.function else ""
    source = frame.source or (project.line(frame.path, frame.line) if project is not None else "")
    time = f"{ms(each.device)} on the card" if each.device else f"{ms(each.host)} on the host"
    shown = f": {source}" if source else ""
    return f"{frame.path}:{frame.line}{function}{shown} ({each.operator}, {many(each.count, 'call')}, {time})"


def _ranks(profiles: list[Profile]) -> Iterator[str]:
    yield f"transplt profile-read: {len(profiles)} runs"
    yield f"   {'':<50}{'computing':>12}{'not hidden':>12}{'idle':>12}{'kernels':>12}"
    for each in profiles:
        times = [us for _, us in parts_of(each.steps)]
        shown = "".join(f"{ms(us) if us else '-':>12}" for us in (*times, each.card))
        yield f"   {cut(each.name, 49):<50}{shown}"


def _logs(logs: OpInfo, project: Project | None) -> Iterator[str]:
    asked = sorted(logs.operators.values(), key=lambda each: (-each.times, each.type))
    times = sum(each.times for each in asked)
    yield f"transplt profile-read: {many(len(asked), 'operator')} in host logs, {many(times, 'time')}"
    yield from ("", f"By operator ({_of(len(asked), _MOST_OPERATORS)})")
    for each in asked[:_MOST_OPERATORS]:
        compiled = f", compiled {many(each.compiled, 'time')}" if each.compiled else ""
        yield f"   {cut(each.type, 33):<34}{many(each.times, 'call')}, {many(len(each.forms), 'form')}{compiled}"
        for form, count in each.forms.most_common(_MOST_FORMS):
            yield f"      {count:>6}x {cut(form, 100)}"
    found = findings_of_logs(logs)
    if not logs.repeats:
        yield from ("", "Too few steps to tell whether operators are recompiled: at least four are needed.")
    yield from ("", "What to do" if found else "Nothing in them is slow for a known reason.")
    for number, one in enumerate(found, 1):
        yield from ("", *_finding(number, one, project))


def _profile_table(profile: Profile) -> dict[str, Any]:
    return {
        "name": visible(profile.name), "read": [*map(visible, profile.read)], "remarks": [*map(cut, profile.remarks)],
        "card_us": round(profile.card, 3), "whole_us": round(profile.whole, 3),
        "steps": [
            {"device": visible(step.device), "step": visible(step.step), "computing_us": step.computing,
             "communication_us": step.communication, "not_hidden_us": step.not_hidden, "free_us": step.free,
             "preparing_us": step.preparing}
            for step in profile.steps
        ],
        "kinds": [
            {"kind": kind, "us": round(total.us, 3), "calls": total.count} for kind, total in profile.by_kind().items()
        ],
        "operators": [
            {"type": cut(each.type), "core": cut(each.core), "kind": each.kind, "us": round(each.total.us, 3),
             "calls": each.total.count, "longest_us": each.total.most, "shapes": len(each.shapes)}
            for each in profile.dearest()
        ],
        "gaps": [
            {"us": round(gap.us, 3), "before": cut(gap.before), "after": cut(gap.after), "times": gap.times,
             "total_us": round(gap.total, 3)}
            for gap in profile.longest_gaps()
        ],
        "findings": [_finding_table(each) for each in findings_of(profile)],
    }  # fmt: skip


def _finding_table(found: Found) -> dict[str, Any]:
    remedy = found.remedy
    return {
        "name": remedy.name, "title": remedy.title, "us": round(found.us, 3),
        "share": None if found.share is None else round(found.share, 4), "of": remedy.of,
        "info": remedy.info,
        "seen": [*map(cut, found.seen)], "means": remedy.means, "do": [*remedy.do], "foretold_by": [*remedy.codes],
        "source": remedy.source,
        "lines": [
            {"path": visible(each.frame.path), "line": each.frame.line, "function": visible(each.frame.function),
             "operator": cut(each.operator), "calls": each.count, "card_us": each.device, "host_us": each.host}
            for each in found.lines
        ],
    }  # fmt: skip


def _logs_table(logs: OpInfo) -> dict[str, Any]:
    return {
        "repeats": logs.repeats,
        "operators": [
            {"type": each.type, "times": each.times, "compiled": each.compiled, "forms": dict(each.forms.most_common()),
             "new_late": each.later, "compiled_late": each.compiled_later}
            for each in sorted(logs.operators.values(), key=lambda each: (-each.times, each.type))
        ],
        "conversions": dict(logs.conversions.most_common()),
        "findings": [_finding_table(each) for each in findings_of_logs(logs)],
    }  # fmt: skip


def _of(number: int, most: int) -> str:
    return f"{most} of {number}" if number > most else str(number)


def cut(text: str, most: int = _MOST_TEXT) -> str:
    return shortened(text, most)
