"""Streams and events of a device that runs everything at once: they keep order by doing nothing, and time by the
clock."""

from __future__ import annotations

import threading
import time
from typing import Any

import torch
from npu_emulator.names import NotEmulated

from .. import _devices

__all__ = [
    "Event",
    "ExternalEvent",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "SyncLaunchStream",
    "current_stream",
    "default_stream",
    "get_stream_limit",
    "reset_stream_limit",
    "set_stream",
    "set_stream_limit",
    "stream",
]


class Stream:
    """A stream; work given to it has run when the call returns."""

    _next = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.device_index = _devices.index_of(device)
        self.device_type = 20
        self.device = torch.device("npu", self.device_index)
        self.priority = priority
        Stream._next += 1
        self.npu_stream = self.stream_id = Stream._next

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -1

    def wait_event(self, event: Any) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        pass

    def record_event(self, event: Any = None) -> Event:
        event = event or Event()
        event.record(self)
        return event  # type: ignore[no-any-return]

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)

    def __repr__(self) -> str:
        return f"<torch_npu.npu.Stream device={self.device} npu_stream={self.npu_stream:#x}>"

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc: Any) -> bool:
        return self._context.__exit__(*exc)


SyncLaunchStream = Stream


class ExternalStream(Stream):
    """A stream made elsewhere, given by its address."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        super().__init__(device)
        self.npu_stream = stream_ptr


class Event:
    """A point in time; times are the host's."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        self.enable_timing = enable_timing
        self.npu_event = id(self)
        self._at: float | None = None

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two recorded events made with enable_timing=True."""
        if not (self.enable_timing and end_event.enable_timing):
            raise RuntimeError("[emulated npu] elapsed_time needs two events made with enable_timing=True")
        if self._at is None or end_event._at is None:
            raise RuntimeError("[emulated npu] elapsed_time needs two events that were recorded")
        return (end_event._at - self._at) * 1e3

    def recorded_time(self) -> int:
        """Microseconds."""
        return int((self._at or 0) * 1e6)

    def ipc_handle(self) -> Any:
        raise NotEmulated("[emulated npu] events shared between processes exist in torch_npu but are not emulated")


class ExternalEvent:
    """An event waited for on one stream and set on another."""

    def record(self, stream: Any = None) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass

    def reset(self, stream: Any = None) -> None:
        pass


class _Current(threading.local):
    """The stream that is current on each device where it is not the default one."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


_current = _Current()
_defaults: dict[int, Stream] = {}


def default_stream(device: Any = None) -> Stream:
    index = _devices.index_of(device)
    if index not in _defaults:
        _defaults[index] = Stream(index)
    return _defaults[index]


def current_stream(device: Any = None) -> Stream:
    index = _devices.index_of(device)
    return _current.streams.get(index) or default_stream(index)


def set_stream(stream: Stream | None) -> None:
    """Makes a stream the current one of its device, and that the current device; None changes nothing."""
    if stream is not None:
        _current.streams[stream.device_index] = stream
        _devices.state.device = stream.device_index


class StreamContext:
    """Makes a stream and its device the current ones inside a `with` block; None changes nothing."""

    def __init__(self, stream_ctx: Stream | None) -> None:
        self.stream = stream_ctx
        self._outer: list[tuple[Stream, Stream]] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            self._outer.append((current_stream(), current_stream(self.stream.device)))
            set_stream(self.stream)

    def __exit__(self, *exc: Any) -> bool:
        if self.stream is not None:
            here, there = self._outer.pop()
            set_stream(there)
            set_stream(here)
        return False


def stream(stream: Stream | None) -> StreamContext:
    return StreamContext(stream)


def set_stream_limit(stream: Stream, cube_num: int = -1, vector_num: int = -1) -> None:
    """Core limits change nothing here."""


def reset_stream_limit(stream: Stream) -> None:
    pass


def get_stream_limit(stream: Stream) -> dict[str, int]:
    return {"cube_core_num": 24, "vector_core_num": 48}
