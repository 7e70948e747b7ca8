"""The launches of kernels as a file has them, for the compiler: where all that a kernel is compiled for stands in it.

Types of elements that the file does not say are assumed, once as float32 and once as bfloat16: only what holds for both
is an answer.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from transplt.fixers.triton.reader.elements import tensor_given
from transplt.fixers.triton.reader.kernels import Kernel, behind, kernel_at, kernels_in
from transplt.fixers.triton.reader.launches import Launch
from transplt.fixers.triton.reader.pointers import pointer_parameters
from transplt.fixers.triton.reader.sizes import Unset, constant_given, settings_of
from transplt.flow.facts import ProjectFacts
from transplt.syntax.files import File
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import last_name

#: What is assumed of tensors of which the file says nothing.
ASSUMED = ("float32", "bfloat16")
#: Parameters that are called so are no whole numbers.
_FRACTION = re.compile(r"(?i)(?:^|_)(?:eps\w*|epsilon|scale|alpha|beta|gamma|prob|ratio|temperature|softcap|lr|p)$")
_RUN = "a run knows it: transplt run --compile"


class _Unknown(Exception):
    """What does not stand in the file, as a clause."""


def launches_written(file: File) -> Iterator[list[dict[str, Any]]]:
    """For each launch and configuration of the kernels of a file the forms that it may have: one where all types are
    known; one that says `why` where it cannot be compiled."""
    project = ProjectFacts()
    for kernel in kernels_in(file):
        settings = [each for each in settings_of(kernel, project) if each.launch is not None]
        for setting in settings:
            head = {"name": kernel.name, "path": file.path, "line": kernel.node.lineno, "trial": bool(kernel.configs)}
            assert setting.launch is not None
            try:
                functions = _Functions(file, kernel)
                told = {"functions": functions.all, "constexprs": _constants(kernel, setting.sizes, setting.launch)}
                types = _element_types(kernel, setting.launch, project)
                forms = [_arguments(kernel, setting.launch, types, assumed) for assumed in ASSUMED]
                options = _options(file, setting.launch)
                made = [{**head, **told, "arguments": arguments, "options": options} for arguments in forms]
                yield made if made[0] != made[1] else made[:1]
            except _Unknown as why:
                yield [{**head, "why": f"{why}; {_RUN}"}]


def _options(file: File, launch: Launch) -> dict[str, Any]:
    values = {name: behind(file, each.value) for name, each in launch.options.items()}
    return {name: each.value for name, each in values.items() if isinstance(each, ast.Constant)}


def _constants(kernel: Kernel, sizes: dict[str, Any], launch: Launch) -> dict[str, Any]:
    found = {}
    for each in kernel.parameters:
        if each.constexpr:
            known = sizes[each.name].known if each.name in sizes else None
            if known is None:
                given = launch.arguments.get(each.name, each.default)
                known = constant_given(launch.file, given) if given is not None else Unset
            if known is Unset:
                raise _Unknown(f"the value of {each.name} is not in the text")
            found[each.name] = {"value": known}
    return found


def _element_types(kernel: Kernel, launch: Launch, project: ProjectFacts) -> dict[str, str]:
    """By parameter the type of the tensor that a launch gives it, where the file says it."""
    given = {name: node for name, node in launch.arguments.items() if name not in kernel.constexprs}
    held = {name: tensor_given(launch.file, node, project) for name, node in given.items()}
    return {name: next(iter(each.types)) for name, each in held.items() if each is not None and len(each.types) == 1}


def _arguments(kernel: Kernel, launch: Launch, types: dict[str, str], assumed: str) -> dict[str, Any]:
    pointers, found = pointer_parameters(kernel), {}
    handed = {
        name.id for call in kernel.every_call() if kernel_at(kernel.file, _function(kernel.file, call)) is not None
        for name in ast.walk(call) if isinstance(name, ast.Name)
    }  # fmt: skip
    for each in kernel.parameters:
        if each.constexpr:
            continue
        given = launch.arguments.get(each.name, each.default)
        value = behind(launch.file, given) if given is not None else None
        if given is None:
            raise _Unknown(f"what {each.name} is given is not in the text")
        if isinstance(value, ast.Constant):
            found[each.name] = _constant(value.value)
        elif each.name in types or each.name in pointers:
            found[each.name] = {"kind": "tensor", "type": types.get(each.name, assumed), "aligned": True}
        elif each.name in handed:
            raise _Unknown(f"whether {each.name} is a pointer is not in the text")
        elif _FRACTION.search(each.name):
            found[each.name] = {"kind": "float"}
        else:
            found[each.name] = {"kind": "int", "type": "i32", "one": False, "divisible": False}
    return found


def _constant(value: object) -> dict[str, Any]:
    if value is None or isinstance(value, bool):
        return {"kind": "none" if value is None else "bool"}
    if isinstance(value, int):
        return {"kind": "int", "type": "i32", "one": value == 1, "divisible": value % 16 == 0}
    if isinstance(value, float):
        return {"kind": "float"}
    raise _Unknown(f"an argument is {value!r}")


def _function(file: File, call: ast.Call) -> ast.AST | None:
    found = file.names.lookup(call.func.id, file.scan.scope_of(call.func)) if isinstance(call.func, ast.Name) else None
    return found[1][-1].node if found is not None and found[1] else None


class _Functions:
    """A kernel and the functions of the file that it calls, as the compiler's process takes them."""

    def __init__(self, file: File, kernel: Kernel) -> None:
        self.file = file
        self.all: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._number(kernel.node)

    def _number(self, node: ast.FunctionDef) -> int:
        if id(node) in self._numbers:
            return self._numbers[id(node)]
        number = self._numbers[id(node)] = len(self.all)
        lines = map(self.file.source.line_text, range(node.lineno, (node.end_lineno or 0) + 1))
        told: dict[str, Any] = {
            "name": node.name, "path": self.file.path, "line": node.lineno, "options": {}, "globals": {},
            "source": textwrap.dedent("\n".join(lines)) + "\n",
        }  # fmt: skip
        self.all.append(told)
        inner = [each for part in (node.args, *node.body) for each in ast.walk(part)]
        every = [each for each in inner if isinstance(each, ast.Name)]
        own = {each.arg for each in inner if isinstance(each, ast.arg)}
        own |= {each.id for each in every if isinstance(each.ctx, ast.Store)}
        for name in sorted({each.id for each in every} - own):
            if (value := self._told(name)) is not None:
                told["globals"][name] = value
        return number

    def _told(self, name: str) -> dict[str, Any] | None:
        bindings = self.file.scan.root.bindings.get(name, ())
        if not bindings and hasattr(builtins, name):
            return None
        for each in bindings[-1:]:
            if each.kind == "import" and (told := _imported(each.target)) is not None:
                return told
            if kernel_at(self.file, each.node) is not None and isinstance(each.node, ast.FunctionDef):
                return {"function": self._number(each.node)}
            value = assigned_value(each.node)
            if isinstance(value, ast.Call) and last_name(value.func) == "constexpr" and value.args:
                if isinstance(value.args[0], ast.Constant):
                    return {"constexpr": {"value": value.args[0].value}}
            elif isinstance(value, ast.Constant) and len(bindings) == 1:
                return {"value": value.value}
        raise _Unknown(f"what {name} is does not stand in the file")


def _imported(full: str) -> dict[str, Any] | None:
    top = full.partition(".")[0]
    if full in ("triton", "triton.language", "triton.language.math") or full in sys.stdlib_module_names:
        return {"module": full}
    if top == "triton" or top in sys.stdlib_module_names:
        module, _, name = full.rpartition(".")
        return {"from": [[module, name]]} if module and name != "libdevice" else {"module": full}
    return None
