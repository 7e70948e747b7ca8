"""Versions of torch and torch_npu that a log names (an environment that was pasted, pip list), held to one another."""

from __future__ import annotations

import re

#: What stands between a name and its version.
_BETWEEN = r"(?:[ _]version)?(?:\s*(?:==?|:)\s*|[ \t]+)v?"
_TORCH = re.compile(rf"(?<![\w-])(?:py)?torch{_BETWEEN}(\d\.\d{{1,2}}\.\d)(?!\d)", re.IGNORECASE)
_TORCH_NPU = re.compile(rf"(?<![\w-])torch[-_]npu{_BETWEEN}(\d\.\d{{1,2}}\.\d)(?!\d)", re.IGNORECASE)


class VersionsNamed:
    """The versions of torch and torch_npu that pieces of logs name."""

    def __init__(self) -> None:
        self._torch: set[str] = set()
        self._torch_npu: set[str] = set()

    def look(self, piece: bytes) -> None:
        """Looks for versions in a piece."""
        if b"npu" in piece:
            text = piece.decode("utf-8", "replace")
            self._torch |= set(_TORCH.findall(text))
            self._torch_npu |= set(_TORCH_NPU.findall(text))

    def mismatch(self) -> str:
        """What does not go together, in a sentence; empty for a pair, and where one of them is named with two versions.

        A release of torch_npu is built for the torch of the same first three numbers (README of Ascend/pytorch).
        """
        if len(self._torch) != 1 or len(self._torch_npu) != 1 or self._torch == self._torch_npu:
            return ""
        (torch,), (torch_npu,) = self._torch, self._torch_npu
        return (
            f"The log names torch {torch} and torch_npu {torch_npu}: they do not belong together, which may be the "
            f"cause of anything below. Install the pair: transplt doctor, docs/diagnose.md."
        )
