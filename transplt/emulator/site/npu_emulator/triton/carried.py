"""A launch as JSON, so that the compiler of the card can have the kernel in a process without the program.

The functions go as text, with their lines and the global values that they read; of the arguments go what a kernel is
compiled for: types, whether one is 1, whether addresses and numbers are divisible by 16. See transplt.proof.compiler.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import torch
import triton.language as tl
import triton.runtime.interpreter as interpreter

from npu_emulator.config import config
from npu_emulator.record import record

from . import launch
from .launch import Launch

_PLAIN = (bool, int, float, str, type(None))
_DTYPES = {id(value): name for name, value in vars(tl).items() if isinstance(value, tl.dtype)}
#: What the kernel itself asks for in its decorator, and a compiler goes by.
_DECORATED = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")


class NotCarried(Exception):
    """Why a kernel cannot be compiled elsewhere, as a clause."""


def note(started: Launch, function: Any) -> None:
    """Keep a launch of a function of the interpreter where kernels are compiled, once for all that are alike."""
    if not config.compile:
        return
    told: dict[str, Any] = {"name": started.name, "path": os.path.abspath(started.path), "line": started.line}
    try:
        told |= _Functions(function).as_json(started)
        if launch.configuration is not None:
            values, names, count = launch.configuration
            given = {name: each for name, each in told["constexprs"].items() if name in names}
            told["launch"] = json.dumps([told["arguments"], given], sort_keys=True)
            told |= {"configuration": {name: str(each) for name, each in values.items()}, "of": count}
    except NotCarried as why:
        told["why"] = str(why)
    record.kernels[json.dumps(told, sort_keys=True)] = told


class _Functions:
    """A kernel, then the functions that it calls, each once."""

    def __init__(self, kernel: Any) -> None:
        self._numbers: dict[Any, int] = {}
        self._functions: list[dict[str, Any]] = []
        self._kernel = kernel

    def as_json(self, started: Launch) -> dict[str, Any]:
        """The launch. NotCarried where something of it has no form."""
        self._number(self._kernel.fn, _decorated(self._kernel))
        arguments = {name: _argument(name, value) for name, value in started.arguments.items()}
        constants = {name: self._told(value, name, "") for name, value in started.constexprs.items()}
        options = {name: value for name, value in started.options.items() if isinstance(value, _PLAIN)}
        return {"functions": self._functions, "arguments": arguments, "constexprs": constants, "options": options}

    def _number(self, function: Callable[..., Any], options: Mapping[str, Any] | None) -> int:
        plain = inspect.unwrap(function)
        if plain in self._numbers:
            return self._numbers[plain]
        number = self._numbers[plain] = len(self._functions)
        try:
            lines, first = inspect.getsourcelines(plain)
        except (OSError, TypeError) as error:
            raise NotCarried(f"the text of {plain.__name__} is not known") from error
        heads = [at for at, text in enumerate(lines) if re.match(r"\s*def\s", text)]
        source = textwrap.dedent("".join(lines[heads[0] :])) if heads else ""
        told: dict[str, Any] = {
            "name": plain.__name__, "path": os.path.abspath(plain.__code__.co_filename),
            "line": first + (heads[0] if heads else 0), "source": source, "options": options or {}, "globals": {},
            "jit": options is not None,
        }  # fmt: skip
        self._functions.append(told)
        try:
            tree = ast.parse(source)
        except SyntaxError as error:
            raise NotCarried(f"the text of {plain.__name__} cannot be read by itself") from error
        values = {**plain.__globals__, **inspect.getclosurevars(plain).nonlocals}
        for name, attributes in _names(tree).items():
            if name in values:
                told["globals"][name] = self._told(values[name], name, told["path"], attributes)
        return number

    def _told(self, value: Any, name: str, path: str, attributes: frozenset[str] = frozenset()) -> dict[str, Any]:
        """A value by its kind, which a file at `path` calls `name`, as transplt.proof.compiler.child reads it."""
        if isinstance(value, _PLAIN):
            return {"value": value}
        if isinstance(value, tl.constexpr):
            return {"constexpr": self._told(value.value, name, "")}
        if id(value) in _DTYPES:
            return {"dtype": _DTYPES[id(value)]}
        if isinstance(value, tuple):
            return {"tuple": [self._told(each, name, "") for each in value]}
        if isinstance(value, ModuleType):
            if _is_triton(value.__name__) or value.__name__.partition(".")[0] in sys.stdlib_module_names:
                return {"module": value.__name__}
            read = {each: getattr(value, each) for each in sorted(attributes) if hasattr(value, each)}
            return {"namespace": {each: self._told(inner, each, "") for each, inner in read.items()}}
        return self._told_function(value, name, path)

    def _told_function(self, value: Any, name: str, path: str) -> dict[str, Any]:
        function = getattr(value, "fn", value) if isinstance(value, interpreter.InterpretedFunction) else value
        if imported := _imports(path).get(name):
            return {"from": imported}
        if _is_triton(getattr(function, "__module__", "") or ""):
            return {"from": [[_home(value, function), function.__name__]]}
        if isinstance(value, interpreter.InterpretedFunction):
            return {"function": self._number(value.fn, _decorated(value))}
        if isinstance(value, type) or callable(value):
            home = getattr(value, "__module__", "") or ""
            if home == "builtins":
                return {"from": [[home, value.__name__]]}
            if inspect.isfunction(value) and getattr(value, "__wrapped__", None) is None:
                return {"plain": self._number(value, None)}
        raise NotCarried(f"{name} is a {type(value).__name__}, which only the program itself has")


def _decorated(function: Any) -> dict[str, Any]:
    given = getattr(function, "kwargs", None) or {}
    return {name: given[name] for name in _DECORATED if given.get(name)}


def _is_triton(module: str) -> bool:
    return module == "triton" or module.startswith("triton.")


@functools.cache
def _imports(path: str) -> dict[str, list[list[str]]]:
    """What a file imports of Triton by names of its own: the interpreter puts functions of its own in their place."""
    found: dict[str, list[list[str]]] = {}
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and _is_triton(node.module or ""):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, []).append([node.module or "", alias.name])
    return found


def _home(value: Any, function: Any) -> str:
    """The module that a function of Triton is imported from: the language itself, where that has it."""
    return "triton.language" if vars(tl).get(function.__name__) is value else str(function.__module__)


def _names(tree: ast.Module) -> dict[str, frozenset[str]]:
    """The names that a function reads and does not set, with the attributes that it reads of each."""
    nodes = list(ast.walk(tree))
    own = {each.arg for each in nodes if isinstance(each, ast.arg)}
    own |= {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    read = {each.id for each in nodes if isinstance(each, ast.Name)} - own
    return {name: frozenset(_attributes(nodes, name)) for name in sorted(read)}


def _attributes(nodes: list[ast.AST], name: str) -> Iterator[str]:
    for each in nodes:
        match each:
            case ast.Attribute(value=ast.Name(id=found), attr=attribute) if found == name:
                yield attribute


def _argument(name: str, value: Any) -> dict[str, Any]:
    value = getattr(value, "base", value) if not isinstance(value, torch.Tensor) else value
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        return {"kind": "tensor", "type": kind, "aligned": value.data_ptr() % 16 == 0}
    if isinstance(value, bool):
        return {"kind": "bool"}
    if isinstance(value, int):
        kind = "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"
        return {"kind": "int", "type": kind, "one": value == 1, "divisible": value % 16 == 0}
    if isinstance(value, float):
        return {"kind": "float"}
    if value is None:
        return {"kind": "none"}
    raise NotCarried(f"argument {name} is a {type(value).__name__}, which this front end has not")
