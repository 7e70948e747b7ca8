"""Holds the events of two trainings against each other: what one lost, gained, or does at another place."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

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
#: Events that decide what is computed; where others differ it is a remark.
_DECISIVE = frozenset(_NAMES) - {"seed", "no_grad", "autocast", "loader"}
#: Those that can set a number of an optimizer, such as its learning rate.
_SETTING = frozenset({"scheduler", "step", "skipped", "optimizer", "load", "load_state_dict"})
#: What a program may choose again where it holds already.
_HOLDING = frozenset({"mode", "no_grad"})
#: What does nothing that the figures of steps, their number and the tensors of files do not show.
_SHOWN = frozenset({"zero_grad", "backward", "step", "skipped", "optimizer", "save", "load"})


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
        """Whether it changes what is computed. A lost no_grad does not, but keeps graphs that fill the memory."""
        kinds = _DECISIVE | {"no_grad"}
        return any(event.kind in kinds for event in self.lost) or any(event.kind in _DECISIVE for event in self.gained)

    @property
    def sets(self) -> bool:
        return any(event.kind in _SETTING for side in self.reported for event in side)

    @property
    def reported(self) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
        """The lost and the gained events that describe it: the decisive ones, where there are any."""
        if not self.decisive:
            return self.lost, self.gained
        lost = tuple(event for event in self.lost if event.kind in _DECISIVE | {"no_grad"})
        return lost, tuple(event for event in self.gained if event.kind in _DECISIVE)

    @property
    def sentence(self) -> str:
        lost, gained = (_description(side) if side else "" for side in self.reported)
        if not lost:
            return f"{gained} is not in the original"
        if not gained:
            return f"{lost} of the original is missing"
        return f"{gained} appears where the original {f'has {lost}' if lost != gained else 'does not have it'}"


def changes(one: Training, other: Training) -> list[Change]:
    """Where the events differ, in order. A run that was cut after its steps is compared as far as both came."""
    kinds = Counter(event.kind for event in one.events)
    more = len(other.of("no_grad")) >= kinds["no_grad"]  # one more harms nothing, and takes others out of step
    compared = {*_NAMES, "skipped"} - (_ADDED - {*kinds}) - {"no_grad" if more else ""}
    left, right = (
        # What goes through memory, such as objects that are sent to ranks, is no file.
        [event for event in each.events if event.kind in compared and event.fields.get("path", event.kind)]
        for each in (one, other)
    )
    # The optimizer whose gradients are set to zero tells such calls apart, where it is always known.
    known = all(e.fields.get("o") is not None for e in (*left, *right) if e.kind == "zero_grad")
    keys, other_keys = (
        [(_key(e), known and e.kind == "zero_grad" and e.fields["o"]) for e in side] for side in (left, right)
    )
    matcher = difflib.SequenceMatcher(None, keys, other_keys, autojunk=False)
    found = []
    for tag, a, b, c, d in matcher.get_opcodes():
        at_the_cut = one.cut and other.cut and (b == len(left) or d == len(right)) and max(b - a, d - c) <= 3
        if tag != "equal" and not at_the_cut:
            before, after = (*right[:c][-1:], None)[0], (*right[d:], None)[0]
            found.append(Change(tuple(left[a:b]), tuple(right[c:d]), before, after))
    return _paired(found)


def without_figures(found: Sequence[Change], one: Training, other: Training) -> list[Change]:
    """The changes that are told though no figure and no result differs: of what one does more often than the other, or,
    where it goes on to hold, not at all. An order that changes no number is none, nor is what the figures show: a
    schedule shows in learning rates that change, or is a new one, and files in their tensors."""
    left, right = (Counter(map(_key, each.events)) for each in (one, other))
    kinds = {_key(event): event.kind for event in (*one.events, *other.events)}
    shown = _SHOWN | {"scheduler" if is_scheduled(one) or not one.of("scheduler") else ""}
    told = {key for key, kind in kinds.items() if kind not in shown
            and (right[key] == 0 if kind in _HOLDING else left[key] != right[key])}  # fmt: skip
    sides = ([tuple(e for e in side if _key(e) in told) for side in (each.lost, each.gained)] for each in found)
    kept = (replace(each, lost=lost, gained=gained) for each, (lost, gained) in zip(found, sides, strict=True))
    return [change for change in kept if change.decisive]


def is_scheduled(training: Training) -> bool:
    """Whether a learning rate changes in its steps."""
    rates = {(step.optimizer, str([group.get("lr") for group in step.hyper])) for step in training.steps}
    return len(rates) > len(training.optimizers)


def _paired(found: list[Change]) -> list[Change]:
    """What is lost at one point and gained at a near one has moved: one change."""
    paired: list[Change] = []
    for change in found:
        last = paired[-1] if paired else change
        sides = sorted((bool(each.lost), bool(each.gained)) for each in (last, change))
        keys = [{_key(event) for event in (*each.lost, *each.gained)} for each in (last, change)]
        if sides == [(False, True), (True, False)] and keys[0] == keys[1]:
            paired[-1] = Change(last.lost or change.lost, last.gained or change.gained, last.before, change.after)
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
            return event.kind, timeless(event.fields.get("file") or "")
        case "unscale":
            return "unscale", fields["o"]
        case "seed":
            return "seed", fields.get("seed")
    return event.kind


def _description(events: Sequence[Event]) -> str:
    first = events[0]
    fields = {**first.fields, "train": "training" if first.fields.get("train") else "evaluation"}
    name = _NAMES.get(first.kind, "a step of optimizer {o}")
    try:
        name = name.format(**fields)
    except KeyError:
        name = first.kind
    return name if len(events) == 1 else f"{name} (and {len(events) - 1} more)"
