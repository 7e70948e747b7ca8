"""Actions as a person reads them: lines for a terminal, rows for a sheet, objects for JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from transplt.base.errors import shown
from transplt.base.finding import Finding
from transplt.base.language import gettext, marked, ngettext, translated
from transplt.base.render.cell import visible
from transplt.engine.actions.action import BLOCKS_TEXT, Action, Place, written_by
from transplt.engine.actions.actions import separate, total_hours
from transplt.engine.actions.effort import percent
from transplt.engine.actions.groups import aside
from transplt.project.report.wrapped import wrapped
from transplt.rules.pages import BLOCKS

_MOST_NUMBERS = 20
_MOST_PARTS = 3
_MARGIN = 9
_OUTSIDE, _IN_NOTEBOOKS = marked("in scripts that do not train"), marked("in notebooks")
#: Functions that say when an action counts, by what it blocks: every training may call load().
_TELLING = {"later": re.compile("."), "slow": re.compile("[A-Z]"), "numbers": re.compile("[A-Z]")}


def action_lines(actions: Sequence[Action], width: int = 0) -> Iterator[str]:
    """All actions under what they block, with the first parts of those that have any.

    `width` is that of the terminal in columns; 0 for lines of any length.
    """
    if not actions:
        return
    head = _head(actions)
    if not any(action.stops for action in actions):
        head = gettext("{actions}; none of them stops training or changes its results", actions=head)
    yield from wrapped("  " + gettext("{actions}:", actions=head), width, _MARGIN)
    heading = ""
    for number, action in enumerate(actions, 1):
        if action.heading != heading:
            heading = action.heading
            yield from wrapped(f"    {translated(heading)}", width, _MARGIN)
        line = gettext(
            "{number}. {title} ({effort}, {places}, {first})",
            number=number, title=visible(translated(action.title)), effort=about(action.hours),
            places=how_many(action), first=shown(action.first),
        )  # fmt: skip
        yield from wrapped(" " * (7 - len(str(number))) + line, width, _MARGIN)
        if action.parts:
            parts = gettext("; ").join(visible(translated(part.title)) for part in action.parts[:_MOST_PARTS])
            if (more := len(action.parts) - _MOST_PARTS) > 0:
                parts = gettext("{actions}; and {count} more", actions=parts, count=more)
            yield from wrapped(f"         {parts}", width, _MARGIN)


def first_actions(actions: Sequence[Action], most: int, width: int = 0) -> Iterator[str]:
    """How many actions there are, and one line for each of the first: what to do, what it blocks, where to begin."""
    head = _head(actions)
    most += len(actions) == most + 1  # one more takes no more room than to say that it is left out
    if len(actions) > most:
        head = gettext("{actions}; the first {most}", actions=head, most=len(separate(actions[:most])))
    yield from wrapped("  " + gettext("{actions}:", actions=head), width, _MARGIN)
    for number, action in enumerate(actions[:most], 1):
        more = action.lines - 1
        where = shown(action.first)
        if more:
            where = ngettext("{first} and {count} more place", "{first} and {count} more places", more, first=where)
        stops = translated(action.blocking)
        if action.stands == "beside":
            stops = _beside(action)
        elif action.blocks != "tidy" and not (action.aside or action.contained):
            stops = gettext("otherwise the program {stops}", stops=stops)
        parts = [stops, *conditions(action), about(action.hours), where, *_written(action)]
        title, about_it = visible(translated(action.title)), gettext("; ").join(parts)
        line = gettext("{number}. {title} ({about})", number=number, title=title, about=about_it)
        yield from wrapped(f"    {line}", width, _MARGIN - 2)


def _head(actions: Sequence[Action]) -> str:
    hours, count = hours_of(actions), len(separate(actions))
    return ngettext("to do: {count} action, {hours}", "to do: {count} actions, {hours}", count, hours=hours)


def hours_of(actions: Sequence[Action]) -> str:
    """The hours of what training uses, and beside them those of the rest, where they are many."""
    needed, beside = ([each for each in actions if each.aside is aside] for aside in (False, True))
    if not needed or total_hours(beside) < 1:
        return about(total_hours(actions))
    hours, more = about(total_hours(needed)), about(total_hours(beside))
    return gettext("{hours}, and {more} in code that training does not use", hours=hours, more=more)


def about(hours: float) -> str:
    """A rough sum of hours in words."""
    if not hours:
        return gettext("none")
    if hours < 1:
        return gettext("less than an hour")
    return ngettext("about {count} hour", "about {count} hours", round(hours))


def few(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    first, more = ", ".join(names[:_MOST_PARTS]), len(names) - _MOST_PARTS
    return first if more <= 0 else gettext("{names} and {count} more", names=first, count=more)


def converted(done: int, counted: int) -> str:
    """How much of what is bound to CUDA a migration edits, as every face says it."""
    if not counted:
        return gettext("no place in Python is bound to CUDA")
    return gettext(
        "CUDA places in Python: {done} of {count} converted automatically ({share})",
        done=done, count=counted, share=percent(done / counted),
    )  # fmt: skip


def how_many(action: Action) -> str:
    """How many places an action has, in how many files, and when they count where one condition is that of all."""
    places = ngettext("{count} place", "{count} places", action.lines)
    files = len({place.path for place in action.places})
    if action.lines > 1:
        places = ngettext("{places} in {count} file", "{places} in {count} files", files, places=places)
    met = conditions(action) if len(_counted(action)) == action.count else ()
    stops = [_beside(action)] * (action.stands == "beside")
    return gettext(", ").join([places, *stops, *met, *_written(action)])


def _beside(action: Action) -> str:
    """What an action stops in the folders of other programs."""
    stops = translated(BLOCKS_TEXT[action.blocks])
    return gettext("otherwise the program in {folder} {stops}", folder=few(action.beside), stops=stops)


def conditions(action: Action) -> Iterator[str]:
    """What has to be asked for before an action counts, in one clause: options, another script, a function. Nothing of
    what stands aside, and of several things in one what holds for each.
    """
    if action.parts:
        yield from sorted(set[str].intersection(*({*conditions(part)} for part in action.parts)))
        return
    code = _counted(action)
    reached = any(each.late != "other" for each in code)
    options = {each.option for each in code if reached} - {""}
    rest = [each for each in code if not (reached and each.option)]
    where = _where(rest, action)
    if action.aside or where is None or len(options) > _MOST_PARTS:
        return
    # What ends in `=` is an argument of a function.
    said = gettext("the setting {name}"), gettext("the argument {name}")
    every = sorted(options)
    named = (said["." not in each].format(name=each[:-1]) if each[-1] == "=" else gettext(each) for each in every)
    clauses = [gettext("with {options}", options=gettext(" or ").join(named))] * bool(options)
    clauses += [where] * bool(rest)
    called = not options and any(each.late != "other" for each in rest)  # it says where, and a training may call it
    if clauses:
        yield clauses[0] if called else gettext("only {clauses}", clauses=gettext(", or ").join(clauses))


def _where(findings: Sequence[Finding], action: Action) -> str | None:
    """Where a program comes to what no option leads to; None where it does so whatever is asked for."""
    if all(each.late == "other" for each in findings):
        notebooks = all(each.path.endswith(".ipynb") for each in findings)
        return gettext(_IN_NOTEBOOKS if notebooks else _OUTSIDE)
    functions = sorted({each.detail("function") for each in findings})
    telling = _TELLING.get(action.blocks)
    if telling is None or len(functions) > _MOST_PARTS or not all(telling.search(each) for each in functions):
        return None
    return gettext("when {functions} runs", functions=gettext(" or ").join(functions))


def _counted(action: Action) -> Sequence[Finding]:
    """The findings that say when an action counts: what stops at once may be a requirement, whatever the code asks;
    one that blocks less has no part in it.
    """
    less = BLOCKS[BLOCKS.index(action.blocks) + 1 :]
    met = [each for each in action.findings if (action.aside or not aside(each)) and each.blocks not in less]
    code = [each for each in met if each.path.endswith((".py", ".ipynb"))]
    return code if code and action.blocks == "later" else met


def _written(action: Action) -> list[str]:
    """That an adaptor writes what is missing, where one does."""
    names, sources = written_by(action.findings)
    if sources:
        return [gettext("`--adapt {names}` writes what is called, slower: then delete the sources", names=names)]
    return [gettext("`--adapt {names}` writes the replacement", names=names)] if names else []


def place_text(place: Place) -> str:
    """The lines of a file: `train.py:3, 9`, with what is there and how often."""
    numbers = ", ".join(map(str, place.lines[:_MOST_NUMBERS]))
    more = f" and {len(place.lines) - _MOST_NUMBERS} more lines" if len(place.lines) > _MOST_NUMBERS else ""
    name = f" ({place.name})" if place.name not in ("", place.path) else ""
    return f"{place.path}:{numbers}{more}{name}"


def action_object(action: Action) -> dict[str, Any]:
    """An action as JSON: described in docs/reference/json.md."""
    return {
        "title": visible(action.title),
        "blocks": action.blocks,
        "aside": action.aside,
        "contained": action.contained,
        "beside": [visible(each) for each in action.beside],
        "effort": action.effort.value,
        "hours": action.hours,
        "how": visible(action.how),
        "codes": list(action.codes),
        "count": action.count,
        "places": [
            {"path": visible(place.path), "lines": list(place.lines), "count": place.count, "name": visible(place.name)}
            for place in action.places
        ],
        "parts": [action_object(part) for part in action.parts],
    }
