"""What the chosen card refuses or changes: the table that the static check reads too (rules/support/card_limits.json).

Types are names here ("float64"); the engine makes torch's of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from .config import config
from .names import read_table, version_bit

_table = partial(read_table, "limits")

#: Every type a tensor of a training program may have.
DTYPES = (
    "float64", "float32", "float16", "bfloat16", "complex32", "complex64", "complex128", "int64", "int32", "int16",
    "int8", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
_CANN = {
    "float64": "DT_DOUBLE", "float32": "DT_FLOAT", "float16": "DT_FLOAT16", "bfloat16": "DT_BFLOAT16",
    "uint8": "DT_UINT8", "bool": "DT_BOOL",
}  # fmt: skip


@dataclass(frozen=True)
class Limit:
    """One limit of an operator or a collective (`name`): the types that it refuses, or how many dimensions a tensor
    may have at `most` (0: any number), and the texts about it."""

    name: str
    kernel: str
    refuses: frozenset[str]
    code: str
    words: str
    message: str
    help: str
    takes: tuple[str, ...] = ()
    given: str = ""
    becomes: str = ""
    most: int = 0
    argument: str = ""

    def message_for(self, dtype: str = "") -> str:
        """The message of the finding."""
        return self.message.format(name=self.name, dtype=dtype, card=card_title(), most=self.most)

    def error(self, dtype: str = "", words: str = "") -> str:
        """The text of the error: the words of torch_npu (or `words`, where given), then ours."""
        taken = "".join(f"{_CANN.get(each, 'DT_' + each.upper())}," for each in self.takes) or self.given
        kind = _CANN.get(dtype, "DT_" + dtype.upper())
        words = words or self.words.format(
            name=self.name, kernel=self.kernel, dt=kind, list=taken, most=self.most, argument=self.argument or "self"
        )
        return f"{words.rstrip('. ')}. {self.message_for(dtype)}: {self.help} [{self.code}]"


@dataclass(frozen=True)
class Call:
    """The rule about a name that does not do on an NPU what it does on CUDA."""

    code: str
    message: str
    help: str


def _card() -> dict[str, Any]:
    card: dict[str, Any] = _table()["cards"][config.card]
    return card


def card_name() -> str:
    """What torch.npu.get_device_name answers, but for the remark that it is emulated."""
    name: str = _card()["name"]
    return name


def card_title() -> str:
    title: str = _card()["title"]
    return title


def card_memory() -> int:
    """Bytes of memory of the card; 0 where it is not known."""
    return int(_card()["gib"]) << 30


@cache
def text(key: str) -> Limit:
    """A text of the table that belongs to no operator, such as "gloo" and "memory"."""
    row = _table()["texts"][key]
    return Limit(key, "", frozenset(), row["code"], row.get("words", ""), row["message"], row["help"])


def _limits(group: str, prefix: str, by_kernel: bool) -> dict[str, tuple[Limit, ...]]:
    found: dict[str, tuple[Limit, ...]] = {}
    for row in _table()[group]:
        if "*" not in row["cards"] and config.card not in row["cards"]:
            continue
        takes = tuple(row.get("takes", ()))
        refuses = frozenset(row["refuses"]) if "refuses" in row else frozenset(DTYPES) - frozenset(takes)
        most = int(row.get("most", 0))
        refuses = frozenset() if most else refuses
        texts = _table()["texts"][row["text"]]
        for name, kernel in row["kernels"].items():
            limit = Limit(
                prefix + name.removesuffix("_overrideable"), kernel,
                refuses, texts["code"], texts["words"], texts["message"], texts["help"], takes,
                row.get("list", ""), row.get("becomes", ""), most,
            )  # fmt: skip
            key = kernel if by_kernel and name != "*" else name
            found[key] = (*found.get(key, ()), limit)
    return found


@cache
def casts() -> dict[str, tuple[Limit, ...]]:
    """Casts that give another type than was asked for, by the name of an aten operator, without overload."""
    return _limits("casts", "aten::", by_kernel=False)


@cache
def shapes() -> dict[str, tuple[Limit, ...]]:
    """Limits of dimensions by the name of an aten operator, without overload."""
    return _limits("shapes", "aten::", by_kernel=False)


@cache
def collectives() -> dict[str, tuple[Limit, ...]]:
    """Limits by the name of a c10d operator without its underscore at the end; "*": all of them."""
    return _limits("collectives", "", by_kernel=True)


def of_collective(name: str) -> Limit:
    """What is said where HCCL takes a type of a tensor otherwise, but not in the function `name`."""
    row = _table()["texts"]["collective"]
    return Limit(name, "", frozenset(), row["code"], row["words"], row["message"], row["help"])


@cache
def reductions() -> dict[str, tuple[Limit, ...]]:
    """Limits by the name of a reduction that HCCL does not have, as in `ReduceOp.BAND`."""
    return _limits("reductions", "ReduceOp.", by_kernel=False)


def call(name: str) -> Call | None:
    """The rule about `torch.cuda.X` and its kind in the chosen version; None for a name that works."""
    table = _table()
    rows = table["calls"].get(name, ())
    return next((Call(*fields) for mask, *fields in rows if mask & version_bit(table)), None)
