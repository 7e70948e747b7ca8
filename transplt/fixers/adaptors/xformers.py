"""`attention`: the attention of xformers and what public code uses beside it come from the project's own functions.

Source: xformers (facebookresearch/xformers@ca6d2aa0), xformers/ops.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.adaptors.package import Package, turn_package
from transplt.fixers.adaptors.package_probes import turn_probes
from transplt.fixers.adaptors.writer import writer_for

fixer = Fixer(__name__, code="NPU873", rank=-89, theme="adapt:attention", needs=(b"xformers",), value="(?:package)?",
              example="package")  # fmt: skip

_MASKS = (
    "AttentionBias", "BlockDiagonalCausalFromBottomRightMask", "BlockDiagonalCausalMask", "BlockDiagonalMask",
    "LocalAttentionFromBottomRightMask", "LowerTriangularFromBottomRightLocalAttentionMask",
    "LowerTriangularFromBottomRightMask", "LowerTriangularMask", "LowerTriangularMaskWithTensorBias",
)  # fmt: skip
_OPS = ("AttentionBias", "LowerTriangularMask", "SwiGLU", "index_select_cat", "memory_efficient_attention",
        "scaled_index_add", "swiglu")  # fmt: skip
XFORMERS = Package(
    "xformers",
    {
        **{f"xformers.ops.{name}": name for name in _OPS},
        "xformers.ops.AttentionMask": "AttentionBias",
        **{f"xformers.ops.fmha.{name}": name for name in (*_MASKS, "memory_efficient_attention")},
        **{f"xformers.ops.fmha.attn_bias.{name}": name for name in _MASKS},
        **{f"xformers.ops.swiglu_op.{name}": name for name in ("SwiGLU", "swiglu")},
    },
    {},
    {"xformers.ops.unbind": "torch.unbind"},
)


@fixer.on(ast.Module)
def attention_of_xformers(work: Work, tree: ast.Module) -> Finds:
    """Take from the helper what a file takes from xformers."""
    writer = writer_for(work, fixer)
    if writer is not None:
        turned = turn_package(writer, XFORMERS, fixer.code, ("NPU510",))
        turn_probes(writer, XFORMERS, fixer.code, turned=turned)
        yield from writer.found
