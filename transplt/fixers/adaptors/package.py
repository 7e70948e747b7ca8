"""A package whose functions come from the helper: its imports and the dotted names that begin with it.

An import is turned as a whole or not at all; where one that the file cannot do without holds something that nothing
takes the place of, all of the file stays, since it would stop there anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from transplt.base.grouped import grouped
from transplt.edits.helper import in_file, taken_from_helper
from transplt.edits.work import Work
from transplt.fixers.adaptors.writer import AdaptorWriter
from transplt.flow.gates.conditions import goes_on_without
from transplt.flow.gates.optional_imports import can_fail
from transplt.flow.replaced_packages import SDPA, is_question, is_taken_over, reads
from transplt.program.program import enclosing_function
from transplt.rules.taken_over import Package, packages
from transplt.syntax.conditions import leaves
from transplt.syntax.modules import import_base
from transplt.syntax.nodes import call_of, of_kind, place_in_block
from transplt.syntax.scan import FUNCTIONS, chain, parent

_Import = ast.Import | ast.ImportFrom


def turn_package(writer: AdaptorWriter, package: Package, code: str) -> bool:
    """Turn what a file takes from a package; True where nothing of the file needs it any more. NPU510 at its imports is
    taken care of then.
    """
    work = writer.work
    every = imports_of(work, package)
    imports = [node for node in every if not writer.is_of_cuda(node)]
    if not imports or work.defines_package(package.root):
        return False
    reading = _Reading(writer, package)
    plans = {
        node: reading.plan(node) for node in imports if not writer.keeps(node, code)
        # One of two packages that are taken over is written once, and stays for a person.
        and sum(any(imports_in(work, each, node)) for each in packages().values()) == 1
    }  # fmt: skip
    open_ = [node for node in imports if node not in plans or plans[node] is None]
    asks_alone = not any(reading.takes(plan) for plan in plans.values() if plan)
    if asks_alone and not is_taken_over(package, work.project, but=work.scan.path):
        return False  # whether the package is there decides something, and no other file has its functions
    if any(not can_fail(node) and enclosing_function(node) is None for node in open_):
        return False
    done = [node for node in imports if node not in open_ and _turned(writer, package, reading, node, code)]
    if len(done) < len(imports):
        return False
    for node in every:
        names = list(imports_in(work, package, node))
        for each in [node, *names] if len(names) == len(node.names) else names:
            writer.takes_care(each, ("NPU510",))
    return True


def imports_of(work: Work, package: Package) -> list[_Import]:
    """The imports of a file that take something from a package."""
    return [node for node in work.scan.imports if any(imports_in(work, package, node))]


def imports_in(work: Work, package: Package, node: _Import) -> Iterator[ast.alias]:
    """Those of the names of an import that are of a package."""
    if isinstance(node, ast.ImportFrom):
        base = import_base(work.scan.path, node)
        if base is not None and package.holds(base):
            yield from node.names
    else:
        yield from (alias for alias in node.names if package.holds(alias.name))


def _has_torch_behind(work: Work, node: _Import) -> bool:
    """True for an import in one `try` with all that uses it, where torch's own attention follows if it fails: on an NPU
    that serves, and nothing has to be written for it.
    """
    tried = parent(node)
    if not isinstance(tried, ast.Try) or node not in tried.body or not goes_on_without(tried):
        return False
    uses = [use for alias in node.names for use in work.scan.names.get(alias.asname or alias.name, ())]
    if not uses or any({*tried.body}.isdisjoint(chain(use)) for use in uses):
        return False
    inside = takewhile(lambda each: not isinstance(each, (*FUNCTIONS, ast.Module)), (tried, *chain(tried)))
    places = [place_in_block(each) for each in of_kind(ast.stmt, inside)]
    behind = [each for block, index in places for each in block[index + 1 :]]
    torchs = {each for call in work.calls_by_name((SDPA,)) for each in chain(call)}
    bodies = [handler.body for handler in tried.handlers]
    return all(torchs & {*body, *(() if leaves(body) else behind)} for body in bodies)


@dataclass(slots=True)
class _Reading:
    """How a file reads what it takes from a package: the dotted names of it, by the name with which each begins."""

    writer: AdaptorWriter
    package: Package
    known: dict[int, tuple[ast.expr, str]] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)  # each `try` that goes as a whole

    @property
    def work(self) -> Work:
        return self.writer.work

    def __post_init__(self) -> None:
        self.known = reads(self.package, self.work.names)

    def plan(self, node: _Import) -> dict[str, str] | None:
        """The full names that an import brings, by what it calls them; None where one is not known, or is a module of
        which the file reads something else. In the portable style each name comes by an import that has a branch of
        its own: on CUDA it is the package's.
        """
        found: dict[str, str] = {}
        if self.writer.portable and (in_file(self.work) or not self.writer.can_branch(node)
                                     or _has_torch_behind(self.work, node)):  # fmt: skip
            return None
        base = import_base(self.work.scan.path, node) if isinstance(node, ast.ImportFrom) else ""
        for alias in imports_in(self.work, self.package, node):
            full = f"{base}.{alias.name}" if base else alias.name
            local = alias.asname or (alias.name if base else alias.name.partition(".")[0])
            module = full if base or alias.asname else self.package.root
            known = not self.writer.portable and self.package.has_module(module) and self._all_known(local)
            if not self.package.knows(full) and not known:
                return None
            if in_file(self.work) and full in self.package.names and not self._all_known(local):
                return None
            found[local] = full
        return found

    def _all_known(self, local: str) -> bool:
        """True for a module of which the file reads only what something takes the place of."""
        loads = [use for use in self.work.scan.names.get(local, ()) if isinstance(use.ctx, ast.Load)]
        return all(id(use) in self.known or is_question(use) for use in loads)

    def takes(self, plan: dict[str, str]) -> bool:
        """True for an import of more than a module of which the file reads nothing."""
        return any(self.package.knows(full) or self.dotted(local) for local, full in plan.items())

    def dotted(self, local: str) -> list[tuple[ast.expr, str]]:
        """The dotted names that begin with a name of the file."""
        every = self.work.scan.names.get(local, ())
        return [self.known[id(use)] for use in every if id(use) in self.known]


def _turned(writer: AdaptorWriter, package: Package, reading: _Reading, node: _Import, code: str) -> bool:
    """Write one import, and the dotted names that begin with what it brings."""
    work, plan = writer.work, reading.plan(node)
    if plan is None or not work.take(node):
        return False
    base = import_base(work.scan.path, node) if isinstance(node, ast.ImportFrom) else ""
    taken = [(local, full) for local, full in plan.items() if package.knows(full)]
    message = f"{', '.join(full for _, full in taken) or package.root} from npu_port"
    helped = {local: package.names[full] for local, full in taken if full in package.names}
    inside = in_file(work)  # functions stand below this import: each use is written, as those of a module are
    lines = [] if inside else _helper_import(writer, node, helped, code, message)
    if lines is None:
        return False
    lines += _other_imports(package, [each for each in taken if each[1] not in package.names])
    begun = [local for local, full in plan.items() if not package.knows(full)]
    for local in [*begun, *(helped if inside else ())]:
        if not _write_uses(writer, package, reading, local, code):
            return False
        if local in begun:
            _answer(writer, [use for use in work.scan.names.get(local, ()) if is_question(use)], code)
    others = [alias for alias in node.names if not base and not package.holds(alias.name)]
    if others:
        lines.insert(0, "import " + ", ".join(f"{a.name} as {a.asname}" if a.asname else a.name for a in others))
    work.taken.update(map(id, node.names))
    if lines:
        writer.rewrite(node, code, message, writer.in_place_of(node, lines), api=next(iter(plan.values())))
    else:
        _remove(writer, node, code, f"nothing uses {' and '.join(plan)} any more", reading.gone)
    return True


def _helper_import(
    writer: AdaptorWriter, node: _Import, helped: dict[str, str], code: str, message: str
) -> list[str] | None:
    """The statement that takes functions from the helper (name in the file -> name there); None where it cannot be."""
    if not helped:
        return []
    names = [(name, local) for local, name in helped.items()]
    called = taken_from_helper(
        writer.work, names, group=writer.group, code=code, message=message, at=node, asked=writer.asked
    )
    writer.found += called.found
    return [called.text] if called.text else None


def _write_uses(writer: AdaptorWriter, package: Package, reading: _Reading, local: str, code: str) -> bool:
    """Write the dotted names that begin with a name of the file; False where one of them cannot be."""
    for node, full in reading.dotted(local):
        if id(node) not in reading.written and not _dotted(writer, package, node, full, code):
            return False
        reading.written.add(id(node))
    return True


def _answer(writer: AdaptorWriter, names: list[ast.Name], code: str) -> None:
    """Questions whether a module could be imported: what is read of it is there."""
    for name in names:
        question = parent(name)
        assert isinstance(question, ast.Compare)
        if writer.work.take(question):
            answer = str(isinstance(question.ops[0], ast.IsNot))
            message = f"{ast.unparse(question)} -> {answer}: its functions come from npu_port"
            writer.rewrite(question, code, message, answer)


def _other_imports(package: Package, taken: list[tuple[str, str]]) -> list[str]:
    """The statements that give names what takes the place of full ones, where that is not in the helper."""
    lines = [f"{local} = {package.constants[full]}" for local, full in taken if full in package.constants]
    others = ((local, package.moved[full].rpartition(".")) for local, full in taken if full not in package.constants)
    moved = grouped((module, name if name == local else f"{name} as {local}") for local, (module, _, name) in others)
    return [*lines, *(f"from {module} import {', '.join(names)}" for module, names in moved.items())]


def _dotted(writer: AdaptorWriter, package: Package, node: ast.expr, full: str, code: str) -> bool:
    """Write a dotted name; False where it cannot be."""
    message = f"{full} -> npu_port.{package.names.get(full, '')}"
    if full in package.names:
        text = writer.helper(package.names[full], code, message, node)
    elif full in package.constants:
        text = package.constants[full]
        message = f"{full} -> {text}"
    else:
        module, _, name = package.moved[full].rpartition(".")
        message = f"{full} -> {package.moved[full]}"
        if module != "torch":
            writer.imports(f"import {module}")
        text = f"{writer.torch if module == 'torch' else module}.{name}"
    if not text or not writer.work.take(node):
        return False
    writer.rewrite(node, code, message, text, api=full)
    writer.takes_care(call_of(node) or node, ())
    return True


def _remove(writer: AdaptorWriter, node: _Import, code: str, message: str, gone: set[int]) -> None:
    """Take an import out; with its `try`, where that does nothing else."""
    if any(id(each) in gone for each in chain(node)):
        return
    above = parent(node)
    if isinstance(above, ast.Try) and above.body == [node] and not above.orelse and not above.finalbody:
        outside = parent(above)
        only = getattr(outside, "body", []) == [above] or getattr(outside, "orelse", []) == [above]
        writer.remove(above, code, message, only=only)
        gone.add(id(above))
        return
    blocks = [getattr(above, part, []) for part in ("body", "orelse", "finalbody")]
    writer.remove(node, code, message, only=any(block == [node] for block in blocks))
