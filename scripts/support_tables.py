"""The fact tables of rules/support/, used by `build_tables.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fact_store

from transplt.base.settings import TORCH_VERSIONS

Entry = dict[str, Any]

_DOTTED = re.compile(r"torch(_npu)?(\.\w+)+")


def build_support(
    facts: dict[str, Entry], codemod: dict[str, Entry], rules: Path, write: Callable[[Path, Any], None]
) -> None:
    """Write the tables of rules/support/ that are built from facts."""
    support = rules / "support"
    support.mkdir(exist_ok=True)
    api = fact_store.wheel_modules()
    write(support / "codemod_facts.json", codemod)
    write(support / "versions.json", _releases())
    write(support / "companions.json", _companions())
    write(support / "modules.json", {"modules": _modules(api)})
    write(support / "npu_names.json", _names(facts, api, fact_store.custom_ops()))
    write(support / "env_vars.json", _variables())


def _releases() -> Entry:
    """Releases that go together, and where the support verdicts of each version come from (none: not published)."""
    releases, published = fact_store.versions(), fact_store.read("verdicts")["versions"]
    keys = ("torch", "torch_npu", "cann", "python", "torchvision", "torchaudio", "x86_64")
    return {
        "source": fact_store.read("versions")["source"],
        "torch": {version: {key: row.get(key, "") for key in keys} for version, row in releases.items()},
        "verdicts": {version: published[version] for version in releases},
    }


def _companions() -> Entry:
    """Packages whose releases go with one torch; of torchvision and torchaudio the newer ones stand with the releases.

    `0.20.1` of these stands for `0.20.*`, and a torchaudio that goes with several torches is in the row of each.
    """
    facts = fact_store.read("companions")
    packages = {name: dict(rows) for name, rows in facts["packages"].items()}
    for version, row in fact_store.versions().items():
        for name in ("torchvision", "torchaudio"):
            if row[name]:
                packages[name][version] = [f"{fact_store.minor(row[name])}.*"]
    sources = {**facts["sources"], "from 2.1 on": fact_store.read("versions")["source"]}
    newer = (f"newer_{each}" for each in ("protobuf", "numpy", "pyarrow", "numpy_2", "setuptools", "tensorflow"))
    kept = ("older", "same", "weak", "asked_by_torch", "asked_by_cann", *newer)
    kept += ("bounds", "imports_until", "sources_alone", "wheels")
    same = {key: facts[key] for key in kept}
    return {"sources": sources, **same, "packages": packages}


def _modules(api: Entry) -> list[str]:
    """Modules below torch.npu that every wheel has. `mstx` is hidden by the class of that name."""
    common = set.intersection(*(set(modules) for modules in api.values()))
    found = {name.removeprefix("torch_npu.") for name in common if name.startswith("torch_npu.npu.")}
    return sorted(f"torch.{name}" for name in found if name != "npu.mstx")


def _names(facts: dict[str, Entry], api: Entry, ops: Entry) -> Entry:
    """Public names below torch.npu and torch_npu (and the few of torch that targets need), and where they exist.

    Names by the range of torch versions whose wheel has them. Names of modules come from some wheels only (those that
    the facts were read from); targets of facts and operators from all.
    """
    found: dict[str, set[str]] = {}

    def add(name: str, wheels: list[str]) -> None:
        found.setdefault(name, set()).update(fact_store.with_neighbours(wheels) & set(TORCH_VERSIONS))

    for wheel, table in api.items():
        for module, content in table.items():
            parts = module.split(".")
            kept = parts[1:2] in (["npu"], ["optim"], ["profiler"], ["multiprocessing"])
            if not kept or any(part.startswith("_") for part in parts):
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
    return {
        "source": "torch_npu wheels on the package index, module source read with ast",
        "names": fact_store.grouped(found, TORCH_VERSIONS),
    }


def _variables() -> Entry:
    table = fact_store.read("env_vars")
    sections = {section: table[section] for section in ("cuda_to_npu", "npu_only")}
    among = fact_store.wheels()
    keys = ("npu", "value_carries_over", "note", "default", "versions", "source")
    found: Entry = {}
    for section, rows in sections.items():
        found[section] = {}
        for name, row in rows.items():
            # Variables that the first wheels do not read yet; those read by CANN alone are in no wheel.
            wheels = fact_store.members(row.get("found_in", ""), among)
            if wheels and TORCH_VERSIONS[0] not in wheels:
                row = {**row, "versions": fact_store.ranged(wheels, TORCH_VERSIONS)}
            found[section][name] = {key: row[key] for key in keys if row.get(key)}
    return found
