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
        ("import torch\ntorch.set_deterministic(True)", "import torch\ntorch.use_deterministic_algorithms(True)"),
    ],
)
def test_names_that_moved(before: str, after: str) -> None:
    check_rewrite(before + "\n", after + "\n", codes_applied=["NPU153"])


def test_the_module_itself() -> None:
    check_rewrite(
        "import torch\nimport torch._six\nx = torch._six.inf\n",
        "import torch\nimport math\nimport torch._six\nx = math.inf\n",
        codes_applied=["NPU403", "NPU153"],
        open_codes=["NPU514"],
    )


@pytest.mark.parametrize(
    "source",
    [
        "from torch._six import string_classes",
        "from torch.utils.serialization import load_lua",
        "import torch._six",
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
        "from torch.utils.data.dataloader import default_collate",
        "from torch._jit_internal import boolean_dispatch",
        "from torch.nn.backends import thnn",
        "from project.legacy import nn",
    ],
)
def test_names_that_torch_has_or_others_have(source: str) -> None:
    check_noop(source + "\n")
