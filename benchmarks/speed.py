"""How much CPU a migration costs, in parts of `ast.parse`, beside other programs that read all files of a tree.

    python -m benchmarks.speed [FOLDER...] [--repeat 5] [--jobs N] [--libcst-bytes 500000] [--scratch DIR]
                               [--tools DIR] [--check] [--write]

Without FOLDER the tree is the unpacked wheels of tests/wheels.txt (about 10 MB). CPU seconds (user + system, children
included), the median of the rounds; in each round all are run, one after the other:

- ast.parse of the bytes of every .py file, in one process;
- transplt: `transplt -i FOLDER`, its byte code compiled before, as pip does when it installs. It writes into --scratch,
  by default a folder in memory where there is one: making thousands of files costs the system up to a second on some
  disks, as it costs `cp -r`;
- ruff (`check --select F,UP`, no cache), pyupgrade, django-upgrade and Fixit (`lint`, its own rules) on a copy, where
  they are installed: in --tools (the `bin` of a virtual environment), beside this Python, or on the PATH;
- LibCST's parse, file by file, on files drawn by a fixed seed until --libcst-bytes, scaled to the tree by bytes.

Of each program the same command on a project of one line is taken off: start-up is not what is measured. What is left
is given in parts of `ast.parse`, which a faster machine does not change.

--write puts the table into docs/reference/performance.md, whose second half is written by hand and stays. --check exits
1 where a migration costs more than MOST_AST_PARSES, or LibCST's parse with qualified names less than LEAST_LIBCST
migrations: what stands, with room for noise.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from scripts.fetch_wheels import cache_folder, fetch_wheels, unpack

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "performance.md"
#: A variable that may be set where it is measured, and would have each run compile what it imports.
_ANEW = "PYTHONDONTWRITEBYTECODE"
MOST_AST_PARSES = 12.5
LEAST_LIBCST = 7.0
#: From here on the page is written by hand, and stays.
_BY_HAND = "## Where it goes"
#: Programs of others, with what they are told; they edit the copy of a tree that stands behind it.
TOOLS = {
    "ruff": ("check", "--no-cache", "--quiet", "--exit-zero", "--isolated", "--select", "F,UP"),
    "pyupgrade": ("--py39-plus", "--exit-zero-even-if-changed"),
    "django-upgrade": ("--target-version", "4.2", "--exit-zero-even-if-changed"),
    "fixit": ("--quiet", "lint"),
}
#: Those that take files, and no folder.
_BY_FILES = ("pyupgrade", "django-upgrade")
_TRANSPLT, _LIBCST, _PARSE = "transplt", "LibCST's parse", "ast.parse"


def child_seconds(command: list[str], cwd: Path) -> float:
    """CPU seconds of `command` and of all its children that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**{name: value for name, value in os.environ.items() if name != _ANEW}, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3):  # 3: Fixit could not lint some file
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def migration_seconds(folder: Path, jobs: int | None, where: Path | None) -> float:
    with tempfile.TemporaryDirectory(dir=where) as scratch:
        command = [sys.executable, "-m", "transplt", "-q", "-i", str(folder), "-o", str(Path(scratch) / "out")]
        return child_seconds(command + (["--jobs", str(jobs)] if jobs else []), Path(scratch))


def tool_seconds(program: str, name: str, folder: Path, where: Path | None) -> float:
    """What a program of others takes for a copy of a tree, which it edits."""
    with tempfile.TemporaryDirectory(dir=where) as scratch:
        copy = Path(scratch) / "copy"
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        files = sorted(str(path) for path in copy.rglob("*.py") if path.is_file() and not path.is_symlink())
        return child_seconds([program, *TOOLS[name], *(files if name in _BY_FILES else [str(copy)])], Path(scratch))


def parse_seconds(sources: list[bytes]) -> float:
    begin = time.process_time()
    for data in sources:
        try:
            ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return time.process_time() - begin


def libcst_seconds(sources: list[bytes], limit: int, *, names: bool) -> float:
    """CPU seconds of LibCST for all files, by those drawn up to `limit` bytes; `names`: with qualified names."""
    import libcst
    from libcst.metadata import MetadataWrapper, QualifiedNameProvider

    drawn = random.Random(0).sample(sources, len(sources))
    begin, size = time.process_time(), 0
    for data in drawn:
        if size >= limit:
            break
        try:
            module = libcst.parse_module(data)
            if names:
                MetadataWrapper(module, unsafe_skip_copy=True).resolve(QualifiedNameProvider)
        except (libcst.ParserSyntaxError, RecursionError):
            continue
        size += len(data)
    return (time.process_time() - begin) * sum(map(len, sources)) / max(size, 1)


def installed(tools: Path | None) -> dict[str, str]:
    """The programs of others that are there, by name."""
    places = [str(each) for each in (tools, Path(sys.executable).parent) if each is not None]
    path = os.pathsep.join([*places, os.environ.get("PATH", "")])
    return {name: found for name in TOOLS if (found := shutil.which(name, path=path)) is not None}


@dataclass(slots=True)
class Tree:
    """What was measured of a tree: the rounds of each program, CPU seconds without its start-up."""

    name: str
    files: int
    bytes: int
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def median(self, program: str) -> float:
        return statistics.median(self.rounds[program])

    def ratio(self, program: str) -> float:
        """In parts of `ast.parse`."""
        return self.median(program) / self.median(_PARSE)


