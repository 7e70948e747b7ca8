"""Functions carried out on terms: two that come to the same effects in the same order do the same, however written."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Sequence

from transplt.project.judging.forms import LIBRARIES, NOTHING, OWNERS, Form, Reader, of_constant, root_of, sorted_form
from transplt.project.judging.statements import TABLE, Statement, neutral_tree
from transplt.project.judging.terms import NEXT, chosen, folded, joined, negated, short, turned
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

#: What an effect is worth is told by its number: ("ev", 3). So many steps are taken for one function.
_MOST, _DEEP, _UNROLLED = 2000, 6, 8
_CHANGES = re.compile(
    r"[A-Z]|\w+_$|(?:rand\w*|normal|uniform|multinomial|bernoulli|sample|choices?|shuffle|beta|\w*seed\w*)$"
)


_ENDS = ("return", "raise")


class TooMuch(Exception):
    """What a function does cannot be told in terms."""


class Carrier(Reader):
    """Carries out functions of one program. `functions` are all of its functions, by file and scope."""

    def __init__(self, reader: Reader, statements: Iterable[Statement]) -> None:
        vars(self).update(vars(reader))
        self.functions: dict[tuple[str, str], ast.AST] = {}
        self.values: dict[tuple[str, str], ast.expr] = {}
        for each in statements:
            match each.node:
                case ast.FunctionDef(name=name):
                    self.functions[each.path, f"{each.scope}.{name}".lstrip(".")] = each.node
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if not each.scope:
                    again = (each.path, name) in self.values
                    self.values[each.path, name] = ast.Await(value) if again else value
        self.trees: dict[tuple[str, str], ast.AST] = {}
        self.closures: list[tuple[ast.AST, dict[str, Form]]] = []
        self.libraries: set[str] = set()

    def carried(self, place: tuple[str, str]) -> tuple[Form, ...] | None:
        """What a function does: its effects, the last of which is what it gives back. None if that cannot be told."""
        self.path, self.outer = place[0], place[1].rpartition(".")[0]
        self.left, self.events, self.depth, self.calm, self.above = _MOST, 0, 0, 0, tuple[tuple[str, str], ...]([place])
        self.closures.clear()
        self.used = set[tuple[str, str]]()
        function = self._tree(place)
        try:
            arguments = function.args  # type: ignore[attr-defined]
            names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
            self.env: dict[str, Form] = {
                name: (f"$arg {at}",) for at, name in enumerate(each for each in names if each not in ("self", "cls"))
            }
            defaults = [self._of(each) for each in (*arguments.defaults, *arguments.kw_defaults)]
            return (*defaults, *self._body(function))
        except (TooMuch, RecursionError):
            return None

    def _tree(self, place: tuple[str, str]) -> ast.AST:
        if place not in self.trees:
            self.trees[place] = neutral_tree(self.functions[place])
        return self.trees[place]

    def _body(self, function: ast.AST) -> tuple[Form, ...]:
        calm = any(map(is_calm, function.decorator_list))  # type: ignore[attr-defined]
        self.calm += calm
        found = self._run([*function.body, ast.Return()])  # type: ignore[attr-defined]
        self.calm -= calm
        return found

    # Statements: each gives its effects.

    def _run(self, body: Sequence[ast.stmt]) -> tuple[Form, ...]:
        effects: list[Form] = []
        self.effects, outer = effects, getattr(self, "effects", None)
        try:
            for at, node in enumerate(body):
                self.left -= 1
                if self.left < 0:
                    raise TooMuch
                if isinstance(node, ast.If):
                    leaves = _jumps(node.body) or _jumps(node.orelse)
                    effects += self._branches(node, body[at + 1 :] if leaves else [])
                    if leaves:
                        break
                    continue
                if isinstance(node, (ast.For, ast.While)) and node.orelse:
                    raise TooMuch
                getattr(self, f"_do_{type(node).__name__}", self._other)(node)
                if effects and effects[-1][0] in ("return", "raise", "break", "continue"):
                    break
        finally:
            self.effects = outer  # type: ignore[assignment]
        return tuple(effects)

    def _other(self, node: ast.stmt) -> None:
        match node:
            case ast.Return(value=value):
                self.effects.append(("return", self._of(value)))
            case ast.Raise() | ast.Break() | ast.Continue():
                self.effects.append((type(node).__name__.lower(),))
            case ast.FunctionDef(name=name):
                self.env[name] = self._closed(node)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._set(target, self._of(value))
            case ast.AugAssign(target=target, op=op, value=value):
                self._set(target, self._of(ast.BinOp(target, op, value)))
            case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Delete() | ast.AnnAssign():
                pass
            case _:
                raise TooMuch

    def _closed(self, node: ast.AST) -> Form:
        self.closures.append((node, self.env))
        return ("function", str(len(self.closures) - 1))

    def _do_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) or self._is_silent(value):
            return
        if isinstance(value, (ast.Yield, ast.YieldFrom)):
            self._event("yield", self._of(value.value))
            return
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and self._changes(value, value.func):
            return
        before = len(self.effects)
        found = self._of(value)
        if len(self.effects) == before and isinstance(value, ast.Call):
            self._event(*found)

    def _changes(self, call: ast.Call, function: ast.Attribute) -> bool:
        """Whether a call may change what it is a method of: a list of the function, or something else."""
        name = _slot(function.value)
        held = self.env.get(name, NOTHING)
        is_list = held[0] in ("$List", "append", "comp", "reversed", "phi")
        match function.attr, call.args:
            case "append", [value] if is_list:
                self.env[name] = ("append", held, self._of(value))
            case "insert", [ast.Constant(value=0), value] if is_list:
                self.env[name] = ("reversed", ("append", turned(held), self._of(value)))
            case "reverse", [] if is_list:
                self.env[name] = turned(held)
            case _:
                before = self.events
                found = self._of(call)
                if self.events == before:
                    self._event(*found)
                if name and self.events > before and not function.attr.startswith(("zero_grad", "step", "backward")):
                    self.env[name] = ("ev", str(self.events))
                return True
        return True

    def _do_Assign(self, node: ast.Assign) -> None:
        value = node.value
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                values = [self._of(each) for each in value.elts]
                for one, each in zip(target.elts, values, strict=True):
                    self._set(one, each)
            else:
                self._set(target, self._of(value))

    def _set(self, target: ast.AST, value: Form) -> None:
        match target:
            case ast.Name(id=name):
                self.env[name] = short(value)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                for at, each in enumerate(elts):
                    self._set(each, self._item(value, of_constant(at)))
            case ast.Attribute() | ast.Subscript():
                self._event("store", self._of(target), value)
                if name := _slot(target):
                    self.env[name] = short(value)
                elif name := _slot(getattr(target, "value", target)):
                    self.env[name] = ("ev", str(self.events))
            case _:
                raise TooMuch

    def _branches(self, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[Form, ...]:
        """What is done in two branches, and after them where one of them leaves: the rest belongs to both."""
        test, before, events = self._of(node.test), self.env, self.events
        sides, most = list[tuple[tuple[Form, ...], dict[str, Form]]](), events
        for body in (node.body, node.orelse):
            self.env, self.events = {**before}, events
            effects = self._run([*body, *rest])
            sides.append((effects, self.env))
            most = max(most, self.events)
        self.events = most
        (one, mine), (other, theirs) = sides
        # What a branch that ends the function leaves behind is of no use to anybody.
        if one and one[-1][0] in _ENDS:
            mine = theirs
        elif other and other[-1][0] in _ENDS:
            theirs = mine
        names = {**mine, **theirs}
        self.env = {name: chosen(test, mine.get(name, NOTHING), theirs.get(name, NOTHING)) for name in names}
        return joined(test, one, other)

    def _do_Match(self, node: ast.Match) -> None:
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            match case.pattern, case.guard:
                case ast.MatchValue(value=value), None:
                    rest = [ast.If(ast.Compare(node.subject, [ast.Eq()], [value]), case.body, rest)]
                case ast.MatchAs(pattern=None, name=None), None:
                    rest = case.body
                case _:
                    raise TooMuch
        self.effects += self._run(rest)

    def _do_While(self, node: ast.While) -> None:
        self._loop(("while",), [ast.If(node.test, node.body, [ast.Break()])], {})

    def _do_For(self, node: ast.For) -> None:
        match node.iter, node.target:
            case ast.Call(args=[whole, other]), ast.Tuple(elts=[one, two]) if last_name(node.iter.func) == "product":
                return self._do_For(ast.For(one, whole, [ast.For(two, other, node.body, [])], []))
        if parts := self._listed(node.iter):
            if _jumps(node.body):
                raise TooMuch
            for each in parts:
                self._set(node.target, each)
                self.effects += self._run(node.body)
            return
        self.depth += 1
        over, item = self._over(node.iter)
        outer, self.env = self.env, {**self.env}
        self._set(node.target, item)
        bound = {name: value for name, value in self.env.items() if outer.get(name) is not value}
        self.env = outer
        self._loop(over, node.body, bound)
        self.depth -= 1

    def _loop(self, over: Form, body: Sequence[ast.stmt], bound: dict[str, Form]) -> None:
        """A loop: what it changes from round to round is known by its place among what is read."""
        outer = self.env
        changed = {each for node in body for each in _stored(node)} & outer.keys()
        counter = self._counter(over, body)
        bound, changed = {**bound, **counter}, changed - counter.keys()
        events = self.events
        for _ in range(2):  # what does not change from round to round is what it was before
            order = enumerate(each for each in outer if each in changed)
            first = {name: ("phi", str(self.depth), str(at)) for at, name in order}
            self.env, self.events = {**outer, **first, **bound}, events
            effects, after = self._run(body), self.env
            changed = {name for name in first if after[name] != first[name]}
        effects = effects[:-1] if effects[-1:] == NEXT else effects
        folds = {name: after[name] for name in first if after[name] != first[name]}
        self.env = {**outer}
        carried = []
        for name, value in after.items():
            if name in folds:
                self.env[name], own = folded(over, outer[name], first[name], value)
                carried += [own] if own else []
            elif name in bound or (outer.get(name) is not value and name not in first):
                self.env[name] = ("last", over, value)
        if effects or carried:
            self.effects.append(("loop", over, effects, *carried))

    def _counter(self, over: Form, body: Sequence[ast.stmt]) -> dict[str, Form]:
        """What the variable is worth in each round that a loop adds 1 to at its end."""
        match body[-1]:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.Constant(value=1)):
                once = not any(name in _stored(node) for node in body[:-1])
                if over != ("while",) and name in self.env and once:
                    at, start = ("@", str(self.depth)), self.env[name]
                    return {name: at if start == ("#0.0",) else sorted_form(("Add", at, start))}
        return {}

    def _do_With(self, node: ast.With) -> None:
        calm = [each for each in node.items if is_calm(each.context_expr)]
        forms = []
        for each in (each for each in node.items if each not in calm):
            value = self._of(each.context_expr)
            forms += [value] if value != NOTHING else []
            if each.optional_vars is not None:
                self._set(each.optional_vars, value)
        self.calm += bool(calm)
        effects = self._run(node.body)
        self.calm -= bool(calm)
        self.effects += [("with", *forms, effects)] if forms else effects

    def _do_Try(self, node: ast.Try) -> None:
        before = {**self.env}
        effects, after = self._run([*node.body, *node.orelse]), self.env
        handlers = []
        for each in node.handlers:
            self.env = {**before}
            handlers.append((self._of(each.type), self._run(each.body)))
        self.env = after
        self.effects.append(("try", effects, *handlers))
        self.effects += self._run(node.finalbody)

    # Expressions: each gives a term.

    def _event(self, *form: object) -> Form:
        """Something happens here, which may change what others read."""
        self.effects.append((*form, *(["calm"] if self.calm else [])))
        self.events += 1
        return ("ev", str(self.events))

    def _of(self, node: ast.AST | None) -> Form:
        match node:
            case ast.Name(id=name):
                return self._named_value(name)
            case ast.NamedExpr(target=target, value=value):
                self._set(target, found := self._of(value))
                return found
            case ast.Attribute(value=value, attr=name):
                return self._attribute(value, name)
            case ast.Subscript(value=value, slice=ast.Slice(None, None, ast.UnaryOp(ast.USub(), ast.Constant(1)))):
                return turned(self._of(value))
            case ast.Subscript(value=value, slice=at):
                return self._item(self._of(value), self._of(at))
            case ast.IfExp(test=test, body=one, orelse=other):
                return chosen(self._of(test), self._of(one), self._of(other))
            case ast.Lambda():
                return self._closed(node)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._comprehension(node)
            case ast.Dict(keys=keys, values=values):
                return ("$Dict", *((self._of(key), self._of(value)) for key, value in zip(keys, values, strict=True)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return negated(self._of(operand))
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                return ("$List", *map(self._of, elts))
            case ast.Await() | ast.Yield() | ast.YieldFrom() | ast.DictComp():
                raise TooMuch
        return super()._of(node)

    def _named_value(self, name: str) -> Form:
        if name in self.env:
            return self.env[name]
        value = self.values.get((self.path, name))
        if value is not None and len(self.above) < _DEEP and _is_fixed(value):
            self.above = (*self.above, ("", name))
            found, self.above = self._of(neutral_tree(value)), self.above[:-1]
            return found
        return (f"${name}",)

    def _attribute(self, value: ast.AST, name: str) -> Form:
        if (isinstance(value, ast.Name) and value.id not in self.env) or OWNERS.fullmatch(last_name(value)):
            owner = last_name(value)
            if (slot := f"{owner}.{name}") in self.env:
                return self.env[slot]
            if owner == "self" and name in self.defined and (place := self._defined(name)):
                function = self._tree(place)
                if any(last_name(each) == "property" for each in function.decorator_list):  # type: ignore[attr-defined]
                    return self._inlined(place, function, [], {})
            if OWNERS.fullmatch(owner):
                return (f"${name}",)
        root = root_of(value)
        if root not in self.env and root != "self" and root in LIBRARIES | self.imported:
            self.libraries.add(name)
            return (f"${name}",)
        return (f".{name}", self._of(value))

    def _item(self, value: Form, at: Form) -> Form:
        """An item of something, which may be known."""
        if value[0] == "$Dict":
            found: Form = ("raise",)
            for key, held in value[:0:-1]:
                if key in (at, ("$",)):
                    found = held
                elif at[0][0] != "#":
                    found = chosen(sorted_form(("Eq", at, key)), held, found)
            return found
        numbers = dict[Form, Form]()
        if value[0] == "$List":
            numbers = {of_constant(number): each for number, each in enumerate(value[1:])}
        if value[0][1:] and OWNERS.fullmatch(value[0][1:]) and at[0][:1] == "#":
            return (f"${at[0][1:]}",)
        return numbers.get(at, ("[]", value, at))

    def _listed(self, node: ast.AST) -> Sequence[Form]:
        """The parts of something that is written out."""
        if isinstance(node, (ast.List, ast.Tuple)) and 0 < len(node.elts) <= _UNROLLED:
            return [self._of(each) for each in node.elts]
        return ()

    def _over(self, node: ast.AST) -> tuple[Form, Form]:
        """Over what a loop goes, and what it has in each round."""
        at: Form = ("@", str(self.depth))
        match node:
            case ast.Call(func=ast.Name(id="enumerate"), args=[iterated, *start], keywords=words):
                over, item = self._over(iterated)
                starts = [self._of(each) for each in (*start, *(word.value for word in words))]
                count = [each for each in starts if each != ("#0.0",)]
                return over, ("$List", sorted_form(("Add", at, *count)) if count else at, item)
            case ast.Call(func=ast.Name(id="zip"), args=args) if args:
                pairs = [self._over(each) for each in args]
                return pairs[0][0], ("$List", *(item for _, item in pairs))
            case ast.Call(func=ast.Name(id="iter" | "tqdm"), args=[whole]):
                return self._over(whole)
            case ast.Call(func=ast.Name(id="range"), args=[ast.Call(func=ast.Name(id="len"), args=[whole])]):
                return self._of(whole), at
            case ast.Call(func=ast.Name(id="range")):
                return self._of(node), at
            case ast.Call(func=ast.Attribute(value=whole, attr="items" | "values" as which), args=[]):
                value = ("[]", over := self._of(whole), key := ("[]", over, at))
                return over, ("$List", key, value) if which == "items" else value
        over = self._of(node)
        if over[0] == "comp" and repr(at) in repr(over[2]):
            return over[1], over[2]  # a list of what comes of another one, in the same loop
        return over, ("[]", over, at)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Form:
        first, outer = node.generators[0], self.env
        if len(node.generators) == 1 and not first.ifs and (parts := self._listed(first.iter)):
            self.env, found = {**outer}, []
            for each in parts:
                self._set(first.target, each)
                found.append(self._of(node.elt))
            self.env = outer
            return ("$List", *found)
        self.env = {**outer, "%": ("$List",)}
        body: ast.stmt = ast.Expr(ast.Call(ast.Attribute(ast.Name("%", ast.Load()), "append"), [node.elt], []))
        for made in reversed(node.generators):
            for test in reversed(made.ifs):
                body = ast.If(test, [body], [])
            body = ast.For(made.target, made.iter, [body], [])
        self._do_For(body)  # type: ignore[arg-type]
        found_list, self.env = self.env["%"], outer
        return found_list

    def _of_call(self, node: ast.Call) -> Form:
        if self._is_silent(node):
            return NOTHING
        function, name, owner = node.func, last_name(node.func), last_name(getattr(node.func, "value", None))
        match name, node.args:
            case "list" | "tuple", [whole]:
                return self._of(whole)
            case "reversed", [whole]:
                return turned(self._of(whole))
            case "dict", []:
                return ("$Dict", *((of_constant(each.arg), self._of(each.value)) for each in node.keywords))
        called = self._of(function)
        a_method = isinstance(function, ast.Attribute) and called == (f"${name}",) and name not in self.libraries
        if isinstance(function, ast.Attribute) and a_method and owner != "self":
            called = (f".{name}", self._of(function.value))  # whatever name its owner is of
        given, words = [self._of(each) for each in node.args], self._words(node)
        if name == "partial" and given:
            return ("partial", given[0], tuple(given[1:]), tuple(words.items()))
        place = self._defined(name) if owner in ("", "self") and name not in self.env else None
        return self._inlined(place, self._tree(place), given, words) if place else self._applied(called, given, words)

    def _words(self, node: ast.Call) -> dict[str, Form]:
        """What a call gives by name, also out of a table that is known."""
        words = dict[str, Form]()
        for each in node.keywords:
            value = self._of(each.value)
            if each.arg is None and value[0] != "$Dict":
                raise TooMuch
            words |= {each.arg: value} if each.arg else {key[0][1:]: held for key, held in value[1:]}
        return words

    def _applied(self, called: Form, given: list[Form], words: dict[str, Form]) -> Form:
        match called:
            case ("partial", function, more, kept):
                return self._applied(function, [*more, *given], {**dict(kept), **words})
            case ("If", test, one, other):
                before, outer = self.events, self.effects
                sides = []
                for each in (one, other):
                    self.effects, self.events = [], before
                    sides.append((self._applied(each, given, words), tuple(self.effects)))
                self.effects = outer
                self.effects += joined(test, sides[0][1], sides[1][1])
                return chosen(test, sides[0][0], sides[1][0])
            case ("function", at):
                function, env = self.closures[int(at)]
                return self._inlined((self.path, f"?{at}"), function, given, words, env)
            case ("raise",):
                return called
        given, words = [*map(self._escaped, given)], {word: self._escaped(value) for word, value in words.items()}
        if called[0] == ".get" and called[1][0] == "$Dict" and given:
            return self._item(("$Dict", *called[1][1:], *([("$", given[1])] if len(given) > 1 else [])), given[0])
        return self._called(called, given, words)

    def _called(self, called: Form, given: list[Form], words: dict[str, Form]) -> Form:
        """What comes of a call of a function that is not known."""
        root = called[0][1:] if called[0][:1] in "$." else ""
        known = called[0][:1] == "." or root in self.libraries | self.own | self.imported or hasattr(builtins, root)
        name = self._named(root, ast.Constant(0)) if known else ""
        places = read_table(TABLE)["places"].get(name, "").split()
        words |= dict(zip(places, given, strict=False))
        given, own = given[len(places) :], name in self.own
        form = (
            name or "()", *(called[1:] if name else (called,)), *given,
            *((value if own else (f"{word}=", value)) for word, value in sorted(words.items())),
        )  # fmt: skip
        form = sorted_form(form)
        is_pure = root in self.libraries | {*self.words["pure"]} and not own
        return form if is_pure and not _CHANGES.match(root) else self._event(*form)

    def _escaped(self, form: Form) -> Form:
        """A function that is handed on: what it does with what it is given."""
        kept, function, given, words = form, form, [], {}
        if form[0] == "partial":
            function, given, words = form[1], [*form[2]], {key: self._escaped(value) for key, value in form[3]}
        env: dict[str, Form] | None = None
        if function[0] == "function":
            node, env = self.closures[int(function[1])]
            place = (self.path, f"?{function[1]}")
        elif len(function) == 1 and function[0][:1] == "$" and (found := self._defined(function[0][1:])):
            node, place = self._tree(found), found
        else:
            return kept
        names = [each.arg for each in node.args.args if each.arg not in words][len(given) :]  # type: ignore[attr-defined]
        given += [(f"$given {self.depth} {at}",) for at, _ in enumerate(names)]
        words |= dict(zip(names, given[len(given) - len(names) :], strict=True))
        outer, events, self.effects, self.events = self.effects, self.events, [], 0
        value = self._inlined(place, node, given[: len(given) - len(names)], words, env)
        effects, self.effects, self.events = tuple(self.effects), outer, events
        return ("fn", effects, value)

    def _defined(self, name: str) -> tuple[str, str] | None:
        """The function of this program alone that has a name."""
        if name not in self.defined:
            return None
        places = [place for place in self.functions if place[1].rpartition(".")[2] == name]
        here = [place for place in places if place[0] == self.path] or places
        return here[0] if len(here) == 1 else None

    def _bound(self, arguments: ast.arguments, given: Sequence[Form], words: dict[str, Form]) -> dict[str, Form]:
        """What the arguments of a function are in a call."""
        if arguments.vararg or arguments.kwarg:
            raise TooMuch
        named = [each.arg for each in (*arguments.posonlyargs, *arguments.args) if each.arg not in ("self", "cls")]
        last = zip(named[len(named) - len(arguments.defaults) :], arguments.defaults, strict=False)
        only = zip((each.arg for each in arguments.kwonlyargs), arguments.kw_defaults, strict=True)
        bound = {**dict(zip(named, given, strict=False)), **words}
        return {name: self._of(value) for name, value in (*last, *only) if name not in bound} | bound

    def _inlined(
        self, place: tuple[str, str], function: ast.AST, given: Sequence[Form], words: dict[str, Form],
        env: dict[str, Form] | None = None,
    ) -> Form:  # fmt: skip
        """What comes of a call of a function of which the body is known."""
        if place in self.above or len(self.above) >= _DEEP:
            raise TooMuch
        self.used.add(place)
        outer, above, path = self.env, self.above, self.path
        self.above, self.path = (*above, place), place[0]
        own = {**(env or {key: value for key, value in outer.items() if "." in key})}
        own |= self._bound(function.args, given, words)  # type: ignore[attr-defined]
        self.env = own
        if isinstance(function, ast.Lambda):
            found: tuple[Form, ...] = (("return", self._of(function.body)),)
        else:
            found = self._body(function)
        kept = {key: value for key, value in self.env.items() if "." in key}
        self.env, self.above, self.path = {**outer, **kept}, above, path
        *effects, last = [*found, NOTHING] if not found or found[-1][0] != "return" else found
        if any(_returns(each) for each in effects):
            raise TooMuch
        self.effects += effects
        return last[1] if last[0] == "return" else NOTHING


def _slot(node: ast.AST) -> str:
    """The name under which a variable or a field of one is kept."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return f"{owner}.{name}"
    return ""


