"""Builds the built-in rules and fact tables of rules/ from the facts in scripts/facts/.

    python scripts/build_tables.py

What the published torch_npu wheels define (read with ast), the vendors' documentation, and package sources, each with
a source: cuda_to_npu, torch_npu_api, custom_ops, env_vars and versions. Decisions that no fact can make
are in `table_decisions.py` and `similar_rules.py`. The output is the same for the same input.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from similar_rules import SIMILAR  # noqa: E402
from support_tables import build_support  # noqa: E402
from table_decisions import CODEMOD, EFFORT, EXTRA, HELP, KEEP, MISSING_HELP, REPORT  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402

Entry = dict[str, Any]

#: theme (file name) -> code of its renames, and what the file is for
THEMES = {
    "torch_cuda": ("NPU101", "torch.cuda: devices, properties, initialisation"),
    "amp": ("NPU103", "automatic mixed precision"),
    "memory": ("NPU104", "memory: statistics, caching allocator, pools"),
    "streams": ("NPU105", "streams and events"),
    "random": ("NPU106", "random numbers"),
    "graphs": ("NPU107", "graph capture"),
    "tracing": ("NPU108", "nvtx ranges and profilers"),
    "tensor_types": ("NPU109", "tensor and storage types and methods"),
    "backends": ("NPU110", "torch.backends and precision switches"),
    "distributed": ("NPU111", "collective communication"),
    "extensions": ("NPU112", "C++ and CUDA extensions, kernels compiled at run time"),
}
#: keyword parameters of torch.cuda -> of torch.npu
PARAMETERS = {
    "device": ("device_name", "device_id"),
    "peer_device": ("peer_device_id",),
    "msg": ("message",),
    "cuda_graph": ("npu_graph",),
    "stream": ("stream_ctx",),
}
_DOTTED = re.compile(r"torch(_npu)?(\.\w+)+")
#: how a note begins that says no more than the code does
_EMPTY = re.compile(r"(no (NPU )?counterpart|private name without counterpart|not defined)( on the NPU class)?[;,]? ?")


def minors(wheels: list[str]) -> frozenset[str]:
    """Torch versions that have what the wheels of some have."""
    return frozenset(fact_store.with_neighbours(wheels) & set(TORCH_VERSIONS))


def specifier(versions: frozenset[str]) -> str:
    """The `versions` value for a set of torch versions: open above, or below, where the newest, or oldest, has it."""
    clauses = fact_store.ranged(versions, TORCH_VERSIONS).split(",")
    return ",".join(clause for clause in clauses if clause != f">={TORCH_VERSIONS[0]}")


def theme_of(name: str, names: set[str]) -> str:
    """The rule file that a name belongs to."""
    tail = name.removeprefix("torch.cuda.")
    if name.startswith("torch.backends.") or "fp32_precision" in name or "float32_matmul" in name:
        return "backends"
    if "cpp_extension" in name or "jiterator" in name or "_compile_kernel" in name or "Pluggable" in name:
        return "extensions"
    if "amp" in name.split(".") or "autocast" in name:
        return "amp"
    if tail.startswith(("nccl", "comm")) or ".distributed." in name or name.endswith("DataParallel"):
        return "distributed"
    if "profiler" in name or "nvtx" in name:
        return "tracing"
    if "raph" in tail or "current_stream_capturing" in tail:
        return "graphs"
    if re.match(r"(streams|Stream|Event|External|\w*stream)", tail) or "sync_debug" in tail:
        return "streams"
    in_random = tail.startswith("random") or f"torch.cuda.random.{tail}" in names
    if in_random and "device" not in tail and tail != "is_initialized":
        return "random"
    if tail.startswith(("memory", "MemPool", "gds")) or f"torch.cuda.memory.{tail}" in names or "memory" in tail:
        return "memory" if tail != "is_initialized" else "torch_cuda"
    if (
        name.startswith(("torch.Tensor", "torch.nn.Module"))
        or name.endswith(("Tensor", "Storage"))
        or tail.startswith("sparse")
    ):
        return "tensor_types"
    return "torch_cuda"


def arguments(fact: Entry, version: str) -> Entry | None:
    """The `args` of a rename: what has to change in a call for the signature of that torch version."""
    wanted = "2.1" if version == "2.2" else version
    signatures = fact.get("args", {}).get("npu", {})
    signature = next((text for text, wheels in signatures.items() if wanted in wheels), None)
    if signature is None:
        return None
    have = [name.strip() for name in fact["args"]["cuda"].split(",") if name.strip()]
    takes = [name.strip() for name in signature.split(",") if name.strip()]
    rename: dict[str, str] = {}
    named: dict[str, str] = {}
    reject, limit = [], None
    for index, name in enumerate(have):
        if name.startswith("*"):
            continue
        new = name if name in takes else next((other for other in PARAMETERS.get(name, ()) if other in takes), None)
        if new is None and "**kwargs" in takes:
            named[str(index)] = name
        elif new is None:
            reject.append(name)
            limit = index - len(named) if limit is None else limit
        else:
            if new != name:
                rename[name] = new
            if takes.index(new) != index and limit is None:
                named[str(index)] = new
    spec: Entry = {}
    if rename:
        spec["rename_keyword"] = rename
    if named:
        spec["name_positional"] = named
    if reject:
        spec |= {
            "positional_max": limit,
            "reject_keyword": reject,
            "message": f"{fact['npu']} takes no {' or '.join(reject)}",
        }
    return spec or None


def outcome(name: str, fact: Entry, version: str) -> tuple[str, str]:
    """What becomes of a name in a torch version: (rule kind, the rule as JSON without versions)."""
    note, target = fact["note"], fact.get("npu")
    if name in REPORT:
        code, level, effort, text = REPORT[name]
        return report(name, code, text or note, level, effort)
    note = _EMPTY.sub("", note)
    if fact["status"] == "missing":
        return report(name, "NPU501", note)
    if fact["status"] == "stub" or version in minors(fact.get("stub_in", [])):
        return report(name, "NPU503", note)
    held = minors(fact["exists_in"])
    if version not in held:
        where = f"torch_npu for torch {listed(held)} has {target}"
        return report(name, "NPU502", MISSING_HELP.get(name, where))
    if name == target:
        return "", ""
    rule: Entry = {"old_name": name, "new_name": target}
    spec = arguments(fact, version)
    if spec:
        rule["args"] = spec
    if name in HELP or target in HELP:
        rule["help"] = HELP.get(name) or HELP[target]
    return "FuncNameModifyRule", json.dumps(rule)


def report(name: str, code: str, help_text: str, level: str = "manual", effort: str | None = "") -> tuple[str, str]:
    """An UnsupportedRule as JSON."""
    says = {
        "NPU501": f"{name} has no counterpart on NPU",
        "NPU502": f"{name} has no counterpart on NPU in this version of torch_npu",
        "NPU503": f"the counterpart of {name} only warns or returns a constant",
        "NPU504": f"{name} has no effect on NPU",
        "NPU506": f"{name} has a different meaning on NPU",
        "NPU507": f"{name} works on one NPU only",
        "NPU508": f"{name} is replaced when torch_npu is imported",
        "NPU550": f"{name} builds CUDA sources",
        "NPU551": f"{name} is the folder of CUDA, and None on an NPU host",
        "NPU552": f"{name} needs code written for CUDA",
    }
    rule: Entry = {"name": name, "code": code, "message": says[code]}
    if code == "NPU507":  # one card takes it
        rule = {"name": name, "code": code, "blocks": "later", "message": says[code]}
    if help_text:
        rule["help"] = help_text.strip()
    if level != "manual":
        return "UnsupportedRule", json.dumps({**rule, "level": level})
    if not effort:
        low, high = (any(name == key or name.startswith(key + ".") for key in EFFORT[cost]) for cost in ("low", "high"))
        effort = "low" if low else "high" if high else "medium"
    return "UnsupportedRule", json.dumps({**rule, "effort": effort})


def listed(versions: frozenset[str]) -> str:
    """`2.7, 2.9 to 2.12`, and `2.13 and later` for what the newest has."""
    parts: list[list[str]] = []
    for version in TORCH_VERSIONS:
        if version not in versions:
            parts.append([])
        elif parts and parts[-1]:
            parts[-1].append(version)
        else:
            parts.append([version])
    runs = [
        f"{run[0]} and later"
        if run[-1] == TORCH_VERSIONS[-1]
        else run[0]
        if len(run) == 1
        else f"{run[0]} to {run[-1]}"
        for run in parts
        if run
    ]
    return ", ".join(runs)


#: Modules of torch.cuda whose counterpart is a module of torch.npu (an object where it says so).
MODULES = {
    "torch.cuda": "torch.npu",
    "torch.cuda.amp": "torch.npu.amp",
    "torch.cuda.amp.autocast_mode": "torch.npu.amp.autocast_mode",
    "torch.cuda.amp.common": "torch.npu.amp.common",
    "torch.cuda.amp.grad_scaler": "torch.npu.amp.grad_scaler",
    "torch.cuda.graphs": "torch.npu.graphs",
    "torch.cuda.memory": "torch.npu.memory",
    "torch.cuda.random": "torch.npu.random",
    "torch.cuda.streams": "torch.npu.streams",
    "torch.cuda.nvtx": "torch.npu.mstx",  # a class with static methods
    "torch.cuda._memory_viz": "torch.npu._memory_viz",
}


def rules_of_facts(facts: dict[str, Entry]) -> tuple[dict[str, dict[str, list[Entry]]], dict[str, Entry]]:
    """Rule files by theme, and the facts that codemods have to apply."""
    files: dict[str, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    codemod: dict[str, Entry] = {}
    told: dict[str, tuple[str, str]] = {}  # what is said of a module, so that its members need not repeat it
    for name, fact in facts.items():
        if name in KEEP or name.startswith("torch.accelerator."):
            continue
        if name in CODEMOD or not _DOTTED.fullmatch(name) or (fact["npu"] and not _DOTTED.fullmatch(fact["npu"])):
            held = minors(fact["exists_in"])
            row = {"npu": fact["npu"], "versions": specifier(held) if held else [], "note": fact["note"]}
            codemod[name] = {key: value for key, value in row.items() if value != ""}
            if name in CODEMOD:
                codemod[name]["why"] = CODEMOD[name]
            continue
        if name in MODULES:
            assert fact["npu"] == MODULES[name], name
            continue
        by_outcome: dict[tuple[str, str], set[str]] = defaultdict(set)
        for version in TORCH_VERSIONS:
            by_outcome[outcome(name, fact, version)].add(version)
        if repeats(name, by_outcome, told):
            continue
        theme = theme_of(name, set(facts))
        for (kind, text), versions in by_outcome.items():
            if not kind:
                continue
            rule = json.loads(text)
            if len(versions) < len(TORCH_VERSIONS):
                rule["versions"] = specifier(frozenset(versions))
            files[theme][kind].append(rule)
    for old, new in MODULES.items():
        parent, _, last = old.rpartition(".")
        rule = {"old_name": last, "new_name": new, "parent_module": parent, "members": "listed"}
        files[theme_of(old, set(facts))]["ModuleNameModifyRule"].append(rule)
    return files, codemod


def repeats(name: str, by_outcome: dict[tuple[str, str], set[str]], told: dict[str, tuple[str, str]]) -> bool:
    """True when the rule of an enclosing name covers this one in every version; else remembers what this one says."""
    if len(by_outcome) > 1:
        return False
    kind, text = next(iter(by_outcome))
    rule = json.loads(text) if text else {}
    parent, _, last = name.rpartition(".")
    enclosing = told.get(parent, ("", ""))
    told[name] = (kind, rule.get("new_name", ""))
    if kind == "FuncNameModifyRule":
        return enclosing == (kind, rule["new_name"].rpartition(".")[0]) and rule["new_name"].endswith(f".{last}")
    return kind == enclosing[0] == "UnsupportedRule" and name not in REPORT


def write(path: Path, value: Any) -> None:
    """Write JSON with one rule or row a line, so that diffs can be read."""

    def row(item: Any) -> str:
        return json.dumps(item, ensure_ascii=False)

    def shown(item: Any, depth: int) -> str:
        pad = " " * depth
        if depth < 3 and isinstance(item, dict) and item and any(isinstance(v, (dict, list)) for v in item.values()):
            inner = ",\n".join(f"{pad} {row(key)}: {shown(each, depth + 1)}" for key, each in item.items())
            return f"{{\n{inner}\n{pad}}}"
        if isinstance(item, list) and item and isinstance(item[0], dict):
            return "[\n" + ",\n".join(f"{pad} {row(each)}" for each in item) + f"\n{pad}]"
        return row(item)

    path.write_text(shown(value, 0) + "\n", encoding="utf-8", newline="\n")


def main(rules: Path = ROOT / "rules") -> None:
    """Write every table below `rules`."""
    facts = fact_store.cuda_to_npu()
    files, codemod = rules_of_facts(facts)
    for theme, (code, about) in THEMES.items():
        table = files[theme]
        for kind, extra in EXTRA.get(theme, {}).items():
            table[kind].extend(extra)
        renames = {kind: {"code": code} for kind in ("FuncNameModifyRule", "ModuleNameModifyRule") if table.get(kind)}
        ordered = {kind: table[kind] for kind in sorted(table)}
        write(rules / f"{theme}.json", {"description": about, "defaults": renames, "rules": ordered})
    write(rules / "similar.json", SIMILAR)
    build_support(facts, codemod, rules, write)


if __name__ == "__main__":
    main()
