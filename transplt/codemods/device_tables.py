"""Tables by device, `{"cuda": X, "cpu": Y}`: they gain a row for the NPU and never lose one."""

from __future__ import annotations

import ast

from transplt.edits.rewrite import Change
from transplt.edits.work import Work
from transplt.syntax.scan import parent
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite
from transplt.values.kinds import is_kind
from transplt.values.links import DEVICE, DEVICE_STRING
from transplt.values.reached import is_map_location, places, store_slots

REASON = "the row for CUDA stays beside the one for the NPU"


def plan(work: Work) -> None:
    """Give tables that are looked up by device a row for the NPU; runs before the rules that rename what is in them."""
    seen: set[int] = set()
    for node in work.scan.strings:
        display = _display_of(node)
        if display is None or id(display) in seen:
            continue
        rows = [
            (key, value)
            for key, value in zip(display.keys, display.values, strict=True)
            if key is not None and (text := _text(work, key)).count("cuda") == 1 and DEVICE_STRING.match(_spelled(text))
        ]
        seen.add(id(display))
        _table(work, display, rows)


def _display_of(node: ast.Constant) -> ast.Dict | None:
    """The table in whose keys a string stands: as the key itself, or (`"cuda:%d" % 0`) as its beginning."""
    if not isinstance(node.value, str) or not DEVICE_STRING.match(node.value):
        return None
    key: ast.AST = node
    above = parent(key)
    if isinstance(above, ast.JoinedStr):
        key, above = above, parent(above)
    if isinstance(above, ast.BinOp) and above.left is key:
        key, above = above, parent(above)
    if isinstance(above, ast.Dict) and any(item is key for item in above.keys):
        return above
    return None


def _text(work: Work, node: ast.expr) -> str:
    return work.source.slice(*work.source.extent(node))


def _spelled(text: str) -> str:
    """What a literal spells, its prefix and quotes left out."""
    return text.lstrip("rRuUfF").lstrip("\"'")


def _table(work: Work, display: ast.Dict, rows: list[tuple[ast.expr, ast.expr]]) -> None:
    present = {_text(work, key).replace("'", '"') for key in display.keys if key is not None}
    wanted = [
        (key, value)
        for key, value in rows
        if _text(work, key).replace("'", '"').replace("cuda", "npu", 1) not in present
    ]
    for key, value in rows:
        if not any(key is other for other, _ in wanted):
            _hold(work, key, value)
    if not wanted or not looked_up_by_device(work, display) or _calls(wanted):
        return  # `strings` says what is left to say of the keys
    if not work.take(display):
        return
    texts = {}
    # What a CUDA checkpoint is mapped to has to exist here: its row points to the NPU as well.
    loads = is_map_location(display)
    for key, value in wanted:
        for part in ast.walk(key):
            work.take(part)
        work.keep(key, REASON)
        texts[display.keys.index(key)] = _text(work, value)
        work.keep(value, REASON)
    names = ", ".join(_text(work, key) for key, _ in wanted)
    work.changes.append(
        Change(
            display,
            "NPU209",
            f"the row {names} of a table by device gets one for the NPU beside it",
            lambda node: _with_rows(node, {} if loads else texts, set(texts)),
            writes_npu=True,
        )
    )


def _hold(work: Work, key: ast.expr, value: ast.expr) -> None:
    """A row for CUDA beside one for the NPU: nothing in it changes."""
    for node in (*ast.walk(key), *ast.walk(value)):
        work.take(node)
    work.keep(key, REASON)
    work.keep(value, REASON)


def _calls(rows: list[tuple[ast.expr, ast.expr]]) -> bool:
    """True when a row's value does something: written twice, it would happen twice."""
    return any(
        isinstance(node, (ast.Await, ast.NamedExpr, ast.Yield, ast.ListComp, ast.DictComp))
        or (isinstance(node, ast.Call) and not isinstance(value, ast.Lambda) and not _harmless(node))
        for _, value in rows
        for node in ast.walk(value)
    )


def _harmless(call: ast.Call) -> bool:
    func = call.func
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    return last in ("format", "str", "int", "device", "get", "dict", "list", "set", "tuple")


