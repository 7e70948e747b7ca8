"""The portable style: an edit is made only if the program does on CUDA and on the CPU what it did before.

The fixers plan as for NPUs alone; then each edit is either replaced by one that holds everywhere, or becomes a
finding. A question about CUDA and what it guards are one edit, or none (`portable_gates`). What torch.accelerator has
in which version is a table (`rules/accelerator.py`). From torch 2.5 on torch
loads torch_npu by itself, so no import is added. Names are written that the oldest torch has which the project admits:
what a requirement says is not raised. A device string that no question guards keeps "cuda" for hosts without any
accelerator, where torch.accelerator has no answer.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit
from transplt.edits.ignores import Ignores
from transplt.edits.trees.expressions import left_side
from transplt.edits.work import Work
from transplt.engine.portable_gates import QUESTIONS, Gate, behind_devices, follow, stays_behind
from transplt.engine.portable_wholes import TORN, torn, wholes
from transplt.rules.accelerator import accelerator_for
from transplt.rules.versions import version_key
from transplt.syntax.nodes import attribute_of, call_of, index_in, last_name
from transplt.syntax.scan import parent, statement

#: Changes that hold everywhere: they keep what is there beside what they add, or raise nowhere any more.
_EVERYWHERE = ("NPU135", "NPU159", "NPU230")
#: Names of torch.cuda that stand for a name of torch itself, and become it: the same class since torch 2.5.
_ALIASES = ("torch.cuda.OutOfMemoryError",)
CURRENT = "torch.accelerator.current_accelerator()"
_SINCE = "2.6"  # torch.accelerator
#: Where a device string may become an expression: it is a value there, of a variable, an argument or a choice.
_VALUES = (ast.Assign, ast.AnnAssign, ast.Call, ast.keyword, ast.arguments, ast.Return, ast.IfExp, ast.BoolOp)
_HELP = "choose the device once (npu, else cuda, else cpu) and pass it on, or migrate with the style npu"
_ADMITS = "the project admits torch"
_RAISE = "raise what its requirements ask for where that may be (torch.accelerator begins with 2.6), and run this again"
_BOTH = "both"
#: Methods and device strings that bring tensors to a device.
_PLACING = ("NPU210", "NPU201")
_PARTED = "another question of this file stays, and what it brings to CUDA would part from this"
_LEFT = "on an NPU host it would lead to what stays with CUDA"


def adapt(work: Work) -> None:
    """Turn planned changes into portable ones or into findings; lines and edits apart of a theme stay."""
    planned = [edit for edit in work.rewrites if not edit.apart]
    work.edits = [edit for edit in work.edits if edit.group and (edit.apart or not edit.rewrites)]
    version = oldest(work.settings.torch_version, work.settings.oldest_torch)
    portable = {id(edit): new for edit in planned if (new := _portable(work, edit, version)) is not None}
    why = _Settlement(work, planned, portable).settle()
    for edit in planned if version != work.settings.torch_version else ():
        if id(edit) not in portable and id(edit) not in why and _portable(work, edit, work.settings.torch_version):
            why[id(edit)] = f"{_ADMITS} {version}, which has no torch.accelerator for it"
    for edit in planned:
        if (new := portable.get(id(edit))) is not None:
            work.add(new)
            work.add(work.keep(new.node, _BOTH))
            continue
        reason = why.get(id(edit), "")
        said = f": {reason}" if reason else " would change what the program does on CUDA"
        help_ = _RAISE if reason.startswith(_ADMITS) else _HELP
        work.add(work.note(edit.node, edit.code, f"not portable: {edit.message}{said}", api=edit.api, help=help_))


class _Settlement:
    """Which edits are made: what a gate that stays would part is taken out of `portable` (by edit), and `why` says so.

    `moving` are the gates that have not been found to stay.
    """

    def __init__(self, work: Work, planned: list[Edit], portable: dict[int, Edit]) -> None:
        self.work, self.planned, self.portable = work, planned, portable
        self.why: dict[int, str] = {}
        asking = [edit for edit in planned if edit.api in QUESTIONS or isinstance(parent(edit.node), ast.Compare)]
        self.gates = [follow(work, edit) for edit in asking if id(edit) in portable]
        self.moving = {id(gate): gate for gate in self.gates}
        for gate in self.gates:
            gate.chosen = behind_devices(work, gate, self._devices(gate))

    def _devices(self, gate: Gate) -> set[str]:
        """The names that get the device which a gate chooses."""
        found = set[str]()
        for edit in self.planned:
            if edit.code == "NPU201" and gate.guards(edit.node):
                match statement(edit.node):
                    case ast.Assign(targets=targets):
                        found.update(map(last_name, targets))
                    case ast.AnnAssign(target=target):
                        found.add(last_name(target))
        return found - {""}

    def settle(self) -> dict[int, str]:
        """Take out what stays until nothing more has to, and let the rest move in groups; why, by edit."""
        left = -1
        while left != len(self.portable) + len(self.moving):
            left = len(self.portable) + len(self.moving)
            self._keep_gates()
            self._look_at_bare()
            for edit in torn(self.work, self.planned, self.portable):
                self._drop(edit, TORN)
        moved = [edit for edit in self.planned if id(edit) in self.portable]
        groups = [[gate.edit, *(edit for edit in moved if gate.guards(edit.node))] for gate in self.moving.values()]
        for number, members in enumerate([*groups, *wholes(moved)]):
            together = [self.portable[id(edit)] for edit in members]
            name = next((new.group for new in together if new.group), f"gate {number}")
            for new in together:
                new.group = name
        return self.why

    def _keep_gates(self) -> None:
        """Take out the gates that stay, and what they guard: one edit, or none."""
        for gate in list(self.moving.values()):
            if reason := self._why_it_stays(gate):
                del self.moving[id(gate)]
                self._drop(gate.edit, reason)
                for edit in self.planned:
                    if id(edit) in self.portable and gate.guards(edit.node):
                        self._drop(edit, "the question in front of it stays")

    def _why_it_stays(self, gate: Gate) -> str:
        if id(gate.edit) not in self.portable:  # it stood behind a gate that stays
            return self.why[id(gate.edit)]
        if gate.why:
            return gate.why
        lost = [edit for edit in self.planned if id(edit) not in self.portable]
        moved = [edit for edit in self.planned if id(edit) in self.portable]
        if behind := stays_behind(self.work, gate, lost, moved):
            return f"{_LEFT}: {behind}"
        places = any(edit.code == "NPU201" and gate.guards(edit.node) for edit in self.planned)
        return _PARTED if places and self._places_elsewhere(lost) else ""

    def _places_elsewhere(self, lost: list[Edit]) -> bool:
        """True where another question stays, and with it code of this file that brings tensors to CUDA."""
        placing = [edit for edit in lost if edit.code in _PLACING or edit.api.endswith("Tensor")]
        return any(
            gate.edit.api in QUESTIONS or any(gate.guards(edit.node) for edit in placing)
            for gate in self.gates
            if placing and id(gate) not in self.moving
        )

    def _look_at_bare(self) -> None:
        """What is right only where there is an accelerator, and no gate guards, gets a form that holds, or stays."""
        for edit in self.planned:
            if id(edit) not in self.portable or not _needs_gate(edit):
                continue
            if any(gate.guards(edit.node) for gate in self.moving.values()):
                continue
            if (alone := _without_a_gate(self.work, edit)) is not None:
                self.portable[id(edit)] = alone
            else:
                self._drop(edit, "without any accelerator torch.accelerator raises, and this ran")

    def _drop(self, edit: Edit, reason: str) -> None:
        if self.portable.pop(id(edit), None) is not None:
            self.why[id(edit)] = reason


def _needs_gate(edit: Edit) -> bool:
    """True for a name, or a device string, that is right only where there is an accelerator."""
    if (name := accelerator_for().get(edit.api)) is not None:
        return name.quiet
    return edit.code == "NPU201" and not isinstance(parent(edit.node), ast.Compare)


def oldest(version: str, admitted: str) -> str:
    """The version that names are looked up for: that of the migration, or an older one that the project admits."""
    return min((version, admitted or version), key=version_key)


def _without_a_gate(work: Work, edit: Edit) -> Edit | None:
    """`.to("cuda")` that nothing guards: the accelerator's type where there is one, else what was there."""
    node = edit.node
    if not isinstance(node, ast.Constant) or not _is_a_value(node):
        return None
    text = work.source.slice(*work.source.extent(node))
    outer, kind, colon, index = text[0], *str(node.value).partition(":")
    if text != f"{outer}{node.value!s}{outer}" or _is_asked_of_cuda(work, node):
        return None
    if work.once(Ignores).reason(edit.code, node.lineno, node.end_lineno or node.lineno):
        return None  # a comment, or the settings, speak of the code that the edit has for NPUs alone
    quote = {"'": '"', '"': "'"}[outer] if colon else outer
    new = f"getattr({CURRENT}, {quote}type{quote}, {quote}{kind}{quote})"
    if colon:
        new = f"f{outer}{{{new}}}:{index}{outer}"
    return Edit(node, "NPU261", f"device string {node.value!r} -> {new}", new, api=edit.api)


