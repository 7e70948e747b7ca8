"""FuncNameModifyRule with `"definitions": true`: a function of the project with all its uses, or nothing and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.rules.rule_file import problems


def migrated(files: Mapping[str, str], *rules: dict[str, Any]) -> tuple[dict[str, str], list[str]]:
    """The files of a project after the migration, and what is said (NPU017), each beginning with its file."""
    rules = rules or ({"old_name": "func", "new_name": "task"},)
    text = json.dumps({"rules": {"FuncNameModifyRule": [{"definitions": True, **rule} for rule in rules]}})
    assert not list(problems("mine.json", text))
    settings = Settings(user_rules=(("mine.json", text),))
    project = ProjectFacts.join([index_source(data.encode(), path, settings) for path, data in files.items()])
    after, said = {}, []
    for path, data in sorted(files.items()):
        result = migrate_source(data.encode(), path, settings, project)
        compile(result.data, path, "exec")
        after[path] = result.data.decode()
        said += [f"{path}: {each.message}" for each in result.findings if each.code == "NPU017"]
    return after, said


DEF = "def func(x):\n    return x\n"
TASK = "def task(x):\n    return x\n"
INDENTED = DEF.replace("\n", "\n    ")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ({"m.py": f"{DEF}func(1)\n"}, {"m.py": f"{TASK}task(1)\n"}),
        ({"m.py": f"run = func\n{DEF}"}, {"m.py": f"run = task\n{TASK}"}),
        ({"m.py": f"__all__ = ['func', 'other']\n{DEF}"}, {"m.py": f"__all__ = ['task', 'other']\n{TASK}"}),
        ({"m.py": f"__all__ = []\n{DEF}__all__.append('func')\n"},
         {"m.py": f"__all__ = []\n{TASK}__all__.append('task')\n"}),
        ({"m.py": f"@cached\nasync {DEF}"}, {"m.py": f"@cached\nasync {TASK}"}),
        ({"m.py": "class func(Base): pass\nx: func = func()\n"},
         {"m.py": "class task(Base): pass\nx: task = task()\n"}),
        ({"m.py": DEF, "a.py": "from m import func\nfunc(func(1))\n"},
         {"m.py": TASK, "a.py": "from m import task\ntask(task(1))\n"}),
        ({"m.py": DEF, "a.py": "from m import func as f\nf(1)\n"},
         {"m.py": TASK, "a.py": "from m import task as f\nf(1)\n"}),
        ({"m.py": DEF, "a.py": "import m as lib\nlib.func(1)\n"},
         {"m.py": TASK, "a.py": "import m as lib\nlib.task(1)\n"}),
        ({"m.py": DEF, "a.py": "def go():\n    from m import func\n    return func\n"},
         {"m.py": TASK, "a.py": "def go():\n    from m import task\n    return task\n"}),
        # what passes it on
        ({"p/__init__.py": "from .m import func\n__all__ = ['func']\n", "p/m.py": DEF, "a.py": "import p\np.func(1)\n"},
         {"p/__init__.py": "from .m import task\n__all__ = ['task']\n", "p/m.py": TASK, "a.py": "import p\n"
          "p.task(1)\n"}),
        ({"p/__init__.py": "from .m import func as func\n", "p/m.py": DEF},
         {"p/__init__.py": "from .m import task as task\n", "p/m.py": TASK}),
        ({"src/m.py": DEF, "a.py": "from m import func\nfunc(1)\n"},
         {"src/m.py": TASK, "a.py": "from m import task\ntask(1)\n"}),
        # what only has the same name stays
        ({"m.py": f"{DEF}def go(func):\n    return func(func=2)\n"},
         {"m.py": f"{TASK}def go(func):\n    return func(func=2)\n"}),
        ({"m.py": f"{DEF}def go():\n    func = 1\n    return func\n"},
         {"m.py": f"{TASK}def go():\n    func = 1\n    return func\n"}),
        ({"m.py": DEF, "a.py": "import numpy\nnumpy.func(1)\nx.func = 1\n"},
         {"m.py": TASK, "a.py": "import numpy\nnumpy.func(1)\nx.func = 1\n"}),
        ({"m.py": DEF, "a.py": "from other import func\nfunc(1)\n"},
         {"m.py": TASK, "a.py": "from other import func\nfunc(1)\n"}),
        ({"m.py": f'{DEF}print("func is done", "my_func")\n"""func"""\n'},
         {"m.py": f'{TASK}print("func is done", "my_func")\n"""func"""\n'}),
        ({"m.py": f"{DEF}def outer():\n    def func(): pass\n    func()\n"},
         {"m.py": f"{TASK}def outer():\n    def func(): pass\n    func()\n"}),
        # methods that are certain
        ({"m.py": "class A:\n    def func(self): pass\n    def go(self):\n        self.func()\n"},
         {"m.py": "class A:\n    def task(self): pass\n    def go(self):\n        self.task()\n"}),
 
               ({"m.py": "class A:\n    def func(self): pass\nclass B(A):\n    def func(self):\n"
          "        super().func()\nA.func\n"},
         {"m.py": "class A:\n    def task(self): pass\nclass B(A):\n    def task(self):\n"
          "        super().task()\nA.task\n"}),
 
               ({"m.py": "class A:\n    def func(self): pass\nclass B(A):\n    def go(self): self.func()\n"
          "b = B()\nb.func()\n"},
         {"m.py": "class A:\n    def task(self): pass\nclass B(A):\n    def go(self): self.task()\nb = B()\n"
          "b.task()\n"}),
        ({"m.py": "class A:\n    def func(self): pass\n", "a.py": "from m import A\nx = A()\nx.func()\n"},
         {"m.py": "class A:\n    def task(self): pass\n", "a.py": "from m import A\nx = A()\nx.task()\n"}),
    ],
)  # fmt: skip
def test_definition_and_uses_are_renamed_together(before: dict[str, str], expected: dict[str, str]) -> None:
    assert migrated(before) == (expected, [])


METHOD = "class A:\n    def func(self): pass\n"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"m.py": DEF, "a.py": "import m\ngetattr(m, 'func')(1)\n"}, "a.py:2 has its name in a string"),
        ({"m.py": DEF, "a.py": "patch('m.func')\n"}, "a.py:1 has its name in a string"),
        ({"m.py": DEF, "a.py": "from m import *\nfunc(1)\n"}, "a.py:1 imports it with a star"),
        ({"p/m.py": DEF, "p/__init__.py": "from .m import *\n", "a.py": "from p import func\n"},
         "a.py:1 takes it from p, which does not define it"),
        ({"m.py": f"if x:\n    {INDENTED}\nelse:\n    func = None\n"},
         "m.py:2 gives the name a value twice"),
 
               ({"m.py": f"try:\n    from fast import func\nexcept ImportError:\n    {INDENTED}\n"},
         "m.py:4 gives the name a value twice"),
        ({"m.py": DEF, "a.py": "import m\nrun(m)\n"}, "a.py:2 hands on the module that has it"),
        ({"m.py": DEF, "a.py": "import importlib\nimportlib.import_module(name)\n"},
         "a.py:2 imports a module whose name is not written there"),
        ({"m.py": f"{DEF}globals()[name](1)\n"}, "m.py:3 looks names up or runs text"),
        ({"m.py": f"{DEF}def task(): pass\n"}, "m.py:1 has a task already"),
        ({"m.py": DEF, "a.py": "from m import func\ndef go(task):\n    func(task)\n"}, "a.py:1 has a task already"),
        ({"m.py": f"{DEF}def go():\n    global func\n    func = 1\n"}, "m.py:1 gives the name a value twice"),
        ({"m.py": f"{DEF}func(1)  # transplt: ignore[NPU002]\n"}, "m.py:1 switches off what this rule does"),
        ({"m.py": f"{METHOD}def go(x): x.func()\n"}, "m.py:3 uses .func of an object whose class is not certain"),
        ({"m.py": METHOD.replace("A:", "A(torch.nn.Module):")}, "m.A inherits from torch.nn.Module, which may call it"),
        ({"m.py": f"{METHOD}getattr(A(), name)()\n"}, "m.py:3 looks up an attribute whose name is not written there"),
        ({"m.py": f"{METHOD}    def task(self): pass\n"}, "m.py:1 has an attribute task already"),
    ],
)  # fmt: skip
def test_where_a_use_cannot_be_followed_nothing_is_renamed(files: dict[str, str], why: str) -> None:
    after, said = migrated(files)
    assert after == dict(sorted(files.items()))
    assert said and all(f"that renames func and its definition was not applied: {why}" in each for each in said), said


def test_a_rule_with_dots_means_one_of_several() -> None:
    files = {"m.py": DEF, "n.py": DEF, "a.py": "import m, n\nm.func(n.func(1))\n"}
    after, said = migrated(files, {"old_name": "m.func", "new_name": "task"})
    assert after == {"a.py": "import m, n\nm.task(n.func(1))\n", "m.py": TASK, "n.py": DEF} and not said


def test_a_rule_for_what_the_project_does_not_define_does_nothing() -> None:
    files = {"a.py": "import lib\nlib.func(1)\nfunc(1)\n"}
    assert migrated(files) == (files, [])


@pytest.mark.parametrize(
    ("more", "said"),
    [({"new_name": "a.b"}, "needs a new_name without dots"),
     ({"skip_if": {"has_keyword": ["x"]}}, "it takes no 'skip_if'")],
)
def test_what_does_not_go_together_is_refused(more: dict[str, Any], said: str) -> None:
    rule = {"old_name": "func", "new_name": "task", "definitions": True, **more}
    (error,) = problems("mine.json", json.dumps({"rules": {"FuncNameModifyRule": [rule]}}))
    assert said in str(error)


def test_an_unsafe_rule_waits_for_unsafe_fixes() -> None:
    after, said = migrated({"m.py": DEF}, {"old_name": "func", "new_name": "task", "level": "unsafe"})
    assert after == {"m.py": DEF} and "was not applied: it needs --unsafe-fixes" in said[0]


def test_a_file_without_its_project_stays() -> None:
    rule = {"old_name": "func", "new_name": "task", "definitions": True}
    text = json.dumps({"rules": {"FuncNameModifyRule": [rule]}})
    result = migrate_source(DEF.encode(), "m.py", Settings(user_rules=(("mine.json", text),)))
    assert result.data.decode() == DEF and [each.code for each in result.findings] == ["NPU017"]
