"""Options of Triton that mean nothing on an NPU: warps, stages, clusters and registers; hints for the cache of a GPU.

They go where they are options; a kernel that has a parameter of that name keeps it, and what else reads a name keeps
that. Configurations of the autotuner that are the same then are one. Source: triton-ascend,
docs/en/migration_guide/architecture_difference.md, docs/zh/triton_api/Memory_Pointer_Ops/tl.load.md; a launch takes no
other options than those of `NPUOptions` (third_party/ascend/backend/compiler.py, python/triton/runtime/jit.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import one_after_the_other
from transplt.edits.trees.displays import without_elements, without_generators
from transplt.edits.trees.removals import without_keyword
from transplt.edits.unread_variables import unread_locals
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.triton.reader.kernels import CONFIG, kernels_in
from transplt.fixers.triton.reader.launches import OPTIONS, function_of, launches_in
from transplt.rules.triton_names import launch_options
from transplt.syntax.nodes import has_effects, inner_nodes, of_kind
from transplt.syntax.scan import chain, parent, statement

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
_SAME = "the configurations are the same without {}: one is enough"
_DIFFER = "the configurations differ in {}, which has no meaning on an NPU: each is compiled and measured again"
_PRUNED = "the configurations are chosen by {}, which has no meaning on an NPU"


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
        for each in statements:
            writer.remove(each, fixer.code, _UNREAD.format(name), only=False)
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


@dataclass(slots=True)
class Configs:
    """The calls of `triton.Config` of a file.

    `dropped` are those that lose options, with their names; `gone` are expressions that go with elements and parts of
    comprehensions.
    """

    work: Work
    names: tuple[str, ...]
    dropped: list[tuple[ast.Call, tuple[str, ...]]] = field(default_factory=list)
    gone: list[ast.expr] = field(default_factory=list)
    _displays: dict[ast.List, set[int]] = field(default_factory=dict)
    _parts: dict[ast.ListComp, set[int]] = field(default_factory=dict)
    _left: list[tuple[ast.Call, str, tuple[str, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for call in self.work.calls_by_name(CONFIG):
            given = {each.arg: each.value for each in call.keywords}
            names = tuple(name for name in self.names if name in given)
            if names:
                self._look(call, names, [given[name] for name in names])
        self._the_same()

    def _look(self, call: ast.Call, names: tuple[str, ...], values: list[ast.expr]) -> None:
        read = {name for value in values for name in inner_nodes(value, ast.Name)}
        above = parent(call)
        if any(self._compared(name) for name in names) or self._handed_to_a_chooser(call, names):
            self._left.append((call, _PRUNED, names))
        elif isinstance(above, ast.ListComp) and above.elt is call:
            parts = _parts_for(above, read)
            if parts is None:
                self._left.append((call, _DIFFER, names))
            else:
                self._parts[above] = parts
                for part in parts:
                    self.gone += [above.generators[part].iter, *above.generators[part].ifs]
                self.dropped.append((call, names))
        elif any(each.kind == "param" or _in_a_loop(each.node)
                 for name in read for each in self.work.names.bindings_of(name)):  # fmt: skip
            self._left.append((call, _DIFFER, names))
        else:
            self.dropped.append((call, names))

    def _compared(self, name: str) -> bool:
        """True where the file gives an autotuner functions that choose among its configurations, or compares itself
        what a configuration has."""
        read = self.work.scan.attributes.get(name, ())
        prunes = (each.arg == "prune_configs_by" for call in self.work.scan.calls for each in call.keywords)
        compared = (any(isinstance(above, ast.Compare) for above in chain(each)) for each in read)
        return bool(read) and (any(prunes) or any(compared))

    def _handed_to_a_chooser(self, call: ast.Call, names: tuple[str, ...]) -> bool:
        """True where a function of another file gets the configurations, which compares the options of each."""
        work = self.work
        calls = [each for each in of_kind(ast.Call, chain(call)) if each is not call]
        match statement(call):
            case ast.Assign(targets=[ast.Name() as target, *_]):
                owner = work.names.lookup(target.id, work.scan.scope_of(target))
                for use in work.scan.names.get(target.id, ()):
                    above = parent(use)
                    held = work.names.lookup(use.id, work.scan.scope_of(use))
                    above = parent(above) if isinstance(above, ast.keyword) else above
                    if isinstance(above, ast.Call) and above.func is not use and held and owner and held[0] is owner[0]:
                        calls.append(above)
        calls = [each for each in calls if not (work.names.qualified(each.func) or "").startswith("triton.")]
        others = (text for path, text in work.project.sources.items() if path != work.file.path)
        if not calls or not any(name.encode() in text for text in others for name in names):
            return False
        taken = (function_of(work.names.qualified(each.func) or "", work.project) for each in calls)
        compared = (
            part
            for each in taken
            if each is not None
            for node in inner_nodes(each, ast.Compare)
            for part in ast.walk(node)
        )
        return any(getattr(part, "attr", "") in names for part in compared)

    def _the_same(self) -> None:
        """Find the elements of lists that are the same as one before them."""
        losing = {id(call): names for call, names in self.dropped}
        displays = (above for call, _ in self.dropped if isinstance(above := parent(call), ast.List))
        for display in dict.fromkeys(displays):
            seen: set[str] = set()
            for index, each in enumerate(display.elts):
                if id(each) not in losing or not isinstance(each, ast.Call):
                    continue
                kept = [keyword for keyword in each.keywords if keyword.arg not in losing[id(each)]]
                text = ast.dump(ast.Call(each.func, each.args, kept))
                if text in seen:
                    self._displays.setdefault(display, set()).add(index)
                    self.gone.append(each)
                seen.add(text)
        gone = {id(each) for each in self.gone}
        self.dropped = [each for each in self.dropped if id(each[0]) not in gone]

    def edits(self, code: str) -> Iterator[Edit]:
        """The edits of lists and comprehensions."""
        lost = {id(parent(call)): " and ".join(names) for call, names in self.dropped}
        for display, places in self._displays.items():
            if self.work.take(display):
                message = _SAME.format(lost[id(display)])
                yield Edit(display, code, message, without_elements(places), api="triton.Config")
        for comprehension, parts in self._parts.items():
            if parts and self.work.take(comprehension):
                message = _SAME.format(lost[id(comprehension)])
                yield Edit(comprehension, code, message, without_generators(parts), api="triton.Config")

    def notes(self) -> Finds:
        """What is left to a person, once for a list."""
        lists = {id(parent(call)): each for each in reversed(self._left) for call in each[:1]}
        for call, message, names in (each for each in self._left if each in lists.values()):
            yield self.work.note(
                call, "NPU561", message.format(" and ".join(names)), api="triton.Config", blocks="slow",
                help="remove the option, and keep one of the configurations that are then equal",
            )  # fmt: skip


def _parts_for(comprehension: ast.ListComp, read: set[ast.Name]) -> set[int] | None:
    """The `for` of a comprehension that only give what some names read; None where one of them gives more."""
    found: set[int] = set()
    wanted = {name.id for name in read}
    every = (each for part in comprehension.generators for each in ast.walk(part.target))
    given = {each.id for each in of_kind(ast.Name, every)}
    for index, part in enumerate(comprehension.generators):
        targets = {each.id for each in inner_nodes(part.target, ast.Name)}
        if not targets & wanted:
            continue
        conditions = {each for test in part.ifs for each in inner_nodes(test, ast.Name)}
        names = inner_nodes(comprehension, ast.Name)
        others = (each for each in names if isinstance(each.ctx, ast.Load) and each not in conditions)
        if any(map(has_effects, (part.iter, *part.ifs))) or {each.id for each in conditions} & given - targets:
            return None
        if any(each.id in targets and each not in read for each in others):
            return None
        found.add(index)
    return found


def _in_a_loop(node: ast.AST) -> bool:
    """True for the target of a loop or comprehension."""
    above = parent(node)
    while isinstance(above, (ast.Tuple, ast.List, ast.Starred)):
        node, above = above, parent(above)
    return isinstance(above, (ast.For, ast.comprehension)) and above.target is node
