"""What the parts of `distributed` share while they work on one file: the program, and the names they write."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Finds, Found
from transplt.edits.groups import MANY_CARDS
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.distributed.obstacles import runs_elsewhere
from transplt.fixers.distributed.program.process_group_start import Start
from transplt.fixers.distributed.program.share_sums import SharedFile
from transplt.fixers.distributed.verdict import Verdict
from transplt.program.models import Models
from transplt.program.program import File, Program, Variable
from transplt.program.training import Training
from transplt.program.wrapper_places import Wrap
from transplt.rules.torch_callables import full_names
from transplt.syntax.scan import parent

_OURS = full_names("distributes")
#: The code of what a person has to do unless a page of its own speaks of it.
LEFT = "NPU332"
#: What to do where a line has to be split.
SPLIT = "put each statement on its own line and run transplt again"


@dataclass(slots=True, kw_only=True)
class Bench(Writer):
    """One file of the program on the bench, with what is known of the program."""

    file: File
    start: Start
    models: Models
    wraps: dict[Variable, Wrap]
    verdict: Verdict
    shared: bool = False  # other scripts run code of this file, too

    @property
    def program(self) -> Program:
        return self.models.program

    @property
    def training(self) -> Training:
        return self.models.training

    @property
    def own(self) -> SharedFile:
        """The file, with how the data of its program are shared out."""
        return SharedFile(self.verdict.ways, self.verdict.shares, self.file)

    def alike(self, node: ast.AST) -> bool:
        """True for code of the file by which all ranks come as often."""
        return self.verdict.ways.is_uniform(self.file, node)

    def varies(self, node: ast.expr) -> bool:
        """True for an expression of the file that may have another value on each rank."""
        return self.verdict.ways.varying.varies(self.file, node)

    def left(
        self, node: ast.expr | ast.stmt, message: str, help_: str, code: str = LEFT, effort: Effort = Effort.LOW
    ) -> None:
        """Say what a person has to do for the script to run on many cards."""
        Writer.left(self, node, message, help_, code, effort)

    def decide(
        self, node: ast.expr | ast.stmt, code: str, message: str, help_: str, *details: tuple[str, str]
    ) -> None:
        """Say where the training is not that of one process, which a person has to want."""
        self.found.append(self.work.note(node, code, message, help=help_, details=details))

    def withdraw(self, node: ast.expr) -> None:
        """Take back the edits inside of an expression that is written elsewhere, with them in it."""
        start, end = self.file.source.extent(node)

        def inside(edit: Found) -> bool:
            return isinstance(edit, Edit) and edit.rewrites and start <= self.file.source.extent(edit.node)[0] < end

        self.work.withdraw_edits(inside, written_elsewhere=True)
        self.found = [found for found in self.found if not inside(found)]
        for inner in ast.walk(node):
            self.work.taken.add(id(inner))

    def call(self, name: str) -> str:
        """How this file calls a function of the helper; where an earlier one lacks it, nothing is made distributed."""
        text = self.helper(name, "NPU333", "functions for several processes")
        if not text:
            self.work.overruled = self.work.overruled or f"the module that an earlier migration wrote has no {name}"
        return text or name

    @property
    def first(self) -> str:
        """The condition that holds in one process only."""
        return f"{self.call('is_first')}()"

    @property
    def others(self) -> str:
        """The condition that holds in all processes but the first."""
        return f"not {self.first}"

    @property
    def waiting(self) -> str:
        """The line at which all ranks wait for each other."""
        return f"{self.call('wait')}()"

    @property
    def parallel(self) -> str:
        """A name for torch's DistributedDataParallel that means it everywhere in this file; it is imported if need be.

        What is imported under a condition or in a function is not there elsewhere, and what the file calls by the name
        itself may be a class of its own, or of apex.
        """
        scan, name = self.work.scan, "DistributedDataParallel"
        for local, bindings in sorted(scan.root.bindings.items()):
            imported = bindings[0].target in _OURS and isinstance(parent(bindings[0].node), ast.Module)
            if imported and sum(len(scope.bindings.get(local, ())) for scope in scan.scopes.values()) == 1:
                return local
        if scan.binds(name):
            return f"{self.torch}.nn.parallel.{name}"
        self.imports(f"from torch.nn.parallel import {name}")
        return name


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
