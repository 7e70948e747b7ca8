"""The ranks of one communicator of HCCL: a group of gloo over the memory of the cards.

Exchanges go on in the background, in the order of their calls, as in the stream that they are given to. Each has a
ticket in the driver (driver.c), which ends with it; who wants the result asks `wait`.
"""

from __future__ import annotations

import atexit
import datetime
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from npu_emulator import places
from npu_emulator.config import config
from npu_emulator.gloo_threads import wait_until_idle
from npu_emulator.record import record, write
from npu_emulator.trace.collectives import carried
from npu_emulator.user_code import nearest
from torch import distributed

from . import libraries, waiting
from .calls import below_the_program, hooks

#: Seconds that HCCL waits for a connection and for an exchange; ERROR of the runtime for one that is never over, as
#: the documentation of torch_npu on HCCL's time-outs shows it.
_CONNECT, _PATIENCE, _NEVER_OVER = 120, 1836, 507048
_OPERATIONS = {
    "sum": distributed.ReduceOp.SUM, "prod": distributed.ReduceOp.PRODUCT, "max": distributed.ReduceOp.MAX,
    "min": distributed.ReduceOp.MIN,
}  # fmt: skip
#: Types that gloo adds in another: the small ones, and one that it has not.
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.int16: torch.int32}
#: Seconds that a rank lets pass when another has left.
_GRACE = 1.0
#: Bytes that tell an exchange from another, and that say where it is called.
_WIDTH, _AT = 96, 64
#: How torch.distributed names what a traced run records.
_KINDS = {
    "HcclAllReduce": "all_reduce", "HcclBroadcast": "broadcast", "HcclReduce": "reduce", "HcclScatter": "scatter",
    "HcclAllGather": "all_gather_into_tensor", "HcclAllGatherV": "all_gather",
    "HcclReduceScatter": "reduce_scatter_tensor", "HcclReduceScatterV": "reduce_scatter",
    "HcclAlltoAll": "all_to_all_single", "HcclAlltoAllV": "all_to_all_single", "HcclBarrier": "barrier",
}  # fmt: skip
_NO_NOTIFY = "EI0002: The wait execution of the Notify register times out"
#: How gloo says so, and that the process of another rank is no more.
_TIMED_OUT = re.compile("timed? ?out", re.IGNORECASE)
_GONE = re.compile(r"Connection (?:closed|reset) by peer(?: \[[^\]]*\]:\d+)?|Broken pipe")


def _seconds(variable: str, usual: int) -> datetime.timedelta:
    text = os.environ.get(variable, "")
    number = int(text) if text.isdigit() else usual
    return datetime.timedelta(seconds=number or 10**6)  # 0 is without end


def begin(host: str, port: int, rank: int, size: int, store: Any = None) -> Any:
    """This process as `rank` of `size` in a group of gloo, once all are there."""
    patience = _seconds("HCCL_CONNECT_TIMEOUT", _CONNECT)
    over, made = threading.Event(), []
    _at_the_end()
    if store is None:
        places.begin(record.rank or str(rank), _world())

    def connect() -> None:
        try:
            known = store or distributed.TCPStore(host, port, None, False, patience)
            gloo = distributed.ProcessGroupGloo(known, rank, size, patience)
            gloo.barrier().wait()  # the store goes with the process that serves it
            gloo._set_default_timeout(_seconds("HCCL_EXEC_TIMEOUT", _PATIENCE))
            made.append(gloo)
        except RuntimeError as error:
            made.append(f"{error} (HCCL_CONNECT_TIMEOUT is {patience.seconds} seconds)")
        over.set()

    _stuck.append(over)
    threading.Thread(target=connect, daemon=True).start()
    standing = waiting.wait(over, f"the beginning of a communicator of {size}", _world(), f"{host}:{port}")
    if not standing:
        _stuck.remove(over)
        places.keep("the beginning of a communicator")
    if standing or isinstance(made[0], str):
        why = f"the ranks wait for one another: {standing}" if standing else made[0]
        raise TimeoutError(f"EI0006: Getting socket times out: not all {size} ranks came to a communicator: {why}")
    return made[0]


