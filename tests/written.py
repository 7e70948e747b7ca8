"""What must hold of the text that `distributed` wrote, and of programs that were written by hand: read off the source.

`faults(files, entry)` gives sentences: a collective or an optimizer step that only some ranks come by, a rank asked
before the group begins, `.module` of what nobody wrapped, two process groups on one way through the program.
Statements are followed in the order in which they run, from the main file into the functions that it calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

_COLLECTIVES = frozenset(
    "all_reduce all_gather all_gather_into_tensor all_gather_object reduce broadcast broadcast_object_list gather "
    "gather_object scatter reduce_scatter all_to_all barrier monitored_barrier".split()
)
#: Functions of npu_port that all ranks have to call, and those for which the group has to be there.
_TOGETHER = frozenset(
    "start wait own_draws same_draws wrap alike average buffers_of_first mean_over_ranks of_first sum_over_ranks "
    "check_ranks".split()
)
_BEHIND_START = (_TOGETHER - {"start"}) | {"shard", "is_first", "rank", "world_size"}
#: What asks for a rank or needs the group, by its last name.
_NEEDS_GROUP = _COLLECTIVES | {"get_rank", "get_world_size", "DistributedDataParallel", "DistributedSampler", "DDP"}
_WRAPPERS = frozenset(
    {"DistributedDataParallel", "DDP", "DataParallel", "FullyShardedDataParallel", "AveragedModel", "wrap"}
)
_RANK = re.compile(r"\bget_rank\(\)|\bis_first\(\)|\b(local_)?rank\b|\bRANK\b|is_main_process|is_master")
_SAFE = re.compile(r"is_initialized|is_available\(\)|\bdistributed\b|world_size|WORLD_SIZE|\"RANK\"|'RANK'")
_OPTIMIZER = re.compile(r"opt|scaler|solver|sched", re.IGNORECASE)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class _Files:
    """The functions, classes and names of all files, by last names: more is taken to belong together than may."""

    trees: dict[str, ast.Module]
    functions: dict[str, list[_Function]] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tree in self.trees.values():
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self.functions.setdefault(node.name, []).append(node)
                elif isinstance(node, ast.ClassDef):
                    self.classes[node.name] = node

    def called(self, call: ast.Call) -> Iterator[_Function]:
        """What a call may run: functions of that name, or `__init__` of a class."""
        name = _last(call.func)
        if name in self.classes:
            yield from (part for part in self.classes[name].body if isinstance(part, ast.FunctionDef)
                        and part.name == "__init__")  # fmt: skip
        elif len(self.functions.get(name, [])) == 1 and name not in ("forward", "backward", "step", "update"):
            yield self.functions[name][0]


def faults(files: Mapping[str, str], entry: str, before: Mapping[str, str] | None = None) -> list[str]:
    """What does not hold, each with file and line. `files` are sources by path, `before` those of the input: an
    attribute `module` that was there already is the program's own."""
    trees = {path: ast.parse(text) for path, text in sorted(files.items()) if not _is_helper(path)}
    every = _Files(trees)
    found = list(_under_ranks(every))
    found += _of_the_bare(every, before or {})
    found += _order(every, entry)
    return sorted(set(found))


def launched_alone(files: Mapping[str, str], script: str) -> list[str]:
    """What a script that is started without a process group would stop at."""
    trees = {path: ast.parse(text) for path, text in sorted(files.items()) if not _is_helper(path)}
    found = set(_order(_Files(trees), script))
    helped = {f"{name} before the process group begins" for name in _BEHIND_START}  # they see one process then
    return sorted(each for each in found if each.partition(": ")[2] not in helped)


def _is_helper(path: str) -> bool:
    """True for the file of functions that a port calls, which tests/helper tests."""
    return path.rpartition("/")[2].startswith("npu_port")


# --- under a rank -----------------------------------------------------------------------------------------------------


def _under_ranks(every: _Files) -> Iterator[str]:
    meeting, wrapped = _meeting(every), _wrapped(every)
    for path, tree in every.trees.items():
        for body in _bodies(tree):
            for place, statement in enumerate(body):
                if not isinstance(statement, ast.If) or not _asks_rank(statement.test):
                    continue
                parts = [statement.body, statement.orelse]
                if any(isinstance(part[-1], (ast.Return, ast.Continue, ast.Break)) for part in parts if part):
                    parts.append(body[place + 1 :])
                for part in parts:
                    for call in _calls(part):
                        name = _meets(call) or (f"{_last(call.func)}(), which has one" if _last(call.func) in meeting
                                                and any(every.called(call)) else "")  # fmt: skip
                        # Where it has buffers, a wrapped model exchanges them in each forward pass.
                        name = name or _runs_wrapped(call, wrapped, every)
                        if name and not (name == "barrier" and _barrier_for_others(body, statement)):
                            yield f"{path}:{call.lineno}: under a rank: {name}"


