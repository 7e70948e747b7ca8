"""The types of C++ variables and expressions, as far as op-plugin's functions tell them without a compiler."""

from __future__ import annotations

import re
from collections.abc import Callable

from card_types.sources import text_of
from tree_sitter import Node

Lookup = Callable[[str, Node], str]
#: What op-plugin's overloads of ConvertType make of types of C++ (op_plugin/utils/op_api_common_base.h). What has no
#: overload is passed as it is.
CONVERTED = {
    "Tensor": "t", "TensorWrapper": "t", "TensorList": "T", "ArrayRef<Tensor>": "T", "TensorListWrapper": "T",
    "Scalar": "s", "ArrayRef<Scalar>": "S", "IntArrayRef": "a", "ArrayRef<SymInt>": "a", "SymIntArrayRef": "a",
    "ArrayRef<int64_t>": "a", "OptionalIntArrayRef": "a?", "OptionalArrayRef<SymInt>": "a?",
    "OptionalArrayRef<int64_t>": "a?", "OptionalSymIntArrayRef": "a?", "ArrayRef<bool>": "B", "ScalarType": "k",
    "aclDataType": "k", "int64_t": "i", "uint64_t": "i", "size_t": "i", "int": "h", "int32_t": "h", "uint32_t": "h",
    "int8_t": "c", "uint8_t": "c", "bool": "b", "double": "d", "float": "f", "char*": "z", "aclTensor*": "t",
    "aclIntArray*": "a",
}  # fmt: skip
_SPACE = re.compile(r"\b(?:const|constexpr|static|struct|at|c10|std)\b(?:\s*::)?|\s+|&")
_OF_TENSOR = {
    "scalar_type": "ScalarType", "dim": "int64_t", "size": "int64_t", "numel": "int64_t", "sizes": "IntArrayRef",
    "strides": "IntArrayRef", "item": "Scalar", "defined": "bool", "is_contiguous": "bool", "storage_offset": "int64_t",
    "options": "", "device": "", "dtype": "", "storage": "", "data_ptr": "",
}  # fmt: skip
#: Functions of PyTorch and of torch_npu whose results are passed on.
_KNOWN = {
    "philox_engine_inputs": "pair<uint64_t,uint64_t>", "expect_int": "int64_t", "guard_int": "int64_t",
    "maybe_wrap_dim": "int64_t", "asIntArrayRefUnchecked": "IntArrayRef",
}  # fmt: skip
_GIVES_TENSOR = re.compile(
    r"(npu_preparation|OpPreparation)::(apply_tensor\w*|copy_\w+|\w*[cC]ast\w*|unsafe_empty\w*)$"
    r"|^(at|at_npu::native|custom_ops|npu_utils|NpuUtils)::(empty|zeros|ones|full|scalar_\w+|tensor|arange|scalar_tensor"
    r"|npu_dtype_cast|format_contiguous|empty_like|zeros_like|ones_like|full_like|empty_strided|squeeze|unsqueeze)$"
)


def plain(kind: str) -> str:
    """A type without const, references and the usual namespaces."""
    return _SPACE.sub("", kind).replace("native::", "")


def inner(kind: str, outer: str = "optional") -> str:
    return kind[len(outer) + 1 : -1] if kind.startswith(f"{outer}<") else ""


def held(kind: str) -> str:
    """What an optional type holds."""
    if kind.startswith("OptionalArrayRef<"):
        return kind.removeprefix("Optional")
    return {"OptionalIntArrayRef": "IntArrayRef", "OptionalSymIntArrayRef": "SymIntArrayRef"}.get(kind, inner(kind))


def converted(kind: str) -> str:
    """The letter by which an argument of this type reaches CANN, with `?` for one that may be nothing."""
    if re.fullmatch(r"array<bool,\w+>", kind):
        return "B"
    if inner(kind) in ("Tensor", "Scalar", "IntArrayRef"):
        return CONVERTED[inner(kind)] + "?"
    return CONVERTED.get(kind, "")


