"""Names in files that are not Python which merely hold a word of CUDA: models of a hub, repositories, leftovers.

`nvidia/Some-Model` is a repository of the Hugging Face Hub unless it is an image, which has a tag or a name that images
have (hub.docker.com/u/nvidia). A repository of NVIDIA on GitHub counts only where the table of packages says that it
runs on NPUs as it is.
"""

from __future__ import annotations

import re

from transplt.engine.files.kind import FileKind
from transplt.rules.packages import package_installed_as

_KINDS = frozenset({FileKind.SHELL, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.DOCKER})
#: Images are called by `docker run`, `FROM`, `image:`; the names are those of NVIDIA's account.
_HUB = re.compile(
    rb"(?<![\w./:@-])nvidia/(?!cuda|opengl|vulkan|driver|dcgm|k8s|nvidia|tritonserver)[A-Za-z][\w.-]*(?![\w./:@-])",
    re.I,
)
_IMAGE = re.compile(
    rb"\b(?:docker|podman|nerdctl|singularity|apptainer|enroot)\b|^\s*FROM\b"
    rb"|\b(?:image|container)\w*[\"']?\s*[:=]",
    re.I,
)
_REPOSITORY = re.compile(rb"\bgithub\.com[/:]nvidia/([\w.-]+?)(?:\.git)?(?=[@#\s\"';]|\Z)", re.I)
_LEFT_BY_A_BUILD = re.compile(rb"[^\s;&|]*\.egg-info\b")
_RUNS = frozenset({"works", "native", "cpu"})


def names_no_cuda(line: bytes, at: int, kind: FileKind) -> bool:
    """True for a word at a place of a line that is part of such a name."""
    if kind not in _KINDS:
        return False
    for each in _REPOSITORY.finditer(line):
        package = package_installed_as(each[1].decode("ascii", "replace")) if each.start() <= at < each.end() else None
        if package is not None and package["status"] in _RUNS:
            return True
    if any(each.start() <= at < each.end() for each in _LEFT_BY_A_BUILD.finditer(line)):
        return True
    return not _IMAGE.search(line) and any(each.start() <= at < each.end() for each in _HUB.finditer(line))
