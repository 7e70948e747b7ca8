"""Published libraries, migrated whole: what must hold on code that nobody here wrote."""

from __future__ import annotations

import ast
import difflib
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from pyflakes.api import check as pyflakes_check
from pyflakes.reporter import Reporter

from scripts.fetch_wheels import fetch_wheels, unpack
from tests.processes import unmeasured
from transplt.base.settings import Settings
from transplt.engine.engine import ProjectFacts, index_source, migrate_source
from transplt.flow.helper_place import NAME

ROOT = Path(__file__).resolve().parent.parent
#: Libraries that run on an NPU as they are, and one that is written for CUDA: the larger two in the long checks.
PORTABLE = ("timm", "open_clip_torch")
LARGE = ("timm", "speechbrain")

pytestmark = [pytest.mark.network, pytest.mark.xdist_group("wheels")]


def run(source: Path, output: Path, seed: str, jobs: int) -> Path:
    """Migrate `source` with the command line; the output folder."""
    command = [sys.executable, "-m", "transplt", "-i", str(source), "-o", str(output), "--jobs", str(jobs)]
    env = {
        **unmeasured(),  # other tests execute these lines; traced, a whole library takes twice as long
        "PYTHONPATH": str(ROOT),
        "PYTHONHASHSEED": seed,
        "XDG_CACHE_HOME": str(output.parent / "cache" / seed),
    }
    done = subprocess.run(command, cwd=output.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return output / f"{source.name}_msft"


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def python_files(folder: Path) -> dict[str, bytes]:
    return {path: data for path, data in files(folder).items() if path.endswith(".py")}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The unpacked wheels by name."""
    try:
        wheels = fetch_wheels()
    except subprocess.CalledProcessError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the wheels could not be downloaded: {error.stderr.strip().splitlines()[-1:]}")
    folder = tmp_path_factory.mktemp("wheels")
    return {path.name: path for path in (unpack(wheel, folder) for wheel in wheels)}


@pytest.fixture(scope="module")
def outputs() -> dict[str, Path]:
    """Output folders by library: pytest makes a fixture with parameters anew when the tests come in another order."""
    return {}


@pytest.fixture(params=["open_clip_torch", *(pytest.param(each, marks=pytest.mark.slow) for each in LARGE)])
def migrated(
    request: pytest.FixtureRequest,
    sources: dict[str, Path],
    outputs: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, Path]:
    """(input folder, output folder) of one library."""
    source = sources[request.param]
    if request.param not in outputs:
        outputs[request.param] = run(source, tmp_path_factory.mktemp("first") / "out", seed="1", jobs=1)
    return source, outputs[request.param]


def changed(source: Path, output: Path) -> dict[str, tuple[bytes, bytes]]:
    before, after = python_files(source), python_files(output)
    return {path: (data, after[path]) for path, data in before.items() if data != after[path]}


def test_every_file_arrives_and_parses(migrated: tuple[Path, Path]) -> None:
    source, output = migrated
    before, after = python_files(source), python_files(output)
    written = [path for path in after if path.endswith(f"{NAME}.py")]
    assert sorted([*before, *written]) == sorted(after)
    assert len(written) == (source.name not in PORTABLE), "the helper is one file, in the package that calls it"
    for path, data in after.items():
        ast.parse(data, path)


def test_code_that_handles_the_npu_stays_and_the_rest_moves(migrated: tuple[Path, Path]) -> None:
    source, output = migrated
    assert bool(changed(source, output)) == (source.name not in PORTABLE)


def test_only_lines_of_the_change_list_differ(migrated: tuple[Path, Path]) -> None:
    """An independent reading: a line diff against the lines that change_list.csv names."""
    import csv

    source, output = migrated
    listed: dict[str, set[int]] = {}
    inserted: dict[str, set[int]] = {}
    with open(output / "change_list.csv", encoding="utf-8-sig", newline="") as handle:
        for row in csv.DictReader(handle):
            start, end = int(row["Start Line"]), int(row["End Line"])
            listed.setdefault(row["File"], set()).update(range(start, end + 1))
            if row["Operation Type"] == "INSERT":
                inserted.setdefault(row["File"], set()).update((start - 1, start, end + 1))
    for path, (before, after) in changed(source, output).items():
        lines = before.split(b"\n")
        matcher = difflib.SequenceMatcher(None, lines, after.split(b"\n"), autojunk=False)
        for tag, first, last, _, _ in matcher.get_opcodes():
            if tag == "insert":
                while first not in inserted[path] and first < len(lines) and not lines[first].strip():
                    first += 1  # between empty lines a difference may begin at any of them
                assert first in inserted[path], f"{path}: a line inserted after line {first} is not in the list"
            elif tag != "equal":
                missing = set(range(first + 1, last + 1)) - listed[path]
                assert not missing, f"{path}: lines {sorted(missing)} changed but are not in the list"


def test_records_are_the_whole_difference(migrated: tuple[Path, Path]) -> None:
    """Applying the recorded edits to the input gives the output, byte for byte."""
    source, output = migrated
    settings = Settings(helper_file=True)
    inputs = python_files(source)
    project = ProjectFacts.join([index_source(data, path, settings) for path, data in sorted(inputs.items())])
    for path, (before, after) in changed(source, output).items():
        result = migrate_source(before, path, settings, project)
        edits = sorted(
            ((f.span.start, f.span.end, f.edit) for f in result.findings if f.applied and f.edit is not None),
            key=lambda edit: edit[:2],
        )
        rebuilt, position = [], 0
        for start, end, edit in edits:
            assert position <= start, f"{path}: two records for one place"
            assert before[start:end] == edit.before.encode(), path
            rebuilt += [before[position:start], edit.after.encode()]
            position = end
        assert b"".join([*rebuilt, before[position:]]) == after, path


def test_a_second_run_changes_nothing(migrated: tuple[Path, Path], tmp_path: Path) -> None:
    _, output = migrated
    again = run(output, tmp_path / "again", seed="1", jobs=2)
    assert python_files(again) == python_files(output)


@pytest.mark.slow
def test_same_bytes_for_other_seeds_and_jobs(migrated: tuple[Path, Path], tmp_path: Path) -> None:
    """The whole output folder, reports included."""
    source, output = migrated
    first, second = files(output), files(run(source, tmp_path / "other", seed="4711", jobs=2))
    assert sorted(first) == sorted(second)
    different = [path for path in first if first[path] != second[path]]
    assert different == []


def undefined_names(data: bytes) -> set[str]:
    out, err = StringIO(), StringIO()
    pyflakes_check(data.decode("utf-8"), "file", Reporter(out, err))
    return {line.split(":", 3)[-1] for line in out.getvalue().splitlines() if "undefined name" in line}


def test_nothing_new_is_undefined(migrated: tuple[Path, Path]) -> None:
    source, output = migrated
    for path, (before, after) in changed(source, output).items():
        assert undefined_names(after) <= undefined_names(before), path
