"""Products of sparse matrices, where the text says that a factor is sparse: torch_npu has no kernel for them.

`mm` of sparse tensors is one function for CPUs and GPUs that calls `addmm`, for which torch_npu has no kernel
(VariableFallbackKernel.cpp raises); see rules/sparse.json, which names the functions of torch.sparse.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.program.followed_values import Traced
from transplt.program.program import File, enclosing_function, program_of
from transplt.program.tensor_types import TensorTypes
from transplt.program.tensors import CPU, Tensor
from transplt.rules.torch_callables import MODULE, TENSOR, names_of
from transplt.syntax.nodes import (
    arguments_of,
    attribute_of,
    begins,
    by_place,
    call_of,
    inner_nodes,
    keyword_of,
    last_name,
    plain_name,
)

fixer = Fixer(
    __name__,
    code="NPU526",
    rank=266,
    needs=(b"sparse",),
    words=("sparse_coo_tensor", "sparse_csr_tensor", "to_sparse", "sparse.FloatTensor"),
)

_MAKERS = frozenset({"torch.sparse_coo_tensor", "torch.sparse_csr_tensor", "torch.sparse.FloatTensor"})
_METHODS = frozenset({"to_sparse", "to_sparse_csr", "to_sparse_coo"})
#: Methods of a sparse tensor that give a sparse tensor.
_KEEPS = names_of(TENSOR, "to_card") | frozenset(
    "coalesce t transpose float double half to detach clone requires_grad_ type contiguous".split()
)
_PRODUCTS = ("mm", "matmul", "bmm", "mv", "addmm")
_OF_THE_CPU = frozenset({"torch.from_numpy", *(f"torch.{name}Tensor" for name in ("Float", "Double", "Long", "Int"))})
_HELP = (
    "call to_dense() before the matrix goes to the card, or compute this product on the CPU, or replace it by "
    "torch.index_add or scatter_add over the edges"
)


class _Sparse(Traced):
    """The sparse tensors of a program."""

    def made(self, file: File, node: ast.expr) -> bool:
        """True for what makes a sparse tensor, and for methods that leave it sparse."""
        if not isinstance(node, ast.Call):
            return False
        full = (file.names.qualified(node.func) or "").replace("torch.cuda.sparse.", "torch.sparse.")
        if full in _MAKERS:
            return not any(_says_cpu(each) for each in arguments_of(node))
        func = node.func
        if not isinstance(func, ast.Attribute) or full.startswith("torch."):
            return False
        if func.attr in _METHODS:
            return True
        return func.attr in _KEEPS and not any(map(_says_cpu, node.args)) and self.is_one(file, func.value)


@fixer.on(ast.Module)
def products(work: Work, tree: ast.Module) -> Finds:
    """Report each product with a factor that certainly is sparse, unless the other one lies on the CPU."""
    near = _matrix_products(work)
    if not near:
        return
    program = program_of([work.file], work.project)
    sparse, types = _Sparse(program), TensorTypes(program)
    for node, name, factors in near:
        if not any(sparse.is_one(work.file, each) for each in factors):
            continue
        if any(_is_on_cpu(work, types, value) for each in factors for value in _values(each, node)):
            continue
        message = f"{name} has no kernel for sparse tensors in torch_npu"
        yield work.note(node, fixer.code, message, api=name, help=_HELP, effort=Effort.MEDIUM)


def _is_on_cpu(work: Work, types: TensorTypes, value: ast.expr) -> bool:
    """True for a tensor of the CPU; so is each of the types that only the CPU has, and of an array of NumPy."""
    full = work.names.qualified(value.func) if isinstance(value, ast.Call) else None
    known = types.of(work.file, value)
    return (isinstance(known, Tensor) and known.device == CPU) or full in _OF_THE_CPU


def _values(factor: ast.expr, product: ast.expr) -> Iterator[ast.expr]:
    """A factor, and what its name was given above in a function that has moved nothing to a card so far."""
    yield factor
    function = enclosing_function(product)
    if not isinstance(factor, ast.Name) or function is None:
        return
    above = [each for each in inner_nodes(function, ast.Call) if begins(each) < begins(product)]
    moved = names_of(TENSOR, "to_card") | names_of(MODULE, "to_card") | {"to", "npu"}
    if any(attribute_of(each.func) in moved or keyword_of(each, "device") is not None for each in above):
        return
    for each in inner_nodes(function, ast.Assign):
        if begins(each) < begins(product) and any(plain_name(target) == factor.id for target in each.targets):
            yield each.value


def _matrix_products(work: Work) -> list[tuple[ast.expr, str, list[ast.expr]]]:
    """The matrix products of a file that makes sparse tensors: the node to point at, its name, its factors."""
    found: list[tuple[ast.expr, str, list[ast.expr]]] = []
    made = {*_METHODS, *(name.rpartition(".")[2] for name in _MAKERS)}
    if not any(work.scan.attributes.get(name) or work.scan.names.get(name) for name in made):
        return found
    for last in _PRODUCTS:
        for func in (*work.scan.attributes.get(last, ()), *work.scan.names.get(last, ())):
            call, full = call_of(func), work.names.qualified(func)
            if call is not None and full in (None, f"torch.{last}"):
                factors = arguments_of(call)
                if full is None:
                    factors += [func.value] if isinstance(func, ast.Attribute) else []
                found.append((func, f"torch.{last}", factors))
    for node in ast.walk(work.scan.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.append((node, "torch.matmul", [node.left, node.right]))
    order = {id(node): index for index, node in enumerate(by_place(node for node, _, _ in found))}
    return sorted(found, key=lambda each: order[id(each[0])])


def _says_cpu(node: ast.expr) -> bool:
    """True for "cpu" and `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and last_name(node.func) == "device" and node.args:
        node = node.args[0]
    return isinstance(node, ast.Constant) and node.value == "cpu"
