"""Whether the ranks of a run made the same collectives: mismatches, collectives that some ranks miss, hangs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transplt.proof.launch.stacks import below
from transplt.proof.prove.exchanges import RECEIVES, SENDS, Exchange, Rank, collectives, is_message, read_ranks
from transplt.proof.prove.rank_conditions import Condition, Conditions, read_source
from transplt.proof.prove.training import Place

#: How much before and behind the place where ranks part is looked at for the cause.
_BEFORE, _BEHIND = 400, 50
#: What has to be the same on all ranks; a reduction that is recorded from C++ has no `op`.
_ALIKE = {"dtype": "type", "op": "operation", "root": "root", "ranks": "ranks", "sizes": "shape"}


@dataclass(frozen=True)
class CollectiveFault:
    """One thing that is wrong between ranks. `kind`: `mismatch` (they make different collectives), `skipped` (some do
    not come to one), `left` (a rank raised while others waited), `message` (a send or recv without its other end) or
    `hang`. `places` are the lines of `ranks`, in that order; `condition` is the line of the one that parts them."""

    kind: str
    text: str
    ranks: tuple[int, ...]
    places: tuple[Place | None, ...]
    condition: Place | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def place(self) -> Place | None:
        """The condition that parts the ranks, or the line of the first of them that has one."""
        return self.condition or next(filter(None, self.places), None)


def collective_faults(
    traces: Sequence[list[dict[str, Any]]],
    root: Path,
    *,
    hung: bool = False,
    read: Callable[[str], str | None] = read_source,
) -> list[CollectiveFault]:
    """What is wrong with the collectives of a run, the gravest first; nothing for a run of one rank.

    `traces` are the events of all its processes, `root` the folder that places are relative to, `hung` whether it was
    stopped because its ranks waited for one another; `read` gives the text of a source file, None for none.
    """
    search = _Search(root, Conditions(read), hung)
    found: list[CollectiveFault] = []
    for world in read_ranks(traces, root):
        found += search.faults(world)
    order = ("mismatch", "skipped", "message", "left", "hang")
    return sorted(found, key=lambda fault: order.index(fault.kind))


def standings(traces: Sequence[list[dict[str, Any]]], root: Path) -> list[str]:
    """Where each rank was at the end of a run that was stopped: `rank 0 is in barrier at train.py:9`."""
    return [f"rank {rank.rank} {rank.whereabouts}" for world in read_ranks(traces, root) for rank in world.values()]


@dataclass
class _Search:
    root: Path
    conditions: Conditions
    hung: bool

    def faults(self, world: dict[int, Rank]) -> list[CollectiveFault]:
        found = [fault for _, lists in collectives(world) if (fault := self._of_group(world, lists))]
        # One cause shows in every group that the ranks share.
        found = list({(fault.kind, fault.places): fault for fault in reversed(found)}.values())[::-1]
        found += self._of_messages(world)
        if self.hung and not found and any(rank.standing for rank in world.values()):
            where = "; ".join(f"rank {rank.rank} {rank.whereabouts}" for rank in world.values())
            places = tuple(rank.place for rank in world.values())
            found.append(CollectiveFault("hang", f"the ranks wait for each other: {where}", tuple(world), places))
        return found

    def _of_group(self, world: dict[int, Rank], lists: dict[int, list[Exchange]]) -> CollectiveFault | None:
        for position in range(max(map(len, lists.values()), default=0)):
            there = {number: made[position] for number, made in lists.items() if position < len(made)}
            first, *others = there
            for other in others:
                if unlike(there[first], there[other]) or there[first].kind != there[other].kind:
                    return self._apart(world, lists, (first, other), position)
            for missing in [number for number in lists if number not in there]:
                waiting = next((each for each in there if there[each].stands or there[each].error), first)
                if self._misses(there[waiting], world.get(missing)):
                    return self._apart(world, lists, (waiting, missing), position)
        return None

    def _misses(self, made: Exchange, other: Rank | None) -> bool:
        """Whether a rank will not come to a collective any more, which another one made."""
        if other is None:
            return made.stands and (self.hung or bool(made.error))
        if other.state == "cut":
            return False
        if other.state == "ended":
            return True
        return (made.stands or bool(made.error)) and (other.state == "raised" or self.hung)

    def _apart(
        self, world: dict[int, Rank], lists: dict[int, list[Exchange]], pair: tuple[int, int], position: int
    ) -> CollectiveFault:
        """What parts two ranks that do not make the same at `position`."""
        left, right = lists[pair[0]], lists[pair[1]]
        one = left[position] if position < len(left) else None
        other = right[position] if position < len(right) else None
        gone = world.get(pair[1])
        if other is None and one is not None and (gone is None or gone.state == "raised"):
            return self._left(pair, one, gone)
        side: int | None = None if one is not None and other is not None else 0
        parted = self._parted(left, right, position)
        if parted is not None:
            one, other, side = parted
        if one is not None and other is not None and _line(one) == _line(other):
            return _mismatch(pair, one, other)
        condition, side = self._divider(one, other, side, (left, right))
        if side is None and one is not None and other is not None:
            side = _repeated(one, other, left[:position], right[:position])
            if side is None:
                condition = self._both(one, other)
                return _mismatch(pair, one, other, condition, self._place(condition))
        made, instead = (one, other) if side == 0 else (other, one)
        assert made is not None
        return self._skipped(world, lists, pair if side == 0 else pair[::-1], made, instead, condition)

    def _left(self, pair: tuple[int, int], one: Exchange, gone: Rank | None) -> CollectiveFault:
        what = gone.whereabouts if gone is not None else "never joined the group"
        verb = "waits in" if one.stands else "calls"
        text = f"rank {pair[1]} {what}; rank {pair[0]} {verb} {one.what}{_at(one.place)} for it"
        return CollectiveFault("left", text, pair[::-1], (gone.place if gone is not None else None, one.place))

    def _parted(
        self, left: list[Exchange], right: list[Exchange], position: int
    ) -> tuple[Exchange | None, Exchange | None, int | None] | None:
        """The first collectives in which the two orders part by their lines, and which of the two (0 or 1) has one that
        the other lacks; None for that where each has its own, and for all where they part in no line."""
        start = max(position - _BEFORE, 0)
        one, other = left[start : position + _BEHIND], right[start : position + _BEHIND]
        matcher = difflib.SequenceMatcher(None, [_line(x) for x in one], [_line(x) for x in other], autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if start + min(a, c) > position:
                return None
            paired = b - a == d - c and not any(
                unlike(x, y) or x.kind != y.kind for x, y in zip(one[a:b], other[c:d], strict=True)
            )
            if tag != "equal" and not paired:
                mine, theirs = one[a] if a < len(one) else None, other[c] if c < len(other) else None
                return mine, theirs, {"delete": 0, "insert": 1}.get(tag)
        return None

    def _divider(
        self, one: Exchange | None, other: Exchange | None, side: int | None, made: tuple[list[Exchange], ...]
    ) -> tuple[Condition | None, int | None]:
        """The condition under which only one of two stands, and which of them (0 or 1): `side` where that is known."""
        found = [self._conditions(one), self._conditions(other)]
        if side is not None:
            return self._keeping_away(found[side], found[1 - side], made[1 - side]), side
        apart = [[each for each in found[k] if each not in found[1 - k]] for k in (0, 1)]
        for divides in (True, False):
            having = [[each for each in mine if each.divides or not divides] for mine in apart]
            if bool(having[0]) != bool(having[1]):
                which = 0 if having[0] else 1
                return having[which][0], which
        return None, None

    def _keeping_away(self, mine: list[Condition], theirs: list[Condition], made: list[Exchange]) -> Condition | None:
        """The condition that keeps a rank, which `made` these and goes on elsewhere, from where another one is."""
        # What it was under at any time does not keep it away; a way out of a loop may, at some time.
        been = {each for exchange in made for each in self._conditions(exchange)}
        only = [each for each in mine if each not in been]
        ways_out = [each for each in mine if each.divides and each.way != "body"]
        # Where it goes on behind a loop of as many passes on all ranks, it has taken the one way out.
        left = [each for each in mine if each.way == "ended" and each not in theirs]
        rest = next(iter(only), left[0] if len(left) == 1 else None)
        return next((each for each in (*only, *ways_out) if each.divides), rest)

    def _both(self, one: Exchange, other: Exchange) -> Condition | None:
        """The condition of which two stand on different sides."""
        ways = {(each.path, each.line): each.way for each in self._conditions(other)}
        return next((each for each in self._conditions(one)
                     if ways.get((each.path, each.line), each.way) != each.way), None)  # fmt: skip

    def _conditions(self, exchange: Exchange | None) -> list[Condition]:
        lines = exchange.lines if exchange is not None else ()
        return [found for path, line in lines for found in self.conditions.of(path, line)]

    def _skipped(
        self, world: dict[int, Rank], lists: dict[int, list[Exchange]], pair: tuple[int, int], made: Exchange,
        instead: Exchange | None, condition: Condition | None,
    ) -> CollectiveFault:  # fmt: skip
        reaching, missing = pair
        counts = [sum(_line(each) == _line(made) for each in lists[number]) for number in pair]
        text = f"rank {reaching} calls {made.what}{_at(made.place)}, which rank {missing} does not reach"
        if counts[1]:
            said = ["once" if count == 1 else f"{count} times" for count in counts]
            times = " and ".join(f"{each} on rank {number}" for each, number in zip(said, pair, strict=True))
            text = f"rank {reaching} calls {made.what}{_at(made.place)} once more than rank {missing} does ({times})"
            text = text.replace("once more", "more often") if counts[0] - counts[1] != 1 else text
        where = self._place(condition)
        if condition is not None:
            word = "inside" if condition.way not in ("behind", "ended") else "behind"
            text += f"; it is {word} `{condition.text}`{_at(where)}"
        gone = world.get(missing)
        if instead is not None and instead is not made:
            text += f"; rank {missing} goes on to {instead.what}{_at(instead.place)}"
        elif gone is not None:
            text += f"; rank {missing} {gone.whereabouts}"
        place = instead.place if instead is not None else gone.place if gone is not None else None
        return CollectiveFault("skipped", text, pair, (made.place, place), where)

    def _place(self, condition: Condition | None) -> Place | None:
        return Place(below(condition.path, self.root), condition.line) if condition is not None else None

    def _of_messages(self, world: dict[int, Rank]) -> Iterator[CollectiveFault]:
        """Sends and receives, paired in their order; what is left has no other end."""
        waiting: dict[tuple[Any, ...], list[tuple[int, Exchange]]] = {}
        received: list[tuple[int, Exchange]] = []
        for number, rank in world.items():
            for each in rank.exchanges:
                if each.kind in SENDS:
                    key = (each.group, number, each.fields["root"], each.fields.get("tag"), SENDS.index(each.kind))
                    waiting.setdefault(key, []).append((number, each))
                elif each.kind in RECEIVES:
                    received.append((number, each))
        alone: list[tuple[int, Exchange]] = []
        for number, each in sorted(received, key=lambda pair: pair[1].fields["root"] is None):
            source, kind = each.fields["root"], RECEIVES.index(each.kind)
            keys = [
                (each.group, origin, number, each.fields.get("tag"), kind)
                for origin in (world if source is None else (source,))
            ]
            answers = next((waiting[key] for key in keys if waiting.get(key)), None)
            if answers is None:
                alone.append((number, each))
                continue
            sender, sent = answers.pop(0)
            if unlike(sent, each):
                yield _mismatch((sender, number), sent, each)
        alone += [pair for pairs in waiting.values() for pair in pairs]
        for number, each in alone:
            other = world.get(each.fields["root"]) if each.fields["root"] is not None else None
            if self._misses(each, other):
                yield self._alone(number, each, other)

    def _alone(self, number: int, made: Exchange, other: Rank | None) -> CollectiveFault:
        verb = "receives nothing from it" if made.kind in SENDS else "sends it nothing"
        where = f", which {verb}: it {other.whereabouts}" if other is not None else ""
        others: tuple[int, ...] = (other.rank,) if other is not None else ()
        condition, _ = self._divider(made, None, 0, ([], other.exchanges if other is not None else []))
        condition = condition if condition is not None and condition.divides else None
        text = f"rank {number} calls {made.what}{_at(made.place)}{where or ', and no other rank takes part'}"
        if condition is not None:
            text += f"; it is inside `{condition.text}`{_at(self._place(condition))}"
        places = (made.place,) if other is None else (made.place, other.place)
        return CollectiveFault("message", text, (number, *others), places, self._place(condition))


def unlike(one: Exchange, other: Exchange) -> list[str]:
    """What two ranks' sides of one exchange do not have in common: the names of the fields."""
    found = []
    for name in ("dtype", "op", "root", "ranks"):
        mine, theirs = one.fields.get(name), other.fields.get(name)
        if mine != theirs and mine is not None and theirs is not None and not (is_message(one) and name == "root"):
            found.append(name)
    if one.kind == other.kind and one.kind.startswith("all_to_all"):
        if not _fits(one, other):
            found.append("sizes")
    elif _plain(one.fields.get("shape")) != _plain(other.fields.get("shape")):
        found.append("sizes")
    return found


