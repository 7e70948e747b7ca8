"""Writes docs/reference/coverage.md: for every measured pattern and trap, what the pairs of the tests show.

    python scripts/coverage_table.py           write the table
    python scripts/coverage_table.py --check   exit 1 when the table is stale, or a pattern has no test
    ... --from JUNIT.xml                       from a run of the tests that has been (repeatable), without another one

Run from the top of the checkout. The tests that carry `@pattern(...)` are run, the codes of their pairs collected. The
comparison with ports by hand is a section of its own, see expert_table.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts import expert_table  # noqa: E402
from transplt.rules.pages import load  # noqa: E402
from transplt.rules.tables import rules_dir  # noqa: E402
from transplt.rules.versions import version_key, versions_of  # noqa: E402

TABLE = ROOT / "docs" / "reference" / "coverage.md"
#: Codes of edits that accompany every other one.
_COMPANIONS = {"NPU403"}
_HEAD = """# Coverage

What transplt does with the patterns (P) and traps (T) that were counted in 107 real projects. This table is generated
from the rules and from the input/output pairs in `tests/`: `python scripts/coverage_table.py`.
"Since" is the first torch (and torch_npu) version for which a rule
of that code holds. "Pairs" counts the pairs that rewrite something, "no-ops" those that leave the file as it is.

| | what | code | level | what happens | since | pairs | no-ops |
|---|---|---|---|---|---|---|---|
"""


@dataclass(slots=True)
class Shown:
    """What the tests showed of each pattern: the codes of its pairs, and how many rewrite something or nothing."""

    codes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    pairs: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    noops: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failed: int = 0

    def read(self, report: Path) -> None:
        """Add what a JUnit report holds (`python -m pytest --junitxml FILE`; see tests/conftest.py)."""
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            self.failed += case.find("failure") is not None or case.find("error") is not None
            for each in case.iter("property"):
                if each.get("name") == "patterns":
                    self._add(*json.loads(each.get("value") or "[[], []]"))

    def _add(self, names: list[str], records: list[tuple[list[str], list[str]]]) -> None:
        for applied, left in records:
            for name in names:
                self.codes[name] |= {*applied, *left}
                self.pairs[name] += bool(applied)
                self.noops[name] += not applied


def since() -> dict[str, str]:
    """The first torch version for which a built-in rule of a code holds."""
    first: dict[str, str] = {}
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


def table(shown: Shown, names: dict[str, str]) -> str:
    """The document as text."""
    first = since()
    lines = []
    for name, what in names.items():
        codes = sorted(shown.codes.get(name, set()) - _COMPANIONS) or ["-"]
        for index, code in enumerate(codes):
            page = load(code) if code != "-" else None
            level = page.level.value if page else "-"
            title = page.title if page else "stays as it is, with a reason in the account"
            head = f"| {name} | {what} " if index == 0 else "| | "
            counts = f"{shown.pairs[name]} | {shown.noops[name]}" if index == 0 else " | "
            lines.append(f"{head}| {code} | {level} | {title} | {first.get(code, '2.1')} | {counts} |")
    return _HEAD + "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--from", dest="reports", type=Path, action="append", metavar="JUNIT.xml")
    options = parser.parse_args(arguments)
    names: dict[str, str] = json.loads((ROOT / "tests" / "data" / "patterns.json").read_text(encoding="utf-8"))
    shown = Shown()
    with tempfile.TemporaryDirectory() as scratch:
        reports = options.reports or [Path(scratch) / "tests.xml"]
        if not options.reports:
            command = [sys.executable, "-m", "pytest", "-q", "-m", "pattern", "-p", "no:cacheprovider"]
            subprocess.run([*command, f"--junitxml={reports[0]}"], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        for report in reports:
            shown.read(report)
    missing = [name for name in names if shown.pairs[name] + shown.noops[name] == 0]
    if shown.failed:
        print(f"{shown.failed} tests failed; the table was not written", file=sys.stderr)
        return 1
    if missing:
        print(f"no test speaks of {', '.join(missing)}", file=sys.stderr)
        return 1
    text = table(shown, names) + expert_table.section()
    if options.check:
        if TABLE.read_text(encoding="utf-8") != text:
            print("docs/reference/coverage.md is stale: run python scripts/coverage_table.py", file=sys.stderr)
            return 1
        return 0
    TABLE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