def _jumps(body: Iterable[ast.AST]) -> bool:
    """Whether statements leave what is around them."""
    for node in body:
        if isinstance(node, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if isinstance(node, (ast.If, ast.With, ast.Try)) and _jumps(ast.iter_child_nodes(node)):
            return True
    return False


def _returns(effect: object) -> bool:
    return isinstance(effect, tuple) and (effect[:1] == ("return",) or any(map(_returns, effect)))


def _stored(node: ast.AST) -> Iterable[str]:
    """The variables that a statement gives a value, or may change."""
    for each in ast.walk(node):
        match each:
            case ast.Name(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                yield _slot(each)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=it))) | ast.Subscript(value=it, ctx=ast.Store()):
                yield _slot(it)


def _is_fixed(node: ast.AST) -> bool:
    """Whether the value of a module is the same at all times: numbers, tables of them, parts of libraries."""
    match node:
        case ast.Constant() | ast.Lambda() | ast.expr_context() | ast.operator() | ast.unaryop():
            return True
        case ast.Attribute(value=ast.Name(id=name)):
            return name in LIBRARIES
        case ast.Call(func=function, args=args, keywords=words):
            return last_name(function) in ("partial", "dict") and all(map(_is_fixed, (*args, *words)))
        case ast.Dict() | ast.List() | ast.Tuple() | ast.BinOp() | ast.UnaryOp() | ast.keyword():
            return all(map(_is_fixed, ast.iter_child_nodes(node)))
    return False


def is_calm(node: ast.AST) -> bool:
    return last_name(node.func if isinstance(node, ast.Call) else node) in ("no_grad", "inference_mode")
