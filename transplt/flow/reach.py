"""What the code of a project reaches that runs on CUDA alone, over all of its files.

Each file tells its *pieces*: functions, classes, its module-level code, the values of attributes and variables, and
what runs only if a variable has a truth value. A piece names what it needs and what it calls; the sum follows that
through wrappers and imports.

The notation is that of transplt/flow/code.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from transplt.flow.code import PLACED, CodeFacts, Step
from transplt.flow.libraries import is_library

#: Names of modules that are compiled for CUDA.
CUDA_PART = re.compile(r"(?:^|_)cuda(?:[_.\d]|$)", re.I)
#: How compiled modules are called: `from detectron2 import _C`.
COMPILED = re.compile(r"_?C|\w+_ext|_ext|\w+_extension|_backend")
#: Modules that a build writes as Python.
_GENERATED = re.compile(r"(?:_?version|_?about|_?build_info|\w+_pb2(?:_grpc)?|__config__|_?build)")
#: Methods that a call of an instance, or of a class of torch.autograd.Function, comes to.
_RUN = ("forward", "__call__", "apply")
_LONGEST_WAY = 20
#: What is said of a module of the project that none of its files is: a build may write it, in whatever language.
MISSING = ", which is no Python module of the project"


@dataclass(slots=True)
class Reach:
    """The sum of what all files say. `why` and `behind` are its answers.

    `canonical` gives a full name as the project knows it; `known` says that all files are there.
    """

    canonical: Callable[[str], str] = field(default=str, compare=False, repr=False)
    known: bool = False
    modules: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    pieces: dict[str, list[Step]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    stars: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    extensions: frozenset[str] = frozenset()
    cuda_named: frozenset[str] = frozenset()
    gates: frozenset[str] = frozenset()
    saying: dict[str, list[str]] = field(default_factory=dict)  # guard -> those that are true only if it is
    needs: dict[str, str] = field(default_factory=dict)
    _known: dict[str, list[str]] = field(default_factory=dict, compare=False)

    @classmethod
    def join(
        cls,
        every: Iterable[CodeFacts],
        canonical: Callable[[str], str],
        modules: frozenset[str],
        packages: frozenset[str],
        *,
        known: bool = True,
    ) -> Reach:
        """The sum of the facts of all files, in the order of their paths."""
        every = list(every)
        joined = cls(canonical, known, modules, packages)
        joined.defined = frozenset(f"{facts.module}.{name}" for facts in every for name in facts.defined)
        implies: list[tuple[str, str]] = []
        named: set[str] = set()
        for facts in every:
            joined.parameters.update(facts.parameters)
            for local, target in facts.aliases:
                joined.aliases[f"{facts.module}.{local}"] = target
            if facts.stars:
                joined.stars[facts.module] = facts.stars
        for facts in every:
            for name, steps in facts.pieces:
                joined.pieces.setdefault(joined._name(name), []).extend(steps)
            joined.bases.update(facts.classes)
            named.update(facts.modules)
            implies += [(joined._guard(left), right if right == "cuda" else joined._guard(right))
                        for left, right in facts.gates]  # fmt: skip
            joined.extensions |= set(facts.extensions)
            joined.cuda_named |= set(facts.cuda_named)
        joined.missing = frozenset(name for name in named if joined._is_missing(name))
        for left, right in implies:
            joined.saying.setdefault(right, []).append(left)
        joined.gates = frozenset(joined._behind_cuda())
        joined.needs = joined._all_needs()
        joined._leave_what_is_not_asked()
        return joined

    # --- answers -----------------------------------------------------------------------------------------------------

    def why(self, step: Step) -> str:
        """What one step needs that runs on CUDA alone, in a few words; empty when nothing is known of it."""
        ref = self._own(step.ref)
        kind, name = ref[:1], ref[1:]
        if kind in ("@", "+"):
            return name
        if kind == "~":
            return "" if name in self.cuda_named else name
        for piece in self._found(ref):
            if piece.startswith("@"):
                return piece[1:]
            if piece in self.needs:
                return f"{self.needs[piece]}, by way of {piece.lstrip('=?')}"
        return ""

    def behind(self, guards: Iterable[str]) -> tuple[str, bool]:
        """What runs only if one of some variables has a truth value (`T slot`, `F slot`) and needs CUDA; empty when
        nothing is. With it whether the variables decide nothing else: not where values are placed.
        """
        asked, seen = [self._guard(guard) for guard in guards], set[str]()
        why, placing, needing = "", set[str](), set[str]()
        while asked:
            here = asked.pop()
            if here in seen:
                continue
            seen.add(here)
            for step in self.pieces.get(f"?{here}", ()):
                if step.ref == PLACED:
                    placing.add(step.site)
                elif needed := self.why(step):
                    needing.add(step.site)
                    why = why or needed
            asked += self.saying.get(here, ())
        return why, placing <= needing

    def builds(self, module: str) -> bool:
        """True for a module that a build of the project makes, under the name by which it is imported."""
        last = module.rpartition(".")[2]
        if module in self.modules:
            return False
        return module in self.extensions or (module != last and last in self.extensions and self._is_own(module))

    def names_built(self, data: bytes) -> bool:
        """True for the text of a file that may import a module which the project builds."""
        return any(name.rpartition(".")[2].encode() in data for name in self.extensions)

    def is_gate(self, guard: str) -> bool:
        """True where a variable has that truth value on CUDA only."""
        return self._guard(guard) in self.gates

    def leads_on(self, ref: str) -> bool:
        """True for a reference to code that somebody can read."""
        return any(piece in self.pieces for piece in self._found(ref))

    def leads_out(self, step: Step) -> str:
        """The name of what a file seen without its project has from other files; empty where all files are there."""
        if self.known or step.ref[:1] in "@+~=" or step.option:
            return ""
        full = step.ref.lstrip("!")
        if is_library(full) or self.leads_on(step.ref):
            return ""
        return "" if full in self.defined or full in self.modules or full.rpartition(".")[0] in self.bases else full

    @classmethod
    def alone(cls, facts: CodeFacts) -> Reach:
        """What one file says of itself, where the rest of its project is not known."""
        return cls.join([facts], str, frozenset({facts.module}), frozenset(), known=False)

    # --- how it is found ---------------------------------------------------------------------------------------------

    def _all_needs(self) -> dict[str, str]:
        """The pieces that need CUDA whatever the user asks for, and what each needs."""
        callers: dict[str, list[str]] = {}
        needs: dict[str, str] = {}
        for name in sorted(self.pieces):
            for step in self.pieces[name] if name[:1] != "?" else ():
                if step.option or (step.guards and any(self._guard(guard) in self.gates for guard in step.guards)):
                    continue
                ref = self._own(step.ref)
                if ref[:1] in "@+~":
                    if (why := self.why(step)) and name not in needs:
                        needs[name] = why
                    continue
                for piece in self._found(ref):
                    if piece.startswith("@"):
                        needs.setdefault(name, piece[1:])
                    elif piece in self.pieces:
                        callers.setdefault(piece, []).append(name)
        queue = sorted(needs)
        for name in queue:  # grows
            for caller in callers.get(name, ()):
                if caller not in needs:
                    needs[caller] = needs[name]
                    queue.append(caller)
        return needs

    def _leave_what_is_not_asked(self) -> None:
        """Of the pieces keep the names; of what is behind a variable the steps that count. Workers are sent the sum."""
        for name, steps in self.pieces.items():
            self.pieces[name] = [] if name[:1] != "?" else [
                step for step in dict.fromkeys(steps)
                if step.ref == PLACED or (not (step.option and step.ref[:1] not in "@+~") and self.why(step))
            ]  # fmt: skip
        self._known.clear()

    def _found(self, ref: str) -> list[str]:
        """The pieces that a reference leads to, or `@why` where it leaves what anybody can read."""
        known = self._known.get(ref)
        if known is None:
            known = self._known[ref] = self._look_up(ref)
        return known

    def _look_up(self, ref: str) -> list[str]:
        if ref.startswith("="):
            return self._held(self._name(ref))
        if ref.startswith("!"):
            module = self.canonical(ref[1:])
            if module in self.modules:
                return [module]
            gone = self._compiled(module)
            return [f"@{gone}"] if gone else []
        return self._named(ref)

    def _held(self, name: str) -> list[str]:
        """The pieces of an attribute: of its class, of the bases, or of the only class that has it."""
        if name in self.pieces:
            return [name]
        if name.startswith("=s:"):
            owner, _, attr = name[3:].rpartition(".")
            above = self.above(owner)
            names = [*(f"=s:{base}.{attr}" for base in above), *(f"{base}.{attr}" for base in (owner, *above))]
            return next(([held] for held in names if held in self.pieces), [])
        return []

    def _named(self, full: str) -> list[str]:
        """The pieces of a full name: through re-exports, of a method its class and the bases, of a class its parts."""
        for _ in range(_LONGEST_WAY):
            full = self.canonical(full)
            for name in (full, f"=g:{full}"):
                if name in self.pieces:
                    return [name]
            moved = self._moved(full)
            if moved is None:
                break
            full = moved
        owner, _, last = full.rpartition(".")
        for base in (owner, *self.above(owner)):
            if f"{base}.{last}" in self.pieces:
                return [f"{base}.{last}"]
        if owner in self.bases or owner in self.pieces:
            return [owner] if last in _RUN and owner in self.pieces else []
        if full in self.modules or full in self.defined:
            return []
        gone = self._compiled(full)
        return [f"@{gone}"] if gone else []

    def _moved(self, full: str) -> str | None:
        """A full name by way of the import, or the star, that its module has it from."""
        head, tail = full, ""
        while head:
            if head in self.aliases:
                target = self.aliases[head] + tail
                return target if self.canonical(target) != full else None
            owner, _, last = head.rpartition(".")
            for star in self.stars.get(owner, ()):
                source = f"{self.canonical(star)}.{last}"
                if source in self.defined or source in self.aliases or source in self.pieces:
                    return source + tail
            head, tail = owner, f".{last}{tail}"
        return None

    def above(self, owner: str) -> list[str]:
        """The bases of a class that are the project's own, nearest first."""
        found: list[str] = []
        queue = list(self.bases.get(owner, ()))
        while queue and len(found) < _LONGEST_WAY:
            base = self.canonical(queue.pop(0))
            base = self._moved(base) or base
            if base not in found:
                found.append(base)
                queue += self.bases.get(base, ())
        return found

    def _compiled(self, full: str) -> str:
        """The name of a module that is no Python of anybody's: built by the project, missing in it, or named so."""
        parts = full.split(".")
        for end in range(len(parts), 0, -1):
            head = ".".join(parts[:end])
            if head in self.extensions or (end > 1 and parts[end - 1] in self.extensions and self._is_own(head)):
                return full
            if head in self.missing:
                last = head.rpartition(".")[2]
                return full if last.startswith("_") or COMPILED.fullmatch(last) else f"{head}{MISSING}"
        if self._is_known(full.rpartition(".")[0]):
            return ""
        if len(parts) > 1 and COMPILED.fullmatch(parts[-2]) and self.known:
            return ".".join(parts[-2:])
        if any(CUDA_PART.search(part) and part.lower() != "cuda" for part in parts[: max(1, len(parts) - 1)]):
            return full
        return ""

    def _is_known(self, owner: str) -> bool:
        """True for a module of the project, or a name that one of them has."""
        return owner in self.modules or owner in self.defined or owner in self.bases

    def _own(self, ref: str) -> str:
        """A reference to a package of the table, `+pytorch3d._C.f`, as one to code where it is the project's own."""
        return ref[1:] if ref[:1] == "+" and self._is_own(ref[1:]) else ref

    def _is_own(self, full: str) -> bool:
        return full.partition(".")[0] in self.packages

    def _is_missing(self, name: str) -> bool:
        """True for a module of the project's own that is none of its files."""
        module = self.canonical(name)
        if not self.known or not self._is_own(module) or module in self.modules or module in self.defined:
            return False
        if _GENERATED.fullmatch(module.rpartition(".")[2]) or any(
            known.startswith(f"{module}.") for known in self.modules
        ):
            return False
        return self._moved(module) is None

    def _name(self, name: str) -> str:
        """The name of a piece with its module as the project knows it."""
        kind = name[:1]
        if kind == "?":
            return f"?{self._guard(name[1:])}"
        if kind == "=":
            return f"={self._slot(name[1:])}"
        return self.canonical(name)

    def _guard(self, guard: str) -> str:
        return guard[:2] + self._slot(guard[2:])

    def _slot(self, slot: str) -> str:
        kind, name = slot[:2], slot[2:]
        if kind not in ("g:", "p:", "r:", "s:"):
            return slot
        name = self.canonical(name)
        if kind == "g:":
            name = next((target for target in self._chain(name)), name)
        if kind in ("p:", "r:"):
            owner, _, last = name.rpartition(".")
            owner = self._moved(owner) or owner if kind == "p:" else owner
            name = self._moved(name) or name if kind == "r:" else f"{owner}.{self._parameter(owner, last)}"
        return f"{kind}{self.canonical(name)}"

    def _parameter(self, owner: str, name: str) -> str:
        """The parameter at a position, `#1`, by its name where that is known."""
        names = self.parameters.get(owner) if name[:1] == "#" else None
        at = int(name[1:]) + (names[0] in ("self", "cls")) if names else 0
        return names[at] if names and at < len(names) else name

    def _chain(self, name: str) -> list[str]:
        """Where a module-level name comes from in the end."""
        found: list[str] = []
        for _ in range(_LONGEST_WAY):
            target = self.aliases.get(name)
            if target is None:
                break
            name = self.canonical(target)
            found = [name]
        return found

    def _behind_cuda(self) -> set[str]:
        """The guards that are true on CUDA only."""
        found: set[str] = set()
        asked = ["cuda"]
        while asked:
            more = [guard for guard in self.saying.get(asked.pop(), ()) if guard not in found]
            found.update(more)
            asked += more
        return found
