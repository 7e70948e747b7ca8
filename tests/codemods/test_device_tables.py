"""Tables by device gain a row for the NPU and never lose one."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("T20")
def test_a_table_that_is_looked_up_by_device() -> None:
    check_rewrite(
        """
        import torch
        SYNC = {"cuda": torch.cuda.synchronize, "cpu": None}
        def f(device):
            SYNC[device.type]()
            return {'cuda': 4, 'cpu': 1}[device.type]
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        SYNC = {"cuda": torch.cuda.synchronize, "npu": torch.npu.synchronize, "cpu": None}
        def f(device):
            SYNC[device.type]()
            return {'cuda': 4, 'npu': 4, 'cpu': 1}[device.type]
        """,
    )


@pattern("T20")
def test_the_layout_of_the_table_is_kept() -> None:
    check_rewrite(
        """
        import torch
        LIMITS = {
            "cpu": 1,  # slow
            "cuda": 2,
        }
        def f(x):
            return LIMITS.get(x.device.type, 0)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        LIMITS = {
            "cpu": 1,  # slow
            "cuda": 2,
            "npu": 2,
        }
        def f(x):
            return LIMITS.get(x.device.type, 0)
        """,
        codes_applied=["NPU209", "NPU403"],
    )


@pattern("P49", "T16")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{'cuda:0': 'cuda:1'}", "{'cuda:0': 'npu:1', 'npu:0': 'npu:1'}"),
        ("{'cuda:0': 'cpu'}", "{'cuda:0': 'cpu', 'npu:0': 'cpu'}"),
        ("{'cuda:%d' % 0: 'cuda:%d' % rank}", "{'cuda:%d' % 0: 'npu:%d' % rank, 'npu:%d' % 0: 'npu:%d' % rank}"),
        ("{f'cuda:{0}': f'cuda:{rank}'}", "{f'cuda:{0}': f'npu:{rank}', f'npu:{0}': f'npu:{rank}'}"),
    ],
)
def test_map_location(before: str, after: str) -> None:
    """Checkpoints written on GPUs go on being read, and so are those that the migrated program writes."""
    check_rewrite(
        f"""
        import torch
        def f(path, rank):
            map_location = {before}
            torch.load(path, map_location=map_location)
            torch.load(path, map_location={before})
        """,
        f"""
        import torch
        import torch_npu  # noqa: F401
        def f(path, rank):
            map_location = {after}
            torch.load(path, map_location=map_location)
            torch.load(path, map_location={after})
        """,
    )


@pattern("T20", "T21")
@pytest.mark.parametrize(
    "line",
    [
        "t = {'cuda': torch.cuda.synchronize, 'npu': torch.npu.synchronize}",
        "t = {'cuda': 'nccl', 'npu': 'hccl'}[d.type]",
    ],
)
def test_a_table_with_a_row_for_the_npu_stays(line: str) -> None:
    check_noop(f"import torch\ndef f(d):\n    {line}\n    return t\n")


@pattern("T20")
@pytest.mark.parametrize(
    "line",
    [
        "t = {'cuda': 1, 'cpu': 2}",
        "t = {'cuda': 1, 'cpu': 2}[kernel]",
        "t = {'cuda': build(), 'cpu': None}[d.type]",
    ],
)
def test_a_table_that_nobody_is_seen_to_look_into_is_reported(line: str) -> None:
    check_noop(f"import torch\ndef f(d, kernel, build):\n    {line}\n    return t\n", open_codes=["NPU213"])


@pattern("T14")
@pytest.mark.parametrize("line", ["t = {'cuda_rng': 1}", "t = {'use_cuda': d}", "t = {'my.cuda': 1}[d.type]"])
def test_keys_that_spell_no_device_stay(line: str) -> None:
    check_noop(f"import torch\ndef f(d):\n    {line}\n    return t\n")


@pattern("T20")
def test_rows_whose_values_change_keep_what_they_were_for_cuda() -> None:
    check_rewrite(
        """
        import torch
        def f(d, base, x):
            a = {'cuda': lambda x: x.cuda(non_blocking=True), 'cpu': lambda x: x}[d.type](x)
            return {
                **base,
                # both in bytes
                'cuda': (torch.cuda.memory_allocated,
                         torch.cuda.max_memory_allocated),  # a pair
                'cpu': None}[d.type], a
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        def f(d, base, x):
            a = {'cuda': lambda x: x.cuda(non_blocking=True), 'npu': lambda x: x.npu(non_blocking=True), 'cpu': lambda x: x}[d.type](x)
            return {
                **base,
                # both in bytes
                'cuda': (torch.cuda.memory_allocated,
                         torch.cuda.max_memory_allocated),
                'npu': (torch.npu.memory_allocated,
                         torch.npu.max_memory_allocated),  # a pair
                'cpu': None}[d.type], a
        """,  # noqa: E501
    )


@pattern("T20", "P36")
def test_backends_by_device() -> None:
    check_rewrite(
        """
        import torch
        def f(device):
            backends = {'cuda': 'nccl', 'cpu': 'gloo'}
            torch.distributed.init_process_group(backends[device.type])
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        def f(device):
            backends = {'cuda': 'nccl', 'npu': 'hccl', 'cpu': 'gloo'}
            torch.distributed.init_process_group(backends[device.type])
        """,
    )


OPTIONS = "c = Config(backend='nccl', engine_kwargs={'nccl': {'rebuild': True}})\n"
TABLE = "c = Config(backend='nccl', engines={'nccl': Engine})\n"
CHOOSES = "import torch\ndevice = 'npu' if torch.npu.is_available() else 'cuda'\n"


@pytest.mark.parametrize(
    ("source", "device", "found"),
    [
        (OPTIONS, CHOOSES, False),
        (TABLE, CHOOSES, True),
        (OPTIONS.replace("backend='nccl', ", ""), CHOOSES, True),
        # where the backend moves, its options have to
        (OPTIONS, "import torch\ntorch.nn.Linear(2, 2).cuda()\n", True),
    ],
)
def test_options_by_the_name_of_what_takes_them(source: str, device: str, found: bool) -> None:
    left = [each.code for each in migrate(source, files={"device.py": device}).findings if each.open]
    assert ("NPU213" in left) is found


@pytest.mark.parametrize(
    "table",
    [
        "{'cuda': ['sm_80'], 'hip': ['gfx90a']}",  # what a compiler compiles for
        "{'cuda': A, 'llvm': B, 'cpu': C}",
        "{'cuda': version, 'python': other}",  # facts by their names
    ],
)
def test_a_table_that_is_none_of_devices_stays(table: str) -> None:
    check_noop(f"import torch\nT = {table}\n", open_codes=[])
