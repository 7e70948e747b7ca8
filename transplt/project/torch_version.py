"""The torch that a migration aims at: what was asked for, else what the files of the project allow together.

That is the newest version with a torch_npu that all of them allow (`asks.py`). Where they exclude each other, it is the
one that the most allow, then those that are trusted first (`disagreements.py` reports it). Where a project pins
a version for which there is no torch_npu, it is the one with the fewest blockers (`blockers.py`), the newest of these.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from transplt.base.errors import UsageError
from transplt.base.language import Sentence, marked
from transplt.base.render.cell import first_of
from transplt.base.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS, TorchTarget
from transplt.project.part_requirements import voices_of_parts
from transplt.project.torch_requirements import NEWER, Ask, Voice, asks_in, voices
from transplt.rules.releases import fits, release_of
from transplt.rules.versions import spans, version_key

#: What bounds a version from below.
_FLOOR = re.compile(r"(?<![<!])=|>")
_NEWEST_WITH_ONE = marked(
    "{path} requires {text}, for which no torch_npu is supported; chosen: the newest torch with one"
)
_DEFAULT_OF_PARTS = marked("the default, since parts of the project pin different releases of torch")
_OLDER_PART = marked(
    "{why}; {path} requires {text}, for which no torch_npu is supported: {version} is used, the oldest with one"
)
_FEWEST_BLOCKERS = marked(
    "{path} requires {text}, for which no torch_npu is supported; chosen: the newest torch with the fewest known "
    "blockers in this project"
)
#: So many asks, and so many blockers, are spelled out.
_MOST_ASKS, _MOST_BLOCKERS = 8, 3


def choose_target(root: Path, asked: str | None, configured: str | None = None) -> TorchTarget:
    """The version asked for, else that of the settings, else what the project at `root` pins, else the default.

    UsageError for one that is not known.
    """
    if asked is not None:
        return _target(check_version(asked), "--torch-version")
    if configured is not None:
        return _target(check_version(configured), "[tool.transplt] in pyproject.toml")
    unread: list[str] = []
    own = voices(root, unread)
    found, of_parts, older = (own, False, list[Ask]()) if own else voices_of_parts(root)
    if not found:
        why = Sentence(_DEFAULT_OF_PARTS if of_parts else "the default, since no requirement file pins torch")
        for ask in older[:_MOST_ASKS]:
            why = Sentence(_OLDER_PART, why=why, path=ask.pin.path, text=ask.text, version=TORCH_VERSIONS[0])
        target = _target(DEFAULT_TORCH_VERSION, "; ".join((why, *unread)) if unread else why)
        return replace(target, of_parts=of_parts)
    from transplt.project.disagreements import disagreements  # reads lists of packages

    target = _together(root, found)
    asks = list(asks_in(found))
    # `requirements.txt torch>=1.5.0; Dockerfile torch==1.5 (no torch_npu)`
    listed = [f"{ask.pin.path} {ask.weighed}" for ask in asks[:_MOST_ASKS]]
    listed += [f"and {len(asks) - _MOST_ASKS} more"] if len(asks) > _MOST_ASKS else []
    weighed = [f"weighed: {'; '.join(listed)}"] if len(asks) > 1 else []
    bounded = [ask for ask in asks if ask.direct and not ask.conditional and _FLOOR.search(ask.pin.specifier)]
    admitted = (each for ask in bounded for each in ask.read.allowed - {NEWER})
    oldest = min(admitted, key=version_key, default=target.version)
    return replace(
        target,
        weighed=(*weighed, *target.weighed),
        disagreements=disagreements(own, target.version),  # parts may differ
        oldest=oldest if version_key(oldest) < version_key(target.version) else "",
    )


def check_version(text: str) -> str:
    """The minor version that `text` (`2.8` or `2.8.0`) names. UsageError when it is not one that we know."""
    match = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?", text.strip())
    if match is None or match[1] not in TORCH_VERSIONS:
        known = f"{TORCH_VERSIONS[0]} to {TORCH_VERSIONS[-1]}"
        raise UsageError(f"torch version {text!r} is not known; choose one of {known}")
    return match[1]


def _together(root: Path, found: Sequence[Voice]) -> TorchTarget:
    """The target that follows from what was found."""
    best = max(_score(found, version) for version in TORCH_VERSIONS)
    tied = [version for version in TORCH_VERSIONS if _score(found, version) == best]
    heard = [voice for voice in found if tied[-1] in voice.allowed]
    gaps = [voice for voice in found if not voice.with_npu]
    # What bounds a version that there is decides; an open bound beside a version that there is not does not.
    if not gaps or any(voice.pinned and voice.direct for voice in heard):
        return _of_voices(heard or found, tied[-1])
    first = next((voice for voice in gaps if voice.direct), gaps[0]).asks[0]
    asked = {"path": first.pin.path, "text": first.text}
    if NEWER in first.read.allowed:
        return replace(_target(tied[-1], Sentence(_NEWEST_WITH_ONE, **asked)), gap=True)
    version, counted = _fewest_blockers(root, tied, found)
    target = _target(version, Sentence(_FEWEST_BLOCKERS, **asked), first.read.named)
    return replace(target, gap=True, weighed=counted)


def _score(found: Sequence[Voice], version: str) -> tuple[int, tuple[bool, ...], int, tuple[bool, ...]]:
    """How many requirements of torch allow a version, and which, in the order of trust; the same of packages beside it.
    """
    own = tuple(version in voice.allowed for voice in found if voice.direct)
    beside = tuple(version in voice.allowed for voice in found if not voice.direct)
    return sum(own), own, sum(beside), beside


def _of_voices(heard: Sequence[Voice], version: str) -> TorchTarget:
    """The target that some voices allow: the reason is the first that bounds it, else the first."""
    bounding = [voice for voice in heard if voice.pinned and voice.with_npu[-1:] == (version,)]
    bounding = bounding or [voice for voice in heard if voice.pinned]
    ask = (bounding or list(heard))[0].ask_for(version)
    asked = {"path": ask.pin.path, "text": ask.text}
    if ask.read.pinned:
        return _target(version, Sentence("{path} requires {text}", **asked))
    why = Sentence("{path} requires {text}; chosen: the newest such release that has a torch_npu", **asked)
    return _target(version, why, ask.read.named)


def _fewest_blockers(root: Path, versions: Sequence[str], found: Sequence[Voice]) -> tuple[str, tuple[str, ...]]:
    """The version with the fewest blockers, the newest of these, and a line that says what was counted, if any was.

    A Python for which a version has no wheels is one, where the file asks for it that asks for torch.
    """
    from transplt.engine.files.dependencies.pythons import pythons_asked_for
    from transplt.project.blockers import blockers

    held = blockers(root)
    for pin in (ask.pin for ask in asks_in(found)):
        for asked, *_ in pythons_asked_for(pin.text, os.path.basename(pin.path).lower()):
            without = tuple(each for each in TORCH_VERSIONS if not fits(asked, release_of(each).pythons))
            held[f"{pin.path} asks for Python {asked.lstrip('=')}"] = without
    count = {version: sum(version in stops for stops in held.values()) for version in versions}
    best = min(versions, key=lambda version: (count[version], -TORCH_VERSIONS.index(version)))
    telling = [(what, stops) for what, stops in held.items() if set(versions) & set(stops) and best not in stops]
    if not telling:
        return best, ()
    named = [f"{what} (torch {spans([each for each in versions if each in stops])})" for what, stops in telling]
    return best, (f"blockers of other versions: {first_of(named, _MOST_BLOCKERS, '; ')}",)


def _target(version: str, why: str, written_for: str = "") -> TorchTarget:
    row = release_of(version)
    changes = _changes(written_for, version) if written_for else ()
    return TorchTarget(version, why, row.torch_npu, row.cann, row.torch, changes)


def _changes(first: str, last: str) -> tuple[str, ...]:
    """What PyTorch changed after one version, up to another."""
    from transplt.rules.tables import read_table

    rows: dict[str, str] = read_table("support/torch_changes.json")["changes"]
    between = [text for text in rows if version_key(first) < version_key(text) <= version_key(last)]
    return tuple(f"torch {version}: {rows[version]}" for version in between)
