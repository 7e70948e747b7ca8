"""Displays: rows of a dict and elements of a list that get a twin, or go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from transplt.edits.trees.arguments import comma, comment_of, on_next_line
from transplt.edits.trees.lazy import cst
from transplt.edits.trees.transform import CannotRewrite, code, edit_of, expression


@edit_of("Dict")
def with_rows(
    display: cst.Dict, places: Set[int], key: Callable[[str], str], texts: Mapping[int, str]
) -> cst.BaseExpression:
    """A row after each of those of a dict display at some places, under another key; the old row keeps its key.

    `key` makes the text of the new key from that of the old one. `texts` holds values of old rows that stay as they
    were while the value inside them that changes goes to the new row.
    """
    elements: list[cst.BaseDictElement] = []
    for index, element in enumerate(display.elements):
        if index not in places:
            elements.append(element)
            continue
        row = cst.ensure_type(element, cst.DictElement)
        value = _as_it_was(row.value, texts[index]) if index in texts else row.value
        elements.append(row.with_changes(value=value, comma=_between(display)))
        elements.append(row.with_changes(key=cst.parse_expression(key(code(row.key)))))
    return display.with_changes(elements=elements)


@edit_of("Dict")
def with_last_row(display: cst.Dict, key: str, value: str) -> cst.Dict:
    """A row behind all others of a dict display. `key` is quoted as that of the row before is, and so are texts in
    `value` that stand in double quotes. A comment behind that row stays with it.
    """
    *others, last = display.elements
    row, between, end = cst.ensure_type(last, cst.DictElement), _between(display), display.rbrace.whitespace_before
    if isinstance(end, cst.ParenthesizedWhitespace) and comment_of(end) is not None:
        gap = between.whitespace_after
        if not isinstance(gap, cst.ParenthesizedWhitespace):
            raise CannotRewrite("there is a comment after the last row")
        between = between.with_changes(whitespace_after=gap.with_changes(first_line=end.first_line))
        bare = end.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
        display = display.with_deep_changes(display.rbrace, whitespace_before=end.with_changes(first_line=bare))
    quote = code(row.key)[-1]
    new = cst.DictElement(
        cst.SimpleString(f"{quote}{key}{quote}"), expression(value.replace('"', quote)), comma=row.comma
    )
    return display.with_changes(elements=[*others, row.with_changes(comma=between), new])


@edit_of("List", "Tuple", "Set", otherwise="no list, tuple or set")
def with_twin(display: cst.List | cst.Tuple | cst.Set, old: str, *new: str) -> cst.BaseExpression:
    """Put other texts behind each element of a display that is the first one, all as they are spelled."""
    elements: list[cst.BaseElement] = []
    for element in display.elements:
        if isinstance(element.value, cst.SimpleString) and element.value.value == old:
            between = element.comma if isinstance(element.comma, cst.Comma) else comma()
            elements.append(element.with_changes(comma=between))
            elements += [element.with_changes(value=cst.SimpleString(each), comma=between) for each in new[:-1]]
            elements.append(element.with_changes(value=cst.SimpleString(new[-1])))
        else:
            elements.append(element)
    if len(elements) == len(display.elements):
        raise CannotRewrite("the text was not found in the display")
    return display.with_changes(elements=elements)


@edit_of("List")
def without_elements(display: cst.List, places: Set[int]) -> cst.List:
    """A list display without the elements at some places; where none is left, an empty one."""
    kept = [element for index, element in enumerate(display.elements) if index not in places]
    if not kept:
        return cst.List([])
    if len(display.elements) - 1 in places:
        kept[-1] = kept[-1].with_changes(comma=display.elements[-1].comma)
    return display.with_changes(elements=kept)


@edit_of("ListComp")
def without_generators(comprehension: cst.ListComp, places: Set[int]) -> cst.BaseExpression:
    """A list comprehension without the `for` at some places; where none is left, the list of its one element."""
    parts: list[cst.CompFor] = []
    part: cst.CompFor | None = comprehension.for_in
    while part is not None:
        parts.append(part)
        part = part.inner_for_in
    inner: cst.CompFor | None = None
    for index in reversed(range(len(parts))):
        if index not in places:
            inner = parts[index].with_changes(inner_for_in=inner)
    if inner is None:
        return cst.List([cst.Element(comprehension.elt)], comprehension.lbracket, comprehension.rbracket)
    return comprehension.with_changes(for_in=inner)


def _as_it_was(value: cst.BaseExpression, text: str) -> cst.BaseExpression:
    """The value of CUDA's row without the edits inside it: a hole gets its source text, anything else holds none."""
    if not isinstance(value, cst.Name) or not value.value.startswith("_hole"):
        return value
    was = expression(text)
    return was.with_changes(lpar=[*value.lpar, *was.lpar], rpar=[*was.rpar, *value.rpar])


def _between(display: cst.Dict) -> cst.Comma:
    """The comma between two rows, laid out as in the rest of the table."""
    if isinstance(first := display.lbrace.whitespace_after, cst.ParenthesizedWhitespace):
        return cst.Comma(whitespace_after=on_next_line(first))
    for element in display.elements[:-1]:
        if isinstance(element.comma, cst.Comma) and isinstance(element.comma.whitespace_after, cst.SimpleWhitespace):
            return element.comma
    return comma()
