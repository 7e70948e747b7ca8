"""The fact tables of rules/support/, used by `build_tables.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transplt.settings import TORCH_VERSIONS

Entry = dict[str, Any]

#: torch minor -> (torch, torch_npu, CANN, Python): the newest row of each torch version in the compatibility table.
#: The 2.13 wheel is on the package index, its row is not in the table yet. 2.2 was released as a download only.
COMPATIBILITY = {
    "2.1": ("2.1.0", "2.1.0.post17", "8.3.RC1", "3.8 to 3.11"),
    "2.2": ("2.2.0", "2.2.0.post2", "8.0.RC2", "3.8 to 3.10"),
    "2.3": ("2.3.1", "2.3.1.post6", "8.1.RC1", "3.8 to 3.11"),
    "2.4": ("2.4.0", "2.4.0.post4", "8.1.RC1", "3.8 to 3.11"),
    "2.5": ("2.5.1", "2.5.1.post1", "8.2.RC1", "3.9 to 3.11"),
    "2.6": ("2.6.0", "2.6.0.post5", "8.5.0", "3.9 to 3.11"),
    "2.7": ("2.7.1", "2.7.1.post8", "9.1.0", "3.9 to 3.13"),
    "2.8": ("2.8.0", "2.8.0.post4", "9.0.0", "3.9 to 3.13"),
    "2.9": ("2.9.0", "2.9.0.post6", "9.1.0", "3.10 to 3.13"),
    "2.10": ("2.10.0", "2.10.0.post4", "9.1.0", "3.10 to 3.13"),
    "2.11": ("2.11.0", "2.11.0", "9.1.0", "3.10 to 3.14"),
    "2.12": ("2.12.0", "2.12.0", "9.1.0", "3.10 to 3.14"),
    "2.13": ("2.13.0", "2.13.0", "", "3.10 to 3.14"),
}
COMPATIBILITY_SOURCE = "github.com/Ascend/pytorch, COMPATIBILITY.en.md (master, August 2026)"

_DOTTED = re.compile(r"torch(_npu)?(\.\w+)+")


def build_support(
    folder: Path, facts: dict[str, Entry], codemod: dict[str, Entry], rules: Path, write: Callable[[Path, Any], None]
) -> None:
    """Write the tables of rules/support/ that are built from facts."""
    support = rules / "support"
    support.mkdir(exist_ok=True)
    api = _load(folder, "torch_npu_api.json")
    ops = json.loads((folder / "custom_ops.json").read_bytes())["ops"]
    write(support / "codemod_facts.json", codemod)
    write(support / "versions.json", {"source": COMPATIBILITY_SOURCE, "torch": _compatibility()})
    write(support / "modules.json", {"modules": _modules(api)})
    write(support / "npu_names.json", _names(facts, api, ops))
    write(support / "env_vars.json", _variables(folder))


def _load(folder: Path, name: str) -> Entry:
    table: Entry = json.loads((folder / name).read_bytes())
    table.pop("_meta", None)
    return table


def _minor(wheel: str) -> str:
    return ".".join(wheel.split(".")[:2])


def _compatibility() -> Entry:
    return {
        minor: {"torch": torch, "torch_npu": torch_npu, "cann": cann, "python": python}
        for minor, (torch, torch_npu, cann, python) in COMPATIBILITY.items()
    }


def _modules(api: Entry) -> list[str]:
    """Modules below torch.npu that every wheel has. `mstx` is hidden by the class of that name."""
    common = set.intersection(*(set(wheel["modules"]) for wheel in api.values()))
    found = {name.removeprefix("torch_npu.") for name in common if name.startswith("torch_npu.npu.")}
    return sorted(f"torch.{name}" for name in found if name != "npu.mstx")


def _names(facts: dict[str, Entry], api: Entry, ops: Entry) -> Entry:
    """Public names below torch.npu and torch_npu (and the few of torch that targets need), and where they exist.

    A value is the list of torch minors whose wheel has the name, as positions in `versions`.
    Names of modules come from four wheels only (2.1, 2.5, 2.8, 2.13); targets of facts and operators from all.
    """
    found: dict[str, set[str]] = {}

    def add(name: str, wheels: list[str]) -> None:
        minors = {_minor(wheel) for wheel in wheels}
        if {"2.1", "2.3"} <= minors:
            minors.add("2.2")
        found.setdefault(name, set()).update(minors & set(TORCH_VERSIONS))

    for wheel, table in api.items():
        for module, content in table["modules"].items():
            parts = module.split(".")
            if any(part.startswith("_") for part in parts) or parts[1:2] not in (["npu"], ["optim"], ["profiler"]):
                continue
            base = module.replace("torch_npu.npu", "torch.npu", 1) if module.startswith("torch_npu.npu") else module
            for name in content.get("all") or ():
                add(f"{base}.{name}", [wheel])
    for fact in facts.values():
        if fact.get("npu") and _DOTTED.fullmatch(fact["npu"]):
            add(fact["npu"], fact["exists_in"])
    for name, schema in ops.items():
        if name.startswith("npu_") and not name.endswith(("_backward", "_grad", "_out")):
            add(f"torch_npu.{name}", schema["versions"])
    numbered = {version: index for index, version in enumerate(TORCH_VERSIONS)}
    names = {name: sorted(numbered[version] for version in found[name]) for name in sorted(found) if found[name]}
    spans: dict[str, list[str]] = {}
    for name, indices in names.items():
        spans.setdefault(",".join(map(str, indices)), []).append(name)
    return {
        "source": "torch_npu wheels on the package index, module source read with ast",
        "versions": list(TORCH_VERSIONS),
        "names": {span: spans[span] for span in sorted(spans, key=lambda text: (-len(text), text))},
    }


def _variables(folder: Path) -> Entry:
    table = _load(folder, "env_vars.json")
    keys = ("npu", "value_carries_over", "note", "default", "versions", "source")
    found: Entry = {}
    for section, rows in table.items():
        found[section] = {}
        for name, row in rows.items():
            # Variables that the first wheels do not read yet; those read by CANN alone are in no wheel.
            wheels = {_minor(wheel) for wheel in row.get("found_in_wheels", ())}
            if wheels and TORCH_VERSIONS[0] not in wheels:
                row = {**row, "versions": [version for version in TORCH_VERSIONS if version in wheels]}
            found[section][name] = {key: row[key] for key in keys if row.get(key)}
    return found
