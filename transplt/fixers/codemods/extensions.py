"""Code that is compiled for CUDA: extension modules, sources built at run time, operators registered for CUDA.

Nothing of this is rewritten: a renamed extension does not exist. The names end in a finding with an effort.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.packages import GOES_ON
from transplt.flow.callees import FOREIGN
from transplt.flow.cuda_builds import BUILDERS, KERNEL_TEXT, builds_for_cuda
from transplt.flow.gates.code import CodeStep, ImportedModule
from transplt.flow.gates.cuda_reach import CUDA_PART
from transplt.flow.gates.optional_imports import can_fail, has_another_way
from transplt.program.program import enclosing_function
from transplt.rules.kernels import kernel_called, kernel_in_module, kernels_among, replacement
from transplt.rules.packages import package_imported_as, what_to_do
from transplt.syntax.modules import import_base
from transplt.syntax.names import IMPORT_CALLS, assigned_value
from transplt.syntax.nodes import attribute_of, inner_nodes, last_name, of_kind, string_of
from transplt.syntax.scan import FUNCTIONS, chain, outermost, parent

fixer = Fixer(__name__, code="NPU553", rank=130)

_REGISTRARS = frozenset({"impl", "register_kernel", "custom_op", "fallthrough_kernel", "define"})
_COMPILED = "{} seems to be an extension compiled for CUDA"
#: What is said of a module that the project builds without CUDA too.
STUB = "the project can also build it without CUDA: that build can be imported but raises when called"
#: What is said where an import is caught, and not all that uses it tests whether it exists.
CAUGHT = "the import may fail, and calls to it then fail"
_WHEN_IMPORTED = "CUDA sources are compiled on import, which fails without nvcc"
_CARDS = ("torch.cuda.is_available", "torch.cuda.device_count")
_EXTENSIONS = frozenset({"CUDAExtension", "CppExtension"})
_NATIVE = re.compile(r"\.(?:cu|cuh|c|cc|cpp|cxx)\Z")
_FOUND_LATER = "files that the build looks for"
_REPLACE = "replace it with torch operators, or build its kernels for the NPU (triton-ascend, Ascend C, NpuExtension)"


@fixer.on(ast.Import)
def imported(work: Work, node: ast.Import | ast.ImportFrom) -> Finds:
    for alias in node.names:
        yield from _import(work, node, alias)


@fixer.on(ast.Call, name=BUILDERS)
def built(work: Work, call: ast.Call) -> Finds:
    """`load(...)` and `load_inline(...)` when they are given CUDA sources; the finding covers the whole call."""
    if not builds_for_cuda(call, work.source.utf8) or not work.take(call):
        return
    message, blocks = "CUDA sources are compiled at run time", ""
    conditional = any(isinstance(above, (ast.Try, ast.If, *FUNCTIONS)) for above in chain(call))
    if not conditional and work.scan.scope_of(call).kind in ("module", "class"):
        message, blocks = _WHEN_IMPORTED, "import"
    elif can_fail(call) and (enclosing_function(call) is not None or _has_another_way(work, call)):
        message, blocks = f"{message}; {GOES_ON}", "slow"  # a function that builds gives None where that fails
    api = work.names.qualified(call.func) or ""
    yield work.note(call, "NPU554", message, api=api, help=_REPLACE, effort=Effort.HIGH, blocks=blocks)


@fixer.on(ast.Call, last="CUDAExtension")
def holds_known_operators(work: Work, call: ast.Call) -> Finds:
    """Say which operators of the extension have a counterpart, by its name and those of its sources."""
    words = [node.value for node in inner_nodes(call, ast.Constant) if isinstance(node.value, str)]
    stems = [re.split(r"[/\\]", word)[-1].partition(".")[0] for word in words if not word.startswith("-")]
    rows = [row for stem in stems if (row := kernel_in_module(stem)) is not None]
    rows = list({row["name"]: row for row in [*rows, *kernels_among(stems)]}.values())
    if rows:
        names = ", ".join(row["name"] for row in rows)
        message = f"this extension has operators with a counterpart on NPU: {names}"
        help_text = "; ".join(replacement(row) for row in rows)
        yield work.note(call.func, "NPU292", message, level=Level.INFO, api=names, help=help_text)


@fixer.on(ast.Module)
def extensions_of_a_build(work: Work, tree: ast.Module) -> Finds:
    """Remark the names of extensions and their sources: the other findings on them are one thing to do."""
    if any(word in work.source.utf8 for word in (b"Extension", b"cpp_extension", b"extra_cuda_cflags")):
        for call in work.scan.calls:
            yield from _declared(work, call)


def _declared(work: Work, call: ast.Call) -> Finds:
    name = _declared_name(work, call)
    if name:
        inner = [each.value for each in inner_nodes(call, ast.Constant)]
        words = [value for value in inner if isinstance(value, str)]
        sources = list(dict.fromkeys(word.replace("\\", "/").lstrip("/") for word in words if _NATIVE.search(word)))
        if not sources and any(word.endswith(".pyx") for word in words):
            return
        message = f"the extension {name} is built from {', '.join(sources) or _FOUND_LATER}"
        details = tuple(("source", each) for each in sources)
        yield work.note(call.func, "NPU860", message, level=Level.INFO, api=name, details=details)


def _declared_name(work: Work, call: ast.Call) -> str:
    """The full name of the extension that a call builds; empty for other calls."""
    keywords = {each.arg: each.value for each in call.keywords}
    last = last_name(call.func)
    is_builder = work.names.qualified(call.func) in BUILDERS
    builds = last in _EXTENSIONS or (is_builder and builds_for_cuda(call, work.source.utf8))
    if not builds:
        given = (assigned_value(each.node) for each in work.names.bindings_of(call.func))
        builds = any(last_name(value) in _EXTENSIONS for value in given if value)
    if not builds and (
        "sources" not in keywords
        or not ("extra_cuda_cflags" in keywords or work.scan.path.rpartition("/")[2] == "setup.py")
    ):
        return ""
    name = string_of(keywords.get("name", call.args[0] if call.args else None)) or ""
    package = string_of(keywords.get("module"))
    return f"{package}.{name}" if name and package is not None else name


@fixer.on(ast.Constant)
def named_in_a_string(work: Work, node: ast.Constant) -> Finds:
    yield from _string(work, node, str(node.value))


@fixer.on(ast.Module)
def called_as_an_operator(work: Work, tree: ast.Module) -> Finds:
    for name in [name for name in work.scan.attributes if "cuda" in name]:
        for attribute in work.scan.attributes[name]:
            if (work.names.qualified(attribute) or "").startswith("torch.ops."):
                yield from _report(work, attribute, f"the operator {name}")


def _report(work: Work, node: ast.expr | ast.alias, what: str) -> Finds:
    if work.take(node):
        name = what.rpartition(" ")[2]
        message, blocks = _message(work, node, what)
        yield work.note(
            node, "NPU553", message, api=name, help=_instead(name), effort=Effort.HIGH, blocks=blocks,
        )  # fmt: skip


def _message(work: Work, node: ast.AST, what: str) -> tuple[str, str]:
    """The message, and what that blocks where it is not the import."""
    message, blocks = _COMPILED.format(what), "" if enclosing_function(node) is None else "first step"
    built = {name.rpartition(".")[2] for name in work.project.reach.host_built}
    if what.rpartition(" ")[2].rpartition(".")[2] in built:
        message, blocks = f"{message}; {STUB}", "first step"
    # behind a question for a card of CUDA, which stays where compiled code is behind it
    around = (node, *chain(node))
    asked = (each.test for each in of_kind(ast.If, around) if not set(around).isdisjoint(each.body))
    calls = (call for test in asked for call in inner_nodes(test, ast.Call))
    if any(work.names.qualified(call.func) in _CARDS for call in calls):
        blocks = "first step"  # the import is left out on an NPU: what it brings is missing when it is called
    # where it fails, what is imported instead may be compiled for CUDA, too, as it is loaded
    handlers = (handler for tried in of_kind(ast.Try, around[1:]) for handler in tried.handlers)
    instead = (import_base(work.scan.path, each) for on in handlers for each in of_kind(ast.ImportFrom, on.body))
    if not can_fail(node) or any(work.project.reach.why(CodeStep(ImportedModule(module))) for module in instead):
        return message, blocks
    return (f"{message}; {GOES_ON}", "slow") if _has_another_way(work, node) else (f"{message}; {CAUGHT}", "later")


def _has_another_way(work: Work, node: ast.AST) -> bool:
    return has_another_way(work.scan, node, work.project.aside.taken.get(work.scan.path, frozenset()))


def _instead(name: str) -> str:
    """What takes the place of a compiled module or operator, where the catalogue of kernels or packages knows it."""
    row = kernel_in_module(name) or kernel_called(name)
    if row is not None:
        return replacement(row)
    package = package_imported_as(name)
    return what_to_do(package) if package is not None else _REPLACE


# --- extension modules -----------------------------------------------------------------------------------------------


def _import(work: Work, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Finds:
    if isinstance(node, ast.Import):
        module = alias.name
        if _is_extension(work, module):
            yield from _report(work, alias, module)
        return
    base = import_base(work.scan.path, node)
    if _is_extension(work, base) and (not node.level or work.project.reach.builds(base)):
        start = work.source.extent(node)[0]
        end = work.source.extent(alias)[1]
        if work.take(node):
            message, blocks = _message(work, node, base)
            help_ = _instead(base)
            yield Note((start, end), "NPU553", Level.MANUAL, message, base, help_, Effort.HIGH, blocks=blocks)
    elif work.project.reach.builds(f"{base}.{alias.name}") or (
        node.level and node.module is None and work.project.known and _is_extension(work, f"{base}.{alias.name}")
    ):
        yield from _report(work, alias, alias.name)


def _is_extension(work: Work, module: str) -> bool:
    """True for a module that the project builds, or one named for CUDA that is neither the project's Python code nor
    a library the rules know.
    """
    parts = module.split(".")
    if work.project.reach.builds(module):
        return True
    if not any(CUDA_PART.search(part) and part.lower() != "cuda" for part in parts):
        return False
    if parts[0] == "torch" or parts[0] in FOREIGN or work.rules.resolve(module) is not None:
        return False
    known = work.project.canonical(module)
    return not any(name in work.project.modules for name in (known, module)) and known not in work.project.defined


def _string(work: Work, node: ast.Constant, value: str) -> Finds:
    call = _call_around(node)
    if call is None:
        if KERNEL_TEXT.search(value) and work.take(node):
            yield from _kernel(work, node)
        return
    func = call.func
    last = last_name(func)
    if last in IMPORT_CALLS and call.args and call.args[0] is node:
        if not value.startswith(".") and _is_extension(work, value):
            yield from _report(work, node, value)
    elif last == "load_library":
        if CUDA_PART.search(value):
            yield from _report(work, node, value)
    elif last == "CUDAExtension":
        if work.take(node):
            yield work.keep(node, "reported-extension")
    elif last in _REGISTRARS and value.lower() == "cuda" and _registers(work, func):
        if work.take(node):
            yield work.note(
                node,
                "NPU555",
                "an operator is registered for CUDA",
                api=f"torch.library.{last}",
                help="register an implementation for the NPU: device type 'npu', dispatch key PrivateUse1",
                effort=Effort.MEDIUM,
            )
    elif KERNEL_TEXT.search(value) and work.take(node):
        yield from _kernel(work, node)


def _call_around(node: ast.AST) -> ast.Call | None:
    """The nearest call in whose arguments a string stands, through lists, dicts and keywords."""
    above = parent(outermost(node, _is_operator, "_operator"))
    while isinstance(above, (ast.List, ast.Tuple, ast.Dict, ast.keyword, ast.BinOp, ast.Call)):
        if isinstance(above, ast.Call):
            last = last_name(above.func)
            if last not in ("join", "str", "abspath", "Path", "glob"):
                return above
        above = parent(outermost(above, _is_operator, "_operator"))
    return None


def _is_operator(above: ast.AST, node: ast.AST) -> bool:
    return isinstance(above, ast.BinOp)


def _registers(work: Work, func: ast.expr) -> bool:
    full = work.names.qualified(func)
    if full is not None:
        return full.startswith("torch.library.")
    # `lib.impl("op", fn, "CUDA")` on a torch.library.Library
    return attribute_of(func) == "impl"


# --- sources built at run time ---------------------------------------------------------------------------------------


def _kernel(work: Work, node: ast.Constant) -> Finds:
    yield work.note(node, "NPU554", "the source of a CUDA kernel in a string", help=_REPLACE, effort=Effort.HIGH)
