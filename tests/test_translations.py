"""Other languages: the catalogue is that of the sources, Chinese is printed where it is asked for, English else."""

from __future__ import annotations

import io
import json
import pickle
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.base.language import LANGUAGES, Sentence, gettext, language, ngettext, spoken, spoken_on, translated
from transplt.faces.cli.main import main
from transplt.project.report.wrapped import columns, wrapped

#: Messages that are English still: so many may be, until somebody translates them.
MOST_MISSING = 40
_PLACES = re.compile(r"\{(\w+)\}")


@pytest.fixture(autouse=True)
def of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no variable of the user who runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TRANSPLT_LANGUAGE", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "a.py").write_text(
        "import torch\nx = torch.ones(1).cuda()\nif torch.cuda.get_device_capability()[0] > 7:\n    x = x.half()\n"
    )
    (folder / "requirements.txt").write_text("torch==2.6.0\n")
    return folder


def migrated(project: Path, *words: str) -> tuple[str, str]:
    """What is printed, and the page."""
    done = CliRunner().invoke(main, [*words, "-i", str(project), "-o", str(project.parent / "out"), "--force",
                                     "--jobs", "0"])  # fmt: skip
    return done.output, (project.parent / "out" / "proj_msft" / "report.html").read_text("utf-8")


# --- the catalogue ---------------------------------------------------------------------------------------------------


def test_the_catalogue_is_that_of_the_sources(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("babel")
    from scripts import catalogue

    assert catalogue.main([]) == 0, capsys.readouterr().err
    english = catalogue.missing(catalogue.updated("zh"))
    assert len(english) <= MOST_MISSING, "translate, and python scripts/catalogue.py --write:\n" + "\n".join(english)


def test_a_translation_has_the_places_of_its_message() -> None:
    pytest.importorskip("babel")
    from scripts import catalogue

    for message in catalogue.updated("zh"):
        if not message.id or not message.string:
            continue
        more = message.id if isinstance(message.id, str) else message.id[1]
        for text in [message.string] if isinstance(message.string, str) else message.string:
            assert set(_PLACES.findall(text)) == set(_PLACES.findall(more)) or not text, more
            text.format(**dict.fromkeys(_PLACES.findall(more), ""))


# --- sentences -------------------------------------------------------------------------------------------------------


def test_a_sentence_is_a_text_that_can_be_translated() -> None:
    names = Sentence("{names} and {count} more", names="torch.a, torch.b", count=3)
    sentence = Sentence("Replace {name}: no counterpart on NPU", name=names)
    assert sentence == "Replace torch.a, torch.b and 3 more: no counterpart on NPU"
    assert pickle.loads(pickle.dumps(sentence)).template == sentence.template
    assert json.dumps(sentence) == f'"{sentence}"' and translated(sentence) == sentence
    with spoken("zh"):
        assert translated(sentence) == "替换 torch.a, torch.b 等，另有 3 项：NPU 上没有对应接口"
        assert ngettext("{count} edit", "{count} edits", 2) == "2 处修改"


@pytest.mark.parametrize("text", ["", "a text that nobody has translated", "{no place}"])
def test_what_the_catalogue_does_not_have_stays_english(text: str) -> None:
    with spoken("zh"):
        assert translated(text) == gettext(text) == text
        assert translated(Sentence("{name} was changed since", name="edit")) == "edit was changed since"


def test_values_are_no_templates() -> None:
    with spoken("zh"):
        assert translated(Sentence("Do by hand: {title}", title="{x} {y")) == "手动处理：{x} {y"


# --- what is printed -------------------------------------------------------------------------------------------------


def test_a_migration_in_chinese(project: Path) -> None:
    said, page = migrated(project, "--language", "zh")
    assert said.startswith("已迁移到 ") and "\n  待人工处理：2 项，不到一小时：\n    1. " in said
    assert "\n  已转换：" in said and "a.py:3" in said and not re.search("to do|converted|migrated", said)
    assert '<html lang="zh-CN">' in page and "待决策与待处理" in page and "What to decide" not in page
    assert "改为判断是否支持 bfloat16，而非 compute capability 8.0" in page
    assert language() == "en"
    folder = project.parent / "out" / "proj_msft"
    chinese = {name: (folder / name).read_bytes() for name in ("msFmkTranspltlog.txt", "change_list.csv", "a.py")}
    said, page = migrated(project)
    assert said.startswith("migrated to ") and '<html lang="en">' in page
    assert not re.search("[\u4e00-\u9fff]", said + page), "English is free of Chinese"
    assert chinese == {name: (folder / name).read_bytes() for name in chinese}, "what programs read is English"


def test_how_an_action_is_done_is_chinese_and_its_machine_words_are_not(project: Path) -> None:
    (project / "requirements.txt").write_text("nvidia-apex\n")
    (project / "tool.py").write_text("import torch\nkind = 'x' if torch.version.cuda > '11' else 'y'\n")
    english = "remove it if nothing imports apex; otherwise build the Ascend version (gitcode.com/Ascend/apex)"
    assert f"<p>{english}" in migrated(project)[1]
    _, page = migrated(project, "--language", "zh")
    assert "<p>若无处导入 apex 则删除；否则构建昇腾版本" in page and f"<p>{english}" not in page
    assert re.search('<p lang="en">', page), "what the catalogue does not have says that it is English"
    workbook = (project.parent / "out" / "proj_msft" / "change_list.csv").read_text("utf-8")
    assert not re.search("[\u4e00-\u9fff]", workbook)


def test_a_check_in_chinese(project: Path) -> None:
    found = CliRunner().invoke(main, ["check", str(project), "--language", "zh", "--format", "json"])
    assert "个文件中发现" in found.stderr
    assert found.stdout == CliRunner().invoke(main, ["check", str(project), "--format", "json"]).stdout


@pytest.mark.parametrize(
    ("words", "variable", "settings", "first"),
    [
        ([], "", "", "migrated to"),
        (["--language", "zh"], "", "", "已迁移到"),
        ([], "zh", "", "已迁移到"),
        ([], "", 'language = "zh"\n', "已迁移到"),
        ([], "en", 'language = "zh"\n', "migrated to"),
        (["--language", "en"], "zh", 'language = "zh"\n', "migrated to"),
    ],
)
def test_what_chooses_the_language(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], variable: str, settings: str,
    first: str,
) -> None:  # fmt: skip
    if variable:
        monkeypatch.setenv("TRANSPLT_LANGUAGE", variable)
    (tmp_path / "config" / "transplt").mkdir(parents=True)
    (tmp_path / "config" / "transplt" / "settings.toml").write_text(settings)
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    done = CliRunner().invoke(main, [*words, "-i", str(project), "-o", str(tmp_path / "out"), "--report-only"])
    assert done.output.startswith(first.replace("migrated to", "reports only").replace("已迁移到", "仅生成报告"))


