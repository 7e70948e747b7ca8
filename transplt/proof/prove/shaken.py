"""A program run again and again with its parameters off by roundings: what becomes of so little."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove import printed
from transplt.proof.prove.found import Rounding
from transplt.proof.prove.runs import Replay, Run, Runner, at_once
from transplt.proof.prove.training import Training

#: How often a program is shaken; every second time with other threads, which add in another order.
_RUNS = 2


@dataclass
class Shaken:
    """Shaken runs of a program, made when they are first asked for; `steps` as of `Runner.run`."""

    runner: Runner
    replay: Replay
    rounding: Rounding
    announce: Callable[[str], None]
    whose: str = "the original"
    world: int = 1
    steps: int = 0
    _runs: list[Run] = field(default_factory=list)

    def trainings(self, rank: int = 0) -> list[Training]:
        return [run.trainings[rank] for run in self._made() if rank < len(run.trainings)]

    def within(self, outcome: ScriptRun) -> dict[str, float]:
        """How far the printed and saved results of a run may be apart."""
        return printed.within(outcome, [run.outcome for run in self._made()])

    def _made(self) -> list[Run]:
        if not self._runs:
            self.announce(f"{self.whose} again, with parameters changed by rounding errors")
            share = self.rounding.share
            run = partial(self.runner.run, self.world, replay=self.replay, shake=share, steps=self.steps)
            self._runs = at_once(*(partial(run, again=again) for again in range(_RUNS)))
        return self._runs
