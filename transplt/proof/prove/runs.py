"""Starts the two programs, each in a fresh copy, and gathers what their processes recorded."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from transplt.proof.compiler.launches import launches_below
from transplt.proof.launch import runner
from transplt.proof.launch.edits import EditedFile
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.reference import without_uuids
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.launch.stacks import below, told_below
from transplt.proof.launch.warm import Warm
from transplt.proof.prove.collectives import CollectiveFault, collective_faults, standings
from transplt.proof.prove.known import Known
from transplt.proof.prove.projects import Project, make_repository
from transplt.proof.prove.rank_conditions import read_source
from transplt.proof.prove.training import Place, Training, read_trainings
from transplt.proof.prove.witness import CUDA, Witness

_Result = TypeVar("_Result")
#: What stops a script that asks for variables which torchrun sets: it has to be started by it.
_OF_TORCHRUN = re.compile("(?s)(?=.*(?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)).*(?:KeyError|environment variable)")

#: What Python says of a script in a package that is started by its path.
_NO_PACKAGE = "attempted relative import with no known parent package"
#: Names a run that is made to see whether the original repeats itself: the kept one would always be the same.
TWICE = 2
#: Held by a run whose program names the port where its processes meet.
_meeting = threading.Lock()


@dataclass(frozen=True)
class Stop:
    """Why a run did not reach its end: the error, and the user's line."""

    reason: str
    place: Place | None
    rank: int | None = None
    #: The installed package in which the line stopped.
    called: str = ""

    def is_that_of(self, other: Stop | None) -> bool:
        """Whether another program stops for the same reason; devices and tensors of theirs have other names."""
        return other is not None and _neutral(self.reason) == _neutral(other.reason)

    def of(self, program: str, when: str = "") -> str:
        """With the program that stops, and when: `rank 1 of the program, after 3 steps: train.py:9: ...`."""
        who = f"rank {self.rank} of {program}" if self.rank is not None else program
        return f"{who}{when}: {self._what}"

    @property
    def _what(self) -> str:
        return f"{f'{self.place}: ' if self.place else ''}{self.reason}"

    def __str__(self) -> str:
        return f"{f'rank {self.rank}: ' if self.rank is not None else ''}{self._what}"


@dataclass(frozen=True)
class Replay:
    """ "loader.epoch" -> batches of indices that a run's loaders give in place of their own; unless `every`, only those
    whose order is a DistributedSampler's. `lengths`: what `len` gives of the loaders in each pass, by the order in
    which they are made. `left_out`: steps that are not taken, by the number of their optimizer."""

    batches: dict[str, list[list[int]]]
    every: bool = True
    left_out: dict[int, list[int]] = field(default_factory=dict)
    lengths: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run: what each process trained, how it ended, what it printed, wrote and which lines it took; the launches of
    Triton's kernels, where a compiler is to have them."""

    trainings: list[Training]
    stop: Stop | None
    outcome: ScriptRun
    world: int
    lines: dict[str, set[int]]
    operators: int
    findings: list[dict[str, Any]]
    faults: list[CollectiveFault]
    witness: Witness = CUDA
    launched: list[dict[str, Any]] = field(default_factory=list)
    #: What torch.compile said of lines, where the networks were compiled.
    compiled: list[dict[str, Any]] = field(default_factory=list)

    @property
    def first(self) -> Training | None:
        return self.trainings[0] if self.trainings else None


