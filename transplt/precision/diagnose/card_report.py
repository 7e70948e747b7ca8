"""What held on the card and what did not, as text and as JSON, from the file that a card pack sent back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from transplt.base.render.cell import many, visible
from transplt.precision.diagnose.card_result import CardResult, Tried

FORMAT = 1
#: Rows of one kind that are told one by one, and calls whose time is.
_MOST, _SLOWEST = 40, 5
_FOUND = {"equal": "agree with the CPU", "ran": "ran, but cannot be compared", "differs": "differ",
          "raised": "raised an error", "not tried": "were not tried"}  # fmt: skip


def result_json(result: CardResult, written: str, rows: int) -> dict[str, Any]:
    """One document; `written` is the table that `rows` outcomes went to, empty where none did."""
    return {"format": FORMAT, "left": result.left, **asdict(result), "table": written, "taken_over": rows}


def result_text(result: CardResult) -> str:
    """For people: each part, what does not hold first."""
    origin = result.origin
    names = (("torch", origin.torch), ("torch_npu", origin.torch_npu), ("CANN", origin.cann), ("driver", origin.driver))
    versions = [f"{name} {version}" for name, version in names if version]
    card = origin.card or "no card"
    lines = [f"{origin.file}: {', '.join([card, *versions])} ({origin.date})"]
    lines.append(f"made for torch {result.made_for}, of {result.program}")
    if result.emulated:
        lines.append("This is the emulated card: the file shows that the pack works, but nothing about a real card.")
    lines += ["", *_host(result), "", *_operators(result), "", *_training(result)]
    return "\n".join(map(visible, lines)) + "\n"


def _host(result: CardResult) -> Iterator[str]:
    if result.host_failed:
        yield f"host: not checked: {result.host_failed}"
    wrong = [check for check in result.checks if check[1] in ("wrong", "missing")]
    if not result.host_failed:
        yield f"host: {many(len(wrong), 'thing')} to fix" if wrong else "host: nothing to fix"
    for what, state, text, do in wrong:
        yield f"  {state:<9}{what}: {text}{f' -> {do}' if do else ''}"
    if result.failed:
        yield f"  wrong    torch_npu and its card cannot be used: {result.failed}"


def _operators(result: CardResult) -> Iterator[str]:
    counts = Counter(each.state for each in result.tried)
    told = ", ".join(f"{counts[state]} {words}" for state, words in _FOUND.items() if counts[state])
    yield f"operators: of {many(len(result.tried), 'call')} {told or 'none was tried'}"
    for state in ("raised", "differs", "not tried"):
        its = [each for each in result.tried if each.state == state]
        for each in its[:_MOST]:
            yield f"  {state:<9} {_call(each)}: {each.message}"
        if len(its) > _MOST:
            yield f"  and {len(its) - _MOST} more that {_FOUND[state]} (--format json has all)"
    timed = sorted((each for each in result.tried if each.ms), key=lambda each: -each.ms[-1])[:_SLOWEST]
    if timed:
        yield "  slowest on the card (first call / next call, memory):"
    for each in timed:
        yield f"    {each.ms[0]:.2f} / {each.ms[-1]:.2f} ms, {each.bytes / 2**20:.1f} MB  {_call(each)}"


def _call(tried: Tried) -> str:
    given = ", ".join(f"{kind}{[*shape]}" for kind, shape in zip(tried.dtypes, tried.shapes, strict=True))
    return f"{tried.operator}({given})"


def _training(result: CardResult) -> Iterator[str]:
    message = f": {result.training_message}" if result.training_message else ""
    within = ", ".join(f"{name} within {share:g}" for name, share in result.tolerances.items())
    words = {
        "equal": f"{many(len(result.steps), 'step')} as recorded ({within}, as shares)",
        "differs": f"differs from the recording ({within}, as shares){message}",
        "stopped": f"stopped after {len(result.steps)} of {many(result.wanted, 'step')}{message}",
        "nothing recorded": f"nothing was recorded{message}",
    }
    yield f"training: {words[result.training]}"
    for step in result.steps:
        title = f"  step {step.number}" + (f" of optimizer {step.optimizer}" if step.optimizer else "")
        off = len(step.off) + step.more
        outcome = f"{off} of {many(step.figures, 'figure')} off" if off else f"{many(step.figures, 'figure')} agree"
        loss = f"loss {', '.join(step.losses)} (recorded {', '.join(step.recorded)}), " if step.losses else ""
        yield f"{title}: {loss}{outcome}, {step.seconds:.2f} s"
        for each in step.off:
            yield f"    {each.what}: recorded {each.recorded}, on the card {each.here}"
