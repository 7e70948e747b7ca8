"""Where the bare model is meant: `.module` of its wrapper."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.current_program import Bench
from transplt.fixers.distributed.wrapper_questions import asks_for_wrapper, is_bare_here
from transplt.program.models import Models, takes_wrapper
from transplt.program.program import SAME_MODULE, File, Variable, enclosing_function, stores_of, text_of
from transplt.program.wrapper_places import Wrap, before_wrap
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.files import names_and_attributes
from transplt.syntax.nodes import call_of
from transplt.syntax.scan import parent, statement

#: What DistributedDataParallel answers as the bare model does. Names of parameters and states are not among it.
FORWARDED = names_of(MODULE, "same_in_ddp") | names_of("torch.nn.parallel.DistributedDataParallel")


def write_bare(bench: Bench) -> None:
    """`.module` where the bare model is meant: its own attributes, its state, and where others get it."""
    file, models = bench.file, bench.models
    for node in names_and_attributes(file):
        origin = models.origin(file, node) if isinstance(node.ctx, ast.Load) else None
        wrap = bench.wraps.get(origin) if origin else None
        if wrap is not None and not (wrap.in_place or before_wrap(file, node, wrap)) and _means_bare(bench, node):
            text = _bare(bench, node)
            bench.change(node, "NPU337", f"{text}: the model inside its wrapper", text)


def write_renewed(bench: Bench, wrap: Wrap) -> None:
    """A model that is assigned anew after it was wrapped, such as the best one loaded, goes into the wrapper.

    So does one that is taken out under its own name, `model = model.module`: the wrapper goes on exchanging gradients,
    and what follows asks it for the model. Where what follows stays as it is, so does this.
    """
    file, models = bench.file, bench.models
    for slot in [slot for slot, origin in models.wrapped.items() if origin == wrap.origin]:
        for at, node in stores_of(bench.program, slot):
            if at is not file or before_wrap(file, node, wrap):
                continue
            stored = statement(node)
            value = stored.value if isinstance(stored, ast.Assign) else None
            elsewhere = file is wrap.file and enclosing_function(node) is not enclosing_function(wrap.after)
            if value is not None and _taken_out(models, file, value) == slot:
                if bench.shared or wrap.in_place:
                    continue
            elif slot != wrap.origin or (elsewhere and slot[1]):
                continue
            text = f"{text_of(file, node)}.module"
            bench.change(node, "NPU337", f"{text}: the wrapper gets the new model", text)


def _bare(bench: Bench, node: ast.expr) -> str:
    """`model.module`; what serves without a wrapper too in a file that other scripts run, and for a variable that is
    given the model itself here and its wrapper there.
    """
    text, models = text_of(bench.file, node), bench.models
    slot = models.program.slot(bench.file, node)
    values = models.program.values.get(slot, ()) if slot is not None else ()
    either = any(_taken_out(models, value.file, value.node) not in (None, slot) for value in values)
    return f"{bench.call('bare')}({text})" if bench.shared or either else f"{text}.module"


def _taken_out(models: Models, file: File, value: ast.expr) -> Variable | None:
    """The variable out of whose wrapper a value takes the model: `model.module`, `getattr(model, "module", model)`."""
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return _taken_out(models, file, body) or _taken_out(models, file, orelse)
        case (
            ast.Attribute(value=model, attr="module")
            | ast.Call(func=ast.Name("getattr"), args=[model, ast.Constant("module"), *_])
        ) if models.origin(file, model) is not None:
            return models.program.slot(file, model)
    return None


def _means_bare(bench: Bench, node: ast.expr) -> bool:
    file = bench.file
    if asks_for_wrapper(bench.program, file, node) or is_bare_here(bench.program, file, node):
        return False
    match parent(node):
        case ast.IfExp(test=test, body=body, orelse=other) if node is not test:  # model.module if cards > 1 else model
            return _taken_out(bench.models, file, other if node is body else body) == bench.program.slot(file, node)
        case ast.Attribute() as asked:
            # Behind what gives itself: `state_dict` of `model.cpu().state_dict`.
            while asked.attr in SAME_MODULE and isinstance(more := parent(call_of(asked) or asked), ast.Attribute):
                asked = more
            return asked.attr not in FORWARDED
        case ast.Call(args=args) as call:
            return node in args and not takes_wrapper(bench.models, file, call, node)
        case ast.keyword() as keyword:
            taker = parent(keyword)
            return isinstance(taker, ast.Call) and not takes_wrapper(bench.models, file, taker, node)
        case ast.Subscript(value=value):
            return value is node
    return False
