"""What a card refuses of a kernel, and how it is told: errors that stop the program, warnings, remarks.

The facts are those of the static check (rules/support/triton_types.json), the words too (card_limits.json). Nothing is
refused on the stand-in for CUDA, nor where "cuda" means the npu.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from npu_emulator import DEVICE, limits
from npu_emulator.config import config
from npu_emulator.names import read_table
from npu_emulator.record import Place, record
from npu_emulator.user_code import nearest

from . import launch, place, tiles

_table = partial(read_table, "triton")

ENFORCED = DEVICE == "npu" and config.enforced
_NAMES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "int1": "bool", "fp8e4nv": "float8e4",
    "fp8e4b8": "float8e4", "fp8e4b15": "float8e4", "fp8e5": "float8e5", "fp8e5b16": "float8e5",
}  # fmt: skip
#: The text for an operation; "triton operation" for the others.
_TEXTS = {
    **dict.fromkeys(("load", "store", "make_block_ptr", "advance"), "triton type"),
    **dict.fromkeys((f"{way}_tensor_descriptor" for way in ("make", "load", "store")), "triton type"),
    **dict.fromkeys((f"atomic_{name}" for name in "add and cas max min or xchg xor".split()), "triton atomic type"),
    "dot": "triton dot type",
}
#: Options of a launch that say nothing to an NPU, and what Config gives without being asked.
_WITHOUT_MEANING = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": None}
#: What the compiler of the card says for itself: types, values, what does not fit.
_COMPILED = frozenset(("NPU570", "NPU571", "NPU572", "NPU573", "NPU574", "NPU579"))
_trials = 0


class Refused(RuntimeError):
    """A card would refuse the kernel, or this launch of it."""


class DoesNotFit(Refused):
    """The compiler for the card would refuse the kernel: with an autotuned kernel, it takes another configuration."""


@cache
def card() -> dict[str, Any]:
    """`unified_buffer`, `cube_cores`, `vector_cores` and `arch` of the chosen card; 0 and "" for what is not known."""
    unknown = {"unified_buffer": 0, "cube_cores": 0, "vector_cores": 0, "arch": limits.card_name()}
    return {**unknown, **_table()["cards"].get(config.card, {})}


@cache
def documented() -> bool:
    """Whether the limits of operations hold: those of triton-ascend's documentation are of the A2 and the A3."""
    return ENFORCED and config.card in _table()["documented_cards"]


@cache
def refused_types(operation: str) -> frozenset[str]:
    """Names of types (`float64`) that `tl.operation` does not take on the chosen card."""
    refused = _table()["operations"].get(operation, {}).get("refused", {})
    return frozenset(refused.get(card().get("types", ""), ()) if ENFORCED else ())


@cache
def taken(operation: str, argument: str) -> frozenset[str]:
    """What `argument` of `tl.operation` may be on the card; empty for anything."""
    row = _table()["values"].get(argument, {"of": (), "takes": ()})
    return frozenset(row["takes"]) if documented() and operation in row["of"] else frozenset()


def type_name(dtype: Any) -> str:
    """`float64` of tl.float64, of a pointer to it, or of a block of it."""
    while hasattr(dtype, "element_ty"):
        dtype = dtype.element_ty
    name = getattr(dtype, "name", "")
    return _NAMES.get(name, name)


@contextlib.contextmanager
def trial() -> Iterator[None]:
    """A configuration of an autotuned kernel is tried: what does not fit is no finding."""
    global _trials
    _trials += 1
    try:
        yield
    finally:
        _trials -= 1


def _said(key: str, values: dict[str, Any]) -> tuple[limits.Limit, str, str]:
    text = limits.text(key)
    name = launch.current.name if launch.current is not None else ""
    values = {"card": limits.card_title(), "kernel": name, **values}
    return text, text.message.format(**values), text.help.format(**values)


def refuse(key: str, frame: Place | None, kind: type[Refused] = Refused, **values: Any) -> None:
    """Note the finding `key` of the texts at the line of `frame`, and raise it; where the compiler itself is asked
    afterwards, what it knows is only noted."""
    text, message, advice = _said(key, values)
    if not (_trials and kind is DoesNotFit):
        record.finding(frame, text.code, message, advice)
    if config.compile and kind is DoesNotFit and not _trials and text.code in _COMPILED:
        return
    at = ""
    if frame is not None:
        at = f" at {os.path.relpath(frame.f_code.co_filename)}:{frame.f_lineno}"
    words = text.words.format(**values)
    raise kind(f"[emulated npu] {words + '. ' if words else ''}{message}{at}: {advice} [{text.code}]")


