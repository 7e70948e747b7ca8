"""The small programs of tests/programs, written as people write them, and what is right for each.

A program is a file, or a folder with `main.py`. It begins with comments that say what is expected:

    # distributed: converts | refused (why) | left        several, joined with `or`, where each is right
    # same with W processes: yes | no (why)                with the same global batch, without dropout and shuffling
    # amp: converts | refused (why)
    # apex: converts | refused (why)                       where it is another judgement than that of `amp`
    # apex O1: converts | refused (why)                    with --opt-level O1, where it is another than that of `amp`
    # run: --epochs 2 --batch-size {batch}                 {batch}: that of a process; else loaders get a larger one
    # then: test.py --epochs 1                             another start of one process, behind that
    # start: itself | no (why)                             of what is left: it starts its processes, or is not run

`left` is a program that is distributed already: its own set-up is migrated, and nothing is added.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transplt.project import tree
from transplt.project.options import Options, make_plan
from transplt.project.report.migration_record import RunResult

FOLDER = Path(__file__).resolve().parent / "programs"
#: The batch of one process of several, where the program has an option for it.
BATCH = 8
_ALREADY = ("NPU330", "NPU331")


@dataclass(frozen=True)
class SmallProgram:
    """One program; `main` is its path inside of its folder, or of `tests/programs`."""

    name: str
    main: str
    said: dict[str, str]

    @property
    def verdicts(self) -> set[str]:
        """What `distributed` may do: `converts`, `refused`, `left`."""
        return _verdicts(self.said["distributed"])

    def precision(self, kind: str) -> set[str]:
        """What `--amp native` or `--amp apex` may do: `converts`, `refused`; empty where nothing is said.

        `kind`: `native`, `apex`, `apex O1`.
        """
        return _verdicts(self.said.get(kind, self.said.get("amp", "")))

    @property
    def same(self) -> bool:
        """Whether several processes train as one does."""
        return self.said.get("same with W processes", "").startswith("yes")

    def arguments(self, world: int, of: int) -> tuple[list[str], int]:
        """The arguments with `world` processes that share the global batch of `of`, and how often the batch size of
        loaders has to be taken where no argument says it."""
        run = self.said.get("run", "")
        times = of // world
        return shlex.split(run.replace("{batch}", str(BATCH * times))), 1 if "{batch}" in run else times

    @property
    def next_start(self) -> list[str]:
        """Another script and its arguments, to be started by one process when the program has ended."""
        return shlex.split(self.said.get("then", ""))

    @property
    def starts(self) -> str:
        """`torchrun`, `itself` or `no`."""
        return (self.said.get("start", "") or "torchrun").split()[0]


@dataclass(frozen=True)
class Written:
    """What a migration wrote: the folder, and the Python files in it by their paths."""

    folder: Path
    files: dict[str, str]
    result: RunResult

    @property
    def launch(self) -> bool:
        return any(self.folder.glob("*run_distributed_npu.sh"))


def programs() -> list[SmallProgram]:
    """All of them, by name."""
    found = []
    for path in sorted(FOLDER.iterdir()):
        main = path / "main.py" if path.is_dir() else path
        if main.is_file() and main.suffix == ".py":
            found.append(SmallProgram(path.stem, main.name, _said(main.read_text(encoding="utf-8"))))
    return found


def sources(program: SmallProgram) -> dict[str, str]:
    """The files of a program as they are, by their paths."""
    place = FOLDER / program.name
    if not place.is_dir():
        return {program.main: (FOLDER / program.main).read_text(encoding="utf-8")}
    return {path.relative_to(place).as_posix(): path.read_text(encoding="utf-8") for path in place.rglob("*.py")}


_PLAIN: dict[str, Written] = {}


def write(program: SmallProgram, out: Path, **options: Any) -> Written:
    """Migrate a program into `out`; `distributed=True`, and options by their names in `Options`."""
    source = FOLDER / program.name
    # A copy, so that no settings of the repository are found above it.
    copy = out / "source" / (program.name if source.is_dir() else program.main)
    copy.parent.mkdir(parents=True)
    if source.is_dir():
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(FOLDER / program.main, copy)
    if options.pop("distributed", False):
        options["entry"] = program.main
    plan = make_plan(Options(source=copy, out=out / "out", jobs=0, page=False, **options))
    result = tree.migrate_tree(plan)
    files = {path.relative_to(plan.target).as_posix(): path.read_text(encoding="utf-8")
             for path in sorted(plan.target.rglob("*.py"))}  # fmt: skip
    return Written(plan.target, files, result)


def plain(program: SmallProgram) -> Written:
    """The migration without options, made once in a process; its folder is gone."""
    if program.name not in _PLAIN:
        with tempfile.TemporaryDirectory() as folder:
            _PLAIN[program.name] = write(program, Path(folder))
    return _PLAIN[program.name]


def verdict(written: Written, plain: Written) -> str:
    """What `distributed` did: `converts`, `left` (distributed already) or `refused`; the latter two as the plain
    migration has it."""
    if written.files != plain.files:
        return "converts"
    already = any(finding.code in _ALREADY and not finding.ignored for finding in written.result.findings)
    return "left" if already else "refused"


def reasons(written: Written) -> list[str]:
    """What is left for a person of `distributed`: its findings without an edit that are more than remarks, but for
    what makes several cards another training (decisions, which a program that converts may leave)."""
    return [
        f"{finding.path}:{finding.span.line}: {finding.code} {finding.message}"
        for finding in written.result.findings
        if "NPU330" <= finding.code <= "NPU349" and finding.code not in ("NPU340", "NPU346")
        and not finding.applied and finding.level.value == "manual"
    ]


def _said(text: str) -> dict[str, str]:
    said = {}
    for line in text.splitlines():
        found = re.fullmatch(r"# ([\w ]+): (.*)", line)
        if not found:
            break
        said[found[1]] = found[2]
    return said


def _verdicts(text: str) -> set[str]:
    return set(re.findall(r"converts|refused|left", text.partition("(")[0]))
