"""How often a migration asks each question of docs/architecture.md, and what depends on the answers.

    python -m benchmarks.questions FOLDER... [--style npu] [--jobs 2] [--facts] [--json FILE]

Each folder is migrated once with every question counted. Then once for each question that had an answer: it is given
its neutral value instead ("nothing is known"), and the files of the output that differ are counted. What no output
depends on need not be worked out.

With --facts the questions are what files say to each other: each field of `ModuleFacts`, of `Entry` and of `CodeFacts`
in it. A file says it once; it has an answer where it is not the field's default.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import partial, wraps
from importlib import import_module
from multiprocessing import Pool
from pathlib import Path
from typing import Any

Counts = dict[str, tuple[int, int]]
Row = tuple[int, int, int]

_OF = "transplt."
#: Question -> where it is answered, and the neutral value: a value, or a function of what is asked.
QUESTIONS: dict[str, dict[str, Any]] = {
    "what a name means in its file": {"syntax.names:Names.qualified": None, "syntax.names:Names.resolve": None},
    "what a full name stands for": {
        "flow.gates.graph:Graph.settled": lambda graph, full: full,
        "flow.gates.graph:Graph.above": [],
        "flow.gates.graph:ancestors": [],
    },
    "what code leads to": {
        "flow.gates.cuda_reach:Reach.why": "",
        "flow.gates.cuda_reach:Reach.behind": ("", True),
        "flow.gates.cuda_reach:Reach.is_gate": False,
    },
    "values of devices and strings": {"flow.slots:Slots.marks_of": frozenset()},
    "whose `backend=` it is": {
        "flow.backend_takers:taker_of": None,
        "flow.backend_takers:argument_of_a_package": "",
        "flow.backend_takers:looked_up_by": "",
    },
    "is the tree a package of our tables": {
        "flow.own_packages:tabled_names": (),
        "flow.own_packages:has_its_own": False,
        "flow.own_packages:beside_own_packages": lambda rules, *rest: rules,
    },
    "programs around a file": {"program.programs:Programs.around": []},
    "optimizers": {
        "program.optimizers:find_optimizers": [],
        "program.optimizers:find_steps": [],
        "program.models:kind_of": None,
    },
    "loaders of what trains": {"program.training:loaders_of": []},
    "wrappers of models": {"program.wrapper_places:find_wrap": None},
    "what is left to do": {"engine.actions.actions:actions_of": ()},
    "options under which names are used": {"flow.asked_names:asked_for": {}, "flow.asked_names:asked_in": ()},
    "phases that train": {"program.phases:trained_keys": None},
    "formulas": {"syntax.formulas:Formula.match": None},
    "does a gate get the NPU's answer": {"flow.gates.cuda_side:CudaSide.of": None},
    "arguments that are renamed": {"fixers.codemods.args:_by_rules": []},
}


def _counted(function: Callable[..., Any], neutral: Any, question: str, counts: Counter[str], answer: bool) -> Any:
    """`function`, counted, or with its neutral value in place of its answer."""

    @wraps(function)
    def asked(*given: Any, **named: Any) -> Any:
        counts[question] += 1
        nothing = neutral(*given, **named) if callable(neutral) else neutral
        if answer:
            return iter(nothing) if nothing == [] else nothing
        found = function(*given, **named)
        if isinstance(found, Iterator):
            found = list(found)
        counts[f"{question}:answered"] += found != nothing
        return iter(found) if nothing == [] and isinstance(found, list) and generated else found

    generated = bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x20)
    return asked


def _replace(where: str, question: str, neutral: Any, counts: Counter[str], answer: bool) -> None:
    """Put a question's counter, or its neutral value, wherever the function is known by now."""
    module, _, name = where.partition(":")
    try:
        owner: Any = import_module(_OF + module)
    except ImportError as error:
        raise SystemExit(f"{where}: {error}") from error
    *outer, last = name.split(".")
    for each in outer:
        owner = getattr(owner, each)
    before = getattr(owner, last)
    after = _counted(before, neutral, question, counts, answer)
    setattr(owner, last, after)
    for loaded in list(sys.modules.values()) if not outer else ():
        if getattr(loaded, last, None) is before:
            setattr(loaded, last, after)


def _migrate(folder: Path, out: Path, style: str) -> None:
    from transplt.faces.cli.main import entry_point

    sys.argv = ["transplt", "-q", "-i", str(folder), "-o", str(out), "--jobs", "0", "--style", style]
    code = entry_point()
    if code not in (0, 1):
        raise RuntimeError(f"ended with {code}")


def _digests(out: Path) -> dict[str, str]:
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in out.rglob("*") if path.is_file()
    }  # fmt: skip


def _apart(work: Callable[[], Any], scratch: Path) -> Any:
    """What `work` returns in a process of its own; None where it fails."""
    said = scratch / "said"
    said.unlink(missing_ok=True)
    if (child := os.fork()) == 0:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1), os.dup2(nothing, 2)
        try:
            said.write_bytes(pickle.dumps(work()))
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
    return pickle.loads(said.read_bytes()) if said.exists() else None


def _differing(before: dict[str, str], after: dict[str, str] | None) -> int:
    """Files that differ; all of them where a run failed."""
    if after is None:
        return len(before)
    return sum(before.get(path) != after.get(path) for path in before.keys() | after.keys())


