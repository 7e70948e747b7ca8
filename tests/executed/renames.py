"""A snippet for each rule of a table: by the full old name, or by its last part, for the modules it is known in.

`API` stands for the old name.
"""

from __future__ import annotations

from tests.executed.snippet import Rule, Snippet

_HOST = "memory figures are those of the host process"
_CARD = "it describes the card"
_CLOCK = "it is a clock's"
_DRAWN = "it is drawn anew each time"

#: By the full name, else by the last part of it.
_CODES: dict[str, str] = {
    # the device, NPU101
    "torch.cuda": "import torch.cuda\nresult = torch.cuda.device_count()",
    "_get_device": "result = API('cuda:1')",
    "_get_device_index": "result = [API('cuda:1'), API(2), API(None, optional=True)]",
    "_get_generator": "torch.cuda.init()\nresult = API(torch.device('cuda', 0)).manual_seed(3).initial_seed()",
    "_initialized": "torch.cuda.init()\nresult = API",
    "_is_in_bad_fork": "result = API()",
    "_lazy_call": "called = []\ntorch.cuda.init()\nAPI(lambda: called.append(1))\nresult = called",
    "_lazy_init": "result = API()",
    "_parse_visible_devices": "result = API()",
    "_sleep": "result = API(10)",
    "can_device_access_peer": "result = [API(0, 1), API(1, 1)]",
    "current_device": "torch.cuda.set_device(2)\nresult = API()",
    "default_generators": "torch.cuda.init()\nresult = len(API)",
    "torch.cuda.device": "with API(1):\n    x = torch.ones(2, device='cuda')\nresult = [x, x.get_device()]",
    "device_count": "result = API()",
    "device_of": "x = torch.ones(2, device='cuda:3')\nwith API(x):\n    result = torch.cuda.current_device()",
    "get_device_name": "result = [API(), API(0)]",
    "get_device_properties": "card = API(0)\nresult = [card.name, card.total_memory]",
    "init": "result = API()",
    "ipc_collect": "result = API()",
    "is_available": "result = API()",
    "is_bf16_supported": "result = API()",
    "is_initialized": "torch.cuda.init()\nresult = API()",
    "set_device": "API(1)\nfirst = torch.ones(1).cuda().get_device()\nAPI('cuda:2')\n"
    "result = [first, torch.ones(1).cuda().get_device()]",
    "synchronize": "result = [API(), API(0), API(torch.device('cuda:1'))]",
    # mixed precision, NPU103
    "torch.cuda.amp": "import torch.cuda.amp\nwith torch.cuda.amp.autocast():\n"
    "    result = torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()",
    "torch.cuda.amp.autocast_mode": "from torch.cuda.amp import autocast_mode\nwith autocast_mode.autocast():\n"
    "    result = torch.ones(2, 2).cuda() @ torch.ones(2, 2).cuda()",
    "torch.cuda.amp.common": "from torch.cuda.amp import common\nresult = common.amp_definitely_not_available()",
    "torch.cuda.amp.grad_scaler": "from torch.cuda.amp import grad_scaler\n"
    "result = grad_scaler.GradScaler().state_dict()",
    "GradScaler": """
weight = torch.ones(3, device='cuda', requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.5)
scaler = API(1024.0, 2.0, 0.5, 2, True)
for factor in (1.0, 2.0, float('inf'), 1.0):
    optimizer.zero_grad()
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
result = [weight, scaler.get_scale(), scaler.is_enabled(), scaler.state_dict()]
""",
    "amp_definitely_not_available": "result = API()",
    "autocast": """
layer = torch.nn.Linear(3, 2).cuda()
x = torch.arange(6.0).view(2, 3).cuda()
with API(enabled=True):
    half = layer(x)
    full = half.softmax(-1)
with API(dtype=torch.bfloat16):
    brain = layer(x)
with API(False):
    plain = layer(x)
result = [half, full, brain, plain]
""",
    "custom_fwd": """
class Double(torch.autograd.Function):
    @staticmethod
    @API(cast_inputs=torch.float32)
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @torch.cuda.amp.custom_bwd
    def backward(ctx, grad):
        return grad * 2

x = torch.ones(3, device='cuda', dtype=torch.half, requires_grad=True)
with torch.cuda.amp.autocast():
    y = Double.apply(x)
y.sum().backward()
result = [y, x.grad]
""",
    "custom_bwd": """
class Double(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    @API
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad

x = torch.arange(6.0, device='cuda').view(2, 3).requires_grad_()
weight = torch.ones(3, 2, device='cuda', requires_grad=True)
with torch.cuda.amp.autocast():
    y = Double.apply(x, weight)
y.float().sum().backward()
result = [y, x.grad, weight.grad]
""",
    "OptState": "result = [state.value for state in API]",
    "get_autocast_gpu_dtype": "result = API()",
    "set_autocast_gpu_dtype": "API(torch.bfloat16)\nwith torch.autocast('cuda'):\n"
    "    result = torch.ones(2, 2, device='cuda') @ torch.ones(2, 2, device='cuda')",
    # memory, NPU104
    "torch.cuda.memory": "from torch.cuda import memory\nresult = memory.empty_cache()",
    "MemPool": "result = [len(API().id), API().use_count()]",
    "torch.cuda.MemPool.id": "result = API is not None",
    "torch.cuda.MemPool.snapshot": "result = API(torch.cuda.MemPool())",
    "torch.cuda.MemPool.use_count": "result = API(torch.cuda.MemPool())",
    "OutOfMemoryError": "try:\n    raise API('CUDA out of memory')\nexcept RuntimeError as error:\n"
    "    result = [type(error), isinstance(error, torch.OutOfMemoryError)]",
    "empty_cache": "result = API()",
    "get_allocator_backend": "result = API()",
    "get_per_process_memory_fraction": "first = API()\ntorch.cuda.set_per_process_memory_fraction(0.5)\n"
    "result = [first, API(), API(1)]",
    "host_memory_stats": "result = isinstance(API(), dict)",
    "host_memory_stats_as_nested_dict": "result = isinstance(API(), dict)",
    "max_memory_allocated": "x = torch.ones(9).cuda()\nresult = [API(), API(0), API(x.device)]",
    "memory_allocated": "x = torch.ones(9).cuda()\nresult = [API(), API(0), API(x.device)]",
    "mem_get_info": "result = API()",
    "_dump_snapshot": "import os\nAPI('snapshot.pickle')\nresult = os.path.exists('snapshot.pickle')",
    "_record_memory_history": "result = API(enabled=None)",
    # CUDA's has `allocator_settings` besides.
    "_snapshot": "result = {'segments', 'device_traces'} <= set(API())",
    "memory_snapshot": "result = API()",
    "memory_stats": "torch.cuda.init()\nstats = API()\nresult = [stats['allocated_bytes.all.current'], "
    "stats['allocated_bytes.all.peak'], "
    "stats['reserved_bytes.all.peak'], stats['num_alloc_retries'], stats['num_ooms']]",
    "memory_stats_as_nested_dict": "torch.cuda.init()\nstats = API()\n"
    "result = [stats['allocated_bytes']['all']['peak'], stats['num_ooms']]",
    "memory_summary": "torch.cuda.init()\nresult = type(API(0, abbreviated=True))",
    "reset_accumulated_host_memory_stats": "result = API()",
    "reset_accumulated_memory_stats": "result = [API(), API(0)]",
    "reset_peak_host_memory_stats": "result = API()",
    "reset_peak_memory_stats": "result = [API(), API(0)]",
    "set_per_process_memory_fraction": "API(0.25)\nAPI(0.75, 1)\n"
    "result = [torch.cuda.get_per_process_memory_fraction(card) for card in (0, 1, 2)]",
    "use_mem_pool": "with API(torch.cuda.MemPool()):\n    result = torch.ones(3, device='cuda')",
    # streams and events, NPU105
    "torch.cuda.streams": "from torch.cuda import streams\nresult = streams.Stream().query()",
    "get_stream_from_external": "stream = API(torch.cuda.Stream().cuda_stream, 0)\nwith torch.cuda.stream(stream):\n"
    "    result = torch.ones(2).cuda() * 2",
    "Event": "event, end = API(enable_timing=True), API(enable_timing=True, blocking=True)\nevent.record()\n"
    "end.record(torch.cuda.current_stream())\nend.synchronize()\nevent.wait()\n"
    "result = [event.query(), event.elapsed_time(end) >= 0, API().query()]",
    "torch.cuda.Event.cuda_event": "event = torch.cuda.Event()\nevent.record()\nresult = type(event.cuda_event)",
    "torch.cuda.Stream.cuda_stream": "stream = torch.cuda.Stream()\nresult = type(stream.cuda_stream)",
    "ExternalStream": "stream = API(torch.cuda.Stream().cuda_stream)\nwith torch.cuda.stream(stream):\n"
    "    result = torch.ones(2).cuda() * 2",
    "Stream": "stream = API(priority=-1)\nwith torch.cuda.stream(stream):\n    x = torch.ones(3).cuda() * 2\n"
    "    current = torch.cuda.current_stream() == stream\nstream.wait_stream(torch.cuda.current_stream())\n"
    "torch.cuda.current_stream().wait_stream(stream)\nevent = stream.record_event()\nstream.wait_event(event)\n"
    "x.record_stream(stream)\nstream.synchronize()\n"
    "result = [x, current, stream.query(), stream.device, API(1).device, API() == API(), "
    "stream == stream]",
    "StreamContext": "stream = torch.cuda.Stream()\nwith API(stream):\n"
    "    result = [torch.cuda.current_stream() == stream, torch.ones(2, device='cuda')]",
    # torch_npu has no streams yet of a card that nothing was done on.
    "current_stream": "for card in (1, 2):\n    torch.ones(1, device=f'cuda:{card}')\n"
    "result = [API() == torch.cuda.default_stream(), API().device, API(1).device, API(torch.device('cuda:2')).device]",
    "default_stream": "torch.ones(1, device='cuda:1')\n"
    "result = [API() == torch.cuda.current_stream(), API(1).device]",
    "get_sync_debug_mode": "first = API()\ntorch.cuda.set_sync_debug_mode('warn')\nresult = [first, API()]",
    "set_sync_debug_mode": "API('error')\nfirst = torch.cuda.get_sync_debug_mode()\nAPI(0)\n"
    "result = [first, torch.cuda.get_sync_debug_mode()]",
    "set_stream": "stream = torch.cuda.Stream()\nAPI(stream)\nresult = torch.cuda.current_stream() == stream",
    "stream": "side = torch.cuda.Stream(1)\nwith API(side):\n"
    "    inside = [torch.cuda.current_stream() == side, torch.cuda.current_device()]\n"
    "with API(None):\n    pass\nresult = [inside, torch.cuda.current_stream() == side, torch.cuda.current_device()]",
    # random numbers, NPU106; a card draws others of the same seed than CUDA
    "torch.cuda.random": "from torch.cuda import random\nrandom.manual_seed(3)\nresult = random.initial_seed()",
    "get_rng_state": "torch.cuda.manual_seed(1)\nstate = API()\nfirst = torch.rand(3, device='cuda')\n"
    "torch.cuda.set_rng_state(state)\n"
    "result = [torch.equal(first, torch.rand(3, device='cuda')), state.dtype, state.device]",
    "get_rng_state_all": "states = API()\nresult = [len(states), [each.dtype for each in states]]",
    "initial_seed": "torch.cuda.manual_seed(11)\nresult = API()",
    "manual_seed": "API(5)\nfirst = torch.rand(3, device='cuda')\nAPI(5)\n"
    "result = [torch.cuda.initial_seed(), torch.equal(first, torch.rand(3, device='cuda'))]",
    "manual_seed_all": "API(6)\nfirst = torch.randn(3, device='cuda:1')\nAPI(6)\n"
    "result = torch.equal(first, torch.randn(3, device='cuda:1'))",
    "seed": "API()\nresult = torch.cuda.initial_seed()",
    "seed_all": "API()\nresult = torch.cuda.initial_seed()",
    "set_rng_state": "state = torch.cuda.get_rng_state()\nfirst = torch.rand(3, device='cuda')\nAPI(state)\n"
    "result = torch.equal(first, torch.rand(3, device='cuda'))",
    "set_rng_state_all": "states = torch.cuda.get_rng_state_all()\nfirst = torch.rand(3, device='cuda:2')\n"
    "API(states)\nresult = torch.equal(first, torch.rand(3, device='cuda:2'))",
    # graphs, NPU107
    "torch.cuda.graphs": "from torch.cuda import graphs\nresult = graphs.is_current_stream_capturing()",
    "graph_pool_handle": "result = API()",
    "is_current_stream_capturing": "result = API()",
    # ranges, NPU108; without a profiler torch_npu gives -1 for the depth
    "torch.cuda.nvtx": "from torch.cuda import nvtx\nnvtx.range_push('step')\nresult = type(nvtx.range_pop())",
    "torch.cuda.nvtx.range": "with API('step'):\n    result = torch.ones(2, device='cuda') * 2",
    "mark": "result = API('here')",
    "range_start": "handle = API('step')\ntorch.cuda.nvtx.range_end(handle)\nresult = type(handle)",
    "range_end": "result = API(torch.cuda.nvtx.range_start('step'))",
    "range_push": "result = [type(API('outer')), type(API('inner'))]",
    "range_pop": "torch.cuda.nvtx.range_push('outer')\nresult = type(API())",
    # tensor types, NPU109
    "torch.Tensor.cuda": "result = [API(torch.ones(2)), list(map(torch.Tensor.cuda, [torch.arange(3)]))]",
    "torch.Tensor.is_cuda": "result = [API.__get__(torch.ones(2)), API.__get__(torch.ones(2, device='cuda'))]",
    "torch.nn.Module.cuda": "result = API(torch.nn.Linear(2, 3)).weight",
    "torch.cuda._memory_viz": "from torch.cuda import _memory_viz\n"
    "result = type(_memory_viz.segments(torch.cuda.memory._snapshot(), str))",
    # collectives, NPU111
    "NCCL": "result = API",
    "is_nccl_available": "result = API()",
}
for _name in ("max_memory_cached", "max_memory_reserved"):
    _CODES[_name] = _CODES["max_memory_allocated"]
