"""The networks of a program by `torch.compile`, or all of it eagerly; and what Dynamo says: where the graph breaks, and
what was compiled again. The networks are the outermost modules with something to train that are called with gradients.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import torch

from .config import config
from .record import at_end, record
from .start import when_imported
from .user_code import is_user

#: Dynamo keeps the metrics of so many compilations; its own limit is 64.
_MOST = 4096
#: What Dynamo calls the rest of a function whose graph broke: why it was compiled again, the break says.
_BEHIND_A_BREAK = "torch_dynamo_resume_in_"
#: A network that is trained and evaluated is compiled for both.
_ALSO_EVALUATED = "grad_mode"
#: How many calls of networks lie in each other.
_depth = 0


def install() -> None:
    """Compile by the backend that the settings name, "eager": not at all; also what the program itself compiles."""
    plain = torch.compile

    @functools.wraps(plain)
    def compiling(model: Any = None, *args: Any, **named: Any) -> Any:
        kept = {name: named[name] for name in ("fullgraph", "dynamic") if name in named}
        return plain(model, **kept, backend=config.models, disable=config.models == "eager")

    torch.compile = compiling
    if config.models != "eager":
        _compile_networks()
        when_imported("torch._dynamo.utils", lambda utils: _keep_all(utils))
        at_end(_note)


def _compile_networks() -> None:
    module: Any = torch.nn.Module
    called = module.__call__

    @functools.wraps(called)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _depth
        if not _depth and self._compiled_call_impl is None and torch.is_grad_enabled() and _trains(self):
            self.compile()
        _depth += 1
        try:
            return called(self, *args, **kwargs)
        finally:
            _depth -= 1

    module.__call__ = call
    # What is called beside a graph is compiled by itself, not by what stands in front of every network here.
    code = module.__call__.__code__
    when_imported("torch._dynamo.eval_frame", lambda frames: frames.skip_code(code))


def _trains(module: Any) -> bool:
    return any(parameter.requires_grad for parameter in torch.nn.Module.parameters(module))


def _keep_all(utils: Any) -> None:
    if hasattr(utils, "set_compilation_metrics_limit"):  # from torch 2.3 on
        utils.set_compilation_metrics_limit(_MOST)
        os.register_at_fork(after_in_child=utils.clear_compilation_metrics)
    os.register_at_fork(after_in_child=utils.graph_break_reasons.clear)


def _note() -> None:
    """What Dynamo counted, into the record."""
    from torch._dynamo import utils

    found: dict[tuple[str, str, int, str], int] = {}
    graphs = 0
    for kind, path, line, why in (*_breaks(utils), *_compilations(utils)):
        graphs += kind == "graph"
        if kind != "graph" and is_user(path):
            key = kind, os.path.abspath(path), line, why
            found[key] = found.get(key, 0) + 1
    record.compiled = {
        "graphs": graphs,
        "found": [
            {"kind": kind, "path": path, "line": line, "why": why, "times": times}
            for (kind, path, line, why), times in found.items()
        ],
    }


def _breaks(utils: Any) -> Iterator[tuple[str, str, int, str]]:
    """The line of the user's own of each break of the graph, the innermost, and why it broke."""
    for each in utils.graph_break_reasons:
        own = [frame for frame in each.user_stack if is_user(frame.filename)]
        if each.graph_break and own:
            yield "break", own[-1].filename, own[-1].lineno or 0, _first(each.reason)


def _compilations(utils: Any) -> Iterator[tuple[str, str, int, str]]:
    """Functions that were compiled, those that were compiled again with the guard that failed, and those that were
    given up."""
    for each in getattr(utils, "get_compilation_metrics", list)():
        path, line = each.co_filename, each.co_firstlineno
        if path is None:
            continue  # of a backward pass
        if each.graph_op_count:
            yield "graph", path, line, ""
        if each.fail_reason:  # in a library: the break says which line of one's own called it
            place = each.fail_user_frame_filename or path, each.fail_user_frame_lineno or line
            yield "break", *place, _first(each.fail_reason)
        again = getattr(each, "recompile_reason", None)  # from torch 2.6 on
        if again and _ALSO_EVALUATED not in again and not each.co_name.startswith(_BEHIND_A_BREAK):
            yield "again", path, line, _first(again).partition(": ")[2]


def _first(reason: str) -> str:
    """The first line of what Dynamo says, without the source that it quotes."""
    return reason.strip().partition("\n")[0].partition("  #")[0].strip()
