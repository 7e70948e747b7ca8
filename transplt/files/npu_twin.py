"""Files that have one for the NPU beside them: `run.sh` and `run_npu.sh`, `Dockerfile` and `Dockerfile.npu`."""

from __future__ import annotations

import os
import re

from transplt.files.kind import FileKind

#: What may have a twin: what starts, installs or configures; a kernel or a notebook beside another does not count.
_KINDS = frozenset({FileKind.SHELL, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.DOCKER})
_WORDS = ("npu", "ascend")
_GPU = re.compile(r"(?<![A-Za-z])(?:gpu|cuda)s?(?![A-Za-z])", re.I)
_NPU = re.compile(r"(?<![A-Za-z])(?:npu|ascend)(?![A-Za-z])", re.I)


def has_npu_twin(root: str, path: str, kind: FileKind) -> bool:
    """True when a file with the name of this one and a word for the NPU lies beside it, below the folder `root`."""
    return kind in _KINDS and any(os.path.isfile(f"{root}/{twin}") for twin in twins(path))


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
    return [f"{folder}{slash}{each}" for each in found]
