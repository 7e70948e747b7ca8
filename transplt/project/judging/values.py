"""What a function computes, with the values of its variables and its helpers put in: two functions that come to the
same then are the same in another form, and where one thing is left, that is what the port changed."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from transplt.project.judging.forms import EITHER_WAY, Form, Reader, nodes, parts_of, sorted_form
from transplt.project.judging.reading import Reading, Scope, is_option
from transplt.project.judging.statements import Statement, asked_in, stands_aside
from transplt.project.judging.themes import theme_of
from transplt.syntax.nodes import last_name

#: So many nodes of a value are followed, and so deep calls.
_MOST, _DEEP = 3000, 4
#: Calls whose number counts, whether somebody uses what they give or not.
_COUNTS = re.compile(r"\(\)|.*rand.*|.*sample.*|normal|uniform|multinomial|step|backward|load_state_dict|train|eval")
_HANDED_ON = ("initialize", "prepare")
_EACH, _INDEX, _ALL, _NONE = "_each", "_index", "_all", "_none"
_LOSSES = re.compile(r"[a-z]\w*_loss|(?:binary_)?cross_entropy\w*|kl_div")
_ALIKE = 0.4
#: Themes of variables that are told of, whether anything is computed from them or not.
_RESULTS = ("loss", "metric")
_Conditions = list[tuple[str, bool]]
Around_ = tuple[tuple[Form, Form], ...]
_Env = dict[str, ast.expr]


class Fact(NamedTuple):
    """Something that a function does or gives: in one form, and the statement that says so."""

    form: Form
    at: Statement


def last_line(each: Statement) -> int:
    """The last line of a statement, or of the head of one."""
    ends = [getattr(node, "end_lineno", 0) or 0 for node in each.inside()]
    return max(ends, default=0)


def _parsed(text: str) -> ast.expr:
    """A condition; it says nothing of lines."""
    test = ast.parse(text, mode="eval").body
    for node in ast.walk(test):
        if hasattr(node, "lineno"):
            node.lineno = 0
    return test


class TooMuch(Exception):
    """A function that is too long to be followed."""


class _Noting(Reader):
    """A reader that remembers what each form was read from."""

    read: dict[int, tuple[Form, ast.AST]]

    def _of(self, node: ast.AST | None) -> Form:
        form = super()._of(node)
        match node:
            case ast.keyword(arg="dim" | "axis"):
                form = form[1]
            case ast.Call(func=ast.Attribute(value=of, attr="forward"), args=args, keywords=words):
                form = self._of(ast.copy_location(ast.Call(of, args, words), node))
            case ast.Attribute(value=of, attr="module"):
                form = self._of(of)
            case ast.Call(func=function, args=[first, *_]) if last_name(function).endswith("DataParallel"):
                form = self._of(first)
        form = _usual(form)
        if node is not None:
            self.read[id(form)] = form, node
        return form


def _usual(form: Form) -> Form:
    """A form as most programs have it."""
    match form:
        case ("$Subscript", ("max" | "min" as name, of, dim), ("#1.0",)):
            return (f"arg{name}", of, dim)
        case ("$Subscript", ("shape", of), number):
            return ("shape", of, number)
        case ("module", of):
            return (*of,)
        case ("masked_select", of, mask):
            return ("$Subscript", of, mask)
        case ("flatten", of):
            return ("reshape", of, ("#-1",))
        case ("sum", ("$Tuple" | "$List", *parts)) if parts:
            return _flat(("Add", *parts))
        case ("Add" | "Mult", *_):
            return _flat(form)
        case ("gt" | "ge" as name, one, other):
            return ("Lt" if name == "gt" else "LtE", other, one)
        case ("$Subscript", of, ("$Tuple", ("$",), (":", ("$",), ("$",), ("$",)))):
            return ("unsqueeze", of, ("#0.0",))
        case ("$Subscript", of, ("$Tuple", (":", ("$",), ("$",), ("$",)), ("$",))):
            return ("unsqueeze", of, ("#1.0",))
        case ("()", (str() as name, *options), *given) if name.endswith("Loss"):
            return (_loss(name), *given, *options)
    return (_loss(form[0]), *form[1:]) if _LOSSES.fullmatch(form[0]) else form


def _flat(form: Form) -> Form:
    """A sum of sums as one."""
    parts = (each[1:] if each[0] == form[0] else (each,) for each in form[1:])
    return sorted_form((form[0], *(one for each in parts for one in each)))


def _loss(name: str) -> str:
    """One name for a loss as a module and as a function."""
    return name.replace("_", "").lower().removesuffix("loss").replace("bce", "binarycrossentropy")


class Values:
    """What the functions of one program compute."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.reader = _Noting.__new__(_Noting)
        vars(self.reader).update(vars(reading.reader), read={})
        self._inside, self._heads = defaultdict[Scope, list[Statement]](list), defaultdict[str, list[Statement]](list)
        for each in reading.statements:
            self._inside[each.place].append(each)
            if isinstance(each.node, ast.FunctionDef):
                self._heads[each.node.name].append(each)

    def facts(self, place: Scope) -> list[Fact]:
        """What a function does, in any order. TooMuch where it is too long."""
        found = _Run(self)
        named = self._heads[place[1].rpartition(".")[2]]
        heads = [each for each in named if self._of_head(each) is self._inside[place]]
        args = (ast.walk(part) for head in heads for part in head.parts if isinstance(part, ast.arguments))
        env: _Env = {
            each.arg: ast.Name(each.arg, ast.Load()) for part in args for each in part if isinstance(each, ast.arg)
        }
        given = found.through(self._inside[place], env, [], 0)
        outer = not heads  # what a module or a class holds is read elsewhere
        for name, value in env.items() if self._inside[place] else ():
            if not _is_carried(value, name) and (outer or _collected(value) is not None):
                at = next(each for each in self._inside[place] if re.search(rf"\b{re.escape(name)}\b", each.text))
                found.facts.append(Fact(("held", (f"#{name}",), self.reader._of(value)), at))
        if given is not None:
            last = next(each for each in reversed(self._inside[place]) if isinstance(each.node, ast.Return))
            parts = _parts_given(given)
            found.facts += (Fact(("return", (f"#{name}",), self.reader._of(part)), last) for name, part in parts)
        return _merged(_counting(found.facts))

    def helper(self, call: ast.Call, path: str) -> tuple[Statement, list[Statement], bool] | None:
        """The function of this program alone that is called, its statements, and whether it is a method."""
        match call.func:
            case ast.Name(id=name):
                method = False
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                method = True
            case _:
                return None
        heads = self._heads[name] if name in self.reader.defined else []
        heads = [each for each in heads if each.path == path] or heads
        if len(heads) != 1 or any("yield" in each.text.lower() for each in self._of_head(heads[0])):
            return None
        return heads[0], self._of_head(heads[0]), method

    def _of_head(self, head: Statement) -> list[Statement]:
        return self._inside[head.path, f"{head.scope}.{head.node.name}".lstrip(".")]  # type: ignore[attr-defined]

    def text(self, form: Form) -> str:
        """What a form was read from, as code; empty where that is not known."""
        return ast.unparse(self.reader.read[id(form)][1]) if id(form) in self.reader.read else ""

    def place(self, forms: Iterable[Form], among: list[Statement]) -> Statement | None:
        """The first statement from which one of some forms was read."""
        for form in forms:
            line = getattr(self.reader.read[id(form)][1], "lineno", 0) if id(form) in self.reader.read else 0
            inside = [each for each in among if line and each.line <= line <= (last_line(each) or each.line)]
            if inside:
                return inside[-1]
        return None


