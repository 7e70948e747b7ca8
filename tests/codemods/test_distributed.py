"""Process groups, their options, device meshes, FSDP, and DataParallel."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern

HEAD = "import torch\nimport torch.distributed as dist\n"
AFTER = "import torch\nimport torch_npu  # noqa: F401\nimport torch.distributed as dist\n"


@pattern("P36", "P38", "P39", "T24")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dist.init_process_group('nccl')", "dist.init_process_group('hccl')"),
        ("dist.init_process_group(backend='nccl')", "dist.init_process_group(backend='hccl')"),
        (
            "dist.init_process_group('nccl', device_id=torch.device('cuda:0'))",
            "dist.init_process_group('hccl', device_id=torch.device('npu:0'))",
        ),
        ("dist.init_process_group('cpu:gloo,cuda:nccl')", "dist.init_process_group('cpu:gloo,npu:hccl')"),
        ("dist.new_group(ranks, backend='nccl')", "dist.new_group(ranks, backend='hccl')"),
        ("on = dist.get_backend() == 'nccl'", "on = dist.get_backend() == 'hccl'"),
        ("on = dist.is_nccl_available()", "on = dist.is_hccl_available()"),
        ("on = torch.distributed.distributed_c10d.is_nccl_available()", "on = torch.distributed.is_hccl_available()"),
        ("on = dist.get_backend() == dist.Backend.NCCL", "on = dist.get_backend() == dist.Backend.HCCL"),
        ("mesh = dist.init_device_mesh('cuda', (2, 4))", "mesh = dist.init_device_mesh('npu', (2, 4))"),
        ("mesh = dist.DeviceMesh(device_type='cuda', mesh=m)", "mesh = dist.DeviceMesh(device_type='npu', mesh=m)"),
        (
            "model = MyFSDP(model, device_id=torch.cuda.current_device())",
            "model = MyFSDP(model, device_id=torch.npu.current_device())",
        ),
        (
            "model = dist.fsdp.FullyShardedDataParallel(model, device_id=torch.cuda.current_device(), limit=1)",
            "model = dist.fsdp.FullyShardedDataParallel("
            'model, device_id=torch.device("npu", torch.npu.current_device()), limit=1)',
        ),
        (
            "model = dist.fsdp.FullyShardedDataParallel(model, device_id=torch.device('cuda', rank))",
            "model = dist.fsdp.FullyShardedDataParallel(model, device_id=torch.device('npu', rank))",
        ),
        (
            "options = dist.ProcessGroupNCCL.Options()\noptions.is_high_priority_stream = True",
            "options = torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options()\n"
            "options.is_high_priority_stream = True",
        ),
    ],
)
def test_names_of_nccl(before: str, after: str) -> None:
    check_rewrite(f"{HEAD}{before}\n", f"{AFTER}{after}\n")


@pattern("P39")
def test_process_groups_under_their_private_name() -> None:
    check_rewrite(
        "from torch._C._distributed_c10d import ProcessGroupNCCL as Group\ngroup = Group(store, 0, 1)\n",
        """
        import torch_npu  # noqa: F401
        from torch_npu._C._distributed_c10d import ProcessGroupHCCL as Group
        group = Group(store, 0, 1)
        """,
    )


@pattern("T24")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)", "NPU310"),
        ("options = dist.ProcessGroupNCCL.Options(True)", "NPU310"),
        ("options = dist.ProcessGroupNCCL.Options()\noptions.config.max_ctas = 8", "NPU311"),
        ("options = dist.ProcessGroupNCCL.Options()\noptions.split_from = group", "NPU311"),
    ],
)
def test_options_that_hccl_has_not(line: str, code: str) -> None:
    new = line.replace("dist.ProcessGroupNCCL", "torch_npu._C._distributed_c10d.ProcessGroupHCCL")
    check_rewrite(f"{HEAD}{line}\n", f"{AFTER}{new}\n", open_codes=[code])


@pattern("P40")
@pytest.mark.parametrize(
    "line",
    [
        "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank], output_device=rank)",
        "model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)",
        "dist.init_process_group(backend)",
        "dist.init_process_group('gloo')",
        "other.config = options.config",
    ],
)
def test_calls_that_run_as_they_are(line: str) -> None:
    check_noop(f"{HEAD}{line}\n")


@pattern("P41", "T27")
@pytest.mark.parametrize(
    "line",
    [
        "class Mine(torch.nn.DataParallel): ...",
        "wrap = torch.nn.DataParallel",
        "kinds = (torch.nn.DataParallel, Other)\nmodel = kinds[0](model)",
    ],
)
def test_data_parallel_is_for_a_person(line: str) -> None:
    check_noop(f"{HEAD}{line}\n", open_codes=["NPU507"])


@pattern("P41", "T27")
@pytest.mark.parametrize(
    "line",
    [
        "bare = model.module if isinstance(model, torch.nn.DataParallel) else model",
        "wrapped = isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel))",
        "kinds = (torch.nn.DataParallel, Other)\nwrapped = isinstance(model, kinds)",
        "def unwrap(model: torch.nn.DataParallel) -> torch.nn.Module: ...",
        "model: torch.nn.DataParallel",
    ],
)
def test_asking_for_data_parallel_is_no_work(line: str) -> None:
    check_noop(f"{HEAD}{line}\n")


@pytest.mark.parametrize(
    ("source", "codes"),
    [
        ("wrapped = any(isinstance(net, x) for x in [torch.nn.DataParallel, Other])", []),
        ("wrapped = any(isinstance(net, x) for x in [torch.nn.DataParallel, Other])\n\n\ndef f(x):\n    return x", []),
        ("for kind in (torch.nn.DataParallel, Other):\n    if isinstance(net, kind):\n        net = net.module", []),
        ("for kind in [torch.nn.DataParallel]:\n    net = kind(net)", ["NPU507"]),
    ],
)
def test_classes_that_are_gone_through(source: str, codes: list[str]) -> None:
    check_noop(f"import torch\n{source}\n", open_codes=codes)
