"""A tree in, its mirror out: what is copied, linked, left out, and what happens when a worker or a disk gives up."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import transplt.base.disk.mirror
import transplt.engine.files.makefiles
import transplt.project.tree
import transplt.project.worker
from tests import standin_engine
from tests.privileges import as_any_owner
from transplt.base.disk.git_ignores import Patterns
from transplt.base.disk.walk import Entry
from transplt.base.errors import CannotFinish, UsageError
from transplt.base.finding import Status
from transplt.base.text.regular_file import Limit
from transplt.project.options import Options, make_plan
from transplt.project.pool import default_jobs, share_out
from transplt.project.report.migration_record import RunResult
from transplt.project.report.summary import bring_command, summary
from transplt.project.tree import migrate_tree

USES_CUDA = "import torch\nprint(torch.cuda.is_available())\n"
REPORTS = {"change_list.csv", "tokens.csv", "unsupported_op.xlsx", "msFmkTranspltlog.txt", "report.html"}


@pytest.fixture(autouse=True)
def standin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transplt.engine, "engine", standin_engine)


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def run(source: Path, **options: object) -> RunResult:
    return migrate_tree(make_plan(Options(source, **options)))  # type: ignore[arg-type]


def tree(folder: Path) -> dict[str, str]:
    """Path -> hash, link target or `folder`, for everything below."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def only_project(folder: Path) -> set[str]:
    return {name for name in tree(folder) if name not in REPORTS and not name.startswith(".transplt")}


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_tree_is_mirrored_beside_the_input_and_the_input_stays(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"train.py": USES_CUDA, "pkg/m.py": "x = 1\n", "data/a.bin": b"\0\1"})
    (source / "empty").mkdir()
    before = tree(source)
    result = run(source)
    assert result.output == tmp_path / "proj_msft"
    assert tree(source) == before
    assert only_project(result.output) == {"train.py", "pkg", "pkg/m.py", "data", "data/a.bin", "empty"}
    assert (result.output / "train.py").read_text() == USES_CUDA.replace("torch.cuda", "torch.npu")
    assert (result.output / "pkg/m.py").read_text() == "x = 1\n"
    assert set(os.listdir(tmp_path)) == {"proj", "proj_msft"}
    assert set(os.listdir(result.output)) >= REPORTS


def test_a_single_file(tmp_path: Path) -> None:
    source = write(tmp_path, {"train.py": USES_CUDA, "other.py": USES_CUDA})
    result = run(source / "train.py", out=tmp_path / "out")
    assert only_project(tmp_path / "out" / "train_msft") == {"train.py"}
    assert result.name == "train"
    assert len(result.edits) == 1


@pytest.mark.parametrize("jobs", [0, 1, 3])
def test_the_output_is_the_same_for_every_number_of_processes(tmp_path: Path, jobs: int) -> None:
    files = {f"p{i % 3}/m{i}.py": USES_CUDA * i + "# raises" * (i == 7) for i in range(20)}
    source = write(tmp_path / "proj", {**files, "run.sh": "CUDA_VISIBLE_DEVICES=0 python m.py\n"})
    run(source, out=tmp_path / "one", jobs=1)
    run(source, out=tmp_path / "other", jobs=jobs)
    assert tree(tmp_path / "one") == tree(tmp_path / "other")


def test_hash_seeds_do_not_matter(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {f"m{i}.py": USES_CUDA for i in range(5)})
    (source / "link.py").symlink_to("m1.py")
    script = (
        "import sys, transplt.engine.engine\nfrom pathlib import Path\nfrom tests import standin_engine\n"
        "transplt.engine.engine = standin_engine\n"
        "from transplt.project.options import Options, make_plan\nfrom transplt.project.tree import migrate_tree\n"
        "migrate_tree(make_plan(Options(Path(sys.argv[1]), Path(sys.argv[2]))))\n"
    )
    root = Path(__file__).parent.parent
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        subprocess.run([sys.executable, "-c", script, source, tmp_path / seed], env=environment, check=True)
    assert tree(tmp_path / "0") == tree(tmp_path / "1")


