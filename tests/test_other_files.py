"""Files that are not Python: their kind, their tokens, and what is said about them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.finding import Effort, Level
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.tokens import MAX_FINDINGS, OtherFile, scan_other_file
from transplt.project.torch_version import TorchTarget

TARGET = TorchTarget("2.8", "", "2.8.0.post5", "8.5.0", "2.8.0")
WORD = re.compile(rb"cuda|nccl|cudnn|cublas|nvtx|nvidia|nvcc|cupti", re.IGNORECASE)


def scan(name: str, text: str | bytes) -> OtherFile:
    data = text if isinstance(text, bytes) else text.encode()
    return scan_other_file(data, name, kind_of(name, data), TARGET)


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("run.sh", b"", FileKind.SHELL),
        ("bin/train", b"#!/usr/bin/env bash\n", FileKind.SHELL),
        ("bin/train", b"#!/bin/sh -e\n", FileKind.SHELL),
        ("bin/train", b"#!/usr/bin/env python3\n", FileKind.SCRIPT),
        ("bin/train", b"hello\n", FileKind.PROSE),
        ("a.pyi", b"", FileKind.SCRIPT),
        ("conf/a.yaml", b"", FileKind.CONFIG),
        ("a.JSON", b"", FileKind.CONFIG),
        ("a.ipynb", b"{}", FileKind.NOTEBOOK),
        ("requirements.txt", b"", FileKind.REQUIREMENTS),
        ("requirements-dev.txt", b"", FileKind.REQUIREMENTS),
        ("requirements/gpu.txt", b"", FileKind.REQUIREMENTS),
        ("environment.yml", b"", FileKind.REQUIREMENTS),
        ("pyproject.toml", b"", FileKind.REQUIREMENTS),
        ("Dockerfile", b"", FileKind.DOCKER),
        ("docker/Dockerfile.gpu", b"", FileKind.DOCKER),
        ("gpu.dockerfile", b"", FileKind.DOCKER),
        ("docker-compose.yml", b"", FileKind.DOCKER),
        ("csrc/k.cu", b"", FileKind.NATIVE),
        ("CMakeLists.txt", b"", FileKind.NATIVE),
        ("Makefile", b"", FileKind.NATIVE),
        (".env.example", b"", FileKind.CONFIG),
        ("conf/a.yaml.sample", b"", FileKind.CONFIG),
        ("cmake/a.cmake.in", b"", FileKind.NATIVE),
        ("Makefile.in", b"", FileKind.NATIVE),
        ("run.sh.template", b"", FileKind.SHELL),
        ("train.py.example", b"", FileKind.SCRIPT),
        ("README.md.in", b"", FileKind.PROSE),
        ("notes.example", b"", FileKind.PROSE),
        ("README.md", b"", FileKind.PROSE),
        ("notes.txt", b"", FileKind.PROSE),
        ("a.csv", b"", FileKind.PROSE),
        ("a.sh", b"cuda\0", FileKind.BINARY),
        ("a.png", b"\x89PNG\0cuda", FileKind.BINARY),
        (".github/ISSUE_TEMPLATE/bug_report.yaml", b"body:\n  - CUDA\n", FileKind.PROSE),
        (".github/workflows/a.yml", b"on: push\n", FileKind.CONFIG),
        ("docs/ISSUE_TEMPLATE.yaml", b"a: 1\n", FileKind.CONFIG),
    ],
)
def test_kinds(name: str, data: bytes, kind: FileKind) -> None:
    assert kind_of(name, data) is kind


@pytest.mark.parametrize(
    ("name", "line", "code", "api", "help"),
    [
        ("a.sh", "export CUDA_VISIBLE_DEVICES=0,1", "NPU801", "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"),
        ("a.sh", "nvidia-smi -L", "NPU801", "nvidia-smi", "npu-smi info"),
        ("a.sh", "torchrun a.py --backend nccl", "NPU801", "nccl", "hccl"),
        ("a.sh", "CUBLAS_WORKSPACE_CONFIG=:4096:8 python a.py", "NPU801", "CUBLAS_WORKSPACE_CONFIG", "no counterpart"),
        ("a.yaml", "device: cuda:0", "NPU802", "cuda:0", "npu"),
        ("a.ipynb", '    "x = torch.cuda.device_count()\\n",', "NPU803", "torch.cuda.device_count", "torch.npu"),
        ("requirements.txt", "nvidia-cudnn-cu12==9", "NPU804", "nvidia-cudnn-cu12", "drop this wheel"),
        ("requirements.txt", "torch==2.8.0+cu126", "NPU804", "2.8.0+cu126", "torch-npu==2.8.0.post5"),
        ("requirements.txt", "--extra-index-url https://x.org/whl/cu121", "NPU804", "/whl/cu121", "torch-npu"),
        ("Dockerfile", "FROM nvidia/cuda:12.1.0-devel", "NPU805", "nvidia/cuda:12.1.0-devel", "quay.io/ascend/cann"),
        ("k.cu", "__global__ void f(); cudaFree(p);", "NPU806", "cudaFree", "Ascend C"),
        ("k.h", "#include <cuda_runtime.h>", "NPU806", "cuda_runtime.h", "port it together with the kernels"),
        ("stub.pyi", "x: torch.cuda.Stream", "NPU807", "torch.cuda.Stream", "torch.npu"),
        ("Dockerfile", "RUN sed -i 's/torch>=1.7/torch==1.9.1+cu111/g' a.txt", "NPU805", "1.9.1+cu111", "suffix"),
        ("Dockerfile", "RUN wget //x.org/cuda.patch", "NPU805", "//x.org/cuda.patch", "remove the line"),
        ("CMakeLists.txt", "set(A /opt/nvidia/deepstream)", "NPU806", "/opt/nvidia/deepstream", "remove the line"),
    ],
)
def test_findings(name: str, line: str, code: str, api: str, help: str) -> None:
    other = scan(name, f"first line\n{line}\n")
    (finding,) = other.findings
    assert (finding.code, finding.span.line, finding.level) == (code, 2, Level.MANUAL)
    assert finding.api.endswith(api)
    assert finding.api in finding.message
    assert help in finding.help
    assert isinstance(finding.effort, Effort)
    assert finding.path == name
    assert line[finding.span.column - 1 : finding.span.end_column - 1].startswith(finding.api)


@pytest.mark.parametrize(
    ("name", "line", "names"),
    [
        ("a.sh", "python a.py --gpus ${CUDA_VISIBLE_DEVICES:-0}", "CUDA_VISIBLE_DEVICES"),
        ("a.sh", "echo $CUDA_HOME", "CUDA_HOME"),
        ("a.sh", "echo ${CUDA_HOME} ${CUDA_ARCH:=80} ${CUDA_X+set}", "CUDA_HOME, CUDA_ARCH, CUDA_X"),
        ("a.sh", "echo ${#CUDA_X} ${!CUDA_Y} ${CUDA_Z%%:*} ${CUDA_V/a/b}", "CUDA_X, CUDA_Y, CUDA_Z, CUDA_V"),
        ("a.sh", "$CUDA_HOME/bin/nvcc -V", "CUDA_HOME, /bin/nvcc"),
        ("a.sh", "docker pull nvidia/cuda:$CUDA_VERSION", "nvidia/cuda, CUDA_VERSION"),
        ("a.sh", "python a.py --device ${GPU:-cuda} --backend ${B-nccl}", "cuda, nccl"),
        ("a.sh", "x=$(nvidia-smi -L) y=$(nvcc --version)", "nvidia-smi, nvcc"),
        ("a.sh", "ls $HOME/cuda/lib", "$HOME/cuda/lib"),
        ("a.ps1", "echo $env:CUDA_PATH", "CUDA_PATH"),
        ("a.bat", "echo %CUDA_PATH%", "CUDA_PATH"),
        ("Makefile", "a: ; $(CUDA_HOME)/bin/x $(NVCC) ${CUDA_INC}", "CUDA_HOME, NVCC, CUDA_INC"),
        ("Makefile", "a: $(CUDA_OBJ:.o=.c)", "CUDA_OBJ"),
        ("ci.yml", "  run: x ${{ env.CUDA_VERSION }} ${{env.CUDA_ARCH}}", "CUDA_VERSION, CUDA_ARCH"),
        ("ci.yml", "  run: x ${{ matrix.cuda }}", "matrix.cuda"),
        ("Dockerfile", "ENV PATH=$CUDA_HOME:$PATH", "CUDA_HOME"),
    ],
)
def test_a_variable_is_named_without_what_puts_it_in(name: str, line: str, names: str) -> None:
    (finding,) = scan(name, f"{line}\n").findings
    assert finding.message.endswith(f" {names}")
    assert finding.api == names.partition(",")[0]
    assert line[finding.span.column - 1 :].startswith(finding.api)


def test_one_finding_a_line_and_all_tokens_counted() -> None:
    other = scan("a.sh", "NCCL_DEBUG=INFO CUDA_VISIBLE_DEVICES=0 x\n\n# cuda here\nx # nvidia\ny --cuda --cudnn\r\n")
    assert [finding.span.line for finding in other.findings] == [1, 5]
    assert (other.tokens.found, other.tokens.manual, other.tokens.comments) == (4, 4, 2)
    assert other.findings[0].message == "a shell script names NCCL_DEBUG, CUDA_VISIBLE_DEVICES"


def test_comments_of_native_code() -> None:
    other = scan("k.cpp", "int x; // cuda\n#include <cuda.h>\n")
    assert [finding.span.line for finding in other.findings] == [2]
    assert other.tokens.comments == 1


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("# transplt: ignore", "ignored by a comment"),
        ("#transplt:ignore[NPU801]", "ignored by a comment"),
        ("# why not  # transplt: ignore[NPU999, NPU801]", "ignored by a comment"),
        ("# transplt: ignore[NPU8]", "ignored by a comment"),
        ("# transplt: ignore[NPU802]", ""),
        ("# ignore", ""),
    ],
)
def test_a_comment_switches_a_line_off(comment: str, reason: str) -> None:
    other = scan("a.sh", f"export NCCL_DEBUG=INFO {comment}\nnvidia-smi\n")
    assert [finding.ignored for finding in other.findings] == [reason, ""]
    assert (other.tokens.manual, other.tokens.ignored) == ((1, 1) if reason else (2, 0))


@pytest.mark.parametrize(("codes", "reason"), [(["NPU8"], True), (["NPU801"], True), (["NPU802"], False), ([], False)])
def test_the_settings_switch_a_file_off(codes: list[str], reason: bool) -> None:
    other = scan_other_file(b"nvidia-smi\n", "a.sh", FileKind.SHELL, TARGET, codes)
    assert [bool(finding.ignored) for finding in other.findings] == [reason]
    assert other.tokens.ignored == int(reason)


def test_prose_is_counted_apart_and_not_reported() -> None:
    other = scan("README.md", "Needs CUDA and NCCL.\n")
    assert other.findings == ()
    assert (other.prose, other.tokens.found, other.tokens.ignored) == (2, 2, 2)


def test_binary_files_are_left_alone() -> None:
    other = scan("a.bin", b"cuda\0" * 10)
    assert other == OtherFile(FileKind.BINARY)


def test_pictures_in_notebooks_are_no_work() -> None:
    other = scan("a.ipynb", '{\n"image/png": "' + "A" * 5000 + 'cuda"\n,"x": "torch.cuda"\n}')
    assert [finding.span.line for finding in other.findings] == [3]
    assert (other.tokens.found, other.tokens.ignored) == (2, 1)


def test_a_file_full_of_tokens_does_not_drown_the_report() -> None:
    other = scan("data.json", '"cuda",\n' * (MAX_FINDINGS + 50))
    assert len(other.findings) == MAX_FINDINGS + 1
    assert other.findings[-1].message == "50 more lines of this file name CUDA"
    assert other.tokens.manual == MAX_FINDINGS + 50


def test_one_endless_line_is_no_problem() -> None:
    other = scan("a.json", "a" * 300_000 + "cuda" * 50_000)
    assert len(other.findings) == 1
    assert other.tokens.found == 50_000


def test_columns_count_characters() -> None:
    (finding,) = scan("a.yaml", "größe: 1, device: cuda\n").findings
    assert finding.span.column == 19
    assert finding.span.start == 20


@given(
    st.sampled_from(["a.sh", "a.yaml", "a.ipynb", "requirements.txt", "Dockerfile", "k.cu", "README.md"]),
    st.lists(st.sampled_from(["cuda", "CUDA_X", "nccl", "#", "//", " ", "\n", "\r\n", "x", "\u4e2d", "+cu121", "="])),
)
def test_the_account_adds_up(name: str, pieces: list[str]) -> None:
    data = "".join(pieces).encode()
    other = scan(name, data)
    tokens = other.tokens
    assert tokens.found == tokens.manual + tokens.ignored
    assert tokens.found + tokens.comments == len(WORD.findall(data))
    lines = [finding.span.line for finding in other.findings]
    assert lines == sorted(set(lines))
