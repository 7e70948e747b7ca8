"""What the parts of `distributed` share while they work on one file: the program, and the names they write."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.edits.writing import Writer
from transplt.finding import Effort
from transplt.program.program import File, Program

RANK_0 = "get_rank() == 0"
#: The code of what a person has to do unless a page of its own speaks of it, and that of the imports.
LEFT, IMPORTS = "NPU332", ("NPU333", "imports for several processes")


@dataclass(slots=True, kw_only=True)
class Bench(Writer):
    """One file of the program on the bench."""

    program: Program
    file: File

    def left(
        self, node: ast.expr | ast.stmt, message: str, help_: str, code: str = LEFT, effort: Effort = Effort.LOW
    ) -> None:
        """Say what a person has to do for the script to run on many cards."""
        Writer.left(self, node, message, help_, code, effort)

    @property
    def dist(self) -> str:
        """The name of torch.distributed in this file; it is imported when it was not."""
        return self.module("torch.distributed", "dist", "torch_dist")

    @property
    def rank_0(self) -> str:
        """The condition that holds in one process only."""
        return f"{self.dist}.{RANK_0}"

    @property
    def parallel(self) -> str:
        """The name of DistributedDataParallel in this file."""
        return self.object("torch.nn.parallel", "DistributedDataParallel")

    @property
    def sampler(self) -> str:
        """The name of DistributedSampler in this file."""
        return self.object("torch.utils.data.distributed", "DistributedSampler")
