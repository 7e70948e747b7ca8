"""Code that has a faster form on NPU: calls of known APIs, and a few shapes of code that are written everywhere.

The forms, their signatures and caveats are in rules/support/affinity.json; none of them is deprecated. A form is
offered only where the wheel of the chosen torch version has it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from transplt.base.finding import Level
from transplt.base.text.text_search import Texts
from transplt.edits.edit import Note
from transplt.engine.analysis.api_uses import Use, chains
from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.engine.analysis.verdicts import runs
from transplt.program.code_shapes import is_window_roll
from transplt.rules import support_tables as tables
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of
from transplt.syntax.nodes import call_of, inner_nodes, last_name
from transplt.syntax.scan import parent

_table = partial(read_table, "support/affinity.json")

CODE = "NPU701"
#: Packages besides torch whose operators have forms.
_PACKAGES = (
    "flash_attn", "xformers", "apex", "transformers", "timm", "detectron2", "mmcv", "spconv", "torch_scatter",
    "torch_cluster", "grouped_gemm",
)  # fmt: skip
_NAMED = Texts(*(package.encode() for package in _PACKAGES))
_ACTIVATIONS = ("silu", "gelu", "sigmoid")
_QUICK_GELU = 1.702


@cache
def _by_api() -> dict[str, str]:
    return {api: key for key, form in _table()["forms"].items() for api in form["apis"]}


def form_of(api: str) -> dict[str, Any] | None:
    """The faster form of an API: replacement, caveats, source; None where there is none."""
    key = _by_api().get(api)
    return None if key is None else _table()["forms"][key]


def notes_of(file: ScannedFile, uses: list[Use]) -> list[Note]:
    """The faster forms of a file; one finding a place."""
    found: list[Note] = []
    by_api = _by_api()
    for use in uses:
        if use.api in by_api and runs(use):
            _offer(file, found, use.node, by_api[use.api], use.api)
    if _NAMED.in_(file.source.utf8):
        for node, full in chains(file.scan, file.names, _PACKAGES):
            if full in by_api and runs(Use(node, full, call_of(node))):
                _offer(file, found, node, by_api[full], full)
    for place, key in _shapes(file):
        _offer(file, found, place, key, "")
    return found


def _offer(file: ScannedFile, found: list[Note], node: ast.expr | ast.stmt | ast.alias, key: str, api: str) -> None:
    form = _table()["forms"][key]
    if "versions" in form and file.version not in versions_of(form["versions"]):
        return
    schema = form.get("schema_2.1" if file.version == "2.1" else "schema", "") or form.get("schema", "")
    parts = [f"use {form['replacement']}"]
    if form.get("package"):
        parts.append(f"from the package {form['package']}")
    if schema:
        parts.append(f"signature: {schema}")
    if form["caveats"]:
        parts.append(form["caveats"])
    start = file.extent(node)[0]
    extent = file.extent(node) if isinstance(node, ast.expr) else (start, start)
    found.append(Note(extent, CODE, Level.INFO, form["title"], api, "; ".join(parts).rstrip(".")))


# --- shapes of code --------------------------------------------------------------------------------------------------


def _shapes(file: ScannedFile) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Hand-written forms: RMSNorm classes, rotate_half, silu(a) * b, gelu(a) * b, x * sigmoid(1.702 * x), roll."""
    utf8 = file.source.utf8
    if b"RMSNorm" in utf8:
        for owner in file.scan.classes:
            roots = (node for node in inner_nodes(owner, ast.Attribute) if node.attr in ("rsqrt", "sqrt"))
            if owner.name.endswith("RMSNorm") and file.receivers.is_module_class(owner) and any(roots):
                yield owner, "rms_norm"
    if b"rotate_half" in utf8:
        yield from ((function, "rope") for function in file.scan.functions if function.name == "rotate_half")
    rolls = b"roll" in utf8
    called = [each for each in ("roll", *_ACTIVATIONS) if each in file.scan.attributes or each in file.scan.names]
    for call in file.scan.calls_by_last_name(called) if called else ():
        if rolls and is_window_roll(file.names, call):
            yield call, "roll"
        match parent(call):
            case ast.BinOp(op=ast.Mult()) as above if key := _product(file, call, above):
                yield above, key


def _product(file: ScannedFile, call: ast.Call, product: ast.BinOp) -> str:
    """The form of `activation(gate) * other`, empty when it is none."""
    func = call.func
    last = last_name(func)
    other = product.right if product.left is call else product.left
    if last not in _ACTIVATIONS or isinstance(other, ast.Constant) or not call.args:
        return ""
    full = file.names.qualified(func) or ""
    api = tables.canonical(full) if full.startswith("torch.") else ""
    gate = ast.dump(call.args[0])
    if api == "torch.nn.functional.silu" and ast.dump(other) != gate:
        return "swiglu"
    if api == "torch.nn.functional.gelu" and ast.dump(other) != gate:
        return "geglu"
    match call.args[0]:
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if api == "torch.sigmoid":
            factors = [side.value for side in (left, right) if isinstance(side, ast.Constant)]
            if factors == [_QUICK_GELU] and ast.dump(other) in (ast.dump(left), ast.dump(right)):
                return "fast_gelu"
    return ""