def test_a_worker_that_dies_costs_its_file_only(tmp_path: Path) -> None:
    files = {f"m{i}.py": USES_CUDA for i in range(6)}
    source = write(tmp_path / "proj", {**files, "m2.py": "# dies\ntorch.cuda\n", "m4.py": "# dies when indexed\n"})
    for jobs in (1, 2):
        result = run(source, out=tmp_path / f"out{jobs}", jobs=jobs)
        assert [record.path for record in result.failed] == ["m2.py", "m4.py"]
        assert all(record.status is Status.INTERNAL for record in result.failed)
        assert [record.path for record in result.changed] == ["m0.py", "m1.py", "m3.py", "m5.py"]
        assert (result.output / "m2.py").read_text() == "# dies\ntorch.cuda\n"
        (finding,) = result.failed[0].findings
        assert finding.code == "NPU991"
        assert "SIGKILL" in finding.message
        assert result.failed[0].tokens.unknown == 1
        assert result.exit_code == 1
    assert tree(tmp_path / "out1") == tree(tmp_path / "out2")


@pytest.mark.parametrize("jobs", [0, 2])
def test_an_editor_that_fails_costs_its_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    def fails(*_: object) -> NoReturn:
        raise AssertionError("/a/path/that/nobody/should/see")

    monkeypatch.setattr(transplt.engine.files.makefiles, "changes", fails)
    recipe = "all:\n\tCUDA_VISIBLE_DEVICES=0 python a.py # nccl\n"
    source = write(tmp_path / "proj", {"Makefile": recipe, "a.sh": "CUDA_VISIBLE_DEVICES=0 a\n", "a.py": USES_CUDA})
    result = run(source, jobs=jobs)
    assert [record.path for record in result.failed] == ["Makefile"]
    assert [record.path for record in result.changed] == ["a.py", "a.sh"]
    assert (result.output / "Makefile").read_text() == recipe
    (finding,) = result.failed[0].findings
    assert finding.code == "NPU991" and "nobody" not in finding.message
    assert result.failed[0].tokens.unknown == 2
    assert result.exit_code == 1


@pytest.mark.parametrize("executor", ["inline", "processes:2"])
def test_an_executor_gives_the_same_bytes(tmp_path: Path, executor: str) -> None:
    files = {f"p{i % 3}/m{i}.py": USES_CUDA * i + "# raises" * (i == 7) for i in range(20)}
    source = write(tmp_path / "proj", {**files, "run.sh": "CUDA_VISIBLE_DEVICES=0 python m.py\n"})
    run(source, out=tmp_path / "one", jobs=1)
    run(source, out=tmp_path / "other", executor=executor)
    assert tree(tmp_path / "one") == tree(tmp_path / "other")


def test_a_worker_of_an_executor_that_dies_costs_its_file_only(tmp_path: Path) -> None:
    files = {f"m{i}.py": USES_CUDA for i in range(6)}
    source = write(tmp_path / "proj", {**files, "m2.py": "# dies\ntorch.cuda\n", "m4.py": "# dies when indexed\n"})
    result = run(source, out=tmp_path / "out", executor="processes:2")
    assert [record.path for record in result.failed] == ["m2.py", "m4.py"]
    assert [record.path for record in result.changed] == ["m0.py", "m1.py", "m3.py", "m5.py"]
    assert (result.output / "m2.py").read_text() == "# dies\ntorch.cuda\n"
    assert "the worker died" in result.failed[0].findings[0].message


def test_executors_that_there_are_not(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA})
    for wrong in ({"executor": "threads"}, {"executor": "inline", "jobs": 2}):
        with pytest.raises(UsageError):
            run(source, out=tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_an_error_of_ours_costs_its_file_only_and_hides_paths(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA, "b.py": "# raises\ntorch.cuda\n"})
    result = run(source)
    (record,) = result.failed
    assert record.path == "b.py"
    assert "RecursionError at standin_engine.py:" in record.findings[0].message
    assert "/a/path" not in (result.output / "msFmkTranspltlog.txt").read_text()
    assert len(result.changed) == 1


