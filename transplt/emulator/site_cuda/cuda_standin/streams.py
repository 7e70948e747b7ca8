"""Streams and events of a device that runs everything at once: they keep order by doing nothing, and time by the
clock. They are the bases that a CUDA build has in `torch._C`."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

_CUDA = 1  # c10::DeviceType
_numbers = itertools.count(1)


class _Current(threading.local):
    """The stream that is current, by device; it is the default one (0) where none was set."""

    def __init__(self) -> None:
        self.stream: dict[int, int] = {}


_current = _Current()


def _device(index: int | None) -> int:
    from . import devices

    return int(devices.state.device) if index is None or index < 0 else index


class StreamBase:
    """torch._C._CudaStreamBase; work given to it has run when the call returns."""

    def __new__(
        cls,
        priority: int = 0,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int = _CUDA,
        stream_ptr: int = 0,
        **kwargs: Any,
    ) -> Any:
        import torch

        self = object.__new__(cls)
        self.device_index = _device(device_index)  # type: ignore[attr-defined]
        self.device_type, self.priority = _CUDA, priority  # type: ignore[attr-defined]
        self.device = torch.device("cuda", self.device_index)  # type: ignore[attr-defined]
        self.stream_id = next(_numbers) if stream_id is None else stream_id  # type: ignore[attr-defined]
        self.cuda_stream = stream_ptr or self.stream_id  # type: ignore[attr-defined]
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -5

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def is_capturing(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, StreamBase)
            and (other.stream_id, other.device_index) == (self.stream_id, self.device_index)  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))  # type: ignore[attr-defined]

    def __enter__(self) -> Any:
        self._outer = _device(None), _current.stream.get(self.device_index, 0)  # type: ignore[attr-defined]
        set_triple(self.stream_id, self.device_index, _CUDA)  # type: ignore[attr-defined]
        return self

    def __exit__(self, *exc: Any) -> None:
        device, stream = self._outer
        set_triple(stream, self.device_index, _CUDA)  # type: ignore[attr-defined]
        set_triple(_current.stream.get(device, 0), device, _CUDA)


class EventBase:
    """torch._C._CudaEventBase; times are the host's."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Any:
        self = object.__new__(cls)
        self.enable_timing, self._at = enable_timing, None  # type: ignore[attr-defined]
        self.cuda_event = id(self)  # type: ignore[attr-defined]
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def record(self, stream: Any = None) -> None:
        self._at: Any = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds between two recorded events made with enable_timing=True."""
        if not (self.enable_timing and end_event.enable_timing):  # type: ignore[attr-defined]
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return float((end_event._at - self._at) * 1e3)


def current_triple(index: int | None) -> tuple[int, int, int]:
    """(stream_id, device_index, device_type), as C++ gives a stream to Python."""
    index = _device(index)
    return _current.stream.get(index, 0), index, _CUDA


def default_triple(index: int | None) -> tuple[int, int, int]:
    return 0, _device(index), _CUDA


def external_triple(pointer: int, index: int | None) -> tuple[int, int, int]:
    return pointer, _device(index), _CUDA


def set_triple(stream_id: int, device_index: int, device_type: int) -> None:

    from . import devices

    _current.stream[device_index] = stream_id
    devices.state.device = device_index


def current(index: int | None = None) -> Any:
    import torch

    return torch.cuda.current_stream(index)


def set_current(stream: Any) -> None:
    set_triple(stream.stream_id, stream.device_index, _CUDA)


def install() -> None:
    """Let torch.Stream and torch.Event, those of any device, make ours: C++ has no streams of CUDA."""
    import torch

    class _Either(type):
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, cls.kinds)  # type: ignore[attr-defined]

    class Stream(metaclass=_Either):
        """torch.Stream."""

        kinds = (torch.Stream, StreamBase)

        def __new__(cls, device: Any = None, priority: int = 0, **given: Any) -> Any:
            if "stream_id" in given:
                return torch.cuda.Stream(**given)
            return torch.cuda.Stream(device, priority)

    class Event(metaclass=_Either):
        """torch.Event."""

        kinds = (torch.Event, EventBase)

        def __new__(cls, device: Any = None, **given: Any) -> Any:
            return torch.cuda.Event(**given)

    torch.Stream, torch.Event = Stream, Event  # type: ignore[assignment, misc]
