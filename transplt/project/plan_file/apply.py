"""A plan over what was asked for: what it decides that a run without it would not, and what of it does not hold.

What it says as a run would do anyway is no decision: a plan that nobody has edited changes nothing, not a byte. The
command line wins over a plan, which says so; a plan wins over the settings of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transplt.base.errors import UsageError
from transplt.base.grouped import grouped
from transplt.base.plan_decisions import APPLY, HCCL, NPU, Choice, Decided, matches
from transplt.base.settings import Settings, listed
from transplt.fixers.adaptors.table import parse_adaptors
from transplt.fixers.tunings.table import parse_tunings
from transplt.project.plan_file.form import NO, NONE, YES, PlanText, read_plan
from transplt.project.plan_file.places import each_choice, find_places, not_followed
from transplt.project.torch_version import check_version

#: Keys whose options have another name.
_OPTIONS = {"main": "entry"}
#: Keys that hold lists of names.
_PARSED = {"tune": parse_tunings, "adapt": parse_adaptors}
_NPU_ALONE = "it only writes for NPUs, but the style is portable"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan comes to: options by their names, and what goes to the engine; None where it decides nothing."""

    options: Mapping[str, Any]
    decided: Decided | None


def option_of(key: str) -> str:
    """The name that a key has in `Options`."""
    return _OPTIONS.get(key, key.replace("-", "_"))


def value_in(settings: Settings, key: str) -> str:
    """What a setting comes to, as a plan writes it."""
    if key in _PARSED:
        return listed(getattr(settings, key)) or NONE
    value = getattr(settings, option_of(key))
    if isinstance(value, bool):
        return YES if value else NO
    return str(value) or NONE


def apply_plan(
    path: str,
    folder: Path,
    without: Settings,
    asked: Callable[[str], bool],
    settle: Callable[[dict[str, Any]], Settings],
) -> Planned:
    """Reads the plan at `path` for the project in `folder`. UsageError, with path and line, for what is wrong in it.

    `without`: the settings of the run without the plan; `asked` is true of the options that the command line gives;
    `settle` gives the settings with some options.
    """
    plan = read_plan(path)
    options: dict[str, Any] = {}
    keys: list[tuple[str, str]] = []
    said: list[str] = []
    for key, text in plan.keys.items():
        value = _normal(plan, key, text, without)
        if value == value_in(without, key):
            continue
        if asked(option_of(key)):
            if not _goes_without_saying(key, value, settle):
                wins = f"{key}: {value_in(without, key)}, not {text}"
                said.append(f"the command line overrides the plan: {wins}")
            continue
        keys.append((key, text if key in _PARSED else value))
        options[option_of(key)] = value == YES if value in (YES, NO) else "" if value == NONE else value
    if "main" in dict(keys) and dict(keys)["main"] != NONE and not (folder / options["entry"]).is_file():
        raise UsageError(f"{plan.at('main')}: the project has no file {options['entry']!r}")
    if any(matches(options.get("entry") or "", pattern) for pattern in plan.left):
        raise UsageError(f"{plan.at('main')}: the same plan leaves {options['entry']} unchanged")
    try:
        settings = settle(options) if options else without
    except UsageError as error:
        named = ", ".join(f"{key}: {value}" for key, value in keys)
        raise UsageError(f"{plan.shown} ({named}): {error}") from error
    places, lost = find_places(folder, plan.places)
    places, refused = _holding(places, settings)
    said += lost + refused
    codes = grouped(plan.codes)
    off = tuple((pattern, tuple(its)) for pattern, its in codes.items())
    if not (keys or places or plan.left or off or said):
        return Planned({}, None)
    return Planned(options, Decided(plan.name, tuple(keys), places, tuple(plan.left), off, tuple(said)))


def _goes_without_saying(key: str, value: str, settle: Callable[[dict[str, Any]], Settings]) -> bool:
    """Whether a plan has for a key what holds without the command line: nobody has decided that in the plan."""
    try:
        return value == value_in(settle({option_of(key): None}), key)
    except UsageError:
        return False


def _normal(plan: PlanText, key: str, text: str, without: Settings) -> str:
    """A value in the one way in which it is written."""
    try:
        if key == "torch-version":
            return check_version(text)
        if key in _PARSED and text not in (NONE, NO, "off"):
            version = plan.keys.get("torch-version", without.torch_version)
            return listed(_PARSED[key](text, check_version(version))) or NONE
    except UsageError as error:
        raise UsageError(f"{plan.at(key)}: {error}") from error
    return NONE if key in _PARSED else text


def _holding(
    places: tuple[tuple[str, tuple[Choice, ...]], ...], settings: Settings
) -> tuple[tuple[tuple[str, tuple[Choice, ...]], ...], list[str]]:
    """The choices that the settings do not make already, and what they speak against, a sentence each."""
    refused = []
    if settings.style == "portable":
        refused = [
            not_followed(each.choice, f"{path}:{each.line} {each.code}", _NPU_ALONE)
            for path, each in each_choice(places)
            if each.choice in (NPU, HCCL)
        ]
    kept = []
    for path, choices in places:
        portable = settings.style == "portable"
        its = tuple(each for each in choices if not (
            settings.unsafe_fixes if each.choice == APPLY else portable and each.choice in (NPU, HCCL)))  # fmt: skip
        kept += [(path, its)] if its else []
    return tuple(kept), refused
