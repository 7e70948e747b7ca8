"""What a setup.py asks for is looked up like the lines of a requirements file."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("setup(install_requires=['torch', 'xformers>=0.0.20'])", ["NPU290", "NPU844"]),
        ("setup(install_requires=['torch==1.4.0'])", ["NPU291", "NPU844"]),
        ("setup(install_requires=['numpy', 'torch>=2'])", ["NPU844"]),
        ("setup(extras_require={'gpu': ['gsplat'], 'old': ('transformers<4.20',)})", ["NPU290", "NPU291"]),
        ("needs = ['apex'] + ['numpy']\nsetup(install_requires=needs)", ["NPU290"]),
        ("setup(install_requires=['cupy-cuda12x'])", ["NPU290"]),
        ("setup(install_requires=['dgl', 'dgl>=1'], setup_requires=['DGL'])", ["NPU290"]),
        ("setup(name='x', python_requires='>=3.6, <3.9')", ["NPU845"]),
        ("setup(install_requires=['xformers ; sys_platform == \"linux\"', 'torch; os_name == \"nt\"'])", ["NPU290"]),
    ],
)
def test_reported(source: str, codes: list[str]) -> None:
    check_noop(f"from setuptools import setup\n{source}\n", path="setup.py", open_codes=codes)


@pytest.mark.parametrize(("name", "blocks"), [("pynvml", "later"), ("gsplat", "later"), ("apex", "")])
def test_what_pip_installs_without_cuda_stops_nothing(name: str, blocks: str) -> None:
    result = migrate(f"from setuptools import setup\nsetup(extras_require={{'dev': ['{name}']}})\n", path="setup.py")
    assert [each.blocks for each in result.findings] == [blocks]


@pytest.mark.parametrize(
    "source",
    [
        "setup(install_requires=['torch', 'torch_npu', 'numpy>=1.2', 'kornia'])",
        "setup(install_requires=['transformers>=4.40'])",
        "setup(install_requires=open('requirements.txt').read().split())",
        "setup(extras_require={'apex': ['numpy']})",
        "setup(keywords=['xformers'], name='apex')",
        "setup(install_requires=needs)",
        "configure(install_requires=['xformers'])",
        "setup(python_requires='>=3.6')",
        "setup(python_requires=PYTHON)",
        "configure(python_requires='<3.9')",
        "setup(install_requires=[\"torch<2.3 ; platform_system == 'Darwin'\"])",
        "setup(install_requires=['triton ; sys_platform == \"win32\"', 'xformers; os_name == \"nt\"'])",
        "setup(install_requires=['nvidia-nccl-cu12 ; sys_platform == \"win32\"', 'cupy-cuda12x; os_name == \"nt\"'])",
    ],
)
def test_silent(source: str) -> None:
    check_noop(f"from setuptools import setup\n{source}\n", path="setup.py")
