"""Nothing of a rule, a fixer, a tuning or an error of `diagnose` is left out; what is missing is said in a sentence.

CONTRIBUTING.md names the files of each; tests/test_contributing.py follows that page and leaves each file out once.
"""

from __future__ import annotations

import json
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import transplt.fixers
from tests.executed.reasons import missing_package, reason_of
from tests.executed.snippet import rewriting_rules
from tests.executed.table import snippets
from transplt.edits.fixer import Fixer, fixers_of
from transplt.fixers.tunings.table import tunings
from transplt.rules.errors import ErrorRowWrong, known_errors
from transplt.rules.pages import all_codes, load
from transplt.rules.tables import read_table

ROOT = Path(__file__).resolve().parent.parent
KINDS = [f"transplt.fixers.{each.name}" for each in pkgutil.iter_modules(transplt.fixers.__path__) if each.ispkg]
#: Tables whose rows are written by hand; all others are built from scripts/facts.
BY_HAND = ("grad_scaler", "libraries", "process_groups", "python_gone", "ranges", "replicas", "torch_gone")
#: Fixers without pairs of their own, and the test that holds them.
HELD_ELSEWHERE = {"float64": "tests/adaptors/test_table.py"}


@cache
def texts() -> dict[str, str]:
    """The tests by the stem of their file: what they say."""
    files = {path.stem: path for path in (ROOT / "tests").rglob("*.py")}
    return {name: files[name].read_text("utf-8") for name in files.keys() - {Path(__file__).stem, "test_contributing"}}


@cache
def words() -> tuple[frozenset[str], ...]:
    """The words of each test file."""
    return tuple(frozenset(re.findall(r"\w+", text)) for text in texts().values())


def every_fixer() -> list[Fixer]:
    return [fixer for kind in KINDS for fixer in fixers_of(kind)]


def module_of(fixer: Fixer) -> str:
    return fixer.module.replace(".", "/") + ".py"


def test_each_code_that_a_fixer_says_has_its_page() -> None:
    missing = [
        f"rules/diagnostics/{fixer.code}.md is missing, the page of what {module_of(fixer)} says: a head (code, title, "
        "level, blocks), then Message, Why, What to do and Example"
        for fixer in every_fixer()
        if fixer.code and fixer.code not in all_codes()
    ]
    assert not missing, "\n".join(missing)


def test_each_page_has_something_that_says_its_code() -> None:
    sources = [*(ROOT / "transplt").rglob("*.py"), *(ROOT / "rules").glob("*.json")]
    sources += (ROOT / "rules" / "support").rglob("*.json")
    said = {code for path in sources for code in re.findall(r"NPU\d{3}", path.read_text(encoding="utf-8"))}
    missing = [
        f"nothing says {code} of rules/diagnostics/{code}.md: a module in transplt/fixers/ is missing, with "
        f'`fixer = Fixer(__name__, code="{code}", ...)` and what it looks for, or a rule with this code'
        for code in all_codes()
        if code not in said
    ]
    assert not missing, "\n".join(missing)


def test_each_fixer_has_pairs() -> None:
    missing = []
    for fixer in every_fixer():
        codes = set(re.findall(r'"(NPU\d{3})"', (ROOT / module_of(fixer)).read_text(encoding="utf-8")))
        if fixer.name in HELD_ELSEWHERE or f"test_{fixer.name}" in texts() or any(codes & each for each in words()):
            continue
        folder = fixer.module.split(".")[2]
        missing.append(
            f"tests/{folder}/test_{fixer.name}.py is missing: pairs for {module_of(fixer)}, what goes in and what "
            "comes out, and more of what stays as it is"
        )
    assert not missing, "\n".join(missing)


