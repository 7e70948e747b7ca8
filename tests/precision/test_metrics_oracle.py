"""The metrics of `transplt compare` beside those of msaccucmp itself, on 3,000 random cells.

msaccucmp lies in the wheel of mindstudio-probe. Its functions are given the numbers in float64, where both print the
same six decimals, and in float32, to which msaccucmp casts them and where the last of those decimals is rounding.
"""

from __future__ import annotations

import importlib
import logging
import os
import random
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts.fetch_wheels import fetch_wheels, unpack
from transplt.precision.metrics import measure

np = pytest.importorskip("numpy")
pytestmark = [pytest.mark.network, pytest.mark.torch, pytest.mark.xdist_group("wheels")]

PINS = Path(__file__).resolve().parent.parent / "oracle_wheel.txt"
#: The wheel is one of Linux and Python 3.11; what is imported of it is plain Python.
PLATFORM = ("--platform", "manylinux_2_17_x86_64", "--python-version", "3.11", "--implementation", "cp")
NAMES = {
    "CosineSimilarity": "cosine", "MaxAbsoluteError": "max_absolute",
    "AccumulatedRelativeError": "accumulated_relative", "RelativeEuclideanDistance": "relative_euclidean",
    "KullbackLeiblerDivergence": "kullback_leibler", "StandardDeviation": "standard_deviation",
    "MeanAbsoluteError": "mean_absolute", "RootMeanSquareError": "root_mean_square",
    "MaxRelativeError": "max_relative", "MeanRelativeError": "mean_relative",
}  # fmt: skip
PAIRS = 300


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Any]]:
    """msaccucmp's modules by the names of the metrics, and its types of shapes."""
    try:
        (wheel,) = fetch_wheels(PINS, PLATFORM)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the wheel could not be downloaded: {error.stderr.strip().splitlines()[-1:]}")
    folder = unpack(wheel, tmp_path_factory.mktemp("oracle")) / "msprobe" / "msaccucmp"
    before = {*sys.modules}
    sys.path.insert(0, str(folder))
    logging.disable(logging.WARNING)
    try:
        shapes = importlib.import_module("cmp_utils.utils_type").ShapeType
        package = "algorithm_manager.builtin_algorithm"
        yield {each: importlib.import_module(f"{package}.alg_{each}") for each in NAMES}, shapes
    finally:
        logging.disable(logging.NOTSET)
        sys.path.remove(str(folder))
        for name in {*sys.modules} - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if os.path.realpath(file).startswith(os.path.realpath(folder)):
                del sys.modules[name]


def pair(number: int) -> tuple[Any, Any]:
    """Two arrays of some type and size, as float32; now and then of zeros, of one element, or equal."""
    chance = np.random.default_rng(number)
    kind = random.Random(number)
    size = kind.choice([1, 2, 7, 100, 4096])
    dtype = kind.choice(["f2", "f4", "f8"])
    b = chance.normal(0, kind.choice([1e-3, 1, 50]), size)
    n = b * (1 + chance.normal(0, kind.choice([1e-6, 1e-3, 0.3]), size))
    if kind.random() < 0.2:
        b[chance.random(size) < 0.3] = 0
    if kind.random() < 0.05:
        b[:] = 0
    if kind.random() < 0.05:
        n[:] = 0
    return n.astype(dtype).astype("f4"), b.astype(dtype).astype("f4")


def cells(oracle: tuple[dict[str, Any], Any], dtype: str) -> Iterator[tuple[str, str, str]]:
    """(metric, msaccucmp's cell, ours) of all pairs."""
    modules, shapes = oracle
    for number in range(PAIRS):
        n, b = pair(number)
        found = measure(n, b)
        shape = shapes.Scalar if n.size == 1 else shapes.Vector
        told = types.SimpleNamespace(my_output_dump_file="n", ground_truth_dump_file="b", shape_type=shape)
        for name, attribute in NAMES.items():
            with np.errstate(all="ignore"):
                theirs, _ = modules[name].compare(n.astype(dtype), b.astype(dtype), told)
            ours = getattr(found, attribute)
            yield name, str(theirs).lower(), (ours if isinstance(ours, str) else f"{ours:.6f}").lower()


def test_in_float64_every_cell_is_that_of_msaccucmp(oracle: tuple[dict[str, Any], Any]) -> None:
    told = [*cells(oracle, "f8")]
    assert len(told) == PAIRS * len(NAMES)
    assert not [each for each in told if each[1] != each[2] and f"{float(each[1]):.6f}" != each[2]]


def test_in_float32_they_are_apart_by_its_rounding(oracle: tuple[dict[str, Any], Any]) -> None:
    apart = [each for each in cells(oracle, "f4") if each[1] != each[2]]
    assert not [each for each in apart if float(each[2]) != pytest.approx(float(each[1]), rel=5e-3, abs=2e-6)]
