"""Where the argument of a call ends up: devices of torch, parameters of the project, flags, text for people."""

from __future__ import annotations

import ast
import re

from transplt.project.facts import GENERIC
from transplt.syntax.names import assigned_value
from transplt.syntax.scan import FUNCTIONS, parent
from transplt.values.place import Path, Place, Stack, deep, hinted
from transplt.values.slots import BACKEND, DEVICE, Flow
from transplt.values.torch_positions import (
    ABSL_CALLS,
    BACKEND_POSITIONS,
    COMMAND_CALLS,
    DEVICE_KEYWORDS,
    FIELD_CALLS,
    FOREIGN,
    GROUP_CALLS,
    OBJECTS,
    PARSER_CALLS,
    PICKS,
    PROSE_CALLS,
    PROSE_KEYWORDS,
    REGEX_CALLS,
    TESTS,
    TORCH_POSITIONS,
    WRAPPERS,
)


def argument(
    flow: Flow, call: ast.Call, current: ast.AST, keyword: str | None, path: Path, found: list[Place], stack: Stack
) -> None:
    func = call.func
    method = isinstance(func, ast.Attribute)
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    full = flow.names.qualified(func) or _one_or_no_context(flow, func)
    index = next((i for i, arg in enumerate(call.args) if arg is current), -1)
    root = full.split(".")[0] or _root(func)
    if root in FOREIGN and last not in ("cdiv", "HParams"):
        found.append(Place("foreign", root))
    elif last in PARSER_CALLS or (last == "Option" and root in ("typer", "click", "Option")):
        _option(flow, call, last, keyword, index, path, found, stack)
    elif last in ABSL_CALLS:
        _absl(call, keyword, index, path, found)
    elif full.startswith("re.") and last in REGEX_CALLS and index == 0:
        at = 2 if last == "sub" else 1
        found.append(Place("compare", "regex", call.args[at]) if len(call.args) > at else Place("other", "a pattern"))
    elif keyword in PROSE_KEYWORDS or last in PROSE_CALLS or last.endswith(("Error", "Exception", "Warning")):
        found.append(Place("prose"))
    elif _is_kernel(full, last, keyword):
        found.append(Place("kernel", last))
    elif _takes_device(full, last, method, keyword, index):
        found.append(Place(DEVICE))
    elif _takes_backend(full, last, keyword, index):
        found.append(Place(BACKEND))
    elif method and last in TESTS and (index == 0 or (last == "replace" and index == 1)):
        assert isinstance(func, ast.Attribute)
        found.append(Place("compare", last, func.value))
        if last == "replace" and index == 1:
            stack.append((call, path))
    elif last.startswith("assert") and index in (0, 1) and len(call.args) > 1:
        found.append(Place("compare", "in" if path else "", call.args[1 - index]))
    elif last == "len" and index == 0:
        holder = parent(call)
        if isinstance(holder, ast.Slice) or (isinstance(holder, ast.BinOp) and isinstance(parent(holder), ast.Slice)):
            stack.append((call, ()))
        else:
            found.append(Place("other", "a length"))
    elif last in WRAPPERS or last in PICKS:
        stack.append((call, path[:-1] if last in PICKS else path))
    elif last in ("zip", "product") and index >= 0:
        stack.append((call, (*path[:-1], index, None)))
    elif last == "enumerate" and index == 0:
        stack.append((call, (*path[:-1], 1, None)))
    elif last in FIELD_CALLS and (keyword in ("default", "default_factory", "factory") or index == 0):
        stack.append((call, path))
    elif last == "dict" and keyword is not None and not method:
        if hinted(keyword):
            found.append(Place("named", keyword))
        else:
            stack.append((call, (*path, keyword)))
    elif (last in ("get", "getenv", "pop", "setdefault") and method) or last == "getattr":
        _lookup(flow, call, func, last, index, path, found, stack)
    elif last in ("hasattr", "setattr", "delattr") and index != 2:
        found.append(Place("probe", other=call))
    elif last in ("append", "add", "extend", "insert", "remove", "discard", "index", "count") and method:
        assert isinstance(func, ast.Attribute)
        slot = flow.slot(func.value)
        found.append(Place("slot", deep(slot, path)) if slot else Place("other", last))
    elif last == "param" and index >= 0:
        stack.append((call, (*path, index)))
    elif last == "parametrize":
        _parametrized(flow, call, index, path, found)
    elif last == "fixture" and keyword == "params":
        holder = parent(call)
        if isinstance(holder, FUNCTIONS):
            found.append(Place("slot", f"r:{flow.module}.{holder.name}"))
    elif last in COMMAND_CALLS and index == 0 and root in ("os", "subprocess", "sp", "commands"):
        found.append(Place("command", last))
    elif last in OBJECTS and keyword is not None:
        by_name = hinted(keyword) or keyword in GENERIC
        found.append(Place("named", keyword) if by_name else Place("slot", f"n:{keyword}"))
    elif (target := flow.function_key(func)) is not None:
        named = f".{keyword}" if keyword is not None and hinted(keyword) else ""
        found.append(Place("slot", deep(flow.parameter_slot(target, keyword, index), path, keyword or "")))
        if named:
            found.append(Place("named", keyword or ""))
    elif keyword is not None:
        found.append(Place("named", keyword))
    else:
        found.append(Place("other", f"argument of {last or 'a call'}"))