class _Run:
    """One function as it is followed."""

    def __init__(self, values: Values) -> None:
        self.values, self.facts = values, list[Fact]()

    def through(self, told: Sequence[Statement], env: _Env, under: _Conditions, deep: int) -> ast.expr | None:
        """Follow statements; gives what they return."""
        given: ast.expr | None = None
        for number, each in enumerate(told):
            asked = [*under, *self._conditions(each, env)]
            for node in each.inside():
                if isinstance(node, ast.NamedExpr):
                    env[node.target.id] = _with(node.value, env)
            match each.node:
                case ast.Assign() | ast.AnnAssign() if len(each.parts) > 1:
                    *targets, value = (part for part in each.parts if isinstance(part, ast.expr))
                    if targets:
                        value = self._put(value, env, each, asked, deep)
                        self._count(each, value, asked)
                        for target in targets:
                            self._store(target, value, env, each, asked, len(under))
                case ast.AugAssign(target=ast.Name(id=name), op=op) if not _is_carried(env.get(name), name):
                    value = self._put(each.parts[-1], env, each, asked, deep)
                    env[name] = _chosen(asked[len(under) :], ast.BinOp(env[name], op, value), env[name])
                case ast.AugAssign(op=op):
                    value = self._put(each.parts[-1], env, each, asked, deep)
                    target = self._put(each.parts[0], env, each, asked, deep)
                    self._say(type(op).__name__, each, asked, target, value)
                case ast.Return() if each.parts:
                    value = self._put(each.parts[0], env, each, asked, deep)
                    given = _chosen(asked[len(under) :], value, given or ast.Constant(None))
                case ast.For():
                    self._enter(each, told[number + 1 :], env)
                    iterated = self._put(each.parts[1], env, each, asked, deep)
                    if not self._only_collects(each, told[number + 1 :], env):
                        self._say("For", each, asked, iterated)
                    _spread(each.parts[0], iterated, env)
                case ast.While():
                    self._enter(each, told[number + 1 :], env)
                    self._say("While", each, asked, self._put(each.parts[0], env, each, asked, deep))
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[added])
                ) if each.loop and (old := _collected(env.get(name))) is not None:
                    value = self._put(getattr(each.parts[0], "args", [added])[0], env, each, asked, deep)
                    env[name] = _called(_ALL, _chosen(self._inner(each, told, asked), value, old))
                case ast.Break() | ast.Try() | ast.ExceptHandler():
                    self._say(type(each.node).__name__, each, asked)
                case ast.Expr() | ast.With():
                    self._do(each, env, asked, deep)
        return given

    def _conditions(self, each: Statement, env: _Env) -> _Conditions:
        found = []
        for text in (*each.behind, *each.guards):
            try:
                test = _parsed(asked_in(text))
            except SyntaxError:
                continue
            found.append((ast.unparse(_with(test, env)), not text.startswith("not (")))
        return [*dict.fromkeys(found)]

    def _say(self, kind: str, each: Statement, asked: _Conditions, *values: ast.expr) -> None:
        of = self.values.reader._of
        tests = [("Not" * (not way) + "If", of(_parsed(text))) for text, way in asked]
        forms = (*map(of, values),)
        if values and all(form == ("$",) or (kind == "Expr" and len(form) == 1) for form in forms):
            return
        self.facts.append(Fact((kind, ("$if", *sorted(tests, key=str)), *forms), each))

    def _do(self, each: Statement, env: _Env, asked: _Conditions, deep: int) -> None:
        """What a message has of results: it is told of, whether anything is computed from it or not; what else is."""
        if isinstance(each.node, ast.Expr) and is_option(each) and "local" in each.text:
            return
        form = self.values.reading.form(each)
        used = {node.id for node in each.inside() if isinstance(node, ast.Name)} if form[0] == "$said" else set[str]()
        for name in used & env.keys():
            if theme_of(name) in _RESULTS and not _is_carried(env[name], name):
                self.facts.append(Fact(("held", (f"#{name}",), self.values.reader._of(env[name])), each))
        if form != ("$",) and form[0] != "$said":
            parts = (part.context_expr if isinstance(part, ast.withitem) else part for part in each.parts)
            put = [self._put(part, env, each, asked, deep) for part in parts if isinstance(part, ast.expr)]
            self._say(type(each.node).__name__, each, asked, *put)

    def _count(self, each: Statement, value: ast.expr, asked: _Conditions) -> None:
        if any(_COUNTS.fullmatch(word) for word in nodes(self.values.reader._of(each.parts[-1]))):
            self._say("eval", each, asked, value)

    def _inner(self, each: Statement, told: Sequence[Statement], asked: _Conditions) -> _Conditions:
        """The conditions of a statement in its loop."""
        heads = [one for one in told[: told.index(each)] if isinstance(one.node, ast.For) and one.loop == each.loop - 1]
        outer = {asked_in(text) for one in heads[-1:] for text in (*one.behind, *one.guards)}
        return [(text, way) for text, way in asked if text not in outer]

    def _only_collects(self, head: Statement, rest: Sequence[Statement], env: _Env) -> bool:
        """Whether a loop does nothing but fill lists."""
        for each in rest:
            if each.loop <= head.loop:
                break
            call = each.node.value if isinstance(each.node, ast.Expr) else None
            fills = isinstance(call, ast.Call) and last_name(call.func) == "append"
            if not fills and not isinstance(each.node, (ast.Assign, ast.If, ast.Continue)):
                return False
        return True

    def _enter(self, head: Statement, rest: Sequence[Statement], env: _Env) -> None:
        """Forget what a loop changes: it may be that of the round before."""
        for each in rest:
            if each.loop <= head.loop:
                break
            same = isinstance(each.node, ast.Assign) and len({*map(ast.unparse, each.parts)}) == 1  # it was moved
            for node in each.inside() if not same else ():
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in env:
                    env[node.id] = ast.Name(node.id, ast.Load())  # that of the round before

    def _store(
        self, target: ast.expr, value: ast.expr, env: _Env, each: Statement, asked: _Conditions, outer: int
    ) -> None:  # fmt: skip
        match target:
            case ast.Name(id=name) if isinstance(value, ast.Call) and self.values.reader._of(value) == ("$",):
                env[name] = ast.Name(name, ast.Load())
            case ast.Name(id=name):
                env[name] = _chosen(asked[outer:], value, env[name]) if name in env else value
            case ast.Tuple(elts=elts) | ast.List(elts=elts) if not any(isinstance(one, ast.Starred) for one in elts):
                for number, one in enumerate(elts):
                    self._store(one, _item(value, number, len(elts)), env, each, asked, outer)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant() as key) if (
                isinstance(held := env.get(name), ast.Dict) and len(asked) == outer
            ):
                env[name] = ast.Dict([*held.keys, key], [*held.values, value])
            case ast.Attribute() | ast.Subscript():
                self._say("set", each, asked, _with(target, env), value)
            case _:
                for node in ast.walk(target):
                    env.pop(getattr(node, "id", ""), None)

    def _put(self, node: Any, env: _Env, each: Statement, asked: _Conditions, deep: int) -> Any:
        """An expression with the values of variables, and with what helpers give."""
        found = _under(_with(node, env), dict(asked))
        if sum(1 for _ in ast.walk(found)) > _MOST or len(self.facts) > _MOST:
            raise TooMuch
        return self._inlined(found, each, asked, deep)

    def _inlined(self, node: Any, each: Statement, asked: _Conditions, deep: int) -> Any:
        if isinstance(node, list):
            return [self._inlined(one, each, asked, deep) for one in node]
        if not isinstance(node, ast.AST):
            return node
        node = _rebuilt(node, lambda value: self._inlined(value, each, asked, deep))
        called = self.values.helper(node, each.path) if isinstance(node, ast.Call) and deep < _DEEP else None
        given = _given(node, called[0], method=called[2]) if called else None
        if called is None or given is None:
            return node
        return self.through(called[1], given, asked, deep + 1) or ast.Constant(None)


