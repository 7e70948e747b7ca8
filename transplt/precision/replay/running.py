"""Runs the script of a replay here: on the CPU, or on the emulated NPU."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transplt.base.errors import CannotFinish, UsageError, shown
from transplt.proof.launch import runner
from transplt.proof.launch.environments import choose
from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.options import UsageError as CannotRun


@contextmanager
def replayed_here(text: str, device: str, python: str) -> Iterator[str]:
    """The folder that the script wrote, gone at the end. UsageError without torch, CannotFinish where it stopped."""
    with tempfile.TemporaryDirectory(prefix="transplt-replay-") as name:
        script, out = Path(name) / "replay.py", os.path.join(name, "replayed")
        script.write_text(text, "utf-8")
        try:
            chosen = choose(python, Path.cwd()).python
            options = RunOptions(str(script), ("-o", out, "--device", device), chosen, random="cpu", host=device)
            ended = runner.start(options, capture=True, echo=False, host=device)
        except CannotRun as error:
            raise UsageError(str(error).replace("transplt run", "transplt replay")) from error
        if ended.code or not os.path.isdir(out):
            raise CannotFinish(
                f"what computes the operators stopped with exit status {ended.code}; --script {shown('replay.py')} "
                "writes it; run that by hand"
            )
        yield out
