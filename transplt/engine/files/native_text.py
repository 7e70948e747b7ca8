"""C, C++, CUDA and what builds them, as far as the account of CUDA words needs it: comments, and a project's own names.

A source of C++ without any name of CUDA's, of torch's for CUDA or of a kernel's speaks of CUDA in texts and in names of
its own: nothing in it has to be ported.
"""

from __future__ import annotations

import re

from transplt.base.text.cuda_words import mentions_cuda
from transplt.engine.files.kind import name_filled

#: What is written with `#` for a comment: CMake, make, Bazel, ninja, Cython.
_HASH_NAMES = ("makefile", "gnumakefile", "cmakelists.txt", "build", "workspace")
_HASH_SUFFIXES = (".cmake", ".mk", ".ninja", ".bazel", ".bzl", ".pyx", ".pxd")
#: Sources that are for the host unless they name CUDA.
_HOST_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl")
SOURCE_SUFFIXES = (*_HOST_SUFFIXES, ".cu", ".cuh")
#: Comments of C and what may hold their signs: texts and characters.
_PIECE = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.){1,4}'", re.DOTALL)
#: The guard of a header.
_GUARD = re.compile(rb"#[ \t]*ifndef[ \t]+(\w*_(?:CUH|H(?:H|PP|XX)?|INCLUDED)_*)\s+#[ \t]*define[ \t]+\1\b", re.I)
#: A name of the project's own: in small letters, and neither called nor a space of names, a header or a template.
_OWN = re.compile(rb"(?<![\w./])(?!is_cuda\b)[a-z0-9_]*cuda[a-z0-9_]*\b(?![ \t]*(?:\(|::|<|\.h|/))")
#: What gives Python the kernels of sources beside it.
_BINDS = re.compile(rb"\b(?:PYBIND11_MODULE|TORCH_LIBRARY)")
#: A text that is a device, a library, a variable or the like, and one that is run.
_NAMED_IN_TEXT = re.compile(rb"\"[^\"\n]*(?:cuda|nccl|cudnn|cublas|nvidia|nvtx|nvcc|cupti)[^\"\n]*\"", re.I)
_RUN = re.compile(rb"nvidia-smi|nvcc|\.so\b|\b(?:CUDA|NCCL|NVIDIA)_|__global__|<<<|#include|;\s*\\n|=\s*cuda", re.I)
#: A recipe that starts a container or a program of NVIDIA, or gives one a variable: no build.
_STARTS = re.compile(
    rb"^\t[^#\n]*(?:\b(?:nvidia-docker|docker|podman)[ \t]+(?:run|create)\b|\bnvidia-smi\b|--env[ =](?:CUDA|NCCL)_\w+=)"
)
#: What make is asked for by a name of several words: `check-cuda-install:`.
_TARGET = re.compile(rb"^(?=\w+[_-]\w)[\w-]*cuda[\w-]*(?=[ \t]*:(?![:=]))", re.M | re.I)


def has_hash_comments(path: str) -> bool:
    """True for a build file whose comments begin with `#`."""
    name = name_filled(path.rpartition("/")[2].lower())
    return name in _HASH_NAMES or name.endswith(_HASH_SUFFIXES)


def starts_a_container(path: str, line: bytes) -> bool:
    """True for a recipe of a Makefile that runs a container: a command, and no part of a build."""
    return _is_of_make(path) and _STARTS.search(line) is not None


def _is_of_make(path: str) -> bool:
    return path.lower().endswith((*_HASH_NAMES[:2], ".mk"))


def block_comments(data: bytes) -> list[tuple[int, int]]:
    """The comments of C between `/*` and `*/`, by place."""
    if b"/*" not in data:
        return []
    return [match.span() for match in _PIECE.finditer(data) if match.group().startswith(b"/*")]


def spoken_places(path: str, data: bytes) -> list[tuple[int, int]]:
    """The guard of a header, and texts for people: nothing there has to be ported. A source that binds kernels is one
    for its texts, too; of one without any code for CUDA it is the whole. Of a Makefile its targets, wherever named.
    """
    if _is_of_make(path) and (targets := {*_TARGET.findall(data)}):
        named = re.compile(rb"(?<![\w./-])(?:%s)(?![\w./-])" % b"|".join(sorted(targets, reverse=True)))
        return [match.span() for match in named.finditer(data)]
    if _only_speaks_of_cuda(path, data):
        return [(0, len(data))]
    guard, pieces = _GUARD.search(data), () if _BINDS.search(data) else _PIECE.finditer(data)
    texts = [match.span() for match in pieces if match.group().startswith(b'"') and _is_prose(match)]
    return sorted(([(guard.start(1), guard.end())] if guard else []) + texts)


def _only_speaks_of_cuda(path: str, data: bytes) -> bool:
    """True for a source of C or C++ in which CUDA stands in texts and in names of its own alone."""
    if not path.lower().endswith(_HOST_SUFFIXES) or "cuda" in path.lower() or _BINDS.search(data):
        return False
    # Of a text that is one for people, and of comments, nothing is left.
    code = _PIECE.sub(lambda piece: b" " if piece[0][:1] == b"/" or _is_prose(piece) else piece[0], data)
    return not mentions_cuda(_OWN.sub(b"", code).lower()) and _NAMED_IN_TEXT.search(code) is None


def code_of(data: bytes) -> bytes:
    """A source of C, C++ or CUDA without comments, each run of white space one blank."""
    code = _PIECE.sub(lambda piece: b" " if piece.group().startswith((b"//", b"/*")) else piece.group(), data)
    return b" ".join(code.split())


def _is_prose(piece: re.Match[bytes]) -> bool:
    return piece.group().count(b" ") > 1 and _RUN.search(piece.group()) is None
