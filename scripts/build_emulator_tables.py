"""Builds the emulator's tables of names and operators from a folder of facts.

usage: python scripts/build_emulator_tables.py FACTS

FACTS holds `torch_npu_api.json` (public names of four torch_npu wheels), `custom_ops.json` (npu_* operators of thirteen
wheels), `cuda_to_npu.json` (which wheels have a torch.npu name) and `op_support.json` (operators with an NPU kernel).
The output is small and the same for the same input: a name maps to a bit mask over the list of torch versions.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

VERSIONS = ("2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13")
TABLES = Path(__file__).parents[1] / "transplt" / "emulator" / "site" / "npu_emulator" / "tables"
#: Modules whose names are kept: what a training script can reach.
MODULES = (
    "torch_npu",
    "torch_npu.npu",
    "torch_npu.optim",
    "torch_npu.contrib",
    "torch_npu.profiler",
    "torch_npu.utils",
    "torch_npu.distributed",
    "torch_npu.hccl",
    "torch_npu.multiprocessing",
    "torch_npu.dynamo",
    "torch_npu.asd",
)
#: Kernels that torch_npu brings besides op-plugin's (the `supported` list of Ascend/pytorch npu_native_functions.yaml).
NATIVE = """
_local_scalar_dense _pin_memory _reshape_alias as_strided bartlett_window blackman_window clone contiguous copy
empty empty_like empty_strided full hamming_window hann_window is_pinned is_set_to isnan new_empty_strided
record_stream resize resize_as set squeeze _to_copy _to_sparse tril_indices triu_indices unfold unsqueeze view
_copy_from_and_resize flatten_dense_tensors _lazy_clone _copy_from _has_compatible_shallow_copy_type
""".split()
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


def minor(wheel: str) -> str:
    """ "2.1" for "2.1.0.post17"."""
    return ".".join(wheel.split(".")[:2])


def key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def nearest(version: str, wheels: list[str]) -> str:
    """The newest wheel not newer than `version`, or the oldest one."""
    older = [w for w in sorted(wheels, key=lambda w: key(minor(w))) if key(minor(w)) <= key(version)]
    return older[-1] if older else min(wheels, key=lambda w: key(minor(w)))


def kept(module: str) -> bool:
    parts = module.split(".")
    return (
        (not any(p.startswith("_") for p in parts[1:])
        and any(module == m or module.startswith(m + ".") for m in MODULES[1:]))
        or module == "torch_npu"
    )


def names_table(facts: Path) -> dict[str, Any]:
    """module -> name -> mask over VERSIONS."""
    api = json.loads((facts / "torch_npu_api.json").read_text(encoding="utf-8"))
    wheels = [w for w in api if not w.startswith("_")]
    modules: dict[str, dict[str, int]] = {}

    def put(module: str, name: str, bit: int, has: bool) -> None:
        names = modules.setdefault(module, {})
        names[name] = names.get(name, 0) | bit if has else names.get(name, 0) & ~bit

    for i, version in enumerate(VERSIONS):
        wheel = api[nearest(version, wheels)]
        for module, content in wheel["modules"].items():
            if kept(module):
                for name in {*(content["all"] or ()), *content["toplevel"]} - _NOISE:
                    put(module, name, 1 << i, True)
        for name in {*wheel["npu_ops"], *wheel["public_npu_functions"]}:
            put("torch_npu", name, 1 << i, True)
    exact = {v: i for i, v in enumerate(VERSIONS)}
    for name, content in json.loads((facts / "custom_ops.json").read_text(encoding="utf-8"))["ops"].items():
        have = {minor(w) for w in content["versions"]}
        for version, i in exact.items():
            if version != "2.2":  # there is no such wheel: the nearest one speaks for it
                put("torch_npu", name, 1 << i, version in have)
    for content in json.loads((facts / "cuda_to_npu.json").read_text(encoding="utf-8")).values():
        target, wheels_with = content.get("npu"), content.get("exists_in")
        if not isinstance(target, str) or not isinstance(wheels_with, list) or not target.startswith("torch.npu."):
            continue
        module, _, name = target.rpartition(".")
        module = "torch_npu" + module[len("torch") :]
        if module in modules and name.isidentifier():
            have = {minor(w) for w in wheels_with}
            for version, i in exact.items():
                if version != "2.2":
                    put(module, name, 1 << i, version in have)
    ordered = {m: {n: mask for n, mask in sorted(names.items()) if mask} for m, names in sorted(modules.items())}
    return {"versions": list(VERSIONS), "modules": ordered}


def operators_table(facts: Path) -> dict[str, Any]:
    """aten operator without overload and trailing underscore -> mask over VERSIONS."""
    table = json.loads((facts / "op_support.json").read_text(encoding="utf-8"))["table"]
    every = (1 << len(VERSIONS)) - 1
    aten: dict[str, int] = dict.fromkeys(NATIVE, every)
    for section in table.values():
        for name, versions in section.items():
            base = name.partition(".")[0].rstrip("_")
            for i, version in enumerate(VERSIONS):
                if "v" + version in versions:
                    aten[base] = aten.get(base, 0) | 1 << i
    return {"versions": list(VERSIONS), "aten": dict(sorted(aten.items()))}


def write(name: str, table: dict[str, Any]) -> None:
    data = json.dumps(table, separators=(",", ":"), sort_keys=False).encode()
    path = TABLES / f"{name}.json.gz"
    path.write_bytes(gzip.compress(data, 9, mtime=0))
    print(f"{path.name}: {path.stat().st_size} bytes")


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    facts = Path(arguments[0])
    TABLES.mkdir(parents=True, exist_ok=True)
    write("names", names_table(facts))
    write("operators", operators_table(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
