"""`transplt port`: a migration as a branch of commits that a maintainer reads one by one."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.many_actions import write_many
from transplt.base.disk.git_command import run_git
from transplt.base.errors import CannotFinish, UsageError
from transplt.engine.actions.actions import actions_of, separate
from transplt.faces.cli.main import main
from transplt.project.environment.wanted import script_to_train
from transplt.project.options import Options, make_plan
from transplt.project.port.decisions import decision_of, decisions
from transplt.project.report.action_lines import hours_of
from transplt.project.tree import migrate_tree
from transplt.rules.pages import all_codes

TRAIN = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


def main(data):
    dist.init_process_group("nccl")
    device = torch.device("cuda")
    for batch in DataLoader(data, pin_memory=True):
        print(batch.to(device).sum())
    if torch.cuda.get_device_capability()[0] > 7:
        print("new")


if __name__ == "__main__":
    main([])
"""


def git(folder: Path, *arguments: str) -> str:
    person = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")
    done = subprocess.run(["git", *person, *arguments], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "A Person")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "person@example.org")
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text(TRAIN)
    (folder / "run.sh").write_text("python train.py\n")
    (folder / "run.sh").chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "begin")
    return folder


def port(folder: Path, *arguments: str) -> str:
    done = CliRunner().invoke(main, ["port", str(folder), "--torch-version", "2.6", "--exit-zero", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def subjects(folder: Path, branch: str = "npu-port") -> list[str]:
    return git(folder, "log", "--reverse", "--format=%s", f"main..{branch}").splitlines()


@pytest.mark.parametrize("style", ["npu", "portable"])
def test_a_port_leaves_what_a_migration_leaves(project: Path, tmp_path: Path, style: str) -> None:
    write_many(project)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "all of it")
    options = Options(source=project, out=tmp_path / "out", style=style, analysis=True, torch_version="2.6", jobs=0)
    actions = separate(actions_of(migrate_tree(make_plan(options)).findings))
    said = port(project, "--style", style)
    assert f"{len(actions)} actions, {hours_of(actions)}" in said
    if style == "npu":  # of the other one a pull request has what stops an NPU alone
        boxes = git(project, "show", "npu-port:NPU_PORT.md")
        assert re.findall(r"^- \[ \] \*\*(.+?)\*\* \(", boxes, re.M) == [each.title for each in actions]


def test_one_commit_for_each_decision(project: Path) -> None:
    before = git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain")
    port(project)
    assert subjects(project) == [
        "Compute on the NPU",
        "Pin host memory for the NPU",
        "Use hccl between cards",
        "List what is left of the port",
    ]
    assert (git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain")) == before
    assert (project / "train.py").read_text() == TRAIN
    assert git(project, "branch", "--format=%(refname:short)").split() == ["main", "npu-port"]


def test_each_tree_parses_and_the_last_is_the_migration(project: Path, tmp_path: Path) -> None:
    port(project)
    for commit in git(project, "rev-list", "main..npu-port").split():
        ast.parse(git(project, "show", f"{commit}:train.py"))
    out = tmp_path / "out"
    done = CliRunner().invoke(
        main, ["-i", str(project), "-o", str(out), "--torch-version", "2.6", "--exit-zero", "--no-html"]
    )
    assert done.exit_code == 0
    for name in ("train.py", "run.sh"):
        assert git(project, "show", f"npu-port:{name}") == (out / "project_msft" / name).read_text()
    assert git(project, "ls-tree", "npu-port", "run.sh").startswith("100755")


def test_what_adaptors_write_is_a_commit(project: Path, tmp_path: Path) -> None:
    (project / "fit.py").write_text(
        'import torch\nimport lightning as L\n\ntrainer = L.Trainer(\n    accelerator="gpu",\n'
        "    devices=torch.cuda.device_count(),\n)\n"
    )
    git(project, "add", "-A")
    git(project, "commit", "-qm", "fit")
    result = CliRunner().invoke(main, ["port", str(project), "--adapt", "all"], standalone_mode=False)
    assert result.exception is None, result.output
    subjects = git(project, "log", "--format=%s", "main..npu-port").splitlines()
    assert subjects.index("Replace library calls that stop on an NPU") < subjects.index("Compute on the NPU")
    assert "lightning_on_npu(\n    L.Trainer," in git(project, "show", "npu-port:fit.py")


def test_messages_say_why(project: Path) -> None:
    port(project)
    (message,) = git(project, "log", "--format=%B", "--grep=^Use hccl", "npu-port").split("\n\n\n")
    assert "hccl is for NPUs what nccl is" in message and "1 edit in 1 file: NPU301" in message
    assert "The other arguments of\nthe process group do not change." in message and "--local-rank" not in message
    assert max(map(len, message.splitlines())) <= 72


def test_what_is_left_is_a_checklist(project: Path) -> None:
    port(project)
    text = git(project, "show", "npu-port:NPU_PORT.md")
    assert "- [ ] **" in text and "`train.py:12`: a test for compute capability" in text


def test_a_package_that_is_not_required_stops_later_on_the_branch_too(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "a"\nversion = "1"\ndependencies = ["torch>=2.2"]\n')
    (project / "train.py").write_text("from fast import mix\n" + TRAIN)
    (project / "fast.py").write_text("def mix(x):\n    import cuequivariance\n\n    return cuequivariance.f(x)\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "fast")
    port(project, "--torch-version", "2.14")
    later = git(project, "show", "npu-port:NPU_PORT.md").partition("## Stops later")[2]
    assert "Replace cuequivariance" in later and "when mix() runs" in later


def test_it_goes_on_from_the_users_own_commits(project: Path) -> None:
    port(project)
    git(project, "switch", "-q", "npu-port")
    text = (project / "NPU_PORT.md").read_text()
    (project / "NPU_PORT.md").write_text(text.replace("- [ ]", "- [x]", 1))
    (project / "more.py").write_text("import torch\nx = torch.ones(2).cuda()\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "mine")
    git(project, "switch", "-q", "main")
    port(project)
    assert subjects(project)[3:] == ["List what is left of the port", "mine", "Compute on the NPU"]
    assert ".npu()" in git(project, "show", "npu-port:more.py")
    assert "- [x]" in git(project, "show", "npu-port:NPU_PORT.md")
    tip = git(project, "rev-parse", "npu-port")
    assert "nothing is left to commit" in port(project)
    assert git(project, "rev-parse", "npu-port") == tip


def test_a_folder_of_a_repository(project: Path) -> None:
    (project / "sub").mkdir()
    git(project, "mv", "train.py", "sub/train.py")
    git(project, "commit", "-qm", "moved")
    port(project / "sub", "--branch", "sub-port")
    assert "hccl" in git(project, "show", "sub-port:sub/train.py")
    assert git(project, "ls-tree", "--name-only", "sub-port", "sub/").split() == ["sub/NPU_PORT.md", "sub/train.py"]


def test_what_is_not_committed_is_no_part_of_it(project: Path) -> None:
    (project / "new.py").write_text("import torch\ntorch.cuda.init()\n")
    assert "uncommitted changes are not included" in port(project)
    assert "new.py" not in git(project, "ls-tree", "--name-only", "npu-port")


def test_hooks_and_filters_of_the_repository_do_not_run(project: Path) -> None:
    trap = project / ".git" / "hooks" / "reference-transaction"
    trap.write_text('#!/bin/sh\ntouch "$(git rev-parse --git-dir)/ran"\n')
    trap.chmod(0o755)
    port(project)
    assert not (project / ".git" / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--branch", "a..b"), "git does not accept this branch name"),
        (("--branch", "-x"), "git does not accept this branch name"),
        (("--branch", "main"), "is checked out"),
        (("--prove", "'"), "--prove"),
        (("--stubs", "torchvision"), "--stubs, --data and --python need --prove"),
    ],
)
def test_refused(project: Path, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        main.main(["port", str(project), *arguments], standalone_mode=False)
    assert git(project, "branch", "--format=%(refname:short)").split() == ["main"]


def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder of a git repository"):
        main.main(["port", str(tmp_path)], standalone_mode=False)


def test_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(UsageError, match="has no commit yet"):
        main.main(["port", str(tmp_path)], standalone_mode=False)


def test_all_codes_has_a_decision() -> None:
    known = {each.name for each in decisions()}
    assert {decision_of(code).name for code in all_codes()} <= known
    assert decision_of("NPU201").name == "device"
    assert decision_of("NPU301").name == "collectives"


TRAINS = """\
import torch

torch.manual_seed(int(open('data/seed.txt').read()))
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 4).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.mark.torch
def test_each_commit_is_proven(project: Path) -> None:
    (project / "train.py").write_text(TRAINS)
    git(project, "commit", "-qam", "a script that trains")
    (project / "data").mkdir()
    (project / "data" / "seed.txt").write_text("1")  # not committed
    output = port(project, "--prove", "train.py", "--data", "data")
    assert "Compute on the NPU  [equal: 3 steps compared" in output
    assert "equal: 3 steps compared" in git(project, "log", "--format=%B", "npu-port").replace("\n", " ")
    # Without its data the original does not train: that is asked once.
    asked = ["port", str(project), "--branch", "stops", "--prove", "train.py"]
    result = CliRunner().invoke(main, asked, standalone_mode=False)
    assert result.return_value == 1 and result.output.count("proving: ") == 1


@pytest.mark.torch
@pytest.mark.slow  # what a proof says of each commit is shown above
def test_a_branch_that_is_there_is_proven_as_a_whole(project: Path) -> None:
    (project / "train.py").write_text(TRAINS)
    git(project, "commit", "-qam", "a script that trains")
    (project / "data").mkdir()
    (project / "data" / "seed.txt").write_text("1")
    port(project, "--branch", "unproven")
    tip = git(project, "rev-parse", "unproven")
    output = port(project, "--branch", "unproven", "--prove", "train.py", "--data", "data")
    assert "unproven: nothing is left to commit" in output
    assert "the whole branch, against the program before the port: equal: 3 steps compared" in output
    assert git(project, "rev-parse", "unproven") == tip


def test_what_a_partial_clone_lacks_stays(project: Path) -> None:
    name = git(project, "rev-parse", "HEAD:run.sh").strip()
    (project / ".git" / "objects" / name[:2] / name[2:]).unlink()
    assert "1 file that this partial clone lacks: not changed; the first: run.sh" in port(project)
    assert git(project, "ls-tree", "npu-port", "run.sh").split()[2] == name


def test_no_folder_for_temporary_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: str) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryDirectory", none)
    with pytest.raises(CannotFinish, match="No usable temporary directory found; the branch"):
        main.main(["port", str(project), "-q"], standalone_mode=False)
    assert "npu-port" not in git(project, "branch", "--list")


def test_what_git_says_is_passed_on(project: Path) -> None:
    with pytest.raises(OSError, match=r"^git cat-file ended with 128: fatal: Not a valid object name nothing$"):
        run_git(project, "cat-file", "-p", "nothing")


def test_a_container_is_a_commit_of_its_own(project: Path) -> None:
    port(project, "--devcontainer")
    assert subjects(project)[-2:] == ["Describe a container with an emulated NPU", "List what is left of the port"]
    assert git(project, "show", "--format=", "--name-only", "npu-port~1").split() == [".devcontainer/devcontainer.json"]
    again = port(project, "--devcontainer")
    assert "nothing is left to commit" in again and "is not changed" not in again


def test_a_container_of_the_projects_own_stays(project: Path) -> None:
    (project / ".devcontainer").mkdir()
    (project / ".devcontainer" / "devcontainer.json").write_text("{}\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "own")
    assert "devcontainer.json is the project's own, and is not changed" in port(project, "--devcontainer")
    assert git(project, "show", "npu-port:.devcontainer/devcontainer.json") == "{}\n"


def test_places_that_ask_for_different_things_have_each_its_own_help(project: Path) -> None:
    calls = "y = librosa.resample(y, a, b)\nm = librosa.filters.mel(sr, n)\nn = librosa.filters.mel(sr, m)\n"
    (project / "train.py").write_text(f"import librosa\nimport torch\n\nx = torch.ones(1).cuda()\n{calls}")
    git(project, "commit", "-qam", "sounds")
    port(project)
    item = git(project, "show", "npu-port:NPU_PORT.md").partition("**Update the uses of librosa")[2].splitlines()[1:5]
    assert [line.partition("(")[0] for line in item] == [
        "    - `train.py:6`: all arguments of librosa but the first need their names since 0.10 ",
        "      name these arguments: resample",
        "    - `train.py:7`, `train.py:8`: these arguments of librosa need their names since 0.10 ",
        "      name these arguments: mel",
    ]


def test_what_to_prove_is_named_with_the_options_of_the_script(project: Path) -> None:
    assert "npu-port --prove train.py\n" in port(project)
    (project / "train.py").write_text(f"parser.add_argument('--epochs', default=90)\n{TRAIN}")
    git(project, "commit", "-qam", "options")
    assert "--branch b --prove 'train.py --epochs 1'\n" in port(project, "--branch", "b")
    (project / "train_b.py").write_text(f"import torch\n{TRAIN}")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "two")
    assert "--branch c --prove 'TRAINING_SCRIPT ARGUMENTS'\n" in port(project, "--branch", "c")


@pytest.mark.parametrize(
    ("names", "script"),
    [
        ("train.py other.py", "train.py"), ("main_informer.py", "main_informer.py"), ("test.py", ""), ("config.py", ""),
        ("train.py train_b.py", ""), ("train.py eval.py setup.py", "train.py"), ("", ""),
    ],
)  # fmt: skip
def test_the_script_that_trains_is_known_by_its_name(tmp_path: Path, names: str, script: str) -> None:
    for name in names.split():
        (tmp_path / name).write_text("import torch\n")
    assert script_to_train(tmp_path) == script
