"""Gates that lead to CUDA-only code stay: on an NPU they answer no, and the program takes its other path.

`if x.is_cuda: return median_filter_cuda(x)` must not become `if x.is_npu`: the branch calls a kernel that no NPU runs.
Runs after the codemods that plan edits, and takes back those of such gates. What only the CUDA side of a condition
reaches, over the whole project, is the answer of `CudaSide`; nobody else decides it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Finds, Kept, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.gates.cuda_side import CudaSide
from transplt.flow.gates.idle import cpu_loads, idle
from transplt.flow.gates.not_cpu import refuses_the_cpu
from transplt.rules.taken_over import packages
from transplt.syntax.conditions import sides_of, stops_otherwise
from transplt.syntax.nodes import attribute_of, call_of
from transplt.syntax.scan import chain, parent

fixer = Fixer(__name__, code="NPU270", rank=610)

#: What is said of the answers of a card, or of another gate: nobody hears it behind a gate that stays.
_OF_ANSWERS = frozenset({"NPU241", "NPU242", "NPU503", "NPU270", "NPU279"})
#: What is said of a gate that stays, by whether the program stops without CUDA: the code, what happens, what to do.
_STAYS = {
    True: ("NPU279", "without CUDA the program stops", "port the CUDA code, or remove its callers"),
    False: (
        "NPU270",
        "the NPU takes the other branch",
        "check that the other branch is right on the NPU; port the CUDA code if you need its speed",
    ),
}
_AVAILABLE = ("torch.cuda.is_available", "torch.cuda.device_count", "torch.cuda.is_initialized")


@fixer.on(ast.Module)
def gates_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Take back the edits of gates whose CUDA side is CUDA-only, or leads where nobody can follow."""
    gates = [(edit, asked) for edit in work.rewrites if not edit.user and (asked := _question(edit)) is not None]
    if not gates:
        return
    side = CudaSide(work.slots, work.rules, work.project)
    loads = cpu_loads(work.scan)
    taken_back: set[int] = set()
    stays = work.once(only_on_cuda)
    taken_over = _taken_over(work)
    left = set[int]()  # what an NPU takes instead
    shut: list[ast.AST] = []  # what no NPU comes to
    for edit, (question, truth) in gates:
        if not work.settings.tune and (reason := idle(work.slots, question, truth, loads)):  # or it sets the NPU's own
            taken_back.add(id(edit))
            assert isinstance(edit.node, ast.expr)
            yield work.keep(edit.node, reason)
            continue
        answer = side.of(question, truth, of_a_tensor=edit.api not in _AVAILABLE) or side.handed_pointer(question)
        if answer is None or answer.why.partition(".")[0] in taken_over:
            continue
        if not answer.everywhere:
            yield work.note(
                edit.node,
                "NPU272",
                f"the result of this condition is stored and also selects code that needs CUDA ({answer.why})",
                api=edit.api,
                help="it is true on NPUs now: use another condition before that code, or port it",
                effort=Effort.MEDIUM,
            )
            continue
        if not answer.followed and refuses_the_cpu(question, truth):
            yield work.note(
                edit.node,
                "NPU271",
                f"the branch of this condition cannot be followed ({answer.why}); it tests for the NPU now, because "
                "the program stops if it fails",
                api=edit.api,
                help="check that the code behind it runs on an NPU",
                effort=Effort.LOW,
            )
            continue
        taken_back.add(id(edit))
        ran = side.ran_by(question, truth)
        stays.update((id(node), node) for node in ran)
        left.update(map(id, sides_of(question, truth).other))
        if answer.followed:
            stops = stops_otherwise(question, truth)
            shut += [] if stops else ran
            code, then, help = _STAYS[stops]
            yield work.note(
                edit.node,
                code,
                f"this condition leads to code that needs CUDA ({answer.why}); it is not changed, and {then}",
                api=edit.api,
                help=help,
                effort=Effort.MEDIUM,
                details=(("needs", answer.why),),
            )
        else:
            yield work.note(
                edit.node,
                "NPU271",
                f"the branch of this condition cannot be followed ({answer.why}); "
                "it is not changed, and the NPU takes the other branch",
                api=edit.api,
                help="if all of it runs on an NPU, test for the NPU; otherwise check that the other branch is right",
                effort=Effort.LOW,
            )
    only = side.set_only_in(stays.values()) if stays else set()
    rest = [(edit, asked) for edit, asked in gates if only and id(edit) not in taken_back]
    for edit, (question, truth) in rest:
        if name := side.withheld(only, side.ran_by(question, truth)):
            taken_back.add(id(edit))
            yield _withheld(work, edit, name, stops=stops_otherwise(question, truth))
    if left:
        rest = [(edit, asked) for edit, asked in gates if id(edit) not in taken_back]
        yield from _refusing_beside(work, left, rest, taken_back)
    yield from _unheard(work, shut)
    if taken_back:
        work.withdraw_edits(lambda edit: id(edit) in taken_back)


