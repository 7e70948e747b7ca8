"""What a project has of its own for NPUs, by the names of its folders and files: a person reads that first."""

from __future__ import annotations

import re
from collections.abc import Iterable

from transplt.syntax.modules import named_aside

_NPU = re.compile(r"(?<![A-Za-z])(?:npus?|ascend)(?![A-Za-z])", re.I)


def own_places(paths: Iterable[str]) -> list[str]:
    """The folders and files of a project that are for the NPU by their names, what lies highest first.

    >>> own_places(["ascend-support/README.md", "docs/npu.md", "docker/a/Dockerfile", "input/a.py"])
    ['ascend-support/', 'docs/npu.md']
    """
    found = set()
    for path in paths:
        parts = path.split("/")
        if parts[0] == ".github" or named_aside(path):
            continue
        first = next((at for at, part in enumerate(parts) if _NPU.search(part)), None)
        if first is not None:
            found.add("/".join(parts[: first + 1]) + ("/" if first + 1 < len(parts) else ""))
    return sorted(found, key=lambda place: (place.rstrip("/").count("/"), place))
