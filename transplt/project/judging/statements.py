"""The statements of a program in the form that a pure port does not change: without devices, docstrings and types."""

from __future__ import annotations

import ast
import copy
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

_CARD = re.compile(r"cuda|gpu|npu|ascend(?:_rt)?", re.IGNORECASE)
_LIBRARY = re.compile(r"nccl|hccl", re.IGNORECASE)
_DEVICE = re.compile(r"npu|cpu|device|rank|accelerator|\bxpu\b", re.IGNORECASE)
_PLACE_OR_WHOLE = re.compile(rf"{_DEVICE.pattern}|torch\.(?:int(?:32|64)?|long)$", re.IGNORECASE)
#: Whether a seed was given, and none but that.
_SEEDED = re.compile(r"(?:\w+\.)?\w*seed(?: is(?: not)? None)?", re.IGNORECASE)
FUSED = re.compile(r"^(?:npu)?Fused(?=[A-Z])|(?<=[a-z])_fused(?=_)")
#: What makes another name of a class of torch, which does the same.
OWN = re.compile(r"^\w+(?=(?:DataLoader|GradScaler)$)")
#: Methods that a port adds and takes away: where a tensor is, and as which whole number.
_MOVES = frozenset("npu cpu contiguous int long item".split())
#: What `transplt judge` takes for a part of a training: places of arguments, keywords aside, and all that themes are.
TABLE = "support/judged.json"
_INSIDE = frozenset("body orelse finalbody handlers cases".split())
_NOT_SPELLED = frozenset("annotation returns type_comment type_params ctx kind".split())
_LOWERED = re.compile(r"allow_[th]f32")
_SAID = frozenset("print info debug warning warn error log write add_scalar set_description set_postfix".split())
_OPPOSITES: dict[type, type[ast.cmpop]] = {
    ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In, ast.GtE: ast.Lt, ast.LtE: ast.Gt,
}  # fmt: skip
#: Where a statement stands: scope, guards, in a loop, at the end of its function, behind what leaves.
_Where = tuple[str, tuple[str, ...], int, bool, tuple[str, ...]]
#: Whether torch knows the card at all: what stands before the question whether there is one.
_KNOWS_CARD = re.compile(r"(?:has|get)attr\(torch(?:\.\w+)?, '\w+'(?:, None)?\)(?: is not None)?")
_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
#: The condition of what runs where something else than the training fails: an import, a call of git, a folder.
ASIDE = "something aside fails"
#: What a training does.
TRAINS = re.compile(
    r"backward|\.step\(|loss|criterion|model|net\b|optimizer|train|forward|load|output|eval(?:uate)?_|test|main\(|npu\("
    r"|cuda\(|dist(?:ributed)?\.\w+\("
)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement, or the head of a compound one: its `text` without devices, its `raw` text with them in one
    spelling. `scope` is the function around it, `guards` are the conditions that it is under; `loop`: in so many loops,
    `last`: at the end of its function; `behind`: what cannot be, as it leaves before (`if x: continue`)."""

    text: str
    raw: str
    node: ast.AST
    parts: tuple[ast.AST, ...]
    path: str
    scope: str
    guards: tuple[str, ...] = ()
    loop: int = 0
    last: bool = False
    behind: tuple[str, ...] = ()
    _inside: list[ast.AST] = field(default_factory=list, repr=False)

    @property
    def line(self) -> int:
        return getattr(self.node, "lineno", 1)

    @property
    def place(self) -> tuple[str, str]:
        """Its file, and the function around it."""
        return self.path, self.scope

    @property
    def conditions(self) -> set[str]:
        """All that holds where it is reached."""
        return {*self.guards, *self.behind}

    @property
    def shown(self) -> str:
        """What a person reads of it: the line of a head without what is below it."""
        if not hasattr(self.node, "body"):
            return ast.unparse(self.node)
        head = copy.copy(self.node)
        for name in (*_INSIDE, "decorator_list"):
            if hasattr(head, name):
                setattr(head, name, [ast.Pass()] if name == "finalbody" else [])
        return ast.unparse(head).partition(":\nfinally")[0].rstrip(":")

    def inside(self) -> list[ast.AST]:
        """All nodes of it, without those of the statements below it."""
        if not self._inside:
            self._inside.extend(node for part in self.parts for node in ast.walk(part))
        return self._inside

    @property
    def said(self) -> bool:
        """Whether it only tells people something."""
        value = self.node.value if isinstance(self.node, ast.Expr) else None
        return isinstance(value, ast.Call) and last_name(value.func) in _SAID


def neutral(text: str) -> str:
    """A text with one spelling for all devices and their libraries."""
    return _LIBRARY.sub("hccl", _CARD.sub("npu", text)).replace("torch_npu", "torch")


class _Neutral(ast.NodeTransformer):
    """Takes out of expressions what a pure port changes; `constants` stand for names of the module."""

    def __init__(self, constants: dict[str, ast.expr]) -> None:
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self.constants:
            return self.constants[node.id]
        node.id = neutral(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        node.attr = neutral(node.attr)
        if _LOWERED.fullmatch(node.attr):  # one switch, of whichever library
            of = "conv" if last_name(node.value) in ("cudnn", "conv") else "matmul"
            return ast.copy_location(ast.Attribute(ast.Name(of, ast.Load()), "allow_tf32", node.ctx), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        match node:  # `item()` of an old release
            case ast.Subscript(value=ast.Attribute(value=owner, attr="data"), slice=ast.Constant(value=0)):
                return ast.copy_location(owner, node)
        return node

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        self.generic_visit(node)
        match node:  # names with and without the prefix of a wrapper
            case ast.DictComp(value=ast.Name(id=value), generators=[ast.comprehension(
                target=ast.Tuple(elts=[ast.Name(), ast.Name(id=taken)]), ifs=[],
                iter=ast.Call(func=ast.Attribute(value=owner, attr="items")),
            )]) if value == taken and "'module.'" in ast.unparse(node.key):  # fmt: skip
                return ast.copy_location(owner, node)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str):
            node.value = neutral(node.value)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg, node.annotation = neutral(node.arg), None
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        asked = [each for each in node.values if not _KNOWS_CARD.fullmatch(ast.unparse(each))]
        return node if len(asked) > 1 or not asked else asked[0]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function, table = node.func, read_table(TABLE)
        if last_name(function) == "getattr" and getattr(node.args[1], "value", "") == "module":
            return ast.copy_location(node.args[0], node)
        name = FUSED.sub("", last_name(function))
        places = table["places"].get(last_name(function), table["places"].get(OWN.sub("", name), "")).split()
        if isinstance(function, ast.Attribute):
            if name in _MOVES and getattr(function.value, "id", "") not in ("np", "numpy"):
                return ast.copy_location(function.value, node)  # the place of the whole: it is what a person reads
            function.attr = name
        elif isinstance(function, ast.Name):
            function.id = name
        node.keywords = [each for each in node.keywords if not stands_aside(each.arg or "")]
        if name in ("to", "autocast"):
            node.args = [each for each in node.args if not _PLACE_OR_WHOLE.search(ast.unparse(each))]
            if name == "to" and isinstance(function, ast.Attribute) and not [*node.args, *node.keywords]:
                return ast.copy_location(function.value, node)
        if not any(isinstance(each, ast.Starred) for each in node.args):
            node.keywords += [ast.keyword(*each) for each in zip(places, node.args, strict=False)]
            node.args = node.args[len(places) :]
        node.keywords = _without_defaults(node.keywords, table["defaults"].get(name, {}))
        return node


def _without_defaults(keywords: list[ast.keyword], usual: Mapping[str | None, str]) -> list[ast.keyword]:
    """Keywords by their names, without those that say what is `usual`."""
    said = (each for each in keywords if usual.get(each.arg) != ast.unparse(each.value))
    return sorted(said, key=lambda each: each.arg or "~")


def stands_aside(name: str) -> bool:
    """Whether a keyword says where and how fast, and not what."""
    return name in read_table(TABLE)["aside"] or _CARD.search(name) is not None


def statements_of(tree: ast.Module, path: str) -> list[Statement]:
    """All statements of a file, in their order. RecursionError for one that is nested too deeply."""
    transformer = _Neutral(_constants(tree))
    pending: list[tuple[ast.AST, _Where]] = [(node, ("", (), 0, False, ())) for node in reversed(tree.body)]
    found = []
    while pending:
        node, where = pending.pop()
        node = _as_one(_calm_inside(node))
        if _is_text_alone(node):
            continue
        singles: Sequence[ast.AST] = _singles(node) or _rounds(node)
        seeded = _seeded(node)
        if len(singles) > 1 or seeded is not None:
            singles = singles if seeded is None else seeded
            pending += ((each, where) for each in reversed(singles))
            continue
        statement = _statement(node, transformer, path, where)
        found.append(statement)
        pending += reversed([*_below(node, statement)])
    return found


def _is_text_alone(node: object) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _singles(node: ast.AST) -> list[ast.Assign]:
    """`a, b = x, y` as two statements, where no value is of what was set before it."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(names) == len(values):
            said = [*map(ast.unparse, names)]
            reads = [re.compile(rf"(?<![\w.]){re.escape(each)}(?!\w)") for each in said]
            later = ((each, ast.unparse(value)) for at, each in enumerate(reads) for value in values[at + 1 :])
            if not any(each.search(value) for each, value in later):
                pairs = zip(names, values, strict=True)
                return [ast.copy_location(ast.Assign([name], value), node) for name, value in pairs]
    return []


