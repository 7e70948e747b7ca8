"""Holds the events of two trainings against each other: what one lost, gained, or does at another place."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from transplt.proof.launch.reference import timeless
from transplt.proof.prove.training import Event, Training

#: What mixed precision and several cards add; compared only where the original has such events too.
_ADDED = frozenset({"scale", "unscale", "update", "autocast"})
_NAMES = {
    "mode": "the switch to {train}",
    "zero_grad": "zero_grad",
    "backward": "a backward pass",
    "step": "a step of optimizer {o}",
    "clip": "the clipping of gradients at {bound}",
    "scheduler": "a step of {kind}",
    "no_grad": "no_grad",
    "save": "the saving of {file}",
    "load": "the loading of {file}",
    "load_state_dict": "load_state_dict of {of}",
    "optimizer": "the making of {kind}",
    "scale": "the scaling of a loss",
    "unscale": "unscale_",
    "update": "the update of the scale",
    "autocast": "autocast",
    "seed": "the seed {seed}",
    "loader": "the pass through a loader",
}
#: Those that have a file.
FILES = ("save", "load")
#: Events that decide what is computed; where others differ it is a remark.
_DECISIVE = frozenset(_NAMES) - {"seed", "no_grad", "autocast", "loader"}


#: What a network's mode and weights count for.
_COMPUTES = frozenset({"backward", "batch", "evaluated", "load", "loader", "no_grad", "step", "through"})

#: What gradients are computed by, or used for.
_OF_GRADIENTS = frozenset({"backward", "clip", "step", "unscale"})


@dataclass(frozen=True)
class Change:
    """Events of the original without a counterpart, and events of the other without one, at the same point; `before`
    and `after` are its events around that point."""

    lost: tuple[Event, ...]
    gained: tuple[Event, ...]
    before: Event | None
    after: Event | None

    @property
    def decisive(self) -> bool:
        """Whether it changes what is computed. A lost no_grad does not, but may keep graphs that fill the memory."""
        return any(event.kind in _DECISIVE | {"no_grad"} for event in self.lost) or any(
            event.kind in _DECISIVE for event in self.gained
        )

    @property
    def reported(self) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
        """The lost and the gained events that describe it: the decisive ones, where there are any."""
        if not self.decisive:
            return self.lost, self.gained
        lost = tuple(event for event in self.lost if event.kind in _DECISIVE | {"no_grad"})
        return lost, tuple(event for event in self.gained if event.kind in _DECISIVE)

    def only_renames(self, files: Collection[str]) -> bool:
        """Whether all that it says is that such files have other names."""
        lost, gained = self.reported
        alike = [event.kind for event in lost] == [event.kind for event in gained]
        return alike and all(event.kind in FILES and _file(event) in files for event in lost)

    @property
    def sentence(self) -> str:
        lost, gained = self.reported
        if lost and gained:
            if _description(gained) == _description(lost):
                return f"{_description(gained)} appears where the original does not have it"
            return f"{_description(gained)} appears where the original has {_description(lost)}"
        if lost:
            return f"{_description(lost)} of the original is missing"
        return f"{_description(gained)} is not in the original"


def changes(one: Training, other: Training) -> list[Change]:
    """Where the events differ, in order. A run that was cut after its steps is compared as far as both came."""
    kinds = {event.kind for event in one.events}
    skipped = _ADDED - kinds
    # Where an evaluation needs none, as with a frozen network, none is missing.
    if _graphs(one) >= _graphs(other):
        skipped |= {"no_grad"}
    if len(one.of("loader")) != len(other.of("loader")):  # by passes that one does without, others would be shifted
        skipped |= {"loader"}
    left, right = (
        [event for event in _settled(each) if event.kind in {*_NAMES, "skipped"} - skipped] for each in (one, other)
    )
    matcher = difflib.SequenceMatcher(None, [_key(e) for e in left], [_key(e) for e in right], autojunk=False)
    found = []
    for tag, a, b, c, d in matcher.get_opcodes():
        at_the_cut = one.cut and other.cut and (b == len(left) or d == len(right)) and (b - a <= 3 and d - c <= 3)
        if tag != "equal" and not at_the_cut:
            before = right[c - 1] if c else None
            after = right[d] if d < len(right) else None
            found.append(Change(tuple(left[a:b]), tuple(right[c:d]), before, after))
    return _paired(found)


def _settled(training: Training) -> list[Event]:
    """The events in an order that does not hang on where a program has no need of one. A mode is chosen at any place in
    front of what computes; the first, in which networks are made, need not be. So it is with the saving of weights
    behind it, and with gradients that are cleared, once, in front of a backward pass. What goes through memory, as
    objects that are sent to ranks, is no file."""
    settled: list[Event] = []
    chosen: list[Event] = []
    cleared: list[Event] = []
    evaluated = False
    for event in training.events:
        if event.kind in FILES and "path" in event.fields and not event.fields["path"]:
            continue
        if event.kind == "mode":
            evaluated |= not event.fields.get("train")
            chosen = [each for each in chosen if each.fields.get("of") != event.fields.get("of") or each.kind == "save"]
        if event.kind == "save" and event.fields.get("bare"):
            chosen.insert(0, event)
        elif event.kind == "mode" and evaluated:
            chosen.append(event)
        elif event.kind == "zero_grad":
            cleared = [event]
        elif event.kind != "mode":
            if event.kind in _COMPUTES:
                settled += chosen
                chosen = []
            if event.kind in _OF_GRADIENTS:
                settled += cleared
                cleared = []
            settled.append(event)
    return settled + [each for each in chosen if each.kind == "save"]


def _graphs(training: Training) -> int:
    """How many evaluations keep graphs."""
    return sum(bool(event.fields.get("graph")) for event in training.of("evaluated"))


def unrepeated_files(one: Training, again: Training) -> set[str]:
    """The files of which a second run of the same program knows nothing: their names hold a process, a time, chance."""
    files = [{_file(event) for event in each.of(*FILES)} for each in (one, again)]
    return files[0] - files[1]


def _paired(found: list[Change]) -> list[Change]:
    """What is lost at one point and gained at a near one has moved: one change."""
    paired: list[Change] = []
    for change in found:
        last = paired[-1] if paired else None
        if (
            last is not None
            and bool(last.lost) != bool(last.gained)
            and bool(change.lost) != bool(change.gained)
            and bool(last.lost) != bool(change.lost)
            and {_key(event) for event in (*last.lost, *last.gained)}
            == {_key(event) for event in (*change.lost, *change.gained)}
        ):
            both = Change(last.lost or change.lost, last.gained or change.gained, last.before, change.after)
            paired[-1] = both
        else:
            paired.append(change)
    return paired


def _key(event: Event) -> Hashable:
    fields = event.fields
    match event.kind:
        case "mode":
            return "mode", fields.get("train")
        case "step" | "skipped":
            return "step", fields["o"]
        case "clip":
            return "clip", f"{fields.get('bound', 0.0):.5g}"
        case "scheduler" | "optimizer":
            return event.kind, fields.get("kind", "").removeprefix("NpuFused").removeprefix("Fused")
        case "save" | "load":
            return event.kind, _file(event)
        case "unscale":
            return "unscale", fields["o"]
        case "seed":
            return "seed", fields.get("seed")
    return event.kind


def _file(event: Event) -> str:
    return timeless(event.fields.get("file") or "")


def _description(events: Sequence[Event]) -> str:
    first = events[0]
    fields = {**first.fields, "train": "training" if first.fields.get("train") else "evaluation"}
    name = _NAMES.get(first.kind, "a step of optimizer {o}")
    try:
        name = name.format(**fields)
    except KeyError:
        name = first.kind
    return name if len(events) == 1 else f"{name} (and {len(events) - 1} more)"
