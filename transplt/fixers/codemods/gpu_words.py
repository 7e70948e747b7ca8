"""Words that bind to a GPU without naming CUDA, in Python: arguments of libraries, keys, comparisons, commands.

What they are, where they count and what is right on an NPU is data: rules/support/gpu_words.json.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.base.text.commands import flags_of, logical_lines
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.npu_choices import NPU, mentions_npu
from transplt.flow.reached import places
from transplt.rules.gpu_words import CallPlace, GpuWord, KeyPlace, Value, gpu_words, level_and_help
from transplt.syntax.asks import has_key, keyword_of, lacks, last_name, string_of
from transplt.syntax.names import assigned_value
from transplt.syntax.scan import FUNCTIONS, chain, parent
from transplt.trees.literals import words_in_literal

fixer = Fixer(__name__, code="NPU144", rank=340, words=gpu_words().literals)

#: Methods of a dict whose first argument is a key.
_BY_KEY = ("get", "pop", "setdefault")
#: What starts a command that it is given as a string or a list of strings.
_STARTS = ("run", "call", "check_call", "check_output", "Popen", "popen", "system", "getoutput", "getstatusoutput")
_LONGEST = 120
_GPU = re.compile("gpu", re.IGNORECASE)
#: A string that is the command of a container, whoever starts it.
_CONTAINER = re.compile(r"\s*(?:(?:sudo|nohup)[ \t]+)*(?:docker|podman)[ \t]+(?:container[ \t]+)?(?:run|create)[ \t]")
#: A line of a job script that a program writes.
_DIRECTIVE = re.compile(r"^[ \t]*#(?:SBATCH|PBS|BSUB)\b", re.MULTILINE)


@fixer.on(ast.Module)
def words_of_gpus(work: Work, tree: ast.Module) -> Finds:
    """Report the words of the table where they stand in their places."""
    imported = _imported_packages(work)
    yield from _arguments(work, imported)
    yield from _defaults(work)
    yield from _names(work)
    strings = _strings(work, tree, imported)
    yield from _comparisons(work, strings)
    yield from _keys(work, strings, imported)
    yield from _commands(work, tree)
    for target in work.scan.stores:
        for store, word in gpu_words().stores:
            if target.attr == store.store.rpartition(".")[2] and work.names.qualified(target) == store.store:
                above = parent(target)
                if isinstance(above, ast.Assign) and _is(store.value, above.value):
                    yield from _note(work, above, word, store.store)


def _note(
    work: Work, node: ast.expr | ast.stmt | ast.keyword, word: GpuWord, api: str, value: str = "", text: str = ""
) -> Finds:
    """The note of a word; `text` is what stands there (the node's own by default), `value` its value."""
    pins = work.settings.pins
    if work.settings.torch_version not in word.versions or not word.is_for(pins) or _beside_the_npu(work, node):
        return
    level, help_ = level_and_help(word, pins)
    text = " ".join((text or work.text(node)).split())[:_LONGEST]
    message = word.message.replace("{text}", text).replace("{value}", value)
    yield work.note(node, word.code, message, level=level, api=word.of or api, help=help_, effort=word.effort)


def _beside_the_npu(work: Work, node: ast.AST) -> bool:
    """True in a condition of which another arm speaks of the NPU (`if kind == "gpu": ... elif kind == "npu": ...`)."""
    if not mentions_npu(work.source.utf8):
        return False
    while not isinstance(node, (ast.Module, *FUNCTIONS)):
        inner, node = node, parent(node)
        if isinstance(node, (ast.If, ast.IfExp)):
            body, orelse = ([each] if isinstance(each, ast.expr) else each for each in (node.body, node.orelse))
            others = [node.test, *(orelse if inner in body else body)]
            if any(NPU.search(work.source.utf8, *work.source.extent(each)) for each in others):
                return True
    return False


# --- arguments of calls ----------------------------------------------------------------------------------------------


def _arguments(work: Work, imported: set[str]) -> Finds:
    by_keyword: dict[str, list[tuple[CallPlace, GpuWord]]] = {}
    for place, word in gpu_words().calls:
        if not place.imports or not imported.isdisjoint(place.imports):
            if place.absent:
                yield from _without(work, place, word)
                continue
            by_keyword.setdefault(place.argument, []).append((place, word))
    positional = [each for places in by_keyword.values() for each in places if each[0].position >= 0]
    by_place: dict[int, list[tuple[CallPlace, GpuWord]]] = {}  # those of each call, by its id
    for place, word in positional:
        for call in _called(work, place):
            by_place.setdefault(id(call), []).append((place, word))
    for call in work.scan.calls:
        noted: set[str] = set()
        for keyword in call.keywords:
            for place, word in by_keyword.get(keyword.arg or "", ()):
                yield from _argument(work, call, keyword, keyword.value, place, word, noted)
        for place, word in by_place.get(id(call), ()):
            if len(call.args) > place.position:
                value = call.args[place.position]
                yield from _argument(work, call, value, value, place, word, noted)


def _called(work: Work, place: CallPlace) -> list[ast.Call]:
    """The calls of which a place may be an argument."""
    return work.calls_by_name(place.calls) if place.by_full_name else work.scan.calls


def _argument(
    work: Work,
    call: ast.Call,
    node: ast.keyword | ast.expr,
    value: ast.expr,
    place: CallPlace,
    word: GpuWord,
    noted: set[str],
) -> Finds:
    if word.word in noted:
        return
    full = work.names.qualified(call.func)
    if not place.names(full, last_name(call.func), isinstance(call.func, ast.Name)):
        return
    wanted = place.value
    given = next((each for each in _may_be(work, value) if _is(wanted, each)), None)
    if wanted.kind == "unseen":
        given = value if _unseen(work, value) else None
    if given is None:
        return
    noted.add(word.word)
    if place.value.kind == "holds":
        for constant in _constants(wanted, given):
            if work.take(constant) and call not in chain(constant) and constant in work.scan.strings:
                yield from _note(work, constant, word, full or "", repr(constant.value))
                yield from _gate_of(work, constant)
    shown = repr(given.value) if isinstance(given, ast.Constant) else work.text(value)
    yield from _note(work, call if place.whole else node, word, full or "", shown, work.text(node))


def _gate_of(work: Work, constant: ast.Constant) -> Finds:
    """The question for CUDA in front of a word that stays: moved alone, it would choose CUDA where there is an NPU."""
    node: ast.AST = constant
    while not isinstance(node, (ast.Module, *FUNCTIONS)):
        inner, node = node, parent(node)
        if not isinstance(node, (ast.If, ast.IfExp)):
            continue
        body = node.body if isinstance(node.body, list) else [node.body]
        if inner in body and "cuda.is_available" in (asked := work.text(node.test)) and "not" not in asked:
            for each in ast.walk(node.test):
                work.take(each)
            yield work.keep(node.test, "cuda-condition")
            return


def _without(work: Work, place: CallPlace, word: GpuWord) -> Finds:
    """Calls that do not have an argument, also where a star may bring it, and those of derived classes of the file."""
    bases = ((each.name, base) for each in work.scan.classes for base in each.bases)
    derived = [name for name, base in bases if work.names.qualified(base) in place.calls]
    for call in (*work.calls_by_name(place.calls), *work.scan.calls_by_last_name((*derived, *place.lasts))):
        full = work.names.qualified(call.func) or last_name(call.func)
        if (full in place.calls and work.defines_package(full)) or any(
            (given := keyword_of(call, each)) and not (place.lacks and not _brings(work, given, place.lacks))
            for each in place.absent
        ):
            continue
        missing = lacks(call, place.argument, place.position if place.position >= 0 else len(call.args))
        stars = (keyword.value for keyword in call.keywords if keyword.arg is None)
        if (missing is not False and not any(_brings(work, star, place.argument) for star in stars)) or place.lacks:
            yield from _note(work, call, word, full)


def _brings(work: Work, star: ast.expr, argument: str) -> bool:
    """True where what stands behind `**` is seen to have a key of the name of an argument."""
    for value in (star, *_may_be(work, star)):
        if isinstance(value, ast.Dict) and has_key(value, argument):
            return True
        if isinstance(value, ast.Call) and last_name(value.func) == "dict" and keyword_of(value, argument) is not None:
            return True
    return isinstance(star, ast.Name) and any(
        isinstance(above := parent(each), ast.Subscript) and string_of(above.slice) == argument
        for each in work.scan.names.get(star.id, ())
    )


def _may_be(work: Work, value: ast.expr) -> Iterator[ast.expr]:
    """An expression, what a variable of the file was given that it reads, and the arms of conditional expressions."""
    yield value
    found = work.names.lookup(value.id, work.scan.scope_of(value)) if isinstance(value, ast.Name) else None
    values = [assigned_value(binding.node) for binding in found[1] if binding.kind == "assign"] if found else []
    stack = [value, *(each for each in values if each is not None)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.IfExp):
            stack += [node.orelse, node.body]
        elif isinstance(node, ast.BoolOp):
            stack += reversed(node.values)
        elif node is not value and not isinstance(node, ast.Name):
            yield node


def _unseen(work: Work, value: ast.expr) -> bool:
    """True for an expression of which nothing is known here: a parameter, an attribute, an item."""
    return isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) and len(list(_may_be(work, value))) == 1


