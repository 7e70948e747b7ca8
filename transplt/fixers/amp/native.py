"""`--amp native`: autocast around forward pass and loss, and a GradScaler around the backward pass and the steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import keyword_replaced
from transplt.edits.trees.expressions import followed_by, handed_to, method_called, scaled_by
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.amp.amp_writer import wanted, writer_for
from transplt.fixers.amp.evaluation import write_evaluation
from transplt.fixers.amp.half_limits import write_arrays
from transplt.fixers.amp.inline import name_loss
from transplt.fixers.amp.optimizer_groups import Part
from transplt.fixers.amp.precision import gradients_off
from transplt.fixers.amp.reading import NO_CARD, makes_models
from transplt.fixers.amp.recognise import already, sharded
from transplt.fixers.amp.scaler_checkpoints import write_checkpoints
from transplt.fixers.amp.scaler_place import Home
from transplt.fixers.amp.sigmoids import in_float32, unsafe_under_autocast, write_float32
from transplt.fixers.amp.spelling import Spelling, spelling_of
from transplt.fixers.amp.training_units import Backward, Problem, Unit, find_units
from transplt.fixers.amp.unbound import said_of, unbound_for
from transplt.program.cards import on_card
from transplt.program.optimizers import asks_for_fused, optimizer_calls
from transplt.program.program import File, enclosing_function, text_of
from transplt.rules.versions import oldest_held, version_key
from transplt.syntax.nodes import keyword_of, last_name
from transplt.syntax.scan import FUNCTIONS, parent, statement

fixer = Fixer(__name__, code="NPU741", rank=40, needs=(b".backward(",), theme="amp:native")

CAST = "forward pass and loss under autocast"
PENALTY = "gradients that enter the loss are computed in float32"
_DYNAMIC = "remove --loss-scale, or migrate with --style npu"
_SCALER = "a GradScaler that lives as long as the optimizer"


@dataclass(slots=True)
class Names:
    """New names, and the functions (None for the module) that each is used in: two functions may use the same.

    `handed` are the scalers that calls hand over, behind which argument; `above` are those that are variables of the
    file, by the statement that they go above.
    """

    scalers: dict[tuple[object, ...], str] = field(default_factory=dict)
    used: dict[str, list[ast.AST | None]] = field(default_factory=dict)
    handed: dict[ast.expr, list[str]] = field(default_factory=dict)
    above: dict[ast.stmt, list[str]] = field(default_factory=dict)

    def name(self, writer: Writer, wanted: tuple[str, ...], places: Sequence[ast.AST | None]) -> str:
        """The first name that is free, or that stands in other functions only."""
        for name, taken in self.used.items():
            if name in wanted and None not in (*taken, *places) and not any(place in taken for place in places):
                taken.extend(places)
                return name
        found = writer.new_name(*wanted)
        self.used[found] = list(places)
        return found


@fixer.on(ast.Module)
def trains_under_autocast(work: Work, tree: ast.Module) -> Finds:
    """The training code of a program that has no mixed precision yet."""
    if wanted(work) and work.once(already) is None and (units := find_units(work)):
        writer = writer_for(work)
        _write(writer, units)
        yield from writer.found


def _write(writer: Writer, units: list[Unit]) -> None:
    """Write mixed precision into the units of a file; nothing into those that have a problem."""
    if (place := sharded(writer.work)) and units:
        writer.left(
            units[0].first,
            f"no mixed precision here: {place} shards the model or its training",
            "give FSDP a MixedPrecision policy (param_dtype, reduce_dtype), and float16 a ShardedGradScaler",
            "NPU743",
        )
        return
    program = units[0].program
    if makes_models(program) and not on_card(program):
        writer.left(units[0].first, f"no mixed precision here: {NO_CARD[0]}", NO_CARD[1], "NPU743")
        return
    # Asking the writer for the name of torch imports it: nothing is to change where nothing is written.
    spelling = spelling_of("torch", writer.work.settings, units[0].program, units[0].file)
    older = writer.portable and version_key(oldest_held(writer.work.settings)) < (2, 3)
    names = Names()
    done: list[tuple[Part, str]] = []
    written: list[Unit] = []
    for unit in units:
        problem = next((item for item in _problems(writer, spelling, unit)), None)
        if problem is not None:
            writer.left(problem.node, f"no mixed precision here: {problem.why}", problem.do, "NPU743")
            continue
        # The function of the portable style's module makes the scaler where the project admits a torch without.
        of_module = writer.helper("grad_scaler", "NPU741", _SCALER) if older else ""
        spelling = replace(spelling, torch=writer.torch, card=writer.card, of_module=of_module)
        made = [(part, _make(writer, spelling, part, names) if spelling.scales else "") for part in unit.parts]
        _unit(writer, spelling, unit, made, names)
        done += made
        written.append(unit)
    for call in dict.fromkeys(call for unit in written for _, call in _fused(spelling, unit)):
        message = "a fused step on an NPU does not work with a scaler"
        writer.rewrite(call, "NPU741", message, keyword_replaced("fused", "fused", "False"))
    for argument, scalers in names.handed.items():
        writer.rewrite(argument, "NPU741", "the scaler is passed on", followed_by(", ".join(scalers)), apart=True)
    for node, lines in names.above.items():
        _above(writer, node, lines)
    if written:
        write_float32(writer, [each for unit in written if (each := in_float32(unit)) is not None])
        regions = write_evaluation(writer, spelling, written)
        if spelling.scales:
            _keep_states(writer, units[0], done)
        else:
            write_arrays(writer, units[0], [*regions, *(region for unit in written for region in unit.regions)])


def _keep_states(writer: Writer, unit: Unit, done: list[tuple[Part, str]]) -> None:
    """Let checkpoints keep the scalers' states; in the portable style they stay those of the original."""
    if not writer.portable:
        write_checkpoints(writer, done)
    elif any(b"torch.save(" in file.source.utf8 for file in unit.program.files):
        message = "checkpoints do not keep the scaler's state"
        writer.remark(unit.first, "NPU744", message, "on CUDA they would hold one key more; the scaler starts again")


