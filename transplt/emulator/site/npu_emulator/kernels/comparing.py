"""python comparing.py CALLS ORIGINAL MIGRATED TARGET TOLERANCE: compares what two programs computed, as JSON.

It reads results of `replaying`, and needs torch alone.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch

#: Eight roundings of one operation, as a share of the largest number of a tensor; sums in another order stay below.
ROUNDINGS = {"float64": 8 * 2.3e-16, "float32": 8 * 1.2e-7, "float16": 8 * 9.8e-4, "bfloat16": 8 * 7.9e-3}
#: As in a proof of a whole program: another draw of roundings would move a number by more.
TIMES = 8.0
_KINDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def equal(one: torch.Tensor, other: torch.Tensor, mask: torch.Tensor | None = None) -> bool:
    """The same bytes, where the mask has them."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    bits = _KINDS[one.element_size()]
    left, right = one.contiguous().view(bits), other.contiguous().view(bits)
    if mask is None:
        return bool(torch.equal(left, right))
    return bool(torch.equal(left[mask], right[mask]))


def apart(one: torch.Tensor, other: torch.Tensor, mask: torch.Tensor | None = None) -> dict[str, Any]:
    """How far two tensors are apart: the largest distance and its share of the largest number, how many elements
    differ, and the first of them, in words. `share` is None where no rounding can be the cause."""
    kind = str(one.dtype).removeprefix("torch.")
    if one.shape != other.shape or one.dtype != other.dtype:
        its, theirs = ([str(each.dtype).removeprefix("torch."), *each.shape] for each in (one, other))
        return {"what": f"is {_shape(theirs)}, in the original {_shape(its)}", "share": None, "largest": None,
                "elements": 0, "of": one.numel(), "dtype": kind}  # fmt: skip
    left, right = one.contiguous(), other.contiguous()
    bits = _KINDS[one.element_size()]
    differ = left.view(bits) != right.view(bits)
    if mask is not None:
        differ &= mask
    if one.is_floating_point():
        differ &= ~(left.isnan() & right.isnan())
    count = int(differ.sum())
    if not count:
        return {"what": "", "share": 0.0, "largest": 0.0, "elements": 0, "of": one.numel(), "dtype": kind}
    places = differ.nonzero() if differ.dim() else torch.zeros(1, 0, dtype=torch.int64)
    place = tuple(places[0].tolist())
    first, second = left[place].item(), right[place].item()
    largest, share = None, None
    if one.is_floating_point():
        a, b = left[differ].to(torch.float64), right[differ].to(torch.float64)
        kept = left if mask is None else left[mask]
        finite = kept[kept.isfinite()].to(torch.float64).abs()
        if bool((a.isfinite() & b.isfinite()).all()) and finite.numel():
            largest = float((a - b).abs().max())
            top = float(finite.max())
            share = largest / top if top else None
    else:
        largest = float((left[differ].to(torch.float64) - right[differ].to(torch.float64)).abs().max())
    where = f"[{', '.join(map(str, place))}]"
    return {"what": f"{where} is {second!r}, not {first!r}; {count:,} of {one.numel():,} elements differ",
            "share": share, "largest": largest, "elements": count, "of": one.numel(),
            "dtype": kind if kind in ROUNDINGS else "float32"}  # fmt: skip


def within(gap: dict[str, Any], moved: float) -> bool:
    """Whether roundings may be the cause of a gap: eight of one operation, or eight times what roundings of the inputs
    move the tensor by."""
    if gap["share"] is None or gap["largest"] is None:
        return gap["share"] == 0.0
    return gap["share"] <= ROUNDINGS[gap["dtype"]] or gap["largest"] <= TIMES * moved


def _shape(told: list[Any]) -> str:
    return f"{told[0]}[{', '.join(map(str, told[1:]))}]"


