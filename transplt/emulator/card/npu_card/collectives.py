"""HCCL between processes of one machine: what each call of CANN's collective library does.

`carry_out` is what the driver's libhccl calls (collectives.c). Names, orders of arguments, types and reductions are
those of CANN's public C interface (hccl.h, hccl_types.h). A call reads its arguments and leaves the rest to its
communicator (`communicators.py`), in whose order the ranks meet.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from npu_emulator.config import config
from npu_emulator.limits import card_title
from npu_emulator.record import record
from torch import distributed

from . import libraries
from .calls import below_the_program
from .communicators import Communicator, Exchange, begin
from .records import MEMORY, tensor_at, unpack

#: In the order of collectives.c.
NAMES = (
    "GetRootInfo", "CommInitRootInfo", "CommInitRootInfoConfig", "CommDestroy", "AllReduce", "Broadcast", "AllGather",
    "ReduceScatter", "Reduce", "Send", "Recv", "Scatter", "AlltoAll", "AlltoAllV", "Barrier", "BatchSendRecv",
    "GetCommName", "AllGatherV", "ReduceScatterV", "GroupStart", "GroupEnd", "CommInitAll",
)  # fmt: skip
#: HcclDataType.
_TYPES = {
    0: torch.int8, 1: torch.int16, 2: torch.int32, 3: torch.float16, 4: torch.float32, 5: torch.int64,
    6: torch.uint64, 7: torch.uint8, 8: torch.uint16, 9: torch.uint32, 10: torch.float64, 11: torch.bfloat16,
    15: torch.float8_e4m3fn, 16: torch.float8_e5m2,
}  # fmt: skip
_EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2)
_REDUCTIONS = ("sum", "prod", "max", "min")
#: What HCCL reduces, by card: the pages on HcclAllReduce, HcclReduce and HcclReduceScatter of CANN 8.0 to 9.0.
_ALL = frozenset((torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.bfloat16))
_REDUCED = {
    "910": _ALL - {torch.int16, torch.bfloat16}, "310P": _ALL - {torch.int64, torch.bfloat16},
    "950": _ALL | {torch.uint64, torch.float64},
}  # fmt: skip
#: What it does not reduce by an operation other than sum: the same pages.
_SUM_ONLY: dict[str, dict[str, tuple[Any, ...]]] = {
    "910B": {"prod": (torch.int16, torch.bfloat16)}, "A3": {"prod": (torch.int16, torch.bfloat16)},
    "310P": dict.fromkeys(("prod", "max", "min"), (torch.int16,)),
}  # fmt: skip
class NotSupported(Exception):
    """A type that HCCL does not take."""


#: HCCL_E_PARA, HCCL_E_INTERNAL, HCCL_E_NOT_SUPPORT, HCCL_E_TIMEOUT; bytes of HcclRootInfo.
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (KeyError, 1), (NotSupported, 5), (TimeoutError, 9), (Exception, 4),
)  # fmt: skip
_ROOT_INFO = 4108
_FIRST_HANDLE = 0x5000
#: Servers of stores, which end with the process.
_stores: list[Any] = []
_communicators: dict[int, Communicator] = {}
#: Calls between GroupStart and GroupEnd of a thread, and how deep it is in them.
_group = threading.local()


def _flat(address: int, count: int, dtype: Any) -> Any:
    return tensor_at(address, dtype, (count,), (1,)) if count else torch.empty(0, dtype=dtype, device="cpu")


def _parts(address: int, counts: Any, places: Any, dtype: Any) -> list[Any]:
    """Views of `counts` elements each, at `places` (in elements)."""
    size = dtype.itemsize
    return [_flat(address + place * size, count, dtype) for count, place in zip(counts, places, strict=True)]


def _longs(address: int, count: int) -> tuple[int, ...]:
    return unpack(f"{count}Q", MEMORY, address)


def _low(word: int) -> int:
    return word & 0xFFFFFFFF


def _type(word: int) -> Any:
    kind = _TYPES.get(_low(word))
    if kind is None or (kind in _EIGHT_BITS and config.card != "950"):
        name = str(kind).removeprefix("torch.") if kind else f"number {_low(word)}"
        raise NotSupported(f"EI0003: the data type {name} is not supported on {card_title()}")
    return kind


def _reduced(word: int, reduction: int) -> tuple[Any, str]:
    """The type and the operation of a reduction; NotSupported where HCCL does not have them together."""
    kind, name = _type(word), _REDUCTIONS[_low(reduction)]
    if kind not in _REDUCED.get(config.card, _ALL) or kind in _SUM_ONLY.get(config.card, {}).get(name, ()):
        raise NotSupported(f"EI0003: {name} of {str(kind).removeprefix('torch.')} is not supported on {card_title()}")
    return kind, name


def _get_root_info(info: int) -> None:
    store = distributed.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    _stores.append(store)
    text = b"127.0.0.1 %d\0" % store.port
    ctypes.memset(info, 0, _ROOT_INFO)
    ctypes.memmove(info, text, len(text))


def _add(communicator: Communicator, handle: int) -> None:
    number = _FIRST_HANDLE + len(_communicators)
    while number in _communicators:
        number += 1
    _communicators[number] = communicator
    struct.pack_into("Q", MEMORY, handle, number)


def _begin(count: int, info: int, rank: int, handle: int) -> None:
    host, port = ctypes.string_at(info).decode().split()
    if record.rank is None:
        record.rank = os.environ.get("RANK", str(_low(rank)))
    _add(Communicator(begin(host, int(port), _low(rank), _low(count)), f"{host}_{port}"), handle)


def _init_all(count: int, devices: int, handles: int) -> None:
    """One process with a communicator for each of several cards: as many ranks of gloo, each with its own thread."""
    store, size = distributed.HashStore(), _low(count)
    made: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda rank=rank: made.update({rank: begin("", 0, rank, size, store)}))
        for rank in range(size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank in range(size):
        _add(Communicator(made[rank], f"of_one_process_{id(store):x}"), handles + 8 * rank)


def _destroy(handle: int) -> None:
    communicator = _communicators.pop(handle, None)
    if communicator is not None:
        communicator.close()


def _name(handle: int, place: int) -> None:
    text = _communicators[handle].name.encode() + b"\0"
    ctypes.memmove(place, text, len(text))


def _all_reduce(send: int, receive: int, count: int, dtype: int, reduction: int, handle: int) -> Exchange:
    group, (kind, name) = _communicators[handle], _reduced(dtype, reduction)
    given, into = _flat(send, count, kind), _flat(receive, count, kind)
    return Exchange(group, lambda: into.copy_(group.reduced(given, name)), (kind, count, name))


def _broadcast(buffer: int, count: int, dtype: int, root: int, handle: int) -> Exchange:
    group, kind, source = _communicators[handle], _type(dtype), _low(root)
    tensor = _flat(buffer, count, kind)
    return Exchange(group, lambda: group.broadcast(tensor, source), (kind, count, f"root {source}"))


def _all_gather(send: int, receive: int, count: int, dtype: int, handle: int) -> Exchange:
    group, kind = _communicators[handle], _type(dtype)
    given, into = _flat(send, count, kind), _flat(receive, count * group.size, kind)
    return Exchange(group, lambda: group.gather(given, into), (kind, count, ""))


def _all_gather_v(send: int, count: int, receive: int, counts: int, places: int, dtype: int, handle: int) -> Exchange:
    group, kind = _communicators[handle], _type(dtype)
    given = _flat(send, count, kind)
    into = _parts(receive, _longs(counts, group.size), _longs(places, group.size), kind)
    return Exchange(group, lambda: group.exchange([given] * group.size, into), (kind, None, ""))


def _reduce_scatter(send: int, receive: int, count: int, dtype: int, reduction: int, handle: int) -> Exchange:
    group, (kind, name) = _communicators[handle], _reduced(dtype, reduction)
    given, into, first = _flat(send, count * group.size, kind), _flat(receive, count, kind), count * group.rank
    return Exchange(group, lambda: into.copy_(group.reduced(given, name)[first : first + count]), (kind, count, name))


def _reduce_scatter_v(
    send: int, counts: int, places: int, receive: int, count: int, dtype: int, reduction: int, handle: int
) -> Exchange:
    group, (kind, name) = _communicators[handle], _reduced(dtype, reduction)
    parts = _parts(send, _longs(counts, group.size), _longs(places, group.size), kind)
    into = _flat(receive, count, kind)

    def run() -> None:
        for rank, part in enumerate(parts):
            found = group.reduced(part, name)
            if rank == group.rank:
                into.copy_(found)

    return Exchange(group, run, (kind, None, name))


def _reduce(send: int, receive: int, count: int, dtype: int, reduction: int, root: int, handle: int) -> Exchange:
    group, (kind, name) = _communicators[handle], _reduced(dtype, reduction)
    given, into, target = _flat(send, count, kind), _flat(receive, count, kind), _low(root)

    def run() -> None:
        found = group.reduced(given, name)
        if group.rank == target:
            into.copy_(found)

    return Exchange(group, run, (kind, count, f"{name}, root {target}"))


def _send(buffer: int, count: int, dtype: int, peer: int, handle: int) -> Exchange:
    group, copy = _communicators[handle], _flat(buffer, count, _type(dtype)).clone()
    return Exchange(group, lambda: [group.send(copy, _low(peer))], writes=False)


def _receive(buffer: int, count: int, dtype: int, peer: int, handle: int) -> Exchange:
    group, into = _communicators[handle], _flat(buffer, count, _type(dtype))
    return Exchange(group, lambda: [group.receive(into, _low(peer))])


def _scatter(send: int, receive: int, count: int, dtype: int, root: int, handle: int) -> Exchange:
    group, kind, source = _communicators[handle], _type(dtype), _low(root)
    into = _flat(receive, count, kind)
    given = list(_flat(send, count * group.size, kind).split(count)) if group.rank == source and count else []
    return Exchange(group, lambda: group.scatter(given, into, source), (kind, count, f"root {source}"))


def _all_to_all(send: int, count: int, dtype: int, receive: int, taken: int, taken_type: int, handle: int) -> Exchange:
    group, kind = _communicators[handle], _type(dtype)
    ranks = range(group.size)
    out = _parts(send, [count] * group.size, [count * rank for rank in ranks], kind)
    into = _parts(receive, [taken] * group.size, [taken * rank for rank in ranks], _type(taken_type))
    return Exchange(group, lambda: group.exchange(out, into), (kind, count, ""))


def _all_to_all_v(
    send: int, counts: int, places: int, dtype: int, receive: int, taken: int, taken_places: int, taken_type: int,
    handle: int,
) -> Exchange:  # fmt: skip
    group, kind = _communicators[handle], _type(dtype)
    out = _parts(send, _longs(counts, group.size), _longs(places, group.size), kind)
    into = _parts(receive, _longs(taken, group.size), _longs(taken_places, group.size), _type(taken_type))
    return Exchange(group, lambda: group.exchange(out, into), (kind, None, ""))


def _barrier(handle: int) -> Exchange:
    group = _communicators[handle]
    return Exchange(group, lambda: None, (torch.uint8, 0, ""))


def _batch(items: int, count: int, handle: int) -> Exchange:
    """Sends (kind 0) and receives of one call, each an HcclSendRecvItem of 32 bytes."""
    group = _communicators[handle]
    posts: list[Callable[[], Any]] = []
    for at in range(_low(count)):
        kind, buffer, size, dtype, peer = unpack("i4xQQiI", MEMORY, items + 32 * at)
        tensor = _flat(buffer, size, _type(dtype))
        posts.append(partial(group.send, tensor.clone(), peer) if kind == 0 else partial(group.receive, tensor, peer))
    return Exchange(group, lambda: [post() for post in posts])


def _group_start() -> None:
    _group.depth = getattr(_group, "depth", 0) + 1


def _group_end() -> None:
    """Begin what was called since GroupStart: for each communicator its calls, one after the other."""
    _group.depth -= 1
    if _group.depth:
        return
    waiting, _group.waiting = getattr(_group, "waiting", []), []
    for group in dict.fromkeys(exchange.group for exchange, _ in waiting):
        own = [(exchange, stream) for exchange, stream in waiting if exchange.group is group]
        group.submit([exchange for exchange, _ in own], own[-1][1])


#: What each call does, which of its words it reads, and which is the stream (None: the call is over when it returns).
_CALLS: tuple[tuple[Callable[..., Exchange | None], tuple[int, ...], int | None], ...] = (
    (_get_root_info, (0,), None), (_begin, (0, 1, 2, 3), None), (_begin, (0, 1, 2, 4), None), (_destroy, (0,), None),
    (_all_reduce, (0, 1, 2, 3, 4, 5), 6), (_broadcast, (0, 1, 2, 3, 4), 5), (_all_gather, (0, 1, 2, 3, 4), 5),
    (_reduce_scatter, (0, 1, 2, 3, 4, 5), 6), (_reduce, (0, 1, 2, 3, 4, 5, 6), 7), (_send, (0, 1, 2, 3, 4), 5),
    (_receive, (0, 1, 2, 3, 4), 5), (_scatter, (0, 1, 2, 3, 4, 5), 6), (_all_to_all, (0, 1, 2, 3, 4, 5, 6), 7),
    (_all_to_all_v, (0, 1, 2, 3, 4, 5, 6, 7, 8), 9), (_barrier, (0,), 1), (_batch, (0, 1, 2), 3), (_name, (0, 1), None),
    (_all_gather_v, (0, 1, 2, 3, 4, 5, 6), 7), (_reduce_scatter_v, (0, 1, 2, 3, 4, 5, 6, 7), 8),
    (_group_start, (), None), (_group_end, (), None), (_init_all, (0, 1, 2), None),
)  # fmt: skip


def carry_out(number: int, address: int) -> int:
    """Carry out the call `number` of NAMES with the ten words at `address`; an error code of HCCL, or 0."""
    function, places, stream = _CALLS[number]
    words = unpack("10Q", MEMORY, address)
    name = f"Hccl{NAMES[number]}"
    try:
        record.operators[name] += 1
        with below_the_program():
            exchange = function(*[words[at] for at in places])
            if exchange is not None and stream is not None:
                exchange.name = name
                if getattr(_group, "depth", 0):
                    _group.__dict__.setdefault("waiting", []).append((exchange, words[stream]))
                else:
                    exchange.group.submit([exchange], words[stream])
        return 0
    except Exception as error:
        libraries.say(f"{name}: {error}")
        return next(code for kind, code in _CODES if isinstance(error, kind))
    except BaseException as error:
        return libraries.after(error)
