"""Which rank this is, of how many, its card, and how tensors go from rank to rank."""

from __future__ import annotations

import torch
from torch import distributed

try:  # noqa: SIM105
    import torch_npu  # noqa: F401
except ImportError:  # the same code runs on CUDA and on the CPU
    pass

__all__ = ["card", "is_first", "rank", "wait", "world_size"]


def rank() -> int:
    """The number of this process, from 0; 0 without a process group."""
    return int(distributed.get_rank()) if distributed.is_initialized() else 0


def world_size() -> int:
    """How many processes train together; 1 without a process group."""
    return int(distributed.get_world_size()) if distributed.is_initialized() else 1


def is_first() -> bool:
    """True on rank 0, which prints and saves."""
    return rank() == 0


def wait() -> None:
    """Wait until all ranks have come here. Every rank has to."""
    if world_size() > 1:
        distributed.barrier()


def card_kind() -> str:
    """What this machine computes on: "npu", else "cuda", else "cpu"."""
    if hasattr(torch, "npu") and torch.npu.is_available():
        return "npu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def card() -> torch.device:
    """This rank's card, or the CPU where there is none."""
    kind = card_kind()
    return torch.device(kind) if kind == "cpu" else torch.device(kind, getattr(torch, kind).current_device())


def exchange_device() -> torch.device:
    """Where tensors lie that go from rank to rank: HCCL and NCCL take those of the card, gloo those of the CPU."""
    return torch.device("cpu") if distributed.get_backend() == "gloo" else card()


def add_up(tensor: torch.Tensor) -> torch.Tensor:
    """The sum over the ranks of `tensor`, any shape, which may be overwritten; the same bits on every rank."""
    sent = tensor.to(exchange_device())
    if sent.dtype in (torch.float64, torch.complex128) and sent.device.type != "cpu":  # HCCL sends, but does not add it
        parts = [torch.empty_like(sent) for _ in range(world_size())]
        distributed.all_gather(parts, sent)
        sent = torch.stack([part.cpu() for part in parts]).sum(0)
    else:
        distributed.all_reduce(sent)
    return sent.to(tensor.device)


def take_first(tensor: torch.Tensor) -> None:
    """Overwrite `tensor` (any shape, type, device and layout) with rank 0's."""
    with torch.no_grad():
        here = tensor.detach()
        sent = here.to(exchange_device()).contiguous()
        distributed.broadcast(sent, 0)
        if sent is not here:
            here.copy_(sent)
