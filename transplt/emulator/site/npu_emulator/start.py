"""Prepares a process: recording from its first line, the guard and the device as soon as torch is there."""

from __future__ import annotations

import importlib.abc
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from . import lines, record
from .config import config

#: Found last: a package of the environment, or of the script, wins.
_PACKAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packages")
_actions: dict[str, list[Callable[[ModuleType], None]]] = {}
_begun = False
#: Their imports take seconds, and twice that where lines are traced.
_LARGE = frozenset({"torch", "torch._dynamo", "triton"})


class _Finder(importlib.abc.MetaPathFinder):
    """Runs the actions asked for with `when_imported` right after a module was executed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if "torch" not in sys.modules and name in _stubs():
            import torch  # noqa: F401  # the package would import it, and stubs go in with it

            if name in sys.modules:
                return ModuleSpec(name, _Ready(), is_package=True)
        if name == "torch" and config.driver:
            from npu_card import libraries

            libraries.load()
        actions = _actions.get(name)
        if not actions:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                _wrap_loader(spec.loader, actions)
                return spec
        return None


def _stubs() -> set[str]:
    """Names of the files that stand for packages: `torchvision` for `torchvision.py`."""
    return {os.path.splitext(os.path.basename(path))[0] for path in config.stubs}


class _Ready(importlib.abc.Loader):
    """Loads a module that is there already."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


def _wrap_loader(loader: Any, actions: list[Callable[[ModuleType], None]]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        if module.__name__ == "torchvision":
            _execute_torchvision(execute, module)
        elif module.__name__ in _LARGE:
            with lines.paused():
                execute(module)
        else:
            execute(module)
        for action in actions:
            action(module)

    loader.exec_module = exec_module


def _execute_torchvision(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """torchvision without its compiled part (a wheel for another torch build): declare its operators and go on."""
    try:
        execute(module)
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        import torch

        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [n for n in sys.modules if n.startswith("torchvision.")]:
            del sys.modules[name]
        execute(module)
        module.__dict__["_declared_by_emulator"] = library
        record.record.note("torchvision runs without its compiled part: torchvision.ops.nms is not emulated")


def when_imported(name: str, action: Callable[[ModuleType], None]) -> None:
    """Call `action(module)` once module `name` is imported: now if it is, else right after its import."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        action(module)
    else:
        _actions.setdefault(name, []).append(action)


def _torch_is_there(torch: ModuleType) -> None:
    from . import cuda_guard, dump, saves, stubs, trace

    cuda_guard.install()
    if config.saves:
        saves.install()
    import torch_npu  # noqa: F401  what torch does when it is imported, and was in a process that forks

    trace.install()
    dump.install()
    if config.models:
        from . import compiled

        compiled.install()
    if config.redirected:
        with lines.paused():
            importlib.import_module("torch_npu.contrib.transfer_to_npu")
    stubs.load()


def _watch_card() -> None:
    from npu_card import hooks

    hooks.install()


def find_imports() -> None:
    """Let `when_imported` see the imports from here on."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    if config.driver:
        from npu_card import settings

        settings.prepare()
    os.environ["TRITON_INTERPRET"] = "1"  # before anything, torch too, imports Triton: it has functions of its own
    for name in _LARGE:
        when_imported(name, lambda module: None)


def judge_triton() -> None:
    """Let Triton's kernels run on the memory of the device, with the limits of the card."""
    from .triton import install

    when_imported("triton", install)


def begin() -> None:
    """Called once per process, before anything of the user's runs."""
    global _begun
    if _begun:
        return
    _begun = True
    from npu_card import libraries, settings

    settings.prepare()
    libraries.set_up()
    when_imported("torch_npu", lambda module: _watch_card())
    sys.path.append(_PACKAGES)
    find_imports()
    os.environ["TRITON_INTERPRET"] = "1"  # of a forked process, too
    judge_triton()
    when_imported("torchvision", lambda module: None)
    when_imported("torch", _torch_is_there)
    record.install()
    lines.install()
