"""Names in strings that the users' rules rename: they follow where their owner is certain, else they are reported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_user_rules import after, left, module, name, run

FULL, LAST = name("lib.a.f", "lib.a.g"), name("f", "g")


@pytest.mark.parametrize("rule", [FULL, LAST], ids=["full", "last"])
@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('getattr(lib.a, "f")(1)', 'getattr(lib.a, "g")(1)'),
        ("hasattr(lib.a, 'f')", "hasattr(lib.a, 'g')"),
        ('setattr(lib.a, "f", 1)', 'setattr(lib.a, "g", 1)'),
        ('delattr(lib.a, "f")', 'delattr(lib.a, "g")'),
        ('monkeypatch.setattr(lib.a, "f", 1)', 'monkeypatch.setattr(lib.a, "g", 1)'),
        ('monkeypatch.setattr("lib.a.f", 1)', 'monkeypatch.setattr("lib.a.g", 1)'),
        ('monkeypatch.delattr("lib.a.f")', 'monkeypatch.delattr("lib.a.g")'),
        ('mock.patch("lib.a.f")', 'mock.patch("lib.a.g")'),
        ('mock.patch.object(lib.a, "f")', 'mock.patch.object(lib.a, "g")'),
        ('@patch("lib.a.f")\ndef test(it): pass', '@patch("lib.a.g")\ndef test(it): pass'),
        ('getattr(b, "f")(1)', 'getattr(b, "g")(1)'),
    ],
)
def test_a_string_whose_owner_is_certain_follows(before: str, expected: str, rule: dict[str, Any]) -> None:
    head = "import lib.a\nimport lib.a as b\n"
    assert after(f"{head}{before}\n", rule) == f"{head}{expected}\n"
    assert [each for each in run(f"{head}{before}\n", rule).findings if each.open] == []


def test_modules_that_are_imported_by_name_follow() -> None:
    rule = module("ops", "fast", "lib")
    assert after("import_module('lib.ops')\n", rule) == "import_module('lib.fast')\n"
    assert after("patch('lib.ops.deep.f')\n", rule) == "patch('lib.fast.deep.f')\n"
    assert after("import lib\ngetattr(lib, 'ops')\n", rule) == "import lib\ngetattr(lib, 'fast')\n"


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (LAST, 'getattr(self.model, "f")()'),
        (LAST, 'hasattr(model, "f")'),
        (LAST, 'getattr(app.other, "f")()'),
        (LAST, 'patch("app.other.f")'),
        (FULL, 'patch("app.other.f")'),
        (FULL, 'STEPS = {"first": "lib.a.f"}'),
        (FULL, 'config(_target_="lib.a.f")'),
        (FULL, 'patch("lib." "a.f")'),
        (name("lib.a.f", "other.g"), 'getattr(lib.a, "f")'),
        (name("f", "other.g"), 'getattr(lib.a, "f")'),
        (name("lib.a.f", "lib.a.g", args={"rename_keyword": {"a": "b"}}), 'getattr(lib.a, "f")(a=1)'),
    ],
)
def test_a_string_that_may_mean_it_is_reported(rule: dict[str, Any], line: str) -> None:
    files = {"app/__init__.py": "", "app/other.py": "from lib.a import h\n"}
    assert left(f"import lib.a\nimport app.other\n{line}\n", rule, files=files) == [(3, "NPU020")]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (FULL, 'getattr(lib.b, "f")'),  # another module
        (FULL, 'getattr(model, "f")'),  # the rule is for that module's
        (FULL, 'patch("lib.b.f")'),
        (FULL, 'patch("other.lib.a.f")'),
        (FULL, 'print("lib.a.f")'),
        (FULL, 'raise ValueError("lib.a.f")'),
        (FULL, '"""lib.a.f"""'),
        (FULL, 'x = "lib.a.f is slow"'),
        (LAST, 'getattr(lib.a, "ff")'),
        (LAST, 'x = {"f": 1}'),
        (LAST, 'open("a.f")'),
        (LAST, "getattr(lib.a, name)"),
        (name("lib.a.f", "lib.a.g", definitions=True), 'getattr(lib.a, "f")'),
    ],
)
def test_strings_that_mean_something_else_stay(rule: dict[str, Any], line: str) -> None:
    assert left(f"import lib.a\nimport lib.b\n{line}\n", rule) == []


def test_an_import_that_keeps_the_old_name_in_a_module_of_the_project() -> None:
    files = {"app/__init__.py": "", "app/data.py": "from lib.a import f\n"}
    assert left('monkeypatch.setattr("app.data.f", 1)\n', FULL, files=files) == [(1, "NPU020")]
    own = {"app/__init__.py": "", "app/data.py": "def f(): pass\n"}
    assert left('monkeypatch.setattr("app.data.f", 1)\n', FULL, files=own) == []


@pytest.mark.parametrize(
    ("rule", "before", "expected"),
    [
        (name("cuda_sync", "npu_sync"), 'getattr(lib, "cuda_sync")()', 'getattr(lib, "npu_sync")()'),
        (name("lib.cuda_sync", "lib.npu_sync"), 'mock.patch("lib.cuda_sync")', 'mock.patch("lib.npu_sync")'),
        (name("lib.cuda_sync", "lib.npu_sync"), 'hasattr(lib, "cuda_sync")', 'hasattr(lib, "npu_sync")'),
        (name("cuda", "npu"), 'getattr(x, "cuda")()', 'getattr(x, "npu")()'),
        (name("torch.cuda.empty_cache", "torch.npu.drop"), 'mock.patch("torch.cuda.empty_cache")',
         'mock.patch("torch.npu.drop")'),
        (name("torch.cuda.empty_cache", "torch.npu.drop"), 'getattr(torch.cuda, "empty_cache")',
         'getattr(torch.npu, "drop")'),
        (name("torch.foo", "torch.bar"), 'getattr(torch, "foo")', 'getattr(torch, "bar")'),
    ],
)  # fmt: skip
def test_names_that_speak_of_cuda(rule: dict[str, Any], before: str, expected: str) -> None:
    result = run(f"import lib\nimport torch\n{before}\n", rule)
    assert result.data.decode().endswith(f"\n{expected}\n")
    assert [each.code for each in result.findings if each.open] == []
