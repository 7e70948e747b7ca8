"""What a setup.py asks for is looked up like the lines of a requirements file."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate


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
        # a release without a wheel for the Pythons of torch, beside torch, where everybody installs it
        ("setup(install_requires=['torch', 'torch_npu', 'matplotlib==3.1.1', 'tensorflow>=1.8.0,<2.0', 'scipy>=1'])",
         ["NPU845"]),
        ("setup(install_requires=['xformers ; sys_platform == \"linux\"', 'torch; os_name == \"nt\"'])", ["NPU290"]),
    ],
)  # fmt: skip
def test_reported(source: str, codes: list[str]) -> None:
    check_noop(f"from setuptools import setup\n{source}\n", path="setup.py", open_codes=codes)


@pytest.mark.parametrize(("name", "blocks"), [("pynvml", "later"), ("gsplat", "later"), ("apex", "")])
def test_what_pip_installs_without_cuda_stops_nothing(name: str, blocks: str) -> None:
    result = migrate(f"from setuptools import setup\nsetup(extras_require={{'dev': ['{name}']}})\n", path="setup.py")
    assert [each.blocks for each in result.findings] == [blocks]


@pytest.mark.parametrize(
    "source",
    [
        "setup(install_requires=['matplotlib==3.1.1'])",
        "setup(install_requires=['torch', 'torch_npu'], extras_require={'plot': ['matplotlib==3.1.1']})",
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


EXTRAS = [
    ("{'dev': ['a']}", "{'dev': ['a'], 'npu': ['torch-npu>=2.1']}"),
    ("{'all': read('all.txt')}", "{'all': read('all.txt'), 'npu': ['torch-npu>=2.1']}"),
    # In the quotes and the layout of the rows before; comments stay with theirs.
    (
        '{\n        "dev": [\n            # run\n            "a",  # b\n        ],\n    }',
        '{\n        "dev": [\n            # run\n            "a",  # b\n        ],\n        '
        '"npu": ["torch-npu>=2.1"],\n    }',
    ),
    (
        "{\n    'dev': ['a'],  # last\n    # more\n}",
        "{\n    'dev': ['a'],  # last\n    'npu': ['torch-npu>=2.1'],\n    # more\n}",
    ),
]


@pytest.mark.parametrize(("before", "after"), EXTRAS)
def test_portable_gets_an_extra(before: str, after: str) -> None:
    for text in (
        "setup(install_requires=['torch>=2'], extras_require={})\n",
        "E = {}\nsetup(install_requires=['torch'], extras_require=E)\n",
    ):
        source = f"from setuptools import setup\n{text}"
        check_rewrite(source.replace("{}", before), source.replace("{}", after), path="setup.py", style="portable")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("setup(install_requires=['torch'])", ""),
        ("setup(install_requires=['torch'], extras_require={})", ""),
        ("setup(install_requires=['torch'], extras_require={**more, 'dev': ['a']})", ""),
        ("setup(install_requires=['torch'], extras_require={'ascend': ['a']})", ""),
        ("setup(install_requires=['torch'], extras_require=extras())", ""),
        ("E = {'a': ['b']}\nE['all'] = sum(E.values(), [])\nsetup(install_requires=['torch'], extras_require=E)", ""),
        ("E = {'a': ['b']}\nif x:\n    E = {}\nsetup(install_requires=['torch'], extras_require=E)", ""),
        (
            "setup(install_requires=['torch<2'], extras_require={'a': ['b']})",
            "no extra can: torch<2 rules out torch 2.14.0",
        ),
    ],
)
def test_portable_without_an_extra(source: str, why: str) -> None:
    result = migrate(f"from setuptools import setup\n{source}\n", path="setup.py", style="portable")
    (said,) = (each for each in result.findings if each.code == "NPU844")
    assert not result.changed and why in said.message and "an extra `npu`" in said.help


@pytest.mark.parametrize(
    "source",
    [
        "setup(extras_require={'a': ['b']})",
        "setup(install_requires=['torch', 'torch-npu'], extras_require={'a': ['b']})",
        "setup(install_requires=['torch'], extras_require={'a': ['b'], 'npu': ['torch-npu']})",
        "configure(install_requires=['torch'], extras_require={'a': ['b']})",
    ],
)
def test_portable_needs_no_extra(source: str) -> None:
    check_noop(f"from setuptools import setup\n{source}\n", path="setup.py", style="portable")


def test_a_comment_switches_the_extra_off() -> None:
    source = "setup(install_requires=['torch'], extras_require={'a': ['b']})  # transplt: ignore[NPU841]\n"
    check_noop(f"from setuptools import setup\n{source}", path="setup.py", style="portable")
