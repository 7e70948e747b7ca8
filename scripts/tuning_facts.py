"""Builds rules/support/tunings.json, what the tunings write and where it exists, from a folder of facts.

    python scripts/tuning_facts.py FACTS_DIR

FACTS_DIR holds affinity.json, cuda_to_npu.json, custom_ops.json and torch_npu_api.json (see build_tables.py). For each
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

from build_tables import minor, minors  # noqa: E402

from transplt.settings import TORCH_VERSIONS  # noqa: E402

_TARGET = re.compile(r"torch_npu(?:\.\w+)+")
_SOURCE_API = "module sources of the published wheels, read with ast"
#: Targets that the replacements of the facts do not name: full name -> (module, name in it).
_API = {
    "torch.npu.set_compile_mode": ("torch_npu.npu.npu_config", "set_compile_mode"),
    "torch.npu.config.allow_internal_format": ("torch_npu.npu.npu_config", "set_option"),
    "torch_npu.profiler.profile": ("torch_npu.profiler.profiler", "profile"),
    "torch_npu.profiler.tensorboard_trace_handler": ("torch_npu.profiler.profiler", "tensorboard_trace_handler"),
}


def in_order(versions: frozenset[str]) -> list[str]:
    """Versions as `TORCH_VERSIONS` orders them."""
    return [version for version in TORCH_VERSIONS if version in versions]


def table(folder: Path) -> dict[str, dict[str, Any]]:
    """Target -> versions, schemas, source."""
    affinity = json.loads((folder / "affinity.json").read_bytes())["replacements"]
    ops = json.loads((folder / "custom_ops.json").read_bytes())["ops"]
    cuda = json.loads((folder / "cuda_to_npu.json").read_bytes())
    api = json.loads((folder / "torch_npu_api.json").read_bytes())
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
        versions = in_order(minors(known["versions"] if known else fact["exists_in"]))
        found[name] = {"versions": versions, "schemas": schemas, "source": fact["source"]}
    for fact in cuda.values():
        if isinstance(fact, dict) and str(fact.get("npu", "")).endswith("allow_hf32") and fact["status"] == "renamed":
            versions = in_order(minors(fact["exists_in"]))
            found[fact["npu"]] = {"versions": versions, "schemas": [], "source": fact["source"]}
    wheels = sorted((wheel for wheel in api if wheel != "_meta"), key=lambda wheel: TORCH_VERSIONS.index(minor(wheel)))
    for name, (module, entry) in _API.items():
        signatures = [api[wheel]["modules"][module]["signatures"].get(entry) for wheel in wheels]
        if None in signatures:  # in some version it comes or goes: that is for a person to look at
            raise SystemExit(f"{name} is not in every wheel")
        schemas = [signatures[-1]] if entry == name.rpartition(".")[2] else []
        found[name] = {"versions": list(TORCH_VERSIONS), "schemas": schemas, "source": _SOURCE_API}
    return dict(sorted(found.items()))


def main(folder: Path) -> None:
    """Write the table."""
    rows = [f"  {json.dumps(name)}: {json.dumps(fact, ensure_ascii=True)}" for name, fact in table(folder).items()]
    text = '{\n "targets": {\n' + ",\n".join(rows) + "\n }\n}\n"
    (ROOT / "rules" / "support" / "tunings.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
