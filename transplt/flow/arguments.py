"""Where the argument of a call ends up: devices of torch, parameters of the project, flags, text for people."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NamedTuple

from transplt.flow.callees import (
    ABSL_CALLS,
    COMMAND_CALLS,
    COMMAND_MODULES,
    FIELD_CALLS,
    FOREIGN,
    ITEM_CALLS,
    OBJECTS,
    OTHER_DEVICES,
    PARSER_CALLS,
    PICKS,
    PROSE_CALLS,
    PROSE_KEYWORDS,
    REGEX_CALLS,
    SIMULATOR_DEVICE,
    TESTS,
    WRAPPERS,
)
from transplt.flow.device_arguments import mark_of_argument
from transplt.flow.marks import GENERIC, names_a_mark
from transplt.flow.option_defaults import destination, slot_filled
from transplt.flow.reached_place import Path, Reached, ReachedPlace, Up
from transplt.flow.slot_stores import inside
from transplt.flow.slots import Slots
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import index_in, keyword_of, last_name
from transplt.syntax.scan import FUNCTIONS, parent

#: Classes that make a path of the parts that they are given.
_PATHS = frozenset(f"pathlib.{name}" for name in ("Path", "PurePath", "PosixPath", "PurePosixPath"))
#: What calls a function later, in another thread or process: the keyword for it and its position, and how many
#: arguments it gets before those of `args`.
_LATER_CALLS = {
    "threading.Thread": ("target", 1, 0), "multiprocessing.Process": ("target", 1, 0),
    "torch.multiprocessing.Process": ("target", 1, 0), "torch.multiprocessing.spawn": ("fn", 0, 1),
    "torch.distributed.rpc.r": ("func", 1, 0),  # remote, rpc_sync, rpc_async
}  # fmt: skip


class Argument(NamedTuple):
    """An argument of a call: its keyword, or its position (else -1), and the containers around the value in it.

    `full` and `last` are the callee's names, `root` the first part of the full name, or of what is written.
    """

    slots: Slots
    call: ast.Call
    keyword: str | None
    position: int
    path: Path
    full: str
    last: str
    root: str

    @property
    def method(self) -> bool:
        """True when something and a dot stand before the last name."""
        return self.owner is not None

    @property
    def owner(self) -> ast.expr | None:
        """What stands before that dot."""
        return self.call.func.value if isinstance(self.call.func, ast.Attribute) else None

    @property
    def mark(self) -> str | None:
        """DEVICE or BACKEND, where the call takes one here."""
        argument = self.position if self.keyword is None else self.keyword
        return mark_of_argument(self.full, self.last, self.method, argument)

    @property
    def target(self) -> str | None:
        """Full name of the function or class that is called, when it is the project's own."""
        return self.slots.own.definition(self.call.func)


def reached_by_argument(slots: Slots, call: ast.Call, value: ast.AST, keyword: str | None, path: Path) -> Reached:
    """The places that an argument of a call reaches, and where it goes on: what the first row says that applies."""
    full = slots.names.qualified(call.func) or _one_or_no_context(slots, call.func)
    begins: ast.AST = call.func  # the name that a chain of attributes, calls and subscripts begins with
    while isinstance(begins, (ast.Attribute, ast.Call, ast.Subscript)):
        begins = begins.func if isinstance(begins, ast.Call) else begins.value
    root = full.split(".")[0] or last_name(begins)
    argument = Argument(slots, call, keyword, index_in(call, "args", value), path, full, last_name(call.func), root)
    return next(reached(argument) for applies, reached in _ROWS if applies(argument))