def _is(wanted: Value, value: ast.expr | None) -> bool:
    """True for an expression that is, or may be, such a value."""
    if wanted.kind == "any":
        return True
    if value is None:
        return False
    if wanted.kind == "holds":
        return bool(_constants(wanted, value))
    if isinstance(value, ast.Constant):
        return wanted.takes(value.value)
    if wanted.kind == "integer" and isinstance(value, ast.UnaryOp):
        return False
    return wanted.kind == "given"


def _constants(wanted: Value, value: ast.expr) -> list[ast.Constant]:
    return [node for node in ast.walk(value) if isinstance(node, ast.Constant) and node.value in wanted.values]


def _imported_packages(work: Work) -> set[str]:
    """The first names of what the file imports."""
    return {
        name.partition(".")[0]
        for node in work.scan.imports
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }


# --- defaults --------------------------------------------------------------------------------------------------------


def _defaults(work: Work) -> Finds:
    """Values that such an argument gets elsewhere: of a parameter, an attribute, a field or an option of its name."""
    wanted: dict[str, list[tuple[CallPlace, GpuWord]]] = {}
    for place, word in gpu_words().calls:
        if place.anywhere:
            wanted.setdefault(place.argument, []).append((place, word))
    text = work.source.utf8.replace(b"-", b"_")
    if not any(argument.encode() in text for argument in wanted):
        return
    for name, node, value in (*_of_functions(work), *_of_assignments(work), *_of_options(work)):
        if name not in wanted:
            continue
        if isinstance(value, ast.Call) and last_name(value.func) in ("field", "Field"):
            value = keyword_of(value, "default") or value
        for place, word in wanted[name]:
            if isinstance(value, ast.Constant) and _is(place.value, value):
                yield from _note(work, node, word, name, repr(value.value))


