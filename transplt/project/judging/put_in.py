"""Expressions with the values of variables in their places, as a judge follows them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from transplt.project.judging.statements import Statement, stands_aside
from transplt.syntax.nodes import last_name

_HANDED_ON = ("initialize", "prepare")
#: What a loop has in each round, the number of that, what is made in all rounds, and nothing.
EACH, INDEX, ALL, NONE = "_each", "_index", "_all", "_none"
Conditions = list[tuple[str, bool]]
Env = dict[str, ast.expr]


def parsed(text: str) -> ast.expr:
    """A condition; it says nothing of lines."""
    test = ast.parse(text, mode="eval").body
    for node in ast.walk(test):
        if hasattr(node, "lineno"):
            node.lineno = 0
    return test


def arguments_given(call: ast.Call, head: Statement, *, method: bool) -> Env | None:
    """What the arguments of a function are in a call."""
    given = next(part for part in head.parts if isinstance(part, ast.arguments))
    if given.vararg or given.kwarg or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    names = [each.arg for each in (*given.posonlyargs, *given.args)][method:]
    found: Env = dict(zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True))
    found |= {one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    found |= dict(zip(names, call.args, strict=False))
    found |= {word.arg: word.value for word in call.keywords if word.arg}
    return found


def spread(target: ast.AST, iterated: ast.expr, env: Env) -> None:
    """Give the variables of a loop what they are in each round."""
    match target, iterated:
        case ast.Tuple(elts=[ast.Name(id=name), rest]), ast.Call(func=ast.Name(id="enumerate"), args=[of, *_]):
            env[name] = called_with(INDEX, of)
            spread(rest, of, env)
        case ast.Tuple(elts=elts), ast.Call(func=ast.Name(id="zip"), args=args) if len(elts) == len(args):
            for one, of in zip(elts, args, strict=True):
                spread(one, of, env)
        case ast.Name(id=name), ast.Call(func=ast.Name(id=made), args=[of]) if made == ALL:
            env[name] = of
        case ast.Name(id=name), _:
            env[name] = called_with(EACH, iterated)
        case ast.Tuple(elts=elts), _:
            for number, one in enumerate(elts):
                if isinstance(one, ast.Name):
                    env[one.id] = item_of(called_with(EACH, iterated), number, len(elts))
                else:
                    spread(one, item_of(iterated, number, len(elts)), env)


def set_under(asked: Conditions, new: ast.expr, old: ast.expr) -> ast.expr:
    """What is there after something was set under conditions."""
    if not asked:
        return new
    (text, way), rest = asked[0], asked[1:]
    ways = [old.body, old.orelse] if isinstance(old, ast.IfExp) and ast.unparse(old.test) == text else [old, old]
    ways[0 if way else 1] = set_under(rest, new, ways[0 if way else 1])
    return ast.IfExp(parsed(text), *ways)


def _width(value: ast.expr) -> int:
    """Of how many parts a value is, whichever way it was chosen; 0 where it is of none, or nobody knows."""
    if isinstance(value, ast.IfExp):
        return size if (size := _width(value.body)) == _width(value.orelse) else 0
    return len(value.elts) if isinstance(value, ast.Tuple) else 0


def collected(value: ast.expr | None) -> ast.expr | None:
    """What a list has for each round where nothing is added to it; None for what is no list that is being filled."""
    match value:
        case ast.List(elts=[]):
            return ast.Name(NONE, ast.Load())
        case ast.Call(func=ast.Name(id=name), args=[ast.IfExp() as chosen, *_]) if name == ALL:
            return chosen
    return None


def is_carried(value: ast.expr | None, name: str) -> bool:
    """Whether a variable has what nobody can follow: that of the round before, or none."""
    return value is None or (isinstance(value, ast.Name) and value.id == name)


def item_of(value: ast.expr, number: int, of_: int) -> ast.expr:
    """One part of a value."""
    match value:
        case ast.Tuple(elts=elts) | ast.List(elts=elts) if len(elts) == of_:
            return elts[number]
        case ast.Call(func=ast.Name(id=name), args=[of]) if name == ALL and len(
            # the one thing that it is made for each part of
            every := {
                ast.unparse(one): one for one in ast.walk(of)
                if isinstance(one, ast.Call) and getattr(one.func, "id", "") == EACH
            }
        ) == 1:
            given = every.popitem()[1]
            swapped: ast.expr = _swapped(of, given, item_of(given.args[0], number, of_))
            return swapped
        case ast.Call(func=function, args=args) if last_name(function) in _HANDED_ON and len(args) >= of_:
            return args[number]
        case ast.IfExp(test=test, body=body, orelse=other):
            return ast.IfExp(test, item_of(body, number, of_), item_of(other, number, of_))
    return ast.Subscript(value, ast.Constant(number), ast.Load(), lineno=getattr(value, "lineno", 0))


def _swapped(node: Any, old: ast.Call, new: ast.expr) -> Any:
    if isinstance(node, list):
        return [_swapped(each, old, new) for each in node]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Call) and ast.unparse(node) == ast.unparse(old):
        return new
    return rebuilt(node, lambda value: _swapped(value, old, new))


def for_all(made: ast.expr, part: ast.expr | None) -> ast.expr:
    """What is made for each `part` of something; where it says nothing of the part, for each of so many."""
    match part:
        case ast.Call(func=ast.Name(id=name), args=[of]) if name == EACH and ast.unparse(part) not in ast.unparse(made):
            return ast.Call(ast.Name(ALL, ast.Load()), [made, of], [])
    return called_with(ALL, made)


def under_conditions(node: Any, known: dict[str, bool]) -> Any:
    """An expression where some conditions are known."""
    if isinstance(node, list):
        return [under_conditions(each, known) for each in node]
    if not known or not isinstance(node, ast.AST) or not any(isinstance(each, ast.IfExp) for each in ast.walk(node)):
        return node
    if isinstance(node, ast.IfExp) and (text := ast.unparse(node.test)) in known:
        return under_conditions(node.body if known[text] else node.orelse, known)
    return rebuilt(node, lambda value: under_conditions(value, known))


def called_with(name: str, given: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [given], [])


def rebuilt(node: ast.AST, of: Any) -> Any:
    fields = {name: of(value) for name, value in ast.iter_fields(node)}
    made = type(node)(**fields)
    return ast.copy_location(made, node) if hasattr(node, "lineno") else made


def _for_all(elt: ast.expr, one: ast.comprehension, env: Env) -> ast.expr:
    """What is made for each part of something, as a loop that fills a list would make it."""
    iterated, bound = with_values(one.iter, env), dict[str, ast.expr]()
    if isinstance(iterated, (ast.Tuple, ast.List)) and isinstance(one.target, ast.Name) and not one.ifs:
        return ast.Tuple([with_values(elt, env | {one.target.id: each}) for each in iterated.elts], ast.Load())
    spread(one.target, iterated, bound)
    made = with_values(elt, env | bound)
    for test in one.ifs:
        made = ast.IfExp(with_values(test, env | bound), made, ast.Name(NONE, ast.Load()))
    used = bound.keys() & {getattr(each, "id", "") for each in ast.walk(elt)}
    return called_with(ALL, made) if used else ast.Call(ast.Name(ALL, ast.Load()), [made, iterated], [])


def _unpacked(words: list[ast.keyword], env: Env) -> list[ast.keyword]:
    """Arguments of a call with those that a dictionary holds."""
    found = list[ast.keyword]()
    for each in words:
        held = env.get(getattr(each.value, "id", "")) if each.arg is None else None
        named = zip(held.keys, held.values, strict=True) if isinstance(held, ast.Dict) else ()
        found += [ast.keyword(str(getattr(key, "value", "")), value) for key, value in named] or [each]
    return sorted((each for each in found if not stands_aside(each.arg or "")), key=lambda each: each.arg or "~")


def with_values(node: Any, env: Env) -> Any:
    """An expression with the values of variables in their places."""
    if isinstance(node, list):
        return [with_values(each, env) for each in node]
    if not isinstance(node, ast.AST) or isinstance(node, ast.expr_context):
        return node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return env.get(node.id, node)
    match node:
        case ast.NamedExpr(value=value):
            return with_values(value, env)
        case ast.Call(func=function, args=args, keywords=words) if any(each.arg is None for each in words) and (
            len(given := _unpacked(words, env)) != len(words) or all(each.arg for each in given)
        ):
            return with_values(ast.copy_location(ast.Call(function, args, given), node), env)
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=words):
            values = [with_values(each.value, env) for each in words]
            return ast.Dict([ast.Constant(each.arg) for each in words], values)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=key)) if (
            isinstance(held := env.get(name), ast.Dict)
        ):
            pairs = zip(held.keys, held.values, strict=True)
            if found := [value for one, value in pairs if getattr(one, "value", NONE) == key]:
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
    return rebuilt(node, lambda value: with_values(value, env))


def parts_given(given: ast.expr) -> Iterable[tuple[object, ast.expr]]:
    if isinstance(given, ast.Dict):
        return zip([getattr(each, "value", "") for each in given.keys], given.values, strict=True)
    size = _width(given)
    return enumerate([item_of(given, number, size) for number in range(size)] or [given])
