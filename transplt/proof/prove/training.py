"""The training that one process recorded, as steps: losses before each, its gradients, parameters and buffers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from transplt.proof.launch.stacks import below

#: [norm, projection, other projection, checksum]; None for a tensor without such figures.
Figures = list[float] | None


class Place(NamedTuple):
    """A line of a file of the project, the path relative to its folder."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Event:
    """One event: `kind` and `fields` as the trace has them, and the user's line behind it."""

    kind: str
    fields: dict[str, Any]
    place: Place | None
    index: int


@dataclass(frozen=True)
class Loss:
    """What a backward pass began with: a scalar without the scale of a scaler, or norm and projection of more."""

    value: Any
    dtype: str
    place: Place | None


@dataclass(frozen=True)
class TrainingStep:
    """The `number`-th step (from 0) of an optimizer; `skipped` by a scaler: then there are no figures; `clipped`: the
    norms that its gradients were clipped by, None where not known; `sizes`: how many parameters each group of `hyper`
    has."""

    optimizer: int
    number: int
    place: Place | None
    index: int
    losses: tuple[Loss, ...]
    hyper: list[dict[str, Any]]
    gradients: list[list[float] | None] = field(default_factory=list)
    parameters: list[Figures] = field(default_factory=list)
    buffers: dict[str, list[float]] = field(default_factory=dict)
    skipped: bool = False
    clipped: Sequence[Any] = ()
    sizes: Sequence[int] = ()

    def with_order(self, order: Sequence[int]) -> TrainingStep:
        """It with its parameters in another order, each in a group of its own."""
        groups = [group for group, size in zip(self.hyper, self.sizes, strict=False) for _ in range(size)]
        lists: dict[str, Any] = {
            name: [held[at] for at in order] if len(held) == len(order) else held
            for name, held in (
                ("gradients", self.gradients),
                ("parameters", self.parameters),
                ("hyper", groups or self.hyper),
            )
        }
        return replace(self, **lists, sizes=[1] * len(groups))


@dataclass
class Optimizer:
    """Where and how it was made; names, dtypes and figures of its parameters as they were before its first step, and
    `weights`, the types in which networks are trained then: its parameters may be copies in float32 of weights in half
    precision. That which steps first has the figures of `others`, too: parameters of networks that computed, and that
    it does not have."""

    kind: str
    place: Place | None
    names: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    start: list[Figures] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    others: dict[str, list[float]] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """`Adam of Generator`: its class, and the networks that it trains, as far as they are known."""
        networks = dict.fromkeys(name.partition(".")[0].partition("#")[0] for name in self.names if name)
        known = [network for network in networks if network and not network[0].isdigit()]
        return f"{self.kind} of {' and '.join(known)}" if 0 < len(known) < 3 else self.kind

    def name(self, place: int) -> str:
        """What its parameter at a place is called: by its network, else by the place."""
        name = self.names[place] if place < len(self.names) else ""
        if name and not self.is_of_no_network(place):
            return name
        return f"parameter {place}{' (of no network)' if name else ''}"

    def is_of_no_network(self, place: int) -> bool:
        """Whether its parameter at a place belongs to no network that anybody has asked for its parameters."""
        return place < len(self.names) and self.names[place][:1].isdigit()


@dataclass(frozen=True)
class Training:
    """One process. `final` are the figures of all tensors of its networks at its end; `cut`: it was ended after so
    many steps."""

    rank: int
    world: int
    events: tuple[Event, ...]
    steps: tuple[TrainingStep, ...]
    optimizers: dict[int, Optimizer]
    final: dict[str, list[float]]
    cut: bool

    def of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event.kind in kinds]

    def until(self, index: int) -> Training:
        """What it did up to this event, as of a run that was cut there."""
        steps = tuple(step for step in self.steps if step.index <= index)
        return replace(self, events=self.events[: index + 1], steps=steps, final={}, cut=True)

    def without(self, optimizers: Collection[int]) -> Training:
        others = {which: made for which, made in self.optimizers.items() if which not in optimizers}
        return replace(self, optimizers=others, steps=tuple(each for each in self.steps if each.optimizer in others))

    def numbered_as(self, one: Training) -> Training:
        """It with the numbers that `one` has for optimizers that start with the same values, and with the order that it
        has for their parameters, by name: the two may be made in another order."""
        starts = {str(made.start): which for which, made in one.optimizers.items()}
        new = {which: starts.get(str(made.start), which) for which, made in self.optimizers.items()}
        if {*new.values()} != {*new} or [*new] == [*new.values()]:
            return self._ordered_as(one)
        events = (replace(each, fields={**each.fields, "o": new.get(each.fields.get("o", -1))}) for each in self.events)
        steps = (replace(each, optimizer=new[each.optimizer]) for each in self.steps)
        made = {new[which]: made for which, made in self.optimizers.items()}
        return replace(self, events=tuple(events), steps=tuple(steps), optimizers=made)._ordered_as(one)

    def _ordered_as(self, one: Training) -> Training:
        made, steps = dict(self.optimizers), [*self.steps]
        for which, mine in self.optimizers.items():
            names = one.optimizers[which].names if which in one.optimizers else []
            places = {name: place for place, name in enumerate(mine.names)}
            if names == mine.names or sorted(names) != sorted(places) or len(places) != len(mine.names):
                continue
            order = [places[name] for name in names]
            lists: dict[str, Any] = {
                name: [getattr(mine, name)[at] for at in order] for name in ("names", "dtypes", "start")
            }
            made[which] = replace(mine, **lists)
            steps = [each.with_order(order) if each.optimizer == which else each for each in steps]
        return replace(self, optimizers=made, steps=tuple(steps))

    def step(self, optimizer: int, number: int) -> TrainingStep | None:
        return next((step for step in self.steps if (step.optimizer, step.number) == (optimizer, number)), None)


