"""The rows of the step that a process is at, and when they are written: once every optimizer has stepped."""

from __future__ import annotations

import atexit
import functools
import json
import os
import threading
import weakref
from types import FrameType
from typing import Any, cast

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..config import config
from ..record import record
from ..start import when_imported
from ..trace.log import is_quiet
from ..user_code import nearest
from .entries import overflown

#: So often may one optimizer step while another, which never does, is waited for.
_PATIENCE = 16


class Step:
    """What was recorded since the last step ended. `rows` and `parents` by the names of rows, in the order in which
    they ran; `stacks` by their frames."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rows: dict[str, Any] = {}
        self.parents: dict[str, str | None] = {}
        self.stacks: dict[tuple[str, ...], list[str]] = {}
        self.counts: dict[str, int] = {}
        self.stepped: dict[int, int] = {}
        self.backward = self.scaled = False

    def count(self, api: str) -> int:
        """The number of this call of `api`, from 0."""
        number = self.counts.get(api, 0)
        self.counts[api] = number + 1
        return number


current = Step(0)
_optimizers: Any = weakref.WeakSet()
_owner = os.getpid()
_begun = _overflow_reported = False
_written = 0
_busy = threading.local()


def asked() -> dict[str, Any]:
    """The settings of the dump (see `Config.dump`)."""
    assert config.dump
    return config.dump


def recording() -> bool:
    """Whether what happens now belongs to a step that is wanted: not the optimizer's own work, nor a backward pass."""
    wanted = asked()["steps"]
    return (
        _begun and bool(asked()["folder"]) and not is_quiet() and not getattr(_busy, "depth", 0)
        and _owner == os.getpid() and (not wanted or current.number in wanted)
    )  # fmt: skip


def begin() -> None:
    """Training begins: what was drawn and filled before is no part of a step."""
    global _begun
    _begun = True


class busy:  # reads as the statement it is
    """`with busy():` what is called in it is no row."""

    def __enter__(self) -> None:
        _busy.depth = getattr(_busy, "depth", 0) + 1

    def __exit__(self, *error: object) -> None:
        _busy.depth -= 1


def install() -> None:
    """Watch optimizers, backward passes, scalers that skip, and the end of the process."""
    from . import optimizers

    kind: Any = torch.optim.Optimizer
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        _optimizers.add(self)
        begin()

    kind.__init__ = __init__
    optimizers.install()
    register_optimizer_step_pre_hook(_before)
    register_optimizer_step_post_hook(_after)
    _watch_backward()
    _watch_scalers()
    _watch_loaders()
    _watch_wrappers()
    atexit.register(_at_end)


def _before(optimizer: Any, args: Any, kwargs: Any) -> None:
    from . import modules, optimizers

    if recording():
        modules.gradients(optimizer)
        optimizers.before(optimizer)
    _busy.depth = getattr(_busy, "depth", 0) + 1


def _after(optimizer: Any, args: Any, kwargs: Any) -> None:
    from . import optimizers

    optimizers.after(optimizer)
    _busy.depth -= 1
    _stepped(optimizer)


def _stepped(optimizer: Any) -> None:
    """The step ends with the step of the last optimizer, so that a GAN's two make one."""
    times = current.stepped[id(optimizer)] = current.stepped.get(id(optimizer), 0) + 1
    if times >= _PATIENCE or all(id(each) in current.stepped for each in _optimizers):
        end()


def _watch_backward() -> None:
    original = torch.autograd.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        current.backward = True
        with busy():
            return original(*args, **kwargs)

    torch.autograd.backward = backward


def _watch_scalers() -> None:
    """Those of torch, and of torch_npu, which has its own way for all but the state."""
    from torch.amp import grad_scaler

    _watch_scaler(grad_scaler.GradScaler)
    when_imported("torch_npu", lambda torch_npu: _watch_scaler(torch_npu.npu.amp.GradScaler))


