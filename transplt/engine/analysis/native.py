"""C++ and CUDA sources: what they hold that Python calls, and the kernels in them.

Only names are read; the lines that name CUDA are findings of their own (NPU80x).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from transplt.base.finding import Finding, Level, Span
from transplt.base.render.cell import first_of
from transplt.rules.kernels import instead_of, kernels_among, replacement

CODE = "NPU557"
_MODULE = re.compile(rb"\bPYBIND11_MODULE\s*\(\s*(\w+)")
_LIBRARY = re.compile(rb"\bTORCH_LIBRARY(?:_FRAGMENT)?\s*\(\s*(\w+)")
_DEFINED = re.compile(rb"\bm\s*\.\s*def\s*\(\s*(?:TORCH_SELECTIVE_SCHEMA\s*\(\s*)?\"([\w:]+)")
_KERNEL = re.compile(rb"\b__global__\b[^;{(]*?\b(\w+)\s*\(")
_MAIN = re.compile(rb"^(?:int|auto|void)\s+main\s*\(", re.M)
_MOST = 12
_HELP = "rewrite it for the NPU (Ascend C, triton-ascend), or replace it with torch operators"
_OF_CUDA = re.compile(rb"cu(?:da|dnn|blas)|__global__|thrust|nvcc", re.I)
_PLAIN = "it contains no CUDA code: it builds on an Ascend host unchanged, unless it calls a CUDA library"


def findings_of(data: bytes, path: str) -> Iterator[Finding]:
    """One finding for each binding of a source file, and one for its kernels, or for the program that it is."""
    operators = sorted({match[1].decode("ascii") for match in _DEFINED.finditer(data)})
    for pattern, what in ((_MODULE, "the module"), (_LIBRARY, "operators of torch.ops.")):
        for match in pattern.finditer(data):
            name = match[1].decode("ascii")
            shown = f"{what}{name}" if what.endswith(".") else f"{what} {name}"
            named = f"binds {shown} to Python" if name != "TORCH_EXTENSION_NAME" else "has functions for Python"
            listed = first_of(operators, _MOST)
            message = f"this source {named}" + (f": {listed}" if listed else "")
            binds = (("binds", shown.rpartition(" ")[2]), *((("functions", listed),) if listed else ()))
            yield _finding(data, path, match.start(), message, name, [*operators, name], binds)
    kernels = [match for match in _KERNEL.finditer(data) if match[1] not in (b"void", b"__launch_bounds__")]
    if kernels:
        names = sorted({match[1].decode("ascii") for match in kernels})
        message = f"{len(names)} CUDA kernel{'s' if len(names) > 1 else ''}: {first_of(names, _MOST)}"
        folder, _, name = path.rpartition("/")  # that of the folder may be the name of an operator too
        called = [*names, name.partition(".")[0], folder.rpartition("/")[2]]
        yield _finding(data, path, kernels[0].start(), message, names[0], called, (("kernels", message),))
    elif path.endswith(".cu") and (main := _MAIN.search(data)) is not None:
        message = "this source is a separate program without kernels"
        yield _finding(data, path, main.start(), message, path, [], (("program", path),))


def _finding(
    data: bytes, path: str, at: int, message: str, name: str, called: list[str], details: tuple[tuple[str, str], ...]
) -> Finding:
    line = data.count(b"\n", 0, at) + 1
    span = Span(line, 1, line, 1, at, at)
    known = kernels_among(called)
    help_text = "; ".join(replacement(row) for row in known) or (_HELP if _OF_CUDA.search(data) else _PLAIN)
    named = ({**row, "name": next((each for each in called if each in row["operators"]), row["name"])} for row in known)
    details += tuple(("instead", text) for row in named if (text := instead_of(row)))
    return Finding(path, span, CODE, Level.INFO, message, name, help=help_text, details=details)
