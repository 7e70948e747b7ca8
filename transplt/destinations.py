"""Where the value of an expression ends up, as far as its own file shows it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from transplt.flow import (
    BACKEND,
    BACKEND_POSITIONS,
    BACKEND_WORD,
    DEVICE,
    DEVICE_KEYWORDS,
    DEVICE_WORD,
    TORCH_POSITIONS,
    Flow,
)
from transplt.scan import FUNCTIONS, parent

#: Top-level packages with a `cuda` or a device notation of their own.
FOREIGN = frozenset(
    "numba cupy cupyx pycuda jax jaxlib flax paddle tensorflow tf keras mxnet chainer theano dgl polygraphy triton "
    "tensorrt onnxruntime tvm cudf cuml cugraph cuda taichi warp wp nvidia faiss".split()
)
#: Calls whose text arguments are for people.
PROSE_CALLS = frozenset(
    "print info debug warning warn error exception critical log write format_exc fail skip warning_once rank_zero_info "
    "rank_zero_warn echo secho log_dist print_rank_0 print_rank_last main_print".split()
)
PROSE_KEYWORDS = frozenset({"help", "description", "msg", "reason", "title", "desc", "message", "doc", "epilog", "metavar"})
_STRING_METHODS = frozenset({"format", "lower", "upper", "strip", "rstrip", "lstrip", "join", "encode"})
_TESTS = frozenset(
    {"startswith", "endswith", "find", "index", "replace", "split", "rsplit", "removeprefix", "count", "partition",
     "rpartition", "strip", "lstrip", "rstrip", "rfind"}
)


@dataclass(frozen=True, slots=True)
class Place:
    """One place a value reaches.

    `kind`: device, backend (certain positions); slot (`detail` is its key); compare (`other` is what it is compared
    with); key (dict key, subscript); row (key of a dict display, `other` is the dict); foreign (another library's
    call); prose; flag (a command line flag); named (an argument of an unknown call, `detail` its keyword); other.
    """

    kind: str
    detail: str = ""
    other: ast.expr | None = None


def places(flow: Flow, node: ast.expr) -> list[Place]:
    """All places that the value of an expression reaches directly."""
    found: list[Place] = []
    stack: list[tuple[ast.AST, bool]] = [(node, False)]
    while stack:
        current, in_container = stack.pop()
        above = parent(current)
        if isinstance(above, ast.IfExp):
            if current is above.test:
                found.append(Place("other", "condition"))
            else:
                stack.append((above, in_container))
        elif isinstance(above, (ast.BoolOp, ast.JoinedStr, ast.FormattedValue, ast.Starred, ast.Await)):
            stack.append((above, in_container))
        elif isinstance(above, ast.BinOp) and isinstance(above.op, (ast.Add, ast.Mod)):
            stack.append((above, in_container))
        elif isinstance(above, ast.NamedExpr):
            _store(flow, above.target, found)
            stack.append((above, in_container))
        elif isinstance(above, (ast.Tuple, ast.List, ast.Set)):
            stack.append((above, True))
        elif isinstance(above, ast.Dict):
            _in_dict(flow, above, current, found, stack)
        elif isinstance(above, ast.Attribute):
            call = parent(above)
            if isinstance(call, ast.Call) and call.func is above and above.attr in _STRING_METHODS:
                stack.append((call, in_container))
            else:
                found.append(Place("other", f".{above.attr}"))
        elif isinstance(above, ast.Call):
            _argument(flow, above, current, None, found, stack)
        elif isinstance(above, ast.keyword):
            call = parent(above)
            if isinstance(call, ast.Call):
                _argument(flow, call, current, above.arg, found, stack)
            else:
                found.append(Place("named", above.arg or ""))
        elif isinstance(above, ast.Assign):
            for target in above.targets:
                _store(flow, target, found)
        elif isinstance(above, ast.AnnAssign):
            if current is above.value:
                _store(flow, above.target, found)
            else:
                found.append(Place("annotation"))
        elif isinstance(above, ast.AugAssign):
            _store(flow, above.target, found)
        elif isinstance(above, ast.arguments):
            found.append(Place("slot", _parameter(flow, above, current)))
        elif isinstance(above, ast.Return):
            _returned(flow, above, found)
        elif isinstance(above, ast.Compare):
            others = [side for side in (above.left, *above.comparators) if side is not current]
            found += [Place("compare", "in" if in_container else "", side) for side in others]
        elif isinstance(above, (ast.For, ast.comprehension)) and current is above.iter:
            _store(flow, above.target, found)
        elif isinstance(above, ast.Subscript) and current is above.slice:
            found.append(Place("key", other=above.value))
        elif isinstance(above, ast.Subscript):
            stack.append((above, in_container))
        elif isinstance(above, ast.MatchValue):
            found.append(_case(above))
        elif isinstance(above, (ast.Raise, ast.Assert)):
            found.append(Place("prose"))
        elif isinstance(above, ast.Expr):
            found.append(Place("prose"))
        elif isinstance(above, ast.arg):
            found.append(Place("annotation"))
        elif isinstance(above, FUNCTIONS) and current is above.returns:
            found.append(Place("annotation"))
        elif isinstance(above, ast.comprehension | ast.Yield | ast.Lambda):
            found.append(Place("other", type(above).__name__.lower()))
        elif isinstance(above, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            stack.append((above, True))
        else:
            found.append(Place("other", type(above).__name__.lower()))
    return found


def _store(flow: Flow, target: ast.expr, found: list[Place]) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            _store(flow, element, found)
        return
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        key = target.slice.value
        if isinstance(key, str):
            base = target.value
            if flow.names.qualified(base) == "os.environ":
                found.append(Place("environment", key))
                return
    slot = flow.slot_of_store(target)
    found.append(Place("slot", slot) if slot else Place("other", "assignment"))


def _parameter(flow: Flow, arguments: ast.arguments, default: ast.AST) -> str:
    """The slot of the parameter that a default belongs to."""
    positional = [*arguments.posonlyargs, *arguments.args]
    name = ""
    for arg, value in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        if value is default:
            name = arg.arg
    for arg, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is default:
            name = arg.arg
    owner = parent(arguments)
    scope = flow.scan.scopes[owner]
    return flow.variable(name, scope) or f"p:{name}"


def _returned(flow: Flow, node: ast.AST, found: list[Place]) -> None:
    scope = flow.scan.scope_of(node)
    while scope.kind not in ("function", "lambda", "module") and scope.parent is not None:
        scope = scope.parent
    found.append(Place("slot", f"r:{flow.module}.{flow.scope_path(scope)}"))


def _case(node: ast.MatchValue) -> Place:
    above: ast.AST = node
    while not isinstance(above, ast.Match):
        above = parent(above)
    return Place("compare", "case", above.subject)


def _in_dict(
    flow: Flow, node: ast.Dict, current: ast.AST, found: list[Place], stack: list[tuple[ast.AST, bool]]
) -> None:
    if any(key is current for key in node.keys):
        found.append(Place("row", other=node))
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if value is current:
            name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
            if _is_map_location(node):
                found.append(Place("device"))
            elif name:
                found.append(Place("named", name))
            elif any(isinstance(k, ast.Constant) and isinstance(k.value, str) for k in node.keys):
                found.append(Place("other", "dict value"))
            else:
                stack.append((node, True))


def _is_map_location(node: ast.AST) -> bool:
    above = parent(node)
    if isinstance(above, ast.keyword):
        return above.arg == "map_location"
    if isinstance(above, ast.Assign):
        return any(isinstance(t, ast.Name) and "map_location" in t.id for t in above.targets)
    return False


def _argument(
    flow: Flow,
    call: ast.Call,
    current: ast.AST,
    keyword: str | None,
    found: list[Place],
    stack: list[tuple[ast.AST, bool]],
) -> None:
    func = call.func
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    full = flow.names.qualified(func) or ""
    index = next((i for i, arg in enumerate(call.args) if arg is current), -1)
    root = full.split(".")[0] or _root(func)
    if root in FOREIGN:
        found.append(Place("foreign", root))
    elif last == "add_argument" or last == "option" or last == "add_option":
        found.append(_option(call, keyword, index))
    elif keyword in PROSE_KEYWORDS or last in PROSE_CALLS or last.endswith(("Error", "Exception", "Warning")):
        found.append(Place("prose"))
    elif keyword in DEVICE_KEYWORDS:
        found.append(Place("device"))
    elif isinstance(func, ast.Attribute) and last in ("to", "to_empty") and index == 0:
        found.append(Place("device"))
    elif index in TORCH_POSITIONS.get(full, ()):
        found.append(Place("device"))
    elif index in BACKEND_POSITIONS.get(full, ()) or (keyword == "backend" and last in _GROUPS):
        found.append(Place("backend"))
    elif last in ("init_process_group", "init_dist", "init_distributed") and index == 0:
        found.append(Place("backend"))
    elif isinstance(func, ast.Attribute) and last in _TESTS and index == 0:
        found.append(Place("compare", last, func.value))
    elif last in ("str", "repr", "list", "tuple", "set", "frozenset", "sorted", "cast"):
        stack.append((call, last not in ("str", "repr", "cast")))
    elif (last in ("get", "getenv", "pop", "setdefault") and isinstance(func, ast.Attribute)) or last == "getattr":
        _lookup(call, func, last, index, found, stack)
    elif last == "hasattr":
        found.append(Place("probe", other=call))
    elif last in ("append", "add", "extend", "insert") and isinstance(func, ast.Attribute):
        slot = flow.slot(func.value)
        found.append(Place("slot", slot) if slot else Place("other", last))
    elif last == "parametrize" and call.args and isinstance(call.args[0], ast.Constant):
        found.append(Place("named", str(call.args[0].value)))
    elif (target := flow.function_key(func)) is not None:
        found.append(Place("slot", _callee_slot(flow, target, func, keyword, index)))
    elif keyword is not None:
        found.append(Place("named", keyword))
    else:
        found.append(Place("other", f"argument of {last or 'a call'}"))


_GROUPS = ("init_process_group", "new_group", "init_dist", "init_distributed", "new_subgroups")


def _lookup(
    call: ast.Call, func: ast.expr, last: str, index: int, found: list[Place], stack: list[tuple[ast.AST, bool]]
) -> None:
    """`d.get(key, default)`, `getattr(x, name, default)`: the default is the value, the key a name."""
    default = 2 if last == "getattr" else 1
    if index == default:
        key = call.args[default - 1]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.append(Place("named", key.value))
        stack.append((call, False))
    elif last == "getattr":
        found.append(Place("probe", other=call))
    else:
        assert isinstance(func, ast.Attribute) or last == "getenv"
        found.append(Place("key", other=func.value if isinstance(func, ast.Attribute) else None))


def _callee_slot(flow: Flow, target: str, func: ast.expr, keyword: str | None, index: int) -> str:
    """The slot of the parameter that an argument of a project function lands in."""
    names = flow.project.parameters.get(target) or flow.project.parameters.get(f"{target}.__init__")
    owner = target if target in flow.project.parameters else f"{target}.__init__"
    if names is None:
        owner, names = local_parameters(flow, target)
    if keyword is not None:
        return f"p:{owner}.{keyword}"
    offset = 1 if names and names[0] in ("self", "cls") else 0
    if names and 0 <= index + offset < len(names):
        return f"p:{owner}.{names[index + offset]}"
    return f"p:{owner}.#{index}"


def local_parameters(flow: Flow, target: str) -> tuple[str, tuple[str, ...]]:
    """Key and parameter names of a function or constructor defined in this file."""
    for function in flow.scan.functions:
        key = f"{flow.module}.{flow.scope_path(flow.scan.scopes[function])}"
        if key in (target, f"{target}.__init__"):
            return key, parameter_names(function)
    return target, ()


def parameter_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    return tuple(arg.arg for arg in [*function.args.posonlyargs, *function.args.args])


def _option(call: ast.Call, keyword: str | None, index: int) -> Place:
    """An argument of `parser.add_argument`: the default and the choices are values of the flag's destination."""
    if index >= 0:
        return Place("flag")
    if keyword == "dest":
        return Place("flag")
    if keyword in ("default", "choices", "const", "type"):
        return Place("slot", f"n:{destination(call)}")
    return Place("prose")


