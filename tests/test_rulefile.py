"""Rule files of users: what is accepted, and that each mistake is said in one sentence with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.rules.rule_file import problems
from transplt.rules.rule_set import RuleFileError, compile_rules, load_user_rules

ISSUE = """{"rules": {
  "ArgsModifyRule":       [{"func_name": "name1", "arg_idx": 0, "arg_new": "args0"}],
  "FuncNameModifyRule":   [{"old_name": "func", "new_name": "new_func"}],
  "ModuleNameModifyRule": [{"old_name": "module", "new_name": "new_module", "parent_module": "parent_module"}]}}
"""


def write(folder: Path, text: str | bytes, name: str = "rules.json") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def func(**keys: object) -> str:
    return json.dumps({"rules": {"FuncNameModifyRule": [keys]}})


def args(**keys: object) -> str:
    return json.dumps({"rules": {"ArgsModifyRule": [{"func_name": "f", "arg_idx": 0, "arg_new": "1"} | keys]}})


@pytest.mark.parametrize(
    "text",
    [
        ISSUE,
        '{"rules": {}}',
        '{"$schema": "x", "description": "d", "defaults": {"ArgsModifyRule": {"code": "NPU009"}}, "rules": {}}',
        func(old_name="größe", new_name="a.b"),
        func(
            old_name="a.b", new_name="c", versions=">=2.1,!=2.8", message="m", help="h", level="unsafe", code="NPU010"
        ),
        func(old_name="a.b", new_name="c", versions=["2.1", TORCH_VERSIONS[-1]], skip_if={"has_keyword": ["x"]}),
        func(old_name="a.b", new_name="c", similar=True, differs="slower", source="measured"),
        func(old_name="a.b", new_name="c", args={"rename_keyword": {"x": "y"}, "name_positional": {"1": "z"}}),
        args(arg_new="", arg_keyword="x"),
        args(arg_new="(1, 2)"),
        args(arg_new=" lambda: {'a': [b for b in c]} "),
        args(arg_new="f'{x}'", skip_if={"positional_at_least": 3}),
        json.dumps({"rules": {"UnsupportedRule": [{"name": "pkg", "where": "import", "effort": "high"}]}}),
    ],
)
def test_accepted(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert load_user_rules([path]) == ((str(path), text),)


def test_a_byte_order_mark_and_crlf_are_no_mistake(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbf" + ISSUE.replace("\n", "\r\n").encode())
    ((_, text),) = load_user_rules([path])
    assert compile_rules(Settings(user_rules=(("r", text),))).user.last_names["func"].new == "new_func"


def test_files_keep_their_order(tmp_path: Path) -> None:
    paths = [write(tmp_path, '{"rules": {}}', name) for name in ("b.json", "a.json")]
    assert [name for name, _ in load_user_rules(paths)] == [str(path) for path in paths]


@pytest.mark.parametrize(
    ("text", "line", "json_path", "message"),
    [
        (
            '{"defaults": {"FuncNameModifyRule": {"level": "info"}}, "rules": {}}',
            1,
            "$.defaults.FuncNameModifyRule.level",
            "expected one of 'safe', 'unsafe', got 'info'",
        ),
        (
            '{"defaults":\n{"UnsupportedRule": {"level": "safe"}}, "rules": {}}',
            2,
            "$.defaults.UnsupportedRule.level",
            "expected one of 'manual', 'info'",
        ),
        ("[]", 1, "$", "expected an object {...}, got a list"),
        ("{}", 1, "$", "the key 'rules' is missing"),
        ('{"rules": {},\n "rule": {}}', 2, "$.rule", "unknown key 'rule'"),
        ('{"rules": {\n"Args": []}}', 2, "$.rules.Args", "known here: ArgsModifyRule, AttributeModifyRule"),
        (
            '{"rules": {"FuncNameModifyRule": {}}}',
            1,
            "$.rules.FuncNameModifyRule",
            "expected a list [...], got an object",
        ),
        (
            '{"rules": {"FuncNameModifyRule":\n[1]}}',
            2,
            "$.rules.FuncNameModifyRule[0]",
            "expected an object {...}, got 1",
        ),
        (func(old_name="a"), 1, "$.rules.FuncNameModifyRule[0]", "the key 'new_name' is missing"),
        (func(old_name="a", new_name=3), 1, "$.rules.FuncNameModifyRule[0].new_name", "expected a string, got 3"),
        (func(old_name="a", new_name=None), 1, "$.rules.FuncNameModifyRule[0].new_name", "expected a string, got null"),
        (func(old_name="a", new_name="b c"), 1, "$.rules.FuncNameModifyRule[0].new_name", "got 'b c'"),
        (func(old_name="a.", new_name="b"), 1, "$.rules.FuncNameModifyRule[0].old_name", "identifier"),
        (func(old_name="", new_name="b"), 1, "$.rules.FuncNameModifyRule[0].old_name", "identifier"),
        (func(old_name="a", new_name="x.class"), 1, "$.rules.FuncNameModifyRule[0].new_name", "keyword of Python"),
        (func(old_name="a", new_name="b²"), 1, "$.rules.FuncNameModifyRule[0].new_name", "identifier"),
        (func(old_name="a", new_name="b", arg_idx=1), 1, "$.rules.FuncNameModifyRule[0].arg_idx", "unknown key"),
        (
            func(old_name="a", new_name="b", level="sure"),
            1,
            "$.rules.FuncNameModifyRule[0].level",
            "one of 'safe', 'unsafe', got 'sure'",
        ),
        (func(old_name="a", new_name="b", level="manual"), 1, "$.rules.FuncNameModifyRule[0].level", "got 'manual'"),
        (func(old_name="a", new_name="b", effort="low"), 1, "$.rules.FuncNameModifyRule[0].effort", "unknown key"),
        (func(old_name="a", new_name="b", code="X1"), 1, "$.rules.FuncNameModifyRule[0].code", "a code such as NPU002"),
        (func(old_name="a", new_name="b", versions=""), 1, "$.rules.FuncNameModifyRule[0].versions", "torch versions"),
        (func(old_name="a", new_name="b", versions="2"), 1, "$.rules.FuncNameModifyRule[0].versions", "comparison"),
        (func(old_name="a", new_name="b", versions=["9.9"]), 1, "$.rules.FuncNameModifyRule[0].versions", "'9.9'"),
        (func(old_name="a", new_name="b", versions=">=9.0"), 1, "$.rules.FuncNameModifyRule[0].versions", "no torch"),
        (func(old_name="a", new_name="b", similar=True), 1, "$.rules.FuncNameModifyRule[0]", "needs 'differs'"),
        (func(old_name="a", new_name="b", skip_if={}), 1, "$.rules.FuncNameModifyRule[0].skip_if", "must not be empty"),
        (args(arg_idx=-1), 1, "$.rules.ArgsModifyRule[0].arg_idx", "at least 0, got -1"),
        (args(arg_idx=True), 1, "$.rules.ArgsModifyRule[0].arg_idx", "a whole number, got true"),
        (args(arg_idx="0"), 1, "$.rules.ArgsModifyRule[0].arg_idx", "a whole number, got '0'"),
        (args(arg_new="("), 1, "$.rules.ArgsModifyRule[0].arg_new", "expected a Python expression"),
        (args(arg_new="a)(b"), 1, "$.rules.ArgsModifyRule[0].arg_new", "expected a Python expression"),
        (args(arg_new="a, b"), 1, "$.rules.ArgsModifyRule[0].arg_new", "parentheses"),
        (args(arg_new="x=1"), 1, "$.rules.ArgsModifyRule[0].arg_new", "expected a Python expression"),
        (args(arg_new="*x"), 1, "$.rules.ArgsModifyRule[0].arg_new", "expected a Python expression"),
        (args(arg_new="a # b"), 1, "$.rules.ArgsModifyRule[0].arg_new", "expected a Python expression"),
        (args(arg_new="\x00"), 1, "$.rules.ArgsModifyRule[0].arg_new", "expected a Python expression"),
        (args(arg_new="(" * 5000 + ")" * 5000), 1, "$.rules.ArgsModifyRule[0].arg_new", "expected a Python expression"),
        (args(arg_new="  "), 1, "$.rules.ArgsModifyRule[0].arg_new", "blanks"),
        (args(arg_keyword="a.b"), 1, "$.rules.ArgsModifyRule[0].arg_keyword", "a Python identifier"),
        ('{"rules": {"FuncNameModifyRule": [], \n"FuncNameModifyRule": []}}', 2, "$.rules.FuncNameModifyRule", "twice"),
        ('{"rules": {\n', 2, "$", "not valid JSON"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, line: int, json_path: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(RuleFileError) as caught:
        load_user_rules([path])
    error = caught.value
    assert (error.path, error.line, error.json_path) == (str(path), line, json_path)
    assert message in error.message
    assert re.match(rf"{re.escape(str(path))}:{line}:(\d+:)? ", str(error))
    assert "\n" not in str(error)
    assert len(str(error)) < 400


def test_two_rules_for_one_name(tmp_path: Path) -> None:
    rules = [{"old_name": "f", "new_name": "g"}, {"old_name": "f", "new_name": "h"}]
    path = write(tmp_path, json.dumps({"rules": {"FuncNameModifyRule": rules}}, indent=1))
    with pytest.raises(RuleFileError, match="rules 1 and 2 of FuncNameModifyRule are both for `f`") as caught:
        load_user_rules([path])
    assert caught.value.json_path == "$.rules.FuncNameModifyRule[1]"
    assert caught.value.line == 8


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        (
            "FuncNameModifyRule",
            [
                {"old_name": "f", "new_name": "g", "versions": "<2.6"},
                {"old_name": "f", "new_name": "h", "versions": ">=2.6"},
            ],
        ),
        (
            "ArgsModifyRule",
            [{"func_name": "f", "arg_idx": 0, "arg_new": "1"}, {"func_name": "f", "arg_idx": 1, "arg_new": "1"}],
        ),
        (
            "ModuleNameModifyRule",
            [
                {"old_name": "m", "new_name": "n", "parent_module": "a"},
                {"old_name": "m", "new_name": "n", "parent_module": "b"},
            ],
        ),
    ],
)
def test_what_differs_is_no_duplicate(tmp_path: Path, kind: str, rules: list[dict[str, object]]) -> None:
    assert load_user_rules([write(tmp_path, json.dumps({"rules": {kind: rules}}))])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "no such rule file"),
        ("folder", "the rule file cannot be read"),
        (b'{"rules":\n{"\xff": 1}}', "must be UTF-8"),
        ('{"rules": {}}'.encode("utf-16"), "must be UTF-8"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes | str | None, message: str) -> None:
    path = tmp_path / "rules.json"
    if isinstance(data, bytes):
        path.write_bytes(data)
    elif data == "folder":
        path.mkdir()
    with pytest.raises(RuleFileError, match=message) as caught:
        load_user_rules([path])
    assert str(path) in str(caught.value)
    if data == b'{"rules":\n{"\xff": 1}}':
        assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "1:1: not valid JSON: the file is empty"),
        ('{"rules": {', "1:12: not valid JSON: it ends too early"),
        ('{"rules": {},}', "1:14: not valid JSON: a comma before '}'; take it out"),
        ('{"rules": {"x": [1, 2,]}}', "1:23: not valid JSON: a comma before ']'; take it out"),
        ('{"rules": {}\n "x": 1}', "2:2: not valid JSON: a comma is missing before '\"'"),
        ('{"rules" {}}', "1:10: not valid JSON: a colon is missing before '{'"),
        ("{'rules': {}}", "1:2: not valid JSON: text must be in straight double quotes"),
        ('{"rules": \'x\'}', "1:11: not valid JSON: text must be in straight double quotes"),
        ('{// x\n"rules": {}}', "1:2: not valid JSON: it has no comments; a key 'description' or 'source' takes text"),
        ("{rules: {}}", "1:2: not valid JSON: a key in double quotes was expected, not 'r'"),
        ('{"rules": True}', "1:11: not valid JSON: True is written true"),
        ('{"rules": None}', "1:11: not valid JSON: None is written null"),
        ('{"rules": yes}', "1:11: not valid JSON: a value was expected, not 'yes'"),
        ('{"rules": "x}', "1:11: not valid JSON: the closing double quote of this text is missing"),
        ('{"rules": "a\nb"}', "1:13: not valid JSON: a line ends inside a text; write \\n for a new line"),
        ('{"rules": "\\w"}', "1:12: not valid JSON: a backslash inside a text is written twice"),
        ('{"rules": {}} {}', "1:15: not valid JSON: '{' behind the end of the value"),
    ],
)
def test_what_is_no_json_is_said_in_words(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(RuleFileError) as caught:
        load_user_rules([path])
    assert str(caught.value) == f"{path}:{says}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (func(old_nam="a", new_name="b"), "unknown key 'old_nam'; did you mean 'old_name'?"),
        (args(arg_indx=1), "unknown key 'arg_indx'; did you mean 'arg_idx'?"),
        ('{"rules": {"InsertRules": []}}', "unknown key 'InsertRules'; did you mean 'InsertRule'?"),
        ('{"rule": {}, "rules": {}}', "unknown key 'rule'; did you mean 'rules'?"),
    ],
)
def test_a_key_that_is_nearly_right(text: str, says: str) -> None:
    assert says in [error.message for error in problems("mine.json", text)]


def test_rules_that_are_wrong_among_many_are_found_at_their_place() -> None:
    rules = [{"old_name": f"f{n}", "new_name": f"g{n}"} for n in range(50)]
    rules[30] = {"old_name": "f30", "new": "g30"}
    rules[40]["old_name"] = "f41"
    text = json.dumps({"rules": {"FuncNameModifyRule": rules}}, indent=0)
    line = text[: text.index('"new": ')].count("\n") + 1
    wrong = [(error.json_path, error.line) for error in problems("mine.json", text)]
    assert wrong == [("$.rules.FuncNameModifyRule[30]", line - 2), ("$.rules.FuncNameModifyRule[30].new", line)]


def test_thousands_of_rules_share_their_literals() -> None:
    """The prefilter looks for what their names have in common, not for each of them."""
    rules = [{"old_name": f"lib{n % 90}.func{n * 7919 % 99991}", "new_name": f"new{n}"} for n in range(12500)]
    text = json.dumps({"rules": {"FuncNameModifyRule": rules}})
    assert list(problems("mine.json", text)) == []
    compiled = compile_rules(Settings(user_rules=(("mine.json", text),)))
    assert compiled.user.resolve("lib0.func0") is not None
    assert len(compiled.literals) < 400
