"""Settings that a file makes for the whole program that it is part of, as its text has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

UNPICKLES, SUPPRESSES, KEEPS_RATES, OFFERS = "unpickles", "suppresses", "keeps rates", "offers"
#: torch.load then takes what it is given (torch/serialization.py); torch._dynamo then leaves what it cannot compile;
#: the learning rates of an optimizer stand in the state that is saved.
_SWITCHES = {
    UNPICKLES: re.compile(rb"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD[\"']\s*(?:\]\s*=|,)\s*[\"'](?:1|y|yes|true)[\"']"),
    KEEPS_RATES: re.compile(rb"optim\w*(?:[\"']\])?\.state_dict\(\)"),
    SUPPRESSES: re.compile(rb"dynamo\.config\.suppress_errors\s*=\s*True\b"),
}
#: A line of a README that offers what the project has trained: a link to a checkpoint, or to download some from.
_WHAT = rb"\b(?:checkpoints?|ckpts?|weights|all models|(?:pre-?)?trained[ -]models?)\b"
_OFFER = re.compile(
    rb"^(?![^\n]*(?:imagenet|backbone|download\.pytorch\.org|vgg_?16))(?:[^\n]*?https?://[^\s)]+\.(?:pth|pt|ckpt|t7)\b"
    rb"|(?=[^\n]*https?://)[^\n]*?(?:\bdownload[^\n.]{0,200}?%b|%b[^\n.]{0,200}?\bdownload)"
    rb"|#[^\n]*?%b[^\n]*\n\s*[^\n#]*\]\(https?://)" % (_WHAT, _WHAT, _WHAT),
    re.I | re.M,
)


def offers(data: bytes, path: str) -> tuple[str, ...]:
    """`OFFERS` for a README that offers checkpoints."""
    return (OFFERS,) if "readme" in path.lower() and _OFFER.search(data) is not None else ()


def switches_of(data: bytes) -> tuple[str, ...]:
    """What a file sets."""
    return tuple(name for name, pattern in _SWITCHES.items() if pattern.search(data) is not None)


def is_set(switches: Mapping[str, tuple[str, ...]], name: str) -> bool:
    """True for a project some file of which has set a switch: torch._dynamo runs what it cannot compile as it is
    (`SUPPRESSES`), an optimizer is asked for its state (`KEEPS_RATES`), checkpoints are offered (`OFFERS`)."""
    return any(name in each for each in switches.values())


def loads_objects(path: str, switches: Mapping[str, tuple[str, ...]]) -> bool:
    """True for a file after which, or after whose package, `torch.load` takes objects."""
    above = [path, *(str(folder / "__init__.py") for folder in PurePosixPath(path).parents)]
    return any(UNPICKLES in switches.get(each, ()) for each in above)
