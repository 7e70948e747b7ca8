"""Builds the emulator's tables: names from the facts in scripts/facts/, limits and types from rules/.

usage: python scripts/build_emulator_tables.py

Facts: torch_npu_api (public names of some torch_npu wheels) and cuda_to_npu (which wheels have a torch.npu name). The
output is small and the same for the same input: a name maps to a bit mask over the list of torch versions. Limits are
rules/support/card_limits.json, types rules/support/card_types.json, arguments of CANN's functions
rules/support/card_functions.json, and what the rules say of names that an NPU does not have, or that do nothing there:
a run says it in the same words. The errors that say nothing are those of rules/support/silent_errors.json that
arguments decide.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from fact_store import key  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS as VERSIONS  # noqa: E402
from transplt.rules.versions import versions_of  # noqa: E402

TABLES = ROOT / "transplt" / "emulator" / "site" / "npu_emulator" / "tables"
#: Kernels that torch_npu brings besides op-plugin's (the `supported` list of Ascend/pytorch npu_native_functions.yaml).
NATIVE = """
_local_scalar_dense _pin_memory _reshape_alias as_strided bartlett_window blackman_window clone contiguous copy
empty empty_like empty_strided full hamming_window hann_window is_pinned is_set_to isnan new_empty_strided
record_stream resize resize_as set squeeze _to_copy _to_sparse tril_indices triu_indices unfold unsqueeze view
_copy_from_and_resize flatten_dense_tensors _lazy_clone _copy_from _has_compatible_shallow_copy_type
""".split()
_OF_NPU = re.compile(r"torch_npu\.npu_\w+$")
_NOISE = {
    "os",
    "re",
    "sys",
    "torch",
    "torch_npu",
    "typing",
    "warnings",
    "functools",
    "collections",
    "contextlib",
    "ctypes",
    "pickle",
    "importlib",
    "threading",
    "traceback",
    "inspect",
    "json",
    "math",
    "time",
    "logging",
    "Any",
    "Dict",
    "List",
    "Optional",
    "Tuple",
    "Union",
    "Callable",
    "Iterable",
    "IntEnum",
    "cast",
    "wraps",
    "dataclass",
    "field",
    "deepcopy",
    "gc",
    "log",
    "*",
}


def nearest(version: str, wheels: list[str]) -> str:
    """The newest wheel not newer than `version`, or the oldest one."""
    older = [wheel for wheel in sorted(wheels, key=key) if key(wheel) <= key(version)]
    return older[-1] if older else min(wheels, key=key)


def kept(module: str) -> bool:
    return f"{module}.".startswith("torch_npu.npu.") and "._" not in module


def names_table() -> dict[str, Any]:
    """Module of torch.npu -> name -> mask over VERSIONS."""
    api = fact_store.wheel_modules()
    modules: dict[str, dict[str, int]] = {}

    def put(module: str, name: str, bit: int, has: bool) -> None:
        names = modules.setdefault(module, {})
        names[name] = names.get(name, 0) | bit if has else names.get(name, 0) & ~bit

    for i, version in enumerate(VERSIONS):
        wheel = nearest(version, list(api))
        for module, content in api[wheel].items():
            if kept(module):
                for name in {*(content["all"] or ()), *content["toplevel"]} - _NOISE:
                    put(module, name, 1 << i, True)
    exact = {v: i for i, v in enumerate(VERSIONS)}
    for content in fact_store.cuda_to_npu().values():
        target = content["npu"]
        if not isinstance(target, str) or not target.startswith("torch.npu."):
            continue
        module, _, name = target.rpartition(".")
        module = "torch_npu" + module[len("torch") :]
        if module in modules and name.isidentifier():
            for version, i in exact.items():
                if version != "2.2":
                    put(module, name, 1 << i, version in content["exists_in"])
    ordered = {m: {n: mask for n, mask in sorted(names.items()) if mask} for m, names in sorted(modules.items())}
    return {"versions": list(VERSIONS), "modules": ordered}


def operators_table() -> dict[str, Any]:
    """aten operator without overload and trailing underscore -> mask over VERSIONS."""
    every = (1 << len(VERSIONS)) - 1
    aten: dict[str, int] = dict.fromkeys(NATIVE, every)
    for section in fact_store.operators().values():
        for name, versions in section.items():
            base = name.partition(".")[0].rstrip("_")
            for i, version in enumerate(VERSIONS):
                if version in versions:
                    aten[base] = aten.get(base, 0) | 1 << i
    return {"versions": list(VERSIONS), "aten": dict(sorted(aten.items()))}


#: Codes of names that do not do on an NPU what they do on CUDA.
CALLS = ("NPU501", "NPU502", "NPU503", "NPU506", "NPU507")
RULES = ("torch_cuda.json", "distributed.json")


def limits_table(rules: Path) -> dict[str, Any]:
    """The table of limits, without its sources, and `calls`: name -> rows of (mask, code, message, help)."""
    table: dict[str, Any] = json.loads((rules / "support" / "card_limits.json").read_bytes())
    del table["_meta"]
    groups = ("casts", "collectives", "reductions", "shapes")
    for row in (*table["cards"].values(), *(row for group in groups for row in table[group])):
        del row["source"]
    calls: dict[str, list[list[Any]]] = {}
    for name in RULES:
        for rule in json.loads((rules / name).read_bytes())["rules"].get("UnsupportedRule", ()):
            if rule.get("code") in CALLS and rule.get("level", "manual") == "manual":
                held = versions_of(rule.get("versions"))
                mask = sum(1 << i for i, version in enumerate(VERSIONS) if version in held)
                calls.setdefault(rule["name"], []).append([mask, rule["code"], rule["message"], rule.get("help", "")])
    return {**table, "versions": list(VERSIONS), "calls": dict(sorted(calls.items()))}


def silent_table(rules: Path) -> dict[str, Any]:
    """Rows of silent errors that the emulated card can decide: `names` of operators, tests, cards, message, help."""
    rows = []
    for row in json.loads((rules / "support" / "silent_errors.json").read_bytes())["errors"]:
        called = [f"npu::{name.removeprefix('torch_npu.')}" for name in row["operators"] if _OF_NPU.match(name)]
        names = [*called, *(name for name in row.get("also", ()) if name.startswith("aten::"))]
        if names and "when" in row:
            said = f"{row['wrong']} where {row['condition']}"
            rows.append({
                "names": names, "when": row["when"], "cards": row.get("cards", []), "code": "NPU736",
                "message": f"{{name}} is known to give wrong results without an error: {said}",
                "help": f"{row['do']}; {row['source']}",
            })  # fmt: skip
    return {"rows": rows}


def types_table(rules: Path) -> dict[str, Any]:
    """The table of types, without its sources."""
    table: dict[str, Any] = json.loads((rules / "support" / "card_types.json").read_bytes())
    return {key: table[key] for key in ("places", "lists", "rows", "operators")}


def functions_table(rules: Path) -> dict[str, Any]:
    """Functions of CANN -> [arguments, operator of PyTorch or nothing]."""
    table: dict[str, Any] = json.loads((rules / "support" / "card_functions.json").read_bytes())
    return {name: [row["arguments"], row.get("aten", "")] for name, row in table["functions"].items()}


def triton_table(rules: Path) -> dict[str, Any]:
    """The table of what an NPU refuses of Triton's operations, without its sources."""
    table: dict[str, Any] = json.loads((rules / "support" / "triton_types.json").read_bytes())
    del table["_meta"], table["casts"]
    rows = [row for part in ("cards", "values", "operations") for row in table[part].values()]
    for row in (table["grid"], table["quotient"], *rows):
        del row["source"]
    return table


def write(path: Path, table: dict[str, Any]) -> None:
    data = json.dumps(table, separators=(",", ":"), sort_keys=False).encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0))


def main(tables: Path = TABLES, rules: Path = ROOT / "rules") -> None:
    """Write the tables below `tables`."""
    tables.mkdir(parents=True, exist_ok=True)
    write(tables / "names.json.gz", names_table())
    write(tables / "limits.json.gz", limits_table(rules))
    write(tables / "silent.json.gz", silent_table(rules))
    write(tables / "types.json.gz", types_table(rules))
    write(tables / "triton.json.gz", triton_table(rules))
    write(tables / "functions.json.gz", functions_table(rules))


if __name__ == "__main__":
    main()
