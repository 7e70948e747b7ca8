"""The JSON reader that knows lines: values as `json` reads them, a line for each, errors with their place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.rules.json_lines import JsonError, parse, show_path

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every value's path, in the order of the text."""
    found = [path]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        found += paths(inner, (*path, key))
    return found


@given(VALUES, st.sampled_from([None, 1]))
def test_every_value_has_a_line_in_the_order_of_the_text(value: object, indent: int | None) -> None:
    read, lines = parse(json.dumps(value, indent=indent, ensure_ascii=False))
    assert read == value
    expected = paths(value)
    assert set(expected) <= set(lines.by_path)
    found = [lines.by_path[path] for path in expected]
    assert found == sorted(found)
    if indent is None:
        assert set(found) == {1}


def test_lines_of_members_and_items() -> None:
    _, lines = parse('{\n "a": [\n  1,\n  {"b":\n  2}\n ],\n "c": 3}')
    assert lines.by_path[("a",)] == 2
    assert lines.by_path[("a", 0)] == 3
    assert lines.by_path[("a", 1)] == 4
    assert lines.by_path[("a", 1, "b")] == 4
    assert lines.by_path[("c",)] == 7


def test_text_that_looks_like_structure_is_text() -> None:
    value, lines = parse('{"a{[,:": "}]",\n"b\\"": "\\\\"}')
    assert value == {"a{[,:": "}]", 'b"': "\\"}
    assert lines.by_path[('b"',)] == 2


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "not valid JSON"),
        ("{\n'a': 1}", 2, "not valid JSON"),
        ('{"a": 1,\n "a": 2}', 2, "twice"),
        ('{"x": {"a": 1,\n\n "a": 2}}', 3, "twice"),
        ('{"a": NaN}', 1, "NaN"),
        ("[" * 200_000, 1, "nested too deeply"),
        ("[1]\n]", 2, "not valid JSON"),
    ],
)
def test_errors_name_their_line(text: str, line: int, message: str) -> None:
    with pytest.raises(JsonError, match=message) as caught:
        parse(text)
    assert caught.value.line == line


def test_the_same_key_in_two_objects_is_no_duplicate() -> None:
    assert parse('[{"a": 1}, {"a": 2}]')[0] == [{"a": 1}, {"a": 2}]


def test_paths_are_shown_as_people_write_them() -> None:
    assert show_path(()) == "$"
    assert show_path(("rules", "ArgsModifyRule", 0, "arg_idx")) == "$.rules.ArgsModifyRule[0].arg_idx"
    assert show_path(("odd key",)) == "$['odd key']"
