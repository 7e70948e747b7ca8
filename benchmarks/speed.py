"""How much CPU a migration costs, against `ast.parse` and against whole-file LibCST with metadata.

    python -m benchmarks.speed [FOLDER] [--repeat 3] [--jobs N] [--libcst-bytes 500000] [--scratch DIR] [--check]

Without FOLDER the tree is the unpacked wheels of tests/wheels.txt (about 6 MB). Three figures, all CPU seconds
(user + system, children included, the smallest of the repeats):

- transplt: `transplt -i FOLDER` less the same command on a one-line project (start-up is not what is measured), its
  byte code compiled before, as pip does when it installs. It writes into --scratch, by default a folder in memory
  where there is one: making thousands of files costs the system up to a second on some disks, as it costs `cp -r`;
- ast.parse of the bytes of every .py file, in one process;
- LibCST: parse and resolve QualifiedNameProvider file by file, on files drawn by a fixed seed until --libcst-bytes,
  scaled to the whole tree by bytes.

--check exits 1 unless transplt costs at most 9 x ast.parse and LibCST at least 9 x transplt: what stands (6.6 and 12.5
on those wheels) with room for noise, so that it grows no further. The aim is 3 x ast.parse.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from scripts.fetch_wheels import cache_folder, fetch_wheels, unpack

ROOT = Path(__file__).resolve().parent.parent
#: A variable that may be set where it is measured, and would have each run compile what it imports.
_ANEW = "PYTHONDONTWRITEBYTECODE"
MOST_AST_PARSES = 9.0
LEAST_LIBCST = 9.0


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
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def migration_seconds(folder: Path, jobs: int | None, repeat: int, where: Path | None) -> float:
    times = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(dir=where) as scratch:
            command = [sys.executable, "-m", "transplt", "-q", "-i", str(folder), "-o", str(Path(scratch) / "out")]
            times.append(child_seconds(command + (["--jobs", str(jobs)] if jobs else []), Path(scratch)))
    return min(times)


def parse_seconds(sources: list[bytes], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        for data in sources:
            try:
                ast.parse(data)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        times.append(time.process_time() - begin)
    return min(times)


def libcst_seconds(sources: list[bytes], limit: int) -> tuple[float, int]:
    """CPU seconds and bytes of whole-file LibCST on files drawn at random, up to `limit` bytes."""
    import libcst
    from libcst.metadata import MetadataWrapper, QualifiedNameProvider

    drawn = random.Random(0).sample(sources, len(sources))
    begin, size = time.process_time(), 0
    for data in drawn:
        if size >= limit:
            break
        try:
            MetadataWrapper(libcst.parse_module(data), unsafe_skip_copy=True).resolve(QualifiedNameProvider)
        except (libcst.ParserSyntaxError, RecursionError):
            continue
        size += len(data)
    return time.process_time() - begin, size


def default_tree() -> Path:
    folder = cache_folder() / "unpacked"
    for wheel in fetch_wheels():
        unpack(wheel, folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=None, help="default: what transplt chooses")
    parser.add_argument("--libcst-bytes", type=int, default=500_000)
    in_memory = Path("/dev/shm")
    parser.add_argument("--scratch", type=Path, default=in_memory if os.access(in_memory, os.W_OK) else None)
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is not met")
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    folder = (args.folder or default_tree()).resolve()
    sources = [path.read_bytes() for path in sorted(folder.rglob("*.py")) if path.is_file()]
    size = sum(map(len, sources))
    print(f"{folder.name}: {len(sources)} files, {size / 1e6:.2f} MB of Python; Python {platform.python_version()}")

    compileall.compile_dir(ROOT / "transplt", quiet=2)
    parsed = parse_seconds(sources, args.repeat)
    with tempfile.TemporaryDirectory() as scratch:
        tiny = Path(scratch) / "tiny"
        tiny.mkdir()
        (tiny / "one.py").write_text("x = 1\n", encoding="ascii")
        start_up = migration_seconds(tiny, args.jobs, args.repeat, args.scratch)
    whole = migration_seconds(folder, args.jobs, args.repeat, args.scratch)
    spent, drawn = libcst_seconds(sources, args.libcst_bytes)
    libcst = spent * size / drawn

    net = whole - start_up
    print(f"ast.parse                   {parsed:8.2f} s")
    print(f"transplt                    {net:8.2f} s   ({whole:.2f} s less {start_up:.2f} s of start-up)")
    print(f"LibCST with QualifiedNames  {libcst:8.2f} s   ({spent:.2f} s on {drawn / 1e6:.2f} MB)")
    print(f"transplt / ast.parse        {net / parsed:8.2f}     (at most {MOST_AST_PARSES:g})")
    print(f"LibCST / transplt           {libcst / net:8.1f}     (at least {LEAST_LIBCST:g})")
    if args.check and (net > MOST_AST_PARSES * parsed or libcst < LEAST_LIBCST * net):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
