"""clip_grad_norm_ over all parameters of a fused optimizer -> its own clipping of the packed gradients."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import calling, one_after_the_other
from transplt.edits.trees.removals import without_arguments
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.around import program_around
from transplt.fixers.fused_optimizers import Made, Optimizers, optimizers_around
from transplt.fixers.tuning_writer import writer_for
from transplt.program.optimizers import perhaps_missing
from transplt.program.program import File, Program, enclosing_function
from transplt.program.whole_models import model_of
from transplt.syntax.nodes import by_place, hides_arguments

fixer = Fixer(__name__, code="NPU751", rank=120, theme="tune:fused-clip")

_CLIPS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad.clip_grad_norm_"})


@dataclass(frozen=True, slots=True)
class Clip:
    """A clipping that `optimizer` can do; `dropped` are positions and keywords that go with the parameters."""

    optimizer: str
    dropped: tuple[str, ...]


@on_file(fixer, writer_for)
def clippings(work: Work, writer: Writer) -> None:
    """Change the clippings of this file that are over all parameters of one fused optimizer."""
    if work.settings.amp == "apex":
        return  # those of Ascend apex: transplt.fixers.amp.apex.replacements
    program, found = program_around(work), optimizers_around(work)
    if program is None or found is None:
        return
    asked = work.settings.asks_for("tune:fused-optimizer")
    fused = [made for made in found.made if made.fused or (asked and not made.why)]
    if not fused:
        return
    clips = _clips(program, work.scan.path, found, fused)
    done = []
    for call in by_place(work.scan.calls):
        clip = clips.get(call)
        if clip is None:
            continue
        gone = without_arguments(*clip.dropped, first="parameters" not in clip.dropped)
        new = one_after_the_other(gone, calling(f"{clip.optimizer}.clip_grad_norm_fused_"))
        if writer.change_alone(call, fixer.code, f"{clip.optimizer} clips its packed gradients at once", new):
            done.append(call.func)
    drop_unused(writer, done, fixer.code)


def _clips(program: Program, path: str, found: Optimizers, fused: list[Made]) -> dict[ast.Call, Clip]:
    clips = {}
    file = next(file for file in program.files if file.path == path)
    for call in file.scan.calls:
        if file.names.qualified(call.func) in _CLIPS:
            clip = _clip(program, file, call, found, fused)
            if clip is not None:
                clips[call] = clip
    return clips


def _clip(program: Program, file: File, call: ast.Call, found: Optimizers, fused: list[Made]) -> Clip | None:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    finite = given.get("error_if_nonfinite")
    checks = finite is not None and not (isinstance(finite, ast.Constant) and not finite.value)
    if hides_arguments(call) or len(call.args) > 3 or checks:
        return None
    model = model_of(program, file, call.args[0] if call.args else given.get("parameters"))
    holders = [made for made in found.made if model is not None and made.of.given.whole == model]
    if not holders or any(made not in fused for made in holders):
        return None
    dropped = tuple(name for name in ("parameters", "error_if_nonfinite", "foreach") if name in given)
    optimizer = _holder_at(program, file, call, found, set(holders))
    return Clip(optimizer, dropped) if optimizer else None


def _holder_at(program: Program, file: File, call: ast.Call, found: Optimizers, holders: set[Made]) -> str:
    """A variable of the function around a call that holds some optimizers and no others; empty where none does."""
    function = enclosing_function(call)
    for slot, every in found.by_slot.items():
        if set(every) != holders or perhaps_missing(program, slot):
            continue
        nodes: list[ast.expr] = [*file.scan.names.get(slot[2], ()), *file.scan.attributes.get(slot[2], ())]
        for node in by_place(nodes):
            if enclosing_function(node) is function and program.slot(file, node) == slot:
                return ast.unparse(node)
    return ""
