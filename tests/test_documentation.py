"""What the documents say about the program is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from transplt import __version__

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES]
#: Pages that somebody reads from the top; tables and what scripts write lie in docs/reference.
USER_PAGES = [page for page in PAGES if page.parent.name == "docs" and page.name != "architecture.md"]
#: Words of a user's page.
LONGEST = 2400


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def anchors(document: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and the site make them, and those that it sets itself."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", each) for each in re.findall(r"^#+ (.*)$", text, re.M)]
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings} | {
        *re.findall(r'<a id="([^"]+)">', text)
    }


def test_links_lead_to_a_heading() -> None:
    lost = []
    for document in DOCUMENTS:
        text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
            page = document.parent / target if target else document
            if "://" not in target and anchor not in anchors(page):
                lost.append(f"{document.name}: {target}#{anchor}")
    assert not lost


def test_pages_stay_short() -> None:
    """What a reader can take in; measurements and history belong to docs/reference."""
    words = {name: len((ROOT / name).read_text(encoding="utf-8").split()) for name in ("README.md", "CHANGELOG.md")}
    assert words["README.md"] <= 1000 and words["CHANGELOG.md"] <= 700, words
    architecture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(architecture.splitlines()) <= 250 and len(architecture.split()) <= 4000
    assert len(USER_PAGES) <= 31
    lengths = {page.name: len(page.read_text(encoding="utf-8").split()) for page in USER_PAGES}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


@pytest.mark.parametrize("page", USER_PAGES, ids=lambda path: path.name)
def test_a_page_begins_with_an_example(page: Path) -> None:
    first = page.read_text(encoding="utf-8").splitlines()[:20]
    assert any(line.startswith(("```", "    ")) for line in first)


def test_the_site_shows_every_page_once() -> None:
    shown = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    there = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    assert sorted(shown) == sorted([*there, "diagnostics/index.md"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_named_files_exist(document: Path) -> None:
    """Paths in code spans, such as `transplt/syntax/scan.py`."""
    pattern = r"`((?:transplt|rules|tests|samples|docs|scripts|benchmarks|\.ci)/[\w./-]+)`"
    for name in re.findall(pattern, document.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), name


def test_pages_that_messages_name_exist() -> None:
    """Pages at the top of docs/; `docs/npu.md` is a name that other projects give theirs."""
    tables = [*(ROOT / "rules/errors").glob("*.json"), ROOT / "rules/support/error_forms.json"]
    for path in [*(ROOT / "transplt").rglob("*.py"), *tables, ROOT / ".pre-commit-hooks.yaml"]:
        for name in re.findall(r"(?<![\w./-])docs/\w[\w-]*\.md", path.read_text(encoding="utf-8")):
            assert name == "docs/npu.md" or (ROOT / name).is_file(), f"{path.relative_to(ROOT)}: {name}"


def test_readme_options_are_those_of_the_command() -> None:
    command = [sys.executable, "-m", "transplt", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("### Options")[1].split("\n## ")[0]
    named = re.findall(r"`(--?[a-z][a-z-]*)`", section)
    assert len(named) >= 8
    for option in named:
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", done.stdout), option


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    """Each version has one heading, with the day of its release; the first one may be without."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    pattern = r"\d+\.\d+\.\d+ - (\d{4}-\d\d-\d\d|unreleased)"
    assert all(re.fullmatch(pattern, each) for each in headings), headings
    versions = [tuple(map(int, each.split(" - ")[0].split("."))) for each in headings]
    assert versions == sorted(set(versions), reverse=True)
    assert headings[0].startswith(f"{__version__} - ")
    assert not any("unreleased" in each for each in headings[1:])


def test_no_file_holds_both_sides_of_a_merge() -> None:
    """A marker that a merge left behind is read by people, and by nothing that would stop."""
    suffixes = {".py", ".md", ".json", ".sh", ".toml", ".txt", ".yml", ".yaml"}
    marker = re.compile(r"^(?:<{7}|>{7}) \S", re.M)
    folders = ("docs", "rules", "transplt", "scripts", "skills", "tests", "samples", "benchmarks")
    every = (path for top in (*(ROOT.joinpath(name).rglob("*") for name in folders), ROOT.glob("*")) for path in top)
    files = [path for path in every if path.suffix in suffixes and path.is_file()]
    held = [path for path in files if "corpus" not in path.parts and marker.search(path.read_text("utf-8", "replace"))]
    assert len(files) > 1000 and not held
