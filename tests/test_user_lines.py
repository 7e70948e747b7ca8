"""The users' rules for strings, attributes, lines and keywords, and what argument rules say of calls they leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.running import in_process as transplt
from tests.test_user_rules import after, name, run


def rule(kind: str, **keys: Any) -> dict[str, Any]:
    return {kind: [keys]}


def string(old: str, new: str) -> dict[str, Any]:
    return rule("StringModifyRule", old_string=old, new_string=new)


def insert(func: str, text: str, where: str = "before", **more: Any) -> dict[str, Any]:
    return rule("InsertRule", func_name=func, insert=text, where=where, **more)


GREY, BLUE = string("grey", "blue"), rule("AttributeModifyRule", old_name="grey", new_name="blue")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('paint("grey")\n', 'paint("blue")\n'),
        ("paint(r'grey', x=['grey'])\n", "paint(r'blue', x=['blue'])\n"),
        ("table = {'grey': 1}['grey']\n", "table = {'blue': 1}['blue']\n"),
        ('paint("greyish", "dark grey", "GREY", b"grey")\n', None),
        ('"grey"\n', None),
        ('def f():\n    "grey"\n', None),
        ('paint(f"grey{x}")\n', None),
        ("grey.grey(grey=grey)\n", None),
    ],
)
def test_strings(before: str, expected: str | None) -> None:
    assert after(before, GREY) == (expected or before)


@pytest.mark.parametrize("text", ['"gr" "ey"', '"gr\\x65y"'])
def test_a_string_written_in_another_way_is_said(text: str) -> None:
    result = run(f"paint({text})  # grey\n", GREY)
    assert not result.changed
    assert [finding.code for finding in result.findings] == ["NPU007"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("x = a.grey\n", "x = a.blue\n"),
        ("a.b().grey.c = a.grey[0]\n", "a.b().blue.c = a.blue[0]\n"),
        ("del a.grey\n", "del a.blue\n"),
        ("a.grey()\n", None),
        ("grey = a.greyish\n", None),
        ("f(grey=1)\n", None),
        ("class A:\n    grey = 1\n", None),
        ('getattr(a, "grey")\n', None),
    ],
)
def test_attributes(before: str, expected: str | None) -> None:
    assert after(before, BLUE) == (expected or before)


@pytest.mark.parametrize(
    ("before", "where", "expected"),
    [
        ("go()\n", "before", "ready()\ngo()\n"),
        ("go()\n", "after", "go()\nready()\n"),
        ("if a:\n    x = b.go(1)\n", "before", "if a:\n    ready()\n    x = b.go(1)\n"),
        ("def f():\n    return go(go())\n", "before", "def f():\n    ready()\n    return go(go())\n"),
        ("going()\ngo\n", "before", None),
        ("def go(): pass\ngo()\n", "before", None),
    ],
)
def test_lines(before: str, where: str, expected: str | None) -> None:
    assert after(before, insert("go", "ready()", where)) == (expected or before)


@pytest.mark.parametrize(
    ("before", "where"),
    [
        ("def f():\n    return go()\n", "after"),
        ("if go():\n    pass\n", "before"),
        ("while go():\n    pass\n", "before"),
        ("x = [go() for _ in y]\n", "before"),
        ("f = lambda: go()\n", "before"),
    ],
)
def test_where_no_line_can_stand_it_is_said(before: str, where: str) -> None:
    result = run(before, insert("go", "ready()", where))
    assert not result.changed
    assert [finding.code for finding in result.findings] == ["NPU009"]


def test_lines_by_a_full_name_and_of_more_than_one_line() -> None:
    source = "import lib as l\nl.start(1)\nother.start(1)\n"
    assert after(source, insert("lib.start", "a()\nb()")) == "import lib as l\na()\nb()\nl.start(1)\nother.start(1)\n"


DELETE = rule("ArgsModifyRule", func_name="lib.go", delete_keyword="fast")
BY_NAME = rule("ArgsModifyRule", func_name="lib.go", arg_keyword="fast", arg_new="False")


@pytest.mark.parametrize(
    ("call", "expected", "chosen"),
    [
        ("go(1, fast=True)", "go(1)", DELETE),
        ("go(fast=True, slow=2)", "go(slow=2)", DELETE),
        ("go(1, 2)", None, DELETE),
        ("go(fast)", None, DELETE),
        ("go(1, fast=True)", "go(1, fast=False)", BY_NAME),
        ("go(1, True)", None, BY_NAME),
        ("go(*x, fast=True)", "go(*x, fast=False)", BY_NAME),
    ],
)
def test_arguments_by_their_name(call: str, expected: str | None, chosen: dict[str, Any]) -> None:
    head = "from lib import go\n"
    assert after(f"{head}{call}\n", chosen) == f"{head}{expected or call}\n"


@pytest.mark.parametrize(
    ("call", "chosen", "why"),
    [
        ("go(a=1)", {"arg_idx": 0, "arg_new": "2"}, "argument 0 may be passed by name, and the rule has no"),
        ("go(*x)", {"arg_idx": 0, "arg_new": "2"}, "argument 0 may be among the arguments after * or **"),
        ("go(**x)", {"arg_keyword": "a", "arg_new": "2"}, "a may be among the arguments after * or **"),
        ("go(**x)", {"delete_keyword": "a"}, "a may be among the arguments after * or **"),
        ("go()", {"arg_idx": 0, "arg_new": "2"}, ""),
        ("go(1)", {"arg_idx": 1, "arg_new": "2"}, ""),
        ("go(b=1)", {"arg_idx": 0, "arg_keyword": "a", "arg_new": "2"}, ""),
        ("go(b=1)", {"delete_keyword": "a"}, ""),
        ("go(a=1)", {"arg_idx": 0, "arg_new": "2", "skip_if": {"has_keyword": ["a"]}}, ""),
        ("other(a=1)", {"arg_idx": 0, "arg_new": "2"}, ""),
    ],
)
def test_a_call_that_is_left_is_told_of(call: str, chosen: dict[str, Any], why: str) -> None:
    result = run(f"from lib import go\n{call}\n", rule("ArgsModifyRule", func_name="lib.go", **chosen))
    assert not result.changed
    told = [finding.message for finding in result.findings if finding.code == "NPU016"]
    assert len(told) == bool(why)
    assert all(message.startswith(f"a rule of yours could not change this call of lib.go: {why}") for message in told)


def test_among_very_many_rules_each_is_found() -> None:
    many = [{"old_name": f"lib{n}.func{n}", "new_name": f"lib{n}.new{n}"} for n in range(600)]
    rules = {"FuncNameModifyRule": [*many, {"old_name": "last_of_all", "new_name": "x"}]} | GREY | BLUE
    source = "import lib7\nlib7.func7(a.grey, 'grey')\nb.last_of_all()\n"
    assert after(source, rules) == "import lib7\nlib7.new7(a.blue, 'blue')\nb.x()\n"
    assert after("b.last_of_all()\n", rules) == "b.x()\n"
    assert after("x = 'grey'\n", rules) == "x = 'blue'\n"
    assert after("x = func700\n", rules) == "x = func700\n"


# --- trying rules, and rules that match nothing ----------------------------------------------------------------------


def project(folder: Path, rules: dict[str, Any], **files: str) -> str:
    """Migrate files with rules; what the summary says."""
    source = folder / "p"
    source.mkdir()
    for module, text in files.items():
        (source / f"{module}.py").write_text(text)
    (folder / "mine.json").write_text(json.dumps({"rules": rules}))
    done = transplt("-i", str(source), "-o", str(folder / "out"), "-r", str(folder / "mine.json"), cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("chosen", "near"),
    [
        (rule("FuncNameModifyRule", old_name="lib.strat", new_name="x"), "lib.start"),
        (rule("FuncNameModifyRule", old_name="strat", new_name="x"), "start"),
        (rule("ArgsModifyRule", func_name="lib.strt", arg_idx=0, arg_new="1"), "lib.start"),
        (rule("ModuleNameModifyRule", old_name="libb", new_name="x"), "lib"),
        (rule("StringModifyRule", old_string="greyy", new_string="x"), "grey"),
        (rule("AttributeModifyRule", old_name="is_grye", new_name="x"), "is_grey"),
        (rule("UnsupportedRule", name="zzz"), ""),
        (insert("lib.starrt", "x()"), "lib.start"),
    ],
)
def test_a_rule_that_matches_nothing_is_named(chosen: dict[str, Any], near: str, tmp_path: Path) -> None:
    files = {"a": "import lib\nlib.start('grey').is_grey\n", "b": "not python\n"}
    said = project(tmp_path, chosen, **files)
    old = next(iter(next(iter(chosen.values()))[0].values()))
    hint = f"; the nearest name there is {near}" if near else ""
    assert f"  mine.json: the {next(iter(chosen))} for {old} matches nothing here{hint}\n" in said


def test_rules_that_match_are_not_named(tmp_path: Path) -> None:
    rules = name("start", "go") | GREY | BLUE | rule("UnsupportedRule", name="lib")
    assert "matches nothing" not in project(tmp_path, rules, a="import lib\nlib.start('grey').grey\n")


def test_of_many_rules_that_match_nothing_a_few_are_named(tmp_path: Path) -> None:
    many = {"FuncNameModifyRule": [{"old_name": f"lib.f{n}", "new_name": "x"} for n in range(12)]}
    said = project(tmp_path, many, a="import torch\n")
    assert said.count("matches nothing here") == 5
    assert "7 more rules match nothing here" in said


def test_the_example_is_valid_and_can_be_tried(tmp_path: Path) -> None:
    assert transplt("rules", "init", cwd=tmp_path).returncode == 0
    assert transplt("rules", "validate", "rules.json", cwd=tmp_path).returncode == 0
    again = transplt("rules", "init", cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr == "Error: rules.json exists and was not changed; give another name\n"
    (tmp_path / "t.py").write_text("import lib\nlib.cuda_sync()\nlib.loader(1, workers=2)\n")
    done = transplt("rules", "try", "rules.json", "t.py", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert "FuncNameModifyRule[0] lib.cuda_sync: 1 place" in lines
    assert any(line.startswith("  t.py:2:") and line.endswith(": lib.cuda_sync -> lib.npu_sync") for line in lines)
    assert "InsertRule[0] lib.start: matches nothing" in lines
    assert lines[-2:] == ["+lib.npu_sync()", "+lib.loader(1, workers=8)"]
    assert (tmp_path / "t.py").read_text().startswith("import lib\nlib.cuda_sync()")


def test_what_cannot_be_tried_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"rules": {}}')
    done = transplt("rules", "try", "mine.json", "absent.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: cannot read absent.py: ")


RULE = '"rules": {"FuncNameModifyRule": [{"old_name": "lib.a", "new_name": "lib.b"}]}'


@pytest.mark.parametrize(
    ("example", "wrong"),
    [
        ('{"before": ["import lib", "lib.a()"], "after": ["import lib", "lib.b()"]}', ()),
        ('{"before": "import lib\\nlib.a()\\n", "after": "import lib\\nlib.b()\\n", "finds": []}', ()),
        ('{"before": "other.a()"}', ()),
        ('{"before": "import torch\\nx = torch.cuda.nccl\\n", "finds": ["NPU501"], "versions": ["2.6", "2.8"]}', ()),
        ('{"before": ["import lib", "lib.a()"]}', ("-lib.a()", "+lib.b()")),
        ('{"before": "other.a()", "finds": ["NPU501"]}', ("finds nothing, not NPU501",)),
        ('{"before": "def f(:"}', ("NPU901",)),
    ],
)
def test_examples_of_a_rule_file(tmp_path: Path, example: str, wrong: tuple[str, ...]) -> None:
    (tmp_path / "mine.json").write_text(f'{{"examples": [{example}], {RULE}}}')
    done = transplt("rules", "test", "mine.json", cwd=tmp_path)
    assert done.returncode == bool(wrong), done.stdout
    assert f"mine.json: {0 if wrong else 1} of 1 examples hold" in done.stdout
    assert all(each in done.stdout for each in wrong)


def test_an_example_for_no_version(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(f'{{"examples": [{{"before": "x", "versions": ">9"}}], {RULE}}}')
    done = transplt("rules", "test", "mine.json", cwd=tmp_path)
    assert done.returncode == 2 and "$.examples[0].versions: expected torch versions such as" in done.stderr


def test_an_example_without_a_program(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(f'{{"examples": [{{"after": "x"}}], {RULE}}}')
    done = transplt("rules", "test", "mine.json", cwd=tmp_path)
    assert done.returncode == 2 and "$.examples[0]: the key 'before' is missing" in done.stderr
