"""`rms-norm`: the forward of a hand-written RMSNorm becomes `torch_npu.npu_rms_norm`.

The forward is read as a formula: only `x * rsqrt(mean(x ** 2) + eps) * weight` over the last dimension, with casts to
float32 and back wherever they stand, is taken. Source: op-plugin docs/zh/custom_APIs/torch_npu, npu_rms_norm.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.lines import last_line, line_start
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.around import scripted
from transplt.fixers.tunings.attention import NATIVE
from transplt.fixers.tunings.writer import rewrites, switched_off, writer_for
from transplt.syntax.scan import FUNCTIONS, parent

fixer = Fixer(__name__, code="NPU761", rank=420, theme="tune:rms-norm", needs=(b"sqrt",))

TARGET = "torch_npu.npu_rms_norm"
_NAMED = re.compile(r"rms_?norm|t5layernorm", re.I)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Term:
    """A part of the formula: x, dtype, square, mean, sum (mean + eps), root, inverse, normed, weight, out."""

    kind: str
    eps: str = ""
    weight: str = ""


_X = _Term("x")


@fixer.on(ast.ClassDef)
def norm(work: Work, cls: ast.ClassDef) -> Finds:
    """Rewrite a class whose forward is the formula; report of others named like it that they stay."""
    forward = _method(cls, "forward")
    if forward is None or not any("sqrt" in work.text(node) for node in _functions(cls)):
        return
    writer = writer_for(work, fixer)
    if writer is None:
        return
    found = _Reader(work, cls).forward(forward)
    if found is not None and not scripted(work, forward):
        _rewrite(writer, cls, forward, found)
    elif _NAMED.search(cls.name):
        writer.remark(
            forward.body[0],
            NATIVE,
            f"{cls.name} stays: its forward is not the plain formula of npu_rms_norm over the last dimension",
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
class _Reader:
    """Reads expressions of one class as parts of the formula."""

    work: Work
    cls: ast.ClassDef
    helper: Function | None = None

    def forward(self, function: Function) -> _Term | None:
        """The formula of a forward with one argument, None when it is not that of an RMSNorm."""
        names = _parameters(function)
        if len(names) != 2 or names[0] != "self":
            return None
        found = self.function(function, {names[1]: _X})
        return found if found is not None and found.kind == "out" else None

    def function(self, function: Function, known: dict[str, _Term]) -> _Term | None:
        """What a function of plain assignments and one return gives."""
        for statement in _body(function):
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self.read(statement.value, known) if statement is function.body[-1] else None
            if not (
                isinstance(statement, ast.Assign)
                and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)
            ):
                return None
            found = self.read(statement.value, known)
            if found is None:
                return None
            known = {**known, statement.targets[0].id: found}
        return None

    def read(self, node: ast.expr, known: dict[str, _Term]) -> _Term | None:
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                return self._weight(node)
            inner = self.read(node.value, known)
            return _Term("dtype") if inner is not None and node.attr == "dtype" else None
        if isinstance(node, ast.BinOp):
            return self._operation(node, known)
        if isinstance(node, ast.Call):
            return self._call(node, known)
        return None

    def _weight(self, node: ast.Attribute) -> _Term | None:
        """`self.x` that `__init__` makes a parameter of ones, whatever happens."""
        begin = _method(self.cls, "__init__")
        made = [
            statement.value
            for statement in (begin.body if begin is not None else [])
            if isinstance(statement, ast.Assign)
            and any(isinstance(t, ast.Attribute) and t.attr == node.attr for t in statement.targets)
        ]
        stores = [store for store in self.work.scan.stores if store.attr == node.attr and self._inside(store)]
        if len(made) != 1 or len(stores) != 1 or not isinstance(made[0], ast.Call) or not made[0].args:
            return None
        full, ones = self.work.names.qualified(made[0].func), made[0].args[0]
        if full != "torch.nn.Parameter" or not isinstance(ones, ast.Call) or len(ones.args) != 1:
            return None
        if self.work.names.qualified(ones.func) != "torch.ones" or isinstance(ones.args[0], ast.Starred):
            return None
        return _Term("weight", weight=f"self.{node.attr}")

    def _inside(self, node: ast.Attribute) -> bool:
        return self.cls.lineno <= node.lineno <= (self.cls.end_lineno or 0)

    def _operation(self, node: ast.BinOp, known: dict[str, _Term]) -> _Term | None:
        if isinstance(node.op, ast.Add):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                found = self.read(side, known)
                if found is not None and found.kind == "mean" and self._is_eps(other, known):
                    return _Term("sum", eps=self.work.text(other))
            return None
        if isinstance(node.op, ast.Pow):
            return self._square(node.left, node.right, known)
        left, right = self.read(node.left, known), self.read(node.right, known)
        if isinstance(node.op, ast.Div):
            if isinstance(node.left, ast.Constant) and node.left.value in (1, 1.0):
                return replace(right, kind="inverse") if right is not None and right.kind == "root" else None
            if left == _X and right is not None and right.kind == "root":
                return replace(right, kind="normed")
            return None
        if not isinstance(node.op, ast.Mult) or left is None or right is None:
            return None
        if left == right == _X:
            return _Term("square")
        pair = {left.kind: left, right.kind: right}
        if pair.keys() == {"x", "inverse"}:
            return replace(pair["inverse"], kind="normed")
        if pair.keys() == {"normed", "weight"}:
            return _Term("out", pair["normed"].eps, pair["weight"].weight)
        return None

    def _is_eps(self, node: ast.expr, known: dict[str, _Term]) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, float)
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name) or node.value.id != "self":
            return False
        return self._is_number(node.attr)

    def _is_number(self, name: str) -> bool:
        """True for an attribute that is no parameter or buffer, as far as the class shows: it has to be a float."""
        for store in self.work.scan.stores:
            if store.attr == name and self._inside(store):
                value = getattr(parent(store), "value", None)
                if isinstance(value, ast.Call) and getattr(value.func, "id", "") != "float":
                    return False
        return not any(
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", "") in ("register_buffer", "register_parameter")
            and bool(node.args)
            and isinstance(node.args[0], ast.Constant)
            and node.args[0].value == name
            for node in ast.walk(self.cls)
        )

    def _square(self, base: ast.expr, power: ast.expr, known: dict[str, _Term]) -> _Term | None:
        two = isinstance(power, ast.Constant) and power.value in (2, 2.0)
        return _Term("square") if two and self.read(base, known) == _X else None

    def _call(self, call: ast.Call, known: dict[str, _Term]) -> _Term | None:
        func = call.func
        full = self.work.names.qualified(func) or ""
        if full.startswith("torch.") and call.args:
            return self._method_of(full.rpartition(".")[2], call.args[0], call.args[1:], call.keywords, known)
        if not isinstance(func, ast.Attribute):
            return None
        if isinstance(func.value, ast.Name) and func.value.id == "self":
            helper = _method(self.cls, func.attr)
            names = _parameters(helper) if helper is not None else []
            given = self.read(call.args[0], known) if len(call.args) == 1 and not call.keywords else None
            if helper is None or len(names) != 2 or given != _X or self.helper is not None:
                return None
            self.helper = helper
            return self.function(helper, {names[1]: _X})
        return self._method_of(func.attr, func.value, call.args, call.keywords, known)

    def _method_of(
        self, name: str, of: ast.expr, args: list[ast.expr], keywords: list[ast.keyword], known: dict[str, _Term]
    ) -> _Term | None:
        inner = self.read(of, known)
        if inner is None:
            return None
        if name in ("float", "type_as", "to", "type"):
            fine = not keywords and all(self._is_cast(arg, known) for arg in args) and len(args) <= 1
            return inner if fine else None
        if name in ("pow", "square"):
            power = args[0] if args else ast.Constant(2)
            return self._square(of, power, known) if name == "square" or len(args) == 1 else None
        if name == "mean":
            given = [ast.unparse(arg) for arg in args]
            named = {str(key.arg): ast.unparse(key.value) for key in keywords}
            dim = given[0] if given else named.pop("dim", "")
            keep = given[1] if len(given) > 1 else named.pop("keepdim", "")
            fine = inner.kind == "square" and dim == "-1" and keep == "True" and not named and len(given) <= 2
            return _Term("mean") if fine else None
        if name in ("rsqrt", "sqrt") and not args and not keywords and inner.kind == "sum":
            return replace(inner, kind="inverse" if name == "rsqrt" else "root")
        return None

    def _is_cast(self, node: ast.expr, known: dict[str, _Term]) -> bool:
        if self.work.names.qualified(node) in ("torch.float32", "torch.float"):
            return True
        found = self.read(node, known)
        return found is not None and found.kind in ("dtype", "x")


def _rewrite(writer: Writer, cls: ast.ClassDef, forward: Function, found: _Term) -> None:
    work, source = writer.work, writer.work.source
    last = forward.body[-1]
    assert isinstance(last, ast.Return) and last.value is not None
    first = _body(forward)[0]
    x = forward.args.args[1].arg
    if any(forward.lineno < edit.node.lineno <= last_line(forward) for edit in rewrites(writer)):
        return
    if switched_off(work, last.value, fixer.code) or not work.take(last.value):
        return
    text = f"{TARGET}({x}, {found.weight}, epsilon={found.eps})[0]"
    message = f"the formula of {cls.name} -> {TARGET}"
    writer.rewrite(last.value, fixer.code, message, text, api=TARGET, writes_npu=True)
    if first is not last:
        extent = (_above_comments(work, first), line_start(source, last.lineno))
        writer.take_out(extent, fixer.code, "what npu_rms_norm computes")
    reader = _Reader(work, cls)
    reader.forward(forward)
    helper = reader.helper
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
