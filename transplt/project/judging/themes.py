"""What a statement says of a training, by theme, so that two programs can be compared by what decides it."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import zip_longest
from typing import Any

from transplt.project.judging.statements import TABLE, Statement
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

#: Methods of modules or tensors; functions of the same name are other things.
_METHODS = frozenset("backward zero_grad set_epoch step half bfloat16".split())
_MODES, _MODULES = ("train", "eval"), re.compile(r"model|net|self$|module")
OPTIONS = ("add_argument", "option")
#: What calls are given to work on: variables, whatever they are called.
_WHAT = ("dataset", "parameters", None)
#: Themes of which a name says something with plain numbers and texts only.
_PLAIN = frozenset("data model precision metric".split())
_MEASURED = re.compile(r"loss|acc|prec|top\d|out|pred|score|metric|correct")
_PARTS = re.compile(r"(?<![\w.])(train|val|valid|test|eval)_(?:data|load|batch|set|iter)\w*(?!\()")
_READS = frozenset("float mean sum detach clone data numpy tolist".split())
#: What chooses a card, or asks whether there is one.
_CHOSEN = re.compile(r"npu|accelerator|\bif\b|\bor\b|is_available|device_?type", re.IGNORECASE)


class Grade(Enum):
    """What a change of a theme comes to: it speaks against the port, a person should know of it, or neither."""

    AGAINST = "against"
    TOLD = "told"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """One thing of a theme that a statement says. Facts with one `key` are compared by their `value`; `shown` is what a
    person reads, `words` are named parts of it. A `weak` one says nothing where the other program has none."""

    theme: str
    key: str
    value: str
    shown: str
    at: Statement
    words: tuple[tuple[str, str], ...] = ()
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A fact that is another in the port, or that only one of the two has."""

    theme: str
    before: Fact | None
    after: Fact | None

    @property
    def grade(self) -> Grade:
        row = read_table(TABLE)["grades"][self.theme]
        return Grade(row[0 if self.before and self.after else 1 if self.before else 2])

    @property
    def sentence(self) -> str:
        """What changed."""
        if self.before is not None and self.after is not None:
            return f'changed from "{self.before.shown}" to "{self.after.shown}"'
        return f"{self.after.shown} is new" if self.after is not None else f"{self.there.shown} is gone"

    @property
    def there(self) -> Fact:
        """The fact of the port, else of the original."""
        fact = self.after or self.before
        assert fact is not None
        return fact


def theme_of(name: str) -> str:
    """What a name of an option, an argument or a variable is about; empty where it is about none of the themes."""
    word = name.lower().replace("-", "_").strip("_")
    return next((theme for theme, pattern in read_table(TABLE)["words"] if re.search(pattern, word)), "")


def name_of(target: ast.expr) -> str:
    """The last name of what is assigned to: `lr` of `group["lr"]`; empty where it has none."""
    match target:
        case ast.Subscript(slice=ast.Constant(value=str() as name)) | ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def facts_of(statement: Statement) -> Iterator[Fact]:
    """The facts that a statement says."""
    if statement.said:
        return
    for node in statement.inside():
        if isinstance(node, ast.Call):
            yield from _of_call(node, statement)
        elif isinstance(node, ast.Dict):
            names = [each.value if isinstance(each, ast.Constant) else "" for each in node.keys]
            yield from _of_names(zip(map(str, names), node.values, strict=True), statement)
    match statement.node:
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            *targets, value = [each for each in statement.parts if isinstance(each, ast.expr)]
            sign = "+= " if isinstance(statement.node, ast.AugAssign) else ""
            yield from _of_names([(name_of(each), value) for each in targets], statement, sign)
        case ast.FunctionDef(name=function) | ast.AsyncFunctionDef(name=function):
            for name, default in defaults_of(statement).items():
                for fact in _of_names([(name, default)], statement):
                    yield replace(fact, key=f"{function}({fact.key}", shown=f"{fact.shown} of {function}")
        case ast.For(iter=ast.Call(func=function)) if last_name(function) in ("range", "islice"):
            target, iterated = map(ast.unparse, statement.parts[:2])
            if re.search("epoch|step|iter|batch", shown := f"for {target} in {iterated}"):
                yield Fact("length", f"for {target}", _signed(statement.parts[1]), shown, statement, weak=True)


@cache
def _row(name: str) -> dict[str, Any] | None:
    """What is said of calls of a name."""
    return next((row for row in read_table(TABLE)["calls"] if re.fullmatch(row["names"], name)), None)


#: The only keyword arguments that count, where a row asks for less than all.
_ASKED = {"name": (), "dtype": ("dtype",)}


def _of_call(call: ast.Call, at: Statement) -> Iterator[Fact]:
    name, row = last_name(call.func), _row(last_name(call.func))
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if name in OPTIONS:
        yield from _of_option(call, at)
    elif row is not None and (owner or name not in _METHODS) and (_MODULES.search(owner) or name not in _MODES):
        if row["key"][:1].isupper():
            name = row["key"]  # whatever comes of it is one, too
        asked = _ASKED.get(row["of"])
        named = (each for each in call.keywords if each.arg not in _WHAT and (asked is None or each.arg in asked))
        words = [(each.arg or "", ast.unparse(each.value)) for each in named]
        given = [*map(ast.unparse, call.args)] if row["of"] == "all" else []
        shown = f"{name}({', '.join([*given, *(f'{key}={value}' for key, value in words)])})"
        parts = (*words, *((f"argument {place}", each) for place, each in enumerate(given)))
        text = at.written(call) if asked is None else shown
        yield Fact(row["theme"], row["key"] or name, shown, text, at, parts)
    else:
        yield from _of_others(call, name, owner, at)


