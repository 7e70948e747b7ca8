"""Settings of a project that are named after cuDNN: whether their values go to torch.backends.cudnn and nowhere else.

`_C.CUDNN.BENCHMARK` of yacs and `cudnn.benchmark = cfg["cudnn"]["benchmark"]`: what torch.backends.cudnn is given has
no effect on an NPU, so that the key does no harm under its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.flow.key_facts import KeyRead
from transplt.syntax.names import Names
from transplt.syntax.nodes import last_name, string_of
from transplt.syntax.scan import Scan, parent

#: What is assigned there has no effect on an NPU.
SETTINGS = "torch.backends.cudnn"
_NAMED = re.compile("cudnn", re.I)
_FLAGS = frozenset({"benchmark", "deterministic", "enabled"})
_LOOKED_UP = frozenset({"get", "pop"})


def cudnn_reads(scan: Scan, names: Names) -> Iterator[KeyRead]:
    """The keys named after cuDNN that a file reads; `root` is `SETTINGS` where the value goes there, else empty."""
    for node, key in _keys(scan, names) if b"cudnn" in scan.source.utf8.lower() else ():
        top = _whole(node)
        if top is None:
            yield KeyRead("cudnn", "", (key,), "")
        elif isinstance(getattr(top, "ctx", None), (ast.Store, ast.Del)):
            if top is not node and (last_name(top) or "").lower() in _FLAGS:  # a section of these flags: who reads it?
                yield KeyRead("cudnn", SETTINGS, (key,), "")
        else:
            yield KeyRead("cudnn", SETTINGS if _goes_there(top, names) else "", (key,), "")


def _keys(scan: Scan, names: Names) -> Iterator[tuple[ast.expr, str]]:
    """`cfg.CUDNN`, `cfg["cudnn"]`, `cfg.get("cudnn_benchmark")`, `getattr(cfg, "CUDNN")`, each with its key."""
    for name, nodes in scan.attributes.items():
        for node in nodes if _NAMED.search(name) else ():
            if not (names.qualified(node) or "").startswith("torch."):
                yield node, name
    for item in scan.subscripts:
        if _NAMED.search(key := string_of(item.slice) or ""):
            yield item, key
    for call in scan.calls:
        getter = last_name(call.func) if isinstance(call.func, ast.Attribute) else ""
        at = 0 if getter in _LOOKED_UP else 1 if last_name(call.func) == "getattr" else -1
        if 0 <= at < len(call.args) and _NAMED.search(key := string_of(call.args[at]) or ""):
            yield call, key


def _whole(node: ast.expr) -> ast.expr | None:
    """What is read from a key in the end: all of `cfg.CUDNN.BENCHMARK`; None where a method of it is called."""
    while True:
        above = parent(node)
        if isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is node:
            node = above
        elif isinstance(above, ast.Call) and above.func is node:
            if last_name(node) not in _LOOKED_UP:
                return None
            node = above
        else:
            return node


def _goes_there(node: ast.expr, names: Names) -> bool:
    """True for a value that is assigned to a setting, handed to `flags`, or decides over such assignments alone."""
    above = parent(node)
    while isinstance(above, (ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call)):
        if isinstance(above, ast.Call) and (node not in above.args or last_name(above.func) not in ("bool", "int")):
            break
        node, above = above, parent(above)
    if isinstance(above, ast.If) and above.test is node:
        return all(_sets(item, names) for item in (*above.body, *above.orelse))
    if isinstance(above, ast.stmt):
        return _sets(above, names)
    above = parent(above) if isinstance(above, ast.keyword) else above
    return isinstance(above, ast.Call) and _is_setting(above.func, names)


def _sets(item: ast.stmt, names: Names) -> bool:
    return isinstance(item, ast.Assign) and all(_is_setting(target, names) for target in item.targets)


def _is_setting(node: ast.expr, names: Names) -> bool:
    return (names.qualified(node) or "").startswith(f"{SETTINGS}.")
