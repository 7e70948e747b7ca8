"""`when_imported` and `pictures` of the emulator's module of this name, for stand-ins that a card pack brings along."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from types import ModuleType

_PACK = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


def when_imported(name: str, action: Callable[[ModuleType], None]) -> None:
    """Import the module, and call `action(module)`; nothing where it is not there."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return
    action(module)


def pictures(of: object, package: str, otherwise: int) -> int:
    """How many pictures a data set that stands in for one of a package has: as many as in the recording."""
    with open(os.path.join(_PACK, "pack.json"), encoding="utf-8") as file:
        return int(json.load(file)["pictures"].get(f"{package}.py", otherwise))