def _given(call: ast.Call, head: Statement, *, method: bool) -> _Env | None:
    """What the arguments of a function are in a call."""
    given = next(part for part in head.parts if isinstance(part, ast.arguments))
    if given.vararg or given.kwarg or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    names = [each.arg for each in (*given.posonlyargs, *given.args)][method:]
    found: _Env = dict(zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True))
    found |= {one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    found |= dict(zip(names, call.args, strict=False))
    found |= {word.arg: word.value for word in call.keywords if word.arg}
    return found


def _spread(target: ast.AST, iterated: ast.expr, env: _Env) -> None:
    """Give the variables of a loop what they are in each round."""
    match target, iterated:
        case ast.Tuple(elts=[ast.Name(id=name), rest]), ast.Call(func=ast.Name(id="enumerate"), args=[of, *_]):
            env[name] = _called(_INDEX, of)
            _spread(rest, of, env)
        case ast.Tuple(elts=elts), ast.Call(func=ast.Name(id="zip"), args=args) if len(elts) == len(args):
            for one, of in zip(elts, args, strict=True):
                _spread(one, of, env)
        case ast.Name(id=name), ast.Call(func=ast.Name(id=_ALL), args=[of]):
            env[name] = of
        case ast.Name(id=name), _:
            env[name] = _called(_EACH, iterated)
        case ast.Tuple(elts=elts), _:
            for number, one in enumerate(elts):
                if isinstance(one, ast.Name):
                    env[one.id] = _item(_called(_EACH, iterated), number, len(elts))
                else:
                    _spread(one, _item(iterated, number, len(elts)), env)


def _chosen(asked: _Conditions, new: ast.expr, old: ast.expr) -> ast.expr:
    """What is there after something was set under conditions."""
    if not asked:
        return new
    (text, way), rest = asked[0], asked[1:]
    ways = [old.body, old.orelse] if isinstance(old, ast.IfExp) and ast.unparse(old.test) == text else [old, old]
    ways[0 if way else 1] = _chosen(rest, new, ways[0 if way else 1])
    return ast.IfExp(_parsed(text), *ways)


def _width(value: ast.expr) -> int:
    """Of how many parts a value is, whichever way it was chosen; 0 where it is of none, or nobody knows."""
    if isinstance(value, ast.IfExp):
        return size if (size := _width(value.body)) == _width(value.orelse) else 0
    return len(value.elts) if isinstance(value, ast.Tuple) else 0


def _collected(value: ast.expr | None) -> ast.expr | None:
    """What a list has for each round where nothing is added to it; None for what is no list that is being filled."""
    match value:
        case ast.List(elts=[]):
            return ast.Name(_NONE, ast.Load())
        case ast.Call(func=ast.Name(id=name), args=[ast.IfExp() as chosen]) if name == _ALL:
            return chosen
    return None


def _is_carried(value: ast.expr | None, name: str) -> bool:
    """Whether a variable has what nobody can follow: that of the round before, or none."""
    return value is None or (isinstance(value, ast.Name) and value.id == name)


def _item(value: ast.expr, number: int, of_: int) -> ast.expr:
    """One part of a value."""
    match value:
        case ast.Tuple(elts=elts) | ast.List(elts=elts) if len(elts) == of_:
            return elts[number]
        case ast.Call(func=ast.Name(id=name), args=[of]) if name == _ALL and len(
            # the one thing that it is made for each part of
            every := {
                ast.unparse(one): one for one in ast.walk(of)
                if isinstance(one, ast.Call) and getattr(one.func, "id", "") == _EACH
            }
        ) == 1:
            given = every.popitem()[1]
            swapped: ast.expr = _swapped(of, given, _item(given.args[0], number, of_))
            return swapped
        case ast.Call(func=function, args=args) if last_name(function) in _HANDED_ON and len(args) >= of_:
            return args[number]
        case ast.IfExp(test=test, body=body, orelse=other):
            return ast.IfExp(test, _item(body, number, of_), _item(other, number, of_))
    return ast.Subscript(value, ast.Constant(number), ast.Load(), lineno=getattr(value, "lineno", 0))


def _swapped(node: Any, old: ast.Call, new: ast.expr) -> Any:
    if isinstance(node, list):
        return [_swapped(each, old, new) for each in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Call) and ast.unparse(node) == ast.unparse(old):
        return new
    return _rebuilt(node, lambda value: _swapped(value, old, new))


def _under(node: Any, known: dict[str, bool]) -> Any:
    """An expression where some conditions are known."""
    if isinstance(node, list):
        return [_under(each, known) for each in node]
    if not known or not isinstance(node, ast.AST) or not any(isinstance(each, ast.IfExp) for each in ast.walk(node)):
        return node
    if isinstance(node, ast.IfExp) and (text := ast.unparse(node.test)) in known:
        return _under(node.body if known[text] else node.orelse, known)
    return _rebuilt(node, lambda value: _under(value, known))


def _called(name: str, given: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [given], [])


def _rebuilt(node: ast.AST, of: Any) -> Any:
    fields = {name: of(value) for name, value in ast.iter_fields(node)}
    made = type(node)(**fields)
    return ast.copy_location(made, node) if hasattr(node, "lineno") else made


def _for_all(elt: ast.expr, one: ast.comprehension, env: _Env) -> ast.expr:
    """What is made for each part of something, as a loop that fills a list would make it."""
    iterated, bound = _with(one.iter, env), dict[str, ast.expr]()
    if isinstance(iterated, (ast.Tuple, ast.List)) and isinstance(one.target, ast.Name) and not one.ifs:
        return ast.Tuple([_with(elt, env | {one.target.id: each}) for each in iterated.elts], ast.Load())
    _spread(one.target, iterated, bound)
    made = _with(elt, env | bound)
    for test in one.ifs:
        made = ast.IfExp(_with(test, env | bound), made, ast.Name(_NONE, ast.Load()))
    used = bound.keys() & {getattr(each, "id", "") for each in ast.walk(elt)}
    return _called(_ALL, made) if used else ast.Call(ast.Name(_ALL, ast.Load()), [made, iterated], [])


def _unpacked(words: list[ast.keyword], env: _Env) -> list[ast.keyword]:
    """Arguments of a call with those that a dictionary holds."""
    found = list[ast.keyword]()
    for each in words:
        held = env.get(getattr(each.value, "id", "")) if each.arg is None else None
        named = zip(held.keys, held.values, strict=True) if isinstance(held, ast.Dict) else ()
        found += [ast.keyword(str(getattr(key, "value", "")), value) for key, value in named] or [each]
    return sorted((each for each in found if not stands_aside(each.arg or "")), key=lambda each: each.arg or "~")


def _with(node: Any, env: _Env) -> Any:
    """An expression with the values of variables in their places."""
    if isinstance(node, list):
        return [_with(each, env) for each in node]
    if not isinstance(node, ast.AST) or isinstance(node, ast.expr_context):
        return node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return env.get(node.id, node)
    match node:
        case ast.NamedExpr(value=value):
            return _with(value, env)
        case ast.Call(func=function, args=args, keywords=words) if any(each.arg is None for each in words) and (
            len(given := _unpacked(words, env)) != len(words) or all(each.arg for each in given)
        ):
            return _with(ast.copy_location(ast.Call(function, args, given), node), env)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=words):
            return ast.Dict([ast.Constant(each.arg) for each in words], [_with(each.value, env) for each in words])
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)) if (
            isinstance(held := env.get(name), ast.Dict)
        ):
            pairs = zip(held.keys, held.values, strict=True)
            if found := [value for one, value in pairs if getattr(one, "value", _NONE) == key]:
                return found[-1]
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="values"), args=[]) if (
            isinstance(held := env.get(name), ast.Dict)
        ):
            return ast.Tuple(held.values, ast.Load())
        case ast.ListComp(elt=elt, generators=[one]) | ast.GeneratorExp(elt=elt, generators=[one]) if (
            isinstance(one.target, (ast.Name, ast.Tuple))
        ):
            return _for_all(elt, one, env)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda)):
        bound = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
        bound |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
        env = {name: value for name, value in env.items() if name not in bound}
    return _rebuilt(node, lambda value: _with(value, env))


