"""What an autotuner asks for beside blocks: options of other cards, results kept on the disk, graphs of CUDA.

Source: triton-ascend, third_party/ascend/backend/runtime/autotuner.py (arguments of `autotune`),
docs/en/migration_guide/architecture_difference.md.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import one_after_the_other
from transplt.edits.trees.removals import without_keyword
from transplt.edits.work import Work
from transplt.fixers.triton.reader.kernels import AUTOTUNE, kernels_in
from transplt.fixers.triton.reader.launches import OPTIONS
from transplt.rules.triton_names import launch_options

fixer = Fixer(__name__, code="NPU567", needs=(b"triton",), words=("triton",))

#: Arguments that choose how to measure and what to keep of it, and nothing else.
_MEASURING = {
    "use_cuda_graph": "measures with graphs of CUDA",
    "cache_results": "is not an argument of triton-ascend's autotune",
}
#: More configurations than a first launch should have to compile.
_MANY = 16


@fixer.on(ast.Call, name=AUTOTUNE)
def measured(work: Work, call: ast.Call) -> Finds:
    """Leave out how to measure for CUDA, and what the autotuner for NPUs does not take."""
    given = tuple(each.arg for each in call.keywords if each.arg in _MEASURING)
    names = tuple(name for name in given if name is not None)
    if names and work.settings.style != "portable" and work.share(call):
        message = "; ".join(f"{name} {_MEASURING[name]}" for name in names)
        yield Edit(call, fixer.code, message, one_after_the_other(*map(without_keyword, names)), api="triton.autotune")


@fixer.on(ast.Module)
def configurations(work: Work, tree: ast.Module) -> Finds:
    """Options of other cards among the constexprs, and very many configurations."""
    for kernel in kernels_in(work.file):
        known = {each.name for each in kernel.parameters} | launch_options() | OPTIONS
        done: set[str] = set()
        for config in kernel.configs:
            for name in config.values.keys() - known - done:
                done.add(name)
                yield work.note(
                    config.call, fixer.code, f"triton-ascend has no option {name}: the launch of {kernel.name} "
                    "raises KeyError", api="triton.Config", blocks="first step", help="remove it",
                )  # fmt: skip
        many = len(kernel.configs)
        if kernel.autotuner is not None and many > _MANY:
            yield work.note(
                kernel.autotuner.func, fixer.code, f"the autotuner of {kernel.name} compiles and measures {many} "
                "configurations each time a key changes", level=Level.INFO, api="triton.autotune", blocks="slow",
                help="keep only a few configurations, whose blocks fit into the unified buffer",
            )  # fmt: skip
