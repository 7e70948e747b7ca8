"""Records the training steps of a script with msprobe (or ptdbg_ascend), and makes its runs repeat themselves.

This file was put beside a probe copy of the script by `transplt instrument`. It is the same for the GPU original and
for the script for NPUs. `TRANSPLT_PROBE_DUMP` names the folder of the dump.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.util
import inspect
import os
import random
import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import torch

_T = TypeVar("_T")
_DROPOUTS = (
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout",
)  # fmt: skip
_recorder: Any = None
_running = False
_models: list[Any] = []


def begin(
    *,
    seed: int = 1234,
    task: str = "statistics",
    level: str = "mix",
    steps: Iterable[int] = (),
    deterministic: bool = False,
    api: str = "msprobe",
) -> None:
    """Seed what draws, turn dropout off, and set up the recorder. A seed that the script sets later wins.

    `steps` are those to record, all without any.
    """
    global _recorder
    _drop_nothing()
    _note_models()
    folder = os.environ.get("TRANSPLT_PROBE_DUMP", "probe_dump")
    try:
        make = _Msprobe if api == "msprobe" else _Ptdbg
        _recorder = make(folder, task, level, [*steps], seed, deterministic)
    except ImportError as error:
        _seed(seed, deterministic)
        print(f"transplt_probe: nothing is recorded: {error}", file=sys.stderr)
    atexit.register(_stop)


def steps(iterable: Iterable[_T]) -> Iterator[_T]:
    """What `iterable` gives; between one and the next lies a recorded step, however the loop's body leaves it."""
    for value in iterable:
        _start()
        try:
            yield value
        finally:
            _stop()


def step() -> None:
    """A step begins here, and the one before it ends: the first line of the body of a `while`."""
    _stop()
    _start()


def _start() -> None:
    global _running
    if _recorder is not None and not _running:
        _running = True
        _recorder.start(_outermost())


def _stop() -> None:
    global _running
    if _running:
        _running = False
        _recorder.stop()


class _Msprobe:
    def __init__(
        self, folder: str, task: str, level: str, steps: list[int], seed: int, deterministic: bool
    ) -> None:
        msprobe: Any = importlib.import_module("msprobe.pytorch")
        # Its parameters differ between versions.
        wanted = {"seed": seed, "mode": deterministic, "rm_dropout": False}
        known = inspect.signature(msprobe.seed_all).parameters
        msprobe.seed_all(**{name: value for name, value in wanted.items() if name in known})
        _seed(seed, deterministic)
        self.level = level
        self.debugger = msprobe.PrecisionDebugger(
            task="overflow_check" if task == "overflow" else task, dump_path=folder, level=level, step=steps
        )

    def start(self, models: list[Any]) -> None:
        if models:
            self.debugger.start(model=models[0] if len(models) == 1 else models)
        elif self.level == "L1":
            self.debugger.start()
        else:
            raise SystemExit("transplt_probe: no network was found for this level: instrument with --level L1")

    def stop(self) -> None:
        self.debugger.stop()
        self.debugger.step()


class _Ptdbg:
    def __init__(
        self, folder: str, task: str, level: str, steps: list[int], seed: int, deterministic: bool
    ) -> None:
        ptdbg_ascend: Any = importlib.import_module("ptdbg_ascend")
        self.api, self.steps, self.number, self.hooked = ptdbg_ascend, steps, 0, False
        self.mode = {"overflow": "overflow"}.get(task, "api_stack")
        ptdbg_ascend.seed_all(seed=seed, mode=deterministic)
        ptdbg_ascend.set_dump_path(folder, dump_tag="all")

    def start(self, models: list[Any]) -> None:
        if not self.hooked and models:
            self.hooked = True
            hook = self.api.overflow_check if self.mode == "overflow" else self.api.acc_cmp_dump
            for model in models:
                self.api.register_hook(model, hook)
        if self.mode != "overflow" and (not self.steps or self.number in self.steps):
            self.api.set_dump_switch("ON", mode=self.mode)

    def stop(self) -> None:
        if self.mode != "overflow" and (not self.steps or self.number in self.steps):
            self.api.set_dump_switch("OFF")
        self.number += 1


def _seed(seed: int, deterministic: bool) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if deterministic:
        torch.use_deterministic_algorithms(True, warn_only=True)


def _note_models() -> None:
    """Know the networks that somebody asked for their parameters: an optimizer's, a wrapper's, a program's own."""
    module: Any = torch.nn.Module

    def noting(original: Any) -> Any:
        @functools.wraps(original)
        def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not any(known() is self for known in _models):
                _models.append(weakref.ref(self))
            return original(self, *args, **kwargs)

        return asked

    module.parameters = noting(module.parameters)
    module.named_parameters = noting(module.named_parameters)


def _outermost() -> list[Any]:
    alive = [model for known in _models if (model := known()) is not None and model._modules]
    inner = {id(part) for model in alive for part in model.modules() if part is not model}
    return [model for model in alive if id(model) not in inner]


def _drop_nothing() -> None:
    """Dropout keeps everything, in the forms that `rm_dropout` of msprobe leaves random too."""
    functional: Any = torch.nn.functional
    for owner in (functional, torch, torch._VF):
        for name in _DROPOUTS:
            if hasattr(owner, name):
                setattr(owner, name, _without_dropout(getattr(owner, name)))
    attention, heads = functional.scaled_dot_product_attention, functional.multi_head_attention_forward

    @functools.wraps(attention)
    def attend(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: Any = 0.0, *a: Any, **k: Any) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *a, **k)

    @functools.wraps(heads)
    def attend_by_heads(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(heads).bind(*args, **kwargs)
        bound.arguments["dropout_p"] = 0.0
        return heads(*bound.args, **bound.kwargs)

    functional.scaled_dot_product_attention, functional.multi_head_attention_forward = attend, attend_by_heads
    kind: Any = torch.nn.RNNBase
    made = kind.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self.dropout = 0.0

    kind.__init__ = __init__


def _without_dropout(original: Any) -> Any:
    @functools.wraps(original)
    def kept(input: Any, *args: Any, **kwargs: Any) -> Any:
        return input

    return kept


def trainer_callbacks(given: Any = None) -> list[Any]:
    """`callbacks` of a transformers Trainer, with one that records each step of its optimizer."""
    base: Any = importlib.import_module("transformers").TrainerCallback

    class Probe(base):  # type: ignore[misc]
        def on_step_begin(self, *args: Any, **kwargs: Any) -> None:
            _start()

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            _stop()

    return [*(given or ()), Probe()]


def lightning_callbacks(given: Any = None) -> list[Any]:
    """`callbacks` of a Lightning Trainer, with one that records each batch."""
    name = "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"
    base: Any = importlib.import_module(name).Callback

    class Probe(base):  # type: ignore[misc]
        def on_train_batch_start(self, *args: Any, **kwargs: Any) -> None:
            _start()

        def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
            _stop()

    single = given is not None and not isinstance(given, (list, tuple))
    return [*([given] if single else given or ()), Probe()]