def _world() -> int:
    """How many ranks the program has."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


@dataclass
class Exchange:
    """One call: `run` makes it, on the thread of its communicator, and may give works that go on. `alike` is what
    all ranks have to bring: type, number of elements (None: it may differ), and the rest; None for messages.
    `writes`: memory of this process is changed."""

    group: Communicator
    run: Callable[[], Any]
    alike: tuple[Any, int | None, str] | None = None
    writes: bool = True
    name: str = ""

    def recorded(self) -> Callable[[str], None] | None:
        """What ends the record of this call in a traced run, where no call of torch.distributed was recorded."""
        if self.name not in _KINDS or config.trace is None:
            return None
        kind, count, rest = self.alike or (None, None, "")
        operation, _, root = rest.partition("root ")
        operation = operation.strip(", ")
        fields = {
            "kind": _KINDS[self.name], "shape": None if count is None else [count],
            "dtype": None if kind is None else str(kind).removeprefix("torch."),
            "op": {"prod": "PRODUCT"}.get(operation, operation.upper()) or None,
            "root": self.group.members[int(root)] if root else None,
        }  # fmt: skip
        return carried(fields, self.group.members)

    def __str__(self) -> str:
        if self.alike is None:
            return self.name
        kind, count, rest = self.alike
        number = "" if count is None else f"{count} "
        return f"{self.name} of {number}{str(kind).removeprefix('torch.')}" + (f" ({rest})" if rest else "")


@dataclass(eq=False)
class _Job:
    """Exchanges that end together, under one ticket of the driver."""

    exchanges: list[Exchange]
    #: How many came before in the communicator.
    number: int
    #: The line of the program that called.
    at: str
    over: threading.Event = field(default_factory=threading.Event)
    error: str = ""
    #: What records their end in a traced run.
    ends: list[Callable[[str], None]] = field(default_factory=list)


#: What has not ended, or has failed and told nobody.
_jobs: dict[int, _Job] = {}
_lock = threading.Lock()
#: Whether the process ends.
_leaving = False
#: What waits in C++ for ranks that will not come.
_stuck: list[threading.Event] = []
#: The process that has said at its first communicator what is to happen at its end.
_process = 0


class Communicator:
    """A group of ranks, this process being one of them (or several, with a card for each)."""

    def __init__(self, gloo: Any, name: str) -> None:
        self.gloo, self.name = gloo, name
        self.rank, self.size = gloo.rank(), gloo.size()
        self._broken = ""
        self._submitted = 0
        self.members = self._members()
        self._calls = _thread(self._carry_out)
        self._messages: queue.SimpleQueue[Any] | None = None

    def _members(self) -> list[int]:
        """The global ranks of all, in their order here; only a traced run asks."""
        if config.trace is None or not distributed.is_initialized():
            return []
        every = torch.empty(self.size, dtype=torch.int64, device="cpu")
        self.gather(torch.tensor([distributed.get_rank()], device="cpu"), every)
        return [int(each) for each in every.tolist()]

    def submit(self, exchanges: list[Exchange], stream: int) -> None:
        """Let exchanges begin behind those that were submitted before."""
        if self._broken:
            raise RuntimeError(self._broken)
        places.keep(str(exchanges[0]))
        job = _Job(exchanges, self._submitted, places.line_in_words() if self.size > 1 else "")
        self._submitted += 1
        with _lock:
            ticket = libraries.runtime.card_begin(stream, any(exchange.writes for exchange in exchanges))
            _jobs[ticket] = job
        job.ends = [end for exchange in exchanges if (end := exchange.recorded()) is not None]
        self._calls.put((ticket, job, ()))

    def close(self) -> None:
        """Let the threads end that carry out what was submitted."""
        for calls in (self._calls, self._messages):
            if calls is not None:
                calls.put(None)
        wait_until_idle()

    def _carry_out(self, ticket: int, job: _Job, _: Any) -> None:
        messages: list[Any] = []
        try:
            for exchange in job.exchanges:
                if exchange.alike is None:
                    messages += exchange.run()
                else:
                    self._agree(exchange, job.at)
                    exchange.run()
        except Exception as error:
            self._end(ticket, job, error)
            return
        if messages:
            if self._messages is None:
                self._messages = _thread(self._wait_for_messages)
            self._messages.put((ticket, job, messages))
        else:
            self._end(ticket, job, None)

    def _wait_for_messages(self, ticket: int, job: _Job, messages: list[Any]) -> None:
        """Messages end in the order of their calls, all of them being on their way."""
        try:
            for work in messages:
                work.wait()
        except Exception as error:
            self._end(ticket, job, error)
        else:
            self._end(ticket, job, None)

    def _end(self, ticket: int, job: _Job, error: Exception | None) -> None:
        if error is None:
            with _lock:
                _jobs.pop(ticket, None)
            libraries.runtime.card_end(ticket)
        else:
            job.error = self._broken = _in_hccls_words(job.exchanges[0], str(error))
        for end in job.ends:
            end(job.error)
        job.over.set()

    def _agree(self, exchange: Exchange, at: str) -> None:
        """RuntimeError where the ranks come with different exchanges: what they would get is nobody's result."""
        if self.size == 1:
            return
        mine = str(exchange).encode()[:_WIDTH].ljust(_WIDTH) + at.encode()[-_AT:].ljust(_AT)
        into = torch.empty(self.size * len(mine), dtype=torch.uint8, device="cpu")
        self.gather(torch.frombuffer(bytearray(mine), dtype=torch.uint8), into)
        every = [bytes(part.tolist()) for part in into.split(len(mine))]
        if len({part[:_WIDTH] for part in every}) > 1:
            halves = [(part[:_WIDTH], part[_WIDTH:]) for part in every]
            words = [[half.decode(errors="replace").strip() for half in pair] for pair in halves]
            found = "; ".join(f"rank {rank}: {' at '.join(filter(None, pair))}" for rank, pair in enumerate(words))
            raise RuntimeError(f"the ranks of the communicator come with different calls: {found}")

    def reduced(self, given: Any, operation: str) -> Any:
        """`given` of all ranks taken together; small types are added in float32."""
        work = given.to(_WIDER.get(given.dtype, given.dtype), copy=True)
        options = distributed.AllreduceOptions()
        options.reduceOp = _OPERATIONS[operation]
        if work.numel():
            self.gloo.allreduce([work], options).wait()
        return work

    def broadcast(self, tensor: Any, root: int) -> None:
        options = distributed.BroadcastOptions()
        options.rootRank, options.rootTensor = root, 0
        if tensor.numel():
            self.gloo.broadcast([tensor.view(torch.uint8)], options).wait()

    def gather(self, given: Any, into: Any) -> None:
        """`given` of all ranks, one after the other."""
        parts = list(into.view(torch.uint8).split(given.nbytes)) if given.numel() else []
        if parts:
            self.gloo.allgather([parts], [given.view(torch.uint8)]).wait()

    def scatter(self, given: list[Any], into: Any, root: int) -> None:
        options = distributed.ScatterOptions()
        options.rootRank = root
        parts = [[part.view(torch.uint8) for part in given]] if self.rank == root else []
        if into.numel():
            self.gloo.scatter([into.view(torch.uint8)], parts, options).wait()

    def send(self, tensor: Any, peer: int) -> Any:
        return self.gloo.send([tensor.view(torch.uint8)], peer, 0)

    def receive(self, into: Any, peer: int) -> Any:
        return self.gloo.recv([into.view(torch.uint8)], peer, 0)

    def exchange(self, out: list[Any], into: list[Any]) -> None:
        """Send the parts `out`, one for each rank, and take theirs."""
        works = []
        for rank, (sent, taken) in enumerate(zip(out, into, strict=True)):
            if rank == self.rank:
                taken.copy_(sent)
                continue
            if taken.numel():
                works.append(self.receive(taken, rank))
            if sent.numel():
                works.append(self.send(sent.clone(), rank))
        for work in works:
            work.wait()


