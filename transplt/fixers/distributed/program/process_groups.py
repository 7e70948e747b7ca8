"""In what order a program comes by its process group: what asks for a rank before it, and a second one behind it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.program.program import File, Function, Program
from transplt.program.ranks import collective, helper_call, own_calls
from transplt.rules.torch_callables import last_names
from transplt.syntax.modules import import_base
from transplt.syntax.nodes import inner_nodes, is_main_guard, last_name
from transplt.syntax.scan import FUNCTIONS

_ASKS = frozenset({"get_rank", "get_world_size"})
#: Functions of the helper file that ask for no process group.
_ALWAYS = frozenset({"start", "first_on_host", "one_by_one", "written_aside", "bare", "OneCardDataParallel"})
_EXITS = frozenset({"exit", "quit", "_exit", "SystemExit"})
_DEEPEST = 60


def begins_group(file: File, call: ast.Call) -> bool:
    """True for `torch.distributed.init_process_group(...)`, and for `start()` of the helper file."""
    return collective(file, call) in ("init_process_group", "start")


def needs_group(file: File, call: ast.Call) -> str:
    """What of a call needs the process group; empty when nothing does. Before it, functions of the helper file see one
    process each."""
    if name := helper_call(file, call):
        return "" if name in _ALWAYS else f"{name}()"
    name = file.names.qualified(call.func) or ""
    module, _, last = name.rpartition(".")
    if module == "torch.distributed" and last in _ASKS:
        return f"{last}()"
    if last in last_names("distributes", "shares") and module.startswith("torch."):
        explicit = len(call.args) > 2 or {"num_replicas", "rank"} <= {keyword.arg for keyword in call.keywords}
        if last == "DistributedSampler" and explicit:
            return ""
        return last
    found = collective(file, call)
    return f"{found}()" if found and found != "init_process_group" else ""


@dataclass(slots=True)
class Walk:
    """The code of a program in the order in which it runs, from a main file on, as far as calls can be followed.

    `early` is what needs the process group where it is not there yet, `second` what makes another one.
    """

    program: Program
    early: list[tuple[File, ast.Call, str]] = field(default_factory=list)
    second: list[tuple[File, ast.Call]] = field(default_factory=list)
    _imported: set[str] = field(default_factory=set)
    _ends: dict[tuple[ast.AST, bool], bool] = field(default_factory=dict)
    _depth: int = 0
    _begun: int = 0

    def main(self) -> None:
        if self._module(self.program.files[0], False):
            return
        # What is started from outside, as fire and click do: the function in which the group is made.
        for file in self.program.files:
            for function in file.scan.functions:
                makes = any(begins_group(file, call) for node in function.body for call in own_calls(node))
                if makes and (function, False) not in self._ends:
                    self._function(file, function, False)

    def _module(self, file: File, there: bool) -> bool:
        if file.path in self._imported:
            return there
        self._imported.add(file.path)
        return self._block(file, file.scan.tree.body, there, main=file is self.program.files[0])

    def _function(self, file: File, function: Function, there: bool) -> bool:
        key = (function, there)
        if key not in self._ends:
            self._ends[key] = there
            if self._depth < _DEEPEST:
                self._depth += 1
                before = self._begun
                end = self._block(file, function.body, there)
                # Behind `if not is_initialized(): return` the group is there for the rest of the function only.
                self._ends[key] = end and (there or self._begun > before)
                self._depth -= 1
        elif self._ends[key] and not there:
            self._begun += 1
        return self._ends[key]

    def _block(self, file: File, nodes: list[ast.stmt], there: bool, *, main: bool = False) -> bool:
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    pass
                case ast.If():
                    there = self._branch(file, node, there, main=main)
                case ast.Try():
                    before = there
                    there = self._block(file, [*node.body, *node.orelse], there)
                    for handler in node.handlers:
                        self._block(file, handler.body, before)
                    there = self._block(file, node.finalbody, there)
                case ast.Match():
                    there = self._calls(file, node.subject, there)
                    for case in node.cases:
                        self._block(file, case.body, there)
                case ast.Import() | ast.ImportFrom():
                    there = self._imports(file, node, there)
                case _:
                    there = self._plain(file, node, there)
        return there

    def _plain(self, file: File, node: ast.stmt, there: bool) -> bool:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, (ast.expr, ast.withitem, ast.keyword)):
                there = self._calls(file, part, there)
        if isinstance(node, (ast.Expr, ast.Raise)):
            there = self._handed_over(file, node, there)
        for name in ("body", "orelse"):
            if block := getattr(node, name, None):
                there = self._block(file, block, there)
        return there

    def _branch(self, file: File, node: ast.If, there: bool, *, main: bool) -> bool:
        if is_main_guard(node):
            return self._block(file, node.body, there) if main else there
        there = self._calls(file, node.test, there)
        leaves = bool(node.body) and _leaves(node.body[-1])
        if _asks_whether(node.test):
            if any(isinstance(inner.op, ast.Not) for inner in inner_nodes(node.test, ast.UnaryOp)):
                end = self._block(file, node.body, False)
                self._block(file, node.orelse, True)
                return there or leaves or end
            self._block(file, node.body, True)
            end = self._block(file, node.orelse, there)
            return end if node.orelse else there
        ways = [(node.body, self._block(file, node.body, there)), (node.orelse, self._block(file, node.orelse, there))]
        open_ends = [end for block, end in ways if not block or not _leaves(block[-1])]
        return all(open_ends) if open_ends else there

    def _imports(self, file: File, node: ast.Import | ast.ImportFrom, there: bool) -> bool:
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = import_base(file.path, node)
            names = [base, *(f"{base}.{name}" if base else name for name in names)]
        paths = [path for name in names if (path := self.program.project.path_of(name))]
        for other in self.program.files:
            if other.path in paths:
                there = self._module(other, there)
        return there

    def _calls(self, file: File, node: ast.AST, there: bool) -> bool:
        """Walk an expression from the inside out."""
        match node:
            case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef():
                return there
            case ast.IfExp() if _asks_whether(node.test):
                for part in (node.test, node.body, node.orelse):
                    self._calls(file, part, True)
                return there
            case ast.BoolOp():
                asked = False
                for value in node.values:
                    self._calls(file, value, there or asked)
                    asked = asked or _asks_whether(value)
                return there
        for inner in ast.iter_child_nodes(node):
            there = self._calls(file, inner, there)
        return self._call(file, node, there) if isinstance(node, ast.Call) else there

    def _call(self, file: File, call: ast.Call, there: bool) -> bool:
        if begins_group(file, call):
            if there and not helper_call(file, call):
                self.second.append((file, call))
            self._begun += 1
            return True
        if (file.names.qualified(call.func) or "") == "torch.distributed.destroy_process_group":
            return False
        if not there and (what := needs_group(file, call)):
            self.early.append((file, call, what))
        ways = [function for each in self.program.runs(file, call) if (function := self.program.constructor(each))]
        ends = [self._function(self.program.owner[function], function, there) for function in ways]
        return all(ends) if ends else there

    def _handed_over(self, file: File, node: ast.Expr | ast.Raise, there: bool) -> bool:
        """`fire.Fire(main)`, `app.run(main)`: the function runs, and what comes behind it does not matter."""
        call = node.value if isinstance(node, ast.Expr) else node.exc
        if not isinstance(call, ast.Call) or self.program.callee(file, call) is not None:
            return there
        if last_name(call.func) == "register":
            return there
        for argument in call.args:
            if isinstance(argument, (ast.Name, ast.Attribute)):
                found = self.program.definition(file, argument)
                if isinstance(found, FUNCTIONS):
                    there = self._function(self.program.owner[found], found, there)
        return there


def _asks_whether(node: ast.expr) -> bool:
    """True for a condition that asks whether there is a process group."""
    return any(
        isinstance(inner, (ast.Attribute, ast.Name)) and last_name(inner) == "is_initialized"
        for inner in ast.walk(node)
    )


def _leaves(node: ast.stmt) -> bool:
    match node:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return last_name(func) in _EXITS
    return False
