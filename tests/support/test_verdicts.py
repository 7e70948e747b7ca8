"""Uses of torch's API against the documentation: what is unsupported, limited, unverified, and what is nothing."""

from __future__ import annotations

import pytest

from tests.support.harness import findings, said
from transplt.base.finding import Effort, Level


@pytest.mark.parametrize(
    ("source", "api", "line"),
    [
        ("import torch\ntorch.poisson(torch.ones(3))\n", "torch.poisson", 2),
        ("import torch as th\nx = th.nn.MultiLabelMarginLoss()\n", "torch.nn.MultiLabelMarginLoss", 2),
        ("from torch import nn\nx = nn.MultiLabelMarginLoss()\n", "torch.nn.MultiLabelMarginLoss", 2),
        ("from torch.nn import MultiLabelMarginLoss as R\nx = R()\n", "torch.nn.MultiLabelMarginLoss", 2),
        (
            "import torch.linalg as L\ndef f(x):\n    return L.ldl_factor(x)\n",
            "torch.linalg.ldl_factor",
            3,
        ),
        ("import torch\nf = torch.poisson\nf(1)\n", "torch.poisson", 2),
        ("import torch\nclass A(torch.nn.MultiLabelMarginLoss):\n    pass\n", "torch.nn.MultiLabelMarginLoss", 2),
        ("import torch\ndef f(x: torch.Tensor):\n    return x.to_sparse_csr()\n", "torch.Tensor.to_sparse_csr", 3),
        ("import torch\ny = torch.ones(3).mode()\n", "torch.Tensor.mode", 2),
        ("import torch\ny = (torch.ones(3) + 1).to_sparse_csr()\n", "torch.Tensor.to_sparse_csr", 2),
        (
            "import torch\nclass M(torch.nn.Module):\n    def __init__(self):\n        self.register_buffer('a', f())\n"
            "    def forward(self):\n        return self.a.to_mkldnn()\n",
            "torch.Tensor.to_mkldnn",
            6,
        ),
        (
            "import torch\nclass M(torch.nn.Module):\n    def go(self):\n        self.ipu()\n",
            "torch.nn.Module.ipu",
            4,
        ),
    ],
)
def test_unsupported(source: str, api: str, line: int) -> None:
    found = [(each.code, each.api, each.span.line, each.open) for each in findings(source)]
    assert ("NPU520", api, line, True) in found


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nd = {}\nd['mode'] = 1\nd.mode()\n",
        "import torch\ndef f(x):\n    return x.mode()\n",
        "import torch\ndef f(*xs: torch.Tensor):\n    return xs.mode()\n",
        "import torch\nfrom scipy import stats\nx = stats.mode([1])\n",
        "import torch\nimport pandas\nx = pandas.DataFrame().mode()\n",
        "import torch\nx = torch.ones(3)\nx = load()\nx.mode()\n",
        "import torch\nx = x.something()\nx.mode()\n",
        "import torch\ndef f(x: 'torch.nn.MultiLabelMarginLoss') -> torch.nn.MultiLabelMarginLoss: ...\n",
        "from torch.nn import MultiLabelMarginLoss as L\ndef f(x: L):\n    return isinstance(x, (L, int))\n",
        "from torch.nn import MultiLabelMarginLoss as L\ndef f(x, t):\n    return type(x) == L or t[L] or {L: 1}[x]\n",
        "import torch\nclass poisson: ...\ntorch_poisson = poisson()\n",
        "import torch\nclass M(torch.nn.Module):\n    def ipu(self): ...\n"
        "    def go(self):\n        self.ipu()\n",
        "import torch\nfrom other import Base\nclass M(Base):\n    def go(self):\n        self.ipu()\n",
        "from mytorch import torch\nclass A:\n    MultiLabelMarginLoss = 1\nA.MultiLabelMarginLoss\n",
        "# torch.poisson(1)\nx = 'torch.poisson'\n",
    ],
)
def test_nothing_is_unsupported(source: str) -> None:
    assert said(source, "NPU520") == []


def test_data_loading_is_no_work() -> None:
    source = """
    import torch

    class Data(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return torch.heaviside(index, index)

    def collate(batch):
        return torch.poisson(batch)
    """
    found = [each for each in findings(source) if each.code == "NPU520"]
    assert [each.level for each in found] == [Level.INFO, Level.INFO]


def test_classes_made_of_one_another_are_no_datasets() -> None:
    first = "class A(B):\n    def f(self, x):\n        return torch.heaviside(x, x)\n"
    found = [each for each in findings(f"import torch\n{first}class B(A): ...\n") if each.code == "NPU520"]
    assert [each.level for each in found] == [Level.MANUAL]


def test_a_later_version_is_named() -> None:
    (found,) = [
        each
        for each in findings("import torch\ntorch.linalg.lstsq(x, y)\n", torch_version="2.1")
        if each.code == "NPU520"
    ]
    assert found.effort is Effort.MEDIUM and "supported from torch 2." in found.help


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        ("torch.nn.LSTM(3, 3, dropout=0.5)", "dropout=0.5"),
        ("torch.nn.functional.max_pool2d(x, 2, dilation=(2, 2))", "dilation=(2, 2)"),
        ("torch.nn.functional.kl_div(x, y, log_target=True)", "log_target=True"),
        ("torch.arange(3, dtype=torch.uint8)", "dtype=torch.uint8"),
    ],
)
def test_a_call_that_meets_a_limit(call: str, argument: str) -> None:
    (found,) = [each for each in findings(f"import torch\n{call}\n") if each.code == "NPU521"]
    assert argument in found.message and found.level is Level.MANUAL and found.help.startswith("documented: ")


