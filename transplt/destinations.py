"""Where the value of an expression ends up, as far as its own file shows it.

A value may travel inside containers. A *path* lists the containers around it, innermost first: an integer for the place in
a tuple, a string for the key in a mapping, None for a list, a set or anything else that is all of one kind.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import cast

from transplt.scan import FUNCTIONS, parent
from transplt.project import GENERIC
from transplt.slots import BACKEND, BACKEND_WORD, DEVICE, DEVICE_WORD, Flow, parameter_names

__all__ = ["Place", "destination", "parameter_names", "places"]

Path = tuple[int | str | None, ...]
Stack = list[tuple[ast.AST, Path]]

#: Index of the positional arguments that are devices, for callees of torch.
TORCH_POSITIONS: dict[str, tuple[int, ...]] = {
    "torch.device": (0,),
    "torch.load": (1,),
    "torch.jit.load": (1,),
    "torch.set_default_device": (0,),
    "torch.autocast": (0,),
    "torch.amp.autocast": (0,),
    "torch.amp.autocast_mode.autocast": (0,),
    "torch.amp.GradScaler": (0,),
    "torch.amp.grad_scaler.GradScaler": (0,),
    "torch.GradScaler": (0,),
    "torch.Generator": (0,),
    "torch.get_device_module": (0,),
    "torch.get_autocast_dtype": (0,),
    "torch.set_autocast_dtype": (0,),
    "torch.is_autocast_enabled": (0,),
    "torch.set_autocast_enabled": (0,),
    "torch.amp.is_autocast_available": (0,),
    "torch.cuda.set_device": (0,),
    "torch.cuda.device": (0,),
    "torch.cuda.synchronize": (0,),
    "torch.cuda.current_stream": (0,),
    "torch.cuda.get_device_name": (0,),
    "torch.cuda.get_device_properties": (0,),
    "torch.distributed.init_device_mesh": (0,),
    "torch.distributed.device_mesh.init_device_mesh": (0,),
    "torch.distributed.device_mesh.DeviceMesh": (0,),
    "torch.distributed.DeviceMesh": (0,),
    "torch.distributed.tensor.DeviceMesh": (0,),
    "torch.distributed.tensor.init_device_mesh": (0,),
    "torch.distributed._tensor.DeviceMesh": (0,),
    "torch.distributed._tensor.init_device_mesh": (0,),
    "torch.distributed._tensor.device_mesh.init_device_mesh": (0,),
}
DEVICE_KEYWORDS = frozenset({"device", "map_location", "device_type", "pin_memory_device", "target_device"})
BACKEND_POSITIONS = {
    "torch.distributed.init_process_group": (0,),
    "torch.distributed.distributed_c10d.init_process_group": (0,),
    "torch.distributed.Backend": (0,),
    "torch.distributed.is_backend_available": (0,),
}
#: Top-level packages with a `cuda` or a device notation of their own.
FOREIGN = frozenset(
    "numba cupy cupyx pycuda jax jaxlib flax paddle tensorflow tf keras mxnet chainer theano dgl polygraphy triton "
    "tensorrt onnxruntime tvm cudf cuml cugraph cuda taichi warp wp nvidia faiss".split()
)
#: Calls whose text arguments are for people.
PROSE_CALLS = frozenset(
    "print info debug warning warn error exception critical log write format_exc fail skip warning_once rank_zero_info "
    "rank_zero_warn echo secho log_dist print_rank_0 print_rank_last main_print rank0_print add_row set_description".split()
)
PROSE_KEYWORDS = frozenset({"description", "msg", "reason", "title", "desc", "message", "doc", "epilog", "metavar", "match"})
#: Calls that run a command line, or hand one to a compiler.
COMMAND_CALLS = frozenset({"system", "Popen", "run", "check_output", "check_call", "call", "getoutput", "getstatusoutput"})
PARSER_CALLS = frozenset({"add_argument", "option", "add_option", "argument"})
_ABSL = frozenset({"DEFINE_string", "DEFINE_enum", "DEFINE_list", "DEFINE_multi_string", "DEFINE_multi_enum"})
_WRAPPERS = frozenset({"str", "repr", "cast", "list", "tuple", "set", "frozenset", "sorted", "reversed", "iter", "intern"})
_FIELDS = frozenset({"field", "Field", "ib", "attrib", "Factory"})
_OBJECTS = frozenset(
    "Namespace SimpleNamespace EasyDict edict Munch AttrDict DotDict ConfigDict set_defaults replace _replace".split()
)
_STRING_METHODS = frozenset({"format", "lower", "upper", "strip", "rstrip", "lstrip", "encode", "casefold"})
TESTS = frozenset(
    {"startswith", "endswith", "find", "index", "replace", "split", "rsplit", "removeprefix", "removesuffix", "count",
     "partition", "rpartition", "strip", "lstrip", "rstrip", "rfind", "rindex", "__eq__", "__contains__"}
)
_REGEX = frozenset({"match", "fullmatch", "search", "compile", "sub", "split", "findall", "finditer"})
_GROUPS = frozenset({"init_process_group", "new_group", "init_dist", "init_distributed", "new_subgroups"})


@dataclass(frozen=True, slots=True)
class Place:
    """One place a value reaches.

    `kind`: device, backend (certain positions); slot (`detail` is its key); compare (`other` is what it is compared
    with, `detail` how); named (an argument or entry, `detail` its name); key (subscript, `other` what is looked into);
    row (key of a dict display, `other` is the dict); foreign (another library's call); prose; help (of a flag, `other` is
    the call); flag (a command line flag); annotation; probe (a name given to getattr, hasattr); environment; command;
    kernel (which device a custom operator or a compiler is for); exported (a name in `__all__`); other.
    """

    kind: str
    detail: str = ""
    other: ast.expr | None = None


def places(flow: Flow, node: ast.expr) -> list[Place]:
    """All places that the value of an expression reaches directly."""
    known = flow.places.get(id(node))
    if known is None:
        known = flow.places[id(node)] = list(_places(flow, node))
    return cast("list[Place]", known)


def _places(flow: Flow, node: ast.expr) -> list[Place]:
    found: list[Place] = []
    stack: Stack = [(node, ())]
    while stack:
        current, path = stack.pop()
        above = parent(current)
        step = _STEPS.get(type(above))
        if step is not None:
            step(flow, above, current, path, found, stack)
        else:
            found.append(Place("other", type(above).__name__.lower()))
    return found


def _up(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    stack.append((above, path))


def _if_expression(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if current is above.test:  # type: ignore[attr-defined]
        found.append(Place("other", "condition"))
    else:
        stack.append((above, path))


def _operator(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if isinstance(above.op, (ast.Add, ast.Mod, ast.BitOr)):  # type: ignore[attr-defined]
        stack.append((above, path))
    else:
        found.append(Place("other", "operand"))


def _named_expression(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    _store(flow, above.target, path, found)  # type: ignore[attr-defined]
    stack.append((above, path))


def _sequence(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if isinstance(above, ast.Tuple):
        index = next((i for i, element in enumerate(above.elts) if element is current), 0)
        stack.append((above, (*path, index)))
    else:
        stack.append((above, (*path, None)))


def _dict(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    assert isinstance(above, ast.Dict)
    if any(key is current for key in above.keys):
        found.append(Place("row", other=above))
        return
    for key, value in zip(above.keys, above.values, strict=True):
        if value is current:
            name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
            if is_map_location(above):
                found.append(Place(DEVICE))
            elif name and hinted(name):
                found.append(Place("named", name))
            else:
                stack.append((above, (*path, name)))


def is_map_location(node: ast.AST) -> bool:
    """True for the dict that `map_location=` gets: which device of a checkpoint goes where."""
    above = parent(node)
    if isinstance(above, ast.keyword):
        return above.arg == "map_location"
    if isinstance(above, ast.Assign):
        return any(isinstance(t, ast.Name) and "map_location" in t.id for t in above.targets)
    return False


def _attribute(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    call = parent(above)
    name: str = above.attr  # type: ignore[attr-defined]
    if isinstance(call, ast.Call) and call.func is above:
        if name in _STRING_METHODS:
            stack.append((call, path))
            return
        if name == "__contains__" or name in ("items", "values"):
            found.append(Place("other", f".{name}"))
            return
    found.append(Place("other", f".{name}"))


def _assign(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    for target in above.targets:  # type: ignore[attr-defined]
        _store(flow, target, path, found)


def _annotated(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    target: ast.expr = above.target  # type: ignore[attr-defined]
    if current is getattr(above, "annotation", None):
        _annotation(flow, current, store_slots(flow, target, ()), found)
    else:
        _store(flow, target, path, found)


def _annotation(flow: Flow, annotation: ast.AST, slots: list[str], found: list[Place]) -> None:
    """A word in `Literal[...]` is a value of what it annotates; any other string in an annotation is code."""
    literal = any(
        isinstance(node, (ast.Name, ast.Attribute)) and getattr(node, "id", getattr(node, "attr", "")) == "Literal"
        for node in ast.walk(annotation)
    )
    found.append(Place("slot", slots[0]) if literal and slots else Place("annotation"))


def _parameter_annotation(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    slot = flow.variable(above.arg, flow.scan.scope_of(above))  # type: ignore[attr-defined]
    _annotation(flow, current, [slot] if slot else [], found)


def _default(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    """The default of a parameter."""
    assert isinstance(above, ast.arguments)
    positional = [*above.posonlyargs, *above.args]
    name = ""
    for arg, value in zip(reversed(positional), reversed(above.defaults), strict=False):
        if value is current:
            name = arg.arg
    for arg, keyword_default in zip(above.kwonlyargs, above.kw_defaults, strict=True):
        if keyword_default is current:
            name = arg.arg
    scope = flow.scan.scopes[parent(above)]
    found.append(Place("slot", _deep(flow.variable(name, scope) or f"p:{name}", path)))


def _return(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    scope = flow.scan.scope_of(above)
    while scope.kind not in ("function", "lambda", "module") and scope.parent is not None:
        scope = scope.parent
    key = f"r:{flow.module}.{flow.scope_path(scope)}"
    if path and isinstance(path[-1], int):
        key, path = f"{key}<{path[-1]}>", path[:-1]
    found.append(Place("slot", _deep(key, path)))


def _lambda(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    holder = parent(above)
    if isinstance(holder, ast.keyword) and holder.arg in ("default_factory", "factory"):
        stack.append((above, path))
    else:
        found.append(Place("other", "lambda"))


def _function(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if current is getattr(above, "returns", None):
        scope = flow.scan.scopes[above]
        _annotation(flow, current, [f"r:{flow.module}.{flow.scope_path(scope)}"], found)
    else:
        found.append(Place("other", "decorator"))


def _comparison(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    assert isinstance(above, ast.Compare)
    sides = [above.left, *above.comparators]
    for other in sides:
        if other is current:
            continue
        if isinstance(other, (ast.Tuple, ast.List)) and path and isinstance(path[-1], int) and not isinstance(
            above.ops[0], (ast.In, ast.NotIn)
        ):
            if path[-1] < len(other.elts):
                found.append(Place("compare", "", other.elts[path[-1]]))
            continue
        if isinstance(other, ast.Tuple) and isinstance(above.ops[0], (ast.In, ast.NotIn)) and path:
            index = path[0]
            found += [Place("compare", "in", e) for i, e in enumerate(other.elts) if i == index or len(path) == 1]
            continue
        found.append(Place("compare", "in" if path else "", other))


def _iterator(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    if current is above.iter:  # type: ignore[attr-defined]
        _store(flow, above.target, path[:-1], found)  # type: ignore[attr-defined]
    else:
        found.append(Place("other", "condition"))


def _subscript(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    value: ast.expr = above.value  # type: ignore[attr-defined]
    if current is above.slice:  # type: ignore[attr-defined]
        if getattr(value, "id", getattr(value, "attr", "")) in ("Literal", "Optional", "Union", "Annotated"):
            stack.append((above, ()))
        else:
            found.append(Place("key", other=value))
    else:
        stack.append((above, path[:-1]))


def _slice(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    holder = parent(above)
    if isinstance(holder, ast.Subscript):
        found.append(Place("compare", "slice", holder.value))


def _case(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    """A value in a `case` pattern is compared with the subject, or with the part of it that the pattern takes."""
    node: ast.AST = above
    steps: list[int | str] = []
    while not isinstance(node, ast.Match):
        holder = parent(node)
        if isinstance(holder, ast.MatchSequence):
            steps.append(next(i for i, item in enumerate(holder.patterns) if item is node))
        elif isinstance(holder, ast.MatchMapping):
            index = next((i for i, item in enumerate(holder.patterns) if item is node), None)
            key = holder.keys[index] if index is not None else None
            if not isinstance(key, ast.Constant):
                found.append(Place("key"))
                return
            steps.append(str(key.value))
        elif isinstance(holder, ast.MatchClass):
            index = next((i for i, item in enumerate(holder.kwd_patterns) if item is node), None)
            steps.append(holder.kwd_attrs[index] if index is not None else -1)
        node = holder
    subject: ast.expr = node.subject
    for step in reversed(steps):
        if isinstance(step, str):
            found.append(Place("named", step))
            return
        if not isinstance(subject, ast.Tuple) or not 0 <= step < len(subject.elts):
            found.append(Place("other", "pattern"))
            return
        subject = subject.elts[step]
    found.append(Place("compare", "case", subject))


def _prose(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    found.append(Place("prose"))


def _positional(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    _argument(flow, cast(ast.Call, above), current, None, path, found, stack)


def _keyword(flow: Flow, above: ast.AST, current: ast.AST, path: Path, found: list[Place], stack: Stack) -> None:
    call = parent(above)
    name: str | None = above.arg  # type: ignore[attr-defined]
    if name is None and path and isinstance(path[-1], str):
        name, path = path[-1], path[:-1]
    if isinstance(call, ast.Call):
        _argument(flow, call, current, name, path, found, stack)
    else:
        found.append(Place("named", name or ""))


_STEPS = {
    ast.IfExp: _if_expression,
    ast.BoolOp: _up,
    ast.JoinedStr: _up,
    ast.FormattedValue: _up,
    ast.Starred: _up,
    ast.Await: _up,
    ast.BinOp: _operator,
    ast.NamedExpr: _named_expression,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.ListComp: _sequence,
    ast.SetComp: _sequence,
    ast.GeneratorExp: _sequence,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Call: _positional,
    ast.keyword: _keyword,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _annotated,
    ast.arguments: _default,
    ast.arg: _parameter_annotation,
    ast.Return: _return,
    ast.Yield: _return,
    ast.YieldFrom: _return,
    ast.Lambda: _lambda,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.Compare: _comparison,
    ast.For: _iterator,
    ast.AsyncFor: _iterator,
    ast.comprehension: _iterator,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.MatchValue: _case,
    ast.Raise: _prose,
    ast.Assert: _prose,
    ast.Expr: _prose,
}


# --- where values are stored ---------------------------------------------------------------------------------------


def _store(flow: Flow, target: ast.expr, path: Path, found: list[Place]) -> None:
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        key = target.slice.value
        if isinstance(key, str):
            if flow.names.qualified(target.value) == "os.environ":
                found.append(Place("environment", key))
                return
            if hinted(key):
                found.append(Place("named", key))
                return
    if isinstance(target, ast.Name) and target.id == "__all__":
        found.append(Place("exported"))
        return
    slots = store_slots(flow, target, path)
    found += [Place("slot", slot) for slot in slots] or [Place("other", "assignment")]


def store_slots(flow: Flow, target: ast.expr, path: Path) -> list[str]:
    """The slots in which a value lands that is assigned, inside the containers of `path`, to a target."""
    if isinstance(target, ast.Starred):
        return store_slots(flow, target.value, path)
    if isinstance(target, (ast.Tuple, ast.List)):
        index = path[-1] if path else None
        starred = next((i for i, e in enumerate(target.elts) if isinstance(e, ast.Starred)), len(target.elts))
        if isinstance(index, int):
            chosen = target.elts[index : index + 1] if index < starred else target.elts[starred:]
        else:
            chosen = target.elts
        return [slot for element in chosen for slot in store_slots(flow, element, path[:-1])]
    if isinstance(target, ast.Name):
        slot = flow.variable(target.id, flow.scan.scope_of(target))
    elif isinstance(target, (ast.Attribute, ast.Subscript)):
        slot = flow.slot(target)
    else:
        slot = None
    if slot is None:
        return []
    named = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
    return [_deep(slot, path, named)]


def _deep(slot: str, path: Path, named: str = "") -> str:
    """The slot of a value that sits inside the containers of `path` in another slot's value."""
    outermost = True
    for step in reversed(path):
        if isinstance(step, str):
            if hinted(named or slot):
                return slot  # a mapping of devices: all of its entries are some
            slot = f"k:{named}[{step}]"
            named = step
        elif step is not None and not outermost:
            slot = f"{slot}<{step}>"
        outermost = False
    return slot


