"""Forms of calls that torch_npu refuses, each beside what it takes."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate
from transplt.base.finding import Level

_NET = """
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
    class Net(nn.Module):
        def __init__(self, kind):
            self.rnn = {made}
        def forward(self, x, lengths):
            {given}
"""
_PACKED = "return self.rnn(pack_padded_sequence(x, lengths, batch_first=True))"
_HELD = "packed = pack_padded_sequence(x, lengths)\n            return self.rnn(packed)[0]"


@pytest.mark.parametrize("made", ["nn.GRU(8, 16)", "nn.RNN(8, 16, 2)", "torch.nn.GRU(8, 16, bidirectional=True)"])
@pytest.mark.parametrize("given", [_PACKED, _HELD])
def test_packed_sequences(made: str, given: str) -> None:
    """Wrong numbers, and a stop where the output is unpacked."""
    for more, blocks in (("", "numbers"), ("return pad_packed_sequence(x)", "first step")):
        result = check_noop(_NET.format(made=made, given=f"{given}\n            {more}"), open_codes=["NPU297"])
        assert [each.blocks for each in result.findings] == [blocks]


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("nn.LSTM(8, 16)", _PACKED),
        ("nn.GRU(8, 16)", "return self.rnn(x)"),
        ("nn.GRU(8, 16)", "packed = pack_padded_sequence(x, lengths)\n            return self.rnn(x), packed"),
        ("nn.GRU(8, 16)", "p = pack_padded_sequence(x, lengths)\n            p = p.data\n            self.rnn(p)"),
        ("nn.GRUCell(8, 16)", _PACKED),
        ("Other(8, 16)", _PACKED),
    ],
)
def test_sequences_that_are_taken(made: str, given: str) -> None:
    check_noop(_NET.format(made=made, given=given))


def test_a_layer_of_another_class_by_the_same_name() -> None:
    other = """
    class Other(nn.Module):
        def __init__(self):
            self.rnn = nn.{kind}(8, 16)
        def forward(self, x):
            return self.rnn(x)
"""
    check_noop(_NET.format(made="nn.LSTM(8, 16)", given=_PACKED) + other.format(kind="GRU"))
    check_noop(_NET.format(made="nn.GRU(8, 16)", given=_PACKED) + other.format(kind="LSTM"), open_codes=["NPU297"])


def test_of_two_layers_the_one_that_an_option_chooses() -> None:
    made = "nn.GRU(8, 16) if kind == 'gru' else nn.LSTM(8, 16)"
    check_noop(_NET.format(made=made, given=_PACKED))  # which one it is, is not known here


_POOLS = "import torch.nn.functional as F\nfrom torch import nn\n"
_UNPOOLS = "z = F.max_unpool2d(y, i, 2)\n"


@pytest.mark.parametrize(
    "lines",
    [
        f"y, i = F.max_pool2d(x, 2, return_indices=True)\n{_UNPOOLS}",
        f"pool = nn.MaxPool2d(2, return_indices=True)\n{_UNPOOLS}",
        "pool, back = nn.MaxPool3d(2, return_indices=True), nn.MaxUnpool3d(2)\n",
    ],
)
def test_places_that_max_unpool_gets(lines: str) -> None:
    found = [each for each in migrate(f"{_POOLS}{lines}").findings if each.code == "NPU297"]
    assert [each.level for each in found] == [Level.MANUAL]


@pytest.mark.parametrize(
    ("lines", "settings"),
    [
        (f"y, i = F.adaptive_max_pool2d(x, 4, return_indices=True)\n{_UNPOOLS}", {}),
        (f"y = F.max_pool2d(x, 2)\n{_UNPOOLS}", {}),
        (f"y = F.max_pool2d(x, 2, return_indices=False)\n{_UNPOOLS}", {}),
        (f"y, i = F.max_pool3d(x, 2, return_indices=True)\n{_UNPOOLS}", {}),
        ("y, i = F.max_pool2d(x, 2, return_indices=True)\n", {}),
        (f"y, i = F.max_pool2d(x, 2, return_indices=True)\n{_UNPOOLS}", {"hardware": "950DT"}),
    ],
)
def test_places_that_nobody_undoes(lines: str, settings: dict[str, str]) -> None:
    assert "NPU297" not in {each.code for each in migrate(f"{_POOLS}{lines}", **settings).findings}


_GROUP = """
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    dist.init_process_group("hccl"{device})
    {call}
