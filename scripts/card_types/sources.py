"""C++ sources as functions and constants by name: parsed by tree-sitter, nothing of them is compiled or run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Tree

_PARSER = Parser(Language(tree_sitter_cpp.language()))
#: Macros of checks take a statement as an argument: `CHECK_RET(x, return y)`; for the grammar it becomes an expression.
_RETURN = re.compile(rb"(?<=[,(])(\s*)return\b\s*([^;{}]*?)\)\s*;")
#: Copies, stubs and trials, which are no part of a release.
_OTHER = re.compile(r"(^|/)(experimental|tests?|examples|stub)/")
_VERSION = re.compile(rb"^[ \t]*#\s*(if|elif|else|endif|ifdef|ifndef)\b(.*)$", re.M)
_BETWEEN = re.compile(r"(!?)\s*VERSION_BETWEEN\(\s*V(\d+)R(\d+)\s*,\s*(?:V(\d+)R(\d+)|VERSION_NEWEST)\s*\)")


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function with a body: its parameters as (name, type), those that it may give another value (`changes`), whether
    its file alone can call it, and where it stands."""

    name: str
    scope: str
    parameters: tuple[tuple[str, str], ...]
    defaults: int
    changes: frozenset[str]
    local: bool
    body: Node
    file: SourceFile

    def takes(self, count: int) -> bool:
        return len(self.parameters) - self.defaults <= count <= len(self.parameters)


@dataclass(eq=False, slots=True)
class SourceFile:
    """One file: its functions and the constants of its top level."""

    path: str
    text: bytes
    repository: str = ""
    functions: dict[str, list[Function]] = field(default_factory=dict)
    constants: dict[str, Node] = field(default_factory=dict)


#: Texts by the address of a node; the trees live as long as the process.
_TEXTS: dict[int, str] = {}
_KEPT: list[Tree] = []


def text_of(node: Node | None) -> str:
    if node is None:
        return ""
    text = _TEXTS.get(node.id)
    if text is None:
        text = _TEXTS[node.id] = (node.text or b"").decode("utf-8", "replace")
    return text


def for_version(data: bytes, version: tuple[int, int] | None) -> bytes:
    """The text with what other versions of torch would compile made blank, line for line."""
    kept, stack = [], []
    for line in data.splitlines(keepends=True):
        mark = _VERSION.match(line)
        if mark is None:
            kept.append(line if all(stack) else b"\n")
            continue
        kept.append(b"\n")
        word, rest = mark[1].decode(), mark[2].decode("utf-8", "replace")
        if word in ("if", "ifdef", "ifndef"):
            stack.append(_holds(rest, version) if word == "if" else word == "ifndef" or "BUILD_LIBTORCH" not in rest)
        elif word in ("elif", "else") and stack:
            stack[-1] = not stack[-1]
        elif word == "endif" and stack:
            stack.pop()
    return b"".join(kept)


def _holds(condition: str, version: tuple[int, int] | None) -> bool:
    between = _BETWEEN.search(condition)
    if between is None or version is None:
        return True
    low, high = (int(between[2]), int(between[3])), (99, 99)
    if between[4]:
        high = (int(between[4]), int(between[5]))
    return (low <= version <= high) != bool(between[1])


def read(path: Path, name: str, repository: str = "", version: tuple[int, int] | None = None) -> SourceFile:
    """The functions and constants of one file."""
    data = for_version(path.read_bytes(), version)
    data = _RETURN.sub(lambda match: b"%s(%s));" % (match[1], match[2].strip() or b"0"), data)
    file = SourceFile(name, data, repository)
    tree = _PARSER.parse(data)
    _KEPT.append(tree)
    _collect(tree.root_node, "", file)
    return file


def statement(text: str) -> Node:
    """The first statement of a text, for what stands in YAML."""
    tree = _PARSER.parse(f"auto x = {text};".encode())
    _KEPT.append(tree)
    return tree.root_node.children[0]


def _collect(node: Node, scope: str, file: SourceFile) -> None:
    for child in node.children:
        if child.type == "namespace_definition":
            inner = text_of(child.child_by_field_name("name"))
            body = child.child_by_field_name("body")
            if body is not None:
                _collect(body, inner or scope, file)
        elif child.type in ("linkage_specification", "declaration_list", "preproc_if", "preproc_ifdef", "preproc_else"):
            _collect(child, scope, file)
        elif child.type == "function_definition":
            function = _function(child, scope, file)
            if function is not None:
                file.functions.setdefault(function.name, []).append(function)
        elif child.type == "template_declaration":
            _collect(child, scope, file)
        elif child.type == "declaration":
            for name, value in _declared(child):
                file.constants.setdefault(name, value)
        elif child.type == "ERROR":
            _collect(child, scope, file)


