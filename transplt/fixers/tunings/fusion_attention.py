"""`fusion-attention`: calls of attention become calls of `torch_npu.npu_fusion_attention`."""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.trees.new_calls import Piece
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.around import scripted
from transplt.fixers.tuning_writer import switched_off, writer_for
from transplt.fixers.tunings import attention, flash_attention
from transplt.fixers.tunings.attention import NATIVE, Masks
from transplt.fixers.tunings.call_texts import Bound, bind, rewritten
from transplt.fixers.tunings.values import attribute_values, describe, held
from transplt.flow.replaced_packages import SDPA
from transplt.syntax.nodes import by_place, keyword_of
from transplt.syntax.scan import chain

fixer = Fixer(__name__, code=attention.CODE, rank=410, theme="tune:fusion-attention",
              needs=(b"flash_attn", b"scaled_dot_product_attention"))  # fmt: skip

_TENSORS = ("query", "key", "value")
_PARAMETERS = (*_TENSORS, "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
_CONTEXTS = ("torch.nn.attention.sdpa_kernel", "torch.backends.cuda.sdp_kernel")


@on_file(fixer, writer_for)
def attention_of_one_operator(work: Work, writer: Writer) -> None:
    """Rewrite the calls whose facts can all be read, and report of the others which is missing."""
    masks = Masks(writer)
    if b"flash_attn" in work.source.utf8 and not work.settings.asks_for("adapt:attention"):
        flash_attention.rewrite_calls(writer, masks)
    if b"scaled_dot_product_attention" in work.source.utf8:
        _native(writer, masks)
    masks.write()


def _native(writer: Writer, masks: Masks) -> None:
    work = writer.work
    calls = [call for call in work.scan.calls if work.names.qualified(call.func) == SDPA]
    done: list[ast.expr] = []
    for call in by_place(calls):
        if switched_off(work, call, attention.CODE):
            continue
        before = masks.asked
        why = _rewrite(writer, call, masks)
        masks.used = masks.used or (not why and masks.asked > before)
        if why:
            writer.remark(
                call,
                NATIVE,
                f"scaled_dot_product_attention is not changed: {why}",
                "torch_npu itself runs the fused operator if mask, rank and head size allow it",
            )
        else:
            done.append(call.func)
    drop_unused(writer, done, attention.CODE)


def _rewrite(writer: Writer, call: ast.Call, masks: Masks) -> str:
    """Write the call, or give the reason why not."""
    work = writer.work
    bound = bind(call, _PARAMETERS)
    if bound is None or any(bound.get(name) is None for name in _TENSORS):
        return "some of its arguments cannot be read"
    if why := _prevented(work, call) or _unlike(work, bound):
        return why
    query = bound.values["query"]
    heads, head = (attention.size(work, query, dim, 4) for dim in (1, 3))
    if not heads:
        return "reading the number of heads would compute the query twice"
    names = {keyword.arg for keyword in call.keywords}
    pieces = [Piece(place=bound.places[name], keyword=name if name in names else "") for name in _TENSORS]
    pieces += [Piece(heads, "head_num"), Piece('"BNSD"', "input_layout")]
    no_mask = attention.is_nothing(bound.get("attn_mask"))
    mask: list[Piece] = []
    if not attention.is_nothing(bound.get("is_causal")):
        if not no_mask:
            return "it has a mask and is_causal"
        mask = attention.causal(bound, "is_causal", masks.of(attention.device(work, query)), 2)
    elif not no_mask:
        given = _mask(work, bound.values["attn_mask"])
        if isinstance(given, str):
            return given
        mask = [Piece("~{}", "atten_mask", bound.places["attn_mask"]), *given]
    known = _is_number(work, bound.get("scale"))
    rest = attention.in_order(mask, attention.keep_prob(work, bound), attention.scale(bound, "scale", head, known))
    transform = rewritten(work, call, attention.TARGET, [*pieces, *rest], "[0]")
    if not attention.replace(writer, call, SDPA, transform):
        return "another edit changes it"
    return ""


def _prevented(work: Work, call: ast.Call) -> str:
    """What around a call speaks against another operator."""
    if scripted(work, call):
        return "TorchScript does not support operators of torch_npu"
    for above in chain(call):
        for item in above.items if isinstance(above, (ast.With, ast.AsyncWith)) else ():
            func = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
            if work.names.qualified(func) in _CONTEXTS:
                return "the program chooses its kernel"
    return ""


def _unlike(work: Work, bound: Bound) -> str:
    """Why it cannot be seen that query, key and value have the rank and the one dtype that the operator takes."""
    tensors = [describe(work, bound.values[name]) for name in _TENSORS]
    if any(tensor.rank != 4 for tensor in tensors):
        return "query, key and value may not have four dimensions"
    if not tensors[0].origin or len({tensor.origin for tensor in tensors}) > 1:
        return (
            "query, key and value may not have one dtype (autocast casts them for this call, but not for "
            "npu_fusion_attention)"
        )
    return ""


def _is_number(work: Work, node: ast.expr | None) -> bool:
    """True for a scale that cannot be None."""
    if node is None:
        return False
    values = attribute_values(work, node) or [node]
    return all(
        isinstance(value, (ast.BinOp, ast.UnaryOp)) or (isinstance(value, ast.Constant) and value.value is not None)
        for value in values
    )


def _mask(work: Work, node: ast.expr) -> list[Piece] | str:
    """What a boolean mask of full size asks for besides itself, or why it cannot be taken over."""
    made: ast.expr = node
    lower = False
    for _ in range(8):
        match made:
            case ast.Name():
                value = held(work, made)
                if value is None or value.index is not None:
                    return f"the dtype and shape of the mask {work.text(node)} are not known"
                made = value.node
            case ast.Call(func=ast.Attribute(value=owner, attr="tril") as tril, args=args, keywords=keywords):
                function = work.names.qualified(tril) == "torch.tril" and bool(args)
                diagonal = keyword_of(made, "diagonal")
                zero = isinstance(diagonal, ast.Constant) and diagonal.value == 0
                lower = lower or len(args) + len(keywords) == function or zero
                made = args[0] if function else owner
            case _:
                break
    match made:
        case ast.Call(func=func, args=[ast.Tuple(elts=sizes)] | sizes) if isinstance(node, ast.Name):
            dtype = keyword_of(made, "dtype")
            is_bool = dtype is not None and work.names.qualified(dtype) == "torch.bool"
            plain = len(sizes) == 2 and not any(isinstance(each, (ast.Constant, ast.Starred)) for each in sizes)
            if work.names.qualified(func) == "torch.ones" and is_bool and plain:
                return [] if lower else [Piece("2", "inner_precise")]
    return f"the mask {work.text(node)} may not be boolean and of full size"
