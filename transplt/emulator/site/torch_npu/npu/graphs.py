"""Captured graphs: capturing runs the work once, as it is; replaying is not emulated."""

from __future__ import annotations

from typing import Any

from npu_emulator.names import NotEmulated

__all__ = [
    "NPUGraph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "make_graphed_callables",
    "super_kernel_scope_begin",
    "super_kernel_scope_end",
]


class NPUGraph:
    """Exists so that a script that may use graphs can be imported; capturing into one is refused."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotEmulated(
            "[emulated npu] torch.npu.NPUGraph exists in torch_npu but is not emulated: run without graph capture"
        )


class graph:
    """Capture context of torch_npu; needs an NPUGraph."""

    def __init__(
        self,
        npu_graph: Any,
        pool: Any = None,
        stream: Any = None,
        auto_dispatch_capture: bool = False,
        capture_error_mode: str = "global",
    ) -> None:
        raise NotEmulated(
            "[emulated npu] torch.npu.graph exists in torch_npu but is not emulated: run without graph capture"
        )


def make_graphed_callables(
    callables: Any, sample_args: Any, num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: Any = None
) -> Any:
    """The callables themselves: ungraphed, they compute the same."""
    return callables


def graph_pool_handle() -> tuple[int, int]:
    return 0, 0


def is_current_stream_capturing() -> bool:
    return False


def super_kernel_scope_begin(scope_name: str | None = None) -> None:
    pass


def super_kernel_scope_end(scope_name: str | None = None) -> None:
    pass
