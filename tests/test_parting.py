"""Lines beside and around statements that share their line: the line is parted, and nothing else changes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pytest

from transplt.base.settings import Settings
from transplt.base.text.source import read_source, splice
from transplt.edits.edit import Around, Beside, Edit
from transplt.edits.lines import own_lines
from transplt.edits.shared_lines import can_part, indent_of
from transplt.edits.work import Work
from transplt.engine.edit_outcome import apply_edits
from transplt.engine.plan import plan
from transplt.flow.facts import ProjectFacts
from transplt.rules.rule_set import compile_rules
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan

GROUP = "tune"


def bench(text: str) -> Work:
    settings = Settings()
    source = read_source(text.encode())
    return plan(source, scan(source, parse(source), "a.py"), compile_rules(settings), settings, ProjectFacts())


def named(work: Work, name: str) -> ast.stmt:
    """The simple statement that is the name alone, or assigns it."""
    for node in ast.walk(work.scan.tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name) and node.value.id == name:
            return node
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return node
    raise AssertionError(name)


def above(work: Work, name: str, text: str = "up") -> Edit:
    return Edit(Beside(named(work, name)), "NPU000", "up", text, group=GROUP)


def below(work: Work, name: str, text: str = "down") -> Edit:
    return Edit(Beside(named(work, name), below=True), "NPU000", "down", text, group=GROUP)


def around(work: Work, first: str, last: str, header: str = "if r:") -> Edit:
    return Edit(Around(named(work, first), named(work, last)), "NPU000", "around", header, group=GROUP)


def without(work: Work, name: str) -> Edit:
    extent, parted = own_lines(work.source, named(work, name))
    return Edit(extent, "NPU000", "gone", "", group=GROUP, parted=parted)


def applied(work: Work, edits: Sequence[Edit]) -> str:
    outcome = apply_edits(work, edits)
    assert splice(work.source.utf8, outcome.spliced) == outcome.data  # the records give the output
    compile(outcome.data, "a.py", "exec")
    return outcome.data.decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a; b\n", "up\na; b\n"),
        ("x; a; b\n", "x\nup\na; b\n"),
        ("x;a\n", "x\nup\na\n"),
        ("x ;  a  # said of a\n", "x\nup\na  # said of a\n"),
        ("x; a;\n", "x\nup\na;\n"),
        ("x; a", "x\nup\na"),
        ("x; \\\n   a\n", "x\nup\na\n"),
        ("if c:\n    x; a\n", "if c:\n    x\n    up\n    a\n"),
        ("if c:\n\tx; a\n", "if c:\n\tx\n\tup\n\ta\n"),
        ("if c: a\n", "if c:\n    up\n    a\n"),
        ("if c: a; b  # both\n", "if c:\n    up\n    a; b  # both\n"),
        ("if c: x; a\n", "if c:\n    x\n    up\n    a\n"),
        ("if c: \\\n  a\n", "if c:\n    up\n    a\n"),
        ("if c:\n  x\nelse: a\n", "if c:\n  x\nelse:\n  up\n  a\n"),
        ("if c: x\nelif d: a; b\nelse: y\n", "if c: x\nelif d:\n    up\n    a; b\nelse: y\n"),
        ("for i in j: a\nelse: b\n", "for i in j:\n    up\n    a\nelse: b\n"),
        ("while c: a\n", "while c:\n    up\n    a\n"),
        ("with c as d: a\n", "with c as d:\n    up\n    a\n"),
        ("try: a\nexcept E: b\n", "try:\n    up\n    a\nexcept E: b\n"),
        ("try: x\nexcept E: a\n", "try: x\nexcept E:\n    up\n    a\n"),
        ("try: x\nfinally: a\n", "try: x\nfinally:\n    up\n    a\n"),
        ("def f(x): a; return x\n", "def f(x):\n    up\n    a; return x\n"),
        ("class A: a = 1\n", "class A:\n    up\n    a = 1\n"),
        ("@d\nclass A: a = 1; b = 2\n", "@d\nclass A:\n    up\n    a = 1; b = 2\n"),
        ("match c:\n    case 1: a\n    case _: b\n", "match c:\n    case 1:\n        up\n        a\n    case _: b\n"),
        ("def f():\n    if c: a\n    b\n", "def f():\n    if c:\n        up\n        a\n    b\n"),
        ('x = """\n;:\n"""; a = """\n b\n"""\n', 'x = """\n;:\n"""\nup\na = """\n b\n"""\n'),
        ("x = 'é;'; a\n", "x = 'é;'\nup\na\n"),
        ("x = {1: 2}; a = [\n    1,\n]\n", "x = {1: 2}\nup\na = [\n    1,\n]\n"),
        ("x = lambda: 0; a\n", "x = lambda: 0\nup\na\n"),
        ("x; a\r\nb\r\n", "x\r\nup\r\na\r\nb\r\n"),
        ("# c: \\\na\n", "# c: \\\nup\na\n"),
        ("x  # c; \\\na\n", "x  # c; \\\nup\na\n"),
    ],
)
def test_lines_above(before: str, after: str) -> None:
    work = bench(before)
    assert can_part(work.source, named(work, "a"))
    assert applied(work, [above(work, "a")]) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x; a\n", "x; a\ndown\n"),
        ("a; b\n", "a\ndown\nb\n"),
        ("x; a; b; c  # all\n", "x; a\ndown\nb; c  # all\n"),
        ("a;\nb\n", "a;\ndown\nb\n"),
        ("x; a", "x; a\ndown\n"),
        ("if c: a\n", "if c:\n    a\n    down\n"),
        ("if c: x; a; b\n", "if c:\n    x; a\n    down\n    b\n"),
        ("if c: a\nelse: b\n", "if c:\n    a\n    down\nelse: b\n"),
        ("for i in j: a  # why\nb\n", "for i in j:\n    a  # why\n    down\nb\n"),
        ('a = """\nx\n"""; b\n', 'a = """\nx\n"""\ndown\nb\n'),
        ("class A:\n\ta = 1; b = 2\n", "class A:\n\ta = 1\n\tdown\n\tb = 2\n"),
        ("a \\\n ; b\n", "a\ndown\nb\n"),
    ],
)
def test_lines_below(before: str, after: str) -> None:
    work = bench(before)
    assert applied(work, [below(work, "a")]) == after


@pytest.mark.parametrize(
    ("before", "last", "after"),
    [
        ("a; b\n", "a", "if r:\n    a\nb\n"),
        ("x; a; b\n", "a", "x\nif r:\n    a\nb\n"),
        ("x; a; b\n", "b", "x\nif r:\n    a; b\n"),
        ("x; a\nb\ny\n", "b", "x\nif r:\n    a\n    b\ny\n"),
        ("x; a = [\n 1]; b\n", "a", "x\nif r:\n    a = [\n     1]\nb\n"),
        ('x; a = """\n 1"""; b\n', "a", 'x\nif r:\n    a = """\n 1"""\nb\n'),
        ("if c: a\n", "a", "if c:\n    if r:\n        a\n"),
        ("if c: x; a; b  # b\n", "a", "if c:\n    x\n    if r:\n        a\n    b  # b\n"),
        ("for i in j: a; b\n", "b", "for i in j:\n    if r:\n        a; b\n"),
        ("x; \\\na; b\n", "a", "x\nif r:\n    a\nb\n"),
    ],
)
def test_statements_under_a_header(before: str, last: str, after: str) -> None:
    work = bench(before)
    assert applied(work, [around(work, "a", last)]) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a; b\n", "b\n"),
        ("x; a\n", "x\n"),
        ("x; a; b\n", "x\nb\n"),
        ("x; a  # of a\nb\n", "x\nb\n"),
        ("if c: a; b\n", "if c:\n    b\n"),
        ("if c: x; a\n", "if c:\n    x\n"),
        ("if c:\n  x; a; b\n", "if c:\n  x\n  b\n"),
        ("if c:\n  a; b\n", "if c:\n  b\n"),
    ],
)
def test_a_statement_goes(before: str, after: str) -> None:
    work = bench(before)
    assert applied(work, [without(work, "a")]) == after


def test_what_several_ask_for_fits_together() -> None:
    work = bench("if c: a; b; d  # all\n")
    edits = [above(work, "a"), below(work, "a"), around(work, "b", "b"), above(work, "b", "x"), below(work, "d", "y")]
    assert applied(work, edits) == (
        "if c:\n    up\n    a\n    down\n    x\n    if r:\n        b\n    d  # all\n    y\n"
    )
    work = bench("x; a; b\n")
    assert applied(work, [without(work, "a"), above(work, "b"), below(work, "x")]) == "x\ndown\nup\nb\n"
    work = bench("a; b; d\n")
    nested = [around(work, "a", "d", "if q:"), around(work, "b", "b"), above(work, "b"), below(work, "d")]
    assert applied(work, nested) == "if q:\n    a\n    up\n    if r:\n        b\n    d\ndown\n"


def test_lines_below_the_last_statement_of_a_loop_under_a_header() -> None:
    work = bench("for i in j:\n    a\n")
    loop = work.scan.tree.body[0]
    under = Edit(Around(loop, loop), "NPU000", "around", "if r:", group=GROUP)
    assert applied(work, [under, below(work, "a")]) == "if r:\n    for i in j:\n        a\n        down\n"


@pytest.mark.parametrize(
    "source",
    ["a; b\n", "x; a\n", "if c: a\n", "x; \\\n a\n", "a;\n", "a\n", "class A: a = 1\n"],
)
def test_lines_that_nobody_asks_for_stay(source: str) -> None:
    assert applied(bench(source), []) == source


@pytest.mark.parametrize(
    "source",
    [
        "x; a  # transplt: ignore\n",
        "a; b  # transplt: ignore[NPU201]\n",
        "if c:\n    \\\n    a\n",
        "match c:\n    case (\n        1\n    ): a\n",
    ],
)
def test_what_cannot_be_parted(source: str) -> None:
    work = bench(source)
    assert not can_part(work.source, named(work, "a"))


@pytest.mark.parametrize(
    "source", ["a  # transplt: ignore\n", "if c:\n    a\n", "@d\ndef f():\n    a\n", "if c: # x; \n  a # y: \n"]
)
def test_statements_on_lines_of_their_own(source: str) -> None:
    work = bench(source)
    node = named(work, "a")
    assert can_part(work.source, node)
    assert not indent_of(work.source, node).strip()
    assert applied(work, [above(work, "a"), below(work, "a")]).count("\n") == source.count("\n") + 2