def _parts_given(given: ast.expr) -> Iterable[tuple[object, ast.expr]]:
    if isinstance(given, ast.Dict):
        return zip([getattr(each, "value", "") for each in given.keys], given.values, strict=True)
    size = _width(given)
    return enumerate([_item(given, number, size) for number in range(size)] or [given])


def _counting(facts: list[Fact]) -> list[Fact]:
    does = (one for each in facts if each.form[0] not in ("eval", "held") for one in each.form[2:])
    used = {part for one in does for part in parts_of(one)}
    frozen = ("set", ("$requires_grad",))  # that of parameters is told of elsewhere
    facts = [each for each in facts if each.form[0] != "eval" or each.form[2] not in used]
    return [each for each in facts if each.form[::2][:2] != frozen]


def _merged(facts: list[Fact]) -> list[Fact]:
    """Facts under a condition and under its opposite as one."""
    facts = [*facts]
    for at, each in enumerate(facts):
        match each.form:
            case ("With", tests, ("autocast", (str(),) as on)) if on[0][0] == "$":
                asked = ("$if", *sorted([*tests[1:], ("If", on)], key=str))
                facts[at] = each._replace(form=("With", asked, ("autocast",)))
    again = True
    while again:
        again = False
        for at, each in enumerate(facts):
            tests = each.form[1][1:] if len(each.form) > 1 else ()
            for test in tests:
                turned = ("If" if test[0] == "NotIf" else "NotIf", *test[1:])
                other = ("$if", *sorted([*(one for one in tests if one != test), turned], key=str))
                wanted = (each.form[0], other, *each.form[2:])
                twin = next((n for n, two in enumerate(facts) if two.form == wanted), None)
                if twin is not None:
                    rest = ("$if", *(one for one in tests if one != test))
                    facts[at] = each._replace(form=(each.form[0], rest, *each.form[2:]))
                    del facts[twin]
                    again = True
                    break
            if again:
                break
    return facts


