"""Lists that a tool prints of what is installed: they have no place for a package of another tool.

`conda list --export` (`name=version=build`) and `--explicit` (addresses below `@EXPLICIT`) are read by
`conda create --file`, which takes nothing of pip's: docs.conda.io, Managing environments. The table of `pip list` is
read by people. torch-npu, and the torch beside it, come from pip: such a file stays, and is a finding.
"""

from __future__ import annotations

import re

from transplt.base.finding import Effort, Level
from transplt.base.text.requirement import normalised
from transplt.edits.edit import Finds, Kept, Note
from transplt.engine.files.dependencies.codes import NOT_ADDED
from transplt.engine.files.dependencies.versions import BUILDS, FAMILY, TORCH, TORCH_NPU, Releases, is_part_of_cuda

_EXPLICIT = re.compile(r"^@EXPLICIT[ \t]*\r?$", re.M)
_EXPORTED = re.compile(r"([\w.-]+)=[^=\s]+=[^=\s]+")
#: The columns of `pip list`, of `conda list` and of mamba's.
_TABLE = re.compile(
    r"\A\s*(?:#[^\n]*\n)*(?:#?[ \t]*Name[ \t]+Version[ \t]+Build\b|Package[ \t]+Version\b[^\n]*\n-+[ \t]+-+)", re.I
)
_ADDRESS = re.compile(r"\S+/([\w.]+(?:-[A-Za-z_][\w.]*)*)-[^-/\s]+-[^-/\s]+\.(?:tar\.bz2|conda)(?:#\w+)?")
_ROW = re.compile(r"([\w.-]+)[ \t]+[^\s]+[^\n\r]*")
_FAMILY = TORCH | BUILDS | {*FAMILY}


def export_of(text: str) -> str:
    """What printed a list; empty for a text that is none."""
    if _EXPLICIT.search(text):
        return "conda list --explicit"
    if _TABLE.match(text):
        return "conda list" if text.lstrip().startswith("#") else "pip list"
    rows = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return "conda list --export" if rows and all(map(_EXPORTED.fullmatch, rows)) else ""


def changes(text: str, printed_by: str, releases: Releases) -> Finds:
    """One finding for the list, at its torch: what goes, and what comes from pip."""
    row = {"conda list --export": _EXPORTED, "conda list --explicit": _ADDRESS}.get(printed_by, _ROW)
    packages = [(match[1], *match.span()) for match in re.finditer(rf"^[ \t]*{row.pattern}", text, re.M)]
    names = {normalised(name) for name, _, _ in packages}
    torch = next((each for each in packages if normalised(each[0]) in TORCH), None)
    if torch is None or TORCH_NPU in names:
        return
    going = [name for name, _, _ in packages if normalised(name) in _FAMILY or is_part_of_cuda(name)]
    wanted = [f"torch=={releases.torch}", f"torch-npu=={releases.torch_npu}"]
    wanted += [f"{name}=={version}" for name in FAMILY if name in names and (version := releases.wanted(name))]
    for name, start, end in packages:
        if name in going and (start, end) != torch[1:]:
            yield Kept((start, end), "reported-beside")  # the finding says that it goes
    why = f"the output of {printed_by} cannot hold a pip package"
    if not printed_by.startswith("conda list --"):
        why = f"no tool installs from the output of {printed_by}"
    yield Note(
        (torch[1], torch[2]), NOT_ADDED, Level.MANUAL, f"torch-npu is not added: {why}", api=TORCH_NPU,
        effort=Effort.LOW, help=f"remove {', '.join(dict.fromkeys(going))}, and pip install {' '.join(wanted)}",
    )  # fmt: skip