def test_an_error_in_the_facts_of_a_file_is_told(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA, "b.py": f"# raises when indexed\n{USES_CUDA}"})
    for jobs in (0, 2):
        result = run(source, out=tmp_path / f"out{jobs}", jobs=jobs)
        (record,) = result.failed
        assert record.path == "b.py" and "KeyError at standin_engine.py:" in record.findings[0].message
        assert [each.path for each in result.changed] == ["a.py"]


def test_folders_that_tools_make_are_not_mirrored(tmp_path: Path) -> None:
    source = write(
        tmp_path / "proj",
        {
            "a.py": "x = 1\n",
            "__pycache__/a.cpython-311.pyc": b"\0",
            "node_modules/x/index.js": "1",
            ".git/config": "",
            "sub/.git": "gitdir: ../.git/modules/sub\n",
            "sub/m.py": "y = 2\n",
            "myenv/pyvenv.cfg": "home = /usr\n",
            "myenv/lib/site.py": USES_CUDA,
            "venv/notes.py": "this is source, only the folder's name is odd = 1\n",
            "old.pyc": b"\0",
        },
    )
    result = run(source)
    assert only_project(result.output) == {"a.py", "sub", "sub/m.py", "venv", "venv/notes.py"}
    assert [(item.path, item.reason) for item in result.left_out] == [("myenv", "virtual environment")]


def test_gitignore_decides_about_untracked_files_that_are_not_source(tmp_path: Path) -> None:
    source = write(
        tmp_path / "proj",
        {
            ".gitignore": "*.log\ndata/\nweights.*\n!keep.log\n",
            "data/__init__.py": USES_CUDA,
            "data/config.yaml": "a: 1\n",
            "data/tracked.yaml": "b: 1\n",
            "weights.bin": b"1",
            "weights.py": "x = 1\n",
            "run.log": "l",
            "keep.log": "l",
            "sub/.gitignore": "!run.log\n",
            "sub/run.log": "l",
            "cache/.gitignore": "*\n",
            "cache/blob": b"1",
        },
    )
    git(source, "init")
    git(source, "add", "-f", "data/tracked.yaml")
    result = run(source)
    kept = only_project(result.output)
    assert {"data/__init__.py", "data/tracked.yaml", "weights.py", "keep.log", "sub/run.log"} <= kept
    assert {item.path for item in result.left_out} == {
        "cache/.gitignore", "cache/blob", "data/config.yaml", "run.log", "weights.bin",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "path", "verdict"),
    [
        ("a***b", "axb", True),
        ("a***b", "a/b", None),
        ("**/x", "d/e/x", True),
        ("!**/x", "d/e/x", False),
        ("x/**", "x/y/z", True),
        ("a/**/b", "a/c/d/b", True),
        (r"\**", "*a", True),
        (r"\**", "ba", None),
        ("*a*b*c*d", "xaybzcd", True),
        # As a regular expression these take forever.
        ("*" * 60 + "b", "a" * 200, None),
        ("*a" * 8 + "b", "a" * 200, None),
        ("**/a*/" * 6 + "b", "a/" * 60, None),
    ],
)
def test_patterns_as_in_gitignore(pattern: str, path: str, verdict: bool | None) -> None:
    assert Patterns([pattern]).verdict(path) is verdict


def test_a_line_of_gitignore_that_is_no_pattern_costs_that_line(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {".gitignore": "[z-a]\n*.log\n[[:alpha:]]\n", "run.log": "l", "a.py": USES_CUDA})
    git(source, "init")
    git(source, "add", "a.py")
    assert {item.path for item in run(source).left_out} == {"run.log"}


