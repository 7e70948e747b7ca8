"""What every operator and module of a training step took and gave, in the files that msprobe writes; planted faults.

A fault lies below the recorder: the dump of a run with a fault is what a card that computes wrongly would have left.
The same on the emulated NPU and on the stand-in for CUDA. Layout and names: a dump of mindstudio-probe 26.2.0.
"""

from __future__ import annotations

from ..config import config


def install() -> None:
    """Begin to record in this process; torch is there. Does nothing where neither a dump nor a fault is asked for."""
    if not config.dump:
        return
    from ..trace import repeat
    from . import modules, operators, steps

    repeat.install(int(config.dump["seed"]))
    if config.dump["folder"]:
        steps.install()
        modules.install()
    operators.install()
