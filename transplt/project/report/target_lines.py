"""The torch that a run aims at, in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from transplt.base.language import gettext, translated
from transplt.base.render.cell import visible
from transplt.base.settings import TorchTarget


def target_line(target: TorchTarget) -> str:
    """Which torch it is for, and why."""
    values = {"version": target.version, "npu": target.torch_npu, "why": visible(translated(target.why))}
    if target.torch_npu:
        return gettext("torch {version} with torch_npu {npu}: {why}", **values)
    return gettext("torch {version} with the torch_npu of the same version: {why}", **values)


def target_details(target: TorchTarget) -> Iterator[str]:
    """What the files of the project ask for, what else decided, and what PyTorch changed since the pinned version."""
    yield from map(visible, target.weighed)
    yield from (gettext("changed in {change}", change=change) for change in target.changes)
