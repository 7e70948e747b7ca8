"""Statements as trees of operations, so that one that is written in another way can be told from another one."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import frexp
from typing import Any

from transplt.project.judging.statements import FUSED, OWN, TABLE, Statement, neutral, upright
from transplt.project.judging.themes import defaults_of, name_of
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name, plain_name, root_name

#: An operation and what it is done to. What begins with $ says where a value is kept or handed on, with # what it is.
Form = tuple[Any, ...]
NOTHING: Form = ("$",)
_PATH = re.compile(r"/|^\.?[\w-]*(?:\.\w{1,5})+$|\s|%|^$|^[a-z]+:")
#: What is chosen of a library, and of the names of devices.
_CHOICES = re.compile(
    r"backends|\bcudnn\.|(?:npu|cuda)\.|\benviron\b|^__\w+__$|^find_unused_parameters$|\.requires?_grads?(?<!\.requires_grad)$"
)
_DEVICE = re.compile(r"(?:npu|cpu|cuda)(?::\d+)?")
#: A device, or a variable of the environment that says which one.
_WHICH = re.compile(rf"{_DEVICE.pattern}|(?:npu|[A-Z]+)?(?:_[A-Z]+)*_?(?:DEVICE|RANK|npu)S?(?:_[A-Z]+)*")
_CARD = re.compile(r"torch\.(?:npu|accelerator)\b|getattr\(torch, ")
_ON = re.compile(r"f?['\"]npu(?:\W|$)")
_COMPUTES = re.compile(r"(?:torch|np|numpy|math)\.")
_LIBRARIES = frozenset("torch nn F functional np numpy math optim dist os random time torchvision self cls".split())
#: What holds settings, or is the object itself.
_OWNERS = re.compile(r"\w*(?:arg|opt|cfg|conf|config|param|flag|setting)s?|self|cls", re.IGNORECASE)
#: Numbers that a command line in a text gives to options.
_FLAGS = re.compile(r"--([a-z][\w-]*)[ =](-?\d[\d.e-]*)")
#: Operations that come to the same whichever side is first.
EITHER_WAY = frozenset("Add Mult Eq NotEq And Or".split())
_COMPARES = ("Eq", "NotEq", "Lt", "LtE", "isclose")
#: Values with which a factor does nothing, and what is a power of two in a binary number.
_ONE, _HALF = ("1", "1.0"), 0.5
_NONE: Mapping[str, str] = {}
#: Attributes that compute something, or stand for another tensor.
_TENSORS = frozenset("grad data T mT shape real imag".split())


class Reader:
    """Reads statements of one program; `defined` are its functions and classes that the other one does not have,
    `known` those that both have, `off` options that are off unless asked for. What is called by another name is a
    variable."""

    def __init__(
        self, statements: Iterable[Statement], defined: set[str], known: set[str], renamed: dict[str, str],
        off: Mapping[str, str] = _NONE,
    ) -> None:  # fmt: skip
        self.defined, self.known, self.renamed, self.off = defined, known, renamed, off
        self.own = defined | known | {*renamed.values()}
        self.imported = {
            FUSED.sub("", neutral(each.asname or each.name).partition(".")[0])
            for told in statements if isinstance(told.node, (ast.Import, ast.ImportFrom)) for each in told.node.names
        }  # fmt: skip
        values = [
            (told.parts[0], ast.unparse(told.parts[-1])) for told in statements if isinstance(told.node, ast.Assign)
        ]
        self.cards, self.devices = (
            {name_of(target) for target, value in values if isinstance(target, ast.expr) and form.match(value)}
            for form in (_CARD, _ON)
        )
        functions = (node.func for told in statements for node in told.inside() if isinstance(node, ast.Call))
        self.attributes = {each.attr for each in functions if isinstance(each, ast.Attribute)}
        self.words = read_table(TABLE)["operations"]

    def form(self, statement: Statement) -> Form:
        """What a statement does."""
        node, parts = statement.node, [self._of(each) for each in statement.parts if isinstance(each, ast.expr)]
        match node:
            case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.ClassDef() | ast.Raise():
                return NOTHING
            case ast.Assign(targets=[target]) if _CHOICES.search(ast.unparse(target)):
                return NOTHING
            case ast.AugAssign(op=op) if len(parts) > 1:
                return ("$=", parts[0], sorted_form((type(op).__name__, *parts)))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return ("$def", *map(self._of, defaults_of(statement).values()), *parts)
            case ast.With() | ast.AsyncWith():
                items = (each.context_expr for each in statement.parts if isinstance(each, ast.withitem))
                return ("$with", *map(self._of, items))
            case ast.Expr(value=ast.Call() as call) if self._is_silent(call):
                return ("$said", *self._computed(statement))
            case ast.If(test=test) if re.search(r"__name__|(?<![^.])(?:is|use)_(?:npu|cuda)$", ast.unparse(test)):
                return NOTHING
            case ast.Try(handlers=caught, finalbody=last) if all(map(_ends, caught)) and not any(
                isinstance(each, (ast.Return, ast.Break, ast.Continue)) for each in ast.walk(ast.Module(last, []))
            ):
                return NOTHING
            case ast.For() | ast.While() | ast.If() | ast.Try() | ast.Break() | ast.Continue() | ast.Delete():
                below = (*ast.iter_child_nodes(node),)
                if isinstance(node, ast.If) and isinstance(head := statement.parts[0], ast.expr):
                    parts = [self._of(upright(head)[0])]  # the statements below know whether it is turned
                return NOTHING if below and all(map(self._says_nothing, below)) else (type(node).__name__, *parts)
        return ("$=", *parts)

    def _computed(self, statement: Statement) -> Iterator[Form]:
        """What a message has functions of the program compute."""
        inner: set[int] = set()
        for call in (each for each in statement.inside() if isinstance(each, ast.Call)):
            if last_name(call.func) in self.known and id(call) not in inner:
                inner.update(map(id, ast.walk(call)))
                yield self._of(call)

    def inside(self, statement: Statement) -> Counter[str]:
        """What is done in a statement, messages included."""
        return Counter(self._of(each)[0] for each in statement.inside() if isinstance(each, ast.expr))

    def _says_nothing(self, node: ast.AST) -> bool:
        """Whether a statement below a head only tells people something, or ends what cannot go on."""
        match node:
            case ast.stmt() if isinstance(node, (ast.If, ast.For, ast.With, ast.Try)):
                return all(map(self._says_nothing, ast.iter_child_nodes(node)))
            case ast.Assign(targets=[target], value=value):
                return self._is_plain(value) or _CHOICES.search(ast.unparse(target)) is not None
            case ast.Expr(value=value):
                loads = isinstance(value, ast.Call) and last_name(value.func) == "load_state_dict"
                return loads or self._is_silent(value) or self._is_plain(value)
            case ast.FunctionDef():
                return True
            case ast.stmt():
                return isinstance(node, (ast.Pass, ast.Raise, ast.Import, ast.ImportFrom, ast.Assert))
        return not isinstance(node, ast.ExceptHandler) or all(map(self._says_nothing, node.body))

    def _is_silent(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if any(getattr(each, "attr", "") == "load_state_dict" for each in ast.walk(node)):
            return False
        name, silent = ast.unparse(node.func), self.words["silent"]
        if last_name(node.func) == "log" and (_COMPUTES.match(name) or not node.args):
            return False  # a logarithm
        of_card = name.partition(".")[0] in self.cards or re.search(r"\.(?:npu|cuda)\.", name)
        return last_name(node.func) in silent or name in silent or bool(of_card and "seed" in name)

    def _of(self, node: ast.AST | None) -> Form:
        match node:
            case None | ast.JoinedStr():
                return NOTHING
            case ast.Constant(value=str() as text) if flags := _FLAGS.findall(text):
                return ("$", *((f"#{name} {number}",) for name, number in flags))
            case ast.Constant(value=value):
                return NOTHING if _is_device(node) else of_constant(value)
            case ast.Call(func=ast.Attribute(value=owner, attr="to"), args=[where]) if last_name(where) in self.devices:
                return self._of(owner)
            case ast.Call(func=function, args=args):
                joins = ast.unparse(function) == "os.path.join"
                return ("$join", *map(self._of, args)) if joins else self._of_call(node)
            case ast.Attribute(value=value, attr=name) if isinstance(value, (ast.Call, ast.BinOp)) or (
                name in _TENSORS and not _OWNERS.fullmatch(last_name(value))
            ):
                return (name, self._of(value))
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str() as name)):
                return (f"${name}",)
            case ast.UnaryOp(operand=ast.Constant()):
                return (f"#{ast.unparse(node)}",)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp():
                return self._of_operator(node)
        return self._of_compound(node)

    def _of_compound(self, node: ast.AST) -> Form:
        match node:
            case ast.IfExp(test=test, body=body, orelse=other):
                test, turned = upright(test)
                ways = (self._of(body), self._of(other))[:: -1 if turned else 1]
                return ways[0] if ways[0] == ways[1] else ("If", self._of(test), *ways)
            case ast.comprehension(target=target, iter=iterated, ifs=ifs):
                return ("For", self._of(target), self._of(iterated), *(("If", self._of(each)) for each in ifs))
            case ast.ListComp(elt=elt, generators=[ast.comprehension(iter=iterated, ifs=[])]) if self._is_plain(elt):
                return self._of(iterated)  # what is done to each of them is nothing
            case ast.Slice(lower=lower, upper=upper, step=step):
                return (":", self._of(lower), self._of(upper), self._of(step))
            case ast.keyword(arg=name, value=value):
                return (f"{name}=", self._of(value)) if name and name != "enabled" else self._of(value)
        return self._of_parts(node)

    def _of_parts(self, node: ast.AST) -> Form:
        fields = [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr_context)]
        return (f"${type(node).__name__}", *map(self._of, fields))

    def _of_operator(self, node: ast.AST) -> Form:
        match node:
            case ast.BinOp(left=left, right=right) if _is_text(left) or _is_text(right):
                return NOTHING
            case ast.BinOp(left=left, op=ast.Div() | ast.Mult() | ast.FloorDiv(), right=right) if (
                self.off.get(last_name(right)) in _ONE
            ):
                return self._of(left)
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as number)) if (
                number and frexp(number)[0] == _HALF
            ):
                return sorted_form(("Mult", self._of(left), of_constant(1 / number)))
            case ast.BinOp(left=left, op=op, right=right):
                return sorted_form((type(op).__name__, self._of(left), self._of(right)))
            case ast.UnaryOp(op=op, operand=operand):
                return (type(op).__name__, self._of(operand))
            case ast.Compare(left=left, comparators=others) if "device" in ast.unparse(left).lower() and any(
                _DEVICE.fullmatch(str(getattr(each, "value", ""))) for side in others for each in ast.walk(side)
            ):
                return ("$device",)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                name, sides = type(op).__name__, (self._of(left), self._of(right))
                return (name.replace("G", "L"), *sides[::-1]) if name[0] == "G" else sorted_form((name, *sides))
            case ast.BoolOp(op=op, values=values):
                return sorted_form((type(op).__name__, *map(self._of, values)))
        return self._of_parts(node)

    def _is_plain(self, node: ast.AST) -> bool:
        return not operations(self._of(node))

    def _of_call(self, node: ast.Call) -> Form:
        function, name = node.func, last_name(node.func)
        off = [each for each in node.keywords if self.off.get(last_name(each.value), "1") not in _ONE]
        if self._is_silent(node) or any(each.arg == "enabled" for each in off):
            return NOTHING
        if name in self.words["handed on"] and node.args:
            return self._of(node.args[0])
        owner = function.value if isinstance(function, ast.Attribute) else None
        given = [each for each in (*node.args, *node.keywords) if each not in off and not _is_device(each)]
        if name in self.own - {"forward"}:
            given = [each.value if isinstance(each, ast.keyword) else each for each in given]
        library = _LIBRARIES | self.imported if name[:1].isupper() else _LIBRARIES
        of = () if owner is None or plain_name(root_name(owner)) in library else (self._of(owner),)
        forms = (*of, *map(self._of, given))
        if name in self.defined:
            return (f"$call {name}", *forms)
        called = self._named(name, owner)
        return self._usual(called, forms) if called else ("()", self._of(function), *map(self._of, given))

    def _usual(self, called: str, forms: tuple[Form, ...]) -> Form:
        """A call in the form that several ways to write it have in common."""
        if called in ("range", "arange") and forms[:1] == (("#0.0",),) and not forms[2:]:
            forms = forms[1:]
        if called in ("double", "float") and forms[0][0] in _COMPARES and not forms[1:]:
            called = "float"  # true and false are the same number in both
        if called == "eval" and forms and not forms[1:]:
            called, forms = "train", (*forms, of_constant(False))
        if called == "train" and forms[1:] == (of_constant(True),):
            forms = forms[:1]
        scale = [each[1] for each in forms if each[0] == "alpha="] if called in ("Add", "Sub") else ()
        if scale and len(forms) > len("xy"):
            forms = forms[0], sorted_form(("Mult", forms[1], scale[0]))
        power = self.words["powers"].get(called) if len(forms) == 1 else None
        return sorted_form((called, *forms)) if power is None else ("Pow", *forms, of_constant(power))

    def _named(self, name: str, owner: ast.AST | None) -> str:
        """The name of what is called; empty for what a variable holds."""
        of_self = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
        if name == "forward" and owner is not None:
            return "()"
        if (of_self or owner is None) and not (
            name in self.own or name in self.imported or hasattr(builtins, name) or OWN.match(name)
        ):
            return ""
        name = OWN.sub("", self.renamed.get(name, name))
        if "scaler" in last_name(owner).lower() and name in ("update", "unscale_"):
            return f"scaler.{name.rstrip('_')}"
        name = name.rstrip("_") or name
        return str(self.words["same"].get(name, name))


def _ends(handler: ast.ExceptHandler) -> bool:
    """Whether an error is passed on, or is that of somebody who stops the program."""
    return isinstance(handler.body[-1], ast.Raise) or last_name(handler.type) == "KeyboardInterrupt"


def _is_device(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _WHICH.fullmatch(node.value) is not None


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _is_text(node.func.value)
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def of_constant(value: object) -> Form:
    if value is None or value is Ellipsis or (isinstance(value, str) and _PATH.search(value)):
        return NOTHING
    return (f"#{float(value) if type(value) is int and abs(value) < 1 << 53 else value}",)


def sorted_form(form: Form) -> Form:
    """What comes to the same in any order, in one."""
    return (form[0], *sorted(form[1:], key=str)) if form[0] in EITHER_WAY else form


def blank(form: Form, kinds: str) -> Form:
    """A form without its names ($) or its numbers (#)."""
    if form[0][0] in kinds and len(form) == 1:
        return (form[0][0],)
    return (form[0], *(blank(each, kinds) for each in form[1:]))


def parts_of(form: Form) -> Iterator[Form]:
    """A form, and all that are in it."""
    yield form
    for each in form[1:]:
        yield from parts_of(each)


def nodes(form: Form) -> Iterator[str]:
    """All words of a form."""
    return (each[0] for each in parts_of(form))


def operations(form: Form) -> Counter[str]:
    """What a form does, and with which numbers."""
    return Counter(each for each in nodes(form) if each[0] != "$")


def apart(one: Form, other: Form) -> Iterator[tuple[Form, Form]]:
    """The smallest parts in which two forms differ."""
    if one == other:
        return
    if one[0] == other[0] and len(one) == len(other) > 1:
        for left, right in zip(one[1:], other[1:], strict=True):
            yield from apart(left, right)
    else:
        yield one, other
