"""The metrics of `transplt compare` beside those of msaccucmp, on random cells.

usage: metrics_oracle.py MSACCUCMP [PAIRS]   (the folder msprobe/msaccucmp of mindstudio-probe, with its requirements)
Ten metrics a pair. msaccucmp's functions are given the numbers twice: in float64, where a cell is equal when both print
the same six decimals, and in float32, as msaccucmp casts them, where the last of those decimals is rounding.
"""

from __future__ import annotations

import random
import sys
import types
from collections import Counter
from typing import Any

import numpy as np

from transplt.precision.metrics import measure

NAMES = {
    "CosineSimilarity": "cosine", "MaxAbsoluteError": "max_absolute",
    "AccumulatedRelativeError": "accumulated_relative", "RelativeEuclideanDistance": "relative_euclidean",
    "KullbackLeiblerDivergence": "kullback_leibler", "StandardDeviation": "standard_deviation",
    "MeanAbsoluteError": "mean_absolute", "RootMeanSquareError": "root_mean_square",
    "MaxRelativeError": "max_relative", "MeanRelativeError": "mean_relative",
}  # fmt: skip


def pair(number: int) -> tuple[Any, Any]:
    """Two arrays of some type and size; now and then of zeros, of one element, or equal."""
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
    return n.astype(dtype), b.astype(dtype)


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    import importlib

    from cmp_utils import utils_type  # type: ignore[import-not-found]

    modules = {name: importlib.import_module(f"algorithm_manager.builtin_algorithm.alg_{name}") for name in NAMES}
    for dtype in ("f8", "f4"):
        equal, apart = 0, Counter[str]()
        shown = []
        for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 300):
            n, b = (each.astype("f4") for each in pair(number))
            found = measure(n, b)
            shape = utils_type.ShapeType.Scalar if n.size == 1 else utils_type.ShapeType.Vector
            told = types.SimpleNamespace(my_output_dump_file="n", ground_truth_dump_file="b", shape_type=shape)
            for name, attribute in NAMES.items():
                with np.errstate(all="ignore"):
                    theirs, _ = modules[name].compare(n.astype(dtype), b.astype(dtype), told)
                ours = getattr(found, attribute)
                text = ours if isinstance(ours, str) else f"{ours:.6f}"
                if text.lower() == str(theirs).lower() or (isinstance(ours, float) and text == f"{float(theirs):.6f}"):
                    equal += 1
                    continue
                apart[name] += 1
                shown.append(f"  {name} of {n.size}: {theirs} and {text}")
        print(f"{dtype}: {equal} of {equal + sum(apart.values())} cells equal; apart: {dict(apart)}")
        print("\n".join(shown[:12]))


if __name__ == "__main__":
    main()
