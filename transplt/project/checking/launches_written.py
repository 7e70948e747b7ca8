"""The launches of kernels as a file has them, for the compiler: where all that a kernel is compiled for stands in it.

Types of elements that the file does not say are assumed, once as float32 and once as bfloat16: only what holds for both
is an answer.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from transplt.fixers.triton.reader.elements import types_given
from transplt.fixers.triton.reader.kernels import Config, Kernel, behind, kernel_at, kernels_in, nodes_in
from transplt.fixers.triton.reader.launches import Launch
from transplt.fixers.triton.reader.pointers import pointer_parameters
from transplt.fixers.triton.reader.sizes import Range, Setting, Unset, constant_given, settings_of
from transplt.fixers.triton.reader.values import WIDTHS
from transplt.flow.facts import ProjectFacts
from transplt.proof.compiler.launches import MOST_CONFIGURATIONS
from transplt.syntax.files import File
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import argument_at, keyword_of, last_name

#: What is assumed of tensors of which the file says nothing.
ASSUMED = ("float32", "bfloat16")
#: Parameters that are called so are no whole numbers.
_FRACTION = re.compile(r"(?i)(?:^|_)(?:eps\w*|epsilon|scale|alpha|beta|gamma|prob|ratio|temperature|softcap|lr|p)$")
#: More axes than a tensor has.
_AXES = 64
_RUN = "a run shows it: transplt run --compile"


class _Unknown(Exception):
    """What does not stand in the file, as a clause, and who knows it."""

    def __init__(self, why: str, who: str = f"; {_RUN}") -> None:
        super().__init__(f"{why}{who}")


def launches_written(file: File) -> Iterator[list[dict[str, Any]]]:
    """For each launch and configuration of the kernels of a file the forms that it may have: one where all types are
    known; one that says `why` where it cannot be compiled. Of many configurations those that are compiled."""
    project = ProjectFacts()
    for kernel in kernels_in(file):
        settings = [each for each in settings_of(kernel, project) if each.launch is not None]
        for number, launch in enumerate({id(each.launch): each.launch for each in settings}.values()):
            assert launch is not None
            own = [each for each in settings if each.launch is launch]
            most = len(own) if _are_all(kernel) else 0
            for setting in own[:MOST_CONFIGURATIONS]:
                head = {"name": kernel.name, "path": file.path, "line": kernel.node.lineno}
                config = next((each for each in kernel.configs if each.call is setting.node), None)
                if config is not None:
                    sizes = ((name, setting.sizes[name].known, value) for name, value in config.values.items())
                    named = {name: ast.unparse(value) if size is None else str(size) for name, size, value in sizes}
                    head |= {"configuration": named, "launch": str(number), "of": most}
                yield _forms(launch, setting, config, head)


def _forms(launch: Launch, setting: Setting, config: Config | None, head: dict[str, Any]) -> list[dict[str, Any]]:
    kernel, file = launch.kernel, launch.kernel.file
    try:
        functions = _Functions(file, kernel)
        told = {"functions": functions.all, "constexprs": _constants(kernel, setting.sizes, launch, config)}
        types = types_given(launch, ProjectFacts())
        forms = [_arguments(kernel, launch, types, dtype) for dtype in ASSUMED]
        options = _options(launch.file, launch.options) | (_options(file, config.options) if config is not None else {})
        assumed = "with the last stride taken as 1" if _last_strides(launch).difference(kernel.constexprs) else ""
        told |= {"options": options, "assumed": assumed}
        made = [{**head, **told, "arguments": arguments} for arguments in forms]
        return made if made[0] != made[1] else made[:1]
    except _Unknown as why:
        return [{**head, "why": str(why)}]


def _are_all(kernel: Kernel) -> bool:
    """Whether the configurations in the text are all that there are, and none is left out before they are tried."""
    call, count = kernel.autotuner, len(kernel.configs)
    given = argument_at(call, 0, "configs") if call is not None else None
    if call is None or given is None or keyword_of(call, "prune_configs_by") is not None:
        return False
    match behind(kernel.file, given):
        case ast.List(elts=every):
            return len(every) == count
        case ast.ListComp(generators=every):
            return count == 1 and not any(each.ifs for each in every)
    return False


def _options(file: File, given: Mapping[str, ast.keyword]) -> dict[str, Any]:
    values = {name: behind(file, each.value) for name, each in given.items()}
    return {name: each.value for name, each in values.items() if isinstance(each, ast.Constant)}


def _constants(kernel: Kernel, sizes: dict[str, Range], launch: Launch, config: Config | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    tuned = config.values if config is not None else {}
    for each in kernel.parameters:
        if each.constexpr:
            known: object = sizes[each.name].known if each.name in sizes else None
            if known is None:
                given = tuned.get(each.name, launch.arguments.get(each.name, each.default))
                known = constant_given(kernel.file if each.name in tuned else launch.file, given) if given else Unset
            if known is Unset:
                raise _Unknown(f"the code does not show the value of {each.name}")
            found[each.name] = {"value": known}
    return found


def _arguments(kernel: Kernel, launch: Launch, types: dict[str, str], assumed: str) -> dict[str, Any]:
    pointers, found = pointer_parameters(kernel), {}
    handed = {
        name.id for call in kernel.every_call() if kernel_at(kernel.file, _function(kernel.file, call)) is not None
        for name in ast.walk(call) if isinstance(name, ast.Name)
    }  # fmt: skip
    ones = _last_strides(launch)
    for each in kernel.parameters:
        if each.constexpr:
            continue
        given = launch.arguments.get(each.name, each.default)
        value = behind(launch.file, given) if given is not None else None
        if given is None:
            raise _Unknown(f"the code does not show the value passed as {each.name}")
        if isinstance(value, ast.Constant):
            found[each.name] = _constant(value.value)
        elif types.get(each.name) or each.name in pointers:
            dtype = types.get(each.name) or assumed
            if dtype not in WIDTHS:
                raise _Unknown(f"{each.name} is {dtype}, which Triton does not have", "")
            found[each.name] = {"kind": "tensor", "type": dtype, "aligned": True}
        elif each.name in handed:
            raise _Unknown(f"the code does not show whether {each.name} is a pointer")
        elif _FRACTION.search(each.name) and not _divides(kernel, each.name):
            found[each.name] = {"kind": "float"}
        else:
            found[each.name] = {"kind": "int", "type": "i32", "one": each.name in ones, "divisible": False}
    return found


def _divides(kernel: Kernel, name: str) -> bool:
    """Whether a parameter stands under // or %: a whole number, whatever it is called."""
    every = (node for node in nodes_in(kernel) if isinstance(node, ast.BinOp))
    return any(name in {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} for node in every
               if isinstance(node.op, (ast.FloorDiv, ast.Mod)))  # fmt: skip


