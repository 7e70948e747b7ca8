"""Gates of the portable style: a question about CUDA moves only with everything that its answer leads to.

On an NPU host `torch.cuda.is_available()` is false, and the program runs on the CPU. Asked of `torch.accelerator` it is
true: then each line that only that answer reaches has to run there too, or the program ends where it ran before. So a
gate and what it guards are edited together, or not at all.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from transplt.base.finding import Level
from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Edit
from transplt.edits.work import Work
from transplt.flow.callees import PROSE_CALLS
from transplt.rules.torch_callables import full_names
from transplt.syntax.modules import module_name
from transplt.syntax.nodes import class_of_method, following, index_in, inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS, parent

#: What asks, by its full name; comparisons of a device type ask too.
QUESTIONS = ("torch.cuda.is_available", "torch.cuda.device_count")
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: Keywords for which the answer may be anything.
_ANY_ANSWER = ("pin_memory",)
_NOT_FOLLOWED = "where its answer goes is not followed"


class _Stays(Exception):
    """Why a gate stays as it is."""


@dataclass(slots=True)
class Gate:
    """A question, and what is reached only where its answer is yes. `why`: why it stays, empty when it moves."""

    edit: Edit
    guarded: list[ast.AST] = field(default_factory=list)
    read: set[int] = field(default_factory=set)  # the nodes through which the answer goes
    chosen: list[ast.AST] = field(default_factory=list)  # what is reached where the device that it chooses is no CPU
    followed: set[tuple[int, bool, bool]] = field(default_factory=set)  # variables, with what was followed to them
    why: str = ""

    def guards(self, node: ast.AST) -> bool:
        """True for a node that only this gate reaches."""
        wanted = {id(each) for each in self.guarded}
        current = node
        while not isinstance(current, ast.Module):
            if id(current) in wanted:
                return True
            current = parent(current)
        return False


def follow(work: Work, edit: Edit) -> Gate:
    """Where the answer of a question leads; a gate that cannot be followed says why."""
    gate = Gate(edit)
    node: ast.AST = edit.node
    if isinstance(parent(node), (ast.Call, ast.Compare)):
        node = parent(node)  # the edit is of the function's name, or of the string that is compared with
    asks_whether = not isinstance(node, ast.Compare) or isinstance(node.ops[0], ast.Eq)
    counts = edit.api == "torch.cuda.device_count"
    try:
        _climb(work, gate, node, asks_whether, counts)
    except _Stays as stays:
        gate.why = str(stays)
    return gate


def _climb(work: Work, gate: Gate, node: ast.AST, answer: bool, number: bool) -> None:
    """Follow a value upwards; where it is `answer`, there is an accelerator. `number`: it is a count of devices."""
    gate.read.add(id(node))
    above = parent(node)
    if _shown(node):
        return
    match above:
        case ast.UnaryOp(op=ast.Not()):
            _climb(work, gate, above, not answer, False)
        case ast.BoolOp(op=op, values=values):  # of `asked or other` and `not asked and other` the answer is the same
            if isinstance(op, ast.And) == answer:
                others = values[index_in(above, "values", node) + 1 :]
                if others and not answer:
                    raise _Stays(_NOT_FOLLOWED)
                gate.guarded += others
            _climb(work, gate, above, answer, False)
        case ast.Compare() if number:
            _climb(work, gate, above, _asks_for_some(above, node), False)
        case ast.IfExp(test=test, body=body, orelse=orelse) if test is node:
            gate.guarded.append(body if answer else orelse)
            _chosen(work, gate, above, body if answer else orelse)
        case ast.If(test=test) | ast.While(test=test) if test is node:
            _branches(work, gate, above, answer)
        case ast.Assert(test=test) if test is node and answer:
            gate.guarded += _demanded(above)
        case ast.BinOp(op=ast.Mod() | ast.FloorDiv(), right=right) if right is node:
            return  # without a device it divided by zero: nothing ran
        case ast.Call(func=func, args=args) if node in args and last_name(func) == "bool":
            _climb(work, gate, above, answer, False)
        case ast.keyword(arg=name) if name in _ANY_ANSWER:
            return
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is node:
            _reads(work, gate, above, answer, number)
        case _:
            raise _Stays(_NOT_FOLLOWED)


def _branches(work: Work, gate: Gate, above: ast.If | ast.While, answer: bool) -> None:
    """What a statement guards whose test the answer is, and the flags that it sets there."""
    yes, no = (above.body, above.orelse) if answer else (above.orelse, above.body)
    gate.guarded += yes
    if isinstance(above, ast.If) and no and isinstance(no[-1], _EXITS) and not answer:
        alone = isinstance(no[-1], ast.Raise) and not gate.guarded
        gate.guarded += _demanded(above) if alone else following(above)
    for inner in yes:
        _flags(work, gate, inner)


def _asks_for_some(compare: ast.Compare, node: ast.AST) -> bool:
    """Whether `device_count() > 0` or the like is true where there are devices; others are not followed."""
    other = compare.comparators[0]
    value = other.value if isinstance(other, ast.Constant) else None
    if compare.left is not node or len(compare.ops) != 1 or type(value) is not int:
        raise _Stays(_NOT_FOLLOWED)
    some = {ast.Gt: value >= 0, ast.GtE: value >= 1, ast.NotEq: value == 0}
    none = {ast.Eq: value == 0, ast.Lt: value == 1, ast.LtE: value == 0}
    kind = type(compare.ops[0])
    if not (some.get(kind) or none.get(kind)):
        raise _Stays(_NOT_FOLLOWED)
    return bool(some.get(kind))


def _chosen(work: Work, gate: Gate, choice: ast.IfExp, yes: ast.expr) -> None:
    """`True if asked else False` is the answer again, `1 if asked else 0` a count; a device is followed by itself."""
    if not isinstance(yes, ast.Constant) or str(yes.value).startswith("cuda"):
        return
    if isinstance(yes.value, bool):
        _climb(work, gate, choice, yes.value, False)
    elif type(yes.value) is int and yes.value > 0:
        _climb(work, gate, choice, True, True)
    else:
        raise _Stays(_NOT_FOLLOWED)


def _flags(work: Work, gate: Gate, statement: ast.stmt) -> None:
    """Follow the flags that a statement behind the question sets; those of torch itself are torch's."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not isinstance(statement.value, ast.Constant):
        return
    value = statement.value.value
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if any((work.names.qualified(each) or "").startswith("torch.") for each in targets):
        return
    names = f"{value!r} {' '.join(last_name(each) for each in targets)}".lower()
    if isinstance(value, bool):
        _reads(work, gate, statement, value, False)
    elif not str(value).startswith("cuda") and ("gpu" in names or "cuda" in names):
        raise _Stays(_NOT_FOLLOWED)