def _one_or_no_context(slots: Slots, func: ast.expr) -> str:
    """What a name stands for that is one context manager or none: `scope = autocast if amp else nullcontext`."""
    values: list[ast.expr] = []
    for binding in slots.names.bindings_of(func):
        value = assigned_value(binding.node) if binding.kind == "assign" else None
        if value is None:
            return ""
        values += [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    names = {slots.names.qualified(value) for value in values}
    rest = names - {"contextlib.nullcontext", "contextlib.suppress"}
    return (rest.pop() or "") if len(rest) == 1 < len(names) else ""


def _flag(a: Argument) -> Reached:
    """An argument of `parser.add_argument` and its like: the default and the choices are values of the destination."""
    if a.last == "Option" and (a.position == 0 or a.keyword == "default"):
        yield Up(a.call, a.path)
    elif a.position >= 0 or a.keyword == "dest":
        yield ReachedPlace("flag")
    elif a.keyword in ("default", "choices", "const", "type", "envvar"):
        name = destination(a.call)
        yield ReachedPlace("slot", _slot_in_function_below(a, name) or slot_filled(name))
    else:
        yield ReachedPlace("help" if a.keyword == "help" else "prose", other=a.call)


def _slot_in_function_below(a: Argument, name: str) -> str | None:
    """The slot of a parameter or variable of the function that the call decorates."""
    function = parent(a.call)
    return a.slots.variable(name, a.slots.scan.scopes[function]) if isinstance(function, FUNCTIONS) else None


def _absl_flag(a: Argument) -> Reached:
    """An argument of `flags.DEFINE_string(name, default, help)` or `DEFINE_enum(name, default, values, help)`."""
    name = next((str(arg.value) for arg in a.call.args[:1] if isinstance(arg, ast.Constant)), "")
    if a.position == 0 or a.keyword == "name":
        yield ReachedPlace("flag")
    elif a.position == 1 or a.keyword in ("default", "enum_values") or a.path:
        yield ReachedPlace("slot", f"n:{name}")
    else:
        yield ReachedPlace("help", other=a.call)


def _registers_a_kernel(a: Argument) -> bool:
    """Where an operator's kernel is registered for a device: another name alone makes no kernel."""
    last, keyword = a.last, a.keyword
    if keyword == "device_types" or last in ("register_kernel", "impl_abstract", "fallthrough", "dispatch_key"):
        return True
    if a.full.startswith("torch.library.") or last in ("py_impl", "register_dispatch", "DispatchKey"):
        return keyword in (None, "dispatch_key", "types", "device_types")
    return last == "impl" and keyword in (None, "dispatch_key")


def _names_an_operator(a: Argument) -> bool:
    """Where an operator of one's own gets its name: `torch.library.define("cuda_ops::b", ...)`."""
    if a.keyword is not None or a.path or a.position != 0:
        return a.keyword in ("qualname", "op_name", "ns") and a.full.startswith("torch.library.")
    return a.full.startswith("torch.library.") or (a.method and a.last == "impl" and len(a.call.args) > 1)


def _is_for_a_simulator(a: Argument) -> bool:
    """Where something else that computes on the card is told which one: the physics of a simulator, another library."""
    if a.keyword is not None and SIMULATOR_DEVICE.search(a.keyword):
        return True
    return a.root in OTHER_DEVICES and (a.keyword in (None, "task_type") or names_a_mark(a.keyword or ""))


def _length(a: Argument) -> Reached:
    """`x[len("cuda"):]` says that x begins with the string."""
    holder = parent(a.call)
    if isinstance(holder, ast.Slice) or (isinstance(holder, ast.BinOp) and isinstance(parent(holder), ast.Slice)):
        yield Up(a.call, ())
    else:
        yield ReachedPlace("other", "a length")


def _looked_up(a: Argument) -> Reached:
    """`d.get(key, default)`, `getattr(x, name, default)`: the default is the value, the key a name."""
    by_getattr = a.last == "getattr"
    if a.position == (2 if by_getattr else 1):
        slot = a.slots.of(a.call)
        if slot is not None:
            yield ReachedPlace("slot", slot)
        yield Up(a.call, a.path)
    elif by_getattr:
        yield ReachedPlace("probe", other=a.call)
    else:
        yield ReachedPlace("key", other=a.owner)


def _parametrized(a: Argument) -> Reached:
    """The values of `pytest.mark.parametrize(names, values)` land in the parameters of the test below it."""
    first = a.call.args[0] if a.call.args else None
    names: list[str] = []
    if isinstance(first, ast.Constant):
        names = [name.strip() for name in str(first.value).split(",")]
    elif isinstance(first, (ast.Tuple, ast.List)):
        names = [str(e.value) for e in first.elts if isinstance(e, ast.Constant)]
    inner = a.path[:-1]
    at = inner[-1] if inner else None
    if a.position == 0 or not names:
        yield ReachedPlace("other", "names of parameters")
        return
    name = names[0] if len(names) == 1 else names[at] if isinstance(at, int) and at < len(names) else ""
    slot = _slot_in_function_below(a, name) if name else None
    yield ReachedPlace("slot", slot) if slot else ReachedPlace("named", name)


def _parameter(a: Argument) -> Reached:
    name = a.keyword or ""
    slot = a.slots.parameter(a.target or "", a.keyword, a.position)
    yield ReachedPlace("slot", inside(slot, a.path, name))
    if names_a_mark(name):
        yield ReachedPlace("named", name)


def _of_a_later_call(a: Argument) -> bool:
    """True for the `args` of a call that something else makes: `Thread(target=f, args=("cuda",))`."""
    tuple_ = keyword_of(a.call, "args")
    if isinstance(tuple_, ast.BinOp) and not isinstance(tuple_.right, ast.Tuple):
        tuple_ = tuple_.left  # further arguments come behind these
    known = a.keyword == "args" and isinstance(tuple_, ast.Tuple) and bool(a.path) and isinstance(a.path[-1], int)
    return known and _later_callee(a) is not None


def _later_callee(a: Argument) -> tuple[str, int] | None:
    """The function or class of the project that is called then, and how many arguments it gets before these."""
    for module, (name, position, before) in _LATER_CALLS.items():
        if a.full.startswith(module):
            func = keyword_of(a.call, name) or next(iter(a.call.args[position : position + 1]), None)
            target = a.slots.own.definition(func) if func is not None else None
            return None if target is None else (target, before)
    return None


def _later_parameter(a: Argument) -> Reached:
    target, before = _later_callee(a) or ("", 0)
    place = a.path[-1]
    assert isinstance(place, int)
    yield ReachedPlace("slot", inside(a.slots.parameter(target, None, place + before), a.path[:-1]))


#: What an argument is, and where it ends up then. The first row that applies decides.
_ROWS: tuple[tuple[Callable[[Argument], bool], Callable[[Argument], Reached]], ...] = (
    # another library, a command line, a pattern, a text for people
    (lambda a: a.root in FOREIGN and a.last not in ("cdiv", "HParams"), lambda a: [ReachedPlace("foreign", a.root)]),
    (lambda a: a.last in PARSER_CALLS or (a.last == "Option" and a.root in ("typer", "click", "Option")), _flag),
    (lambda a: a.last in ABSL_CALLS, _absl_flag),
    (lambda a: a.full.startswith("re.") and a.last in REGEX_CALLS and a.position == 0, lambda a: [
        ReachedPlace("compare", "regex", each) for each in a.call.args[2 if a.last == "sub" else 1 :][:1]
    ] or [ReachedPlace("other", "a pattern")]),
    (lambda a: a.keyword in PROSE_KEYWORDS or a.last in PROSE_CALLS, lambda a: [ReachedPlace("prose")]),
    (lambda a: a.last.endswith(("Error", "Exception", "Warning")), lambda a: [ReachedPlace("prose")]),
    (
        _is_for_a_simulator,
        lambda a: [ReachedPlace("simulator", a.root if a.root in OTHER_DEVICES else a.keyword or "")],
    ),
    # a device or a backend
    (_names_an_operator, lambda a: [ReachedPlace("operator", a.last)]),
    (_registers_a_kernel, lambda a: [ReachedPlace("kernel", a.last)]),
    (lambda a: a.mark is not None, lambda a: [ReachedPlace(a.mark or "")]),
    # a test of a string
    (
        lambda a: a.method and a.last in TESTS and a.position == 0,
        lambda a: [ReachedPlace("compare", a.last, a.owner)],
    ),
    (
        lambda a: a.method and a.last == "replace" and a.position == 1,
        lambda a: [ReachedPlace("compare", a.last, a.owner), Up(a.call, a.path)],
    ),
    (
        lambda a: a.last.startswith("assert") and a.position in (0, 1) and len(a.call.args) > 1,
        lambda a: [ReachedPlace("compare", "in" if a.path else "", a.call.args[1 - a.position])],
    ),
    (lambda a: a.last == "len" and a.position == 0, _length),
    # what the call gives back, or is made of
    (
        lambda a: a.keyword is None and (a.full == "os.path.join" or a.last == "joinpath" or a.full in _PATHS),
        lambda a: [ReachedPlace("path")],
    ),
    (lambda a: a.last in WRAPPERS, lambda a: [Up(a.call, a.path)]),
    (lambda a: a.last in PICKS, lambda a: [Up(a.call, a.path[:-1])]),
    (
        lambda a: a.last in ("zip", "product") and a.position >= 0,
        lambda a: [Up(a.call, (*a.path[:-1], a.position, None))],
    ),
    (lambda a: a.last == "enumerate" and a.position == 0, lambda a: [Up(a.call, (*a.path[:-1], 1, None))]),
    (
        lambda a: a.last in FIELD_CALLS and (a.position == 0 or a.keyword in ("default", "default_factory", "factory")),
        lambda a: [Up(a.call, a.path)],
    ),
    (lambda a: a.last == "dict" and not a.method and a.keyword is not None, lambda a: [
        ReachedPlace("named", name) if names_a_mark(name := a.keyword or "") else Up(a.call, (*a.path, name))
    ]),
    # what is looked up, or kept
    (lambda a: a.last in ("get", "getenv", "pop", "setdefault") and a.method, _looked_up),
    (lambda a: a.last == "getattr", _looked_up),
    (
        lambda a: a.last in ("hasattr", "setattr", "delattr") and a.position != 2,
        lambda a: [ReachedPlace("probe", other=a.call)],
    ),
    (lambda a: a.last in ITEM_CALLS and a.method, lambda a: [
        ReachedPlace("slot", inside(slot, a.path)) if a.owner is not None and (slot := a.slots.of(a.owner))
        else ReachedPlace("other", a.last)
    ]),
    # pytest
    (lambda a: a.last == "param" and a.position >= 0, lambda a: [Up(a.call, (*a.path, a.position))]),
    (lambda a: a.last == "parametrize", _parametrized),
    (lambda a: a.last == "fixture" and a.keyword == "params", lambda a: [
        ReachedPlace("slot", f"r:{a.slots.own.module}.{each.name}") for each in [parent(a.call)]
        if isinstance(each, FUNCTIONS)
    ]),
    # any other call
    (
        lambda a: a.last in COMMAND_CALLS and a.position == 0 and a.root in COMMAND_MODULES,
        lambda a: [ReachedPlace("command", a.last)],
    ),
    (lambda a: a.last in OBJECTS and a.keyword is not None, lambda a: [
        ReachedPlace("named", name) if names_a_mark(name := a.keyword or "") or name in GENERIC
        else ReachedPlace("slot", f"n:{name}")
    ]),
    (lambda a: a.target is not None, _parameter),
    (_of_a_later_call, _later_parameter),
    (lambda a: a.keyword is not None, lambda a: [ReachedPlace("named", a.keyword or "")]),
    (lambda a: True, lambda a: [ReachedPlace("other", f"argument of {a.last or 'a call'}")]),
)