def type_of(node: Node | None, lookup: Lookup) -> str:
    """The type of an expression; empty where it is not certain."""
    if node is None:
        return ""
    match node.type:
        case "identifier" | "this":
            return lookup(text_of(node), node)
        case "true" | "false":
            return "bool"
        case "number_literal":
            return _number(text_of(node))
        case "null" | "nullptr":
            return "nullptr"
        case "string_literal" | "raw_string_literal":
            return "char*"
        case "parenthesized_expression":
            return type_of(node.named_children[0], lookup)
        case "unary_expression":
            return "bool" if text_of(node).startswith("!") else type_of(node.child_by_field_name("argument"), lookup)
        case "pointer_expression":
            kind = type_of(node.child_by_field_name("argument"), lookup)
            if not text_of(node).startswith("*"):
                return ""
            return inner(kind) or kind.removesuffix("*") * kind.endswith("*")
        case "binary_expression":
            return _binary(node, lookup)
        case "conditional_expression":
            kinds = {type_of(node.child_by_field_name(each), lookup) for each in ("consequence", "alternative")}
            return _common(kinds)
        case "cast_expression" | "compound_literal_expression":
            kind = plain(text_of(node.child_by_field_name("type")))
            return kind if converted(kind) else ""
        case "subscript_expression":
            return _element(type_of(node.child_by_field_name("argument"), lookup))
        case "field_expression" if text_of(node).endswith((".first", ".second")):
            pair = type_of(node.child_by_field_name("argument"), lookup)
            return element_of_tuple(pair, int(text_of(node).endswith(".second")))
        case "call_expression":
            return _call(node, lookup)
        case _:
            return ""


def _number(text: str) -> str:
    if not re.search(r"[.eE]", text) or text.startswith("0x"):
        return "int" if text[-1] not in "lLuU" else "int64_t" if text[-1] in "lL" else ""
    return "float" if text[-1] in "fF" else "double"


def _common(kinds: set[str]) -> str:
    """The type of two arms: one, or that of numbers which the other is converted to."""
    kinds.discard("nullptr")
    if len(kinds) == 1:
        return kinds.pop()
    numbers = ["double", "float", "int64_t", "int"]
    return min(kinds, key=numbers.index) if kinds <= {*numbers} else ""


def _binary(node: Node, lookup: Lookup) -> str:
    operator = text_of(node.child_by_field_name("operator"))
    if operator in ("==", "!=", "<", ">", "<=", ">=", "&&", "||"):
        return "bool"
    return _common({type_of(node.child_by_field_name(each), lookup) for each in ("left", "right")})


def _element(kind: str) -> str:
    if kind in ("TensorList", "ArrayRef<Tensor>", "vector<Tensor>"):
        return "Tensor"
    return inner(kind, "vector") or inner(kind, "ArrayRef") or ("int64_t" if kind == "IntArrayRef" else "")


def _call(node: Node, lookup: Lookup) -> str:
    function, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    arguments = listed.named_children if listed is not None else []
    if function is None:
        return ""
    if function.type == "field_expression":
        return _method(function, lookup)
    name = text_of(function)
    cast = re.match(r"(?:static|const|reinterpret)_cast\s*<(.+)>$", name, re.S)
    if cast:
        return plain(cast[1])
    if name.endswith("value_or_else"):
        return held(type_of(arguments[0], lookup)) if arguments else ""
    if name.endswith("make_wrapper") and arguments:
        kind = converted(type_of(arguments[0], lookup))
        return {"t": "TensorWrapper", "T": "TensorListWrapper"}.get(kind[:1], "")
    if name in ("std::min", "std::max"):  # both arguments have one type
        return next(filter(None, (type_of(each, lookup) for each in arguments)), "")
    place = re.match(r"std::get\s*<(\d+)>$", name)
    if place and arguments:
        return element_of_tuple(type_of(arguments[0], lookup), int(place[1]))
    if converted(plain(name)):
        return plain(name)
    known = _KNOWN.get(name.rpartition("::")[2])
    if known:
        return known
    return "Tensor" if _GIVES_TENSOR.search(name) else lookup(f"{name}()", node)


def _method(function: Node, lookup: Lookup) -> str:
    owner = type_of(function.child_by_field_name("argument"), lookup)
    name = text_of(function.child_by_field_name("field"))
    if name == "has_value":
        return "bool"
    if name in ("value_or", "value"):
        return held(owner)
    if name in ("c_str", "data") and owner in ("string", "string_view"):
        return "char*"
    if owner == "Tensor":
        typed = re.match(r"item\s*<(.+)>$", name)
        return typed[1] if typed else _OF_TENSOR.get(name, "Tensor")
    if owner == "Scalar":
        return {"toDouble": "double", "toFloat": "float", "toInt": "int", "toLong": "int64_t"}.get(name, "")
    if name in _KNOWN:
        return _KNOWN[name]
    return "size_t" if name == "size" and owner else ""


def element_of_tuple(kind: str, place: int) -> str:
    """One type of `tuple<A,B>` or `pair<A,B>`."""
    parts, depth = [""], 0
    for letter in inner(kind, "tuple") or inner(kind, "pair"):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts[place] if place < len(parts) else ""