def _one_or_no_context(flow: Flow, func: ast.expr) -> str:
    """What a name stands for that is one context manager or none: `scope = autocast if amp else nullcontext`."""
    if not isinstance(func, ast.Name):
        return ""
    found = flow.names.lookup(func.id, flow.scan.scope_of(func))
    values: list[ast.expr] = []
    for binding in found[1] if found is not None else ():
        value = assigned_value(binding.node) if binding.kind == "assign" else None
        if value is None:
            return ""
        values += [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    names = {flow.names.qualified(value) for value in values}
    rest = names - {"contextlib.nullcontext", "contextlib.suppress"}
    return (rest.pop() or "") if len(rest) == 1 < len(names) else ""


def _takes_device(full: str, last: str, method: bool, keyword: str | None, index: int) -> bool:
    if keyword is not None:
        return keyword in DEVICE_KEYWORDS or (keyword == "type" and full == "torch.device")
    return (method and last in ("to", "to_empty") and index == 0) or index in TORCH_POSITIONS.get(full, ())


def _takes_backend(full: str, last: str, keyword: str | None, index: int) -> bool:
    if keyword is not None:
        return keyword == "backend" and last in GROUP_CALLS
    first = last in ("init_process_group", "init_dist", "init_distributed") and index == 0
    return first or index in BACKEND_POSITIONS.get(full, ())


def _is_kernel(full: str, last: str, keyword: str | None) -> bool:
    """Where an operator's kernel is registered for a device: another name alone makes no kernel."""
    if keyword == "device_types" or last in ("register_kernel", "impl_abstract", "fallthrough", "dispatch_key"):
        return True
    if full.startswith("torch.library.") or last in ("py_impl", "register_dispatch", "DispatchKey"):
        return keyword in (None, "dispatch_key", "types", "device_types")
    return last == "impl" and keyword in (None, "dispatch_key")


def _lookup(
    flow: Flow, call: ast.Call, func: ast.expr, last: str, index: int, path: Path, found: list[Place], stack: Stack
) -> None:
    """`d.get(key, default)`, `getattr(x, name, default)`: the default is the value, the key a name."""
    default = 2 if last == "getattr" else 1
    if index == default:
        slot = flow.slot(call)
        if slot is not None:
            found.append(Place("slot", slot))
        stack.append((call, path))
    elif last == "getattr":
        found.append(Place("probe", other=call))
    else:
        found.append(Place("key", other=func.value if isinstance(func, ast.Attribute) else None))


def _option(
    flow: Flow, call: ast.Call, last: str, keyword: str | None, index: int, path: Path, found: list[Place], stack: Stack
) -> None:
    """An argument of `parser.add_argument` and its like: the default and the choices are values of the destination."""
    if last == "Option" and (index == 0 or keyword == "default"):
        stack.append((call, path))
    elif index >= 0 or keyword == "dest":
        found.append(Place("flag"))
    elif keyword in ("default", "choices", "const", "type", "envvar"):
        holder = parent(call)
        name = destination(call)
        slot = None
        if isinstance(holder, FUNCTIONS):
            slot = flow.variable(name, flow.scan.scopes[holder])
        found.append(Place("slot", slot or f"n:{name}"))
    else:
        found.append(Place("help" if keyword == "help" else "prose", other=call))


def _absl(call: ast.Call, keyword: str | None, index: int, path: Path, found: list[Place]) -> None:
    """An argument of `flags.DEFINE_string(name, default, help)` or `DEFINE_enum(name, default, values, help)`."""
    name = next((str(arg.value) for arg in call.args[:1] if isinstance(arg, ast.Constant)), "")
    if index == 0 or keyword == "name":
        found.append(Place("flag"))
    elif index == 1 or keyword in ("default", "enum_values") or path:
        found.append(Place("slot", f"n:{name}"))
    else:
        found.append(Place("help", other=call))


def _parametrized(flow: Flow, call: ast.Call, index: int, path: Path, found: list[Place]) -> None:
    """The values of `pytest.mark.parametrize(names, values)` land in the parameters of the test below it."""
    first = call.args[0] if call.args else None
    names: list[str] = []
    if isinstance(first, ast.Constant):
        names = [name.strip() for name in str(first.value).split(",")]
    elif isinstance(first, (ast.Tuple, ast.List)):
        names = [str(e.value) for e in first.elts if isinstance(e, ast.Constant)]
    inner = path[:-1]
    at = inner[-1] if inner else None
    if index == 0 or not names:
        found.append(Place("other", "names of parameters"))
        return
    name = names[0] if len(names) == 1 else names[at] if isinstance(at, int) and at < len(names) else ""
    holder = parent(call)
    slot = flow.variable(name, flow.scan.scopes[holder]) if name and isinstance(holder, FUNCTIONS) else None
    found.append(Place("slot", slot) if slot else Place("named", name))


def destination(call: ast.Call) -> str:
    """The attribute that an `add_argument` call fills."""
    for keyword in call.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    names = [str(arg.value) for arg in call.args if isinstance(arg, ast.Constant)]
    long = [name for name in names if name.startswith("--")] or names
    return re.sub(r"^-+", "", long[0].partition("/")[0]).replace("-", "_") if long else ""


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
