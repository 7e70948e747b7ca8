"""Files that have one for the NPU beside them: `run.sh` and `run_npu.sh`, `Dockerfile` and `Dockerfile.npu`,
`docker/cuda/Dockerfile` and `docker/ascend/Dockerfile`.

In a project that chooses between CUDA and the NPU by itself, what starts, installs or configures it for CUDA stays as
its Python does: a file without a word for the NPU in its path is for the others. What its own files for the NPU name is
what it runs with there, and of its configurations its Python knows what they mean.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import replace

from transplt.base.finding import Finding, Level
from transplt.engine.files.kind import FileKind
from transplt.engine.files.recipes import is_workflow
from transplt.engine.files.twin_names import NPU_NAMED, twins
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.npu_choices import HANDLED

#: What may have a twin: what starts, installs or configures; a kernel or a notebook beside another does not count.
_KINDS = frozenset({FileKind.SHELL, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.DOCKER})
#: What holds a hash, or a copy, of what a pyproject.toml asks for: it is stale with each edit there.
_LOCKS = ("poetry.lock", "uv.lock", "pdm.lock")
#: What a job asks for that runs on cards of NVIDIA.
_FOR_GPUS = re.compile(rb"^[ \t]*accelerators:|\bnvidia\.com/gpu\b", re.M)
#: A plugin or a device that a project which handles the NPU has chosen.
_PLUGIN, _DEVICE = "NPU512", "NPU821"
#: The words of the reasons `npu-own` and `project-reads`.
NPU_OWN = "a file of the project for the NPU"
PROJECT_READS = "read by the Python of a project that supports NPUs"


def has_npu_twin(root: str, path: str, kind: FileKind, lock: str = "") -> bool:
    """True when a file with the name of this one and a word for the NPU lies beside it, below the folder `root`, where
    that is known; beside a pyproject.toml with a `lock` file it is a list.
    """
    names = twins(path.replace("pyproject.toml", "requirements.txt") if lock else path)
    return bool(root) and kind in _KINDS and any(os.path.isfile(f"{root}/{twin}") for twin in names)


def lock_of(root: str, path: str, style: str) -> str:
    """The lock file of a pyproject.toml below the folder `root`, beside it or there: the portable style asks for it."""
    name = posixpath.basename(path)
    asked = root and name == "pyproject.toml" and style == "portable"
    folders = (f"{root}/{posixpath.dirname(path)}", root) if asked else ()
    return next((each for folder in folders for each in _LOCKS if os.path.isfile(f"{folder}/{each}")), "")


def is_for_cuda(path: str, kind: FileKind, project: ProjectFacts | None, text: bytes = b"") -> bool:
    """True for a file for CUDA in a project that supports NPUs by itself."""
    if project is None or not project.portable or kind not in _KINDS or NPU_NAMED.search(path):
        return False
    # values of other configurations are read as its Python reads them
    return kind is not FileKind.CONFIG or is_workflow(path) or _FOR_GPUS.search(text) is not None


def why_left(path: str, kind: FileKind, project: ProjectFacts | None) -> str:
    """Why nothing is left to do about words of CUDA in a project that supports NPUs; empty where something may be."""
    if project is None or not project.portable or kind not in _KINDS:
        return ""
    return NPU_OWN if NPU_NAMED.search(path) else PROJECT_READS if kind is FileKind.CONFIG else ""


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
