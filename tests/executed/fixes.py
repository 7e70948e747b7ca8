"""A snippet for each code whose edits are made by Python: devices, strings, gates, the profiler, several processes."""

from __future__ import annotations

from tests.executed.snippet import Snippet

_PROFILED = "times are a clock's, and the columns of the two profilers have other names"
_TRAIN = """
import sys
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 2))
loader = DataLoader(data, batch_size=int(sys.argv[1]))
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to("cuda")), y.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_WEIGHTS = "result = [each.detach() for each in model.parameters()]\n"
#: Sums of float32 in another order, carried on over eight steps.
_ORDER = 1e-5


def _trained(code: str = _TRAIN + _WEIGHTS, ranks: int = 2, batch: int = 8) -> Snippet:
    """One process of the original against `ranks` of what `distributed` wrote, with the same batch in all."""
    return Snippet(
        code, tolerance=_ORDER, ranks=ranks, original_ranks=0, arguments=(str(batch // ranks),),
        original_arguments=(str(batch),), settings={"entry": "main.py"},
    )  # fmt: skip


def _in_two(code: str, **more: object) -> Snippet:
    """Two processes on both hosts."""
    head = "import torch.distributed as dist\ndist.init_process_group('nccl')\nrank = dist.get_rank()\n"
    head += "torch.cuda.set_device(rank)\n"
    return Snippet(head + code.strip("\n") + "\ndist.destroy_process_group()", ranks=2, **more)  # type: ignore[arg-type]


COLLECTIVES = """
x = torch.arange(4.0, device='cuda') + 10 * rank
summed, largest, sent = x.clone(), x.clone(), x.clone()
dist.all_reduce(summed)
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
dist.broadcast(sent, src=1)
every = [torch.empty_like(x) for _ in range(2)]
dist.all_gather(every, x)
packed = torch.empty(8, device='cuda')
dist.all_gather_into_tensor(packed, x)
part = torch.empty(2, device='cuda')
dist.reduce_scatter_tensor(part, x)
swapped = torch.empty_like(x)
dist.all_to_all_single(swapped, x)
objects = [None, None]
dist.all_gather_object(objects, {'rank': rank})
if rank == 0:
    dist.send(x, 1)
else:
    dist.recv(sent, 0)
dist.barrier()
group = dist.new_group([0, 1], backend='nccl')
again = x.clone()
dist.all_reduce(again, group=group)
halves = x.half()
dist.all_reduce(halves)
counts = torch.ones(3, dtype=torch.int64, device='cuda')
dist.all_reduce(counts)
result = [summed, largest, sent, every, packed, part, swapped, objects, again, halves, counts, dist.get_backend(),
          dist.get_world_size()]
"""

FIXES: dict[str, Snippet] = {
    "NPU121": Snippet(
        "weight = torch.ones(3, device='cuda', requires_grad=True)\nscaler = torch.amp.GradScaler(init_scale=16.0)\n"
        "scaler.scale(weight.sum()).backward()\ntorch.cuda.manual_seed(2)\nwith torch.random.fork_rng():\n"
        "    inside = torch.rand(3, device='cuda')\nagain = torch.equal(inside, torch.rand(3, device='cuda'))\n"
        "result = [weight.grad, scaler.is_enabled(), scaler.get_scale(), again]"
    ),
    "NPU123": Snippet(
        "first = torch.is_autocast_enabled()\nwith torch.autocast('cuda'):\n    inside = torch.is_autocast_enabled()\n"
        "torch.set_autocast_enabled(True)\nx = torch.ones(2, 2, device='cuda')\n"
        "result = [first, inside, torch.is_autocast_enabled(), (x @ x).dtype]"
    ),
    "NPU125": Snippet(
        "torch.set_default_tensor_type('torch.cuda.HalfTensor')\nfirst = torch.ones(2)\n"
        "torch.set_default_tensor_type('torch.FloatTensor')\nresult = [first, torch.ones(2), torch.rand(2).dtype]"
    ),
    "NPU130": Snippet(
        """
from torch.profiler import ProfilerActivity, profile, record_function, schedule

x = torch.ones(3, device='cuda')
both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
with profile(activities=both, schedule=schedule(wait=1, warmup=1, active=2)) as p:
    for step in range(4):
        with record_function('step'):
            x = x * 2
        p.step()