"""
_BOUND = ", device_id=device"


@pytest.mark.parametrize(
    "call",
    [
        "init_device_mesh('npu', (2, 4))",
        "init_device_mesh('npu', mesh_shape=[n // 8, 8], mesh_dim_names=('dp', 'tp'))",
        "dist.new_group(backend='gloo')",
    ],
)
def test_groups_that_are_split_off_one_with_a_device(call: str) -> None:
    check_noop(_GROUP.format(device=_BOUND, call=call), open_codes=["NPU297"], torch_version="2.13")
    check_noop(_GROUP.format(device=_BOUND, call=call), torch_version="2.12")


@pytest.mark.parametrize(
    ("device", "call"),
    [
        ("", "init_device_mesh('npu', (2, 4))"),
        ("", "dist.new_group(backend='gloo')"),
        (", device_id=None", "init_device_mesh('npu', (2, 4))"),
        (_BOUND, "init_device_mesh('npu', (8,))"),
        (_BOUND, "init_device_mesh('npu', shape)"),
        (_BOUND, "dist.new_group([0, 1])"),
        (_BOUND, "dist.new_group(backend='hccl')"),
    ],
)
def test_groups_that_are_made(device: str, call: str) -> None:
    check_noop(_GROUP.format(device=device, call=call))


@pytest.mark.parametrize(
    ("device", "version", "codes"),
    [(_BOUND, "2.3", ["NPU297"]), (_BOUND, "2.4", ["NPU297"]), (_BOUND, "2.6", []), (", device_id=None", "2.4", [])],
)
def test_a_group_bound_to_a_device_that_torch_takes_of_cuda_alone(device: str, version: str, codes: list[str]) -> None:
    check_noop(_GROUP.format(device=device, call=""), open_codes=codes, torch_version=version)


_CONFIG = "import torch\nimport torch_npu\ntorch.npu.config.allow_internal_format = {}\n{}\n{}\n"
_CAST = "w = torch_npu.npu_format_cast(w, 29)"
_CLIP = "torch.nn.utils.clip_grad_norm_(ps, 1.0)"
_ENVIRONMENT = 'import os\nos.environ["PYTORCH_NPU_ALLOC_CONF"] = "expandable_segments:{}"\nllm = LLM("x", {})\n'


@pytest.mark.parametrize(
    "source",
    [
        "from torch import nn\nm = nn.LSTM(8, 16, proj_size=4)\n",
        "import torch\npool = torch.npu.MemPool()\npool.snapshot(include_traces=False)\n",
        _ENVIRONMENT.format("True", "enable_sleep_mode=True"),
        _CONFIG.format(True, _CAST, _CLIP),
        "import torch\ny = torch._grouped_mm(a, b, offs=offs)\n",
    ],
)
def test_other_forms(source: str) -> None:
    check_noop(source, open_codes=["NPU297"], torch_version="2.8")


@pytest.mark.parametrize(
    "source",
    [
        "from torch import nn\nm = nn.LSTM(8, 16, proj_size=0)\nn = nn.LSTM(8, 16, dropout=0.1)\n",
        "from torch import nn\nm = nn.LSTM(8, 16, proj_size=size)\n",
        "import torch\npool = torch.npu.MemPool()\npool.snapshot()\ntracker.snapshot(include_traces=True)\n",
        _ENVIRONMENT.format("True", "enable_sleep_mode=False"),
        _ENVIRONMENT.format("False", "enable_sleep_mode=True"),
        _CONFIG.format(False, _CAST, _CLIP),
        _CONFIG.format(True, "", _CLIP),
        _CONFIG.format(True, _CAST, "torch.nn.utils.clip_grad_norm_(ps, 1.0, foreach=False)"),
        "y = ops._grouped_mm(a, b)\nz = experts.grouped_mm(a, b)\n",
    ],
)
def test_forms_that_are_taken(source: str) -> None:
    check_noop(source, torch_version="2.8")


@pytest.mark.parametrize("call", ["torch._grouped_mm(a, b)", "torch.nn.functional.grouped_mm(a, b)"])
def test_later_products_of_groups_are_a_remark(call: str) -> None:
    (found,) = migrate(f"import torch\ny = {call}\n", torch_version="2.13").findings
    assert (found.code, found.level) == ("NPU297", Level.INFO)


@pytest.mark.parametrize("line", ['os.environ["{}"] = "1,0"', 'os.environ.setdefault("{}", "3,2,1,0")'])
def test_cards_in_descending_order(line: str) -> None:
    name = "ASCEND_RT_VISIBLE_DEVICES"
    check_noop(f"import os\n{line.format(name)}\n", open_codes=["NPU221"])


@pytest.mark.parametrize(
    "line",
    [
        'os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1,2,10"',
        'os.environ["ASCEND_RT_VISIBLE_DEVICES"] = cards',
        'cards = os.environ["ASCEND_RT_VISIBLE_DEVICES"]',
        'log("ASCEND_RT_VISIBLE_DEVICES", "1,0")',
        'os.environ["ASCEND_RT_VISIBLE_DEVICES"] = ""',
        'os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0, 1"',
    ],
)
def test_cards_in_ascending_order(line: str) -> None:
    check_noop(f"import os\n{line}\n")
