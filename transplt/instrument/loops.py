"""Where the training steps of a program are, and how a probe copy records them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from transplt.instrument.edits import Edits
from transplt.program.files import File
from transplt.program.loops import Loop, loops_around
from transplt.program.program import enclosing_function
from transplt.program.steps import backward_passes, runs_backward
from transplt.syntax.asks import by_place, keyword_of, last_name
from transplt.syntax.scan import chain

PROBE = "transplt_probe"
#: What steps and is no optimizer.
_OTHERS = ("sched", "lr", "prof", "env", "wandb", "writer", "timer", "logger", "probe", "ema", "warmup", "bar")
#: So many calls up a loop is looked for.
_FAR = 4
_BY_HAND = f"call {PROBE}.step() before each step"
_MANUAL = "manual_backward"
_LIGHTNING = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")


def record_steps(files: Sequence[Edits]) -> bool:
    """Let every training loop record its steps. False where the program has none."""
    chosen: dict[Loop, Edits] = {}
    for edits in files:
        for call in _backwards(edits.file):
            found = _loop_of(edits, call, files)
            if found is None:
                edits.say(call, f"no loop around this backward pass was found: {_BY_HAND}")
            else:
                chosen[found[1]] = found[0]
    for loop, edits in chosen.items():
        if not any(above in chosen for above in chain(loop) if above is not loop):
            _record(edits, loop)
    handed = [_hand_to_trainers(edits) for edits in files]
    return bool(chosen) or any(handed)


def _backwards(file: File) -> list[ast.Call]:
    others = [call for call in file.scan.calls if runs_backward(file, call) or last_name(call.func) == _MANUAL]
    return [*backward_passes(file), *by_place(others)]


def _loop_of(edits: Edits, call: ast.Call, files: Sequence[Edits], far: int = _FAR) -> tuple[Edits, Loop] | None:
    loops = loops_around(call)
    if loops:
        stepping = [loop for loop in loops if any(_steps(node) for node in ast.walk(loop))]
        return edits, (stepping or loops)[0]
    function = enclosing_function(call)
    if function is None or not far:
        return None
    for other in files:
        for node in by_place(other.file.scan.calls):
            if last_name(node.func) == function.name and _may_call(node, function):
                found = _loop_of(other, node, files, far - 1)
                if found is not None:
                    return found
    return None


def _may_call(call: ast.Call, function: ast.AST) -> bool:
    """`model.train()` is no call of a function `train` of the program's."""
    return enclosing_function(call) is not function and not (
        isinstance(call.func, ast.Attribute) and not call.args and not call.keywords and last_name(call.func) == "train"
    )


def _steps(node: ast.AST) -> bool:
    """Whether a call is a step of an optimizer's, or of what steps it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "step":
        return False
    return not any(word in ast.unparse(node.func.value).lower() for word in _OTHERS)


def _record(edits: Edits, loop: Loop) -> None:
    edits.probes = True
    if isinstance(loop, ast.AsyncFor):
        edits.say(loop, f"an async loop is not recorded: {_BY_HAND}")
        return
    if isinstance(loop, ast.For):
        several = isinstance(loop.iter, ast.Tuple)  # perhaps without brackets of its own
        edits.around(loop.iter, f"{PROBE}.steps({'(' * several}", ")" * (1 + several))
        return
    source, first = edits.file.source, loop.body[0]
    start = source.extent(first)[0]
    lead = source.slice(source.offset(first.lineno, 0), start)
    if lead.strip() and isinstance(first, ast.Expr | ast.Assign | ast.AugAssign):
        edits.span(start, start, f"{PROBE}.step(); ")  # on the line of the `while`
    elif lead.strip() or hasattr(first, "decorator_list"):
        edits.say(loop, f"the body of this loop cannot be recorded: {_BY_HAND}")
    else:
        edits.span(start, start, f"{PROBE}.step(){source.newline()}{lead}")


def _hand_to_trainers(edits: Edits) -> bool:
    """`callbacks=` of what owns the training loop itself."""
    found = False
    for call in by_place(edits.file.scan.calls):
        name = _kind(edits.file, call)
        of_lightning = name in _LIGHTNING
        if not of_lightning and not (name.split(".")[0] in ("transformers", "trl") and name.endswith("Trainer")):
            continue
        wrap = f"{PROBE}.{'lightning' if of_lightning else 'trainer'}_callbacks"
        given = keyword_of(call, "callbacks")
        edits.probes = found = True
        if given is not None:
            edits.around(given, f"{wrap}(", ")")
        elif any(keyword.arg is None for keyword in call.keywords):
            edits.say(call, f"its callbacks may come with **: add {wrap}() to them")
        else:
            edits.add_keyword(call, f"callbacks={wrap}()")
    return found


def _kind(file: File, call: ast.Call) -> str:
    """The full name of the class that a call makes an object of, that of its first base where it is the file's own."""
    names, seen = file.names, 0
    name = names.qualified(call.func) or ""
    while isinstance(call.func, ast.Name) and not name.count(".") and seen < _FAR:
        own = next((each for each in file.scan.classes if each.name == (name or call.func.id) and each.bases), None)
        if own is None:
            break
        seen += 1
        name = names.qualified(own.bases[0]) or last_name(own.bases[0])
    return name
