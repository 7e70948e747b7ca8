"""Methods and attributes of tensors and modules: `.cuda(...)`, `.is_cuda`."""

from __future__ import annotations

import ast

import libcst as cst

from transplt.destinations import FOREIGN
from transplt.finding import Effort
from transplt.flow import SELF
from transplt.rewrite import Change
from transplt.scan import FUNCTIONS, parent
from transplt.work import Addition, Work, call_of

_NEW = {"cuda": "npu", "is_cuda": "is_npu"}


def plan(work: Work) -> None:
    """Rename what hangs on a value; names that resolve to a module are the business of `references`."""
    for old, new in _NEW.items():
        for node in work.scan.attributes.get(old, ()):
            _attribute(work, node, old, new)


def _attribute(work: Work, node: ast.Attribute, old: str, new: str) -> None:
    full = work.names.qualified(node)
    if full is not None:
        root = full.split(".")[0]
        if root in FOREIGN:
            work.keep(node, f"{root}'s own cuda")
            return
        if root == "torch" and work.rules.resolve(full) is not None:
            return  # by its full name
        if root != "torch" and not _is_project_object(work, full.rpartition(".")[0]):
            work.keep(node, "a function or module of that name, no method of a tensor")
            return
    if _root_name(node) in FOREIGN:
        work.keep(node, "another library's cuda")
        return
    if not isinstance(node.ctx, ast.Load):
        work.keep(node, "data of the project's own: its name stays")
        return
    if old == "cuda" and call_of(node) is None:
        _uncalled(work, node)
        return
    if _own_data(work, node, old):
        work.keep(node, "data of the project's own: its name stays")
        return
    if not work.take(node):
        return
    work.changes.append(
        Change(
            node,
            "NPU210" if old == "cuda" else "NPU211",
            f".{old}{'()' if old == 'cuda' else ''} -> .{new}{'()' if old == 'cuda' else ''}",
            lambda root: cst.ensure_type(root, cst.Attribute).with_changes(attr=cst.Name(new)),
            api=f"torch.Tensor.{old}",
            writes_npu=True,
        )
    )


def _is_project_object(work: Work, owner: str) -> bool:
    """True for a name that a module of the project defines (an object), False for modules and for other packages."""
    known = work.project.canonical(owner)
    if known in work.project.modules or f"{known}.cuda" in work.project.cuda_methods:
        return False
    return known.rpartition(".")[0] in work.project.modules


def _uncalled(work: Work, node: ast.Attribute) -> None:
    """`x.cuda` without a call: mostly a flag of the project (`args.cuda`), sometimes a bound method."""
    value = node.value
    receiver = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
    if "cuda" in work.project.flags or "cuda" in work.project.cuda_data or _assigned_here(work, "cuda"):
        work.keep(node, "data of the project's own: its name stays")
    elif _is_condition(node) or receiver in ("args", "opt", "opts", "cfg", "config", "hparams", "params", "FLAGS", "flags"):
        work.keep(node, "data of the project's own: its name stays")
    else:
        work.note(
            node,
            "NPU212",
            "`.cuda` is taken here without being called",
            help="if it is the method of a tensor or module, write `.npu`; if it is data, leave it",
            effort=Effort.LOW,
        )


def _is_condition(node: ast.AST) -> bool:
    """True where only a truth value makes sense."""
    above = parent(node)
    if isinstance(above, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        return above.test is node
    if isinstance(above, ast.UnaryOp):
        return isinstance(above.op, ast.Not)
    return isinstance(above, ast.BoolOp)


def _assigned_here(work: Work, name: str) -> bool:
    return any(not isinstance(other.ctx, ast.Load) for other in work.scan.attributes.get(name, ()))


def _own_data(work: Work, node: ast.Attribute, old: str) -> bool:
    """`self.cuda(...)` or `self.is_cuda` where the class itself stores that attribute, or a flag of that name."""
    if old == "is_cuda":
        value = node.value
        flagged = "is_cuda" in work.project.flags or "is_cuda" in work.project.cuda_data
        named = isinstance(value, ast.Name) and value.id in (*SELF, "args", "opt", "cfg", "config")
        return (flagged or _assigned_here(work, "is_cuda")) and named
    value = node.value
    if isinstance(value, ast.Name) and value.id in SELF:
        return any(
            not isinstance(other.ctx, ast.Load) and isinstance(other.value, ast.Name) and other.value.id in SELF
            for other in work.scan.attributes.get(old, ())
        )
    return False


def _root_name(node: ast.AST) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def definitions(work: Work) -> None:
    """A class that defines `cuda` gains the NPU path: `npu = cuda` after the method."""
    for node in work.scan.classes:
        names = {item.name for item in node.body if isinstance(item, FUNCTIONS)}
        for item in node.body:
            if isinstance(item, FUNCTIONS) and item.name == "cuda" and "npu" not in names:
                if any(isinstance(b, ast.Assign) and _assigns(b, "npu") for b in node.body):
                    continue
                message = f"{node.name} defines cuda; its uses are called npu now"
                work.additions.append(Addition(item, "npu = cuda", "NPU214", message))


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