def _problems(writer: Writer, spelling: Spelling, unit: Unit) -> list[Problem]:
    """Why a unit gets nothing."""
    found = [problem for problem in unit.problems if spelling.scales or not problem.scaling]
    found += _static_scales(writer, spelling, unit)
    if found:
        return found
    if (read := unbound_for(unit.file, unit.scopes)) is not None:
        found.append(Problem(read, *said_of(read)))
    node = unsafe_under_autocast(unit)
    if node is not None:
        found.append(
            Problem(
                node,
                "binary_cross_entropy does not work under autocast, and its inputs would be rounded to half precision",
                "return logits from the network (no final sigmoid) and use BCEWithLogitsLoss or "
                "binary_cross_entropy_with_logits, then run transplt again",
            )
        )
    crowded = next((item for item in _statements_touched(spelling, unit) if not writer.fits(item)), None)
    if crowded is not None:
        do = "put each statement on its own line and run transplt again"
        found.append(Problem(crowded, "the statements of this line cannot be split", do))
    for file, call in _fused(spelling, unit):
        if file is not unit.file or writer.portable or not isinstance(keyword_of(call, "fused"), ast.Constant):
            why = f"{last_name(call.func)} may be fused, and its fused step on an NPU does not work with a scaler"
            found.append(Problem(unit.first, why, "write fused=False there and run transplt again"))
            break
    flagged = [*(region[0] for region in unit.regions), *(unit.making if spelling.scales else ())]
    blind = next((item for item in flagged if spelling.enabled(item) is None), None)
    if blind is not None:
        do = "pass the options to this code, or do not use --amp-flag"
        found.append(Problem(blind, "the command line flag is not available here", do))
    return found


def _static_scales(writer: Writer, spelling: Spelling, unit: Unit) -> Iterator[Problem]:
    if writer.portable and spelling.scales and writer.work.settings.loss_scale != "dynamic":
        yield Problem(unit.first, "only torch_npu has a scale that never changes", _DYNAMIC)


def _statements_touched(spelling: Spelling, unit: Unit) -> Iterator[ast.stmt]:
    """The statements around and beside which something is written."""
    yield from (item for region in unit.regions for item in (region[0], region[-1]))
    yield from (statement(item.call) for item in unit.backwards)
    if spelling.scales:
        yield from (item for part in unit.parts for item in (*part.updates, *part.exits))
        yield from (read.before for read in unit.reads)
        yield from (item for part in unit.parts if part.home for item in part.home.after)
        yield from (statement(step.call) for step in unit.steps)


def _fused(spelling: Spelling, unit: Unit) -> list[tuple[File, ast.Call]]:
    """The optimizers of the program that may be fused, and that the scaler cannot step then: torch's steps AdamW as if
    there were no scale and no overflow, torch_npu's hands itself to a step that takes no scaler.
    """
    if not spelling.scales:
        return []
    wrong = ("torch.optim.AdamW", "torch.optim", "")
    calls = optimizer_calls(unit.program)
    asked = [(file, call, kind) for file, call, kind in calls if asks_for_fused(file, call)]
    return [(file, call) for file, call, kind in asked if kind in wrong or not spelling.scaler_of_torch]