result = x
"""
    ),
    "NPU132": Snippet(
        "x = torch.ones(3, device='cuda')\nwith torch.autograd.profiler.profile(use_cuda=True) as p:\n    x = x * 2\n"
        "result = [x, type(p.key_averages().table())]",
        nature=_PROFILED,
    ),
    "NPU135": Snippet(
        # halves and quarters: their sums are exact, however the cards divide the batch
        "from torch import nn\nlayer = nn.Linear(3, 2)\nnn.init.constant_(layer.weight, 0.5)\n"
        "nn.init.constant_(layer.bias, 0.25)\nmodel = nn.DataParallel(layer.cuda())\n"
        "x = torch.arange(12.0).view(4, 3).cuda()\n"
        "y = model(x)\ny.sum().backward()\nresult = [y, model.module.weight.grad, sorted(model.state_dict())]"
    ),
    "NPU150": Snippet(
        "def double(x):\n    return x * 2 + 1\n\n\nfast = torch.compile(double, backend='cudagraphs')\n"
        "result = fast(torch.arange(3.0, device='cuda'))",
        card_lacks="graphs of captured operators",
    ),
    "NPU201": Snippet(
        """
device = 'cuda'
where = {'device': 'cuda:1'}
x = torch.arange(6, dtype=torch.float32, device=device).view(2, 3)
y = torch.ones(2, **where)
layer = torch.nn.Linear(3, 2).to('cuda')
with torch.device('cuda:2'):
    z = torch.zeros(1)
with torch.autocast(device_type='cuda', dtype=torch.bfloat16):
    low = layer(x)
torch.save({'layer': layer.state_dict()}, 'layer.pt')
loaded = torch.load('layer.pt', map_location='cuda:1')
first, again = (torch.rand(3, device='cuda', generator=torch.Generator('cuda').manual_seed(4)) for _ in range(2))
result = [x, y, y.device, z.device, layer(x), low, loaded, x.device.type == 'cuda', str(x.device), x.type(),
          torch.equal(first, again), first.device, torch.cuda.memory_allocated('cuda:0') >= 0,
          torch.cuda.default_stream('cuda:1').device, torch.cuda.can_device_access_peer('cuda:0', 'cuda:1')]
"""
    ),
    "NPU205": Snippet(
        "from unittest import mock\nwith mock.patch('torch.cuda.is_available', return_value=False):\n"
        "    inside = torch.cuda.is_available()\nresult = [inside, torch.cuda.is_available()]"
    ),
    "NPU207": Snippet(
        "def check(count):\n    if torch.cuda.device_count() < count:\n"
        "        raise RuntimeError('Distributed mode requires CUDA.')\n\n\n"
        "try:\n    check(99)\nexcept RuntimeError as error:\n    result = str(error)",
        settings={"texts": True},
    ),
    "NPU209": Snippet(
        "BATCH = {'cuda': 64, 'cpu': 8}\n\n\ndef batch_of(x):\n    return BATCH[x.device.type]\n\n\n"
        "result = [batch_of(torch.ones(1)), batch_of(torch.ones(1).cuda())]"
    ),
    "NPU210": Snippet(
        "layer = torch.nn.Linear(3, 2).cuda()\nx = torch.ones(4, 3).cuda(0, non_blocking=True)\n"
        "y = torch.arange(3).cuda(torch.device('cuda:1'))\nplace = torch.device('cuda:1')\n"
        "moved = [torch.nn.Linear(1, 1).cuda(place), torch.nn.ReLU().cuda('cuda:0'), torch.nn.Linear(1, 1).cuda(1)]\n"
        "result = [layer(x), y, y.get_device(), x.cuda() is x, moved[0].weight.get_device(), "
        "moved[2].weight.get_device()]"
    ),
    "NPU211": Snippet(
        "x = torch.ones(2).cuda()\nresult = [x.is_cuda, x.cpu().is_cuda, torch.nn.Linear(1, 1).cuda().weight.is_cuda]"
    ),
    "NPU214": Snippet(
        "class Batch:\n    def __init__(self):\n        self.x = torch.ones(2)\n\n    def cuda(self, device=None):\n"
        "        self.x = self.x.cuda(device)\n        return self\n\n\nresult = Batch().cuda().x"
    ),
    "NPU218": Snippet("def move(x):\n    return getattr(x, 'cuda')()\n\n\nresult = move(torch.ones(2))"),
    "NPU220": Snippet(
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\n"
        "result = [len(os.environ.get('CUDA_VISIBLE_DEVICES', '0').split(',')), torch.cuda.device_count()]"
    ),
    "NPU230": Snippet(
        "def out_of_memory(error):\n    return 'CUDA out of memory' in str(error)\n\n\n"
        "try:\n    raise torch.cuda.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB')\n"
        "except RuntimeError as error:\n    result = [out_of_memory(error), out_of_memory(ValueError('other'))]"
    ),
    "NPU232": Snippet(
        "steps = []\nif hasattr(torch, 'cuda') and torch.cuda.is_available():\n    torch.cuda.empty_cache()\n"
        "    steps.append('emptied')\nresult = steps"
    ),
    "NPU240": Snippet(
        "print(f'capability {torch.cuda.get_device_capability()}')\nresult = torch.ones(2).cuda()"
    ),
    "NPU249": Snippet(
        "use_bf16 = torch.cuda.get_device_capability() >= (8, 0)\nresult = use_bf16", settings={"unsafe_fixes": True}
    ),
    "NPU250": Snippet(
        "device = torch.device('cuda:0')\nx = torch.ones(2, device=device).cuda(0)\ntorch.cuda.set_device(0)\n"
        "result = [x, x.get_device()]",
        settings={"specify_device": True},
    ),
    "NPU260": Snippet(
        "torch.cuda.synchronize()\ntorch.cuda.set_device(1)\n"
        "result = torch.cuda.current_device()",
        settings={"style": "portable"},
    ),
    "NPU261": Snippet(
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nresult = torch.ones(2, device=device)",
        settings={"style": "portable"},
    ),
    "NPU262": Snippet(
        "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\nx = torch.ones(2, device=device)\n"
        "if x.device.type == 'cuda':\n    x = x * 2\nresult = x",
        settings={"style": "portable"},
    ),
    "NPU301": _in_two(COLLECTIVES),
    "NPU312": _in_two(
        """
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

