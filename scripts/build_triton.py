"""Builds rules/support/triton_types.json, what an NPU refuses of Triton's operations: `python scripts/build_triton.py`.

And rules/support/triton_names.json, from scripts/facts/triton_libdevice.json: which names triton-ascend has.
Facts: scripts/facts/triton.json, read from triton-ascend's documentation, and scripts/facts/triton_compiled.json, what
its compiler says of each operation and type (scripts/triton_battery.py). Where both speak, the compiler is believed.
The static check and the emulated card read the one table (`transplt.rules.triton`, `npu_emulator.triton`). The output
is the same for the same input.
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
_COMPILED = "bishengir-compile of ascendnpu-ir"
_DOCUMENTED = "triton-ascend: docs/zh/triton_api/"


def _source(page: str) -> str:
    return f"triton-ascend: {page}" if page.startswith(("docs/", "python/")) else _DOCUMENTED + page


#: What the front end of the battery refuses for its age, not for the card: nothing is said of these.
_TOO_OLD = {"950": ("argmax", "argmin")}
#: Operations that the compiler was asked for under another name.
_SAME = {"view": "reshape", "broadcast": "broadcast_to"}
_FLOAT8 = ("float8e4", "float8e5")


def _refused(name: str, card: str, compiled: Row, documented: list[str], neither: list[str]) -> list[str] | None:
    """The types that an operation refuses on a card, by the compiler; None where that was not asked."""
    found = compiled["operations"].get(_SAME.get(name, name), {}).get(card)
    if found is None:
        return None
    types = found.split()
    if name in _TOO_OLD.get(card, ()):
        return []
    if card == "950":
        types = [each for each in types if each not in _FLOAT8]
    # What a GPU crosses out, too, no kernel does; the documentation of one operation may be of another form of it.
    return [each for each in types if each not in neither or each in documented]


def _operation(name: str, row: Row, compiled: Row) -> Row:
    documented, neither = row.get("refused", "").split(), row.get("on neither", "").split()
    refused = {card: _refused(name, card, compiled, documented, neither) for card in ("910B", "950")}
    known = {card: types for card, types in refused.items() if types}
    if refused["910B"] is None and documented:
        known["910B"] = documented
    return {
        "refused": known,
        "undocumented": [each for each in documented if refused["910B"] is not None and each not in refused["910B"]],
        "source": _source(row["page"]),
    }


def _casts(card: str, compiled: Row) -> Row:
    """Type -> the types that none of it is cast to, both of which are there."""
    prefix = "cast to "
    found: dict[str, list[str]] = {}
    every = {name.removeprefix(prefix): row[card].split() for name, row in compiled["operations"].items()
             if name.startswith(prefix)}  # fmt: skip
    gone = {name for name, sources in every.items() if name in sources}
    for target, sources in every.items():
        for source in sources:
            if not {source, target} & gone and source not in _FLOAT8:
                found.setdefault(source, []).append(target)
    return found


def table(facts: Row, compiled: Row) -> Row:
    """The table: see its `_meta`."""
    rows = {name: row for name, row in facts["operations"].items() if name != "cast"}
    operations = {name: _operation(name, row, compiled) for name, row in rows.items()}
    gone = {card: [each for each in (*_FLOAT8, "float64") if card == "910B" or each not in _FLOAT8]
            for card in ("910B", "950")}  # fmt: skip
    for name in compiled["operations"]:
        if name not in operations and " " not in name:
            operations[name] = {**_operation(name, {"page": ""}, compiled), "source": _COMPILED}
    operations["cast"] = {
        "refused": gone, "undocumented": [], "source": _source(facts["operations"]["cast"]["page"]),
    }  # fmt: skip
    values = {
        name: {"of": row["of"].split(), "takes": row["takes"].split(), "source": _source(row["page"])}
        for name, row in facts["values"].items()
    }
    cards = {}
    for name, row in facts["cards"].items():
        has = {key: value for key, value in compiled["chips"][name].items() if key != "chip"}
        cards[name] = {**has, "arch": row["arch"], "types": row["types"], "source": row["source"]}
    spoke = ", ".join(f"{name} {version}" for name, version in compiled["versions"].items())
    return {
        "_meta": {
            "about": "What an NPU refuses of Triton's operations; made by scripts/build_triton.py. `operations`: the "
            "operation, as in `tl.NAME` (`make_block_ptr`: a load or store by a block pointer); `refused` are, by "
            "card, the types that its compiler refuses, or the documentation where the compiler was not asked; "
            "`undocumented` those that the documentation refuses on A2 and A3 and that compile: compiled is not "
            "right. `casts`: of a type, to which types none is made. `values`: what an argument of that name takes. "
            "`cards`: bytes of the memories and the cores of a card as the compiler has them, and the card whose "
            "`types` hold. `documented_cards`: of which the documentation speaks. `grid`: the largest product of a "
            "grid; `quotient`: the largest number that `//` and tl.cdiv of int32 tiles divide exactly. An operation "
            "or type that is not here is not known to be refused.",
            "compiled": f"{spoke} ({compiled['date']}), up to the plan of memory; argmax and float8 on 950 are left "
            "out: this front end is older than what that card runs",
        },
        "documented_cards": facts["documented cards"].split(),
        "grid": {"most": facts["grid"]["most"], "source": _source(facts["grid"]["page"])},
        "quotient": {"most": facts["quotient"]["most"], "source": _source(facts["quotient"]["page"])},
        "cards": cards,
        "values": values,
        "casts": {card: _casts(card, compiled) for card in ("910B", "950")},
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
    compiled = fact_store.read("triton_compiled")
    build_api_support.write(rules / "support" / "triton_names.json", names(fact_store.read("triton_libdevice")))
    build_api_support.write(rules / "support" / "triton_types.json", table(fact_store.read("triton"), compiled))


if __name__ == "__main__":
    main()
