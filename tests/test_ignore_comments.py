"""Comments `# transplt: ignore[NPU201]`: what they hold for, what is said of them, and what `check --fix` removes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.harness import check_noop, clean, migrate
from transplt.base.errors import UsageError
from transplt.base.finding import FileResult, Finding, Level
from transplt.base.settings import TORCH_VERSIONS, TorchTarget
from transplt.base.text.ignore_comments import ignore_comments
from transplt.edits.ignores import MISSPELT, ON_REQUEST, UNKNOWN, UNUSED
from transplt.engine.files.ignore_lines import ignore_line_findings
from transplt.engine.files.kind import kind_of
from transplt.engine.files.tokens import scan_other_file
from transplt.project.config import read_config
from transplt.rules.pages import load

ROOT = Path(__file__).resolve().parent.parent
#: The rooms of what every migration looks for.
ALWAYS = ("fixers/codemods", "fixers/triton/codemods")


def said(result: FileResult) -> list[tuple[str, int]]:
    """Codes and lines of what is said about comments."""
    return [(each.code, each.span.line) for each in result.findings if each.code.startswith("NPU61")]


def fixed(source: str, **settings: Any) -> str:
    """What `check --fix` leaves."""
    return migrate(source, in_place=True, **settings).data.decode()


def stays(source: str, **settings: Any) -> None:
    result = migrate(source, in_place=True, **settings)
    assert result.data.decode() == clean(source)
    assert said(result) == []


# --- the words of a comment ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("# transplt: ignore", None),
        ("# transplt:ignore", None),
        ("#transplt: ignore one card only", None),
        ("# transplt: ignore, it is a name", None),
        ("# transplt: ignore[NPU201]", ("NPU201",)),
        ("# transplt: ignore[npu201,NPU5] why", ("NPU201", "NPU5")),
        ("# noqa: F401  # transplt: ignore[ NPU201 NPU202 ]  # type: ignore", ("NPU201", "NPU202")),
        ("x = 1  // transplt: ignore[NPU806]", ("NPU806",)),
    ],
)
def test_a_comment_in_form(text: str, codes: tuple[str, ...] | None) -> None:
    (comment,) = ignore_comments(text.encode())
    assert (comment.codes, comment.problem) == (codes, "")


def test_every_comment_of_a_line_is_read() -> None:
    found = ignore_comments(b"# transplt: ignore[NPU201]  # transplt: ignore[NPU203]")
    assert [each.codes for each in found] == [("NPU201",), ("NPU203",)]


@pytest.mark.parametrize(
    ("text", "codes", "problem"),
    [
        ("# transplt: ingore", (), "'ingore' stands for `ignore`"),
        ("# transplt: ingore[NPU201]", (), "'ingore' stands for `ignore`"),
        ("# transplt: ignores", (), "'ignores' stands for `ignore`"),
        ("# transplt: ignore-file", (), "'ignore-file' stands for `ignore`"),
        ("# transplt: noqa", (), "'noqa' stands for `ignore`"),
        ("# transplt: allow[NPU201]", (), "'allow' stands for `ignore`"),
        ("# transplt: Ignore[NPU201]", (), "it is written `transplt: ignore`"),
        ("# Transplt: ignore[NPU201]", (), "it is written `transplt: ignore`"),
        ("# transplt : ignore", (), "it is written `transplt: ignore`"),
        ("# transplt ignore[NPU201]", (), "there is no `:` after `transplt`"),
        ("# transplant: ignore[NPU201]", (), "'transplant' stands for `transplt`"),
        ("# transplt: ignore NPU101", ("NPU101",), "the codes must be in brackets"),
        ("# transplt:ignore NPU101, NPU102", ("NPU101", "NPU102"), "the codes must be in brackets"),
        ("# transplt: ignore: NPU101", ("NPU101",), "the codes must be in brackets"),
        ("# transplt: ignore(NPU101)", ("NPU101",), "the codes must be in brackets"),
        ("# transplt: ignore[NPU201", ("NPU201",), "the bracket is not closed"),
        ("# transplt: ignore[]", (), "there is no code in the brackets"),
    ],
)
def test_a_comment_that_is_spelled_wrongly(text: str, codes: tuple[str, ...], problem: str) -> None:
    (comment,) = ignore_comments(text.encode())
    assert (comment.codes, comment.problem) == (codes, problem)


@pytest.mark.parametrize(
    "text",
    [
        "# transplt ignores this file, as it names no device",
        "# transplt: see docs/check.md",
        "# TODO(transplt): NPU501 is left",
        "# the form is `# transplt: ignore[CODE]`",
        "# translate: ignore the case",
        "# type: ignore[attr-defined]",
        "# noqa: NPU201",
        "# transport: ignored by the server",
    ],
)
def test_other_comments_are_none(text: str) -> None:
    assert list(ignore_comments(text.encode())) == []


@pytest.mark.parametrize("comment", ["ingore[NPU203]", "ignore NPU201", "ignore[NPU201", "ignore[]"])
def test_a_typo_is_work_for_a_person_in_a_migration_too(comment: str) -> None:
    result = check_noop(f'names = {{"gpu": 0}}  # transplt: {comment}\n', open_codes=[MISSPELT])
    assert [each.level for each in result.findings] == [Level.MANUAL]


@pytest.mark.parametrize("code", ["NPU99999", "NPU299", "E501", "NPU2O1"])
def test_a_code_that_does_not_exist(code: str) -> None:
    check_noop(f'names = {{"gpu": 0}}  # transplt: ignore[{code}]\n', open_codes=[UNKNOWN])


def test_the_other_codes_of_a_comment_hold() -> None:
    source = 'import torch\nx = torch.device("cuda")  # transplt: ignore[NPU201, NPU99999]\n'
    result = check_noop(source, open_codes=[UNKNOWN])
    assert [each.code for each in result.findings if each.ignored] == ["NPU201"]


def test_codes_of_user_rules_and_groups_are_known() -> None:
    check_noop('names = {"gpu": 0}  # transplt: ignore[NPU042, NPU0]\n')
    check_noop('import torch\nx = torch.device("cuda")  # transplt: ignore[NPU2]\n')
    check_noop('import torch\nx = torch.device("cuda")  # transplt: ignore[NPU]\n')


def test_codes_without_brackets_keep_their_edit_away() -> None:
    check_noop('import torch\nx = torch.device("cuda")  # transplt: ignore NPU201\n', open_codes=[MISSPELT])


def test_a_file_that_names_nothing_of_cuda_is_looked_at() -> None:
    check_noop("x = 1  # transplt: ingore\n", open_codes=[MISSPELT])


def test_comments_in_strings_are_none() -> None:
    stays('x = "# transplt: ingore[NPU1]"\ny = """\n# transplt: ignore[NPU201]\n"""\n')


