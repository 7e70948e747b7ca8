"""The pictures of README.md show what the program writes and prints; no browser is needed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from scripts import readme_pictures
from scripts.readme_pictures import PICTURES, PROVE, ROOT, main, pictures, report_picture, terminal_picture
from tests import forked

README = (ROOT / "README.md").read_text(encoding="utf-8")


def texts(name: str) -> list[str]:
    """The texts of a picture, line by line."""
    root = ET.fromstring((PICTURES / name).read_text(encoding="utf-8"))
    return ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_of_the_report_is_of_the_report_of_today() -> None:
    assert main([]) == 0, "python scripts/readme_pictures.py --write"


@pytest.mark.torch
@pytest.mark.slow  # its words are those of tests/prove/test_text.py, that it is equal of test_golden_samples.py there
def test_the_picture_of_the_proof_is_what_prove_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readme_pictures, "_typed", lambda folder, *words: forked.transplt(words, folder)[1])
    assert pictures(proof=True)["proof.svg"] == (PICTURES / "proof.svg").read_text(encoding="utf-8")


def test_the_proof_begins_with_its_command_and_is_equal() -> None:
    command, verdict, *_ = texts("proof.svg")
    assert command == f"$ {PROVE}" and verdict.startswith("transplt prove: equal: ")


@pytest.mark.parametrize("name", ["report.svg", "proof.svg"])
def test_the_readme_shows_a_picture_that_needs_nothing_and_is_dark_where_the_page_is(name: str) -> None:
    text = (PICTURES / name).read_text(encoding="utf-8")
    assert f"](docs/pictures/{name})" in README
    assert "(prefers-color-scheme: dark)" in text
    assert not re.search(r"<script|href=\"http|url\(|@import", text)


def test_a_page_becomes_xml() -> None:
    page = (
        "<html><head><style>a > b { color: red }</style></head><body class='x' hidden><main><input disabled>"
        '<svg viewBox="0 0 1 1"><rect x="1"/></svg>1 &lt; 2<section aria-labelledby="h-rest">left out</section>'
    )
    made = report_picture(page)
    body = ET.fromstring(made).find(".//{http://www.w3.org/1999/xhtml}body")
    assert body is not None and "".join(body.itertext()) == "1 < 2"
    assert body.find(".//{http://www.w3.org/2000/svg}svg").get("viewBox") == "0 0 1 1"  # type: ignore[union-attr]


def test_a_terminal_is_as_wide_as_its_longest_line() -> None:
    root = ET.fromstring(terminal_picture(["$ a < b", "equal: " + 93 * "x"]))
    assert float(root.get("width", "0")) >= 100 * 7.8
