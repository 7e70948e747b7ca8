"""[tool.transplt]: what it sets, what the command line overrides, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.base.errors import UsageError
from transplt.base.settings import Settings
from transplt.project.config import find_config, read_config
from transplt.project.options import Options, make_plan

EVERYTHING = """
[tool.transplt]
torch-version = "2.8"
style = "portable"
specify-device = true
similar = true
unsafe-fixes = true
annotate = true
copy-all = true
exclude = ["third_party/"]
rules = ["rules.json"]
[tool.transplt.per-file-ignores]
"tests/*" = ["NPU3", "NPU501"]
"""


def write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "a.py").write_text("x = 1\n")
    return tmp_path


def test_everything_reaches_the_plan(tmp_path: Path) -> None:
    write(tmp_path, EVERYTHING)
    (tmp_path / "rules.json").write_text('{"rules": {}}')
    plan = make_plan(Options(tmp_path, exclude=("more",)))
    settings = plan.settings
    assert (settings.torch_version, settings.style) == ("2.8", "portable")
    assert settings.specify_device and settings.similar and settings.unsafe_fixes and settings.annotate
    assert plan.copy_all
    assert (plan.config.exclude, plan.options.exclude) == (("third_party/",), ("more",))
    assert settings.user_rules == (("rules.json", '{"rules": {}}'),)
    assert settings.per_file_ignores == (("tests/*", ("NPU3", "NPU501")),)
    assert plan.torch.why == "[tool.transplt] in pyproject.toml"


def test_texts_and_where_the_import_goes(tmp_path: Path) -> None:
    write(tmp_path, '[tool.transplt]\ntexts = true\ntorch-npu-import = "entry"\n')
    settings = make_plan(Options(tmp_path)).settings
    assert settings.texts and settings.torch_npu_import == "entry"
    assert make_plan(Options(tmp_path, torch_npu_import="each-file")).settings.torch_npu_import == "each-file"


def test_the_command_line_wins(tmp_path: Path) -> None:
    write(tmp_path, '[tool.transplt]\ntorch-version = "2.8"\nsimilar = false\n')
    plan = make_plan(Options(tmp_path, torch_version="2.6", similar=True))
    assert plan.settings.torch_version == "2.6"
    assert plan.settings.similar
    assert plan.torch.why == "--torch-version"


def test_a_single_file_has_the_settings_of_its_folder(tmp_path: Path) -> None:
    write(tmp_path, '[tool.transplt]\ntorch-version = "2.8"\n')
    assert make_plan(Options(tmp_path / "a.py")).settings.torch_version == "2.8"


def test_rules_of_the_command_line_come_later(tmp_path: Path) -> None:
    write(tmp_path, '[tool.transplt]\nrules = ["own.json"]\n')
    (tmp_path / "own.json").write_text('{"rules": {}}')
    (tmp_path / "given.json").write_text('{"rules": {}}')
    plan = make_plan(Options(tmp_path, rules=(tmp_path / "given.json",)))
    assert [name for name, _ in plan.settings.user_rules] == ["own.json", "given.json"]


@pytest.mark.parametrize("text", ["", "[project]\nname = 'x'\n", "[tool.other]\nx = 1\n", "[tool.transplt]\n"])
def test_nothing_said(tmp_path: Path, text: str) -> None:
    config = read_config(write(tmp_path, text))
    assert config.torch_version is None
    assert config.exclude == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.transplt]\nstile = 'npu'\n", "unknown key 'stile'; did you mean 'style'?"),
        ("[tool.transplt]\ntorch_version = '2.8'\n", "unknown key 'torch_version'; did you mean 'torch-version'?"),
        ("[tool.transplt]\nxyzzy = 1\n", "unknown key 'xyzzy'; known keys: torch-version, style"),
        ("[tool.transplt]\namp = 'native'\n", "unknown key 'amp'; this may change a program's numbers"),
        ("[tool.transplt]\nstyle = 'cuda'\n", "style must be one of npu, portable"),
        ("[tool.transplt]\nsimilar = 1\n", "similar must be true or false"),
        ("[tool.transplt]\ntorch-version = 2.8\n", 'torch-version must be a string such as "2.8"'),
        ("[tool.transplt]\ntorch-version = '1.8'\n", "[tool.transplt]: torch version '1.8' is not known"),
        ("[tool.transplt]\nexclude = 'x'\n", "exclude must be a list of strings"),
        ("[tool.transplt]\nexclude = ['a', 'b\\c']\n", r"of exclude cannot be read: 'b\\c' has to part folders"),
        ("[tool.transplt]\nexclude = ['[z-a]']\n", "a pattern of exclude cannot be read: bad character range"),
        ("[tool.transplt.per-file-ignores]\n'a\\b.py' = []\n", r"ignores: 'a\\b.py' must use / between folders"),
        ("[tool.transplt]\nper-file-ignores = ['x']\n", "per-file-ignores must be a table"),
        ("[tool.transplt.per-file-ignores]\nx = 'NPU1'\n", "per-file-ignores: x must be a list of strings"),
        ("[tool]\ntransplt = 1\n", "[tool.transplt] must be a table"),
        ("[tool.transplt]\nrules = ['../r.json']\n", "the rule file '../r.json' is outside the project"),
        ("[tool.transplt\n", "is not TOML"),
        ("[tool.transplt]\nx = " + "[" * 50_000, "is not TOML: it is nested too deeply"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        read_config(write(tmp_path, text))
    assert message in str(error.value)
    assert str(tmp_path / "pyproject.toml") in str(error.value)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.transplt]\n# caf\xe9\n")
    with pytest.raises(UsageError, match=r"is not UTF-8: .* at byte 21"):
        read_config(tmp_path)


def test_an_escaped_character_is_no_path_of_windows(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, r"""[tool.transplt]
exclude = ['\#old', '\!new', 'a\ b', 'a\*b']
"""))
    assert len(config.exclude) == 4


def test_a_bad_pattern(tmp_path: Path) -> None:
    from transplt.base.disk.walk import walk

    write(tmp_path, "")
    with pytest.raises(UsageError, match="a pattern of --exclude cannot be read"):
        walk(tmp_path, ("!",))


def test_settings_are_found_upward_and_paths_are_relative_to_them(tmp_path: Path) -> None:
    write(tmp_path, EVERYTHING.replace('rules = ["rules.json"]', ""))
    inner = tmp_path / "src" / "package"
    inner.mkdir(parents=True)
    plan = make_plan(Options(inner))
    assert plan.settings.torch_version == "2.8"
    assert plan.settings.base == "src/package/"
    assert find_config(inner).folder == tmp_path


def test_settings_outside_the_repository_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, EVERYTHING)
    inner = tmp_path / "repository"
    (inner / ".git").mkdir(parents=True)
    assert find_config(inner).folder is None


def test_a_nearer_pyproject_without_the_table_does_not_hide_it(tmp_path: Path) -> None:
    write(tmp_path, "[tool.transplt]\nsimilar = true\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'transplt-user'\n")
    assert find_config(inner).similar is True


@pytest.mark.parametrize(
    ("pattern", "path", "ignored"),
    [
        ("legacy.py", "legacy.py", True),
        ("legacy.py", "sub/legacy.py", False),
        ("tests/*", "tests/unit/a.py", True),
        ("src/*.py", "src/sub/x.py", True),
        ("*_test.py", "sub/x_test.py", True),
        ("*/a.py", "a.py", False),
        ("tests/", "tests/a.py", False),
    ],
)
def test_patterns_of_ignores_are_whole_paths(pattern: str, path: str, ignored: bool) -> None:
    assert Settings(per_file_ignores=((pattern, ()),)).ignored_codes(path) == (("NPU",) if ignored else ())


def test_patterns_hold_from_the_folder_of_the_settings(tmp_path: Path) -> None:
    from transplt.project.tree import migrate_tree

    write(tmp_path, '[tool.transplt]\nexclude = ["src/old/"]\n[tool.transplt.per-file-ignores]\n"src/kept.py" = []\n')
    source = tmp_path / "src"
    (source / "old").mkdir(parents=True)
    for name in ("kept.py", "other.py", "old/gone.py"):
        (source / name).write_text("import torch\ntorch.cuda.is_available()\n")
    result = migrate_tree(make_plan(Options(source, tmp_path / "out")))
    assert [(record.path, record.changed) for record in result.files] == [("kept.py", False), ("other.py", True)]
