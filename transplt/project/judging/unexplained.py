"""What a port computes otherwise. A statement that differs is unexplained until it does the same in another form."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from transplt.project.judging.forms import Form, Reader, apart, nodes, of_constant, operations
from transplt.project.judging.statements import TABLE, Apart, Statement
from transplt.project.judging.themes import OPTIONS, defaults_of, name_of
from transplt.project.judging.tricks import TESTS
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

#: Where a statement stands.
_Scope = tuple[str, str]
_Pair = tuple[Statement, Statement]
#: Names of what differs in every port, and of what no training computes.
_OF_HOST = re.compile(r"device|rank|gpu|npu|world|local|dist|worker|backend|log|print|path|dir\b|file|time", re.IGNORECASE)
#: Methods that Python and torch call, and of them those that only tell people something.
_CALLED = re.compile(r"__\w+__|forward")
_TELLS = ("__str__", "__repr__", "__format__")
#: Statements with fewer operations in common than this share of all are no pair.
_ALIKE = 0.5
#: So deep calls are followed.
_DEEP = 6
#: What reads settings, and what a training does.
_OF_SETTINGS = re.compile(r"argv|add_argument|parse_args|ArgumentParser|setattr|fields\(|safe_load|dataclass|field\(")
_TRAINS = re.compile(r"backward|\.step\(|loss|criterion|[Mm]odel\w*\(|[Nn]et\w*\(|optimizer|forward|torch\.|nn\.")
#: What mixed precision adds.
_PRECISION = frozenset({"autocast", "GradScaler", "scaler.update", "scaler.unscale"})
#: Steps of a training of which the order counts.
_STEPS = {
    "zero_grad": r"\.zero_grad\(", "backward": r"\.backward\(", "clip": r"clip_grad|\.unscale_\(",
    "ema": r"ema\w*\.update\(|update_ema", "scale": r"scaler\.update\(",
    "schedule": r"sched\w*\.step\(", "step": r"\.step\(|\.data\.\w+_\(",
}  # fmt: skip
_ORDER = frozenset({("backward", "step"), ("backward", "clip"), ("clip", "step"), ("step", "ema"), ("step", "scale")})


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Something that is computed otherwise: the statements of the original and of the port, and what it is. One that
    may come to the same is not `sure`."""

    before: Statement | None
    after: Statement | None
    what: str
    sure: bool = True