def read_trainings(traces: Sequence[list[dict[str, Any]]], root: Path) -> list[Training]:
    """The processes that trained, by rank; where none did, the one that recorded most."""
    read = [_read([*trace, *_drawn_by_workers(trace, traces)], root) for trace in traces if trace]
    training = [each for each in read if each.steps or each.of("backward")]
    if not training and read:
        training = [max(read, key=lambda each: (bool(each.of("group")), len(each.events)))]
    return sorted(training, key=lambda each: each.rank)


def _drawn_by_workers(trace: list[dict[str, Any]], traces: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the processes drew that a process started: the workers of its loaders."""
    pid = trace[0].get("pid")
    started = [other for other in traces if other and pid is not None and other[0].get("parent") == pid]
    return [entry for other in started for entry in other if entry["e"] == "draw"]


def _read(trace: list[dict[str, Any]], root: Path) -> Training:
    events = tuple(_event(entry, number, root) for number, entry in enumerate(trace))
    groups = [event for event in events if event.kind == "group"]
    rank = int(groups[0].fields["rank"]) if groups else int(trace[0].get("rank") or 0)
    world = int(groups[0].fields["world"]) if groups else 1
    last = next((event for event in reversed(events) if event.kind == "end"), None)
    final = {**last.fields["p"], **last.fields["b"]} if last is not None else {}
    steps, optimizers = _steps(events)
    cut = any(event.kind == "limit" for event in events)
    return Training(rank, world, events, tuple(steps), optimizers, final, cut)


def _event(entry: dict[str, Any], number: int, root: Path) -> Event:
    at = entry.get("at")
    fields = {key: value for key, value in entry.items() if key not in ("e", "at")}
    for name in ("made", "subset", "sampled"):
        if fields.get(name):
            fields[name] = Place(below(fields[name][0], root), fields[name][1])
    if entry["e"] == "op":
        fields["by"] = tuple(Place(below(path, root), line) for path, line in entry.get("by", ()))
    return Event(entry["e"], fields, Place(below(at[0], root), at[1]) if at else None, number)


def _steps(events: Sequence[Event]) -> tuple[list[TrainingStep], dict[int, Optimizer]]:
    steps: list[TrainingStep] = []
    optimizers: dict[int, Optimizer] = {}
    losses: list[Loss] = []
    clipped: list[Any] = []
    hyper: dict[int, list[dict[str, Any]]] = {}
    sizes: dict[int, list[int]] = {}
    gradients: dict[int, list[list[float] | None]] = {}
    for event in events:
        fields = event.fields
        if event.kind == "optimizer":
            optimizers[fields["o"]] = Optimizer(fields["kind"], event.place)
            hyper[fields["o"]] = fields["hyper"]
        elif event.kind == "start":
            made = optimizers.setdefault(fields["o"], Optimizer(fields["kind"], event.place))
            made.names, made.dtypes, made.start = fields["names"], fields["dtypes"], fields["p"]
            made.ids, made.weights = fields.get("ids", []), fields.get("weights", [])
        elif event.kind == "others":
            optimizers[fields["o"]].others = fields["p"]
        elif event.kind == "hyper":
            hyper[fields["o"]], sizes[fields["o"]] = fields["hyper"], fields.get("sizes", [])
        elif event.kind == "backward":
            pairs = zip(fields["loss"], fields["dtype"], strict=True)
            losses += [Loss(value, dtype, event.place) for value, dtype in pairs]
        elif event.kind == "clip":
            clipped.append(fields.get("norm"))
        elif event.kind == "grads":
            gradients[fields["o"]] = fields["g"]
        elif event.kind in ("step", "skipped"):
            which = fields["o"]
            common = (which, fields["k"], event.place, event.index, tuple(losses), hyper.get(which, []))
            if event.kind == "skipped":
                steps.append(TrainingStep(*common, skipped=True))
            else:
                figures = gradients.pop(which, []), fields["p"], fields["b"]
                steps.append(TrainingStep(*common, *figures, clipped=clipped, sizes=sizes.get(which, [])))
            losses, clipped = [], []
    return steps, optimizers
