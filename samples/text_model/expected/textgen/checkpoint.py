"""Training state on disk, with the random state of every rank."""

from __future__ import annotations

import os
import random

import numpy as np
import torch

from .distributed import Ranks, barrier, gather_objects


def rng_state(device: str) -> dict:
    state = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if device.startswith("npu"):
        state["cuda"] = torch.npu.get_rng_state(device)
    return state


def set_rng_state(state: dict, device: str) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state and device.startswith("npu"):
        torch.npu.set_rng_state(state["cuda"], device)


def save(path: str, model, optimizer, step: int, args: dict, vocabulary: list[str], device: str, ranks: Ranks) -> None:
    states = gather_objects(rng_state(device), ranks)
    if ranks.main:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        module = model.module if hasattr(model, "module") else model
        torch.save(
            {
                "model": module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step,
                "args": args,
                "vocabulary": vocabulary,
                "rng": states,
            },
            path,
        )
    barrier(ranks)


def load(path: str, model, optimizer, device: str, ranks: Ranks) -> int:
    # rank 0 wrote the file: its tensors name cuda:0
    location = {"cuda:0": device, "npu:0": device} if device.startswith("npu") else "cpu"
    checkpoint = torch.load(path, map_location=location, weights_only=False)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    states = checkpoint["rng"]
    if len(states) == ranks.world_size:
        set_rng_state(states[ranks.rank], device)
    elif ranks.main:
        print(f"checkpoint of {len(states)} ranks, now {ranks.world_size}: random state not restored")
    return checkpoint["step"]
