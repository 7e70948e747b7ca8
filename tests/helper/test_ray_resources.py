"""What a task of ray asks for."""

from __future__ import annotations

from transplt.helper.ray_resources import npus_of_ray


def test_a_number_is_one_of_npus_beside_other_resources() -> None:
    given = {"node": 1.0}
    assert npus_of_ray(0.2) == {"NPU": 0.2}
    assert npus_of_ray(0, given) == {"node": 1.0, "NPU": 0}
    assert given == {"node": 1.0}


def test_none_asks_for_none() -> None:
    assert npus_of_ray(None) is None
    assert npus_of_ray(None, {"node": 1.0}) == {"node": 1.0}
