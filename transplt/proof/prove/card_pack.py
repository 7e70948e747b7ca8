"""What an engineer takes to the machine with the card: a folder with the migrated program, what it did on the emulated
card, and scripts that do it again there without transplt (`transplt/emulator/on_card/`)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transplt import __version__
from transplt.base.disk.publish import Staging, publish, staging
from transplt.base.errors import UsageError, shown
from transplt.base.render.cell import many
from transplt.base.text.regular_file import RECORDS, SOURCE, read_regular
from transplt.proof.launch import runner
from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.options import UsageError as CannotRun
from transplt.proof.prove.projects import Project
from transplt.rules.tables import rules_dir

FORMAT = 1
#: So many steps of each optimizer are recorded.
STEPS = 2
_PACKAGE = Path(__file__).parents[2]
_ON_CARD = _PACKAGE / "emulator" / "on_card"
#: Modules of this package that a pack brings along as text, each with what it imports of the others; and their tables.
HOST_MODULES = (
    "base/settings", "base/npus_alone", "base/plan_decisions", "base/text/regular_file", "rules/tables",
    "rules/versions", "rules/environment",
    "precision/diagnose/host", "precision/diagnose/triton", "precision/diagnose/advice", "precision/diagnose/npu_smi",
    "base/finding",
)  # fmt: skip
_TABLES = ("schema.json", "support/env_vars.json", "support/versions.json")
_README = """\
Start `python card_pack.py` in this folder, in the environment of the training, on the machine with the card.
It writes card_result.json here: send that file back, `transplt card-read card_result.json` reports what matches.
What lies here: program/ is the migrated program, recorded.json what it did on the emulated card, on_card/ the scripts.
The data of --data is not here: put it, or links to it, at the same places in program/.
More: docs/diagnose.md of transplt.
"""


@dataclass(frozen=True)
class Pack:
    """What was written: the folder, and how much was recorded. `stopped` is why the program did not come to its end."""

    folder: Path
    calls: int
    operators: int
    left: int
    steps: int
    stopped: str

    def __str__(self) -> str:
        told = f"{many(self.calls, 'call')} of {many(self.operators, 'operator')}, {many(self.steps, 'training step')}"
        left = f", {many(self.left, 'call')} not recorded" if self.left else ""
        stopped = f"; the program stopped: {self.stopped}" if self.stopped else ""
        return f"{shown(self.folder)}: {told}{left}{stopped}"


def check_pack(out: Path, *projects: Path) -> Path:
    """The folder for a pack, from its name. UsageError where it is there already, or lies in a program."""
    target = Path(os.path.realpath(out))
    if os.path.lexists(target):
        raise UsageError(f"--card-pack {shown(out)} exists; name a new folder")
    inside = next((each for each in projects if Path(os.path.realpath(each)) in target.parents), None)
    if inside is not None:
        raise UsageError(f"--card-pack {shown(out)} lies in {shown(inside)}; name a folder outside it")
    return target


def write_pack(
    migrated: Project, options: RunOptions, out: Path, announce: Callable[[str], None], *, torchrun: bool = False
) -> Pack:
    """Record the migrated program on the emulated card, and write the pack to the new folder `out`.

    `torchrun`: the script asks for the variables that torchrun sets. UsageError where nothing could be recorded.
    """
    announce("the migrated program once more, for the card pack")
    with staging(out) as stage:
        try:
            (stage.folder / "copied").mkdir()
            _fill(stage, migrated, options, torchrun)
            made = runner.start(
                replace(options, script="card_pack.py", arguments=("--record",), folder=str(stage.folder), trace=None,
                        random="cpu", nproc=0, module=False, npus=1),
                capture=True, echo=False,
            )  # fmt: skip
        except CannotRun as error:
            raise UsageError(f"--card-pack: {error}") from error
        path = stage.folder / "recorded.json"
        if not path.is_file():
            why = "the run took too long" if made.timed_out else f"exit code {made.code}"
            raise UsageError(f"--card-pack: nothing was recorded, {why}")
        recorded: dict[str, Any] = json.loads(read_regular(path, RECORDS))
        if not recorded["calls"]:
            why = recorded["stopped"] or "it called no operator on the card"
            raise UsageError(f"--card-pack: nothing was recorded of the migrated program: {why}")
        for name in migrated.data:  # they were linked for the recording
            (stage.folder / "program" / name).unlink(missing_ok=True)
        for cache in [*stage.folder.rglob("__pycache__")]:
            shutil.rmtree(cache, ignore_errors=True)
        publish(stage, replace=False)
    with contextlib.suppress(OSError):
        (out / ".transplt").rmdir()  # it held the staged folder
    operators = Counter(call["op"] for call in recorded["calls"])
    left = sum(row["times"] for row in recorded["left"])
    return Pack(out, len(recorded["calls"]), len(operators), left, len(recorded["steps"]), recorded["stopped"])


def _fill(stage: Staging, migrated: Project, options: RunOptions, torchrun: bool) -> None:
    """All but the recording."""
    stage.folder.chmod(0o755)
    copied = migrated.copy_to(stage.folder / "copied")
    shutil.rmtree(copied / ".transplt", ignore_errors=True)
    copied.rename(stage.folder / "program")
    (stage.folder / "copied").rmdir()
    scripts = stage.folder / "on_card"
    shutil.copytree(_ON_CARD, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "card_pack.py").rename(stage.folder / "card_pack.py")
    for probe in ("transplt_probe.py", "transplt_optimizers.py", "transplt_configuration.py"):
        shutil.copyfile(_PACKAGE / "precision" / "instrument" / probe, scripts / probe)
    _bring_host_modules(scripts / "lib" / "transplt")
    stubs = [runner.stub_of(name) for name in options.stubs]
    if stubs:
        (scripts / "stand_ins").mkdir()
    for path, _ in stubs:
        shutil.copyfile(path, scripts / "stand_ins" / Path(path).name)
    if any(Path(path).parent == runner.READY_STUBS for path, _ in stubs):
        shutil.copytree(runner.READY_STUBS / "packages", scripts / "stand_ins" / "packages")
    settings = {
        "format": FORMAT, "made_by": f"transplt {__version__}", "torch_version": options.torch_version,
        "main": migrated.main, "arguments": [*options.arguments], "data": [*migrated.data],
        "seed": options.trace.seed if options.trace is not None else 1234, "steps": STEPS, "torchrun": torchrun,
        "stubs": [Path(path).name for path, _ in stubs],
        "pictures": {Path(path).name: count for path, count in stubs if count},
    }  # fmt: skip
    (stage.folder / "pack.json").write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    (stage.folder / "README.txt").write_text(_README, encoding="utf-8")


def _bring_host_modules(package: Path) -> None:
    """The checks of `transplt doctor` as a package that holds nothing else; Pythons older than ours read it too."""
    for module in HOST_MODULES:
        text = read_regular(_PACKAGE / f"{module}.py", SOURCE).decode("utf-8")
        target = package / f"{module}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text.replace(", slots=True)", ")").replace("(slots=True)", ""), encoding="utf-8")
    for folder in {package, *(path.parent for path in package.rglob("*.py"))}:
        (folder / "__init__.py").touch()
    for table in _TABLES:
        target = package / "_rules" / table
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(rules_dir() / table, target)