def tell(key: str, frame: Place | None, level: str = "info", **values: Any) -> None:
    """Note a finding that does not stop the program: `warning`, or `info` for what is only slow, or without effect."""
    text, message, advice = _said(key, values)
    record.finding(frame, text.code, message, advice, level)


def check_type(operation: str, dtype: Any) -> None:
    """Refuse `tl.operation` of this type, if it is written in a kernel: Triton's own functions have rows themselves."""
    name = type_name(dtype)
    if name in refused_types(operation):
        frame = place.written_line()
        if frame is not None:
            refuse(_TEXTS.get(operation, "triton operation"), frame, DoesNotFit, name=operation, dtype=name)


def check_division(number: Any, name: str = "tl.cdiv") -> None:
    """Warn of a quotient of whole numbers beyond those that a card divides exactly."""
    most = int(_table()["quotient"]["most"])
    if documented() and hasattr(number, "handle"):
        largest = int(number.handle.data.max())
        frame = place.written_line() if largest > most else None
        if frame is not None:
            tell("triton quotient", frame, "warning", name=name, value=largest, most=most)


def check_value(operation: str, argument: str, value: Any) -> None:
    """Refuse an argument of `tl.operation` that a card does not take."""
    value = getattr(value, "value", value)
    known = taken(operation, argument)
    if value is None or not known:
        return
    shown = type_name(value) if hasattr(value, "name") else str(value)
    if shown not in known:
        takes = " or ".join(sorted(known))
        values = {"name": operation, "argument": argument, "value": shown, "takes": takes}
        if operation.startswith("atomic"):
            tell("triton atomic value", place.line(), **values)
        elif argument in ("acc", "out_dtype") and shown == "float16":
            tell("triton dot half", place.line(), **values)
        else:
            of_dot = "triton dot precision" if argument in ("allow_tf32", "input_precision") else "triton dot value"
            refuse(of_dot, place.line(), DoesNotFit, **values)


def check_launch(started: launch.Launch) -> None:
    """Refuse a grid that is too large, and remark what has no effect."""
    if not ENFORCED:
        return
    frame, most = nearest(3), int(_table()["grid"]["most"])
    if started.programs > most and os.environ.get("TRITON_ALL_BLOCKS_PARALLEL", "").lower() not in ("1", "true"):
        grid = "x".join(map(str, started.grid))
        refuse("triton grid", frame, programs=started.programs, grid=grid, most=most)
    if sum(size > 1 for size in started.grid) > 1:
        tell("triton dimensions", frame, grid="x".join(map(str, started.grid)))
    given = [
        name for name, usual in _WITHOUT_MEANING.items()
        if name in started.options and started.options[name] not in (usual, None)
    ]  # fmt: skip
    if given:
        tell("triton options", frame, options=", ".join(given))


def check_cores(started: launch.Launch, cube: bool) -> None:
    """Remark on more programs than cores: the kernel has run, and is known to multiply matrices or not (`cube`)."""
    cores = card()["cube_cores" if cube else "vector_cores"]
    if ENFORCED and cores and started.programs > cores:
        tell(
            "triton programs", nearest(3), programs=started.programs, cores=cores,
            core="cube" if cube else "vector", property="num_aicore" if cube else "num_vectorcore",
        )  # fmt: skip


def check_buffer(found: tiles.Tiles) -> None:
    """Hold the tiles of one program against the unified buffer, and refuse what does not fit.

    Where double buffering does not fit, the compiler goes without. The two vector cores of an AI core share the tiles
    of a kernel that multiplies matrices. The compiler for the 950 keeps chains of elementwise work in registers: of
    what it needs nothing is known here.
    """
    most = int(card()["unified_buffer"])
    if not most or not documented():
        return
    size, frame, sizes = found.most()
    shares = 2 if found.cube else 1
    values = {
        "size": size, "most": most, "bits": 8 * size // shares, "available": 8 * most,
        "tiles": " + ".join(map(str, sizes[:6])) + (" + ..." if len(sizes) > 6 else ""),
    }  # fmt: skip
    if size > most * shares:
        refuse("triton buffer", frame, DoesNotFit, **values)
