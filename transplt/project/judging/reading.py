"""One of two programs as it is held against the other: which functions are the same, what names stand for."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from transplt.project.judging.forms import Form, Reader, nodes, of_constant, operations
from transplt.project.judging.statements import Apart, Statement, upright
from transplt.project.judging.themes import OPTIONS, defaults_of, name_of
from transplt.syntax.nodes import last_name

#: Where a statement stands: its file and the function around it.
Scope = tuple[str, str]
#: Methods that Python and torch call, and of them those that only tell people something.
_CALLED = re.compile(r"__\w+__|forward")
TELLS = ("__str__", "__repr__", "__format__")
#: So deep calls are followed, and so many statements for one.
_DEEP, _MOST = 6, 2000
#: What reads settings, and what a training does.
_SETTINGS = re.compile(r"argv|add_argument|parse_args|ArgumentParser|setattr|fields\(|safe_load|dataclass|field\(")
_TRAINS = re.compile(r"backward|\.step\(|loss|criterion|[Mm]odel\w*\(|[Nn]et\w*\(|optimizer|forward|torch\.|nn\.")
_PATH, _IS_PATH = re.compile(r"Path\(|os\.path"), re.compile(r"(?:path|file|dir|folder)$")
_ENVIRONMENT = re.compile(r"environ")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: What a call hands on to what it is called on.
_ADDS = ("append", "extend", "update", "add")


class Reading:
    """The `statements` of a program, of which some `differ` from those of the other one. `values` are what names stand
    for in it."""

    def __init__(
        self, statements: Sequence[Statement], differ: Sequence[Statement], reader: Reader, values: dict[str, set[str]]
    ) -> None:
        self.statements, self.differ, self.reader, self.values = statements, [*differ], reader, values
        self.words = Counter(word for each in differ for part in each.parts for word in _words(part))
        self.set: dict[str, set[str]] = defaultdict(set)
        self.names: dict[Scope, set[str]] = defaultdict(set)
        self.uses = Counter[tuple[str, str, str]]()  # of a module: by all of its file
        self.fields = defaultdict[str, set[str]](set)
        self._inside: dict[Scope, list[Statement]] = defaultdict(list)
        for each in statements:
            self._inside[each.place].append(each)
            self.names[each.place].update(names := {*_names(each)})
            self.uses.update((each.path, scope, name) for scope in {each.scope, ""} for name in names)
            self.fields[each.path].update(
                node.attr for node in each.inside()
                if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"
            )  # fmt: skip
            for name, value in _named(each):
                values.setdefault(name, set()).update(_words(value))
        for each in differ:
            match each.node:
                case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Constant(value=number)):
                    self.set[name].add(of_constant(number)[0])
        self._settings = _of_settings(statements)
        self._forms: dict[int, Form] = {}
        self._unused: dict[Scope, set[str]] = {}

    def form(self, statement: Statement) -> Form:
        """What a statement does."""
        if id(statement) not in self._forms:
            self._forms[id(statement)] = self.reader.form(statement)
        return self._forms[id(statement)]

    def plain_tests(self, place: Scope) -> set[str]:
        """The conditions in a function that leave nothing out behind them."""
        found = set[str]()
        for each in self._inside[place]:
            match each.node, each.parts:
                case ast.If(body=[*_, last]), [ast.expr() as test] if not isinstance(last, _LEAVES):
                    found.add(ast.unparse(upright(test)[0]))
        return found

    def loops(self, each: Statement, place: Scope | None) -> int | None:
        """In how many loops of a function a statement is done, where that calls the statement's function once."""
        name = _last(each.place)
        asked = self._inside[place] if name and place and place != each.place else ()
        calls = [one.loop for one in asked if re.search(rf"\b{name}\(", one.text)]
        return calls[0] + each.loop if len(calls) == 1 else None

    def held(self, forms: Iterable[Form], here: Iterable[Statement] = ()) -> set[str]:
        """The numbers and texts that may stand in the place of names: values of these names, and what is in statements
        that the other program has not, other than those `here`."""
        names = {word[1:] for form in forms for word in nodes(form) if word[0] == "$"}
        words = self.words - Counter(word for each in here for part in each.parts for word in _words(part))
        return {*words}.union(*(self.values.get(name, ()) for name in names))

    def stand_ins(self, form: Form) -> set[str]:
        """The numbers and texts that may stand in the place of a name: none where it has several numbers."""
        numbers = [each for each in self.values.get(form[0][1:], ()) if re.fullmatch(r"#-?\d[\d.e+-]*", each)]
        return self.held([form]) if len(numbers) < len("xy") else set()

    def says_own(self, form: Form) -> bool:
        """Whether a form calls functions of the program."""
        return not self.reader.own.isdisjoint(word.rpartition(" ")[2].lstrip("$") for word in nodes(form))

    def is_of_settings(self, each: Statement) -> bool:
        """Whether a statement reads settings or puts paths together, or stands where nothing else is done."""
        targets = (node for target in getattr(each.node, "targets", ()) for node in ast.walk(target))
        names = [node.id for node in targets if isinstance(node, ast.Name)]
        if names and all(map(_IS_PATH.search, names)) and self._only_does(each, _PATH):
            return True
        return (each.path, each.scope.partition(".")[0]) in self._settings or self._only_does(each, _SETTINGS)

    def asks_environment(self, each: Statement) -> bool:
        """Whether a statement reads a variable of the environment, and does nothing else."""
        return self._only_does(each, _ENVIRONMENT)

    def _only_does(self, each: Statement, words: re.Pattern[str]) -> bool:
        text = ast.unparse(each.node) if hasattr(each.node, "body") else each.text
        return not self.says_own(self.form(each)) and words.search(text) is not None and not _TRAINS.search(text)

    def is_unused(self, each: Statement, elsewhere: Collection[str]) -> bool:
        """Whether a statement is about variables that the same function of the other program, with the names
        `elsewhere`, does not have, and of which only messages make use."""
        sets = sets_of(each)
        return bool(sets and each.scope) and sets <= self._unused_in(each.place, elsewhere)

    def _unused_in(self, place: Scope, elsewhere: Collection[str]) -> set[str]:
        if place not in self._unused:
            differ = {id(each) for each in self.differ}
            names = {name for each in self._inside[place] if id(each) in differ for name in sets_of(each)}
            names.difference_update(elsewhere)
            uses = []
            for each in self._inside[place]:
                form = self.form(each)
                if operations(form) or not isinstance(each.node, ast.Expr):
                    used = {node.id for node in each.inside() if isinstance(node, ast.Name)}
                    uses.append((set() if self.says_own(form) else sets_of(each), used))
            for _ in range(len(names)):
                names -= {name for sets, used in uses if not sets or not sets <= names for name in used}
            self._unused[place] = names
        return self._unused[place]

    def reached(
        self, side: Sequence[Statement], anchors: Collection[Scope], called: Collection[str]
    ) -> Iterator[tuple[Scope, Statement, Counter[str]]]:
        """What is done for each of the functions that both programs have (`anchors`), in their statements and in what
        these call that the other one does not have, as often as they call it. `called` are methods that are called
        anyhow."""
        own: dict[str, list[Statement]] = defaultdict(list)
        for each in side:
            for name in _names_under(each.scope):
                own[name].append(each)
        yields = {name for name, told in own.items() if any("yield" in each.text.lower() for each in told)}
        for first in side:
            if (first.path, first.scope) not in anchors:
                continue
            pending: list[tuple[Statement, frozenset[str]]] = [(first, frozenset())]
            for _ in range(_MOST):
                if not pending:
                    break
                each, above = pending.pop()
                counts, names = operations(self.form(each)), self._asked(each, first, called)
                if isinstance(each.node, ast.For) and yields & {*names}:
                    counts -= Counter(["For"])  # the loop is that of the generator
                yield (first.path, first.scope), each, counts
                for name in names.elements():
                    if name not in above and len(above) < _DEEP:
                        here = [told for told in own[name] if told.path == each.path]
                        pending += ((told, above | {name}) for told in here or own[name])

    def _asked(self, each: Statement, first: Statement, called: Collection[str]) -> Counter[str]:
        """The functions that a statement asks for, of those that only this program has."""
        names = Counter(word.rpartition(" ")[2].lstrip("$") for word in nodes(self.form(each)) if word[0] == "$")
        if isinstance(each.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = each.node.name
            overrides = each is first and each.scope and (_CALLED.fullmatch(name) or name in called)
            names = Counter({name} if overrides and name not in TELLS else ())
        return Counter({name: count for name, count in names.items() if name in self.reader.defined})


def readings(
    sides: tuple[Sequence[Statement], Sequence[Statement]], apart: Apart, places: dict[Scope, Scope],
    off: Mapping[str, str], values: tuple[dict[str, set[str]], dict[str, set[str]]],
) -> tuple[Reading, Reading]:  # fmt: skip
    """Both programs. `off` are new options that are off unless asked for."""
    before, after = ({_last(each) for each in _scopes(side)} - {""} for side in sides)
    same = {_last(one): _last(other) for one, other in places.items()}
    known = {*same.values()}
    readers = (
        Reader(sides[0], before - {*same}, {*same}, {old: new for old, new in same.items() if old != new}),
        Reader(sides[1], after - known, known, {}, off),
    )
    return (
        Reading(sides[0], apart.gone, readers[0], values[0]),
        Reading(sides[1], apart.new, readers[1], values[1]),
    )


def places_of(theirs: Sequence[Statement], mine: Sequence[Statement], found: Apart) -> dict[Scope, Scope]:
    """Functions, classes and modules of the original -> what they are in the port: by name, else by what they hold."""
    before, after = _scopes(theirs), _scopes(mine)
    places = {each: each for each in before & after}
    named: dict[str, list[Scope]] = defaultdict(list)
    for each in after - before:
        named[each[1]].append(each)
    votes: dict[Scope, Counter[Scope]] = defaultdict(Counter)
    for one, other in found.alike:
        votes[one.path, one.scope][other.path, other.scope] += 1
    sizes = Counter(each.place for each in theirs)
    taken = {*places.values()}
    for each in sorted(before - after):
        same = [other for other in named[each[1]] if each[1] and other not in taken]
        best, count = max(votes[each].items(), key=lambda pair: (pair[1], pair[0]), default=(each, 0))
        if len(same) == 1:
            places[each] = same[0]
        elif best in after - taken and 2 * count > sizes[each]:
            places[each] = best
        taken.add(places.get(each, each))
    return places


def sets_of(each: Statement) -> set[str]:
    """The variables that a statement gives a value, or adds something to."""
    match each.node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            stores = (node for node in each.inside() if isinstance(node, ast.Name))
            added = {ast.unparse(each.node.target)} if isinstance(each.node, ast.AugAssign) else set()
            return added | {node.id for node in stores if isinstance(node.ctx, ast.Store)}
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))) if attr in _ADDS:
            return {name}
    return set()


