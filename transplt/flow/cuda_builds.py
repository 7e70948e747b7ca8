"""Calls that build CUDA sources: when the program runs, or as modules of an extension."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from transplt.rules.torch_callables import full_names
from transplt.syntax.nodes import inner_nodes, keyword_of, last_name

#: A CUDA source among files that are built, and CUDA code in a string.
_CUDA_SOURCE = re.compile(r"\.cuh?$")
_NAMES_CUDA_SOURCE = re.compile(rb"\.cuh?\b|\.c\w?\*|cuda_sources")
_CPP_SOURCE = re.compile(rb"\.(?:cpp|cc|cxx)['\"]")
KERNEL_TEXT = re.compile(r"\b__(?:global|device)__\b")
#: What builds and loads CUDA sources when the program runs.
BUILDERS = full_names("builds")
_EXTENSION_MAKERS = re.compile(r"CUDAExtension$|cuda_ext(?:ension)?$|create_extension$")
#: What in Cython speaks of a GPU, the headers whose names it declares, and those of C, of C++ and of numpy.
_GPU = re.compile(rb"cuda|gpu|cupy|\bhip\b|nvcc|opencl", re.I)
_DECLARED = re.compile(rb"\bextern\s+from\s+(\*|['\"][^'\"]*['\"])")
_STANDARD = re.compile(
    rb"['\"](?:<[\w/.]+>|numpy/[\w.]+|(?:math|stdlib|stdio|string|stdint|float|limits|time|assert)\.h)['\"]$"
)


def builds_for_cuda(call: ast.Call, text: bytes) -> bool:
    """True for a `load(...)` or `load_inline(...)` that is given CUDA sources, in a file of this text: flags for nvcc
    beside sources that may come from anywhere are none where the file names C++ sources alone.
    """
    keywords = {keyword.arg for keyword in call.keywords if keyword.arg and "cuda" in keyword.arg}
    if keywords == {"extra_cuda_cflags"} and names_cpp_alone(text):
        keywords = set()
    return bool(keywords) or any(
        isinstance(node.value, str)
        and (_CUDA_SOURCE.search(node.value) or KERNEL_TEXT.search(node.value))
        for node in inner_nodes(call, ast.Constant)
    )


def names_cpp_alone(text: bytes) -> bool:
    """True for the text of a file whose strings name C++ sources, and none of CUDA."""
    return _CPP_SOURCE.search(text) is not None and _NAMES_CUDA_SOURCE.search(text) is None


def built_modules(call: ast.Call, makers: set[str]) -> Iterator[str]:
    """The names of the modules that `CUDAExtension(name=...)` and its like build, as they are imported.

    `makers`: variables that may hold such a builder.
    """
    if not _EXTENSION_MAKERS.search(last_name(call.func)) and last_name(call.func) not in makers:
        return
    given = keyword_of(call, "name") or (call.args[0] if call.args else None)
    if isinstance(given, ast.Constant) and isinstance(given.value, str) and re.fullmatch(r"[\w.]+", given.value):
        yield given.value
        module = keyword_of(call, "module")
        if isinstance(module, ast.Constant) and isinstance(module.value, str):
            yield f"{module.value}.{given.value}"


def is_without_cuda(data: bytes) -> bool:
    """True for a file in Cython that neither names a GPU nor declares what other sources define."""
    return _GPU.search(data) is None and all(_STANDARD.match(header) for header in _DECLARED.findall(data))
