"""What the code of a project reaches that runs on CUDA alone, over all of its files.

Each file tells its *pieces*: functions, classes, its module-level code, the values of attributes and variables, and
what runs only if a variable has a truth value. A piece names what it needs and what it calls; the sum follows that
through wrappers and imports, which transplt/flow/gates/graph.py resolves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from transplt.base.text.memo import Memo
from transplt.flow.gates import code
from transplt.flow.gates.graph import Graph
from transplt.flow.libraries import is_library

#: Names of modules that are compiled for CUDA.
CUDA_PART = re.compile(r"(?:^|_)cuda(?:[_.\d]|$)", re.I)
#: How compiled modules are called: `from detectron2 import _C`.
COMPILED = re.compile(r"_?C|\w+_ext|_ext|\w+_extension|_backend")
#: Those of them that nobody writes in Python, whatever stands behind their name: `_ext.roi_pool.forward`.
_ALWAYS_COMPILED = frozenset({"_C", "_ext"})
#: Modules that a build writes as Python.
_GENERATED = re.compile(r"(?:_?version|_?about|_?build_info|\w+_pb2(?:_grpc)?|__config__|_?build)")
#: The message for a module of the project that none of its files is: a build may write it, in whatever language.
MISSING = ", which is no Python module of the project"


@dataclass(slots=True)
class Reach:
    """The sum of what all files say. `why` and `behind` are its answers.

    `known`: all files are there. `guards_of`: what holds -> the guards that hold only if it does. `guarded`: of what
    runs behind a guard the steps that count; workers are sent no others.
    """

    graph: Graph = field(default_factory=Graph)
    known: bool = False
    packages: frozenset[str] = frozenset()
    compiled: frozenset[str] = frozenset()
    said: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    extensions: frozenset[str] = frozenset()
    host_built: frozenset[str] = frozenset()
    cuda_named: frozenset[str] = frozenset()
    guards_of: dict[code.Behind, list[code.Guard]] = field(default_factory=dict)
    gates: frozenset[code.Behind] = frozenset()
    needs: dict[code.CodePiece, str] = field(default_factory=dict)
    guarded: dict[code.Guard, list[code.CodeStep]] = field(default_factory=dict)
    _known: Memo = field(default_factory=Memo, compare=False, repr=False)  # what references lead to

    @classmethod
    def join(
        cls,
        every: Collection[code.CodeFacts],
        graph: Graph,
        packages: frozenset[str],
        compiled: Collection[str] = (),
        *,
        known: bool = True,
        said: Collection[str] = (),
    ) -> Reach:
        """The sum of the facts of all files, in the order of their paths; `graph` is that of their names, `compiled`
        are modules that are built without CUDA, `said` last names of compiled modules that go, and `module.function` of
        what is not called of one any more.
        """
        joined = cls(graph, known, packages, compiled=frozenset(compiled), said=frozenset(said))
        named = {name for facts in every for name in facts.modules}
        own = {name for facts in every for name in facts.relative}
        folders = {name.rpartition(".")[0] for name in named if joined._is_in_a_folder(name)}
        own |= {name for name in named if name.rpartition(".")[0] in folders or joined._is_own(graph.canonical(name))}
        joined.missing = frozenset(name for name in own if joined._is_missing(name))
        joined.extensions = frozenset(name for facts in every for name in facts.extensions)
        joined.host_built = frozenset(name for facts in every for name in facts.host_built)
        joined.cuda_named = frozenset(name for facts in every for name in facts.cuda_named)
        one = dict[code.Guard, code.Guard]()  # each of them once in memory
        for left, right in (gate for facts in every for gate in facts.gates):
            implied, behind = graph.guard(left), right if right == "cuda" else graph.guard(right)
            joined.guards_of.setdefault(behind, []).append(one.setdefault(implied, implied))
        joined.gates = frozenset(joined._implying(["cuda"]))
        calls = _Calls()
        guarded: dict[code.Guard, list[code.CodeStep]] = {}
        for piece, steps in (row for facts in every for row in facts.pieces):
            if isinstance(piece, code.Guard):
                guarded.setdefault(graph.guard(piece), []).extend(filter(joined._may_count, steps))
            else:
                joined._follow(graph.own(piece), steps, calls)
        joined.needs = calls.all_needs()
        joined.guarded = {guard: joined._counting(steps) for guard, steps in guarded.items()}
        joined._known.clear()
        return joined

    # --- answers -----------------------------------------------------------------------------------------------------

    def why(self, step: code.CodeStep) -> str:
        """What one step needs that runs on CUDA alone, in a few words; empty when nothing is known of it."""
        ref = self._own(step.ref)
        if isinstance(ref, code.Needs):
            return ref.what
        if isinstance(ref, code.OfPackage):
            return "" if self._is_said(ref.name) else ref.name
        if isinstance(ref, code.Callee):
            return "" if ref.name in self.cuda_named or self._is_said(ref.name) else ref.name
        found = None if isinstance(ref, code.Placing) else self._found(ref)
        if isinstance(found, code.Needs):
            return found.what
        if found not in self.needs:
            return ""
        way = found.slot.name.rpartition("|v:")[2] if isinstance(found, code.SlotValue) else str(found)
        return f"{self.needs[found]}, through {way}"

    def behind(self, guards: Iterable[code.Guard]) -> tuple[str, bool]:
        """What runs only if one of some guards holds and needs CUDA; empty when nothing is. With it whether the
        guards decide nothing else: not where values are placed.
        """
        why, placing, needing = "", set[str](), set[str]()
        for guard in self._implying([self.graph.guard(guard) for guard in guards]):
            for step in self.guarded.get(guard, ()) if guard != "cuda" else ():
                if isinstance(step.ref, code.Placing):
                    placing.add(step.site)
                elif needed := self.why(step):
                    needing.add(step.site)
                    why = why or needed
        return why, placing <= needing

    def decides(self, guard: code.Guard) -> bool:
        """True for a guard of which `behind` may have something to say."""
        own = self.graph.guard(guard)
        return own in self.guarded or own in self.guards_of

    def builds(self, module: str) -> bool:
        """True for a module that a build of the project makes, under the name by which it is imported."""
        last = module.rpartition(".")[2]
        if module in self.graph.modules:
            return False
        return module in self.extensions or (module != last and last in self.extensions and self._is_own(module))

    def names_built(self, data: bytes) -> bool:
        """True for the text of a file that may import a module which the project builds."""
        return any(name.rpartition(".")[2].encode() in data for name in self.extensions)

    def is_gate(self, guard: code.Guard) -> bool:
        """True for a guard that holds on CUDA only."""
        return self.graph.guard(guard) in self.gates

    def leads_on(self, ref: code.Reference) -> bool:
        """True for a reference to code that somebody can read."""
        return isinstance(ref, code.Leading) and isinstance(self._found(ref), code.CodePiece)

    def leads_out(self, step: code.CodeStep) -> str:
        """The name of what a file seen without its project has from other files; empty where all files are there."""
        ref = step.ref
        if self.known or step.option or not isinstance(ref, (code.Definition, code.ImportedModule)):
            return ""
        if is_library(ref.name) or self.leads_on(ref) or self.graph.has(ref.name):
            return ""
        return ref.name

    @classmethod
    def alone(cls, facts: code.CodeFacts) -> Reach:
        """What one file says of itself, where the rest of its project is not known."""
        graph = Graph.join([facts], str, frozenset({facts.module}))
        return cls.join([facts], graph, frozenset(), known=False)

    # --- how it is found ---------------------------------------------------------------------------------------------

    def _follow(self, piece: code.CodePiece, steps: Iterable[code.CodeStep], calls: _Calls) -> None:
        """What a piece calls, and what it needs by itself, whatever the user asks for."""
        for step in steps:
            if step.option or any(self.is_gate(guard) for guard in step.guards):
                continue
            ref = self._own(step.ref)
            found = self._found(ref) if isinstance(ref, code.Leading) else code.Needs(self.why(step))
            if isinstance(found, code.CodePiece):
                calls.callers.setdefault(found, []).append(piece)
            elif found is not None and found.what:
                calls.needs.setdefault(piece, found.what)

    def _may_count(self, step: code.CodeStep) -> bool:
        """False for a step behind a guard that does not count, whatever the pieces need."""
        ref = self._own(step.ref)
        return not isinstance(ref, code.Leading) or self._found(ref) is not None

    def _counting(self, steps: list[code.CodeStep]) -> list[code.CodeStep]:
        """The steps behind a guard that place values, or need CUDA."""
        return [
            step
            for step in dict.fromkeys(steps)
            if isinstance(step.ref, code.Placing)
            or (not (step.option and not isinstance(step.ref, code.Direct)) and self.why(step))
        ]

    def _implying(self, asked: list[code.Behind]) -> Iterator[code.Behind]:
        """What holds only if one of some guards does, these first."""
        seen = set[code.Behind]()
        while asked:
            here = asked.pop()
            if here not in seen:
                seen.add(here)
                yield here
                asked += self.guards_of.get(here, ())

    def _found(self, ref: code.Leading) -> code.CodePiece | code.Needs | None:
        """The piece that a reference leads to, or what it needs where it leaves what anybody can read."""
        if ref not in self._known:
            self._known.make_room()
            self._known[ref] = self.graph.piece(ref) or self._lost(ref)
        found: code.CodePiece | code.Needs | None = self._known[ref]
        return found

    def _lost(self, ref: code.Leading) -> code.Needs | None:
        """What a reference without a piece needs: a module that is compiled, or that no file is."""
        if isinstance(ref, code.SlotValue):
            return None
        graph = self.graph
        if isinstance(ref, code.ImportedModule):
            full = graph.canonical(ref.name)
            is_there = full in graph.modules
        else:
            full = graph.settled(ref.name)
            is_there = graph.has(full) or full.rpartition(".")[0] in graph.code
        gone = "" if is_there else self._compiled(full)
        return code.Needs(gone) if gone else None

    def _compiled(self, full: str) -> str:
        """The name of a module that is no Python of anybody's: built by the project, missing in it, or named so."""
        if self._is_said(full):
            return ""
        parts = full.split(".")
        for end in range(len(parts), 0, -1):
            head = ".".join(parts[:end])
            if head in self.extensions or (end > 1 and parts[end - 1] in self.extensions and self._is_own(head)):
                return full
            if head in self.missing:
                last = parts[end - 1]
                is_compiled = last.startswith("_") or COMPILED.fullmatch(last) or not _ALWAYS_COMPILED.isdisjoint(parts)
                return full if is_compiled else f"{head}{MISSING}"
        if self.graph.knows(full.rpartition(".")[0]):
            return ""
        if len(parts) > 1 and COMPILED.fullmatch(parts[-2]) and self.known:
            return ".".join(parts[-2:])
        if not _ALWAYS_COMPILED.isdisjoint(parts[-3:-1]):
            return full
        if any(CUDA_PART.search(part) and part.lower() != "cuda" for part in parts[: max(1, len(parts) - 1)]):
            return full
        return ""

    def _is_said(self, full: str) -> bool:
        """True for a compiled module that goes, and a function that is not called of one any more."""
        parts = full.split(".")
        return parts[-1] in self.said or ".".join(parts[-2:]) in self.said

    def _own(self, ref: code.Reference) -> code.Reference:
        """A reference to a package of the table, as `pytorch3d._C.f`, leads to code where it is the project's own."""
        return code.Definition(ref.name) if isinstance(ref, code.OfPackage) and self._is_own(ref.name) else ref

    def _is_own(self, full: str) -> bool:
        return full.partition(".")[0] in self.packages

    def _is_in_a_folder(self, name: str) -> bool:
        """True for the name of a file in a folder that some script has on its path, with or without `__init__.py`: that
        of the project, or one in it which is no package, such as `lib`.
        """
        known = self.graph.canonical(name)
        above = known.removesuffix(name).rstrip(".")
        return "." in name and known in self.graph.modules and "." not in above and above not in self.graph.modules

    def _is_missing(self, name: str) -> bool:
        """True for a module of the project's own (`name`) that is none of its files."""
        graph = self.graph
        module = graph.canonical(name).removesuffix(".__init__")
        if not self.known or module in graph.modules or module in graph.defined:
            return False
        first, _, last = module.rpartition(".")  # align.align.core, which setup.py makes of align/core.pyx
        folders = {*first.split("."), last}  # a build adds folders of its own
        if any(each.rpartition(".")[2] == last and folders.issuperset(each.split(".")) for each in self.compiled):
            return False
        if _GENERATED.fullmatch(module.rpartition(".")[2]) or any(
            known.startswith(f"{module}.") for known in graph.modules
        ):
            return False
        return not graph.is_passed_on(module)


@dataclass(slots=True)
class _Calls:
    """Who calls each piece, and what pieces need by themselves: the first thing that their files name."""

    callers: dict[code.CodePiece, list[code.CodePiece]] = field(default_factory=dict)
    needs: dict[code.CodePiece, str] = field(default_factory=dict)

    def all_needs(self) -> dict[code.CodePiece, str]:
        """The pieces that need CUDA whatever the user asks for, and what each needs."""
        needs = {piece: self.needs[piece] for piece in sorted(self.needs, key=_place)}
        queue = [*needs]
        for piece in queue:  # grows
            for caller in sorted(self.callers.get(piece, ()), key=_place):
                if caller not in needs:
                    needs[caller] = needs[piece]
                    queue.append(caller)
        return needs


def _place(piece: code.CodePiece) -> tuple[bool, str]:
    """Where a piece stands in the order in which pieces are followed."""
    return isinstance(piece, code.Definition), str(piece)