@dataclass(slots=True)
class Unexplained:
    """Both programs, read for what is computed otherwise. `apart` is what is left of the statements that differ when
    those that say the same are taken out; `told` is what is computed otherwise, by the statements that say it."""

    theirs: Sequence[Statement]
    mine: Sequence[Statement]
    apart: Apart
    is_optional: Callable[[Statement], bool]
    off: set[str]
    values: tuple[dict[str, set[str]], dict[str, set[str]]]
    told: list[Otherwise] = field(default_factory=list)
    _places: dict[_Scope, _Scope] = field(default_factory=dict)
    _forms: dict[int, Form] = field(default_factory=dict)
    _readers: tuple[Reader, Reader] = field(init=False)
    _pairs: list[_Pair] = field(default_factory=list)
    _changed: set[str] = field(default_factory=set)
    _homes: dict[_Scope, _Scope] = field(default_factory=dict)
    _names: tuple[dict[_Scope, set[str]], dict[_Scope, set[str]]] = field(init=False)
    _settled: set[int] = field(default_factory=set)
    _handed: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    _idle: dict[tuple[str, str, int], set[str]] = field(default_factory=dict)
    _aside: tuple[set[_Scope], set[_Scope]] = field(init=False)

    def __post_init__(self) -> None:
        self._places = _places(self.theirs, self.mine, self.apart)
        before, after = ({each[1].rpartition(".")[2] for each in side} - {""} for side in map(_scopes, (self.theirs, self.mine)))
        same = {one[1].rpartition(".")[2]: other[1].rpartition(".")[2] for one, other in self._places.items()}
        known = {*same.values()}
        self._readers = (
            Reader(self.theirs, before - {*same}, {*same}, {old: new for old, new in same.items() if old != new}),
            Reader(self.mine, after - known, known, {}, self.off),
        )
        for side, values in zip((self.theirs, self.mine), self.values, strict=True):
            for name, word in _named(side):
                values.setdefault(name, set()).add(word)
        self._aside = _aside(self.theirs), _aside(self.mine)
        self._match()
        self._weigh()
        self.told += _disordered(self.apart.alike, self._places)

    def form(self, statement: Statement, side: int) -> Form:
        """What a statement of the original (0) or the port (1) does."""
        if id(statement) not in self._forms:
            self._forms[id(statement)] = self._readers[side].form(statement)
        return self._forms[id(statement)]

    def _match(self) -> None:
        """Take out statements of one function that do the same to other names, and tell of those that do not."""
        there: dict[_Scope, tuple[list[Statement], list[Statement]]] = defaultdict(lambda: ([], []))
        gone, new = ([each for each in side if not TESTS.search(each.path)] for side in (self.apart.gone, self.apart.new))
        for each in gone:
            there[self._places.get((each.path, each.scope), ("", "?"))][0].append(each)
        for each in new:
            there[each.path, each.scope][1].append(each)
        self._names = _names_of(self.theirs), _names_of(self.mine)
        self._changed = {each.node.name for each in self.apart.new if isinstance(each.node, ast.FunctionDef)}
        self._homes = {new: old for old, new in self._places.items()}
        done: set[int] = set()
        for place, (gone, new) in there.items():
            known = self._names[0][self._homes.get(place, place)] & self._names[1][place]
            for one, other in self._paired(gone, new):
                found = self._compared(one, other, known)
                if found is None:
                    self._pairs.append((one, other))
                    continue
                silent = self.form(one, 0)[0] in ("$", "$said")
                self._settled |= set() if silent and not found else {id(one), id(other)}
                if found and not self._is_aside(other):
                    self.told.append(Otherwise(one, other, found))
                elif not found and not silent and "cpu" not in one.raw + other.raw:
                    done |= {id(one), id(other)}
                    self.apart.alike.append((one, other))
        left = ([each for each in side if id(each) not in done] for side in (self.apart.gone, self.apart.new))
        self.apart = Apart(*left, self.apart.alike)

    def _paired(self, gone: list[Statement], new: list[Statement]) -> Iterator[_Pair]:
        """Statements of one function that stand for each other, the closest first."""
        keys: tuple[Callable[[Statement, Form], Hashable], ...] = (
            lambda each, form: (_target(each), _blank(form, "$")),
            lambda each, form: (each.guards, _blank(form, "$")),
            lambda each, form: (_target(each), _blank(form, "$#")),
            lambda each, form: _target(each),
            lambda each, form: _blank(form, "$"),
            lambda each, form: _blank(form, "$#"),
        )
        for key in keys:
            there: dict[Hashable, list[Statement]] = defaultdict(list)
            for each in reversed(new):
                there[type(each.node).__name__, key(each, self.form(each, 1))].append(each)
            left = []
            for each in gone:
                if same := there[type(each.node).__name__, key(each, self.form(each, 0))]:
                    yield each, (other := same.pop())
                    new.remove(other)
                else:
                    left.append(each)
            gone = left
        for each in gone:
            mine = operations(self.form(each, 0))
            shares = [(_share(mine, operations(self.form(other, 1))), -place) for place, other in enumerate(new)]
            if shares and (best := max(shares))[0] >= _ALIKE:
                yield each, new.pop(-best[1])

    def _compared(self, one: Statement, other: Statement, known: set[str]) -> str | None:
        """What is another in the second of two statements: empty where they do the same; None where that is open."""
        found, handed = "", (set[str](), set[str]())
        forms = self.form(one, 0), self.form(other, 1)
        words = [Counter(nodes(form)) for form in forms]
        if forms[0] != forms[1] and words[0] == words[1]:
            return "the same operations are put together otherwise"
        for left, right in apart(*forms):
            if _is_name(left) and _is_name(right):
                old, new = left[0][1:], right[0][1:]
                if old != new and {old, new} <= known and not _OF_HOST.search(f"{old} {new}"):
                    if _target(one) != _target(other):
                        return None
                    found = f"{new} in the place of {old}"
            elif left[0][0] == "#" and right[0][0] == "#":
                found = f"{right[0][1:]} in the place of {left[0][1:]}"
            elif left[0][0] == "#" and _is_name(right):
                handed[0].add(left[0])
                if left[0] not in self._held(1, [right]) or self._is_set(right[0][1:], left[0]):
                    found = f"{right[0][1:]}, which is not {left[0][1:]}, in the place of {left[0][1:]}"
            elif right[0][0] == "#" and _is_name(left):
                handed[1].add(right[0])
                if right[0] not in self._held(0, [left]):
                    found = f"{right[0][1:]} in the place of {left[0][1:]}"
            else:
                if isinstance(one.node, ast.AnnAssign) and _numbers(words[0]) != _numbers(words[1]):
                    return "another default"
                left_out = [word[1:] for word in words[0] - words[1] if word[0] == "$" and word[1:] in known]
                if left_out and words[0] >= words[1] and words[0].keys() - words[1].keys() == {f"${each}" for each in left_out}:
                    if self._readers[1].own.isdisjoint(self._changed & _says(forms[1])):
                        return f"{', '.join(left_out)}: not given any more"
                return None
        for some, more in zip(self._handed, handed, strict=True):
            some |= more
        return found

    def _is_set(self, name: str, word: str) -> bool:
        """Whether the port gives a name another number than this."""
        for each in self.apart.new:
            match each.node:
                case ast.Assign(targets=[ast.Attribute(attr=attr)], value=ast.Constant(value=value)) if attr == name:
                    if of_constant(value)[0] != word:
                        return True
        return False

    def _held(self, side: int, forms: Iterable[Form]) -> set[str]:
        """The numbers and texts that may stand in the place of names in a program: values of these names, and what its
        statements hold that the other program has not."""
        names = {word[1:] for form in forms for word in nodes(form) if word[0] == "$"}
        held = {word for name in names for word in self.values[side].get(name, ())}
        return held | {word for each in (self.apart.gone, self.apart.new)[side] for word in _words(each)}

    def _is_aside(self, each: Statement) -> bool:
        """Whether a statement of the port is none of what is computed unless somebody asks for it."""
        asked = isinstance(each.node, ast.If) and not self.off.isdisjoint(re.findall(r"\w+", each.text))
        host = _is_option(each) and _OF_HOST.search(each.text) is not None
        return host or asked or TESTS.search(each.path) is not None or self.is_optional(each)

    def _weigh(self) -> None:
        """Tell what is done more or less often in a function of both, with what it calls that only one of them has."""
        places = {**self._places}
        moved = [(one, other) for one, other in self.apart.alike if places.get((one.path, one.scope)) != (other.path, other.scope)]
        sides = (
            [*self.apart.gone, *(one for one, _ in moved)],
            [*self.apart.new, *(other for _, other in moved)],
        )
        asked = [[each for each in side if self._counts(each, number)] for number, side in enumerate(sides)]
        anchors = ({*places}, {*places.values()})
        said: list[list[tuple[Statement, Counter[str]]]] = []
        for number, side in enumerate(asked):
            own: dict[str, list[Statement]] = defaultdict(list)
            for each in side:
                for name in _names_under(each.scope):
                    own[name].append(each)
            said.append([*self._reached(side, own, anchors[number], number)])
        totals = [sum((counts for _, counts in side), Counter[str]()) for side in said]
        spare = [Counter[str](), Counter[str]()]  # what only messages need may be computed elsewhere, or not at all
        for number, (side, kept) in enumerate(zip(sides, asked, strict=True)):
            counted = {id(each) for each in kept} | self._settled
            for each in side:
                if (id(each) not in counted or self.form(each, number)[0] in ("$", "$said")) and not TESTS.search(each.path):
                    spare[number] += self._readers[number].inside(each)
        lost, more = totals[0] - totals[1] - spare[1], totals[1] - totals[0] - spare[0]
        for counts, side in ((lost, 1), (more, 0)):
            if side == 0:
                for word in _PRECISION & {*counts}:
                    del counts[word]
            there = self._held(side, (self.form(each, side) for each in asked[side])) | self._handed[side]
            for word in [each for each in counts if each[0] == "#" and each in there]:
                del counts[word]
        words = {*lost} | {*more}
        sure = not any(lost and more and words & {*heads} and words <= {*heads, *rest} for heads, rest in read_table(TABLE)["spellings"])
        self._tell(said, lost, more, sure=sure)

    def _counts(self, each: Statement, side: int) -> bool:
        """Whether what a statement does has to be explained."""
        if id(each) in self._settled or TESTS.search(each.path) or (side and self._is_aside(each)) or each.scope.endswith(_TELLS) or _is_option(each):
            return False
        if (each.path, each.scope.partition(".")[0]) in self._aside[side]:
            return False
        if not self._readers[side].own.isdisjoint(_says(self.form(each, side))):
            return True
        text = ast.unparse(each.node) if hasattr(each.node, "body") else each.text
        if _is_of_settings(text) or (not side and "environ" in text):
            return False
        sets = _sets(each)
        if side and sets and not operations(self.form(each, 1)).keys() - {word for word in operations(self.form(each, 1)) if word[0] == "#"}:
            return not sets.isdisjoint(self._names[0][self._homes.get((each.path, each.scope), (each.path, each.scope))])
        return not sets or not sets <= self._unused(each.path, each.scope, side)

    def _unused(self, path: str, scope: str, side: int) -> set[str]:
        """Variables of a function that only one of the programs has, and of which only messages make use."""
        key = path, scope, side
        if key not in self._idle and scope:
            own = self._readers[side].own
            program = [each for each in (self.theirs, self.mine)[side] if (each.path, each.scope) == (path, scope)]
            differ = {id(each) for each in (self.apart.gone, self.apart.new)[side]}
            names = {name for each in program if id(each) in differ for name in _sets(each)}
            names -= self._names[1 - side][(self._homes if side else self._places).get((path, scope), ("", "?"))]
            uses = []
            for each in program:
                form = self.form(each, side)
                if operations(form) or not isinstance(each.node, ast.Expr):
                    used = {node.id for node in each.inside() if isinstance(node, ast.Name)}
                    uses.append((_sets(each) if own.isdisjoint(_says(form)) else set[str](), used))
            for _ in range(len(names)):
                names -= {name for sets, used in uses if not sets or not sets <= names for name in used}
            self._idle[key] = names
        return self._idle.get(key, set())

    def _reached(
        self, side: list[Statement], own: dict[str, list[Statement]], anchors: set[_Scope], number: int
    ) -> Iterator[tuple[Statement, Counter[str]]]:
        """Statements of functions that both have, and of what these call, as often as they call it."""
        defined = self._readers[number].defined
        called = self._readers[1 - number].attributes
        for each in side:
            if (each.path, each.scope) not in anchors:
                continue
            pending: list[tuple[Statement, frozenset[str]]] = [(each, frozenset())]
            while pending:
                one, above = pending.pop()
                form = self.form(one, number)
                counts = operations(form)
                names = Counter(word.rpartition(" ")[2].lstrip("$") for word in nodes(form) if word[0] == "$")
                if isinstance(one.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    name = one.node.name
                    overrides = one is each and one.scope and (_CALLED.fullmatch(name) or name in called)
                    names = Counter({name} if overrides and name not in _TELLS else ())
                if isinstance(one.node, ast.For) and any(isinstance(told.node, ast.Expr) and "yield" in told.text.lower() for name in names if name in defined for told in own[name]):
                    counts -= Counter(["For"])  # the loop is that of the generator
                yield one, counts
                for name in names.elements():
                    if name in defined and name not in above and len(above) < _DEEP:
                        here = [told for told in own[name] if told.path == one.path]
                        pending += ((told, above | {name}) for told in here or own[name])

    def _tell(
        self, said: list[list[tuple[Statement, Counter[str]]]], lost: Counter[str], more: Counter[str], *, sure: bool
    ) -> None:
        pairs = {id(other): one for one, other in self._pairs}
        whole = {id(each): counts for side in said for each, counts in side}
        told: set[int] = set()
        for each, counts in said[1]:
            before = pairs.get(id(each))
            old = whole.get(id(before), Counter[str]())
            new, gone = (counts - old) & more, (old - counts) & lost
            if new or gone:
                more, lost = more - new, lost - gone
                told |= {id(before)} if before is not None else set()
                self.told.append(Otherwise(before, each, _listed(new, gone), sure))
        for each, counts in said[0]:
            if id(each) not in told and (gone := counts & lost):
                lost -= gone
                self.told.append(Otherwise(each, None, _listed(Counter(), gone), sure))


def _listed(new: Counter[str], gone: Counter[str]) -> str:
    """What is done more and less."""
    parts = ((new, "more"), (gone, "gone"))
    return "; ".join(f"{word}: {', '.join(each.lstrip('#') for each in sorted(counts))}" for counts, word in parts if counts)


def _share(one: Counter[str], other: Counter[str]) -> float:
    return 2 * (one & other).total() / ((one + other).total() or 1)


def _blank(form: Form, kinds: str) -> Form:
    """A form without its names ($) or its numbers (#)."""
    head = form[0]
    if head[0] in kinds and len(form) == 1:
        return (head[0],)
    return (head, *(_blank(each, kinds) for each in form[1:]))


def _is_name(form: Form) -> bool:
    return len(form) == 1 and form[0][0] == "$" and len(form[0]) > 1


def _is_option(each: Statement) -> bool:
    return any(last_name(node.func) in OPTIONS for node in each.inside() if isinstance(node, ast.Call))


def _target(each: Statement) -> Hashable:
    """What a statement sets or calls."""
    match each.node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For():
            return ast.unparse(each.parts[0])
        case ast.Expr(value=ast.Call()):
            return ast.unparse(getattr(each.parts[0], "func", each.parts[0]))
    return each.guards, type(each.node).__name__


def _scopes(statements: Iterable[Statement]) -> set[_Scope]:
    return {(each.path, each.scope) for each in statements}


def _names_under(scope: str) -> Iterator[str]:
    """The names by which what is in a scope is reached: its own, and that of its class if Python calls it."""
    *outer, last = scope.split(".")
    yield last
    if outer and _CALLED.fullmatch(last) and last not in _TELLS:
        yield outer[-1]


def _places(theirs: Sequence[Statement], mine: Sequence[Statement], found: Apart) -> dict[_Scope, _Scope]:
    """Functions, classes and modules of the original -> what they are in the port: by name, else by what they hold."""
    before, after = _scopes(theirs), _scopes(mine)
    places = {each: each for each in before & after}
    named: dict[str, list[_Scope]] = defaultdict(list)
    for each in after - before:
        named[each[1]].append(each)
    votes: dict[_Scope, Counter[_Scope]] = defaultdict(Counter)
    for one, other in found.alike:
        votes[one.path, one.scope][other.path, other.scope] += 1
    sizes = Counter((each.path, each.scope) for each in theirs)
    taken = {*places.values()}
    for each in sorted(before - after):
        same = [other for other in named[each[1]] if each[1] and other not in taken]
        best = max(votes[each].items(), key=lambda pair: (pair[1], pair[0]), default=(each, 0))
        if len(same) == 1:
            places[each] = same[0]
        elif best[0] not in taken and best[0] in after and 2 * best[1] > sizes[each]:
            places[each] = best[0]
        taken.add(places.get(each, each))
    return places


def _names_of(statements: Iterable[Statement]) -> dict[_Scope, set[str]]:
    """The names in each function."""
    found: dict[_Scope, set[str]] = defaultdict(set)
    for each in statements:
        for node in each.inside():
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                    found[each.path, each.scope].add(name)
    return found


def _numbers(words: Counter[str]) -> Counter[str]:
    return Counter({word: count for word, count in words.items() if word[0] == "#"})


def _says(form: Form) -> set[str]:
    """The names of what a form calls or hands on."""
    return {word.rpartition(" ")[2].lstrip("$") for word in nodes(form)}


def _sets(each: Statement) -> set[str]:
    """The variables that a statement gives a value, or adds something to."""
    match each.node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return {node.id for part in each.parts for node in ast.walk(part) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "update" | "add"))):
            return {name}
    return set()


