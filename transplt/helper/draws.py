"""Random numbers: the same on all ranks, or each rank's own; and the orders in which the ranks share out data.

The streams are those of torch (CPU and card), `random` and NumPy. Rank 0's are never changed.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch import distributed

from transplt.helper.ranks import card_kind, exchange_device, rank, world_size

__all__ = ["own_draws", "same_draws"]

#: True while each rank draws its own noise.
_draws_are_own = False
#: How often the ranks began to draw their own.
_own_times = 0
#: What orders of data are drawn from, alike on all ranks: a number of each of rank 0's streams, so that a program has
#: the same again if it seeds those that it draws from; and how many there were before.
_orders_begin = [0, 0, 0, 0]
_orders_drawn = 0


def own_draws() -> None:
    """From here on each rank draws its own noise; every rank has to come here. Nothing if they do so already."""
    global _draws_are_own, _own_times, _orders_begin
    if world_size() == 1 or _draws_are_own:
        return
    begin = [*map(_number, _plain(stream_states()))]
    distributed.broadcast_object_list(begin, 0, device=exchange_device())
    _draws_are_own, _own_times, _orders_begin = True, _own_times + 1, begin
    if rank() > 0:
        seed_streams([_number(each, _own_times, rank()) for each in begin])


def same_draws() -> None:
    """All ranks go on with rank 0's streams, so that weights, splits and evaluations are alike.

    Every rank has to come here.
    """
    global _draws_are_own, _orders_begin
    if world_size() == 1:
        return
    sent = [stream_states()]
    distributed.broadcast_object_list(sent, 0, device=exchange_device())
    _draws_are_own, _orders_begin = False, [*map(_number, _plain(sent[0]))]
    if rank() > 0:
        set_streams(sent[0])


def order_state() -> tuple[list[int], int]:
    """What the next order of data is drawn from."""
    return _orders_begin, _orders_drawn


def next_order() -> int:
    """A new number, of 63 bits, which is the same on all ranks if all have asked equally often."""
    return _next_seeds()[0]


def _next_seeds() -> list[int]:
    global _orders_drawn
    _orders_drawn += 1
    return [_number(each, _orders_drawn) for each in _orders_begin]


def drawn_alike(source: Iterable[Any], at_once: int) -> Iterator[Any]:
    """What `source` yields, which may draw from the streams: the same on all ranks, and new at each iteration.

    It draws from streams of its own, which take the place of the process's while `at_once` elements are fetched.
    """
    inside: list[Any] | None = None
    elements: Iterator[Any] | None = None
    seeds = _next_seeds()
    fetched = [None] * at_once
    while len(fetched) == at_once:
        outside = stream_states()
        try:
            if inside is None:
                seed_streams(seeds)
            else:
                set_streams(inside)
            elements = iter(source) if elements is None else elements
            fetched = list(islice(elements, at_once))
            inside = stream_states()
        finally:
            set_streams(outside)
        yield from fetched


def stream_states() -> list[Any]:
    """The states of torch's CPU stream, the card's, those of `random` and of NumPy; None for what there is not."""
    numpy: Any = sys.modules.get("numpy")
    cards = None if card_kind() == "cpu" else getattr(torch, card_kind())
    return [
        torch.get_rng_state(),
        cards.get_rng_state() if cards else None,
        random.getstate(),
        numpy.random.get_state() if numpy else None,
    ]


def set_streams(states: list[Any]) -> None:
    """Go on from what `stream_states` gave."""
    numpy: Any = sys.modules.get("numpy")
    torch.set_rng_state(states[0])
    if states[1] is not None and card_kind() != "cpu":
        getattr(torch, card_kind()).set_rng_state(states[1])
    random.setstate(states[2])
    if states[3] is not None and numpy:
        numpy.random.set_state(states[3])


def seed_streams(seeds: list[int]) -> None:
    """Begin all streams anew, in the order of `stream_states`, with a seed of 63 bits for each."""
    numpy: Any = sys.modules.get("numpy")
    torch.default_generator.manual_seed(seeds[0])
    if card_kind() != "cpu":
        getattr(torch, card_kind()).manual_seed(seeds[1])
    random.seed(seeds[2])
    if numpy:
        numpy.random.seed([seeds[3] & 0xFFFFFFFF, seeds[3] >> 32])


def _plain(states: list[Any]) -> list[Any]:
    """What identifies states in one run as in the next."""
    numpy_state = states[3] and [part if isinstance(part, (str, int, float)) else part.tolist() for part in states[3]]
    return [states[0].tolist(), states[1] if states[1] is None else states[1].tolist(), states[2], numpy_state]


def _number(*parts: Any) -> int:
    """A number of 63 bits for these parts."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big") >> 1
