"""How two trainings are set up, before they run: versions, environment, hyperparameters, order of data, weights.

A probe copy of `transplt instrument` and `transplt run --dump` write it, into `configuration/rankN.json` of the folder
of a dump. What differs by nature between two devices is told and does not count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transplt.base.errors import shown
from transplt.base.render.cell import many, visible
from transplt.precision.files import files, read_json
from transplt.precision.record import UnusableDump

FOLDER = "configuration"
_RANK = re.compile(r"rank(\d+)\.json$")
#: They say which device it is.
_OF_DEVICES = ("torch_npu", "cuda", "machine")
_OF_ENVIRONMENT = (
    "ASCEND_", "CUDA_", "NCCL_", "HCCL_", "CUBLAS_", "PYTORCH_NPU", "PYTORCH_CUDA", "ACLNN_", "TASK_QUEUE",
)  # fmt: skip
#: Settings that say how it is computed.
_HOW = frozenset({"threads", "foreach", "fused", "capturable", "differentiable"})
_MOST_SHOWN = 5
#: Figures of weights are the same up to this share where there are no checksums.
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class Other:
    """One thing that differs. `counts` is False for what differs by nature between devices."""

    part: str  #: `versions`, `environment`, `arguments`, `settings`, `optimizers`, `loaders`, `data`, `weights`
    name: str
    a: str
    b: str
    counts: bool = True


def read_configurations(path: str) -> dict[int, Mapping[str, Any]]:
    """By rank. `path` is the folder of a dump, the folder `configuration` in it, or a file. UnusableDump without.
    """
    if os.path.isfile(path):
        return {0: _read(path)}
    for folder in (os.path.join(path, FOLDER), path):
        if os.path.isdir(folder):
            ranks = {int(match[1]): match[0] for name in files(folder) if (match := _RANK.match(name))}
            if ranks:
                return {rank: _read(os.path.join(folder, name)) for rank, name in sorted(ranks.items())}
    raise UnusableDump(
        f"{shown(path)} has no {FOLDER}/rank0.json: a probe copy of transplt instrument writes it before its first step"
    )


def _read(path: str) -> Mapping[str, Any]:
    found = read_json(path)
    if not isinstance(found, dict) or not isinstance(found.get("weights"), dict):
        raise UnusableDump(f"{shown(path)} has no training setup")
    return found


def others(a: Mapping[int, Mapping[str, Any]], b: Mapping[int, Mapping[str, Any]]) -> list[Other]:
    """What differs between two trainings, the same of several ranks once."""
    found: dict[Other, None] = {}
    if [*a] != [*b]:
        found[Other("ranks", "number", str(len(a)), str(len(b)))] = None
    for rank in a:
        if rank in b:
            try:
                found |= dict.fromkeys(_of_rank(a[rank], b[rank]))
            except (TypeError, ValueError, AttributeError, KeyError) as error:
                raise UnusableDump(f"rank {rank}: one of the two has no training setup ({error})") from error
    return [*found]


def _of_rank(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Other]:
    yield from _apart("versions", a, b, lambda name: name not in _OF_DEVICES, only_both=True)
    yield from _apart("environment", a, b, lambda name: not name.startswith(_OF_ENVIRONMENT) or "DETERMINISTIC" in name)
    ours, theirs = list(map(str, a.get("arguments", ()))), list(map(str, b.get("arguments", ())))
    if ours != theirs:
        yield Other("arguments", "of the command line", " ".join(ours), " ".join(theirs), counts=False)
    yield from _apart("settings", a, b, lambda name: name not in _HOW)
    yield from _optimizers(a.get("optimizers", ()), b.get("optimizers", ()))
    mine, yours = a.get("loaders", []), b.get("loaders", [])
    for number, (one, other) in enumerate(zip(mine, yours, strict=False)):
        for name in one:
            if name in other and one[name] != other[name]:
                yield Other("loaders", f"loader {number} ({one['dataset']}): {name}", str(one[name]), str(other[name]))
    if len(mine) != len(yours):
        yield Other("loaders", "number", str(len(mine)), str(len(yours)))
    for number, (one, other) in enumerate(zip(a.get("batches", ()), b.get("batches", ()), strict=False)):
        if one and other and one != other:
            yield Other("data", f"batch {number}", f"checksum {one}", f"checksum {other}")
            break
    yield from _weights(a["weights"], b["weights"])


def _apart(
    part: str, a: Mapping[str, Any], b: Mapping[str, Any], counts: Any, *, only_both: bool = False
) -> Iterator[Other]:
    ours, theirs = a.get(part, {}), b.get(part, {})
    for name in sorted({*ours, *theirs}):
        one, other = ours.get(name), theirs.get(name)
        if one == other or (part == "versions" and _release(one) == _release(other)):
            continue
        both = one is not None and other is not None
        yield Other(part, name, _text(one), _text(other), counts(name) and (both or not only_both))


def _release(version: Any) -> str:
    """`2.6.0` of `2.6.0+cu124`, which says for which device it was built."""
    return str(version).partition("+")[0]


def _optimizers(a: list[Any], b: list[Any]) -> Iterator[Other]:
    if len(a) != len(b):
        yield Other("optimizers", "number", str(len(a)), str(len(b)))
    for number, (one, other) in enumerate(zip(a, b, strict=False)):
        name = f"optimizer {number} ({one['class']})"
        if one["class"] != other["class"]:
            yield Other("optimizers", name, one["class"], other["class"])
            continue
        for key, value in one["settings"].items():
            theirs = other["settings"].get(key)
            if theirs is not None and value["value"] != theirs["value"] and key.rpartition(".")[2] not in _HOW:
                yield Other("optimizers", f"{name}: {key}", _text(value["value"]), _text(theirs["value"]))


def _weights(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Other]:
    lacking = [*(name for name in a if name not in b), *(name for name in b if name not in a)]
    for name in lacking[:_MOST_SHOWN]:
        yield Other("weights", name, "there" if name in a else "none", "there" if name in b else "none")
    apart = [name for name in a if name in b and not _same(a[name], b[name])]
    for name in apart[:_MOST_SHOWN]:
        yield Other("weights", name, _weight(a[name]), _weight(b[name]))
    if (more := max(len(lacking) - _MOST_SHOWN, 0) + max(len(apart) - _MOST_SHOWN, 0)):
        yield Other("weights", f"and {many(more, 'weight')} more", "", "")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if one["shape"] != other["shape"]:
        return False
    if one.get("dtype") == other.get("dtype") and "checksum" in one and one["checksum"] == other.get("checksum"):
        return True
    # Another type, or another order of the same sums: what was drawn again is further apart.
    pairs = [(one.get(name), other.get(name)) for name in ("max", "min", "norm")]
    size = max((abs(value) for pair in pairs for value in pair if value is not None), default=0.0)
    near = all(x is not None and y is not None and abs(x - y) <= _SAME * size for x, y in pairs)
    return near and one.get("dtype") == other.get("dtype")


def _weight(found: Mapping[str, Any]) -> str:
    figures = ", ".join(f"{name} {found[name]:.6g}" for name in ("max", "min", "norm") if name in found)
    return f"{str(found.get('dtype', '')).removeprefix('torch.')} {found['shape']} {figures}"


def _text(value: Any) -> str:
    return "not there" if value is None else str(value)


def configuration_text(found: list[Other], a: str, b: str) -> str:
    """What differs, by its part; what counts first."""
    counted = [each for each in found if each.counts]
    head = f"{many(len(counted), 'difference')} before training" if counted else "the same setup"
    lines = [f"transplt compare --config: {head}", f"  A  {visible(a)}", f"  B  {visible(b)}"]
    for counts, title in ((True, ""), (False, "of the device, or of how it is computed:")):
        some = [each for each in found if each.counts == counts]
        lines += ["", title][not title :] if some else []
        for each in some:
            both = f": {each.a}  |  {each.b}" if each.a or each.b else ""
            lines.append(visible(f"  {each.part:<12}{each.name}{both}"))
    return "\n".join(lines) + "\n"
