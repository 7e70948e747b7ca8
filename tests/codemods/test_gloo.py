"""The backend gloo with tensors on the device."""

from __future__ import annotations

import pytest

from tests.harness import codes, migrate, pattern

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"


@pattern("P30")
@pytest.mark.parametrize(
    "use",
    [
        "loss = torch.ones(1).cuda()\ndist.all_reduce(loss)",
        "dist.broadcast(torch.zeros(2, device='cuda'), 0)",
        "model = DDP(torch.nn.Linear(2, 2), device_ids=[0])",
        "import cherry\nmodel.to('cuda')\nopt = cherry.optim.Distributed(model.parameters(), opt)",
    ],
)
def test_a_tensor_of_the_device_meets_gloo(use: str) -> None:
    result = migrate(f"{HEAD}dist.init_process_group('gloo')\n{use}\n")
    assert "NPU276" in codes(result, applied=False)


@pytest.mark.parametrize(
    "lines",
    [
        "dist.init_process_group('gloo')\ndist.all_reduce(torch.ones(1))\nx = torch.ones(1).cuda()",
        "import cherry\ndist.init_process_group('gloo')\nopt = cherry.optim.Distributed(model.parameters(), opt)",
        "dist.init_process_group('gloo')\nmodel.to('cuda')\nopt = own.optim.Distributed(model.parameters(), opt)",
        "dist.init_process_group('gloo')\nmodel = DDP(torch.nn.Linear(2, 2), device_ids=None)",
        "dist.init_process_group('nccl')\ndist.all_reduce(torch.ones(1).cuda())",
        "dist.init_process_group(name)\ngloo = dist.all_reduce(torch.ones(1).cuda())",
    ],
)
def test_other_groups_and_tensors(lines: str) -> None:
    assert "NPU276" not in codes(migrate(f"{HEAD}name = 'x'\n{lines}\n"), applied=False)
