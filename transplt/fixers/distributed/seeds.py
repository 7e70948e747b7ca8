"""What is drawn at random: alike on all ranks until the training loop, and by each rank for itself from there on."""

from __future__ import annotations

import ast

from transplt.fixers.distributed.bench import Bench
from transplt.fixers.distributed.draws import seeded
from transplt.program.loops import loops_around
from transplt.program.program import Program, enclosing_function

_OTHERS = {"numpy": frozenset({"numpy.random.seed"}), "random": frozenset({"random.seed"})}
_SPLITS = (".random_split", ".train_test_split")


def unseeded(bench: Bench) -> list[str]:
    """The generators (torch, numpy, random) that all ranks have to share a seed of, and that the script gives none."""
    program = bench.program
    if not bench.verdict.averaging and not _splits(program):
        return []
    drawn = {
        name.partition(".")[0]
        for file in program.files
        for call in file.scan.calls
        if (name := file.names.qualified(call.func) or "").startswith(("numpy.random.", "random."))
    }
    if b"train_test_split" in b"".join(file.source.utf8 for file in program.files):
        drawn.add("numpy")  # what scikit-learn draws from
    found = [] if seeded(program) else ["torch"]
    return found + [name for name in sorted(drawn) if not seeded(program, _OTHERS[name])]


def shared_seed(bench: Bench) -> list[str]:
    """Lines that give the ranks one seed, behind the start of the process group."""
    wanted = unseeded(bench)
    if not wanted:
        return []
    torch, name = bench.torch, bench.new_name("shared_seed")
    # That of rank 0: one process then draws what it would have drawn. The seed of a process that nobody has seeded has
    # 64 bits, and a tensor takes 63 and a sign: such a seed is random without its highest bit, too. NumPy takes 32.
    whole = "torch" in wanted
    short = " % 2**32"
    seed = f"{torch}.initial_seed(){' % 2**63' if whole else short}"
    lines = [f'{name} = {torch}.tensor({seed}, device="npu")', f"{bench.dist}.broadcast({name}, 0)"]
    for module in wanted:
        if module == "torch":
            lines.append(f"{torch}.manual_seed({name}.item())")
        elif module == "numpy":
            lines.append(f"{bench.module('numpy', 'np', 'numpy')}.random.seed({name}.item(){short if whole else ''})")
        else:
            lines.append(f"{bench.standard('random')}.seed({name}.item())")
    return lines


def _splits(program: Program) -> bool:
    """True when the ranks would split the data in different ways, and train with what others validate on."""
    for file in program.files:
        for call in file.scan.calls:
            name = file.names.qualified(call.func) or ""
            given = {keyword.arg for keyword in call.keywords}
            if name.endswith(_SPLITS) and not given & {"generator", "random_state"}:
                return True
    return False


def write_own_draws(bench: Bench) -> None:
    """Dropout and augmentation differ between ranks; models, splits and synthetic data were drawn alike before."""
    program, training = bench.program, bench.training
    if not seeded(program) and not unseeded(bench):
        return
    loops = [(file, loop) for file, loop, loaders in training.loops if loaders] or training.regions
    if not loops:
        return
    file, loop = loops[0]
    node: ast.stmt = loop
    # Out to the outermost loop, and on to the callers, as long as there is one of them.
    while True:
        node = [node, *loops_around(node)][-1]
        function = enclosing_function(node)
        sites = program.call_sites.get(function, []) if function is not None else []
        around = loops_around(sites[0][1]) if len(sites) == 1 else []
        if not around:
            break
        file, node = sites[0][0], around[0]
    if file is bench.file and bench.fits(node):
        torch = bench.torch
        # 64 bits are what manual_seed takes, and a seed may be the largest of them: it is what -1 comes to.
        text = f"{torch}.manual_seed(({torch}.initial_seed() + {bench.dist}.get_rank()) % 2**64)"
        bench.before(node, bench.together([text]), "NPU347", "each rank draws its own dropout and augmentation")
