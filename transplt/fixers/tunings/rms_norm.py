"""`rms-norm`: the forward of a hand-written RMSNorm becomes `torch_npu.npu_rms_norm`.

The forward is read as a formula: only `x * rsqrt(mean(x ** 2) + eps) * weight` over the last dimension, with casts to
float32 and back wherever they stand, is taken. Source: op-plugin docs/zh/custom_APIs/torch_npu, npu_rms_norm.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.lines import last_line, line_start
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.around import scripted
from transplt.fixers.tuning_writer import rewrites, switched_off, writer_for
from transplt.fixers.tunings.attention import NATIVE
from transplt.syntax.formulas import Formula, Found, Parts, Reading, called
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

fixer = Fixer(__name__, code="NPU761", rank=420, theme="tune:rms-norm", needs=(b"sqrt",))

TARGET = "torch_npu.npu_rms_norm"
_NAMED = re.compile(r"rms_?norm|t5layernorm", re.I)
Function = ast.FunctionDef | ast.AsyncFunctionDef

_FORMULA = Formula("x * rsqrt(mean(x * x, -1, True) + eps) * weight", "x eps weight")
_CASTS = ("float", "type_as", "to", "type")


@fixer.on(ast.ClassDef)
def norm(work: Work, cls: ast.ClassDef) -> Finds:
    """Rewrite a class whose forward is the formula; report of others named like it that they stay."""
    forward = _method(cls, "forward")
    if forward is None or not any("sqrt" in work.text(node) for node in _functions(cls)):
        return
    writer = writer_for(work, fixer)
    if writer is None:
        return
    reader = _Norm(work, cls)
    found = reader.forward(forward)
    if found is not None and not scripted(work, forward):
        _rewrite(writer, reader, forward, found)
    elif _NAMED.search(cls.name):
        writer.remark(
            forward.body[0],
            NATIVE,
            f"{cls.name} is not changed: its forward is not the plain formula of npu_rms_norm over the last dimension",
            "compare it with transplt explain NPU761",
        )
    yield from writer.found


def _functions(cls: ast.ClassDef) -> list[Function]:
    return [node for node in cls.body if isinstance(node, FUNCTIONS)]


def _method(cls: ast.ClassDef, name: str) -> Function | None:
    return next((node for node in _functions(cls) if node.name == name), None)


def _parameters(function: Function) -> list[str]:
    args = function.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or args.defaults or function.decorator_list:
        return []
    return [arg.arg for arg in args.args]


def _body(function: Function) -> list[ast.stmt]:
    """The statements below the docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
    return function.body[1:] if documented else function.body


