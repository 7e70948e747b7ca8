"""What a function computes, with the values of its variables and its helpers put in: two functions that come to the
same then are the same in another form, and where one thing is left, that is what the port changed."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from transplt.project.judging.facts_apart import Fact
from transplt.project.judging.forms import Form, Reader, nodes, parts_of, sorted_form
from transplt.project.judging.put_in import (
    Conditions,
    Env,
    arguments_given,
    collected,
    for_all,
    is_carried,
    item_of,
    parsed,
    parts_given,
    rebuilt,
    set_under,
    spread,
    under_conditions,
    with_values,
)
from transplt.project.judging.reading import Reading, Scope, is_option
from transplt.project.judging.statements import Statement, asked_in
from transplt.project.judging.themes import OF_CARDS, options_of, theme_of
from transplt.syntax.nodes import last_name, of_kind

#: So many nodes of a value are followed, and so deep calls.
_MOST, _DEEP = 3000, 4
#: Calls whose number counts, whether somebody uses what they give or not.
_COUNTS = re.compile(r"\(\)|.*rand.*|.*sample.*|normal|uniform|multinomial|step|backward|load_state_dict|train|eval")
_LOSSES = re.compile(r"[a-z]\w*_loss|(?:binary_)?cross_entropy\w*|kl_div")
#: Themes of variables that are told of, whether anything is computed from them or not.
_RESULTS = ("loss", "metric")


def last_line(each: Statement) -> int:
    """The last line of a statement, or of the head of one."""
    ends = [getattr(node, "end_lineno", 0) or 0 for node in each.inside()]
    return max(ends, default=0)


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
        env: Env = {
            each.arg: ast.Name(each.arg, ast.Load()) for part in args for each in part if isinstance(each, ast.arg)
        }
        given = found.through(self._inside[place], env, [], 0)
        outer = not heads  # what a module or a class holds is read elsewhere
        for name, value in env.items() if self._inside[place] else ():
            if not is_carried(value, name) and (outer or collected(value) is not None):
                at = next(each for each in self._inside[place] if re.search(rf"\b{re.escape(name)}\b", each.text))
                found.facts.append(Fact(("held", (f"#{name}",), self.reader._of(value)), at))
        if given is not None:
            last = next(each for each in reversed(self._inside[place]) if isinstance(each.node, ast.Return))
            parts = parts_given(given)
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

    def through(self, told: Sequence[Statement], env: Env, under: Conditions, deep: int) -> ast.expr | None:
        """Follow statements; gives what they return."""
        given: ast.expr | None = None
        for number, each in enumerate(told):
            asked = [*under, *self._conditions(each, env)]
            for node in of_kind(ast.NamedExpr, each.inside()):
                env[node.target.id] = with_values(node.value, env)
            match each.node:
                case ast.Assign() | ast.AnnAssign() if len(each.parts) > 1:
                    *targets, value = (part for part in each.parts if isinstance(part, ast.expr))
                    if targets:
                        value = self._put(value, env, each, asked, deep)
                        self._count(each, value, asked)
                        for target in targets:
                            self._store(target, value, env, each, asked, len(under))
                case ast.AugAssign(target=ast.Name(id=name), op=op) if not is_carried(env.get(name), name):
                    value = self._put(each.parts[-1], env, each, asked, deep)
                    env[name] = set_under(asked[len(under) :], ast.BinOp(env[name], op, value), env[name])
                case ast.AugAssign(op=op):
                    value = self._put(each.parts[-1], env, each, asked, deep)
                    target = self._put(each.parts[0], env, each, asked, deep)
                    self._say(type(op).__name__, each, asked, target, value)
                case ast.Return() if each.parts:
                    value = self._put(each.parts[0], env, each, asked, deep)
                    given = set_under(asked[len(under) :], value, given or ast.Constant(None))
                case ast.For():
                    body = _body(each, told[number + 1 :])
                    self._enter(body, env, asked)
                    iterated = self._put(each.parts[1], env, each, asked, deep)
                    if not self._only_collects(body):
                        self._say("For", each, asked, iterated)
                    spread(each.parts[0], iterated, env)
                case ast.While():
                    self._enter(_body(each, told[number + 1 :]), env, asked)
                    self._say("While", each, asked, self._put(each.parts[0], env, each, asked, deep))
                case ast.Expr(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[added])
                ) if each.loop and (old := collected(env.get(name))) is not None:
                    value = self._put(getattr(each.parts[0], "args", [added])[0], env, each, asked, deep)
                    head = self._head(each, told)
                    made = set_under(self._inner(head, asked), value, old)
                    env[name] = for_all(made, env.get(getattr(head and head.parts[0], "id", "")))
                case ast.Break() | ast.Try() | ast.ExceptHandler():
                    self._say(type(each.node).__name__, each, asked)
                case ast.Expr() | ast.With():
                    self._do(each, env, asked, deep)
        return given

    def _conditions(self, each: Statement, env: Env) -> Conditions:
        found = []
        for text in (*each.behind, *each.guards):
            try:
                test = parsed(asked_in(text))
            except SyntaxError:
                continue
            found.append((ast.unparse(with_values(test, env)), not text.startswith("not (")))
        return [*dict.fromkeys(found)]

    def _say(self, kind: str, each: Statement, asked: Conditions, *values: ast.expr) -> None:
        of = self.values.reader._of
        tests = [("Not" * (not way) + "If", of(parsed(text))) for text, way in asked]
        forms = (*map(of, values),)
        if values and all(form == ("$",) or (kind == "Expr" and len(form) == 1) for form in forms):
            return
        self.facts.append(Fact((kind, ("$if", *sorted(tests, key=str)), *forms), each))

    def _do(self, each: Statement, env: Env, asked: Conditions, deep: int) -> None:
        """What a message has of results: it is told of, whether anything is computed from it or not; what else is."""
        if is_option(each) and OF_CARDS.search(" ".join(name for name, _ in options_of(each))):
            return
        form = self.values.reading.form(each)
        used = {node.id for node in each.inside() if isinstance(node, ast.Name)} if form[0] == "$said" else set[str]()
        for name in used & env.keys():
            if theme_of(name) in _RESULTS and not is_carried(env[name], name):
                self.facts.append(Fact(("held", (f"#{name}",), self.values.reader._of(env[name])), each))
        if form != ("$",) and form[0] != "$said":
            parts = (part.context_expr if isinstance(part, ast.withitem) else part for part in each.parts)
            put = [self._put(part, env, each, asked, deep) for part in parts if isinstance(part, ast.expr)]
            self._say(type(each.node).__name__, each, asked, *put)

    def _count(self, each: Statement, value: ast.expr, asked: Conditions) -> None:
        if any(_COUNTS.fullmatch(word) for word in nodes(self.values.reader._of(each.parts[-1]))):
            self._say("eval", each, asked, value)

    @staticmethod
    def _head(each: Statement, told: Sequence[Statement]) -> Statement | None:
        """The head of the loop around a statement."""
        before = reversed(told[: told.index(each)])
        return next((one for one in before if isinstance(one.node, ast.For) and one.loop == each.loop - 1), None)

    @staticmethod
    def _inner(head: Statement | None, asked: Conditions) -> Conditions:
        """The conditions that hold in a loop alone."""
        outer = {asked_in(text) for text in (*head.behind, *head.guards)} if head is not None else set[str]()
        return [(text, way) for text, way in asked if text not in outer]

    @staticmethod
    def _only_collects(body: Iterable[Statement]) -> bool:
        """Whether a loop does nothing but fill lists."""
        for each in body:
            call = each.node.value if isinstance(each.node, ast.Expr) else None
            fills = isinstance(call, ast.Call) and last_name(call.func) == "append"
            if not fills and not isinstance(each.node, (ast.Assign, ast.If, ast.Continue)):
                return False
        return True

    def _enter(self, body: Iterable[Statement], env: Env, asked: Conditions) -> None:
        """Forget what a loop changes, which may be that of the round before; with which number it begins is said."""
        for each in body:
            same = isinstance(each.node, ast.Assign) and len({*map(ast.unparse, each.parts)}) == 1  # it was moved
            for node in each.inside() if not same else ():
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in env:
                    if isinstance(each.node, ast.AugAssign) and isinstance(env[node.id], ast.Constant):
                        self._say("Begin", each, asked, ast.Name(node.id, ast.Load()), env[node.id])
                    env[node.id] = ast.Name(node.id, ast.Load())  # that of the round before

    def _store(
        self, target: ast.expr, value: ast.expr, env: Env, each: Statement, asked: Conditions, outer: int
    ) -> None:  # fmt: skip
        match target:
            case ast.Name(id=name) if isinstance(value, ast.Call) and self.values.reader._of(value) == ("$",):
                env[name] = ast.Name(name, ast.Load())
            case ast.Name(id=name):
                env[name] = set_under(asked[outer:], value, env[name]) if name in env else value
            case ast.Tuple(elts=elts) | ast.List(elts=elts) if not any(isinstance(one, ast.Starred) for one in elts):
                for number, one in enumerate(elts):
                    self._store(one, item_of(value, number, len(elts)), env, each, asked, outer)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant() as key) if (
                isinstance(held := env.get(name), ast.Dict) and len(asked) == outer
            ):
                env[name] = ast.Dict([*held.keys, key], [*held.values, value])
            case ast.Attribute() | ast.Subscript():
                self._say("set", each, asked, with_values(target, env), value)
            case _:
                for node in ast.walk(target):
                    env.pop(getattr(node, "id", ""), None)

    def _put(self, node: Any, env: Env, each: Statement, asked: Conditions, deep: int) -> Any:
        """An expression with the values of variables, and with what helpers give."""
        found = under_conditions(with_values(node, env), dict(asked))
        if sum(1 for _ in ast.walk(found)) > _MOST or len(self.facts) > _MOST:
            raise TooMuch
        return self._inlined(found, each, asked, deep)

    def _inlined(self, node: Any, each: Statement, asked: Conditions, deep: int) -> Any:
        if isinstance(node, list):
            return [self._inlined(one, each, asked, deep) for one in node]
        if not isinstance(node, ast.AST):
            return node
        node = rebuilt(node, lambda value: self._inlined(value, each, asked, deep))
        called = self.values.helper(node, each.path) if isinstance(node, ast.Call) and deep < _DEEP else None
        given = arguments_given(node, called[0], method=called[2]) if called else None
        if called is None or given is None:
            return node
        return self.through(called[1], given, asked, deep + 1) or ast.Constant(None)


def _body(head: Statement, rest: Sequence[Statement]) -> list[Statement]:
    return [*takewhile(lambda each: each.loop > head.loop, rest)]


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
    while (turned := _turned(facts)) is not None:
        at, twin, form = turned
        facts[at] = facts[at]._replace(form=form)
        del facts[twin]
    return facts


def _turned(facts: Sequence[Fact]) -> tuple[int, int, Form] | None:
    """The first fact that another one says under the opposite of one condition, that one, and the form of both."""
    for at, each in enumerate(facts):
        for test in each.form[1][1:] if len(each.form) > 1 else ():
            rest = [one for one in each.form[1][1:] if one != test]
            other = sorted([*rest, ("If" if test[0] == "NotIf" else "NotIf", *test[1:])], key=str)
            wanted = (each.form[0], ("$if", *other), *each.form[2:])
            twin = next((n for n, two in enumerate(facts) if two.form == wanted), None)
            if twin is not None:
                return at, twin, (each.form[0], ("$if", *rest), *each.form[2:])
    return None
