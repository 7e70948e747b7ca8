"""Looks for inputs of one target that fail, until the time is over."""

from __future__ import annotations

import contextlib
import time
import traceback
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, given

from tests.fuzz.limits import bounded
from tests.fuzz.targets import Target

#: A new seed after so many inputs: shrinking and the coverage of the strategies start again.
_ROUND = 200


def attempt(target: Target, data: bytes) -> None:
    """What does not hold for one input is raised."""
    with bounded(len(data)):
        target.holds(data)


def examples(target: Target, number: int) -> None:
    """The same few inputs at each call. Raises what the first one that fails raises."""

    @hypothesis.settings(
        max_examples=number, database=None, deadline=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(target.inputs)
    def try_one(data: bytes) -> None:
        attempt(target, data)

    try_one()


def search(target: Target, seconds: float, seed: int, scratch: Path) -> tuple[bytes, str] | None:
    """The smallest input found that fails, with what was raised; None when nothing fails in so many seconds.

    `scratch` always holds the input on trial, for whoever has to know it when this process dies.
    """
    end = time.monotonic() + seconds
    failed: list[tuple[bytes, str]] = []
    tried = 0

    def try_one(data: bytes) -> None:
        nonlocal tried
        # What is found is made smaller, but not forever.
        if time.monotonic() > end + (60 if failed else 0):
            return
        tried += 1
        scratch.write_bytes(data)
        try:
            attempt(target, data)
        except Exception:
            failed.append((data, traceback.format_exc()))
            raise

    while time.monotonic() < end and not failed:
        run = hypothesis.settings(
            max_examples=_ROUND, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False,
        )(given(target.inputs)(try_one))  # fmt: skip
        with contextlib.suppress(Exception):
            hypothesis.seed(seed)(run)()
        seed += 1
    print(f"{target}: {tried} inputs", flush=True)
    return min(failed, key=lambda found: len(found[0])) if failed else None
