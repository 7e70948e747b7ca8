"""A small module of the project that chooses the device for the rest of it, which the portable style completes."""

from __future__ import annotations

import ast
import posixpath
import re
import sys

from transplt.edits.helper_file import CHOOSES, body_of, defined_in, has_choice
from transplt.edits.helper_source import module_named
from transplt.edits.ignores import speaks_of_ignores
from transplt.flow.import_layout import INIT

#: Bytes of such a module: what maintainers have is 15 to 80 lines.
_MOST = 4000
#: Words of its name; under another name all that it defines has to be that choice.
_WORDS = frozenset({"device", "devices", "accelerator", "accelerators", "gpu", "gpus", "cuda"})
#: What it may import: nothing that leads back to the project, or that reads a command line.
_IMPORTED = frozenset({*sys.stdlib_module_names, "torch", "numpy"}) - {"argparse", "getopt", "optparse"}
_ASKED = ("torch.cuda.is_available", "th.cuda.is_available", "device_module.is_available")
_KNOWS_NPUS = re.compile(rb"(?<![a-z])npu", re.IGNORECASE)


def names_of_chooser(path: str, data: bytes) -> tuple[str, ...] | None:
    """The names of ours in a module whose purpose it is to choose the device, none before it is completed; None for
    every other file.
    """
    completed = has_choice(data)
    if b".is_available()" not in data or path.endswith(f"/{INIT}") or not path.endswith(".py"):
        return None
    if not completed and (len(data) > _MOST or _KNOWS_NPUS.search(data) or speaks_of_ignores(data)):
        return None
    body = body_of(data)
    ours = {name for piece in module_named(CHOOSES).pieces for name in piece.binds}
    own = [node for node in body if ours.isdisjoint(_bound(node))]
    words = posixpath.basename(path)[: -len(".py")].lower().split("_")
    if (len(own) < len(body)) != completed or not _is_its_purpose(own, named=not _WORDS.isdisjoint(words)):
        return None  # it has one of the names for something else, or is another module
    return tuple(name for name in defined_in(data) if name in ours)


def chooses_npus(data: bytes) -> bool:
    """True for a module that chooses NPUs too, for others: `return "npu"` beside "cuda", `IS_NPU = kind == "npu"`."""
    if b"npu" not in data or b"cuda" not in data or has_choice(data):
        return False
    return any(map(_says_npu, body_of(data)))


def _says_npu(node: ast.stmt) -> bool:
    match node:
        case ast.FunctionDef():
            returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
            values = {each.value for each in returned if isinstance(each, ast.Constant)}
            return {"cuda", "npu"} <= values
        case ast.Assign(value=ast.IfExp() | ast.Compare() as value):
            return any(isinstance(each, ast.Constant) and each.value == "npu" for each in ast.walk(value))
    return False


def _is_its_purpose(body: list[ast.stmt], *, named: bool) -> bool:
    """Whether the statements of a module choose the device; where its name does not say so, nothing but that."""
    asking = (node for node in body if isinstance(node, ast.Assign) and _asks(node.value, set()))
    flags = set().union(*map(_bound, asking))
    choosing = [node for node in body if _chooses(node, flags)]
    others = (node for node in body if node not in choosing and not flags.intersection(_bound(node)))
    return all(map(_may_stand, body)) and bool(choosing) and (named or not any(map(_bound, others)))


def _bound(node: ast.stmt) -> set[str]:
    """What a statement at the top gives a value, but for imports."""
    match node:
        case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Assign(targets=targets):
            return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        case ast.If(body=body, orelse=orelse):
            names = (alias for each in body if isinstance(each, ast.Import) for alias in each.names)
            return set().union(*map(_bound, (*body, *orelse)), (alias.name for alias in names))
    return set()


def _may_stand(node: ast.stmt) -> bool:
    """False for what a module does beside this choice when it is imported, and for classes."""
    match node:
        case ast.Import(names=names):
            return all(each.name.partition(".")[0] in _IMPORTED for each in names)
        case ast.ImportFrom(module=module, level=level):
            return not level and (module or "").partition(".")[0] in _IMPORTED
        case ast.If(body=body, orelse=orelse):
            return all(isinstance(each, (ast.Assign, ast.If)) and _may_stand(each) for each in (*body, *orelse))
        case ast.Assign(targets=targets):
            return all(isinstance(each, (ast.Name, ast.Tuple)) for each in targets)
    return isinstance(node, (ast.AnnAssign, ast.FunctionDef)) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _asks(node: ast.expr, flags: set[str]) -> bool:
    """True for an expression in which torch is asked for an accelerator, or a name that holds its answer."""
    return any(
        (isinstance(each, ast.Call) and ast.unparse(each.func) in _ASKED)
        or (isinstance(each, ast.Name) and each.id in flags)
        for each in ast.walk(node)
    )


def _chooses(node: ast.stmt, flags: set[str]) -> bool:
    """True for a constant, or a function that returns something, made by whether there is an accelerator."""
    if isinstance(node, ast.FunctionDef) and not any(
        isinstance(each, ast.Return) and each.value is not None for each in ast.walk(node)
    ):
        return False
    for each in ast.walk(node):
        match each:
            case ast.IfExp(test=test, body=chosen) if _asks(test, flags) and _names_it(chosen):
                return True
            case ast.If(test=test, body=body) if _asks(test, flags):
                results = (inner.value for inner in body if isinstance(inner, (ast.Assign, ast.Return)))
                if any(value is not None and _names_it(value) for value in results):
                    return True
    return False


def _names_it(value: ast.expr) -> bool:
    return any(
        (isinstance(each, ast.Constant) and str(each.value).startswith("cuda"))
        or (isinstance(each, ast.Name) and each.id == "DEVICE_TYPE")
        for each in ast.walk(value)
    )
