"""What only some of the processes reach: code under a condition on the rank, and the collectives in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from transplt.flow.accelerator_place import NAMES
from transplt.program.optimizers import find_steps
from transplt.program.program import File, Function, Program
from transplt.program.steps import is_backward_pass
from transplt.syntax.nodes import begins, callee_of, last_name, string_of
from transplt.syntax.scan import FUNCTIONS

#: Functions of torch.distributed in which every process waits for the others. A `group` may be one of those that call.
_COLLECTIVES = frozenset(
    "all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_reduce all_reduce_coalesced "
    "all_to_all all_to_all_single barrier broadcast broadcast_object_list gather gather_object init_process_group "
    "monitored_barrier new_group reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list".split()
)
_RANKS = frozenset({"rank", "local_rank", "global_rank", "get_rank", "get_local_rank", "get_global_rank"})
#: Variables in which torchrun gives a process its rank.
_VARIABLES = ("RANK", "LOCAL_RANK")
_FIRST = frozenset(
    "is_first is_main_process is_main is_master is_master_process is_rank_0 is_rank0 is_rank_zero main_process "
    "master_process rank_0 rank_zero".split()
)
#: What of the helper file every process has to call: see transplt/helper.
_OF_HELPER = frozenset(
    "start wait own_draws same_draws wrap alike average buffers_of_first mean_over_ranks of_first share_rows "
    "sum_over_ranks check_ranks".split()
)
#: What a file takes from the module of the portable style, when it takes anything.
_CHOSEN = ("DEVICE_TYPE", "device_module")
_FOR_RANKS = _OF_HELPER | {"is_first", "shard", "bare", "first_on_host", "one_by_one", "rank", "world_size"}
_BARRIERS = frozenset({"barrier", "monitored_barrier"})


@dataclass(frozen=True, slots=True)
class Divided:
    """A call that only some processes make: `what` it is, and the condition on the rank."""

    file: File
    call: ast.Call
    what: str
    test: ast.expr


def collective(file: File, call: ast.Call) -> str:
    """The name of the collective of torch.distributed or of the helper file that a call makes over all processes; empty
    for any other."""
    if (name := helper_call(file, call)) in _OF_HELPER:
        return name
    module, _, name = (file.names.qualified(call.func) or "").rpartition(".")
    if not module.startswith("torch.distributed") or name not in _COLLECTIVES:
        return ""
    return "" if any(keyword.arg == "group" for keyword in call.keywords) else name


def helper_call(file: File, call: ast.Call) -> str:
    """The function of the helper file that a call names; empty for any other. In the portable style it is the file that
    has the type of the device, too.
    """
    module, _, name = (file.names.qualified(call.func) or "").rpartition(".")
    return name if module.rpartition(".")[2].startswith("npu_port") or module in file.once(_choosers) else ""


def _choosers(file: File) -> frozenset[str]:
    """The modules that choose the accelerator, as a file names them: by their own names, or by what it takes there."""
    targets = [each[0].target.rpartition(".") for each in file.scan.root.bindings.values()]
    return frozenset(
        module for module, _, name in targets
        if module and (name in _CHOSEN or (name in _FOR_RANKS and module.rpartition(".")[2] in NAMES))
    )  # fmt: skip


def divides(test: ast.expr) -> bool:
    """True for a condition of which processes of one program think differently, as far as names say it.

    `local_rank != -1` and the like ask whether there are several processes at all.
    """
    match test:
        case ast.BoolOp():
            return any(divides(each) for each in test.values)
        case ast.UnaryOp(op=ast.Not()):
            return divides(test.operand)
        case ast.Compare():
            sides = (test.left, *test.comparators)
            return any(_is_rank(side) or _is_variable(side) for side in sides) and not _is_uniform(test)
    return _is_rank(test) or last_name(callee_of(test)) in _FIRST


def _is_rank(node: ast.expr) -> bool:
    match node:
        case ast.BinOp():
            return _is_rank(node.left)
        case ast.Call(func=func, args=[given, *_]) if last_name(func) == "int":
            return _is_rank(given) or _is_variable(given)
    return last_name(callee_of(node)) in _RANKS


def _is_variable(node: ast.expr) -> bool:
    """True for `os.environ["RANK"]`, `os.environ.get("RANK", "0")` and the like: a text, which is never false."""
    match node:
        case ast.Call(func=func, args=[name, *_]):
            return last_name(func) in ("get", "getenv") and string_of(name) in _VARIABLES
        case ast.Subscript():
            return string_of(node.slice) in _VARIABLES
    return False


def _is_uniform(test: ast.Compare) -> bool:
    op, other = test.ops[0], test.comparators[0]
    if isinstance(op, (ast.Is, ast.IsNot)):
        return True
    try:
        value = ast.literal_eval(other)
    except (ValueError, SyntaxError, TypeError, RecursionError):
        return False
    return value in (-1, "-1", "") or value is None or (value == 0 and isinstance(op, (ast.GtE, ast.Lt)))


def divided(program: Program, *, training: bool = False) -> list[Divided]:
    """The collectives that only some processes reach; with `training` the backward passes and optimizer steps too.

    Not those of both branches, and not the two barriers of which one lets the first process go ahead.
    """
    search = _Search(program, training)
    for file in program.files:
        search.file = file
        search.block(file.scan.tree.body, None)
        for function in file.scan.functions:
            search.block(function.body, None)
    return sorted(search.found, key=lambda each: (each.file.path, begins(each.call)))


class _Search:
    def __init__(self, program: Program, training: bool) -> None:
        self.program, self.training = program, training
        self.file = program.files[0]
        self.found: list[Divided] = []
        self.known: dict[ast.AST, str] = {}
        self.steps = {id(step.call) for step in program.once(find_steps)} if training else set[int]()

    def block(self, nodes: list[ast.stmt], test: ast.expr | None) -> None:
        for node in nodes:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    continue
                case ast.ClassDef():
                    self.block([item for item in node.body if not isinstance(item, FUNCTIONS)], test)
                    continue
                case ast.If():
                    test = self._branch(node, nodes, test)
                    continue
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    self.expression(inner, test)
                elif isinstance(inner, ast.withitem):
                    self.expression(inner.context_expr, test)
            blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
            blocks += [part.body for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
            for inner_block in blocks:
                self.block(inner_block, test)

    def _branch(self, node: ast.If, nodes: list[ast.stmt], test: ast.expr | None) -> ast.expr | None:
        """Look into an `if`; the condition under which the statements below it run."""
        self.expression(node.test, test)
        inner = test
        if test is None and divides(node.test):
            both = [sorted(what for _, what in self.calls(branch)) for branch in (node.body, node.orelse)]
            inner = None if both[0] == both[1] or self._pairs(node, nodes) else node.test
        self.block(node.body, inner)
        self.block(node.orelse, inner)
        leaves = isinstance(node.body[-1], (ast.Return, ast.Continue, ast.Break)) and not node.orelse
        # Behind `if not sharded and rank != 0: return` a collective may stand under the other condition.
        certain = not isinstance(node.test, ast.BoolOp) or all(divides(each) for each in node.test.values)
        return node.test if test is None and leaves and certain and divides(node.test) else test

    def _pairs(self, node: ast.If, nodes: list[ast.stmt]) -> bool:
        """True for one of `if rank != 0: barrier()` and `if rank == 0: barrier()` around what one does first."""
        return self._waits(node) and any(
            isinstance(other, ast.If)
            and other is not node
            and divides(other.test)
            and ast.dump(other.test) != ast.dump(node.test)
            and self._waits(other)
            for other in nodes
        )

    def _waits(self, node: ast.If) -> bool:
        found = [what for _, what in self.calls([*node.body, *node.orelse])]
        return len(found) == 1 and found[0] in _BARRIERS

    def expression(self, node: ast.AST, test: ast.expr | None) -> None:
        match node:
            case ast.Lambda() | ast.FunctionDef() | ast.AsyncFunctionDef():
                return
            case ast.IfExp() if test is None and divides(node.test):
                self.expression(node.test, None)
                self.expression(node.body, node.test)
                self.expression(node.orelse, node.test)
                return
            case ast.BoolOp():
                for value in node.values:
                    self.expression(value, test)
                    test = value if test is None and divides(value) else test
                return
            case ast.Call() if test is not None and (what := self.what(self.file, node)):
                self.found.append(Divided(self.file, node, what, test))
        for inner in ast.iter_child_nodes(node):
            self.expression(inner, test)

    # --- what a call does --------------------------------------------------------------------------------------------

    def calls(self, nodes: list[ast.stmt]) -> Iterator[tuple[ast.Call, str]]:
        yield from ((call, what) for node in nodes for call in own_calls(node) if (what := self.what(self.file, call)))

    def what(self, file: File, call: ast.Call) -> str:
        """What all processes have to do together in a call, in functions of the program that it runs too."""
        if name := collective(file, call):
            return name
        if self.training and (id(call) in self.steps or is_backward_pass(call)):
            return last_name(call.func)
        run = [self.program.constructor(callee) for callee in self.program.runs(file, call)]
        return next((what for function in run if function is not None and (what := self._in(function))), "")

    def _in(self, function: Function) -> str:
        if function not in self.known:
            self.known[function] = ""
            owner_file = self.program.owner[function]
            inside = (self.what(owner_file, inner) for node in function.body for inner in own_calls(node))
            self.known[function] = next((what for what in inside if what), "")
        return self.known[function]


def own_calls(node: ast.AST) -> list[ast.Call]:
    """The calls of a piece of code in the order of the source, without those of functions that it defines."""
    found: list[ast.Call] = []
    pending = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, (*FUNCTIONS, ast.Lambda)):
            continue
        if isinstance(at, ast.Call):
            found.append(at)
        pending.extend(ast.iter_child_nodes(at))
    return sorted(found, key=begins)