@pytest.mark.parametrize("pattern", ["[z-a]", "x\n[z-a]"])
def test_an_exclude_that_is_no_pattern_is_refused(tmp_path: Path, pattern: str) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA})
    with pytest.raises(UsageError, match="a pattern of --exclude cannot be read: bad character range"):
        run(source, exclude=pattern.split("\n"))
    assert os.listdir(tmp_path) == ["proj"]


def test_without_git_nothing_is_known_to_be_untracked(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {".gitignore": "*.yaml\n", "a.yaml": "device: cuda\n", "a.py": "x = 1\n"})
    assert "a.yaml" in only_project(run(source).output)


def test_a_part_of_a_repository(tmp_path: Path) -> None:
    repository = write(
        tmp_path / "repo",
        {".gitignore": "*.log\n/proj/out/\n", "proj/a.py": "x = 1\n", "proj/run.log": "l", "proj/out/b.txt": "t"},
    )
    write(repository, {"proj/tracked.log": "l"})
    git(repository, "init")
    git(repository, "add", "-f", "proj/tracked.log")
    result = run(repository / "proj")
    assert only_project(result.output) == {"a.py", "out", "tracked.log"}


def test_links(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"pkg/a.py": USES_CUDA, "pkg/sub/b.txt": "t", "__pycache__/x.txt": "c"})
    write(tmp_path, {"outside.py": USES_CUDA})
    links = {
        "inside.py": "pkg/a.py",
        "absolute.py": str(source / "pkg/a.py"),
        "pkg/up.txt": "sub/b.txt",
        "folder": "pkg",
        "outside.py": "../outside.py",
        "broken.py": "nothing.py",
        "loop1": "loop2",
        "loop2": "loop1",
        "pkg/parent": "..",
        "pkg/sub/grand": "..",
        "cached": "__pycache__/x.txt",
    }
    for name, target in links.items():
        (source / name).symlink_to(target)
    result = run(source)
    out = tree(result.output)
    assert {name: out[name] for name in result.links} == {
        "inside.py": "-> pkg/a.py",
        "absolute.py": "-> pkg/a.py",
        "pkg/up.txt": "-> sub/b.txt",
        "folder": "-> pkg",
    }
    assert len(result.python_files) == 1
    reasons = {item.path: item.reason for item in result.left_out}
    assert set(reasons) == {"broken.py", "loop1", "loop2", "outside.py", "pkg/parent", "pkg/sub/grand", "cached"}
    assert reasons["broken.py"] == "broken link"
    assert "loop" in reasons["pkg/sub/grand"]
    assert "cannot be followed" in reasons["loop1"]
    assert reasons["outside.py"] == "link to a place outside the input"
    assert str(tmp_path) not in (result.output / "msFmkTranspltlog.txt").read_text()


def test_modes_are_kept(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"run.sh": "x", "ro.py": USES_CUDA, "secret/x.py": "x = 1\n", "su": b"x"})
    os.chmod(source / "run.sh", 0o755)
    os.chmod(source / "ro.py", 0o444)
    os.chmod(source / "su", 0o4755)
    os.chmod(source / "secret", 0o500)
    out = run(source).output
    modes = {name: stat.S_IMODE(os.stat(out / name).st_mode) for name in ("run.sh", "ro.py", "su", "secret")}
    assert modes == {"run.sh": 0o755, "ro.py": 0o444, "su": 0o755, "secret": 0o500}
    assert "torch.npu" in (out / "ro.py").read_text()
    run(source, force=True)
    assert "torch.npu" in (out / "ro.py").read_text()
    os.chmod(source / "secret", 0o700)
    os.chmod(out / "secret", 0o700)


