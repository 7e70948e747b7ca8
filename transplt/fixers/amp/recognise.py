"""Programs that have mixed precision already: they are migrated, and nothing is added.

`found_in(file)` looks at one parsed file; `already(work)` also at the files that this one imports or is imported by.
What transplt wrote in an earlier run is recognised the same way, so that a second run changes nothing.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from transplt.edits.work import Work
from transplt.program.frameworks import PRECISION, taken_over
from transplt.program.imports import imports_of
from transplt.syntax.names import Names
from transplt.syntax.nodes import arguments_of, last_name
from transplt.syntax.scan import Scan


@dataclass(frozen=True, slots=True)
class Precision:
    """What gives a program its precision, and `where` it is set (empty: in the code itself). `node` is in `path`."""

    path: str
    node: ast.expr
    what: str
    where: str = ""


#: Files without any of these bring no mixed precision.
_WORDS = re.compile(
    rb"autocast|GradScaler|\bamp\b|apex|deepspeed|accelerate|[lL]ightning|transformers|\btrl\b|mmengine|mmcv|fastai"
    rb"|catalyst|composer|ignite|colossalai|megatron|set_default_dtype|MixedPrecision"
    rb"|\.half\(|\.bfloat16\(|torch\.(?:half|float16|bfloat16)"
)
_SHARDS = re.compile(
    rb"FullyShardedDataParallel|fully_shard|torch\.distributed\.(?:fsdp|_composable|_?tensor|pipelin|rpc)\b"
    rb"|from torch\.distributed import [^\n]*\brpc\b"
)
_LOW = frozenset({"torch.float16", "torch.half", "torch.bfloat16"})


def already(work: Work) -> Precision | None:
    """What gives the program of this file mixed precision: in the file itself, else in a file next to it."""
    own = found_in(work.scan, work.names)
    if own is not None:
        return own
    project, path = work.project, work.scan.path
    for other in imports_of(project).around(path):
        data = project.sources[other]
        if not _WORDS.search(data):
            continue
        file = project.files.read(other, data)
        found = None if file is None else found_in(file.scan, Names(file.scan, project.reexports))
        if found is not None:
            return found
    return None


def sharded(work: Work) -> str:
    """The file of this program that shards its model (FSDP, tensor and pipeline parallel, RPC), empty for none."""
    project, path = work.project, work.scan.path
    if _SHARDS.search(work.source.utf8):
        return path
    return next((other for other in imports_of(project).around(path) if _SHARDS.search(project.sources[other])), "")


def found_in(seen: Scan, names: Names) -> Precision | None:
    """The first place of a file that gives a program mixed precision."""
    if not _WORDS.search(seen.source.utf8):
        return None
    found: list[Precision] = []
    for call in seen.calls:
        full = names.qualified(call.func)
        brought = _of(seen.path, call, full)
        low = any(f"torch.{getattr(item, 'attr', '')}" in _LOW for item in call.args)
        if brought and not _float32(call) and (full != "torch.set_default_dtype" or low):
            found += brought
        elif _casts(call, names):
            found.append(Precision(seen.path, call, f"`.{last_name(call.func)}()`", "the casts in the code"))
    for node in seen.classes:
        for base in (*node.bases, *node.decorator_list):
            found += _of(seen.path, base, names.qualified(base))
    for function in seen.functions:
        for decorator in function.decorator_list:
            func = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(decorator, ast.Call) and _float32(decorator):
                continue
            # custom_fwd does nothing where nobody else has put autocast around it.
            if (names.qualified(func) or "").endswith((".autocast", ".auto_fp16")):
                found.append(Precision(seen.path, decorator, "torch's autocast"))
    return min(
        found, key=lambda item: (item.what.startswith("`"), item.node.lineno, item.node.col_offset), default=None
    )


def _of(path: str, node: ast.expr, full: str | None) -> list[Precision]:
    framework = taken_over(PRECISION, full or "")
    return [] if framework is None else [Precision(path, node, framework.called, framework.precision_set_by)]


def _casts(call: ast.Call, names: Names) -> bool:
    """True for `.half()`, `.bfloat16()` and `.to(torch.float16)`."""
    match call.func:
        case ast.Attribute(attr="half" | "bfloat16"):
            return not call.args and not call.keywords
        case ast.Attribute(attr="to"):
            return any(names.qualified(item) in _LOW for item in arguments_of(call))
    return False


def _float32(call: ast.Call) -> bool:
    """True for `autocast(enabled=False)`: a model that guards itself has no mixed precision of its own."""
    return any(
        keyword.arg == "enabled" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in call.keywords
    )
