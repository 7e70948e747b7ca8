"""Files that have one for the NPU beside them: `run.sh` and `run_npu.sh`, `Dockerfile` and `Dockerfile.npu`,
`docker/cuda/Dockerfile` and `docker/ascend/Dockerfile`.

In a project that chooses between CUDA and the NPU by itself, what starts, installs or configures it for CUDA stays as
its Python does: a file without a word for the NPU in its path is for the others. What its own files for the NPU name is
what it runs with there, and of its configurations its Python knows what they mean.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace

from transplt.base.finding import Finding, Level
from transplt.engine.files.kind import FileKind
from transplt.engine.files.recipes import is_workflow
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.npu_choices import HANDLED

#: What may have a twin: what starts, installs or configures; a kernel or a notebook beside another does not count.
_KINDS = frozenset({FileKind.SHELL, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.DOCKER})
_WORDS = ("npu", "ascend")
_GPU = re.compile(r"(?<![A-Za-z])(?:gpu|cuda)s?(?![A-Za-z])", re.I)
_NPU = re.compile(r"(?<![A-Za-z])(?:npu|ascend|mindspeed)(?![A-Za-z])", re.I)
#: What a job asks for that runs on cards of NVIDIA.
_FOR_GPUS = re.compile(rb"^[ \t]*accelerators:|\bnvidia\.com/gpu\b", re.M)
#: A plugin or a device that a project which handles the NPU has chosen.
_PLUGIN, _DEVICE = "NPU512", "NPU821"
#: The words of the reasons `npu-own` and `project-reads`.
NPU_OWN = "a file of the project for the NPU"
PROJECT_READS = "read by the Python of a project that supports NPUs"


def has_npu_twin(root: str, path: str, kind: FileKind) -> bool:
    """True when a file with the name of this one and a word for the NPU lies beside it, below the folder `root`, where
    that is known.
    """
    return bool(root) and kind in _KINDS and any(os.path.isfile(f"{root}/{twin}") for twin in twins(path))


def is_for_cuda(path: str, kind: FileKind, project: ProjectFacts | None, text: bytes = b"") -> bool:
    """True for a file for CUDA in a project that supports NPUs by itself."""
    if project is None or not project.portable or kind not in _KINDS or _NPU.search(path):
        return False
    # values of other configurations are read as its Python reads them
    return kind is not FileKind.CONFIG or is_workflow(path) or _FOR_GPUS.search(text) is not None


def why_left(path: str, kind: FileKind, project: ProjectFacts | None) -> str:
    """Why nothing is left to do about words of CUDA in a project that supports NPUs; empty where something may be."""
    if project is None or not project.portable or kind not in _KINDS:
        return ""
    return NPU_OWN if _NPU.search(path) else PROJECT_READS if kind is FileKind.CONFIG else ""


def handled(findings: tuple[Finding, ...], project: ProjectFacts | None) -> tuple[Finding, ...]:
    """The findings of a file, of which those are remarks that a project which handles the NPU has seen to: plugins for
    the packages that it runs with, and devices that it sets itself as it starts.
    """
    if project is None or not project.portable:
        return findings
    found = []
    for each in findings:
        is_set = each.code == _DEVICE and each.detail("key") in project.sets
        if each.open and not each.applied and (each.code == _PLUGIN or is_set):
            each = replace(each, level=Level.INFO, effort=None, message=f"{each.message}; {HANDLED}")
        found.append(each)
    return tuple(found)


def twins(path: str) -> list[str]:
    """The names that a file for the NPU may have beside the file of this path; none for one of the NPU's own."""
    folder, slash, name = path.rpartition("/")
    if _NPU.search(name):
        return []
    stem, dot, ending = name.rpartition(".") if "." in name[1:] else (name, "", "")
    found = []
    for word in _WORDS:
        found += [f"{stem}{mark}{word}{dot}{ending}" for mark in "_-."]
        found += [f"{word}{mark}{name}" for mark in "_-"]
        if _GPU.search(name):
            found.append(_GPU.sub(word, name))
    return [f"{folder}{slash}{each}" for each in found] + [f"{each}/{name}" for each in _folders(folder)]


def twin_of(path: str) -> str:
    """The one of these names that a script gets: `run_npu.sh`, `run-all-npu.sh`, `train_npu.sh` for `train_gpu.sh`."""
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".") if "." in name[1:] else (name, "", "")
    mark = "-" if "-" in stem and "_" not in stem else "_"
    return f"{folder}{slash}{_GPU.sub('npu', stem) if _GPU.search(stem) else f'{stem}{mark}npu'}{dot}{ending}"


def _folders(folder: str) -> list[str]:
    """The folders in which a file for the NPU may lie under the same name: `docker/ascend` beside `docker/cuda`."""
    if not folder or _NPU.search(folder):
        return []
    above, slash, _ = folder.rpartition("/")
    found = [f"{place}{word}" for place in (f"{folder}/", f"{above}{slash}") for word in _WORDS]
    return found + [_GPU.sub(word, folder) for word in _WORDS if _GPU.search(folder)]
