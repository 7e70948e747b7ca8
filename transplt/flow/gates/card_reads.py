"""Attributes whose read needs CUDA: properties of a card that an NPU has not, the version of CUDA taken apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from transplt.flow.callees import FOREIGN
from transplt.flow.gates.code import Needs
from transplt.flow.only_shown import only_shown
from transplt.flow.slots import Slots
from transplt.syntax.conditions import implied
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent

#: Attributes of device properties without a value on an NPU: fixers/codemods/gates.py says what to ask instead.
_NO_PROPERTIES = frozenset(
    "major minor multi_processor_count max_threads_per_multi_processor max_threads_per_block warp_size "
    "regs_per_multiprocessor shared_memory_per_block shared_memory_per_block_optin "
    "shared_memory_per_multiprocessor".split()
)
#: What gives the properties of a card, in an output that is read again too.
_PROPERTIES = tuple(f"{of}.get_device_properties" for of in ("torch.cuda", "torch.npu", ".device_module"))
#: Attributes whose read may need something of CUDA.
READ_ATTRIBUTES = _NO_PROPERTIES | {"CUDA", "cuda", "hip"}
#: Versions that are None on an NPU (torch/version.py of a build for the CPU).
VERSIONS = ("torch.version.cuda", "torch.version.hip")


def needed_by_read(slots: Slots, node: ast.Attribute) -> Iterator[Needs]:
    """What the read of an attribute needs: a property that an NPU lacks, a device of another framework."""
    if node.attr == "CUDA":
        full = slots.names.qualified(node) or ""
        if full.partition(".")[0] in FOREIGN:
            yield Needs(full)
    elif node.attr in _NO_PROPERTIES and not only_shown(node) and _are_properties(slots, node.value):
        yield Needs(f"the {node.attr} of a card")
    elif node.attr in ("cuda", "hip") and _is_taken_apart(node):
        version = slots.names.qualified(node)
        if version in VERSIONS and not _is_asked_before(slots, node):
            yield Needs(version)


def _are_properties(slots: Slots, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        bindings = slots.names.bindings_of(node)
        value = assigned_value(bindings[0].node) if len(bindings) == 1 else None
        if value is None:
            return False
        node = value
    return isinstance(node, ast.Call) and (slots.names.qualified(node.func) or "").endswith(_PROPERTIES)


def _is_taken_apart(node: ast.Attribute) -> bool:
    """True for a version that something is done with which fails where there is none."""
    match above := parent(node):
        case ast.Attribute():
            return isinstance(parent(above), ast.Call)
        case ast.Compare():
            return any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in above.ops)
        case ast.Call():
            return last_name(above.func) in ("parse", "Version", "LooseVersion", "StrictVersion", "int", "float")
        case ast.BinOp(op=ast.Add()) | ast.AugAssign(op=ast.Add()):
            return True
        case ast.Subscript():
            return above.value is node
    return False


def _is_asked_before(slots: Slots, node: ast.Attribute) -> bool:
    """True where a condition around a version says that there is one: `if torch.version.hip: ... torch.version.hip`."""
    for inner, above in pairwise([node, *chain(node)]):
        if isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, ast.BoolOp):
            before = above.values[: above.values.index(inner)] if inner in above.values else []
            if any(_says_there_is(slots, each, isinstance(above.op, ast.And), node) for each in before):
                return True
        elif isinstance(above, (ast.If, ast.IfExp)) and inner is not above.test:
            body = above.body if isinstance(above.body, list) else [above.body]
            if _says_there_is(slots, above.test, inner in body, node):
                return True
    return False


def _says_there_is(slots: Slots, test: ast.expr, truth: bool, version: ast.Attribute) -> bool:
    """True where a test with a truth value means that a version is none of None."""
    full = slots.names.qualified(version)
    return any(says_there_is(slots, atom.node, atom.truth) == full for atom in implied(test, truth))


def says_there_is(slots: Slots, node: ast.expr, truth: bool = True) -> str:
    """The version of CUDA or ROCm that is there where a part of a condition has a truth value; empty for others."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=value)]):
            if value is not None or not isinstance(op, (ast.IsNot, ast.NotEq) if truth else (ast.Is, ast.Eq)):
                return ""
            node = left
        case _ if not truth:
            return ""
    full = slots.names.qualified(node) if isinstance(node, (ast.Attribute, ast.Name)) else None
    return full if full in VERSIONS else ""
