"""Builds the tables of the support analysis in rules/support/ from the facts in scripts/facts/.

    python scripts/build_api_support.py

Facts: verdicts, operators, affinity and advice. Writes api_support.json (what the documentation of torch_npu says of
each native API, for each torch version), affinity.json and advice.json. Which entries of the documentation contradict
themselves, and which calls are certain to meet a limit, is in `support_decisions.py`. The output is the same for the
same input; run `torch_names.py` after it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from advice_decisions import ADVICE  # noqa: E402
from support_decisions import (  # noqa: E402
    AFFINITY,
    CALLS,
    CONTRADICTED,
    HOST,
    LOW_EFFORT,
    NO_OPERATORS,
    OTHER_DEVICES,
    SURE_LIMITS,
)

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402

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

    The list for 2.2 is shorter than those around it: where 2.1 and 2.3 agree and 2.2 is silent, theirs holds. Versions
    without published verdicts come last and have none of their own: those of the last that has hold on.
    """
    rows = [verdict(tables[version].get(name)) for version in TORCH_VERSIONS if version in tables]
    hole = TORCH_VERSIONS.index("2.2")
    if rows[hole] is None and rows[hole - 1] is not None and rows[hole - 1] == rows[hole + 1]:
        rows[hole] = rows[hole - 1]
    return rows


def api_support() -> Entry:
    """Names by owner -> index of a history; a history is a list of [position of its first version, index of a row]."""
    tables = fact_store.verdicts()
    kernels = kernels_of()
    rows: dict[str, int] = {}
    histories: dict[str, int] = {}
    names: dict[str, dict[str, int]] = {}
    for name in sorted({name for version in TORCH_VERSIONS for name in tables.get(version, ())}):
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
        "rows": [json.loads(text) for text in rows],
        "histories": [json.loads(text) for text in histories],
        "contradicted": CONTRADICTED,
        "sure_limits": SURE_LIMITS,
        "calls": CALLS,
        "host": list(HOST),
        "other_devices": list(OTHER_DEVICES),
        "low_effort": list(LOW_EFFORT),
        "no_operators": list(NO_OPERATORS),
        "kernels": by_versions(kernels),
        "names": names,
    }


def kernels_of() -> dict[str, frozenset[str]]:
    """Operators of torch with an NPU kernel, and the torch versions in which they have it."""
    found: dict[str, set[str]] = {}
    for name, versions in fact_store.operators()["official"].items():
        found.setdefault(name.partition(".")[0], set()).update(versions)
    return {name: frozenset(found[name] & set(TORCH_VERSIONS)) for name in sorted(found)}


def by_versions(kernels: dict[str, frozenset[str]]) -> dict[str, str]:
    """Names of operators, as a text to split, by the range of versions they are in."""
    shown = {name: set(held) for name, held in kernels.items() if name[0] != "_" and not name.endswith("_backward")}
    return {text: " ".join(names) for text, names in fact_store.grouped(shown, TORCH_VERSIONS).items()}


def affinity() -> Entry:
    """Faster forms that are current: nothing deprecated, nothing that calls deprecated operators."""
    facts = {row["id"]: row for row in fact_store.read("affinity")["replacements"]}
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
            held = fact_store.members(fact["exists_in"], fact_store.wheels())
            form["versions"] = fact_store.ranged(fact_store.with_neighbours(held), TORCH_VERSIONS)
        form |= chosen
        forms[key] = form
    return {
        "source": "schemas of the torch_npu wheels; documentation of op-plugin and torch_npu (CC BY 4.0)",
        "forms": forms,
    }


def advice() -> Entry:
    """Advice that is valid today, with its source; what `valid_today` denies is refused."""
    table = fact_store.read("advice")
    items: Entry = {}
    for key, chosen in ADVICE.items():
        if "source" in chosen:
            items[key] = chosen
            continue
        section, _, name = chosen["from"].partition(":")
        if section == "api":
            fact = next(row for row in table["api_advice"] if row["api"] == name)
            assert fact["valid_today"].startswith(("yes", "default")), key
        else:
            fact = next((row for row in table["runtime_constraints"] if row["id"] == name), None) or table[name]
        origin = fact["source"]
        said = {name: value for name, value in chosen.items() if name != "from"}
        items[key] = {**said, "source": "; ".join(origin) if isinstance(origin, list) else origin}
    return {"source": "documentation of torch_npu (CC BY 4.0) and of the Ascend porting guides", "advice": items}


def write(path: Path, table: Entry, by_line: Collection[str] = ()) -> None:
    """One key a line, and one entry a line in its larger parts, so that a diff can be read; `by_line`: so are these
    lists."""

    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    parts = []
    for key, value in table.items():
        if isinstance(value, dict) and value:
            inner = ",\n".join(f"  {dump(name)}: {dump(each)}" for name, each in value.items())
            parts.append(f' "{key}": {{\n{inner}\n }}')
        elif isinstance(value, list) and value and (key in by_line or isinstance(value[0], dict)):
            parts.append(f' "{key}": [\n' + ",\n".join(f"  {dump(each)}" for each in value) + "\n ]")
        else:
            parts.append(f' "{key}": {dump(value)}')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8", newline="\n")


def main(rules: Path = ROOT / "rules") -> None:
    """Write every table of the analysis but the names of torch."""
    support = rules / "support"
    write(support / "api_support.json", api_support())
    write(support / "affinity.json", affinity())
    write(support / "advice.json", advice())


if __name__ == "__main__":
    main()
