"""A plan as Markdown: a heading for each decision, why, what can be chosen, and the places that it concerns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from transplt.base.finding import ON_REQUEST
from transplt.base.plan_decisions import IN_QUESTION
from transplt.base.render.cell import first_of, many, shortened, visible
from transplt.base.settings import IMPORTS, STYLES, TORCH_VERSIONS, Settings
from transplt.engine.actions.actions import actions_of, separate
from transplt.fixers.tunings.table import tunings
from transplt.project.plan_file.apply import value_in
from transplt.project.plan_file.form import MARKER, OPEN
from transplt.project.plan_file.make import Offer, ToDecide
from transplt.project.port.decisions import by_decision
from transplt.project.report.action_lines import about, hours_of, how_many, place_text
from transplt.project.report.titles import title

_Section = tuple[str, str, tuple[str, ...], str]
_FIRST: tuple[_Section, ...] = (
    (
        "Style",
        "Edits for NPUs only, or only edits that keep the program unchanged on CUDA and the CPU.",
        ("style",),
        ", ".join(STYLES),
    ),
    (
        "Where torch_npu is imported",
        "As the torch version needs it (auto), in each file, or where programs begin.",
        ("torch-npu-import",),
        ", ".join(IMPORTS),
    ),
)
_THEN: tuple[_Section, ...] = (
    (
        "All edits that may change what the program does",
        "`unsafe-fixes`: also edits that may change what the program does. `similar`: similar APIs for those "
        "that NPUs lack.",
        ("unsafe-fixes", "similar"),
        "no, yes",
    ),
    (
        "The device number",
        "yes: from the environment (LOCAL_RANK, ASCEND_DEVICE_ID, DEVICE_ID); no: as in the program.",
        ("specify-device",),
        "no, yes",
    ),
    (
        "Texts and documents",
        "Whether messages, help texts and commands in documents change with the code.",
        ("texts", "docs"),
        "no, yes",
    ),
)
_OF_AMP = ("amp-dtype", "opt-level", "loss-scale", "combine-ddp", "amp-flag")
_LONGEST_LINE, _LONGEST_EDIT, _MOST_PLACES, _MOST_SCRIPTS = 100, 80, 5, 8


def plan_text(found: ToDecide) -> str:
    """The text of the plan, with the choices of a run as it was asked for."""
    name = visible(found.result.name)
    lines = [
        f"# Plan of a port to NPUs: {name}",
        "",
        MARKER,
        "",
        "Lines that begin with a bullet are decisions. Edit them, and pass this file to `transplt -i PROJECT --plan "
        "FILE` or `transplt port PROJECT --plan FILE`; unedited it changes nothing. All other lines are for reading.",
        "",
        *_general(found),
        *_places(found.offers),
        *_further(found),
        *_done(found),
        *_left(found),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _general(found: ToDecide) -> Iterator[str]:
    torch = found.plan.torch
    yield from _heading("Version of torch", f"Chosen because: {visible(torch.why)}.")
    # No line begins with a word of the input: it could be a bullet.
    yield from (f"Also {visible(line)}  " for line in torch.weighed)
    yield from [""] if torch.weighed else []
    yield f"- torch-version: {found.plan.settings.torch_version}"
    yield from _comment(", ".join(TORCH_VERSIONS))
    yield from _settings(found, _FIRST)


def _places(offers: Sequence[Offer]) -> Iterator[str]:
    """The places that are decided one by one: strings in question, then edits that may change what the program does."""
    strings = [each for each in offers if each.finding.code in IN_QUESTION]
    if strings:
        yield from _heading(
            f"Ambiguous strings ({many(len(strings), 'place')})",
            "The program does not show whether these strings are a device or backend of torch.",
        )
        for makes, its in groupby(sorted(strings, key=lambda each: each.makes, reverse=True), lambda each: each.makes):
            yield from map(_place, its)
            yield from _comment(f"{OPEN}: keep the finding; {makes}: write {makes}; leave: it is another name")
    edits = [each for each in offers if each.finding.code not in IN_QUESTION]
    if edits:
        yield from _heading(
            f"Edits that may change what the program does ({many(len(edits), 'place')})",
            "They are applied only on request: one by one here, or all with `unsafe-fixes`.",
        )
        for code, its in groupby(sorted(edits, key=lambda each: each.finding.code), lambda each: each.finding.code):
            places = list(its)
            yield f"### {code}: {title(code)}"
            yield ""
            if places[0].finding.help not in ("", ON_REQUEST):
                yield f"What to know: {visible(places[0].finding.help)}"
                yield ""
            yield from map(_place, places)
            yield ""
        yield f"<!-- {OPEN}: as unsafe-fixes says; apply: make it; leave: never, without a finding -->"
        yield ""


def _further(found: ToDecide) -> Iterator[str]:
    yield from _settings(found, _THEN)
    here = f"{many(found.amp, 'edit')} here" if found.amp else "nothing to insert was found"
    names = dict.fromkeys(each.adaptor for each in found.result.open_findings if each.adaptor)
    offered = f"; here: {', '.join(names)}" if names else ""
    yield from _heading("Adaptors", f"Replacements for blockers of a migration, each by its name{offered}.")
    yield f"- adapt: {value_in(found.plan.settings, 'adapt')}"
    yield from _comment("none, all, or names with commas between; `transplt rules --adaptors` lists them")
    yield from _heading("Mixed precision", f"Matrix products and convolutions in 16 bits; it changes numbers ({here}).")
    yield f"- amp: {found.plan.settings.amp}"
    for key in _OF_AMP:
        if (value := value_in(found.plan.settings, key)) != value_in(Settings(), key):
            yield f"- {key}: {value}"
    yield from _comment(
        "off, native, apex; optional lines after it: amp-dtype: bfloat16 for native, opt-level: O1 for apex"
    )
    yield from _heading("Tunings", "Optimisations for a project that already runs, each by its name.")
    for name, count in found.tunings:
        yield f"{tunings()[name].code} {name}: {many(count, 'edit')} here ({title(tunings()[name].code)})  "
    yield from [""] if found.tunings else []
    yield f"- tune: {value_in(found.plan.settings, 'tune')}"
    yield from _comment("none, all, or names with commas between; `transplt rules --tunings` lists them")
    yield from _heading("Many cards", "The script to run on several cards, as with `transplt distributed -m`.")
    if found.scripts:
        first = first_of(found.scripts, _MOST_SCRIPTS)
        yield f"Scripts of the project, those that look like training first: {first}"
        yield ""
    yield f"- main: {value_in(found.plan.settings, 'main')}"
    yield from _comment("none, or a path of the project; not for `transplt port`")
    yield from _heading("What is not changed", "Files and folders that are copied unchanged, and codes turned off.")
    yield "- leave: none"
    yield from _comment("one line each: vendor/ or third_party/*.py or NPU501 or NPU3 in tests/*")


def _settings(found: ToDecide, rows: Iterable[_Section]) -> Iterator[str]:
    """Sections for settings: heading, why, keys, what can be chosen."""
    for heading, why, keys, choices in rows:
        yield from _heading(heading, why)
        yield from (f"- {key}: {value_in(found.plan.settings, key)}" for key in keys)
        yield from _comment(choices)


def _done(found: ToDecide) -> Iterator[str]:
    """For reading: what is edited without being asked for."""
    groups = by_decision(((each, each.api) for each in found.result.edits), found.plan.settings.style)
    if not groups:
        return
    yield from _heading("Converted automatically (information)", "`leave` with a code turns that code off.")
    yield "| decision | edits | codes |"
    yield "|---|---:|---|"
    for decision, edits in groups.items():
        codes = ", ".join(sorted({each.code for each in edits}))
        yield f"| {decision.subject}. {decision.why} | {len(edits)} | {codes} |"
    yield ""


def _left(found: ToDecide) -> Iterator[str]:
    """For reading: what a person has to do, what blocks most first."""
    actions = actions_of(found.result.findings, found.result.settings.style)
    if not actions:
        yield from _heading("Left to do by hand (information)", "Nothing that transplt knows of.")
        return
    total = f"{many(len(separate(actions)), 'action')}, {hours_of(actions)}; the most urgent first."
    yield from _heading("Left to do by hand (information)", total[0].upper() + total[1:])
    number = 0
    for heading, its in groupby(actions, lambda action: action.heading):
        yield f"### {heading[0].upper()}{heading[1:]}"
        yield ""
        for action in its:
            number += 1
            size = f"{about(action.hours)}, {how_many(action)}; {', '.join(action.codes)}"
            yield f"{number}. {visible(action.title)} ({size})  "
            places = [visible(place_text(place)) for place in action.places[:_MOST_PLACES]]
            more = len(action.places) - len(places)
            yield f"   in {'; '.join(places)}" + (f"; and {many(more, 'more file')}" if more > 0 else "")
        yield ""


def _place(offer: Offer) -> str:
    """`- open: train.py:12 NPU203 3f2a91c0d4+9 ` and the line, with what would be written."""
    each = offer.finding
    new = f": {_code(offer.before, _LONGEST_EDIT)} -> {_code(offer.after, _LONGEST_EDIT)}" if offer.after else ""
    return f"- {OPEN}: {each.path}:{each.span.line} {each.code} {offer.mark} {_code(offer.text, _LONGEST_LINE)}{new}"


def _code(text: str, most: int) -> str:
    """A piece of code as Markdown shows it."""
    text = shortened(text, most)
    return f"`{text}`" if text and "`" not in text else text


def _heading(text: str, why: str) -> Iterator[str]:
    yield f"## {text}"
    yield ""
    if why:
        yield f"{why[0].upper()}{why[1:]}"
        yield ""


def _comment(text: str) -> Iterator[str]:
    """What can be chosen, for who edits."""
    yield ""
    yield f"<!-- {text} -->"
    yield ""
