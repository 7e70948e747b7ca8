"""Whether a program can be made distributed as a whole, and how its gradients are exchanged.

A program is converted whole or left whole: what stands in the way is noted once, and nothing is written then. Where
each model runs through its wrapper once for each backward pass, DistributedDataParallel exchanges the gradients. Where
it does not (methods of the model in the loss, several backward passes over one forward pass, optimizers over what is no
model), the ranks take the mean of the gradients in front of each step: slower, and right for any such program.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from transplt.fixers.distributed.obstacles import obstacle
from transplt.fixers.distributed.program.batches import carried
from transplt.fixers.distributed.program.custom_optimizers import has_groups, step_by_hooks
from transplt.fixers.distributed.program.datasets import shuffles
from transplt.fixers.distributed.program.divergence import Divergence, find_divergence
from transplt.fixers.distributed.program.kept_states import KeptStates, Move
from transplt.fixers.distributed.program.losses import loss_readers, taken_out
from transplt.fixers.distributed.program.outputs import happens_once
from transplt.fixers.distributed.program.share_sums import SharedFile, by_length_of_all, is_mean, means_of_share
from transplt.fixers.distributed.sharing import DRAWN, FOLLOWING, shares
from transplt.flow.callees import DATA_PARALLEL
from transplt.program.cards import chosen_card, is_cpu_device, on_card
from transplt.program.late_parameters import makes_parameters
from transplt.program.layers import leaves_layers_out
from transplt.program.loaders import Shares, evaluating_calls, readings
from transplt.program.models import Models, spelled
from transplt.program.optimizers import OptimizerStep, find_steps, optimizer_calls
from transplt.program.passes import Passes, find_passes
from transplt.program.program import File, Program, Variable, enclosing_function, text_of
from transplt.program.variable_values import values_of
from transplt.program.wrapper_places import Wrap
from transplt.syntax.nodes import (
    arguments_of,
    attribute_of,
    by_place,
    inner_nodes,
    keyword_of,
    last_name,
    of_kind,
    plain_name,
    string_of,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

_TALKING = frozenset({"patch_replication_callback", "SynchronizedBatchNorm1d", "SynchronizedBatchNorm2d"})
_NO_CARD = ("this program puts nothing on a card", "move the model and the data to the card first: model.to(device)")
_BY_HAND = (
    "parameters are changed by hand here, without an optimizer whose gradients could be averaged",
    "train with an optimizer of torch.optim, or reduce the gradients by hand before this",
)
_HOGS = frozenset({"torch.multiprocessing.Process", "multiprocessing.Process", "torch.multiprocessing.Pool"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """What stands in the way of a whole program: where, why, and what to do."""

    file: File
    node: ast.expr | ast.stmt
    why: str
    help: str
    code: str = "NPU332"


#: What may leave out what it holds, or do it again and again.
_PARTLY = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(slots=True)
class Verdict:
    """`refusals` leave the program whole; `averaging` is why gradients are averaged without a wrapper, if so."""

    refusals: list[Refusal]
    averaging: str
    steps: list[OptimizerStep]
    ways: Divergence
    shares: Shares
    unused: frozenset[Variable] = frozenset()
    gathered: Mapping[ast.expr, File] = field(default_factory=dict)  # of what all ranks take the mean
    states: list[tuple[Variable, list[Move]]] = field(default_factory=list)  # which differ between the ranks


def judge(models: Models, wraps: dict[Variable, Wrap], targets: tuple[str, ...]) -> Verdict:
    """The verdict on a program."""
    steps = find_steps(models.program)
    found = shares(models.training)
    given = models.training, steps, evaluating_calls(models.training, found), frozenset(models.wrapped)
    ways = find_divergence(*given)
    _leave_whole(models, ways, found)
    gathered, tried = dict([*_ratios(ways, found), *_figures(ways), *KeptStates(ways).means()]), dict[ast.expr, File]()
    while gathered != tried:  # what all ranks decide by such a figure makes the others run alike
        tried, ways = gathered, find_divergence(*given, frozenset(gathered))
        gathered = _come_to_by_all(ways, tried)
    first = models.training.backwards[0]
    refusals = [] if on_card(models.program) else [Refusal(*first, *_NO_CARD)]
    refusals += [*_numbers(models), *_parts(ways), *_foreign(models), *_stepped_by_hand(models, steps)]
    refusals += [*_on_host(models), *_own_steps(models, steps), *_drawn_late(models), *_unequal(ways, found)]
    refusals += [] if refusals else _peeks(ways, found)
    passes = find_passes(models)
    why = obstacle(models, wraps, passes, steps, ways)
    unused = frozenset[Variable]() if why else _unused(models)
    why = why or _read_beside(models.program, unused) or _run_twice(passes, unused)
    if not why and any(step.closure is not None for step in steps):
        why = "a closure computes the loss again, and its result decides the step"
    if why and not steps and not refusals:
        help_ = "call optimizer.step() in the program of the main file, or average the gradients by hand"
        refusals.append(Refusal(*first, "the optimizer step was not found", help_))
    if why and targets:
        help_ = "remove -t: the gradients of all optimizers are then averaged over the ranks"
        refusals.append(Refusal(*first, f"the model of -t cannot be wrapped: {why}", help_))
    if why:
        refusals += _beside_optimizers(models)
    states = [] if refusals else list(KeptStates(ways).moves())
    return Verdict(refusals, why, steps, ways, found, frozenset() if why else unused, gathered, states)


def _leave_whole(models: Models, ways: Divergence, found: Shares) -> None:
    """Take loaders out of the shares whose data are drawn by each rank, or whose batches have to follow one another."""
    for key, loader in found.loaders.items():
        if key in found.places and any(ways.varying.varies(loader.file, each) for each in arguments_of(loader.call)):
            found.whole[key] = DRAWN
        elif key in found.places and not shuffles(loader.call):
            loops = [(file, loop) for file, loop, every in models.training.loops if loader in every]
            if any(next(carried(models, file, loop), None) is not None for file, loop in loops):
                found.whole[key] = FOLLOWING
    for key in found.whole:
        found.places.pop(key, None)


def _ratios(ways: Divergence, found: Shares) -> Iterator[tuple[ast.expr, File]]:
    """Ratios over a share that differ between the ranks, in code that trains; none that only rank 0 may show."""
    for file in ways.program.files if found.places else ():
        own = SharedFile(ways, found, file)
        for ratio in by_length_of_all(own):
            node, function = ratio.node, enclosing_function(ratio.node)
            trains = function is None or function in ways.training.functions
            if trains and ratio.instead and own.varies(ratio.total) and isinstance(node, ast.expr):
                yield node, file
        for node in means_of_share(SharedFile(ways, found, file)):
            above = {type(each) for each in chain(node)}.intersection(_PARTLY)
            shown = any(happens_once(file, call) for call in of_kind(ast.Call, chain(node)))
            if above <= ({ast.IfExp} if not shown else set()):
                yield node, file


def _figures(ways: Divergence) -> Iterator[tuple[ast.expr, File]]:
    """Means over what one rank has, by which the ranks would end a loop apart: `kl` of `if kl > limit: break`; those
    whose number is taken out of a batch in a loop that trains, and that are no loss."""
    for file, test in ways.divergences():
        for compared in inner_nodes(test, ast.Compare) if isinstance(parent(test), ast.If) else ():
            match compared:
                case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()], comparators=[right]):
                    yield from ((each, file) for each in (left, right) if is_mean(ways.program, file, each))
    for file in ways.program.files:
        losses = {id(node) for _, names in loss_readers(ways.training, file) for node in names}
        for node in by_place(taken_out(file)):
            known = losses.intersection(map(id, inner_nodes(node, ast.Name)))
            partly = any(isinstance(above, _PARTLY) for above in chain(node))
            if known or partly or not ways.training.in_region(file, node) or not ways.varying.varies(file, node):
                continue
            number = next(iter(chain(node)))
            number = parent(number) if isinstance(number, ast.Attribute) else number
            around = of_kind(ast.BinOp, itertools.takewhile(lambda each: isinstance(each, ast.BinOp), chain(number)))
            whole = next((each for each in (node, *around) if is_mean(ways.program, file, each)), None)
            if whole is not None:
                yield whole, file


def _come_to_by_all(ways: Divergence, figures: dict[ast.expr, File]) -> dict[ast.expr, File]:
    """The figures that all ranks come to, none of them a part of another, or made of others alone."""
    alone = {node: file for node, file in figures.items() if figures.keys().isdisjoint(chain(node))}
    return {node: file for node, file in alone.items() if ways.is_uniform(file, node) and _differs(ways, file, node)}


def _differs(ways: Divergence, file: File, node: ast.expr) -> bool:
    """Whether a figure would still differ between the ranks without their mean of it."""
    match node:
        case ast.Name() | ast.Attribute():
            return ways.program.slot(file, node) in ways.varying.slots
        case ast.BinOp() | ast.Call(args=[_, *_]):
            inner = (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
            return any(ways.varying.varies(file, each) for each in inner)
    return True


# --- what stands in the way ------------------------------------------------------------------------------------------


def _numbers(models: Models) -> Iterator[Refusal]:
    """Cards that the program distinguishes: parts of it would all go to the card of the rank."""
    for file in models.program.files:
        for node in by_place(file.scan.strings):
            value = string_of(node) or ""
            number = value.partition("cuda:")[2] if value.startswith("cuda:") else ""
            if number.isdigit() and number != "0" and not isinstance(parent(node), (ast.Expr, ast.JoinedStr)):
                yield _card(file, node, number)
        for call in file.scan.calls:
            moves = attribute_of(call.func) == "cuda" and len(call.args) == 1
            if file.names.qualified(call.func) == "torch.cuda.set_device" and not isinstance(parent(call), ast.Expr):
                why = "every rank would use one card here"
                yield Refusal(file, call, why, "remove it: the start of the program sets the card", "NPU335")
            chosen = call.args[0] if moves and file.names.qualified(call.func) is None else chosen_card(file, call)
            given = chosen.value if isinstance(chosen, ast.Constant) else 0
            if type(given) is int and given > 0:
                yield _card(file, call, given)


def _card(file: File, node: ast.expr, number: object) -> Refusal:
    why = f"every rank would use card {number} here"
    return Refusal(file, node, why, "write 'cuda', which is the card of the rank, and run transplt again", "NPU335")


def _parts(ways: Divergence) -> Iterator[Refusal]:
    for file, node in ways.divergences():
        told = ways.varying.begun(file, node)
        by = ", ".join(f"{name} from line {line} on" for name, line in [*told[:1], *told[1:][-1:]])
        by = "an exception that one rank catches may not occur on the others" if isinstance(node, ast.Try) else by
        why = f" ({by})" if by else ""
        what = f"this may differ between ranks{why} and controls steps or backward passes: the ranks would wait forever"
        help_ = "let all ranks decide from shared values: arguments, counters, a value reduced over the ranks"
        yield Refusal(file, node, what, help_)
    for step in ways.chosen():
        why = "ranks may step different optimizers here, so that each would train other parameters"
        help_ = "draw it from a separate, seeded generator, random.Random(0), and run transplt again"
        yield Refusal(step.file, step.optimizer, why, help_)
    for file, value in ways.noises():
        why = "each rank adds its own noise to gradients or parameters here: the models of the ranks would drift apart"
        help_ = "draw it from a separate generator that all ranks seed alike: torch.randn(..., generator=...)"
        yield Refusal(file, value, why, help_)
    for file, value in ways.rates():
        why = "the learning rate depends on a value of one rank here: the models of the ranks would drift apart"
        help_ = "use a value that all ranks share, such as a validation result, or reduce it over the ranks first"
        yield Refusal(file, value, why, help_)


def _peeks(ways: Divergence, found: Shares) -> Iterator[Refusal]:
    """What only some ranks may read of a loader that is shared out: their orders would not be those of the others."""
    if not found.places:
        return
    for reading in readings(ways.training):
        if found.has(reading.loader) and not ways.is_uniform(reading.file, reading.node):
            why = "some ranks may not reach this, and all ranks draw the order of this loader's epochs together"
            help_ = "read it on all ranks, or use a separate loader here"
            yield Refusal(reading.file, reading.node, why, help_)


def _unequal(ways: Divergence, found: Shares) -> Iterator[Refusal]:
    """Data that each rank chooses for itself, and more of them on one rank: the others take fewer steps."""
    for loader in (found.loaders[key] for key, why in found.whole.items() if why is DRAWN):
        inside = (each for given in arguments_of(loader.call) for each in inner_nodes(given, ast.expr))
        if any(ways.varying.is_picked(loader.file, each) for each in inside):
            why = "ranks may choose more data here than others, and take more steps: they would wait forever"
            help_ = "choose the same data on all ranks, by values that are reduced over them: npu_port.of_first(chosen)"
            yield Refusal(loader.file, loader.call, why, help_)


def _foreign(models: Models) -> Iterator[Refusal]:
    """Relatives of DataParallel, batch norms that talk to each other, processes that share a model."""
    for file in models.program.files:
        for call in by_place(file.scan.calls):
            name = file.names.qualified(call.func) or ""
            last = last_name(call.func)
            relative = last.startswith("DataParallel") and name not in DATA_PARALLEL
            if relative or last in _TALKING:
                yield _own_parallel(file, call, last)
            elif last.startswith("Embedding") and (value := keyword_of(call, "sparse")) is not None:
                if not isinstance(value, ast.Constant) or value.value:
                    yield Refusal(
                        file, call, "HCCL does not reduce sparse gradients", "create this embedding with sparse=False"
                    )
            elif name in _HOGS and (target := keyword_of(call, "target")) is not None:
                function = models.program.definition(file, target)
                if function in models.training.functions:
                    why = "this program trains in its own processes, which share one model"
                    yield Refusal(file, call, why, "train in one process, and let torchrun start one for each card")
        for cls in file.scan.classes:
            if any(file.names.qualified(base) in DATA_PARALLEL for base in cls.bases):
                yield _own_parallel(file, cls, cls.name)


def _own_parallel(file: File, node: ast.expr | ast.stmt, name: str) -> Refusal:
    help_ = "remove it (nn.SyncBatchNorm is the batch norm over all ranks), and run transplt again"
    return Refusal(file, node, f"{name} spreads a model over several cards of one process", help_)


def _stepped_by_hand(models: Models, steps: list[OptimizerStep]) -> Iterator[Refusal]:
    """Parameters that the program changes by itself."""
    if steps or any(optimizer_calls(models.program)):
        return
    for file, _ in models.training.backwards:
        for node in file.scan.attributes.get("grad", ()):
            if isinstance(statement(node), (ast.AugAssign, ast.Expr, ast.Assign)):
                yield Refusal(file, node, *_BY_HAND)
                return


def _own_steps(models: Models, steps: list[OptimizerStep]) -> Iterator[Refusal]:
    """Steps of the program's own classes that keep the ranks apart, or that no mean of the gradients can precede."""
    for file in models.program.files:
        for cls in file.scan.classes:
            if (step := step_by_hooks(cls)) is not None:
                why = (f"the step of {cls.name} changes gradients by values that its hooks store from the batches of "
                       "one rank")
                yield Refusal(file, step, why, "reduce these values and the gradients over the ranks by hand")
    for each in steps:
        method = models.program.definition(each.file, each.call.func)
        owner = parent(method) if isinstance(method, FUNCTIONS) else None
        if isinstance(owner, ast.ClassDef) and not has_groups(models.program, owner):
            why = f"{text_of(each.file, each.optimizer)} may be a {owner.name}, which has no parameter groups"
            yield Refusal(each.file, each.call, why, "derive the class from torch.optim.Optimizer, and run transplt "
                                                     "again")


