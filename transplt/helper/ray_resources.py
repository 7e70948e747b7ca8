"""What a program asks ray for, where it computes it: resources of a task, the backend of a group of actors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

__all__ = ["npus_of_ray", "ray_backend"]


def npus_of_ray(number: float | None, resources: Mapping[str, float] | None = None) -> dict[str, float] | None:
    """The `resources` of a task or an actor of ray that had `num_gpus=number` beside `resources`.

    None asks for no card, as it did there.

    Source: ray 2.47, ray/_private/accelerators/npu.py: NPUs are the resource "NPU", of which 0 is none.
    """
    if number is None:
        return None if resources is None else dict(resources)
    return {**(resources or {}), "NPU": number}


def ray_backend(name: str = "nccl") -> str:
    """The backend of a group of ray.util.collective: for nccl HCCL, which every process of the group registers so.

    Others stay what they are. A process that has registered it is refused another time.
    Source: ray-ascend 0.1.1, ray_ascend/__init__.py; ray 2.56, ray/util/collective/backend_registry.py.
    """
    if name.lower() not in ("nccl", "hccl"):
        return name
    from ray_ascend import register_hccl_collective_backend

    with suppress(ValueError):
        register_hccl_collective_backend()
    return "HCCL"
