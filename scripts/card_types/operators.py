"""The operators that op-plugin registers, and what becomes of each type of an argument: from its YAML and its C++."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from build_card_types import INDICES
from ruamel.yaml import YAML

from . import sources
from .follow import ON_CPU, Follower, GivenUp, Refusal
from .sources import Index, statement
from .values import TRIED, UNKNOWN, Chip, Dtype, Tensor, Value

_SCHEMA = re.compile(r"^(?P<name>[\w.]+)\((?P<parameters>.*)\)\s*->")
_PARAMETER = re.compile(r"(?P<type>[\w.]+(?:\([^)]*\))?(?:\?)?(?:\[\d*\])?\??)\s+(?P<name>\w+)(?:=.*)?$")



@dataclass(frozen=True, slots=True)
class Operator:
    """A registered operator: its name in ATen with the overload, its parameters, and what it is made by."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    made_by: str
    exec: str = ""
    outputs: tuple[tuple[str, str], ...] = ()
    new: tuple[tuple[str, str], ...] = ()

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(name for name, kind in self.parameters if kind.startswith("Tensor"))


def registered(folder: Path, version: str, parts: tuple[str, ...] = ("official", "symint")) -> Iterator[Operator]:
    """Operators that have a function of CANN behind them in a version of torch, of parts of the table."""
    path = folder / "op_plugin" / "config" / "op_plugin_functions.yaml"
    table: dict[str, Any] = YAML(typ="safe").load(path.read_text("utf-8"))
    order = table["all_version"]
    rows = {row["func"]: row for part in parts for row in table.get(part) or ()}.values()
    by_name = {row["func"].partition("(")[0]: row for row in rows}
    for row in rows:
        if not _in_version(row.get("op_api"), version, order):
            continue
        match = _SCHEMA.match(row["func"])
        if match is None:
            continue
        parameters = tuple(_parameters(match["parameters"]))
        source = row
        delegate = row.get("structured_delegate") or row.get("structured_inherit")
        if delegate and "gen_opapi" not in row:
            source = by_name.get(delegate, row)
        yield _operator(match["name"], parameters, source, by_name)


