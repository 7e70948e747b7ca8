"""The functions that launch kernels: each call of one is seen, with its arguments, once it launches something.

They are found in the source, as the functions in which `name[grid](...)` stands, and get a decorator when their module
is loaded. Lines stay where they are.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any

_NAME = "__transplt_host__"
_calls = threading.local()


class Call:
    """A call of such a function that goes on; `launches` are filled by who watches."""

    def __init__(self, function: Any, arguments: dict[str, Any]) -> None:
        self.function, self.arguments = function, arguments
        self.launches: list[Any] = []
        self.data: Any = None


#: Called with each call, before it begins and when it has ended.
begins: list[Callable[[Call], None]] = []
ends: list[Callable[[Call], None]] = []


def innermost() -> Call | None:
    """The call that is going on in this thread."""
    stack = getattr(_calls, "stack", None)
    return stack[-1] if stack else None


def _decorated(function: Any) -> Any:
    @functools.wraps(function)
    def host(*arguments: Any, **options: Any) -> Any:
        try:
            bound = inspect.signature(function).bind(*arguments, **options)
        except TypeError:
            return function(*arguments, **options)  # which says what is wrong
        call = Call(function, dict(bound.arguments))
        for each in begins:
            each(call)
        if not hasattr(_calls, "stack"):
            _calls.stack = []
        _calls.stack.append(call)
        try:
            return function(*arguments, **options)
        finally:
            _calls.stack.pop()
            for each in ends:
                each(call)

    return host


class _Marker(ast.NodeTransformer):
    """Puts the decorator next to each function that launches; a kernel never does."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        if any(isinstance(each, ast.Call) and isinstance(each.func, ast.Subscript) for each in _own(node)):
            name = ast.copy_location(ast.Name(_NAME, ast.Load()), node)
            node.decorator_list.append(name)
        return node


def _own(node: ast.AST) -> Any:
    """The nodes of a function without those of functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
            yield from _own(child)


def compiled(text: bytes | str, path: str) -> Any:
    """The code of a file, its hosts decorated."""
    tree = _Marker().visit(ast.parse(text, path))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def install(root: str) -> None:
    """Decorate in every file below `root` that is imported from here on."""
    vars(builtins)[_NAME] = _decorated
    loader: Any = importlib.machinery.SourceFileLoader
    usual = loader.source_to_code
    above = os.path.realpath(root) + os.sep

    def source_to_code(self: Any, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        if isinstance(data, bytes) and b"](" in data and os.path.realpath(os.fsdecode(path)).startswith(above):
            return compiled(data, os.fsdecode(path))
        return usual(self, data, path, _optimize=_optimize)

    loader.source_to_code = source_to_code
