"""The facts that the tables of rules/ are built from: scripts/facts/*.json, versions written as ranges.

A range is a specifier such as `>=2.1,!=2.8` over the torch versions of a list: those whose torch_npu wheel was read
(`wheels()`), unless a file says otherwise. It is open above while the newest version has the thing, so that a version
that brings no news changes no line. The files have one entry a line; each says in `about` where it comes from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "scripts" / "facts"
Entry = dict[str, Any]

#: An entry with more characters than this gets more than one line.
_LONG = 240
_CLAUSE = re.compile(r"(==|!=|>=|<=)(\d+)\.(\d+)")


def read(name: str) -> Entry:
    """The parsed file `name` (without `.json`) of scripts/facts/."""
    table: Entry = json.loads((FACTS / f"{name}.json").read_bytes())
    return table


def write(name: str, table: Entry) -> None:
    """Write a file of facts: its sections, one entry a line in each, and one part a line of an entry that is long."""

    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    def entry(value: Any) -> str:
        text = dump(value)
        if len(text) <= _LONG or not isinstance(value, dict):
            return text
        inner = ",\n".join(f"   {dump(name)}: {dump(each)}" for name, each in value.items())
        return f"{{\n{inner}\n  }}"

    parts = []
    for key, value in table.items():
        if isinstance(value, dict) and value:
            inner = ",\n".join(f"  {dump(name)}: {entry(each)}" for name, each in value.items())
            parts.append(f" {dump(key)}: {{\n{inner}\n }}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            parts.append(f" {dump(key)}: [\n" + ",\n".join(f"  {dump(each)}" for each in value) + "\n ]")
        else:
            parts.append(f" {dump(key)}: {dump(value)}")
    (FACTS / f"{name}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8", newline="\n")


def key(version: str) -> tuple[int, ...]:
    """`2.10` -> (2, 10), to compare versions by."""
    return tuple(int(part) for part in version.split("."))


def minor(version: str) -> str:
    """`2.8.0.post5` -> `2.8`."""
    return ".".join(version.split(".")[:2])


@cache
def versions() -> Entry:
    """Torch version -> its releases: torch, torch_npu, cann, python, whether there is a wheel, and its verdicts."""
    table: Entry = read("versions")["torch"]
    return table


def wheels() -> tuple[str, ...]:
    """The torch versions whose torch_npu wheel was read: not 2.2, whose wheels are for Python 3.8 to 3.10."""
    return tuple(version for version, row in versions().items() if row["wheel"])


def ranged(chosen: Collection[str], among: Sequence[str]) -> str:
    """The range for some of the versions `among`, which come in order; empty for none."""
    held = [version for version in among if version in chosen]
    if not held:
        return ""
    first, last = among.index(held[0]), among.index(held[-1])
    if first == last != len(among) - 1:
        return f"=={held[0]}"
    clauses = [f">={held[0]}"] + ([f"<={held[-1]}"] if last != len(among) - 1 else [])
    return ",".join(clauses + [f"!={version}" for version in among[first : last + 1] if version not in chosen])


def members(text: str, among: Sequence[str]) -> list[str]:
    """The versions `among` that a range names. ValueError for what is no range."""
    held = list(among) if text else []
    for clause in text.split(",") if text else ():
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ValueError(f"{text!r} is no range of versions")
        operator, wanted = match[1], (int(match[2]), int(match[3]))
        tests: dict[str, Callable[[tuple[int, ...]], bool]] = {
            "==": lambda have, wanted=wanted: have == wanted,  # type: ignore[misc]
            "!=": lambda have, wanted=wanted: have != wanted,  # type: ignore[misc]
            ">=": lambda have, wanted=wanted: have >= wanted,  # type: ignore[misc]
            "<=": lambda have, wanted=wanted: have <= wanted,  # type: ignore[misc]
        }
        held = [version for version in held if tests[operator](key(version))]
    return held


def with_neighbours(held: Iterable[str]) -> set[str]:
    """The versions a thing is taken to be in: for 2.2, whose wheel was not read, what 2.1 and 2.3 have in common."""
    found = set(held)
    return found | {"2.2"} if {"2.1", "2.3"} <= found else found


def cuda_to_npu() -> dict[str, Entry]:
    """Names of torch.cuda and what torch_npu has for them; ranges as lists of versions."""
    among = wheels()
    facts: dict[str, Entry] = read("cuda_to_npu")["names"]
    for fact in facts.values():
        fact["exists_in"] = members(fact["exists_in"], among)
        fact["stub_in"] = members(fact.get("stub_in", ""), among)
        for signature, text in fact.get("args", {}).get("npu", {}).items():
            fact["args"]["npu"][signature] = members(text, among)
    return facts


def custom_ops() -> dict[str, Entry]:
    """Operators of torch_npu: the versions whose wheel has them, and their schemas in the newest of these."""
    among = wheels()
    ops: dict[str, Entry] = read("custom_ops")["ops"]
    return {name: {**row, "versions": members(row["versions"], among)} for name, row in ops.items()}


def wheel_modules() -> dict[str, dict[str, Entry]]:
    """Version -> module -> all, toplevel, signatures, for the wheels whose modules were read."""
    table = read("torch_npu_api")
    among = tuple(table["read"])
    found: dict[str, dict[str, Entry]] = {version: {} for version in among}
    for module, row in table["modules"].items():
        for version in members(row["in"], among):
            content: Entry = {"all": None, "signatures": {}}
            content["toplevel"] = in_version(row["names"], version, among)
            if version in members(row["has_all"], among):
                content["all"] = in_version(row["all"], version, among)
            for name, forms in row["signatures"].items():
                for text, signature in forms.items():
                    if version in members(text, among):
                        content["signatures"][name] = signature
            found[version][module] = content
    return found


def grouped(held: dict[str, set[str]], among: Sequence[str]) -> dict[str, list[str]]:
    """Names by the range they are in, ranges by their first version; the other way round than `held`."""
    groups: dict[str, list[str]] = {}
    for name in sorted(held):
        groups.setdefault(ranged(held[name], among), []).append(name)
    return {text: groups[text] for text in sorted(groups, key=lambda text: (members(text, among), text)) if text}


def in_version(groups: dict[str, list[str]], version: str, among: Sequence[str]) -> list[str]:
    """The names that `grouped` has put into ranges with a version, sorted."""
    return sorted(name for text, names in groups.items() if version in members(text, among) for name in names)


def wheel_functions() -> dict[str, list[str]]:
    """Version -> the operators that torch_npu lists as its public functions, for the wheels whose modules were read."""
    table = read("torch_npu_api")
    among = tuple(table["read"])
    return {version: in_version(table["public_functions"], version, among) for version in among}


def operators() -> dict[str, dict[str, list[str]]]:
    """Section (official, symint, quant, custom) -> operator -> the torch versions with an NPU kernel."""
    table = read("operators")
    among = tuple(table["read"])
    return {
        section: {name: members(text, among) for name, text in rows.items()}
        for section, rows in table["table"].items()
    }


def verdicts() -> dict[str, dict[str, Entry]]:
    """Torch version -> API -> what its documentation says, for every version whose verdicts are published."""
    table = read("verdicts")
    among = tuple(version for version, row in table["versions"].items() if row["source"])
    found: dict[str, dict[str, Entry]] = {version: {} for version in among}
    for api, row in table["apis"].items():
        for text, says in row.items():
            entry = verdict(says)
            for version in members(text, among):
                found[version][api] = entry
    return found


def verdict(says: str | Entry) -> Entry:
    """One verdict with all its fields; in the file, `yes` and `no` stand for those without a limit."""
    entry: Entry = {"notes": "", **({"supported": says} if isinstance(says, str) else says)}
    entry["supported"] = {"yes": True, "no": False}.get(entry["supported"], entry["supported"])
    if "dtypes" in entry:
        entry["dtypes"] = {name: text.split() for name, text in entry["dtypes"].items()}
    if "hw" in entry:
        entry["hw"] = {name.lstrip("-").replace("_", " "): not name.startswith("-") for name in entry["hw"].split()}
    return entry
