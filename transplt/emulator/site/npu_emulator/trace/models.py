"""Which networks there are, and what their tensors are called: by who asked a module for its parameters."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from .figures import figures
from .log import CHOICE, is_quiet, quiet

_roots: list[Any] = []
#: Networks that were given a state; those that nobody asks for parameters come behind the others.
loaded: Any = weakref.WeakKeyDictionary()
_names: dict[int, str] = {}
#: What each network is called: its class, and from the second of a class on its number, in the order in which the
#: program asked them for parameters.
_labels: dict[int, str] = {}
#: Those that computed, by id, and the hook that watches.
_called: set[int] = set()
#: How many numbers the first call that trains was given, and their figures.
given: list[float] = []
_hook: list[Any] = []
#: Modules that ask as a model is wrapped: those of DistributedDataParallel, the helper file, and ours.
_WRAPPERS = ("torch.nn.parallel.distributed", "torch.distributed.utils", "npu_port", ".trace.calls")


def install() -> None:
    """Know each module that somebody asks for all of its parameters: an optimizer's argument, a wrapper's model."""
    module: Any = torch.nn.Module
    for name in ("parameters", "named_parameters"):
        setattr(module, name, _noting(getattr(module, name)))


def _noting(original: Any) -> Any:
    @functools.wraps(original)
    def asked(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A wrapper asks where an original without one does not: the order would be another one.
        names = sys._getframe(1).f_globals
        if str(names.get("__name__")).endswith(_WRAPPERS) or CHOICE in names:
            with quiet():  # `parameters` goes on to `named_parameters`
                return iter(list(original(self, *args, **kwargs)))
        if not is_quiet() and not any(known() is self for known in _roots):
            _roots.append(weakref.ref(self))
            _names.clear()
        return original(self, *args, **kwargs)

    return asked


def watch_calls() -> None:
    """Know which networks compute, and what the first is given, until the first step of an optimizer."""
    _hook[:] = [torch.nn.modules.module.register_module_forward_pre_hook(_calls)]


def _calls(module: Any, args: Any) -> None:
    _called.add(id(module))
    if not given and not is_quiet() and torch.is_grad_enabled() and args and isinstance(args[0], torch.Tensor):
        given[:] = [args[0].numel(), *(figures(args[0]) or ())]


def watches_calls() -> bool:
    """Whether `computing` was not asked for yet."""
    return bool(_hook)


def computing(but: Collection[int]) -> dict[str, list[float]]:
    """The figures of the parameters of the networks that have computed, without those of these ids. Asked for once."""
    for hook in _hook:
        hook.remove()
    _hook.clear()
    found = _held(
        lambda root: (each for each in root.named_parameters() if id(root) in _called and id(each[1]) not in but)
    )
    _called.clear()
    return found


def name_of(parameter: Any) -> str:
    """`Net.conv.weight`: the whole network and the path in it; "" for a tensor of no module."""
    if not _names:
        with quiet():
            for root in _networks():
                for name, found in root.named_parameters():
                    _names.setdefault(id(found), f"{_label(root)}.{_plain(name)}")
    return _names.get(id(parameter), "")


def buffers() -> dict[str, list[float]]:
    """The figures of the buffers of all networks."""
    return _held(lambda root: root.named_buffers())


def parameters() -> dict[str, list[float]]:
    """The figures of the parameters of all networks, whether an optimizer has them or not."""
    return _held(lambda root: root.named_parameters())


def _held(tensors: Callable[[Any], Iterable[tuple[str, Any]]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    with quiet():
        for root in _networks():
            for name, tensor in tensors(root):
                if (values := figures(tensor)) is not None:
                    found.setdefault(f"{_label(root)}.{_plain(name)}", values)
    return found


def trained_types() -> list[str]:
    """The types of the weights that gradients go to, of all networks: an optimizer may hold copies of another type."""
    with quiet():
        trained = [each for root in _networks() for each in root.parameters() if each.requires_grad]
    return sorted({str(each.dtype).removeprefix("torch.") for each in trained})


def unwrapped(module: Any) -> Any:
    """The network that a wrapper with a single child `module` holds."""
    while [*module._modules] == ["module"] and not module._parameters and module.module is not None:
        module = module.module
    return module


def _networks() -> list[Any]:
    """The outermost networks, the largest first; wrappers are looked through."""
    alive = [unwrapped(root) for reference in _roots if (root := reference()) is not None]
    asked = {id(parameter) for root in alive for parameter in root.parameters()}
    alive += [root for root in map(unwrapped, loaded) if asked.isdisjoint(map(id, root.parameters()))]
    unlike = list({id(root): root for root in alive}.values())
    for root in unlike:
        _label(root)
    sizes = {id(root): sum(1 for _ in root.parameters()) for root in unlike}
    return sorted(unlike, key=lambda root: -sizes[id(root)])


def _label(root: Any) -> str:
    kind = type(root).__name__
    if _labels.get(id(root), "").partition("#")[0] != kind:
        alike = {label for label in _labels.values() if label.partition("#")[0] == kind}
        _labels[id(root)] = f"{kind}#{len(alike) + 1}" if alike else kind
    return _labels[id(root)]


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in ("module", "_orig_mod"))
