"""What is left of a CUDAExtension, said in place of the general finding."""

from __future__ import annotations

import pytest

from tests.harness import clean
from tests.tunings.tuned import check_untuned
from transplt.base.finding import Effort, FileResult

TUNE = "extensions"
SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(name="ops", ext_modules=[CUDAExtension({})], cmdclass={{"build_ext": BuildExtension}})
"""


def said(arguments: str, files: dict[str, str] | None = None) -> tuple[str, str, Effort | None]:
    declared = ["NPU860"] if "ops" in arguments else []  # the remark that names an extension
    codes = ["NPU550", "NPU759", *declared]
    result: FileResult = check_untuned(
        TUNE, SETUP.format(arguments), open_codes=codes, path="setup.py", files=files or {}
    )
    found = [finding for finding in result.findings if finding.code == "NPU759"]
    assert len(found) == 1
    # The import is reported once, in general.
    assert [finding.span.line for finding in result.findings if finding.code == "NPU550"] == [2]
    return found[0].message, found[0].help, found[0].effort


def test_kernels() -> None:
    message, help_, effort = said('"ops", ["a.cpp", "b.cu"]')
    assert message == "ops contains CUDA kernels: b.cu"
    assert "NpuExtension('ops', ['a.cpp'])" in help_
    assert effort is Effort.HIGH


def test_cpp_alone() -> None:
    message, help_, effort = said('name="ops", sources=["a.cpp", "b.cc"]')
    assert message == "ops has only C++ sources: a.cpp, b.cc"
    assert "NpuExtension('ops', ['a.cpp', 'b.cc'])" in help_
    assert effort is Effort.MEDIUM


@pytest.mark.parametrize("arguments", ["name, sources", '"ops", sources=glob("*.cu")', '"ops", [*sources]'])
def test_sources_that_cannot_be_seen(arguments: str) -> None:
    message, _, effort = said(arguments)
    assert "were not found" in message
    assert effort is Effort.HIGH


GUARDED = "try:\n    import ops\nexcept ImportError:\n    ops = None\n"


def test_a_way_around_it() -> None:
    message, help_, effort = said('"project.ops", ["b.cu"]', {"project/net.py": GUARDED})
    assert message == "the project runs without project.ops: project/net.py imports it in a try with a fallback"
    assert "remove this extension from ext_modules" in help_
    assert effort is Effort.LOW


def test_other_imports_of_a_file_say_nothing_of_an_extension() -> None:
    others = "import torch\nfrom project import loops\n\n"
    message, _, effort = said('"ops", ["b.cu"]', {"project/net.py": others + GUARDED})
    assert message == "the project runs without ops: project/net.py imports it in a try with a fallback"
    assert effort is Effort.LOW


@pytest.mark.parametrize(
    "source",
    [
        "import ops\n",
        "try:\n    import ops\nexcept ImportError:\n    raise RuntimeError('build it first')\n",
        "try:\n    import ops\nexcept ValueError:\n    ops = None\n",
        "try:\n    x = 1\nexcept ImportError:\n    import ops\n",
    ],
)
def test_no_way_around_it(source: str) -> None:
    assert "contains CUDA kernels" in said('"ops", ["b.cu"]', {"project/net.py": source})[0]


def test_one_import_without_a_way_around_it() -> None:
    files = {"project/a.py": GUARDED, "project/b.py": "import ops\n"}
    assert "contains CUDA kernels" in said('"ops", ["b.cu"]', files)[0]


def test_other_extensions() -> None:
    source = clean(SETUP).replace("CUDAExtension", "CppExtension").format('"ops", ["a.cpp"]')
    check_untuned(TUNE, source, open_codes=["NPU860"])
