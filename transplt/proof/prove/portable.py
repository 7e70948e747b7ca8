"""A program that was made portable, where it ran before: on CUDA to the bit, and its own tests on a CPU.

Original and migrated program both run on the stand-in for CUDA. There the edits may change nothing at all, so figures,
printed results and saved tensors are held to no tolerance. What two runs of the original do not have in common says
nothing.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from transplt.base.render.cell import many
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.launch.options import RunOptions
from transplt.proof.prove import precision, printed, steps
from transplt.proof.prove.found import Difference, Findings, Part, Rounding
from transplt.proof.prove.projects import Project
from transplt.proof.prove.runs import TWICE, Run, Runner
from transplt.proof.prove.several import Several, has_groups

#: What pytest ends with where all tests passed, some failed, and none was found.
_ENDS = (0, 1, 5)


def on_cuda(
    original: Runner, ported: Runner, world: int, reference: Run, announce: Callable[[str], None]
) -> list[Part]:
    """Both with so many processes on the stand-in for CUDA. Where only the migrated program starts a group for them,
    its ranks against each other and against one process, as on the NPU; nothing where neither does. `reference` is the
    original's run with one process, `ported` runs the migrated program there."""
    ranks = f" with {world} processes" if world > 1 else ""
    announce(f"the migrated program on the stand-in for CUDA{ranks}")
    one = reference if world == 1 else original.run(world)
    if world > 1 and not has_groups(one):
        if not has_groups(ported.run(world)):
            return []
        parts = Several(original, ported, announce).parts(world, reference)
        return [replace(part, title=f"{part.title}, on a stand-in for CUDA") for part in parts]
    other = ported.run(world)
    title = f"the original and the migrated program, both on a stand-in for CUDA{ranks}"
    found = Findings(steps=min(len(each.steps) for each in one.trainings) if one.trainings else 0)
    if other.stop is not None and not other.stop.is_that_of(one.stop):
        return [Part(title, Verdict(Word.STOPS, other.stop.of("the migrated program")), found)]
    if one.stop is not None and other.stop is None:
        return [Part(title, Verdict(Word.RUNS, f"the original itself stops: {one.stop}"), found)]
    if apart := _apart(one, other):
        announce(f"the original again{ranks}, to see whether two runs agree")
        itself = _apart(one, original.run(world, again=TWICE))
        found.differences += [each for name, each in apart.items() if name not in itself][:1]
        found.reasons += [f"two runs of the original differ: {each.what}" for each in itself.values()][:1]
    if found.differences:
        return [Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)]
    found.printed, found.saved = printed.compared(one.outcome, {*apart})
    return [Part(title, _equal(found, other), found)]


def _equal(found: Findings, other: Run) -> Verdict:
    """The verdict where nothing differs that two runs of the original have in common."""
    counted = ", ".join(found.counted)
    if not counted:
        ended = f"both stop: {other.stop}" if other.stop is not None else "ran to the end"
        return Verdict(Word.RUNS, f"{ended}; nothing to compare")
    if found.reasons:
        return Verdict(Word.RUNS, f"ran to its end; {found.reasons[0]}")
    behind = f", then both stop: {other.stop}" if other.stop is not None else ""
    return Verdict(Word.EQUAL, f"{counted} equal to the bit{behind}")


def _apart(one: Run, other: Run) -> dict[str, Difference]:
    """What two runs do not have to the bit in common, by what it is."""
    if len(one.trainings) != len(other.trainings):
        what = f"{len(other.trainings)} processes train, {len(one.trainings)} of the original"
        return {"processes": Difference(what)}
    found: dict[str, Difference] = {}
    for rank, (mine, theirs) in enumerate(zip(one.trainings, other.trainings, strict=True)):
        if len(mine.steps) != len(theirs.steps):
            what = f"{many(len(theirs.steps), 'step')}, {len(mine.steps)} of the original"
            found[f"rank {rank}: steps"] = Difference(what)
        first, second = steps.in_common(mine, theirs)
        for gap in precision.comparison(False)(first, second, Rounding(0.0)):
            found.setdefault(f"rank {rank}: {gap.figure}", gap.difference)
    return {**found, **printed.apart(one.outcome, other.outcome)}


# --- the project's own tests -----------------------------------------------------------------------------------------


def tests_on_a_cpu(before: Project, after: Project, options: RunOptions, words: str) -> Part:
    """The outcomes of the project's own tests before and after; `words` are the arguments of pytest."""
    title = "the project's own tests on a CPU, before and after"
    outcomes = []
    for whose, project in (("the original's", before), ("the migrated project's", after)):
        told, why = _outcomes(project, options, shlex.split(words))
        if why:
            return Part(title, Verdict(Word.NOT_RUN, f"{whose} tests: {why}"), Findings())
        outcomes.append(told)
    one, other = outcomes
    changed = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    lines = (f"{name}: {one.get(name, 'not there')} before, {other.get(name, 'not there')} after" for name in changed)
    found = Findings(differences=[Difference(each) for each in lines])
    if changed:
        return Part(title, Verdict(Word.DIFFERS, str(found.differences[0])), found)
    passed = sum(outcome == "passed" for outcome in one.values())
    if not passed:
        return Part(title, Verdict(Word.NOT_RUN, f"none of {many(len(one), 'test')} of the original passes"), found)
    return Part(title, Verdict(Word.EQUAL, f"{many(len(one), 'test')} with the same outcomes, {passed} passed"), found)


def _outcomes(project: Project, options: RunOptions, words: list[str]) -> tuple[dict[str, str], str]:
    """The outcome of each test of a fresh copy, by its name; or why there is none."""
    with tempfile.TemporaryDirectory(prefix="transplt-tests-", ignore_cleanup_errors=True) as folder:
        root = project.copy_to(Path(folder))
        report = Path(folder) / "outcomes.xml"
        command = [options.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *words]
        hidden = {"CUDA_VISIBLE_DEVICES": "", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, cwd=root, env={**os.environ, **hidden}, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", timeout=options.timeout, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {}, f"did not finish in {options.timeout:g} s (--timeout)"
        if done.returncode not in _ENDS or not report.is_file():
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            return {}, lines[-1][:200] if lines else f"pytest ended with exit code {done.returncode}"
        if done.returncode == _ENDS[-1]:
            return {}, "pytest finds none"
        cases = ElementTree.parse(report).getroot().iter("testcase")
        ended = {"failure": "failed", "error": "an error", "skipped": "skipped"}
        found = ((case, next((ended[each.tag] for each in case if each.tag in ended), "passed")) for case in cases)
        return {f"{case.get('classname')}::{case.get('name')}": outcome for case, outcome in found}, ""
