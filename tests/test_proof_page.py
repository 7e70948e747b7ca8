"""docs/reference/proof.md: what counts, what does not, and what it says. What it is made of: benchmarks/proof.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(name="page")
def _page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    before = set(sys.modules)
    from proof_page import page

    yield page
    for name in set(sys.modules) - before:
        if name.startswith(("proof_", "many_cards")):
            del sys.modules[name]


def _result(
    script: str, verdict: str, way: str = "plain", stop: str | None = None, operators: int = 9
) -> dict[str, Any]:
    versions = {"date": "2026-01-02", "commit": "abcdef0", "transplt": "1", "torch": "2", "python": "3", "steps": "8"}
    told = {"script": script, "kind": "k", "way": way, "verdict": verdict, "sentence": f"said of {verdict}"}
    ran = {"original": {"stop": stop, "steps": 1, "operators": operators}, "comparisons": [{"steps": 4}]}
    return {**told, **versions, **({} if verdict == "not written" else ran)}


GAN = "PyTorch-GAN/implementations/gan/gan.py"
MNIST = "examples/mnist/main.py"
REGRESSION = "examples/regression/main.py"
CIFAR = "pytorch-cifar/main.py"


def test_shares_are_of_scripts_whose_original_runs_on_a_card(page: Any) -> None:
    text = page(
        [
            _result(MNIST, "equal"),
            _result(GAN, "differs"),
            _result(REGRESSION, "not run", operators=0),
            _result(CIFAR, "not run", stop="main.py:1: ModuleNotFoundError: x"),
        ]
    )
    assert "| of 4 scripts | | share |" in text
    assert "| its original runs here and computes on a card | 2 | 50 % |" in text
    assert "| a package is missing that nothing stands for here | 1 | 25 % |" in text
    assert "| nothing of it is on a card | 1 | 25 % |" in text
    assert "| the migration | 2 | 1 | 50 % | 0 | 1 | 0 | 0 |" in text
    assert "- pytorch-cifar/main.py: the original stops: main.py:1: ModuleNotFoundError: x" in text
    assert "- Nothing of these is on a card: examples/regression/main.py (not run)" in text


def test_what_was_not_written_does_not_count(page: Any) -> None:
    text = page([_result(MNIST, "equal"), _result(MNIST, "not written", "amp")])
    assert "| `--amp native` | 0" not in text
    assert "- `--amp native`: said of not written (examples/mnist/main.py)" in text


def test_what_is_not_equal_is_said(page: Any) -> None:
    text = page([_result(MNIST, "equal"), _result(MNIST, "stops", "amp")])
    assert "- examples/mnist/main.py, `--amp native`: **stops**. said of stops" in text


def test_what_was_not_tried_is_not_listed(page: Any) -> None:
    text = page([_result(MNIST, "equal"), _result(GAN, "equal", "amp")])
    assert "gan" not in text.lower()


def test_what_an_equal_leaves_out_is_said(page: Any) -> None:
    result = _result(MNIST, "equal", "distributed")
    result["comparisons"] = [{"steps": 4}, {"not_compared": ["random numbers are drawn (main.py:7), and each rank"]}]
    text = page([_result(MNIST, "equal"), result])
    assert "processes: random numbers are drawn, and each rank (examples/mnist/main.py)" in text


def test_the_page_in_the_documents_is_made_of_all_that_is_known(page: Any) -> None:
    folder = ROOT / "docs" / "reference"
    known = json.loads((folder / "proof.json").read_text(encoding="utf-8"))
    assert (folder / "proof.md").read_text(encoding="utf-8") == page(list(known.values()))
