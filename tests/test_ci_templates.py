"""The GitHub Action and the GitLab job: their commands, run as the services run them, on small repositories."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.checking.conftest import TRAIN, commit_all, git
from transplt import __version__

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / ".github" / "actions" / "check" / "action.yml"
JUDGE = ROOT / ".github" / "actions" / "judge" / "action.yml"
JOB = ROOT / ".gitlab" / "check.yml"
NEW = "\n\ntorch.cuda.synchronize()\n"
#: Lines with findings (the import goes to line 2), and those that the pull request answers for.
ALL, CHANGED = [2, 4, 8, 11], [2, 11]


def read(path: Path) -> Any:
    return YAML(typ="safe").load(path.read_text("utf-8"))


def steps() -> dict[str, Any]:
    return {step["name"]: step for step in read(ACTION)["runs"]["steps"]}


def given(step: dict[str, Any], inputs: dict[str, str], base: str) -> dict[str, str]:
    """The environment of a step: its expressions are inputs and the base of a pull request."""
    defaults = {name: each.get("default", "") for name, each in read(ACTION)["inputs"].items()}
    values = {f"inputs.{name}": value for name, value in {**defaults, **inputs}.items()}
    values["github.event.pull_request.base.sha"] = base
    return {
        name: re.sub(r"\$\{\{ (\S+) \}\}", lambda match: values[match[1]], text) for name, text in step["env"].items()
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose second commit, a pull request, adds a use of CUDA to a file that has others."""
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / "setup.py").write_text("")
    (folder / "train.py").write_text(TRAIN)
    commit_all(folder)
    (folder / "train.py").write_text(TRAIN + NEW)
    commit_all(folder)
    return folder


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """What the services set, with a transplt that is installed already."""
    home = tmp_path / "runner" / "transplt-check"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "transplt").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m transplt "$@"\n')
    (home / "bin" / "transplt").chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "CI_"))},
        "PYTHONPATH": str(ROOT),
        "TRANSPLT_NO_CACHE": "1",
        "RUNNER_TEMP": str(home.parent),
        "GITHUB_ACTION_PATH": str(ACTION.parent),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "home": str(home),
    }


def act(project: Path, runner: dict[str, str], base: str = "", **inputs: str) -> subprocess.CompletedProcess[str]:
    """The second step of the action."""
    step = steps()["Check"]
    environment = {**runner, **given(step, {name.replace("_", "-"): value for name, value in inputs.items()}, base)}
    return bash(step["run"], project, environment)


def bash(text: str, project: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def lines(done: subprocess.CompletedProcess[str]) -> list[int]:
    return [int(number) for number in re.findall(r"^::error .*?file=train\.py,line=(\d+)", done.stdout, re.MULTILINE)]


def test_no_input_becomes_part_of_a_script() -> None:
    for step in (*read(ACTION)["runs"]["steps"], *read(JUDGE)["runs"]["steps"]):
        assert step["shell"] == "bash" and "${{" not in step["run"]
    assert "$[[" not in JOB.read_text("utf-8")


def test_every_input_is_used_and_each_that_is_used_is_there() -> None:
    for action in (ACTION, JUDGE):
        assert set(re.findall(r"inputs\.([\w-]+)", action.read_text("utf-8"))) == set(read(action)["inputs"])


def judged(project: Path, runner: dict[str, str], base: str = "", **inputs: str) -> subprocess.CompletedProcess[str]:
    """The second step of the action that judges, with a transplt that prints its arguments."""
    step = read(JUDGE)["runs"]["steps"][1]
    values = {f"inputs.{name}": each.get("default", "") for name, each in read(JUDGE)["inputs"].items()}
    values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
    values["github.event.pull_request.base.sha"] = base
    environment = {name: re.sub(r"\$\{\{ (\S+) \}\}", lambda match: values[match[1]], text)
                   for name, text in step["env"].items()}  # fmt: skip
    return bash(step["run"], project, {**runner, **environment})


@pytest.mark.parametrize(
    ("base", "inputs", "told"),
    [
        ("", {"original": "v1"}, "--format text -- v1 ."),
        ("abc", {}, "--format text -- abc ."),
        ("abc", {"original": "v1", "port": "npu", "allow": "model\nloss\n"},
         "--format text --allow=model --allow=loss -- v1 npu"),
        ("abc", {"format": "sarif", "output_file": "j.sarif", "args": "--prove\nmain.py"},
         "--format sarif --output-file j.sarif --prove main.py -- abc ."),
    ],
)  # fmt: skip
def test_the_action_that_judges(
    base: str, inputs: dict[str, str], told: str, project: Path, runner: dict[str, str]
) -> None:
    home = Path(runner["home"]).with_name("transplt-judge")
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "transplt").write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    (home / "bin" / "transplt").chmod(0o755)
    assert judged(project, runner, base, **inputs).stdout.split() == ["judge", *told.split()]
    assert judged(project, runner).returncode == 2


