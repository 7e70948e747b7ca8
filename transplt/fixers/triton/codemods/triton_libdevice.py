"""libdevice: the functions of CUDA's library are in a module of triton-ascend's own, those of tl.math stay there.

`triton.language.extra.libdevice` gives None on an NPU (its back end has an empty `get_module_map`), and
`triton.language.extra.cuda` is not there. Names: rules/support/triton_names.json. Which module it is goes by the CANN
of the target: triton-ascend 3.2.0 is for 8.5, 3.2.1 and later for 9.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.names import dotted, modules_imported, names_imported
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.flow.gates.optional_imports import can_fail
from transplt.rules.triton_names import MATH, Libdevice, cuda_functions, libdevice_for, math_functions

fixer = Fixer(__name__, code="NPU563", needs=(b"triton",), words=("triton",))

_EXTRA = "triton.language.extra"
_LANGUAGE = "triton.language"
_CUDA = (f"{_EXTRA}.cuda.libdevice", f"{_EXTRA}.libdevice", "triton.language.libdevice")
_HOLDERS = (f"{_EXTRA}.cuda", _EXTRA, _LANGUAGE)
_API = "triton.language.extra.libdevice"
_MOVED = "libdevice of Triton for NPUs is {}"
_LACKS = "libdevice of triton-ascend has no {}"
_INSTEAD = "write it with functions of tl and tl.math, or check triton.language.extra.cann.libdevice of your release"


@fixer.on(ast.Import)
def imported(work: Work, statement: ast.Import | ast.ImportFrom) -> Finds:
    """Imports of the module, and of its functions."""
    if isinstance(statement, ast.Import):
        known = libdevice_for(work.settings.torch_version)
        places = {index: known.module for index, each in enumerate(statement.names) if each.name in _CUDA}
        if places and work.take(statement):
            yield _edit(work, statement, modules_imported(places), known.module)
    elif statement.module in (*_CUDA, MATH) and not statement.level:
        yield from _functions(work, statement)
    elif statement.module in _HOLDERS and not statement.level:
        yield from _module_from_package(work, statement)


@fixer.on(ast.Module)
def used(work: Work, tree: ast.Module) -> Finds:
    """`tl.extra.cuda.libdevice.x`, `tl.math.x` of old releases; functions that are not there."""
    known = libdevice_for(work.settings.torch_version)
    for name in sorted(cuda_functions()):
        for node in work.scan.attributes.get(name, ()):
            full = work.names.qualified(node) or ""
            module, _, _ = full.rpartition(".")
            if module in _CUDA or (module == MATH and name not in known.math):
                yield from _attribute(work, node, name, known)


def _attribute(work: Work, node: ast.Attribute, name: str, known: Libdevice) -> Finds:
    language = _language(work, node)
    if name not in known.functions and not (name in known.math and language):
        if work.take(node):
            yield work.note(node, fixer.code, _LACKS.format(name), api=_API, help=_INSTEAD)
        return
    if not language or work.settings.style == "portable" or not work.take(node):
        return  # through a name of the module, whose import changes
    math = name in math_functions() or name not in known.functions
    new = f"{language}.math.{name}" if math else f"{language}{known.module.removeprefix(_LANGUAGE)}.{name}"
    yield Edit(node, fixer.code, _MOVED.format(MATH if math else known.module), dotted(new), api=_API)


def _language(work: Work, node: ast.Attribute) -> str:
    """The name of `triton.language` that a chain of attributes begins with (`tl`, `triton.language`), if it does."""
    below: ast.AST = node.value
    while isinstance(below, (ast.Attribute, ast.Name)):
        if work.names.qualified(below) == _LANGUAGE:
            return work.text(below)
        if not isinstance(below, ast.Attribute):
            break
        below = below.value
    return ""


def _functions(work: Work, statement: ast.ImportFrom) -> Finds:
    """`from triton.language.extra.libdevice import rsqrt`: from tl.math where all are there, else from libdevice."""
    known = libdevice_for(work.settings.torch_version)
    names = [each.name for each in statement.names]
    if statement.module == MATH and not (set(names) & cuda_functions() - known.math):
        return
    modules = ((MATH, math_functions()), (known.module, known.functions), (MATH, known.math))
    module = next((module for module, has in modules if has.issuperset(names)), "")
    if module == statement.module:
        return
    if module and work.take(statement):
        yield _edit(work, statement, names_imported(module, [None] * len(names)), module)
    elif not module and work.take(statement):
        lacking = sorted({*names} - known.functions - known.math)
        what = ", ".join(lacking) if lacking and lacking != ["*"] else "all of these"
        yield work.note(statement, fixer.code, _LACKS.format(what), api=_API, help=_INSTEAD,
                        blocks="later" if can_fail(statement) else "import")  # fmt: skip


def _module_from_package(work: Work, statement: ast.ImportFrom) -> Finds:
    """`from triton.language.extra import libdevice`; `from triton.language import math` as it is."""
    places = [each.name for each in statement.names]
    if "libdevice" not in places:
        return
    known = libdevice_for(work.settings.torch_version)
    holder = known.module.rpartition(".")[0]
    if len(places) == 1 and work.take(statement):
        yield _edit(work, statement, names_imported(holder, [None]), known.module)
    elif work.take(statement):
        yield work.note(statement, fixer.code, _MOVED.format(known.module), api=_API,
                        help=f"from {holder} import libdevice, on a separate line", blocks="first step")  # fmt: skip


def _edit(work: Work, statement: ast.stmt, new: New, module: str) -> Edit:
    return Edit(statement, fixer.code, _MOVED.format(module), new, api=_API)