def looked_up_by_device(work: Work, display: ast.Dict) -> bool:
    """True when the file shows that a table's keys are compared with devices."""
    if is_map_location(display):
        return True
    flow = work.flow
    above = parent(display)
    if isinstance(above, ast.Subscript) and above.value is display:
        return is_kind(flow, above.slice, DEVICE)
    if isinstance(above, ast.Attribute) and above.attr == "get":
        call = parent(above)
        return isinstance(call, ast.Call) and bool(call.args) and is_kind(flow, call.args[0], DEVICE)
    if isinstance(above, ast.Compare):
        return is_kind(flow, above.left, DEVICE)
    slots: set[str] = set()
    if isinstance(above, ast.Assign):
        for target in above.targets:
            slots.update(store_slots(flow, target, ()))
    elif isinstance(above, ast.AnnAssign):
        slots.update(store_slots(flow, above.target, ()))
    else:
        slots.update(place.detail for place in places(flow, display) if place.kind == "slot")
    roots = {flow.find(slot) for slot in slots}
    if any(DEVICE in flow.marks.get(root, ()) for root in roots):
        return True  # a table that goes where a device goes: map_location
    return bool(roots) and any(
        (slot := flow.slot(table)) is not None and flow.find(slot) in roots and is_kind(flow, key, DEVICE)
        for table, key in _lookups(work)
    )


def _lookups(work: Work) -> list[tuple[ast.expr, ast.expr]]:
    """(table, key) of the look-ups of a file: `t[k]`, `t.get(k)`, `k in t`."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for node in work.scan.subscripts:
        if not isinstance(node.slice, (ast.Constant, ast.Slice)):
            found.append((node.value, node.slice))
    for call in work.scan.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("get", "pop") and call.args:
            found.append((call.func.value, call.args[0]))
    for compare in work.scan.compares:
        if len(compare.ops) == 1 and isinstance(compare.ops[0], (ast.In, ast.NotIn)):
            found.append((compare.comparators[0], compare.left))
    return found


def _with_rows(node: cst.CSTNode, texts: dict[int, str], places_: set[int]) -> cst.CSTNode:
    """The display with a row after each of those at the given places; `texts` holds values that stay as they were."""
    display = cst.ensure_type(node, cst.Dict)
    elements: list[cst.BaseDictElement] = []
    for index, element in enumerate(display.elements):
        if index not in places_:
            elements.append(element)
            continue
        row = cst.ensure_type(element, cst.DictElement)
        value = _as_it_was(row.value, texts[index]) if index in texts else row.value
        elements.append(row.with_changes(value=value, comma=_separator(display)))
        elements.append(row.with_changes(key=_for_npu(row.key)))
    return display.with_changes(elements=elements)


def _as_it_was(value: cst.BaseExpression, text: str) -> cst.BaseExpression:
    """The value of CUDA's row without the edits inside it: a hole gets its source text, anything else holds none."""
    if not isinstance(value, cst.Name) or not value.value.startswith("_hole"):
        return value
    was = cst.parse_expression(f"({text})")
    return was.with_changes(lpar=[*value.lpar, *was.lpar[1:]], rpar=[*was.rpar[:-1], *value.rpar])


def _for_npu(key: cst.BaseExpression) -> cst.BaseExpression:
    text = cst.Module([]).code_for_node(key)
    if text.count("cuda") != 1:
        raise CannotRewrite("the key does not spell the device as one literal")
    return cst.parse_expression(text.replace("cuda", "npu"))


def _separator(display: cst.Dict) -> cst.Comma:
    """The comma between two rows, laid out as in the rest of the table."""
    first = display.lbrace.whitespace_after
    if isinstance(first, cst.ParenthesizedWhitespace):
        line = first.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
        return cst.Comma(whitespace_after=first.with_changes(first_line=line, empty_lines=[]))
    for element in display.elements[:-1]:
        if isinstance(element.comma, cst.Comma) and isinstance(element.comma.whitespace_after, cst.SimpleWhitespace):
            return element.comma
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
