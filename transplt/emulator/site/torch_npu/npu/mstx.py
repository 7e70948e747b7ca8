"""Markers for the profiler: taken, and kept nowhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["annotate", "mstx"]


class mstx:
    """torch.npu.mstx."""

    _depth = 0
    _next = 0

    @staticmethod
    def mark(message: str, stream: Any = None, domain: str = "default") -> None:
        _text(message)

    @classmethod
    def range_start(cls, message: str, stream: Any = None, domain: str = "default") -> int:
        """An id for `range_end`."""
        _text(message)
        cls._next += 1
        return cls._next

    @staticmethod
    def range_end(range_id: int, domain: str = "default") -> None:
        pass

    @classmethod
    def range_push(cls, message: str, stream: Any = None, domain: str = "default") -> int:
        """The depth of the new range."""
        _text(message)
        cls._depth += 1
        return cls._depth - 1

    @classmethod
    def range_pop(cls, domain: str = "default") -> int:
        cls._depth = max(0, cls._depth - 1)
        return cls._depth

    @staticmethod
    def mstx_range(message: str, stream: Any = None, domain: str = "default") -> Callable[[Any], Any]:
        return annotate(message, stream, domain)


def _text(message: Any) -> None:
    if not isinstance(message, str):
        raise TypeError(f"[emulated npu] mstx messages are strings, not {type(message).__name__}")


class annotate:
    """A range as a context manager or a decorator."""

    def __init__(self, message: str = "", stream: Any = None, domain: str = "default") -> None:
        _text(message)

    def __enter__(self) -> annotate:
        return self

    def __exit__(self, *exc: Any) -> bool:
        return False

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return annotated
