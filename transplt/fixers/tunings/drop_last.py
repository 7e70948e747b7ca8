"""`drop-last`: the last, smaller batch of an epoch is left out of training, so that all steps see the same shapes.

Only loaders that nothing else reads than loops that train: a validation needs all of its data.
"""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import writer_for
from transplt.fixers.tunings.data_loader import API, PLACES, argument_of, is_constant
from transplt.fixers.tunings.keywords import add_keyword
from transplt.fixers.tunings.reading import WRAPPERS, Reader, Reading, reading
from transplt.program.program import File, Variable, enclosing_function
from transplt.program.steps import is_backward_pass
from transplt.program.training import Loader
from transplt.program.variable_values import uses
from transplt.syntax.nodes import argument_at, keyword_of, lacks, last_name, nodes_in
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU757", rank=330, theme="tune:drop-last", needs=(b"DataLoader",))

_MESSAGE = "all batches of an epoch have the same shape; an incomplete last batch is skipped"


@on_file(fixer, writer_for)
def batches_of_one_shape(work: Work, writer: Writer) -> None:
    """Look at the loaders of a file with which something trains."""
    found = reading(work)
    for loader in found.loaders_in(work.scan.path):
        call = loader.call
        if not _batches(loader) or not _only_trains(found, loader):
            continue
        if divided := _share_of_all(found, loader):
            writer.left(
                call,
                "drop_last=True would skip data, and the script divides by the size of the dataset in line "
                f"{divided.lineno}",
                "divide by the number of samples used, then pass drop_last=True",
                fixer.code,
            )
            continue
        add_keyword(writer, call, fixer.code, _MESSAGE, "drop_last", "True", api=API)


def _batches(loader: Loader) -> bool:
    """True for a loader that makes batches of several samples of a dataset and sets nothing for the last one."""
    call = loader.call
    if loader.by_key or not lacks(call, "drop_last", PLACES["drop_last"]):
        return False
    size = argument_of(call, "batch_size")
    if (
        size is None
        or is_constant(size, None, 1)
        or not (lacks(call, "batch_sampler", 4) or is_constant(argument_of(call, "batch_sampler"), None))
    ):
        return False
    dataset = argument_at(call, 0, "dataset")
    made = last_name(dataset.func) if isinstance(dataset, ast.Call) else ""
    return made != "Subset"  # of a few samples, to try something out


def _only_trains(found: Reading, loader: Loader) -> bool:
    """True when loops that train read a loader, and nothing else is handed it."""
    readers = found.readers[id(loader.call)]
    named = any(loader.call is each.call for _, _, loaders in found.training.loops for each in loaders)
    if not named or not all(_trains(found, reader) and len(found.read_by[id(reader.node)]) == 1 for reader in readers):
        return False  # a loop over several loaders may validate with one of them
    if _made_for_several(found, loader):
        return False
    slots, whole = found.held(loader.call)
    return whole and all(_known(found, file, node) for file, node in uses(found.program, slots))


def _trains(found: Reading, reader: Reader) -> bool:
    """True for a loop with a backward pass in it, or in a function that it calls and that is in sight."""
    if reader.loop is None or not reader.trains:
        return False
    calls = (node for node in nodes_in(reader.loop.body) if isinstance(node, ast.Call))
    functions = found.training.functions
    return any(is_backward_pass(call) or found.program.callee(reader.file, call) in functions for call in calls)


def _made_for_several(found: Reading, loader: Loader) -> bool:
    """True for a loader that a function makes which is called more than once."""
    function = enclosing_function(loader.call)
    seen: set[ast.AST] = set()
    while function is not None and function not in seen:
        seen.add(function)
        sites = found.program.call_sites.get(function, [])
        if len(sites) > 1:
            return True
        function = enclosing_function(sites[0][1]) if sites else None
    return False


def _known(found: Reading, file: File, node: ast.expr) -> bool:
    above = parent(node)
    match parent(above) if isinstance(above, ast.keyword) else above:
        case ast.Call(func=func) as call if func is not node:
            last = last_name(func)
            return last in WRAPPERS or last in ("len", "next", "print") or found.program.callee(file, call) is not None
    return True


def _share_of_all(found: Reading, loader: Loader) -> ast.expr | None:
    """A division by the size of the loader's dataset: what is summed up over fewer samples then comes out too small."""
    program = found.program
    dataset = loader.call.args[0] if loader.call.args else keyword_of(loader.call, "dataset")
    wanted: set[Variable | None] = {*found.held(loader.call)[0]}
    named = isinstance(dataset, (ast.Name, ast.Attribute))
    same = {id(node) for _, node in found.others(loader.file, dataset)} if named and dataset is not None else set()
    for file in program.files:
        for call in file.scan.calls:
            match call:
                case ast.Call(func=ast.Name(id="len"), args=[sized]) if _divides(parent(call), call):
                    if id(sized) in same or (_is_data(sized) and program.slot(file, _owner(sized)) in wanted):
                        return call
    return None


def _divides(above: ast.AST, node: ast.expr) -> bool:
    """True for `x / node` and `x /= node`."""
    match above:
        case ast.BinOp(op=ast.Div(), right=by) | ast.AugAssign(op=ast.Div(), value=by):
            return by is node
    return False


def _is_data(node: ast.expr) -> bool:
    """True for what a loader draws from, whose length is that of the dataset."""
    return isinstance(node, ast.Attribute) and node.attr in ("dataset", "sampler", "data_source")


def _owner(node: ast.expr) -> ast.expr:
    """`loader` of `loader.dataset` and `loader.batch_sampler.sampler`."""
    while isinstance(node, ast.Attribute) and (_is_data(node) or node.attr == "batch_sampler"):
        node = node.value
    return node
