"""The cache of `transplt check`: a second look does no work, and says what a first one would say."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checking.conftest import TRAIN, Call
from transplt.base.disk import cache_folder as place
from transplt.base.disk.cache_folder import Cache, NoCache, cache_folder
from transplt.base.errors import UsageError
from transplt.base.finding import Finding, Level, Span
from transplt.base.settings import Settings
from transplt.base.text.json_records import from_json, to_json
from transplt.engine.engine import index_source
from transplt.flow.facts import ModuleFacts
from transplt.project import versions
from transplt.project.checking.check_run import check_paths
from transplt.project.checking.codes import switched_off
from transplt.project.options import Options
from transplt.project.report.check_results import CheckResult
from transplt.project.worker import FileWorker

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
RULE = {"rules": {"FuncNameModifyRule": [{"old_name": "lib.cuda_sync", "new_name": "lib.npu_sync"}]}}
#: What each file of a small project may hold; None: it is not there. Some variants tell the others something else.
VARIANTS: dict[str, tuple[str | None, ...]] = {
    "train.py": (
        TRAIN,
        TRAIN + "# a comment with cuda\n",
        "from utils import DEVICE, load\n\nmodel = load(DEVICE)\nlib.cuda_sync()  # transplt: ignore\n",
        "import lib\nfrom utils import pick\n\nlib.cuda_sync()\nx = pick(True).cuda()\n",
        "import torch\nfrom utils import WHERE\n\nx = torch.zeros(1, device=WHERE)\n",
        "from utils import WHERE\n\nprint({WHERE: 1})\n",
        "from utils import Box\n\nBox().cuda()\nx.cuda()\n",
        "def f(:\n",
        "\n",
    ),
    "utils.py": (
        'import torch\n\nDEVICE = "cuda"\n\n\ndef load(where):\n    return torch.ones(1).to(where)\n',
        'DEVICE = "cuda"\nNAMES = {"cuda": 1}\n\n\ndef load(where):\n    return where\n',
        'import torch\n\n\ndef pick(use, device="cuda"):\n    return torch.zeros(1, device=device if use else "cpu")\n',
        'WHERE = "cuda"\n',
        "class Box:\n    def cuda(self):\n        return self\n",
        None,
    ),
    "conf/a.yaml": ("device: cuda\nbackend: nccl\n", "device: cpu\n", None),
    "run.sh": ("export CUDA_VISIBLE_DEVICES=0\npython train.py --device cuda\n", "python train.py\n", None),
    "run_npu.sh": (None, "export ASCEND_RT_VISIBLE_DEVICES=0\n"),
    "notes.md": ("Run `python train.py --device cuda`.\n", None),
    "requirements.txt": ("torch==2.1.0\n", "torch\nflash-attn\n", None),
    "pyproject.toml": ("", '[tool.transplt]\nstyle = "portable"\n', '[tool.transplt]\ndocs = true\nsimilar = true\n'),
}  # fmt: skip
CHOICES: dict[str, tuple[Any, ...]] = {
    "torch_version": (None, "2.1", "2.9"),
    "style": (None, "npu", "portable"),
    "docs": (None, True),
    "texts": (None, True),
    "similar": (None, True),
    "rules": ((), ("rules.json",)),
    "isolated": (False, True),
    "exclude": ((), ("conf/",)),
    "ignored": ((), ("NPU2",)),
    "paths": (".", "train.py", "conf"),
}


class Project:
    """A folder, and how it is looked at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.chosen = {name: values[0] for name, values in CHOICES.items()}
        for name, values in VARIANTS.items():
            self.change(name, values[0])

    def change(self, name: str, value: Any) -> None:
        if name in CHOICES:
            self.chosen[name] = value
            return
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        if value is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(value)

    def look(self, cache: Cache | None) -> CheckResult | str:
        """What a check finds; why it looks at nothing where settings do not go together."""
        chosen = dict(self.chosen)
        paths, ignored = [self.folder / chosen.pop("paths")], chosen.pop("ignored")
        if chosen["rules"]:
            (self.folder / "rules.json").write_text(json.dumps(RULE))
            chosen["rules"] = (self.folder / "rules.json",)
        if not paths[0].exists():
            paths = [self.folder]
        try:
            return check_paths(paths, Options(jobs=0, **chosen), ignores=switched_off((), ignored), cache=cache)
        except UsageError as error:
            return str(error)


CHANGES = st.sampled_from([(name, value) for group in (VARIANTS, CHOICES) for name in group for value in group[name]])


