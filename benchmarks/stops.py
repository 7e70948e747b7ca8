"""Actions that "stop" projects because of the support of an API: counts, and each with its places.

    python -m benchmarks.stops FOLDER [--torch-version 2.1] [--every N] [--json FILE]

FOLDER is a tree of Ascend/ModelZoo-PyTorch (see scripts/known_ports.py); the projects are its ports that train and that
the table of known ports leaves out. A port trains on NPUs with what it uses: each stop is one to be read.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import known_ports

from transplt.engine.actions.actions import actions_of
from transplt.project.options import Options, make_plan
from transplt.project.tree import analyse_tree

_SUPPORT = ("NPU520", "NPU521")


def stops(root: Path, version: str) -> list[dict[str, Any]]:
    """The actions of one project that stop it at import or at the first step."""
    options = Options(source=str(root), analysis=True, torch_version=version, isolated=True, jobs=1)
    result = analyse_tree(make_plan(options))
    return [
        {
            "title": action.title, "codes": list(action.codes), "hours": action.hours, "blocks": action.blocks,
            "apis": sorted({f.api for f in action.findings if f.code in _SUPPORT}),
            "places": [f"{f.path}:{f.span.line}" for f in action.findings][:5],
        }
        for action in actions_of(result.findings)
        if action.blocks in ("import", "first step")
    ]  # fmt: skip


def main() -> int:
    """Print the stops and their counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torch-version", default="2.1")
    parser.add_argument("--every", type=int, default=1, help="take each N-th of the ports")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    chosen = [
        path for path in known_ports.roots(given.folder)
        if known_ports.left_out(path.relative_to(given.folder).as_posix())
    ][:: given.every]  # fmt: skip
    rows: dict[str, list[dict[str, Any]]] = {}
    support, apis = 0, Counter[str]()
    for path in chosen:
        name = path.relative_to(given.folder).as_posix()
        rows[name] = stops(path, given.torch_version)
        about = [row for row in rows[name] if set(row["codes"]) & set(_SUPPORT)]
        support += len(about)
        apis.update(api for row in about for api in row["apis"])
        for row in about:
            print(f"{name}: {row['title']} ({', '.join(row['apis'])}): {', '.join(row['places'])}")
    total = sum(map(len, rows.values()))
    with_any = sum(any(set(r["codes"]) & set(_SUPPORT) for r in each) for each in rows.values())
    print(f"torch {given.torch_version}: {len(chosen)} ports, {total} actions that stop, {support} because of APIs "
          f"in {with_any} ports: {dict(apis.most_common())}")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
