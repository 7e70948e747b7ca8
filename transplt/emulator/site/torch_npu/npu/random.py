"""Random number generators of the npus."""

from __future__ import annotations

from typing import Any

from .. import _devices

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def device_count() -> int:
    return _devices.count()


def is_initialized() -> bool:
    return True


def _current() -> Any:
    return _devices.generators[_devices.state.device]


def manual_seed(seed: int) -> None:
    _current().manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    for generator in _devices.generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    _current().seed()


def seed_all() -> None:
    manual_seed_all(_devices.generators[0].seed())


def initial_seed() -> int:
    return int(_current().initial_seed())


def get_rng_state(device: Any = "npu") -> Any:
    return _devices.generators[_devices.index_of(device)].get_state()


def set_rng_state(new_state: Any, device: Any = "npu") -> None:
    _devices.generators[_devices.index_of(device)].set_state(new_state)


def get_rng_state_all() -> list[Any]:
    return [generator.get_state() for generator in _devices.generators]


def set_rng_state_all(new_states: Any) -> None:
    for generator, state in zip(_devices.generators, new_states, strict=False):
        generator.set_state(state)
