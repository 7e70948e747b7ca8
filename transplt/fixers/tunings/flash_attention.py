"""Calls of the package flash_attn, which cannot be built for NPUs, as calls of `torch_npu.npu_fusion_attention`.

The package gives what a fused operator has to know: half precision, the layout (batch, sequence, heads, size), masks
that are aligned at the bottom right since 2.1 (at the top left before: the functions named unpadded).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.edits.edit import Note
from transplt.edits.trees.new_calls import Piece
from transplt.edits.trees.transform import Transform
from transplt.edits.unused_imports import certain_import, drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.tuning_writer import switched_off
from transplt.fixers.tunings import attention
from transplt.fixers.tunings.attention import BY_HAND, CODE, Masks
from transplt.fixers.tunings.call_texts import Bound, bind, rewritten
from transplt.rules.torch_callables import names_of
from transplt.syntax.modules import modules_of
from transplt.syntax.nodes import by_place, is_dotted, root_name
from transplt.syntax.scan import chain, parent

_TAIL = "dropout_p softmax_scale causal window_size softcap alibi_slopes deterministic return_attn_probs block_table"
_OLD_TAIL = "dropout_p softmax_scale causal return_attn_probs deterministic"
_HELP = "write the call of torch_npu.npu_fusion_attention by hand; transplt explain NPU760 shows how"


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of flash_attn. `packed` is the dimension along which key and value (and query) are stacked."""

    tensors: tuple[str, ...]
    lengths: tuple[str, ...] = ()
    old: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        sizes = [name.replace("cu_seqlens", "max_seqlen") for name in self.lengths]
        return (*self.tensors, *self.lengths, *sizes, *(_OLD_TAIL if self.old else _TAIL).split())


_QKV, _Q_KV, _QKVS = ("q", "k", "v"), ("q", "kv"), ("qkv",)
_TWO = ("cu_seqlens_q", "cu_seqlens_k")
_FUNCTIONS = {
    "flash_attn_func": _Function(_QKV),
    "flash_attn_kvpacked_func": _Function(_Q_KV),
    "flash_attn_qkvpacked_func": _Function(_QKVS),
    "flash_attn_varlen_func": _Function(_QKV, _TWO),
    "flash_attn_varlen_kvpacked_func": _Function(_Q_KV, _TWO),
    "flash_attn_varlen_qkvpacked_func": _Function(_QKVS, ("cu_seqlens",)),
    "flash_attn_unpadded_func": _Function(_QKV, _TWO, old=True),
    "flash_attn_unpadded_kvpacked_func": _Function(_Q_KV, _TWO, old=True),
    "flash_attn_unpadded_qkvpacked_func": _Function(_QKVS, ("cu_seqlens",), old=True),
}
_ASKS = names_of("builtins", "asks", "shows")
_MODULES = ("flash_attn.", "flash_attn.flash_attn_interface.")


@dataclass(slots=True)
class _Call:
    """A call of the package, and what goes in its place or why nothing does."""

    node: ast.Call
    name: str
    new: Transform | str
    masked: bool


def _handed_on(work: Work) -> list[tuple[ast.expr, str]]:
    """Functions of the package that get another name or are handed to somebody: `attend = flash_attn_func`."""
    places = (ast.Assign, ast.AnnAssign, ast.Return, ast.IfExp, ast.Dict, ast.Tuple, ast.List, ast.keyword, ast.Call)
    nodes: list[ast.expr] = [node for every in work.scan.names.values() for node in every]
    nodes += [node for name in _FUNCTIONS for node in work.scan.attributes.get(name, ())]
    called = set()  # by another name that the file gives them, which is followed: these calls are looked at
    for func in (call.func for call in work.scan.calls):
        if any(binding.kind == "assign" for binding in work.names.bindings_of(func)):
            called.add(work.names.qualified(func))
    found = []
    for node in by_place(nodes):
        full, above = work.names.qualified(node) or "", parent(node)
        name = full.rpartition(".")[2]
        if not full.startswith(_MODULES) or name not in _FUNCTIONS or full in called:
            continue
        if isinstance(above, ast.Call) and (above.func is node or getattr(above.func, "id", "") in _ASKS):
            continue
        if isinstance(above, places) and isinstance(getattr(node, "ctx", None), ast.Load):
            found.append((node, name))
    return found


