"""Gradients of what the CPU differentiates by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


def gradients(function: Callable[..., Sequence[Any]], leaves: Sequence[Any], grads: Sequence[Any]) -> Any:
    """The gradients of `leaves` under what `function` makes of them, where `grads` are those of its results (None: a
    result that nothing depends on)."""
    keys = torch._C.DispatchKey
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in (keys.ADInplaceOrView, keys.AutogradCPU, keys.AutogradOther):
        excluded = excluded.remove(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded), torch.enable_grad():
        copies = [each.detach().clone().requires_grad_() for each in leaves]
        results = function(*copies)
        reached = [(each, grad.view_as(each)) for each, grad in zip(results, grads, strict=True) if grad is not None]
        return torch.autograd.grad([each[0] for each in reached], copies, [each[1] for each in reached])
