"""Options of Triton that mean nothing on an NPU: warps, stages, clusters and registers; hints for the cache of a GPU.

They go where they are options; a kernel that has a parameter of that name keeps it, and what else reads a name keeps
that. Configurations of the autotuner that are the same then are one. Source: triton-ascend,
docs/en/migration_guide/architecture_difference.md, docs/zh/triton_api/Memory_Pointer_Ops/tl.load.md; a launch takes no
other options than those of `NPUOptions` (third_party/ascend/backend/compiler.py, python/triton/runtime/jit.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import one_after_the_other
from transplt.edits.trees.removals import without_keyword
from transplt.edits.unread_variables import unread_locals
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.triton.codemods.triton_configs import Configs
from transplt.fixers.triton.reader.kernels import kernels_in
from transplt.fixers.triton.reader.launches import OPTIONS, launches_in
from transplt.rules.triton_names import launch_options
from transplt.syntax.nodes import inner_nodes
from transplt.syntax.scan import chain

fixer = Fixer(__name__, code="NPU561", needs=(b"triton",), words=("triton",))

#: What a person may leave out without a second thought, of a launch and of `triton.Config`.
DROPPED = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_HINTS = ("cache_modifier", "eviction_policy", "volatile")
#: What specialises warps (Triton 3.2 and later); the arguments of `tl.range` came after triton-ascend 3.2.
_SPECIALISED = frozenset(
    "num_buffers_warp_spec num_consumer_groups reg_dec_producer reg_inc_consumer enable_warp_specialization".split()
)
_OF_RANGE = frozenset({"warp_specialize", "disallow_acc_multi_buffer", "flatten", "disable_licm"})
#: Arguments of `kernel.run` and `kernel.warmup` themselves.
_OF_THE_CALL = frozenset({"grid", "warmup", "stream", "device_type", "device"})
_GROUP = "triton options"
_UNREAD = "nothing uses {} any more"


@fixer.on(ast.Module)
def options(work: Work, tree: ast.Module) -> Finds:
    """Leave the options out, with the names that nothing else reads; report those that triton-ascend refuses."""
    yield from _refused(work)
    if work.settings.style == "portable":
        return
    parameters = {each.name for kernel in kernels_in(work.file) for each in kernel.parameters}
    configs = Configs(work, tuple(name for name in DROPPED if name not in parameters))
    dropped = [*_of_launches(work), *configs.dropped, *_hints(work)]
    edits: list[Edit] = []
    gone: list[ast.expr] = list(configs.gone)
    for call, names in dropped:
        if work.share(call):
            edits.append(_without(call, names))
            gone += [each.value for each in call.keywords if each.arg in names]
    yield from configs.notes()
    edits += configs.edits(fixer.code)
    read = [name for value in gone for name in inner_nodes(value, ast.Name)]
    writer = Writer(work, _GROUP, fixer.code, "")
    drop_unused(writer, read, fixer.code)
    for name, statements in unread_locals(work, read):
        for statement in statements:
            writer.remove(statement, fixer.code, _UNREAD.format(name), only=False)
    for edit in edits:
        edit.group = _GROUP if writer.found else ""
        yield edit
    yield from writer.found


def _without(call: ast.Call, names: tuple[str, ...]) -> Edit:
    hints = names[0] in _HINTS
    what = " and ".join(names)
    say = "has" if len(names) == 1 else "have"
    why = "no effect on an NPU" if hints else "no meaning on an NPU, which has no warps"
    return Edit(call, fixer.code, f"{what} {say} {why}", one_after_the_other(*map(without_keyword, names)),
                api=f"triton.language.{getattr(call.func, 'attr', '')}" if hints else "triton")  # fmt: skip


def _hints(work: Work) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    for kernel in kernels_in(work.file):
        for call, name in kernel.calls():
            if name in ("load", "store"):
                given = {each.arg: each.value for each in call.keywords}
                names = tuple(name for name in _HINTS if name in given and not _waits(call, name, given[name]))
                if names:
                    yield call, names


def _waits(call: ast.Call, name: str, value: ast.expr) -> bool:
    """True for `volatile=True` in a `while`: the kernel waits for what another program writes."""
    if name != "volatile" or (isinstance(value, ast.Constant) and not value.value):
        return False
    return any(isinstance(above, ast.While) for above in chain(call))


def _of_launches(work: Work) -> Iterator[tuple[ast.Call, tuple[str, ...]]]:
    for launch in launches_in(work.file, work.project):
        names = tuple(name for name in DROPPED if name in launch.options)
        if names:
            yield launch.call, names


def _refused(work: Work) -> Finds:
    for launch in launches_in(work.file, work.project):
        name = launch.kernel.name
        for option, keyword in launch.options.items():
            if option in _SPECIALISED:
                yield work.note(
                    keyword, fixer.code, f"{option} of the launch of {name} has no meaning on an NPU", api=option,
                    help="remove it: an NPU has no warps to specialise", blocks="tidy",
                )  # fmt: skip
            elif option not in launch_options() and option not in OPTIONS and option not in _OF_THE_CALL:
                yield work.note(
                    keyword, fixer.code, f"triton-ascend has no launch option {option}: the launch of {name} raises "
                    "KeyError", api=option, blocks="first step",
                    help="remove it; if the kernel depends on it (programs of one launch that wait for each other), "
                         "split the kernel",
                )  # fmt: skip
    for kernel in kernels_in(work.file):
        for call, operation in kernel.calls():
            given = {each.arg: each for each in call.keywords}
            if operation == "range":
                for option in sorted(_OF_RANGE & {each for each in given if each}):
                    yield work.note(
                        given[option], fixer.code, f"tl.range of triton-ascend 3.2 has no argument {option}: "
                        f"{kernel.name} does not compile", api="triton.language.range", help="remove it",
                        blocks="first step",
                    )  # fmt: skip
            elif operation == "load" and "volatile" in given and _waits(call, "volatile", given["volatile"].value):
                yield work.note(
                    given["volatile"], fixer.code, f"{kernel.name} waits for another program with volatile, which has "
                        "no effect on an NPU", api="triton.language.load", blocks="first step",
                    help="if there are more programs than cores, they run one after another, and one that waits for a "
                         "later one never ends: split the kernel where it waits",
                )  # fmt: skip
