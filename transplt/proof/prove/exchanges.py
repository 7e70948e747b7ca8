"""What each rank of a run exchanged, in order, as its trace records it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from transplt.proof.launch.stacks import below
from transplt.proof.prove.training import Place

#: Messages between two ranks; everything else is a collective of a whole group.
SENDS, RECEIVES = ("send", "send_object_list"), ("recv", "recv_object_list")
_TENSORS_OF_LIST = 4


class Group(NamedTuple):
    """A process group: the how-manieth life of the default group it was made in, its name, its global ranks."""

    life: int
    name: str
    ranks: tuple[int, ...]


@dataclass
class Exchange:
    """One collective or message. `lines` are the user's lines with the absolute paths, the innermost first; `place`
    the first of them below the root; `waits` where it is still waited for."""

    kind: str
    group: Group
    fields: dict[str, Any]
    place: Place | None
    lines: tuple[tuple[str, int], ...]
    index: int
    waits: bool = True
    ended: bool = False
    error: str = ""

    @property
    def stands(self) -> bool:
        """Whether it never ended, and the process was waiting for it."""
        return self.waits and not self.ended

    @property
    def what(self) -> str:
        """`all_reduce(SUM) of float32 [2, 3]`."""
        root = self.fields.get("root")
        known = f"root {root}" if root is not None else ""
        if is_message(self):
            known = f"{'to' if self.kind in SENDS else 'from'} {f'rank {root}' if root is not None else 'any rank'}"
        inside = ", ".join(str(part) for part in (self.fields.get("op"), known) if part)
        shape: Any = self.fields.get("shape")
        if shape and isinstance(shape[0], list) and len(shape) > _TENSORS_OF_LIST:
            shape = f"{len(shape)} tensors"
        shown = " ".join(str(part) for part in (self.fields.get("dtype"), shape) if part is not None)
        tensors = f" of {shown}" if shown else ""
        return f"{self.kind}({inside}){tensors}" if inside else f"{self.kind}{tensors}"


@dataclass
class Rank:
    """One rank of a run. `state`: `ended`, `raised` (`error`, `left` is the line), `cut` (the trace's own limit of
    steps) or `stopped` (somebody else ended it)."""

    rank: int
    exchanges: list[Exchange] = field(default_factory=list)
    state: str = "stopped"
    error: str = ""
    left: Place | None = None
    last: Place | None = None

    @property
    def standing(self) -> Exchange | None:
        return next((each for each in reversed(self.exchanges) if each.stands), None)

    @property
    def place(self) -> Place | None:
        """The line that it waits in, raised in, or was last seen at."""
        return self.standing.place if self.standing is not None else self.left or self.last

    @property
    def whereabouts(self) -> str:
        """What became of it, as the end of a sentence that begins with the rank."""
        if self.state == "raised":
            return f"ended with {self.error}{f' at {self.left}' if self.left else ''}"
        if self.state == "ended":
            return "ended without an error"
        if self.standing is not None:
            at = f" at {self.standing.place}" if self.standing.place else ""
            return f"is in {self.standing.what}{at}"
        return f"was last seen at {self.last}" if self.last else "told nothing"


def read_ranks(traces: Sequence[list[dict[str, Any]]], root: Path) -> list[dict[int, Rank]]:
    """The ranks of each start of a process group: of torchrun, or of processes that the script spawned."""
    worlds: list[dict[int, Rank]] = []
    begun = {id(trace): next((float(event["t"]) for event in trace if "t" in event), 0.0) for trace in traces}
    for trace in sorted(filter(None, traces), key=lambda trace: begun[id(trace)]):
        joined = [event for event in trace if event["e"] == "group"]
        joined += [event for event in trace if event["e"] == "coll" and event.get("rank", -1) >= 0]
        if not joined:
            continue
        number = int(joined[0]["rank"])
        world = next((world for world in worlds if number not in world), None)
        if world is None:
            worlds.append(world := {})
        world[number] = _read(number, trace, root)
    return [dict(sorted(world.items())) for world in worlds]


def _read(number: int, trace: list[dict[str, Any]], root: Path) -> Rank:
    rank = Rank(number)
    by_number: dict[int, Exchange] = {}
    life = 0
    for event in trace:
        kind = event["e"]
        if event.get("at"):
            rank.last = _place(event["at"], root)
        if kind == "coll":
            life += event["kind"] == "init_process_group"
            group, at = Group(life, event["name"], tuple(event["group"])), event["at"]
            lines = tuple((path, line) for path, line in ([at] if at else []) + event.get("by", []))
            begun = len(rank.exchanges)
            made = Exchange(event["kind"], group, event, _place(at, root), lines, begun, waits=not event["async"])
            by_number[event["n"]] = made
            rank.exchanges.append(made)
        elif kind == "coll_wait" and event["n"] in by_number:
            by_number[event["n"]].waits = True
        elif kind == "coll_end" and event["n"] in by_number:
            by_number[event["n"]].ended = True
            by_number[event["n"]].error = event.get("error", "")
        elif kind == "raised":
            rank.state, rank.error, rank.left = "raised", event["error"], _place(event["at"], root)
        elif kind == "limit":
            rank.state = "cut"
        elif kind == "end" and rank.state == "stopped":
            rank.state = "ended"
    return rank


def _place(at: Any, root: Path) -> Place | None:
    return Place(below(at[0], root), at[1]) if at else None


def collectives(world: dict[int, Rank]) -> Iterator[tuple[Group, dict[int, list[Exchange]]]]:
    """The collectives of each group, by rank and in order; a rank that never recorded anything has none."""
    groups = {each.group: None for rank in world.values() for each in rank.exchanges if not is_message(each)}
    for group in groups:
        made = {number: world[number].exchanges if number in world else [] for number in group.ranks or world}
        yield group, {
            number: [each for each in every if each.group == group and not is_message(each)]
            for number, every in made.items()
        }


def is_message(exchange: Exchange) -> bool:
    """Whether it goes from one rank to one other."""
    return exchange.kind in SENDS or exchange.kind in RECEIVES
