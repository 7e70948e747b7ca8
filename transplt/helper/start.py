"""The beginning and the end of a run."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys

import torch
from torch import distributed

from transplt.helper.draws import same_draws
from transplt.helper.ranks import card_kind, wait

__all__ = ["start"]

_started = False


def start() -> None:
    """Take this rank's card and join the other ranks, as torchrun's variables say; one process without torchrun.

    All ranks then draw what rank 0 would draw. A group that already exists is used. Calling it again does nothing,
    nor does a call in a child that `multiprocessing` started, such as a worker of a loader.
    """
    global _started
    if _started or (multiprocessing.parent_process() is not None and not distributed.is_initialized()):
        return
    kind = card_kind()
    if kind != "cpu" and "LOCAL_RANK" in os.environ:
        getattr(torch, kind).set_device(int(os.environ["LOCAL_RANK"]))
    if not distributed.is_initialized():
        backend = {"npu": "hccl", "cuda": "nccl", "cpu": "gloo"}[kind]
        if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
            distributed.init_process_group(backend)
        else:
            distributed.init_process_group(backend, store=distributed.HashStore(), rank=0, world_size=1)
        atexit.register(_end, os.getpid())
    _started = True
    same_draws()
    wait()  # a rank that came to its end now would break the connections that others still make


def _end(pid: int) -> None:
    """Leave the group; not after an exception, since the others may wait for this rank in vain, and it for them."""
    failed = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if os.getpid() == pid and distributed.is_initialized() and failed is None:
        distributed.destroy_process_group()
