"""Autotuned kernels in the interpreter: the first configuration that a device would take, as nothing can be timed."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch
import triton.runtime.autotuner as autotuner

from npu_emulator.config import config
from npu_emulator.record import record

from . import launch, limits

#: What triton-ascend takes besides (NPUOptions, third_party/ascend/backend/compiler.py): a configuration gives it on.
_USUAL = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None, "ir_override": None}
#: Configurations that are kept for a compiler (transplt.proof.compiler.launches.MOST_CONFIGURATIONS).
_MOST = 16
#: A kernel that a compiler refuses: an assertion that fails while compiling, what does not fit.
_REFUSED = (AssertionError, limits.DoesNotFit)


def _options(config: Any) -> dict[str, Any]:
    """The arguments of a configuration, without what every one has where nothing was asked for."""
    return {
        name: value for name, value in config.all_kwargs().items()
        if name in config.kwargs or (name in _USUAL and value != _USUAL[name])
    }  # fmt: skip


def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Autotuner.run with the first configuration that is taken; that of the former call with the same key."""
    self.nargs = dict(zip(self.arg_names, args, strict=False))
    every = {**self.nargs, **kwargs}
    kinds = (str(value.dtype) for value in every.values() if hasattr(value, "dtype"))
    key = (*(str(every.get(name)) for name in self.keys), *kinds)
    known = self.cache.get(key)
    if known is not None:
        return _with(self, known, args, kwargs)
    configs = list(self.prune_configs(kwargs) if len(self.configs) > 1 else self.configs)
    if config.compile:
        _note(self, configs, args, kwargs)
    kept = _copies(every) if len(configs) > 1 else {}
    for number, each in enumerate(configs, 1):
        if not self.user_defined_pre_hook if hasattr(self, "user_defined_pre_hook") else True:
            self.pre_hook({**every, **each.all_kwargs()}, reset_only=True)
        if number == len(configs):
            result = _with(self, each, args, kwargs)
        else:
            try:
                with limits.trial():
                    result = _with(self, each, args, kwargs)
            except _REFUSED as error:
                record.note(f"kernel {self.base_fn.__name__}: configuration {each} is left out: {error}")
                for tensor, copy in kept.values():
                    tensor.copy_(copy)
                continue
        self.cache[key] = each
        return result
    return None


def _note(self: Any, configs: list[Any], args: Any, kwargs: Any) -> None:
    """Keep the configurations that a card would try, each as it would launch it, for a compiler; nothing runs."""
    given = frozenset((*self.nargs, *kwargs))
    launch.keeps = True
    try:
        for each in configs[:_MOST]:
            launch.configuration = each.kwargs, given, len(configs)
            with contextlib.suppress(Exception):  # what fails here fails when it runs, and is told then
                self.fn.run(*args, **kwargs, **_options(each))
    finally:
        launch.keeps = launch.configuration = None


def _copies(given: dict[str, Any]) -> dict[int, tuple[Any, Any]]:
    tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
    return {id(tensor): (tensor, tensor.detach().clone()) for tensor in tensors}


def _with(self: Any, chosen: Any, args: Any, kwargs: Any) -> Any:
    self.best_config = chosen
    if chosen.pre_hook is not None:
        chosen.pre_hook({**self.nargs, **kwargs, **chosen.all_kwargs()})
    launch.keeps = False
    try:
        return self.fn.run(*args, **kwargs, **_options(chosen))
    finally:
        launch.keeps = None


def _taking_more(init: Any) -> Any:
    """Config with the options of triton-ascend (`multibuffer`, `unit_flag`, ...) beside those of Triton."""

    @functools.wraps(init)
    def configure(self: Any, kwargs: Any, *args: Any, **rest: Any) -> None:
        own = {name: rest.pop(name) for name in [*rest] if name not in _NAMES}
        init(self, {**kwargs, **own}, *args, **rest)

    return configure


def _autotuner_taking_more(init: Any) -> Any:
    @functools.wraps(init)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **{name: value for name, value in kwargs.items() if name not in ("hints",)})

    return make


_NAMES = frozenset(autotuner.Config.__init__.__code__.co_varnames)


def install() -> None:
    """Take the first configuration; on an NPU, take the options of triton-ascend."""
    autotuner.Autotuner.run = _run
    if limits.ENFORCED:
        autotuner.Config.__init__ = _taking_more(autotuner.Config.__init__)
        autotuner.Autotuner.__init__ = _autotuner_taking_more(autotuner.Autotuner.__init__)
