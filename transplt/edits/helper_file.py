"""The text of `npu_port.py`: the functions that a project calls, with what they need and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from functools import cache

import transplt
from transplt.base.grouped import grouped
from transplt.edits.helper_import import taking
from transplt.edits.helper_inline import bare
from transplt.edits.helper_source import (
    Import,
    Parts,
    annotations_in,
    around,
    closure,
    joined,
    module_named,
    parts_of,
    paths,
)
from transplt.edits.imports import STANDARD, code_begins, import_head, is_standard_import
from transplt.edits.lines import line_below
from transplt.syntax.files import File
from transplt.syntax.scan import FUNCTIONS

_OURS = re.compile(rb'\A(?:(?:#[^\n]*)?\n)*?(?:# [^\n]*\bWritten by transplt [0-9]|"""The accelerator that this )')
_FILE = re.compile(r"(?:^|/)npu_port(?:_[0-9]+)?\.py$")
_HEAD = """\
# SPDX-License-Identifier: 0BSD
# Functions that this project calls to run on Ascend NPUs. Written by transplt {version}; it belongs to the project now:
# change it as you like, transplt does not edit it again. 0BSD: use, copy, change and distribute it for any purpose,
# with or without fee; it comes without any warranty.
"""
#: The module of the portable style.
CHOOSES = "accelerator"
#: How the lines of accelerator.py begin in which the choice stands; its owner may name more devices behind.
_CHOICE = (
    re.compile(rb"^_has_npu = hasattr\(torch, [\"']npu[\"']\) and torch\.npu\.", re.M),
    re.compile(rb"^DEVICE_TYPE = [\"']npu[\"'] if _has_npu else ", re.M),
)
_PORTABLE = '"""The accelerator that this project runs on: an NPU, else CUDA."""\n'
#: What counts only where a project shows cards to CUDA by its variable.
_CARDS = re.compile(r"^    # The cards that CUDA.*?(?=^    torch_npu = )", re.M | re.S)
_WIDTH = 120


def is_helper(path: str, data: bytes) -> bool:
    """True for a file that transplt wrote beside a program, whatever has been changed in it since, and for one of the
    project that chooses the accelerator in the same way.
    """
    chooses = path.endswith(".py") and has_choice(data)
    if _OURS.match(data) is not None:
        return chooses or _FILE.search(path) is not None
    # Its owner has taken the head out; a file of the project that has all this in itself has more.
    return chooses and {*defined_in(data)} <= _names_of_all()


@cache
def _names_of_all() -> frozenset[str]:
    """All that the modules of the helper define."""
    return frozenset(each for name in paths() for piece in module_named(name).pieces for each in piece.binds)


def has_choice(data: bytes) -> bool:
    """True for a file in which the choice of the portable style stands, as we write it."""
    return all(line.search(data) for line in _CHOICE)


def body_of(data: bytes) -> list[ast.stmt]:
    """The statements of a module; none of one that Python does not read."""
    try:
        return ast.parse(data).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def defined_in(data: bytes) -> tuple[str, ...]:
    """The functions, classes and constants of such a file, sorted; none of one that Python does not read."""
    found = []
    for node in body_of(data):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.append(name)
    return tuple(sorted(found))


def helper_text(names: Collection[str], *, portable: bool = False, shows_cards: bool = True) -> str:
    """The file with some functions and what they need, for NPUs alone or `portable`, then for a project that
    `shows_cards` to CUDA by its variable. KeyError for a name that there is not.
    """
    wanted = tuple(sorted({*names, "DEVICE_TYPE"} if portable else names))  # by which it is known again
    parts = (_for_any_python if portable else parts_of)(wanted)
    head = _PORTABLE if portable else _HEAD.format(version=transplt.__version__)
    lead = "\n\n" if portable and parts.pieces and not parts.pieces[0].defines else "\n\n\n"
    text = f"{head}\n{_imports(parts, portable)}{lead}{joined((piece.defines, piece.text) for piece in parts.pieces)}\n"
    text = text if shows_cards or not portable else _CARDS.sub("", text)
    return text if re.search(r"\bos\.", text) else text.replace("import os\n", "")


@cache
def _for_any_python(names: tuple[str, ...]) -> Parts:
    """What some names need, in which every Python 3 works out the annotations: without any, where one does not."""
    parts = parts_of(names)
    annotations = (
        each for piece in parts.pieces for node in ast.parse(piece.text).body for each in annotations_in(node)
    )
    if any(each.types_only for each in parts.imports) or any(
        isinstance(inner, (ast.BinOp, ast.Subscript)) for each in annotations for inner in ast.walk(each)
    ):
        return closure(around(names, bare), names)
    return parts


def missing_in(file: File, names: Collection[str]) -> list[tuple[int, str]]:
    """What a module of the portable style lacks of some names: texts that go in, each with its offset. Imports stand
    among their like, the rest at the end.
    """
    bound, source, body = file.scan.root.bindings, file.source, file.scan.tree.body
    is_late = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in body)
    parts = (parts_of if is_late else _for_any_python)(tuple(sorted(names)))
    pieces = [piece for piece in parts.pieces if not {*piece.binds} <= {*bound}]
    if not pieces:
        return []
    lead = "\n\n\n" if pieces[0].defines or isinstance(body[-1], (*FUNCTIONS, ast.ClassDef)) else "\n"
    text = joined((each.defines, each.text) for each in pieces)
    end = len(source.utf8.rstrip())
    found = [(end, (lead + text).replace("\n", source.newline()))]
    for each in parts.imports:
        if each.local not in bound and re.search(rf"\b{each.local}\b", text):
            standard = each.module.partition(".")[0] in STANDARD
            heads = [node for node in import_head(body, set()) if is_standard_import(node) or not standard]
            offset = line_below(source, heads[-1]) if heads else code_begins(source, body)
            found.append((offset, each.line + source.newline()))
    return sorted(found)


def _imports(parts: Parts, portable: bool) -> str:
    """The imports, as ruff sorts them: the standard library, then packages, then what is imported for types alone."""
    now = [each for each in parts.imports if not each.types_only]
    types = [each for each in parts.imports if each.types_only]
    if types:
        now.append(Import("typing", "TYPE_CHECKING"))
    blocks = ["from __future__ import annotations"] * (not portable) + [*_sections(now), *parts.optional]
    if types:
        inner = "\n\n".join(_sections(types)).split("\n")
        blocks.append("\n".join(("if TYPE_CHECKING:", *(f"    {line}" if line else "" for line in inner))))
    return "\n\n".join(blocks)


def _sections(imports: Iterable[Import]) -> list[str]:
    """The blocks of import statements."""
    every = [*imports]
    parted = [[each for each in every if (each.module.partition(".")[0] in STANDARD) is own] for own in (True, False)]
    return ["\n".join(_statements(each)) for each in parted if each]


def _statements(imports: Iterable[Import]) -> list[str]:
    """Plain imports, then the others, one statement for each module."""
    every = [*imports]
    found = sorted(each.line for each in every if not each.name)
    taken = grouped((each.module, each.line.partition(" import ")[2]) for each in every if each.name)
    return found + [taking(f"from {module}", taken[module], _WIDTH) for module in sorted(taken, key=str.lower)]
