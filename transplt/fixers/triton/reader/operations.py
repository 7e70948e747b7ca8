"""The operations of Triton's language as kernels call them: by which parameters, and what each place gives them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.fixers.triton.reader.values import KernelValue

#: The parameters of operations by which they are read here; those not listed take `input` alone.
PARAMETERS = {
    name: tuple(names.split())
    for name, names in {
        "load": "pointer mask other boundary_check padding_option",
        "store": "pointer value mask boundary_check",
        "atomic_add": "pointer val mask sem scope",
        "atomic_and": "pointer val mask sem scope",
        "atomic_max": "pointer val mask sem scope",
        "atomic_min": "pointer val mask sem scope",
        "atomic_or": "pointer val mask sem scope",
        "atomic_xchg": "pointer val mask sem scope",
        "atomic_xor": "pointer val mask sem scope",
        "atomic_cas": "pointer cmp val sem scope",
        "make_block_ptr": "base shape strides offsets block_shape order",
        "make_tensor_descriptor": "base shape strides block_shape",
        "load_tensor_descriptor": "desc offsets",
        "store_tensor_descriptor": "desc offsets value",
        "advance": "base offsets",
        "arange": "start end",
        "zeros": "shape dtype",
        "full": "shape value dtype",
        "zeros_like": "input",
        "cast": "input dtype fp_downcast_rounding bitcast",
        "dot": "input other acc input_precision allow_tf32 max_num_imprecise_acc out_dtype",
        "dot_scaled": "lhs lhs_scale lhs_format rhs rhs_scale rhs_format acc",
        "sum": "input axis keep_dims",
        "xor_sum": "input axis keep_dims",
        "max": "input axis return_indices return_indices_tie_break_left keep_dims",
        "min": "input axis return_indices return_indices_tie_break_left keep_dims",
        "argmax": "input axis tie_break_left keep_dims",
        "argmin": "input axis tie_break_left keep_dims",
        "reduce": "input axis combine_fn keep_dims",
        "associative_scan": "input axis combine_fn reverse",
        "where": "condition x y",
        "maximum": "x y propagate_nan",
        "minimum": "x y propagate_nan",
        "clamp": "x min max propagate_nan",
        "fma": "x y z",
        "fdiv": "x y",
        "div_rn": "x y",
        "umulhi": "x y",
        "cdiv": "x div",
        "broadcast_to": "input shape",
        "expand_dims": "input axis",
        "join": "a b",
        "interleave": "a b",
        "split": "a",
        "cat": "input other can_reorder",
        "gather": "src index axis",
        "histogram": "input num_bins",
        "sort": "x dim descending",
        "topk": "x k dim",
        "rand": "seed offset",
        "randn": "seed offset",
        "randint": "seed offset",
        "inline_asm_elementwise": "asm constraints args dtype is_pure pack",
    }.items()
}
#: What operators are called.
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.USub: "neg", ast.Invert: "invert", ast.Not: "not",
}  # fmt: skip
ATOMICS = frozenset(name for name in PARAMETERS if name.startswith("atomic_"))


@dataclass(slots=True, eq=False)
class Operation:
    """One operation of a kernel, with the values it is given by the name of the parameter.

    `name` is that of the language (`load`, `add` for `+`, `lt` for `<`), `node` is a statement for `x += y`; `method`
    says that it is called on its first argument, `depth` in how many loops it stands.
    """

    name: str
    node: ast.expr | ast.stmt
    given: dict[str, KernelValue]
    nodes: dict[str, ast.expr]
    result: KernelValue
    depth: int
    method: bool = False

    @property
    def operands(self) -> list[KernelValue]:
        return list(self.given.values())


def nodes_of(name: str, call: ast.Call, first: ast.expr | None) -> dict[str, ast.expr]:
    """The arguments of a call by the names of parameters; `first` is what a method is called on."""
    names = PARAMETERS.get(name, ("input",))
    found: dict[str, ast.expr] = {}
    given = [*([] if first is None else [first]), *call.args]
    for index, node in enumerate(given):
        if isinstance(node, ast.Starred):
            break
        found[names[index] if index < len(names) else f"argument {index}"] = node
    found |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    return found