def _is_of_settings(text: str) -> bool:
    return _OF_SETTINGS.search(text) is not None and not _TRAINS.search(text)


def _aside(statements: Iterable[Statement]) -> set[_Scope]:
    """Functions and classes that hold and read settings."""
    texts: dict[_Scope, list[Statement]] = defaultdict(list)
    for each in statements:
        if each.scope:
            texts[each.path, each.scope.partition(".")[0]].append(each)
    return {
        place for place, told in texts.items()
        if all(isinstance(each.node, ast.AnnAssign) for each in told) or _is_of_settings(" ".join(each.text for each in told))
    }  # fmt: skip


def _named(statements: Iterable[Statement]) -> Iterator[tuple[str, str]]:
    """Names that a program gives values, and these."""
    for each in statements:
        pairs: list[tuple[str, ast.AST]] = []
        match each.node:
            case ast.Assign() | ast.AnnAssign() if each.parts:
                pairs = [(name_of(part), each.parts[-1]) for part in each.parts[:-1] if isinstance(part, ast.expr)]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pairs = [*defaults_of(each).items()]
        for node in each.inside():
            if isinstance(node, ast.Call) and last_name(node.func) in OPTIONS:
                names = [str(given.value) for given in node.args if isinstance(given, ast.Constant)]
                pairs += ((name.lstrip("-").replace("-", "_"), word.value) for name in names for word in node.keywords if word.arg == "default")
            elif isinstance(node, ast.Call):
                pairs += ((word.arg or "", word.value) for word in node.keywords)
            elif isinstance(node, ast.Dict):
                pairs += ((str(getattr(key, "value", "")), value) for key, value in zip(node.keys, node.values, strict=True))
        for name, value in pairs:
            yield from ((name, of_constant(node.value)[0]) for node in ast.walk(value) if isinstance(node, ast.Constant))