def _meeting(every: _Files) -> set[str]:
    """Names of functions in which a collective or a step is, directly or in what they call; conditions by ranks count
    where they stand."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, functions in every.functions.items()
            for function in functions
            if name not in found
            and any(_meets(call) or (_last(call.func) in found and any(every.called(call)))
                    for call in _calls(function.body, guarded=False))
        }  # fmt: skip
        if not more:
            return found
        found |= more


def _meets(call: ast.Call) -> str:
    name = _last(call.func)
    if isinstance(call.func, ast.Attribute):
        owner = ast.unparse(call.func.value)
        if owner == "npu_port" and name in _TOGETHER:
            return "barrier" if name == "wait" else f"npu_port.{name}"
        if name in _COLLECTIVES and re.search(r"\b(dist|distributed)\b", owner):
            return name
        if name == "step" and _OPTIMIZER.search(owner):
            return f"{owner}.step"
        if name == "backward":
            return f"{owner}.backward"
    return ""


def _runs_wrapped(call: ast.Call, wrapped: set[str], every: _Files) -> str:
    name = _last(call.func)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    handed = any(every.called(call)) and any(_last(value) in wrapped for value in given)
    known = name in wrapped and name not in every.functions and name not in every.classes
    return f"the wrapped model in {ast.unparse(call)}" if handed or known else ""


def _barrier_for_others(body: list[ast.stmt], statement: ast.If) -> bool:
    """The ranks wait for one, and it for them: as many barriers for the one as for the others."""
    count = {True: 0, False: 0}
    for other in body:
        if isinstance(other, ast.If) and _asks_rank(other.test):
            first = any(isinstance(node, (ast.Eq, ast.Not)) for node in ast.walk(other.test))
            for part, mine in ((other.body, first), (other.orelse, not first)):
                count[mine] += sum(_last(call.func) == "barrier" for call in _calls(part))
    return count[True] == count[False]


def _asks_rank(test: ast.expr) -> bool:
    text = ast.unparse(test)
    return bool(_RANK.search(text)) and not re.fullmatch(r".*\bin os\.environ", text)


# --- the wrapper ------------------------------------------------------------------------------------------------------


def _of_the_bare(every: _Files, before: Mapping[str, str]) -> Iterator[str]:
    wrapped = _wrapped(every)
    for path, tree in every.trees.items():
        own = re.findall(r"[\w.\])]+\.module\b", before.get(path, ""))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or node.attr != "module":
                continue
            text = ast.unparse(node)
            if _last(node.value) not in wrapped and text not in own:
                yield f"{path}:{node.lineno}: {text}: nobody wraps {ast.unparse(node.value)}"


def _wrapped(every: _Files) -> set[str]:
    """Last names of what holds a wrapped model: assigned from a wrapper, handed on, or assigned from such a name."""
    found: set[str] = set()
    while True:
        size = len(found)
        for tree in every.trees.values():
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign) and _holds_wrapper(node.value, found):
                    for target in node.targets:
                        found |= {_last(part) for part in getattr(target, "elts", [target])}
                elif isinstance(node, ast.Return) and node.value is not None and _holds_wrapper(node.value, found):
                    function = _around(tree, node)
                    if function is not None:
                        found.add(function.name)
                elif isinstance(node, ast.Call):
                    for function in every.called(node):
                        found |= _parameters(function, node, found)
        if len(found) == size:
            return found - {""}


def _holds_wrapper(value: ast.expr, found: set[str]) -> bool:
    parts = [value, *getattr(value, "elts", [])]
    for part in parts:
        name = _last(part.func) if isinstance(part, ast.Call) else _last(part)
        if name in found or name.endswith(tuple(_WRAPPERS)):
            return True
        if isinstance(part, ast.IfExp) and (_holds_wrapper(part.body, found) or _holds_wrapper(part.orelse, found)):
            return True
    return False


def _parameters(function: _Function, call: ast.Call, found: set[str]) -> set[str]:
    names = [argument.arg for argument in function.args.args]
    if names[:1] == ["self"]:
        names = names[1:]
    given = [(name, value) for name, value in zip(names, call.args, strict=False)]
    given += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
    return {name for name, value in given if _last(value) in found}


def _around(tree: ast.Module, inner: ast.AST) -> _Function | None:
    around = None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(n is inner for n in ast.walk(node)):
            around = node
    return around


# --- in the order of a run --------------------------------------------------------------------------------------------


class _Run:
    """Follows the statements of a script; `groups` counts the process groups that have begun by then."""

    def __init__(self, every: _Files) -> None:
        self.every = every
        self.groups = 0
        self.entered: set[int] = set()
        self.imported: set[str] = set()
        self.found: list[str] = []

    def script(self, path: str) -> list[str]:
        self.file(path, main=True)
        return self.found

    def file(self, path: str, *, main: bool = False) -> None:
        self.imported.add(path)
        self.body(self.every.trees[path].body, path, main)

    def body(self, statements: Iterable[ast.stmt], path: str, main: bool = False) -> None:
        for statement in statements:
            self.statement(statement, path, main)

    def statement(self, statement: ast.stmt, path: str, main: bool) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self.imports(statement)
        elif isinstance(statement, ast.If):
            if "__name__" in ast.unparse(statement.test):
                if main:
                    self.body(statement.body, path)
                return
            if _SAFE.search(ast.unparse(statement.test)) and "get_rank()" not in ast.unparse(statement.test):
                groups = self.groups
                self.body(statement.body, path)
                then, self.groups = self.groups, groups
                self.body(statement.orelse, path)
                self.groups = max(then, self.groups)
                return
            self.calls([statement.test], path)
            groups = self.groups
            self.body(statement.body, path, main)
            then, self.groups = self.groups, groups
            self.body(statement.orelse, path, main)
            self.groups = max(then, self.groups)
        else:
            own = [value for name, value in ast.iter_fields(statement) if isinstance(value, ast.expr)]
            own += [part for name, value in ast.iter_fields(statement) if isinstance(value, list)
                    for part in value if isinstance(part, (ast.expr, ast.withitem))]  # fmt: skip
            self.calls(own, path)
            for name in ("body", "handlers", "orelse", "finalbody"):
                for part in getattr(statement, name, []):
                    inner = part.body if isinstance(part, ast.ExceptHandler) else [part]
                    self.body(inner, path, main)

    def imports(self, statement: ast.Import | ast.ImportFrom) -> None:
        names = [alias.name for alias in statement.names]
        if isinstance(statement, ast.ImportFrom):
            module = statement.module or ""
            names = [module, *(f"{module}.{name}" for name in names)]
        for name in names:
            for path in (name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py"):
                if path in self.every.trees and path not in self.imported:
                    self.file(path)

    def calls(self, nodes: Iterable[ast.AST], path: str) -> None:
        calls = [call for node in nodes for call in ast.walk(node) if isinstance(call, ast.Call)]
        for call in sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0)):
            name = _last(call.func)
            if name == "init_process_group" or ast.unparse(call.func) == "npu_port.start":
                self.groups += 1
                if self.groups > 1:
                    self.found.append(f"{path}:{call.lineno}: a second process group")
            elif name == "destroy_process_group":
                self.groups = 0
            elif not self.groups and (
                (ast.unparse(call.func).startswith("npu_port.") and name in _BEHIND_START)
                or (name in _NEEDS_GROUP and self.needs(call))
            ):
                self.found.append(f"{path}:{call.lineno}: {name} before the process group begins")
            for function in self.every.called(call):
                if id(function) not in self.entered:
                    self.entered.add(id(function))
                    self.body(function.body, self.path_of(function))
                    # Another place may come by without a group.
                    if not self.groups:
                        self.entered.discard(id(function))

    def needs(self, call: ast.Call) -> bool:
        name = _last(call.func)
        if name in self.every.functions or name in self.every.classes:
            return False
        if name == "DistributedSampler":
            return len(call.args) < 3 and not {"rank", "num_replicas"} <= {each.arg for each in call.keywords}
        if isinstance(call.func, ast.Attribute):
            return bool(re.search(r"\b(dist|distributed|parallel|nn)\b", ast.unparse(call.func.value)))
        return True

    def path_of(self, function: _Function) -> str:
        return next(path for path, tree in self.every.trees.items() if any(n is function for n in ast.walk(tree)))


def _order(every: _Files, entry: str) -> list[str]:
    return _Run(every).script(entry)


# --- small ------------------------------------------------------------------------------------------------------------


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            value = getattr(node, name, None)
            if isinstance(value, list) and value:
                yield value


def _calls(statements: Iterable[ast.AST], guarded: bool = True) -> Iterator[ast.Call]:
    """The calls in statements, without functions that only stand there; not `guarded`: without what is under a rank."""
    stack = list(statements)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if not guarded and isinstance(node, ast.If) and _asks_rank(node.test):
            continue
        if isinstance(node, ast.Call):
            yield node
        stack += ast.iter_child_nodes(node)
