"""The profiler of a file moves to torch_npu.profiler as a whole, or stays as a whole and is a finding.

torch's ProfilerActivity has no NPU and torch_npu's profiler takes none of torch's activities, so half a move fails.
torch_npu.profiler.profile writes its results to a folder: it has no key_averages(), events() or experimental options of
torch's (torch_npu/profiler/profiler.py). `torch.autograd.profiler.profile` works on the NPU with `use_device="npu"`
(Ascend/pytorch, docs/zh/api/native_api, torch-autograd.md).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import keyword_replaced
from transplt.edits.work import Work
from transplt.rules.rule import Rule
from transplt.rules.rule_set import parse_rules
from transplt.rules.tables import read_table
from transplt.rules.versions import version_key
from transplt.syntax.nodes import call_of, keyword_of, of_kind, plain_name, shape
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU130", rank=100, needs=(b"profile", b"cuda_time", b"cuda_memory_usage"))

_PREFIX = "torch.profiler."
_CUDA = "torch.profiler.ProfilerActivity.CUDA"
_PROFILE = ("torch.profiler.profile", "torch.profiler.profiler.profile")
#: What torch_npu's classes take (v2.1.0 to master); `use_cuda` is accepted and warned about.
_KEYWORDS = {
    "profile": frozenset(
        "activities schedule on_trace_ready record_shapes profile_memory with_stack with_flops with_modules".split()
    ),
    "schedule": frozenset("wait warmup active repeat skip_first".split()),
    "tensorboard_trace_handler": frozenset({"dir_name", "worker_name"}),
}
_POSITIONAL = {"profile": 0, "schedule": 0, "tensorboard_trace_handler": 2}
#: Methods of torch's profiler that torch_npu's has not.
_METHODS = ("key_averages", "total_average", "function_events", "preset_metadata_json", "toggle_collection_dynamic")
#: Names of torch.profiler that stay and work beside torch_npu's profiler.
_STAY = frozenset({"torch.profiler.record_function"})
_NPU = re.compile(rb"torch_npu\.profiler|ProfilerActivity\.NPU|PrivateUse1")
_COLUMN = re.compile(r"(?:self_)?cuda_(?:time|time_total|memory_usage)")
_COLUMNS = ("cuda_time", "cuda_time_total", "self_cuda_time_total", "cuda_memory_usage", "self_cuda_memory_usage")


@lru_cache(maxsize=8)
def _rules(version: str) -> dict[str, Rule]:
    table = read_table("support/profiler.json")
    return {rule.old: rule for rule in parse_rules(table, "profiler.json", version, user=False)}


@fixer.on(ast.Module)
def profiler_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Decide on the profiler of a file; before imports and references, which carry the move out."""
    yield from _autograd(work)
    columns = [node for node in work.scan.strings if _COLUMN.fullmatch(str(node.value))]
    references = list(_references(work))
    cuda = [node for node, full in references if full == _CUDA]
    calls = [call for node, full in references if full in _PROFILE and (call := call_of(node)) is not None]
    everything = any(keyword_of(call, "activities") is None for call in calls)
    moves = False
    if cuda or (everything and b"cuda" in work.source.utf8):
        why = _obstacle(work, references, calls)
        if not why:
            moves = True
            names = {**work.rules.builtin.names, **_rules(work.settings.torch_version)}
            builtin = replace(work.rules.builtin, names=names)
            work.rules = replace(work.rules, builtin=builtin)
        else:
            yield from _report(work, cuda, why)
    yield from _columns(work, columns, moves)


def _report(work: Work, cuda: list[ast.expr], why: str) -> Finds:
    # With the CPU's activity torch warns and records that; without one the profiler raises.
    blocks = "tidy" if b".CPU" in work.source.utf8 else ""
    for node in cuda:
        work.take(node)
        yield work.note(
            node,
            "NPU131",
            f"the profiler is not changed, and torch.profiler does not see NPUs: {why}",
            api=_CUDA,
            help="use torch_npu.profiler (ProfilerActivity.NPU) and read the tables it exports, or use "
                 "torch.autograd.profiler.profile(use_device=\"npu\")",
            effort=Effort.MEDIUM,
            blocks=blocks,
        )


def _references(work: Work) -> Iterator[tuple[ast.expr, str]]:
    """The longest references of a file that lead into torch.profiler, with their full names."""
    locals_ = {
        alias.asname or alias.name
        for node in of_kind(ast.ImportFrom, work.scan.imports)
        if (node.module or "").startswith("torch")
        for alias in node.names
    }
    roots = [*locals_, *(n for n, found in work.scan.root.bindings.items() if found[0].kind == "import"), "torch"]
    for name in dict.fromkeys(roots):
        for node in work.scan.names.get(name, ()):
            longest: ast.expr = node
            while isinstance(above := parent(longest), ast.Attribute) and above.value is longest:
                longest = above
            full = work.names.qualified(longest)
            if full is not None and full.startswith(_PREFIX):
                yield longest, full


