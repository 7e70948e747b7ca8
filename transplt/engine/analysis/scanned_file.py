"""One file as the analysis looks at it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.base.text.source import Source
from transplt.engine.analysis.api_uses import Chain
from transplt.engine.analysis.receivers import Receivers
from transplt.syntax.names import Names
from transplt.syntax.scan import Scan


@dataclass(slots=True)
class ScannedFile:
    """A scanned file with its resolver of names, for a torch version and a card (A2, A3 or 950DT)."""

    source: Source
    scan: Scan
    names: Names
    receivers: Receivers
    chains: list[Chain]  # those that lead to torch
    version: str
    hardware: str = "A2"
    handled: bool = False  # by a project that chooses between CUDA and the NPU by itself

    def extent(self, node: ast.expr | ast.stmt | ast.alias) -> tuple[int, int]:
        """The byte range of a node."""
        return self.source.extent(node)