def test_a_language_that_there_is_not(project: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["-i", str(project), "--language", "xx"])
    assert done.exit_code == 2 and ", ".join(repr(each) for each in LANGUAGES) in done.output
    (tmp_path / "config" / "transplt").mkdir(parents=True)
    (tmp_path / "config" / "transplt" / "settings.toml").write_text('language = "xx"\n')
    assert "language must be one of en, zh" in str(CliRunner().invoke(main, ["-i", str(project)]).exception)


# --- terminals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("encoding", "said"), [("utf-8", "zh"), ("gbk", "zh"), ("cp1252", "en"), ("ascii", "en")])
def test_a_terminal_that_cannot_show_chinese_gets_english(encoding: str, said: str) -> None:
    with spoken("zh"):
        with spoken_on(io.TextIOWrapper(io.BytesIO(), encoding=encoding)):
            assert language() == said
        assert language() == "zh"


def test_the_page_is_chinese_where_the_terminal_is_not(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transplt.base.language._shows", lambda stream, name: name == "en")
    said, page = migrated(project, "--language", "zh")
    assert said.startswith("migrated to ") and '<html lang="zh-CN">' in page


def test_chinese_is_wrapped_by_columns() -> None:
    line = "    1. 将只使用一张 NPU 的 DataParallel 替换为 DistributedDataParallel（首个 step 时中断；数小时；a.py:1）"
    lines = list(wrapped(line, 40, 7))
    assert all(columns(each) <= 40 for each in lines) and len(lines) == 4
    assert all(each.startswith(" " * 7) for each in lines[1:])
    assert "".join(each.strip() for each in lines).replace(" ", "") == line.replace(" ", "")
    assert not any(each.lstrip()[0] in "，；：。）" for each in lines[1:])
    assert list(wrapped(line, 0, 7)) == [line]
