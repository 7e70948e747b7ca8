"""Where op-plugin calls functions of CANN: `EXEC_NPU_CMD(aclnnAdd, self, other, alpha, out)` and its kin, with the
types of what is passed, of parameters and declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from card_types.sources import Function, Index, text_of
from tree_sitter import Node

from .arguments import CHANGED, FILLED, Argument, of_variable
from .types import converted, element_of_tuple, plain, type_of

_MACRO = re.compile(r"EXEC_(?:NPU|UPDATE_NPU|GET_MAX)_\w+$")
_MADE = re.compile(r"apply_tensor|empty")
_RESULT = re.compile(r"(.*_)?(out|result|output|values|indices)\d*$|grad_|softmax_")
#: Filled here, and given back in another shape.
_BY_HAND = {"new_indices_t", "new_values_f"}


def calls(index: Index) -> Iterator[tuple[str, tuple[Argument, ...], str]]:
    """Functions of CANN, their arguments and the place, call by call."""
    results = _results(index)
    for file in index.files:
        for function in (each for functions in file.functions.values() for each in functions):
            for node in _calls(function.body):
                name, arguments = _arguments(node)
                scope = Scope(function, results)
                yield name, tuple(scope.argument(each) for each in arguments), f"{file.path}: {function.name}"


def _calls(node: Node) -> Iterator[Node]:
    if node.type == "call_expression" and _MACRO.match(text_of(node.child_by_field_name("function"))):
        yield node
        return
    for child in node.children:
        yield from _calls(child)


def _arguments(node: Node) -> tuple[str, list[Node]]:
    macro, listed = text_of(node.child_by_field_name("function")), node.child_by_field_name("arguments")
    given = [each for each in listed.named_children if each.type != "comment"] if listed is not None else []
    # Before the arguments of an update stand the address and the size of the memory that was found before.
    return text_of(given[0]) if given else "", given[3 if macro.startswith("EXEC_UPDATE") else 1 :]


def _results(index: Index) -> dict[str, str]:
    """What functions of op-plugin return, where all of one name return the same."""
    found: dict[str, set[str]] = {}
    for name, functions in index.functions.items():
        for function in functions:
            parent = function.body.parent
            found.setdefault(name, set()).add(plain(text_of(parent.child_by_field_name("type") if parent else None)))
    return {name: kinds.pop() for name, kinds in found.items() if len(kinds) == 1}


class Scope:
    """What names mean at a place in a function."""

    def __init__(self, function: Function, results: dict[str, str]) -> None:
        self.function, self.results = function, results
        self.looked: set[tuple[str, int]] = set()

    def argument(self, node: Node) -> Argument:
        kind = converted(type_of(node, self.lookup))
        name = re.sub(r"\W+", "_", text_of(node)).strip("_")
        marks = self._mark(name) if kind[:1] in ("t", "T") else ""
        return Argument(of_variable(name), kind[:1], marks + kind[1:])

    def _mark(self, name: str) -> str:
        """Filled: what was made empty here, or given for results; changed: what is given and given back."""
        body, word = text_of(self.function.body), re.escape(name)
        wrapped = re.search(
            rf"\b{word}\s*(?:=[^;]*\bmake_wrapper\(|=\s*TensorWrapper[({{]|=?\s*{{|=\s*at::TensorList\()\s*(\w+)", body
        )
        if wrapped and wrapped[1] not in (name, "nullptr"):
            return self._mark(wrapped[1])
        returned = re.search(rf"\breturn\b[^;]*\b{word}\b", body)
        if name in self.function.changes:
            return FILLED if _RESULT.match(name) else CHANGED
        if name in dict(self.function.parameters):
            given_back = rf"\breturn\s+(?:std::\w+[^;()]*[({{])?(?:[\w\s]+,)*\s*{word}\s*[,;)}}]"
            return CHANGED if re.search(given_back, body) else ""
        made = re.search(rf"\b{word}\s*(?:=|\.\w+_back\()[^;]*?({_MADE.pattern})|create_new_\w+\(\s*{word}\b", body)
        if (made or returned) and re.search("_cache(_|$)", name):  # a copy, of which some rows are filled
            return CHANGED
        return FILLED if returned or name in _BY_HAND or (made and made[1] != "empty") else ""

    def lookup(self, name: str, node: Node) -> str:
        """The type of a name at a node, or of what a call `name()` gives."""
        if name.endswith("()"):
            return self.results.get(name[:-2].rpartition("::")[2], "")
        if (name, node.start_byte) in self.looked:
            return ""
        self.looked.add((name, node.start_byte))
        place: Node | None = node
        while place is not None and place != self.function.body.parent:
            for declaration in _before(place):
                found = self._declared(declaration, name)
                if found is not None:
                    return found
            place = place.parent
        return plain(dict(self.function.parameters).get(name, ""))

    def _declared(self, node: Node, name: str) -> str | None:
        """The type that a declaration gives a name; None where it does not name it."""
        kind = plain(text_of(node.child_by_field_name("type")))
        for declared in node.children_by_field_name("declarator"):
            value = declared.child_by_field_name("value") if declared.type == "init_declarator" else None
            target = declared.child_by_field_name("declarator") if declared.type == "init_declarator" else declared
            text = text_of(target)
            if text.lstrip("&").startswith("["):
                names = [each.strip() for each in text.strip("&[] ").split(",")]
                if name in names:
                    return element_of_tuple(type_of(value, self.lookup), names.index(name))
            elif re.match(rf"[*&\s]*{re.escape(name)}\s*($|[\[(])", text):
                made = type_of(value, self.lookup) if kind in ("auto", "auto*", "autoconst") else kind
                return made + "*" if re.match(r"\*|\w+\s*\[", text) and not made.endswith("*") else made
        return None


def _before(node: Node) -> Iterator[Node]:
    """Declarations whose names hold at a node, of its own level, the nearest first."""
    if node.parent is None:
        return
    if node.parent.type == "lambda_expression":
        for each in node.parent.children:
            if each.type.endswith("declarator"):
                listed = each.child_by_field_name("parameters")
                yield from listed.named_children if listed is not None else ()
    before = node.prev_sibling
    while before is not None:
        if before.type == "declaration":
            yield before
        elif before.type in ("init_statement", "condition_clause"):
            yield from (each for each in before.children if each.type == "declaration")
        before = before.prev_sibling