def _of_others(call: ast.Call, name: str, owner: str, at: Statement) -> Iterator[Fact]:
    """What a call is given under names that say what it is, for which part of the data, and what a meter is given."""
    yield from _of_names(((each.arg or "", each.value) for each in call.keywords), at)
    text = ast.unparse(call)
    if name in ("update", "append") and theme_of(owner) in ("loss", "metric") and call.args:
        measured = _MEASURED.search(ast.unparse(call.args[0])) is not None
        yield Fact("metric", f"{owner}.{name}", str(measured), at.written(call), at, weak=True)
    elif "DataLoader" in at.text and name[:1].isupper() and call.args and all(map(is_plain, call.args)):
        yield Fact("data", f"what {name} is given", text, at.written(call), at, weak=True)
    elif found := _PARTS.findall(text):
        shown = f"{', '.join(found)} data given to {name}"
        yield Fact("data", f"given to {name}", shown, shown, at, weak=True)


def _of_option(call: ast.Call, at: Statement) -> Iterator[Fact]:
    names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    name = max(names, key=len, default="")
    words = {each.arg or "": each.value for each in call.keywords}
    default = ast.unparse(words["default"]) if "default" in words else ""
    if not default and isinstance(action := words.get("action"), ast.Constant):
        default = {"store_true": "False", "store_false": "True"}.get(str(action.value), "")
    if (theme := theme_of(name)) and theme != "metric":
        yield Fact(theme, f"{name} default", default, f"the default {default or 'None'} of {name}", at, weak=True)
    if "device" in name:
        yield from _of_device(f"the default of {name}", at)
    elif name and "npu" not in name:
        yield Fact("options", name, name, f"the option {name}", at)


def _of_names(pairs: Iterable[tuple[str, ast.expr]], at: Statement, sign: str = "") -> Iterator[Fact]:
    """Values under names that say what they are."""
    for name, value in pairs:
        theme = theme_of(name)
        if "device" in name:
            yield from _of_device(name, at)
        says_itself = isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and _row(last_name(value.func)))
        if (theme == "loss" and says_itself) or (not is_plain(value) and (theme in _PLAIN or name.startswith("optim"))):
            continue
        if theme:
            shown = f"{name} {sign or '= '}{at.written(value)}"
            yield Fact(theme, f"{name} =", sign + _signed(value), shown, at, weak=True)


def _of_device(name: str, at: Statement) -> Iterator[Fact]:
    card = _CHOSEN.search(at.raw) is not None
    if card or "cpu" in at.raw:
        where = "on a card" if card else "on the CPU"
        yield Fact("device", name, where, f"{name} {where}", at, weak=True)


def defaults_of(statement: Statement) -> dict[str, ast.expr]:
    """The defaults of the arguments of a function."""
    found: dict[str, ast.expr] = {}
    for given in (each for each in statement.parts if isinstance(each, ast.arguments)):
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        found |= zip(names[len(names) - len(given.defaults) :], given.defaults, strict=True)
        found |= {name.arg: value for name, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    return found


def is_plain(value: ast.expr) -> bool:
    """Whether a value is written in full: numbers and texts."""
    plain = (ast.Constant, ast.Tuple, ast.List, ast.expr_context, ast.unaryop, ast.UnaryOp)
    return all(isinstance(each, plain) for each in ast.walk(value))


def _signed(value: ast.AST) -> str:
    """What decides what an expression computes, whatever its variables are called: numbers, operators, functions."""
    found = []
    for node in ast.walk(value):
        match node:
            case ast.Constant(value=constant):
                found.append(repr(constant))
            case ast.operator() | ast.unaryop():
                found.append(type(node).__name__)
            case ast.Call(func=function) if (name := last_name(function)) not in _READS:
                found.append(name if name[:1].isupper() or "loss" in name else "call")
    return " ".join(sorted(found))


def changes(gone: Iterable[Fact], new: Iterable[Fact], scopes: Container[tuple[str, str]]) -> Iterator[Change]:
    """Where the facts of two programs differ. What moved is no difference; what is another stands in the same file, and
    what a name stands for in the same function, if that is one of the `scopes` that both have."""
    before, after = [*gone], [*new]
    for key in (_same, _moved):
        before, after = _without(before, after, key), _without(after, before, key)
    both: dict[tuple[str, ...], tuple[list[Fact], list[Fact]]] = defaultdict(lambda: ([], []))
    for side, facts in enumerate((before, after)):
        for fact in facts:
            here = fact.at.path, fact.at.scope
            place = "\0".join(here) if fact.weak and here in scopes else here[0]
            both[fact.theme, fact.key, place][side].append(fact)
    for (theme, _, _), left in both.items():
        for one, other in zip_longest(*left):
            change = Change(_finer(theme, one, other), one, other)
            if not change.there.weak or (one is not None and other is not None):
                yield change


def _same(fact: Fact) -> Hashable:
    return fact.theme, fact.key, fact.value, fact.at.path


def _moved(fact: Fact) -> Hashable:
    """What is the same wherever it stands: an option of one script is none of another."""
    return fact.theme, fact.key, fact.value, fact.at.path if fact.weak or fact.theme == "options" else ""


def _without(facts: Iterable[Fact], others: Iterable[Fact], key: Callable[[Fact], Hashable]) -> list[Fact]:
    """Those that the others have not as often."""
    values = Counter(map(key, others))
    left = []
    for fact in facts:
        values[key(fact)] -= 1
        if values[key(fact)] < 0:
            left.append(fact)
    return left


def _finer(theme: str, one: Fact | None, other: Fact | None) -> str:
    """The theme of the arguments of a call that differ, where that is one."""
    finer = {theme_of(name) for name, _ in {*one.words} ^ {*other.words}} if one and other else set()
    return finer.pop() or theme if len(finer) == 1 else theme