def _fits(one: Exchange, other: Exchange) -> bool:
    """Whether an all_to_all gives each of two ranks what it takes."""
    ranks = one.group.ranks
    mine, theirs = one.fields.get("rank_in_group"), other.fields.get("rank_in_group")
    if mine is None or theirs is None or len(ranks) <= max(mine, theirs):
        return True
    pairs = ((one, mine, other, theirs), (other, theirs, one, mine))
    return all(a.fields["sends"][y : y + 1] == b.fields["receives"][x : x + 1] for a, x, b, y in pairs)


def _plain(shape: Any) -> Any:
    """A shape without dimensions of size 1, which do not change what is exchanged."""
    if not shape:
        return shape if shape is None else []
    return [_plain(each) if isinstance(each, list) else each for each in shape if each != 1]


def _repeated(one: Exchange, other: Exchange, left: list[Exchange], right: list[Exchange]) -> int | None:
    """Which of two (0 or 1) is a line that the other rank came to before, and left behind: the longer loop."""
    known = [any(_line(each) == _line(one) for each in right), any(_line(each) == _line(other) for each in left)]
    return known.index(True) if known[0] != known[1] else None


def _line(exchange: Exchange) -> Any:
    return exchange.kind, exchange.lines


def _mismatch(
    pair: tuple[int, int], one: Exchange, other: Exchange, condition: Condition | None = None, at: Place | None = None
) -> CollectiveFault:
    what = ""
    if one.kind == other.kind or is_message(one):
        what = f"{one.kind} differs in {' and '.join(_ALIKE[name] for name in unlike(one, other)) or 'its lines'}: "
    created = [each.fields.get("ranks") for each in (one, other)]
    calls = [
        f"rank {number} calls {each.what}{_at(each.place)}{f' with ranks {ranks}' if ranks is not None else ''}"
        for number, each, ranks in zip(pair, (one, other), created, strict=True)
    ]
    text = what + ", ".join(calls)
    if condition is not None:
        text += f"; the ranks take different branches at `{condition.text}`{_at(at)}"
    # A connection that is lost shows only that the other rank has failed.
    error = next((each for each in (one.error, other.error) if each and "onnection" not in each), "")
    text += f"; the call ends with {error}" if error else ""
    return CollectiveFault("mismatch", text, pair, (one.place, other.place), at)


def _at(place: Place | None) -> str:
    return f" at {place}" if place is not None else ""