def _declared(node: Node) -> Iterator[tuple[str, Node]]:
    for child in node.children_by_field_name("declarator"):
        if child.type == "init_declarator":
            name, value = child.child_by_field_name("declarator"), child.child_by_field_name("value")
            if name is not None and value is not None:
                yield text_of(name).strip("&* "), value


def _function(node: Node, scope: str, file: SourceFile) -> Function | None:
    declarator, body = node.child_by_field_name("declarator"), node.child_by_field_name("body")
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in declarator.children if c.type.endswith("declarator")), None)
        declarator = inner
    if declarator is None or body is None:
        return None
    name = text_of(declarator.child_by_field_name("declarator"))
    parameters, defaults, changes = [], 0, set()
    listed = declarator.child_by_field_name("parameters")
    for each in listed.named_children if listed is not None else ():
        if each.type not in ("parameter_declaration", "optional_parameter_declaration"):
            continue
        defaults += each.type == "optional_parameter_declaration"
        kind = text_of(each.child_by_field_name("type"))
        if kind == "void" and each.child_by_field_name("declarator") is None:
            continue
        declared = each.child_by_field_name("declarator")
        parameters.append((_name_in(declared), kind))
        form = text_of(declared).replace(" ", "")
        if form.startswith(("*&", "**")) or (form.startswith("&") and not text_of(each).startswith("const")):
            changes.add(_name_in(declared))
    local = file.path.endswith(".cpp") and any(
        text_of(each) == "static" for each in node.children if each.type == "storage_class_specifier"
    )
    name = name.rpartition("::")[2]
    return Function(name, scope, tuple(parameters), defaults, frozenset(changes), local, body, file)


def _name_in(node: Node | None) -> str:
    if node is None:
        return ""
    if node.type == "identifier":
        return text_of(node)
    for child in node.children:
        found = _name_in(child)
        if found:
            return found
    return ""


class Index:
    """Functions of many files by name; those of a file come before all others."""

    def __init__(self, files: list[SourceFile]) -> None:
        self.files = files
        self.functions: dict[str, list[Function]] = {}
        self.constants: dict[str, list[tuple[SourceFile, Node]]] = {}
        for file in files:
            for name, found in file.functions.items():
                self.functions.setdefault(name, []).extend(found)
            for name, value in file.constants.items():
                self.constants.setdefault(name, []).append((file, value))

    def function(self, name: str, count: int, file: SourceFile, scope: str = "") -> Function | None:
        """The one function that a call with so many arguments can mean; None where that is not certain."""
        fits = [each for each in file.functions.get(name, ()) if each.takes(count)]
        if not fits or (scope and all(each.scope != scope for each in fits)):
            fits = [each for each in self.functions.get(name, ()) if each.takes(count) and not each.local]
            if scope:
                fits = [each for each in fits if each.scope == scope] or fits
            fits = [each for each in fits if each.file.repository == file.repository] or fits
        return fits[0] if len({text_of(each.body) for each in fits}) == 1 else None

    def constant(self, name: str, file: SourceFile) -> tuple[SourceFile, Node] | None:
        """Its value and where it stands; None where several files say different things."""
        if name in file.constants:
            return file, file.constants[name]
        found = self.constants.get(name, [])
        found = [each for each in found if each[0].repository == file.repository] or found
        return found[0] if found and len({text_of(node) for _, node in found}) == 1 else None


def cann(*folders: Path) -> Index:
    """CANN's operators, of checkouts of ops-nn and ops-math: what is checked (`aclnn_*.cpp`), what that is made of
    (`op_api/*.cpp`), and the common headers."""
    files = []
    for folder, path in [(each, path) for each in folders for path in sorted(each.rglob("*"))]:
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or _OTHER.search(name):
            continue
        if ("op_api/" in name and path.suffix in (".cpp", ".h")) or ("/inc/" in name and path.suffix == ".h"):
            files.append(read(path, name, folder.name))
    return Index(files)


def op_plugin(folder: Path, version: tuple[int, int]) -> Index:
    """The functions of op-plugin that call them, as a version of torch compiles them."""
    root = folder / "op_plugin"
    return Index([
        read(path, path.relative_to(folder).as_posix(), folder.name, version)
        for part in ("ops/opapi", "utils")
        for path in sorted((root / part).rglob("*.cpp"))
    ])
