"""The other events of a training program: what a port must not lose, add or put elsewhere."""

from __future__ import annotations

import builtins
import functools
import io
import itertools
import os
import pathlib
import random
import shutil
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from .. import DEVICE
from ..start import when_imported
from . import models, steps
from .figures import figures, number
from .log import called_by_user, emit, is_quiet, quiet


def install() -> None:
    """Watch the calls that make up a training program beside its steps."""
    module: Any = torch.nn.Module
    optimizer: Any = torch.optim.Optimizer
    _record(module, "train", "mode", lambda self, mode=True: {"train": bool(mode), "of": _class_of(self)})
    _record(module, "zero_grad", "zero_grad")
    _record(module, "load_state_dict", "load_state_dict", lambda self, *rest, **named: {"of": _class_of(self)})
    _watch_missing(module)
    _watch_evaluation(module)
    _record(optimizer, "zero_grad", "zero_grad", lambda self, *rest, **named: {"o": steps._number(self)})
    _record(optimizer, "load_state_dict", "load_state_dict", lambda self, *rest, **named: {"of": type(self).__name__})
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        clip = _clipping(getattr(torch.nn.utils, name))
        setattr(torch.nn.utils, name, clip)
        setattr(torch.nn.utils.clip_grad, name, clip)
    for kind in {torch.optim.lr_scheduler.LRScheduler, *_subclasses(torch.optim.lr_scheduler.LRScheduler)}:
        if "step" in vars(kind):
            _record(kind, "step", "scheduler", _scheduled)
    _record(torch, "save", "save", lambda obj, f=None, *rest, **named: {"file": _file(f), "path": _path(f)})
    _record(torch, "load", "load", lambda f=None, *rest, **named: {"file": _file(f), "path": _path(f)})
    for owner, name in ((os, "remove"), (os, "unlink"), (os, "rename"), (os, "replace"), (shutil, "move")):
        _record_some(owner, name, "remove" if name in ("remove", "unlink") else "rename", _changed)
    _record_some(pathlib.Path, "unlink", "remove", _changed)
    io.open = builtins.open = _opening(io.open)  # type: ignore[assignment]
    for asks, name in ((os.path, "exists"), (os.path, "isfile"), (pathlib.Path, "exists"), (pathlib.Path, "is_file")):
        _record_some(asks, name, "ask", _changed)
    _record(torch, "manual_seed", "seed", lambda seed=0: {"seed": int(seed)})
    _record(random, "seed", "seed", lambda a, *rest: {"seed": int(a)})
    when_imported("numpy", lambda numpy: _record(numpy.random, "seed", "seed", lambda seed: {"seed": int(seed)}))
    for name in ("half", "bfloat16", "float", "double", "to"):
        _record_some(module, name, "cast", _dtype)
    _record_some(module, "register_buffer", "unsaved", _unsaved)
    when_imported("torch_npu", lambda module: _watch_card())
    _watch_autocast()
    _watch_wrapping()
    if DEVICE == "cuda":
        _take_one_card()


def _watch_card() -> None:
    """The card that this process chooses, and what clips on it."""
    from torch_npu.optim import NpuFusedOptimizerBase

    _record(NpuFusedOptimizerBase, "clip_grad_norm_fused_", "clip", _bound)
    _record(NpuFusedOptimizerBase, "zero_grad", "zero_grad")
    npu: Any = torch.npu  # type: ignore[attr-defined]
    chosen = npu.set_device

    @functools.wraps(chosen)
    def set_device(device: Any) -> Any:
        result = chosen(device)
        if not is_quiet():
            emit("card", card=int(npu.current_device()))
        return result

    npu.set_device = set_device


def _subclasses(kind: Any) -> set[Any]:
    below: list[Any] = kind.__subclasses__()
    return {each for sub in below for each in (sub, *_subclasses(sub))}


def _record(owner: Any, name: str, event: str, fields: Callable[..., dict[str, Any]] | None = None) -> None:
    setattr(owner, name, _recording(getattr(owner, name), event, fields))


def _recording(original: Any, event: str, fields: Callable[..., dict[str, Any]] | None) -> Any:
    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        if is_quiet():
            return original(*args, **kwargs)
        emit(event, **(_safely(fields, args, kwargs) if fields is not None else {}))
        with quiet():
            return original(*args, **kwargs)

    return recorded