@dataclass
class Runner:
    """Starts one of the two programs as often as it is asked to. `watched`: lines by path, whose runs are recorded;
    `inserted`: those that the other program does not have.

    `warm` forks its processes; `torchrun`: the script asks for what torchrun sets; `packaged`: it imports what lies
    beside it by relative names, so that it starts as a module; `spawns`: it starts a process for each card by itself.
    `known` has the runs that were made before, where the program stays the same; `witness` says how an original runs;
    `ran`: the watched lines to which one of its runs came, by path.
    """

    project: Project
    options: RunOptions
    host: str
    watched: dict[str, list[int]] = field(default_factory=dict)
    torchrun: bool = False
    packaged: bool = False
    spawns: bool = False
    seconds: float = 0.0
    warm: Warm | None = None
    known: Known | None = None
    inserted: dict[str, list[int]] = field(default_factory=dict)
    witness: Witness = CUDA
    ran: dict[str, set[int]] = field(default_factory=dict)

    def run(
        self,
        world: int = 1,
        *,
        replay: Replay | None = None,
        detail: int = 0,
        shake: float = 0.0,
        steps: int = 0,
        again: int = 0,
        seeded: bool = True,
        delayed: bool = False,
    ) -> Run:
        """Run with `world` processes, for so many `steps` (0: those of the options). A script that asks for the
        variables of torchrun gets them with one, too. `again` counts runs that are asked for in the same way; each
        shakes the parameters by other roundings. Without `seeded` nothing is held still: it is a user's run.
        `delayed` ranks wait at random before what others may see."""
        assert self.options.trace is not None
        order = replay or Replay({})
        trace = Trace(
            self.options.trace.seed, steps or detail or self.options.trace.steps,
            replay.batches if replay is not None else None, order.every, detail, order.left_out, shake, again,
            order.lengths, self.inserted, seeded, delayed,
        )  # fmt: skip
        done = self._start(world, trace)
        if not self.packaged and done.stop is not None and _NO_PACKAGE in done.stop.reason and "/" in self.project.main:
            self.packaged = True
            done = self._start(world, trace)
        if world == 1 and not self.torchrun and done.stop is not None and _OF_TORCHRUN.match(done.stop.reason):
            self.torchrun = True
            done = self._start(world, trace)
        if not self.torchrun and not self.spawns and world == 1 and any(each.world > 1 for each in done.trainings):
            self.spawns = True
            done = self._start(world, trace)
        return done

    def _start(self, world: int, trace: Trace) -> Run:
        options = replace(
            self.options, trace=trace, module=self.packaged,
            script=self.project.main.removesuffix(".py").replace("/", ".") if self.packaged else self.project.main,
            random=self.options.random if trace.seeded else "npu",
            nproc=world if (world > 1 or self.torchrun) and not self.spawns else 0,
            npus=world if self.spawns else self.options.npus,
        )  # fmt: skip
        watched = {path: lines for path, lines in self.watched.items() if lines and not trace.detail}
        known = self.known if trace.seeded else None
        key = known.key(self.project, options, self.host, watched) if known is not None else ""
        told = known.get(key) if known is not None else None
        if told is None:
            told = self._execute(options, watched)
            if known is not None and not told[0].code:
                known.put(key, *told)
        outcome, root = told
        self.seconds += outcome.seconds
        for path, lines in (ran := _lines(outcome, root)).items():
            self.ran.setdefault(path, set()).update(lines)
        return Run(
            read_trainings(outcome.traces, root), stop_of(outcome, root), outcome, world, ran,
            sum(sum(process["operators"].values()) for process in outcome.processes),
            told_below(chain.from_iterable(process["findings"] for process in outcome.processes), root),
            collective_faults(  # the copy is gone
                outcome.traces, root, hung=outcome.hung,
                read=lambda path: read_source(str(self.project.root / below(path, root))),
            ),
            self.witness,
            launches_below(outcome.processes, root),
            told_below(chain.from_iterable(
                process.get("compiled", {}).get("found", ()) for process in outcome.processes), root),
        )  # fmt: skip

    def _execute(self, options: RunOptions, watched: dict[str, list[int]]) -> tuple[ScriptRun, Path]:
        """Run in a fresh copy: what became of it, and where the copy lay."""
        with tempfile.TemporaryDirectory(prefix="transplt-prove-", ignore_cleanup_errors=True) as folder:
            root = self.project.copy_to(Path(folder))
            make_repository(root / ".git")
            edited = tuple(
                EditedFile(root / path, {line: frozenset([line]) for line in lines}, ())
                for path, lines in watched.items()
            )
            assert options.trace is not None
            added = {os.path.realpath(root / path): lines for path, lines in options.trace.inserted.items()}
            in_copy = replace(options, folder=str(root), trace=replace(options.trace, inserted=added))
            own_port = self.project.has_its_own_port or any("tcp://" in each for each in options.arguments)
            with _meeting if own_port else contextlib.nullcontext():
                run = runner.start(in_copy, edited, capture=True, echo=False, host=self.host, warm=self.warm)
            return run, root


def at_once(*runs: Callable[[], _Result]) -> list[_Result]:
    """Make runs side by side, as far as the machine has processors for it."""
    with ThreadPoolExecutor(min(len(runs), os.cpu_count() or 1, 2)) as pool:
        begun = [pool.submit(run) for run in runs]
        try:
            return [each.result() for each in begun]
        except BaseException:
            for each in begun:
                each.cancel()
            runner.stop_all()
            raise


def _neutral(reason: str) -> str:
    """The text of an error without the names that only one kind of card has, or only one run, and without what was
    printed before a signal came."""
    ended = re.sub(r"(exit code -\d+): .*", r"\1", without_uuids(reason))
    tensors = re.sub(r"torch\.(?:cuda|npu)\.(\w+)Tensor|npu(\w+)Type", r"\1\2", ended)
    return re.sub("cuda|gpu|npu", "npu", tensors, flags=re.IGNORECASE)


def stop_of(outcome: ScriptRun, root: Path) -> Stop | None:
    """The first error: of a rank rather than of the launcher, and rather than a lost connection to another rank."""
    if not outcome.code and not outcome.timed_out and not outcome.hung:
        return None
    if outcome.hung:
        return Stop(f"its ranks waited for each other: {'; '.join(standings(outcome.traces, root))}", None)
    failed = [process for process in outcome.processes if process["exception"] and not process["launcher"]]
    failed.sort(key=_has_lost)
    if all(map(_has_lost, failed)):  # of a rank that a signal ended
        for process in outcome.processes:
            if process.get("ended", "").startswith("by signal"):
                ended = {"type": f"ended {process['ended']}", "message": "", **(process["place"] or {})}
                return _stop(process, ended, root)
    if failed:
        return _stop(failed[0], failed[0]["exception"], root)
    if outcome.timed_out:
        where = "; ".join(standings(outcome.traces, root))
        return Stop(f"did not finish in time and was stopped{f': {where}' if where else ''}", None)
    lines = [line for line in outcome.output.splitlines() if line.strip()]
    return Stop(f"ended with exit code {outcome.code}{': ' + lines[-1][:200] if lines else ''}", None)


def _stop(process: dict[str, Any], error: dict[str, Any], root: Path) -> Stop:
    """The end of a process by an error."""
    first = error["message"].splitlines()[0] if error["message"] else ""
    told = first.replace(f"{root}{os.sep}", "")  # where the copy lay is nobody's place
    reason = f"{error['type']}: {told}" if told else error["type"]
    place = Place(below(error["path"], root), error["line"]) if error.get("path") else None
    rank = int(process["rank"]) if process["rank"] is not None else None
    return Stop(reason, place, rank, error.get("called", ""))


def _has_lost(process: dict[str, Any]) -> bool:
    return any(word in process["exception"]["message"] for word in _LOST)


_LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Gloo connectFullMesh failed")


def _lines(outcome: ScriptRun, root: Path) -> dict[str, set[int]]:
    ran: dict[str, set[int]] = {}
    for process in outcome.processes:
        for path, lines in process["lines"].items():
            ran.setdefault(below(path, root), set()).update(lines)
    return ran
