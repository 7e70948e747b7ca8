"""Run by the Python of the compiler: one kernel as JSON on standard input, what came of it as JSON on standard output.

Nothing of transplt and no torch is imported. A kernel is called as its program would call it, so that triton-ascend
takes arguments and options as it does on a card; what it asks of a card (the name of the chip, its cores) is answered
here. bishengir-compile runs behind a script that keeps the module with the planned memory: without CANN the step behind
that, hivmc, is not there, and its absence is no failure.
"""

from __future__ import annotations
import __future__

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

#: Address space in bytes.
MOST_MEMORY = 16 << 30
_WRAPPER = """#!/bin/sh
case "$1" in --*) exec '{real}' "$@";; esac
cp "$1" '{kept}/input.mlir'
out=; before=
for word; do [ "$before" = -o ] && out=$word; before=$word; done
'{real}' "$@" --save-temps='{kept}' 2>'{kept}/said'
code=$?
if [ -f '{kept}/module.hivm.opt.mlir' ] && grep -q 'hivmc' '{kept}/said'; then
    : >"$out.o"; : >"${{out}}_reloc.o"
    exit 0
fi
cat '{kept}/said' >&2
exit $code
"""
_BITS = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16, "i8": 8, "i1": 1}
_MEMORIES = {"ub": ("UB", "UB_SIZE"), "cbuf": ("L1", "L1_SIZE"), "cc": ("L0C", "L0C_SIZE")}
#: An integer argument as it is compiled for: by its type, and whether it is one, or divisible by 16.
_LARGE = {"i32": 1 << 20, "i64": 1 << 40, "u64": 1 << 63}


def versions() -> dict[str, str]:
    """The distributions that compile, as far as pip knows them."""
    found = {}
    for name in ("triton-ascend", "ascendnpu-ir"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def compiler_of(chip: str) -> str:
    """The path of bishengir-compile for a chip: of the wheel, else of CANN; "" where there is none."""
    name = "bishengir-compile-a5" if re.match(r"Ascend(?:950|910_95|310B)", chip) else "bishengir-compile"
    wheel = importlib.util.find_spec("ascendnpuir")
    if wheel is not None and wheel.origin is not None:
        path = os.path.join(os.path.dirname(wheel.origin), "bin", name)
        if os.path.isfile(path):
            return path
    return shutil.which(name) or shutil.which("bishengir-compile") or ""


class _Pointer:
    """A tensor as an argument: its type, and whether its address is divisible by 16."""

    def __init__(self, dtype: str, aligned: bool) -> None:
        self.dtype = f"torch.{dtype}"
        self._address = 4096 if aligned else 4097

    def data_ptr(self) -> int:
        """An address that nothing is read from."""
        return self._address


def _argument(told: dict[str, Any]) -> Any:
    """An argument that is compiled as the one that was given."""
    kind = told["kind"]
    if kind == "tensor":
        return _Pointer(told["type"], told["aligned"])
    if kind == "float":
        return 0.5
    if kind == "int":
        if told["one"]:
            return 1
        return _LARGE[told["type"]] + (0 if told["divisible"] else 3)
    return {"bool": True, "none": None}[kind]


class _Utils:
    """What triton-ascend asks the card."""

    chip, cores = "", 0

    def get_arch(self) -> str:
        return self.chip

    def get_aicore_num(self) -> int:
        return self.cores

    def get_aivector_core_num(self) -> int:
        return 2 * self.cores

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        return {"max_shared_mem": 1, "num_aicore": self.cores, "num_vectorcore": 2 * self.cores}

    def load_binary(self, *_: Any) -> tuple[None, None, int, int]:
        return None, None, 0, 0


def _take_the_place_of_the_card(chip: str, cores: int) -> None:
    import triton
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    _Utils.chip, _Utils.cores = chip, cores

    class Driver(DriverBase):  # type: ignore[misc]
        def __init__(self) -> None:
            self.utils = _Utils()
            self.launcher_cls = lambda *_: lambda *_: None

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> Any:
            return GPUTarget("npu", chip, 0)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, _device: int = 0) -> int:
            return 0

        def set_current_device(self, device: int) -> None:
            """There is one."""

        def get_active_torch_device(self) -> None:
            """None without torch."""

        def get_benchmarker(self) -> Any:
            return lambda function, **_: (function(), [1.0] * 3)[1]

    # The package loads its backend a second time, under another name.
    backend = backends["ascend"].compiler
    backend.add_stages.__globals__["NPUUtils"] = _Utils
    importlib.import_module("triton.backends.ascend.compiler").NPUUtils = _Utils  # type: ignore[attr-defined]
    if compiler_of(chip).endswith("-a5"):
        parse = backend.parse_options
        chosen = {"compile_on_910_95": True, "multibuffer": False, "enable_auto_bind_sub_block": False,
                  "enable_select_analysis": True}  # fmt: skip
        backend.parse_options = lambda self, options: parse(self, {**chosen, **options, "compile_on_910_95": True})
    triton.runtime.driver.set_active(Driver())


