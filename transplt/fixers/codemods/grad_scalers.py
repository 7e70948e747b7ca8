"""`torch.cuda.amp.GradScaler` becomes `torch.amp.GradScaler("npu")`, where every use of the name in the file allows it.

torch_npu's own scaler hands itself to an optimizer that unscales by itself, `Adam(fused=True)`, whose `step()` takes no
such argument, and loads no state that was saved on CUDA (torch_npu/npu/amp/grad_scaler.py: step, load_state_dict).
torch's does both on an NPU, from torch 2.3 on; but without a device it is one of CUDA, which disables itself. So
the name moves only where each use is a call, which gets the device, or asks for the type; and torch_npu's scaler stays,
as rules/amp.json has it, where somebody may call it without one: by a value, a subclass, or from another file.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from transplt.base.plan_decisions import LEAVE
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import calling, one_after_the_other, with_first
from transplt.edits.trees.names import dotted as dotted_name
from transplt.edits.unused_imports import is_exported
from transplt.edits.work import Work
from transplt.fixers.codemods.imported_names import switched_off
from transplt.fixers.codemods.rename import full_name, needed_import
from transplt.syntax.annotations import is_annotation
from transplt.syntax.names import replaces_failed_import
from transplt.syntax.nodes import call_of, called_name, dotted, index_in, keyword_of, root_name
from transplt.syntax.scan import parent
from transplt.syntax.scopes import Binding

fixer = Fixer(__name__, code="NPU103", rank=105, versions=">=2.3", needs=(b"GradScaler",))
#: Behind the fixer that rewrites imports.
behind = Fixer(__name__, code="NPU103", rank=115, versions=">=2.3", needs=(b"GradScaler",))

#: What the names of CUDA stand for where torch's own scaler takes their place.
MOVES = {
    "torch.cuda.amp.GradScaler": "torch.amp.GradScaler",
    "torch.cuda.amp.grad_scaler.GradScaler": "torch.amp.grad_scaler.GradScaler",
}
_TORCHS = "torch.amp.GradScaler"
#: An import and the calls of what it brings are edited together, or not at all.
_GROUP = "torch.amp.GradScaler"
_TYPE_CHECKS = ("isinstance", "issubclass", "assertIsInstance")


@fixer.on(ast.Module)
def scaler_of_torch(work: Work, tree: ast.Module) -> Finds:
    """Write torch's scaler; where it cannot be, let type checks ask for it: torch_npu's is a subclass."""
    user, lasts = work.rules.user, {old.rpartition(".")[2] for old in MOVES}
    theirs = lasts & {*user.last_names, *user.last_args}
    if theirs or any(user.resolve(old) or user.args.get(old) for old in MOVES) or work.settings.style == "portable":
        return
    uses = uses_of(work, MOVES)
    if uses and _all_follow(work, uses):
        builtin = work.rules.builtin
        moved = {old: replace(builtin.names[old], new=new, args=None) for old, new in MOVES.items()}
        work.rules = replace(work.rules, builtin=replace(builtin, names={**builtin.names, **moved}))
        for node, full in uses:
            yield from _called(work, node, full)
        return
    for node, full in uses:
        if _is_type_check(node) and _spelled(work, node) and work.take(node):
            message = f"{full} -> {_TORCHS} (scalers of torch and of torch_npu are one)"
            yield Edit(
                node, fixer.code, message, dotted_name(_spelled(work, node)), api=full,
                imports=needed_import(work, _TORCHS, node),
            )  # fmt: skip


@behind.on(ast.Module)
def imports_go_along(work: Work, tree: ast.Module) -> Finds:
    """Bind the imports of the scaler to its calls."""
    if any(edit.group == _GROUP for edit in work.edits):
        nodes = {id(node) for node, _ in _imports(work)}
        for edit in work.rewrites:
            if id(edit.where) in nodes:
                edit.group = _GROUP
                work.grouped.append(edit)
    yield from ()


def uses_of(work: Work, names: dict[str, str] | frozenset[str]) -> list[tuple[ast.expr, str]]:
    """Where a file reads one of some full names of a class, each with that name; what follows it is not part of it."""
    found = []
    for name, base in work.names.references():
        links = dotted(name)
        full = full_name(name, base)
        for old in names:
            if full == old or full.startswith(f"{old}."):
                depth = old.count(".") - base.count(".")
                if depth >= 0:
                    found.append((links[depth], old))
    return found


def is_type(node: ast.expr) -> bool:
    """True for a class that is not called, or may be: one in a type check or in the place of a type."""
    return _is_type_check(node) or is_annotation(node)


def _is_type_check(node: ast.expr) -> bool:
    above = parent(node)
    if isinstance(above, ast.Tuple):
        node, above = above, parent(above)
    return called_name(above) in _TYPE_CHECKS and index_in(above, "args", node) == 1


def _all_follow(work: Work, uses: list[tuple[ast.expr, str]]) -> bool:
    """True where each use is a call that can be told the device, or a type, of a name that this file alone reads."""
    imported = {binding for _, binding in _imports(work)}
    for node, _ in uses:
        call = call_of(node)
        if not (is_type(node) if call is None else keyword_of(call, "device") is None):
            return False
        if isinstance(node, ast.Name):
            if imported.isdisjoint(work.names.bindings_of(node)):
                return False  # an assignment, a star or another file of the project brings it
        elif not _spelled(work, node) or (call is not None and id(node) in work.taken):
            return False
    return all(_is_private(work, node, binding) for node, binding in _imports(work))


def _imports(work: Work) -> list[tuple[ast.ImportFrom, Binding]]:
    """The imports that bring the scaler of CUDA by its name."""
    found = []
    for node in work.scan.imports:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.GradScaler" in MOVES and not node.level:
            bound = (
                each
                for alias in node.names
                for each in work.scan.scope_of(node).bindings.get(alias.asname or alias.name, [])
            )
            found += [(node, each) for each in bound if each.node is node and each.target in MOVES]
    return found


def _is_private(work: Work, node: ast.ImportFrom, binding: Binding) -> bool:
    """True where the uses of an imported name in this file are all there are, and none is left out."""
    scope = work.scan.scope_of(node)
    local = next(name for name, bindings in scope.bindings.items() if binding in bindings)
    others = [each for each in scope.bindings[local] if each is not binding]
    if any(each.kind == "import" or not replaces_failed_import(each) for each in others):
        return False
    if scope.kind == "module" and (not work.project.known or is_exported(work, local)):
        return False
    left = any(work.choice(fixer.code, each) == LEAVE for each in (node, *work.scan.names.get(local, ())))
    return scope.kind != "class" and not left and not switched_off(work, local, scope)


def _spelled(work: Work, node: ast.expr) -> str:
    """How torch's scaler is written in the place of a name; empty where `torch` is something else there."""
    root = root_name(node)
    assert root is not None
    scope = work.scan.scope_of(node)
    if work.names.resolve(root.id, scope) == "torch":
        return f"{root.id}{_TORCHS.removeprefix('torch')}"
    return _TORCHS if work.names.resolve("torch", scope) == "torch" or work.names.lookup("torch", scope) is None else ""


def _called(work: Work, node: ast.expr, full: str) -> Finds:
    """Name the device in a call, and write what is called where no import brings it."""
    call = call_of(node)
    if call is None:
        return
    new = with_first('"npu"')
    imports: tuple[str, ...] = ()
    if isinstance(node, ast.Attribute):
        work.take(node)
        new = one_after_the_other(calling(_spelled(work, node)), new)
        imports = needed_import(work, _TORCHS, node)
    message = f'{full} -> {_TORCHS}("npu")'
    yield Edit(
        call, fixer.code, message, new, api=full, writes_npu=True, imports=imports,
        group=_GROUP if isinstance(node, ast.Name) else "",
    )  # fmt: skip
