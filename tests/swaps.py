"""The oracle of the transforms: the same edits of names, strings and imports, written as regular expressions.

Each function makes a `Swap`. It gets the source of the node with its long operands as holes, exactly what LibCST
gets, and leaves spaces, comments, brackets and quotes where they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from transplt.base.text.lexer import literals
from transplt.trees.transform import CannotRewrite


@dataclass(frozen=True, slots=True)
class Swap:
    """An edit of a node's own text: skeleton in, its new text out."""

    apply: Callable[[str], str]


_SPACE = r"(?:\\?[\r\n]|[ \t\f]|#[^\r\n]*[\r\n])*"
_NAME = r"[^\W\d]\w*"
#: A name and attributes of it, in brackets or not.
_CHAIN = re.compile(rf"(?:\({_SPACE})*{_NAME}(?:{_SPACE}\))*(?:{_SPACE}\.{_SPACE}{_NAME}(?:{_SPACE}\))*)*")
_CALL = re.compile(rf"{_CHAIN.pattern}{_SPACE}\({_SPACE}")
_NAME_OR_COMMENT = re.compile(rf"#[^\r\n]*|{_NAME}")
_LAST = re.compile(rf"\.{_SPACE}({_NAME})\Z")
#: What an import statement consists of; the first group is what is not layout.
_IMPORT = re.compile(r"(\w+|[.,()*])|\\?[\r\n]|[ \t\f]|#[^\r\n]*")


def whole(text: str) -> Swap:
    """Put a text in the place of the node."""
    return Swap(lambda _: text)


def dotted(name: str) -> Swap:
    """Put a dotted name in the place of a dotted name, in its layout if it has as many parts; else as it is."""
    parts = name.split(".")

    def apply(old: str) -> str:
        if not _CHAIN.fullmatch(old):
            return name
        found = [match for match in _NAME_OR_COMMENT.finditer(old) if not match.group().startswith("#")]
        if len(found) != len(parts):
            return name
        return _replaced(old, ((match.start(), match.end(), new) for match, new in zip(found, parts, strict=True)))

    return Swap(apply)


def last_name(name: str) -> Swap:
    """Give an attribute another name; what it is an attribute of stays."""

    def apply(old: str) -> str:
        found = _LAST.search(old)
        if found is None:
            raise CannotRewrite("not an attribute")
        return old[: found.start(1)] + name

    return Swap(apply)


def first_argument(value: str) -> Swap:
    """Put a positional argument in front of all others of the call of a name."""

    def apply(old: str) -> str:
        head = _CALL.match(old)
        if head is None or not _is_call_by_name(old):
            raise CannotRewrite("not a call by name")
        at = head.end()
        return f"{old[:at]}{value}{'' if old[at] == ')' else ', '}{old[at:]}"

    return Swap(apply)


def _is_call_by_name(text: str) -> bool:
    """False where the text begins with another call: `f(x)(y)`, `f(x).g(y)`."""
    node: ast.AST = ast.parse(f"({text}\n)", mode="eval").body
    if not isinstance(node, ast.Call):
        return False
    node = node.func
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def words_in_literal(words: Mapping[str, str]) -> Swap:
    """Replace words (old -> new, one after the other) in a string that is one literal; fields of f-strings stay."""

    def replaced(text: str) -> str:
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    swap = in_literals(replaced, several=False)

    def apply(old: str) -> str:
        if not all(word in old for word in words):
            raise CannotRewrite("not written as one plain literal")
        return swap.apply(old)

    return Swap(apply)


def in_literals(change: Callable[[str], str], *, several: bool = True) -> Swap:
    """Change the text of a string: of its one literal, or also of each of several that stand side by side.

    `change` gets a literal with its prefix and quotes, or the text between two fields of an f-string.
    """

    def apply(old: str) -> str:
        found = literals(old)
        if not found or (len(found) > 1 and not several):
            raise CannotRewrite("not a plain string")
        spans = (span for literal in found for span in literal.text)
        return _replaced(old, ((start, end, change(old[start:end])) for start, end in spans))

    return Swap(apply)


def modules_imported(names: Mapping[int, str]) -> Swap:
    """Give modules of `import a.b as c, d` other names, by their place; what follows `as` stays."""

    def apply(old: str) -> str:
        tokens = _import_tokens(old)
        edits = []
        for index, group in enumerate(_groups(tokens[1:])):
            module = _until(group, "as")
            if index in names:
                edits.append((module[0].start(), module[-1].end(), names[index]))
        return _replaced(old, edits)

    return Swap(apply)


def names_imported(module: str, names: Sequence[tuple[str, str | None] | None]) -> Swap:
    """Import from another module; a name becomes (name, local name or None), None where it stays as it is.

    A local name is added where there is none, and left out where it is the name itself.
    """

    def apply(old: str) -> str:
        tokens = _import_tokens(old)
        head = _until(tokens[1:], "import")
        edits = [(head[0].start(), head[-1].end(), module)]
        groups = _groups([token for token in tokens[len(head) + 2 :] if token.group() not in "()"])
        for group, new in zip(groups, names, strict=True):
            if new is None:
                continue
            name, local = new
            end = group[0].end()
            if local is not None and len(group) == 1:
                name = f"{name} as {local}"
            elif local == name:
                end = group[-1].end()
            edits.append((group[0].start(), end, name))
        return _replaced(old, edits)

    return Swap(apply)


def _import_tokens(text: str) -> list[re.Match[str]]:
    found = list(_IMPORT.finditer(text))
    if sum(match.end() - match.start() for match in found) != len(text):
        raise CannotRewrite("not the import statement that was expected")
    return [match for match in found if match.group(1)]


def _until(tokens: Iterable[re.Match[str]], word: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    for token in tokens:
        if token.group() == word:
            break
        found.append(token)
    return found


def _groups(tokens: Iterable[re.Match[str]]) -> list[list[re.Match[str]]]:
    """What stands between commas; a comma behind the last one opens nothing."""
    groups: list[list[re.Match[str]]] = [[]]
    for token in tokens:
        if token.group() == ",":
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _replaced(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with spans (sorted) replaced."""
    parts: list[str] = []
    at = 0
    for start, end, new in edits:
        parts += (text[at:start], new)
        at = end
    return "".join((*parts, text[at:]))