def test_each_rename_that_is_written_by_hand_has_a_pair() -> None:
    missing = [
        f"a file in tests/codemods/ is missing: a pair with {row['old_name']}, which rules/{name}.json renames, and "
        "files in which the name means something else"
        for name in BY_HAND
        for row in read_table(f"{name}.json")["rules"].get("FuncNameModifyRule", ())
        if not any({row["old_name"].split(".")[0], row["old_name"].split(".")[-1]} <= each for each in words())
    ]
    assert not missing, "\n".join(missing)


def test_what_rewrites_is_run_or_says_why_not() -> None:
    missing = [
        f"rules/diagnostics/{rule.code}.md: no test runs what {name} writes. End both blocks of its example in "
        "`result = ...`, and this is compared; or give the reason in the head, `not run: WHY`"
        if not rule.new
        else f"tests/executed/renames.py has no line for {name}: two or three lines that leave something in `result`"
        for name, rule in rewriting_rules().items()
        if name not in snippets() and not reason_of(rule) and not missing_package(rule)
    ]
    assert not missing, "\n".join(missing)


def test_each_tuning_has_its_row_and_says_what_it_gains() -> None:
    rows = (ROOT / "docs" / "tunings.md").read_text(encoding="utf-8").partition("\n## In the port")[0].splitlines()
    named = [row.split("`")[1].partition("=")[0] for row in rows if row.startswith("| `")]
    before, missing = "the head of the table", []
    for name, tuning in tunings().items():
        if name not in named:
            missing.append(f"docs/tunings.md has no row for {name}; below {before} goes: "
                           f"| `{name}` | {tuning.code} | what it writes |")  # fmt: skip
        before = f"`{name}`"
        why = load(tuning.code).sections["Why"] if tuning.code in all_codes() else f"`{name}` Source: Versions:"
        absent = [word for word in (f"`{name}", "Versions:") if word not in why]
        if absent:
            missing.append(f"rules/diagnostics/{tuning.code}.md, Why: lacks {' and '.join(absent)}: the name of the "
                           "tuning, and the versions of torch that have what it writes")  # fmt: skip
    gone = [name for name in named if name not in tunings()]
    missing += [
        f"docs/tunings.md has a row for {name}: transplt/fixers/tunings/{name.replace('-', '_')}.py is missing, with "
        f'`theme="tune:{name}"`'
        for name in gone
    ]
    assert not missing, "\n".join(missing)
    assert named == [*tunings()], "docs/tunings.md: the rows stand in the order of `transplt rules --tunings`"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(({key: None}, rf"`{key}` is missing: \w+") for key in
          ("title", "kind", "means", "cause", "do", "predicted_by", "source")),
        ({"signs": None}, r"`signs` is missing: a list of texts"),
        ({"seen": None}, r"`seen` is missing: a list of \["),
        ({"kind": "reason"}, r"`kind` is 'reason': one of cause, fault"),
        ({"sign": ["x"]}, r"`sign` is no key; did you mean `signs`\?"),
    ],
    ids=str,
)  # fmt: skip
def test_a_row_of_an_error_that_lacks_something_is_refused(
    change: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transplt.rules import errors

    row = {"name": "lib-too-old", "title": "t", "kind": "cause", "means": "m.", "cause": "c.", "do": ["d."],
           "predicted_by": [], "source": "s", "signs": ["lib is old"], "seen": [["lib is old", "s"]]}  # fmt: skip
    row = {key: value for key, value in {**row, **change}.items() if value is not None}
    (tmp_path / "errors").mkdir()
    (tmp_path / "errors" / "libs.json").write_text(json.dumps({"sources": {}, "errors": [row]}))
    monkeypatch.setattr(errors, "rules_dir", lambda: tmp_path)
    monkeypatch.setattr(errors, "read_table", lambda name: json.loads((tmp_path / name).read_text()))
    errors.known_errors.cache_clear()
    try:
        with pytest.raises(ErrorRowWrong, match=rf"^rules/errors/libs\.json, row 1 \(lib-too-old\): {said}"):
            known_errors()
    finally:
        errors.known_errors.cache_clear()