def _taken_over(work: Work) -> Collection[str]:
    """The packages that an adaptor writes out of the file; none where one stays in it that needs CUDA."""
    answered = any("NPU510" in codes for _, _, codes in work.answers)
    return packages().keys() if answered and not work.packages else ()


def _unheard(work: Work, shut: list[ast.AST]) -> Finds:
    """Take back what is said of answers of a card that only code asks for which no NPU comes to."""
    answers = {note.extent for note in work.notes if note.code in _OF_ANSWERS}
    spans = [work.source.extent(node) for node in shut if isinstance(node, (ast.expr, ast.stmt))] if answers else []
    unheard = {at for at in answers if any(start <= at[0] < end for start, end in spans)}
    work.withdraw_notes(lambda note: note.code in _OF_ANSWERS and note.extent in unheard)
    yield from (Kept(extent, "cuda-condition") for extent in sorted(unheard))


def only_on_cuda(work: Work) -> dict[int, ast.AST]:
    """What only the CUDA side of gates that stay runs, by its id; it is known when all gates have been looked at."""
    return {}


def _refusing_beside(
    work: Work, left: set[int], gates: list[tuple[Edit, tuple[ast.expr, bool]]], taken_back: set[int]
) -> Finds:
    """Take back `assert not y.is_cuda` on the side of the CPU of a gate that stays: an NPU comes by there."""
    for edit, (question, truth) in gates:
        inside = not left.isdisjoint(map(id, chain(question)))
        if inside and stops_otherwise(question, not truth) and isinstance(edit.node, ast.expr):
            taken_back.add(id(edit))
            yield work.keep(edit.node, "reported-beside")


def _withheld(work: Work, edit: Edit, name: str, *, stops: bool) -> Note:
    """A gate that leads to what only the CUDA side of another gate sets, which stays."""
    code, then, help = _STAYS[stops]
    return work.note(
        edit.node,
        code,
        f"this condition leads to {name}, which depends on a condition that is not changed; it is not changed either, "
        f"and {then}",
        api=edit.api,
        help=help if stops else "check that the other branch is right on the NPU",
        effort=Effort.MEDIUM if stops else Effort.LOW,
    )


def _question(edit: Edit) -> tuple[ast.expr, bool] | None:
    """The part of a condition that an edit changes, and the truth value that it has on CUDA; None for other edits."""
    node = edit.node
    if not isinstance(node, ast.expr):
        return None
    if edit.api in _AVAILABLE:
        call = call_of(node)
        if call is None:
            return None
        if not edit.api.endswith("count"):
            return call, True
        match parent(call):
            case ast.Compare(left=left, ops=[op, *_]) as compare if left is call:
                return compare, not isinstance(op, (ast.Lt, ast.LtE, ast.Eq))
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if test is call:
                return call, True
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return call, True
        return None
    if edit.api == "torch.Tensor.is_cuda":
        return node, True
    if not edit.api.startswith("device string"):
        return None
    above = parent(node)
    if isinstance(above, ast.Call) and attribute_of(above.func) == "startswith":
        return above, True
    while isinstance(above, (ast.Tuple, ast.List, ast.Set, ast.Call)):
        above = parent(above)
    if not isinstance(above, ast.Compare):
        return None
    return above, not any(isinstance(op, (ast.NotEq, ast.NotIn, ast.IsNot)) for op in above.ops)