def test_a_finding_about_a_comment_can_be_ignored_by_name_only() -> None:
    check_noop("x = 1  # transplt: ignore[NPU99999, NPU611] of the next release\n")
    check_noop("x = 1  # transplt: ignore[NPU99999]  # transplt: ignore\n", open_codes=[UNKNOWN, UNUSED])
    check_noop("x = 1  # transplt: ingore\n", per_file_ignores=(("*", ("NPU61",)),))


# --- comments that ignore nothing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = 1  # transplt: ignore[NPU201]\n", "a = 1\n"),
        ("a = 1  # transplt: ignore\n", "a = 1\n"),
        ("a = 1 # transplt: ignore[NPU201]", "a = 1"),
        ("a = 1  # transplt: ignore[NPU201]\r\nb = 2\r\n", "a = 1\r\nb = 2\r\n"),
        ("a = 1  # transplt: ignore[NPU201] a name\n", "a = 1  # a name\n"),
        ("a = 1  # noqa  # transplt: ignore[NPU201]  # type: ignore\n", "a = 1  # noqa  # type: ignore\n"),
        ("a = 1  # transplt: ignore[NPU201]  # pragma: no cover\n", "a = 1  # pragma: no cover\n"),
        ("a = 1  # noqa  # transplt: ignore[NPU201]\n", "a = 1  # noqa\n"),
        ("a = 1\nb = 2\n# transplt: ignore[NPU201]\nc = 3\n", "a = 1\nb = 2\nc = 3\n"),
        ("a = 1\nb = 2\n# why  # transplt: ignore[NPU201]\nc = 3\n", "a = 1\nb = 2\n# why\nc = 3\n"),
        ("# transplt: ignore[NPU201]\na = 1\n", "\na = 1\n"),
        ("a = [\n    1,  # transplt: ignore[NPU201]\n]\n", "a = [\n    1,\n]\n"),
    ],
)
def test_a_comment_in_vain_goes_where_the_file_stays(before: str, after: str) -> None:
    result = migrate_plain(before)
    assert result.data.decode() == after
    assert [(each.code, each.level, each.applied) for each in result.findings] == [(UNUSED, Level.SAFE, True)]


