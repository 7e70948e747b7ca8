"""The proof: which runs are made, what is compared, and the word that it comes to."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace

from transplt.base.render.cell import many
from transplt.base.render.proofs import Seen
from transplt.base.render.verdict import Verdict, Word, gravest
from transplt.proof.compiler.compiling import Compiler
from transplt.proof.compiler.launches import Compiled, compile_launches
from transplt.proof.launch.advice import Asked, advice, foretold
from transplt.proof.launch.memory import in_words, uses
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.warm import Warm
from transplt.proof.prove import ends, loaders, portable
from transplt.proof.prove.branches import Way, inserted, ways
from transplt.proof.prove.edited import edits, pointed
from transplt.proof.prove.found import Difference, Findings, Part
from transplt.proof.prove.known import Known
from transplt.proof.prove.one_process import OneProcess
from transplt.proof.prove.projects import Project
from transplt.proof.prove.rank_conditions import read_source
from transplt.proof.prove.runs import Replay, Run, Runner
from transplt.proof.prove.several import Several, has_groups
from transplt.proof.prove.slices import behind
from transplt.proof.prove.unseeded import TITLE, as_started, delayed
from transplt.proof.prove.witness import CUDA, REDIRECTED, Witness
from transplt.rules.silent_errors import CODE as SILENT

#: Operators of an NPU that are a layer each.
_LAYER = re.compile("lstm|gru|rnn", re.IGNORECASE)
#: A run of so many seconds may go on for so many times as many steps, to its end or to what stands behind them.
_SOON, _FARTHER = 10.0, 10


@dataclass
class Proof:
    """All comparisons of two programs. The verdict is the gravest of theirs, and names what was not compared. `memory`
    is what the migrated program held of its card, in words, `advice` what helps where a program stops; `idle`: the
    original stopped, before its first step or where the migrated program went on; `operators`: how many
    ran on the card of each program, by itself (0 of the original where its layers are one operator of an NPU: an LSTM
    is many of a GPU); `caught`: the error that the migrated program printed and went on
    from, as a clause; `ran`: which of the watched lines each program came to, by path."""

    parts: list[Part] = field(default_factory=list)
    seconds: float = 0.0
    memory: str = ""
    advice: list[str] = field(default_factory=list, kw_only=True)
    idle: bool = field(default=False, kw_only=True)
    operators: tuple[int, int] = field(default=(0, 0), kw_only=True)
    caught: str = field(default="", kw_only=True)
    ran: tuple[dict[str, set[int]], dict[str, set[int]]] = field(default=({}, {}), kw_only=True)

    @property
    def seen(self) -> list[Seen]:
        """What it found in single lines of the migrated program."""
        found = [each for part in self.parts for each in part.findings.differences]
        return [Seen(each.place.path, each.place.line, each.what) for each in found if each.place is not None]

    @property
    def verdict(self) -> Verdict:
        # Starts of one process end well or do not: they are compared with nothing, and take nothing from the others.
        started = [part for part in self.parts if part.title == TITLE and part.verdict.word is Word.RUNS]
        worst = gravest([part.verdict for part in self.parts if part not in started])
        left = dict.fromkeys(part.left for part in self.parts if part.left)
        return replace(worst, sentence="; ".join([worst.sentence, *left])) if worst.word is Word.EQUAL else worst


@dataclass
class Prover:
    """Makes the runs that a proof needs, and no more: the original again only where something differs."""

    original: Runner
    migrated: Runner
    ways: list[Way]
    inserted: dict[str, list[int]]
    announce: Callable[[str], None]
    on_cuda: Runner | None = None  # the migrated program where it ran before, if it is to go on running there
    compiler: Compiler | None = None
    shuffled: bool = False  # ranks are delayed on purpose, too

    def prove(self, worlds: tuple[int, ...], own: Collection[str] = ()) -> Proof:
        """Compare with each number of processes; one process first, since the others are held against the original.
        `own` are the options of the command."""
        proof = Proof()
        self.announce(self.original.witness.title)
        reference = self._reference()
        self.announce("the migrated program on the emulated npu")
        order = Replay(loaders.global_batches(reference.trainings[:1]), every=False)
        alone, compiled = self._judged_by_compiler(self.migrated.run(replay=order))
        proof.memory = in_words(uses(alone.outcome.processes))
        whole = any(_LAYER.search(name) for process in alone.outcome.processes for name in process["operators"])
        proof.operators, proof.caught = (0 if whole else reference.operators, alone.operators), ends.caught(alone)
        if 1 in worlds or not has_groups(alone):
            one = OneProcess(self.original, self.migrated, self.ways, self.inserted, self.announce)
            proof.parts.append(one.part(reference, alone, order))
        proof.parts += compiled
        if self.migrated.spawns and worlds == (1,):
            worlds = (1, 2)  # it starts a process for each card by itself: with one of them nothing of that is seen
        for world in worlds:
            if world > 1:
                self.announce(f"the migrated program with {world} processes")
                proof.parts += Several(self.original, self.migrated, self.announce).parts(world, reference)
        if self.on_cuda is not None:
            for world in worlds:
                proof.parts += portable.on_cuda(self.original, self.on_cuda, world, reference, self.announce)
        proof.parts[:] = [self._pointed(part) for part in proof.parts]
        hosts = (*reference.outcome.processes, *alone.outcome.processes)
        notes = dict.fromkeys(note for host in hosts for note in host["notes"])  # such as how large a data set is
        proof.parts[0].findings.remarks += [*notes, *_silent(alone)]
        proof.advice += self._advice(reference, alone, own)
        stepped = any(training.steps for training in reference.trainings)
        proof.idle = reference.stop is not None and (
            not stepped or (proof.verdict.word is Word.RUNS and not proof.caught)
        )
        proof.parts[0].findings.remarks += proof.advice
        if self.original.witness is REDIRECTED and self.migrated.options.portable:  # another witness would be asked
            proof.parts[0].findings.reasons.append("the migrated program on CUDA (leave out --against)")
        if all(part.verdict.word in (Word.EQUAL, Word.RUNS) for part in proof.parts):
            self.announce("the migrated program as its user starts it")
            started = as_started(self.original, self.migrated, tuple(sorted({*worlds} & {1} | {worlds[-1]})), alone)
            proof.parts += [started] if started is not None else []
            if self.shuffled and worlds[-1] > 1:
                self.announce(f"the migrated program with {worlds[-1]} processes that are delayed on purpose")
                proof.parts.append(delayed(self.migrated, worlds[-1]))
        proof.seconds = self.original.seconds + self.migrated.seconds
        proof.ran = self.original.ran, self.migrated.ran
        if (known := self.original.known) is not None and known.used and proof.parts:
            what = f"{many(known.used, 'run')} of the original from the cache (--no-cache repeats them)"
            proof.parts[0].findings.remarks.append(what)
        return proof

    def _reference(self) -> Run:
        """The original, for so many steps as are asked for; where nobody asks and it takes no time, on to its end, or
        where that is far away to its first evaluation and its first checkpoint."""
        run, project = self.original.run(), self.original.project
        if (one := run.first) is None or not one.cut:
            return run
        trace = self.original.options.trace
        busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # by what others run
        if trace is None or trace.steps != Trace().steps or run.outcome.seconds > _SOON * busy:
            return run
        self.announce("the original again, to find its end, or its first evaluation and checkpoint")
        far = _FARTHER * trace.steps  # to their ends, which need not be at one step
        ahead = self.original.run(steps=far)
        farther = ahead.first or one
        last = max((first.index for _, first in ends.reached(project, farther) if first is not None), default=0)
        before = Counter(step.optimizer for step in farther.steps if step.index < last)
        steps = max(before.values(), default=0) if farther.cut else far
        if steps <= trace.steps:
            return run
        for runner in (self.original, self.migrated, self.on_cuda):
            if runner is not None:
                runner.options = replace(runner.options, trace=replace(trace, steps=steps))
        return self.original.run() if farther.cut else ahead

    def _judged_by_compiler(self, run: Run) -> tuple[Run, list[Part]]:
        """A run without the estimates that the compiler for Ascend cards has replaced, and the part that it says."""
        if self.compiler is None:
            return run, []
        compiled = compile_launches(run.launched, self.compiler, self.announce)
        return replace(run, findings=compiled.left(run.findings)), [_compiled(compiled)]

    def _advice(self, reference: Run, alone: Run, own: Collection[str]) -> Iterator[str]:
        """What helps where a program stops, the original first: what both lack helps both. What the migration said of
        the line of its output comes first."""
        stop = alone.stop
        stops = [Seen(*stop.place, stop.reason, stop.called)] if stop is not None and stop.place is not None else []
        known = [*foretold(self.migrated.project.root, stops)]
        for side, run in ((self.original, reference), (self.migrated, alone)):
            if run.stop is not None and (run.outcome.code or run.outcome.timed_out):
                root = side.project.elsewhere or side.project.root
                asked = Asked("prove", replace(side.options, script=side.project.main), root, root, own)
                ended = run.outcome
                late, said = ended.timed_out, ended.errors
                if lines := advice(asked, ended.code, ended.processes, known, too_long=late, errors=said):
                    yield from (f"what helps: {line}" for line in lines)
                    return

    def _pointed(self, part: Part) -> Part:
        """With the line that may cause its first difference, or that it stops. Of a distributed original every line
        may, since the port need not add what many cards need."""
        differences, verdict = part.findings.differences, part.verdict
        stops = verdict.word is Word.STOPS
        if not stops and (verdict.word is not Word.DIFFERS or not differences):
            return part
        first = differences[0] if differences else Difference(verdict.sentence, event=True)
        others = edits(self.original.project.root, self.migrated.project.root)
        of_ranks = None if self.original.project.distributed else part.findings.of_ranks
        root, follow = self.migrated.project.root, stops or part.findings.sides != Findings().sides
        # Ranks that are apart from each other have a line.
        told = pointed(first, others, of_ranks,
                       lambda at: behind(read_source(str(root / at.path)) or "", at.line), follow)  # fmt: skip
        if stops and (told.place == first.place or f"{told.place}: " in verdict.sentence):
            return part  # it names the line
        differences[:1] = [told]
        # The sentence of a stop has no place in front.
        sentence = verdict.sentence.replace(first.what if stops else str(first), str(told))
        return replace(part, verdict=replace(verdict, sentence=sentence))


def between(
    original: Project,
    migrated: Project,
    options: RunOptions,
    announce: Callable[[str], None],
    warm: Warm | None = None,
    known: Known | None = None,
    witness: Witness = CUDA,
    watched: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {}),
) -> Prover:
    """What proves `migrated` against `original`, which runs as `witness` says; `announce` gets a line before each run,
    `warm` forks it, and `known` has those of the original that were made before; `watched`: lines of both of which it
    is asked whether they ran."""
    branches = ways(original.root, migrated.root)
    watched = {**watched[0]}, {**watched[1]}
    for way in branches:
        for side in (0, 1):
            lines = watched[side].get(way.path, [])
            watched[side][way.path] = sorted({*lines, way.header[side], way.first[side]})
    asked = replace(options, redirected=witness is REDIRECTED)
    reference = Runner(original, asked, witness.host, watched[0], warm=warm, known=known, witness=witness)
    added = inserted(original.root, migrated.root)
    port = Runner(migrated, options, "npu", watched[1], warm=warm, inserted=added)
    on_cuda = Runner(migrated, options, "cuda", warm=warm) if options.portable and witness is CUDA else None
    compiler = Compiler.of(options.card) if options.compiled else None
    return Prover(reference, port, branches, added, announce, on_cuda, compiler)


def _compiled(compiled: Compiled) -> Part:
    """What the compiler of the card says of the kernels that the migrated program launched."""
    head, *lines = compiled.lines()
    verdict = Verdict(Word.EQUAL, head)
    if compiled.refused:  # they stand first
        verdict = Verdict(Word.STOPS, f"it does not compile: {lines[0].strip()}")
    return Part("the Triton kernels, compiled for the card", verdict, Findings(remarks=[head, *map(str.strip, lines)]))


def _silent(run: Run) -> list[str]:
    """Where the migrated program reached an operator with a known silent error, under its condition: what is equal
    here may not be so on the card."""
    found = [each for each in run.findings if each["code"] == SILENT]
    lines = (f"{each['path']}:{each['line']}: {each['message']} ({SILENT}): {each['help']}" for each in found)
    return [*dict.fromkeys(lines)]
