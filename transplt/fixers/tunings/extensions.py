"""`extensions`: for each CUDAExtension what is left of it without CUDA: its C++ sources, or the path without it."""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.tuning_writer import switched_off, writer_for
from transplt.syntax.nodes import argument_at, nodes_in, string_of
from transplt.syntax.scan import chain, parent

fixer = Fixer(__name__, code="NPU759", rank=350, theme="tune:extensions", needs=(b"CUDAExtension",))

_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "OSError"})


@fixer.on(ast.Call, name="torch.utils.cpp_extension.CUDAExtension")
def what_is_left_of_it(work: Work, call: ast.Call) -> Finds:
    """Say what becomes of an extension, in the place of the general finding."""
    writer = writer_for(work, fixer)
    if writer is None or switched_off(work, call.func, fixer.code):
        return
    name = string_of(argument_at(call, 0, "name")) or ""
    sources = _sources(call)
    kernels = [source for source in sources if source.endswith((".cu", ".cuh"))]
    others = [source for source in sources if source not in kernels]
    built = f"torch_npu.utils.cpp_extension.NpuExtension({name!r}, {others!r})"
    start, end = work.source.extent(call.func)
    work.withdraw_notes(lambda note: note.code == "NPU550" and start <= note.extent[0] < end)
    optional = name and _optional(work, name)
    if optional:
        message = f"the project runs without {name}: {optional} imports it in a try with a fallback"
        help_ = "remove this extension from ext_modules; the fallback runs on the NPU"
        effort = Effort.LOW
    elif kernels:
        message = f"{name or 'this extension'} contains CUDA kernels: {', '.join(kernels)}"
        help_ = f"write the kernels as torch operators or in Ascend C; build the rest with {built}"
        effort = Effort.HIGH
    elif others:
        message = f"{name or 'this extension'} has only C++ sources: {', '.join(others)}"
        help_ = f"if they include no CUDA header, build them with {built}"
        effort = Effort.MEDIUM
    else:
        message = f"{name or 'this extension'} builds sources that were not found"
        help_ = (
            "remove the .cu sources, write them as torch operators or in Ascend C, and build the others with "
            "torch_npu.utils.cpp_extension.NpuExtension"
        )
        effort = Effort.HIGH
    writer.left(call.func, message, help_, fixer.code, effort)
    yield from writer.found


def _sources(call: ast.Call) -> list[str]:
    """The sources of an extension; none where they are not all written out."""
    node = argument_at(call, 1, "sources")
    found = []
    for item in node.elts if isinstance(node, (ast.List, ast.Tuple)) else ():
        words = [word for each in ast.walk(item) if (word := string_of(each)) is not None]
        if not words:
            return []
        found.append("/".join(words) if isinstance(item, ast.Call) else words[-1])
    return found


def _optional(work: Work, name: str) -> str:
    """A file that imports an extension in a try and goes on without it, empty when one needs it or none is seen."""
    module = name.rpartition(".")[2]
    ways = ""
    for path, data in sorted(work.project.sources.items()):
        if module.encode() not in data or not path.endswith(".py") or path == work.scan.path:
            continue
        file = work.project.files.read(path, data)
        if file is None:
            return ""
        for node in file.scan.imports:
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names.append(node.module or "")
            if not any(each.rpartition(".")[2] == module for each in names):
                continue
            if not _guarded(node):
                return ""
            ways = path
    return ways


def _guarded(node: ast.AST) -> bool:
    """True in the body of a try whose handler of a failed import does not raise."""
    inner = node
    for above in chain(node):
        if isinstance(above, ast.Try) and inner in above.body and any(map(_goes_on_without, above.handlers)):
            return True
        inner = above
        if isinstance(above, ast.stmt) and isinstance(parent(above), ast.Module):
            break
    return False


def _goes_on_without(handler: ast.ExceptHandler) -> bool:
    """True for a handler that takes an import which fails, and raises nothing itself."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = handler.type is None or any(getattr(kind, "id", "") in _MISSING for kind in kinds)
    return caught and not any(isinstance(each, ast.Raise) for each in nodes_in(handler.body))
