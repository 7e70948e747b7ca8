"""What runs behind the last backward pass, which no verdict settles: what optimizers do, and with which arguments.

A verdict looks there for operators that make bad outputs of good inputs. It does not look at operators of one side
alone (another optimizer), at inputs that no recorded operator made (gradients that one side did not scale back), nor
at arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from transplt.precision.harmless import moves
from transplt.precision.judge import other_argument
from transplt.precision.match import Matched
from transplt.precision.record import BACKWARD
from transplt.render.cell import many


@dataclass(frozen=True, slots=True)
class Behind:
    """Numbers of operators behind the last backward pass."""

    backward: bool = False  #: there is such a pass
    gradients: int = 0  #: modules whose parameters' gradients were compared
    agree: int = 0
    one_sided: int = 0
    differ: int = 0  #: beyond the tolerance, and no verdict explains it
    arguments: int = 0  #: of those that agree: have other arguments

    @property
    def left(self) -> bool:
        """Whether there is something that a person has to look at."""
        return bool(self.one_sided or self.differ)

    @property
    def left_of_it(self) -> str:
        """That, as a clause; empty where there is nothing."""
        found = []
        if self.one_sided:
            found.append(f"{many(self.one_sided, 'operator')} on one side only")
        if self.differ:
            found.append(f"{many(self.differ, 'operator')} with inputs that differ and no recorded cause")
        return " and ".join(found)

    @property
    def not_compared(self) -> str:
        """What the dumps have nothing of on both sides; empty where all was compared, or without a backward pass."""
        if not self.backward:
            return ""
        found = [] if self.gradients else ["the gradients of parameters"]
        if not (self.agree or self.left):
            found.append("what the optimizers do, and their arguments")
        return " and ".join(found)


def behind(matched: Matched) -> Behind:
    """Of one rank in one step."""
    agree = one_sided = differ = arguments = 0
    for each in matched.optimizer:
        if each.one_sided:
            one_sided += not moves(each.row)
        elif max(each.inputs, each.outputs) > 1:
            differ += 1
        else:
            agree += 1
            arguments += bool(other_argument(each))
    backward = any(each.row.phase == BACKWARD for each in matched.model)
    return Behind(backward, len(matched.gradients), agree, one_sided, differ, arguments)


def together(every: Iterable[Behind]) -> Behind:
    """Of all ranks and steps."""
    parts = [*every]
    return Behind(**{field.name: sum(getattr(each, field.name) for each in parts) for field in fields(Behind)})