def _record_some(owner: Any, name: str, event: str, fields: Callable[..., dict[str, Any] | None]) -> None:
    """As `_record`, for the calls of the user's of which `fields` returns any."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        values = fields(name, args, kwargs)
        if values is not None and not is_quiet() and called_by_user():
            emit(event, **values)
        return original(*args, **kwargs)

    setattr(owner, name, recorded)


def _dtype(name: str, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """The floating type that a module is cast to."""
    given = [getattr(torch, name)] if name != "to" else [*args[1:], *kwargs.values()]
    dtype = next((each for each in given if isinstance(each, torch.dtype)), None)
    return {"dtype": str(dtype).removeprefix("torch.")} if dtype is not None else None


def _watch_missing(module: Any) -> None:
    """Who is given a state, and what one that is loaded without `strict` lacks."""
    load = module.load_state_dict

    @functools.wraps(load)
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        models.loaded[self] = None
        result = load(self, *args, **kwargs)
        missing = list(getattr(result, "missing_keys", ()))
        if missing:
            emit("missing", names=missing)
        return result

    module.load_state_dict = load_state_dict


def _unsaved(name: str, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """The name of a buffer that state_dict leaves out."""
    persistent = args[3] if len(args) > 3 else kwargs.get("persistent", True)
    return None if persistent else {"name": args[1] if len(args) > 1 else kwargs.get("name")}


def _safely(fields: Callable[..., dict[str, Any]], args: Any, kwargs: Any) -> dict[str, Any]:
    try:
        return fields(*args, **kwargs)
    except (TypeError, ValueError):
        return {}


def _class_of(module: Any) -> str:
    return type(models.unwrapped(module)).__name__


def _bound(parameters: Any = None, bound: Any = None, *rest: Any, **named: Any) -> dict[str, Any]:
    value: Any = bound if bound is not None else named.get("max_norm", named.get("clip_value"))
    return {"bound": float(value)}


def _changed(name: str, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """The file that is removed, renamed, or asked for."""
    return {"file": _file(args[0]), "path": _path(args[0])} if args else None


def _clipping(original: Any) -> Any:
    """Record what is clipped, and by which norm: behind the clipping it shows no more."""

    @functools.wraps(original)
    def clipped(*args: Any, **kwargs: Any) -> Any:
        with quiet():
            norm = original(*args, **kwargs)
        if not is_quiet():
            emit("clip", **_safely(_bound, args, kwargs), norm=number(norm) if norm is not None else None)
        return norm

    return clipped


#: What is read below the folder of the program: a data set does that for every sample, so a file counts a few times.
_HERE, _OFTEN = os.getcwd() + os.sep, 3
_reads: Counter[str] = Counter()


def _opening(original: Any) -> Any:
    """Record which files of the program are written, and which are read; not logs that each rank adds its lines to."""

    @functools.wraps(original)
    def opened(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
        path, writes = _path(file), not {*"wax+"}.isdisjoint(str(mode))
        logs = "a" in str(mode) and not called_by_user()
        if path.startswith(_HERE) and not (logs or path.endswith((".py", ".pyc"))) and not is_quiet():
            _reads[path] += not writes
            if writes or _reads[path] <= _OFTEN:
                emit("write" if writes else "read", file=_file(path), path=path)
        return original(file, mode, *args, **kwargs)

    return opened


def _file(path: Any) -> str:
    return os.path.basename(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else ""


def _path(file: Any) -> str:
    """Where a file lies, whether it is given by its path or open; "" for one in memory."""
    path = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    return os.path.abspath(path) if isinstance(path, (str, os.PathLike)) else ""


_schedules: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_made = itertools.count()


def _scheduled(self: Any, *rest: Any, **named: Any) -> dict[str, Any]:
    """What a schedule is called, its number in the order of their making (its first step is a part of that), and the
    metric that it decides by."""
    if self not in _schedules:
        _schedules[self] = next(_made)
    fields: dict[str, Any] = {"kind": type(self).__name__, "s": _schedules[self]}
    if isinstance(self, torch.optim.lr_scheduler.ReduceLROnPlateau):
        metric: Any = named.get("metrics", rest[0] if rest else None)
        fields["metric"] = number(metric) if isinstance(metric, torch.Tensor) else float(metric)
    return fields


#: Networks that were switched to evaluation and were not called since, by id, and the hook that waits for them: one for
#: all modules, since scripting a module would compile a hook of its own.
_switched: dict[int, Any] = {}
_waits: list[Any] = []


def _watch_evaluation(module: Any) -> None:
    """The buffers that the first forward of a network finds after it was switched to evaluation, and those of its
    parameters that no optimizer has, as a copy."""
    switch = module.train

    @functools.wraps(switch)
    def train(self: Any, mode: bool = True) -> Any:
        if not is_quiet() and not isinstance(self, torch.jit.ScriptModule):
            root = models.unwrapped(self)  # a wrapper sends buffers before it calls the network
            if mode:
                _switched.pop(id(root), None)
            elif next(itertools.chain(root.buffers(), root.parameters()), None) is not None:
                _switched[id(root)] = weakref.ref(root)
                _waits[:] = _waits or [torch.nn.modules.module.register_module_forward_pre_hook(_evaluated)]
        return switch(self, mode)

    module.train = train


def _evaluated(module: Any, args: Any) -> None:
    known = _switched.get(id(module))
    if known is None or known() is not module:
        return
    del _switched[id(module)]
    if not _switched:
        _waits.pop().remove()
    if not is_quiet() and not torch.jit.is_tracing():
        from .steps import optimized

        with quiet():  # asked by nobody of the program: the names of networks go by who asks
            own = optimized()
            copies = [(name, each) for name, each in module.named_parameters() if id(each) not in own]
            held, copied = (
                {name: shown for name, tensor in tensors if (shown := figures(tensor)) is not None}
                for tensors in (module.named_buffers(), copies)
            )
        size = args[0].numel() if args and isinstance(args[0], torch.Tensor) else 0
        emit("evaluated", of=type(module).__name__, b=held, p=copied, given=size)


def _watch_autocast() -> None:
    kind: Any = torch.autocast
    enter = kind.__enter__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        if not is_quiet():
            device = "card" if self.device == DEVICE else self.device
            dtype = str(self.fast_dtype).removeprefix("torch.")
            emit("autocast", device=device, dtype=dtype, enabled=bool(self._enabled))
        return enter(self)

    kind.__enter__ = entered
    kind = torch.no_grad
    begin = kind.__enter__

    @functools.wraps(begin)
    def begun(self: Any) -> Any:
        if not is_quiet() and (called_by_user() or called_by_user(3)):  # the latter as a decorator
            emit("no_grad")
        return begin(self)

    kind.__enter__ = begun


def _watch_wrapping() -> None:
    """DDP: who is wrapped, which forward went through it, and which went past it."""
    if not torch.distributed.is_available():
        return
    kind: Any = torch.nn.parallel.DistributedDataParallel
    made, forward = kind.__init__, kind.forward

    @functools.wraps(made)
    def __init__(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        own = module.parameters() if isinstance(module, torch.nn.Module) else ()
        ids = [id(parameter) for parameter in own if parameter.requires_grad]  # what is frozen now is never exchanged
        emit("wrap", of=_class_of(module) if ids else "", parameters=len(ids), ids=ids)
        made(self, module, *args, **kwargs)
        if isinstance(module, torch.nn.Module):
            module.register_forward_pre_hook(_past)

    @functools.wraps(forward)
    def through(self: Any, *args: Any, **kwargs: Any) -> Any:
        emit("through", of=_class_of(self), grad=torch.is_grad_enabled())
        _inside.append(id(self.module))
        try:
            return forward(self, *args, **kwargs)
        finally:
            _inside.pop()

    kind.__init__, kind.forward = __init__, through


def _take_one_card() -> None:
    """DataParallel of a reference: on its first card, where it has the whole batch, as what is migrated has it."""
    kind: Any = torch.nn.DataParallel
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        if len(self.device_ids) > 1:
            emit("shares", cards=len(self.device_ids))
            self.device_ids = self.device_ids[:1]

    kind.__init__ = __init__


#: The modules whose wrappers are in their forward passes.
_inside: list[int] = []


def _past(module: Any, args: Any) -> None:
    """A hook of modules: at the top of this module, since `torch.save(model)` saves hooks by their names."""
    if id(module) not in _inside and not is_quiet():
        emit("past", of=type(module).__name__, grad=torch.is_grad_enabled())
