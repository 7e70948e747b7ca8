"""The pages of the codes: in form, and their examples are what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.helper_page import PAGE, listed
from tests.page_examples import settings_for
from transplt.base.finding import Effort, Level
from transplt.base.settings import Settings
from transplt.edits.fixer import fixers_of
from transplt.edits.helper_file import helper_text
from transplt.engine.engine import index_source, migrate_source
from transplt.fixers.tunings.table import tunings
from transplt.flow.facts import ProjectFacts
from transplt.rules.pages import SECTIONS, DiagnosticError, all_codes, load, parse

ROOT = Path(__file__).resolve().parent.parent
#: Codes whose findings come from one Python file without more.
BY_FILE = [code for code in all_codes() if code < "NPU250" or code[:4] in ("NPU3", "NPU5") or code[:5] == "NPU27"]
#: Others: those of fixers and codemods of other packages (test_added_fixers.py, test_users_codemods.py), and of
#: npu_port.py (below).
BY_FILE = [code for code in BY_FILE if code not in ("NPU556", "NPU557", "NPU018", "NPU019", "NPU021", "NPU022")]
BY_FILE = [code for code in BY_FILE if code not in ("NPU156", "NPU157")]
BY_FILE.remove("NPU580")  # the compiler's word (tests/compiler)
#: Codes of words that bind to a GPU without naming CUDA; the others of them speak of files that are not Python.
BY_FILE += ["NPU280", "NPU281", "NPU282", "NPU283", "NPU287"]
#: Codes that had a page once; no new one may have them.
RETIRED = {"NPU341", "NPU342", "NPU406", "NPU516"}
#: Codes of the adaptors and of the tunings: each example asks for its own.
ADAPTED = sorted({fixer.code for fixer in fixers_of("transplt.fixers.adaptors")})
TUNED = sorted({"NPU766", "NPU767", *(tuning.code for tuning in tunings().values())})
#: Codes of the analysis.
ANALYSIS = [code for code in all_codes() if "NPU520" <= code < "NPU550" or "NPU700" < code < "NPU740"]
ANALYSIS += ["NPU513"]
#: Codes of mixed precision.
PRECISION = [code for code in all_codes() if "NPU740" <= code < "NPU750"]


def test_pages_are_in_form(subtests: pytest.Subtests) -> None:
    for code in all_codes():
        with subtests.test(code):
            page = load(code)
            assert page.code == code
            assert tuple(page.sections) == tuple(name for name in SECTIONS if name in page.sections)
            assert {"Message", "Why", "What to do"} <= set(page.sections)
            assert all(page.sections.values())
            assert (page.effort is None) == (page.level not in (Level.MANUAL,))
            assert not page.title.endswith(".")


def test_titles_tell_the_pages_apart() -> None:
    titles = [load(code).title for code in all_codes()]
    assert len(set(titles)) == len(titles)


def test_a_code_never_gets_a_second_meaning() -> None:
    assert RETIRED & set(all_codes()) == set()


def test_every_code_in_the_package_has_a_page() -> None:
    used = {
        code
        for path in (ROOT / "transplt").rglob("*.py")
        for code in re.findall(r'"(NPU[0-9]{3})"', path.read_text(encoding="utf-8"))
    }
    assert used
    assert sorted(used - set(all_codes())) == []


@pytest.mark.parametrize("code", sorted({*BY_FILE, *ANALYSIS, *TUNED, *ADAPTED, *PRECISION}))
def test_the_example_is_what_happens(code: str) -> None:
    page = load(code)
    text = page.sections["Example"]
    examples = page.examples()
    assert 1 <= len(examples) <= 2
    settings, data = settings_for(text, code in ANALYSIS), examples[0].encode()
    project = (
        ProjectFacts.join([index_source(data, "example.py", settings)]) if settings.helper_file else ProjectFacts()
    )
    result = migrate_source(data, "example.py", settings, project)
    assert result.data.decode() == examples[-1]
    found = [finding for finding in result.findings if finding.code == code]
    assert found
    assert {finding.level for finding in found} == {page.level}
    if len(examples) == 2:
        assert all(finding.applied is (page.level in (Level.SAFE, Level.UNSAFE)) for finding in found)
    else:
        assert not any(finding.applied for finding in result.findings)
        assert {finding.effort for finding in found} <= {page.effort, Effort.LOW, Effort.MEDIUM}


def test_the_examples_of_functions_of_the_port() -> None:
    settings = Settings(helper_file=True)

    def migrated(code: str, beside: str) -> tuple[list[str], str]:
        examples = load(code).examples()
        files = {"train.py": examples[0], **({"npu_port.py": beside} if beside else {})}
        project = ProjectFacts.join(index_source(text.encode(), path, settings) for path, text in files.items())
        result = migrate_source(examples[0].encode(), "train.py", settings, project)
        (found,) = [finding for finding in result.findings if finding.code == code]
        assert found.level is load(code).level
        assert found.message == load(code).sections["Message"].strip("`") or code == "NPU156"
        return examples, result.data.decode()

    examples, after = migrated("NPU156", "")
    assert after == examples[1]
    examples, after = migrated("NPU157", helper_text(["OneCardDataParallel"]).partition("class ")[0])
    assert after == examples[0]


@pytest.mark.parametrize("code", ["NPU260", "NPU261", "NPU262"])
def test_the_examples_of_the_portable_style(code: str) -> None:
    before, after = load(code).examples()
    settings = Settings(style="portable", helper_file=True)
    project = ProjectFacts.join([index_source(before.encode(), "train.py", settings)])
    result = migrate_source(before.encode(), "train.py", settings, project)
    assert result.data.decode() == after
    messages = {finding.message for finding in result.findings if finding.code == code}
    assert load(code).sections["Message"].strip("`") in messages


def test_the_page_of_the_functions_lists_them() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert listed(text) == text


def test_any_case_will_do_and_the_text_is_markdown() -> None:
    page = load("npu502")
    assert page.effort is Effort.MEDIUM
    assert page.text().startswith(
        "# NPU502: Missing in this version of torch_npu (manual; effort: hours)\n\n## Message\n"
    )
    assert page.text().count("\n## ") == len(page.sections)


@pytest.mark.parametrize(("code", "near"), [("NPU599", "NPU501"), ("NPU5", ""), ("../schema", ""), ("E501", "")])
def test_codes_without_a_page(code: str, near: str) -> None:
    with pytest.raises(DiagnosticError, match="is not a code of transplt") as caught:
        load(code)
    assert near in str(caught.value)


FRONT = "---\ncode: NPU999\ntitle: T\nlevel: manual\neffort: low\n---\n\n## Message\n\nm\n"


def test_a_page_in_form() -> None:
    page = parse("NPU999", FRONT)
    assert (page.title, page.level, page.effort, page.sections) == ("T", Level.MANUAL, Effort.LOW, {"Message": "m"})
    assert page.examples() == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("## Message\n\nm\n", "does not start with its facts"),
        (FRONT.replace("title: T", "name: T"), "none of code, title"),
        (FRONT.replace("title: T", "title"), "none of code, title"),
        (FRONT.replace("NPU999", "NPU998"), "must name its code"),
        (FRONT.replace("title: T", "title:"), "must name its code and a title"),
        (FRONT.replace("manual", "certain"), "certain"),
        (FRONT.replace("low", "tiny"), "tiny"),
        (FRONT.replace("Message", "Text"), "the sections must be"),
        (FRONT.replace("## Message", "words\n\n## Message"), "the sections must be"),
    ],
)
def test_pages_out_of_form(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        parse("NPU999", text)
