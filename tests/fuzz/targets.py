"""Everything that reads what others wrote, each with the input it gets and what has to hold of it.

A new reader gets one decorated function here: `@target("name", strategy)` over a function of bytes, which raises
whatever it raises when something does not hold. The corpus, the tests and the command know it from then on.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fuzz import seeds
from tests.fuzz.held import (
    PATH,
    compiles,
    hold_findings,
    hold_message,
    hold_notebook,
    hold_other,
    hold_python,
    photograph,
    refused,
)  # fmt: skip
from tests.fuzz.mutations import mutated, mutated_json
from tests.fuzz.programs import programs
from transplt.base.disk.walk import SKIPPED_FOLDERS
from transplt.base.errors import UsageError
from transplt.base.finding import Status
from transplt.base.settings import TORCH_VERSIONS, Settings

Holds = Callable[[bytes], None]


@dataclass(frozen=True)
class Target:
    """`holds` is called with bytes out of `inputs`; both of a name that is a folder of the corpus."""

    name: str
    inputs: st.SearchStrategy[bytes]
    holds: Holds

    def __str__(self) -> str:
        return self.name


TARGETS: dict[str, Target] = {}


def target(name: str, inputs: st.SearchStrategy[bytes]) -> Callable[[Holds], Holds]:
    """Register a function of bytes as a target."""

    def register(holds: Holds) -> Holds:
        assert name not in TARGETS
        TARGETS[name] = Target(name, inputs, holds)
        return holds

    return register


@contextmanager
def folder(**files: bytes) -> Iterator[Path]:
    """A folder of its own with files (a name's `__` is a slash, its `_dot_` a dot)."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        top = Path(name) / "project"
        top.mkdir()
        for key, data in files.items():
            path = top / key.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield top


# Python files.

_PYTHON = st.one_of(
    mutated(seeds.python_files(), nodes=True),
    mutated(seeds.PIECES, nodes=True, most=6),
    mutated(programs(), nodes=True),
    st.binary(max_size=200),
)


@target("python", _PYTHON)
def python(data: bytes) -> None:
    hold_python(data, Settings())


@target("python-options", _PYTHON)
def python_with_options(data: bytes) -> None:
    hold_python(data, Settings("2.1", similar=True, unsafe_fixes=True, annotate=True, specify_device=True))
    hold_python(data, Settings("2.8", style="portable", unsafe_fixes=True))


@target("python-analysis", _PYTHON)
def python_analysed(data: bytes) -> None:
    hold_python(data, Settings(analysis=True))


@target("python-themes", _PYTHON)
def python_with_themes(data: bytes) -> None:
    from transplt.fixers.tunings.table import parse_tunings

    hold_python(data, Settings(entry=PATH))
    hold_python(data, Settings(amp="native", tune=parse_tunings("all", TORCH_VERSIONS[-1])))
    hold_python(data, Settings(amp="apex", amp_flag=True))


@target("comments", st.one_of(mutated(seeds.COMMENTED), mutated(seeds.COMMENTED, nodes=True)))
def ignore_comments(data: bytes) -> None:
    hold_python(data, Settings())
    hold_other(data, "run.sh")


@target("cookies", st.one_of(seeds.cookies(), mutated(seeds.cookies(), most=2)))
def cookies(data: bytes) -> None:
    hold_python(data, Settings())


@target("library", st.one_of(seeds.texts(), mutated(seeds.PIECES), seeds.cookies()))
def library(data: bytes) -> None:
    """The call of other programs, with bytes and with a text, which may hold lone surrogates."""
    import transplt

    for source in (data, data.decode("utf-8", "surrogatepass" if _surrogates(data) else "replace")):
        result = transplt.migrate_source(source)
        hold_findings(result.findings, max(len(data) * 4, 4))
        as_bytes = isinstance(source, bytes)
        if result.status is Status.OK and as_bytes and compiles(source):
            assert compiles(result.data)
        if as_bytes and refused(source):
            assert result.status is not Status.OK, "Python cannot parse it, and nothing is said"


def _surrogates(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


# What is not Python.


@target("notebooks", st.one_of(mutated(seeds.NOTEBOOKS), mutated_json(seeds.NOTEBOOK_VALUES)))
def notebooks(data: bytes) -> None:
    hold_other(data, "train.ipynb")
    hold_notebook(data)


@target("yaml", mutated(seeds.YAML))
def yaml(data: bytes) -> None:
    for path in ("conf/train.yaml", "environment.yml", "docker-compose.yml"):
        hold_other(data, path)


@target("configurations", mutated(seeds.CONFIGURATIONS))
def configurations(data: bytes) -> None:
    """Every format, whatever its bytes are: what is edited still reads, with the same keys."""
    for path in ("a.yaml", "a.json", "a.toml", "a.ini", "a.properties", ".env"):
        hold_other(data, path)


@target("shell", mutated(seeds.SHELL))
def shell(data: bytes) -> None:
    for path in ("run.sh", "run", "Dockerfile", "Makefile", ".env"):
        hold_other(data, path)


@target("recipes", mutated(seeds.RECIPES))
def recipes(data: bytes) -> None:
    names = ("Dockerfile", "compose.yml", ".github/workflows/a.yml", "k8s/pod.yaml", "Makefile", "devcontainer.json")
    for path in names:
        hold_other(data, path)


@target("other-files", st.one_of(mutated(seeds.OTHER), st.binary(max_size=300)))
def other_files(data: bytes) -> None:
    for path in ("op.cu", "README.md", "config.json", "stub.pyi", "x.j2", "a/requirements/gpu.in", "poetry.lock"):
        hold_other(data, path)


#: Besides those that pins are read from.
_REQUIREMENTS = (
    "requirements.txt", "constraints2.in", "requirements/gpu.in", "Dockerfile", "docker/Dockerfile.gpu", "x.Dockerfile",
    "environment-gpu.yml", "pixi.lock", "conda-lock.yml", "install.sh",
)  # fmt: skip


@target("requirements", mutated(seeds.REQUIREMENTS))
def requirements(data: bytes) -> None:
    """Which torch a project asks for, and which of all packages; a requirement stands where its name does."""
    from transplt.engine.files.dependency_files import requirements_of
    from transplt.engine.files.kind import kind_of
    from transplt.project.pins import LOCK_FILES, PROJECT_FILES, asked_versions
    from transplt.project.torch_version import choose_target
    from transplt.rules.packages import packages

    known = [name for row in packages() for name in row["pip"]]
    text = data.decode("utf-8", "surrogateescape")
    for name in (*_REQUIREMENTS, *PROJECT_FILES, *LOCK_FILES):
        with folder(**{name.replace("/", "__").replace(".", "_dot_"): data}) as top:
            chosen = choose_target(top, None)
            asked = asked_versions(top, known)
        assert chosen.version in TORCH_VERSIONS
        assert all(version and version.isprintable() and " " not in version for _, version in asked), asked
        for each in requirements_of(text, name, kind_of(name, data)):
            at = text[each.start : each.end]
            assert at == each.name or each.start == each.end == 0, (name, each, at)
        hold_other(data, name)


# What users write for us.


@target(
    "rules", st.one_of(mutated_json(seeds.rule_files()), mutated([json.dumps(each).encode() for each in seeds.RULES]))
)
def rules(data: bytes) -> None:
    """A file of rules is refused with a sentence for each mistake, or it migrates a program as well as any other."""
    from transplt.rules.rule_file import RuleFileError, load_user_rules, problems

    with folder(mine_dot_json=data) as top:
        name = str(top / "mine.json")
        try:
            loaded = load_user_rules([name])
        except RuleFileError as error:
            hold_message(error)
            loaded = ()
    if loaded:
        assert not list(problems("mine.json", loaded[0][1]))
        settings = Settings(user_rules=(("mine.json", loaded[0][1]),), similar=True)
        for program in seeds.FOR_RULES:
            result = hold_rewritten(program, settings)
            assert result is Status.OK
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    found = list(problems("mine.json", text))
    assert found, "refused as a file, and nothing is wrong with its text"
    for each in found:
        hold_message(each)
        assert each.line >= 0


def hold_rewritten(program: bytes, settings: Settings) -> Status:
    """A program under rules of a user, which may contradict our own: the output compiles."""
    from transplt.engine.engine import index_source, migrate_source
    from transplt.flow.facts import ProjectFacts

    project = ProjectFacts.join([index_source(program, PATH, settings)])
    result = migrate_source(program, PATH, settings, project)
    assert compiles(result.data), "the output does not compile"
    assert all(finding.code != "NPU991" for finding in result.findings), result.findings
    return result.status


@target("settings", mutated(seeds.SETTINGS))
def settings_of_a_project(data: bytes) -> None:
    """`[tool.transplt]` is refused with a sentence, or the run has a plan and the walk ends."""
    from transplt.base.disk.walk import walk
    from transplt.project.options import Options, make_plan

    rule_file = json.dumps(seeds.RULES[0]).encode()
    program = seeds.PIECES[0]
    with folder(
        pyproject_dot_toml=data, mine_dot_json=rule_file, src__a_dot_py=program, src__b_dot_sh=b"nccl\n"
    ) as top:
        before = photograph(top.parent)
        try:
            plan = make_plan(Options(top))
            walk(top, above=(plan.settings.base, plan.config.exclude))
        except UsageError as error:
            hold_message(error)
        else:
            plan.settings.ignored_codes("src/a.py")
            hold_rewritten(program, plan.settings)
        assert photograph(top.parent) == before


@target("baseline", mutated_json(seeds.BASELINES))
def baseline(data: bytes) -> None:
    from transplt.project.checking.baseline import read_baseline

    with folder(known_dot_json=data) as top:
        try:
            assert all(isinstance(each, str) for each in read_baseline(top / "known.json"))
        except UsageError as error:
            hold_message(error)


@target("manifest", mutated_json(seeds.MANIFESTS))
def manifest(data: bytes) -> None:
    """What an output folder says of itself: known again, or not ours."""
    from transplt.base.disk.manifest import edited_since, read_manifest

    with folder(_dot_transplt__manifest_dot_json=data, a_dot_py=b"x\n") as top:
        found = read_manifest(top)
        if found is not None:
            edited_since(top, found)


# What git wrote.


def _walked(top: Path, **options: Any) -> None:
    """Every file is there in the end: mirrored or left out with a reason."""
    from transplt.base.disk.walk import walk

    found = walk(top, **options)
    known = (
        {entry.path for entry in found.files}
        | {item.path for item in found.left_out}
        | {name for name, _ in found.unreadable}
    )
    for path in top.rglob("*"):
        inner = path.relative_to(top).as_posix()
        if path.is_file() and inner.split("/")[0] not in SKIPPED_FOLDERS:
            assert any(inner == each or inner.startswith(each + "/") for each in known), inner


@target("git-index", mutated(seeds.INDEXES))
def git_index(data: bytes) -> None:
    from transplt.base.disk.git_index import read_tracked

    with folder(
        _dot_git__index=data, _dot_gitignore=b"*.txt\n", a_dot_txt=b"x", a_dot_py=b"x", deep__b_dot_txt=b"x"
    ) as top:
        tracked = read_tracked(top)
        assert tracked is None or tracked.has_folder("")
        read_tracked(top / "deep")
        _walked(top)


@target("git-ignore", mutated(seeds.IGNORES))
def git_ignore(data: bytes) -> None:
    names = {
        "_dot_gitignore": data,
        "deep___dot_gitignore": data,
        "_dot_git__info__exclude": data,
        "a" * 60 + "_dot_txt": b"x",
    }
    with folder(**names, deep__er__b_dot_txt=b"x", c_dot_txt=b"x", _dot_git__index=seeds.INDEXES[0]) as top:
        _walked(top)
        try:
            _walked(top, exclude=data.decode("utf-8", "replace").splitlines())
        except UsageError as error:
            hold_message(error)


@target("git-folder", mutated(seeds.GIT_FOLDERS))
def git_folder(data: bytes) -> None:
    """`.git` as a file, and the configuration of a repository."""
    with folder(_dot_git=data, a_dot_py=b"x") as top:
        _walked(top)
    with folder(
        _dot_git__config=data, _dot_git__commondir=data, _dot_git__index=seeds.INDEXES[0], a_dot_txt=b"x"
    ) as top:
        _walked(top)


# Profiles.


@target("profiles", mutated(seeds.PROFILES, most=6))
def profiles(data: bytes) -> None:
    """Whatever a profiler's file is, by its first bytes: it is read and told as text, JSON and page, or refused."""
    from transplt.precision.diagnose.profiles.page import render
    from transplt.precision.diagnose.profiles.reading import read_profiles
    from transplt.precision.diagnose.profiles.report import profiles_json, profiles_text
    from transplt.precision.diagnose.profiles.tables import UnreadableProfile

    name = "t.json" if data[:1] in (b"[", b"{") else "t.log" if b"aclop" in data or b"-----" in data else "t.csv"
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        (Path(folder) / name).write_bytes(data)
        try:
            reading = read_profiles(str(Path(folder) / name), None)
        except UnreadableProfile as error:
            assert str(error) and str(error).isprintable()
            return
        told = profiles_text(reading, None)
        assert all(character == "\n" or character.isprintable() for character in told)
        json.dumps(profiles_json(reading, None), allow_nan=False)
        assert b"\x1b" not in render(reading, None)


# What trainings write.


@target("losses", mutated(seeds.LOSSES, most=6))
def losses(data: bytes) -> None:
    """A log as text, JSON lines or TensorBoard's events: curves, or one sentence; it is the same as itself."""
    from transplt.precision.loss.line import Words
    from transplt.precision.loss.log import read_log
    from transplt.precision.loss.pairing import paired
    from transplt.precision.loss.verdict import Limits, judged

    with folder(log=data) as top:
        try:
            logs = [read_log(str(top / "log"), Words()) for _ in range(2)]
            found = judged(paired(*logs), Limits())
        except UsageError as error:
            hold_message(error)
            return
        assert found.first is None and found.not_finite is None


@target("device-dumps", mutated(seeds.DEVICE_DUMPS, most=3))
def device_dumps(data: bytes) -> None:
    """A dump of a device: tensors that the file has room for, or one sentence."""
    from transplt.precision.convert.device_dump import device_tensors

    with folder(dump=data) as top:
        try:
            held = sum(tensor.size for tensor, _ in device_tensors(str(top / "dump")))
        except UsageError as error:
            hold_message(error)
            return
        assert held <= len(data)


def hold_command(command: str, *arguments: object) -> None:
    """A command over files of somebody else: an exit code of its own, or one sentence; no NUL and no escape is told."""
    from importlib import import_module

    from click.testing import CliRunner

    from transplt.base.errors import CannotFinish
    from transplt.faces.cli.command import LAZY_COMMANDS

    module, _, name = LAZY_COMMANDS[command][0].partition(":")
    called = getattr(import_module(module), name)
    result = CliRunner().invoke(called, [str(each) for each in arguments], standalone_mode=False)
    if isinstance(result.exception, (UsageError, CannotFinish)):
        hold_message(result.exception)
    elif result.exception is not None:
        raise result.exception
    assert not {"\0", "\x1b"} & set(result.output), result.output


@target("dumps", st.one_of(mutated(seeds.DUMPS, most=6), mutated_json([json.loads(each) for each in seeds.DUMPS[:3]])))
def dumps(data: bytes) -> None:
    """A file of a dump beside others that are whole: the dump is compared, shown and watched, or refused."""
    whole = dict(zip(("dump", "stack", "construct"), seeds.DUMPS, strict=False))
    name = "stack" if b"File" in data else "construct" if data.startswith(b'{"Functional') else "dump"
    files = {f"npu__step0__rank0__{key}_dot_json": data if key == name else text for key, text in whole.items()}
    bench = {f"bench__step0__rank0__{key}_dot_json": text for key, text in whole.items()}
    with folder(**files, **bench) as top:
        hold_command("compare", top / "npu", top / "bench", "-o", top / "out")
        hold_command("show", top / "npu", "Functional.relu.0")
        hold_command("anomalies", top / "npu")
    with folder(a_dot_pkl=data, b_dot_pkl=seeds.DUMPS[3], n__a_dot_npy=data, m__a_dot_npy=seeds.DUMPS[4]) as top:
        hold_command("compare", top / "a.pkl", top / "b.pkl")
        hold_command("compare", top / "n", top / "m")
        hold_command("convert", top / "n" / "a.npy", "-o", top / "out")


@target("logs", mutated(seeds.LOGS, most=6))
def logs(data: bytes) -> None:
    """A log of a training that stopped, as text and as JSON, with the sources that it names."""
    with folder(a_dot_log=data, b_dot_log=seeds.LOGS[0], src__train_dot_py=b"import torch\nx = 1\nx.npu()\n") as top:
        hold_command("diagnose", top / "a.log", top / "b.log", "--project", top / "src")
        hold_command("diagnose", top / "a.log", "--format=json")


# A whole run.


@target("trees", seeds.trees())
def trees(data: bytes) -> None:
    """JSON of names and contents (as latin-1): a migration and a check of the tree. Other JSON is no input."""
    from transplt.project.checking.check_run import check_paths
    from transplt.project.options import Options, make_plan
    from transplt.project.tree import migrate_tree

    try:
        files = json.loads(data)
    except ValueError:
        return
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        top = Path(name) / "in"
        for path, content in files.items():
            full = top / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_bytes(content.encode("latin-1"))
        before = photograph(Path(name))
        try:
            check_paths([top], Options(jobs=0))
            assert photograph(Path(name)) == before, "a check has written something"
            result = migrate_tree(make_plan(Options(top, Path(name) / "out", jobs=0, page=True)))
        except UsageError as error:
            hold_message(error)
            assert photograph(Path(name)) == before, "something was written"
            return
        after = {path: what for path, what in photograph(Path(name)).items() if path.split("/")[0] != "out"}
        assert after == before, "something was written outside of the output"
        known = {record.path for record in result.files} | {item.path for item in (*result.left_out, *result.large)}
        for path in files:
            if SKIPPED_FOLDERS.isdisjoint(path.split("/")):
                assert any(path == each or path.startswith(each + "/") for each in known), path
        for record in result.files:
            assert record.status is not Status.INTERNAL, record
            hold_findings(record.findings, 2**40)