def _demanded(statement: ast.stmt) -> list[ast.stmt]:
    """What a statement guards that raises without a device; one with nothing behind it guards code somewhere else."""
    rest = following(statement)
    if not rest:
        raise _Stays(_NOT_FOLLOWED)
    return rest


def _reads(work: Work, gate: Gate, statement: ast.Assign | ast.AnnAssign, answer: bool, number: bool) -> None:
    """Follow the reads of a name that is bound once, and that no other file sees."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        raise _Stays(_NOT_FOLLOWED)
    target = targets[0]
    owner = work.scan.scope_of(target)
    if len(owner.bindings.get(target.id, ())) != 1 or owner.kind == "class" or target.id in owner.outward:
        raise _Stays(f"{target.id} gets its value in several places")
    gate.read.add(id(target))
    if (id(target), answer, number) in gate.followed:
        return  # `use_cuda = torch.cuda.is_available() and use_cuda`
    gate.followed.add((id(target), answer, number))
    if owner.kind == "module":
        read = "__all__" in owner.bindings or f"{module_name(work.scan.path)}.{target.id}" in work.project.used_names
        if read or not work.project.known:
            raise _Stays(f"other files may ask for {target.id}")
    for name in work.names.uses(target):
        if isinstance(name.ctx, ast.Load):
            _climb(work, gate, name, answer, number)


# --- what stands behind a gate -----------------------------------------------------------------------------------


def stays_behind(work: Work, gate: Gate, lost: Iterable[Edit], portable: Iterable[Edit]) -> str:
    """What of CUDA a gate guards that no portable edit speaks of, in words; empty when there is nothing."""
    look = _Look(work, gate, {id(edit.node): edit for edit in lost}, {id(edit.node) for edit in portable})
    return next((found for node in (*gate.guarded, *gate.chosen) for found in look.at(node)), "")


def behind_devices(work: Work, gate: Gate, names: Collection[str]) -> list[ast.AST]:
    """What is reached where a variable, or an attribute, of one of these names is no CPU: `if device != "cpu": ...`."""
    probe = Gate(gate.edit)
    for compare in inner_nodes(work.scan.tree, ast.Compare) if names else ():
        if len(compare.ops) != 1:
            continue
        sides = [_device_compared(side) for side in (compare.left, compare.comparators[0])]
        values = [side.value for side in sides if isinstance(side, ast.Constant)]
        if values == ["cpu"] and any(last_name(side) in names for side in sides):
            try:
                _climb(work, probe, compare, isinstance(compare.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot)), False)
            except _Stays:
                continue
    return probe.guarded


def _device_compared(side: ast.expr) -> ast.expr:
    """What a side of a comparison is made of: the name in `str(device)` and `device.type`, the text in
    `torch.device("cpu")`.
    """
    while True:
        match side:
            case ast.Attribute(value=inner, attr="type"):
                side = inner
            case ast.Call(func=func, args=[inner]) if last_name(func) in ("str", "device"):
                side = inner
            case _:
                return side


@dataclass(slots=True)
class _Look:
    work: Work
    gate: Gate
    lost: dict[int, Edit]
    moved: set[int]
    seen: set[int] = field(default_factory=set)

    def at(self, top: ast.AST) -> Iterator[str]:
        """What holds a gate back in a tree and in the functions of this file that it calls."""
        if id(top) in self.seen:
            return
        self.seen.add(id(top))
        yield from self._noted(top)
        stack: list[ast.AST] = [top]
        while stack:
            node = stack.pop()
            if id(node) in self.lost:
                yield self.lost[id(node)].message
            if id(node) in self.moved:
                continue
            yield from self._word(node)
            if isinstance(node, ast.Call) and id(node.func) not in self.moved:
                yield from self._called(node)
            stack.extend(ast.iter_child_nodes(node))

    def _noted(self, top: ast.AST) -> Iterator[str]:
        if not isinstance(top, (ast.expr, ast.stmt)):
            return
        start, end = self.work.source.extent(top)
        for note in self.work.notes:
            if note.level is not Level.INFO and start <= note.extent[0] < end:
                yield note.message

    def _word(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Name() if id(node) in self.gate.read:
                return
            case ast.Attribute(attr=word) | ast.Name(id=word) | ast.keyword(arg=str(word)) | ast.arg(arg=word):
                said = word
            case ast.alias(name=name, asname=other):
                said = f"{name} {other or ''}"
            case ast.Constant(value=str(text)) if not _shown(node):
                said = text
            case _:
                return
        if mentions_cuda(said.lower().encode()):
            yield f"{said.strip()[:40]!r}"

    def _called(self, call: ast.Call) -> Iterator[str]:
        full = self.work.names.qualified(call.func)
        if full in full_names("cuda_only"):
            yield f"{full} runs on CUDA alone"
        elif isinstance(call.func, ast.Name):
            found = self.work.names.lookup(call.func.id, self.work.scan.scope_of(call))
            for binding in found[1] if found is not None else ():
                if binding.kind in ("def", "class"):
                    yield from self.at(binding.node)
                elif binding.kind == "import" and self._own(binding.target, binding.node):
                    yield f"{call.func.id} of another file of the project"
        elif isinstance(call.func, ast.Attribute):
            if full is not None and self._own(full, None):
                yield f"{full} of another file of the project"
            for node in ast.walk(self.work.scan.tree):
                if isinstance(node, FUNCTIONS) and node.name == call.func.attr and class_of_method(node) is not None:
                    yield from self.at(node)

    def _own(self, full: str, node: ast.AST | None) -> bool:
        relative = isinstance(node, ast.ImportFrom) and node.level > 0
        return relative or self.work.slots.own.project_name(full) is not None


def _shown(node: ast.AST) -> bool:
    """True for a value that goes into a text for people and nowhere else."""
    current, above = node, parent(node)
    while isinstance(above, (ast.FormattedValue, ast.JoinedStr, ast.BinOp, ast.Tuple, ast.Call)):
        if isinstance(above, ast.Call):
            if current is above.func:
                return False
            last = last_name(above.func)
            if last in PROSE_CALLS or last.endswith(("Error", "Exception", "Warning")):
                return True
            if last not in ("format", "str", "repr"):
                return False
        current, above = above, parent(above)
    docstring = isinstance(above, ast.Expr) and isinstance(node, ast.Constant)
    return docstring or isinstance(above, ast.Raise) or (isinstance(above, ast.Assert) and above.msg is current)
