"""Calls each operator of a card pack once on the card and once on the CPU, and says whether they agree.

    python card_operators.py RECORDED OUT FIRST

writes a line of JSON to OUT before and behind each call, from number FIRST on. It ends early with code 3 when the card
computes nothing any more behind an error, which a process of its own may mend.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import card_calls as calls
import torch

SEED = 1234
#: How far a result may be off: as a share of itself, and of the root mean square of all results beside it. float32 has
#: room for the 10 bits of HF32, with which the card computes convolutions.
TOLERANCES = {
    "float64": 1e-9, "complex128": 1e-9, "float32": 2e-3, "complex64": 2e-3, "float16": 5e-3, "bfloat16": 3e-2,
}  # fmt: skip


def _card() -> Any:
    try:
        import torch_npu  # noqa: F401
    except ImportError as error:
        raise SystemExit(f"torch_npu cannot be imported: {error}") from error
    return getattr(torch, "npu")  # noqa: B009  # torch knows it only behind the import


def _operator(name: str) -> Any:
    space, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload or "default")


def _given(call: dict[str, Any], device: str, seed: int) -> tuple[list[Any], dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    args = calls.decode(call["args"], generator, device)
    return args, {name: calls.decode(call["kwargs"][name], generator, device) for name in sorted(call["kwargs"])}


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [each for one in value for each in _tensors(one)]
    return [value] if isinstance(value, (torch.Tensor, bool, int, float, complex)) else []


def _results(op: Any, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """What a call gives, and the arguments that it writes."""
    result = op(*args, **kwargs)
    found = _tensors(result)
    for place, argument in enumerate(op._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found += _tensors(args[place] if place < len(args) else kwargs.get(argument.name))
    return [each.detach().cpu() if isinstance(each, torch.Tensor) else each for each in found]


def _on_cpu(call: dict[str, Any], op: Any, seed: int) -> list[Any]:
    """The CPU's results; in float32 where it has no kernel for half the bits."""
    args, kwargs = _given(call, "cpu", seed)
    try:
        return _results(op, args, kwargs)
    except RuntimeError as error:
        if "not implemented for" not in str(error):
            raise
        wide = calls.widened(call)
        args, kwargs = _given(wide, "cpu", seed)
        return _results(op, args, kwargs)


def _gap(ours: Any, theirs: Any, types: list[str]) -> tuple[float, str]:
    """How far the card's result is off, in parts of the tolerance; and what is wrong beyond numbers."""
    if not isinstance(theirs, torch.Tensor):
        ours, theirs = torch.as_tensor(ours), torch.as_tensor(theirs)
    if ours.shape != theirs.shape:
        return 0.0, f"gives the shape {list(ours.shape)}, the CPU {list(theirs.shape)}"
    if not theirs.numel():
        return 0.0, ""
    if not (theirs.is_floating_point() or theirs.is_complex()):
        if {"float16", "bfloat16"} & {*types}:
            return 0.0, ""  # the order of equal values is nobody's
        wrong = int((ours != theirs).sum())
        return 0.0, f"{wrong} of {theirs.numel()} whole numbers are others than the CPU's" if wrong else ""
    names = [name for name in (*types, str(ours.dtype)[6:]) if name in TOLERANCES]
    tolerance = max((TOLERANCES[name] for name in names), default=0.2)  # of fewer bits than a half type
    if theirs.is_complex():
        ours, theirs = torch.view_as_real(ours.resolve_conj()), torch.view_as_real(theirs.resolve_conj())
    ours, theirs = ours.double(), theirs.double()
    finite = theirs.isfinite()
    odd = ~finite & ~((ours == theirs) | (ours.isnan() & theirs.isnan()))
    if bool(odd.any()) or not bool(ours[finite].isfinite().all()):
        return 0.0, "infinities and NaN are at other places than the CPU's"
    ours, theirs = ours[finite], theirs[finite]
    if not theirs.numel():
        return 0.0, ""
    room = tolerance * (theirs.abs() + theirs.square().mean().sqrt()) + 1e-30
    return float(((ours - theirs).abs() / room).max()), ""


def _try(call: dict[str, Any], seed: int, card: Any) -> dict[str, Any]:
    """The outcome of one call."""
    try:
        op = _operator(call["op"])
    except AttributeError:
        return {"state": "not tried", "message": f"torch {torch.__version__} has no such operator"}
    why = calls.not_drawn(call)
    if why:
        return {"state": "not tried", "message": why}
    try:
        reference = _on_cpu(call, op, seed)
    except NotImplementedError:
        return {"state": "not tried", "message": "the CPU has no kernel for it"}
    except Exception as error:
        return {"state": "not tried", "message": f"the CPU refuses drawn tensors: {_first_line(error)}"}
    card.synchronize()
    card.reset_peak_memory_stats()
    before, times = card.memory_allocated(), []
    try:
        for _ in range(2):  # the first call may compile
            args, kwargs = _given(call, "npu", seed)
            card.synchronize()
            begun = time.perf_counter()
            found = op(*args, **kwargs)
            card.synchronize()
            times.append(round((time.perf_counter() - begun) * 1000, 3))
        del found
        peak = card.max_memory_allocated() - before
        results = _results(op, *_given(call, "npu", seed))
    except Exception as error:
        return {"state": "raised", "message": _first_line(error)}
    measured = {"ms": times, "bytes": max(int(peak), 0)}
    why = calls.not_compared(call, op)
    if why:
        return {"state": "ran", "message": why, **measured}
    worst = 0.0
    for number, (ours, theirs) in enumerate(zip(results, reference)):
        gap, wrong = _gap(ours, theirs, call["types"])
        which = f"result {number}: " if len(reference) > 1 else ""
        if wrong:
            return {"state": "differs", "message": which + wrong, **measured}
        if gap > 1:
            return {"state": "differs", "message": f"{which}off by {gap:.3g} times the tolerance", **measured}
        worst = max(worst, gap)
    return {"state": "equal", "message": f"within {worst:.2g} of the tolerance" if worst else "", **measured}


def _first_line(error: Exception) -> str:
    """What an error says: CANN's code may stand some lines below."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = " ".join(lines)[:500]
    return f"{type(error).__name__}: {told}" if told else type(error).__name__


def _still_computes(card: Any) -> bool:
    try:
        one = torch.ones(4).to("npu") + 1
        card.synchronize()
        return bool(one.cpu().tolist() == [2.0] * 4)
    except Exception:
        return False


def main(recorded: str, out: str, first: int) -> int:
    """Tries the calls from `first` on; 3 when the card computes nothing any more."""
    card = _card()
    with open(recorded, encoding="utf-8") as file:
        wanted = json.load(file)["calls"]
    with open(out, "a", encoding="utf-8") as told, torch.no_grad():
        for number in range(first, len(wanted)):
            print(json.dumps({"begun": number}), file=told, flush=True)
            row = _try(wanted[number], SEED + number, card)
            print(json.dumps({"call": number, **row}), file=told, flush=True)
            if row["state"] == "raised" and not _still_computes(card):
                return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
