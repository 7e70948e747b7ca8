"""What training did in a process, for `transplt prove`: every step in figures, every event with the line that made it.

Two runs are compared by their traces, so a trace holds nothing that depends on the machine or on the clock: places in
the user's files, names, figures of tensors. It is the same on the emulated NPU and on the stand-in for CUDA.
"""

from __future__ import annotations

from ..config import config


def install() -> None:
    """Begin the trace of this process; torch is there. Does nothing where none is asked for."""
    if not config.trace:
        return
    from torch.utils import _device

    from . import calls, collectives, detail, draws, loaders, repeat, shaken, steps

    # Filled at its first call: once functions that draw are wrapped, torch.set_default_device would know the wrappers
    # only, and what they call would be on the CPU.
    _device._device_constructors()
    if config.models:
        # Dynamo would trace our own functions as a part of the network.
        repeat.seed_draws(int(config.trace["seed"]))
        shaken.install()
        steps.install()
        return
    if config.trace["seed"] is None:
        repeat.draw_anew()
    else:
        alone = not config.trace["replay_all"]
        repeat.install(int(config.trace["seed"]), config.trace["inserted"], any_seed=alone)
    shaken.install()
    steps.install()
    calls.install()
    draws.install()
    loaders.install()
    collectives.install()
    if config.trace["detail"]:
        detail.install()