def hinted(name: str) -> bool:
    """True for a name that speaks of devices or backends."""
    return bool(DEVICE_WORD.search(name) or BACKEND_WORD.search(name))


# --- arguments -----------------------------------------------------------------------------------------------------


def _argument(
    flow: Flow, call: ast.Call, current: ast.AST, keyword: str | None, path: Path, found: list[Place], stack: Stack
) -> None:
    func = call.func
    method = isinstance(func, ast.Attribute)
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    full = flow.names.qualified(func) or ""
    index = next((i for i, arg in enumerate(call.args) if arg is current), -1)
    root = full.split(".")[0] or _root(func)
    if root in FOREIGN and last != "cdiv":
        found.append(Place("foreign", root))
    elif last in PARSER_CALLS or (last == "Option" and root in ("typer", "click", "Option")):
        _option(flow, call, last, keyword, index, path, found, stack)
    elif last in _ABSL:
        _absl(call, keyword, index, path, found)
    elif full.startswith("re.") and last in _REGEX and index == 0:
        subject = call.args[1 if last != "sub" else 2] if len(call.args) > (1 if last != "sub" else 2) else None
        found.append(Place("compare", "regex", subject) if subject is not None else Place("other", "a regular expression"))
    elif keyword in PROSE_KEYWORDS or last in PROSE_CALLS or last.endswith(("Error", "Exception", "Warning")):
        found.append(Place("prose"))
    elif _is_kernel(full, last, keyword):
        found.append(Place("kernel", last))
    elif keyword in DEVICE_KEYWORDS or (keyword == "type" and full in ("torch.device", "torch.torch.device")):
        found.append(Place(DEVICE))
    elif method and last in ("to", "to_empty") and index == 0:
        found.append(Place(DEVICE))
    elif index in TORCH_POSITIONS.get(full, ()):
        found.append(Place(DEVICE))
    elif index in BACKEND_POSITIONS.get(full, ()) or (keyword == "backend" and last in _GROUPS):
        found.append(Place(BACKEND))
    elif last in ("init_process_group", "init_dist", "init_distributed") and index == 0:
        found.append(Place(BACKEND))
    elif method and last in TESTS and (index == 0 or (last == "replace" and index == 1)):
        assert isinstance(func, ast.Attribute)
        found.append(Place("compare", last, func.value))
        if last == "replace" and index == 1:
            stack.append((call, path))
    elif last == "len" and index == 0:
        holder = parent(call)
        if isinstance(holder, ast.Slice) or (isinstance(holder, ast.BinOp) and isinstance(parent(holder), ast.Slice)):
            stack.append((call, ()))
        else:
            found.append(Place("other", "a length"))
    elif last in _WRAPPERS or last in ("Choice", "join", "partial_value"):
        stack.append((call, path[:-1] if last in ("join", "Choice") else path))
    elif last in ("zip", "product") and index >= 0:
        stack.append((call, (*path[:-1], index, None)))
    elif last == "enumerate" and index == 0:
        stack.append((call, (*path[:-1], 1, None)))
    elif last in _FIELDS and (keyword in ("default", "default_factory", "factory") or (last == "Field" and index == 0)):
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
        found.append(Place("slot", _deep(slot, path)) if slot else Place("other", last))
    elif last == "param" and index >= 0:
        stack.append((call, (*path, index)))
    elif last == "parametrize":
        _parametrized(flow, call, index, path, found)
    elif last == "fixture" and keyword == "params":
        holder = parent(call)
        found.append(Place("slot", f"r:{flow.module}.{holder.name}") if isinstance(holder, FUNCTIONS) else Place("other"))
    elif last in COMMAND_CALLS and index == 0 and root in ("os", "subprocess", "sp", "commands"):
        found.append(Place("command", last))
    elif last in _OBJECTS and keyword is not None:
        found.append(Place("named", keyword) if hinted(keyword) or keyword in GENERIC else Place("slot", f"n:{keyword}"))
    elif (target := flow.function_key(func)) is not None:
        named = f".{keyword}" if keyword is not None and hinted(keyword) else ""
        found.append(Place("slot", _deep(flow.parameter_slot(target, keyword, index), path, keyword or "")))
        if named:
            found.append(Place("named", keyword or ""))
    elif keyword is not None:
        found.append(Place("named", keyword))
    else:
        found.append(Place("other", f"argument of {last or 'a call'}"))


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
    name = names[at] if len(names) > 1 and isinstance(at, int) and at < len(names) else names[0] if len(names) == 1 else ""
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


