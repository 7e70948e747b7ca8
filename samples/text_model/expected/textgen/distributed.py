"""Process groups: under torchrun, spawned by ourselves, or a single process."""

from __future__ import annotations

import datetime
import os
import socket
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1

    @property
    def distributed(self) -> bool:
        return self.world_size > 1

    @property
    def main(self) -> bool:
        return self.rank == 0


def ranks_from_env() -> Ranks:
    """What torchrun (or our own spawn) put into the environment."""
    if "RANK" not in os.environ:
        return Ranks()
    return Ranks(int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"]))


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def default_backend() -> str:
    return "hccl" if torch.npu.is_available() and dist.is_hccl_available() else "gloo"


def device_for(ranks: Ranks, name: str) -> str:
    """The device string of this rank: `cuda` means the card of its own."""
    if name == "npu":
        if not torch.npu.is_available():
            return "cpu"
        name = f"npu:{ranks.local_rank % torch.npu.device_count()}"
    if name.startswith("npu"):
        torch.npu.set_device(name)
    return name


def setup(ranks: Ranks, backend: str | None) -> None:
    if not ranks.distributed:
        return
    backend = backend or default_backend()
    if backend == "hccl":
        os.environ.setdefault("TORCH_HCCL_ASYNC_ERROR_HANDLING", "1")
    dist.init_process_group(
        backend=backend,
        init_method="env://",
        rank=ranks.rank,
        world_size=ranks.world_size,
        timeout=datetime.timedelta(minutes=10),
    )


def barrier(ranks: Ranks) -> None:
    if not ranks.distributed:
        return
    if dist.get_backend() == "hccl":
        dist.barrier(device_ids=[ranks.local_rank])
    else:
        dist.barrier()


def cleanup(ranks: Ranks) -> None:
    if ranks.distributed:
        dist.destroy_process_group()


def mean_over_ranks(value: float, device: str, ranks: Ranks) -> float:
    if not ranks.distributed:
        return value
    total = torch.tensor([value], dtype=torch.float32, device=device)
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    return (total / ranks.world_size).item()


def gather_objects(obj: object, ranks: Ranks) -> list[object]:
    """Everybody's `obj`, in the order of the ranks."""
    if not ranks.distributed:
        return [obj]
    out: list[object] = [None] * ranks.world_size
    dist.all_gather_object(out, obj)
    return out