class Comparison:
    """Compares one call. `tolerance` is the share that was told (0: none)."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance

    def of(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        """`launches`: for each launch of the original what was found, and `returned`, what the function gave back."""
        left, right = one["launches"], other["launches"]
        paired = [each["kernel"]["name"] for each in left] == [each["kernel"]["name"] for each in right]
        launches = [self._launch(a, b) for a, b in zip(left, right, strict=False)] if paired else []
        returned = None
        if one["returned"] is not None and other["returned"] is not None:
            returned = self._returned(one, other)
        return {"paired": paired, "launches": launches, "returned": returned}

    def _launch(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        reasons = _reasons(one, other)
        names = [name for name in one["tensors"] if name in other["tensors"]]
        compared, found = 0, []
        changed = one["grid"] != other["grid"] or one["options"] != other["options"]
        for name in names:
            if one["tensors"][name].shape != other["tensors"][name].shape:
                changed = True  # such as partial sums, a row for each program
            mask = _both(one["written"][name], other["written"][name])
            if mask is not None and not bool(mask.any()):
                continue
            compared += 1
            moved = one["moved"].get(name, 0.0)
            found += self._gap(name, one["tensors"][name], other["tensors"][name], mask, reasons, moved)
        kernel = one["kernel"]
        return {
            "kernel": kernel, "migrated": other["kernel"], "compared": compared, "gaps": found, "reasons": reasons,
            "changed": changed, "programs": [one["programs"], other["programs"]], "ran": [one["ran"], other["ran"]],
        }  # fmt: skip

    def _returned(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        reasons = [*dict.fromkeys(
            reason for a, b in zip(one["launches"], other["launches"], strict=False) for reason in _reasons(a, b)
        )]  # fmt: skip
        if len(one["launches"]) != len(other["launches"]):
            reasons.append("other launches")
        found: list[dict[str, Any]] = []
        compared = 0
        for name, value in one["returned"].items():
            theirs = other["returned"].get(name)
            compared += 1
            if isinstance(value, torch.Tensor) and isinstance(theirs, torch.Tensor):
                found += self._gap(name, value, theirs, None, reasons, one["moved"].get(name, 0.0))
            elif isinstance(value, torch.Tensor) or isinstance(theirs, torch.Tensor):
                found.append(_other(name, "is missing" if theirs is None else f"is {theirs!r}, not a tensor"))
            elif value != theirs and not (value != value and theirs != theirs) and not name.startswith("argument ctx."):
                found.append(_other(name, f"is {theirs!r}, not {value!r}"))
        results = [name for name, value in one["returned"].items()
                   if isinstance(value, torch.Tensor) and (name.startswith("the result") or ".saved_tensors" in name)]
        return {"compared": compared, "results": len(results), "gaps": found, "reasons": reasons}

    def _gap(
        self, name: str, one: torch.Tensor, other: torch.Tensor, mask: torch.Tensor | None, reasons: list[str],
        moved: float,
    ) -> list[dict[str, Any]]:  # fmt: skip
        if equal(one, other, mask):
            return []
        gap = apart(one, other, mask)
        if not gap["elements"] and gap["share"] is not None:
            return []  # NaN of other bits
        if self._tolerance:
            near = gap["share"] is not None and gap["share"] <= self._tolerance
        else:
            near = bool(reasons) and within(gap, moved)
        return [{"argument": name, **gap, "within": near}]


def _other(name: str, what: str) -> dict[str, Any]:
    return {"argument": name, "what": what, "share": None, "largest": None, "elements": 1, "of": 1, "dtype": "",
            "within": False}  # fmt: skip


def _both(one: torch.Tensor | None, other: torch.Tensor | None) -> torch.Tensor | None:
    if one is None or other is None or one.shape != other.shape:
        return one if one is not None else other
    return one & other


def _reasons(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Why numbers may be added in another order than in the original."""
    found = []
    if one["adds"] or other["adds"]:
        found.append("atomics add floats in no fixed order")
    both = [name for name in one["options"] if name in other["options"]]
    changed = [n for n in both if one["options"][n] != other["options"][n]]
    if changed:
        told = ", ".join(f"{n} {one['options'][n]}, {other['options'][n]}" for n in changed[:3])
        found.append(f"other arguments ({told})")
    if one["grid"] != other["grid"]:
        found.append(f"another grid ({_grid(one)}, {_grid(other)})")
    if set(one["options"]) != set(other["options"]):
        found.append("other parameters")
    if any(each.dtype is torch.float16 for each in one["tensors"].values()):
        found.append("an NPU adds float16 up in float32")
    if one["body"] != other["body"]:
        found.append("the kernel was changed")
    return found


def _grid(launch: dict[str, Any]) -> str:
    sizes = launch["grid"]
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes = sizes[:-1]
    return "x".join(map(str, sizes))


def main() -> None:
    """The command."""
    calls, original, migrated, target, tolerance = sys.argv[1:]
    with open(calls, encoding="utf-8") as file:
        told = json.load(file)
    comparison = Comparison(float(tolerance))
    found = []
    for number, _ in enumerate(told["calls"]):
        sides = [_read(folder, number) for folder in (original, migrated)]
        brief = [{name: each.get(name) for name in ("error", "skipped", "orders", "findings")} for each in sides]
        compared = None
        if not any("error" in each or "skipped" in each for each in sides):
            compared = comparison.of(sides[0], sides[1])
        launches = [[{name: each[name] for name in ("kernel", "programs", "ran")} for each in side["launches"]]
                    for side in sides]  # fmt: skip
        found.append({"original": brief[0], "migrated": brief[1], "compared": compared, "launches": launches})
    with open(target, "w", encoding="utf-8") as file:
        json.dump(found, file)


def _read(folder: str, number: int) -> dict[str, Any]:
    """A result; one that is not there ended its process."""
    path = os.path.join(folder, f"{number}.pt")
    if not os.path.exists(path):
        begun = os.path.exists(os.path.join(folder, f"{number}.begun"))
        why = "it ended the process: an access outside of its tensors does that" if begun else "it was not come to"
        stopped = os.path.join(folder, "why")
        if os.path.exists(stopped):
            with open(stopped, encoding="utf-8") as file:
                told = json.load(file)
            if number >= told["from"]:
                return {"skipped": told["reason"], "launches": [], "returned": None, "orders": []}
        return {"error": {"reason": why, "path": "", "line": 0}, "launches": [], "returned": None, "orders": []}
    result: dict[str, Any] = torch.load(path, weights_only=True)
    return result


if __name__ == "__main__":
    main()
