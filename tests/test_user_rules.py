"""The users' rules end to end: names, modules, arguments, and who wins."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness import clean
from transplt.base.finding import FileResult, Level
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.rules.rule_file import problems

LINE = "import torch_npu  # noqa: F401\n"


def run(source: str, *files: dict[str, Any], **settings: Any) -> FileResult:
    """Migrate a file under rule files, each given as the value of its key `rules`."""
    texts = [json.dumps({"rules": rules}) for rules in files]
    for text in texts:
        assert [str(problem) for problem in problems("mine.json", text)] == []
    chosen = Settings(user_rules=tuple((f"r{i}.json", text) for i, text in enumerate(texts)), **settings)
    result = migrate_source(clean(source).encode(), "m.py", chosen)
    compile(result.data, "m.py", "exec")
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    return result


def name(old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"FuncNameModifyRule": [{"old_name": old, "new_name": new, **more}]}


def argument(func: str, index: int, new: str, **more: Any) -> dict[str, Any]:
    return {"ArgsModifyRule": [{"func_name": func, "arg_idx": index, "arg_new": new, **more}]}


def module(old: str, new: str, parent: str = "") -> dict[str, Any]:
    return {"ModuleNameModifyRule": [{"old_name": old, "new_name": new, "parent_module": parent}]}


def after(source: str, *files: dict[str, Any], **settings: Any) -> str:
    return run(source, *files, **settings).data.decode()


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("func()\n", "new_func()\n"),
        ("a.func(1)\n", "a.new_func(1)\n"),
        ("a().b[0].func(1)\n", "a().b[0].new_func(1)\n"),
        ("a.func.func(func())\n", "a.func.new_func(new_func())\n"),
        ("x = func\n", "x = func\n"),
        ("my_func(); func_x()\n", "my_func(); func_x()\n"),
        ("from lib import func\nfunc()\n", "from lib import new_func\nnew_func()\n"),
        ("from lib import func\nx = func, func()\n", "from lib import new_func\nx = new_func, new_func()\n"),
        ("from lib import func\nx = func\n", "from lib import func\nx = func\n"),
        (
            "from lib import func\nfunc()\n__all__ = ['func']\n",
            "from lib import new_func as func\nfunc()\n__all__ = ['func']\n",
        ),
        ("from lib import func as f\nf()\n", "from lib import func as f\nf()\n"),
        ("a.func(  # why\n    1,\n)\n", "a.new_func(  # why\n    1,\n)\n"),
    ],
)
def test_an_undotted_name_is_the_last_name_of_a_call(before: str, expected: str) -> None:
    assert after(before, name("func", "new_func")) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("import lib\nlib.a.f(1)\n", "import lib\nlib.a.g(1)\n"),
        ("import lib.a\nlib.a.f\n", "import lib.a\nlib.a.g\n"),
        ("import lib.a as x\nx.f()\n", "import lib.a as x\nx.g()\n"),
        ("from lib import a\na.f()\n", "from lib import a\na.g()\n"),
        ("from lib.a import f as h\nh()\n", "from lib.a import g as h\nh()\n"),
        ("from lib.a import (\n    e,\n    f,  # two\n)\n", "from lib.a import (\n    e,\n    g,  # two\n)\n"),
        ("import lib\n@lib.a.f\ndef x(): pass\n", "import lib\n@lib.a.g\ndef x(): pass\n"),
        ("import lib\nlib.a.f.more()\n", "import lib\nlib.a.g.more()\n"),
        ("import lib\nlib.a.ff()\n", "import lib\nlib.a.ff()\n"),
        ("import other as lib\nlib.a.f()\n", "import other as lib\nlib.a.f()\n"),
        ("import lib\ndef x(lib):\n    lib.a.f()\n", "import lib\ndef x(lib):\n    lib.a.f()\n"),
        ("lib.a.f()\n", "lib.a.f()\n"),
    ],
)
def test_a_dotted_name_is_a_full_name(before: str, expected: str) -> None:
    assert after(before, name("lib.a.f", "lib.a.g")) == expected


def test_the_module_in_front_of_a_users_name_follows_its_own_rule() -> None:
    rule = name("synchronize", "sync_all")
    assert after("import torch\ntorch.cuda.synchronize()\n", rule) == f"import torch\n{LINE}torch.npu.sync_all()\n"
    assert after("import torch\ntorch.cuda.empty_cache()\n", rule) == f"import torch\n{LINE}torch.npu.empty_cache()\n"
    assert after("stream.synchronize()\n", rule) == "stream.sync_all()\n"
    aliased = after("import torch.cuda as tc\ntc.synchronize()\n", rule)
    assert aliased == f"{LINE}import torch.npu as tc\ntc.sync_all()\n"
    imported = after("from torch.cuda import synchronize\nsynchronize()\n", rule)
    assert imported == f"{LINE}from torch.npu import sync_all\nsync_all()\n"


def test_a_dotted_new_name_replaces_the_callee_and_is_imported() -> None:
    rule = name("torch.cuda.empty_cache", "gc.collect")
    assert after("import torch\ntorch.cuda.empty_cache()\n", rule) == "import torch\nimport gc\ngc.collect()\n"
    assert after("import gc, torch\ntorch.cuda.empty_cache()\n", rule) == "import gc, torch\ngc.collect()\n"
    deep = name("func", "pkg.sub.new")
    assert after("a.func(1)\n", deep) == "import pkg.sub\npkg.sub.new(1)\n"


def test_a_name_that_is_bound_here_is_not_imported_again() -> None:
    rule = name("func", "pkg.new")
    assert after("from my import pkg\nfunc()\n", rule) == "from my import pkg\npkg.new()\n"


# --- modules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("import lib.ops\nlib.ops.f()\n", "import lib.fast\nlib.fast.f()\n"),
        ("import lib.ops as o\no.f()\n", "import lib.fast as o\no.f()\n"),
        ("from lib import ops as o\no.f()\n", "from lib import fast as o\no.f()\n"),
        ("from lib.ops import f\nf()\n", "from lib.fast import f\nf()\n"),
        ("from lib.ops.deep import f\nf()\n", "from lib.fast.deep import f\nf()\n"),
        ("import other.ops\nother.ops.f()\n", "import other.ops\nother.ops.f()\n"),
        ("from .lib.ops import f\n", "from .lib.ops import f\n"),
        ("def g():\n    from lib.ops import f\n    f()\n", "def g():\n    from lib.fast import f\n    f()\n"),
        (
            "try:\n    from lib.ops import f\nexcept ImportError:\n    f = None\n",
            "try:\n    from lib.fast import f\nexcept ImportError:\n    f = None\n",
        ),
    ],
)
def test_modules_move_with_their_uses(before: str, expected: str) -> None:
    assert after(before, module("ops", "fast", "lib")) == expected


def test_a_top_level_module() -> None:
    assert after("import old\nold.f()\n", module("old", "new")) == "import new\nnew.f()\n"
    assert after("import old as o\no.f()\n", module("old", "new")) == "import new as o\no.f()\n"
    assert after("from old.a import b\n", module("old", "new")) == "from new.a import b\n"


# --- arguments -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("f(1, 2)\n", "f(1, new)\n"),
        ("a.f(1, 2, 3)\n", "a.f(1, new, 3)\n"),
        ("f(1)\n", "f(1)\n"),
        ("f(1, *rest)\n", "f(1, *rest)\n"),
        ("f(*rest, 2)\n", "f(*rest, 2)\n"),
        ("f(1, 2, *rest)\n", "f(1, new, *rest)\n"),
        ("f(1, key=2)\n", "f(1, key=2)\n"),
        ("f(1, new)\n", "f(1, new)\n"),
        ("f(\n    1,  # one\n    2,  # two\n    3,\n)\n", "f(\n    1,  # one\n    new,  # two\n    3,\n)\n"),
        ("f(1, (\n    2\n))\n", "f(1, new)\n"),
        ("f(f(1, 2), 2)\n", "f(f(1, new), new)\n"),
    ],
)
def test_an_argument_where_it_stands(before: str, expected: str) -> None:
    assert after(before, argument("f", 1, "new")) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("f(1, key=2)\n", "f(1, key=new)\n"),
        ("f(1, 2, key=3)\n", "f(1, new, key=3)\n"),
        ("f(key = 2)\n", "f(key = new)\n"),
        ("f(*a, key=2)\n", "f(*a, key=new)\n"),
        ("f(**a)\n", "f(**a)\n"),
        ("f(other=2)\n", "f(other=2)\n"),
    ],
)
def test_an_argument_by_keyword(before: str, expected: str) -> None:
    assert after(before, argument("f", 1, "new", arg_keyword="key")) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("f(1, 2)\n", "f(1)\n"),
        ("f(1, 2, 3)\n", "f(1, 3)\n"),
        ("f(1, 2,)\n", "f(1,)\n"),
        ("f(\n    1,\n    2,\n    3,\n)\n", "f(\n    1,\n    3,\n)\n"),
        ("f(1, 2, key=3)\n", "f(1, key=3)\n"),
    ],
)
def test_an_empty_text_deletes(before: str, expected: str) -> None:
    assert after(before, argument("f", 1, "")) == expected


def test_the_only_argument_goes() -> None:
    assert after("f(1)\ng()\n", argument("f", 0, "")) == "f()\ng()\n"
    assert after("f(key=1)\n", argument("f", 0, "", arg_keyword="key")) == "f()\n"


def test_comments_of_a_deleted_argument_survive() -> None:
    result = after("f(\n    1,  # first\n    2,  # second\n    3,  # third\n)\n", argument("f", 1, ""))
    compile(result, "m.py", "exec")
    assert "2," not in result
    assert all(word in result for word in ("# first", "# second", "# third"))


@pytest.mark.parametrize("effect", ["g()", "await g()", "(yield)", "(y := 2)", "[g() for x in y]"])
def test_a_replaced_argument_with_effects_is_a_finding_too(effect: str) -> None:
    result = run(f"async def h():\n    f(1, {effect})\n" if "await" in effect else f"def h():\n    f(1, {effect})\n",
                 argument("f", 1, "new"))
    assert b"f(1, new)" in result.data
    (said,) = [finding for finding in result.findings if not finding.applied]
    assert (said.level, said.code) == (Level.MANUAL, "NPU001")


@pytest.mark.parametrize("plain", ["2", "'text'", "x.y", "[1, 2]", "lambda: 1"])
def test_plain_values_have_no_effects(plain: str) -> None:
    result = run(f"f(1, {plain})\n", argument("f", 1, "new"))
    assert [finding.applied for finding in result.findings] == [True]


def test_several_arguments_of_one_call() -> None:
    rules = {
        "ArgsModifyRule": [
            {"func_name": "lib.f", "arg_idx": 0, "arg_new": "'a'"},
            {"func_name": "lib.f", "arg_idx": 2, "arg_new": "c.d(e)"},
        ]
    }
    assert after("import lib as l\nl.f(1, 2, 3)\n", rules) == "import lib as l\nl.f('a', 2, c.d(e))\n"


def test_the_rest_of_the_expression_still_follows_the_built_in_rules() -> None:
    source = "import torch\nf(x.cuda(), torch.cuda.current_device())\n"
    assert after(source, argument("f", 1, "0")) == f"import torch\n{LINE}f(x.npu(), 0)\n"


# --- who wins --------------------------------------------------------------------------------------------------------


def test_user_rules_win_over_built_in_ones() -> None:
    source = "import torch\ntorch.cuda.synchronize()\ntorch.cuda.empty_cache()\n"
    rule = name("torch.cuda.synchronize", "torch.npu.wait_for_all")
    assert after(source, rule) == f"import torch\n{LINE}torch.npu.wait_for_all()\ntorch.npu.empty_cache()\n"
    moved = module("cuda", "xpu", "torch")
    assert "npu" not in after("import torch\ntorch.cuda.synchronize()\n", moved)
    assert "torch.xpu.synchronize()" in after("import torch\ntorch.cuda.synchronize()\n", moved)


def test_a_later_file_wins() -> None:
    assert after("import lib\nlib.f()\n", name("lib.f", "lib.g"), name("lib.f", "lib.h")) == "import lib\nlib.h()\n"
    assert after("f(1)\n", argument("f", 0, "2"), argument("f", 0, "3")) == "f(3)\n"


def test_the_longest_name_answers() -> None:
    rules = {
        "FuncNameModifyRule": [{"old_name": "lib.a.f", "new_name": "lib.a.g"}],
        "ModuleNameModifyRule": [{"old_name": "a", "new_name": "b", "parent_module": "lib"}],
    }
    assert after("import lib\nlib.a.f(), lib.a.x()\n", rules) == "import lib\nlib.a.g(), lib.b.x()\n"


def test_rules_hold_for_versions() -> None:
    rule = name("lib.f", "lib.g", versions=">=2.6")
    assert after("import lib\nlib.f()\n", rule, torch_version="2.5") == "import lib\nlib.f()\n"
    assert after("import lib\nlib.f()\n", rule, torch_version="2.6") == "import lib\nlib.g()\n"


def test_records() -> None:
    result = run("import lib\nlib.f()\n", name("lib.f", "lib.g", message="f is g now"))
    (record,) = result.findings
    assert (record.code, record.applied, record.level) == ("NPU002", True, Level.SAFE)
    assert record.edit is not None and (record.edit.before, record.edit.after) == ("f", "g")


def test_a_users_own_unsupported_name() -> None:
    result = run("import lib\nlib.f()\n", {"UnsupportedRule": [{"name": "lib.f", "help": "use g"}]})
    (record,) = result.findings
    assert (record.code, record.level, record.help, result.changed) == ("NPU004", Level.MANUAL, "use g", False)


# --- the project's own -----------------------------------------------------------------------------------------------


def left(source: str, *rules: dict[str, Any], files: dict[str, str] | None = None) -> list[tuple[int, str]]:
    """The lines and codes of what is left of a file of a project that the rules do not change."""
    settings = Settings(user_rules=tuple((f"r{i}.json", json.dumps({"rules": each})) for i, each in enumerate(rules)))
    texts = {"app/m.py": clean(source), **{path: clean(text) for path, text in (files or {}).items()}}
    facts = [index_source(text.encode(), path, settings) for path, text in texts.items()]
    result = migrate_source(texts["app/m.py"].encode(), "app/m.py", settings, ProjectFacts.join(facts))
    assert result.data.decode() == texts["app/m.py"]
    return [(finding.span.line, finding.code) for finding in result.findings if finding.open]


RENAME, DELETE = name("func", "new_func"), argument("func", 0, "")
OWN = {
    "a function": "def func(x): pass\nfunc(1)\n",
    "a function further down": "def f():\n    return func(1)\nasync def func(x): pass\n",
    "a function of a function": "def f():\n    def func(x): pass\n    func(1)\n",
    "a class": "class func: pass\nfunc(1)\n",
    "a parameter": "def run(func):\n    func(1)\n",
    "a variable": "func = make()\nfunc(1)\n",
    "a loop": "for func in many:\n    func(1)\n",
    "an import beside": "from .lib import func\nfunc(1)\n",
    "an import above": "from ..lib import func as func\nfunc(1)\n",
    "an import of a module": "from app.lib import func\nfunc(1)\n",
    "an import by a shorter name": "from lib import func\nfunc(1)\n",
    "an import of another name": "from app.lib import other as func\nfunc(1)\n",
    "a star": "from app.lib import *\nfunc(1)\n",
}


@pytest.mark.parametrize("what", OWN)
@pytest.mark.parametrize("rule", [RENAME, DELETE, name("func", "lib.g")], ids=["rename", "argument", "dotted"])
def test_calls_of_what_the_project_defines_are_left_and_said(what: str, rule: dict[str, Any]) -> None:
    files = {"app/__init__.py": "", "app/lib.py": "def func(x): pass\ndef other(x): pass\ncuda = 1\n", "lib/x.py": ""}
    line = next(at for at, text in enumerate(OWN[what].splitlines(), 1) if "func(1)" in text)
    if what == "an import above":
        files["lib/__init__.py"] = "def func(x): pass\n"
    assert left(OWN[what], rule, files=files) == [(line, "NPU005")]


def test_a_call_that_two_rules_are_for_is_said_once() -> None:
    assert left("def func(x): pass\nfunc(1)\n", RENAME, DELETE) == [(2, "NPU005")]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("def func(x): pass\nlib.func(1)\n", "def func(x): pass\nlib.new_func(1)\n"),
        ("class A:\n    def func(x): pass\n    def g(self): self.func(1)\n",
         "class A:\n    def func(x): pass\n    def g(self): self.new_func(1)\n"),
        ("class A:\n    def func(x): pass\nfunc(1)\n", "class A:\n    def func(x): pass\nnew_func(1)\n"),
        ("def f():\n    def func(x): pass\nfunc(1)\n", "def f():\n    def func(x): pass\nnew_func(1)\n"),
        ("from other import *\nfunc(1)\n", "from other import *\nnew_func(1)\n"),
        ("from other import func\nfunc(1)\n", "from other import new_func\nnew_func(1)\n"),
        ("try:\n    from other import func\nexcept ImportError:\n    def func(x): pass\nfunc(1)\n",
         "try:\n    from other import new_func as func\nexcept ImportError:\n    def func(x): pass\nfunc(1)\n"),
    ],
)  # fmt: skip
def test_what_is_not_the_projects_own_follows_the_rule(before: str, expected: str) -> None:
    assert after(before, RENAME) == expected


def test_what_binds_a_name_and_would_not_follow_keeps_its_calls() -> None:
    for binds in ("from lib import other as func", "func = torch.cuda.func", "import func"):
        result = run(f"import torch\n{binds}\nfunc(1)\n", RENAME)
        assert result.data.decode().endswith("func(1)\n") and "new_func" not in result.data.decode()
        assert "NPU005" in [finding.code for finding in result.findings]
    assert after("from lib import other as func\nfunc(1)\n", name("func", "x.g")).endswith("\nx.g(1)\n")
    assert after("import lib\nfunc = lib.func\nfunc(1, 2)\n", DELETE) == "import lib\nfunc = lib.func\nfunc(2)\n"


def test_a_rule_for_a_module_leaves_the_projects_own_of_that_name() -> None:
    files = {"utils/__init__.py": "", "utils/a.py": ""}
    source = "import utils\nimport utils.a as a\nfrom utils.a import f\nutils.g()\n"
    assert left(source, module("utils", "tools"), files=files) == [(1, "NPU005"), (2, "NPU005"), (3, "NPU005")]
    assert after("import utils\nutils.g()\n", module("utils", "tools")) == "import tools\ntools.g()\n"


def test_what_the_project_defines_can_be_ignored() -> None:
    assert left("def func(): pass\nfunc()  # transplt: ignore[NPU005]\n", RENAME) == []


# --- what a rule decides is decided ----------------------------------------------------------------------------------


def still_open(source: str, *rules: dict[str, Any]) -> tuple[str, list[tuple[int, str]]]:
    """The file after the rules, and what is left of it, which the output says again, with the rules and without."""
    result = run(source, *rules)
    said = [(finding.span.line, finding.code) for finding in result.findings if finding.open]
    text = result.data.decode()
    for again in (run(text), run(text, *rules)):
        assert again.data == result.data
        shift = text.count("\n") - clean(source).count("\n")
        assert [(each.span.line - shift, each.code) for each in again.findings if each.open] == said
    return text, said


KEYWORD = {"ArgsModifyRule": [{"func_name": "lib.f", "arg_keyword": "kind", "arg_new": "'npu'"}]}


@pytest.mark.parametrize(
    ("before", "rule", "expected"),
    [
        ('lib.f(1, "cuda")', argument("lib.f", 1, '"npu"'), 'lib.f(1, "npu")'),
        ('lib.f(1, "cuda:0")', argument("lib.f", 1, '"npu:0"'), 'lib.f(1, "npu:0")'),
        ('lib.f(kind="cuda")', KEYWORD, "lib.f(kind='npu')"),
        ('lib.f(["cuda", "cpu"])', argument("lib.f", 0, '["npu"]'), 'lib.f(["npu"])'),
        ('lib.f({"cuda": 1})', argument("lib.f", 0, '{"npu": 1}'), 'lib.f({"npu": 1})'),
        ('lib.f("cuda" if x else "cpu")', argument("lib.f", 0, '"npu"'), 'lib.f("npu")'),
        ("lib.f(torch.cuda.foo)", argument("lib.f", 0, "torch.npu.foo"), "lib.f(torch.npu.foo)"),
        ('lib.f("cuda")', argument("f", 0, ""), "lib.f()"),
        ('lib.kind("cuda")', {"StringModifyRule": [{"old_string": "cuda", "new_string": "npu"}]}, 'lib.kind("npu")'),
        ('x = {"cuda": 1}', {"StringModifyRule": [{"old_string": "cuda", "new_string": "npu"}]}, 'x = {"npu": 1}'),
        ("torch.cuda.foo()", name("torch.cuda.foo", "torch.npu.foo"), "torch.npu.foo()"),
        ("x = lib.cuda_there", {"AttributeModifyRule": [{"old_name": "cuda_there", "new_name": "npu_there"}]},
         "x = lib.npu_there"),
    ],
)  # fmt: skip
def test_nothing_is_said_of_a_word_that_a_rule_takes_away(before: str, rule: dict[str, Any], expected: str) -> None:
    text, said = still_open(f"import torch\nimport lib\n{before}\n", rule)
    assert text.endswith(f"import lib\n{expected}\n") and said == []


@pytest.mark.parametrize(
    ("before", "rule", "said"),
    [
        ('lib.f(1, "cuda")', argument("lib.f", 0, "2"), ["NPU203"]),  # another argument
        ('lib.f(1, "cuda"); lib.g("cuda")', argument("lib.f", 1, '"npu"'), ["NPU203"]),  # another call
        ('kind = "cuda"\nlib.f(kind)', argument("lib.f", 0, '"npu"'), ["NPU203"]),  # the word stands elsewhere
        ('lib.f(*a, "cuda")', argument("lib.f", 1, '"npu"'), ["NPU203"]),  # the rule leaves the call
        ('lib.f("cuda")', argument("lib.f", 0, '"npu"', level="unsafe"), ["NPU001", "NPU203"]),  # it is not applied
        ("lib.f(1)\nlib.on_cuda()", argument("lib.f", 0, "2"), ["NPU602"]),  # another name of the package
    ],
)
def test_what_a_rule_does_not_take_away_is_still_said(before: str, rule: dict[str, Any], said: list[str]) -> None:
    result = run(f"import lib\n{before}\n", rule)
    assert sorted(finding.code for finding in result.findings if finding.open) == said


def test_an_argument_that_is_written_for_the_npu_loses_no_effect() -> None:
    rule = argument("lib.f", 0, "torch.npu.device_count()")
    text, said = still_open("import torch\nimport lib\nlib.f(torch.cuda.device_count())\n", rule)
    assert text.endswith("lib.f(torch.npu.device_count())\n") and said == []


def test_lines_that_stand_there_are_not_inserted_again() -> None:
    rule = {"InsertRule": [{"func_name": "lib.start", "insert": "torch.npu.set_device(0)"}]}
    text, _ = still_open("import torch\nimport lib\nlib.start()\n", rule)
    assert text == f"import torch\n{LINE}import lib\ntorch.npu.set_device(0)\nlib.start()\n"
    below = {"InsertRule": [{"func_name": "lib.start", "where": "after", "insert": "lib.a()\nlib.b()"}]}
    assert after("import lib\nlib.start()\nlib.a()\nlib.b()\n", below) == "import lib\nlib.start()\nlib.a()\nlib.b()\n"
    for other in ("lib.a()\n", "lib.b()\nlib.a()\n", ""):
        written = f"import lib\nlib.start()\nlib.a()\nlib.b()\n{other}"
        assert after(f"import lib\nlib.start()\n{other}", below) == written


OWN_FILES = {"app/__init__.py": "", "app/lib.py": "def func(x): pass\ndef other(x): pass\nname = 1\n"}


@pytest.mark.parametrize(
    ("source", "rule", "full"),
    [
        ("def func(x): pass\nfunc(1)\n", RENAME, "app.m.func"),
        ("class func: pass\nfunc(1)\n", RENAME, "app.m.func"),
        ("from .lib import func\nfunc(1)\n", RENAME, "app.lib.func"),
        ("from lib import func\nfunc(1)\n", RENAME, "app.lib.func"),
        ("from app.lib import *\nfunc(1)\n", RENAME, "app.lib.func"),
        ("def run(func):\n    func(1)\n", RENAME, ""),  # a parameter
        ("func = make()\nfunc(1)\n", RENAME, ""),
        ("from app.lib import name as func\nfunc(1)\n", RENAME, ""),
        ("def f():\n    def func(x): pass\n    func(1)\n", RENAME, ""),  # no rule reaches in there
        ("def func(x): pass\nfunc(1)\n", name("func", "lib.g"), ""),  # a definition has no dots
        ("def func(x): pass\nfunc(1)\n", DELETE, ""),  # no rule changes the parameters of a definition
    ],
)
def test_what_in_the_rule_file_would_mean_the_projects_own(source: str, rule: dict[str, Any], full: str) -> None:
    result = _in_project(source, rule)
    (said,) = [finding.help for finding in result.findings if finding.code == "NPU005"]
    if full:
        entry = f'{{"old_name": "{full}", "new_name": "new_func", "definitions": true}}'
        assert said == f"if the rule is meant for this one too, add to FuncNameModifyRule of r.json: {entry}"
    else:
        assert "definitions" not in said


def test_with_that_entry_the_definition_follows_too() -> None:
    more = {"old_name": "app.m.func", "new_name": "new_func", "definitions": True}
    both = {"FuncNameModifyRule": [*RENAME["FuncNameModifyRule"], more]}
    result = _in_project("import lib\ndef func(x): pass\nfunc(1)\nlib.func(1)\n", both)
    assert result.data.decode() == "import lib\ndef new_func(x): pass\nnew_func(1)\nlib.new_func(1)\n"
    assert [finding.code for finding in result.findings if finding.open] == []


def _in_project(source: str, rule: dict[str, Any]) -> FileResult:
    settings = Settings(user_rules=(("rules/r.json", json.dumps({"rules": rule})),))
    facts = [index_source(text.encode(), path, settings) for path, text in {**OWN_FILES, "app/m.py": source}.items()]
    return migrate_source(source.encode(), "app/m.py", settings, ProjectFacts.join(facts))