for _name in ("memory_cached", "memory_reserved"):
    _CODES[_name] = _CODES["memory_allocated"]
for _name in ("reset_max_memory_allocated", "reset_max_memory_cached"):
    _CODES[_name] = _CODES["reset_peak_memory_stats"]
_TYPES = {"Bool": "[True, False]", **dict.fromkeys(("Byte", "Char", "Short", "Int", "Long"), "[1, 2, 3]")}
for _name in ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double"):
    _values = _TYPES.get(_name, "[1.5, 2.0, -3.0]")
    # A card casts to float64 as to float32 (card_limits.json), which a run says; so that cast is left out.
    _cast = "" if _name == "Double" else "torch.ones(2).type(API), "
    _CODES[_name + "Tensor"] = (
        f"x = API({_values})\nresult = [x, API(2, 3).shape, isinstance(x, API), isinstance(x.cpu(), API), "
        f"{_cast}x.type()]"
    )
    _CODES[_name + "Storage"] = f"result = API({_values})"

_NATURES: dict[str, str] = {
    **dict.fromkeys(("get_device_name", "get_device_properties"), _CARD),
    **dict.fromkeys(("seed", "seed_all"), _DRAWN),
    **dict.fromkeys(
        "max_memory_allocated max_memory_cached max_memory_reserved memory_allocated memory_cached memory_reserved "
        "mem_get_info memory_stats memory_stats_as_nested_dict memory_summary".split(),
        _HOST,
    ),
    "graph_pool_handle": "it is a handle",
}


def snippet_of(rule: Rule) -> Snippet | None:
    """The snippet for a rule of a table, if it has one."""
    last = rule.name.rpartition(".")[2]
    code = _CODES.get(rule.name) or _CODES.get(last if rule.name.startswith("torch") else "")
    if code is None:
        return None
    return Snippet(code.replace("API", rule.name), nature=_NATURES.get(last, ""))
