"""torch.optim.AdamW and others -> torch_npu.optim.NpuFusedAdamW: one kernel a step for all parameters of a dtype."""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import calling, one_after_the_other, with_keyword
from transplt.edits.trees.removals import without_any_argument, without_arguments
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.fused_optimizers import CLASSES, Optimizers, class_of, optimizers_around
from transplt.fixers.tuning_writer import writer_for
from transplt.rules.torch_callables import names_of
from transplt.syntax.nodes import by_place, call_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU750", rank=110, theme="tune:fused-optimizer")


@on_file(fixer, writer_for)
def optimizers(work: Work, writer: Writer) -> None:
    """Change the optimizers of this file that can be, and the calls on them."""
    if work.settings.amp == "apex":
        return  # those of Ascend apex: transplt.fixers.amp.apex.replacements
    found = optimizers_around(work)
    if found is None:
        return
    done = []
    for call in by_place(work.scan.calls):
        if (made := found.by_call.get(call)) is not None:
            if made.fused:
                continue
            if not made.why:
                fused = CLASSES[made.name]
                message = f"{ast.unparse(call.func)} becomes {fused}"
                new = one_after_the_other(without_arguments(*made.dropped), calling(fused))
                if writer.change_alone(call, fixer.code, message, new, writes_npu=True, api=f"torch.optim.{made.name}"):
                    done.append(call.func)
            elif not made.silent:
                help_ = made.help or f"see the page of {fixer.code}, and write {CLASSES[made.name]} if it fits"
                writer.left(call, f"torch.optim.{made.name} is not changed: {made.why}", help_, fixer.code)
        elif call in found.zeroing:
            writer.change(call, fixer.code, "the fused optimizers refuse set_to_none=True", without_any_argument())
        elif call in found.modules:
            message = "the gradients stay where the fused optimizers packed them"
            writer.change(call, fixer.code, message, with_keyword("set_to_none", "False"), beside=True)
    _references(writer, found)
    drop_unused(writer, done, fixer.code)


def _references(writer: Writer, found: Optimizers) -> None:
    """Classes that are handed on instead of called: in tables, as a base, by `getattr`."""
    work = writer.work
    for node in _class_names(work):
        if call_of(node) is not None:
            continue
        name = class_of(work.names.qualified(node) or "")
        match parent(node):
            case ast.ClassDef():
                _left(writer, node, f"a class of the project derives from torch.optim.{name}", name)
            case ast.Call(func=func) if getattr(func, "id", "") in names_of("builtins", "asks") or (
                work.names.qualified(func) or ""
            ).startswith("inspect."):
                continue
            case ast.Dict() | ast.Assign() | ast.Call() | ast.keyword() | ast.List() | ast.Tuple() | ast.IfExp():
                _left(writer, node, f"torch.optim.{name} is called with arguments that cannot be read", name)
    for call in work.scan.calls:
        of_optim = call.args and work.names.qualified(call.args[0]) == "torch.optim"
        if of_optim and getattr(call.func, "id", "") == "getattr":
            writer.left(
                call,
                "the class of torch.optim is not known here",
                f"torch_npu.optim has NpuFused forms of {', '.join(sorted(CLASSES))}",
                fixer.code,
            )


def _left(writer: Writer, node: ast.expr, message: str, name: str) -> None:
    writer.left(node, message, f"use {CLASSES[name]} there if its restrictions allow it", fixer.code)


def _class_names(work: Work) -> list[ast.expr]:
    nodes: list[ast.expr] = []
    for local, uses in work.scan.names.items():
        if any(b.kind == "import" for b in work.scan.root.bindings.get(local, ())):
            nodes += [node for node in uses if isinstance(node.ctx, ast.Load)]
    for name in CLASSES:
        nodes += work.scan.attributes.get(name, ())
    found = [node for node in nodes if class_of(work.names.qualified(node) or "")]
    return by_place(found)
