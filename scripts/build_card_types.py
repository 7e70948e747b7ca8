"""Builds rules/support/card_types.json from scripts/facts/card_types.json and what was read by hand.

    python scripts/build_card_types.py

The facts are those of `read_card_types.py`; BY_HAND are operators whose C++ it does not follow, read by a person, with
the place of each list. The output is the same for the same input.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import build_api_support  # noqa: E402
import fact_store  # noqa: E402

Row = dict[str, Any]
#: Operators that are handed what the card's own operators gave.
_GIVEN = re.compile(r"backward|max_unpool|_pad_packed_sequence|_masked_scale")
#: The cards whose operators are always functions of CANN (aclnn). On others `jit_compile`, on by default, takes
#: another way, of which no source is read.
CARDS = ("910B", "A3", "950")
_HALF = "float32 float16 bfloat16"
_REST = "float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex32 complex64 complex128"
_COMPLEX = "complex32 complex64 complex128"
#: Operators that are not followed: (operators with their function of CANN, types refused, types taken, source).
BY_HAND: tuple[tuple[dict[str, str], str, str, str], ...] = (
    (
        {"mm": "aclnnMm", "bmm": "aclnnBatchMatMul", "addmm": "aclnnAddmm", "baddbmm": "aclnnBaddbmm", "mv": "aclnnMv"},
        _REST, _HALF,
        "ops-nn: matmul/common/op_host/op_api/matmul_util.cpp (CheckDtypeValid), mat_mul_v3/op_host/op_api/"
        "aclnn_addmm.cpp, batch_mat_mul_v3/op_host/op_api/aclnn_baddbmm.cpp and aclnn_batch_matmul.cpp; op-plugin "
        "calls them unchecked; documentation of torch_npu: torch.mm, torch.bmm, torch.addmm, torch.baddbmm, torch.mv",
    ),
    (
        {"_index_put_impl_": "aclnnIndexPutImpl", "index_put_": "aclnnIndexPutImpl"}, _COMPLEX, "",
        "ops-nn: index/index_put_v2/op_api/aclnn_index_put_impl.cpp (DTYPE_SUPPORT_LIST); a mask and one value go to "
        "masked_fill_, which refuses them too: ops-math: conversion/masked_fill/op_api/aclnn_masked_fill_scalar.cpp",
    ),
    (
        {"dot": "aclnnDot"}, f"float64 int16 int64 uint16 uint32 uint64 bool {_COMPLEX}", f"{_HALF} int8 int32 uint8",
        "ops-math: math/dot/op_api/aclnn_dot.cpp (ASCEND910B_DTYPE_DTYPE_SUPPORT_LIST)",
    ),
    (
        {"addmv": "aclnnAddmv"}, _COMPLEX, "",
        "ops-nn: matmul/addmv/op_host/op_api/aclnn_addmv.cpp (addmvDtypeSupportList has float64 and integers)",
    ),
    (
        {"convolution_overrideable": "aclnnConvolution"}, _REST, _HALF,
        "ops-nn: matmul/common/op_host/op_api/cube_util.cpp (GetDtypeSupportListBySocVersion), used by conv/"
        "convolution_forward/op_host/op_api/aclnn_convolution.cpp; PyTorch makes real convolutions of complex ones",
    ),
    (
        {
            "native_batch_norm": "aclnnBatchNorm", "native_layer_norm": "aclnnLayerNorm",
            "native_group_norm": "aclnnGroupNorm", "batch_norm_elemt": "aclnnBatchNormElemt",
            "batch_norm_stats": "aclnnBatchNormReduce",
        },
        _REST, _HALF,
        "ops-nn: norm/batch_norm_v3/op_host/op_api/aclnn_batch_norm.cpp, norm/layer_norm_v4/op_host/op_api/"
        "aclnn_layer_norm.cpp, norm/group_norm/op_host/op_api/aclnn_group_norm.cpp, norm/batch_norm_elemt/op_host/"
        "op_api/aclnn_batch_norm_elemt.cpp, norm/bn_training_reduce/op_api/aclnn_batch_norm_reduce.cpp",
    ),
)  # fmt: skip


def table(facts: Row) -> Row:
    """The compact table: lists of types once, rows of indices, operators -> argument -> cards -> row."""
    lists: dict[str, int] = {}
    rows: dict[tuple[Any, ...], int] = {}
    paths: dict[str, str] = {}

    def listed(types: str) -> int:
        return lists.setdefault(types, len(lists)) if types else -1

    def indexed(row: Row) -> int:
        function = row.get("function", "")
        if function:
            paths[function] = row["path"]
        key = (
            function, row.get("argument", ""), listed(row.get("refuses", "")), listed(row.get("takes", "")),
            listed(row.get("cpu", "")),
        )  # fmt: skip
        return rows.setdefault(key, len(rows))

    newest = max((each.split(":")[0] for each in facts["followed"]), key=fact_store.key)
    operators: dict[str, dict[str, dict[str, int]]] = {}
    for name, arguments in facts["operators"].items():
        for argument, found in arguments.items():
            # What another operator of the card gave has its type there: a mask of int8, say, where a CPU has indices.
            if argument in INDICES and _GIVEN.search(name):
                continue
            by_cards: dict[str, int] = {}
            for row in found:
                cards = [card for card in CARDS if f"{newest}:{card}" in row["on"].split()]
                if cards:
                    by_cards[" ".join(cards)] = indexed(row)
            if by_cards:
                operators.setdefault(name, {})[argument] = by_cards
    kernels = fact_store.operators()["official"]
    for name in [name for name in operators if name.endswith(("out", "_out"))]:
        base, _, overload = name.partition(".")
        functional = f"{base}.{overload[:-4]}" if overload.endswith("_out") else base
        # PyTorch makes one of the other where torch_npu registers none (structured kernels).
        if functional not in kernels and functional not in operators:
            operators[functional] = {key: row for key, row in operators[name].items() if "out" not in key}
    for names, refuses, takes, path in BY_HAND:
        for name, function in names.items():
            row = {"function": function, "refuses": refuses, "takes": takes, "path": path}
            operators[name] = {"any": {" ".join(CARDS): indexed(row)}}
    return {
        "_meta": {
            "about": "Types of tensors that operators of an NPU refuse, or compute on the AI CPU of the card, right "
            "and slow. operators -> argument (`*`: all tensors that are computed with have the type; `any`: any of "
            "them) -> cards -> row: [function of CANN, its argument, types refused, list of types in the source, types "
            "on the AI CPU], the last three as indices of `lists`, -1 for none. An operator, argument or type "
            "that is not here is not known to be refused.",
            "sources": facts["sources"],
            "licence": "facts of sources under the CANN Open Software License 2.0 (CANN) and BSD-3-Clause (op-plugin)",
        },
        "places": sorted(set(INDICES)),
        "lists": list(lists),
        "rows": [list(row) for row in rows],
        "paths": dict(sorted(paths.items())),
        "operators": dict(sorted(operators.items())),
    }


#: Arguments that are positions, masks and lengths: not among those that are computed with.
INDICES = (
    "index indices index1 index2 mask condition target targets offsets repeats row col batch1_ids sorter self_indices "
    "boundaries input_lengths target_lengths crow_indices col_indices attn_mask padding_mask lengths"
).split()


def main(rules: Path = ROOT / "rules") -> None:
    """Write the table."""
    made = table(fact_store.read("card_types"))
    build_api_support.write(rules / "support" / "card_types.json", made, by_line=("lists", "rows"))


if __name__ == "__main__":
    main()
