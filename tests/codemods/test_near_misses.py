"""Names that only look like torch's: nothing changes, whatever the name."""

from __future__ import annotations

import pytest

from tests.harness import clean, migrate, pattern

#: pattern -> a call that the rules rewrite where `torch` is torch.
CALLS = {
    "P1": "cuda.is_available()",
    "P2": "cuda.device_count()",
    "P3": "cuda.set_device(0)",
    "P4": "cuda.synchronize()",
    "P5": "cuda.empty_cache()",
    "P6": "cuda.manual_seed_all(1)",
    "P7": "cuda.current_device()",
    "P8": "cuda.max_memory_allocated()",
    "P9": "cuda.get_rng_state_all()",
    "P10": "cuda.Stream()",
    "P11": "cuda.device(1)",
    "P12": "cuda.amp.autocast()",
    "P13": "cuda.amp.GradScaler()",
    "P16": "cuda.amp.custom_fwd",
    "P46": "cuda.FloatTensor(2)",
    "P60": "cuda.nvtx.range_push('x')",
    "P61": "cuda.CUDAGraph()",
    "P66": "cuda.get_device_name(0)",
    "P67": "cuda.is_bf16_supported()",
}
PLACES = {
    "a parameter called torch": "def f(torch):\n    return torch.{call}\n",
    "another package": "import cupy\nx = cupy.{call}\n",
    "a package that has cuda": "import lib\nx = lib.{call}\n",
    "a variable called torch": "torch = object()\nx = torch.{call}\n",
    "a loop variable": "for torch in [1]:\n    x = torch.{call}\n",
    "an attribute": "class A:\n    def f(self):\n        return self.{call}\n",
    "a docstring": 'def f():\n    """Calls torch.{call}."""\n',
    "a comment": "x = 1  # torch.{call}\n",
    "a message": 'import torch\nprint("call torch.{call} first")\n',
    "an import of another name": "from lib import torch\nx = torch.{call}\n",
}


def cases() -> list[object]:
    return [
        pytest.param(text.format(call=call), id=f"{name}-{place}", marks=pattern(name))
        for name, call in CALLS.items()
        for place, text in PLACES.items()
    ]


@pytest.mark.parametrize("source", cases())
def test_nothing_changes(source: str) -> None:
    assert migrate(source).data.decode() == source


DEVICES = {
    "P23": "x.to({})",
    "P26": "torch.device({})",
    "P31": "torch.zeros(2, device={})",
    "P32": "torch.autocast(device_type={})",
    "P49": "torch.load('m.pt', map_location={})",
    "P68": "torch.set_default_device({})",
}


@pytest.mark.parametrize(
    "value", ["'cpu'", "'mps'", "'xpu:0'", "device", "args.device", "x.device", "None", "0", "f'cpu:{i}'"]
)
@pytest.mark.parametrize("call", [pytest.param(call, marks=pattern(name)) for name, call in DEVICES.items()])
def test_other_devices_stay(call: str, value: str) -> None:
    source = f"import torch\ndef f(x, device, args, i):\n    return {call.format(value)}\n"
    assert migrate(source).data.decode() == source


@pytest.mark.parametrize("value", ["'gloo'", "'mpi'", "backend", "args.backend", "None", "'cpu:gloo'"])
@pytest.mark.parametrize(
    "call",
    [
        pytest.param("dist.init_process_group({})", marks=pattern("P36")),
        pytest.param("dist.new_group(backend={})", marks=pattern("P36")),
        pytest.param("dist.get_backend() == {}", marks=pattern("P38")),
    ],
)
def test_other_backends_stay(call: str, value: str) -> None:
    source = f"import torch.distributed as dist\ndef f(backend, args):\n    return {call.format(value)}\n"
    assert migrate(source).data.decode() == source


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("text = 'the cuda toolkit'\n", marks=pattern("T28")),
        pytest.param("url = 'https://example.org/cuda/11.8'\n", marks=pattern("T28")),
        pytest.param("image = 'nvidia/cuda:11.8.0'\n", marks=pattern("T28", "P75")),
        pytest.param("path = 'kernels/cuda/add.cu'\n", marks=pattern("T26")),
        pytest.param("state = {'cuda_rng_state': 1}\n", marks=pattern("T14")),
        pytest.param("def f(state):\n    return state['cuda_rng_state']\n", marks=pattern("T14")),
        pytest.param("def f(cfg):\n    return cfg['use_cuda']\n", marks=pattern("T6")),
        pytest.param(
            "def f(parser):\n    parser.add_argument('--no-cuda', action='store_true')\n", marks=pattern("P34", "T6")
        ),
        pytest.param("def f(args):\n    return not args.no_cuda\n", marks=pattern("P34", "T7")),
        pytest.param("use_cuda = True\n", marks=pattern("T7")),
        pytest.param("def f(cuda=False):\n    return cuda\n", marks=pattern("T7")),
        pytest.param("algorithm = 'nccl_tree'\n", marks=pattern("T24")),
        pytest.param("flags = ['-lnccl']\n", marks=pattern("T24")),
        pytest.param("def f(device):\n    return device.split(':')[0]\n", marks=pattern("T5")),
        pytest.param("def f(device):\n    return device[4:]\n", marks=pattern("T5")),
        pytest.param("def f(x, rank):\n    return x.to(rank)\n", marks=pattern("P25", "T16")),
        pytest.param("from __future__ import annotations\nx: 'int' = 1  # torch.cuda.Stream\n", marks=pattern("T30")),
    ],
)
def test_names_texts_and_keys_stay(source: str) -> None:
    assert migrate(clean(source)).data.decode() == clean(source)