@dataclass(slots=True)
class _Norm:
    """A class whose forward is read as the formula; `helper` is the one method that it may call."""

    work: Work
    cls: ast.ClassDef
    helper: Function | None = None

    def forward(self, function: Function) -> Found | None:
        """What stands in the formula of a forward with one argument, None when it is not that of an RMSNorm."""
        names = _parameters(function)
        return self.result(function, names[1]).get(_FORMULA.whole) if len(names) == 2 and names[0] == "self" else None

    def result(self, function: Function, x: str) -> Parts:
        """What a function of plain assignments and one return gives; each of its lines has to be a part."""
        names: dict[str, Parts] = {x: {"x": {}}}
        reading = Reading(_FORMULA, self.work.names)
        reading.known = lambda node: self.known(node, names, reading)
        for line in _body(function):
            match line:
                case ast.Return(value=ast.expr() as value) if line is function.body[-1]:
                    return _computed(reading, value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if parts := _computed(reading, value):
                    names[name] = parts
                case _:
                    break
        return {}

    def known(self, node: ast.expr, names: dict[str, Parts], reading: Reading) -> Parts | None:
        """What names, numbers, attributes of self, types and some calls stand for; None for anything else."""
        match node:
            case ast.Name(id=name):
                return names.get(name, {})
            case ast.Constant(value=float()):
                return {"eps": {"eps": node}}
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                holes = {"weight": self.is_weight(name), "eps": self.is_eps(name)}
                return {hole: {hole: node} for hole, fits in holes.items() if fits}
            case ast.Attribute(value=value, attr="dtype"):
                return {"dtype": {}} if _computed(reading, value) else {}
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                return self.called(node, name, reading)
            case ast.Call():
                name, given = called(node, self.work.names.qualified)
                if name in _CASTS:
                    fine = (
                        not node.keywords and len(given) < 3 and all(self.is_type(each, reading) for each in given[1:])
                    )
                    return _computed(reading, given[0]) if fine else {}
        return None

    def called(self, call: ast.Call, name: str, reading: Reading) -> Parts:
        """What the one method gives that a forward may call with x, other than for `pow` and `square`."""
        helper = _method(self.cls, name)
        names = _parameters(helper) if helper is not None else []
        if helper is None or len(names) != 2 or len(call.args) != 1 or call.keywords:
            return {}
        above = (called(each, self.work.names.qualified)[0] for each in chain(call) if isinstance(each, ast.Call))
        if any(name in ("pow", "square") for name in above) or "x" not in reading.parts(call.args[0]) or self.helper:
            return {}
        self.helper = helper
        return self.result(helper, names[1])

    def is_type(self, node: ast.expr, reading: Reading) -> bool:
        """True for float32, and for x and its type, to which it is cast back."""
        full = self.work.names.qualified(node)
        return full in ("torch.float32", "torch.float") or not reading.parts(node).keys().isdisjoint({"x", "dtype"})

    def stores(self, name: str) -> list[ast.AST]:
        """What assigns to an attribute in the class."""
        lines = range(self.cls.lineno, (self.cls.end_lineno or 0) + 1)
        return [parent(each) for each in self.work.scan.stores if each.attr == name and each.lineno in lines]

    def is_weight(self, name: str) -> bool:
        """True for an attribute that `__init__` makes a parameter of ones, whatever happens."""
        match self.stores(name):
            case [ast.Assign(value=ast.Call(func=outer, args=[ast.Call(func=inner, args=[size]), *_])) as made]:
                full = [self.work.names.qualified(func) for func in (outer, inner)]
                always = parent(made) is _method(self.cls, "__init__") and not isinstance(size, ast.Starred)
                return always and full == ["torch.nn.Parameter", "torch.ones"]
        return False

    def is_eps(self, name: str) -> bool:
        """True for an attribute that is no parameter or buffer, as far as the class shows: it has to be a float."""
        values = [getattr(store, "value", None) for store in self.stores(name)]
        if any(isinstance(value, ast.Call) and getattr(value.func, "id", "") != "float" for value in values):
            return False
        for node in ast.walk(self.cls):
            match node:
                case ast.Call(func=ast.Attribute(attr="register_buffer" | "register_parameter"), args=[first, *_]):
                    if isinstance(first, ast.Constant) and first.value == name:
                        return False
        return True


def _computed(reading: Reading, node: ast.expr) -> Parts:
    """The parts that an expression computes; eps is only taken where it stands."""
    return {part: found for part, found in reading.parts(node).items() if part != "eps"}


def _rewrite(writer: Writer, norm: _Norm, forward: Function, found: Found) -> None:
    work, source, cls = writer.work, writer.work.source, norm.cls
    last = forward.body[-1]
    assert isinstance(last, ast.Return) and last.value is not None
    first = _body(forward)[0]
    x = forward.args.args[1].arg
    if any(forward.lineno < edit.node.lineno <= last_line(forward) for edit in rewrites(writer)):
        return
    if switched_off(work, last.value, fixer.code) or not work.take(last.value):
        return
    weight, eps = last_name(found["weight"]), work.text(found["eps"])
    text = f"{TARGET}({x}, self.{weight}, epsilon={eps})[0]"
    message = f"the formula of {cls.name} -> {TARGET}"
    writer.rewrite(last.value, fixer.code, message, text, api=TARGET, writes_npu=True)
    if first is not last:
        extent = (_above_comments(work, first), line_start(source, last.lineno))
        writer.take_out(extent, fixer.code, "part of npu_rms_norm")
    helper = norm.helper
    if helper is None or not helper.name.startswith("_") or len(work.scan.attributes.get(helper.name, ())) != 1:
        return
    if helper is not cls.body[-1]:
        extent = (_above_comments(work, helper), _below_empty_lines(work, helper))
        writer.take_out(extent, fixer.code, f"{helper.name}, which nothing calls")


def _above_comments(work: Work, node: ast.stmt) -> int:
    """Where the line of a statement begins, or the first comment of the block right above it."""
    line = node.lineno
    while line > 1 and work.source.line_text(line - 1).lstrip().startswith("#"):
        line -= 1
    return line_start(work.source, line)


def _below_empty_lines(work: Work, function: Function) -> int:
    """Where the first line with something on it begins below a function."""
    line = last_line(function) + 1
    while line <= len(work.source.line_starts) and not work.source.line_text(line).strip():
        line += 1
    return line_start(work.source, line)
