"""Batch norms and wrappers that work over the replicas of DataParallel, by the names of the copies that projects carry.

A `SynchronizedBatchNorm2d` merges its statistics among the replicas of one process, and is a plain batch norm where
there is one: with one process per card it runs and normalises each card alone, and no message reports it. Sources:
github.com/vacancy/Synchronized-BatchNorm-PyTorch, github.com/zhanghang1989/PyTorch-Encoding (encoding/parallel.py).
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.syntax.nodes import attribute_of, called_name, last_name
from transplt.syntax.scan import parent

fixer = Fixer(
    __name__,
    code="NPU294",
    rank=370,
    words=("SynchronizedBatchNorm", "DataParallelModel", "DataParallelCriterion", "DataParallelWithCallback",
           "BalancedDataParallel", "patch_replication_callback", "InPlaceABNSync", "__data_parallel_replicate__"),
)  # fmt: skip

_KNOWN = re.compile("_?(?:SynchronizedBatchNorm|InPlaceABNSync)")
_NORMS = frozenset({*(f"SynchronizedBatchNorm{n}d" for n in (1, 2, 3)), "InPlaceABNSync"})
WRAPPERS = frozenset({
    "DataParallelModel", "DataParallelCriterion", "DataParallelWithCallback", "BalancedDataParallel",
    "patch_replication_callback",
})  # fmt: skip

#: What does nothing where there is one replica, as there is on an NPU: the port is to one process per card.
_IDLE = frozenset({*_NORMS, "patch_replication_callback"})
#: What makes no layer of a class that it is given, alone or in a tuple.
_ONLY_ASKED = frozenset({"super", "isinstance", "issubclass"})
_OVER_RANKS = frozenset({"all_reduce", "all_gather", "all_gather_into_tensor"})

_CONVERT = "start one process per card; torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) replaces plain batch norms"
_WRAP = "start one process per card, with torch.nn.parallel.DistributedDataParallel"


@fixer.on(ast.ClassDef)
def registers_replicas(work: Work, node: ast.ClassDef) -> Finds:
    """A layer whose replicas learn of each other by the method that DataParallelWithCallback and its like call."""
    if "__data_parallel_replicate__" in work.scan.scopes[node].bindings:
        at = node.bases[0] if node.bases else node.body[0]
        # one of a name that is known is reported where a layer is made of it
        level = Level.INFO if _KNOWN.match(node.name) else Level.MANUAL
        yield work.note(at, fixer.code, _merges(node.name), level=level, api=node.name, help=_CONVERT, blocks="slow")
        # what merges them stands in such layers, and only replicas call it
        work.withdraw_notes(lambda note: note.code == "NPU507" and note.api.startswith("torch.nn.parallel._functions"))


def _merges(name: str) -> str:
    return f"{name} merges statistics across replicas of DataParallel, which do not exist on NPUs"


def _is_another(work: Work, node: ast.expr, name: str) -> bool:
    """True for what goes by the name of such a layer, and is one of torch or, under a name of its own, of a package:
    `from apex.parallel import SyncBatchNorm as SynchronizedBatchNorm2d`, here or in the file it is taken from.
    """
    full = work.names.qualified(node)
    if full is None:
        return False
    if full.rpartition(".")[2] != name or full in work.project.renamed:
        return True
    known = work.project.canonical(full)
    return known.startswith("torch.") or known.rpartition(".")[2] not in _NORMS | WRAPPERS


@fixer.on(ast.Module)
def used_over_replicas(work: Work, tree: ast.Module) -> Finds:
    """One finding for each of the names that a file calls or hands on, at its first use."""
    for name in sorted(_NORMS | WRAPPERS):
        nodes: list[ast.expr] = [*work.scan.names.get(name, ()), *work.scan.attributes.get(name, ())]
        used = [
            node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load) and last_name(node) == name
            if _ONLY_ASKED.isdisjoint(map(called_name, (parent(node), parent(parent(node)))))
        ]
        # A class of the file whose methods exchange by torch.distributed has one process per card already.
        own = [each.node for each in work.scan.root.bindings.get(name, ()) if isinstance(each.node, ast.ClassDef)]
        sums = any(attribute_of(each) in _OVER_RANKS for node in own for each in ast.walk(node))
        if not used or _is_another(work, used[0], name) or sums:
            continue
        first = min(used, key=lambda node: (node.lineno, node.col_offset))
        runs = f"{name} runs replicas of a module on CUDA cards of one process"
        message, help_text = (_merges(name), _CONVERT) if name in _NORMS else (runs, _WRAP)
        blocks = "slow" if name in _IDLE else "later"
        yield work.note(first, fixer.code, message, api=name, help=help_text, blocks=blocks)