def rewrite_calls(writer: Writer, masks: Masks) -> None:
    """Rewrite the calls whose arguments can all be read."""
    work = writer.work
    calls: list[_Call] = []
    for call in by_place(work.scan.calls):
        full = work.names.qualified(call.func) or ""
        name = full.rpartition(".")[2]
        if not full.startswith("flash_attn.") or not name.startswith("flash_attn_"):
            continue
        if switched_off(work, call, CODE):
            continue
        function = _FUNCTIONS.get(name)
        if function is None or full not in [module + name for module in _MODULES]:
            writer.left(call, f"transplt writes no counterpart of {full}", _HELP, BY_HAND)
        else:
            before = masks.asked
            new = _new_call(writer, call, function, masks)
            calls.append(_Call(call, name, new, masks.asked > before))
    for node, name in _handed_on(work):
        writer.left(node, f"{name} is called by another name, with arguments that cannot be read", _HELP, BY_HAND)
    _write(writer, masks, calls)


def _write(writer: Writer, masks: Masks, calls: list[_Call]) -> None:
    """Write what goes in the place of calls, and take out the imports that are left over."""
    work, attempts = writer.work, _attempts(writer.work, calls)
    done: list[ast.expr] = []
    for item in calls:
        root = root_name(item.node.func)
        if root is None or not (certain_import(work, root) or root.id in attempts):
            writer.left(
                item.node,
                f"{item.name} is not changed: the program depends on whether its import succeeds",
                "add a branch with torch_npu's fused operator; transplt explain NPU760 shows how",
                BY_HAND,
            )
        elif isinstance(item.new, str):
            writer.left(item.node, f"{item.name} is not changed: {item.new}", _HELP, BY_HAND)
        elif attention.replace(writer, item.node, f"flash_attn.{item.name}", item.new):
            done.append(item.node.func)
            masks.used = masks.used or item.masked
    if done:
        removed = drop_unused(writer, done, CODE)
        for attempt in {id(node): node for node in attempts.values()}.values():
            if work.settings.style != "portable":
                writer.remove(attempt, CODE, "import of flash_attn, which nothing uses any more", only=False)
                removed.append(attempt)
        _settle(writer, removed)


def _attempts(work: Work, calls: list[_Call]) -> dict[str, ast.Try]:
    """The names that come from a `try` which can go as a whole, as all uses of all its names are rewritten."""
    found: dict[str, ast.Try] = {}
    by_root: dict[str, list[_Call]] = {}
    for item in calls:
        root = root_name(item.node.func)
        if root is not None and certain_import(work, root) is None:
            by_root.setdefault(root.id, []).append(item)
    for items in by_root.values():
        root = root_name(items[0].node.func)
        node = _attempt(work, root) if root is not None else None
        names = _names_of(node) if node is not None else None
        if node is None or names is None or root is None:
            continue
        same = all(_same_alignment(item.name, line) for item in items for line in ast.walk(node))
        whole = all(
            len(work.scan.names.get(name, ())) == len(by_root.get(name, ()))
            and not any(isinstance(item.new, str) for item in by_root.get(name, ()))
            for name in names
        )
        if whole and same:
            found[root.id] = node
    return found


def _attempt(work: Work, name: ast.Name) -> ast.Try | None:
    """The `try` at module level that does nothing but import a name, or another of the same package in its place."""
    found = work.names.lookup(name.id, work.scan.scope_of(name))
    if found is None or found[0] is not work.scan.root:
        return None
    attempts = {next((above for above in chain(each.node) if isinstance(above, ast.Try)), None) for each in found[1]}
    node = attempts.pop()
    if attempts or node is None or not isinstance(parent(node), ast.Module):
        return None
    return node if not node.orelse and not node.finalbody else None


def _names_of(node: ast.Try) -> set[str] | None:
    """The names that a `try` imports or sets to None; None when it does anything else."""
    names: set[str] = set()
    for line in [*node.body, *(each for handler in node.handlers for each in handler.body)]:
        match line:
            case ast.ImportFrom(names=taken):
                names.update(alias.asname or alias.name for alias in taken)
            case ast.Assign(targets=targets, value=ast.Constant()):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.Pass() | ast.Raise():
                continue
            case _:
                return None
    return names


def _same_alignment(name: str, line: ast.AST) -> bool:
    """True unless another import that may stand in aligns its causal mask at another corner."""
    if not isinstance(line, ast.ImportFrom) or "qkvpacked" in name:
        return True
    return all(("unpadded" in alias.name) == ("unpadded" in name) for alias in line.names)


