"""Runs the programs of a launch, one after another, on the memory of the emulated device itself.

In place of the interpreter's own executor, which copies every tensor to the CPU and back.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter
from triton.tools.tensor_descriptor import TensorDescriptor

from npu_emulator import DEVICE
from npu_emulator.record import record

from . import carried, launch, limits, memory, tiles
from .launch import Launch

#: The most programs of one launch that are run; 0: all. A launch of more ends the program with a sentence.
MOST = "TRANSPLT_TRITON_PROGRAMS"
#: Seconds after which a long launch is told of, if it takes so many more.
_SAY_AFTER, _SAY_IF = 2.0, 20.0


class TooManyPrograms(RuntimeError):
    """The launch has more programs than the environment lets the interpreter run."""


def _grid_of(grid: Any, arguments: Mapping[str, Any]) -> launch.Program:
    sizes = grid(dict(arguments)) if callable(grid) else grid
    numbers = [int(size) for size in sizes]
    if not 1 <= len(numbers) <= 3:
        raise ValueError(f"a grid has one to three dimensions, and this one has {len(numbers)}")
    x, y, z = [*numbers, 1, 1][:3]
    return x, y, z


def _on_device(tensor: Any, name: str) -> None:
    if tensor.numel() and tensor.device.type != DEVICE:
        raise ValueError(
            f"Pointer argument {name!r} cannot be accessed from Triton ({tensor.device.type} tensor?): move the tensor "
            f"to {DEVICE!r} before the launch"
        )


def _converted(value: Any, name: str) -> Any:
    """An argument as the interpreter's language has it; pointers know the memory they point into."""
    tensor = getattr(value, "base", value) if not isinstance(value, (torch.Tensor, TensorDescriptor)) else value
    if isinstance(tensor, torch.Tensor):
        _on_device(tensor, name)
        made = interpreter._implicit_cvt(value)
        made.handle.base = memory.base_of(tensor, name)
        return made
    if isinstance(value, TensorDescriptor):
        _on_device(value.base, name)
        made = interpreter._implicit_cvt(value)
        made.handle.base.base = memory.base_of(value.base, name)
        return made
    if isinstance(value, tuple):
        parts = [_converted(each, f"{name}[{at}]") for at, each in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, float):  # float32 in a kernel, and no number of Python's, whose type would not count
        handle = interpreter.TensorHandle(np.array([value], np.float32), tl.float32)
        return tl.tensor(handle, tl.float32)
    return interpreter._implicit_cvt(value)


def _place(function: Any) -> tuple[str, int]:
    plain = inspect.unwrap(function)
    code = plain.__code__
    line = code.co_firstlineno
    try:
        lines, first = inspect.getsourcelines(plain)
    except OSError:
        return code.co_filename, line
    heads = (first + at for at, text in enumerate(lines) if text.lstrip().startswith("def "))
    return code.co_filename, next(heads, line)


def run(self: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
    """InterpretedFunction.run: one launch."""
    if warmup:
        return
    function = self.rewrite()
    signature = inspect.signature(self.fn)
    names = set(signature.parameters)
    options = {name: value for name, value in kwargs.items() if name not in names}
    bound = signature.bind(*args, **{name: value for name, value in kwargs.items() if name in names})
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    for hook in getattr(self, "pre_run_hooks", ()):
        hook(*args, **kwargs)
    constant = _constant_names(function, tuple(arguments))
    path, line = _place(self.fn)
    started = Launch(
        self.fn, self.fn.__name__, path, line, _grid_of(grid, arguments),
        {name: value for name, value in arguments.items() if name not in constant},
        {name: value for name, value in arguments.items() if name in constant}, options,
    )  # fmt: skip
    if launch.keeps is not False:
        carried.note(started, self)
    if launch.keeps:
        return
    former, launch.current = launch.current, started
    try:
        limits.check_launch(started)
        given = {
            name: value if name in constant else _converted(value, name) for name, value in arguments.items()
        }  # fmt: skip
        after = [done for done in [observer(started) for observer in launch.observers] if done is not None]
        record.operators[f"triton::{started.name}"] += 1
        _run_programs(function, started, given)
        for done in after:
            done()
    finally:
        launch.current = former


def _constant_names(function: Any, names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(interpreter.GridExecutor(function, list(names), ()).constexprs)


def _run_programs(function: Callable[..., Any], started: Launch, given: dict[str, Any]) -> None:
    most = int(os.environ.get(MOST, "0") or 0)
    if most and started.programs > most:
        raise TooManyPrograms(
            f"kernel {started.name}: {started.programs} programs, and {MOST} lets the interpreter run {most}"
        )
    builder = interpreter.interpreter_builder
    builder.set_grid_dim(*started.grid)
    if launch.side_by_side is not None:
        programs = list(launch.order(started.grid))
        launch.side_by_side(programs, lambda program: builder.set_grid_idx(*program), lambda: function(**given))
        return
    ends = {(0, 0, 0), tuple(size - 1 for size in started.grid)} if limits.ENFORCED else set()
    cube, begun, told = False, time.monotonic(), False
    handles = tuple(value.handle for value in given.values() if hasattr(value, "handle"))
    for done, program in enumerate(launch.order(started.grid), 1):
        builder.set_grid_idx(*program)
        if program in ends:
            cube |= _measured(function, given, handles)
        else:
            function(**given)
        if not told and done % 64 == 0:
            told = _tell_of_time(started, done, time.monotonic() - begun)
    limits.check_cores(started, cube)


def _measured(function: Callable[..., Any], given: dict[str, Any], handles: tuple[Any, ...]) -> bool:
    """Run one program, and hold its tiles against the unified buffer; whether it multiplies matrices."""
    tiles.forget(handles)
    tiles.measured = found = tiles.Tiles()
    try:
        function(**given)
    finally:
        tiles.measured = None
    limits.check_buffer(found)
    return found.cube


def _tell_of_time(started: Launch, done: int, seconds: float) -> bool:
    """Say once that a launch takes long, when that is known; whether there is no more to say."""
    if seconds < _SAY_AFTER:
        return False
    left = seconds / done * (started.programs - done)
    if left > _SAY_IF:
        minutes = f"about {(left + seconds) / 60:.1f} min in Triton's interpreter"
        text = f"kernel {started.name}: {started.programs} programs take {minutes}"
        print(f"transplt: {text}", file=sys.stderr, flush=True)
        record.note(text)
    return True


def _without_own_run(init: Callable[..., None]) -> Callable[..., None]:
    """In older versions each function of the interpreter has a `run` of its own."""

    @functools.wraps(init)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        vars(self).pop("run", None)

    return make


def install() -> None:
    """Be the executor of Triton's interpreter."""
    from . import autotune

    kind = interpreter.InterpretedFunction
    kind.run = run
    kind.__init__ = _without_own_run(kind.__init__)
    kind.__getitem__ = lambda self, grid: lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)
    autotune.install()