def measured(folder: Path, programs: dict[str, str], args: argparse.Namespace) -> tuple[Tree, list[bytes]]:
    """A tree, and the sources in it."""
    paths = sorted(path for path in folder.rglob("*.py") if path.is_file() and not path.is_symlink())
    sources = [path.read_bytes() for path in paths if ".git" not in path.relative_to(folder).parts]
    tree = Tree(folder.name, len(sources), sum(map(len, sources)))
    ways: dict[str, Callable[[Path], float]] = {_TRANSPLT: lambda at: migration_seconds(at, args.jobs, args.scratch)}
    for name, program in programs.items():
        ways[name] = lambda at, name=name, program=program: tool_seconds(program, name, at, args.scratch)  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as scratch:
        tiny = Path(scratch) / "tiny"
        tiny.mkdir()
        (tiny / "one.py").write_text("x = 1\n", encoding="ascii")
        for _ in range(args.repeat):
            tree.rounds.setdefault(_PARSE, []).append(parse_seconds(sources))
            for name, way in ways.items():
                start_up = way(tiny)
                tree.rounds.setdefault(name, []).append(way(folder) - start_up)
            tree.rounds.setdefault(_LIBCST, []).append(libcst_seconds(sources, args.libcst_bytes, names=False))
    return tree, sources


def default_tree() -> Path:
    folder = cache_folder() / "unpacked"
    for wheel in fetch_wheels():
        unpack(wheel, folder)
    return folder


def versions(programs: dict[str, str]) -> str:
    """The programs of others with their versions, as a list for a sentence."""
    found = []
    for name, program in programs.items():
        python = Path(program).resolve().parent / "python"
        asked = [program, "--version"] if name == "ruff" else [str(python), "-m", "pip", "show", name]
        said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
        at = said.index("Version:") if "Version:" in said else 0
        found.append(f"{name} {said[at + 1]}" if len(said) > at + 1 else name)
    return ", ".join(found)


def page(trees: list[Tree], programs: dict[str, str], repeat: int) -> str:
    """The text of docs/reference/performance.md; what is measured otherwise stays as it is."""
    import libcst

    names = [_TRANSPLT, *programs, _LIBCST]
    heads = ("tree", "files", "MB of Python", *names)
    rows = [" | ".join(heads), "|".join(["---", *["---:"] * (len(heads) - 1)])]
    for tree in trees:
        ratios = (f"{tree.ratio(name):.1f}" for name in names)
        rows.append(" | ".join((tree.name, str(tree.files), f"{tree.bytes / 1e6:.1f}", *ratios)))
    table = "\n".join(f"| {row} |" if "---" not in row else f"|{row}|" for row in rows)
    libcst_version = getattr(libcst, "LIBCST_VERSION", "")
    ran = ", ".join(filter(None, (versions(programs), f"LibCST {libcst_version}".strip())))
    return f"""# How fast it is

What a whole migration costs, in parts of what Python's own parser (`ast.parse`) takes for all `.py` files of the tree:
a faster machine does not change that. Reports, files that are not Python and the output are in it; start-up is not.

{table}

CPU time of all processes, the median of {repeat} rounds, Python {platform.python_version()}; {ran}. In each round all
programs ran one after the other, each on a tree of its own, start-up taken off; `transplt` has its byte code compiled,
as after `pip install`. ruff ran as `ruff check --select F,UP`, pyupgrade with `--py39-plus`, django-upgrade for Django
4.2, Fixit with `fixit lint`: they read each file by itself, and know nothing of what one file tells another.

`python -m benchmarks.speed FOLDER... --write` wrote this page. Without folders it measures the wheels of
`tests/wheels.txt`, for which its check fails from {MOST_AST_PARSES:g} times `ast.parse` on.

{_BY_HAND}{PAGE.read_text(encoding="utf-8").partition(_BY_HAND)[2]}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=None, help="default: what transplt chooses")
    parser.add_argument("--libcst-bytes", type=int, default=500_000)
    in_memory = Path("/dev/shm")
    parser.add_argument("--scratch", type=Path, default=in_memory if os.access(in_memory, os.W_OK) else None)
    parser.add_argument("--tools", type=Path, help="the folder of ruff, pyupgrade and django-upgrade")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is not met")
    parser.add_argument("--write", action="store_true", help="write docs/reference/performance.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    compileall.compile_dir(ROOT / "transplt", quiet=2)
    programs = installed(args.tools)
    for name in TOOLS.keys() - programs:
        print(f"{name} is not installed: left out")
    trees, broken = [], False
    for folder in args.folders or [default_tree()]:
        tree, sources = measured(folder.resolve(), programs, args)
        trees.append(tree)
        size = f"{tree.bytes / 1e6:.2f} MB of Python"
        print(f"{tree.name}: {tree.files} files, {size}; Python {platform.python_version()}")
        for name in tree.rounds:
            print(f"  {name:<16} {tree.median(name):8.2f} s {tree.ratio(name):8.2f} x ast.parse", flush=True)
        if args.check:
            with_names = libcst_seconds(sources, args.libcst_bytes, names=True) / tree.median(_TRANSPLT)
            print(f"  LibCST with qualified names / transplt {with_names:8.1f}     (at least {LEAST_LIBCST:g})")
            broken = broken or tree.ratio(_TRANSPLT) > MOST_AST_PARSES or with_names < LEAST_LIBCST
    if args.write:
        PAGE.write_text(page(trees, programs, args.repeat), encoding="utf-8")
    if broken:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
