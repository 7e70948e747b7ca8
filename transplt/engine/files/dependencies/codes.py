"""The codes of findings about dependencies, what goes with them, and their places in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from transplt.base.finding import Effort, Level
from transplt.base.text.requirement import Requirement
from transplt.edits.edit import Edit, Extent, Finds, Found, Note, extent_of
from transplt.engine.files.dependencies.pythons import python_of_wheel
from transplt.engine.files.dependencies.versions import TORCH_NPU, Releases
from transplt.rules.companions import NEWER, no_wheel
from transplt.rules.releases import CPU_INDEX, wheels_for

#: torch, torchvision or torchaudio gets another release; torch-npu goes in; a part of CUDA goes out; an index.
MOVED, ADDED, CUDA_OUT, INDEX = "NPU840", "NPU841", "NPU842", "NPU843"
#: A package gets the name of the one that is installed in its place.
REPLACED = "NPU847"
#: torch-npu is asked for nowhere, or a person has to choose where; Python.
NOT_ADDED, PYTHON = "NPU844", "NPU845"
#: The detail of a finding with a line of requirements that settles it.
BOUND_BY = "bound"


def added_help(releases: Releases) -> str:
    """What to know where torch-npu went in."""
    if not releases.x86_64:
        return ""
    return f"its wheels for x86_64 need torch {releases.x86_64}, which is on {CPU_INDEX} and not on PyPI"


def why_an_index(releases: Releases) -> str:
    """Why pip needs another index than PyPI, where it does."""
    return f"on x86_64, torch-npu {releases.torch_npu} needs torch {releases.x86_64}, which is not on PyPI"


def of_older_python(requirement: Requirement, text: str, releases: Releases) -> Note:
    """A finding for a wheel of a Python that the new torch has none for; it stays."""
    python = python_of_wheel(requirement, text)
    return Note(
        requirement.whole, PYTHON, Level.MANUAL,
        f"this wheel is for Python {python}, which torch {releases.torch} does not support: not changed",
        api=requirement.name, effort=Effort.MEDIUM,
        help=f"if this runs on an NPU: install one of Python {releases.pythons[0]} to {releases.pythons[-1]}, with "
             f"torch {releases.torch} and torch-npu {releases.torch_npu}",
    )  # fmt: skip


def without_python(extent: Extent, message: str, releases: Releases) -> Note:
    """A finding for a Python that the torch of the migration has no wheels for."""
    return Note(
        extent, PYTHON, Level.MANUAL, f"{message}, for which torch_npu {releases.torch_npu} has no wheels",
        api="python", effort=Effort.MEDIUM, help=wheels_for(releases.torch_npu, releases.pythons),
    )  # fmt: skip


def of_older_pin(pin: Requirement, releases: Releases) -> Note:
    """A finding for a pin that there is no wheel of for the Pythons of the new torch."""
    return Note(
        (pin.start, pin.end), PYTHON, Level.MANUAL,
        no_wheel(pin, releases.torch, releases.pythons[0]), api=pin.name, effort=Effort.LOW, help=NEWER,
        details=(("thing", pin.name),),
    )  # fmt: skip


def not_added(extent: Extent, why: str, releases: Releases) -> Note:
    """A finding for a torch that torch-npu is not added to."""
    return Note(
        extent, NOT_ADDED, Level.MANUAL, f"torch-npu is not added next to torch: {why}", api=TORCH_NPU,
        effort=Effort.LOW, help=f"add torch-npu=={releases.torch_npu}, for torch {releases.torch}",
    )  # fmt: skip


def in_bytes(text: str, found: Iterable[Found]) -> Finds:
    """What was found, with places in bytes for places in characters."""

    def place(extent: Extent) -> Extent:
        start = len(text[: extent[0]].encode())
        return start, start + len(text[extent[0] : extent[1]].encode())

    yield from found if text.isascii() else _moved(found, place)


def shifted(found: Iterable[Found], by: int) -> Finds:
    """What was found in a piece of a document, with places of the whole one."""
    yield from _moved(found, lambda extent: (extent[0] + by, extent[1] + by))


def _moved(found: Iterable[Found], place: Callable[[Extent], Extent]) -> Finds:
    for each in found:
        extent = place(extent_of(each))
        yield replace(each, where=extent) if isinstance(each, Edit) else replace(each, extent=extent)
