"""Trainings made by hand: the events that a process would have told, read as `transplt prove` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transplt.proof.prove import steps as compared
from transplt.proof.prove.found import Difference, Rounding
from transplt.proof.prove.tolerance import PLAIN, hold
from transplt.proof.prove.training import Training, read_trainings

ROOT = Path("/project")
MAIN = "/project/train.py"


def figures(norm: float) -> list[float]:
    """Norm, two projections and a checksum of a tensor."""
    return [norm, norm / 2, norm / 4, hash(norm) % 1000]


class Told:
    """A training in the making: `Told().made("SGD").step(loss=1.0).training()`. Its one parameter begins as 1."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = [{"e": "begin", "at": None}]
        self.steps = 0
        self.line = 10

    def tell(self, event: str, line: int | None = None, **fields: Any) -> Told:
        self.events.append({"e": event, "at": [MAIN, line or self.line], **fields})
        return self

    def made(self, kind: str = "SGD", lr: float = 0.1, start: Sequence[float] = (1.0,)) -> Told:
        hyper = [{"lr": lr, "nesterov": False}]
        names = [f"Net.{place}" for place in range(len(start))]
        self.tell("optimizer", 5, o=0, kind=kind, sizes=[len(start)], hyper=hyper)
        return self.tell(
            "start", o=0, kind=kind, names=names, dtypes=["float32"] * len(start), p=[figures(each) for each in start]
        )

    def step(
        self,
        loss: float = 1.0,
        grad: float | None = 0.5,
        value: float = 0.9,
        lr: float | None = None,
        buffers: dict[str, float] | None = None,
        between: Sequence[str] = (),
    ) -> Told:
        """A backward pass, the events of `between`, and a step behind which the parameter is `value`."""
        self.tell("zero_grad", 11)
        self.tell("backward", 12, loss=[loss], dtype=["float32"])
        for event in between:
            self.tell(event, 13, o=0, bound=1.0, kind="StepLR", train=True)
        if lr is not None:
            self.tell("hyper", o=0, hyper=[{"lr": lr, "nesterov": False}])
        self.tell("grads", o=0, k=self.steps, g=[None if grad is None else [grad, grad / 2, loss / 1000]])
        held = {name: figures(each) for name, each in (buffers or {}).items()}
        self.tell("step", 14, o=0, k=self.steps, p=[figures(value)], b=held)
        self.steps += 1
        return self

    def skipped(self, loss: float = 1.0) -> Told:
        """A step that a scaler leaves out."""
        self.tell("backward", 12, loss=[loss], dtype=["float32"])
        self.tell("skipped", 14, o=0, k=self.steps, scale=1024.0)
        self.steps += 1
        return self

    def training(self) -> Training:
        return read_trainings([self.events], ROOT)[0]


def trained(*steps: dict[str, Any], **made: Any) -> Training:
    """A training of steps with the arguments of `Told.step`."""
    told = Told().made(**made)
    for each in steps:
        told.step(**each)
    return told.training()


def first_difference(
    one: Training, other: Training, rounding: Rounding = PLAIN, shaken: Sequence[Training] = ()
) -> Difference | None:
    """The first figure that is more than rounding apart."""
    return hold(one, other, rounding, compared.gaps, lambda: shaken).first
