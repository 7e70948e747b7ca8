"""Operators that give wrong numbers on an NPU without an error: rules/support/silent_errors.json.

One table for all who speak of them: the check, the emulated card (which has a table built from it), proofs, replays,
diagnoses and `explain`. Whether a condition holds is told in three words: it holds, it cannot hold, nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from transplt.rules.tables import read_table

CODE = "NPU736"
_BOUND = re.compile(r">(\d+)")


@dataclass(frozen=True, slots=True)
class SilentError:
    """One row. `operators` are full names, `also` other names that lead to it; `when` are tests that must all hold."""

    id: str
    operators: tuple[str, ...]
    also: tuple[str, ...]
    wrong: str
    condition: str
    when: tuple[dict[str, Any], ...]
    pattern: str
    check: str
    cards: tuple[str, ...]
    seen: str
    fixed: str
    do: str
    source: str
    date: str

    def text(self) -> str:
        """What is wrong and when, in one clause: `the mask is not applied (where ...)`."""
        return f"{self.wrong} where {self.condition}"

    def more(self) -> str:
        """Where it was seen, and where it is fixed; empty where neither is told."""
        parts = [f"seen with {self.seen}" if self.seen else "", f"fixed: {self.fixed}" if self.fixed else ""]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Given:
    """What is known of an argument of a call: its `value` (where `known`), or `shape` and type of a tensor.

    An argument that is not given at all is None in place of this.
    """

    known: bool = False
    value: Any = None
    shape: tuple[int, ...] | None = None


@cache
def silent_errors() -> tuple[SilentError, ...]:
    """All rows, in the order of the file."""
    return tuple(
        SilentError(
            row["id"], tuple(row["operators"]), tuple(row.get("also", ())), row["wrong"], row["condition"],
            tuple(row.get("when", ())), row.get("pattern", ""), row["check"], tuple(row.get("cards", ())),
            ", ".join(f"{name} {version}" for name, version in row.get("seen", {}).items()), row.get("fixed", ""),
            row["do"], row["source"], row["date"],
        )
        for row in read_table("support/silent_errors.json")["errors"]
    )  # fmt: skip


def errors_of(name: str) -> tuple[SilentError, ...]:
    """The rows of an operator by one of its full names."""
    return _by_name().get(name, ())


def errors_of_recorded(api: str) -> tuple[SilentError, ...]:
    """The rows of an operator as records name it: `Functional.gelu`, `NPU.npu_fusion_attention`, `Tensor.cos_`.

    Rows of Triton and of packages are left out: a record has no kernels, and no packages.
    """
    family, _, last = api.partition(".")
    roots = {
        "Functional": ("torch.nn.functional",), "NPU": ("torch_npu",), "Torch": ("torch",), "Tensor": ("torch.Tensor",),
        "Aten": ("aten:",), "VF": ("torch",),
    }.get(family, ())  # fmt: skip
    names = [f"{root}.{last}" for root in roots]
    return tuple(row for name in names for row in errors_of(name) if name in row.operators)


def errors_named_in(text: str) -> tuple[SilentError, ...]:
    """The rows of operators of torch_npu whose last names stand in a text as words, such as a line of a log.

    CANN's names count too: `aclnnFusedInferAttentionScore` and `npu_fused_infer_attention_score` are one operator.
    """
    found = [row for word, rows in _by_word().items() if word in text for row in rows if _as_word(word, text)]
    return tuple({row.id: row for row in found}.values())


def holds(row: SilentError, given: Callable[[str], Given | None]) -> bool | None:
    """Whether the tests of a row hold for a call; None where that cannot be said. `given` tells of an argument."""
    answers = [_test(each, given(each["argument"])) for each in row.when]
    if False in answers:
        return False
    return True if answers and None not in answers else None


def _test(test: dict[str, Any], given: Given | None) -> bool | None:
    absent = given is None or (given.known and given.value is None)
    if "given" in test:
        return not absent
    if "missing" in test:
        return absent if given is None or given.known or given.shape is not None else None
    if "value" in test or "value_not" in test:
        if given is None:
            value = test.get("default")
        elif given.known:
            value = given.value
        else:
            return None
        return bool(value == test["value"] if "value" in test else value != test["value_not"])
    if given is None or absent:
        return False
    return None if given.shape is None else shape_holds(test, given.shape)


def shape_holds(test: dict[str, Any], shape: Iterable[int]) -> bool | None:
    """Whether a tensor of this shape meets a test of shapes; None for a test of elements."""
    sizes = [*shape]
    if "shape" in test:
        wanted = test["shape"]
        return len(sizes) == len(wanted) and all(map(_fits, wanted, sizes))
    if "size" in test:
        axis, wanted = test["size"]
        return len(sizes) > axis and _fits(wanted, sizes[axis])
    return None


def _fits(wanted: int | str, size: int) -> bool:
    if isinstance(wanted, int):
        return size == wanted
    bound = _BOUND.fullmatch(wanted)
    return bound is None or size > int(bound[1])


def _as_word(word: str, text: str) -> bool:
    step = "(?:V[0-9]+)?(?:GetWorkspaceSize)?" if word.startswith("aclnn") else ""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}{step}(?![A-Za-z0-9_])", text) is not None


@cache
def _by_name() -> dict[str, tuple[SilentError, ...]]:
    found: dict[str, tuple[SilentError, ...]] = {}
    for row in silent_errors():
        for name in dict.fromkeys((*row.operators, *row.also)):
            found[name] = (*found.get(name, ()), row)
    return found


@cache
def _by_word() -> dict[str, tuple[SilentError, ...]]:
    found: dict[str, tuple[SilentError, ...]] = {}
    for name, rows in _by_name().items():
        last = name.rpartition(".")[2]
        if name.startswith("torch_npu.npu_"):
            kernel = "aclnn" + "".join(part.capitalize() for part in last.removeprefix("npu_").split("_"))
            for word in (last, kernel):
                found[word] = (*found.get(word, ()), *rows)
    return found
