"""Writes docs/coverage.md: for every measured pattern and trap, what the pairs of the tests show.

    python scripts/coverage_table.py           write the table
    python scripts/coverage_table.py --check   exit 1 when the table is stale, or a pattern has no test

Run from the top of the checkout. The tests that carry `@pattern(...)` are run, the codes of their pairs collected. The
comparison with ports by hand is a section of its own, see expert_table.py.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts import expert_table  # noqa: E402
from tests import harness  # noqa: E402
from transplt.rules.pages import load  # noqa: E402
from transplt.rules.rule import versions_of  # noqa: E402
from transplt.rules.versions import version_key
from transplt.rules.tables import rules_dir  # noqa: E402

TABLE = ROOT / "docs" / "coverage.md"
#: Codes of edits that accompany every other one.
_COMPANIONS = {"NPU403"}
#: Codes of codemods that hold from a later version on than 2.1.
_FIRST = {"NPU260": "2.6", "NPU261": "2.6"}
_HEAD = """# Coverage

What transplt does with the patterns (P) and traps (T) that were counted in 107 real projects. This table is generated
from the rules and from the input/output pairs in `tests/`: `python scripts/coverage_table.py`.
"Since" is the first torch (and torch_npu) version for which a rule
of that code holds. "Pairs" counts the pairs that rewrite something, "no-ops" those that leave the file as it is.

| | what | code | level | what happens | since | pairs | no-ops |
|---|---|---|---|---|---|---|---|
"""


class Recorder:
    """A pytest plugin that keeps, for each pattern, the codes that its tests showed."""

    def __init__(self) -> None:
        self.codes: dict[str, set[str]] = defaultdict(set)
        self.pairs: dict[str, int] = defaultdict(int)
        self.noops: dict[str, int] = defaultdict(int)
        self.failed = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        harness.RECORDS.clear()
        yield
        if hasattr(getattr(item, "function", None), "hypothesis") or item.get_closest_marker("skipif"):
            return  # what these show depends on the run
        names = {name for mark in item.iter_markers("pattern") for name in mark.args}
        for applied, left in harness.RECORDS:
            for name in names:
                self.codes[name] |= {*applied, *left}
                self.pairs[name] += bool(applied)
                self.noops[name] += not applied

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed += report.failed


def since() -> dict[str, str]:
    """The first torch version for which a built-in rule of a code holds."""
    first = dict(_FIRST)
    for path in sorted(rules_dir().glob("*.json")):
        if path.name == "schema.json":
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        for kind, rules in document["rules"].items():
            for rule in rules:
                rule = {**document.get("defaults", {}).get(kind, {}), **rule}
                for version in versions_of(rule.get("versions")):
                    code = rule.get("code", "")
                    if code and (code not in first or version_key(version) < version_key(first[code])):
                        first[code] = version
    return first


def table(recorder: Recorder, names: dict[str, str]) -> str:
    """The document as text."""
    first = since()
    lines = []
    for name, what in names.items():
        codes = sorted(recorder.codes.get(name, set()) - _COMPANIONS) or ["-"]
        for index, code in enumerate(codes):
            page = load(code) if code != "-" else None
            level = page.level.value if page else "-"
            title = page.title if page else "stays as it is, with a reason in the account"
            head = f"| {name} | {what} " if index == 0 else "| | "
            counts = f"{recorder.pairs[name]} | {recorder.noops[name]}" if index == 0 else " | "
            lines.append(f"{head}| {code} | {level} | {title} | {first.get(code, '2.1')} | {counts} |")
    return _HEAD + "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    names: dict[str, str] = json.loads((ROOT / "tests" / "data" / "patterns.json").read_text(encoding="utf-8"))
    recorder = Recorder()
    pytest.main(["-q", "-m", "pattern", "-p", "no:cacheprovider", str(ROOT / "tests")], plugins=[recorder])
    missing = [name for name in names if recorder.pairs[name] + recorder.noops[name] == 0]
    if recorder.failed:
        print(f"{recorder.failed} tests failed; the table was not written", file=sys.stderr)
        return 1
    if missing:
        print(f"no test speaks of {', '.join(missing)}", file=sys.stderr)
        return 1
    text = table(recorder, names) + expert_table.section()
    if "--check" in arguments:
        if TABLE.read_text(encoding="utf-8") != text:
            print("docs/coverage.md is stale: run python scripts/coverage_table.py", file=sys.stderr)
            return 1
        return 0
    TABLE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
