"""Edits of calls, methods and comparisons: what each makes of a form, and that any layout and line end stays."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_trees import SPACE, readable
from transplt.edits.trees import calls, expressions
from transplt.edits.trees import removals as departures
from transplt.edits.trees.transform import CannotRewrite, New, rewritten

LAYOUT = SPACE.filter(lambda space: "\r" not in space)
CALLEES = st.sampled_from(["f", "a.b", "(a).b", "( # (\n a)", "f(x)", "f(x).g", "(x + y)", "x[0]", "a . b", "'é'.b"])
VALUES = st.sampled_from(
    ["a", "(a)", "( # )\n(a) )", "'é, ('", "f(b, c)", "[1, 2]", "a if b else c", "lambda: a", "_hole0_", "a or b"]
)
EQUAL = st.sampled_from(["=", " = ", "=\n", " =  # =\n "])


@st.composite
def texts_of_calls(draw: st.DrawFn) -> str:
    """A call with arguments of all kinds, in any layout."""
    given: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        value = draw(VALUES)
        kind = draw(st.sampled_from(["", "", "*", "**", "k", "device", "old"]))
        mark = kind + draw(EQUAL if kind.isalpha() else LAYOUT) if kind else ""
        given.append(f"{mark}{value}{draw(LAYOUT)}")
    inside = f",{draw(LAYOUT)}".join(given) + draw(st.sampled_from(["", ","] if given else [""]))
    return f"{draw(CALLEES)}{draw(LAYOUT)}({draw(LAYOUT)}{inside}{draw(LAYOUT)})"


CALLS = texts_of_calls().filter(readable)


def read(text: str) -> ast.expr:
    return ast.parse(f"({text}\n)", mode="eval").body


def outcome(new: New, text: str) -> str:
    try:
        return rewritten(text, [new], ast.expr)
    except CannotRewrite:
        return "refused"


def _new_keyword(call: ast.Call) -> None:
    at = next((at for at, each in enumerate(call.keywords) if each.arg is None), len(call.keywords))
    call.keywords.insert(at, ast.keyword("new", read("f(1)")))


def _replaced(call: ast.Call) -> None:
    each = next(each for each in call.keywords if each.arg == "old")
    each.arg, each.value = "new", read("f(x, y)")


def _without(call: ast.Call) -> None:
    call.keywords = [each for each in call.keywords if each.arg != "k"]


def _renamed(call: ast.Call) -> None:
    for each in call.keywords:
        each.arg = "new" if each.arg == "old" else each.arg


def _without_any(call: ast.Call) -> None:
    call.args, call.keywords = [], []


def _calling(call: ast.Call) -> None:
    call.func = read("a.b")


def _method(call: ast.Call) -> ast.Attribute:
    assert isinstance(call.func, ast.Attribute)
    return call.func


def _last_name(call: ast.Call) -> None:
    _method(call).attr = "name"


def _method_of(call: ast.Call) -> None:
    _method(call).value = read("new.one")


def _scaled(call: ast.Call) -> None:
    _method(call).value = ast.Call(read("s.scale"), [_method(call).value], [])


#: An edit, what it does to Python's own tree, and whether comments of the old text may go.
EDITS: list[tuple[New, Callable[[ast.Call], None], bool]] = [
    (calls.with_keyword("new", "f(1)"), _new_keyword, False),
    (calls.with_new_keyword("new", "f(1)", None), _new_keyword, True),
    (calls.with_new_keyword("new", "f(1)", 4), _new_keyword, True),
    (calls.keyword_replaced("old", "new", "f(x, y)"), _replaced, True),
    (calls.renamed_arguments({"old": "new"}, {}), _renamed, False),
    (departures.without_keyword("k"), _without, True),
    (departures.without_any_argument(), _without_any, True),
    (calls.calling("a.b"), _calling, True),
    (calls.with_last_name("name"), _last_name, False),
    (expressions.calling_method_of("new.one"), _method_of, True),
    (expressions.scaled_by("s"), _scaled, False),
]


@given(CALLS)
def test_of_calls(text: str) -> None:
    for new, change, may_lose_comments in EDITS:
        after, call = outcome(new, text), read(text)
        assert isinstance(call, ast.Call)
        try:
            change(call)
        except (AssertionError, StopIteration):
            assert after == "refused"
            continue
        assert ast.dump(read(after)) == ast.dump(call)
        assert may_lose_comments or after.count("#") >= text.count("#")
        if "\n" in text:
            assert outcome(new, text.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


OPERATORS = st.sampled_from(["in", "not in", "==", "is not", "<"])


@given(VALUES, LAYOUT, VALUES, LAYOUT, OPERATORS)
def test_of_comparisons(left: str, before: str, right: str, behind: str, operator: str) -> None:
    left, rest = f"({left})", f" {before}{operator} {behind}({right})"
    text = left + rest
    assert outcome(expressions.compared_with("'b'", "or", brackets=False), text) == f"{text} or 'b'{rest}"
    assert outcome(expressions.compared_with("'b'", "and", brackets=True), text) == f"({text} and 'b'{rest})"
    assert outcome(expressions.compared_with("'b'", "and", brackets=False), f"({text})") == f"({text} and 'b'{rest})"
    assert outcome(expressions.left_side(" in ('a', 'b')"), text) == f"{left} in ('a', 'b')"
    assert outcome(expressions.and_also("x == 0"), text) == f"{text} and x == 0"


@pytest.mark.parametrize("text", ["a if b else c", "lambda: a", "a or b"])
def test_conditions(text: str) -> None:
    assert outcome(expressions.and_also("x == 0"), text) == f"({text}) and x == 0"
    assert outcome(expressions.and_also("x == 0"), f"({text})") == f"({text}) and x == 0"


@pytest.mark.parametrize(
    ("new", "text", "after"),
    [
        (calls.with_keyword("k", "1"), "f(x for x in y)", "refused"),
        (calls.with_keyword("k", "1"), "f(\n a,  # a\n # b\n b,  # b\n)", "f(\n a,  # a\n # b\n b,\n k=1,  # b\n)"),
        (calls.with_keyword("k", "1"), "f(\n a,\n\n # b\n b)", "f(\n a,\n\n # b\n b,\n\n\n k=1)"),
        (calls.with_keyword("k", "1"), "f(a,  # a\r\n  b)", "f(a,  # a\r\n  b,\r\n  k=1)"),
        (calls.with_keyword("k", "1"), "f(a,\r\n  b,\n  c)", "f(a,\r\n  b,\n  c,\r\n  k=1)"),
        (calls.with_keyword("k", "1"), "f(a, b)", "f(a, b, k=1)"),
        (calls.with_named(0, "k"), "f(\n a, b=2)", "f(\n k=a, b=2)"),
        (calls.with_named(1, "k"), "f(a , b , )", "f(a , k=b , )"),
        (calls.with_named(1, "k"), "f(*a, b)", "refused"),
        (calls.with_named(1, "k"), "f(a, b=1)", "refused"),
        (calls.with_named(1, "k"), "f(a)", "refused"),
        (calls.with_named(0, "k"), "f(a, b)", "refused"),
        (calls.renamed_arguments({"fi": "k"}, {1: "b"}), "f(a, x, \ufb01 = 1)", "f(a, b=x, k = 1)"),
        (calls.keyword_replaced("fi", "k", "2"), "f(\ufb01 = 1)", "f(k = 2)"),
        (calls.only_argument(), "f(\n (a) , b)", "(a)"),
        (calls.only_argument(), "f()", "refused"),
        (calls.callee(), "( a . b ) (x)", "( a . b )"),
        (calls.callee(), "f(x for x in y)", "f"),
        (departures.without_keyword("k"), "f(\n a,  # a\n k=1,  # k\n)", "f(\n a,  # a\n)"),
        (departures.without_keyword("k"), "f(\n a,  # a\n k=1)", "f(\n a,  # a\n )"),
        (departures.without_keyword("k"), "f(k=1,)", "f()"),
        (departures.without_keyword("k"), "f(a, k=1, *b)", "f(a, *b)"),
        (expressions.receiver(), "(a +\n b).f(x)", "(a +\n b)"),
        (expressions.receiver(), "f(x)", "refused"),
        (expressions.handed_to("g"), "(a,\r\n b).f()", "g((a,\r\n b))"),
        (expressions.wrapped_anew("w", "", "k=1", behind=False), "f(\r\n (a), b)", "w((a), k=1)"),
        (expressions.wrapped_anew("w", "", "", behind=True), "f(a.b, c).g()", "w(a.b)"),
        (expressions.wrapped_anew("w", ".to(c)", "", behind=True), "f(a.b, c).g()", "w(a.b.to(c))"),
        (expressions.wrapped_anew("w", ".to(c)", "k=1", behind=False), "f(a or b)", "w((a or b).to(c), k=1)"),
        (expressions.wrapped_anew("w", "", "", behind=True), "f.g()", "refused"),
        (expressions.scaled_by("s"), "( a # a\n ).backward()", "s.scale( a # a\n ).backward()"),
        (expressions.and_also("r == 0"), "a or\n b", "(a or\n b) and r == 0"),
        (expressions.and_also("r == 0"), "a and b", "a and b and r == 0"),
        (expressions.only_if("r == 0"), "a.\n b", "a.\n b if r == 0 else None"),
        (expressions.method_called("float"), "(a +\n b)", "(a +\n b).float()"),
        (expressions.between("g(", ")"), "f(\r\n  a\r\n)", "g(f(\r\n  a\r\n))"),
        (expressions.followed_by("b, c"), "f(\r\n  a\r\n)", "f(\r\n  a\r\n), b, c"),
    ],
)
def test_forms(new: New, text: str, after: str) -> None:
    assert outcome(new, text) == after
