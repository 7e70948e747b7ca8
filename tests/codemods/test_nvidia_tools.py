"""Programs and providers of NVIDIA that are named in strings."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate, pattern


@pattern("P64")
@pytest.mark.parametrize(
    "line",
    [
        'subprocess.check_output(["nvidia-smi", "--query-gpu=memory.free", "--format=csv"])',
        'subprocess.run("nvidia-smi -L", shell=True)',
        'os.popen("nvidia-smi --query-gpu=index --format=csv | wc -l")',
        'path = shutil.which("nvidia-smi")',
        'command = "nvidia-smi"',
        'os.system(f"nvidia-smi -i {index}")',
    ],
)
def test_commands(line: str) -> None:
    check_noop(f"import os, shutil, subprocess\n{line}\n", open_codes=["NPU245"])


@pattern("P64", "T28")
@pytest.mark.parametrize(
    "line",
    [
        'print("see nvidia-smi for the processes")',
        '"""nvidia-smi shows it."""',
        'logger.info("nvidia-smi was not found")',
        'raise OSError("nvidia-smi is missing")',
        'name = "nvidia-smi-exporter"',
        'shown = {"nvidia-smi": "the cards"}',
    ],
)
def test_text_about_commands(line: str) -> None:
    check_noop(f"{line}\n")


@pattern("T9")
@pytest.mark.parametrize(
    "line",
    [
        'session = ort.InferenceSession(path, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])',
        'providers = ["CUDAExecutionProvider"] if gpu else ["CPUExecutionProvider"]',
        'if "CUDAExecutionProvider" in ort.get_available_providers(): pass',
    ],
)
def test_execution_provider(line: str) -> None:
    check_noop(f"import onnxruntime as ort\n{line}\n", open_codes=["NPU246"])


@pattern("T9", "T28")
def test_text_about_providers() -> None:
    check_noop('print("uses CUDAExecutionProvider if there is one")\n"CUDAExecutionProvider"\n')


_TRIED = """
import subprocess

def cards():
    try:
        {call}
    except {kind}:
        {way}
"""


@pytest.mark.parametrize(
    ("kind", "way", "said"),
    [
        ("FileNotFoundError", "return 0", True),
        ("(subprocess.CalledProcessError, OSError)", "print('no cards')", True),
        ("Exception", "return 0", True),
        ("FileNotFoundError", "raise SystemExit", False),
        ("subprocess.CalledProcessError", "return 0", False),
        ("ValueError", "return 0", False),
    ],
)
def test_a_program_without_which_this_one_goes_on(kind: str, way: str, said: bool) -> None:
    source = _TRIED.format(call='return subprocess.run(["nvidia-smi", "-L"], check=True)', kind=kind, way=way)
    (found,) = [each for each in migrate(source).findings if each.code == "NPU245"]
    assert ("the program goes on" in found.message) == said and found.blocks == ("tidy" if said else "")