def _unit(writer: Writer, spelling: Spelling, unit: Unit, made: list[tuple[Part, str]], names: Names) -> None:
    for region in unit.regions:
        cached = not gradients_off(unit.program, unit.file, region)
        writer.wrap(region, spelling.autocast(region[0], cached=cached), "NPU740", CAST)
    for penalty in unit.penalties:
        header = f"with {spelling.torch}.autocast({spelling.card}, enabled=False):"
        writer.wrap([penalty.stmt], header, "NPU740", PENALTY)
        for argument in penalty.half:
            writer.rewrite(argument, "NPU740", PENALTY, method_called("float"), apart=True)
    scalers = {id(call): scaler for part, scaler in made for call in part.backwards}
    for backward in unit.backwards:
        scaler = scalers.get(id(backward.call), "")
        if backward.inline:
            _inline(writer, backward, scaler, names)
        elif scaler:
            _change(writer, backward.call, "the loss is scaled for its backward pass", scaled_by(scaler))
    for read in unit.reads if spelling.scales else ():
        text = text_of(unit.file, read.optimizer)
        scaler = next(scaler for part, scaler in made if text in part.texts)
        lines = [f"{scaler}.unscale_({text})"]
        writer.before(read.before, lines, "NPU741", "gradients are unscaled before they are clipped or read")
    for part, scaler in made if spelling.scales else ():
        update = [f"{scaler}.update()"]
        for step in part.steps:
            message = "the scaler takes the optimizer step, and skips it after an overflow"
            _change(writer, step.call, message, handed_to(f"{scaler}.step"))
        for way in part.exits:
            writer.before(way, update, "NPU741", "the scale is updated before an iteration ends early")
        for last in part.updates:
            writer.after(last, update, "NPU741", "the scale is updated after the steps of an iteration")


def _change(writer: Writer, call: ast.Call, message: str, transform: New) -> None:
    """An edit of a call, on top of what others do to it."""
    writer.work.take(call)
    writer.rewrite(call, "NPU741", message, transform)


def _inline(writer: Writer, backward: Backward, scaler: str, names: Names) -> None:
    """`criterion(model(x), y).backward()` becomes a loss under autocast, and its backward pass behind it."""
    stmt = statement(backward.call)
    name = names.name(writer, ("loss", "total_loss"), [enclosing_function(stmt)])
    messages = ("the loss is computed first", "the backward pass runs outside autocast")
    # `(loss := criterion(...)).backward()` keeps its brackets.
    bare = stmt.end_lineno == stmt.lineno and not isinstance(backward.loss, ast.NamedExpr)
    rest = name_loss(writer, backward.call, name, "NPU740", messages, bare=bare)
    loss = f"{scaler}.scale({name})" if scaler else name
    code = "NPU741" if scaler else "NPU740"
    writer.after(stmt, [f"{loss}{rest}"], code, "the backward pass of the loss", verbatim_from=0)


def _make(writer: Writer, spelling: Spelling, part: Part, names: Names) -> str:
    """The scaler's name in a part; the scaler is made and handed over where that was not done for another one."""
    home = part.home
    assert home is not None
    mark = "" if home.after else " ".join(sorted(part.texts))
    key: tuple[object, ...] = (home.kind, part.mark or mark, *(id(item) for item in home.after))
    known = names.scalers
    if key in known:
        name = known[key]
    else:
        name = known[key] = _name(writer, part, home, names)
        for after in home.after:
            writer.after(after, [f"{name} = {spelling.scaler(after)}"], "NPU741", _SCALER)
        if home.above is not None:
            names.above.setdefault(home.above, []).append(f"{name} = {spelling.scaler(home.above)}")
    for function, arg in home.takes:
        if (id(function), name) not in known:
            known[(id(function), name)] = name
            message = f"{function.name} gets the scaler"
            writer.rewrite(arg, "NPU741", message, followed_by(name), apart=True)
    for call, argument in home.hands:
        if (id(call), name) not in known:
            known[(id(call), name)] = name
            keyword = isinstance(parent(argument), ast.keyword)
            names.handed.setdefault(argument, []).append(f"{name}={name}" if keyword else name)
    return name


def _name(writer: Writer, part: Part, home: Home, names: Names) -> str:
    wanted = ("scaler", "grad_scaler", "npu_scaler")
    if part.mark not in ("", "0"):
        wanted = (f"scaler_{part.mark}", f"grad_scaler_{part.mark}", f"npu_scaler_{part.mark}")
    if home.kind == "attribute":
        known = {node.attr for node in part.file.scan.stores} | {item.name for item in part.file.scan.functions}
        return next(f"self.{name}" for name in wanted if name not in known)
    places = [enclosing_function(after) for after in home.after] if home.kind == "local" else [None]
    return names.name(writer, wanted[:2], [*places, *(function for function, _ in home.takes)])


def _above(writer: Writer, node: ast.stmt, lines: list[str]) -> None:
    """Variables of the file, above a function or class at module level."""
    body = writer.work.scan.tree.body
    index = body.index(node)
    before = body[index - 1] if index else None
    if before is None or not writer.fits(before):
        writer.before(node, [*lines, "", ""], "NPU741", _SCALER)
        return
    blank = ["", ""] if isinstance(before, (*FUNCTIONS, ast.ClassDef)) else [""]
    writer.after(before, [*blank, *lines], "NPU741", _SCALER)
