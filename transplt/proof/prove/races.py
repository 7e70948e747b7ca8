"""Effects of one rank and reads of another that nothing keeps in order, by what each rank has recorded.

A run shows a race only where it comes out wrong. The order of the recorded events tells of each collective on which
side of it a rank wrote and another one read: with none between them the read may come first, or last.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import product

from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Event, Training

_EFFECTS = {"save": "writes", "write": "writes", "remove": "removes", "rename": "renames"}
#: What another rank does with it, with the word for that.
_USES = {"load": "loads it", "read": "reads it", "ask": "tests whether it exists"}
#: Collectives behind which only the others know where one rank is, or only that one where the others are.
_SENDS = frozenset({"broadcast", "broadcast_object_list", "scatter", "scatter_object_list"})
_TAKES = frozenset({"reduce", "gather", "gather_object"})
_MESSAGES = frozenset({"send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list", "recv_object_list"})


def unordered(ranks: Sequence[Training]) -> Difference | str:
    """The first effect of a rank on a file that another one may read too early, or still; how many there were where all
    of them are kept in order, "" without any."""
    effects, seen = 0, [(_before(rank, _TAKES), _before(rank, _SENDS)) for rank in ranks]
    for (here, one), (there, other) in product(enumerate(ranks), enumerate(ranks)):
        reads = [event for event in other.of(*_USES) if event.fields.get("path")] if here != there else []
        for effect in one.of(*_EFFECTS) if reads else ():
            for read in (each for each in reads if each.fields["path"] == effect.fields.get("path")):
                effects += 1
                told, known = ((_at(seen[here][way], effect), _at(seen[there][way], read)) for way in (0, 1))
                if not told[0] < told[1] and not known[1] < known[0]:
                    what = f"rank {one.rank} {_EFFECTS[effect.kind]} {read.fields['file']}, and rank {other.rank} "
                    what += _USES[read.kind]
                    # One that asks too early takes another way: the question is what has to wait.
                    place, beside = (effect, read) if read.kind != "ask" else (read, effect)
                    where = f" in {beside.place}" if read.place != effect.place and beside is read else ""
                    return Difference(f"{what}{where}, with no collective between them", place.place)
    return f"{effects} of one rank on what another one loads" if effects else ""


def _before(rank: Training, apart: frozenset[str]) -> list[int]:
    """The places of the collectives of all ranks among the events of one, but for those `apart`."""
    events = (each for each in rank.of("coll") if len(each.fields.get("group") or ()) in (0, rank.world))
    return [each.index for each in events if each.fields["kind"] not in apart | _MESSAGES]


def _at(places: list[int], event: Event) -> int:
    """How many of some collectives a rank has come by at an event."""
    return bisect(places, event.index)
