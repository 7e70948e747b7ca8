"""tl.dot and tl.dot_scaled: types, sums and precisions that an NPU does not have; operands that are read again.

triton-ascend's `dot` raises for `allow_tf32=True`, computes in float32 without it, takes ieee and hf32 for
`input_precision`, and ignores `max_num_imprecise_acc` (python/triton/language/core.py and semantic.py). Release 3.2.0
raises for tf32 and tf32x3 ("please use input_precision='hf32' on Ascend instead"), later ones compute tf32 as hf32
(third_party/ascend/backend/compiler.py at a84b1eb5). What each of them allows is less precise than float32, or as
precise.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.removals import without_keyword
from transplt.edits.work import Work
from transplt.fixers.triton.codemods.triton_types import instead
from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.live_tiles import lives_of
from transplt.fixers.triton.reader.operations import Operation
from transplt.fixers.triton.reader.refused import lines
from transplt.fixers.triton.reader.sizes import constants_of
from transplt.fixers.triton.reader.tiles import Model, model_of
from transplt.fixers.triton.reader.values import Kind
from transplt.program.programs import programs_of
from transplt.rules.card_limits import card_title
from transplt.rules.triton import page_of, refuses, types_hold_for, values_of
from transplt.syntax.nodes import string_of

fixer = Fixer(__name__, code="NPU572", rank=268, needs=(b"triton",), words=("triton",))
_AGAIN = "NPU578"
#: The arguments of tl.dot that are edited.
_PRECISIONS = (b"allow_tf32", b"max_num_imprecise_acc", b"input_precision")
_FORMATS = ("bf16", "fp16")
_API = "triton.language.dot"
_NO_TF32 = "tl.dot raises for allow_tf32=True on an NPU: without it, it computes in float32"
_NO_IMPRECISE = "max_num_imprecise_acc has no effect on an NPU: tl.dot adds up in float32"
_ALLOWED = "tl.dot raises for allow_tf32=True on an NPU, and {} is"
_PERHAPS = "tl.dot raises on an NPU if {} is True (allow_tf32)"
_OF_GPUS = ("tf32", "tf32x3")
_TF32 = "tl.dot accepts ieee and hf32 on an NPU; {} may be tf32 or tf32x3, and triton-ascend 3.2.0 raises then"
_LEAVE = "remove allow_tf32: tl.dot then computes in float32; input_precision='hf32' is less precise and faster"
_SAID = {
    _ALLOWED: (Level.MANUAL, _LEAVE),
    _PERHAPS: (Level.INFO, _LEAVE),
    _TF32: (Level.MANUAL, "use ieee, which is float32, or hf32, which is faster for float32 products"),
}


@fixer.on(ast.Module)
def dots(work: Work, tree: ast.Module) -> Finds:
    """Report the products of each kernel of the file that the card refuses; leave out what only a GPU needs."""
    if work.edits_alone and not any(name in work.source.utf8 for name in _PRECISIONS):
        return
    own = programs_of(work.project).own(work.file)
    card = work.settings.hardware
    for kernel in kernels_in(own):
        model = model_of(kernel, work.project)
        found = [each for each in model.operations if each.name == "dot"]
        if not work.edits_alone:
            yield from _types(work, kernel, found, card)
            if types_hold_for(card):
                yield from _scaled(work, kernel, model, card)
        yield from _precisions(work, kernel, found)
        if not work.edits_alone:
            yield from _read_again(work, kernel, model)


def _types(work: Work, kernel: Kernel, found: list[Operation], card: str) -> Finds:
    groups: dict[tuple[str, str], list[Operation]] = {}
    for each in found:
        for name in ("input", "other"):
            dtype = each.given[name].dtype if name in each.given else ""
            if refuses("dot", dtype, card):
                groups.setdefault(("operand", dtype), []).append(each)
        for name in ("acc", "out_dtype") if types_hold_for(card) else ():
            given = each.given.get(name)
            if given is not None and given.kind is not Kind.NONE and given.dtype and given.dtype not in values_of(name):
                groups.setdefault((name, given.dtype), []).append(each)
    for (name, dtype), places in groups.items():
        where = f"kernel {kernel.name}, {lines([each.node for each in places])}"
        if name == "operand":
            say, do = f"tl.dot takes no {dtype} on {card_title(card)}", f"multiply {instead(dtype)}"
        elif dtype == "float16" and all(each.given["input"].dtype in ("float16", "") for each in places):
            yield work.note(
                places[0].node, fixer.code, "tl.dot with a float16 sum is not documented for NPUs, but compiles: "
                f"{where}", api=_API, level=Level.INFO, help="compare the results, or add up in float32",
            )  # fmt: skip
            continue
        elif name == "acc":
            say, do = f"tl.dot adds up in float32 or int32 on an NPU, not in {dtype}", "make the accumulator float32"
        else:
            say, do = f"tl.dot returns float32 or int32 on an NPU, not {dtype}", f"cast its result: .to(tl.{dtype})"
        yield work.note(
            places[0].node, fixer.code, f"{say}: {where}", api=_API, help=f"{do}; {page_of('dot')} of triton-ascend",
            effort=Effort.MEDIUM if name == "operand" else Effort.LOW,
        )  # fmt: skip


def _precisions(work: Work, kernel: Kernel, found: list[Operation]) -> Finds:
    """Arguments that say how precise a product has to be; what is to be done by hand is joined."""
    groups: dict[tuple[str, str], list[ast.expr | ast.stmt]] = {}
    for each in found:
        call = each.node
        if not isinstance(call, ast.Call):
            continue
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        allowed, precision = keywords.get("allow_tf32"), each.nodes.get("input_precision")
        if isinstance(allowed, ast.Constant) and allowed.value:
            yield from _without(work, call, "allow_tf32", _NO_TF32)
        elif allowed is not None and not isinstance(allowed, ast.Constant):
            given = constants_of(kernel, allowed, work.project)
            if True in given or not given:
                groups.setdefault((_ALLOWED if given else _PERHAPS, ast.unparse(allowed)), []).append(call)
        if "max_num_imprecise_acc" in keywords:
            yield from _without(work, call, "max_num_imprecise_acc", _NO_IMPRECISE)
        if precision is None:
            continue
        values = {string_of(precision), *constants_of(kernel, precision, work.project)}
        if (name := string_of(precision)) in _OF_GPUS:
            message = f"tl.dot of triton-ascend 3.2.0 raises for {name}: ieee is float32, which is no less precise"
            if work.settings.style != "portable" and work.take(precision):
                yield Edit(precision, fixer.code, message, '"ieee"', api=_API)
            else:
                yield work.note(precision, fixer.code, message, api=_API, help="pass 'ieee' on NPUs")
        elif values.intersection(_OF_GPUS):
            groups.setdefault((_TF32, ast.unparse(precision)), []).append(call)
    for (say, name), nodes in groups.items():
        level, do = _SAID[say]
        yield work.note(
            nodes[0], fixer.code, f"{say.format(name)}: kernel {kernel.name}, {lines(nodes)}", api=_API, help=do,
            level=level,
        )  # fmt: skip


def _without(work: Work, call: ast.Call, name: str, message: str) -> Finds:
    if work.settings.style != "portable" and work.share(call):
        yield Edit(call, fixer.code, message, without_keyword(name), api=_API)
    else:
        yield work.note(call, fixer.code, message, api=_API, help=f"do not pass {name} on NPUs")


def _scaled(work: Work, kernel: Kernel, model: Model, card: str) -> Finds:
    for each in model.operations:
        if each.name != "dot_scaled":
            continue
        formats = [string_of(each.nodes.get(name)) for name in ("lhs_format", "rhs_format")]
        refused = [given for given in formats if given is not None and given not in _FORMATS]
        if refused:
            yield work.note(
                each.node, fixer.code,
                f"tl.dot_scaled supports bf16 and fp16 on {card_title(card)}, not {refused[0]}: kernel {kernel.name}",
                api="triton.language.dot_scaled", effort=Effort.HIGH,
                help=f"unpack to bfloat16 first, and multiply that; {page_of('dot')} of triton-ascend",
            )  # fmt: skip


def _read_again(work: Work, kernel: Kernel, model: Model) -> Finds:
    found = lives_of(model).read_again() if any(each.name == "dot" for each in model.operations) else []
    if found:
        *first, last = dict.fromkeys(name for _, name in found)
        names = f"{', '.join(first)} and {last} are" if first else f"{last} is"
        yield work.note(
            found[0][0],
            _AGAIN,
            f"tl.dot may overwrite its left operand on an NPU, and {names} read again: kernel {kernel.name}, "
            f"{lines([node for node, _ in found])}",
            api=_API,
            level=Level.INFO,
            help="if results differ from torch's, load it again, or pass tl.dot a copy (`tile + 0.0`)",
        )