@pytest.mark.parametrize(
    "call",
    [
        "torch.topk(x, 3, sorted=False)",  # any order will do, a sorted one too
        "torch.topk(x, 3, -1, True, False)",
        "x.topk(3, sorted=False)",
        "torch.nn.LSTM(3, 3, dropout=0)",
        "torch.nn.LSTM(*args)",
        "torch.nn.LSTM(3, 3, dropout=rate)",
        "torch.nn.functional.interpolate(x, size=(2, 2))",
        "torch.nn.functional.interpolate(x, scale_factor=2)",  # torch makes the size of it before the kernel
        "torch.nn.functional.upsample(x, scale_factor=2, mode='nearest')",
        "torch.nn.functional.upsample(x, (2, 2), mode='bilinear', align_corners=True)",
        "torch.nn.functional.upsample_bilinear(x, (2, 2))",
        "torch.nn.functional.interpolate(x, scale_factor=None, size=(2, 2))",
        "torch.nn.functional.max_pool2d(x, 2, dilation=1)",
        "torch.arange(3, dtype=torch.int64)",
        "torch.arange(3, dtype=dtype)",
    ],
)
def test_a_call_that_need_not_meet_a_limit(call: str) -> None:
    assert said(f"import torch\n{call}\n", "NPU521") == []


def test_limits_are_one_finding_a_file_and_no_work() -> None:
    found = findings("import torch.nn as nn\na = nn.BatchNorm2d(1)\nb = nn.BatchNorm2d(2)\n")
    assert [(each.code, each.level, each.open) for each in found] == [("NPU522", Level.INFO, False)]
    assert found[0].message.endswith("dtypes: fp16, fp32 (also in line 3)")


@pytest.mark.parametrize(
    "name",
    [
        "torch.Size([1])",
        "torch.nn.Parameter(x)",
        "torch.distributed.destroy_process_group()",
        "torch.ones(2).tolist()",
        "torch.ones(2).dim()",
        "torch.relu(x)",
        "torch.LongTensor([1])",
        "torch.inference_mode()",
        "torch.nn.Flatten()",
        "torch.multiprocessing.spawn(f)",
        "torch.finfo(torch.float16)",
        "torch.__version__",
        "torch.float8_e4m3fn",
        "torch.hub.load_state_dict_from_url('')",
        "torch.ops.mine.op(1)",
        "torch.xpu.synchronize()",
    ],
)
def test_what_is_well_known_is_not_unverified(name: str) -> None:
    assert said(f"import torch\n{name}\n", "NPU524") == []


def test_unverified() -> None:
    assert said("import torch\ntorch.jit.trace(f, x)\ntorch.jit.trace(g, x)\n") == [("NPU524", "torch.jit.trace", 2)]
    (found,) = findings("import torch\ntorch._foreach_zzz(x)\n")
    assert "is private to torch" in found.message and not found.open


def test_what_the_migration_speaks_of_is_not_said_twice() -> None:
    source = (
        "import torch\nm = torch.nn.DataParallel(n)\ntorch.cuda.synchronize()\ntorch.backends.cudnn.benchmark = True\n"
    )
    assert said(source, "NPU52") == []


def test_hardware() -> None:
    source = "import torch\ntorch.promote_types(a, b)\n"
    assert said(source, hardware="950DT") == [("NPU525", "torch.promote_types", 2)]
    assert said(source, hardware="A3") == []


def test_names_through_other_files() -> None:
    files = {"lib/__init__.py": "from lib.base import *\n", "lib/base.py": "from torch import nn as layers\n"}
    source = "from lib.base import layers\nx = layers.MultiLabelMarginLoss()\nimport torch\n"
    assert ("NPU520", "torch.nn.MultiLabelMarginLoss", 2) in said(source, files=files)


def test_bases_through_other_files() -> None:
    files = {
        "base.py": "import torch\nclass Base(torch.nn.Module):\n    pass\n"
        "class Data(torch.utils.data.Dataset):\n    pass\n"
    }
    source = """
    import torch
    from base import Base, Data

    class Mine(Data):
        def get(self):
            return torch.poisson(1)

    class Other(Base):
        def get(self):
            return torch.poisson(1)
    """
    found = [each.level for each in findings(source, files=files) if each.code == "NPU520"]
    assert found == [Level.INFO, Level.MANUAL]


def test_comments_and_settings_switch_it_off() -> None:
    (found,) = findings("import torch\ntorch.poisson(x)  # transplt: ignore[NPU520]\n")
    assert found.ignored == "ignored by a comment"


@pytest.mark.parametrize(
    ("sources", "open_"), [("['a.cpp']", False), ("['a.cpp'] + glob('*.c*')", True), ("found()", True)]
)
def test_an_extension_of_cpp_is_compiled_for_the_host(sources: str, open_: bool) -> None:
    source = f"from torch.utils.cpp_extension import load\nop = load('op', {sources})\n"
    assert [each.open for each in findings(source) if each.code == "NPU520"] == [open_]


@pytest.mark.parametrize(
    ("used", "apis"),
    [
        ("import lib.layers as own\nown.MultiLabelMarginLoss()\n", []),
        ("from lib import layers\nlayers.MultiLabelMarginLoss()\n", []),
        ("from lib import nets\nnets.MultiLabelMarginLoss()\n", ["torch.nn.MultiLabelMarginLoss"]),
    ],
)
def test_a_module_of_a_package_hides_what_a_star_brings(used: str, apis: list[str]) -> None:
    brought = "from torch import nn as layers, nn as nets\n"
    files = {"lib/__init__.py": "from lib.base import *\n", "lib/base.py": brought, "lib/layers.py": "import torch\n"}
    assert [each.api for each in findings(f"import torch\n{used}", files=files) if each.code == "NPU520"] == apis