def _is_asked_of_cuda(work: Work, node: ast.AST) -> bool:
    """True for the device of a call that stays with CUDA: `torch.cuda.synchronize("cuda:0")`, `x.cuda("cuda:0")`."""
    while not isinstance(node, ast.stmt):
        node = parent(node)
        if not isinstance(node, ast.Call):
            continue
        if last_name(node.func) == "cuda" or (work.names.qualified(node.func) or "").startswith("torch.cuda."):
            return True
    return False


def _is_a_value(node: ast.Constant) -> bool:
    above = parent(node)
    if isinstance(above, ast.Dict):
        return index_in(above, "values", node) >= 0
    if isinstance(above, (ast.Tuple, ast.List)):
        return isinstance(parent(above), (ast.Assign, ast.Call, ast.keyword))
    return isinstance(above, _VALUES)


def _portable(work: Work, edit: Edit, version: str) -> Edit | None:
    if edit.user or edit.code in _EVERYWHERE or edit.api in _ALIASES:
        return edit
    if edit.api in accelerator_for():
        return _accelerator(work, edit, version)
    if edit.code == "NPU201" and isinstance(edit.node, ast.Constant):
        return _device_string(work, edit, edit.node, version)
    return None


def _accelerator(work: Work, edit: Edit, version: str) -> Edit | None:
    """`torch.cuda.x` written out -> `torch.accelerator.y`; not where an existing chain asks for mps or xpu too."""
    row = accelerator_for()[edit.api]
    name, node = row.name, edit.node
    text = work.source.slice(*work.source.extent(node))
    if not row.replaces_cuda(version) or not text.startswith("torch.cuda."):
        return None
    call = call_of(node)
    if _beside_other_accelerators(work, node) or (call is not None and call.keywords):  # arguments are by position
        return None
    if name == "current_stream" and (call is None or attribute_of(parent(call)) != "synchronize"):
        return None  # a torch.Stream lacks what else is asked of one of torch.cuda
    match call:
        case ast.Call(args=[ast.Constant(value=number)]) if type(number) is int:
            pass
        case _ if name == "device_index":  # it takes no torch.device and no string
            return None
    new = f"torch.accelerator.{name}"
    return Edit(node, "NPU260", f"{edit.api} -> {new}", new, api=edit.api)


