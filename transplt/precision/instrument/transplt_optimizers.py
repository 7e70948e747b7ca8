"""What optimizers take and leave in a step: settings by name, gradients, states, weights before and after.

For `optimizer.json` beside a recorder's `dump.json`, whose form it has. It is imported before a recorder wraps the
functions of torch, and keeps those that it needs: the figures that it takes are no rows of that recorder.
"""

from __future__ import annotations

import functools
import importlib
import json
import linecache
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch

FILE = "optimizer.json"
#: Frames of these are no lines of the program.
_OWN = ("torch", "torch_npu", "transplt_probe", "transplt_optimizers", "npu_emulator", "msprobe", "contextlib")
_MOST_FRAMES = 12
_kind: Any = torch.Tensor
_stack: Any = torch.stack
_max, _min, _mean, _norm, _float, _detach, _values, _list = (
    _kind.max, _kind.min, _kind.mean, _kind.norm, _kind.float, _kind.detach, _kind._values, _kind.tolist
)  # fmt: skip
_made: Any = weakref.WeakKeyDictionary()


class Optimizers:
    """The rows of the optimizers of this process. `active` says whether what happens now is wanted, `names` gives the
    names of parameters by their ids, `plain` the tensor whose figures are taken."""

    def __init__(
        self, active: Callable[[], bool], names: Callable[[], dict[int, str]], plain: Callable[[Any], Any] = _detach
    ) -> None:
        self.active, self.names, self.plain = active, names, plain
        self._rows: dict[str, Any] = {}
        self._parameters: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._open: dict[int, str] = {}

    def before(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        if not self.active():
            return
        with torch.no_grad():
            name = f"Optimizer.{type(optimizer).__name__}.{len(self._rows)}.forward"
            own = self._named(optimizer)
            made, frames = _made.get(optimizer, ({}, []))
            states = {
                f"{each}.{key}": self._figures(value)
                for each, parameter in own.items()
                for key, value in optimizer.state.get(parameter, {}).items()
                if isinstance(value, torch.Tensor)
            }
            gradients = {each: self._figures(p.grad) for each, p in own.items() if p.grad is not None}
            self._rows[name] = {
                "input_kwargs": settings(optimizer), "made": made, "gradients": gradients, "state": states,
                "parameters": {each: self._figures(parameter) for each, parameter in own.items()},
                "output": {}, "stack": frames_here(), "made_stack": frames,
            }  # fmt: skip
            self._open[id(optimizer)] = name

    def after(self, optimizer: Any) -> None:
        """It has stepped."""
        name = self._open.pop(id(optimizer), None)
        if name is not None:
            with torch.no_grad():
                own = self._named(optimizer)
                self._rows[name]["output"] = made = {each: self._figures(p) for each, p in own.items()}
                self._parameters[name] = own, made

    def take(self) -> dict[str, Any]:
        """The rows since the last call; `left` in each has the weights that somebody changed behind the optimizer."""
        with torch.no_grad():
            last: dict[int, Any] = {}
            for name, (own, made) in self._parameters.items():
                for each, parameter in own.items():
                    last[id(parameter)] = (name, each, parameter, made[each])
            for name, each, parameter, made in last.values():
                now = self._figures(parameter)
                if repr(now) != repr(made):
                    self._rows[name].setdefault("left", {})[each] = now
        rows, self._rows, self._parameters, self._open = self._rows, {}, {}, {}
        return rows

    def _named(self, optimizer: Any) -> dict[str, Any]:
        known = self.names()
        found: dict[str, Any] = {}
        for group, each in enumerate(optimizer.param_groups):
            for number, parameter in enumerate(each["params"]):
                found.setdefault(known.get(id(parameter), f"group.{group}.{number}"), parameter)
        return found

    def _figures(self, tensor: Any) -> dict[str, Any]:
        described = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape)}
        figures: list[Any] = [None] * 4
        try:
            values = getattr(tensor, "_local_tensor", tensor)
            values = self.plain(_values(values) if values.is_sparse else values)
            if values is not None and values.numel():
                values = values if values.dtype == torch.float64 else _float(values)
                figures = _list(_stack((_max(values), _min(values), _mean(values), _norm(values))))
        except (RuntimeError, TypeError, NotImplementedError):  # of no storage, quantized
            pass
        return described | dict(zip(("Max", "Min", "Mean", "Norm"), figures, strict=True))


def note_made() -> None:
    """Know with which settings, and where, each optimizer is made from here on."""
    kind: Any = torch.optim.Optimizer
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        _made[self] = settings(self), frames_here()

    kind.__init__ = __init__


def all_made() -> list[tuple[str, dict[str, Any]]]:
    """(class, settings) of the optimizers that are alive, in the order in which they were made."""
    return [(type(optimizer).__name__, settings(optimizer)) for optimizer in _made]


def watch(optimizers: Optimizers) -> None:
    """Record each step of an optimizer. Nothing where torch is too old to say so (before 2.0)."""
    module: Any = importlib.import_module("torch.optim.optimizer")
    if hasattr(module, "register_optimizer_step_pre_hook"):
        module.register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: optimizers.before(optimizer))
        module.register_optimizer_step_post_hook(lambda optimizer, args, kwargs: optimizers.after(optimizer))


def settings(optimizer: Any) -> dict[str, Any]:
    """`lr`, `betas.0`, `group.1.weight_decay` and so on; what is no number, truth or word is left out."""
    found: dict[str, Any] = {}
    for number, group in enumerate(optimizer.param_groups):
        for name, value in group.items():
            several = value if isinstance(value, (list, tuple)) else (value,)
            for at, each in enumerate(several if name not in ("params", "param_names") else ()):
                if isinstance(each, torch.Tensor) and each.numel() == 1:
                    each = float(_list(_detach(each)) if not each.dim() else _list(_detach(each))[0])
                if isinstance(each, (bool, int, float, str)) or each is None:
                    key = f"{f'group.{number}.' if number else ''}{name}{f'.{at}' if len(several) > 1 else ''}"
                    found[key] = {"type": type(each).__name__, "value": each}
    return found


def frames_here() -> list[str]:
    """The frames of the program, innermost first, as msprobe writes them."""
    frame: Any = sys._getframe(1)
    found: list[str] = []
    while frame is not None and len(found) < _MOST_FRAMES:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] not in _OWN:
            code = frame.f_code
            line = linecache.getline(code.co_filename, frame.f_lineno).strip()
            found.append(f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {line}")
        frame = frame.f_back
    return found


def write(folder: str, rows: dict[str, Any]) -> None:
    """The file in the folder of a rank's step; nothing without rows."""
    if rows:
        path = os.path.join(folder, FILE)
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump({"recorder": "transplt", "data": rows}, file)
        os.replace(path + ".part", path)