def destination(call: ast.Call) -> str:
    """The attribute that an `add_argument` call fills."""
    for keyword in call.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    names = [str(arg.value) for arg in call.args if isinstance(arg, ast.Constant)]
    long = [name for name in names if name.startswith("--")] or names
    return re.sub(r"^-+", "", long[0]).replace("-", "_") if long else ""


def _root(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def verdict(flow: Flow, found: list[Place], wanted: str) -> str:
    """What the places say together: `wanted` (device or backend), foreign, key, prose, or nothing known ("")."""
    kinds = {place.kind for place in found}
    if "foreign" in kinds:
        return "foreign"
    word = DEVICE_WORD if wanted == DEVICE else BACKEND_WORD
    for place in found:
        if place.kind == wanted:
            return wanted
        if place.kind == "slot" and wanted in flow.marks_of(place.detail):
            return wanted
        if place.kind == "named" and word.search(place.detail):
            return wanted
        if place.kind == "compare" and place.other is not None and is_kind(flow, place.other, wanted):
            return wanted
    for kind in ("key", "row", "flag", "probe", "annotation", "environment"):
        if kind in kinds:
            return kind
    if kinds == {"prose"}:
        return "prose"
    return ""


def is_kind(flow: Flow, node: ast.expr, wanted: str) -> bool:
    """True when an expression is known to hold a device (or its type), or a backend's name."""
    if isinstance(node, ast.Attribute):
        if wanted == DEVICE and node.attr == "type":
            return is_kind(flow, node.value, wanted)
        if wanted == DEVICE and node.attr in ("device", "device_type", "_device"):
            return True
    if isinstance(node, ast.Call):
        full = flow.names.qualified(node.func) or ""
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if wanted == BACKEND and last == "get_backend":
            return True
        if wanted == DEVICE and full in ("torch.device", "torch.get_default_device"):
            return True
        if last in ("str", "lower", "strip", "split", "partition") or (last == "getattr" and len(node.args) > 1):
            inner = node.args[0] if last in ("str", "getattr") else getattr(node.func, "value", None)
            if last == "getattr":
                key = node.args[1]
                return isinstance(key, ast.Constant) and bool(DEVICE_WORD.search(str(key.value)))
            return inner is not None and is_kind(flow, inner, wanted)
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant | ast.Slice):
        return is_kind(flow, node.value, wanted)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Slice, ast.Constant)):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            word = DEVICE_WORD if wanted == DEVICE else BACKEND_WORD
            return bool(word.search(node.slice.value))
        return is_kind(flow, node.value, wanted)
    slot = flow.slot(node)
    return slot is not None and wanted in flow.marks_of(slot)