def _of_functions(work: Work) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    for function in work.scan.functions:
        spec = function.args
        positional = [*spec.posonlyargs, *spec.args]
        pairs = [*zip(reversed(positional), reversed(spec.defaults), strict=False)]
        for argument, default in (*pairs, *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)):
            if default is not None:
                yield argument.arg, default, default


def _of_assignments(work: Work) -> Iterator[tuple[str, ast.expr | ast.stmt, ast.expr]]:
    for target in work.scan.stores:
        above = parent(target)
        if isinstance(above, (ast.Assign, ast.AnnAssign)) and above.value is not None:
            yield target.attr, above, above.value
    for owner in work.scan.classes:
        for statement in owner.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                field = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                yield last_name(field), statement, statement.value


def _of_options(work: Work) -> Iterator[tuple[str, ast.expr, ast.expr]]:
    for call in work.scan.calls_by_last_name(("add_argument", "option")):
        default = keyword_of(call, "default")
        names = [text for each in call.args if (text := string_of(each)) is not None]
        if default is not None and names:
            yield names[-1].lstrip("-").replace("-", "_").rpartition(".")[2], default, default


# --- names -----------------------------------------------------------------------------------------------------------


def _names(work: Work) -> Finds:
    for place, word in gpu_words().names:
        head, _, last = place.name.rpartition(".")
        for node in (*work.scan.attributes.get(last, ()), *work.scan.names.get(last, ())):
            if not head or work.names.qualified(node) == place.name:
                yield from _note(work, node, word, place.name.lstrip("."))


# --- strings ---------------------------------------------------------------------------------------------------------