def _words(each: Statement) -> Iterator[str]:
    return (of_constant(node.value)[0] for node in each.inside() if isinstance(node, ast.Constant))


def _disordered(alike: Iterable[_Pair], places: dict[_Scope, _Scope]) -> Iterator[Otherwise]:
    """Steps of a training that come in another order, or once for each round of another loop."""
    there: dict[_Scope, list[tuple[Statement, Statement, str]]] = defaultdict(list)
    for one, other in alike:
        if places.get((one.path, one.scope)) != (other.path, other.scope) or one.said:
            continue
        if one.loop != other.loop and isinstance(one.node, (ast.Expr, ast.AugAssign)):
            yield Otherwise(one, other, f"in {other.loop} loops now, before in {one.loop}")
        kind = next((kind for kind, form in _STEPS.items() if re.search(form, one.text)), "")
        kind = kind or ("step" if isinstance(one.node, (ast.Expr, ast.Assign)) and re.search(r"\btrain\w*\(\w", one.text) else "")
        if kind and isinstance(one.node, (ast.Expr, ast.Assign)):
            there[other.path, other.scope].append((one, other, kind))
    for steps in there.values():
        steps.sort(key=lambda each: each[0].line)
        for number, (_, other, kind) in enumerate(steps):
            for before, after, later in steps[number + 1 :]:
                if after.line > other.line:
                    continue
                between = kind == "zero_grad" and later == "backward" and any(
                    last == "step" and last_one.line > other.line for _, last_one, last in steps[number + 1 :]
                )  # fmt: skip
                if between or (kind, later) in _ORDER or ("schedule" in (kind, later) and kind != later):
                    yield Otherwise(before, after, f"the {later} comes before the {kind} now")
                    break
