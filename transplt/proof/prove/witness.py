"""What the original runs on, so that the migrated program can be held against it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Witness:
    """A way to run the original. `host` is one of launch.runner.SITES; `title` names the original on it, `whose` what
    it computes there, `itself` the program that stops, and `name` that of several ranks."""

    host: str
    title: str
    whose: str
    itself: str
    name: str


CUDA = Witness("cuda", "the original on a stand-in for CUDA", "the original's", "the original itself", "the original")
_REDIRECTED = "the original with torch_npu's transfer_to_npu"
#: Runs as the migrated program does, on the emulated card: torch_npu redirects it by itself.
REDIRECTED = Witness(
    "npu", _REDIRECTED, "what torch_npu's transfer_to_npu makes of the original", _REDIRECTED, _REDIRECTED
)
#: By the words of `--against`.
WITNESSES = {"cuda": CUDA, "transfer-to-npu": REDIRECTED}
