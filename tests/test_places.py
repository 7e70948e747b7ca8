"""Edits of calls, methods and comparisons by places against LibCST's trees (tests/swaps.py), in any layout."""

from __future__ import annotations

import ast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import swaps
from tests.test_trees import SPACE, chains, readable
from transplt.trees import calls, expressions
from transplt.trees.transform import CannotRewrite, New, rewritten

#: LibCST writes line ends of one kind, those of a file, but where a transform takes the text of a part.
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
#: An edit and its judge.
PAIRS: list[tuple[New, New]] = [
    (calls.with_keyword("device", "'npu'"), swaps.with_keyword("device", "'npu'")),
    (calls.with_new_keyword("device", "f(1)", None), swaps.with_new_keyword("device", "f(1)", None)),
    (calls.with_new_keyword("device", "f(1)", 4), swaps.with_new_keyword("device", "f(1)", 4)),
    (calls.with_named(0, "first"), swaps.with_named(0, "first")),
    (calls.with_named(1, "second"), swaps.with_named(1, "second")),
    (calls.keyword_replaced("old", "new", "f(x, y)"), swaps.keyword_replaced("old", "new", "f(x, y)")),
    (
        calls.renamed_arguments({"old": "new", "k": "l"}, {0: "first", 2: "third"}),
        swaps.renamed_arguments({"old": "new", "k": "l"}, {0: "first", 2: "third"}),
    ),
    (calls.without_keyword("k"), swaps.without_keyword("k")),
    (calls.without_any_argument(), swaps.without_any_argument),
    (calls.only_argument(), swaps.only_argument),
    (calls.callee(), swaps.callee),
    (calls.calling("a.b"), swaps.calling("a.b")),
    (calls.with_last_name("name"), swaps.with_last_name("name")),
    (expressions.receiver(), swaps.receiver),
    (expressions.calling_method_of("new.one"), swaps.calling_method_of("new.one")),
    (expressions.handed_to("g"), swaps.handed_to("g")),
    (expressions.scaled_by("s"), swaps.scaled_by("s")),
    (expressions.wrapped_anew("w", "k=1", behind=False), swaps.wrapped_anew("w", "k=1", behind=False)),
    (expressions.wrapped_anew("w", "", behind=True), swaps.wrapped_anew("w", "", behind=True)),
]
OF_COMPARISONS: list[tuple[New, New]] = [
    (expressions.compared_with("'b'", "or", brackets=False), swaps.compared_with("'b'", "or", brackets=False)),
    (expressions.compared_with("'b'", "and", brackets=True), swaps.compared_with("'b'", "and", brackets=True)),
    (expressions.left_side(" in ('a', 'b')"), swaps.left_side(" in ('a', 'b')")),
]
OF_ANY: list[tuple[New, New]] = [
    (expressions.and_also("x == 0"), swaps.and_also("x == 0")),
    (expressions.between("f(", ")"), swaps.between("f(", ")")),
]


def outcome(new: New, text: str) -> str:
    try:
        return rewritten(text, [new], ast.expr)
    except (CannotRewrite, ValueError, LookupError, AssertionError) as error:
        return type(error).__name__ if isinstance(error, AssertionError) else "refused"
    except Exception as error:  # LibCST's own
        assert type(error).__module__.startswith("libcst"), error
        return "refused"


@given(CALLS)
def test_of_calls(text: str) -> None:
    for new, judge in PAIRS:
        after = outcome(new, text)
        assert after == outcome(judge, text)
        if "\n" in text:
            assert outcome(new, text.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


OPERATORS = st.sampled_from(["in", "not in", "==", "is not", "<", "or", "and", "+"])


@given(chains(), LAYOUT, CALLS, LAYOUT, OPERATORS, st.booleans())
def test_of_comparisons_and_conditions(
    left: str, before: str, right: str, behind: str, operator: str, brackets: bool
) -> None:
    text = f"{left} {before}{operator} {behind}{right}"
    assume("\r" not in text and readable(text))
    if brackets:
        text = f"({text})"
    for new, judge in (*OF_COMPARISONS, *OF_ANY):
        assert outcome(new, text) == outcome(judge, text)


@given(chains())
def test_module_named(text: str) -> None:
    judge = outcome(swaps.module_named("npu"), text)
    assert outcome(expressions.module_named("npu"), text) == judge


@pytest.mark.parametrize(("new", "judge"), OF_ANY)
@pytest.mark.parametrize("text", ["a if b else c", "(a if b else c)", "lambda: a", "a or b", "(a) or (b)", "(a := b)"])
def test_conditions(new: New, judge: New, text: str) -> None:
    assert outcome(new, text) == outcome(judge, text)


@pytest.mark.parametrize(
    ("new", "text", "after"),
    [
        (calls.with_keyword("k", "1"), "f(x for x in y)", "refused"),
        (calls.with_keyword("k", "1"), "f(\n a,  # a\n # b\n b,  # b\n)", "f(\n a,  # a\n # b\n b,\n k=1,  # b\n)"),
        (calls.with_keyword("k", "1"), "f(a,  # a\r\n  b)", "f(a,  # a\r\n  b,\r\n  k=1)"),
        (calls.with_keyword("k", "1"), "f(a, b)", "f(a, b, k=1)"),
        (calls.callee(), "f(x for x in y)", "f"),
        (calls.without_keyword("k"), "f(\n a,  # a\n k=1,  # k\n)", "f(\n a,  # a\n)"),
        (calls.without_keyword("k"), "f(\n a,  # a\n k=1)", "f(\n a,  # a\n )"),
        (calls.without_keyword("k"), "f(k=1,)", "f()"),
        (calls.without_keyword("k"), "f(a, k=1, *b)", "f(a, *b)"),
        (expressions.and_also("r == 0"), "a or\n b", "(a or\n b) and r == 0"),
        (expressions.only_if("r == 0"), "a.\n b", "a.\n b if r == 0 else None"),
        (expressions.method_called("float"), "(a +\n b)", "(a +\n b).float()"),
        (expressions.between("g(", ")"), "f(\r\n  a\r\n)", "g(f(\r\n  a\r\n))"),
        (calls.followed_by("b, c"), "f(\r\n  a\r\n)", "f(\r\n  a\r\n), b, c"),
    ],
)
def test_forms(new: New, text: str, after: str) -> None:
    assert outcome(new, text) == after
