"""Every output of a checkout on many projects, byte by byte: what a change of the code's structure must not change.

    python -m benchmarks.outputs record OUT PROJECT... [--python PYTHON] [--only WORDS] [--runs] [--workers 2]
    python -m benchmarks.outputs compare BEFORE AFTER [--lines 40]

`record` writes, for each PROJECT (a folder), each sample of this checkout and each program of tests/programs, the
migrated trees of several modes with all their reports, and the texts and exit codes of `check`, `analyze`,
`instrument` and `distributed`; with `--runs` those of `prove`, `run --dump` and `compare` on samples besides (torch is
needed). PYTHON is the interpreter in which the checkout to look at is installed (this one). `--only` takes the cases
whose names hold one of some words. `compare` lists the files that differ, with the lines; exit code 1 when one does.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The ways in which each project is migrated.
MODES = {
    "plain": (),
    "wide": ("--similar", "--specify-device", "--tune", "all", "--torch-version", "2.4"),
    "portable": ("--style", "portable", "--amp", "native", "--texts", "--docs", "--torch-version", "2.8"),
    "apex": ("--amp", "apex", "--opt-level", "O1", "--annotate", "--torch-version", "2.1"),
}
#: At most so many main files of a project are made multi-card, the first by name.
MAINS = 8
#: What is compared as text in `compare`; of the rest only the name is said.
TEXTS = (".py", ".txt", ".csv", ".json", ".sh", ".md", ".html", ".yaml", ".yml", ".toml", ".sarif", ".cfg", ".patch")
#: The inputs, and what a survey says of the costs of its repositories.
LEFT_OUT = re.compile(r"^sources/|/survey/(repositories/|survey\.xlsx$)")


@dataclass(frozen=True, slots=True)
class Case:
    """One command: its name, which is that of its folder, and its arguments, `{out}` being that folder."""

    name: str
    arguments: tuple[str, ...]
    #: The case whose output this one reads, if any.
    after: str = ""


def main_files(project: Path) -> list[Path]:
    """The files that train when they are started, by their text."""
    mains = []
    for path in sorted(project.rglob("*.py")):
        data = path.read_bytes()
        if b".backward(" in data and b"__main__" in data:
            mains.append(path)
    return mains[:MAINS]


def project_cases(name: str, project: Path) -> Iterator[Case]:
    for mode, options in MODES.items():
        yield Case(f"{name}.{mode}", ("-i", str(project), "-o", "{out}/tree", "--jobs", "0", *options))
    yield Case(f"{name}.check", ("check", str(project), "--no-cache", "--verbose", "--jobs", "0"))
    sarif = ("--format", "sarif", "--torch-version", "2.1", "--similar")
    yield Case(f"{name}.sarif", ("check", str(project), "--no-cache", "--jobs", "0", *sarif))
    yield Case(f"{name}.analyze", ("analyze", str(project), "-o", "{out}/tables"))
    for path in main_files(project):
        main = path.relative_to(project).as_posix()
        flat = main.replace("/", "-")
        yield distributed(f"{name}.distributed.{flat}", project, main)
        yield Case(f"{name}.instrument.{flat}", ("instrument", str(project), "-o", "{out}/copy", "-m", main))


def distributed(name: str, project: Path, main: str) -> Case:
    source = str(project / main) if project.name == "programs" else str(project)
    return Case(name, ("-i", source, "-o", "{out}/tree", "--jobs", "0", "distributed", "-m", str(project / main)))


def copied(sources: Path) -> Path:
    """The samples and programs of this checkout, in a folder where nothing around them is their project."""
    shutil.copytree(ROOT / "samples", sources / "samples", ignore=shutil.ignore_patterns("expected"))
    shutil.copytree(ROOT / "tests" / "programs", sources / "programs")
    return sources


def sample_cases(sources: Path) -> Iterator[Case]:
    for project in sorted((sources / "samples").rglob("cuda")):
        yield from project_cases("sample-" + "-".join(project.relative_to(sources / "samples").parts[:-1]), project)
    programs = sources / "programs"
    for mode, options in MODES.items():
        yield Case(f"programs.{mode}", ("-i", str(programs), "-o", "{out}/tree", "--jobs", "0", *options))
    for path in sorted(programs.glob("*.py")):
        yield distributed(f"programs.distributed.{path.name}", programs, path.name)
    samples = sorted(str(path) for path in (sources / "samples").rglob("cuda"))
    yield Case("samples.survey", ("survey", *samples, "-o", "{out}/survey", "--executor", "inline"))
    yield Case("rules.list", ("rules", "list"))
    yield Case("rules.tunings", ("rules", "--tunings"))
    yield Case("help", ("--help",))


def run_cases(sources: Path) -> Iterator[Case]:
    """What starts programs: two proofs, two dumps of one training and what came apart between them."""
    for name, main, options in (
        ("quick_start", "main.py", ()),
        ("tunings/steps", "train.py", ("--tune", "all")),
        ("amp_apex/flat", "train.py", ("--amp", "apex")),
    ):
        flat = name.replace("/", "-")
        project = str(sources / "samples" / name / "cuda")
        yield Case(f"run.{flat}", ("-i", project, "-o", "{out}/tree", "--jobs", "0", *options))
        both = (project, f"{{run.{flat}}}/tree/cuda_msft")
        yield Case(f"run.{flat}.prove", ("prove", *both, "--main", main), f"run.{flat}")
    project = str(sources / "samples" / "precision" / "cuda")
    yield Case("run.precision", ("-i", project, "-o", "{out}/tree", "--jobs", "0"))
    for host, script in (("cuda", f"{project}/train.py"), ("npu", "{run.precision}/tree/cuda_msft/train.py")):
        dump = ("run", "--host", host, "--dump", "{out}/dump", script)
        yield Case(f"run.precision.{host}", dump, "run.precision")
    dumps = ("{run.precision.npu}/dump", "{run.precision.cuda}/dump")
    yield Case("run.precision.compare", ("compare", *dumps, "-o", "{out}/tables"), "run.precision.npu")


def carry_out(case: Case, out: Path, python: str) -> float:
    """Run one command; its text and exit code go to text.txt in its folder, which files of `{out}` join. Seconds."""
    folder = out / case.name
    folder.mkdir(parents=True)
    arguments = [argument.replace("{out}", str(folder)) for argument in case.arguments]
    for other in sorted(out.iterdir(), reverse=True):
        arguments = [argument.replace(f"{{{other.name}}}", str(other)) for argument in arguments]
    cache = out / "cache"
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", "XDG_CACHE_HOME": str(cache), "PYTHONHASHSEED": "0"}
    env["PATH"] = f"{Path(python).parent}{os.pathsep}{env['PATH']}"
    begin = time.perf_counter()
    done = subprocess.run(
        [python, "-m", "transplt", *arguments],
        cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    text = f"{done.stdout}\n--- stderr\n{done.stderr}\n--- exit code {done.returncode}\n"
    (folder / "text.txt").write_text(text, encoding="utf-8")
    return time.perf_counter() - begin


def record(out: Path, projects: list[Path], python: str, only: list[str], runs: bool, workers: int) -> int:
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    sources = copied(out / "sources")
    cases = [case for project in projects for case in project_cases(project.name, project.resolve())]
    cases += sample_cases(sources)
    if runs:
        cases += run_cases(sources)
    cases = [case for case in cases if not only or any(word in case.name for word in only)]
    # Those that read another's output come last, in their order.
    first = [case for case in cases if not case.after]
    begin = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        seconds = dict(zip(first, pool.map(lambda case: carry_out(case, out, python), first), strict=True))
    for case in cases:
        if case.after:
            seconds[case] = carry_out(case, out, python)
    shutil.rmtree(out / "cache", ignore_errors=True)
    for case in sorted(cases, key=lambda case: -seconds[case])[:5]:
        print(f"{seconds[case]:6.1f} s  {case.name}")
    print(f"{len(cases)} commands, {time.perf_counter() - begin:.0f} s, in {out}")
    return 0


def files_of(folder: Path) -> dict[str, Path]:
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path for name, path in found.items() if not LEFT_OUT.search(name)}


def settled(data: bytes, folder: Path) -> bytes:
    """The bytes of an output without what no two runs share: the name of its folder, seconds and memory."""
    return re.sub(rb"[0-9.]+ s, [0-9]+ MB", b"(costs)", data.replace(str(folder).encode(), b"OUT"))


def compare(before: Path, after: Path, lines: int) -> int:
    one, two = files_of(before), files_of(after)
    cases = {name.partition("/")[0] for name in one} & {name.partition("/")[0] for name in two}
    alone = [name for name in sorted({*one} ^ {*two}) if name.partition("/")[0] in cases]
    for name in alone:
        print(f"{'gone' if name in one else 'new'}: {name}")
    differing = 0
    for name in sorted({*one} & {*two}):
        old, new = (settled(files[name].read_bytes(), root) for files, root in ((one, before), (two, after)))
        if old == new:
            continue
        differing += 1
        print(f"differs: {name}")
        if name.endswith(TEXTS):
            texts = (data.decode("utf-8", "replace").splitlines() for data in (old, new))
            changes = list(difflib.unified_diff(*texts, lineterm="", n=0))[2:]
            for line in changes[:lines]:
                print(f"    {line[:240]}")
    both = len({*one} & {*two})
    print(f"{both} files of {len(cases)} commands compared, {differing} differ, {len(alone)} in one only")
    return 1 if differing or alone else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorded = commands.add_parser("record")
    recorded.add_argument("out", type=Path)
    recorded.add_argument("projects", type=Path, nargs="*")
    recorded.add_argument("--python", default=sys.executable)
    recorded.add_argument("--only", nargs="+", default=[])
    recorded.add_argument("--runs", action="store_true")
    recorded.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    compared = commands.add_parser("compare")
    compared.add_argument("before", type=Path)
    compared.add_argument("after", type=Path)
    compared.add_argument("--lines", type=int, default=40)
    asked = parser.parse_args()
    if asked.command == "compare":
        return compare(asked.before.resolve(), asked.after.resolve(), asked.lines)
    return record(asked.out.resolve(), asked.projects, asked.python, asked.only, asked.runs, asked.workers)


if __name__ == "__main__":
    sys.exit(main())
