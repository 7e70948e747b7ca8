"""Which APIs ported programs that train use: scripts/facts/known_ports.json.

    git -C CLONE archive 6a2804a3 PyTorch | tar x -C FOLDER
    python scripts/known_ports.py FOLDER

FOLDER holds the tree of Ascend/ModelZoo-PyTorch at the commit below. A port is an outermost folder below `PyTorch/`
with a README, a list of requirements or a level file, and 4 to 90 Python files, in which some file names the NPU and
some file calls `backward`. An API counts once a port, where a file outside of tests and documentation uses it. Every
third port, by the hash of its path (`left_out`), is not counted: `benchmarks/stops.py` measures on these.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402

from transplt.engine.analysis.verdicts import runs  # noqa: E402

COMMIT, DATE = "6a2804a358a5b18e3dac1ab902f41f88e240b00f", "2023-12-15"
_MARKS = ("README.md", "README_raw.md", "requirements.txt", "modelzoo_level.txt")
_NPU = re.compile(rb"torch_npu|torch\.npu|\.npu\(|['\"]npu['\":]")
_LEAST, _MOST = 4, 90


def roots(folder: Path) -> list[Path]:
    """The ports' folders, sorted."""
    marked = sorted({path.parent for mark in _MARKS for path in (folder / "PyTorch").rglob(mark)})
    marked = [path for path in marked if path != folder / "PyTorch"]
    found: list[Path] = []
    for path in marked:
        if not found or found[-1] not in path.parents:
            found.append(path)
    return [path for path in found if _LEAST <= sum(1 for _ in path.rglob("*.py")) <= _MOST and _trains(path)]


def _trains(root: Path) -> bool:
    npu = backward = False
    for path in root.rglob("*.py"):
        data = path.read_bytes() if path.is_file() else b""
        npu, backward = npu or _NPU.search(data) is not None, backward or b".backward(" in data
    return npu and backward


def left_out(name: str) -> bool:
    """True for every third port, by the hash of its path in the repository."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 3 == 0


def used(root: Path) -> frozenset[str]:
    """The APIs that the files of a port use, those of tests and documentation left out; each file is read by itself."""
    from transplt.base.text.source import UnreadableSource
    from transplt.engine.analysis.api_uses import api_uses, chains
    from transplt.engine.analysis.receivers import Receivers
    from transplt.syntax.files import File
    from transplt.syntax.modules import named_aside
    from transplt.syntax.names import Names

    found: set[str] = set()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        data = path.read_bytes() if path.is_file() else b""
        if named_aside(name) or b"torch" not in data:
            continue
        try:
            scan = File.of(name, data).scan
        except UnreadableSource:
            continue
        names = Names(scan, {})
        uses = api_uses(scan, list(chains(scan, names)), Receivers(scan, names, {}))
        found |= {use.api for use in uses if runs(use)}
    return frozenset(found)


def doubted() -> frozenset[str]:
    """APIs of which the documentation of some version says no, or names a limit."""
    found = set()
    for table in fact_store.verdicts().values():
        found |= {name for name, entry in table.items() if entry is not None and entry["supported"] is not True}
    return frozenset(found)


def counted(folder: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """The ports that count, by their paths, with what they use."""
    for root in roots(folder):
        name = root.relative_to(folder).as_posix()
        if not left_out(name):
            yield name, used(root)


def main(folder: Path) -> None:
    """Count, and write the facts."""
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    ports = 0
    kept = doubted()
    for name, apis in counted(folder):
        ports += 1
        for api in apis & kept:
            counts[api] += 1
            first.setdefault(api, name)
        print(f"{ports} {name}: {len(apis)}", file=sys.stderr)
    table: dict[str, Any] = {
        "about": "Ports of Ascend/ModelZoo-PyTorch in which an API is used, outside of tests and documentation, with "
        "the first of them; only APIs of which the documentation of some version says no or names a limit. Every third "
        "port (sha256 of its path modulo 3 is 0) is left out, to measure on.",
        "source": f"Ascend/ModelZoo-PyTorch@{COMMIT[:8]}",
        "date": DATE,
        "ports": ports,
        "apis": {api: [counts[api], first[api]] for api in sorted(counts)},
    }
    fact_store.write("known_ports", table)
    print(json.dumps({"ports": ports, "apis": len(counts)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