def migrate_plain(source: str) -> FileResult:
    """Without the margin of the harness being taken off."""
    from transplt.base.settings import Settings
    from transplt.engine.engine import index_source, migrate_source
    from transplt.flow.facts import ProjectFacts

    settings = Settings(in_place=True)
    project = ProjectFacts.join([index_source(source.encode(), "a.py", settings)])
    return migrate_source(source.encode(), "a.py", settings, project)


def test_only_the_codes_that_are_not_used_go() -> None:
    source = 'import torch\nx = torch.device("cuda")  # transplt: ignore[NPU205, NPU201, NPU507] why\n'
    assert fixed(source) == 'import torch\nx = torch.device("cuda")  # transplt: ignore[NPU201] why\n'


def test_a_comment_goes_beside_an_edit_of_its_line() -> None:
    source = 'import torch\nx = torch.device("cuda")  # transplt: ignore[NPU507]\n'
    assert fixed(source).endswith('\nx = torch.device("npu")\n')


def test_a_migration_leaves_comments_and_remarks_on_them() -> None:
    result = check_noop("a = 1  # transplt: ignore[NPU201]\n", open_codes=[UNUSED])
    assert [each.level for each in result.findings] == [Level.INFO]


@pytest.mark.parametrize(
    "source",
    [
        'import torch\nx = torch.device("cuda")  # transplt: ignore[NPU201]\n',
        'import torch\nx = torch.device("cuda")  # transplt: ignore\n',
        'x = "cuda"  # transplt: ignore[NPU203] a name\n',
        "x = lib.nvtx  # transplt: ignore[NPU602]\n",
    ],
)
def test_comments_that_are_used_stay(source: str) -> None:
    stays(source)


@pytest.mark.parametrize("code", ["NPU750", "NPU74", "NPU7", "NPU330", "NPU520", "NPU001", "NPU42", "NPU612"])
def test_codes_of_what_was_not_asked_for_stay(code: str) -> None:
    result = migrate(f"import torch\nx = torch.rand(2)  # transplt: ignore[{code}]\n", in_place=True)
    assert UNUSED not in {each.code for each in result.findings}


def test_codes_that_the_settings_switch_off_stay() -> None:
    source = "a = 1  # transplt: ignore[NPU201]\n"
    stays(source, per_file_ignores=(("*", ("NPU2",)),))
    stays(source, per_file_ignores=(("*", ("NPU201",)),))
    stays("a = 1  # transplt: ignore[NPU2]\n", per_file_ignores=(("*", ("NPU201",)),))
    stays("a = 1  # transplt: ignore\n", per_file_ignores=(("*", ("NPU201",)),))
    assert fixed(source, per_file_ignores=(("*", ("NPU5",)),)) == "a = 1\n"
    assert fixed(source, per_file_ignores=(("other.py", ("NPU2",)),)) == "a = 1\n"


@pytest.mark.parametrize("version", ["2.1", "2.8", TORCH_VERSIONS[-1]])
def test_what_another_torch_version_gives_stays(version: str) -> None:
    for line in (
        "torch.cuda.host_memory_stats()  # transplt: ignore[NPU104, NPU502]",
        "torch.utils.data.DataLoader(d, pin_memory=True)  # transplt: ignore[NPU124]",
    ):
        stays(f"import torch\n{line}\n", torch_version=version)


@pytest.mark.parametrize("style", ["npu", "portable"])
def test_what_the_other_style_gives_stays(style: str) -> None:
    stays('import torch\nx = torch.device("cuda:0")  # transplt: ignore[NPU201]\n', style=style)
    other = "import torch\ntorch.cuda.set_device(0)  # transplt: ignore[NPU260]\n"
    assert "ignore[NPU260]" in fixed(other, style=style)


def test_a_comment_without_codes_stays_where_a_theme_may_act() -> None:
    source = "import torch\nopt = torch.optim.AdamW([torch.rand(1)])  # transplt: ignore\n"
    result = migrate(source, in_place=True)
    assert result.data.decode() == source
    assert [(each.code, each.level) for each in result.findings] == [(UNUSED, Level.INFO)]
    check_noop(source)
    check_noop(source, tune=(("fused-optimizer", ""),), unsafe_fixes=True)


def test_nothing_is_in_vain_while_the_project_is_not_known() -> None:
    from transplt.base.settings import Settings
    from transplt.engine.engine import migrate_source

    result = migrate_source(b"a = 1  # transplt: ignore[NPU201]\n", "a.py", Settings(in_place=True))
    assert result.findings == ()