class _Put(ast.NodeTransformer):
    """Puts a value in the place of a name."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(_copied(self.value), node) if node.id == self.name else node


def _rounds(node: ast.AST) -> list[ast.AST]:
    """A loop over parts that are written there, round for round."""
    match node:
        case ast.For(target=ast.Name(id=name), iter=ast.Tuple(elts=parts) | ast.List(elts=parts), body=body, orelse=[]):
            inside = [each for one in body for each in ast.walk(one)]
            leaves = any(isinstance(each, (ast.Break, ast.Continue)) for each in inside)
            stored = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
            if not leaves and name not in stored and all(isinstance(each, (ast.Name, ast.Attribute)) for each in parts):
                return [_Put(name, each).visit(_copied(one)) for each in parts for one in body]
    return []


def _seeded(node: ast.AST) -> list[ast.stmt] | None:
    """What is done where a seed is given: one that is chosen where none is given is as good as any."""
    if not isinstance(node, ast.If) or node.orelse or not _SEEDED.fullmatch(asked := ast.unparse(node.test)):
        return None
    return [] if asked.endswith("is None") and all(isinstance(each, ast.Assign) for each in node.body) else node.body


def _calm_inside(node: ast.AST) -> ast.AST:
    """A function under `@torch.no_grad()` as one with a block around all that it does."""
    if isinstance(node, ast.FunctionDef):
        calm = [each for each in node.decorator_list if re.search(r"\b(?:no_grad|inference_mode)\b", ast.unparse(each))]
        if calm:
            around = ast.copy_location(ast.With([ast.withitem(each) for each in calm], node.body), calm[0])
            node = copy.copy(node)
            node.decorator_list = [each for each in node.decorator_list if each not in calm]
            node.body = [around]
    return node


def _as_one(node: ast.AST) -> ast.AST:
    """Two branches that give a value to one thing, or give one back, as a conditional expression."""
    if not isinstance(node, ast.If) or not len(node.body) == len(node.orelse) == 1:
        return node
    found: ast.AST = node
    match _as_one(node.body[0]), _as_one(node.orelse[0]):
        case ast.Assign(targets=[one], value=value), ast.Assign(targets=[two], value=other) if (
            ast.unparse(one) == ast.unparse(two)
        ):
            found = ast.Assign([one], ast.IfExp(node.test, value, other))
        case ast.Return(value=ast.expr() as value), ast.Return(value=ast.expr() as other):
            found = ast.Return(ast.IfExp(node.test, value, other))
    return ast.copy_location(found, node)


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """The numbers that stand under names in capitals, alone or several."""
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int() | float()) as value):
                if name.isupper():
                    found[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Tuple(elts=elts) | ast.List(elts=elts) as value):
                if name.isupper() and all(isinstance(getattr(each, "value", None), int | float) for each in elts):
                    found[name] = value
    return found


def _statement(node: ast.AST, transformer: _Neutral, path: str, where: _Where) -> Statement:
    head = copy.copy(node)
    if isinstance(head, ast.If) and head.orelse:
        head.test, _ = upright(head.test)
    if isinstance(head, ast.AnnAssign) and head.value is not None:
        head = ast.Assign([head.target], head.value, lineno=head.lineno)
    parts, raw = [], []
    for name, value in ast.iter_fields(head):
        if name in _INSIDE or name in ("returns", "annotation", "type_comment", "type_params"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                each = _copied(each)
                raw.append(neutral(ast.unparse(each)))
                parts.append(transformer.visit(each))
            elif each is not None:
                raw.append(neutral(str(each)))
    kind = type(head).__name__
    names = [neutral(str(value)) for value in ast.iter_fields(head) if isinstance(value[1], str)]
    silent = isinstance(node, ast.ExceptHandler) and all(map(does_nothing, node.body))
    text = " ".join((kind, *names, *map(ast.unparse, parts), *(["silent"] * silent)))
    return Statement(text, f"{kind} {' '.join(raw)}", node, tuple(parts), path, *where)


def upright(test: ast.expr) -> tuple[ast.expr, bool]:
    """A condition without its negation, and whether it had one: two branches may stand in either order."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found, turned = upright(operand)
            return found, not turned
        case ast.Compare(left=left, ops=[op], comparators=others) if type(op) in _OPPOSITES:
            return ast.Compare(left, [_OPPOSITES[type(op)]()], others), True
    return test, False