def _drawn_late(models: Models) -> Iterator[Refusal]:
    """Layers that are made in a forward pass: the ranks draw their weights apart."""
    why = "this layer gets its weights in the first forward pass, and each rank would draw its own"
    for file in models.program.files:
        late: list[ast.expr] = [
            call for call in file.scan.calls if (file.names.qualified(call.func) or "").startswith("torch.nn.Lazy")
        ]
        stores = (each for each in file.scan.stores if getattr(enclosing_function(each), "name", "") == "forward")
        late += [each for each in stores if makes_parameters(models.program, file, each)]
        for node in by_place(late):
            yield Refusal(file, node, why, "pass its sizes to the constructor, and run transplt again")


def _beside_optimizers(models: Models) -> Iterator[Refusal]:
    """`p.data.add_(p.grad, alpha=-lr)` beside an optimizer: no step stands in front of which gradients are averaged."""
    for file in models.program.files:
        for node in file.scan.attributes.get("grad", ()):
            stored = statement(node)
            match stored:
                case ast.AugAssign(target=changed):
                    pass
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=changed, attr="add_" | "sub_"))):
                    pass
                case _:
                    continue
            owner = changed.value if isinstance(changed, ast.Attribute) and changed.attr == "data" else changed
            same = plain_name(owner) == plain_name(node.value) != ""
            if same and models.training.in_region(file, node):
                yield Refusal(file, stored, *_BY_HAND)
                return


