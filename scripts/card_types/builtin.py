"""What functions, methods and constants of ATen and CANN mean for types; None or UNKNOWN for all others."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from .sources import text_of
from .values import (
    ATEN,
    CANN,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NULL,
    SOCS,
    SOME,
    UNKNOWN,
    Chip,
    Dtype,
    Options,
    Tensor,
    Types,
    Value,
    Word,
    promoted,
)

#: Methods of a tensor that give one of its type.
_SAME = frozenset(
    "contiguous view reshape squeeze unsqueeze expand clone transpose permute detach narrow select slice flatten t "
    "view_as expand_as alias begin end cbegin cend front back at as_strided masked_fill index_select "
    "value get data toTensor".split()
)
_MAKES = frozenset(
    "apply_tensor_without_format apply_tensor apply_tensor_with_format apply_tensor_with_sizes empty zeros ones full "
    "empty_like zeros_like ones_like full_like ApplyTensor ApplyTensorWithFormat".split()
)
#: The order in which torch_npu compares chips (NpuVariables.h): the names in op-plugin, and the cards followed.
_TORCH_ORDER = {
    "ASCEND910": 102, "ASCEND310P": 202, "ASCEND910B": 221, "ASCEND910_93": 250, "ASCEND950": 260,
    "Ascend310P1": 200, "Ascend910B1": 220, "Ascend310B1": 240, "Ascend310B4": 243, "Ascend910_9391": 250,
    "Ascend950": 260,
}  # fmt: skip
_LIKE = frozenset("Contiguous ViewCopy ReFormat Reshape Transpose UnsqueezeNd SqueezeNd BroadcastTo".split())
_CASTS = frozenset({"npu_dtype_cast", "_npu_dtype_cast", "npu_dtype_cast_backward"})
_OF_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def name_in(node: Node) -> str:
    """The name that a declarator declares."""
    while node.type not in ("identifier", "field_identifier"):
        inner = node.child_by_field_name("declarator")
        if inner is None:
            named = (each for each in node.named_children if "identifier" in each.type or "declarator" in each.type)
            inner = next(named, None)
        if inner is None:
            return text_of(node)
        node = inner
    return text_of(node)


def assigned_in(node: Node) -> Iterator[str]:
    """Names that are assigned anywhere below a node."""
    stack = [node]
    while stack:
        each = stack.pop()
        if each.type == "assignment_expression":
            left = each.child_by_field_name("left")
            if left is not None and left.type == "identifier":
                yield text_of(left)
        stack += each.named_children


def constant(text: str) -> Value | None:
    """A constant by its written name: a type, an architecture, a chip."""
    owner, _, last = text.rpartition("::")
    if last.startswith("DT_"):
        return Dtype(CANN.get(last[3:], last))
    if last in ("ACL_FLOAT", "ACL_DOUBLE"):
        return Dtype("float32" if last == "ACL_FLOAT" else "float64")
    if last[:1] == "k" and last[1:] in ATEN:
        return Dtype(ATEN[last[1:]])
    if owner.endswith("ScalarType") and last in ATEN:
        return Dtype(ATEN[last])
    if owner.endswith("SocVersion") and last.startswith("Ascend"):
        return _TORCH_ORDER.get(last, UNKNOWN)
    if owner.endswith(("NpuArch", "SocVersion")):
        return Word(owner.rpartition("::")[2], last)
    return None


def compared(sign: str, one: Value, other: Value) -> Value:
    """The outcome of a comparison; UNKNOWN where a side is not known."""
    if NULL in (one, other) and sign in ("==", "!="):
        if one is NULL and other is NULL:
            return sign == "=="
        return sign == "!=" if isinstance(one, Tensor) or isinstance(other, Tensor) else UNKNOWN
    if one is SOME and other == 0 and type(other) is int:
        return {"==": False, "!=": True, ">": True, "<=": False}.get(sign, UNKNOWN)
    if one is UNKNOWN or other is UNKNOWN or type(one) is not type(other):
        return UNKNOWN
    if isinstance(one, (Tensor, tuple, Types, Options, Chip)):
        return UNKNOWN
    if sign in ("==", "!="):
        return (one == other) is (sign == "==")
    if isinstance(one, Word) and one.kind == "SocVersion" and {one.name, other.name} <= set(SOCS):
        return _ordered(sign, SOCS.index(one.name), SOCS.index(other.name))
    if type(one) is int:
        return _ordered(sign, one, other)
    return UNKNOWN


def _ordered(sign: str, one: int, other: int) -> Value:
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}.get(sign, UNKNOWN)


def method(name: str, receiver: Value, arguments: list[Value], chip: Chip) -> Value:
    """What a method gives."""
    if name in ("GetCurNpuArch",):
        return Word("NpuArch", chip.arch)
    if name == "GetDimNum":
        return SOME
    if name == "GetSocVersion":
        return Word("SocVersion", chip.soc)
    if name.startswith("AllocTensorList"):
        return arguments[0] if arguments else UNKNOWN
    if name.startswith("AllocTensor"):
        types = [each for each in arguments if isinstance(each, Dtype)]
        return Tensor(types[0].name if types else None)
    if isinstance(receiver, Options):
        if name == "dtype" and arguments:
            return Options(arguments[0].name if isinstance(arguments[0], Dtype) else None)
        return receiver
    if isinstance(receiver, Types) and name in ("begin", "end", "size"):
        return receiver if name != "size" else len(receiver.names)
    if isinstance(receiver, bool) and name == "value":
        return receiver
    if not isinstance(receiver, Tensor):
        return UNKNOWN
    if name in ("GetDataType", "scalar_type", "dtype"):
        return Dtype(receiver.dtype) if receiver.dtype else UNKNOWN
    if name == "options":
        return Options(receiver.dtype)
    if name in ("defined", "has_value"):
        return True
    if name in ("Size", "dim", "ndimension", "numel", "nelement") or (name == "size" and not arguments):
        return SOME  # said is what holds for tensors that have dimensions and elements
    if name == "IsEmpty":  # an empty tensor is returned before anything is checked; said is what holds for others
        return False
    if name == "is_complex":
        return receiver.dtype in COMPLEX if receiver.dtype else UNKNOWN
    if name == "is_floating_point":
        return receiver.dtype in FLOATING if receiver.dtype else UNKNOWN
    if name == "is_cpu":
        return receiver.device == "cpu" if receiver.device else UNKNOWN
    if name == "to":
        types = [each for each in arguments if isinstance(each, (Dtype, Options))]
        if types and isinstance(types[0], Dtype):
            return Tensor(types[0].name)
        return Tensor(None, None)
    if name == "value_or":
        return receiver
    if name in ("materialize", "toVec", "vec"):
        return receiver
    return receiver if name in _SAME else UNKNOWN


def _dtype(value: Value) -> str | None:
    if isinstance(value, Tensor):
        return value.dtype
    return value.name if isinstance(value, Dtype) else None


def function(whole: str, arguments: list[Value], written: list[str], chip: Chip) -> Value | None:
    """What a function gives; None where nothing is known of it here, so that its source is to be followed."""
    name = whole.rpartition("::")[2]
    if name == "CheckType" and len(arguments) == 2:
        given, types = arguments
        known = isinstance(given, Dtype) and isinstance(types, Types)
        return given.name in types.names if known else UNKNOWN
    if whole.endswith("c10_npu::GetSocVersion"):
        return _TORCH_ORDER[chip.soc]
    if name in ("GetCurrentPlatformInfo",):
        return chip
    if name in ("make_tuple", "tie", "make_pair"):
        return tuple(arguments)
    if name.startswith("is_gte_cann_version"):
        return True
    if name in ("IsRegBase", "IsRegbase", "IsRegbaseArch", "is_ascend950_path"):
        return chip.arch == "DAV_3510"
    if name in ("Cast", "CastTo") and len(arguments) >= 2 and isinstance(arguments[0], Tensor):
        return Tensor(arguments[1].name if isinstance(arguments[1], Dtype) else None)
    if name in _LIKE and arguments:
        return arguments[0]
    if name == "PromoteType" and len(arguments) == 2:
        kind = promoted(*(each.name if isinstance(each, Dtype) else None for each in arguments))
        return Dtype(kind) if kind else UNKNOWN
    if name in ("IsComplexType", "isComplexType") and arguments:
        return arguments[0].name in COMPLEX if isinstance(arguments[0], Dtype) else UNKNOWN
    if name in ("IsFloatingType", "isFloatingType") and arguments:
        return arguments[0].name in FLOATING if isinstance(arguments[0], Dtype) else UNKNOWN
    if name in ("IsIntegralType", "isIntegralType") and arguments:
        if not isinstance(arguments[0], Dtype) or arguments[1:2] == [UNKNOWN]:
            return UNKNOWN
        return arguments[0].name in INTEGRAL or (arguments[1:2] == [True] and arguments[0].name == "bool")
    if name in ("result_type", "promote_types", "promoteTypes") and len(arguments) == 2:
        kind = promoted(*map(_dtype, arguments))
        return Dtype(kind) if kind else UNKNOWN
    if name == "result_type" and len(arguments) == 1 and isinstance(arguments[0], Tensor):
        return Dtype(arguments[0].dtype) if arguments[0].dtype else UNKNOWN
    if name in ("toComplexType", "toRealValueType", "toValueType") and isinstance(arguments[0], Dtype):
        if name == "toComplexType":
            back = {value: key for key, value in _OF_COMPLEX.items()}
            return Dtype(back.get(arguments[0].name, arguments[0].name))
        return Dtype(_OF_COMPLEX.get(arguments[0].name, arguments[0].name))
    if name == "typeMetaToScalarType" and arguments:
        return arguments[0]
    if name in _CASTS and len(arguments) == 2:
        return Tensor(arguments[1].name if isinstance(arguments[1], Dtype) else None)
    if name in _MAKES:
        options = [each for each in arguments if isinstance(each, Options)]
        if options:
            return Tensor(options[-1].dtype)
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        return Tensor(tensors[0].dtype if tensors and arguments[0] is tensors[0] else None)
    if name in ("IsCPUScalar", "is_scalar_wrapped_to_tensor", "isCPUScalar"):
        return False if arguments and isinstance(arguments[0], Tensor) and arguments[0].device == "npu" else UNKNOWN
    if name == "is_npu" and arguments:
        return True if isinstance(arguments[0], Tensor) and arguments[0].device == "npu" else UNKNOWN
    if name in ("static_cast", "const_cast", "move", "dtype", "TensorList", "Tensor") and arguments:
        if name == "dtype":
            return Options(arguments[0].name if isinstance(arguments[0], Dtype) else None)
        return arguments[0]
    if name in ("tensorlist", "borrow_from_optional_tensor", "value_or_else") and arguments:
        return arguments[0]
    return None