def _obstacle(work: Work, references: list[tuple[ast.expr, str]], calls: list[ast.Call]) -> str:
    """Why the profiler of a file cannot move; empty when it can."""
    utf8 = work.source.utf8
    if _NPU.search(utf8):
        return "the file has its own code for the NPU"
    if not calls:
        return "the file uses activities but creates no profiler: change it where the profiler is created"
    if any("torch.profiler" in star for star in work.scan.root.stars):
        return "`from torch.profiler import *` hides what is used"
    for node, full in references:
        if full in _STAY:
            continue
        last = full.removeprefix(_PREFIX)
        if (
            full not in _rules(work.settings.torch_version)
            and last != "ProfilerActivity.CPU"
            and not last.startswith("ProfilerAction.")
        ):
            return f"torch_npu.profiler has no {last}"
        if isinstance(parent(node), ast.ClassDef):
            return f"a class is derived from {full}"
        call = call_of(node)
        name = full.rpartition(".")[2]
        if name in _KEYWORDS and call is not None:
            positional, keywords, starred = shape(call)
            more = sorted(keywords - _KEYWORDS[name])
            if starred or positional > _POSITIONAL[name] or more:
                return f"torch_npu.profiler.{name} does not take {', '.join(more) or 'arguments of that form'}"
    for method in _METHODS:
        if work.scan.attributes.get(method):
            return f"torch_npu.profiler.profile has no {method}"
    bound = _bound(calls)
    if (taker := _taker(work, bound)) is not None:
        return f"{taker} gets the profiler, and may read tables that torch_npu.profiler.profile does not have"
    events = [node.value for node in work.scan.attributes.get("events", ())]
    if any(plain_name(value) in bound for value in events):
        return "torch_npu.profiler.profile has no events"
    return ""


def _bound(calls: list[ast.Call]) -> set[str]:
    """The names that hold the profilers which these calls make."""
    found = set()
    for call in calls:
        match parent(call):
            case ast.withitem(optional_vars=ast.Name(id=name)):
                found.add(name)
            case ast.Assign(targets=targets):
                found.update(target.id for target in of_kind(ast.Name, targets))
    return found


def _taker(work: Work, bound: set[str]) -> str | None:
    """What outside of this file gets a profiler: a function of another file, or the caller of one that returns it."""
    for name in sorted(bound):
        for node in work.scan.names.get(name, ()):
            above = parent(node)
            match parent(above) if isinstance(above, ast.keyword) else above:
                case ast.Return() | ast.Yield():
                    return "the caller"
                case ast.Call(func=func) if node is not func:
                    if {binding.kind for binding in work.names.bindings_of(func)} != {"def"}:
                        return work.source.slice(*work.source.extent(func))
    return None


# --- torch.autograd.profiler ---------------------------------------------------------------------------------------


def _autograd(work: Work) -> Finds:
    """`torch.autograd.profiler.profile(use_cuda=...)` names its device; `torch.profiler.profile` drops the flag."""
    if b"use_cuda" not in work.source.utf8:
        return
    for call in work.scan.calls:
        value = keyword_of(call, "use_cuda")
        if value is None or work.names.qualified(call.func) != "torch.autograd.profiler.profile":
            continue
        full = "torch.autograd.profiler.profile"
        if isinstance(value, ast.Constant) and value.value is False:
            yield work.keep(next(k for k in call.keywords if k.arg == "use_cuda"), "profiler-off")
        elif keyword_of(call, "use_device") is None and work.take(call):
            text = '"npu"'
            if not (isinstance(value, ast.Constant) and value.value is True):
                text = f'"npu" if {work.source.slice(*work.source.extent(value))} else None'
                if "\n" in text or not isinstance(value, (ast.Name, ast.Attribute)):
                    yield work.note(
                        call,
                        "NPU131",
                        "use_cuda of the profiler depends on an expression",
                        api=full,
                        help='pass use_device="npu" where use_cuda was true, else None',
                    )
                    continue
            message = f"{full}(use_cuda=...) -> use_device={text}"
            transform = keyword_replaced("use_cuda", "use_device", text)
            yield Edit(call, "NPU132", message, transform, api=full, writes_npu=True)


def _columns(work: Work, columns: list[ast.Constant], moves: bool) -> Finds:
    """Names of columns in tables: torch from 2.4 on reads `cuda` in them as the device, whichever it is."""
    old = version_key(work.settings.torch_version) < (2, 4)
    help_ = "sort by privateuse1_time_total, or by cpu_time_total"
    for node in columns:
        if not work.take(node):
            continue
        if moves:
            yield work.note(
                node,
                "NPU133",
                f"torch_npu's profiler has no column {node.value!r}",
                help="torch_npu calls it self_npu_time_total (export_stacks)",
            )
        elif old:
            yield work.note(
                node, "NPU133", f"the column {node.value!r} has CUDA times in this version of torch", help=help_
            )
        else:
            yield work.keep(node, "profiler-column")
    if old:
        for name in _COLUMNS:
            for attribute in work.scan.attributes.get(name, ()):
                if isinstance(attribute.ctx, ast.Load) and work.take(attribute):
                    yield work.note(
                        attribute, "NPU133", f"`.{name}` is a CUDA time in this version of torch", help=help_
                    )