def _copied(node: Any) -> Any:
    """An expression that may be changed; several times faster than copy.deepcopy."""
    if isinstance(node, list):
        return [_copied(each) for each in node]
    if not isinstance(node, ast.AST) or isinstance(node, ast.expr_context):
        return node
    return type(node)(**{name: _copied(value) for name, value in vars(node).items()})


def does_nothing(node: ast.AST) -> bool:
    """Whether a statement is `pass` or one of its kind, or only tells people something."""
    match node:
        case ast.Pass() | ast.Continue() | ast.Break() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Return(value=None | ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return last_name(function) in _SAID
    return False


def _below(node: ast.AST, head: Statement) -> Iterator[tuple[ast.AST, _Where]]:
    """The statements in a compound one."""
    scope, guards, loop, behind = head.scope, head.guards, head.loop, head.behind
    if defines := isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        scope, guards, loop = f"{scope}.{node.name}" if scope else node.name, (), 0
        behind = ()
    closes, test, turned = head.last and isinstance(node, ast.With), "", False
    if isinstance(node, (ast.If, ast.While)) and isinstance(given := head.parts[0], ast.expr):
        test, turned = ast.unparse(upright(given)[0]), upright(node.test)[1]
    aside = isinstance(node, ast.Try) and not TRAINS.search(ast.unparse(ast.Module(node.body, [])))
    for name, value in ast.iter_fields(node):
        if name not in _INSIDE or not isinstance(value, list):
            continue
        under = guards
        if isinstance(node, ast.If):
            under = (*guards, test if turned == (name == "orelse") else f"not ({test})")
        elif name == "handlers":
            under = (*guards, ASIDE if aside else "the training fails")
        left = behind
        for each in value:
            inside = loop + isinstance(node, (ast.For, ast.While, ast.AsyncFor))
            yield each, (scope, under, inside, each is value[-1] and (defines or closes), left)
            match each:  # `x` cannot be behind `if not x: continue`; behind an error nothing is done in another way
                case ast.If(test=when, body=[*_, end], orelse=[]) if isinstance(end, _LEAVES[1:]):
                    asked, opposite = upright(when)
                    said = neutral(ast.unparse(asked))
                    left = (*left, said if opposite else f"not ({said})")


@dataclass(frozen=True, slots=True)
class Apart:
    """What two programs do not have in common, and the statements of both that match."""

    gone: list[Statement]
    new: list[Statement]
    alike: list[tuple[Statement, Statement]]


#: What has to be the same, the closest first: what moved is the same as well.
_Keys = Sequence[Callable[[Statement], Hashable]]
_KEYS: _Keys = (
    lambda each: (each.path, each.scope, each.guards, each.raw),
    lambda each: (each.path, each.scope, each.guards, each.text),
    lambda each: (each.path, each.scope, each.text),
    lambda each: (each.path, each.text),
    lambda each: each.text,
)
#: From which key on a statement is looked for elsewhere, and up to which length it says too little for that.
_ELSEWHERE, SHORT = 3, 15


def compared(
    before: Iterable[Statement], after: Iterable[Statement], keys: _Keys = _KEYS, elsewhere: int = _ELSEWHERE
) -> Apart:
    """Which statements of two programs match, and which do not. Files that belong together have one path; from the key
    of number `elsewhere` on short statements match nothing."""
    gone, new = [*before], [*after]
    alike: list[tuple[Statement, Statement]] = []
    for number, key in enumerate(keys):
        there: dict[Hashable, list[Statement]] = defaultdict(list)
        for each in reversed(new):
            there[key(each)].append(each)
        left, matched = [], set()
        for each in gone:
            same = there[key(each)]
            if same and (number < elsewhere or len(each.text) > SHORT):
                other = same.pop()
                matched.add(id(other))
                alike.append((each, other))
            else:
                left.append(each)
        gone, new = left, [each for each in new if id(each) not in matched]
    return Apart(gone, new, alike)


def asked_in(guard: str) -> str:
    """The question behind a guard, whichever way it was answered."""
    return guard[5:-1] if guard.startswith("not (") else guard


def without_leaving(found: Apart, before: Iterable[Statement], after: Iterable[Statement]) -> Apart:
    """What differs without `continue` and `return` under a question that the other program asks around the rest."""
    asked = (
        {(each.place, asked_in(guard)) for each in side if not isinstance(each.node, _LEAVES) for guard in each.guards}
        for side in (after, before)
    )
    sides, out = (found.gone, found.new), set[int]()
    for side, other, there in zip(sides, sides[::-1], asked, strict=True):
        left = {
            (each.place, asked_in(each.guards[-1])): each for each in side
            if each.guards and each.text in ("Continue", "Return")
        }  # fmt: skip
        left = {place: each for place, each in left.items() if place in there}
        heads = [[each for each in one if _asks(each) in left] for one in (side, other)]
        out |= {*map(id, left.values())}
        # Both questions are the same one, whatever stands below them.
        out |= {id(each) for each in (*heads[0], *heads[1]) if {_asks(one) for one in heads[0]} >= {_asks(each)}}
    gone, new = ([each for each in side if id(each) not in out] for side in sides)
    return Apart(gone, new, found.alike)


def _asks(each: Statement) -> tuple[tuple[str, str], str] | None:
    """What a condition asks, and where."""
    if not isinstance(each.node, ast.If) or not isinstance(test := each.parts[0], ast.expr):
        return None
    return each.place, ast.unparse(upright(test)[0])


def unlike(*sides: list[Statement]) -> tuple[list[Statement], list[Statement]]:
    """Both programs without the functions that are the same: nothing in these can be a difference, whoever asks."""
    spelled: list[dict[tuple[str, str], list[Hashable]]] = []
    for side in sides:
        found = defaultdict[tuple[str, str], list[Hashable]](list)
        for each in side:
            if isinstance(each.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[each.path, f"{each.scope}.{each.node.name}".lstrip(".")].append(_spelled(each.node))
        spelled.append(found)
    same = {place for place, found in spelled[0].items() if spelled[1].get(place) == found}
    before, after = ([each for each in side if same.isdisjoint(_around(each))] for side in sides)
    return before, after


def _around(each: Statement) -> Iterator[tuple[str, str]]:
    """The functions that a statement is in, and the one that it begins."""
    name = each.node.name if isinstance(each.node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""
    parts = [*filter(None, (*each.scope.split("."), name))]
    return ((each.path, ".".join(parts[:end])) for end in range(1, len(parts) + 1))


def _spelled(function: ast.AST) -> Hashable:
    """A function without the names of its own variables, docstrings and types."""
    inside = [*ast.walk(function)]
    names = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    given = {each.arg for each in inside if isinstance(each, ast.arg)}
    given.update(name for each in inside if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names)
    is_plain = sum(isinstance(each, (ast.FunctionDef, ast.Lambda, ast.ClassDef)) for each in inside) == 1
    own, known = names - given if is_plain else set(), dict[str, int]()

    def of(node: object) -> Hashable:
        if isinstance(node, list):
            return (*(of(each) for each in node if not _is_text_alone(each)),)
        if not isinstance(node, ast.AST):
            return neutral(node) if isinstance(node, str) else repr(node)
        if isinstance(node, ast.Name) and node.id in own:
            return known.setdefault(node.id, len(known))
        fields = ast.iter_fields(_as_one(node))
        return (type(node).__name__, *(of(value) for name, value in fields if name not in _NOT_SPELLED))

    return of(function)
