"""Breaks the program in one place at a time, and counts how often its tests notice.

    python -m benchmarks.mutants [--seed 1] [--number 300] [--jobs 2] [--only PREFIX] [--contexts FILE] [--json FILE]

A mutant is one change of a branch that rewrites or refuses, in the rooms that do: a guard that is never taken, an
operand of `and` or `or` less, a comparison or an answer turned around, an edit or finding that is not made. Its own
tests are those that run its line, the ones that run the fewest lines first, at most --most of them; a mutant whose
tests fail, or take longer than --patience seconds, is caught. Which test runs which line is measured first (some
minutes), or read from --contexts, the data file of such a run:

    COVERAGE_FILE=$PWD/.coverage python -m pytest -n 2 -m "not slow and not torch and not extra" \\
        --ignore=tests/test_tree.py --cov --cov-context=test --cov-report= --cov-fail-under=0
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

import coverage

from benchmarks.speed import ROOT

#: The rooms that rewrite, refuse and take back.
PLACES = ("edits/**/*.py", "fixers/**/*.py", "engine/*.py")
#: What tests of the file itself need not run: they take long, or more than the README's first command installs.
MARKS = "not slow and not torch and not extra"
_TURNED = {
    ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """Bytes [start, end) of a file become `new`."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}"


class _Places:
    """Byte offsets of the nodes of one file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.starts = [0]
        for line in data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def extent(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.extent(node)
        return self.data[start:end].decode()


def mutants_of(path: str, data: bytes) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its nodes. Their line is that of the statement or header that runs."""
    places = _Places(data)
    inside: list[tuple[ast.AST, int]] = [(ast.parse(data), 1)]
    for node, above in inside:
        line = node.lineno if isinstance(node, (ast.stmt, ast.ExceptHandler)) else above
        inside += [(child, line) for child in ast.iter_child_nodes(node)]
        for kind, at, new in _changes(node, places):
            yield Mutant(path, line, kind, *places.extent(at), new)


def _changes(node: ast.AST, places: _Places) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Return, ast.Continue, ast.Raise, ast.Break)):
        yield "a guard that is never taken", node.test, "False"
    if isinstance(node, ast.BoolOp):
        for operand in node.values:
            rest = [f"({places.text(each)})" for each in node.values if each is not operand]
            word = " and " if isinstance(node.op, ast.And) else " or "
            yield f"without `{places.text(operand)[:60]}`", node, f"({word.join(rest)})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = places.text(node.left), places.text(node.comparators[0])
        word = _TURNED[type(node.ops[0])]
        yield f"`{word}` in `{places.text(node)[:60]}`", node, f"({left} {word} {right})"
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
        yield "the other answer", node, f"return {not node.value.value}"
    if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom)):
        new = "yield from ()" if isinstance(node.value, (ast.Yield, ast.YieldFrom)) else "pass"
        yield f"without `{places.text(node)[:60]}`".replace("\n", " "), node, new


def tests_by_line(file: Path) -> dict[str, dict[int, list[str]]]:
    """By path and line the tests that run it, the ones that run the fewest lines of all first."""
    data = coverage.CoverageData(str(file))
    data.read()
    found: dict[str, dict[int, list[str]]] = {}
    size: Counter[str] = Counter()
    for name in data.measured_files():
        path = Path(name)
        relative = str(path.relative_to(ROOT)) if path.is_absolute() else name
        lines: dict[int, set[str]] = defaultdict(set)
        for line, contexts in data.contexts_by_lineno(name).items():
            for context in contexts:
                test, _, phase = context.rpartition("|")
                if phase in ("run", "setup"):
                    lines[line].add(test)
                    size[test] += 1
        found[relative] = {line: list(tests) for line, tests in lines.items()}
    for by_line in found.values():
        for tests in by_line.values():
            tests.sort(key=lambda test: (size[test], test))
    return found


def measure(folder: Path) -> Path:
    """Run the tests, and note which lines each of them runs."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-m", MARKS, "--cov"]
    command += ["--cov-context=test", "--cov-report=", "--cov-fail-under=0", "-p", "no:cacheprovider"]
    command += ["--ignore=tests/test_tree.py"]  # folders, as a user who may not write down what the test ran
    file = folder / ".coverage"
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "COVERAGE_FILE": str(file)})
    return file


def is_caught(folder: Path, mutant: Mutant, tests: list[str], patience: float) -> bool:
    """Whether some of the tests fail, in a copy of the checkout with the mutant in it."""
    path = folder / mutant.path
    whole = path.read_bytes()
    path.write_bytes(whole[: mutant.start] + mutant.new.encode() + whole[mutant.end :])
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
            cwd=folder, capture_output=True, timeout=patience, check=False,
            env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        return ended.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_bytes(whole)


def main() -> int:
    """Prints a line for each mutant that no test caught, and the share that is caught."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--most", type=int, default=250)
    parser.add_argument("--patience", type=float, default=240)
    parser.add_argument("--only", default="transplt/", help="paths that begin so")
    parser.add_argument("--contexts", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    files = [path for place in PLACES for path in sorted((ROOT / "transplt").glob(place))]
    paths = [str(path.relative_to(ROOT)) for path in files]
    every = [each for path in paths for each in mutants_of(path, (ROOT / path).read_bytes())]
    possible = [each for each in every if each.path.startswith(options.only)]
    chosen = random.Random(options.seed).sample(possible, min(options.number, len(possible)))
    print(f"seed {options.seed}: {len(chosen)} of {len(possible)} mutants", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies: Queue[Path] = Queue()
        for number in range(options.jobs):
            copy = Path(scratch) / str(number)
            tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
            for name in filter(None, tracked.stdout.split("\0")):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
            copies.put(copy)
        contexts = tests_by_line(options.contexts or measure(ROOT))

        def judge(mutant: Mutant) -> tuple[Mutant, str]:
            tests = contexts.get(mutant.path, {}).get(mutant.line, [])[: options.most]
            if not tests:
                return mutant, "no test runs it"
            copy = copies.get()
            try:
                return mutant, "caught" if is_caught(copy, mutant, tests, options.patience) else "not caught"
            finally:
                copies.put(copy)

        results = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for mutant, verdict in pool.map(judge, chosen):
                results.append((mutant, verdict))
                if verdict != "caught":
                    print(f"{verdict}: {mutant}", flush=True)
    verdicts = Counter(verdict for _, verdict in results)
    print(f"caught {verdicts['caught']} of {len(results)} ({verdicts['caught'] / len(results):.1%}): {dict(verdicts)}")
    if options.json:
        records = [{**asdict(mutant), "verdict": verdict} for mutant, verdict in results]
        options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
