"""Files that have one for the NPU beside them: `run.sh` and `run_npu.sh`, `Dockerfile` and `Dockerfile.npu`,
`docker/cuda/Dockerfile` and `docker/ascend/Dockerfile`.

In a project that chooses between CUDA and the NPU by itself, what starts, installs or configures it for CUDA stays as
its Python does: a file without a word for the NPU in its path is for the others.
"""

from __future__ import annotations

import os
import re

from transplt.files.kind import FileKind
from transplt.files.recipes import is_workflow
from transplt.flow.facts import ProjectFacts

#: What may have a twin: what starts, installs or configures; a kernel or a notebook beside another does not count.
_KINDS = frozenset({FileKind.SHELL, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.DOCKER})
_WORDS = ("npu", "ascend")
_GPU = re.compile(r"(?<![A-Za-z])(?:gpu|cuda)s?(?![A-Za-z])", re.I)
_NPU = re.compile(r"(?<![A-Za-z])(?:npu|ascend)(?![A-Za-z])", re.I)


def has_npu_twin(root: str, path: str, kind: FileKind) -> bool:
    """True when a file with the name of this one and a word for the NPU lies beside it, below the folder `root`."""
    return kind in _KINDS and any(os.path.isfile(f"{root}/{twin}") for twin in twins(path))


def is_for_cuda(path: str, kind: FileKind, project: ProjectFacts | None) -> bool:
    """True for a file for CUDA in a project that handles the NPU by itself."""
    if project is None or not project.portable or kind not in _KINDS or _NPU.search(path):
        return False
    return kind is not FileKind.CONFIG or is_workflow(path)  # values of others are read as its Python reads them


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


def _folders(folder: str) -> list[str]:
    """The folders in which a file for the NPU may lie under the same name: `docker/ascend` beside `docker/cuda`."""
    if not folder or _NPU.search(folder):
        return []
    above, slash, _ = folder.rpartition("/")
    found = [f"{place}{word}" for place in (f"{folder}/", f"{above}{slash}") for word in _WORDS]
    return found + [_GPU.sub(word, folder) for word in _WORDS if _GPU.search(folder)]
