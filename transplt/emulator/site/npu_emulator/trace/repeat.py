"""What makes a run repeat itself: seeds before the first line of the script, dropout off."""

from __future__ import annotations

import functools
import os
import random
from types import ModuleType
from typing import Any

import torch

from ..start import when_imported

_DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def install(seed: int) -> None:
    """Seed what draws, and let dropout keep everything. Seeds of the user's own come later, and win.

    Each rank has a seed of its own, as where nobody seeds: what has to be equal on all ranks is made equal by the
    program, or is not.
    """
    seed += int(os.environ.get("RANK", "0"))
    random.seed(seed)
    torch.manual_seed(seed)
    when_imported("numpy", functools.partial(_seed_numpy, seed=seed))
    _keep_the_stream()
    _drop_nothing()


def _keep_the_stream() -> None:
    """A seed that the stream began with already does not begin it anew.

    Programs for several cards set the seed again, with the rank added: on rank 0 the numbers then go on as they do
    where nothing is set.
    """
    original: Any = torch.manual_seed

    @functools.wraps(original)
    def manual_seed(seed: Any) -> Any:
        if int(seed) == torch.initial_seed():
            return torch.default_generator
        return original(seed)

    torch.manual_seed = torch.random.manual_seed = manual_seed


def _seed_numpy(numpy: ModuleType, seed: int) -> None:
    numpy.random.seed(seed)


def _drop_nothing() -> None:
    functional: Any = torch.nn.functional

    def kept(input: Any, *args: Any, **kwargs: Any) -> Any:
        return input

    for name in _DROPOUTS:
        setattr(functional, name, functools.wraps(getattr(functional, name))(kept))
        for owner in (torch, torch._VF):
            if hasattr(owner, name):
                setattr(owner, name, functools.wraps(getattr(functional, name))(kept))
    attention = functional.scaled_dot_product_attention

    @functools.wraps(attention)
    def attend(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *rest: Any, **more: Any
    ) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *rest, **more)

    functional.scaled_dot_product_attention = attend
    made = torch.nn.RNNBase.__init__

    @functools.wraps(made)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self.dropout = 0.0

    torch.nn.RNNBase.__init__ = __init__  # type: ignore[method-assign]
    forward = functional.multi_head_attention_forward

    @functools.wraps(forward)
    def attend_by_heads(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if len(given) > 9:
            given[9] = 0.0
        elif "dropout_p" in kwargs:
            kwargs["dropout_p"] = 0.0
        return forward(*given, **kwargs)

    functional.multi_head_attention_forward = attend_by_heads
