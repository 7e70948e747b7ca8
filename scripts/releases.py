"""Writes rules/support/package_releases.json: the releases of its `packages`, as the package index has them.

    python scripts/releases.py          asks the index of pip's settings, and prints what is new
    python scripts/releases.py --check  exits with 1 where the index has a release that the table lacks

A package is added by a line under `packages`: its name, and what it stands for. A package that the index does not have
keeps its rows.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from transplt.proof.launch import pip  # noqa: E402
from transplt.proof.launch.package_index import as_rows, builds_of  # noqa: E402
from transplt.rules.package_releases import is_of_interest  # noqa: E402

TABLE = ROOT / "rules" / "support" / "package_releases.json"


def main(check: bool) -> str:
    """Write the table, or only say what is new; why not, or why it is too old, in one sentence, else empty."""
    table = json.loads(TABLE.read_bytes())
    try:
        found = as_rows(builds_of([*table["packages"]], is_of_interest))
    except pip.Failed as why:
        return f"the index cannot be asked: {why}"
    before = table["releases"]
    new = [
        f"{name} {version}"
        for name, rows in found.items()
        for version in rows
        if version not in before.get(name, {})
    ]
    print("\n".join(new) if new else "nothing new")
    if check:
        return f"{len(new)} releases are not in {TABLE.name}: run scripts/releases.py" if new else ""
    for name, rows in found.items():  # what an older one requires is not asked again
        for version, row in rows.items():
            row.update({"requires": row.get("requires") or before.get(name, {}).get(version, {}).get("requires", ())})
    rows = {name: found.get(name) or before.get(name, {}) for name in table["packages"]}
    table = {**table, "read": f"{date.today():%Y-%m-%d}", "releases": rows}
    TABLE.write_text(text_of(table), encoding="utf-8", newline="\n")
    return ""


def text_of(table: dict[str, object]) -> str:
    """The table with a line for each release."""
    rows, named = table["releases"], table.get("packages", {})
    assert isinstance(rows, dict) and isinstance(named, dict)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in named.items())
    about = json.dumps(table.get("_meta", {}), indent=2).replace("\n", "\n ")
    head = f'{{\n "_meta": {about},\n "packages": {{\n{lines}\n }},\n "read": {json.dumps(table["read"])}\n}}'
    packages = []
    for name, builds in rows.items():
        told = {version: {key: value for key, value in row.items() if value} for version, row in builds.items()}
        lines = ",\n".join(f"   {json.dumps(version)}: {json.dumps(row)}" for version, row in told.items())
        packages.append(f"  {json.dumps(name)}: {{\n{lines}\n  }}" if lines else f"  {json.dumps(name)}: {{}}")
    return f'{head[:-2]},\n "releases": {{\n' + ",\n".join(packages) + "\n }\n}\n"


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]) or None)
