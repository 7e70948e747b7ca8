"""A migration that proves itself: what was asked for beyond it, and does not hold, is taken back."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from transplt.base.errors import UsageError, shown
from transplt.base.render.verdict import Verdict, Word
from transplt.project.options import Options, Plan, make_plan
from transplt.project.report.migration_record import RunResult
from transplt.project.tree import migrate_tree
from transplt.proof.compiler.compiling import Compiler
from transplt.proof.launch.advice import Asked, missing_packages
from transplt.proof.launch.environments import choose
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.launch.options import UsageError as CannotRun
from transplt.proof.launch.warm import Warm
from transplt.proof.prove.card_pack import Pack, check_pack, write_pack
from transplt.proof.prove.command import for_output
from transplt.proof.prove.projects import find_project
from transplt.proof.prove.proof import Proof, between

_FAILED = (Word.DIFFERS, Word.STOPS)


class Proving:
    """Proves what a migration wrote. `command` is the script and its arguments, as behind `python`, or "." for that of
    the project's settings; `stubs` and `data` are those of `transplt prove`. Data that are not in the output are those
    of the input. `card_pack` names a folder: the last result is packed into it for the card, and `pack` says what it
    holds.

    Raises UsageError where nothing can be run: no command, no torch, no such script.
    """

    def __init__(
        self,
        options: Options,
        command: str,
        progress: Callable[[str], None],
        stubs: tuple[str, ...] = (),
        data: tuple[str, ...] = (),
        card_pack: str | None = None,
        python: str = "",
        compiled: bool = False,
    ) -> None:
        plan = make_plan(options)
        # With what a plan decides: what does not hold is taken back from it too.
        self.options, self.progress, self.data = plan.options, progress, data
        source = plan.source
        if command == ".":
            if not plan.config.prove:
                raise UsageError("--prove needs a COMMAND, here or as [tool.transplt] prove = 'train.py --epochs 1'")
            command = plan.config.prove
        self.run = run_of(command, stubs, python, source if source.is_dir() else source.parent, progress, compiled)
        self._proof(source, None, ())  # reports at once what is missing
        self.to_pack = check_pack(Path(card_pack), source) if card_pack is not None else None
        self.pack: Pack | None = None

    def migrate(self, migrate: Callable[[Plan], RunResult]) -> tuple[RunResult, Proof]:
        """Migrate, prove, and migrate again without the themes that fail; the last result, and its proof."""
        result, proof, plan = self._migrate(migrate)
        if self.to_pack is not None:
            self.pack = pack_of(plan.source, plan.target, self.run, self.to_pack, self.progress, self.data)
        return result, proof

    def _migrate(self, migrate: Callable[[Plan], RunResult]) -> tuple[RunResult, Proof, Plan]:
        plan = make_plan(self.options)
        result = migrate(plan)
        proof = self._of(plan)
        themes = _themes(self.options)
        if proof.verdict.word not in _FAILED:
            return result, proof, plan
        bad = self._to_blame(themes) if themes else {}
        wanted = _without(self.options, set(bad))
        failed = bad or {"": proof.verdict}  # nothing to take back: it is the first thing to do
        taken = tuple((theme, self.run.script, str(verdict)) for theme, verdict in failed.items())
        plan = make_plan(replace(wanted, taken_back=taken, force=True, discard_edits=False))
        result = migrate(plan)
        return result, self._of(plan) if bad else proof, plan

    def _to_blame(self, themes: dict[str, tuple[str, ...]]) -> dict[str, Verdict]:
        """The themes that fail by themselves where the migration alone does not, and how; all where only together."""
        if self._alone({*themes}).word in _FAILED:
            return {}
        alone = {theme: self._alone({*themes} - {theme}) for theme in themes}
        bad = {theme: verdict for theme, verdict in alone.items() if verdict.word in _FAILED}
        return bad or dict.fromkeys(themes, Verdict(Word.DIFFERS, "each works alone, but not all of them together"))

    def _alone(self, left_out: set[str]) -> Verdict:
        with tempfile.TemporaryDirectory(prefix="transplt-prove-") as folder:
            options = replace(_without(self.options, left_out), out=folder, page=False, analysis=False, force=False)
            plan = make_plan(options)
            migrate_tree(plan)
            return self._of(plan).verdict

    def _of(self, plan: Plan) -> Proof:
        proof = self._proof(plan.source, plan.target, (1, 2) if plan.settings.entry else (1,))
        assert proof is not None
        return proof

    def _proof(self, source: Path, target: Path | None, worlds: tuple[int, ...]) -> Proof | None:
        return proof_between(source, target, self.run, worlds, self.progress, self.data)


def run_of(
    command: str, stubs: tuple[str, ...], python: str, project: Path, progress: Callable[[str], None],
    compiled: bool = False,
) -> RunOptions:
    """How the programs of a proof are run: `command` is a script of the project and its arguments, `python` the
    interpreter ("": the project's own). UsageError where it is not, or nothing can run it: with all that is missing.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--prove {command!r}: {error}") from error
    if not words or not words[0].endswith(".py"):
        raise UsageError(f"--prove {command!r}: the script and its arguments, such as 'train.py --epochs 1'")
    try:
        chosen = choose(python, project)
        if chosen.in_words:
            progress(f"with {chosen.in_words}")
        options = RunOptions(
            words[0], tuple(words[1:]), chosen.python, random="cpu", stubs=stubs, timeout=600.0, trace=Trace(),
            threads=1, compiled=compiled,
        )  # fmt: skip
        if compiled:
            Compiler.of(options.card)  # says at once where there is none
        asked = Asked("prove", options, project, project, ("--python",))
        if lines := missing_packages(asked):
            raise CannotRun(f"{shown(words[0])} cannot be loaded: {'; '.join(lines)}")
    except CannotRun as error:
        raise UsageError(f"--prove: {error}") from error
    return options


def proof_between(
    source: Path,
    target: Path | None,
    run: RunOptions,
    worlds: tuple[int, ...],
    progress: Callable[[str], None],
    data: tuple[str, ...] = (),
    elsewhere: Path | None = None,
) -> Proof | None:
    """The proof of what was written to `target`; without one only whether it could be run. UsageError where not.

    `data` are folders of the project that are linked, not copied; where the project lacks them, from `elsewhere`.
    """
    try:
        options, _ = for_output(run, target or source, source)
        original = find_project(source if source.is_dir() else source.parent, options.script, data)
        original = replace(original, elsewhere=elsewhere)
        if target is None:
            return None
        migrated = replace(find_project(target, options.script, data), elsewhere=elsewhere or original.root)
        with Warm() as warm:
            return between(original, migrated, options, progress, warm).prove(worlds)
    except CannotRun as error:
        raise UsageError(f"--prove: {error}") from error


def pack_of(
    source: Path, target: Path, run: RunOptions, out: Path, progress: Callable[[str], None], data: tuple[str, ...] = ()
) -> Pack:
    """The card pack of what was written to `target`, in the new folder `out`. UsageError where it cannot be made."""
    try:
        options, _ = for_output(run, target, source)
        original = find_project(source if source.is_dir() else source.parent, options.script, data)
        migrated = replace(find_project(target, options.script, data), elsewhere=original.root)
        return write_pack(migrated, options, out, progress)
    except CannotRun as error:
        raise UsageError(f"--card-pack: {error}") from error


def _themes(options: Options) -> dict[str, tuple[str, ...]]:
    """What was asked for beyond a migration, as it is written -> the options that ask for it."""
    found: dict[str, tuple[str, ...]] = {}
    if options.entry:
        found["distributed"] = ("entry", "targets", "check_ranks", "combine_ddp")
    if options.amp not in (None, "off"):
        found[f"--amp {options.amp}"] = ("amp", "amp_dtype", "opt_level", "loss_scale", "amp_flag", "combine_ddp")
    if options.adapt:
        found[f"--adapt {options.adapt}"] = ("adapt",)
    if options.tune:
        found[f"--tune {options.tune}"] = ("tune",)
    return found


def _without(options: Options, left_out: set[str]) -> Options:
    plain = Options()
    names = {name for theme, parts in _themes(options).items() if theme in left_out for name in parts}
    return replace(options, **{name: getattr(plain, name) for name in names})
