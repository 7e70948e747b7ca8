"""Differences that roundings explain: an original, the same shaken, a port, and what is left to be told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.prove.trainings import trained
from transplt.proof.prove.steps import differences
from transplt.proof.prove.tolerance import PLAIN
from transplt.proof.prove.unsteady import Unsteady, compared_whole

Steps = list[dict[str, Any]]


def left(one: Steps, shaken: Steps, port: Steps) -> tuple[str, int]:
    """The first difference that is left, and how many were explained."""
    unsteady = Unsteady.between(trained(*one), trained(*shaken), PLAIN, differences)
    first, explained = unsteady.left(differences(trained(*one), trained(*port), PLAIN))
    return first.what if first is not None else "", len(explained)


@pytest.mark.parametrize(
    ("one", "shaken", "port"),
    [
        ([{"loss": 1.0}], [{"loss": 1.0}], [{"loss": 1.1}]),
        ([{"loss": 1.0}], [{"loss": 1.0 + 2e-6}], [{"loss": 1.1}]),
        # The gradient is steady, whatever the loss is.
        ([{"loss": 1.0, "grad": 0.5}], [{"loss": 1.1, "grad": 0.5}], [{"loss": 1.0, "grad": 0.6}]),
        # Roundings move it, and the port is far beyond.
        ([{"grad": 0.5}], [{"grad": 0.5001}], [{"grad": 0.9}]),
        # No rounding takes a gradient away, a step or a learning rate.
        ([{"grad": 0.5}], [{"grad": 0.6}], [{"grad": None}]),
        ([{}, {}], [{"loss": 1.5}, {}], [{}]),
        ([{"lr": 0.1}], [{"lr": 0.1, "loss": 1.5}], [{"lr": 0.2}]),
    ],
)
def test_what_no_rounding_explains_is_told(one: Steps, shaken: Steps, port: Steps) -> None:
    assert left(one, shaken, port)[0]


@pytest.mark.parametrize(
    ("one", "shaken", "port", "explained"),
    [
        ([{"loss": 1.0}], [{"loss": 1.0}], [{"loss": 1.0}], 0),
        ([{}, {"loss": 1.0}], [{}, {"loss": 1.01}], [{}, {"loss": 1.02}], 1),
        ([{"grad": 0.5}], [{"grad": 0.501}], [{"grad": 0.496}], 1),
        # A quarter of the bound is enough: another shake would have passed it.
        ([{"loss": 1.0}], [{"loss": 1.0 + 4e-6}], [{"loss": 1.0 + 2e-5}], 1),
    ],
)
def test_what_the_original_makes_of_roundings_is_left_out(
    one: Steps, shaken: Steps, port: Steps, explained: int
) -> None:
    assert left(one, shaken, port) == ("", explained)


def test_only_steps_with_a_steady_loss_count_as_compared() -> None:
    one, port = [{}, {"grad": 0.5}, {"loss": 1.0}], [{}, {"grad": 0.6}, {"loss": 1.1}]
    explained = list(differences(trained(*one), trained(*port), PLAIN))
    assert compared_whole(explained, 3) == (
        2,
        "2 figures from step 2 on left out, which roundings decide: the original's own move as far when its "
        "parameters are off by a few roundings",
    )
