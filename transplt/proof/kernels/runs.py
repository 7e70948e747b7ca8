"""Starts the programs: the original once to record its kernels' calls, and both to make these again."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.proof.compiler.launches import launches_below
from transplt.proof.kernels.calls import Calls
from transplt.proof.launch import runner
from transplt.proof.launch.options import RunOptions, UsageError
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.options import Prove
from transplt.proof.prove.projects import Project
from transplt.proof.prove.runs import stop_of

_PACKAGE = "npu_emulator.kernels"
_COMPARING = runner.SITE / "npu_emulator" / "kernels" / "comparing.py"


@dataclass
class Kernels:
    """Two programs and how they are run. `seconds` is what the runs took, `launched` what the migrated one launched,
    for a compiler, with paths below its folder."""

    original: Project
    migrated: Project
    options: RunOptions
    given: Prove
    seed: int
    seconds: float = 0.0
    launched: list[dict[str, Any]] = field(default_factory=list)

    def record(self, announce: Callable[[str], None]) -> Calls:
        """Run the script of the original, and gather the calls of its kernels.

        UsageError where it launches none, with what stopped it.
        """
        announce("the original on a stand-in for CUDA, for the calls of its kernels")
        with tempfile.TemporaryDirectory(prefix="transplt-kernels-", ignore_cleanup_errors=True) as folder:
            root = self.original.copy_to(Path(folder))
            target = Path(folder) / "calls.json"
            given = (str(target), str(self.given.programs), str(self.seed), self.original.main)
            done = self._start("recording", (*given, *self.options.arguments), root, "cuda")
            stop = stop_of(done, root)
            why = str(stop) if stop is not None else ""
            if not target.is_file():
                raise UsageError(f"the calls of the kernels cannot be recorded: {why or 'the script left no record'}.")
            calls = Calls(json.loads(read_regular(target, RECORDS)), why)
        if not calls.calls and not calls.told["left"]:
            ended = f" before it stopped: {why}" if why else ""
            raise UsageError(f"{self.original.main} launched no Triton kernel of this project{ended}.")
        return calls

    def compare(self, calls: Calls, announce: Callable[[str], None]) -> list[dict[str, Any]]:
        """For each call what both programs made of it: an entry of npu_emulator.kernels.comparing."""
        with tempfile.TemporaryDirectory(prefix="transplt-kernels-", ignore_cleanup_errors=True) as folder:
            told, target = Path(folder) / "calls.json", Path(folder) / "found.json"
            told.write_bytes(calls.as_bytes())
            sides = {"cuda": ("the original", self.original), "npu": ("the migrated", self.migrated)}
            for host, (who, project) in sides.items():
                announce(f"{who} kernels, {len(calls.calls)} calls")
                (Path(folder) / host).mkdir()
                self._replay(project, host, told, Path(folder) / host, len(calls.calls))
            announce("what both computed")
            given = str(told), str(Path(folder) / "cuda"), str(Path(folder) / "npu"), str(target)
            options = replace(
                self.options, script=str(_COMPARING), arguments=(*given, str(self.given.tolerance)), folder=folder,
                trace=None, stubs=(),
            )  # fmt: skip
            done = runner.start(options, capture=True, echo=False, host="cpu")
            self.seconds += done.seconds
            if done.code or not target.is_file():
                raise RuntimeError(f"comparing the results ended with {done.code}: {done.output[-300:]}")
            found: list[dict[str, Any]] = json.loads(read_regular(target, RECORDS))
            return found

    def _replay(self, project: Project, host: str, calls: Path, results: Path, count: int) -> None:
        """Make all calls with one program; one that ends its process costs itself alone."""
        with tempfile.TemporaryDirectory(prefix="transplt-kernels-", ignore_cleanup_errors=True) as folder:
            root = project.copy_to(Path(folder))
            first = 0
            while first < count:
                given = (str(calls), str(results), str(first), host, str(self.given.programs), str(self.seed))
                done = self._start("replaying", (*given, project.main), root, host)
                self.launched += launches_below(done.processes, root)
                last = max((int(path.stem) for path in results.glob("*.begun")), default=-1)
                if not done.code or last < first or done.timed_out:
                    if done.code or done.timed_out:
                        why = {"from": max(last, first), "reason": str(stop_of(done, root))}
                        (results / "why").write_text(json.dumps(why), encoding="utf-8")
                    return
                first = last + 1

    def _start(self, module: str, arguments: tuple[str, ...], root: Path, host: str) -> ScriptRun:
        options = replace(
            self.options, script=f"{_PACKAGE}.{module}", module=True, arguments=arguments, folder=str(root), trace=None,
        )  # fmt: skip
        done = runner.start(options, capture=True, echo=False, host=host)
        self.seconds += done.seconds
        return done