def _module(name: str) -> Any:
    """A module by its name; the library of CANN has another one in older front ends."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if ".extra.cann" not in name:
            raise
        return importlib.import_module(name.replace(".extra.cann", ".extra.ascend"))


def _value(told: Any, functions: list[Any]) -> Any:
    """A global value of a kernel, as `launches` of the parent writes it. KeyError for one that is none."""
    import triton.language as tl

    (kind, what), = told.items()
    if kind in ("function", "plain"):
        return functions[what]
    if kind == "module":
        return _module(what)
    if kind == "from":
        for module, name in what[:-1]:  # the places of a `try: import`
            with contextlib.suppress(ImportError, AttributeError):
                return getattr(_module(module), name)
        return getattr(_module(what[-1][0]), what[-1][1])
    if kind == "namespace":
        made = types.ModuleType("namespace")
        vars(made).update({name: _value(each, functions) for name, each in what.items()})
        return made
    if kind == "tuple":
        return tuple(_value(each, functions) for each in what)
    if kind == "constexpr":
        return tl.constexpr(_value(what, functions))
    return getattr(tl, what) if kind == "dtype" else what


def _names_functions(told: Any) -> bool:
    """Whether a value can only be there once all functions are."""
    (kind, what), = told.items()
    inner = list(what.values()) if kind == "namespace" else what if kind == "tuple" else [what] * (kind == "constexpr")
    return kind in ("function", "plain") or any(map(_names_functions, inner))


class _Missing(Exception):
    """A name of another world: what this front end lacks."""


def _load(kernel: dict[str, Any], folder: Path) -> Any:
    """The functions of a kernel as triton-ascend has them; the first is the kernel."""
    import triton

    spaces, functions = [], []
    for number, each in enumerate(kernel["functions"]):
        # The lines before it are empty, so that what is said of a line is said of the line in the project.
        path = folder / f"transplt_{number}.py"
        text = "\n" * (each["line"] - 1) + each["source"]
        path.write_text(text, encoding="utf-8")
        space: dict[str, Any] = {"__name__": f"transplt_{number}", "__file__": str(path)}
        late = {}
        for name, told in each["globals"].items():
            if _names_functions(told):
                late[name] = told
                continue
            try:
                space[name] = _value(told, [])
            except (ImportError, AttributeError) as error:
                raise _Missing(str(error)) from error
        # Annotations stay text: they may name what is not here.
        exec(compile(text, str(path), "exec", __future__.annotations.compiler_flag, dont_inherit=True), space)
        made = space[each["name"]]
        functions.append(triton.jit(**each["options"])(made) if each.get("jit", True) else made)
        spaces.append((space, late, each["name"]))
    for number, (space, late, name) in enumerate(spaces):
        space[name] = functions[number]
        space.update({other: _value(told, functions) for other, told in late.items()})
    return functions


def planned(text: str) -> dict[str, list[int]]:
    """Of a module with planned memory: by memory, the bytes up to the highest that is used, and how many there are."""
    size = {name: int(number) for name, number in re.findall(r'dl_entry<"(\w+)", (\d+) : i32>', text)}
    used: dict[str, int] = {}
    for function in re.split(r"\n\s*func\.func ", text):
        constants = dict(re.findall(r"(%\w+) = (?:arith\.|llvm\.mlir\.)constant[ (](-?\d+) : i64", function))
        for places, shape, memory in re.findall(
            r"hivm\.hir\.pointer_cast\(([^)]*)\)[^:\n]*: memref<([^,>]*)[^#\n]*#hivm\.address_space<(\w+)>>", function
        ):
            *sizes, element = shape.split("x")
            if "?" in sizes:
                continue
            bits = _BITS.get(element, 8 if element.startswith(("f8", "ui8")) else 32)
            for each in sizes:
                bits *= int(each)
            for place in filter(None, (constants.get(each.strip()) for each in places.split(","))):
                used[memory] = max(used.get(memory, 0), int(place) + (bits + 7) // 8)
    return {
        title: [used.get(memory, 0), size.get(entry, 0) // 8]
        for memory, (title, entry) in _MEMORIES.items() if entry in size
    }  # fmt: skip


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _operation_place(said: str, module: str) -> list[str]:
    """Where the operation stands that a compiler names without its place (`LLVM ERROR: ... arith::ExtFOp`): file, line
    and column; of several the first of float64. Nothing where it is not found."""
    named = re.search(r"(\w+)::(\w+)Op\b", said)
    if named is None:
        return []
    lines = [line for line in module.splitlines() if f"{named[1]}.{named[2].lower()} " in line]
    chosen = next((line for line in lines if "f64" in line), lines[0] if lines else "")
    loc = re.search(r"loc\((#loc\d*)\)\s*$", chosen)
    for _ in range(4):  # a place may be another's with a name
        told = re.search(rf"^{re.escape(loc[1])} = loc\((.*)\)$", module, re.M) if loc is not None else None
        place = re.search(r'"([^"]+)":(\d+):(\d+)', told[1]) if told is not None else None
        if place is not None:
            return [place[1], place[2], place[3]]
        loc = re.search(r"(#loc\d*)", told[1]) if told is not None else None
    return []


def _refused(error: BaseException, functions: list[Any]) -> dict[str, Any]:
    """What an exception says, with the function and the line in it that it speaks of, where it knows them."""
    told: dict[str, Any] = {"kind": type(error).__name__, "text": str(error)}
    for each in reversed(_chain(error)):
        node, source = getattr(each, "node", None), getattr(each, "src", None)
        sources = [getattr(function, "src", None) for function in functions]
        number = sources.index(source) if source in sources else None
        if node is not None and number is not None:
            told |= {"function": number, "offset": node.lineno - 1}
            break
    innermost = _chain(error)[-1]
    if innermost is not error:
        told["inner"] = f"{type(innermost).__name__}: {innermost}"
    return told


def compiled(kernel: dict[str, Any], folder: Path) -> dict[str, Any]:
    real = compiler_of(kernel["chip"])
    if not real:
        return {"versions": versions(), "kind": "NoCompiler", "text": "bishengir-compile is not there"}
    kept = folder / "kept"
    kept.mkdir()
    script = folder / "bishengir-compile"
    script.write_text(_WRAPPER.format(real=real, kept=kept), encoding="utf-8")
    script.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.environ |= {"TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_ALWAYS_COMPILE": "1",
                   "TRITON_DISABLE_LINE_INFO": "0"}  # fmt: skip
    functions: list[Any] = []
    try:
        _take_the_place_of_the_card(kernel["chip"], kernel["cores"])
        functions += _load(kernel, folder)
        arguments = {name: _argument(told) for name, told in kernel["arguments"].items()}
        constants = {name: _value(told, functions) for name, told in kernel["constexprs"].items()}
        constants = {name: getattr(each, "value", each) for name, each in constants.items()}
        functions[0].run(grid=(1, 1, 1), warmup=True, **arguments, **constants, **kernel["options"])
    except BaseException as error:
        told = _refused(error, functions)
        given = kept / "input.mlir"
        if given.is_file() and (place := _operation_place(told["text"], given.read_text("utf-8", "replace"))):
            told["text"] = f'loc("{place[0]}":{place[1]}:{place[2]}): {told["text"]}'
            told["place"] = place
        return {"versions": versions(), **told}
    module = kept / "module.hivm.opt.mlir"
    memory = planned(module.read_text("utf-8", "replace")) if module.is_file() else {}
    return {"versions": versions(), "kind": "", "text": "", "memory": memory}


def chips() -> list[str]:
    found: dict[str, None] = {}
    for path in dict.fromkeys(map(compiler_of, ("Ascend910B3", "Ascend950"))):
        if path:
            text = subprocess.run([path, "--help"], capture_output=True, text=True, check=False).stdout
            found |= dict.fromkeys(re.findall(r"^\s+=(Ascend\S+)", text, re.M))
    return [*found]


def main() -> None:
    """The command: a kernel from standard input, or with `about` as its word what the compiler is."""
    answer, sys.stdout = sys.stdout, sys.stderr  # triton prints
    if sys.argv[1:] == ["about"]:
        answer.write(json.dumps({"versions": versions(), "chips": chips()}))
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="transplt-compile-") as folder:
        answer.write(json.dumps(compiled(json.load(sys.stdin), Path(folder))))


if __name__ == "__main__":
    main()
