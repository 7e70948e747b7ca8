"""Writes rules/support/torch_npu_wheels.json: which torch_npu there is for a release of torch, and for which Pythons.

usage: python scripts/list_torch_npu_wheels.py

Asks the index of pip, by the links that pip prints while it looks for a release that is not there. Of a release of
torch the newest torch_npu counts, whose name begins with it (2.10.0.post7 is for torch 2.10.0: it says so itself).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path

from packaging.version import Version

TABLE = Path(__file__).resolve().parent.parent / "rules" / "support" / "torch_npu_wheels.json"
MACHINES = ("x86_64", "aarch64")
ABOUT = (
    "The newest torch_npu for each release of torch, and the CPythons that it has a wheel for on each of the machines. "
    "transplt/proof/launch/torch_npu_wheel.py reads it; scripts/list_torch_npu_wheels.py writes it."
)
_WHEEL = re.compile(r"/torch_npu-([\d.]+(?:post\d+)?)-cp3(\d+)-cp3\d+-manylinux\S*_(x86_64|aarch64)\.whl")


def main() -> None:
    pip = [sys.executable, "-m", "pip", "download", "-vv", "--no-deps", "--no-cache-dir", "torch-npu==0.0.1"]
    printed = subprocess.run(pip, capture_output=True, text=True, check=False).stdout
    wheels: dict[Version, set[tuple[int, str]]] = defaultdict(set)
    for version, minor, machine in _WHEEL.findall(printed):
        wheels[Version(version)].add((int(minor), machine))
    rows: dict[str, dict[str, object]] = {}
    for version in sorted(wheels):
        built = wheels[version]
        minors = sorted({minor for minor, _ in built})
        pythons = [minor for minor in minors if {(minor, machine) for machine in MACHINES} <= built]
        rows[version.base_version] = {"torch_npu": str(version), "pythons": [f"3.{minor}" for minor in pythons]}
    today = f"pypi.org/simple/torch-npu, {date.today():%d %B %Y}"
    head = json.dumps({"_meta": {"about": ABOUT, "sources": {"wheels": today}}, "machines": MACHINES}, indent=1)
    lines = ",\n".join(f"  {json.dumps(release)}: {json.dumps(row)}" for release, row in rows.items())
    TABLE.write_text(f'{head[:-2]},\n "wheels": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
