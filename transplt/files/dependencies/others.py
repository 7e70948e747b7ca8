"""Files whose requirements are those of others than the training: of another device, of documents, of a linter."""

from __future__ import annotations

import re

#: A word of the name of a file, of a folder, or of an extra.
FOR_OTHERS = re.compile(
    r"(?:^|[-_./])(?:cpu|rocm|amd|mps|mac|macos|osx|windows|win|xpu|hpu|tpu|flax|jax|tensorflow|npu|ascend|docs?|doc|sphinx|readthedocs|"
    r"rtd|lint|linting|pre-commit)(?=[-_./]|$)"
)
_NPU = re.compile(r"npu|ascend")


def is_for_others(path: str) -> bool:
    """True for a path that names another device, documents or a linter: its requirements are theirs."""
    return FOR_OTHERS.search(path.lower().rsplit(".", 1)[0]) is not None


def speaks_for_others(name: str) -> bool:
    """True where what `name` (a path, or the name of an extra) holds says nothing of the torch that is trained with.

    What is for the NPU does say it: nothing says it better.
    """
    return any(not _NPU.search(match.group()) for match in FOR_OTHERS.finditer(name.lower()))
