"""`--amp native`: autocast around forward pass and loss, and a GradScaler around the backward pass and the steps."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.program.program import enclosing_function, text_of
from transplt.syntax.scan import FUNCTIONS, parent, statement
from transplt.themes.amp.evaluation import write_evaluation
from transplt.themes.amp.float_only import unsafe_under_autocast
from transplt.themes.amp.half_limits import write_arrays
from transplt.themes.amp.home import Home
from transplt.themes.amp.inline import name_loss
from transplt.themes.amp.recognise import already, sharded
from transplt.themes.amp.scaler_checkpoints import write_checkpoints
from transplt.themes.amp.shape import Backward, Problem, Unit, find_units
from transplt.themes.amp.spelling import Spelling, spelling_of
from transplt.themes.amp.theme import wanted, writer_for
from transplt.trees.calls import followed_by, parameter_behind
from transplt.trees.expressions import handed_to, scaled_by
from transplt.trees.transform import Transform

fixer = Fixer(__name__, code="NPU741", rank=40, needs=(b".backward(",), theme="amp:native")

CAST = "forward pass and loss under autocast"
_SCALER = "a GradScaler, which lives as long as the optimizer"


@dataclass(slots=True)
class Names:
    """New names, and the functions (None for the module) that each is used in: two functions may use the same.

    `handed` are the scalers that calls hand over, behind which argument.
    """

    scalers: dict[tuple[object, ...], str] = field(default_factory=dict)
    used: dict[str, list[ast.AST | None]] = field(default_factory=dict)
    handed: dict[ast.expr, list[str]] = field(default_factory=dict)

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
    if wanted(work) and already(work) is None and (units := find_units(work)):
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
    # Asking the writer for the name of torch imports it: nothing is to change where nothing is written.
    spelling = spelling_of("torch", writer.work.settings, units[0].program, units[0].file)
    names = Names()
    done: list[tuple[Unit, str]] = []
    for unit in units:
        problem = next((item for item in _problems(writer, spelling, unit)), None)
        if problem is not None:
            writer.left(problem.node, f"no mixed precision here: {problem.why}", problem.do, "NPU743")
            continue
        spelling = replace(spelling, torch=writer.torch)
        scaler = _make(writer, spelling, unit, names) if spelling.scales else ""
        _unit(writer, spelling, unit, scaler, names)
        done.append((unit, scaler))
    for argument, scalers in names.handed.items():
        writer.rewrite(argument, "NPU741", "the scaler is handed over", followed_by(", ".join(scalers)), apart=True)
    if done:
        regions = write_evaluation(writer, spelling, [unit for unit, _ in done])
        if spelling.scales:
            write_checkpoints(writer, done)
        else:
            write_arrays(writer, units[0], [*regions, *(region for unit, _ in done for region in unit.regions)])


def _problems(writer: Writer, spelling: Spelling, unit: Unit) -> list[Problem]:
    """Why a unit gets nothing."""
    found = [problem for problem in unit.problems if spelling.scales or not problem.scaling]
    if found:
        return found
    node = unsafe_under_autocast(unit)
    if node is not None:
        found.append(
            Problem(
                node,
                "binary_cross_entropy may not run under autocast, and what goes into it would be rounded to half",
                "return logits from the network (no sigmoid at its end) and take BCEWithLogitsLoss or "
                "binary_cross_entropy_with_logits, then run transplt again",
            )
        )
    lines = [item for region in unit.regions for item in (region[0], region[-1])]
    lines += [statement(item.call) for item in unit.backwards]
    if spelling.scales:
        lines += [
            *unit.updates,
            *unit.exits,
            *(read.before for read in unit.reads),
            *(unit.home.after if unit.home else ()),
        ]
        lines += [statement(step.call) for step in unit.steps]
    crowded = next((item for item in lines if not writer.fits(item)), None)
    if crowded is not None:
        do = "write the statements on lines of their own and run transplt again"
        found.append(Problem(crowded, "the statements of this line cannot be put on lines of their own", do))
    blind = next((item for item in _flagged(spelling, unit) if spelling.enabled(item) is None), None)
    if blind is not None:
        do = "hand the options over to this code, or leave --amp-flag out"
        found.append(Problem(blind, "the flag of the command line cannot be seen from here", do))
    return found


def _flagged(spelling: Spelling, unit: Unit) -> list[ast.stmt]:
    """The statements beside which the flag is written."""
    found = [region[0] for region in unit.regions]
    if spelling.scales and unit.home is not None:
        found += [*unit.home.after, *([unit.home.above] if unit.home.above is not None else [])]
    return found


def _unit(writer: Writer, spelling: Spelling, unit: Unit, scaler: str, names: Names) -> None:
    for region in unit.regions:
        writer.wrap(region, spelling.autocast(region[0]), "NPU740", CAST)
    for backward in unit.backwards:
        if backward.inline:
            _inline(writer, backward, scaler, names)
        elif scaler:
            _change(writer, backward.call, "the loss is scaled for its backward pass", scaled_by(scaler))
    if not scaler:
        return
    for read in unit.reads:
        text = f"{scaler}.unscale_({text_of(unit.file, read.optimizer)})"
        writer.before(read.before, [text], "NPU741", "gradients are unscaled before they are clipped or read")
    for step in unit.steps:
        message = "the scaler takes the step, and skips it after an overflow"
        _change(writer, step.call, message, handed_to(f"{scaler}.step"))
    for way in unit.exits:
        writer.before(way, [f"{scaler}.update()"], "NPU741", "the scale is adapted where an iteration ends early")
    for last in unit.updates:
        writer.after(last, [f"{scaler}.update()"], "NPU741", "the scale is adapted after the steps of an iteration")


def _change(writer: Writer, call: ast.Call, message: str, transform: Transform) -> None:
    """An edit of a call, on top of what others do to it."""
    writer.work.take(call)
    writer.rewrite(call, "NPU741", message, transform)


def _inline(writer: Writer, backward: Backward, scaler: str, names: Names) -> None:
    """`criterion(model(x), y).backward()` becomes a loss under autocast, and its backward pass behind it."""
    stmt = statement(backward.call)
    name = names.name(writer, ("loss", "total_loss"), [enclosing_function(stmt)])
    messages = ("the loss is worked out first", "the backward pass stands outside of autocast")
    rest = name_loss(writer, backward.call, name, "NPU740", messages, bare=stmt.end_lineno == stmt.lineno)
    loss = f"{scaler}.scale({name})" if scaler else name
    code = "NPU741" if scaler else "NPU740"
    writer.after(stmt, [f"{loss}{rest}"], code, "the backward pass of the loss", verbatim_from=0)


def _make(writer: Writer, spelling: Spelling, unit: Unit, names: Names) -> str:
    """The scaler's name in the unit; the scaler is made and handed over where that was not done for another unit."""
    home = unit.home
    assert home is not None
    key: tuple[object, ...] = (home.kind, *(id(item) for item in home.after))
    known = names.scalers
    if key in known:
        name = known[key]
    else:
        name = known[key] = _name(writer, unit, home, names)
        for after in home.after:
            writer.after(after, [f"{name} = {spelling.scaler(after)}"], "NPU741", _SCALER)
        if home.above is not None:
            _above(writer, home.above, f"{name} = {spelling.scaler(home.above)}")
    for function, arg in home.takes:
        if (id(function), name) not in known:
            known[(id(function), name)] = name
            message = f"{function.name} gets the scaler"
            writer.rewrite(arg, "NPU741", message, parameter_behind(name), apart=True)
    for call, argument in home.hands:
        if (id(call), name) not in known:
            known[(id(call), name)] = name
            keyword = isinstance(parent(argument), ast.keyword)
            names.handed.setdefault(argument, []).append(f"{name}={name}" if keyword else name)
    return name


def _name(writer: Writer, unit: Unit, home: Home, names: Names) -> str:
    if home.kind == "attribute":
        known = {node.attr for node in unit.file.scan.stores} | {item.name for item in unit.file.scan.functions}
        return next(f"self.{name}" for name in ("scaler", "grad_scaler", "npu_scaler") if name not in known)
    places = [enclosing_function(after) for after in home.after] if home.kind == "local" else [None]
    return names.name(writer, ("scaler", "grad_scaler"), [*places, *(function for function, _ in home.takes)])


def _above(writer: Writer, node: ast.stmt, text: str) -> None:
    """A variable of the file, above a function or class at module level."""
    body = writer.work.scan.tree.body
    index = body.index(node)
    before = body[index - 1] if index else None
    if before is None or not writer.fits(before):
        writer.before(node, [text, "", ""], "NPU741", _SCALER)
        return
    blank = ["", ""] if isinstance(before, (*FUNCTIONS, ast.ClassDef)) else [""]
    writer.after(before, [*blank, text], "NPU741", _SCALER)
