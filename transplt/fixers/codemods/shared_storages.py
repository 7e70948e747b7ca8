"""Storages that processes share through CUDA's handles: torch_npu has none of these methods.

Source: torch/storage.py and torch/multiprocessing/reductions.py (`_share_cuda_`, `_new_shared_cuda`); torch_npu shares
NPU tensors by reductions of its own (torch_npu/multiprocessing/reductions.py), which these calls by name pass by.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work

fixer = Fixer(__name__, code="NPU274", rank=430)

_METHODS = (
    "_share_cuda_", "_new_shared_cuda", "_release_ipc_counter", "_release_ipc_counter_cuda", "_new_with_weak_ptr_cuda",
)  # fmt: skip


@fixer.on(ast.Attribute, last=_METHODS)
def shares_a_storage_of_cuda(work: Work, node: ast.Attribute) -> Finds:
    """Report the methods by name: whatever hangs there is a storage."""
    if work.take(node):
        yield work.note(
            node,
            fixer.code,
            f"`.{node.attr}` shares the memory of a CUDA storage with another process",
            api=f"torch.UntypedStorage.{node.attr}",
            help="pass the tensor itself to the other process (torch.multiprocessing), or copy it through the CPU",
            effort=Effort.MEDIUM,
        )
