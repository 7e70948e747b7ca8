"""What the Python code of the project reads a value from outside as: a device, a backend, or something else.

A value in a configuration, on a command line or in the environment becomes that of the NPU where the value of the same
option in Python would: the marks of its slot decide for both (transplt/flow/slots.py). What no code reads is nothing,
whatever it is called. A project that chooses between CUDA and the NPU by itself keeps its defaults, and its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from transplt.flow.callees import FOREIGN, OTHER_DEVICES, SIMULATOR_DEVICE
from transplt.flow.device_arguments import mark_of_argument
from transplt.flow.facts import ProjectFacts
from transplt.flow.key_facts import KeyRead, names_a_configuration
from transplt.flow.marks import BACKEND, DEVICE, owner
from transplt.rules.communication_backends import read_elsewhere


@dataclass(frozen=True, slots=True)
class Reading:
    """What a value is read as: `marks` are DEVICE and BACKEND, as far as all agree who read it. `read`: somebody does.

    `why` gives, as a part of a sentence, why a value that is read has no mark.
    """

    marks: frozenset[str] = frozenset()
    read: bool = False
    why: str = ""

    @property
    def device(self) -> bool:
        return DEVICE in self.marks

    @property
    def backend(self) -> bool:
        return BACKEND in self.marks


NOBODY = Reading()
_CHOOSES = Reading(read=True, why="the project chooses between CUDA and the NPU by itself")


def key(project: ProjectFacts, path: Sequence[str]) -> Reading:
    """Of a key in a configuration, by its full path: what reads it under most of the keys above it decides.

    `cfg.model.device` reads `model.device` and any `...model.device`, also `device` of a file of its own for the model;
    `init(**cfg.dist)` reads the parameters of `init` below `dist`. Keys that are numbers (items of lists) are left out;
    one with dots in it is as many keys. A key with dashes that nobody reads is the one with underscores: Python has no
    other way to name it as an attribute.
    """
    path = tuple(part for each in path for part in each.split(".") if part and not part.isdigit())
    found = _key(project, path)
    named = tuple(part.replace("-", "_") for part in path)
    found = found if found.read or named == path else _key(project, named)
    return found if found.read else Reading(why=read_elsewhere(path))


def _key(project: ProjectFacts, path: tuple[str, ...]) -> Reading:
    if not path:
        return NOBODY
    found = [(_fit(read, path), read) for read in project.reads.keys.get(path[-1], ())]
    found += _spread(project, path)
    best = max((fit for fit, _ in found), default=0)
    return _agreed(project, [read for fit, read in found if fit == best]) if best else NOBODY


def option(project: ProjectFacts, name: str, script: str = "") -> Reading:
    """Of an option of a command line, as it is written, with or without dashes before it.

    `script`: the path of what is started; its own options come before those of other files.
    """
    written = name.lstrip("-")
    found = [
        read
        for each in dict.fromkeys((written, written.replace("-", "_"), written.replace("_", "-")))
        for read in project.reads.options.get(each, ())
    ]
    own = [read for read in found if script and read.root == script]
    if found:
        return _agreed(project, own or found)
    if "." in written:  # `--trainer.device`: of a configuration, by its keys
        return key(project, [written.replace("-", "_")])
    fields = project.reads.keys.get(written.replace("-", "_"), ())
    found_fields = _agreed(project, [read for read in fields if read.how == "field"])
    return found_fields if found_fields.read else Reading(why=read_elsewhere([written]))


def variable(project: ProjectFacts, name: str) -> Reading:
    """Of a variable of the environment."""
    return _agreed(project, project.reads.variables.get(name, ()))


def argument(project: ProjectFacts, callee: str, keyword: str) -> Reading:
    """Of a keyword argument of a callee that a configuration names (`_target_: pkg.Model`, `!new:pkg.Model`)."""
    known = project.canonical(callee)
    own = _is_own(project, known)
    return _agreed(project, [_parameter(f"p:{known}" if own else f"f:{callee}", keyword)])


def _is_own(project: ProjectFacts, name: str) -> bool:
    """True for a name of the project, as it knows it."""
    while name and name not in project.modules:
        name = name.rpartition(".")[0]
    return bool(name)


def _fit(read: KeyRead, path: tuple[str, ...]) -> int:
    """How many keys of a path a reader names too, 0 where it reads another one."""
    named = read.path
    for count, (a, b) in enumerate(zip(reversed(named), reversed(path), strict=False)):
        if a != b:
            # The code may call a part of the configuration otherwise: `cfg.train_args.device` for `train.device`.
            return count if names_a_configuration(a) else 0
    if len(path) > len(named) and read.root == path[-len(named) - 1]:
        return len(named) + 1  # `dist_params["backend"]`: the variable is called like the key
    return min(len(named), len(path))


def _parameter(callee: str, name: str) -> KeyRead:
    """The parameter of a callee that a configuration gives a value; `callee` as in the slot of a spread."""
    return KeyRead("key", "", (name,), f"{callee}.{name}")


def _spread(project: ProjectFacts, path: tuple[str, ...]) -> list[tuple[int, KeyRead]]:
    """Parameters that a key reaches because what holds it is given to a call with two stars."""
    *above, last = path
    if not above:
        return []
    return [
        (_fit(read, tuple(above)) + 1 if read.path else 2, _parameter(read.slot, last))
        for read in project.reads.spreads.get(above[-1], ())
        if not read.path or _fit(read, tuple(above))
    ]


def _agreed(project: ProjectFacts, reads: Sequence[KeyRead]) -> Reading:
    """The marks on which all readers agree."""
    if not reads:
        return NOBODY
    if project.portable:
        return _CHOOSES
    found = {_marks(project, read) for read in reads}
    if library := owner(mark for marks in found for mark in marks):
        return Reading(read=True, why=f"{library} looks it up among its own names")
    if len(found) == 1 and (marks := found.pop()):
        return Reading(marks, read=True)
    return Reading(read=True, why="the code reads it as different things" if len(found) > 1 else "")


def _marks(project: ProjectFacts, read: KeyRead) -> frozenset[str]:
    if SIMULATOR_DEVICE.search(read.path[-1]):
        return frozenset()
    kind, name = read.slot[:2], read.slot[2:]
    callee, _, keyword = name.rpartition(".")
    if kind in ("f:", "p:") and project.known:  # the file alone did not know whose function it is
        known = project.canonical(callee)
        kind = "p:" if _is_own(project, known) else "f:"
        read = _parameter(kind + (known if kind == "p:" else callee), keyword)._replace(marks=read.marks)
    if kind == "f:":  # an argument of somebody else's function
        root = callee.partition(".")[0]
        if root in FOREIGN or root in OTHER_DEVICES:
            return frozenset()
        mark = mark_of_argument(callee, callee.rpartition(".")[2], False, keyword)
        return frozenset([mark] if mark else ())
    marks = project.marks_of(read.slot).union(read.marks)
    if kind == "p:":  # a class takes what its constructor takes
        known = project.canonical(callee)
        marks |= project.marks_of(f"p:{known}.{keyword}") | project.marks_of(f"p:{known}.__init__.{keyword}")
    return marks
