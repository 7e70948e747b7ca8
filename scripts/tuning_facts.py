"""Builds rules/support/tunings.json, what the tunings write and where it exists, from scripts/facts/.

    python scripts/tuning_facts.py

Facts: affinity, cuda_to_npu, custom_ops and torch_npu_api (see build_tables.py). For each
target the table has the torch versions whose torch_npu defines it, its schemas or signature, and the source.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from build_tables import minors  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402

_TARGET = re.compile(r"torch_npu(?:\.\w+)+")
_SOURCE_API = "module sources of the published wheels, read with ast"
#: Targets that the replacements of the facts do not name: full name -> (module, name in it).
_API = {
    "torch.npu.set_compile_mode": ("torch_npu.npu.npu_config", "set_compile_mode"),
    "torch.npu.config.allow_internal_format": ("torch_npu.npu.npu_config", "set_option"),
    "torch_npu.profiler.profile": ("torch_npu.profiler.profiler", "profile"),
    "torch_npu.profiler.tensorboard_trace_handler": ("torch_npu.profiler.profiler", "tensorboard_trace_handler"),
}


def in_range(wheels: list[str]) -> str:
    """The torch versions that have what some wheels have, as a range."""
    return fact_store.ranged(minors(wheels), TORCH_VERSIONS)


def table() -> dict[str, dict[str, Any]]:
    """Target -> versions, schemas, source."""
    among = fact_store.wheels()
    affinity = fact_store.read("affinity")["replacements"]
    ops = fact_store.custom_ops()
    cuda = fact_store.cuda_to_npu()
    api = fact_store.wheel_modules()
    found: dict[str, dict[str, Any]] = {}
    for fact in affinity:
        if not fact.get("exists_in") or fact.get("deprecated"):
            continue
        target = _TARGET.match(fact["replacement"])
        if target is None:
            continue
        name, operator = target[0], target[0].removeprefix("torch_npu.")
        known = ops.get(operator)
        schemas = known["schema"] if known else [fact["schema"]] if fact.get("schema") else []
        versions = in_range(known["versions"] if known else fact_store.members(fact["exists_in"], among))
        found[name] = {"versions": versions, "schemas": schemas, "source": fact["source"]}
    for fact in cuda.values():
        if str(fact["npu"]).endswith("allow_hf32") and fact["status"] == "renamed":
            versions = in_range(fact["exists_in"])
            found[fact["npu"]] = {"versions": versions, "schemas": [], "source": fact["source"]}
    for name, (module, entry) in _API.items():
        signatures = [modules[module]["signatures"].get(entry) for modules in api.values()]
        if None in signatures:  # in some version it comes or goes: that is for a person to look at
            raise SystemExit(f"{name} is not in every wheel")
        schemas = [signatures[-1]] if entry == name.rpartition(".")[2] else []
        found[name] = {"versions": in_range(list(among)), "schemas": schemas, "source": _SOURCE_API}
    return dict(sorted(found.items()))


def main(rules: Path = ROOT / "rules") -> None:
    """Write the table."""
    rows = [f"  {json.dumps(name)}: {json.dumps(fact, ensure_ascii=True)}" for name, fact in table().items()]
    text = '{\n "targets": {\n' + ",\n".join(rows) + "\n }\n}\n"
    (rules / "support" / "tunings.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
