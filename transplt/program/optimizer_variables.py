"""Where an optimizer goes: the variables that hold it, and what is done with it in each."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.models import READS_OPTIMIZER
from transplt.program.program import File, Function, Program, ProgramValue, Variable, class_name, enclosing_function
from transplt.program.variable_values import uses
from transplt.rules.torch_callables import names_of
from transplt.syntax.nodes import is_none, last_name
from transplt.syntax.scan import parent

_SCALERS = frozenset({"step", "unscale_"})
_NO_FRAMEWORK = ("torch.nn.Module", "torch.nn.modules.module.Module")
#: Why one is lost that a framework calls for, such as Lightning.
CONFIGURED = "a framework may call for it"


def _is_asked_by_framework(program: Program, file: File, function: Function) -> bool:
    """True for `configure_optimizers` of a class that may be Lightning's: a base is not in sight."""
    if function.name != "configure_optimizers":
        return False
    pending = [(file, parent(function))]
    while pending:
        at, cls = pending.pop()
        for base in cls.bases if isinstance(cls, ast.ClassDef) else ():
            found = program.definition(at, base)
            if isinstance(found, ast.ClassDef) and len(pending) < 20:
                pending.append((program.owner[found], found))
            elif last_name(base) != "object" and at.names.qualified(base) not in _NO_FRAMEWORK:
                return True
    return False


@dataclass(frozen=True, slots=True)
class OptimizerUse:
    """An optimizer at `node`: something is asked of it there, it goes to code that is not in sight, or it is `lost`."""

    file: File
    node: ast.expr
    lost: str = ""


@dataclass(slots=True)
class OptimizerVariables:
    """The variables that hold an optimizer, the first of them first, and its uses, in the order of following them."""

    program: Program
    slots: dict[Variable, None] = field(default_factory=dict)
    uses: list[OptimizerUse] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def follow(self, file: File, node: ast.expr) -> None:
        """Follow the value of an expression that is the optimizer."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        above = parent(node)
        match above:
            case ast.Attribute():
                self.uses.append(OptimizerUse(file, node))
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() if above.value is node:
                for target in above.targets if isinstance(above, ast.Assign) else [above.target]:
                    self._stored(file, target)
            case ast.Tuple() | ast.List() if isinstance(parent(above), ast.Return):
                self._returned(file, node, above.elts.index(node))
            case ast.Tuple() if isinstance(stored := parent(above), ast.Assign) and stored.value is above:
                target = stored.targets[0]
                if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(above.elts):
                    self._stored(file, target.elts[above.elts.index(node)])
                else:
                    self._lose(file, node, "it is stored in a tuple")
            case ast.Return():
                self._returned(file, node, None)
            case ast.IfExp() if above.test is not node:
                self.follow(file, above)
            case ast.Call() | ast.keyword():
                self._handed(file, above, node)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.FormattedValue() | ast.Expr() | ast.If():
                pass
            case _ if not isinstance(above, ast.IfExp):
                self._lose(file, node, "its use cannot be traced: it is stored in a container")

    def _lose(self, file: File, node: ast.expr, why: str) -> None:
        self.uses.append(OptimizerUse(file, node, why))

    def _hold(self, slot: Variable) -> None:
        if slot not in self.slots:
            self.slots[slot] = None
            for file, use in uses(self.program, {slot}):
                self.follow(file, use)

    def _stored(self, file: File, target: ast.expr) -> None:
        slot = self.program.slot(file, target)
        if slot is None:
            self._lose(file, target, "it is stored where it cannot be traced")
        else:
            self._hold(slot)

    def _returned(self, file: File, node: ast.expr, index: int | None) -> None:
        function = enclosing_function(node)
        sites = self.program.call_sites.get(function, []) if function is not None else []
        asked = function is not None and _is_asked_by_framework(self.program, file, function)
        if asked or not sites:
            self._lose(file, node, CONFIGURED if asked else "it is returned to code that was not found")
        for at, call in sites:
            above = parent(call)
            targets = above.targets[0] if isinstance(above, ast.Assign) else None
            elements = targets.elts if isinstance(targets, (ast.Tuple, ast.List)) else []
            if index is None:
                self.follow(at, call)
            elif index < len(elements) and not any(isinstance(item, ast.Starred) for item in elements):
                self._stored(at, elements[index])
            else:
                self._lose(at, call, "it is returned in a tuple that cannot be traced")

    def _handed(self, file: File, above: ast.Call | ast.keyword, node: ast.expr) -> None:
        call = parent(above) if isinstance(above, ast.keyword) else above
        if not isinstance(call, ast.Call) or call.func is node:
            self._lose(file, node, "its use cannot be traced")
            return
        full, last = file.names.qualified(call.func) or "", last_name(call.func)
        looks = last == "getattr" or last in names_of("builtins", "asks", "counts", "shows")
        if full.startswith(READS_OPTIMIZER) or looks or "chedul" in last:
            return
        if isinstance(call.func, ast.Attribute) and last in _SCALERS and call.args and call.args[0] is node:
            return
        callee = self.program.callee(file, call) or _called_object(self.program, file, call.func, set())
        function = self.program.constructor(callee) if callee is not None else None
        if callee is None or function is None:
            self.uses.append(OptimizerUse(file, node))
            return
        name = next((name for name, argument in self.program.arguments(call, callee) if argument is node), None)
        if name is None:
            self._lose(file, node, f"it is passed to {ast.unparse(call.func)} in a way that cannot be traced")
        else:
            self._hold(self.program.parameter_slot(function, name))


def _called_object(program: Program, file: File, node: ast.expr, seen: set[Variable]) -> ast.AST | None:
    """The `__call__` of the object that a variable holds, also where it was handed on as an argument."""
    slot = program.slot(file, node)
    if slot is None or slot in seen:
        return None
    seen.add(slot)
    found: set[ast.AST | None] = set()
    for value in program.values.get(slot, ()):
        match value:
            case ProgramValue(node=ast.Call(func=func), index=None):
                made = program.named(value.file, func)
                known = class_name(program.owner[made], made) if isinstance(made, ast.ClassDef) else ""
                found.add(program.method(known, "__call__"))
            case ProgramValue(node=ast.Name() | ast.Attribute(), index=None):
                found.add(_called_object(program, value.file, value.node, seen))
            case _ if not is_none(value.node):
                found.add(None)
    return found.pop() if len(found) == 1 else None
