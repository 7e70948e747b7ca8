"""What the parts of `distributed` share while they work on one file: the program, and the names they write."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Finds, Found
from transplt.edits.groups import MANY_CARDS
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.distributed.start import Start
from transplt.fixers.distributed.verdict import Verdict, runs_elsewhere
from transplt.program.models import Models
from transplt.program.program import File, Program, Variable
from transplt.program.training import Training
from transplt.program.wraps import Wrap

#: The code of what a person has to do unless a page of its own speaks of it.
LEFT = "NPU332"


@dataclass(slots=True, kw_only=True)
class Bench(Writer):
    """One file of the program on the bench, with what is known of the program."""

    file: File
    start: Start
    models: Models
    wraps: dict[Variable, Wrap]
    verdict: Verdict
    shared: bool = False  # other scripts run code of this file, too
    average: str = ""  # the name of the function that averages gradients

    @property
    def program(self) -> Program:
        return self.models.program

    @property
    def training(self) -> Training:
        return self.models.training

    def left(
        self, node: ast.expr | ast.stmt, message: str, help_: str, code: str = LEFT, effort: Effort = Effort.LOW
    ) -> None:
        """Say what a person has to do for the script to run on many cards."""
        Writer.left(self, node, message, help_, code, effort)

    def withdraw(self, node: ast.expr) -> None:
        """Take back the edits inside of an expression that is written elsewhere, with them in it."""
        start, end = self.file.source.extent(node)

        def inside(edit: Found) -> bool:
            return isinstance(edit, Edit) and edit.rewrites and start <= self.file.source.extent(edit.node)[0] < end

        self.work.withdraw_edits(inside, written_elsewhere=True)
        self.found = [found for found in self.found if not inside(found)]
        for inner in ast.walk(node):
            self.work.taken.add(id(inner))

    @property
    def dist(self) -> str:
        """The name of torch.distributed in this file; it is imported when it was not."""
        return self.module("torch.distributed", "dist", "torch_dist")

    @property
    def rank_0(self) -> str:
        """The condition that holds in one process only."""
        return self._rank("==")

    @property
    def not_rank_0(self) -> str:
        """The condition that holds in all processes but the first."""
        return self._rank("!=")

    def _rank(self, how: str) -> str:
        if self.shared:  # other scripts have no process group
            return f'{self.standard("os")}.environ.get("RANK", "0") {how} "0"'
        return f"{self.dist}.get_rank() {how} 0"

    def together(self, lines: list[str]) -> list[str]:
        """Lines that need the process group; where other scripts run them, too, only if there is one."""
        return [f"if {self.dist}.is_initialized():", *(f"    {line}" for line in lines)] if self.shared else lines

    def mean(self, name: str, value: str) -> list[str]:
        """Lines that give `name` the mean of a tensor over the ranks."""
        joint = [f"{self.dist}.all_reduce({name})", f"{name} /= {self.dist}.get_world_size()"]
        return [f"{name} = {value}.detach().clone()", *self.together(joint)]

    def sent(self, name: str) -> list[str]:
        """Lines that give a tensor the value of rank 0, by way of the card, wherever it lies: HCCL takes no other.

        A model may go to its card later, in a function or under a condition. What lies there already is not copied.
        """
        sent = self.free_name(f"{name}_of_rank_0")
        return [
            f'{sent} = {name}.detach().to("npu")',
            f"{self.dist}.broadcast({sent}, 0)",
            f"{name}.detach().copy_({sent})",
        ]

    def alone_first(self, lines: list[str], why: str) -> list[str]:
        """Lines that rank 0 runs before the others do."""
        before, after = self.first_rank(why)
        return [*before, *lines, *after]

    def first_rank(self, why: str) -> tuple[list[str], list[str]]:
        """What stands in front of and behind that which rank 0 does before the others."""
        there = f"{self.dist}.is_initialized() and " if self.shared else ""
        return (
            [f"if {there}{self.dist}.get_rank() != 0:", f"    {self.dist}.barrier()  # {why}"],
            [f"if {there}{self.dist}.get_rank() == 0:", f"    {self.dist}.barrier()"],
        )

    @property
    def parallel(self) -> str:
        """The name of DistributedDataParallel in this file."""
        return self.object("torch.nn.parallel", "DistributedDataParallel")

    @property
    def sampler(self) -> str:
        """The name of DistributedSampler in this file."""
        return self.object("torch.utils.data.distributed", "DistributedSampler")


def put_on_bench(
    work: Work, file: File, start: Start, models: Models, wraps: dict[Variable, Wrap], verdict: Verdict
) -> Bench:
    """The bench of a file, kept for the second look at it."""
    names = (MANY_CARDS.name, "NPU333", "imports for several processes")
    shared = runs_elsewhere(models.program, file)
    bench = Bench(work, *names, file=file, start=start, models=models, wraps=wraps, verdict=verdict, shared=shared)
    work.once(_put).append(bench)
    return bench


def bench_of(work: Work) -> Bench | None:
    """What the first look left on the bench; None where nothing is to be written."""
    return next(iter(work.once(_put)), None)


def _put(work: Work) -> list[Bench]:
    """What was put on the bench: one, or none."""
    return []


def hand_over(bench: Bench) -> Finds:
    """Yield what the codemods are to see of what was found; lines and imports stay for the second look."""
    found, bench.found = bench.found, []
    for each in found:
        if isinstance(each, Edit) and not each.rewrites:
            bench.found.append(each)
        else:
            yield each