def _watch_scaler(kind: Any) -> None:
    """A step that a scaler leaves out ends a step as well."""
    step = kind.step

    @functools.wraps(step)
    def stepped(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = (current.number, current.stepped.get(id(optimizer), 0))
        result = step(self, optimizer, *args, **kwargs)
        if before == (current.number, current.stepped.get(id(optimizer), 0)):
            _stepped(optimizer)
        return result

    kind.step = stepped
    scale = kind.scale

    @functools.wraps(scale)
    def scaled(self: Any, *args: Any, **kwargs: Any) -> Any:
        current.scaled = True
        return scale(self, *args, **kwargs)

    kind.scale = scaled
    for name in ("unscale_", "_unscale_grads_", "update", "_lazy_init_scale_growth_tracker"):
        setattr(kind, name, _busily(getattr(kind, name)))


def _busily(original: Any) -> Any:
    @functools.wraps(original)
    def done(*args: Any, **kwargs: Any) -> Any:
        with busy():
            return original(*args, **kwargs)

    return done


def _watch_loaders() -> None:
    """Drawing a seed for the order, and collating samples, are no part of a step. torch_npu has a `__next__` of its
    own, around the one that it found.
    """
    loader: Any = torch.utils.data.dataloader
    loader._BaseDataLoaderIter.__init__ = _busily(loader._BaseDataLoaderIter.__init__)
    for kind in (loader._SingleProcessDataLoaderIter, loader._MultiProcessingDataLoaderIter):
        kind._next_data = _busily(kind._next_data)


def _watch_wrappers() -> None:
    """What DistributedDataParallel does with its buckets before the network is called is no part of the network."""
    if torch.distributed.is_available():
        kind: Any = torch.nn.parallel.DistributedDataParallel
        kind._pre_forward = _busily(kind._pre_forward)


def add(name: str, row: dict[str, Any], parent: str | None, frames: tuple[str, ...] | None = None) -> None:
    """Put a row where the step is."""
    current.rows[name] = row
    current.parents[name] = parent
    if frames is not None:
        current.stacks.setdefault(frames, []).append(name)


def look_for_overflow(name: str, inputs: Any, outputs: Any, frame: FrameType | Place | None) -> bool:
    """Whether the operator `name` overflows: its inputs are finite and its outputs are not. The first is a finding, but
    for gradients of a scaled loss: a scaler leaves out that step, and lowers its scale."""
    global _overflow_reported
    if not overflown(outputs) or overflown(inputs):
        return False
    if not _overflow_reported and not (current.scaled and ".backward" in name):
        _overflow_reported = True
        what = f"{name} overflows in step {current.number}: its inputs are finite, its output is not"
        hint = "look at its inputs, at the scale of the loss, or compute it in float32"
        record.finding(cast("FrameType | None", frame), "NPU794", what, hint, "warning")
    return True


class Place:
    """Where a frame stood, without its variables."""

    def __init__(self, frame: FrameType) -> None:
        self.f_code, self.f_lineno = frame.f_code, frame.f_lineno


def frames_here() -> tuple[tuple[str, ...], FrameType | None]:
    """The user's frames, innermost first, as msprobe writes them; and the innermost itself."""
    import linecache

    from ..user_code import is_user

    first = frame = nearest(2)
    lines: list[str] = []
    while frame is not None:
        code = frame.f_code
        if is_user(code.co_filename):
            line = linecache.getline(code.co_filename, frame.f_lineno).strip()
            lines.append(f"File {code.co_filename}, line {frame.f_lineno}, in {code.co_name}, \n {line}")
        frame = frame.f_back
    return tuple(lines), first


def rank() -> int:
    """The rank of this process, 0 where there is one."""
    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return int(os.environ.get("RANK", "0"))


def folder() -> str:
    """Where the files of this step lie; it need not exist yet."""
    return os.path.join(asked()["folder"], f"step{current.number}", f"rank{rank()}")


def end() -> None:
    """Write the step, and begin the next."""
    global current
    if current.rows and recording():
        write()
    current = Step(current.number + 1)


def write() -> None:
    """The files of a step."""
    from . import optimizers

    global _written
    _written += 1
    where = folder()
    os.makedirs(where, exist_ok=True)
    task = asked()["task"]
    data = os.path.join(os.path.abspath(where), "dump_tensor_data") if task == "tensor" else None
    head = {"task": task, "level": asked()["level"], "framework": "pytorch", "recorder": "transplt"}
    stacks = {str(at): [names, list(frames)] for at, (frames, names) in enumerate(current.stacks.items())}
    _json(os.path.join(where, "dump.json"), {**head, "dump_data_dir": data, "data": current.rows})
    _json(os.path.join(where, "stack.json"), stacks)
    _json(os.path.join(where, "construct.json"), current.parents)
    optimizers.write(where)


def _json(path: str, value: Any) -> None:
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    os.replace(path + ".part", path)


def _at_end() -> None:
    """A step that did not come to its end is written where it failed, or where nothing else was."""
    _busy.depth = 0
    if current.rows and recording() and (record.exception is not None or (not _written and current.backward)):
        write()
    if not _written and not trains_not():
        record.note("nothing was dumped: no optimizer took a step")


def trains_not() -> bool:
    """Whether this process is a worker of a loader's, or called no network: nobody expects a dump of it."""
    return record.forked or os.getpid() != _owner or not _begun
