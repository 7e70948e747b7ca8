"""Words that bind to a GPU without naming CUDA, in Python: names, keys, comparisons, commands; arguments stand apart.

What they are, where they count and what is right on an NPU is data: rules/support/gpu_words.json.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.base.text.commands import flags_of, logical_lines
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.work import Work
from transplt.fixers.codemods.gpu_arguments import arguments, defaults, imported_packages, is_value, note_of
from transplt.flow.destinations import places
from transplt.flow.own_packages import has_its_own
from transplt.rules.gpu_words import ComparePlace, KeyPlace, NamePlace, StorePlace, commands, literals, places_of
from transplt.syntax.nodes import by_place, last_name, string_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU144", rank=340, words=literals())

#: Methods of a dict whose first argument is a key.
_BY_KEY = ("get", "pop", "setdefault", "getenv")
#: What starts a command that it is given as a string or a list of strings.
_STARTS = ("run", "call", "check_call", "check_output", "Popen", "popen", "system", "getoutput", "getstatusoutput")
_GPU = re.compile("gpu", re.IGNORECASE)
#: A string that is the command of a container, whoever starts it.
_CONTAINER = re.compile(r"\s*(?:(?:sudo|nohup)[ \t]+)*(?:docker|podman)[ \t]+(?:container[ \t]+)?(?:run|create)[ \t]")
#: A line of a job script that a program writes.
_DIRECTIVE = re.compile(r"^[ \t]*#(?:SBATCH|PBS|BSUB)\b", re.MULTILINE)


@fixer.on(ast.Module)
def words_of_gpus(work: Work, tree: ast.Module) -> Finds:
    """Report the words of the table where they stand in their places."""
    imported = {name for name in imported_packages(work) if not work.defines_package(name)}
    yield from arguments(work, imported)
    yield from defaults(work)
    for place, word in places_of(NamePlace):
        head, _, last = place.name.rpartition(".")
        for node in (*work.scan.attributes.get(last, ()), *work.scan.names.get(last, ())):
            if not head or work.names.qualified(node) == place.name:
                yield from note_of(work, node, word, place.name.lstrip("."))
    strings = _strings(work, imported)
    yield from _comparisons(work, strings)
    for key, word in places_of(KeyPlace) if strings else ():
        if not key.imports or not imported.isdisjoint(key.imports):
            for node in strings:
                if node.value == key.key and _is_key(work, key, node):
                    yield from note_of(work, node, word, key.key)
    yield from _commands(work, tree)
    for target in work.scan.stores:
        for store, word in places_of(StorePlace):
            if target.attr == store.store.rpartition(".")[2] and work.names.qualified(target) == store.store:
                above = parent(target)
                if isinstance(above, ast.Assign) and is_value(store.value, above.value):
                    yield from note_of(work, above, word, store.store)


# --- strings ---------------------------------------------------------------------------------------------------------


def _strings(work: Work, imported: set[str]) -> list[ast.Constant]:
    """The strings of a file that are words of the table by what it imports, in the order of the file."""
    keys = places_of(KeyPlace)
    wanted = {place.value for place, _ in places_of(ComparePlace)}
    wanted.update(place.key for place, _ in keys if not place.imports or not imported.isdisjoint(place.imports))
    return by_place(node for node in work.scan.texts if node.value in wanted)


def _comparisons(work: Work, strings: list[ast.Constant]) -> Finds:
    """`state.distributed_type in ["MULTI_GPU", "DEEPSPEED"]`: on NPUs it is another word."""
    for node in strings:
        compare: ast.AST = parent(node)
        if isinstance(compare, (ast.List, ast.Tuple, ast.Set)):
            compare = parent(compare)
        if not isinstance(compare, ast.Compare):
            continue
        sides = {last_name(side) for side in (compare.left, *compare.comparators)}
        for place, word in places_of(ComparePlace):
            known = any(string_of(each) == place.becomes for each in ast.walk(compare))
            if node.value != place.value or place.compared not in sides or known:
                continue
            if not has_its_own(work.project, place.value, place.becomes) and work.take(node):
                new = words_in_literal({place.value: place.becomes})
                yield Edit(node, word.code, word.message, new, api=place.value, becomes=place.becomes)


def _is_key(work: Work, place: KeyPlace, node: ast.Constant) -> bool:
    value: ast.expr | None = None
    match parent(node):
        case ast.Dict(keys=keys, values=values) as display if node in keys:
            given = work.once(_unpacked)  # what goes into `Engine.remote(**held)` alone is an actor's own
            if any(given.get(work.text(each)) == {"remote"} for each in getattr(parent(display), "targets", ())):
                return False
            value = values[keys.index(node)]
        case ast.Subscript(slice=index) as entry if index is node:
            holder = parent(entry)
            value = holder.value if isinstance(holder, ast.Assign) and entry in holder.targets else None
        case ast.Call(func=func, args=[first, *rest]) if first is node and last_name(func) in _BY_KEY:
            if rest and place.alone:
                return False
        case _:
            return False
    if not (place.reads if value is None else is_value(place.value, value)):
        return False
    return place.within is None or any(place.within.search(name) for name in _names_around(work, node))


def _unpacked(work: Work) -> dict[str, set[str]]:
    """By the name of a dict the methods of Ray that it is unpacked into."""
    found: dict[str, set[str]] = {}
    for call in work.scan.calls_by_last_name(("remote", "options")):
        for held in [work.text(word.value) for word in call.keywords if word.arg is None]:
            found.setdefault(held, set()).add(last_name(call.func))
    return found


def _names_around(work: Work, node: ast.AST) -> Iterator[str]:
    """What the things around a node are called, up to its statement: keywords, callees, targets, what is indexed, keys
    under which it stands, and what a comprehension goes through.
    """
    while not isinstance(node, ast.stmt):
        inner, node = node, parent(node)
        match node:
            case ast.Dict(keys=keys, values=values) if inner in values:
                yield string_of(keys[values.index(inner)]) or ""
            case ast.ListComp(generators=loops) | ast.GeneratorExp(generators=loops) | ast.DictComp(generators=loops):
                yield from (work.text(each.iter) for each in loops)
            case ast.keyword(arg=name):
                yield name or ""
            case ast.Call(func=named) | ast.Subscript(value=named) | ast.AnnAssign(target=named):
                yield work.text(named)
            case ast.Assign(targets=targets):
                yield from map(work.text, targets)


# --- commands --------------------------------------------------------------------------------------------------------


def _commands(work: Work, tree: ast.Module) -> Finds:
    """Commands that the program starts, and the directives of job scripts that it writes."""
    text = work.source.utf8
    found: dict[int, tuple[ast.expr, list[str]]] = {}
    if b"gpu" not in text.lower():
        return
    for call in work.scan.calls_by_last_name(_STARTS):
        if call.args:
            found[id(call.args[0])] = (call.args[0], _command(call.args[0]).split("\n"))
    if any(word in text for word in (b"#SBATCH", b"#PBS", b"#BSUB", b"docker run", b"docker create", b"podman run")):
        for node in ast.walk(tree):
            if isinstance(node, (ast.JoinedStr, ast.Constant)) and not _is_prose(node):
                command = _command(node)
                lines = [line for line in command.split("\n") if _DIRECTIVE.match(line)]
                prose = {"prose"}
                if not lines and _CONTAINER.match(command) and {at.kind for at in places(work.slots, node)} != prose:
                    lines = command.split("\n")
                if lines:
                    found.setdefault(id(node), (node, lines))
    for node, lines in found.values():
        noted: set[str] = set()
        for first, group in logical_lines(lines, _GPU):
            for command, wanted in commands():
                for flags in flags_of(group, command, first):
                    for place, word in wanted:
                        match = place.pattern.search(flags.text)
                        if match is not None and word.word not in noted:
                            noted.add(word.word)
                            yield from note_of(work, node, word, "", text=match.group())


def _is_prose(node: ast.expr) -> bool:
    """True for a docstring, a help text, and a part of an f-string, which is looked at as a whole."""
    match parent(node):
        case ast.keyword(arg="help" | "description" | "epilog") | ast.Expr() | ast.JoinedStr():
            return True
    return False


def _command(node: ast.expr) -> str:
    """The text of a command: of a string, an f-string (its fields are `$`), or a list of both."""
    if isinstance(node, ast.JoinedStr):
        return "".join(string_of(part) or "$" for part in node.values)
    if isinstance(node, (ast.List, ast.Tuple)):
        return " ".join(_command(part) or "$" for part in node.elts)
    return string_of(node) or ""
