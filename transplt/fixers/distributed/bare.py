"""Where the bare model is meant: `.module` of its wrapper."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.bench import Bench
from transplt.program.models import takes_wrapper
from transplt.program.program import enclosing_function, stores_of, text_of
from transplt.program.wraps import Wrap, before_wrap
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.asks import keyword_of
from transplt.syntax.files import names_and_attributes
from transplt.syntax.scan import parent, statement
from transplt.trees.calls import with_keyword

#: What DistributedDataParallel answers as the bare model does. Names of parameters and states are not among it.
FORWARDED = names_of(MODULE, "same_in_ddp") | names_of("torch.nn.parallel.DistributedDataParallel")


def write_bare(bench: Bench) -> None:
    """`.module` where the bare model is meant: its own attributes, its state, and where others get it."""
    file, models = bench.file, bench.models
    for node in names_and_attributes(file):
        if not isinstance(node.ctx, ast.Load):
            continue
        origin = models.origin(file, node)
        wrap = bench.wraps.get(origin) if origin else None
        if (
            origin is None
            or wrap is None
            or wrap.in_place
            or before_wrap(file, node, wrap)
            or not _means_bare(bench, node)
        ):
            continue
        text = _bare(bench, node)
        bench.change(node, "NPU337", f"{text}: the model inside of its wrapper", text)


def write_renewed(bench: Bench, wrap: Wrap) -> None:
    """A model that is assigned anew after it was wrapped, such as the best one loaded, goes into the wrapper."""
    for file, node in stores_of(bench.program, wrap.origin):
        if file is not bench.file or before_wrap(file, node, wrap):
            continue
        if file is wrap.file and enclosing_function(node) is not enclosing_function(wrap.after) and wrap.origin[1]:
            continue
        text = f"{text_of(file, node)}.module"
        bench.change(node, "NPU337", f"{text}: the new model goes into the wrapper", text)
        stored = statement(node)
        value = stored.value if isinstance(stored, ast.Assign) else None
        if not isinstance(value, ast.Call) or file.names.qualified(value.func) != "torch.load":
            continue
        if keyword_of(value, "map_location") is None and len(value.args) == 1:
            change = with_keyword("map_location", '"npu"')
            bench.change(value, "NPU334", "loaded to the card of the rank", change, writes_npu=True, beside=True)


def _bare(bench: Bench, node: ast.expr) -> str:
    """`model.module`; in a file that other scripts run, too, what serves without a wrapper."""
    text = text_of(bench.file, node)
    return f"{bench.call('bare')}({text})" if bench.shared else f"{text}.module"


def _means_bare(bench: Bench, node: ast.expr) -> bool:
    above = parent(node)
    if isinstance(above, ast.Attribute) and above.value is node:
        return above.attr not in FORWARDED
    if isinstance(above, ast.Call):
        return (
            node is not above.func and node in above.args and not takes_wrapper(bench.models, bench.file, above, node)
        )
    if isinstance(above, ast.keyword):
        call = parent(above)
        return isinstance(call, ast.Call) and not takes_wrapper(bench.models, bench.file, call, node)
    return isinstance(above, ast.Subscript) and above.value is node