def never_stale(changes: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        cache = Cache(Path(scratch, "cache"))
        cache.folder.mkdir()
        Path(scratch, "project").mkdir()
        project = Project(Path(os.path.realpath(scratch), "project"))
        project.look(cache)
        for name, value in changes:
            project.change(name, value)
            assert project.look(cache) == project.look(None), name
            assert project.look(cache) == project.look(None), name


@settings(max_examples=6)
@given(st.lists(CHANGES, min_size=2, max_size=4))
def test_one_change_at_a_time_never_gives_a_stale_answer(changes: list[tuple[str, Any]]) -> None:
    never_stale(changes)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(CHANGES, min_size=1, max_size=12))
def test_many_changes_never_give_a_stale_answer(changes: list[tuple[str, Any]]) -> None:
    never_stale(changes)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    (tmp_path / "cache").mkdir()
    return Cache(tmp_path / "cache")


@pytest.fixture
def small(tmp_path: Path) -> Project:
    (tmp_path / "small").mkdir()
    return Project(tmp_path / "small")


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files on which work was done, as `index train.py`."""
    done: list[str] = []

    def told(name: str) -> None:
        before: Callable[..., Any] = getattr(FileWorker, name)

        def work(self: Any, entry: Any) -> Any:
            done.append(f"{name} {entry.path}")
            return before(self, entry)

        monkeypatch.setattr(FileWorker, name, work)

    told("index")
    told("finish")
    return done


def test_what_is_unchanged_is_not_worked_on(small: Project, cache: Cache, worked: list[str]) -> None:
    first = small.look(cache)
    assert "index train.py" in worked and "finish conf/a.yaml" in worked
    worked.clear()
    assert small.look(cache) == first
    assert worked == []


def test_a_file_that_tells_the_same_is_the_only_one_looked_at(small: Project, cache: Cache, worked: list[str]) -> None:
    small.look(cache)
    worked.clear()
    small.change("train.py", TRAIN + "# a word\n")
    small.look(cache)
    assert worked == ["index train.py", "finish train.py"]


def test_a_file_that_tells_something_else_concerns_all(small: Project, cache: Cache, worked: list[str]) -> None:
    small.look(cache)
    worked.clear()
    small.change("utils.py", VARIANTS["utils.py"][1])
    small.look(cache)
    assert [each for each in worked if each.startswith("index")] == ["index utils.py"]
    assert "finish train.py" in worked and "finish conf/a.yaml" in worked


def test_what_one_file_does_with_it_decides_about_a_text_of_another(small: Project, cache: Cache) -> None:
    small.change("utils.py", 'WHERE = "cuda"\n')
    small.change("train.py", "import torch\nfrom utils import WHERE\n\nx = torch.zeros(1, device=WHERE)\n")
    first = small.look(cache)
    small.change("train.py", "from utils import WHERE\n\nprint({WHERE: 1})\n")
    second = small.look(cache)
    assert second == small.look(None)
    assert codes_of(first, "utils.py") == ["NPU201"] != codes_of(second, "utils.py")


def codes_of(result: CheckResult | str, name: str) -> list[str]:
    assert isinstance(result, CheckResult)
    return [item.finding.code for item in result.items if item.finding.path.endswith(name)]


def test_a_twin_beside_a_file_concerns_it(small: Project, cache: Cache, worked: list[str]) -> None:
    small.look(cache)
    worked.clear()
    small.change("run_npu.sh", VARIANTS["run_npu.sh"][1])
    small.look(cache)
    assert worked == ["index run_npu.sh", "finish run.sh", "finish run_npu.sh"]


def test_files_that_are_named_are_remembered_one_by_one(small: Project, cache: Cache, worked: list[str]) -> None:
    for name in ("train.py", "utils.py", "train.py", "utils.py"):
        small.change("paths", name)
        small.look(cache)
    assert worked == ["finish train.py", "finish utils.py"]


def test_fix_diff_and_since_do_without(small: Project, cache: Cache) -> None:
    check_paths([small.folder], Options(jobs=0, style="npu"), fix=True, cache=cache)
    check_paths([small.folder], Options(jobs=0), diff=True, cache=cache)
    assert cache.size() == (0, 0)


@pytest.mark.parametrize("name", ["index_source", "migrate_source"])
def test_a_defect_is_not_remembered(
    small: Project, cache: Cache, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sound = small.look(None)
    with monkeypatch.context() as patched:
        def fail(*_: object) -> None:
            raise MemoryError

        patched.setattr(f"transplt.engine.engine.{name}", fail)
        small.look(cache)
    assert small.look(cache) == sound


#: What somebody else may have written, with the right digest over it.
SPOILS: dict[str, Callable[[str], str]] = {
    "cut off": lambda text: text[: len(text) // 2],
    "no object": lambda text: "[1, 2]",
    "deep": lambda text: "[" * 100_000,
    "a number for a text": lambda text: json.dumps({path: [1] * 5 for path in json.loads(text)}),
    "facts are none": lambda text: _each(text, lambda row: [row[0], row[1], "[[[]]]", "", ""]),
    "results are none": lambda text: _each(text, lambda row: [*row[:4], '{"path": 1}']),
    "a result of another file": lambda text: _each(text, lambda row: [*row[:4], row[4].replace("train.py", "../x")]),
    "a level that there is not": lambda text: _each(text, lambda row: [*row[:4], row[4].replace('"safe"', '"sure"')]),
}


def _each(text: str, change: Callable[[list[str]], list[str]]) -> str:
    return json.dumps({path: change(row) for path, row in json.loads(text).items()})


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_what_others_wrote_into_the_cache_is_ignored(
    small: Project, cache: Cache, spoil: Callable[[str], str]
) -> None:
    first = small.look(cache)
    [path] = cache.folder.glob("*.json")
    text = cache.read(path.stem)
    assert text is not None
    cache.write(path.stem, spoil(text))
    assert small.look(cache) == first
    assert small.look(cache) == first


def test_a_changed_byte_is_seen(small: Project, cache: Cache) -> None:
    first = small.look(cache)
    [path] = cache.folder.glob("*.json")
    path.write_bytes(path.read_bytes().replace(b"CUDA_VISIBLE_DEVICES", b"CUDA_VISIBLE_DEVICEZ"))
    assert cache.read(path.stem) is None
    assert small.look(cache) == first


@pytest.mark.skipif(sys.platform == "win32", reason="links and FIFOs")
def test_links_and_fifos_are_not_read(cache: Cache, tmp_path: Path) -> None:
    cache.write("0" * 32, "text")
    os.replace(cache.folder / f"{'0' * 32}.json", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", cache.folder / f"{'0' * 32}.json")
    os.mkfifo(cache.folder / f"{'1' * 32}.json")
    assert cache.read("0" * 32) is None and cache.read("1" * 32) is None


def test_the_oldest_are_dropped(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "MOST_BYTES", 3500)
    for number in range(3):
        cache.write(f"{number:032x}", "x" * 1000)
        os.utime(cache.folder / f"{number:032x}.json", (number + 1, number + 1))
    assert cache.read(f"{0:032x}") == "x" * 1000  # so it is no longer the oldest
    cache.write(f"{3:032x}", "x" * 1000)
    assert [cache.read(f"{number:032x}") is not None for number in range(4)] == [True, False, True, True]
    cache.write(f"{4:032x}", "x" * 4000)  # more than there is room for
    assert cache.size()[0] == 3


def test_what_a_killed_process_left_goes_in_time(cache: Cache) -> None:
    for name, at in (("abcdefgh", 1), ("ijklmnop", None)):
        left = cache.folder / f"{'0' * 32}.json.{name}"
        left.write_text("half")
        if at is not None:
            os.utime(left, (at, at))
    cache.write("0" * 32, "text")
    assert [path.suffix for path in sorted(cache.folder.glob("0*"))] == [".json", ".ijklmnop"]


def test_clear_takes_what_is_ours(cache: Cache) -> None:
    (cache.folder / "mine.txt").write_text("mine")
    cache.write("0" * 32, "text")
    assert cache.clear()[0] == 1
    assert {path.name for path in cache.folder.iterdir()} == {"mine.txt", "CACHEDIR.TAG", ".gitignore"}
    (cache.folder / "mine.txt").unlink()
    assert cache.clear() == (0, 0) and not cache.folder.exists()


def test_writers_at_the_same_time_leave_whole_texts(cache: Cache) -> None:
    texts, seen = [letter * 50_000 for letter in "abcd"], set()

    def work(text: str) -> None:
        for _ in range(20):
            cache.write("0" * 32, text)
            seen.add(cache.read("0" * 32))

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= set(texts)


def test_where_the_cache_lies(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert cache_folder(home, "linux") == tmp_path / ".cache/transplt"
    assert cache_folder({**home, "XDG_CACHE_HOME": "/fast"}, "linux") == Path("/fast/transplt")
    assert cache_folder({**home, "XDG_CACHE_HOME": "here"}, "linux") == tmp_path / ".cache/transplt"
    assert cache_folder(home, "darwin") == tmp_path / "Library/Caches/transplt"
    assert cache_folder({"LOCALAPPDATA": str(tmp_path)}, "win32") == tmp_path / "transplt/Cache"
    for environment, platform in (({"HOME": "/nowhere"}, "linux"), ({}, "win32")):
        with pytest.raises(NoCache):
            cache_folder(environment, platform)


@pytest.mark.skipif(sys.platform == "win32", reason="permission bits")
def test_a_folder_for_all_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Cache.of_user().folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "transplt").chmod(0o777)
    with pytest.raises(NoCache, match="others may write"):
        Cache.of_user()


def test_versions_are_those_of_the_first_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("a", "Libcst-1.5.0.dist-info"), ("b", "libcst-1.4.0.dist-info"), ("b", "tree_sitter-1.dist-info")
    for folder, name in names:
        (tmp_path / folder / name).mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), str(tmp_path / "a"), str(tmp_path / "b")])
    assert versions._versions_of(("libcst", "tree-sitter", "tree")) == {"libcst": "1.5.0", "tree-sitter": "1"}


def test_our_own_code_counts_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = versions.versions_digest.__wrapped__
    (tmp_path / "__init__.py").write_text("x = 1\n")
    monkeypatch.setattr("transplt.__file__", str(tmp_path / "__init__.py"))
    first = digest()
    assert re.fullmatch("[0-9a-f]{32}", first) and digest() == first
    (tmp_path / "__init__.py").write_text("x = 2\n")
    assert digest() != first
    monkeypatch.setattr(sys, "path", [])
    assert digest() == ""


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/**/*.py"))[::8], ids=str)
def test_facts_come_back_as_they_were(path: Path) -> None:
    facts = index_source(path.read_bytes(), path.name, Settings())
    assert from_json(ModuleFacts, to_json(facts)) == facts


def test_what_a_message_says_to_programs_comes_back() -> None:
    span, details = Span(1, 1, 1, 2, 0, 1), (("library", "warp"), ("needs", "a, b"))
    said = Finding("a.py", span, "NPU273", Level.MANUAL, "m", details=details)
    assert from_json(Finding, to_json(said)) == said



def test_the_command_caches_unless_told_not_to(
    project: Path, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRANSPLT_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    without = call("check", "--jobs", "0", "--no-cache")
    assert not (tmp_path / "c").exists()
    first = call("check", "--jobs", "0")
    assert call("cache", "size")[1].endswith(" MB in 1 file\n")
    assert call("check", "--jobs", "0") == first == without
    assert call("cache", "dir")[1] == f"{tmp_path / 'c' / 'transplt'}\n"
    assert call("cache", "clear")[1].endswith(" in 1 file\n")
    assert not (tmp_path / "c" / "transplt").exists()


def test_what_runs_need_goes_when_asked(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "c"))
    own = tmp_path / "c" / "transplt"
    (own / "torch_npu" / "2.13.0").mkdir(parents=True)
    (own / "torch_npu" / "2.13.0" / "wheel").write_bytes(b"0" * 300_000)
    (own / "somebodys").mkdir()
    (tmp_path / "elsewhere" / "kept").mkdir(parents=True)
    (own / "environments").symlink_to(tmp_path / "elsewhere")
    assert call("cache", "size")[1] == f"0.0 MB in 0 files\n0.3 MB in 1 file in {own / 'torch_npu'}\n"
    assert call("cache", "clear")[1] == "removed 0.0 MB in 0 files\n" and (own / "torch_npu").exists()
    assert call("cache", "clear", "--all")[1] == f"removed {own / 'torch_npu'}\nremoved 0.0 MB in 0 files\n"
    assert sorted(each.name for each in own.iterdir()) == ["environments", "somebodys"]
    assert (tmp_path / "elsewhere" / "kept").exists()


def test_no_home_is_said_only_when_asked(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRANSPLT_NO_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/nowhere")
    assert "cache" not in call("check", "--jobs", "0")[2]
    assert "nothing is cached: there is no home folder\n" in call("check", "--jobs", "0", "-v")[2]
    assert call("cache", "size") == (2, "", "Error: nothing is cached: there is no home folder\n")