def fields_set(each: Statement) -> Iterator[ast.Attribute]:
    """The fields that a statement sets: `args.start` of `args.start = saved["epoch"]`."""
    yield from (node for node in each.inside() if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))


def is_option(each: Statement) -> bool:
    """Whether a statement makes an option."""
    return any(last_name(node.func) in OPTIONS for node in each.inside() if isinstance(node, ast.Call))


def _last(place: Scope) -> str:
    return place[1].rpartition(".")[2]


def _scopes(statements: Iterable[Statement]) -> set[Scope]:
    return {each.place for each in statements}


def _names_under(scope: str) -> Iterator[str]:
    """The names by which what is in a scope is reached: its own, and that of its class if Python calls it."""
    *outer, last = scope.split(".")
    yield last
    if outer and _CALLED.fullmatch(last) and last not in TELLS:
        yield outer[-1]


def _of_settings(statements: Iterable[Statement]) -> set[Scope]:
    """Functions and classes that only hold and read settings."""
    texts: dict[Scope, list[Statement]] = defaultdict(list)
    for each in statements:
        if each.scope:
            texts[each.path, each.scope.partition(".")[0]].append(each)
    found = set()
    for place, told in texts.items():
        text = " ".join(each.text for each in told)
        reads = _SETTINGS.search(text) is not None and not _TRAINS.search(text)
        if reads or all(isinstance(each.node, ast.AnnAssign) for each in told):
            found.add(place)
    return found


def _names(each: Statement) -> Iterator[str]:
    for node in each.inside():
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name


def _words(part: ast.AST) -> Iterator[str]:
    return (of_constant(node.value)[0] for node in ast.walk(part) if isinstance(node, ast.Constant))


def _named(each: Statement) -> Iterator[tuple[str, ast.AST]]:
    """The names to which a statement gives something, and what."""
    match each.node:
        case ast.Assign() | ast.AnnAssign() if each.parts:
            yield from ((name_of(part), each.parts[-1]) for part in each.parts[:-1] if isinstance(part, ast.expr))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from defaults_of(each).items()
    for node in each.inside():
        match node:
            case ast.Call(func=function, args=args, keywords=words) if last_name(function) in OPTIONS:
                default = next((word.value for word in words if word.arg == "default"), ast.Constant(None))
                for given in args:
                    yield str(getattr(given, "value", "")).lstrip("-").replace("-", "_"), default
            case ast.Call(keywords=words):
                yield from ((word.arg or "", word.value) for word in words)
            case ast.Dict(keys=keys, values=values):
                yield from ((str(getattr(key, "value", "")), value) for key, value in zip(keys, values, strict=True))
