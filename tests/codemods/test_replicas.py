"""The parts of DataParallel, and batch norms that work over its replicas."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate
from transplt.base.finding import Level


@pytest.mark.parametrize(
    "source",
    [
        "from torch.nn.parallel import replicate\nr = replicate(net, [0, 1])",
        "import torch\nr = torch.nn.parallel.parallel_apply(nets, xs)",
        "import torch.nn as nn\nr = nn.parallel.scatter(x, [0, 1])",
        "from torch.nn.parallel._functions import ReduceAddCoalesced\nr = ReduceAddCoalesced.apply(0, 2, x)",
        "from torch.nn.parallel.scatter_gather import scatter_kwargs\nr = scatter_kwargs(x, {}, [0])",
        "from sync_batchnorm import SynchronizedBatchNorm2d\nn = SynchronizedBatchNorm2d(8)",
        "from models import sync\nnorm = partial(sync.SynchronizedBatchNorm2d, eps=1)",
        "from encoding.parallel import DataParallelModel\nnet = DataParallelModel(net)",
        "class Norm(Base):\n    def __data_parallel_replicate__(self, context, index):\n        pass",
        "from modules import InPlaceABNSync as Norm, InPlaceABNSync\nn = InPlaceABNSync(8)",
    ],
)
def test_reported(source: str) -> None:
    result = migrate(f"{source}\n", files={"other.py": "x = 1\n"})
    assert not result.changed
    assert {finding.code for finding in result.findings} <= {"NPU294", "NPU507"} and result.findings


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nn = torch.nn.SyncBatchNorm(8)",
        "import torch\nn = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)",
        "from torch.nn.parallel import DistributedDataParallel\nm = DistributedDataParallel(net)",
        "import torch\ntorch.distributed.all_gather(a, b)",
        "class SynchronizedBatchNorm2d:\n    pass",
        "'SynchronizedBatchNorm2d'",
        "if hasattr(net, '__data_parallel_replicate__'):\n    net.__data_parallel_replicate__(context, 0)",
        "from sync_batchnorm import SynchronizedBatchNorm2d",
        "def scatter(x):\n    return x\ny = scatter(1)",
        "from sync_batchnorm import SynchronizedBatchNorm2d\nif isinstance(m, SynchronizedBatchNorm2d):\n    pass",
        "import sync\nif isinstance(m, (Conv, sync.SynchronizedBatchNorm2d)):\n    pass",
        "from layers import SyncNorm as SynchronizedBatchNorm2d\nn = SynchronizedBatchNorm2d(8)",
    ],
)
def test_silent(source: str) -> None:
    check_noop(f"{source}\n", files={"other.py": "x = 1\n"})


def test_the_class_of_a_norm_that_is_known_is_reported_where_it_is_made() -> None:
    source = "class _SynchronizedBatchNorm(Base):\n    def __data_parallel_replicate__(self, c, i):\n        pass\n"
    levels = [migrate(text).findings[0].level for text in (source, source.replace("_Synchronized", "Own"))]
    assert levels == [Level.INFO, Level.MANUAL]


def test_a_name_that_another_file_gives_to_a_layer_of_a_package() -> None:
    given = "from apex.parallel import SyncBatchNorm as SynchronizedBatchNorm2d\n"
    source = "from norms import SynchronizedBatchNorm2d\nn = SynchronizedBatchNorm2d(8)\n"
    assert not migrate(source, files={"norms.py": given}).findings
    given = "class SynchronizedBatchNorm2d(Base):\n    pass\n"
    assert [each.code for each in migrate(source, files={"norms.py": given}).findings] == ["NPU294"]


@pytest.mark.parametrize(
    "source",
    [
        # another class by that name
        "from torch.nn import SyncBatchNorm as SynchronizedBatchNorm2d\nn = SynchronizedBatchNorm2d(8)",
        "from norms import SynchronizedBatchNorm2d\nn = SynchronizedBatchNorm2d(8)",
        # one process per card already
        "import torch.distributed as dist\nclass InPlaceABNSync:\n    def forward(self, x):\n"
        "        dist.all_reduce(x)\nn = InPlaceABNSync()",
    ],
)
def test_a_norm_over_ranks_is_none_over_replicas(source: str) -> None:
    check_noop(f"{source}\n", files={"norms.py": "from torch.nn import SyncBatchNorm as SynchronizedBatchNorm2d\n"})


def test_a_norm_with_queues_between_replicas() -> None:
    source = "class InPlaceABNSync:\n    def forward(self, x):\n        self.queue.put(x)\nn = InPlaceABNSync()\n"
    check_noop(source, open_codes=["NPU294"])


@pytest.mark.parametrize(
    ("source", "blocks"),
    [
        ("import torch\nclass Own(torch.nn.DataParallel):\n    def gather(self, x, d):\n        return x", "later"),
        ("from torch.nn.parallel import replicate\nr = replicate(net, [0, 1])", "later"),
        ("import torch\nnet = torch.nn.DataParallel(net, output_device=1)", "later"),
    ],
)
def test_what_only_several_cards_meet_stops_later(source: str, blocks: str) -> None:
    result = check_noop(f"{source}\n", open_codes=["NPU507"])
    assert {each.blocks for each in result.findings if each.code == "NPU507"} == {blocks}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from sync import SynchronizedBatchNorm2d\nn = SynchronizedBatchNorm2d(8)", [("NPU294", "slow")]),
        ("from sync import patch_replication_callback\npatch_replication_callback(net)", [("NPU294", "slow")]),
        ("from sync import DataParallelWithCallback\nnet = DataParallelWithCallback(net)", [("NPU294", "later")]),
        (
            "from torch.nn.parallel._functions import Broadcast\n\n\nclass Norm(Base):\n"
            "    def __data_parallel_replicate__(self, context, index):\n        Broadcast.apply(index, context)",
            [("NPU294", "slow")],
        ),
        (
            "from torch.nn import DataParallel\n\n\nclass DataParallelWithCallback(DataParallel):\n"
            "    def replicate(self, module, cards):\n"
            "        return super(DataParallelWithCallback, self).replicate(module, cards)",
            [],
        ),
        (
            "from torch.nn import DataParallel\n\n\nclass Shares(DataParallel):\n"
            "    def replicate(self, module, cards):\n        return super(Shares, self).replicate(module, cards)",
            [("NPU507", "later")],
        ),
    ],
)
def test_what_one_replica_never_comes_to_stops_nothing(source: str, found: list[tuple[str, str]]) -> None:
    result = migrate(f"{source}\n", files={"other.py": "x = 1\n"})
    assert [(each.code, each.blocks) for each in result.findings if each.open] == found
