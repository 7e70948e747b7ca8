"""Stand-ins at the edge: data sets, downloads, packages. A stub file is run in every process once torch is there.

from npu_emulator.stubs import when_imported
when_imported("torchvision.datasets", lambda datasets: setattr(datasets, "MNIST", MySyntheticMnist))
"""

from __future__ import annotations

import os

from .config import config
from .start import when_imported

__all__ = ["load", "ready", "when_imported"]

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ready_stubs")


def ready() -> list[str]:
    """The names of the stub files that come with the emulator."""
    return sorted(name[:-3] for name in os.listdir(_FOLDER) if name.endswith(".py"))


def load() -> None:
    """Run the stub files of this run's settings, each in a namespace of its own."""
    for path in config.stubs:
        if not os.path.isfile(path):
            path = os.path.join(_FOLDER, path + ".py")
        with open(path, encoding="utf-8") as file:
            code = compile(file.read(), path, "exec")
        exec(code, {"__name__": "transplt_stubs", "__file__": path})
