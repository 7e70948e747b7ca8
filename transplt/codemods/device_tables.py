"""Tables by device, `{"cuda": X, "cpu": Y}`: they gain a row for the NPU and never lose one."""

from __future__ import annotations

import ast

import libcst as cst

from transplt.destinations import is_map_location, places, store_slots
from transplt.flow import DEVICE, DEVICE_STRING
from transplt.rewrite import CannotRewrite, Change
from transplt.scan import parent
from transplt.verdicts import is_kind
from transplt.work import Work

REASON = "the row for CUDA stays beside the one for the NPU"


def plan(work: Work) -> None:
    """Give tables that are looked up by device a row for the NPU; runs before the rules that rename what is in them."""
    seen: set[int] = set()
    for node in work.scan.strings:
        display = parent(node)
        if not isinstance(display, ast.Dict) or id(display) in seen:
            continue
        rows = [
            (key, value)
            for key, value in zip(display.keys, display.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and DEVICE_STRING.fullmatch(key.value)
        ]
        if not any(key is node for key, _ in rows):
            continue
        seen.add(id(display))
        _table(work, display, rows)


def _table(work: Work, display: ast.Dict, rows: list[tuple[ast.Constant, ast.expr]]) -> None:
    present = {str(key.value) for key in display.keys if isinstance(key, ast.Constant)}
    wanted = [(key, value) for key, value in rows if str(key.value).replace("cuda", "npu", 1) not in present]
    for key, value in rows:
        if not any(key is other for other, _ in wanted):
            _hold(work, key, value)
    if not wanted or not looked_up_by_device(work, display) or _calls(wanted):
        return  # `strings` says what is left to say of the keys
    if not work.take(display):
        return
    texts = {}
    for key, value in wanted:
        work.take(key)
        work.keep(key, REASON)
        texts[display.keys.index(key)] = work.source.slice(*work.source.extent(value))
        _keep_words(work, value)
    names = ", ".join(repr(key.value) for key, _ in wanted)
    work.changes.append(
        Change(
            display,
            "NPU209",
            f"the row {names} of a table by device gets one for the NPU beside it",
            lambda node: _with_rows(node, texts),
            writes_npu=True,
        )
    )


def _hold(work: Work, key: ast.expr, value: ast.expr) -> None:
    """A row for CUDA beside one for the NPU: nothing in it changes."""
    work.take(key)
    work.keep(key, REASON)
    for node in ast.walk(value):
        if isinstance(node, ast.expr):
            work.take(node)
    work.keep(value, REASON)


def _keep_words(work: Work, value: ast.expr) -> None:
    work.keep(value, REASON)


def _calls(rows: list[tuple[ast.Constant, ast.expr]]) -> bool:
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


def _with_rows(node: cst.CSTNode, texts: dict[int, str]) -> cst.CSTNode:
    """The display with a row after each of those at the given places; `texts` holds their values as they were."""
    display = cst.ensure_type(node, cst.Dict)
    elements: list[cst.BaseDictElement] = []
    last = len(display.elements) - 1
    for index, element in enumerate(display.elements):
        if index not in texts:
            elements.append(element)
            continue
        row = cst.ensure_type(element, cst.DictElement)
        key = row.key
        if not isinstance(key, cst.SimpleString) or key.value.count("cuda") != 1:
            raise CannotRewrite("the key is not one plain literal")
        between = _separator(display, index)
        old = row.with_changes(value=cst.parse_expression(f"({texts[index]})").with_changes(lpar=row.value.lpar, rpar=row.value.rpar))
        new = row.with_changes(key=key.with_changes(value=key.value.replace("cuda", "npu")))
        if index == last:
            elements += [old.with_changes(comma=between), new]
        else:
            elements += [old.with_changes(comma=between), new]
    return display.with_changes(elements=elements)


def _separator(display: cst.Dict, index: int) -> cst.Comma:
    """The comma between two rows, laid out as in the rest of the table."""
    first_space = display.lbrace.whitespace_after
    if isinstance(first_space, cst.ParenthesizedWhitespace):
        bare = first_space.with_changes(first_line=first_space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace("")), empty_lines=[])
        return cst.Comma(whitespace_after=bare)
    for element in display.elements:
        comma = element.comma
        if isinstance(comma, cst.Comma) and isinstance(comma.whitespace_after, cst.SimpleWhitespace) and element is not display.elements[-1]:
            return comma
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