def test_large_files_are_left_out_and_one_command_brings_them(tmp_path: Path) -> None:
    source = write(tmp_path / "my proj", {"a.py": "x = 1\n", "big.py": b"#" * 11_000_000})
    for name in ("weights/w 1.pt", "-rf.bin"):
        (source / name).parent.mkdir(exist_ok=True)
        with open(source / name, "wb") as file:
            file.truncate(11_000_000)
    result = run(source, jobs=0)
    assert only_project(result.output) == {"a.py", "big.py", "weights"}
    assert [item.path for item in result.large] == ["-rf.bin", "weights/w 1.pt"]
    lines = "\n".join(summary(result))
    assert "left out: 2 files over 10 MB, 22 MB; this copies them:" in lines
    assert bring_command(result) in lines
    subprocess.run(["bash", "-c", bring_command(result)], check=True)
    assert (result.output / "weights/w 1.pt").stat().st_size == 11_000_000
    assert (result.output / "-rf.bin").exists()
    # What the command brought is no edit of the user.
    run(source, force=True, jobs=0)
    everything = run(source, out=tmp_path / "all", copy_all=True, jobs=0)
    assert not everything.large
    assert "weights/w 1.pt" in only_project(everything.output)


def test_a_huge_file_is_copied_in_pieces(tmp_path: Path) -> None:
    data = os.urandom(1000) * 20_000
    source = write(tmp_path / "proj", {"a.py": "x = 1\n", "huge.bin": data})
    os.chmod(source / "huge.bin", 0o444)
    result = run(source, copy_all=True)
    assert (result.output / "huge.bin").read_bytes() == data
    assert stat.S_IMODE(os.stat(result.output / "huge.bin").st_mode) == 0o444
    (record,) = [record for record in result.files if record.path == "huge.bin"]
    assert record.sha256 == hashlib.sha256(data).hexdigest()


def test_excluded_paths_are_left_out_and_said(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": "x = 1\n", "tests/t.py": "y = 1\n", "pkg/old_a.py": "z = 1\n"})
    result = run(source, exclude=("tests/", "old_*.py"))
    assert only_project(result.output) == {"a.py", "pkg"}
    assert [(item.path, item.reason) for item in result.left_out] == [
        ("pkg/old_a.py", "excluded"),
        ("tests", "excluded"),
    ]


def test_per_file_ignores_reach_other_files(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.sh": "nvcc a.cu\n", "docs/b.sh": "nvcc a.cu\n"})
    write(source, {"pyproject.toml": '[tool.transplt.per-file-ignores]\n"docs/*" = ["NPU8"]\n'})
    result = run(source)
    assert [finding.path for finding in result.open_findings] == ["a.sh"]
    assert (result.tokens.manual, result.tokens.ignored) == (1, 1)


def test_specials_are_listed(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": "x = 1\n"})
    os.mkfifo(source / "pipe")
    result = run(source)
    assert [(item.path, item.reason) for item in result.left_out] == [("pipe", "neither a file nor a folder")]


def test_a_second_migration_leaves_the_reports_of_the_first_behind(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA, "b.txt": "t"})
    first = run(source)
    second = run(first.output)
    assert only_project(second.output) == only_project(first.output)
    assert not second.changed
    assert (second.output / "change_list.csv").read_text().count("\n") == 1


def test_a_report_never_takes_the_place_of_a_file_of_the_project(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA, "change_list.csv": "mine\n"})
    result = run(source)
    assert (result.output / "change_list.csv").read_text() == "mine\n"
    assert (result.output / "transplt_change_list.csv").read_text().startswith("File,Start Line")


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"ü.py": USES_CUDA, "中文/数据.py": USES_CUDA})
    raw = os.fsencode(source) + b"/caf\xe9.py"
    with open(raw, "w") as file:
        file.write(USES_CUDA)
    result = run(source)
    assert len(result.changed) == 3
    assert os.path.exists(os.fsencode(result.output) + b"/caf\xe9.py")
    assert "caf\\xe9.py" in (result.output / "change_list.csv").read_text("utf-8")
    assert "caf\\xe9.py" in (result.output / "msFmkTranspltlog.txt").read_text("utf-8")
    run(source, force=True)