def _last_strides(launch: Launch) -> set[str]:
    """The parameters that are given the stride of the last axis of a tensor, of those that a launch asks it for: it is
    1 where a tensor lies as it was made, and a kernel is compiled for that."""
    asked: dict[str, list[tuple[int, str]]] = {}
    for name, node in launch.arguments.items():
        match node:
            case ast.Call(func=ast.Attribute(value=tensor, attr="stride"), args=[axis]):
                with contextlib.suppress(ValueError):
                    number = ast.literal_eval(axis)
                    asked.setdefault(ast.dump(tensor), []).append((number % _AXES, name))
    every = (max(each) for each in asked.values() if len(each) > 1 or max(each)[0] == _AXES - 1)
    return {name for _, name in every}


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
        for each in bindings:  # whatever stands for Triton where that is not installed
            if each.kind == "import" and (told := _imported(each.target)) is not None:
                return told
        for each in bindings[-1:]:
            if kernel_at(self.file, each.node) is not None and isinstance(each.node, ast.FunctionDef):
                return {"function": self._number(each.node)}
            value = assigned_value(each.node)
            if isinstance(value, ast.Call) and last_name(value.func) == "constexpr" and value.args:
                if isinstance(value.args[0], ast.Constant):
                    return {"constexpr": {"value": value.args[0].value}}
            elif isinstance(value, ast.Constant) and len(bindings) == 1:
                return {"value": value.value}
        raise _Unknown(f"the file does not show what {name} is")


def _imported(full: str) -> dict[str, Any] | None:
    top = full.partition(".")[0]
    if full in ("triton", "triton.language", "triton.language.math") or full in sys.stdlib_module_names:
        return {"module": full}
    if top == "triton" or top in sys.stdlib_module_names:
        module, _, name = full.rpartition(".")
        return {"from": [[module, name]]} if module and name != "libdevice" else {"module": full}
    return None
