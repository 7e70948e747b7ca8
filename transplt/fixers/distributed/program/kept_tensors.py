"""Tensors that are kept over batches, and what a batch writes into them: rows by the number of a sample, a queue.

Each rank has its own batches, and in the next epoch other ones: what it has written of its own samples is not what
another rank finds there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from transplt.fixers.distributed.program.divergent_values import Varying, batch_of
from transplt.program.program import File, Variable, enclosing_function
from transplt.program.reached_functions import functions_run_from
from transplt.program.variable_values import values_of
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import attribute_of, by_place, called_name, inner_nodes, last_name, string_of
from transplt.syntax.scan import chain, parent, statement

#: Methods that write rows of a tensor at indices.
_BY_INDEX = frozenset({"index_copy_", "index_add_", "index_fill_", "scatter_", "scatter_add_"})
#: What an index goes through on its way.
_SAME = names_of(TENSOR, "to_card") | frozenset(
    "cpu long int numpy detach view reshape squeeze flatten contiguous tolist".split()
)
#: Parameters of a forward pass that is given the numbers of samples.
_NUMBERS = re.compile(r"(?:^|_)(?:ind(?:ex|exes|ices)?|idx|ids?)s?$", re.IGNORECASE)


class Rows(NamedTuple):
    """A statement that writes rows of a kept tensor at the numbers of samples (or classes) of a batch."""

    file: File
    stmt: ast.stmt
    table: ast.expr
    numbers: ast.expr


class KeptTensors:
    """What the batches of a program write into tensors that were made before them."""

    def __init__(self, varying: Varying) -> None:
        self.program = varying.program
        self.loops = [(file, loop) for file, loop, loaders in varying.training.loops if loaders]
        every = [(file, function) for file in self.program.files for function in file.scan.functions]
        forwards = [each for each in every if each[1].name == "forward"]
        self.each_batch = functions_run_from(self.program, [*self.loops, *forwards]).union(each for _, each in forwards)
        self.read = frozenset(_read_in(varying))
        self.buffers = {string_of(call.args[0]) for file in self.program.files for call in file.scan.calls
                        if last_name(call.func) == "register_buffer" and call.args}  # fmt: skip

    def rows(self) -> Iterator[Rows]:
        """The rows that batches write, by file and place."""
        for file in self.program.files if self.loops else ():
            for node in by_place([*file.scan.subscripts, *file.scan.calls]):
                match node:
                    case ast.Subscript(ctx=ast.Store(), value=table, slice=index) if not _is_slice(index):
                        pass
                    case ast.Call(func=ast.Attribute(value=table, attr=name), args=[_, index, *_]) if name in _BY_INDEX:
                        pass
                    case _:
                        continue
                axes = [_without_moves(each) for each in getattr(index, "elts", [index])]
                numbered, stmt = [self._is_number(file, each, 4) for each in axes], statement(node)
                if any(numbered) and self._is_kept(file, table):
                    # Behind other axes they number no rows, and counts of pairs are those of a share.
                    whole = numbered[0] and not (axes[1:] and isinstance(stmt, ast.AugAssign))
                    yield Rows(file, stmt, table, axes[0] if whole else index)

    def queues(self, file: File) -> Iterator[ast.expr]:
        """Where a batch is put into a kept tensor at a running place, or behind what is left of it."""
        for target in by_place(file.scan.subscripts) if self.loops else ():
            match target:
                case ast.Subscript(ctx=ast.Store(), value=table, slice=index) if _is_slice(index):
                    if self._is_kept(file, table):
                        yield target
        for store in by_place(file.scan.stores) if self.loops else ():
            parts = list(ast.walk(getattr(parent(store), "value", store)))
            joined = any(called_name(each) in ("cat", "concat") for each in parts)
            if joined and any(map(_is_slice, parts)) and self._runs_each_batch(file, store):
                slot = self.program.slot(file, store)
                if slot is not None and any(self.program.slot(file, each) == slot for each in parts):
                    yield store

    def _is_kept(self, file: File, table: ast.expr) -> bool:
        """True for what each batch writes to, where no batch has made it."""
        match table:
            case ast.Attribute(value=inside, attr="data"):
                table = inside
        if not self._runs_each_batch(file, table) or self.program.slot(file, table) is None:
            return False
        if attribute_of(table) in self.buffers:
            return True
        made = [(at, value) for at, value in values_of(self.program, file, table) if called_name(value)]
        tensors = all(_makes_tensor(at, value) for at, value in made)
        return bool(made) and tensors and not any(self._runs_each_batch(at, value) for at, value in made)

    def _runs_each_batch(self, file: File, node: ast.AST) -> bool:
        around = set(map(id, chain(node)))
        loops = (id(loop) for at, loop in self.loops if at is file)
        return enclosing_function(node) in self.each_batch or not around.isdisjoint(loops)

    def _is_number(self, file: File, index: ast.expr, depth: int) -> bool:
        """True for what a loader of the training gives, or what a forward pass that nobody is seen to call is given as
        the numbers of samples."""
        match index:
            case ast.Subscript(value=inside):  # batch["index"]
                index = inside
        slot = self.program.slot(file, index)
        if slot is None or slot in self.read or depth == 0:
            return slot in self.read
        given = self.program.values.get(slot, [])
        function = enclosing_function(index)
        if not given and function in self.each_batch:
            return _NUMBERS.search(slot[2]) is not None and any(each.arg == slot[2] for each in function.args.args)
        return any(self._is_number(each.file, _without_moves(each.node), depth - 1) for each in given)


def _read_in(varying: Varying) -> Iterator[Variable]:
    """The variables that a loop over training data gives what its loader yields."""
    for file, loop, loaders in varying.training.loops:
        match loop:
            case ast.For() | ast.AsyncFor() if loaders and (batch := batch_of(file, loop)) is not None:
                slots = (varying.program.slot(file, node) for node in inner_nodes(batch, ast.Name))
                yield from (slot for slot in slots if slot is not None)


def _without_moves(index: ast.expr) -> ast.expr:
    """`index` of `index.cpu().numpy()`."""
    while True:
        match index:
            case ast.Call(func=ast.Attribute(value=inside, attr=name)) if name in _SAME:
                index = inside
            case _:
                return index


def _is_slice(index: ast.AST) -> bool:
    """True for an index with a slice from or to somewhere in it."""
    return any(each.lower or each.upper for each in inner_nodes(index, ast.Slice))


def _makes_tensor(file: File, made: ast.expr) -> bool:
    """True for a call of torch or NumPy, or of a method of what one gives."""
    names = [file.names.qualified(each.func) or "" for each in inner_nodes(made, ast.Call)]
    return any(name.startswith(("torch.", "numpy.")) and not name.startswith("torch.nn.") for name in names)
