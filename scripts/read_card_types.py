"""Reads which types the operators of an NPU take, from sources, into scripts/facts/card_types.json.

    python scripts/read_card_types.py OP_PLUGIN OPS_NN OPS_MATH [--jobs N]

The arguments are checkouts of Ascend/op-plugin, hicann/ops-nn and hicann/ops-math. Each operator that op-plugin
registers is followed through op-plugin's function into the functions of CANN that it calls, with each type for each
tensor, on each card (scripts/card_types/). What is refused on every way is kept, with CANN's function, its argument and
its list, and what certainly runs on the AI CPU. What is not understood is left out. It takes some minutes a card;
nothing of the sources is compiled, run or copied but names of functions, arguments and types. Then run `build_all.py`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from build_card_types import INDICES  # noqa: E402
from card_types import operators, sources  # noqa: E402
from card_types.values import CHIPS  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402

#: What is followed: every card with the newest torch, and one card with older ones.
READ = [(TORCH_VERSIONS[-1], card) for card in CHIPS] + [(version, "910B") for version in (TORCH_VERSIONS[0], "2.8")]
Row = dict[str, Any]


def followed(folders: tuple[str, str, str], version: str, card: str) -> dict[str, dict[str, Row]]:
    """operator -> argument -> what becomes of types, for one version and card."""
    plugin, *cann = map(Path, folders)
    major, minor = map(int, version.split("."))
    trial = operators.Trial(sources.op_plugin(plugin, (major, minor)), sources.cann(*cann), CHIPS[card])
    found: dict[str, dict[str, Row]] = {}
    for operator in operators.registered(plugin, version):
        for argument, dtype, outcome in operators.tried(operator, trial):
            row = found.setdefault(operator.name, {}).setdefault(argument, {})
            refusal = outcome.refusal
            if refusal is None:
                row.setdefault("cpu", []).append(dtype)
                continue
            row.setdefault("refuses", []).append(dtype)
            if refusal.takes or "function" not in row:
                row |= {"function": refusal.function, "argument": refusal.argument, "path": refusal.path}
                row["takes"] = list(refusal.takes)
    return {name: dict(kept(name, rows)) for name, rows in found.items()}


def kept(name: str, rows: dict[str, Row]) -> Iterator[tuple[str, Row]]:
    """Rows that can be true: no argument that is computed with refuses float32, and no output is told of."""
    for argument, row in rows.items():
        if argument in ("values", "out", "result", "self_out"):
            continue
        wrong = "float32" in row.get("refuses", ()) and not (row["takes"] and "float32" not in row["takes"])
        if argument not in INDICES and wrong:
            print(f"{name}({argument}): not understood", file=sys.stderr)
            continue
        yield argument, row


def head(folder: Path) -> str:
    """The commit of a checkout and its date; empty for a folder without git."""
    command = ["git", "-C", str(folder), "log", "-1", "--format=%h %cs"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def facts(
    folders: tuple[str, str, str], sources_read: dict[str, str], jobs: int, wanted: list[tuple[str, ...]]
) -> Row:
    """All facts: operators -> argument -> list of rows, each with the versions and cards that it holds for. What was
    read before of the same commits, of other versions and cards, is kept."""
    with ProcessPoolExecutor(jobs) as pool:
        results = list(pool.map(followed, [folders] * len(wanted), *zip(*wanted, strict=True)))
    before = fact_store.read("card_types")
    if before["sources"] != sources_read:
        before = {"followed": [], "operators": {}}
    again = {f"{version}:{card}" for version, card in wanted}
    found: dict[str, dict[str, list[Row]]] = {}
    for name, arguments in before["operators"].items():
        for argument, rows in arguments.items():
            for row in rows:
                on = [each for each in row["on"].split() if each not in again]
                if on:
                    found.setdefault(name, {}).setdefault(argument, []).append({**row, "on": " ".join(on)})
    for (version, card), operators_of in zip(wanted, results, strict=True):
        for name, rows in sorted(operators_of.items()):
            for argument, row in rows.items():
                listed = found.setdefault(name, {}).setdefault(argument, [])
                row = {key: " ".join(value) if isinstance(value, list) else value for key, value in row.items()}
                same = next((each for each in listed if {k: v for k, v in each.items() if k != "on"} == row), None)
                if same is None:
                    listed.append(same := {**row, "on": ""})
                same["on"] = " ".join(sorted({*same["on"].split(), f"{version}:{card}"}))
    for arguments in found.values():
        for rows in arguments.values():
            rows.sort(key=lambda row: row["on"])
    return {
        "about": "What operators of torch make of types of tensors on an NPU, read from C++ by "
        "scripts/read_card_types.py. `*`: all tensors that are computed with have the type. `refuses`: the call "
        "fails; `takes`: the list of the source; `cpu`: it runs on the AI CPU of the card, right and slow. `on`: "
        "the versions of torch and the cards that were followed.",
        "sources": sources_read,
        "followed": sorted({*before["followed"], *again}),
        "operators": {name: dict(sorted(arguments.items())) for name, arguments in sorted(found.items())},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs=3, type=Path, metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], metavar="VERSION:CARD", help="not all; others are kept")
    parser.add_argument("--heads", nargs=3, help="the commits, for folders without git")
    arguments = parser.parse_args()
    folders = tuple(str(folder) for folder in arguments.folders)
    assert len(folders) == 3
    wanted = [tuple(each.split(":")) for each in arguments.only] or READ
    heads = arguments.heads or [head(folder) for folder in arguments.folders]
    names = ("Ascend/op-plugin", "hicann/ops-nn", "hicann/ops-math")
    table = facts(folders, dict(zip(names, heads, strict=True)), arguments.jobs, wanted)
    fact_store.write("card_types", table)
    print(f"{len(table['operators'])} operators: scripts/facts/card_types.json")


if __name__ == "__main__":
    main()