def _beside_other_accelerators(work: Work, node: ast.AST) -> bool:
    """True inside an if chain or expression that also asks for mps or xpu: torch.accelerator answers for these too."""
    top: ast.AST = node
    while not isinstance(parent(top), ast.Module):
        top = parent(top)
        if isinstance(top, (ast.If, ast.IfExp, ast.BoolOp, ast.FunctionDef)):
            text = work.source.slice(*work.source.extent(top))
            if "mps" in text or "xpu" in text:
                return True
    return False


def _device_string(work: Work, edit: Edit, node: ast.Constant, version: str) -> Edit | None:
    above = parent(node)
    if isinstance(above, ast.Compare):
        return _comparison(work, above, node)
    kind, colon, index = str(node.value).partition(":")
    if kind != "cuda" or (colon and not index.isdigit()) or isinstance(above, (ast.JoinedStr, ast.FormattedValue)):
        return None
    if version_key(version) < version_key(_SINCE) or _beside_other_accelerators(work, node):
        return None
    if work.names.resolve("torch", work.scan.scope_of(node)) != "torch" or _in_format(node):
        return None
    new = f'f"{{{CURRENT}.type}}:{index}"' if colon else f"{CURRENT}.type"
    return Edit(node, "NPU261", f"device string {node.value!r} -> {new}", new, api=edit.api)


def _in_format(node: ast.AST) -> bool:
    """True inside an f-string, where another one cannot stand before Python 3.12."""
    while not isinstance(node, ast.stmt):
        if isinstance(node, ast.JoinedStr):
            return True
        node = parent(node)
    return False


def _comparison(work: Work, compare: ast.Compare, node: ast.Constant) -> Edit | None:
    """`d.type == "cuda"` -> `d.type in ("cuda", "npu")`; what is compared must be a type, no full device."""
    if node.value != "cuda" or len(compare.ops) != 1 or compare.comparators[0] is not node:
        return None
    if not isinstance(compare.ops[0], (ast.Eq, ast.NotEq)):
        return None
    word = "in" if isinstance(compare.ops[0], ast.Eq) else "not in"
    left = work.source.slice(*work.source.extent(compare.left))
    quote = work.source.slice(*work.source.extent(node))[-1]
    tail = f" {word} ({quote}cuda{quote}, {quote}npu{quote})"

    message = f"{left} == 'cuda' -> {left}{tail}"
    return Edit(compare, "NPU262", message, left_side(tail), api=f"device string {node.value!r}")
