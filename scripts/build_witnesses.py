"""Builds rules/support/witnesses.json: what besides the documentation speaks for or against an API on an NPU.

    python scripts/build_witnesses.py

Facts: executed_apis (the operators that an API reaches), operators (those with an NPU kernel, by torch version), and
known_ports (APIs in ports that train). Operators that need no kernel of their own are named here, with why.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from build_api_support import write  # noqa: E402
from build_emulator_tables import operators_table  # noqa: E402
from support_decisions import NO_KERNEL_NEEDED, NOT_WITNESSED, OF_TYPES, OTHER_WAY  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402


def kernels() -> dict[str, frozenset[str]]:
    """Operator, without overload and the underscore of those that write -> versions with an NPU kernel."""
    return {
        name: frozenset(version for i, version in enumerate(TORCH_VERSIONS) if mask >> i & 1)
        for name, mask in operators_table()["aten"].items()
    }


def own_operator(api: str) -> str:
    """The operator of the name of a function or method, empty for others: `linalg_inv` of `torch.linalg.inv`."""
    owner, _, name = api.rpartition(".")
    known = {"torch": "", "torch.Tensor": "", "torch.nn.functional": "", "torch.linalg": "linalg_", "torch.fft": "fft_",
             "torch.special": "special_"}
    return f"{known[owner]}{name.rstrip('_')}" if owner in known else ""


def lacking(reached: set[str], composed: set[str]) -> dict[str, frozenset[str]]:
    """Operators that some version of torch_npu cannot do -> the versions that can."""
    known = kernels()
    found = {}
    for name in sorted(reached - composed - NO_KERNEL_NEEDED.keys()):
        held = known.get(name, frozenset())
        held |= known.get(OTHER_WAY.get(name, ("", ""))[0], frozenset())
        if len(held) < len(TORCH_VERSIONS):
            found[name] = held
    return found


def doubted(verdicts: dict[str, dict[str, Any]]) -> set[str]:
    """APIs that the documentation of some version calls unsupported."""
    return {
        name for table in verdicts.values() for name, entry in table.items() if entry and entry["supported"] is False
    }


def table() -> dict[str, Any]:
    """The table: see `_meta`."""
    executed, ports = fact_store.read("executed_apis"), fact_store.read("known_ports")
    apis = {api: row for row in executed["runs"] for api in row["apis"].split() if api not in OF_TYPES}
    always = {api: set(row["always"].split()) for api, row in apis.items()}
    some = {api: set(row.get("some", "").split()) for api, row in apis.items()}
    every = set().union(*always.values(), *some.values())
    lacks = lacking(every | set(executed["whole"].split()), set(executed["composed"].split()))
    doubts = doubted(fact_store.verdicts())
    whole = set(executed["whole"].split())
    for api in apis:
        if own_operator(api) in whole:
            always[api] = some[api] = {own_operator(api)}
    groups: dict[str, dict[str, list[str]]] = {}
    for api in sorted(apis):
        owner, _, name = api.rpartition(".")
        sure = " ".join(sorted(always[api] & lacks.keys()))
        maybe = " ".join(sorted(some[api] & lacks.keys()))
        key = sure + (f" | {maybe}" if maybe else "")
        groups.setdefault(owner, {}).setdefault(key.strip(), []).append(name)
    return {
        "_meta": {
            "about": "executed: owner -> operators -> APIs that reach them, of those operators only that lack a kernel "
            "in some version: reached with all arguments that were tried, then after | with some of them; under an "
            "empty text the APIs whose operators all have kernels in each version. lacking: operator -> versions with "
            "a kernel. reaches: all operators of the APIs that some documentation calls unsupported. ports: API -> in "
            "how many ports that train it is used. sparse: an operator called with a sparse tensor.",
            "executed": f"torch {executed['torch']}, {executed['date']}, on the emulated card "
            "(scripts/executed_apis.py)",
            "ports": f"{ports['source']} ({ports['date']}), {ports['ports']} ports",
            "left_out": "every third port, by the hash of its path: to measure on",
            "no_kernel_needed": NO_KERNEL_NEEDED,
            "of_types": OF_TYPES,
            "not_witnessed": NOT_WITNESSED,
            "other_way": {name: why for name, (_, why) in OTHER_WAY.items()},
        },
        "lacking": {name: fact_store.ranged(held, TORCH_VERSIONS) for name, held in lacks.items()},
        "executed": {
            owner: {key: " ".join(names) for key, names in sorted(held.items())}
            for owner, held in sorted(groups.items())
        },
        "reaches": {api: " ".join(sorted(always[api] | some[api])) for api in sorted(doubts & apis.keys())},
        "ports": {api: count for api, (count, _) in ports["apis"].items() if api not in NOT_WITNESSED},
    }


def main(rules: Path = ROOT / "rules") -> None:
    """Write the table below `rules`."""
    write(rules / "support" / "witnesses.json", table())


if __name__ == "__main__":
    main()