def _thread(function: Callable[..., None]) -> queue.SimpleQueue[Any]:
    """A queue whose items `function` gets on a thread of its own; None ends it."""
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def take() -> None:
        with below_the_program():
            for item in iter(calls.get, None):
                function(*item)
                del item

    threading.Thread(target=take, daemon=True, name="hccl").start()
    return calls


def _in_hccls_words(exchange: Exchange, error: str) -> str:
    """The documented error of HCCL (EI0002: an exchange that is never over), and what gloo says of it."""
    if _TIMED_OUT.search(error):
        return f"{_NO_NOTIFY}: not every rank came to {exchange} (HCCL_EXEC_TIMEOUT): {error}"
    if found := _GONE.search(error):
        return f"{exchange}: another rank has left: {found[0]}"
    return f"{exchange}: {error}"


def wait(ticket: int) -> int:
    """Wait for what has the ticket; an error code of the runtime where it has failed."""
    with _lock:
        job = _jobs.get(ticket)
    if job is None:
        return 0
    if not job.over.is_set():
        first = job.exchanges[0]
        key = f"{first.group.name} {job.number}" if first.alike is not None else ""
        try:
            standing = waiting.wait(job.over, str(first), _world(), key, _failed)
        except KeyboardInterrupt:
            libraries.say("interrupted")
            return _NEVER_OVER
        if standing:
            _stuck.append(job.over)
            job.error = f"{_NO_NOTIFY}: the ranks wait for one another: {standing}"
        elif not job.over.is_set():
            return 0
        elif not job.error:
            places.keep(str(first))
    if not job.error:
        return 0
    if _GONE.search(job.error):
        _let_the_other_be_seen(job.error)
    libraries.say(job.error)
    with _lock:
        _jobs.pop(ticket, None)
    libraries.runtime.card_end(ticket)
    return _NEVER_OVER


def _let_the_other_be_seen(error: str) -> None:
    """Whoever started the ranks is to see the one that left before this one, which fails for that alone. It may be
    stopped meanwhile: where it stood is in its record."""
    frame = nearest(2)
    if frame is not None:
        place = {"path": os.path.abspath(frame.f_code.co_filename), "line": frame.f_lineno}
        record.leaving = {"reason": error, "time": time.time(), **place}
        write("running")
    time.sleep(_GRACE)
    record.leaving = None


def _failed() -> bool:
    """Whether this process ends, and with an error: nobody waits for other ranks then."""
    return _leaving and bool(record.exception or record.leaving or getattr(sys, "last_value", None))


def _at_the_end() -> None:
    """Let what is on its way arrive before this process ends."""
    global _process
    if _process != os.getpid():
        _process = os.getpid()
        atexit.register(_leave)
        hooks.append(places.keep_line)


def _leave() -> None:
    global _leaving
    if _process != os.getpid():
        return
    _leaving = True
    for ticket in [*_jobs]:
        wait(ticket)
    if _failed() and (_jobs or _stuck):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # a thread that waits in C++ for other ranks would abort the end of the interpreter
    wait_until_idle()
