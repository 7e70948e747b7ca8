"""The torch that a run aims at, in words for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from transplt.base.language import gettext, ngettext, translated
from transplt.base.render.cell import visible
from transplt.base.settings import TorchTarget


def target_lines(target: TorchTarget, verbose: int | bool = False) -> Iterator[str]:
    """Which torch it is for, and why, in one line; in a second one that PyTorch changed since the pinned version."""
    values = {"version": target.version, "npu": target.torch_npu, "why": visible(translated(target.why))}
    if target.torch_npu:
        yield gettext("torch {version} with torch_npu {npu}: {why}", **values)
    else:
        yield gettext("torch {version} with the torch_npu of the same version: {why}", **values)
    if target.changes and not verbose:
        yield ngettext(
            "{count} release of PyTorch newer than the project's oldest changed something that may matter; -v lists it",
            "{count} releases of PyTorch newer than the project's oldest changed things that may matter; -v lists them",
            len(target.changes),
        )


def target_details(target: TorchTarget) -> Iterator[str]:
    """What the files of the project ask for, what else decided, and what PyTorch changed since the pinned version."""
    yield from map(visible, target.weighed)
    yield from (gettext("changed in {change}", change=change) for change in target.changes)
