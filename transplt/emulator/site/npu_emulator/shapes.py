"""Operators whose input shapes change from step to step: on an NPU each new shape may compile kernels anew.

A step ends with an optimizer's step or, before any optimizer stepped, with a call of an outermost module.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from .record import at_end, record
from .user_code import is_user

_EXAMPLES = 6
_Site = tuple[str, tuple[tuple[str, int], ...]]


class _Watch:
    def __init__(self) -> None:
        self.step = 0
        self.depth = 0
        self.optimizer_seen = False
        self.first_step: dict[_Site, int] = {}
        self.seen: dict[_Site, dict[Any, int]] = {}
        self.changed: dict[_Site, int] = {}

    def operator(self, info: Any, args: Any, kwargs: Any) -> None:
        shapes = tuple(tuple(a.shape) for a in args if hasattr(a, "shape"))
        if not shapes:
            return
        site = (info.name, _stack())
        seen = self.seen.setdefault(site, {})
        if shapes in seen:
            return
        seen[shapes] = self.step
        if self.first_step.setdefault(site, self.step) != self.step:
            self.changed[site] = self.changed.get(site, 0) + 1

    def optimizer_stepped(self, *args: Any) -> None:
        self.optimizer_seen = True
        self.step += 1

    def module_entered(self, *args: Any) -> None:
        if self.depth == 0 and not self.optimizer_seen:
            self.step += 1
        self.depth += 1

    def module_left(self, *args: Any) -> None:
        self.depth = max(0, self.depth - 1)

    def report(self) -> None:
        for (name, stack), times in sorted(self.changed.items(), key=lambda item: -item[1]):
            shapes = list(self.seen[name, stack])
            record.shapes.append(
                {
                    "operator": name,
                    "stack": [{"path": path, "line": line} for path, line in stack],
                    "new_shapes": times,
                    "shapes": [[list(s) for s in example] for example in shapes[:_EXAMPLES]],
                    "steps": self.step,
                }
            )


def _stack() -> tuple[tuple[str, int], ...]:
    """The user's frames, innermost first, at most four."""
    frames: list[tuple[str, int]] = []
    frame: Any = sys._getframe(2)
    while frame is not None and len(frames) < 4:
        if is_user(frame.f_code.co_filename):
            frames.append((os.path.abspath(frame.f_code.co_filename), frame.f_lineno))
        frame = frame.f_back
    return tuple(frames)


def install(hooks: list[Any]) -> None:
    """Start watching; `hooks` are called before each operator with (info, args, kwargs)."""
    from torch.nn.modules import module
    from torch.optim.optimizer import register_optimizer_step_post_hook

    watch = _Watch()
    hooks.append(watch.operator)
    register_optimizer_step_post_hook(watch.optimizer_stepped)
    module.register_module_forward_pre_hook(watch.module_entered)
    module.register_module_forward_hook(watch.module_left, always_call=True)
    at_end(watch.report)
