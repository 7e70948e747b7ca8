"""`--amp apex`: amp.initialize behind the optimizer, amp.scale_loss around backward passes, clipping, checkpoints.

Sources: the README of Ascend apex, and the documentation of NVIDIA apex whose names it keeps. After
amp.initialize with combine_grad, `zero_grad` takes no arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from transplt.base.finding import APEX_LEVEL
from transplt.edits.edit import Beside, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.new_names import name_now
from transplt.edits.shared_lines import indent_of
from transplt.edits.trees.calls import callee, only_argument
from transplt.edits.trees.expressions import calling_method_of
from transplt.edits.trees.new_calls import partial_of
from transplt.edits.trees.removals import without_any_argument
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.amp.amp_writer import wanted, writer_for
from transplt.fixers.amp.apex.checks import Pass
from transplt.fixers.amp.apex.combined import combined_when, leave_wrappers_out
from transplt.fixers.amp.apex.float import write_in_float32
from transplt.fixers.amp.apex.place import Initialization
from transplt.fixers.amp.apex.program import Apex
from transplt.fixers.amp.apex.replacements import replace_kernels
from transplt.fixers.amp.apex.together import Refusal, read_together
from transplt.fixers.amp.apex.wraps import wrapper_of
from transplt.fixers.amp.checkpoints import Spelling, State, write_states
from transplt.fixers.amp.flag import ATTRIBUTE, follow, level_is_an_option
from transplt.fixers.amp.inline import name_loss
from transplt.fixers.amp.recognise import already
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.program.programs import programs_of
from transplt.program.reached_functions import reached_functions
from transplt.program.steps import backward_passes
from transplt.syntax.nodes import by_place, call_of, inner_nodes, keyword_of, last_name
from transplt.syntax.scan import statement

fixer = Fixer(__name__, code="NPU746", rank=10, theme="amp:apex")

INITIALIZE, SCALE, LEFT = "NPU746", "NPU747", "NPU743"
#: The wrapper that `distributed` puts around a model.
_WRAP = re.compile(r" = (?:\w+\.)?wrap\(")
STATE = State(
    ("amp", "amp_state"),
    "NPU746",
    saved="the checkpoint keeps the state of amp",
    loaded="amp continues from the checkpoint, if it has the state of amp",
    what="that of amp",
    left="NPU743",
)
_SHARED = "checkpoints without the state of amp: a program that does not train runs this code too"
_HIDDEN = "checkpoints without the state of amp: its flag is not available here"


@fixer.on(ast.Module)
def trains_with_apex(work: Work, tree: ast.Module) -> Finds:
    """apex in a program without mixed precision; in one that has apex, what takes the place of CUDA kernels."""
    if not wanted(work):
        return
    writer = writer_for(work, INITIALIZE, "an import for mixed precision by apex")
    found = work.once(already)
    if found is None:
        _plan(writer)
    elif found.what == "apex.amp" and b"apex" in work.source.utf8 and work.settings.style == "npu":
        replace_kernels(writer)
    yield from writer.found


def _plan(writer: Writer) -> None:
    """Write the part of a program that stands in this file; nothing when any part of it cannot be written."""
    work = writer.work
    own = programs_of(work.project).own(work.file)
    trains = b".backward(" in work.source.utf8 and backward_passes(own.scan)
    relevant = (b"optim", b"zero_grad", b"clip_grad", b"state_dict", b"apex")
    if not trains and not any(word in work.source.utf8 for word in relevant):
        return
    found = read_together(work.project, work.settings, own)
    if found.refusal is not None and (found.refusal.node is not None or (trains and not found.plans)):
        _refuse(writer, own, found.refusal, trains or [])
    if found.plans:
        _write(writer, own, found.plans, found.without)
        if work.settings.style != "portable":
            replace_kernels(writer, fuse=not any(apex.loose for apex in found.plans))
    elif trains and found.refusal is None:
        why, do = _PROCESSES if any(map(_starts_processes, found.without)) else _CALLER
        _refuse(writer, own, Refusal(why, do, own.path, trains[0].lineno, trains[0]), trains)


def _starts_processes(program: Program) -> bool:
    """True for a program that hands a function to new processes: `mp.Process(target=train, args=(...))`."""
    return any(
        last_name(call.func) == "Process" and keyword_of(call, "target") is not None
        for file in program.files
        for call in file.scan.calls
    )


_PROCESSES = (
    "processes that the program starts train here, and each would have to call amp.initialize",
    "write it by hand with O1 in the function that each process runs, after its optimizer (with O2 the processes no "
    "longer share the weights); or use --amp native",
)
_CALLER = (
    "the code that calls this training was not found",
    "run transplt on the whole project, or write it by hand: model, optimizer = amp.initialize(model, optimizer, ...) "
    "where they are made",
)


def _refuse(writer: Writer, own: File, refusal: Refusal, trains: list[ast.Call]) -> None:
    """Say once in each file that trains, and where the trouble is, why the program gets nothing."""
    message = f"no mixed precision by apex here: {refusal.why}"
    here = [call for call in trains if (own.path, call.lineno) == (refusal.path, refusal.line)]
    if (node := refusal.node or next(iter(here), None)) is not None:
        writer.left(node, message, refusal.do, LEFT)
    elif trains:
        writer.left(trains[0], f"{message} ({refusal.place})", refusal.do, LEFT)


def _write(writer: Writer, own: File, plans: list[Apex], without: list[Program]) -> None:
    seen: set[int] = set()
    name: list[str] = []

    def amp() -> str:
        if not name:
            name.append(_amp(writer))
        return name[0]

    for apex in plans:
        if apex.place.file is own and id(apex.place.after) not in seen:
            seen.add(id(apex.place.after))
            _initialize(writer, apex, amp())
        for one in apex.passes:
            if one.file is own and id(one.call) not in seen:
                seen.add(id(one.call))
                _scale(writer, one, amp())
        for clip in apex.clips:
            if clip.file is own and id(clip.call) not in seen:
                seen.add(id(clip.call))
                message = "clipping uses the gradients of the parameters that the optimizer updates"
                _change(writer, clip.parameters, message, f"{amp()}.master_params({clip.optimizer})")
        write_in_float32(writer, own, apex.floats, amp, seen)
    for node in own.scan.attributes.get("zero_grad", ()):
        call = call_of(node)
        if call is not None and (call.args or call.keywords):
            message = "zero_grad takes no arguments with combine_grad: the gradients stay in one tensor"
            _change(writer, call, message, without_any_argument())
    elsewhere = {function for program in without for function in reached_functions(program)}
    write_checkpoints(writer, plans[0].program, own, amp, elsewhere)


def _amp(writer: Writer) -> str:
    """The name of apex.amp in this file; it is imported when it was not."""
    for local, bindings in sorted(writer.work.scan.root.bindings.items()):
        if {binding.target for binding in bindings} == {"apex.amp"}:
            return local
    if not writer.bound("amp") and "amp" not in writer.work.scan.names:
        writer.imports("from apex import amp")
        return "amp"
    name = writer.new_name("apex_amp")
    writer.imports(f"from apex import amp as {name}")
    return name


def _initialize(writer: Writer, apex: Apex, amp: str) -> None:
    place, settings = apex.place, writer.work.settings
    optimizers = _list_text(place.optimizers)
    given = [_models(writer, place), optimizers]
    scale = '"dynamic"' if settings.loss_scale == "dynamic" else f"{float(settings.loss_scale)}"
    level = f'"{apex.level}"'
    if settings.amp_flag:
        flag = str(follow(apex.program.project, place.file)(place.after)[0])
        given.append(f"enabled={flag}")
        if level_is_an_option(apex.program.project, place.file):
            options = flag.removesuffix(f".{ATTRIBUTE}")
            level, scale = f"{options}.opt_level", f"{options}.loss_scale"
    if apex.decided:
        do = "--opt-level chooses a level; programs for which it cannot be right are not changed"
        writer.remark(place.after, APEX_LEVEL, apex.decided, do, (("level", apex.level),))
    given += [f"opt_level={level}", f"loss_scale={scale}"]
    if apex.loose:
        why = f"gradients are not combined in one tensor: {apex.loose}"
        writer.remark(place.after, INITIALIZE, why, "without that, combine_grad=True saves time")
    else:
        given.append("combine_grad=True")
    if settings.combine_ddp:
        given.append(f"combine_ddp={combined_when(writer, place)}")
    if apex.losses > 1:
        given.append(f"num_losses={apex.losses}")
    targets, end = (optimizers, ")[1]") if place.alone else (f"{_list_text(place.models)}, {optimizers}", ")")
    lines = [f"{targets} = {amp}.initialize({', '.join(given)}{end}"]
    if len(indent_of(place.file.source, place.after)) + len(lines[0]) > 119:
        lines = [f"{targets} = {amp}.initialize(", f"    {', '.join(given[:2])},"]
        lines += [f"    {', '.join(given[2:])},", end]
    writer.after(place.after, lines, INITIALIZE, "apex prepares model and optimizer")
    if settings.combine_ddp:
        place = leave_wrappers_out(writer, place, INITIALIZE)
    _wrap_behind(writer, place)
    _defer(writer, place)
    for item in place.moved:
        text = _as_renamed(writer.work, item)
        writer.remove(item, INITIALIZE, "the model is wrapped after amp.initialize", only=False)
        writer.after(place.after, [text], INITIALIZE, "the model is wrapped after amp.initialize", verbatim_from=0)


def _defer(writer: Writer, place: Initialization) -> None:
    """Branches that wrap the model keep the wrapper in a variable; it is put around the model behind amp.initialize."""
    work, kept = writer.work, dict[str, str]()
    message = "the model is wrapped after amp.initialize"
    for top, item in place.deferred:
        call = wrapper_of(item)
        assert isinstance(item, ast.Assign) and call is not None
        model = work.text(item.targets[0])
        if model not in kept:
            kept[model] = writer.new_name("wrap", "wrap_model")
            writer.before(top, [f"{kept[model]} = None"], INITIALIZE, message, above_comments=True)
        partial = f"{writer.standard('functools')}.partial" if call.keywords else ""
        if item.value is call:
            writer.rewrite(item.targets[0], INITIALIZE, message, kept[model])
            writer.rewrite(call, INITIALIZE, message, partial_of(partial) if partial else callee())
        else:
            given = ", ".join([name_now(work, call.func), *map(work.text, call.keywords)])
            wrapper = f"{partial}({given})" if partial else given
            writer.rewrite(call, INITIALIZE, message, only_argument())
            writer.after(item, [f"{kept[model]} = {wrapper}"], INITIALIZE, message)
    for model, name in kept.items():
        writer.after(place.after, [f"if {name} is not None:", f"    {model} = {name}({model})"], INITIALIZE, message)


def _as_renamed(work: Work, item: ast.stmt) -> str:
    """The text of a wrapping statement, with the names that its wrappers have now."""
    start, end = work.source.extent(item)
    parts, at = [], start
    for call in by_place(inner_nodes(item, ast.Call)):
        first, last = work.source.extent(call.func)
        if first >= at:
            parts += [work.source.slice(at, first), name_now(work, call.func)]
            at = last
    return "".join(parts) + work.source.slice(at, end)


def _wrap_behind(writer: Writer, place: Initialization) -> None:
    """What `distributed` wraps is what amp.initialize returns."""
    wraps = [
        edit
        for edit in writer.work.edits
        if isinstance(edit.where, Beside)
        and any(_WRAP.search(line) and line.partition(" = ")[0] in place.models for line in str(edit.new).split("\n"))
    ]
    writer.work.withdraw_edits(lambda edit: edit in wraps, written_elsewhere=True)
    for edit in wraps:
        assert isinstance(edit.where, Beside)
        writer.found.append(replace(edit, where=replace(edit.where, node=place.after)))


def _models(writer: Writer, place: Initialization) -> str:
    """The models as amp.initialize is given them: it refuses a DataParallel, and None."""
    texts = []
    for text in place.models:
        inner = f"{text}.module if isinstance({text}, {writer.torch}.nn.DataParallel) else {text}"
        texts.append(inner if text in place.inside else text)
    if place.perhaps:
        return f"[each for each in ({', '.join(texts)}{',' * (len(texts) == 1)}) if each is not None]"
    return _list_text(texts)


def _list_text(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _scale(writer: Writer, one: Pass, amp: str) -> None:
    call, stmt = one.call, statement(one.call)
    assert isinstance(call.func, ast.Attribute)
    loss = call.func.value
    scaled = writer.free_name("scaled_loss")
    number = f", loss_id={one.loss_id}" if one.loss_id is not None else ""
    message = "the loss is scaled for its backward pass, and gradients are unscaled after it"
    if any(isinstance(at, ast.Call) for at in ast.walk(loss)):
        name = writer.new_name("loss", "total_loss")
        messages = ("the loss has a name", "the backward pass uses the scaled loss")
        rest = name_loss(writer, call, name, SCALE, messages, bare=False)
        header = f"with {amp}.scale_loss({name}, {one.owner}{number}) as {scaled}:"
        writer.after(stmt, [header, f"    {scaled}{rest}"], SCALE, message, verbatim_from=1)
        return
    text = text_of(one.file, loss)
    header = f"with {amp}.scale_loss({' '.join(text.split())}, {one.owner}{number}) as {scaled}:"
    writer.wrap([stmt], header, SCALE, message)
    _change(writer, call, message, calling_method_of(scaled))


def _change(writer: Writer, node: ast.expr, message: str, new: New) -> None:
    """An edit of an expression, on top of what others do to it."""
    writer.work.take(node)
    writer.rewrite(node, SCALE, message, new)


def write_checkpoints(
    writer: Writer, program: Program, own: File, amp: Callable[[], str], elsewhere: set[ast.AST]
) -> None:
    """Save and load the state of amp where the file saves and loads that of an optimizer. `amp` imports its name.

    `elsewhere` are functions that programs run which never call amp.initialize: amp has no state there.
    """
    flags = follow(program.project, own) if writer.work.settings.amp_flag else None

    def spelled(call: ast.Call) -> Spelling:
        if enclosing_function(call) in elsewhere:
            return Spelling(("amp",), why=_SHARED)
        flag = flags(call)[0] or "" if flags is not None else ""
        if flags is not None and not flag:
            return Spelling(("amp",), why=_HIDDEN)
        return Spelling((amp(),), flag=flag)

    write_states(writer, program, own, STATE, spelled)