def _generated(row: dict[str, Any], by_name: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What a row generates, or what it inherits of another row."""
    made: dict[str, Any] = row.get("gen_opapi") or {}
    parent = made.get("structured_inherit")
    return {**_generated(by_name[parent], by_name), **made} if parent in by_name else made


def _operator(
    name: str, parameters: tuple[tuple[str, str], ...], row: dict[str, Any], by_name: dict[str, dict[str, Any]]
) -> Operator:
    made = _generated(row, by_name)
    base = name.partition(".")[0] + ("_out" if re.search(r"\.(?:\w*_)?out$", name) else "")
    if not made or "exec" not in made:
        return Operator(name, parameters, base)
    outputs = tuple(
        (key, str(value.get("dtype", ""))) for key, value in made.items() if isinstance(value, dict) and "size" in value
    )
    new = tuple((key, str(value)) for key, value in (made.get("new_params") or {}).items())
    return Operator(name, parameters, base, str(made["exec"]), outputs, new)


def _in_version(listed: Any, version: str, order: list[str]) -> bool:
    if listed == "all_version":
        return True
    if not isinstance(listed, list):
        return False
    wanted = f"v{version}"
    if len(listed) == 2 and "newest" in listed:
        return order.index(wanted) >= order.index(listed[0])
    if len(listed) == 2 and all(each in order for each in listed):
        return order.index(listed[0]) <= order.index(wanted) <= order.index(listed[1])
    return wanted in listed


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r",\s*(?![^(\[]*[)\]])", text):
        match = _PARAMETER.match(part.strip())
        if match is not None:
            yield match["name"], match["type"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of types of an argument on one chip: refused, or computed by the AI CPU by the kernels named."""

    refusal: Refusal | None = None
    on_cpu: frozenset[str] = frozenset()


#: Types of C++ by those of schemas, where they tell overloads apart.
_KINDS = {"Tensor": "Tensor", "Tensor[]": "List", "Scalar": "Scalar", "Scalar[]": "ArrayRef", "Dimname": "Dimname"}


def _fits(operator: Operator, function: sources.Function) -> bool:
    for (_, kind), (_, written) in zip(operator.parameters, function.parameters, strict=True):
        plain = re.sub(r"\[\d*\]", "[]", re.sub(r"\([^)]*\)|\?$", "", kind))
        if "?" not in kind and plain in _KINDS and _KINDS[plain] not in written.rpartition("::")[2]:
            return False
        if plain in ("int", "int[]") and "Dimname" in written:
            return False
        if "Tensor" not in plain and written.endswith("Tensor"):
            return False
        if plain not in _KINDS and "Tensor" in plain and "Tensor" not in written:
            return False
    return True


class Trial:
    """Tries operators with types, on one chip."""

    def __init__(self, plugin: Index, cann: Index, chip: Chip) -> None:
        self.plugin, self.cann, self.chip = plugin, cann, chip
        self._follower, self._plugin = Follower(cann, chip), Follower(plugin, chip, self._enter)
        self.silent: dict[str, str] = {}
        self._kept: dict[tuple[str, tuple[Value, ...]], frozenset[str] | Refusal] = {}

    def outcome(self, operator: Operator, types: dict[str, str]) -> Outcome:
        """What becomes of the tensors of the types given; nothing is known of the others."""
        follower = self._plugin
        follower.steps = 0
        try:
            if operator.exec:
                return Outcome(on_cpu=self._generated(operator, types, follower))
            arguments = [self._argument(name, kind, types) for name, kind in operator.parameters]
            function = self._function(operator, len(arguments))
            if function is None:
                self.silent.setdefault(operator.name, "no function")
                return Outcome()
            on_cpu = follower.call(function, arguments)[1][ON_CPU]
        except Refusal as refusal:
            return Outcome(refusal)
        except (GivenUp, RecursionError) as error:
            self.silent.setdefault(operator.name, str(error))
            return Outcome()
        return Outcome(on_cpu=on_cpu)

    def _function(self, operator: Operator, count: int) -> sources.Function | None:
        """The C++ function of an overload: the one of its name with the same names of parameters, else the only one."""
        named = [f"{operator.made_by}_symint", operator.made_by]
        found = [each for name in named for each in self.plugin.functions.get(name, ()) if each.scope == "op_api"]
        wanted = [name for name, _ in operator.parameters]
        same = [each for each in found if [name for name, _ in each.parameters] == wanted]
        if len(same) != 1:
            counted = same or [each for each in found if len(each.parameters) == count]
            same = [each for each in counted if len(each.parameters) == count and _fits(operator, each)]
        return same[0] if len(same) == 1 else None

    @staticmethod
    def _argument(name: str, kind: str, types: dict[str, str]) -> Value:
        if not kind.startswith("Tensor"):
            return UNKNOWN
        if name in types:
            return Tensor(types[name])
        return UNKNOWN if "?" in kind else Tensor(None)

    def _generated(self, operator: Operator, types: dict[str, str], follower: Follower) -> frozenset[str]:
        env: dict[str, Value] = {name: self._argument(name, kind, types) for name, kind in operator.parameters}
        env[ON_CPU] = frozenset()
        file = self.plugin.files[0]
        for name, text in operator.new:
            env[name] = follower.value(_expression(text), env, file)
        for name, text in operator.outputs:
            if isinstance(env.get(text), Tensor):
                env[name] = env[text]
                continue
            value = follower.value(_expression(text), env, file) if text else UNKNOWN
            env[name] = Tensor(value.name if isinstance(value, Dtype) else None)
        function, *given = [part.strip() for part in operator.exec.split(",")]
        given = given or [name for name, _ in operator.parameters] + [
            name for name, _ in operator.outputs if name not in dict(operator.parameters)
        ]
        return self._enter(function, [env.get(name, UNKNOWN) for name in given])

    def _enter(self, name: str, arguments: list[Value]) -> frozenset[str]:
        key = (name, tuple(arguments))
        if key not in self._kept:
            self._kept[key] = self._followed(name, arguments)
        kept = self._kept[key]
        if isinstance(kept, Refusal):
            raise kept
        return kept

    def _followed(self, name: str, arguments: list[Value]) -> frozenset[str] | Refusal:
        function = self.cann.function(f"{name}GetWorkspaceSize", len(arguments) + 2, self.cann.files[0])
        if function is None:
            self.silent.setdefault(name, "no source")
            return frozenset()
        try:
            self._follower.steps = 0
            on_cpu: frozenset[str] = self._follower.call(function, arguments)[1][ON_CPU]
            return on_cpu
        except Refusal as refusal:
            return refusal
        except (GivenUp, RecursionError) as error:
            self.silent.setdefault(name, str(error))
            return frozenset()


def _expression(text: str) -> Any:
    declaration = statement(text)
    declarator = declaration.child_by_field_name("declarator")
    value = declarator.child_by_field_name("value") if declarator is not None else None
    if value is None:
        raise GivenUp
    return value


def tried(operator: Operator, trial: Trial) -> Iterator[tuple[str, str, Outcome]]:
    """(argument, type, what becomes of it): each tensor alone, then (`*`) all that compute with one type."""
    names = operator.tensors
    same = [name for name in names if name not in INDICES and "out" not in name]
    for dtype in TRIED:
        for name in names:
            outcome = trial.outcome(operator, {name: dtype})
            if outcome != Outcome():
                yield name, dtype, outcome
        if len(same) > 1 or (len(same) == 1 and len(names) > 1):
            outcome = trial.outcome(operator, dict.fromkeys(same, dtype))
            if outcome != Outcome():
                yield "*", dtype, outcome

