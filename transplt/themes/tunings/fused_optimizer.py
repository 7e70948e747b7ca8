"""torch.optim.AdamW and others -> torch_npu.optim.NpuFusedAdamW: one kernel a step for all parameters of a dtype."""

from __future__ import annotations

import ast

from transplt.codemods.call_edits import with_keyword, without_keywords
from transplt.edits.work import Work
from transplt.edits.writing import Writer
from transplt.syntax.scan import parent
from transplt.themes.tunings.optimizers import CLASSES, Optimizers, class_of, optimizers_around
from transplt.themes.tunings.reach import key
from transplt.themes.tunings.unused import drop_unused
from transplt.trees.lazy import cst
from transplt.trees.transform import Transform

CODE = "NPU750"


def plan(writer: Writer, value: str) -> None:
    """Change the optimizers of this file that can be, and what is said to them."""
    work = writer.work
    if work.settings.amp == "apex":
        return  # those of Ascend apex: transplt.themes.amp.apex_replacements
    found = optimizers_around(work)
    if found is None:
        return
    path, done = work.scan.path, []
    for call in sorted(work.scan.calls, key=lambda node: (node.lineno, node.col_offset)):
        place = key(path, call)
        if (made := found.by_key.get(place)) is not None:
            if made.fused:
                continue
            if not made.why:
                fused = CLASSES[made.name]
                if writer.change(
                    call, CODE, f"{ast.unparse(call.func)} becomes {fused}", _fused(fused, made.dropped),
                    writes_npu=True, api=f"torch.optim.{made.name}",
                ):  # fmt: skip
                    done.append(call.func)
            elif not made.silent:
                help_ = made.help or f"look at the page of {CODE} and write {CLASSES[made.name]} where it fits"
                writer.left(call, f"torch.optim.{made.name} stays: {made.why}", help_, CODE)
        elif place in found.zeroing:
            writer.change(call, CODE, "the fused optimizers refuse set_to_none=True", _plain)
        elif place in found.modules:
            message = "the gradients stay where the fused optimizers packed them"
            writer.change(call, CODE, message, with_keyword("set_to_none", "False"))
    _references(writer, found)
    drop_unused(writer, done, CODE)


def _fused(name: str, dropped: tuple[str, ...]) -> Transform:
    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(without_keywords(*dropped)(node), cst.Call)
        return call.with_changes(func=cst.parse_expression(name))

    return transform


def _plain(node: cst.CSTNode) -> cst.CSTNode:
    return cst.ensure_type(node, cst.Call).with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))


def _references(writer: Writer, found: Optimizers) -> None:
    """Classes that are handed on instead of called: in tables, as a base, by `getattr`."""
    work = writer.work
    for node in _class_names(work):
        above = parent(node)
        if isinstance(above, ast.Call) and above.func is node:
            continue
        name = class_of(work.names.qualified(node) or "")
        if isinstance(above, ast.ClassDef):
            _said(writer, node, f"a class of the project is made from torch.optim.{name}", name)
        elif isinstance(above, (ast.Dict, ast.Assign, ast.Call, ast.keyword, ast.List, ast.Tuple, ast.IfExp)):
            asked = getattr(above.func, "id", "") if isinstance(above, ast.Call) else ""
            tested = asked in ("isinstance", "issubclass", "hasattr") or (
                isinstance(above, ast.Call) and (work.names.qualified(above.func) or "").startswith("inspect.")
            )
            if not tested:
                _said(writer, node, f"torch.optim.{name} is called where its arguments are not in sight", name)
    for call in work.scan.calls:
        of_optim = call.args and work.names.qualified(call.args[0]) == "torch.optim"
        if of_optim and getattr(call.func, "id", "") == "getattr":
            writer.left(
                call,
                "which class of torch.optim this is cannot be seen",
                f"for {', '.join(sorted(CLASSES))} torch_npu.optim has NpuFused forms",
                CODE,
            )


def _said(writer: Writer, node: ast.expr, message: str, name: str) -> None:
    writer.left(node, message, f"use {CLASSES[name]} there if its restrictions allow it", CODE)


def _class_names(work: Work) -> list[ast.expr]:
    nodes: list[ast.expr] = []
    for local, uses in work.scan.names.items():
        if any(b.kind == "import" for b in work.scan.root.bindings.get(local, ())):
            nodes += [node for node in uses if isinstance(node.ctx, ast.Load)]
    for name in CLASSES:
        nodes += work.scan.attributes.get(name, ())
    found = [node for node in nodes if class_of(work.names.qualified(node) or "")]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))