torch.manual_seed(0)
model = FSDP(torch.nn.Linear(4, 2).cuda(), device_id=torch.cuda.current_device())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(3):
    loss = model(torch.full((2, 4), 1.0 + rank, device='cuda')).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
result = losses
"""
    ),
    "NPU313": Snippet(
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--local_rank', type=int, default=0)\nargs = parser.parse_args()\n"
        "torch.cuda.set_device(args.local_rank)\nresult = torch.cuda.current_device()",
        arguments=("--local-rank", "1"),
        original_arguments=("--local_rank", "1"),
    ),
    "NPU333": _trained(),
    "NPU334": _trained(
        _TRAIN.replace('.to("cuda")', ".to(device)").replace("\ndata", '\ndevice = torch.device("cuda:0")\ndata')
        + _WEIGHTS
    ),
    "NPU336": _trained(),
    "NPU337": _trained(
        _TRAIN + "torch.save(model.state_dict(), 'model.pt')\nresult = torch.load('model.pt', map_location='cpu')\n", 1
    ),
    "NPU339": _trained(),
    "NPU343": _trained(_TRAIN + "    print('epoch', epoch)\n" + _WEIGHTS),
    "NPU345": _trained(_TRAIN + "        print('loss', loss.item())\n" + _WEIGHTS),
    "NPU347": _trained(
        _TRAIN.replace("torch.manual_seed(1)", "torch.manual_seed(0)").replace(
            "TensorDataset(torch.randn(32, 4), torch.randn(32, 2))",
            "TensorDataset(torch.arange(128.0).view(32, 4) / 128, torch.arange(64.0).view(32, 2) / 64)",
        )
        + _WEIGHTS
    ),
    "NPU349": _trained(
        _TRAIN.replace("for x, y in loader", "for i, (x, y) in enumerate(loader)").replace(
            "        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n",
            "        loss.backward()\n        if (i + 1) % 4 == 0:\n            optimizer.step()\n"
            "            optimizer.zero_grad()\n",
        )
        + _WEIGHTS
    ),
    "NPU351": _trained(
        _TRAIN.replace(
            "model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))",
            """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)

    def energy(self, x, y):
        return nn.functional.mse_loss(self.layer(x), y)


model = Net()""",
        )
        .replace("nn.functional.mse_loss(model(x.to(", "model.energy(x.to(")
        .replace('.to("cuda")), y.', '.to("cuda"), y.')
        + _WEIGHTS
    ),
    "NPU401": Snippet("from torch import cuda\nmodule = cuda\nmodule.synchronize()\nresult = module.device_count()"),
    "NPU403": Snippet("result = torch.ones(2).cuda()"),
    "NPU404": Snippet(
        "import typing\n\n\ndef wait(stream: 'torch.cuda.Stream | None' = None) -> None: ...\n\n\n"
        "result = [each.__name__ for each in typing.get_args(typing.get_type_hints(wait)['stream'])]"
    ),
    "NPU407": Snippet(
        "x = torch.ones(2).cuda()\nif x.sum() < 0:\n    print(torch.cuda.nccl.version())\nresult = x",
        settings={"annotate": True},
    ),
    "NPU612": Snippet(
        "names = {'gpu': 0}  # transplt: ignore[NPU201]\nresult = [names, torch.ones(2).cuda()]",
        settings={"in_place": True},
    ),
}