def test_what_the_document_shows_is_there() -> None:
    """The examples: names of inputs, of the job, of its variables, paths, and the version."""
    text = (ROOT / "docs" / "check.md").read_text("utf-8")
    examples = [YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    examples = [each for each in examples if isinstance(each, dict)]  # a list is a part of a pre-commit file
    used = [step for each in examples for job in each.get("jobs", {}).values() for step in job["steps"]]
    ours = [step for step in used if "/transplt/" in step["uses"]]
    assert len(ours) == 2
    for step in ours:
        path, _, version = step["uses"].partition("@")
        assert (ROOT / path.split("/", 2)[2] / "action.yml").is_file() and version == f"v{__version__}"
        assert set(step["with"]) <= set(read(ACTION)["inputs"])
    (included,) = [each for each in examples if "include" in each]
    assert ROOT / included["include"][0]["file"].lstrip("/") == JOB
    assert set(included["transplt"]["variables"]) <= set(read(JOB)["transplt"]["variables"])
    table = re.findall(r"^\| `([\w-]+)` \|", text.partition("\n## GitHub\n")[2].partition("\n## ")[0], re.MULTILINE)
    assert table == [*read(ACTION)["inputs"]]
    assert set(re.findall(r"transplt@v([\d.]+\d)", text + JOB.read_text("utf-8"))) == {__version__}


def test_the_job_of_the_page_on_portable_repositories(project: Path, runner: dict[str, str]) -> None:
    text = (ROOT / "docs" / "device_agnostic.md").read_text("utf-8")
    blocks = [YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    (job,) = [each["jobs"]["portable"] for each in blocks if "jobs" in each]
    (step,) = [each for each in job["steps"] if "/transplt/" in each["uses"]]
    assert step["uses"].endswith(f"/.github/actions/check@v{__version__}")
    done = act(project, runner, git(project, "rev-parse", "HEAD~1").strip(), **step["with"])
    assert done.returncode == 1 and lines(done) == [11], done.stderr
    assert "torch.cuda.synchronize -> device_module.synchronize" in done.stdout


def test_what_the_page_on_agents_shows_is_there() -> None:
    text = (ROOT / "docs" / "agents.md").read_text("utf-8")
    workflow, hooks = (YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    ours = workflow["jobs"]["judge"]["steps"][1]
    assert ours["uses"].endswith(f"/.github/actions/judge@v{__version__}") and set(ours["with"]) <= set(
        read(JUDGE)["inputs"]
    )
    assert re.findall(r"^\| `([\w-]+)` \| ", text.partition("## In CI")[2], re.MULTILINE) == [*read(JUDGE)["inputs"]]
    (hook,) = hooks["repos"][0]["hooks"]
    assert hook["id"] in [each["id"] for each in read(ROOT / ".pre-commit-hooks.yaml")]
    assert hooks["repos"][0]["rev"] == f"v{__version__}"


@pytest.mark.extra
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    job = "home=\n" + "".join(read(JOB)["transplt"]["script"])
    scripts = [("bash", step["run"]) for step in steps().values()] + [("sh", job)]
    for shell, text in scripts:
        (tmp_path / "script").write_text(text)
        done = subprocess.run(
            ["shellcheck", "-s", shell, "-e", "SC2154", tmp_path / "script"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def test_the_action_annotates_all_findings_and_fails(project: Path, runner: dict[str, str]) -> None:
    done = act(project, runner)
    assert (done.returncode, lines(done)) == (1, ALL), done.stderr
    assert Path(runner["GITHUB_OUTPUT"]).read_text() == "exit-code=1\n"


def test_in_a_pull_request_only_changed_lines_count(project: Path, runner: dict[str, str]) -> None:
    base = git(project, "rev-parse", "HEAD~1").strip()
    assert lines(act(project, runner, base)) == CHANGED
    assert lines(act(project, runner, base, since="all")) == ALL
    assert lines(act(project, runner, base, since="HEAD")) == []


def test_the_action_writes_sarif_and_goes_on_when_told_to(project: Path, runner: dict[str, str]) -> None:
    done = act(project, runner, format="sarif", fail_on_findings="false")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads((project / "transplt.sarif").read_text())["runs"]
    assert run["tool"]["driver"]["name"] == "transplt" and len(run["results"]) == len(ALL)
    assert Path(runner["GITHUB_OUTPUT"]).read_text() == "exit-code=1\n"


def test_what_cannot_be_done_fails_whatever_was_told(project: Path, runner: dict[str, str]) -> None:
    done = act(project, runner, base="0" * 40, fail_on_findings="false")
    assert done.returncode == 2 and "0" * 40 in done.stderr


@pytest.fixture
def echo(runner: dict[str, str]) -> dict[str, str]:
    """In place of transplt a program that prints its arguments, one a line."""
    program = Path(runner["home"]) / "bin" / "transplt"
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    return runner


def test_inputs_are_arguments_and_never_run(project: Path, echo: dict[str, str]) -> None:
    evil = "\"; touch made; $(touch made) `touch made` '*' #"
    done = act(project, echo, paths=evil, args=evil, since=evil, format="sarif", sarif_file=evil)
    told = ["check", "--format", "sarif", "--output-file", evil, f"--since={evil}", evil, "--", evil]
    assert done.stdout.splitlines() == told
    done = run_job(project, echo, TRANSPLT_PATHS=evil, TRANSPLT_ARGS=evil, CI_MERGE_REQUEST_DIFF_BASE_SHA=evil)
    assert done.stdout.splitlines()[-5:] == ["check", f"--since={evil}", evil, "--", evil]
    assert not (project / "made").exists()


def test_several_paths_and_arguments_one_a_line(project: Path, echo: dict[str, str]) -> None:
    done = act(project, echo, paths="a folder\n--fix\n", args="--exclude\n*.txt\n")
    assert done.stdout.splitlines()[3:] == ["--exclude", "*.txt", "--", "a folder", "--fix"]
    done = run_job(project, echo, TRANSPLT_PATHS="a folder\n--fix", TRANSPLT_ARGS="--exclude\n*.txt")
    assert done.stdout.splitlines()[-5:] == ["--exclude", "*.txt", "--", "a folder", "--fix"]


def run_job(project: Path, runner: dict[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
    """The second part of the job, with the variables that it declares."""
    job = read(JOB)["transplt"]
    shell = [shutil.which("dash") or "sh", "-e", "-c", job["script"][1]]
    environment = {**runner, **job["variables"], **variables}
    return subprocess.run(shell, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_the_job_reports_all_and_fails_for_what_is_new(project: Path, runner: dict[str, str]) -> None:
    report = project / read(JOB)["transplt"]["artifacts"]["reports"]["codequality"]
    done = run_job(project, runner)
    assert done.returncode == 0, done.stderr
    assert [each["location"]["lines"]["begin"] for each in json.loads(report.read_text())] == ALL
    done = run_job(project, runner, CI_MERGE_REQUEST_DIFF_BASE_SHA=git(project, "rev-parse", "HEAD~1").strip())
    assert done.returncode == 1 and "train.py:11:" in done.stdout and "train.py:4:" not in done.stdout
    assert len(json.loads(report.read_text())) == len(ALL)


def test_the_job_says_what_to_set(project: Path, runner: dict[str, str]) -> None:
    job = read(JOB)["transplt"]
    done = bash("\n".join(job["script"]), project, {**runner, **job["variables"]})
    assert done.returncode != 0 and "TRANSPLT_SOURCE: set it to what pip installs" in done.stderr


@pytest.mark.slow
@pytest.mark.network
def test_both_install_transplt_by_themselves(project: Path, runner: dict[str, str]) -> None:
    """The whole of each, with pip; a module of the repository that is checked is not imported."""
    for name in ("venv.py", "pip.py", "transplt.py"):
        (project / name).write_text("raise SystemExit('imported')\n")
    shutil.rmtree(runner["home"])
    environment = {name: value for name, value in runner.items() if name != "PYTHONPATH"}
    install = steps()["Install transplt"]
    done = bash(install["run"], project, {**environment, **given(install, {"python": sys.executable}, "")})
    assert done.returncode == 0, done.stderr
    assert lines(act(project, environment)) == ALL
    job = read(JOB)["transplt"]
    done = bash("\n".join(job["script"]), project, {**environment, **job["variables"], "TRANSPLT_SOURCE": str(ROOT)})
    assert done.returncode == 0 and (project / "gl-code-quality-report.json").is_file(), done.stderr
