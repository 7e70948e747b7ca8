"""The fact tables of rules/support/ and the rules for third-party packages; used by `build_tables.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fact_store

from transplt.settings import TORCH_VERSIONS

Entry = dict[str, Any]

#: Packages whose import alone says nothing: they work on NPU for most of what they do.
QUIET_IMPORTS = {"torch", "torchvision", "onnxruntime", "faiss", "fairseq", "megatron", "cv2.cuda", "fla"}
#: Names of packages with mostly portable content that need something extra on NPU.
EXTRA_RULES = [
    *(
        {
            "name": f"torchvision.ops.{name}",
            "code": "NPU512",
            "effort": "low",
            "message": f"torchvision.ops.{name} has an NPU kernel in torchvision_npu only",
            "help": "install the Torchvision Adapter, import torchvision_npu after torchvision, or run it on the CPU",
        }
        for name in ("nms", "batched_nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d")
    ),
    {
        "name": "cv2.cuda",
        "code": "NPU510",
        "effort": "medium",
        "message": "cv2.cuda needs a CUDA build of OpenCV",
        "help": "use OpenCV on the CPU, its cann module, or DVPP",
    },
]
_STATUS_CODES = {
    "unsupported": ("NPU510", "medium"),
    "replacement": ("NPU510", "medium"),
    "drop": ("NPU510", "low"),
    "ascend_fork": ("NPU511", "medium"),
    "plugin": ("NPU512", "low"),
}
_SAYS = {
    "unsupported": "the package {name} is bound to CUDA",
    "replacement": "the package {name} is bound to CUDA",
    "drop": "the package {name} is part of CUDA",
    "ascend_fork": "the package {name} needs a version adapted to Ascend",
    "plugin": "the package {name} needs an extra package for Ascend",
}
_DOTTED = re.compile(r"torch(_npu)?(\.\w+)+")


def build_support(
    facts: dict[str, Entry], codemod: dict[str, Entry], rules: Path, write: Callable[[Path, Any], None]
) -> None:
    """Write every table of rules/support/ and rules/third_party.json."""
    support = rules / "support"
    support.mkdir(exist_ok=True)
    api = fact_store.wheel_modules()
    packages = [_package(fact) for fact in fact_store.read("third_party")["packages"]]
    write(support / "codemod_facts.json", codemod)
    write(support / "versions.json", _releases())
    write(support / "modules.json", {"modules": _modules(api)})
    write(support / "npu_names.json", _names(facts, api, fact_store.custom_ops()))
    write(support / "env_vars.json", _variables())
    write(support / "third_party.json", {"packages": packages})
    write(rules / "third_party.json", _package_rules(packages))


def _releases() -> Entry:
    """Releases that go together, and where the support verdicts of each version come from (none: not published)."""
    releases, published = fact_store.versions(), fact_store.read("verdicts")["versions"]
    keys = ("torch", "torch_npu", "cann", "python")
    return {
        "source": fact_store.read("versions")["source"],
        "torch": {version: {key: row[key] for key in keys} for version, row in releases.items()},
        "verdicts": {version: published[version] for version in releases},
    }


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


def _package(fact: Entry) -> Entry:
    keys = ("pypi", "import", "status", "since", "replacement", "note", "source", "confidence")
    return {key: fact[key] for key in keys if fact.get(key)}


def _package_rules(packages: list[Entry]) -> Entry:
    """One finding at the import of each package that needs CUDA or something extra on NPU."""
    rules = []
    for fact in packages:
        if fact["status"] not in _STATUS_CODES:
            continue
        code, effort = _STATUS_CODES[fact["status"]]
        for name in fact["import"]:
            if name in QUIET_IMPORTS:
                continue
            message = _SAYS[fact["status"]].format(name=name)
            if fact.get("confidence") == "low":
                message = f"no NPU support is known for the package {name}"
            rule = {"name": name, "where": "import", "code": code, "effort": effort, "message": message}
            parts = [f"instead: {fact['replacement']}" if fact.get("replacement") else "", fact.get("note", "")]
            text = "; ".join(part.strip(" ;.") for part in parts if part)
            if text:
                rule["help"] = text
            rules.append(rule)
    return {
        "description": "packages bound to CUDA, reported where they are imported",
        "rules": {"UnsupportedRule": [*rules, *EXTRA_RULES]},
    }
