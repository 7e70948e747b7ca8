"""A replay in words and as an object: one sentence first, then what was not computed again, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transplt.base.errors import shown
from transplt.base.grouped import grouped
from transplt.base.render.cell import figure, many, visible
from transplt.precision.first_line import place
from transplt.precision.output import plain_rows
from transplt.precision.replay.outcome import Differing, Outcome
from transplt.precision.replay.plan import Plan

FORMAT = 1
_MOST = 20
_NAMES = 5


def sentence(found: Outcome) -> str:
    """Which operators compute otherwise of the same inputs."""
    again = f"computed again on {_device(found)} from recorded inputs"
    first = next(iter(found.differing), None)
    if first is None:
        results = len({line.operator for line in found.lines})
        of = many(found.calls, "operator")
        agree = f"{results} rows agree" if results != 1 else "1 row agrees"
        return f"no operator differs: {of} {again}, {agree}"
    wrong = len({each.row.rpartition(".")[0] for each in found.differing})
    give = "gives" if wrong == 1 else "give"
    return (f"{wrong} of {many(found.calls, 'operator')} {again} {give} different results: "
            f"{_difference_text(found, first)}")


def _device(found: Outcome) -> str:
    return {"npu": "the NPU", "cuda": "the GPU", "cpu": "the CPU"}.get(found.device.partition(":")[0], found.device)


def _difference_text(found: Outcome, each: Differing) -> str:
    whose = "the NPU's result" if found.on_npu else "the recorded result"
    times = f" ({figure(each.times, 3)} times the tolerance)" if each.times > 1 else ""
    where = place(_frames(found, each.row))
    at = f", called at {where}" if where else ""
    return f"{visible(each.row)}: {whose} is {visible(each.how)}{times}{at}"


def _frames(found: Outcome, name: str) -> tuple[str, ...]:
    return found.stacks.get(name) or found.stacks.get(name.replace("backward", "forward"), ())


def replay_text(found: Outcome) -> str:
    """The sentence, and a line for each thing that has to be reported besides."""
    lines = [sentence(found)]
    lines += [f"  {_difference_text(found, each)}" for each in found.differing[1:_MOST]]
    if len(found.differing) > _MOST:
        lines.append(f"  and {len(found.differing) - _MOST} rows more")
    lines += found.known
    if found.beside is not None:
        own, passed, unknown = found.beside
        total = len(own) + len(passed) + len(unknown)
        lines.append(
            f"of {many(total, 'row')} that differ from the other dump, {len(own)} differ by themselves, {len(passed)} "
            f"agree with their recorded inputs, {len(unknown)} could not be computed again"
        )
    if found.failed:
        lines.append(f"failed on {_device(found)}: {len(found.failed)}")
        lines += [f"  {visible(name)}: {visible(error)}" for name, error in found.failed[:_MOST]]
    if found.left:
        lines.append(f"not computed again: {many(len(found.left), 'row')}")
        lines += [f"  {each}" for each in _reasons(found.left)]
    return "\n".join(lines) + "\n"


def none_text(dump: str, planned: Plan) -> str:
    """Why nothing of a dump can be computed again."""
    reasons = "; ".join(_reasons(planned.left)) or "it has no function of torch"
    return f"no operator of {shown(dump)} can be computed again (elements are in dumps of the task tensor): {reasons}"


def _reasons(left: Sequence[tuple[str, str, str]]) -> list[str]:
    """One for each clause: `2: draws random numbers (Functional.dropout.0.forward; ...)`."""
    groups = grouped((clause, f"{name}: {detail}" if detail else name) for name, clause, detail in left)
    return [
        f"{len(names)}: {clause} ({visible('; '.join(names[:_NAMES]))}"
        + (f"; and {len(names) - _NAMES} more)" if len(names) > _NAMES else ")")
        for clause, names in groups.items()
    ]


def replay_json(found: Outcome) -> dict[str, Any]:
    """All of it as an object."""
    kinds = ("gives_something_else", "agrees", "unknown")
    return {
        "format": FORMAT,
        "sentence": sentence(found),
        "same": not found.differing and not found.failed,
        "device": visible(found.device),
        "operators": found.calls,
        "differing": [
            {"name": visible(each.row), "how": visible(each.how), "place": place(_frames(found, each.row))}
            for each in found.differing
        ],
        "known": found.known,
        "failed": [{"name": visible(name), "error": visible(error)} for name, error in found.failed],
        "left_out": [
            {"name": visible(name), "why": visible(f"{clause}: {detail}" if detail else clause)}
            for name, clause, detail in found.left
        ],
        "beside": None if found.beside is None else {
            kind: [*map(visible, rows)] for kind, rows in zip(kinds, found.beside, strict=True)
        },
        "rows": plain_rows(found.lines),
    }  # fmt: skip