@pytest.mark.parametrize("where", ["mirror", "reports"])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA, "b.py": USES_CUDA, "c.txt": "t"})
    calls = {"left": 2 if where == "mirror" else 3}

    def write_all(fd: int, data: bytes) -> None:
        if calls["left"] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        calls["left"] -= 1
        os.write(fd, data)

    monkeypatch.setattr(transplt.base.disk.mirror, "_write_all", write_all)
    with pytest.raises(CannotFinish, match="No space left on device; nothing was left behind") as error:
        run(source, out=tmp_path / "new" / "out", jobs=0)
    assert str(tmp_path / "new" / "out" / "proj_msft") in str(error.value)
    assert os.listdir(tmp_path) == ["proj"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {f"m{i}.py": USES_CUDA * 1000 for i in range(20)})
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", disk], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        with pytest.raises(CannotFinish, match="No space left on device"):
            run(source, out=disk, jobs=2)
        assert os.listdir(disk) == []
    finally:
        subprocess.run(["umount", disk], check=True)


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "proj", {"a.py": USES_CUDA})

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(transplt.project.tree, "write_reports", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(source, out=tmp_path / "out")
    assert os.listdir(tmp_path) == ["proj"]


@pytest.fixture
def ordinary_user(tmp_path: Path) -> Iterator[Path]:
    """A folder, and no privileges while the test runs; root may read and write everything."""
    with as_any_owner():
        yield tmp_path


def test_what_cannot_be_opened_is_listed(ordinary_user: Path) -> None:
    source = write(ordinary_user / "proj", {"a.py": "x = 1\n", "b.py": "x = 1\n", "c/d.py": "x = 1\n"})
    os.chmod(source / "b.py", 0)
    os.chmod(source / "c", 0)
    result = run(source)
    os.chmod(source / "c", 0o700)
    assert [(finding.path, finding.help) for finding in result.unread] == [
        ("b.py", "chmod -R u+rX, or skip it with --exclude"),
        ("c", "chmod -R u+rX, or skip it with --exclude"),
    ]
    assert only_project(result.output) == {"a.py"}


def test_read_only_trees_are_mirrored_and_replaced(ordinary_user: Path) -> None:
    source = write(ordinary_user / "proj", {"pkg/a.py": USES_CUDA, "pkg/sub/b.txt": "t"})
    folders = [source / "pkg/sub", source / "pkg", source]
    for folder in folders:
        os.chmod(folder, 0o555)
    out = run(source).output
    assert stat.S_IMODE(os.stat(out / "pkg").st_mode) == 0o555
    run(source, force=True)
    assert "torch.npu" in (out / "pkg/a.py").read_text()
    assert sorted(os.listdir(ordinary_user)) == ["proj", "proj_msft"]
    for folder in [*folders, out / "pkg/sub", out / "pkg"]:
        os.chmod(folder, 0o755)


def test_a_parent_that_is_read_only(ordinary_user: Path) -> None:
    source = write(ordinary_user / "in" / "proj", {"a.py": USES_CUDA})
    os.chmod(source.parent, 0o555)
    with pytest.raises(CannotFinish, match=r"cannot write into .*/in: Permission denied"):
        run(source)
    with pytest.raises(CannotFinish, match=r"cannot make the folder .*/in/new: Permission denied"):
        run(source, out=source.parent / "new")
    os.chmod(source.parent, 0o755)
    assert os.listdir(source.parent) == ["proj"]


def test_a_file_that_vanishes_or_cannot_be_opened_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "proj", {"a.py": "x = 1\n", "b.py": "x = 1\n", "c.txt": "t"})
    real = transplt.project.worker.read_regular

    def read_regular(path: str, limit: Limit, *, follow: bool) -> bytes:
        if path.endswith(("b.py", "c.txt")):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, limit, follow=follow)

    monkeypatch.setattr(transplt.project.worker, "read_regular", read_regular)
    result = run(source, jobs=0)
    assert [(finding.path, finding.code) for finding in result.unread] == [("b.py", "NPU909"), ("c.txt", "NPU909")]
    assert only_project(result.output) == {"a.py"}
    assert result.exit_code == 1
    assert "failed: b.py, c.txt: this cannot be opened, so it is missing from the output: Permission" in "\n".join(
        summary(result)
    )
    with pytest.raises(UsageError, match=r"cannot read .*b\.py: Permission denied"):
        run(source / "b.py", out=tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "proj", {"a.py": "x = 1\n", "locked/b.py": "x = 1\n"})
    real = os.scandir

    def scandir(path: str | Path) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr("transplt.base.disk.walk.os.scandir", scandir)
    result = run(source)
    assert [finding.path for finding in result.unread] == ["locked"]
    assert only_project(result.output) == {"a.py"}


