"""Builds rules/support/triton_types.json, what an NPU refuses of Triton's operations: `python scripts/build_triton.py`.

And rules/support/triton_names.json, from scripts/facts/triton_libdevice.json: which names triton-ascend has.
Facts: scripts/facts/triton.json, read from triton-ascend's documentation. The static check and the emulated card read
the one table (`transplt.rules.triton`, `npu_emulator.triton`). The output is the same for the same input.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import build_api_support  # noqa: E402
import fact_store  # noqa: E402

Row = dict[str, Any]
_DOCUMENTED = "triton-ascend: docs/zh/triton_api/"


def _source(page: str) -> str:
    return f"triton-ascend: {page}" if page.startswith(("docs/", "python/")) else _DOCUMENTED + page


def table(facts: Row) -> Row:
    """The table: see its `_meta`."""
    operations = {
        name: {
            "refused": row.get("refused", "").split(),
            "on_neither": row.get("on neither", "").split(),
            "source": _source(row["page"]),
        }
        for name, row in facts["operations"].items()
    }
    values = {
        name: {"of": row["of"].split(), "takes": row["takes"].split(), "source": _source(row["page"])}
        for name, row in facts["values"].items()
    }
    return {
        "_meta": {
            "about": "What an NPU refuses of Triton's operations; made by scripts/build_triton.py. `operations`: the "
            "operation, as in `tl.NAME` (`make_block_ptr`: a load or store by a block pointer); `refused` are types "
            "that it has on a GPU alone, `on_neither` those that its page crosses out for a GPU too. `values`: what an "
            "argument of that name takes. `cards`: bytes of the unified buffer and the cores of a card (0: not known); "
            "the types hold for `typed_cards`. `grid`: the largest product of a grid; `cdiv`: the largest number that "
            "it divides. An operation or type that is not here is not known to be refused.",
        },
        "typed_cards": facts["typed cards"].split(),
        "grid": {"most": facts["grid"]["most"], "source": _source(facts["grid"]["page"])},
        "cdiv": {"most": facts["cdiv"]["most"], "source": _source(facts["cdiv"]["page"])},
        "cards": facts["cards"],
        "values": values,
        "operations": operations,
    }


def _module(facts: Row, release: str, *later: str) -> Row:
    """The libdevice of a release; in tl.math what the later ones have, too."""
    math = set(facts["math of releases"][release]).intersection(*(facts["math of releases"][each] for each in later))
    return {"module": facts["modules"][release], "functions": facts["functions"][release], "math": sorted(math)}


def names(facts: Row) -> Row:
    """The table of names: see its `_meta`."""
    return {
        "_meta": {
            "about": "Names of triton-ascend; made by scripts/build_triton.py. `modules`: the module of libdevice, by "
            "the oldest CANN of the releases that have it; `functions`: what it holds there, `math`: what these have "
            "in tl.math beside the functions of `math`, which all have; `cuda`: of libdevice for CUDA; "
            "`options`: what a launch takes beside its kernel's parameters.",
            "source": f"{facts['source']} ({', '.join(facts['commits'].values())})",
        },
        "modules": {
            "8": _module(facts, "3.2.0"),
            "9": _module(facts, "3.2.1", "main"),
        },
        "math": facts["math"],
        "cuda": facts["cuda"],
        "options": facts["options"],
    }


def main(rules: Path = ROOT / "rules") -> None:
    """Write the tables."""
    build_api_support.write(rules / "support" / "triton_names.json", names(fact_store.read("triton_libdevice")))
    build_api_support.write(rules / "support" / "triton_types.json", table(fact_store.read("triton")))


if __name__ == "__main__":
    main()
