"""Starts the two programs, each in a fresh copy, and gathers what their processes recorded."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transplt.proof.launch import runner
from transplt.proof.launch.edits import EditedFile
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.launch.warm import Warm
from transplt.proof.prove.collectives import CollectiveFault, collective_faults, standings
from transplt.proof.prove.projects import Project
from transplt.proof.prove.training import Place, Training, below, read_trainings

#: Variables that torchrun sets; a script that asks for them has to be started by it.
_OF_TORCHRUN = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Stop:
    """Why a run did not reach its end: the error, and the user's line."""

    reason: str
    place: Place | None
    rank: int | None = None

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
    whose order is a DistributedSampler's. `left_out`: steps that are not taken, by the number of their optimizer."""

    batches: dict[str, list[list[int]]]
    every: bool = True
    left_out: dict[int, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run: what each process trained, how it ended, what it printed, wrote and which lines it took."""

    trainings: list[Training]
    stop: Stop | None
    outcome: ScriptRun
    world: int
    lines: dict[str, set[int]]
    operators: int
    findings: list[dict[str, Any]]
    faults: list[CollectiveFault]

    @property
    def first(self) -> Training | None:
        return self.trainings[0] if self.trainings else None


@dataclass
class Runner:
    """Starts one of the two programs as often as it is asked to. `watched`: lines by path, whose runs are recorded.

    `warm` forks its processes; `torchrun`: the script asks for what torchrun sets; `spawns`: it starts a process for
    each card by itself.
    """

    project: Project
    options: RunOptions
    host: str
    watched: dict[str, list[int]] = field(default_factory=dict)
    torchrun: bool = False
    spawns: bool = False
    seconds: float = 0.0
    warm: Warm | None = None

    def run(
        self, world: int = 1, *, replay: Replay | None = None, detail: int = 0, shake: float = 0.0, steps: int = 0
    ) -> Run:
        """Run with `world` processes, for so many `steps` (0: those of the options). A script that asks for the
        variables of torchrun gets them with one, too."""
        done = self._start(world, replay, detail, shake, steps)
        if world == 1 and not self.torchrun and done.stop is not None and _wants_torchrun(done.stop.reason):
            self.torchrun = True
            done = self._start(world, replay, detail, shake, steps)
        if not self.torchrun and not self.spawns and world == 1 and any(each.world > 1 for each in done.trainings):
            self.spawns = True
            done = self._start(world, replay, detail, shake, steps)
        return done

    def _start(self, world: int, replay: Replay | None, detail: int, shake: float, steps: int) -> Run:
        with tempfile.TemporaryDirectory(prefix="transplt-prove-", ignore_cleanup_errors=True) as folder:
            root = self.project.copy_to(Path(folder))
            assert self.options.trace is not None
            last = steps or detail or self.options.trace.steps
            order = replay or Replay({})
            given = replay.batches if replay is not None else None
            trace = Trace(self.options.trace.seed, last, given, order.every, detail, order.left_out, shake)
            options = replace(
                self.options, script=self.project.main, folder=str(root), trace=trace,
                nproc=world if (world > 1 or self.torchrun) and not self.spawns else 0,
                npus=world if self.spawns else self.options.npus,
            )  # fmt: skip
            edited = tuple(
                EditedFile(root / path, {line: frozenset([line]) for line in lines}, ())
                for path, lines in self.watched.items()
                if lines and not detail
            )
            outcome = runner.start(options, edited, capture=True, echo=False, host=self.host, warm=self.warm)
            self.seconds += outcome.seconds
            trainings = read_trainings(outcome.traces, root)
            return Run(
                trainings, _stop(outcome, root), outcome, world, _lines(outcome, root),
                sum(sum(process["operators"].values()) for process in outcome.processes),
                [_finding(each, root) for process in outcome.processes for each in process["findings"]],
                collective_faults(outcome.traces, root, hung=outcome.hung),
            )  # fmt: skip


def _neutral(reason: str) -> str:
    """The text of an error without the names that only one kind of card has."""
    tensors = re.sub(r"torch\.(?:cuda|npu)\.(\w+)Tensor|npu(\w+)Type", r"\1\2", reason)
    return re.sub("cuda|gpu|npu", "npu", tensors, flags=re.IGNORECASE)


def _wants_torchrun(reason: str) -> bool:
    return any(name in reason for name in _OF_TORCHRUN) and ("KeyError" in reason or "environment variable" in reason)


def _stop(outcome: ScriptRun, root: Path) -> Stop | None:
    """The first error: of a rank rather than of the launcher, and rather than a lost connection to another rank."""
    if not outcome.code and not outcome.timed_out and not outcome.hung:
        return None
    if outcome.hung:
        return Stop(f"its ranks waited for one another: {'; '.join(standings(outcome.traces, root))}", None)
    failed = [process for process in outcome.processes if process["exception"] and not process["launcher"]]
    failed.sort(key=lambda process: any(word in process["exception"]["message"] for word in _LOST))
    for process in failed:
        error = process["exception"]
        first = error["message"].splitlines()[0] if error["message"] else ""
        reason = f"{error['type']}: {first}" if first else error["type"]
        place = Place(below(error["path"], root), error["line"]) if error.get("path") else None
        return Stop(reason, place, int(process["rank"]) if process["rank"] is not None else None)
    if outcome.timed_out:
        where = "; ".join(standings(outcome.traces, root))
        return Stop(f"did not end in time and was stopped{f': {where}' if where else ''}", None)
    lines = [line for line in outcome.output.splitlines() if line.strip()]
    return Stop(f"ended with exit code {outcome.code}{': ' + lines[-1][:200] if lines else ''}", None)


_LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Gloo connectFullMesh failed")


def _lines(outcome: ScriptRun, root: Path) -> dict[str, set[int]]:
    ran: dict[str, set[int]] = {}
    for process in outcome.processes:
        for path, lines in process["lines"].items():
            ran.setdefault(below(path, root), set()).update(lines)
    return ran


def _finding(finding: dict[str, Any], root: Path) -> dict[str, Any]:
    return {**finding, "path": below(finding["path"], root)}