def test_codes_on_request_are_those_of_the_rooms_that_do_not_always_work() -> None:
    asked = ("fixers/amp", "fixers/distributed", "fixers/tunings", "fixers/triton/tunings")
    rooms = (*asked, "engine/analysis", "proof", "emulator")
    text = {
        room: "".join(path.read_text("utf-8") for path in sorted((ROOT / "transplt" / room).glob(pattern)))
        for pattern, every in (("**/*.py", (*rooms, *ALWAYS, "edits")), ("*.py", ("engine",)))
        for room in every
    }
    codes = {room: set(re.findall(r'"(NPU[0-9]{3})"', each)) for room, each in text.items()}
    always = codes["edits"] | codes["engine"] | set.union(*(codes[room] for room in ALWAYS))
    for path in (ROOT / "rules").glob("*.json"):
        always |= set(re.findall(r'"(NPU[0-9]{3})"', path.read_text("utf-8")))
    late = set.union(*(codes[room] for room in rooms)) - always
    assert sorted(code for code in late if not code.startswith(ON_REQUEST)) == []


@pytest.mark.parametrize("code", [MISSPELT, UNKNOWN, UNUSED])
def test_the_examples_of_the_pages(code: str) -> None:
    page = load(code)
    examples = page.examples()
    result = migrate(examples[0], in_place=True)
    assert result.data.decode() == examples[-1]
    assert [(each.code, each.level) for each in result.findings] == [(code, page.level)]


# --- files that are not Python ---------------------------------------------------------------------------------------


def other_file(name: str, text: str, in_place: bool = True, off: tuple[str, ...] = ()) -> list[Finding]:
    data = text.encode()
    kind = kind_of(name, data)
    found = scan_other_file(data, name, kind, TorchTarget("2.8", ""), off).findings
    return ignore_line_findings(data, name, kind, found, off, in_place)


@pytest.mark.parametrize(
    ("name", "text", "codes"),
    [
        ("run.sh", "export CUDA_HOME=1  # transplt: ignore[NPU801]\n", []),
        ("run.sh", "export CUDA_HOME=1  # transplt: ignore\n", []),
        ("run.sh", "export CUDA_HOME=1  # transplt: ingore[NPU801]\n", [MISSPELT]),
        ("run.sh", "export CUDA_HOME=1  # transplt: ignore[NPU999]\n", [UNKNOWN]),
        ("run.sh", "export CUDA_HOME=1  # transplt: ignore[NPU201]\n", [UNUSED]),
        ("run.sh", "echo hi  # transplt: ignore[NPU801]\n", [UNUSED]),
        ("run.sh", "echo hi  # transplt: ignore\n", [UNUSED]),
        ("a.cu", "int x;  // transplt: ignore[NPU806]\n", [UNUSED]),
        ("a.cu", "int x;  // transplt: ignore[NPU556]\n", []),
        ("a.yaml", "x: 1  # transplt: ignore[NPU802]\n", [UNUSED]),
        ("README.md", "write `# transplt: ingore`, no: # transplt: ignore[NPU1]\n", []),
        ("a.json", '{"x": "# transplt: ignore[NPU802]"}\n', []),
    ],
)
def test_comments_of_other_files(name: str, text: str, codes: list[str]) -> None:
    assert [each.code for each in other_file(name, text)] == codes


def test_a_migration_only_remarks_on_them() -> None:
    text = "echo hi\necho hi  # transplt: ignore[NPU801]\n"
    (finding,) = other_file("run.sh", text, in_place=False)
    assert (finding.level, finding.span.line, finding.span.column) == (Level.INFO, 2, 10)
    assert other_file("run.sh", text, off=("NPU8",)) == []
    assert other_file("run.sh", text, off=("NPU61",)) == []


# --- whole files -----------------------------------------------------------------------------------------------------


def test_codes_of_whole_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[tool.transplt.per-file-ignores]\n"a/*" = ["NPU2", "NPU0", "NPU"]\n"b/*" = []\n')
    assert read_config(tmp_path).per_file_ignores == (("a/*", ("NPU2", "NPU0", "NPU")), ("b/*", ()))
    path.write_text('[tool.transplt.per-file-ignores]\n"a/*" = ["NPU2001"]\n')
    with pytest.raises(UsageError, match=r"per-file-ignores: no code starts with 'NPU2001'; did you mean NPU201\?"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("code", "meant"), [("NPU2011", "NPU201"), ("NPU201x", "NPU201"), ("UPN201", "NPU201"), ("npu1240", "NPU124")]
)
def test_the_code_that_is_meant(code: str, meant: str) -> None:
    result = migrate(f"x = 1  # transplt: ignore[{code}]\n")
    assert [f"did you mean {meant}" in each.help for each in result.findings] == [True]
