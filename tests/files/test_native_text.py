"""C, C++ and what builds them: comments, names of the project's own, recipes."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import TARGET
from transplt.base.settings import Settings
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other


def told(path: str, text: str) -> tuple[list[tuple[str, int]], int, int]:
    """(code, line) of what is left for a person; how many words are ignored, and how many stand in comments."""
    data = text.encode()
    result, _ = migrate_other(data, path, kind_of(path, data), Settings(), TARGET)
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    assert result.data == data
    return [(each.code, each.span.line) for each in result.findings if each.open], tokens.ignored, tokens.comments


@pytest.mark.parametrize(
    ("path", "text", "comments"),
    [
        ("CMakeLists.txt", "# Copyright 2021, NVIDIA CORPORATION\nproject(server)\n", 1),
        ("a/x.cmake", "project(server)  # for CUDA\n", 1),
        ("x.hpp", "/*\n * Copyright (c) NVIDIA\n */\nint a;\n", 1),
        ("x.cpp", "int a; /* CUDA */ int b; // cuda\n", 2),
        ("x.pyx", "# cuda\nx = 1\n", 1),
    ],
)
def test_comments(path: str, text: str, comments: int) -> None:
    assert told(path, text) == ([], 0, comments)


@pytest.mark.parametrize(
    "text",
    [
        "const bool need_cuda_sync = c.Finalize();\nif (need_cuda_sync) {\n  log(\"unexpected CUDA sync by it\");\n}\n",
        "struct Options { bool cuda_first; };\n",
        'bool use_cuda = false;  throw Error("invalid");\n',
    ],
)
def test_names_and_texts_alone(text: str) -> None:
    open_, ignored, comments = told("x.cc", text)
    assert (open_, comments) == ([], 0) and ignored


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("x.cc", "bool use_cuda;\ncudaMalloc(&p, 4);\n", [1]),
        ("x.cc", "bool use_cuda;\ntorch::Device d(\"cuda:0\");\n", [1]),
        ("x.cc", "bool use_cuda;\nx.to(torch::kCUDA);\n", [1]),
        ("x.cc", "if (x.is_cuda()) { f_cuda(x); }\n", [1]),
        ("x.cc", "system(\"nvidia-smi -q -x\");\n", [1]),
        ("x.h", "#include <cuda.h>\n", [1]),
        ("x.h", "#ifdef WITH_CUDA\nvoid f();\n#endif\n", [1]),
        ("x.cc", "dlopen(\"libcudart.so\", 1);\n", [1]),
        ("x.cc", "char* s = \"/* \"; cudaFree(p); /* CUDA */\n", [1]),
        ("x.cu", "bool use_cuda;\n", [1]),
        ("x.h", "// of us\n#ifndef _CUDA_UTILS_H\n#define _CUDA_UTILS_H\n#include <cuda.h>\n#endif\n", [4]),
        ("x.cu", 'fprintf(stderr, "CUDA kernel failed : %s\\n", cudaGetErrorString(e));\n', [1]),
        ("x.cu", 'cudaFree(p);\nfprintf(stderr, "CUDA kernel failed : %s\\n", s);\n', [1]),
        ("x.cc", 'PYBIND11_MODULE(ops, m) { m.def("f", &f, "forward of it (CUDA)"); }\n', [1]),
        ("CMakeLists.txt", "find_package(CUDA)  # NVIDIA\n", [1]),
    ],
)
def test_what_is_work(path: str, text: str, lines: list[int]) -> None:
    open_, _, _ = told(path, text)
    assert open_ == [("NPU806", line) for line in lines]


def test_the_lines_of_a_source_are_one_finding() -> None:
    lines = "".join(f"cudaFree{number}(p);\n" for number in range(1, 8))
    (finding,), makefile = (
        migrate_other(lines.encode(), path, FileKind.NATIVE, Settings(), TARGET)[0].findings
        for path in ("ops/a.cu", "CMakeLists.txt")
    )
    assert finding.span.line == 1 and len([*finding.every_detail("name")]) == 7
    assert finding.message == (
        "this C++ or CUDA source uses CUDA in 7 lines (1, 2, 3, 4, 5 and 2 more): "
        "cudaFree1, cudaFree2, cudaFree3, cudaFree4, cudaFree5 and 2 more"
    )
    assert len(makefile) == 7  # each may be another flag


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nvidia-docker run -v a:b x", "NPU801"), ("job run --env NCCL_DEBUG=INFO", "NPU801"),
        ("nvcc -c x.cu", "NPU806"), ("docker build -t cuda .", "NPU806"), ("cc -DNCCL_DEBUG=1 x.c", "NPU806"),
    ],
)  # fmt: skip
def test_recipes(line: str, code: str) -> None:
    open_, _, _ = told("Makefile", f"run:\n\t{line}\n")
    assert open_ == [(code, 2)]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (".PHONY: check-cuda all\ncheck-cuda :\n\ttrue\nall:\n\tmake check-cuda\n", []),
        # a file, a variable, a target that is no name of its own, another name
        ("a-cuda.o: x.cu\n\tcc a-cuda.o\n", [1, 2]),
        ("WITH_CUDA := 1\n", [1]),
        ("cuda:\n\tpython t.py --device cuda\n", [1, 2]),
        ("run-cuda:\n\tcc -L/opt/run-cuda/lib\n", [2]),
    ],
)
def test_targets_of_make_are_names_of_its_own(text: str, left: list[int]) -> None:
    assert [line for _, line in told("Makefile", text)[0]] == left
