"""What the boxed kernel must know about an operator, read once from its schema."""

from __future__ import annotations

from typing import Any

import torch

#: Operators whose CPU-tensor arguments are legal next to device tensors on real hardware.
MIXED_OK = {
    "aten::_copy_from", "aten::copy_", "aten::_to_copy", "aten::index.Tensor", "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::index_put", "aten::_unsafe_index.Tensor", "aten::_unsafe_index_put", "aten::_local_scalar_dense",
    "aten::_copy_from_and_resize", "aten::repeat_interleave.self_Tensor",
    "aten::tensor_split.tensor_indices_or_sections",
    "aten::set_.source_Tensor", "aten::_has_compatible_shallow_copy_type", "aten::_pack_padded_sequence",
    "aten::_pad_packed_sequence", "aten::_ctc_loss.Tensor", "aten::_ctc_loss_backward.Tensor", "aten::ctc_loss.Tensor",
    "aten::_pack_padded_sequence_backward",
}  # fmt: skip
#: Besides pointwise operators, these take a 0-dim CPU tensor as their scalar.
SCALAR_OK = {
    "aten::fill_.Tensor", "aten::masked_fill_.Tensor", "aten::masked_fill.Tensor", "aten::index_fill_.int_Tensor",
    "aten::index_fill.int_Tensor", "aten::fill.Tensor", "aten::where.self", "aten::bucketize.Scalar",
}  # fmt: skip
_INDEXING = {"aten::index.Tensor", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index.Tensor"}
_FUSED = ("aten::_foreach", "aten::_fused_", "aten::_amp_")
#: Operators that take a Python number where their schema has a Tensor.
_NUMBERS_OK = {"add", "sub", "mul", "div", "true_divide", "floor_divide", "divide", "multiply", "subtract", "rsub"}


class OperatorInfo:
    """One operator overload. `written[i]` names the argument that result i is (in-place and out= operators)."""

    __slots__ = (
        "arguments",
        "fused",
        "generator",
        "index_like",
        "is_out",
        "mixed_ok",
        "name",
        "number_positions",
        "pointwise",
        "random",
        "results",
        "written",
    )

    def __init__(self, op: Any) -> None:
        schema = op._schema
        self.name: str = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        self.arguments: list[str] = [a.name for a in schema.arguments]
        self.generator = next((i for i, a in enumerate(schema.arguments) if "Generator" in str(a.type)), None)
        takes_numbers = schema.name.partition("::")[2].rstrip("_") in _NUMBERS_OK
        self.number_positions: tuple[int, ...] = (
            ()
            if takes_numbers
            else tuple(i for i, a in enumerate(schema.arguments) if str(a.type) in ("Tensor", "Optional[Tensor]"))
        )
        self.random = torch.Tag.nondeterministic_seeded in op.tags
        self.pointwise = torch.Tag.pointwise in op.tags or self.name in SCALAR_OK
        self.fused = self.name.startswith(_FUSED)
        self.mixed_ok = self.name in MIXED_OK
        self.index_like = self.name in _INDEXING
        self.is_out = any(a.is_out for a in schema.arguments)
        self.results = len(schema.returns)
        aliases = {
            alias: a.name
            for a in schema.arguments
            if a.alias_info is not None and a.alias_info.is_write
            for alias in a.alias_info.before_set
        }
        self.written: list[str | None] = [
            next((aliases.get(alias) for alias in r.alias_info.before_set), None)
            if r.alias_info is not None and r.alias_info.is_write
            else None
            for r in schema.returns
        ]
