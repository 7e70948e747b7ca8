"""How the work on one file grows with it, in calls and not in seconds: the same on every machine.

    python -m benchmarks.growth [SHAPE ...] [--size 250] [--seconds]

Each shape of `benchmarks.curves` and `benchmarks.growth_shapes` is worked on at n, 2n and 4n under Python's profiler,
which counts calls. What the second doubling adds, over what the first added, is 2 where the work is linear and 4 where
it is quadratic, however small the quadratic part still is: what there is once for a file drops out.

--seconds prints CPU seconds at n, 2n, 4n and 8n, and the ratios, too: loops without calls show there alone.
Exit code 1 unless every figure is at most 2.2.
"""

from __future__ import annotations

import argparse
import cProfile
import sys
import time
from collections.abc import Callable
from itertools import pairwise

from benchmarks.curves import SHAPES
from benchmarks.growth_shapes import OTHER, PYTHON, Text
from transplt.base.finding import FileResult
from transplt.base.settings import Settings, TorchTarget
from transplt.edits.trees.transform import expression
from transplt.engine.engine import index_source, join_facts, migrate_source
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.python_in import other_facts
from transplt.syntax.files import Files

#: A doubling may cost so much.
MOST = 2.2
#: Every shape by its name: the path of the file, and its text.
ALL: dict[str, tuple[str, Text]] = {
    **{name: ("m.py", shape.text) for name, shape in SHAPES.items()},
    **{name: ("m.py", text) for name, text in PYTHON.items()},
    **OTHER,
}
#: Shapes that are left out, and why.
LEFT_OUT = {
    "functions in functions": "the text itself grows with the square, by its indentation",
    "yaml deep": "likewise",
    "yaml deep flow": "ruamel.yaml gives up at some depth, and takes the square of the time up to there",
    "toml deep": "what is deeper than Python's stack is refused",
    "brackets in brackets": "Python reads 200 of them in one another, and no more",
    "toml dotted": "the name of a key with n parts is as long for each of them",
    "sh ifs nested": "a call in a thousand `if` looks through all of them; the budget of a file is for such",
}
_SETTINGS, _TARGET = Settings(torch_version="2.8"), TorchTarget("2.8", "the default")


def worked_on(path: str, data: bytes) -> FileResult:
    """One file, alone in its project."""
    files = Files()
    if path.endswith(".py"):
        project = join_facts([index_source(data, path, _SETTINGS, files)], _SETTINGS, files)
        return migrate_source(data, path, _SETTINGS, project)
    facts = other_facts(data, path, _SETTINGS, files)
    project = join_facts([] if facts is None else [facts], _SETTINGS, files)
    return migrate_other(data, path, kind_of(path, data), _SETTINGS, _TARGET, project)[0]


def calls(work: Callable[[], object]) -> int:
    """How many functions are called, those written in C among them."""
    expression.cache_clear()  # or a larger file has the trees that a smaller one left
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(each.callcount for each in profile.getstats())


def doubling(name: str, size: int) -> float:
    """What the second doubling of a shape adds, over what the first added."""
    path, text = ALL[name]
    worked_on(path, text(3).encode())
    first, second, third = (calls(lambda n=n: worked_on(path, text(n).encode())) for n in (size, 2 * size, 4 * size))
    return (third - second) / max(second - first, 1)


def _seconds(name: str, size: int) -> list[float]:
    path, text = ALL[name]
    found = []
    for step in range(4):
        data = text(size << step).encode()
        begin = time.process_time()
        worked_on(path, data)
        found.append(time.process_time() - begin)
    return found


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="a part of a shape's name")
    parser.add_argument("--size", type=int, default=250)
    parser.add_argument("--seconds", action="store_true")
    options = parser.parse_args()
    worst = 0.0
    for name in ALL:
        if name in LEFT_OUT or (options.shapes and not any(part in name for part in options.shapes)):
            continue
        found = doubling(name, options.size)
        worst = max(worst, found)
        times = _seconds(name, options.size) if options.seconds else []
        ratios = [f"x{after / max(before, 0.001):.2f}" for before, after in pairwise(times)]
        mark = "  <-" if found > MOST else ""
        print(f"{name:40} {found:5.2f}", *(f"{each:7.2f}" for each in times), *ratios, mark, flush=True)
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
