"""Which files of a project belong together."""

from __future__ import annotations

import pytest

from transplt.base.settings import Settings
from transplt.engine.engine import index_source
from transplt.flow.facts import ProjectFacts
from transplt.program.imports import Imports, imports_of

GUARD = 'if __name__ == "__main__":\n    pass\n'


def graph(files: dict[str, str]) -> Imports:
    settings = Settings(amp="native")
    return imports_of(ProjectFacts.join(index_source(text.encode(), path, settings) for path, text in files.items()))


PACKAGE = dict.fromkeys(("package/__init__.py", "package/one.py", "package/two.py", "other.py"), "x = 1\n")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\n", ()),
        ("import package.one as other\n", ("package/one.py",)),
        ("import other, package.two\n", ("other.py", "package/two.py")),
        ("from package import one, name\n", ("package/__init__.py", "package/one.py")),
        ("from package.one import name\nimport package.one\n", ("package/one.py",)),
        (
            "from package import (\n    two,  # the second\n    one,\n)\n",
            ("package/__init__.py", "package/two.py", "package/one.py"),
        ),
        ("from package import \\\n    one\n", ("package/__init__.py", "package/one.py")),
        ("from other import *\n", ("other.py",)),
        ("def f():\n    if x:\n        import other\n", ("other.py",)),
        ("import torch; import other\n", ("other.py",)),
        ("import main\n", ()),
        ('"""\nimport other\n"""\ntext = """\nfrom package import one\n"""\n', ()),
        ("# import other\n", ()),
        ("import other (\n", ()),
    ],
)
def test_what_a_file_imports(source: str, expected: tuple[str, ...]) -> None:
    assert graph({**PACKAGE, "main.py": source}).targets.get("main.py", ()) == expected


def test_relative_imports() -> None:
    source = "from . import two\nfrom .two import name\nfrom .. import other\nfrom ...above import it\n"
    found = graph({**PACKAGE, "package/one.py": source})
    assert found.targets["package/one.py"] == ("package/__init__.py", "package/two.py", "other.py")


FILES = {
    "train.py": f"import engine\nimport nets.small\n{GUARD}",
    "probe.py": f"import engine\nfrom train import x\n{GUARD}",
    "tool.py": f"import nets.small\n{GUARD}",
    "engine.py": "import nets.small\n",
    "plugin.py": "x = 1\n",
    "nets/small.py": "x = 1\n",
}


def test_all_that_a_file_reaches_the_nearest_first() -> None:
    assert graph(FILES).reached("train.py") == ["train.py", "engine.py", "nets/small.py"]
    assert graph(FILES).reached("probe.py") == ["probe.py", "engine.py", "train.py", "nets/small.py"]
    assert graph(FILES).reached("plugin.py") == ["plugin.py"]


def test_files_around_one() -> None:
    assert graph(FILES).around("engine.py") == ["nets/small.py", "probe.py", "train.py"]


@pytest.mark.parametrize(
    ("path", "expected", "first"),
    [
        ("nets/small.py", ["probe.py", "tool.py", "train.py"], "probe.py"),
        ("engine.py", ["probe.py", "train.py"], "probe.py"),
        ("train.py", ["probe.py"], "probe.py"),
        ("tool.py", [], "tool.py"),
        ("plugin.py", [], "plugin.py"),
    ],
)
def test_the_files_that_are_started(path: str, expected: list[str], first: str) -> None:
    assert graph(FILES).entries(path) == expected
    assert graph(FILES).entry(path) == first


def test_a_text_with_main_in_it_is_no_main_guard() -> None:
    files = {"a.py": "import b\n", "b.py": 'import c\nhelp = "run it as __main__"\n', "c.py": "x = 1\n"}
    assert graph(files).entries("c.py") == ["a.py"]


def test_files_that_import_one_another() -> None:
    files = {"a.py": "import b\n", "b.py": "import a\n"}
    assert graph(files).reached("a.py") == ["a.py", "b.py"]
    assert graph(files).entries("a.py") == [] and graph(files).entry("a.py") == "a.py"


def test_groups_of_files() -> None:
    found = graph(FILES)
    assert found.groups(sorted(FILES)) == [
        ["engine.py", "nets/small.py", "probe.py", "tool.py", "train.py"], ["plugin.py"],
    ]  # fmt: skip
    assert found.groups(["probe.py", "tool.py", "train.py"]) == [["probe.py", "train.py"], ["tool.py"]]


def test_files_in_one_process() -> None:
    found = graph(FILES).alongside(set(FILES))
    assert found["tool.py"] == {"tool.py", "nets/small.py", "plugin.py"}
    assert found["train.py"] == {"train.py", "probe.py", "engine.py", "nets/small.py", "plugin.py"}
    assert found["plugin.py"] == {"plugin.py"}


def test_nothing_is_collected_where_nobody_reads_programs() -> None:
    facts = index_source(b"import other\nimport torch\nx.cuda()\n", "main.py", Settings())
    assert (facts.text, facts.imported, facts.guarded) == (b"", (), False)
