"""npu_port.py as it is assembled: what is called, what that needs, and nothing else."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import random
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from pyflakes import api as pyflakes
from pyflakes.reporter import Reporter

from tests.harness import clean
from transplt.base.settings import Settings
from transplt.edits import helper_inline, helper_source
from transplt.edits.edit import Beside, Edit
from transplt.edits.helper import helper
from transplt.edits.helper_file import defined_in, helper_text, is_helper
from transplt.edits.helper_source import (
    Module,
    annotations_in,
    around,
    closure,
    first_sentence,
    module_named,
    module_of,
    owners,
    paths,
    public_names,
)
from transplt.engine.edit_outcome import apply_edits
from transplt.engine.plan import plan
from transplt.flow.facts import ProjectFacts
from transplt.rules.rule_set import compile_rules
from transplt.syntax.files import File

OFFERED = {module: [name for name in public_names() if owners()[name] == module] for module in owners().values()}


class _Said(Reporter):
    def __init__(self) -> None:
        super().__init__(sys.stdout, sys.stderr)
        self.lines: list[str] = []

    def flake(self, message: object) -> None:
        self.lines.append(str(message))


def complaints(text: str) -> list[str]:
    """What pyflakes says; an import that is only tried is not used by its name."""
    said = _Said()
    pyflakes.check(text, "npu_port.py", said)
    return [line for line in said.lines if "unused 'torch_npu'" not in line and "'torch_npu' imported" not in line]


def hold_what_is_needed(names: tuple[str, ...]) -> None:
    """The file has what is called and all that this needs, in an order that can be executed."""
    text = helper_text(names)
    compile(text, "npu_port.py", "exec", dont_inherit=True)
    assert complaints(text) == [], names
    assert text.isascii() and "transplt.helper" not in text, names
    assert {*names} <= {*defined_in(text.encode())}, names
    assert helper_text(tuple(reversed(names))) == text, names
    assert is_helper("npu_port.py", text.encode()), names
    assert max(map(len, text.splitlines())) <= 120, names


@pytest.mark.parametrize("module", OFFERED)
def test_each_that_is_called_with_what_it_needs(module: str) -> None:
    for name in OFFERED[module]:
        hold_what_is_needed((name,))


def test_all_that_are_called_with_what_they_need() -> None:
    hold_what_is_needed(public_names())


def test_two_that_are_called_with_what_they_need() -> None:
    """Two functions of one module, or the first ones of two: either's imports and state bear the other's."""
    of_one = [pair for names in OFFERED.values() for pair in itertools.combinations(names, 2)]
    of_two = [*itertools.combinations([names[0] for names in OFFERED.values()], 2)]
    draw = random.Random(1)
    for pair in (*draw.sample(of_one, 10), *draw.sample(of_two, 10)):
        hold_what_is_needed(pair)


def import_of(names: tuple[str, ...], path: Path) -> object:
    """The module that has some names, imported from a file of its own."""
    path.write_text(helper_text(names), encoding="ascii")
    spec = importlib.util.spec_from_file_location("npu_port", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.torch
@pytest.mark.parametrize("module", OFFERED)
def test_each_can_be_imported(module: str, tmp_path: Path) -> None:
    for name in OFFERED[module]:
        assert hasattr(import_of((name,), tmp_path / f"{name}.py"), name)


@pytest.mark.torch
def test_all_can_be_imported(tmp_path: Path) -> None:
    module = import_of(public_names(), tmp_path / "npu_port.py")
    assert [name for name in public_names() if not hasattr(module, name)] == []


@pytest.mark.parametrize("module", OFFERED)
def test_definitions_are_as_they_stand_in_our_tree(module: str) -> None:
    for name in OFFERED[module]:
        text = helper_text((name,))
        for piece in helper_source.parts_of((name,)).pieces:
            source = paths()[piece.module].read_text(encoding="utf-8")
            assert piece.text in source and piece.text in text, name


def test_what_windows_lacks_is_imported_where_it_is_used() -> None:
    """The module of the portable style is imported on every host of the project."""
    of_unix = re.compile("^import (?:fcntl|grp|pwd|resource|termios)$", re.MULTILINE)
    assert [name for name in public_names() if of_unix.search(helper_text((name,)))] == []


def test_each_says_what_it_does() -> None:
    assert [name for name in public_names() if not first_sentence(name)] == []


def test_the_head_says_whose_it_is() -> None:
    head = helper_text(["OneCardDataParallel"]).partition("\n\n")[0]
    assert head.startswith("# SPDX-License-Identifier: 0BSD\n")
    assert "Written by transplt 0.1.0; it belongs to the project now" in " ".join(head.split("\n# "))


def test_whose_file_it_is() -> None:
    text = helper_text(["OneCardDataParallel"])
    assert is_helper("npu_port.py", text.encode())
    assert is_helper("pkg/npu_port_1.py", text.encode())
    assert is_helper("npu_port.py", text.replace("\n", "\r\n").encode() + b"x = 1\r\n")
    assert not is_helper("npu_port.py", b"x = 1\n")
    assert not is_helper("npu_ports.py", text.encode())
    assert not is_helper("npu_port.py", b"# SPDX-License-Identifier: 0BSD\nx = 1\n")


# --- modules of the tests' own ---------------------------------------------------------------------------------------

STATE = '''
    """Docstring."""

    from __future__ import annotations

    import os
    from dataclasses import dataclass, field
    from typing import TYPE_CHECKING, Any

    import torch

    try:
        import torch_npu
    except ImportError:
        torch_npu = None
    if TYPE_CHECKING:
        from collections.abc import Iterator

    __all__ = ["count", "rank"]

    _LIMIT = 3


    @dataclass
    class _State:
        """What is known."""

        count: int = 0
        others: list[Any] = field(default_factory=list)


    #: One for the process.
    _state = _State()
    _seen: dict[str, int] = {}


    def rank() -> int:
        """The rank."""
        return int(os.environ.get("RANK", "0"))


    # Goes with what is below.
    def count(limit: int = _LIMIT, *, by: int = 1) -> int:
        """Count up."""
        global _seen
        _seen = {**_seen, "rank": rank()}
        _state.count += by
        return min(_state.count, limit)


    def each(values: Iterator[int], rank: int = 0) -> Iterator[int]:
        """Each of them."""
        return (value + rank for value in values)


    def device() -> torch.device:
        return torch.device("cpu")
    '''
LATER = """
    from __future__ import annotations

    from transplt.helper.state import _state, rank


    def show() -> str:
        count = _state.count
        return f"{count} {rank()}"


    def forget() -> None:
        global _unread
        _unread = 1


    _unread = 0
    """


@cache
def own_modules() -> dict[str, Module]:
    return {"state": module_of("state", clean(STATE).encode()), "later": module_of("later", clean(LATER).encode())}


@pytest.mark.parametrize(
    ("name", "bound", "imports"),
    [
        ("rank", ["rank"], ["import os"]),
        ("count", ["_LIMIT", "_seen", "_State", "_state", "rank", "count"],
         ["from dataclasses import dataclass", "from dataclasses import field", "import os", "from typing import Any"]),
        ("each", ["each"], ["from collections.abc import Iterator"]),  # its `rank` is a parameter
        ("device", ["device"], ["import torch"]),
        ("forget", ["_unread", "forget"], []),
        ("show", ["_State", "_state", "rank", "show"],
         ["from dataclasses import dataclass", "from dataclasses import field", "import os", "from typing import Any"]),
    ],
)  # fmt: skip
def test_what_a_name_needs(name: str, bound: list[str], imports: list[str]) -> None:
    parts = closure(own_modules(), [name])
    assert list(parts.names) == bound
    assert [each.line for each in parts.imports] == imports
    assert len(parts.optional) == (name != "forget")


def test_what_is_bound_behind_a_question_goes_along_and_stands_above() -> None:
    source = b"import os\n\nif os.name:\n    card = os.path\n\nA = 1\nB = A + 1\n\n\ndef f():\n    return B\n"
    parts = closure({"m": module_of("m", source)}, ["f"])
    assert [piece.binds for piece in parts.pieces] == [("card",), ("A",), ("B",), ("f",)]
    assert [each.line for each in parts.imports] == ["import os"]


def test_the_accelerators_file() -> None:
    text = helper_text(["DEVICE_TYPE", "device"], portable=True)
    assert text.startswith('"""The accelerator that this project runs on: an NPU, else CUDA."""\n\nimport importlib')
    assert is_helper("cards.py", f"# Copyright A\n\n{text}\n\ndef of_theirs():\n    pass\n".encode())
    assert is_helper("pkg/utils/any_name.py", text.encode()) and not is_helper("pkg/device.yaml", text.encode())
    body = text.partition("import torch\n")[2]
    bare = helper_text(["DEVICE_TYPE", "device"], portable=True, shows_cards=False)
    assert "import os" in text and "os." not in bare and "import os" not in bare and "VISIBLE" not in bare
    own = f'"""Devices of acme."""\nimport importlib.util\nimport torch\n{body}'
    assert is_helper("acme/cards.py", own.encode())  # its owner has taken the head out
    assert not is_helper("train.py", f"{own}\n\ndef main():\n    pass\n".encode())  # it has all this in itself
    assert not is_helper("acme/cards.py", b'import torch\nDEVICE_TYPE = "cuda"\n')
    assert defined_in(text.encode()) == ("DEVICE_TYPE", "_has_npu", "device")
    assert is_helper("cards.py", helper_text(["OneCardDataParallel"], portable=True).encode())
    every = helper_text(OFFERED["accelerator"], portable=True)
    assert max(map(len, every.splitlines())) <= 79
    assert text.index("torch_npu = ") < text.index("DEVICE_TYPE =") < text.index("def device")


@pytest.mark.parametrize("name", public_names())
def test_the_annotations_of_the_portable_style_are_worked_out_by_every_python(name: str) -> None:
    """A project for CUDA may admit Python 3.6, which has no late annotations."""
    text = helper_text([name], portable=True)
    assert "__future__" not in text and "TYPE_CHECKING" not in text
    for node in ast.walk(ast.parse(text)):
        for each in annotations_in(node) if isinstance(node, ast.stmt) else ():
            assert not any(isinstance(inner, (ast.BinOp, ast.Subscript)) for inner in ast.walk(each)), ast.unparse(each)


def test_the_annotations_of_the_npu_style_stay() -> None:
    assert "from __future__ import annotations" in helper_text(["shard"]) and "-> " in helper_text(["shard"])
    assert " -> torch.device:" in helper_text(["device"], portable=True)


def test_comments_go_with_what_is_below_them() -> None:
    texts = {piece.binds: piece.text for piece in own_modules()["state"].pieces}
    assert texts["count",].startswith("# Goes with what is below.\ndef count(")
    assert texts["_state",] == "#: One for the process.\n_state = _State()"


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(KeyError):
        helper_text(["no_such_name"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(a: int, b: str = 'x', *c: Any, d: int = 1, **e: Any) -> None:\n    pass\n",
         "def f(a, b='x', *c, d=1, **e):\n    pass\n"),
        ("def f(\n    a: int,\n    b: int = 0,\n) -> list[int]:\n    return []\n", "def f(a, b=0):\n    return []\n"),
        ("def f(\n    a: int,  # said\n) -> int:\n    return 1\n", "def f(\n    a,  # said\n):\n    return 1\n"),
        ("x: dict[str, int] = {}\ny: int\n", "x = {}\ny = None\n"),
        ("class A:\n    x: int = 0\n\n    def f(self) -> int:\n        y: int = 1\n        return y\n",
         "class A:\n    x: int = 0\n\n    def f(self):\n        y = 1\n        return y\n"),
        ("class A(B):  # type: ignore[misc]\n    pass  # why\n", "class A(B):\n    pass  # why\n"),
        ("async def f(a, b=1):\n    pass\n", "async def f(a, b=1):\n    pass\n"),
    ],
)  # fmt: skip
def test_without_annotations(before: str, after: str) -> None:
    assert helper_inline.without_annotations(before.encode()).decode() == after


@pytest.mark.parametrize("module", OFFERED)
def test_without_annotations_it_is_the_same_code(module: str) -> None:
    for name in OFFERED[module]:
        bare = around([name], helper_inline.bare)
        assert name in closure(bare, [name]).names
        for piece in (piece for each in bare.values() for piece in each.pieces):
            ast.parse(piece.text)


def test_no_two_modules_define_the_same() -> None:
    every = [name for module in paths() for piece in module_named(module).pieces for name in piece.binds]
    assert sorted(every) == sorted({*every})
    files = [path.stem for path in helper_source.folder().rglob("*.py") if path.stem != "__init__"]
    assert sorted(files) == sorted(paths())


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("from torch.nn import DataParallel", "from torch.nn.parallel import DataParallel", "torch.nn"),
        ("from torch.nn.parallel import DataParallel", "from torch.nn import DataParallel", "torch.nn"),
    ],
)
def test_one_import_of_one_name(first: str, second: str, kept: str) -> None:
    every = {
        name: module_of(name, f"{line}\n\n\ndef {name}():\n    return DataParallel\n".encode())
        for name, line in (("a", first), ("b", second))
    }
    assert [each.module for each in closure(every, ["a", "b"]).imports] == [kept]


# --- in the file that calls ------------------------------------------------------------------------------------------

FILES = [
    "import torch\n\n\ndef main():\n    pass\n\n\nmain()\n",
    "from torch import nn\nimport torch.distributed as dist\n\nrank = wait = save = 0\n\n\n"
    "def f(start, _state, os):\n    return start, _state, os, nn, dist\n\n\nprint(f(rank, wait, save))\n",
]


def hold_in_the_file(names: Iterable[str], source: str) -> None:
    """A file that calls some functions has them, and what they need, under names that are free."""
    file, settings = File.of("train.py", source.encode()), Settings()
    work = plan(file.source, file.scan, compile_rules(settings), settings, ProjectFacts())
    last = file.scan.tree.body[-1]
    texts, found = [], []
    for name in names:
        called = helper(work, name, group="G", code="NPU156", message="m", at=last)
        assert called.text
        found += called.found
        texts.append(called.text)
    found.append(Edit(Beside(last, below=True), "NPU156", "m", f"print({', '.join(texts)})", group="G"))
    after = apply_edits(work, [each for each in found if isinstance(each, Edit)]).data.decode()
    compile(after, "train.py", "exec", dont_inherit=True)
    assert [line for line in complaints(after) if "'torch' imported but unused" not in line] == [], names
    assert after.isascii(), names


@pytest.mark.parametrize("module", OFFERED)
def test_functions_in_the_file_that_calls_them(module: str) -> None:
    """Each alone where the file has taken names, those of a module together where it has not."""
    free, taken = FILES
    hold_in_the_file(OFFERED[module], free)
    for name in OFFERED[module]:
        hold_in_the_file([name], taken)


@pytest.mark.parametrize("source", FILES, ids=["names are free", "names are taken"])
def test_all_functions_in_the_file_that_calls_them(source: str) -> None:
    hold_in_the_file(public_names(), source)


@pytest.mark.parametrize("source", FILES, ids=["names are free", "names are taken"])
def test_what_two_groups_ask_for_goes_in_once_and_stays_for_the_other(source: str) -> None:
    file, settings = File.of("train.py", source.encode()), Settings()
    work = plan(file.source, file.scan, compile_rules(settings), settings, ProjectFacts())
    last = file.scan.tree.body[-1]
    name = public_names()[0]
    found: dict[str, list[Edit]] = {}
    for group in ("A", "B"):
        called = helper(work, name, group=group, code="NPU156", message="m", at=last)
        found[group] = [each for each in called.found if isinstance(each, Edit)]
        use = f"print('{group}', {called.text})"
        found[group].append(Edit(Beside(last, below=True), "NPU156", "m", use, group=group))
    both = apply_edits(work, [*found["A"], *found["B"]]).data.decode()
    one = apply_edits(work, found["B"]).data.decode()
    assert both.count(f"class {name}") == one.count(f"class {name}") == 1
    assert both.replace(f"print('A', {name})\n", "") == one
