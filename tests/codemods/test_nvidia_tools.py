"""Programs and providers of NVIDIA that are named in strings."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate, pattern
from transplt.base.finding import Level


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


_NAMED = """
import subprocess
import torch

def _links(out):
    subprocess.run(["nvidia-smi", "topo", "-m"])

def check(out):
    name = read_name(0).lower()
    if "nvidia" in name:
        _links(out)
"""


def test_what_the_name_of_the_card_leads_to() -> None:
    result = check_noop(_NAMED, open_codes=["NPU245"])
    assert [each.level for each in result.findings] == [Level.INFO]


@pytest.mark.parametrize(
    "changed",
    [
        _NAMED.replace('if "nvidia" in name:', "if fast:"),
        _NAMED.replace('if "nvidia" in name:', 'if "nvidia" not in name:'),
        _NAMED.replace('"nvidia" in name', '"nvidia" in sys.argv'),
        f"{_NAMED}_links(print)\n",
        f"{_NAMED}start(_links)\n",
    ],
)
def test_other_ways_to_the_command(changed: str) -> None:
    assert [each.level for each in check_noop(changed, open_codes=["NPU245"]).findings] == [Level.MANUAL]


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
    assert ("the program also runs" in found.message) == said and found.blocks == ("tidy" if said else "")


@pytest.mark.parametrize(
    ("line", "blocks"),
    [
        ("os.system('nvidia-smi')", "tidy"),
        ("os.system(f'nvidia-smi -i {i}')", "tidy"),
        ("code = os.system('nvidia-smi')", ""),
        ("assert os.system('nvidia-smi') == 0", ""),
        ("os.popen('nvidia-smi')", ""),
        ("subprocess.run('nvidia-smi')", ""),
    ],
)
def test_a_program_that_nobody_asks_how_it_ended(line: str, blocks: str) -> None:
    (found,) = [each for each in migrate(f"import os, subprocess\n{line}\n").findings if each.code == "NPU245"]
    assert found.blocks == blocks


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('os.environ["MUJOCO_GL"] = "egl"', True),
        ('os.environ["MUJOCO_GL"] = os.getenv("MUJOCO_GL", "egl")', True),
        ('os.environ.setdefault("PYOPENGL_PLATFORM", "egl")', True),
        ('os.environ["MUJOCO_GL"] = "osmesa"', False),
        ('os.environ["PYOPENGL_PLATFORM"] = name', False),
        ('drawn = {"MUJOCO_GL": "egl"}', False),
        ('if os.environ["MUJOCO_GL"] == "egl":\n    pass', False),
    ],
)
def test_what_opens_a_device_of_the_graphics_driver(line: str, found: bool) -> None:
    findings = check_noop(f"import os\n\n{line}\n", open_codes=["NPU221"] * found).findings
    assert all(each.detail("condition") == "hosts without Mesa's EGL" for each in findings)
