"""Operators in host logs: what acl was asked to compile, for which shapes and formats (the guide's OP_INFO).

A line of level INFO says `aclopCompile::aclOp = OpType: Conv2D, InputDesc[0]: [TensorDesc] DataType = 1, Format = 0,
StorageFormat = 3, Shape = [...], StorageShape = [...], ...` (acl's op_executor.cpp, acl_op.cpp and tensor_desc.cpp);
what follows it with `Match op inputs failed`, `Match op type failed` or `To compile op` was compiled there and then
(guide, compile bottleneck). Numbers of types and formats: acl_base.h.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_OPERATOR = re.compile(r"aclop\w*(?:::aclOp = OpType: |, opType = )(\w{1,100})")
_COMPILED = re.compile(r"Match op (?:inputs|type|outputs|attr)[\w/]* failed|[Tt]o compile op\b")
_DESCRIBED = re.compile(
    r"(In|Out)putDesc\[\d{1,4}\]: \[TensorDesc\] DataType = (-?\d{1,4}), Format = (-?\d{1,4}), "
    r"StorageFormat = (-?\d{1,4}), Shape = (\[[^\]]{0,300}\])"
)
FORMATS = {
    -1: "undefined", 0: "NCHW", 1: "NHWC", 2: "ND", 3: "NC1HWC0", 4: "FRACTAL_Z", 12: "NC1HWC0_C04", 16: "HWCN",
    27: "NDHWC", 29: "FRACTAL_NZ", 30: "NCDHW", 32: "NDC1HWC0", 33: "FRACTAL_Z_3D", 35: "NC", 47: "NCL",
}  # fmt: skip
TYPES = {
    -1: "undefined", 0: "float32", 1: "float16", 2: "int8", 3: "int32", 4: "uint8", 6: "int16", 7: "uint16",
    8: "uint32", 9: "int64", 10: "uint64", 11: "double", 12: "bool", 13: "string", 16: "complex64", 17: "complex128",
    27: "bfloat16",
}  # fmt: skip
#: Where so large a part of the forms that a log begins with comes again at its end, the log holds some four steps or
#: more, and what is new in its second half was not asked for in the first steps.
_AGAIN = 0.2
_FEWEST = 32
_MOST_TYPES, _MOST_FORMS, _MOST_OF_LOG = 5_000, 256, 50_000
_CONVERTING = ("TransData", "Identity")


@dataclass(slots=True)
class Asked:
    """One operator in the logs. `forms`: inputs and outputs as text, with how often; `later`: forms that were new long
    after the first step; `compiled`: how often a log says that it was compiled, `compiled_later` so late."""

    type: str
    times: int = 0
    forms: Counter[str] = field(default_factory=Counter)
    later: int = 0
    compiled: int = 0
    compiled_later: int = 0


class OpInfo:
    """The operators of one or more host logs, of bounded size. `repeats`: a log holds several steps."""

    def __init__(self) -> None:
        self.operators: dict[str, Asked] = {}
        self.conversions: Counter[str] = Counter()
        self.repeats = False
        self.begin()

    def begin(self) -> None:
        """Another log begins: that of another process."""
        self._number = 0
        self._latest: Asked | None = None
        self._span: dict[tuple[str, str], tuple[int, int]] = {}
        self._compiled: dict[tuple[str, int], int] = {}

    def end(self) -> None:
        """A log is read: what came late in it."""
        quarter = self._number // 4
        early = [last for first, last in self._span.values() if first <= quarter]
        again = sum(last > self._number - quarter for last in early)
        if self._number < _FEWEST or again < _AGAIN * len(early):
            return
        self.repeats = True
        for (type_, _), (first, _) in self._span.items():
            self.operators[type_].later += first > self._number // 2
        for (type_, sixteenth), times in self._compiled.items():
            self.operators[type_].compiled_later += times * (sixteenth * 16 > self._number // 2)

    def line(self, text: str) -> None:
        """Looks at one line of a log."""
        if match := _OPERATOR.search(text):
            self._operator(match[1], text[match.end() :])
        elif self._latest is not None and _COMPILED.search(text):
            self._latest.compiled += 1
            key = self._latest.type, self._number // 16
            if key in self._compiled or len(self._compiled) < _MOST_OF_LOG:
                self._compiled[key] = self._compiled.get(key, 0) + 1

    def _operator(self, type_: str, rest: str) -> None:
        self._number += 1
        if type_ not in self.operators and len(self.operators) >= _MOST_TYPES:
            return
        asked = self._latest = self.operators.setdefault(type_, Asked(type_))
        asked.times += 1
        described = [*_DESCRIBED.finditer(rest)]
        if not described:
            return
        form = _form(described)
        key = type_, form
        if key in self._span or len(self._span) < _MOST_OF_LOG:
            self._span[key] = self._span.get(key, (self._number, 0))[0], self._number
        if form in asked.forms or len(asked.forms) < _MOST_FORMS:
            asked.forms[form] += 1
        stored = {match[1]: int(match[4]) for match in reversed(described)}
        if type_ in _CONVERTING and stored.get("In") != stored.get("Out") and len(stored) == 2:
            way = f"{_format(stored['In'])} -> {_format(stored['Out'])}"
            if way in self.conversions or len(self.conversions) < _MOST_FORMS:
                self.conversions[way] += 1


def _form(described: list[re.Match[str]]) -> str:
    """Inputs and outputs in short: `float16 NC1HWC0 [8, 64, 56, 56], ... -> ...`."""
    sides: dict[str, list[str]] = {"In": [], "Out": []}
    for match in described[:8]:
        kind = TYPES.get(int(match[2]), f"type {match[2]}")
        sides[match[1]].append(f"{kind} {_format(int(match[4]))} {match[5]}")
    return " -> ".join(", ".join(side) for side in sides.values())


def _format(number: int) -> str:
    return FORMATS.get(number, f"format {number}")
