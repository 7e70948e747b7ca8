"""The rows of modules: their calls, their parameters, and the gradients of these before the optimizer takes them."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from . import gradients as backward
from . import steps
from .entries import entry
from .files import keeper

#: The path of a module in the outermost one that was called.
_paths: Any = weakref.WeakKeyDictionary()
_calls: list[tuple[Any, str, Any, list[Any]]] = []
_roots = 0
_WRAPPERS = ("DistributedDataParallel", "DataParallel")


def install() -> None:
    """Watch the calls of modules."""
    register_module_forward_pre_hook(_before)
    register_module_forward_hook(_after, always_call=True)


def paths() -> list[tuple[Any, str]]:
    """The modules that were called, each with its path and class."""
    return [*_paths.items()]


def inside() -> str | None:
    """The name of the row of the module that is being called."""
    return next((name for _, name, _, _ in reversed(_calls) if name), None)


def _name_all(root: Any) -> None:
    """`layer1.0.Conv2d`: the path in the network and class; networks after the first have their number before it."""
    global _roots
    nested = bool(root._modules)
    number = f"{_roots}." if nested and _roots else ""
    _roots += nested
    for path, module in root.named_modules():
        if module not in _paths:
            _paths[module] = f"{number}{path + '.' if path else ''}{type(module).__name__}"


def _before(module: Any, args: Any) -> None:
    if module not in _paths:
        if torch.is_grad_enabled() and not _calls:
            steps.begin()
        _name_all(module)
    wanted = steps.recording() and steps.asked()["level"] != "L1" and type(module).__name__ not in _WRAPPERS
    if not wanted:
        _calls.append((module, "", None, []))
        return
    stem = f"Module.{_paths[module]}.forward"
    name = f"{stem}.{steps.current.count(stem)}"
    with steps.busy():
        given = entry(list(args), "input", keeper(name))
    _calls.append((module, name, given, backward.edges(list(args))))


def _after(module: Any, args: Any, output: Any) -> None:
    while _calls and _calls[-1][0] is not module:
        _calls.pop()  # calls that ended by an exception
    if not _calls:
        return
    _, name, given, edges = _calls.pop()
    if not name or not steps.recording():
        return
    frames, frame = steps.frames_here()
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    with steps.busy():
        made = entry(outputs, "output", keeper(name))
        own = {key: entry(value, f"parameters.{key}", keeper(name)) for key, value in module._parameters.items()}
    row = {"input_args": given, "input_kwargs": {}, "output": made, "parameters": own}
    if steps.asked()["task"] != "overflow" or steps.look_for_overflow(name, given, made, frame):
        steps.add(name, row, inside(), frames)
        if steps.asked()["task"] != "overflow":
            back = name.replace(".forward.", ".backward.")
            outer = inside()
            above = outer.replace(".forward.", ".backward.") if outer else None
            backward.watch(back, above, edges, outputs, keeper(back), frame)


def gradients(optimizer: Any) -> None:
    """The gradients of the parameters that `optimizer` is about to change, module by module."""
    if steps.asked()["task"] == "overflow":
        return
    own = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for module, path in list(_paths.items()):
        name = f"Module.{path}.parameters_grad.0"
        kept = keeper(name)
        with steps.busy():
            row = {
                key: [entry(value.grad, f"{key}", kept)]
                for key, value in module._parameters.items()
                if value is not None and id(value) in own and value.grad is not None
            }
        if row:
            steps.add(name, row, None)