def _on_host(models: Models) -> Iterator[Refusal]:
    """A model that is given the CPU as a device of its own: HCCL exchanges nothing that lies there."""
    for file in models.program.files:
        for call in by_place(file.scan.calls):
            if not isinstance(models.program.callee(file, call), ast.ClassDef):
                continue
            for argument in arguments_of(call):
                held = values_of(models.program, file, argument) if isinstance(argument, ast.Name) else []
                if held and all(is_cpu_device(at.names, value) for at, value in held):
                    why = "a trained part of the model is put on the CPU here, and HCCL only exchanges tensors on cards"
                    yield Refusal(file, call, why, "put the whole model on the card, and run transplt again")


# --- parameters that a step may leave out ----------------------------------------------------------------------------


def _read_beside(program: Program, unused: frozenset[Variable]) -> str:
    """Why a wrapper that looks for unused parameters fails, empty where it does not: it takes those for unused that the
    program reads beside the forward pass (a temperature, weights of losses), and they get a gradient after all."""
    held = {
        target.attr
        for file in program.files
        for call in file.scan.calls
        if unused and (file.names.qualified(call.func) or "").startswith("torch.nn.")
        if isinstance(stored := parent(call), ast.Assign)
        for target in of_kind(ast.Attribute, stored.targets)
    }
    for file in program.files if held else ():
        for node in by_place(each for name in held for each in file.scan.attributes.get(name, ())):
            if isinstance(node.ctx, ast.Load) and plain_name(node.value) != "self":
                return f"{ast.unparse(node)} is read in line {node.lineno}, outside the forward pass"
    return ""


def _run_twice(passes: Passes, unused: frozenset[Variable]) -> str:
    """Why it fails too: it looks for what a pass leaves out behind each of them, and takes the other's for that."""
    again = (spelled(origin) for origin in unused if passes.forwards.get(origin, 0) > 1)
    return next((f"{name} runs twice for a backward pass, and may leave a layer out" for name in again), "")


def _unused(models: Models) -> frozenset[Variable]:
    """Models of the program with a layer that a forward pass may leave out."""
    values = [(origin, value) for origin in models.origins for value in models.program.values.get(origin, ())]
    return frozenset(
        origin
        for origin, value in values
        for call in inner_nodes(value.node, ast.Call)
        if leaves_layers_out(models.program, models.program.callee(value.file, call))
    )