def _strings(work: Work, tree: ast.Module, imported: set[str]) -> list[ast.Constant]:
    """The strings of a file that are words of the table by what it imports, in the order of the file."""
    table, text = gpu_words(), work.source.utf8
    wanted = {place.value for place, _ in table.compares}
    wanted.update(place.key for place, _ in table.keys if not place.imports or not imported.isdisjoint(place.imports))
    if not any(f"{quote}{each}{quote}".encode() in text for each in wanted for quote in "\"'"):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and string_of(node) in wanted]


def _comparisons(work: Work, strings: list[ast.Constant]) -> Finds:
    """`state.distributed_type in ["MULTI_GPU", "DEEPSPEED"]`: on NPUs it is another word."""
    for node in strings:
        compare: ast.AST = parent(node)
        if isinstance(compare, (ast.List, ast.Tuple, ast.Set)):
            compare = parent(compare)
        if not isinstance(compare, ast.Compare):
            continue
        sides = {last_name(side) for side in (compare.left, *compare.comparators)}
        for place, word in gpu_words().compares:
            known = any(string_of(each) == place.becomes for each in ast.walk(compare))
            if node.value == place.value and place.compared in sides and not known and work.take(node):
                new = words_in_literal({place.value: place.becomes})
                yield Edit(node, word.code, word.message, new, api=place.value)


def _keys(work: Work, strings: list[ast.Constant], imported: set[str]) -> Finds:
    for place, word in gpu_words().keys if strings else ():
        if place.imports and imported.isdisjoint(place.imports):
            continue
        for node in strings:
            if node.value == place.key and _is_key(work, place, node):
                yield from _note(work, node, word, place.key)


def _is_key(work: Work, place: KeyPlace, node: ast.Constant) -> bool:
    above = parent(node)
    value: ast.expr | None = None
    if isinstance(above, ast.Dict):
        keys = [index for index, key in enumerate(above.keys) if key is node]
        if not keys:
            return False
        value = above.values[keys[0]]
    elif isinstance(above, ast.Subscript) and above.slice is node:
        holder = parent(above)
        value = holder.value if isinstance(holder, ast.Assign) and above in holder.targets else None
    elif not (isinstance(above, ast.Call) and last_name(above.func) in _BY_KEY and above.args[:1] == [node]):
        return False
    if not (place.reads if value is None else _is(place.value, value)):
        return False
    return place.within is None or any(place.within.search(name) for name in _names_around(work, node))


def _names_around(work: Work, node: ast.AST) -> Iterator[str]:
    """What the things around a node are called, up to its statement: keywords, callees, targets, what is indexed."""
    while not isinstance(node, ast.stmt):
        node = parent(node)
        if isinstance(node, ast.keyword):
            yield node.arg or ""
        elif isinstance(node, ast.Call):
            yield work.text(node.func)
        elif isinstance(node, ast.Subscript):
            yield work.text(node.value)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (work.text(target) for target in targets)


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
                lines = [line for line in _command(node).split("\n") if _DIRECTIVE.match(line)]
                if not lines and _CONTAINER.match(command := _command(node)) and not _is_shown(work, node):
                    lines = command.split("\n")
                if lines:
                    found.setdefault(id(node), (node, lines))
    for node, lines in found.values():
        noted: set[str] = set()
        for first, group in logical_lines(lines, _GPU):
            for command, wanted in gpu_words().commands:
                for flags in flags_of(group, command, first):
                    for place, word in wanted:
                        match = place.pattern.search(flags.text)
                        if match is not None and word.word not in noted:
                            noted.add(word.word)
                            yield from _note(work, node, word, "", text=match.group())


def _command(node: ast.expr) -> str:
    """The text of a command: of a string, an f-string (its fields are `$`), or a list of both."""
    if isinstance(node, ast.JoinedStr):
        return "".join(string_of(part) or "$" for part in node.values)
    if isinstance(node, (ast.List, ast.Tuple)):
        return " ".join(_command(part) or "$" for part in node.elts)
    return string_of(node) or ""


def _is_shown(work: Work, node: ast.expr) -> bool:
    """True for a text that goes to people alone."""
    return {each.kind for each in places(work.slots, node)} == {"prose"}


def _is_prose(node: ast.expr) -> bool:
    """True for a docstring, a help text, and a part of an f-string, which is looked at as a whole."""
    above = parent(node)
    if isinstance(above, ast.keyword):
        return above.arg in ("help", "description", "epilog")
    return isinstance(above, (ast.Expr, ast.JoinedStr))
