"""Settings that a file makes for the whole program that it is part of, as its text has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

UNPICKLES, SUPPRESSES, KEEPS_RATES = "unpickles", "suppresses", "keeps rates"
#: torch.load then takes what it is given (torch/serialization.py); torch._dynamo then leaves what it cannot compile;
#: the learning rates of an optimizer stand in the state that is saved.
_SWITCHES = {
    UNPICKLES: re.compile(rb"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD[\"']\s*(?:\]\s*=|,)\s*[\"'](?:1|y|yes|true)[\"']"),
    KEEPS_RATES: re.compile(rb"optim\w*(?:[\"']\])?\.state_dict\(\)"),
    SUPPRESSES: re.compile(rb"dynamo\.config\.suppress_errors\s*=\s*True\b"),
}


def switches_of(data: bytes) -> tuple[str, ...]:
    """What a file sets."""
    return tuple(name for name, pattern in _SWITCHES.items() if pattern.search(data) is not None)


def loads_objects(path: str, switches: Mapping[str, tuple[str, ...]]) -> bool:
    """True for a file after which, or after whose package, `torch.load` takes objects."""
    above = [path, *(str(folder / "__init__.py") for folder in PurePosixPath(path).parents)]
    return any(UNPICKLES in switches.get(each, ()) for each in above)


def leaves_uncompiled(switches: Mapping[str, tuple[str, ...]]) -> bool:
    """True for a project some file of which tells torch._dynamo to run what it cannot compile as it is."""
    return any(SUPPRESSES in each for each in switches.values())


def saves_rates(switches: Mapping[str, tuple[str, ...]]) -> bool:
    """True for a project some file of which asks an optimizer for its state."""
    return any(KEEPS_RATES in each for each in switches.values())
