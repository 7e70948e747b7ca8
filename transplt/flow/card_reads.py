"""Attributes whose read needs CUDA: properties of a card that an NPU has not, the version of CUDA taken apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.flow.callees import FOREIGN
from transplt.flow.code import Needs
from transplt.flow.shown import only_shown
from transplt.flow.slots import Slots
from transplt.syntax.asks import last_name
from transplt.syntax.names import assigned_value
from transplt.syntax.scan import parent

#: Attributes of device properties without a value on an NPU: fixers/codemods/gates.py says what to ask instead.
_NO_PROPERTIES = frozenset(
    "major minor multi_processor_count max_threads_per_multi_processor max_threads_per_block warp_size "
    "regs_per_multiprocessor shared_memory_per_block shared_memory_per_block_optin "
    "shared_memory_per_multiprocessor".split()
)
#: What gives the properties of a card, in an output that is read again too.
_PROPERTIES = ("torch.cuda.get_device_properties", "torch.npu.get_device_properties")
#: Attributes whose read may need something of CUDA.
READ_ATTRIBUTES = _NO_PROPERTIES | {"CUDA", "cuda"}


def needed_by_read(slots: Slots, node: ast.Attribute) -> Iterator[Needs]:
    """What the read of an attribute needs: a property that an NPU lacks, a device of another framework."""
    if node.attr == "CUDA":
        full = slots.names.qualified(node) or ""
        if full.partition(".")[0] in FOREIGN:
            yield Needs(full)
    elif node.attr in _NO_PROPERTIES and not only_shown(node) and _are_properties(slots, node.value):
        yield Needs(f"the {node.attr} of a card")
    elif node.attr == "cuda" and slots.names.qualified(node) == "torch.version.cuda" and _is_taken_apart(node):
        yield Needs("torch.version.cuda")


def _are_properties(slots: Slots, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        found = slots.names.lookup(node.id, slots.scan.scope_of(node))
        value = assigned_value(found[1][0].node) if found is not None and len(found[1]) == 1 else None
        if value is None:
            return False
        node = value
    return isinstance(node, ast.Call) and slots.names.qualified(node.func) in _PROPERTIES


def _is_taken_apart(node: ast.Attribute) -> bool:
    """True for a version that something is done with which fails where there is none."""
    above = parent(node)
    if isinstance(above, ast.Attribute):
        return isinstance(parent(above), ast.Call)
    if isinstance(above, ast.Compare):
        return any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in above.ops)
    if isinstance(above, ast.Call):
        return last_name(above.func) in ("parse", "Version", "LooseVersion", "StrictVersion", "int", "float")
    return isinstance(above, ast.Subscript)
