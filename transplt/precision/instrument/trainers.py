"""Frameworks that own the loop which trains: their trainer gets a callback that records."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from transplt.edits.trees.expressions import between
from transplt.precision.instrument.edits import Edits
from transplt.program.frameworks import OPTIMIZER, PRECISION, PROCESSES, taken_over
from transplt.program.program import File, Program, enclosing_function
from transplt.syntax.nodes import by_place, class_of_method, last_name

#: Those whose trainers take callbacks, by what rules/support/frameworks.json calls them.
_RECORDED = frozenset({"the Trainer of transformers", "a Trainer of trl", "Lightning"})
#: Those with a loop of their own to which nothing is handed.
_UNKNOWN = frozenset({"Composer", "mmengine", "mmcv", "ignite", "catalyst", "fastai", "Megatron", "ColossalAI"})
_RUNS = ("Trainer", "Runner", "Learner", "_trainer", "pretrain")
#: Functions of a class that make an object of it, and what makes a trainer by itself.
_MAKERS = ("from_argparse_args", "from_pretrained")
_MAKES_TRAINER = ("LightningCLI",)
_FAR = 5


def hand_to_trainers(program: Program, bench: Mapping[str, Edits], probe: str) -> bool:
    """Hand each trainer of transformers, trl and Lightning to the probe where it is made. False where none is."""
    found = False
    for file in program.files:
        edits = bench[file.path]
        for call in by_place(file.scan.calls):
            name = _made(program, file, call)
            if name.rpartition(".")[2] in _MAKES_TRAINER:
                edits.report(call, f"it creates its own trainer: pass that to {probe}.recorded()")
            elif _records(name):
                edits.rewrite(call, between(f"{probe}.recorded(", ")"))
                edits.probes = found = True
            elif (called := _called(name)) in _UNKNOWN and name.endswith(_RUNS):
                edits.report(call, f"{called} contains the training loop: call {probe}.step() before each step")
    return found


def makes_trainers(program: Program) -> bool:
    """True for a program in which a trainer that records is made."""
    return any(_records(_made(program, file, call)) for file in program.files for call in file.scan.calls)


def owns_loop(program: Program, file: File, call: ast.Call) -> bool:
    """True in a method of a class that a framework's loop calls: of a LightningModule, a Trainer."""
    of = class_of_method(enclosing_function(call))
    name = _base(program, file, of) if of is not None else ""
    return name.endswith("LightningModule") or _called(name) in _RECORDED


def _made(program: Program, file: File, call: ast.Call) -> str:
    """The full name of the class that a call makes an object of, of one of the program's own that of its base."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _MAKERS:
        func = func.value
    made = program.named(file, func)
    if isinstance(made, ast.ClassDef):
        return _base(program, program.owner[made], made)
    return program.project.canonical(file.names.qualified(func) or "")


def _base(program: Program, file: File, of: ast.ClassDef) -> str:
    """The full name of the first base that is a library's."""
    for _ in range(_FAR):
        names = [file.names.qualified(base) or last_name(base) for base in of.bases]
        known = next((name for name in names if _called(name) or name.endswith("LightningModule")), "")
        if known:
            return known
        bases = [(base, program.named(file, base)) for base in of.bases]
        own = next((made for _, made in bases if isinstance(made, ast.ClassDef)), None)
        if own is None:
            break
        file, of = program.owner[own], own
    return ""


def _records(name: str) -> bool:
    return name.endswith("Trainer") and _called(name) in _RECORDED


def _called(name: str) -> str:
    """What the framework is called that has a full name."""
    found = (taken_over(part, name) for part in (PROCESSES, OPTIMIZER, PRECISION)) if name else ()
    return next((each.called for each in found if each is not None), "")