def _new_call(writer: Writer, call: ast.Call, function: _Function, masks: Masks) -> Transform | str:
    """The call of the fused operator, or the reason why there is none."""
    work = writer.work
    bound = bind(call, function.parameters)
    if bound is None:
        return "some of its arguments cannot be read"
    missing = [each for each in (*function.tensors, *function.lengths) if bound.get(each) is None]
    if missing:
        return f"its argument {missing[0]} cannot be read"
    for each in ("softcap", "alibi_slopes", "deterministic", "return_attn_probs", "block_table"):
        if not attention.is_nothing(bound.get(each)):
            return f"npu_fusion_attention has no {each}"
    query = bound.values[function.tensors[0]]
    rank = 3 if function.lengths else 4
    packed = function.tensors == _QKVS
    heads, head = (attention.size(work, query, dim + packed, rank + packed) for dim in (rank - 2, rank - 1))
    if not heads:
        return "reading the number of heads would compute the query twice"
    pieces = _tensors(call, bound, function, rank)
    pieces += [Piece(heads, "head_num"), Piece('"TND"' if function.lengths else '"BSND"', "input_layout")]
    for new, length in zip(("actual_seq_qlen", "actual_seq_kvlen"), function.lengths * 2, strict=False):
        node = bound.values[length]
        if not is_dotted(node):
            return f"{length} is computed in the call"
        pieces.append(Piece("{}[1:].tolist()", new, bound.places[length]))
    window = _window(bound, "")
    if isinstance(window, str):
        return window
    mask = masks.of(attention.device(work, query)) if window or _causal(bound, function, "") else ""
    masked = _window(bound, mask) if window else _causal(bound, function, mask)
    assert isinstance(masked, list)
    given = isinstance(bound.get("softmax_scale"), (ast.BinOp, ast.Constant))
    scale = attention.scale(bound, "softmax_scale", head, given)
    rest = attention.in_order(masked, attention.keep_prob(work, bound), scale)
    return rewritten(work, call, attention.TARGET, [*pieces, *rest], "[0]")


def _tensors(call: ast.Call, bound: Bound, function: _Function, rank: int) -> list[Piece]:
    """Query, key and value."""
    if function.tensors == _QKV:
        by_name = {keyword.arg for keyword in call.keywords}
        names = zip(_QKV, ("query", "key", "value"), strict=True)
        return [Piece(keyword=new if old in by_name else "", place=bound.places[old]) for old, new in names]
    pieces = [Piece(place=bound.places["q"])] if function.tensors == _Q_KV else []
    packed = function.tensors[-1]
    node = bound.values[packed]
    simple = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    text = f"{{}}.unbind({rank - 2})" if simple else f"({{}}).unbind({rank - 2})"
    return [*pieces, Piece(text, place=bound.places[packed], star="*")]


def _causal(bound: Bound, function: _Function, mask: str) -> list[Piece]:
    return attention.causal(bound, "causal", mask, 2 if function.old else 3)


def _window(bound: Bound, mask: str) -> list[Piece] | str | None:
    """The arguments for a sliding window, None for none, or why it cannot be taken over."""
    node = bound.get("window_size")
    if node is None:
        return None
    sides = [attention.number(each) for each in node.elts] if isinstance(node, (ast.Tuple, ast.List)) else []
    if len(sides) != 2 or None in sides:
        return "its window_size cannot be read"
    left, right = (each if each is not None else -1 for each in sides)
    causal = bound.get("causal")
    if (left, right) == (-1, -1):
        return None
    if not attention.is_nothing(causal):
        if not isinstance(causal, ast.Constant):
            return "whether its window is causal cannot be read"
        right = 0
        if left < 0:
            return None
    place = bound.places["window_size"]
    pieces = [Piece(mask, "atten_mask", place)]
    pieces += [Piece(str(left), "pre_tockens")] if left >= 0 else []
    pieces += [Piece(str(right), "next_tockens")] if right >= 0 else []
    return [*pieces, Piece("4", "sparse_mode")]


def _settle(writer: Writer, removed: list[ast.stmt]) -> None:
    """Withdraw the findings on an import that goes, or move them to another import of the package that stays."""
    work = writer.work
    spans = [work.source.extent(node) for node in removed]
    others = (node for node in work.scan.imports if node not in removed)
    of_package = (node for node in others if any(name.split(".")[0] == "flash_attn" for name in modules_of(node)))
    stays = next(of_package, None)

    def of_removed(note: Note) -> bool:
        inside = any(start <= note.extent[0] and note.extent[1] <= end for start, end in spans)
        return inside and note.code == "NPU510"

    if stays is None:
        work.withdraw_notes(of_removed)
        return
    for note in filter(of_removed, work.notes):
        note.extent = work.source.extent(stays)