def _warm() -> None:
    """Imports what a migration does, once for all processes that are forked."""
    from transplt.base.settings import Settings
    from transplt.edits.fixer import fixers_of
    from transplt.engine.prefilter import worth_a_look

    for module in ("faces.cli.main", "engine.engine", "project.tree", "edits.trees.calls", "base.render.workbooks"):
        import_module(_OF + module)
    fixers_of("transplt.fixers")
    worth_a_look(b"", Settings())


def questions_of(folder: Path, style: str, only: tuple[str, ...] = ()) -> dict[str, Row]:
    """By question of one folder: times asked, with an answer, and files of the output that depend on it."""
    _warm()
    wanted = {name: places for name, places in QUESTIONS.items() if not only or name in only}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as holder:
        scratch = Path(holder)

        def run(neutral: str | None, counting: bool) -> tuple[Counter[str], dict[str, str]]:
            counts: Counter[str] = Counter()
            for question, places in wanted.items() if counting else ((neutral, wanted.get(neutral or "", {})),):
                for where, nothing in places.items():
                    _replace(where, question or "", nothing, counts, answer=not counting)
            out = scratch / "out"
            shutil.rmtree(out, ignore_errors=True)
            _migrate(folder, out, style)
            return counts, _digests(out)

        plain = _apart(partial(run, None, counting=False), scratch)
        counted = _apart(partial(run, None, counting=True), scratch)
        if plain is None or counted is None or plain[1] != counted[1]:
            raise SystemExit(f"{folder}: counting changes the output")
        rows = {}
        for question in wanted:
            asked, answered = counted[0][question], counted[0][f"{question}:answered"]
            other = _apart(partial(run, question, counting=False), scratch) if answered else plain
            rows[question] = (asked, answered, _differing(plain[1], other and other[1]))
        return rows


def _without(facts: Any, owner: str, name: str, default: Any) -> Any:
    if not owner:
        return replace(facts, **{name: default})
    held = getattr(facts, owner)
    if held is None:
        return facts
    return replace(facts, **{owner: held._replace(**{name: default}) if hasattr(held, "_replace") else
                             replace(held, **{name: default})})  # fmt: skip


def facts_of(folder: Path, style: str, only: tuple[str, ...] = ()) -> dict[str, Row]:
    """By field of the facts: files that could say it, those that do, and files of the output that depend on it."""
    _warm()
    from transplt.flow.entry_text import Entry
    from transplt.flow.facts import ModuleFacts
    from transplt.flow.gates.code import CodeFacts
    from transplt.project import file_passes as known

    file_passes: Any = known
    names = [("", each.name) for each in fields(ModuleFacts) if each.name not in ("path", "module")]
    names += [("entry", each) for each in Entry._fields]
    names += [("code", each.name) for each in fields(CodeFacts) if each.name != "module"]
    defaults = {("", each): getattr(ModuleFacts("", ""), each) for owner, each in names if not owner}
    defaults |= {("entry", each): getattr(Entry(), each) for each in Entry._fields}
    defaults |= {("code", each): getattr(CodeFacts(), each) for owner, each in names if owner == "code"}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as holder:
        scratch, first_pass = Path(holder), file_passes.facts_of_files

        def run(told: dict[str, Any] | None, owner: str = "", name: str = "") -> tuple[dict[str, Any], dict[str, str]]:
            """What the files say, and the output; `told` stands for the first pass, without one field."""
            said: dict[str, Any] = {}

            def facts_of_files(pool: Any, shares: Any, *rest: Any) -> dict[str, Any]:
                said.update(told or first_pass(pool, shares, *rest))
                return {
                    path: _without(each, owner, name, defaults[owner, name]) if name and each is not None else each
                    for path, each in said.items()
                }

            file_passes.facts_of_files = facts_of_files
            out = scratch / "out"
            shutil.rmtree(out, ignore_errors=True)
            _migrate(folder, out, style)
            return said, _digests(out)

        told, plain = _apart(partial(run, None), scratch)
        every = [each for each in told.values() if each is not None]
        rows = {}
        for owner, name in names:
            label = f"{owner}.{name}".strip(".")
            said = [each for each in (getattr(each, owner) if owner else each for each in every) if each is not None]
            answered = sum(getattr(each, name) != defaults[owner, name] for each in said)
            wanted = answered and (not only or label in only)
            other = _apart(partial(run, told, owner, name), scratch) if wanted else (told, plain)
            rows[label] = (len(said), answered, _differing(plain, other and other[1]))
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--style", default="npu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--facts", action="store_true", help="what files say to each other")
    parser.add_argument("--only", action="append", default=[], metavar="QUESTION")
    parser.add_argument("--json", type=Path, help="also each folder's figures")
    args = parser.parse_args()
    folders = [each.resolve() for each in args.folders]
    work = partial(facts_of if args.facts else questions_of, style=args.style, only=tuple(args.only))
    folders.sort(key=lambda folder: sum(path.stat().st_size for path in folder.rglob("*.py") if path.is_file()))
    each: dict[str, dict[str, Row]] = {}
    with Pool(args.jobs, maxtasksperchild=1) as pool:
        for folder, rows in zip(folders, pool.imap(work, folders), strict=True):
            each[folder.name] = rows
            if args.json is not None:
                args.json.write_text(json.dumps(each, indent=1) + "\n", encoding="ascii")
    print(f"| question | asked | with an answer | files that change | in projects of {len(each)} |")
    print("|---|---:|---:|---:|---:|")
    for question in next(iter(each.values())):
        found = [of_one[question] for of_one in each.values()]
        figures = [*(sum(row[at] for row in found) for at in range(3)), sum(row[2] > 0 for row in found)]
        print(f"| {question} | " + " | ".join(f"{figure:,}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