# --- what the form of an expression says -----------------------------------------------------------------------------


def certain_kind(flow: Flow, node: ast.expr, wanted: str) -> bool:
    """As `is_kind`, by the form of the expression alone."""
    if isinstance(node, ast.Name):
        return False
    if isinstance(node, ast.Attribute):
        if wanted == DEVICE and node.attr == "type":
            return certain_kind(flow, node.value, wanted)
        return wanted == DEVICE and node.attr in ("device", "device_type", "_device")
    if isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last == "get_backend":
            return wanted == BACKEND
        if last in ("device", "get_default_device", "current_accelerator"):
            full = flow.names.qualified(node.func) or ""
            return wanted == DEVICE and full.startswith("torch.")
        if last == "type" and not node.args and isinstance(node.func, ast.Attribute):
            return wanted == DEVICE  # the name of a tensor's type holds the device: torch.npu.FloatTensor
        if last == "str" and node.args:
            return certain_kind(flow, node.args[0], wanted)
        if last in ("lower", "strip", "split", "partition", "upper", "rsplit", "casefold"):
            inner = getattr(node.func, "value", None)
            return inner is not None and certain_kind(flow, inner, wanted)
        if last == "getattr" and len(node.args) > 1:
            key = node.args[1]
            word = DEVICE_WORD if wanted == DEVICE else BACKEND_WORD
            return isinstance(key, ast.Constant) and bool(word.search(str(key.value)))
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            word = DEVICE_WORD if wanted == DEVICE else BACKEND_WORD
            return bool(word.search(node.slice.value))
        return certain_kind(flow, node.value, wanted)
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.FormattedValue):
        return certain_kind(flow, node.values[0].value, wanted)
    return False
