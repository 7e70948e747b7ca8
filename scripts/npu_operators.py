"""Reads op-plugin's documentation of torch_npu's operators, and builds the table that `transplt explain` answers from.

    python scripts/npu_operators.py REPOSITORY COMMIT     read it again: a git repository of op-plugin, a commit of it
    python scripts/npu_operators.py                       build rules/support/npu_operators.json from the facts

Of each documented `torch_npu.npu_*` a fact tells what the page says in tables and marks: the cards, whether it is
beta, whether it is to go, and what torch calls are named in its place. What it is for stands there in our words and is
written by hand: reading again keeps it, and names operators that lack it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from build_tables import write  # noqa: E402

Entry = dict[str, Any]

FOLDER = "docs/zh/custom_APIs/torch_npu/"
_PAGE = re.compile(r"(\uff08beta\uff09)?torch_npu-(_?npu_\w+)\.md")
#: The products of a page's first table, as this project calls their cards.
_CARDS = (
    ("Ascend 950", "950"),
    ("Atlas A3", "A3"),
    ("Atlas A2", "A2"),
    ("A200I A2", "A2"),
    ("Atlas 200I/500 A2", "200I A2"),
    ("Atlas 训练系列", "910"),
    ("Atlas 推理系列", "310P"),
)
_PRODUCT = re.compile(r"^\s*\|\s*(.*?)\s*\|\s*√", re.MULTILINE)
_TO_GO = re.compile(r"^>.*计划废弃(.*)$", re.MULTILINE)
_NAME = re.compile(r"\b(?:torch|torch_npu)(?:\.\w+)+|\btensor\.to\b")
#: What the pages call so and torch calls otherwise.
_NAMED = {"tensor.to": "torch.Tensor.to", "torch.view": "torch.Tensor.view", "torch.slice": "torch.narrow"}
#: Words of a notice behind which a call is named that takes the operator's place.
_INSTEAD = re.compile(r"可以使用|可使用|建议使用")


def git(repository: str, *words: str) -> str:
    """What git says of a repository. CalledProcessError where it cannot."""
    command = ["git", "-c", "core.quotepath=off", "-C", repository, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_page(text: str, beta: bool) -> Entry:
    """What a page of the documentation says in its table of products and its notice."""
    products = _PRODUCT.findall(text)
    cards = [card for begin, card in _CARDS if any(begin in product.replace("<term>", "") for product in products)]
    fact: Entry = {"cards": list(dict.fromkeys(cards))}
    if beta:
        fact["beta"] = True
    notice = _TO_GO.search(text)
    if notice:
        fact["deprecated"] = True
        said = _INSTEAD.split(notice[1], maxsplit=1)
        names = [_NAMED.get(name, name) for name in _NAME.findall(said[1])] if len(said) > 1 else []
        if names:
            fact["instead"] = list(dict.fromkeys(names))
    return fact


def read_again(repository: str, commit: str) -> list[str]:
    """Writes the facts of a commit; the names of operators for which nobody wrote what they are for."""
    known = fact_store.read("npu_operators")
    held = {name: fact["for"] for name, fact in known["operators"].items() if "for" in fact}
    listed = git(repository, "ls-tree", "--name-only", commit, FOLDER).splitlines()
    operators: Entry = {}
    for path in listed:
        match = _PAGE.fullmatch(path.rpartition("/")[2])
        if match:
            name = match[2]
            fact = read_page(git(repository, "show", f"{commit}:{path}"), bool(match[1]))
            operators[name] = ({"for": held[name]} if name in held else {}) | fact
    known["commit"] = git(repository, "rev-parse", commit).strip()[:8]
    known["operators"] = dict(sorted(operators.items()))
    fact_store.write("npu_operators", known)
    return [name for name, fact in known["operators"].items() if "for" not in fact]


def table(facts: Entry) -> Entry:
    """The table of rules/support: as the facts, under the names that are called, with where each was read."""
    source = f"{facts['repository']}@{facts['commit']}:{FOLDER}"
    return {
        "_meta": {
            "about": "Operators torch_npu.npu_* that op-plugin documents: what each is for, the cards that its page "
            "names, whether it is beta or to go, and what its page names in its place. Built from "
            "scripts/facts/npu_operators.json (scripts/npu_operators.py).",
            "source": source,
        },
        "operators": {f"torch_npu.{name}": fact for name, fact in facts["operators"].items()},
    }


def main(rules: Path = ROOT / "rules") -> None:
    """Write the table below `rules` from the facts."""
    write(rules / "support" / "npu_operators.json", table(fact_store.read("npu_operators")))


if __name__ == "__main__":
    if sys.argv[1:]:
        for unnamed in read_again(*sys.argv[1:]):
            print(f"say what it is for: {unnamed}")
    main()
