"""Builds the tables of the support analysis in rules/support/ from a folder of facts.

    python scripts/build_api_support.py FACTS_DIR

FACTS_DIR holds native_api_support.json, op_support.json, affinity.json and advice.json. Writes api_support.json (what
the
documentation of torch_npu says of each native API, for each torch version), affinity.json and advice.json. Which
entries
of the documentation contradict themselves, and which calls are certain to meet a limit, is in `support_decisions.py`.
The output is the same for the same input; run `torch_names.py` after it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

from support_decisions import (  # noqa: E402
    ADVICE,
    AFFINITY,
    CONTRADICTED,
    HOST,
    LOW_EFFORT,
    NO_OPERATORS,
    OTHER_DEVICES,
    SURE_LIMITS,
)

from transplt.settings import TORCH_VERSIONS  # noqa: E402

Entry = dict[str, Any]

#: Text of the documents' licence and origin; shown by `transplt analyze`.
SOURCE = (
    "the native API support tables of the torch_npu documentation (Ascend/pytorch, CC BY 4.0, shortened), for torch "
    "2.1 to 2.5 the lists in the history of Ascend/msprobe"
)
_STATUS = {True: "yes", False: "no", "partial": "limited"}


def verdict(entry: Entry | None) -> Entry | None:
    """What one version says of one API: status, limit, tags, dtypes by parameter, and whether 950DT is left out."""
    if entry is None:
        return None
    row: Entry = {"status": _STATUS[entry["supported"]]}
    if entry["supported"] == "partial":
        if entry["notes"]:
            row["limit"] = entry["notes"]
        tags = [tag for tag in entry.get("tags", ()) if tag]
        if tags:
            row["tags"] = tags
        if entry.get("dtypes"):
            row["dtypes"] = entry["dtypes"]
    hardware = entry.get("hw", {})
    if entry["supported"] is not False and hardware.get("A2") and hardware.get("950DT") is False:
        row["not_on"] = ["950DT"]
    return row


def rows_of(tables: dict[str, Entry], name: str) -> list[Entry | None]:
    """The verdicts of an API in the order of the torch versions.

    The list for 2.2 is shorter than those around it: where 2.1 and 2.3 agree and 2.2 is silent, theirs holds.
    """
    rows = [verdict(tables[version].get(name)) for version in TORCH_VERSIONS]
    hole = TORCH_VERSIONS.index("2.2")
    if rows[hole] is None and rows[hole - 1] is not None and rows[hole - 1] == rows[hole + 1]:
        rows[hole] = rows[hole - 1]
    return rows


def api_support(folder: Path) -> Entry:
    """Names by owner -> index of a history; a history is a list of [position of its first version, index of a row]."""
    tables = json.loads((folder / "native_api_support.json").read_bytes())
    tables.pop("_meta")
    kernels = kernels_of(folder)
    rows: dict[str, int] = {}
    histories: dict[str, int] = {}
    names: dict[str, dict[str, int]] = {}
    for name in sorted({name for version in TORCH_VERSIONS for name in tables[version]}):
        if not name.startswith("torch.") or name in CONTRADICTED:
            continue
        history: list[list[int]] = []
        last: Entry | None = None
        for position, row in enumerate(rows_of(tables, name)):
            if row == last and position:
                continue
            last = row
            text = json.dumps(row, sort_keys=True)
            history.append([position, rows.setdefault(text, len(rows))])
        key = json.dumps(history)
        owner, _, member = name.rpartition(".")
        names.setdefault(owner, {})[member] = histories.setdefault(key, len(histories))
    return {
        "source": SOURCE,
        "versions": list(TORCH_VERSIONS),
        "rows": [json.loads(text) for text in rows],
        "histories": [json.loads(text) for text in histories],
        "contradicted": CONTRADICTED,
        "sure_limits": SURE_LIMITS,
        "host": list(HOST),
        "other_devices": list(OTHER_DEVICES),
        "low_effort": list(LOW_EFFORT),
        "no_operators": list(NO_OPERATORS),
        "kernels": by_versions(kernels),
        "names": names,
    }


def kernels_of(folder: Path) -> dict[str, frozenset[str]]:
    """Operators of torch with an NPU kernel, and the torch versions in which they have it."""
    found: dict[str, set[str]] = {}
    for name, versions in json.loads((folder / "op_support.json").read_bytes())["table"]["official"].items():
        base = name.partition(".")[0]
        found.setdefault(base, set()).update(version.removeprefix("v") for version in versions)
    return {name: frozenset(found[name] & set(TORCH_VERSIONS)) for name in sorted(found)}


def by_versions(kernels: dict[str, frozenset[str]]) -> dict[str, str]:
    """Names of operators by the versions they are in, both as texts to split."""
    groups: dict[str, list[str]] = {}
    for name, held in kernels.items():
        key = " ".join(version for version in TORCH_VERSIONS if version in held)
        if key and not name.startswith("_") and not name.endswith("_backward"):
            groups.setdefault(key, []).append(name)
    return {key: " ".join(names) for key, names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))}


def minors(wheels: list[str]) -> list[str]:
    """Torch versions of the wheels that hold something; 2.2 has no wheel and follows its neighbours."""
    found = {".".join(wheel.split(".")[:2]) for wheel in wheels}
    if {"2.1", "2.3"} <= found:
        found.add("2.2")
    return [version for version in TORCH_VERSIONS if version in found]


def affinity(folder: Path) -> Entry:
    """Faster forms that are current: nothing deprecated, nothing that calls deprecated operators."""
    facts = {row["id"]: row for row in json.loads((folder / "affinity.json").read_bytes())["replacements"]}
    forms: Entry = {}
    for key, chosen in AFFINITY.items():
        fact = facts[key]
        assert not fact.get("deprecated") and not fact.get("uses_deprecated_ops"), key
        form: Entry = {"replacement": fact["replacement"], "caveats": fact["caveats"], "source": fact["source"]}
        if fact.get("schema"):
            form["schema"] = fact["schema"]
        if fact.get("schema_2.1.0.post17"):
            form["schema_2.1"] = fact["schema_2.1.0.post17"]
        if fact.get("package"):
            form["package"] = fact["package"]
        else:
            form["versions"] = minors(fact["exists_in"])
        form |= chosen
        forms[key] = form
    return {
        "source": "schemas of the torch_npu wheels; documentation of op-plugin and torch_npu (CC BY 4.0)",
        "forms": forms,
    }


def advice(folder: Path) -> Entry:
    """Advice that is valid today, with its source; what `valid_today` denies is refused."""
    table = json.loads((folder / "advice.json").read_bytes())
    items: Entry = {}
    for key, chosen in ADVICE.items():
        source = chosen.pop("from")
        section, _, name = source.partition(":")
        if section == "api":
            fact = next(row for row in table["api_advice"] if row["api"] == name)
            assert fact["valid_today"].startswith(("yes", "default")), key
        else:
            fact = next((row for row in table["runtime_constraints"] if row["id"] == name), None) or table[name]
        origin = fact["source"]
        items[key] = {**chosen, "source": "; ".join(origin) if isinstance(origin, list) else origin}
    return {"source": "documentation of torch_npu (CC BY 4.0) and of the Ascend porting guides", "advice": items}


def write(path: Path, table: Entry) -> None:
    """One key a line, and one entry a line in its larger parts, so that a diff can be read."""

    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    parts = []
    for key, value in table.items():
        if isinstance(value, dict) and value:
            inner = ",\n".join(f"  {dump(name)}: {dump(each)}" for name, each in value.items())
            parts.append(f' "{key}": {{\n{inner}\n }}')
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            parts.append(f' "{key}": [\n' + ",\n".join(f"  {dump(each)}" for each in value) + "\n ]")
        else:
            parts.append(f' "{key}": {dump(value)}')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8", newline="\n")


def main(folder: Path) -> None:
    """Write every table of the analysis but the names of torch."""
    support = ROOT / "rules" / "support"
    write(support / "api_support.json", api_support(folder))
    write(support / "affinity.json", affinity(folder))
    write(support / "advice.json", advice(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: build_api_support.py FACTS_DIR")
    main(Path(sys.argv[1]))
