"""Code that supports NPUs already: it stays as it is, and what is left for CUDA alone is reported.

A file is *portable* when it chooses between CUDA and the NPU, or asks a library whether there is one
(transplt/flow/gates/npu_choices.py). A project is when a tenth of its CUDA-bound files are. What they do on CUDA, on
the CPU and on an NPU must not change, so nothing in them is edited but what the user's own rules say. An edit that was
planned is dropped where the code is CUDA's side of such a choice, and becomes a finding everywhere else. A file that
merely uses the NPU (`torch.npu.set_device(0)` next to a forgotten `.cuda()`) makes no choice: it is edited.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from itertools import accumulate

from transplt.base.finding import KERNEL_CODES, Effort, Level
from transplt.base.text.source import Source
from transplt.edits.edit import Edit, Extent, Kept, Note
from transplt.edits.groups import ADAPTORS, TUNINGS
from transplt.edits.work import Work
from transplt.flow.callees import PARSER_CALLS
from transplt.flow.gates import npu_choices
from transplt.flow.gates.idle import sets_libraries
from transplt.flow.gates.npu_choices import HANDLED, mentions_npu, npu_places
from transplt.program.program import enclosing_function
from transplt.syntax.nodes import argument_at, called_name, index_in, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, Scan, parent, statement

REASON = "cuda-side"
CODE = "NPU200"
#: What is undecided where nobody knows how a program does on NPUs: plugins, values of variables, and words.
_UNDECIDED = frozenset({"NPU203", "NPU208", "NPU221", "NPU302", "NPU512"})
#: Of the edits of kernels some change nothing of what one computes: where they are not made, there is nothing to do.
_NO_EFFECT = frozenset({"NPU561", "NPU566", "NPU567"})
#: Names of CUDA that nobody asks for where a condition has said that there is none.
_NEVER_RUN = frozenset({"NPU501", "NPU502", "NPU503", "NPU506"})
_GATES = frozenset({"NPU270", "NPU271", "NPU279"})
#: A name of a library: compared with what the library says of several NPUs, the one for CUDA is false.
_LIBRARY = "NPU140"
#: What is caught where a torch lacks a name that the `try` uses.
_LACKS = frozenset({"AttributeError", "TypeError", "ImportError", "ModuleNotFoundError"})
#: Parts of torch that take any device.
_NEUTRAL = ("torch.amp.", "torch.accelerator", "device_module")
#: The module of a device, whichever it is.
_BY_NAME = "getattr(torch, "
#: What returns without CUDA, and changes nothing.
_IDLE_WITHOUT_CUDA = frozenset({"torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.cuda.empty_cache"})
_VISIBLE, _VISIBLE_NPUS = "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"
_OF_AMD = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_SKIPS = frozenset({"skipif", "skipIf", "skipUnless"})


def leave_npu_code(work: Work) -> None:
    """Take back what was planned in a portable file or project; say what is left for CUDA alone."""
    places = npu_places(work.source) if mentions_npu(work.source.utf8) else []
    if work.project.portable:
        work.notes = [_handled(note) for note in work.notes]
    elif not _chooses(work, places):
        return
    sides = _sides_for_cuda(work, places)
    areas = _Areas(sides)
    planned = work.rewrites
    starts = sorted(work.source.extent(edit.node)[0] for edit in planned)
    work.edits = [edit for edit in planned if edit.user]
    for edit in planned:
        extent = work.source.extent(edit.node)
        if edit.user or (edit.code in _NO_EFFECT and not areas.hold(extent)):
            continue
        reason = _why_nothing_is_left(work, edit, areas, starts)
        work.add(Kept(extent, reason) if reason else _left(edit, extent, places))
    _leave_what_never_runs(work, starts)
    if any(edit.group in (ADAPTORS.name, TUNINGS.name) for edit in planned):  # what each would have answered is open
        work.grouped = [edit for edit in work.grouped if edit.group != ADAPTORS.name]
        work.answers.clear()
    # Of a test that is not edited nobody gets another answer.
    work.withdraw_notes(lambda note: note.code == "NPU272" or (note.code != CODE and areas.hold(note.extent)))
    for side in sides:
        work.add(Kept(side, REASON))


def _handled(note: Note) -> Note:
    """A note in a project that trains on NPUs: a remark where it is undecided whether there is something to do."""
    decided = note.code not in _UNDECIDED and not note.code.startswith(KERNEL_CODES)
    return note if decided else note.as_remark(HANDLED)


def _chooses(work: Work, places: list[int]) -> bool:
    """True for a file that chooses between CUDA and the NPU, whose names stand at `places`."""
    if not places:
        return False
    choices = npu_choices.choices(work.source, work.scan, places)
    return npu_choices.asks_whether_there_is_one(work.scan) or npu_choices.chooses(work.scan, choices)


def _sides_for_cuda(work: Work, places: list[int]) -> list[Extent]:
    """The sides of choices that only CUDA takes."""
    choices = npu_choices.choices(work.source, work.scan, places, arms=True) if places else []
    below = {id(each.orelse[0]) for each in choices if isinstance(each, ast.If) and len(each.orelse) == 1}
    choices = [choice for choice in choices if id(choice) not in below]  # `elif` goes with its `if`
    sides = dict.fromkeys(side for choice in choices for side in npu_choices.sides(work.source, choice))
    return [*sides, *npu_choices.answered(work.source, work.scan)]


def _why_nothing_is_left(work: Work, edit: Edit, areas: _Areas, starts: list[int]) -> str:
    """For which reason an edit that is taken back leaves nothing to do; empty where something is left."""
    if areas.hold(work.source.extent(edit.node)):
        return REASON
    if edit.code == "NPU207":
        return "text"
    if _under_a_cuda_condition(work.source, edit.node, starts):
        return "cuda-condition"
    return REASON if edit.code == _LIBRARY and _names_both(work, edit) else answered(work, edit)


def _leave_what_never_runs(work: Work, starts: list[int]) -> None:
    """Names of CUDA below a condition that asks for it, and is reported itself, need no note."""
    reported = sorted([*starts, *(note.extent[0] for note in work.notes if note.code in _GATES)])
    bodies = _Areas(_bodies(work.source, work.scan, reported))
    never_run = [note for note in work.notes if note.code in _NEVER_RUN and bodies.hold(note.extent)]
    for note in never_run:
        work.add(Kept(note.extent, "cuda-condition"))
    work.withdraw_notes(lambda note: note in never_run)


def _left(edit: Edit, extent: Extent, places: list[int]) -> Note:
    above = parent(edit.node)
    above = parent(above) if isinstance(above, (ast.List, ast.Tuple, ast.Set)) else above
    if edit.code == _LIBRARY and isinstance(above, ast.Compare):
        old, new = edit.api.rpartition(".")[2], _new_name(edit)
        message = f"a comparison with {old} is false on NPUs: the library calls them {new}"
        help_ = f"test for both: in ({old}, {new}, ...)"
        return Note(extent, _LIBRARY, Level.MANUAL, message, edit.api, help_, Effort.LOW)
    where = "file" if places else "project"
    return Note(
        extent,
        CODE,
        Level.MANUAL,
        f"{edit.api or edit.message} is for CUDA only, in a {where} that supports NPUs",
        edit.api,
        f"if the NPU needs it too, add its case next to it (for NPUs only: {edit.message})",
        Effort.LOW,
    )


def _names_both(work: Work, edit: Edit) -> bool:
    """True where the expression around a name of a library holds the one for NPUs too."""
    new = _new_name(edit)
    node: ast.AST = edit.node
    while isinstance(above := parent(node), ast.expr):
        node = above
    return bool(new) and isinstance(node, ast.expr) and new in work.text(node)


def _new_name(edit: Edit) -> str:
    """The last part of the name that an edit was to write."""
    return edit.becomes.rpartition(".")[2]


class _Areas:
    """Byte ranges; whether one of them holds another range costs a binary search."""

    def __init__(self, areas: list[Extent]) -> None:
        in_order = sorted(areas)
        self.starts = [start for start, _ in in_order]
        self.ends = list(accumulate((end for _, end in in_order), max))  # the last end of those that begin so far

    def hold(self, extent: Extent) -> bool:
        before = bisect_right(self.starts, extent[0])
        return before > 0 and extent[1] <= self.ends[before - 1]


def _bodies(source: Source, scan: Scan, starts: list[int]) -> list[Extent]:
    """What runs only where a condition that is reported itself has asked for CUDA."""
    found = []
    for node in scan.ifs if starts else ():
        if isinstance(node, ast.If):
            start, end = source.extent(node.test)
            test = source.utf8[start:end]
            asks = b"cuda.is_available()" in test and b"not " not in test and b" or " not in test
            if asks and bisect_left(starts, start) < bisect_left(starts, end):
                found += [source.extent(each) for each in node.body]
    return found


def _under_a_cuda_condition(source: Source, node: ast.AST, starts: list[int]) -> bool:
    """True for code that runs only where a condition around it has asked for CUDA; the condition is reported itself."""
    while not isinstance(node, (ast.Module, *FUNCTIONS, ast.ClassDef)):
        above = parent(node)
        if isinstance(above, ast.If) and index_in(above, "body", node) >= 0:
            start, end = source.extent(above.test)
            if bisect_left(starts, start) < bisect_left(starts, end):
                return True
        node = above
    return False


def answered(work: Work, edit: Edit) -> str:
    """The name of the reason why code for CUDA needs nothing beside it; empty where that is not certain."""
    node = edit.node
    if _is_default(edit, node):
        return "default"
    if edit.api in _IDLE_WITHOUT_CUDA:  # the function around it makes the NPU's call as well
        calls = work.calls_by_name((edit.api.replace("torch.cuda.", "torch.npu."),))
        if any(enclosing_function(call) is enclosing_function(node) for call in calls):
            return "cuda-side"
    if edit.api.startswith("torch.profiler.") and not edit.api.endswith(".CUDA"):
        return "both"
    function = enclosing_function(node) if edit.api == _VISIBLE else None
    if function is not None and any(name in work.text(function) for name in _OF_AMD):  # where NVIDIA's are right too
        return "amd-names"
    if edit.api == _VISIBLE and _is_set_for_both(work, node):
        return "both"
    return _above(work, node)


def _is_set_for_both(work: Work, node: ast.AST) -> bool:
    """True where this statement or the next one sets the variable of NPUs too."""
    block, index = place_in_block(statement(node))
    texts = [work.text(each) for each in block[index : index + 2]]
    heads = {text.replace(_VISIBLE, _VISIBLE_NPUS).partition(" = ")[0] for text in texts}
    return _VISIBLE_NPUS in texts[0] or (len(texts) == 2 and len(heads) == 1)


def _above(work: Work, node: ast.AST) -> str:
    """What stands around a node and makes it needless."""
    while not isinstance(node, ast.Module):
        above = parent(node)
        match above:
            case ast.BoolOp(op=ast.And()) if _asks_and_misses(work, above):
                return "missing-cuda"
            case ast.If(test=test, orelse=[]) if node is test and sets_libraries(work.names, above.body):
                return "cuda-settings"
            case ast.IfExp(test=test, body=body, orelse=other) if node is other and _has_neutral(work, test, body):
                return "older-torch"
            case ast.If(test=test, body=block, orelse=others) if node in others and _has_neutral(work, test, *block):
                return "older-torch"
            case ast.Try() if isinstance(node, ast.ExceptHandler) and _lacks(work, above, node):
                return "older-torch"
        if isinstance(above, (*FUNCTIONS, ast.ClassDef)) and any(_skips(work, each) for each in above.decorator_list):
            return "cuda-test"
        node = above
    return ""


def _is_default(edit: Edit, node: ast.AST) -> bool:
    """True for a device that stands in for one that somebody gives: a default of a parameter, a flag, of getattr."""
    match parent(node):
        case ast.arguments():
            return edit.code == "NPU201"
        case ast.keyword(arg="default") as above:
            return called_name(parent(above)) in PARSER_CALLS
        case ast.Call(func=func, args=[*_, last]) as call if last is node:
            return (last_name(func), len(call.args)) in (("getattr", 3), ("get", 2))
    return False


def _asks_and_misses(work: Work, node: ast.BoolOp) -> bool:
    """`device == "cuda" and not torch.cuda.is_available()`: CUDA was asked for, and is not there."""
    asks = misses = False
    for each in node.values:
        match each:
            case ast.Compare(comparators=[*_, ast.Constant(value="cuda")]):
                asks = True
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                misses = misses or _asks_for_cuda(work, operand)
    return asks and misses


def _asks_for_cuda(work: Work, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and work.names.qualified(node.func) == "torch.cuda.is_available"


def _has_neutral(work: Work, test: ast.expr, *body: ast.AST) -> bool:
    """`hasattr(torch, "accelerator")` and the like, in front of what holds for every device."""
    return "hasattr" in work.text(test) and any(name in _text(work, each) for each in body for name in _NEUTRAL)


def _lacks(work: Work, node: ast.Try, handler: ast.ExceptHandler) -> bool:
    """A `try` of what holds for every device, and a handler for a torch that lacks it."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not all(each is not None and last_name(each) in _LACKS for each in caught):
        return False
    return any(name in _text(work, each) for each in node.body for name in (*_NEUTRAL, _BY_NAME))


def _skips(work: Work, node: ast.expr) -> bool:
    """`@pytest.mark.skipif(not torch.cuda.is_available())`, `@unittest.skipUnless(torch.cuda.is_available())`."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _SKIPS:
        return False
    test = argument_at(node, 0, "condition")
    if last_name(node.func) != "skipUnless":
        test = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    return test is not None and _asks_for_cuda(work, test)


def _text(work: Work, node: ast.AST) -> str:
    assert isinstance(node, (ast.expr, ast.stmt))
    return work.text(node)
