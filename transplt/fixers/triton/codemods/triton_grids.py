"""Grids: more programs than an NPU takes, and more than it has cores.

Source: triton-ascend, docs/en/migration_guide/migrate_from_gpu.md (65535 programs; one program on each core; grids of
two and three dimensions become one), docs/en/environment_variable_reference.md (TRITON_ALL_BLOCKS_PARALLEL).
"""

from __future__ import annotations

import ast
from math import prod

from transplt.base.finding import Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.triton.reader.grids import (
    MOST,
    GridDimension,
    dimensions_of,
    loops_over_programs,
    stays_small,
    with_products,
)
from transplt.fixers.triton.reader.launches import launches_in

fixer = Fixer(__name__, code="NPU560", edits=False, needs=(b"triton",), words=("triton",))

_SLOW = "NPU568"
_MANY = 48  # more programs than any of these cards has cores
#: Entries of a tensor that few programs have: what is too much only beyond them is not told.
_ENTRIES = 2**30 - 2**20
_API = "the grid of a launch"
_LOOP = (
    "launch as many programs as there are {cores} and let each loop over its blocks, for block in range("
    "tl.program_id(0), blocks, tl.num_programs(0))"
)
_ENV = "or set TRITON_ALL_BLOCKS_PARALLEL=1 if the programs may run in any order"


@fixer.on(ast.Module)
def grids(work: Work, tree: ast.Module) -> Finds:
    """One finding for a launch: that its grid is too large, or that it is not made for the cores."""
    for launch in launches_in(work.file, work.project):
        dimensions = dimensions_of(launch)
        if not dimensions or loops_over_programs(launch) or any(each.cores for each in dimensions):
            continue
        when = _too_large(dimensions)
        cores = "cube cores (num_aicore)" if with_products(launch) else "vector cores (num_vectorcore)"
        loop = _LOOP.format(cores=cores)
        name = launch.kernel.name
        if when:
            always = all(each.count is not None for each in dimensions)
            larger = "or use larger blocks; " if any(each.block and each.block > 1 for each in dimensions) else ""
            help_ = f"{loop}; {larger}{_ENV}"
            yield work.note(launch.call, fixer.code, f"the grid of {name} has {when}", api=_API, help=help_,
                            blocks="first step" if always else "later")  # fmt: skip
        elif prod(each.count or _MANY + 1 for each in dimensions) > _MANY:
            flat = f"over a grid of {len(dimensions)} dimensions, which an NPU flattens to one"
            message = f"{name} is launched {flat if len(dimensions) > 1 else 'one program per block'}, not one program "
            message += "per core: programs beyond the number of cores wait, which is slow"
            yield work.note(launch.call, _SLOW, message, level=Level.INFO, api=_API, help=f"{loop}; {_ENV}")


def _too_large(dimensions: list[GridDimension]) -> str:
    """When a grid is too large, in words; empty where that is not known, or not for sizes that occur."""
    counts = prod(each.count for each in dimensions if each.count is not None)
    open_ = [each for each in dimensions if each.count is None]
    if not open_:
        return f"{counts:,} programs: an NPU allows at most {MOST:,}" if counts > MOST else ""
    if not all(each.known for each in open_) or stays_small(open_):
        return ""
    if MOST * prod(each.block or 1 for each in open_) >= counts * _ENTRIES:
        return ""
    if len(open_) == 1 and "*" not in open_[0].size:
        only, first = open_[0], open_[0].first_size(counts)
        return f"more than the {MOST:,} programs that an NPU allows, from {only.size} > {first:,} on{_judged(open_)}"
    parts = [each.size if each.block == 1 else f"cdiv({each.size}, {each.block})" for each in open_]
    factors = " * ".join([*([str(counts)] if counts > 1 else []), *parts])
    return f"{factors} programs{_judged(open_)}: an NPU allows at most {MOST:,}"


def _judged(dimensions: list[GridDimension]) -> str:
    """Which of the autotuner's configurations that holds for, where they differ."""
    values = dict.fromkeys(f"{each.by}={each.block}" for each in dimensions if each.by)
    return f" with the smallest configuration of the autotuner ({', '.join(values)})" if values else ""
