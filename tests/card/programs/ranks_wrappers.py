"""What is built on collectives, on two ranks and beside one process on the CPU; exits with 0."""

import os
import tempfile
import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.join import Join
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.npu.set_device(RANK)
dist.init_process_group("hccl", device_id=torch.device("npu", RANK))
MESH = dist.device_mesh.init_device_mesh("npu", (WORLD,))
torch.manual_seed(0)
BATCH, TARGET = torch.randn(8, 6), torch.randn(8, 4)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 4)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.norm(self.first(x)).relu())


def made(kind: Any = Net) -> nn.Module:
    torch.manual_seed(1)
    return kind()


def part(whole: torch.Tensor) -> torch.Tensor:
    return whole.chunk(WORLD)[RANK]


def close(found: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-5) -> None:
    found = found.full_tensor() if isinstance(found, DTensor) else found
    assert torch.allclose(found.detach().cpu().float(), expected.detach(), atol=tolerance), (found, expected)


def trained(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor, steps: int = 3) -> nn.Module:
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model


REFERENCE = made()
trained(REFERENCE, torch.optim.SGD(REFERENCE.parameters(), 0.1), BATCH, TARGET)
EXPECTED = dict(REFERENCE.named_parameters())
x, y = part(BATCH).npu(), part(TARGET).npu()


def as_expected(model: nn.Module, tolerance: float = 1e-5) -> None:
    for name, parameter in model.named_parameters():
        close(parameter, EXPECTED[name.removeprefix("module.")], tolerance)


# DistributedDataParallel in its ways.
for options in (
    {"find_unused_parameters": True}, {"static_graph": True},
    {"find_unused_parameters": True, "gradient_as_bucket_view": True, "bucket_cap_mb": 0.0001},
):  # fmt: skip
    model = DistributedDataParallel(made().npu(), device_ids=[RANK], **options)
    as_expected(trained(model, torch.optim.SGD(model.parameters(), 0.1), x, y))
for hook, tolerance in ((default_hooks.allreduce_hook, 1e-5), (default_hooks.fp16_compress_hook, 1e-2)):
    model = DistributedDataParallel(made().npu(), device_ids=[RANK], find_unused_parameters=True)
    model.register_comm_hook(None, hook)
    as_expected(trained(model, torch.optim.SGD(model.parameters(), 0.1), x, y), tolerance)
model = DistributedDataParallel(made().npu(), device_ids=[RANK], find_unused_parameters=True)
with model.no_sync():
    nn.functional.mse_loss(model(x[:2]), y[:2]).div(2).backward()
nn.functional.mse_loss(model(x[2:]), y[2:]).div(2).backward()
single = made()
nn.functional.mse_loss(single(BATCH), TARGET).backward()
close(model.module.first.weight.grad, single.first.weight.grad)
model = DistributedDataParallel(made(lambda: nn.Linear(6, 4)).npu(), device_ids=[RANK])
with Join([model]):
    trained(model, torch.optim.SGD(model.parameters(), 0.1), x, y, 1 + RANK)
weights = [torch.zeros(4, 6).npu() for _ in range(WORLD)]
dist.all_gather(weights, model.module.weight.detach())
assert torch.equal(weights[0], weights[1])
model = DistributedDataParallel(made().npu(), device_ids=[RANK], find_unused_parameters=True)
sharded = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
as_expected(trained(model, sharded, x, y))

# SyncBatchNorm over unevenly split batches is BatchNorm over the joined one.
rows = slice(0, 3) if RANK == 0 else slice(3, 8)
whole, mine = BATCH.clone().requires_grad_(), BATCH[rows].npu().requires_grad_()
plain, synchronous = nn.BatchNorm1d(6), nn.SyncBatchNorm(6).npu()
expected, found = plain(whole), synchronous(mine)
(expected * BATCH.sin()).sum().backward()
(found * BATCH.sin()[rows].npu()).sum().backward()
dist.all_reduce(synchronous.weight.grad)
close(found, expected[rows])
close(mine.grad, whole.grad[rows], 1e-4)
close(synchronous.weight.grad, plain.weight.grad, 1e-4)
close(synchronous.running_var, plain.running_var)

# Sharded parameters.
model = FullyShardedDataParallel(made().npu(), device_id=RANK, use_orig_params=True)
trained(model, torch.optim.SGD(model.parameters(), 0.1), x, y)
with FullyShardedDataParallel.summon_full_params(model):
    close(model.first.weight, EXPECTED["first.weight"])
model = made().npu()
for layer in (model.first, model.second):
    fully_shard(layer, mesh=MESH)
fully_shard(model, mesh=MESH)
as_expected(trained(model, torch.optim.SGD(model.parameters(), 0.1), x, y))
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
small = fully_shard(made().npu(), mesh=MESH, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32))
as_expected(trained(small, torch.optim.SGD(small.parameters(), 0.1), x, y), 2e-2)

# A distributed checkpoint of them, into a fresh model.
folder: list[Any] = [tempfile.mkdtemp() if RANK == 0 else None]
dist.broadcast_object_list(folder, 0)
checkpoint.save(get_model_state_dict(model), checkpoint_id=folder[0])
other = fully_shard(Net().npu(), mesh=MESH)
state = get_model_state_dict(other)
checkpoint.load(state, checkpoint_id=folder[0])
set_model_state_dict(other, state)
as_expected(other)

# Tensors in parts, and layers that hold one each.
split = distribute_tensor(BATCH.npu(), MESH, [Shard(0)])
close(split.redistribute(MESH, [Shard(1)]).redistribute(MESH, [Replicate()]).to_local(), BATCH)
close((split @ split.t().redistribute(MESH, [Replicate()])).full_tensor(), BATCH @ BATCH.t(), 1e-4)
close(split.sum().full_tensor(), BATCH.sum(), 1e-4)
parallel = parallelize_module(
    made(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))).npu(), MESH,
    {"0": ColwiseParallel(), "2": RowwiseParallel()},
)  # fmt: skip
one = made(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)))
close(parallel(BATCH.npu()), one(BATCH))
parallel(BATCH.npu()).square().sum().backward()
one(BATCH).square().sum().backward()
close(parallel[0].weight.grad, one[0].weight.grad, 1e-4)
along = parallelize_module(
    made(lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8), nn.Linear(8, 6))).npu(), MESH,
    {
        "0": SequenceParallel(),
        "1": ColwiseParallel(input_layouts=Shard(1)),
        "2": RowwiseParallel(output_layouts=Shard(1)),
    },
)
one = made(lambda: nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8), nn.Linear(8, 6)))
sequence = torch.randn(2, 4, 6)
close(along(DTensor.from_local(sequence.npu().chunk(2, 1)[RANK], MESH, [Shard(1)])), one(sequence).chunk(2, 1)[RANK])

# Stages of a pipeline.
layers = made(lambda: nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 4)]))
for schedule in (ScheduleGPipe, Schedule1F1B):
    stage_module = made(lambda: nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 4)]))[RANK].npu()
    stage = PipelineStage(stage_module, RANK, WORLD, torch.device("npu", RANK))
    run = schedule(stage, n_microbatches=4, loss_fn=nn.functional.mse_loss)
    losses: list[torch.Tensor] = []
    if RANK == 0:
        run.step(BATCH.npu())
    else:
        close(run.step(target=TARGET.npu(), losses=losses), layers[1](layers[0](BATCH)))
    layers.zero_grad()
    nn.functional.mse_loss(layers[1](layers[0](BATCH)), TARGET).backward()
    close(stage_module.weight.grad, layers[RANK].weight.grad, 1e-4)
dist.destroy_process_group()
