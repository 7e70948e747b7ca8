"""Under which names a file for the NPU lies beside another one."""

from __future__ import annotations

import re

_WORDS = ("npu", "ascend")
_GPU = re.compile(r"(?<![A-Za-z])(?:gpu|cuda)s?(?![A-Za-z])", re.I)
#: What the path of a file for the NPU holds.
NPU_NAMED = re.compile(r"(?<![A-Za-z])(?:npu|ascend|mindspeed)(?![A-Za-z])", re.I)


def twins(path: str) -> list[str]:
    """The names that a file for the NPU may have beside the file of this path; none for one of the NPU's own."""
    folder, slash, name = path.rpartition("/")
    if NPU_NAMED.search(name):
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
    if not folder or NPU_NAMED.search(folder):
        return []
    above, slash, _ = folder.rpartition("/")
    found = [f"{place}{word}" for place in (f"{folder}/", f"{above}{slash}") for word in _WORDS]
    return found + [_GPU.sub(word, folder) for word in _WORDS if _GPU.search(folder)]
