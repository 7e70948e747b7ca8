"""How far two figures may be apart."""

from __future__ import annotations

import math

import pytest

from tests.prove.trainings import trained
from transplt.proof.prove.precision import MIXED, tolerance_of
from transplt.proof.prove.tolerance import PLAIN, REORDERED, Tolerance

ROOM = Tolerance(loss=0.1, gradient=0.1, movement=0.1, roundings=4)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (1.0, 1.0, 0.0),
        (1.0, 1.05, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, 1e-8, 0.0),
        (math.nan, math.nan, 0.0),
        (math.inf, math.inf, 0.0),
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ("none", 1.0, 0.0),
        (1.0, 2.0, 0.5),
        (-1.0, 1.0, 2.0),
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        (1.0, math.nan, math.inf),
        (1.0, math.inf, math.inf),
        (math.inf, -math.inf, math.inf),
    ],
)
def test_losses(one: object, other: object, apart: float) -> None:
    assert ROOM.loss_apart(one, other) == apart


@pytest.mark.parametrize(
    ("one", "other", "total", "apart"),
    [
        ([1.0, 0.5], [1.0, 0.5], 1.0, False),
        ([1.0, 0.5], [1.05, 0.5], 1.0, False),
        ([1.0, 0.5], [1.5, 0.5], 1.0, True),
        ([1.0, 0.5], [1.0, -0.5], 1.0, True),  # turned round, with an equal norm
        ([1e-6, 0.0], [2e-6, 0.0], 1.0, False),  # rounding beside the other gradients
        ([1e-6, 0.0], [2e-6, 0.0], 1e-6, True),
        ([0.0, 0.0], [0.0, 0.0], 0.0, False),
        ([math.nan, math.nan], [math.nan, math.nan], 1.0, False),
        ([math.nan, math.nan], [1.0, 0.5], 1.0, True),
    ],
)
def test_gradients(one: list[float], other: list[float], total: float, apart: bool) -> None:
    assert (ROOM.gradient_apart(one, other, total) > 0) is apart


@pytest.mark.parametrize(
    ("one", "other", "dtype", "apart"),
    [
        ([2.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 2.0], "float32", False),
        ([2.0, 1.0, 1.0, 1.0], [2.05, 1.0, 1.0, 2.0], "float32", False),  # a twentieth of the way that it moved
        ([2.0, 1.0, 1.0, 1.0], [2.5, 1.0, 1.0, 2.0], "float32", True),
        ([1.0, 1.0, 1.0, 1.0], [1.0 + 1e-7, 1.0, 1.0, 2.0], "float32", False),  # not moved: rounding
        ([1.0, 1.0, 1.0, 1.0], [1.00001, 1.0, 1.0, 2.0], "float32", True),  # one moved, the other did not
        ([100.0, 1.0, 1.0, 1.0], [100.02, 1.0, 1.0, 2.0], "bfloat16", False),
        ([math.nan] * 3, [2.0, 1.0, 1.0], "float32", True),
        (None, [2.0, 1.0, 1.0], "float32", False),
    ],
)
def test_parameters(one: list[float] | None, other: list[float] | None, dtype: str, apart: bool) -> None:
    assert (ROOM.parameter_apart(one, other, [1.0, 1.0, 1.0, 0.0], dtype) > 0) is apart


@pytest.mark.parametrize(("dtype", "apart"), [("float64", True), ("float32", True), ("float16", False)])
def test_a_parameter_that_stays_has_the_rounding_of_its_dtype(dtype: str, apart: bool) -> None:
    still = [1.0, 1.0, 1.0, 0.0]
    exact = Tolerance(0.1, 0.1, 0.0, 4)
    assert (exact.parameter_apart(still, [1.001, 1.0, 1.0, 1.0], still, dtype) > 0) is apart


def test_a_tolerance_in_words() -> None:
    assert str(PLAIN) == (
        "losses within 0.00001, gradients within 0.0001 of their norm, parameters within 0.001 of the way they moved"
    )
    assert str(REORDERED).startswith("losses within 0.0001, gradients within 0.002 of")
    assert str(MIXED).startswith("losses within 0.05, gradients within 0.2 of")


@pytest.mark.parametrize("exact", [PLAIN, REORDERED])
def test_a_fused_optimizer_is_held_to_the_same_bounds(exact: Tolerance) -> None:
    assert tolerance_of(trained({}, kind="Adam"), trained({}, kind="NpuFusedAdam"), exact) is exact
