"""Stand-ins at the edge: data sets, downloads, packages. A stub file is run in every process once torch is there.

from npu_emulator.stubs import when_imported
when_imported("torchvision.datasets", lambda datasets: setattr(datasets, "MNIST", MySyntheticMnist))
"""

from __future__ import annotations

import os
import sys
import types

from .config import config
from .record import record
from .start import when_imported

__all__ = ["load", "pictures", "when_imported"]

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ready_stubs")


def pictures(of: object, package: str, otherwise: int) -> int:
    """How many pictures a data set that stands in for one of a package has: as asked for. The report says so."""
    asked = [count for path, count in config.pictures.items() if os.path.basename(path) == f"{package}.py"]
    count = asked[-1] if asked else otherwise
    record.note(f"{type(of).__name__} of {package} was {count} random pictures")
    return count


def load() -> None:
    """Run the stub files of this run's settings, each as a module of its own."""
    for path in config.stubs:
        if not os.path.isfile(path):
            path = os.path.join(_FOLDER, path + ".py")
        with open(path, encoding="utf-8") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        module = types.ModuleType("transplt_stub_" + os.path.splitext(os.path.basename(path))[0])
        module.__file__ = path
        sys.modules[module.__name__] = module  # what it defines can be sent to spawned processes
        exec(code, module.__dict__)
