"""Writes docs/reference/comparison.md: transplt beside other tools, and figures of a run.

    python scripts/comparison_table.py               write the page
    python scripts/comparison_table.py --check       exit 1 when it is stale, or transplt does not do what it says
    python scripts/comparison_table.py FOLDER...     print the figures of other projects; nothing is written

Each thing that the page says transplt does with code is migrated, and has to come out so (`shows` in
docs/reference/comparison.json). What it says of other tools are facts with their sources in that file; what
transfer_to_npu replaces comes from its wheels (scripts/facts/wheel_lists.json). The figures are those of the samples,
and those of public scripts what benchmarks/against.py found.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts import fact_store  # noqa: E402
from transplt import migrate_tree  # noqa: E402

PAGE, FACTS = ROOT / "docs" / "reference" / "comparison.md", ROOT / "docs" / "reference" / "comparison.json"
#: What benchmarks/against.py found of public scripts.
AGAINST = ROOT / "docs" / "reference" / "against.json"
_WAYS = {
    "theirs": "transfer_to_npu on the original", "ours": "transplt", "both": "with each other",
}  # fmt: skip
_WORDS = ("equal", "runs", "differs", "stops", "not run")
#: Characters of a cell that are shown of why a program stops, or how it differs.
_REASON = 160
#: The projects that the page has figures of.
SAMPLES = ("quick_start", "image_classifier", "text_model", "distributed/launched")
_COLUMNS = (
    "project", "files", "CUDA tokens", "outside of Python", "converted", "for a person", "stay for a reason", "edits",
    "findings",
)  # fmt: skip


def shown_wrong(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """What transplt does not do as the page says, one sentence for each row."""
    for row in rows:
        shows = row.get("shows")
        if shows is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "train.py"
            script.write_text(shows["before"], encoding="utf-8")
            result = migrate_tree(script, Path(folder) / "out", **shows.get("settings", {}))
            text = (result.output / "train.py").read_text(encoding="utf-8")
        told = sorted({each.code for each in result.findings if not each.applied and each.path == "train.py"})
        if shows["after"] not in text:
            yield f"{row['what']}: {shows['after']!r} is not in what came out:\n{text}"
        missing = set(shows["finds"]) - set(told)
        if missing or (not shows["finds"] and any(each.open for each in result.findings if each.path == "train.py")):
            yield f"{row['what']}: {', '.join(shows['finds']) or 'nothing'} should be told, not {', '.join(told)}"


def without_source(document: dict[str, Any]) -> Iterator[str]:
    """The cells of other tools that say something and do not say from where."""
    for row in document["rows"]:
        for tool in document["tools"]:
            if row[tool]["is"] and not row[tool]["source"]:
                yield f"{row['what']}: what is said of {tool} has no source"


def figures(folders: Sequence[tuple[str, Path]]) -> Iterator[str]:
    """The lines of a table: what becomes of the tokens of some projects."""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|---" * len(_COLUMNS) + "|"
    for name, folder in folders:
        with tempfile.TemporaryDirectory() as out:
            result = migrate_tree(folder, out)
        tokens = result.tokens
        outside = sum(record.tokens.found for record in result.files if record.kind != "python")
        left = len({(each.path, each.span.line, each.code) for each in result.open_findings})
        cells = (
            name, len(result.files), tokens.found, outside, tokens.converted, tokens.manual + tokens.unknown,
            tokens.ignored, len(result.edits), left,
        )  # fmt: skip
        yield f"| {' | '.join(map(str, cells))} |"


def counted(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those whose original trains on a card, so that there is something to hold a program against."""
    return [row for row in rows if row["original"]["operators"] and row["original"]["steps"]]


def public(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The lines of two tables: how many scripts have which verdict each way, and what each comes to."""
    yield f"| of {len(rows)} scripts | {' | '.join(_WORDS)} |"
    yield "|---" * (len(_WORDS) + 1) + "|"
    for way, title in _WAYS.items():
        words = [row[way]["verdict"] for row in rows]
        yield f"| {title} | {' | '.join(str(words.count(word)) for word in _WORDS)} |"
    yield ""
    yield f"| script | {' | '.join(_WAYS.values())} |"
    yield "|---" * (len(_WAYS) + 1) + "|"
    for row in rows:
        yield f"| {row['script']} | {' | '.join(_came_to(row, way) for way in _WAYS)} |"


def _came_to(row: dict[str, Any], way: str) -> str:
    """`equal, 4 steps`, or the verdict with where and why."""
    word, sentence = row[way]["verdict"], row[way]["sentence"]
    if word == "equal":
        both = ", then both stop" if ", then both stop" in sentence else ""
        return f"equal, {sentence.partition(' compared')[0]}{both}"
    if way == "both":
        return word
    shown = sentence.replace("the migrated program: ", "").replace("the migrated program", "it").replace("|", "/")
    return f"{word}: {shown[:_REASON]}{'...' if len(shown) > _REASON else ''}"


def page() -> str:
    """The text of the page."""
    document = json.loads(FACTS.read_bytes())
    titles = [tool["title"] for tool in document["tools"].values()]
    lines = [f"| | transplt | {' | '.join(titles)} |", "|---" * (len(titles) + 2) + "|"]
    for row in document["rows"]:
        cells = [row["transplt"], *(row[tool]["is"] for tool in document["tools"])]
        lines.append(f"| {row['what']} | {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
    table = fact_store.read("wheel_lists")
    version = table["read"][-1]
    replaced = {
        f"{name}.{each}"
        for name, entry in table["lists"].items()
        if name.startswith("transfer_to_npu: ") and not name.endswith(("_kwargs_list", "torch_cuda_fn_white_list"))
        for each in fact_store.in_version(entry, version, table["read"])
    }
    tokens = figures([(f"`samples/{name}`", ROOT / "samples" / name / "cuda") for name in SAMPLES])
    head, which, said, ran = ("\n".join(document["text"][part]) for part in ("head", "which", "figures", "public"))
    said = said.format(version=version, names=len(replaced))
    scripts = [*json.loads(AGAINST.read_bytes()).values()]
    rows = counted(scripts)
    made = {"date": max(row["date"] for row in rows), "torch": max(row["torch"] for row in rows)}
    ran = ran.format(left=f"{len(scripts) - len(rows)} scripts are", **made)
    parts = (head, "\n".join(lines), which, said, "\n".join(tokens), ran, "\n".join(public(rows)))
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, check, or print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args(arguments)
    if given.folders:
        print(*figures([(folder.name, folder) for folder in given.folders]), sep="\n")
        return 0
    document = json.loads(FACTS.read_bytes())
    wrong = [*without_source(document), *shown_wrong(document["rows"])]
    for each in wrong:
        print(each, file=sys.stderr)
    text = page()
    stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
    if given.check and stale:
        print("docs/reference/comparison.md is stale: run scripts/comparison_table.py", file=sys.stderr)
    if not given.check:
        PAGE.write_text(text, encoding="utf-8", newline="\n")
    return int(bool(wrong) or (given.check and stale))


if __name__ == "__main__":
    sys.exit(main())
