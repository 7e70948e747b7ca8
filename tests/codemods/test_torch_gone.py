"""Names that torch no longer has (rules/torch_gone.json)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from torch._six import inf\nx = inf", "from math import inf\nx = inf"),
        ("from torch._six import inf as big\nx = big", "from math import inf as big\nx = big"),
        (
            "from torch._six import container_abcs\nx = container_abcs.Mapping",
            "from collections import abc as container_abcs\nx = container_abcs.Mapping",
        ),
        (
            "from torch.hub import _download_url_to_file\n_download_url_to_file(a, b)",
            "from torch.hub import download_url_to_file as _download_url_to_file\n_download_url_to_file(a, b)",
        ),
        ("from PIL import Image, PILLOW_VERSION\nx = PILLOW_VERSION",
         "from PIL import Image, __version__ as PILLOW_VERSION\nx = PILLOW_VERSION"),
        ("import PIL\nx = PIL.PILLOW_VERSION", "import PIL\nx = PIL.__version__"),
        ("from torch._six import string_classes\nx = isinstance(y, string_classes)",
         "string_classes = (str, bytes)\nx = isinstance(y, string_classes)"),
        ("from torch._six import int_classes as whole\nx = whole", "whole = int\nx = whole"),
        ("import torch\ntorch.set_deterministic(True)", "import torch\ntorch.use_deterministic_algorithms(True)"),
    ],
)
def test_names_that_moved(before: str, after: str) -> None:
    check_rewrite(before + "\n", after + "\n", codes_applied=["NPU153"])


_NEW, _OLD = "from torch.hub import download_url_to_file as load", "from torch.hub import _download_url_to_file as load"


@pytest.mark.parametrize(
    "source",
    [
        f"try:\n    {_NEW}\nexcept ImportError:\n    {_OLD}\nload(a, b)",
        "try:\n    from math import inf\nexcept Exception:\n    from torch._six import inf\nx = inf",
        "try:\n    import collections.abc as c\nexcept ImportError:\n    from torch._six import container_abcs as c\nc",
    ],
)
def test_an_old_place_where_the_new_one_was_not_found_stays(source: str) -> None:
    check_noop(source + "\n")


@pytest.mark.parametrize(
    ("tried", "caught"),
    [
        ("import mine", "ImportError"),  # another reason to be there
        (_NEW, "ValueError"),
    ],
)
def test_a_handler_of_something_else_gets_the_new_place(tried: str, caught: str) -> None:
    source = "try:\n    {}\nexcept {}:\n    {}\nload(a, b)\n"
    before, after = source.format(tried, caught, _OLD), source.format(tried, caught, _NEW)
    check_rewrite(before, after, codes_applied=["NPU153"])


@pytest.mark.parametrize(
    "source",
    [
        "import PIL\nx = PIL.__version__",
        "from PIL import Image, __version__ as PILLOW_VERSION\nx = PILLOW_VERSION",
        "PILLOW_VERSION = '7.0.0'\nx = PILLOW_VERSION",
        "from mine import PILLOW_VERSION\nx = PILLOW_VERSION",
        "import PIL\nx = hasattr(PIL, 'PILLOW_VERSION')",
    ],
)
def test_the_version_of_pillow_stays(source: str) -> None:
    check_noop(source + "\n")


def test_the_module_itself() -> None:
    check_rewrite(
        "import torch\nimport torch._six\nx = torch._six.inf\n",
        "import torch\nimport math\nimport torch._six\nx = math.inf\n",
        codes_applied=["NPU153"],
        open_codes=["NPU514"],
    )


@pytest.mark.parametrize(
    "source",
    [
        "from torch._six import string_classes, int_classes",
        "from torch.utils.serialization import load_lua",
        "import torch._six",
        "import torch\nif torch._six.PY3:\n    import importlib",
        "from torch.utils.ffi import create_extension",
        "import torch.legacy.nn as nn",
        "from torch.nn._functions.thnn import rnnFusedPointwise",
        "from torch.utils.data._utils.collate import string_classes",
        "import torch.utils.data.dataloader as loader\nx = loader._DataLoaderIter(a)",
        "import torch\nx = torch.symeig(a, eigenvectors=True)",
        "import torch as t\nx, _ = t.lstsq(b, a)",
        "import torch\nx = torch.irfft(a, 2, onesided=False)",
    ],
)
def test_names_that_are_gone(source: str) -> None:
    check_noop(source + "\n", open_codes=["NPU514"])


@pytest.mark.parametrize(
    "source",
    [
        "from math import inf",
        "from torch import inf",
        "import torch\nx = torch.linalg.lstsq(a, b)",
        "import torch\nx = torch.fft.rfft(a)",
        "import numpy as torch\nx = torch.lstsq(a, b)",
        "x = model.lstsq(a, b)",
        "import torch\nx = torch.linalg.lstsq(a, b)\nsymeig = 1",
        "from project._six import inf",
        "import six\nif six.PY3:\n    import importlib",
        "import project as torch\nif torch._six.PY3:\n    import importlib",
        "from torch.utils.data.dataloader import default_collate",
        "from torch._jit_internal import boolean_dispatch",
        "from torch.nn.backends import thnn",
        "from project.legacy import nn",
    ],
)
def test_names_that_torch_has_or_others_have(source: str) -> None:
    check_noop(source + "\n")


OLD_NPU = [
    "with torch.npu.profile(profiler_result_path='a', use_e2e_profiler=True):\n    f()",
    "torch.npu.prof_init('a')",
    "torch_npu.npu.prof_start()",
    "torch.npu.iteration_end()",
    "torch.npu.global_step_inc()",
    "torch.npu.set_start_fuzz_compile_step(3)",
    "with torch.utils.dumper(use_dump=True, dump_path='m.h5') as dump:\n    f()",
]


@pytest.mark.parametrize("line", OLD_NPU)
def test_names_of_the_first_torch_npu(line: str) -> None:
    check_noop(f"import torch\nimport torch_npu\n\n{line}\n", open_codes=["NPU514"])


def test_the_dumper_by_its_own_import() -> None:
    check_noop("from torch.utils.dumper import dumper\n\nprint(dumper)\n", open_codes=["NPU514"])


def test_the_profiler_of_the_first_torch_npu() -> None:
    line = "with torch.autograd.profiler.profile(use_npu=True, record_shapes=True) as prof:\n    f()"
    check_noop(f"import torch\nimport torch_npu\n\n{line}\n", open_codes=["NPU293"])
    inside = line.replace("with", "    with").replace("    f()", "        f()")
    guarded = f"import torch\n\nif args.device == 'npu':\n{inside}\n"
    check_noop(guarded, open_codes=["NPU293"])


@pytest.mark.parametrize(
    "line",
    [
        "with torch.autograd.profiler.profile(record_shapes=True) as prof:\n    f()",
        "torch.npu.set_option({'ACL_OP_COMPILER_CACHE_MODE': 'enable'})",
        "torch.npu.init_dump()",
        "torch.npu.set_device('npu:0')",
        "prof = torch_npu.profiler.profile()",
        "self.npu.prof_init('a')",
        "model.profile(use_npu=True)",
    ],
)
def test_names_that_torch_npu_has(line: str) -> None:
    check_noop(f"import torch\nimport torch_npu\n\n{line}\n")


@pytest.mark.parametrize(
    ("source", "version", "codes"),
    [
        ("import torch\nimport torch.npu\n", "2.4", ["NPU514"]),
        ("import torch\nimport torch.npu\n", "2.5", []),  # torch loads torch_npu by itself
        ("import torch\nimport torch_npu\nimport torch.npu\n", "2.4", []),
        ("import torch\nimport torch.nn\n", "2.4", []),
    ],
)
def test_the_module_of_the_first_torch_npu(source: str, version: str, codes: list[str]) -> None:
    check_noop(source, open_codes=codes, torch_version=version)
