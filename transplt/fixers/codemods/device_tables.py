"""Tables by device, `{"cuda": X, "cpu": Y}`: they gain a row for the NPU and never lose one."""

from __future__ import annotations

import ast

from transplt.base.grouped import grouped
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.displays import with_rows
from transplt.edits.trees.transform import CannotRewrite
from transplt.edits.work import Work
from transplt.flow.destinations import places
from transplt.flow.device_or_backend import holds
from transplt.flow.device_strings import DEVICE_STRING
from transplt.flow.marks import DEVICE
from transplt.flow.slot_stores import is_map_location, store_slots
from transplt.syntax.nodes import index_in, last_name
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU209", rank=190)

REASON = "row-beside"


@fixer.on(ast.Module)
def tables_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Give tables that are looked up by device a row for the NPU."""
    seen: set[int] = set()
    for node in work.scan.strings:
        display = _display_of(node)
        if display is None or id(display) in seen:
            continue
        rows = [
            (key, value)
            for key, value in zip(display.keys, display.values, strict=True)
            if key is not None
            and (text := work.text(key)).count("cuda") == 1
            and DEVICE_STRING.match(text.lstrip("rRuUfF").lstrip("\"'"))
        ]
        seen.add(id(display))
        yield from _table(work, display, rows)


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
    if isinstance(above, ast.Dict) and index_in(above, "keys", key) >= 0:
        return above
    return None


def _table(work: Work, display: ast.Dict, rows: list[tuple[ast.expr, ast.expr]]) -> Finds:
    present = {work.text(key).replace("'", '"') for key in display.keys if key is not None}
    wanted = [
        (key, value) for key, value in rows if work.text(key).replace("'", '"').replace("cuda", "npu", 1) not in present
    ]
    new = {id(key) for key, _ in wanted}
    for key, value in rows:
        if id(key) not in new:
            for node in (*ast.walk(key), *ast.walk(value)):  # a row for the NPU stands beside it
                work.take(node)
            yield work.keep(key, REASON)
            yield work.keep(value, REASON)
    if not wanted or not looked_up_by_device(work, display) or _calls(wanted):
        return  # `strings` reports what is left to report of the keys
    if not work.take(display):
        return
    texts = {}
    # What a CUDA checkpoint is mapped to has to exist here: its row points to the NPU as well.
    loads = is_map_location(display)
    for key, value in wanted:
        for part in ast.walk(key):
            work.take(part)
        yield work.keep(key, REASON)
        texts[index_in(display, "keys", key)] = work.text(value)
        yield work.keep(value, REASON)
    names = ", ".join(work.text(key) for key, _ in wanted)
    yield Edit(
        display,
        "NPU209",
        f"this table by device gets an entry for the NPU beside {names}",
        with_rows(set(texts), _for_npu, {} if loads else texts),
        writes_npu=True,
    )


def _calls(rows: list[tuple[ast.expr, ast.expr]]) -> bool:
    """True when a row's value does something: written twice, it would happen twice."""
    harmless = ("format", "str", "int", "device", "get", "dict", "list", "set", "tuple")
    return any(
        isinstance(node, (ast.Await, ast.NamedExpr, ast.Yield, ast.ListComp, ast.DictComp))
        or (isinstance(node, ast.Call) and not isinstance(value, ast.Lambda) and last_name(node.func) not in harmless)
        for _, value in rows
        for node in ast.walk(value)
    )


def looked_up_by_device(work: Work, display: ast.Dict) -> bool:
    """True when the file shows that a table's keys are compared with devices."""
    if is_map_location(display):
        return True
    slots = work.slots
    reached: set[str] = set()
    match parent(display):
        case ast.Subscript(value=value, slice=key) if value is display:
            return holds(slots, key, DEVICE)
        case ast.Attribute(attr="get") as method:
            call = parent(method)
            return isinstance(call, ast.Call) and bool(call.args) and holds(slots, call.args[0], DEVICE)
        case ast.Compare(left=left):
            return holds(slots, left, DEVICE)
        case ast.Assign(targets=targets):
            reached.update(slot for target in targets for slot in store_slots(slots, target, ()))
        case ast.AnnAssign(target=target):
            reached.update(store_slots(slots, target, ()))
        case _:
            reached.update(place.detail for place in places(slots, display) if place.kind == "slot")
    roots = {slots.find(slot) for slot in reached}
    if any(DEVICE in slots.marks.get(root, ()) for root in roots):
        return True  # a table that goes where a device goes: map_location
    if not roots:
        return False
    by_root = work.once(_lookups)
    return any(holds(slots, key, DEVICE) for root in roots for key in by_root.get(root, ()))


def _lookups(work: Work) -> dict[str, list[ast.expr]]:
    """The keys of the look-ups of a file (`t[k]`, `t.get(k)`, `k in t`) by the slot of the table."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for node in (*work.scan.subscripts, *work.scan.calls, *work.scan.compares):
        match node:
            case ast.Subscript(value=table, slice=key) if not isinstance(key, (ast.Constant, ast.Slice)):
                found.append((table, key))
            case ast.Call(func=ast.Attribute(value=table, attr="get" | "pop"), args=[key, *_]):
                found.append((table, key))
            case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[table]):
                found.append((table, key))
    held = ((work.slots.of(table), key) for table, key in found)
    return grouped((work.slots.find(slot), key) for slot, key in held if slot is not None)


def _for_npu(key: str) -> str:
    """The text of the key of the new row."""
    if key.count("cuda") != 1:
        raise CannotRewrite("the key does not spell the device as one literal")
    return key.replace("cuda", "npu")
