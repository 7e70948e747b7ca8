"""What a task of ray asks for, where a program computes it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["npus_of_ray"]


def npus_of_ray(number: float | None, resources: Mapping[str, float] | None = None) -> dict[str, float] | None:
    """The `resources` of a task or an actor of ray that had `num_gpus=number` beside `resources`.

    None asks for no card, as it did there.

    Source: ray 2.47, ray/_private/accelerators/npu.py: NPUs are the resource "NPU", of which 0 is none.
    """
    if number is None:
        return None if resources is None else dict(resources)
    return {**(resources or {}), "NPU": number}