def parts_apart(one: Form, other: Form, around: Around_ = ()) -> Iterator[tuple[Form, Form, Around_]]:
    """The smallest parts in which two forms differ, whatever the order of what has none, and what is around them."""
    if one == other:
        return
    if one[0] != other[0] or len(one) != len(other) or len(one) == 1:
        yield one, other, around
        return
    left, right = [*one[1:]], [*other[1:]]
    if one[0] in EITHER_WAY or one[0] == "$if":
        for each in one[1:]:
            if each in right:
                left.remove(each)
                right.remove(each)
        left.sort(key=lambda form: -sum(1 for _ in nodes(form)))
        right = [right.pop(max(range(len(right)), key=lambda at: _share(each, right[at]))) for each in left]
    for each, two in zip(left, right, strict=True):
        yield from parts_apart(each, two, ((one, other), *around))


def _share(one: Form, other: Form) -> float:
    """How much two forms have in common."""
    mine, theirs = Counter(nodes(one)), Counter(nodes(other))
    return 2 * (mine & theirs).total() / (mine + theirs).total()


def left_over(one: list[Fact], other: list[Fact], names: tuple[set[str], set[str]]) -> tuple[list[Fact], list[Fact]]:
    """What only one of two functions does. `names`: all names of both; another name of a variable is no difference."""
    known = dict[str, str]()
    heads = {each.form[:2] for each in one} & {each.form[:2] for each in other}
    one, other = ([each for each in side if each.form[0] != "held" or each.form[:2] in heads] for side in (one, other))
    words = [{word[1:] for each in side for word in nodes(each.form) if word[0] == "$"} for side in (one, other)]
    for _ in range(len(one) + 1):
        told = [Fact(_renamed(each.form, known), each.at) for each in other]
        sides = [*_more(one, told)], [*_more(told, one)]
        found = {
            (left[0][1:], right[0][1:])
            for before, after in closest(*sides) for left, right, _ in parts_apart(before.form, after.form)
            if (left[0][:1], len(left)) == (right[0][:1], len(right)) == ("$", 1)
        }
        both = names[1] | words[1], names[0] | words[0] | known.keys()
        new = [(name, old) for old, name in sorted(found) if old not in both[0] and name not in both[1]]
        if not new:
            return sides
        known |= dict(new[:1])
    return sides


def _more(facts: Sequence[Fact], others: Iterable[Fact]) -> Iterator[Fact]:
    counts = Counter(each.form for each in facts) - Counter(each.form for each in others)
    for each in facts:
        if counts[each.form] > 0:
            counts[each.form] -= 1
            yield each


def _renamed(form: Form, known: dict[str, str]) -> Form:
    if not known or not any(word[:1] == "$" and word[1:] in known for word in nodes(form)):
        return form
    head = f"${known.get(form[0][1:], form[0][1:])}" if form[0][:1] == "$" else form[0]
    return (head, *(_renamed(each, known) for each in form[1:]))


def closest(one: list[Fact], other: list[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Facts that stand for each other."""
    left = [*other]
    for each in one:
        given = each.form[: 2 if each.form[0] in ("return", "held") else 1]  # what is returned in the same place
        shares = [(_share(each.form, two.form), -at) for at, two in enumerate(left) if two.form[: len(given)] == given]
        if shares and ((best := max(shares))[0] >= _ALIKE or len(given) > 1):
            yield each, left.pop(-best[1])
