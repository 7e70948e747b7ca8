"""Findings in branches that are off by default say what turns them on, and stop nobody who does not ask for it."""

from __future__ import annotations

import pytest

from transplt import migrate_source
from transplt.engine.actions.actions import actions_of

HEAD = """\
import argparse
from dataclasses import dataclass, field
p = argparse.ArgumentParser()
p.add_argument("--use-adam8", action="store_true")
p.add_argument("--no-fast", dest="fast", action="store_false")
p.add_argument("--opt", default="adam")
p.add_argument("--path")
p.add_argument("--must", required=True)
@dataclass
class Config:
    trt: bool = False
    ngpu: int = field(default=2)
    many: list = field(default_factory=list)
args = p.parse_args()
"""


def option(test: str, *, orelse: bool = False) -> str:
    """The option of an import of pycuda in a branch."""
    body = f"if {test}:\n    pass\nelse:\n    import pycuda\n" if orelse else f"if {test}:\n    import pycuda\n"
    (finding,) = [each for each in migrate_source(HEAD + body).findings if each.open]
    return finding.option


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("args.use_adam8", "--use-adam8"),
        ("args.use_adam8 and ready", "--use-adam8"),
        ("not args.fast", "--no-fast"),
        ("args.opt == 'apex'", "--opt apex"),
        ("args.path is not None", "--path"),
        ("args.path", "--path"),
        ("cfg.trt", "trt"),
        # what may hold
        ("args.fast", ""),
        ("args.opt == 'adam'", ""),
        ("args.opt != 'sgd'", ""),
        ("args.path is None", ""),
        ("args.must", ""),
        ("args.use_adam8 or ready", ""),
        ("cfg.ngpu", ""),
        ("cfg.many", ""),
        ("cfg.unknown", ""),
        ("ready", ""),
    ],
)
def test_the_option_of_a_branch(test: str, expected: str) -> None:
    assert option(test) == expected


def test_the_other_side_of_a_branch() -> None:
    assert option("args.fast", orelse=True) == "--no-fast"
    assert option("args.use_adam8", orelse=True) == ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(trt=False):\n    if trt:\n        import pycuda\n", "trt="),
        ("def f(*, trt=None):\n    if trt:\n        import pycuda\n", "trt="),
        ("def f(trt):\n    if trt:\n        import pycuda\n", ""),
        ("def f(trt=True):\n    if trt:\n        import pycuda\n", ""),
        ("def f(trt=False):\n    trt = trt or ask()\n    if trt:\n        import pycuda\n", ""),
    ],
)
def test_the_parameter_of_a_function(source: str, expected: str) -> None:
    (finding,) = [each for each in migrate_source(source).findings if each.open]
    assert finding.option == expected


@pytest.mark.parametrize(
    ("source", "blocks"),
    [
        ("import pycuda\n", "import"),
        ("def f():\n    import pycuda\n", "first step"),
        ("def f():\n    import pycuda\nimport pycuda.driver\n", "import"),
        ("def f(trt=False):\n    if trt:\n        import pycuda\n", "later"),
        ("def f(kind):\n    if kind == 'trt':\n        import pycuda\n", "later"),
        ("def f(kind):\n    if kind == 'trt':\n        import pycuda\n    import pycuda.driver\n", "first step"),
        ("if KIND == 'trt':\n    import pycuda\n", "import"),
        ("try:\n    import pycuda\nexcept ImportError:\n    if not BUILDING:\n        raise\n", "import"),
    ],
)
def test_what_an_import_stops(source: str, blocks: str) -> None:
    assert [action.blocks for action in actions_of(migrate_source(source).findings)] == [blocks]


def test_the_message_names_the_option() -> None:
    found = migrate_source(HEAD + "if args.use_adam8:\n    import pycuda\n").findings
    (finding,) = [each for each in found if each.open]
    assert finding.text == "the package pycuda is bound to CUDA (only with --use-adam8)"