def test_progress_counts_to_the_end(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": "x = 1\n", "b.py": "x = 1\n", "c.txt": "t"})
    seen: list[tuple[int, int]] = []
    migrate_tree(make_plan(Options(source)), lambda done, total: seen.append((done, total)))
    assert seen == [(i, 5) for i in range(1, 6)]


def test_the_manifest_says_which_lines_hold_an_edit(tmp_path: Path) -> None:
    source = write(tmp_path / "proj", {"a.py": "import torch\n\ntorch.cuda.x\n1\ntorch.cuda.y\n", "b.py": "1\n"})
    table = json.loads((run(source).output / ".transplt/manifest.json").read_text())
    assert table["files"]["a.py"]["edited_lines"] == [3, 5]
    assert "edited_lines" not in table["files"]["b.py"]
    assert str(tmp_path) not in json.dumps(table)


def test_small_trees_get_one_process_and_work_is_shared_by_size() -> None:
    small = [Entry("a.py", 10, 0o644), Entry("b.txt", 10_000_000, 0o644)]
    assert default_jobs(small) <= 1
    entries = [Entry(f"{i}.py", i * 1000, 0o644) for i in range(10)]
    shares = share_out(entries, 2)
    assert sorted(entry.path for share in shares for entry in share) == sorted(entry.path for entry in entries)
    loads = [sum(entry.size for entry in share) for share in shares]
    assert abs(loads[0] - loads[1]) <= 9000
    assert shares == share_out(list(reversed(entries)), 2)


_NAMES = st.sampled_from(["a.py", "b.py", "c.sh", "d.txt", "e", ".hidden", "\u00e9.md", "sp ace"])
_FOLDERS = st.sampled_from(["", "x", "x/y", "z", ".cfg", "__pycache__", "node_modules/m"])
_CONTENTS = st.sampled_from(
    [b"", b"torch.cuda\n", b"\0\1", b"# raises\n", b"cannot parse\r\n", b"\xff\xfe", b"cuda nccl"]
)


@given(st.dictionaries(st.tuples(_FOLDERS, _NAMES), _CONTENTS, min_size=1, max_size=12), st.integers(0, 2))
@hypothesis_settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_tree_is_mirrored_whole(tmp_path: Path, files: dict[tuple[str, str], bytes], jobs: int) -> None:
    """Each file that a person wrote is in the output under its name, with its bytes unless it is Python."""
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        source = write(
            Path(folder) / "proj", {f"{below}/{name}".lstrip("/"): data for (below, name), data in files.items()}
        )
        kept = {
            f"{below}/{name}".lstrip("/"): data
            for (below, name), data in files.items()
            if below not in ("__pycache__", "node_modules/m")
        }
        before = tree(source)
        if not kept:
            with pytest.raises(UsageError, match="is empty"):
                run(source, jobs=jobs)
            return
        result = run(source, jobs=jobs)
        assert tree(source) == before
        assert {record.path for record in result.files} == set(kept)
        for path, data in kept.items():
            expected = data.replace(b"torch.cuda", b"torch.npu") if path.endswith(".py") else data
            assert (result.output / path).read_bytes() == expected
        tokens = result.tokens
        assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
