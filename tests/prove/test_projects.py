"""The programs of a proof: what is found, what is copied for a run, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.forked import transplt_run
from tests.planted.planting import prove
from transplt.proof.launch.options import UsageError
from transplt.proof.prove import projects
from transplt.proof.prove.projects import Project, find_project, find_projects


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with two scripts and a folder of data."""
    root = tmp_path / "net"
    (root / "data" / "images").mkdir(parents=True)
    (root / "data" / "images" / "a.bin").write_bytes(b"0123456789")
    (root / "tools").mkdir()
    for name in ("main.py", "tools/train.py"):
        (root / name).write_text("import torch\n")
    return root


def copied(project: Project, tmp_path: Path) -> list[str]:
    """The files and links of a copy."""
    root = project.copy_to(tmp_path / "copy")
    assert root == tmp_path / "copy" / project.root.name
    found = [Path(where, name) for where, _, names in os.walk(root) for name in names]
    links = [Path(where, name) for where, names, _ in os.walk(root) for name in names if Path(where, name).is_symlink()]
    return sorted(path.relative_to(root).as_posix() for path in [*found, *links])


@pytest.mark.parametrize(
    ("given", "main", "found"),
    [
        ("", "", "main.py"),
        ("", "tools/train.py", "tools/train.py"),
        ("", "./tools/../tools/train.py", "tools/train.py"),
        ("main.py", "", "main.py"),
        ("main.py", "tools/train.py", "main.py"),
    ],
)
def test_the_script_of_a_folder(given: str, main: str, found: str, folder: Path) -> None:
    assert find_project(folder / given, main, ()) == Project(folder, found)


@pytest.mark.parametrize(
    ("typed_in", "original", "migrated", "recorded", "roots"),
    [
        # Folders, and scripts at the top.
        (".", "net", "out/net_msft", "out/net_msft", ("net", "out/net_msft")),
        (".", "net/main.py", "out/net_msft/main.py", "out/net_msft", ("net", "out/net_msft")),
        (".", "net/main.py", "out/net_msft/main.py", None, ("net", "out/net_msft")),
        # The output says where its project begins, or the current folder does.
        (".", "net/tools/train.py", "out/net_msft/tools/train.py", "out/net_msft", ("net", "out/net_msft")),
        ("net", "tools/train.py", "../out/net_msft/tools/train.py", None, ("net", "out/net_msft")),
        ("out/net_msft", "../../net/tools/train.py", "tools/train.py", None, ("net", "out/net_msft")),
        ("net/tools", "train.py", "../../out/net_msft/tools/train.py", "out/net_msft", ("net", "out/net_msft")),
        # Nothing says it.
        (".", "net/tools/train.py", "out/net_msft/tools/train.py", None, ("net/tools", "out/net_msft/tools")),
        ("net", "tools/train.py", "../out/net_msft/main.py", "out/net_msft", ("net/tools", "out/net_msft")),
        (".", "net/tools/train.py", "net/tools/train_npu.py", None, ("net/tools", "net/tools")),
        ("net", "tools/train.py", "tools/train_npu.py", None, ("net/tools", "net/tools")),
        ("net", "tools/train.py", "../out/net_msft", "out/net_msft", ("net/tools", "out/net_msft")),
    ],
)
def test_where_the_projects_of_two_scripts_begin(
    typed_in: str, original: str, migrated: str, recorded: str | None, roots: tuple[str, str], folder: Path,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (folder / "tools" / "train_npu.py").write_text("import torch\n")
    shutil.copytree(folder, tmp_path / "out" / "net_msft")
    if recorded is not None:
        (tmp_path / recorded / ".transplt").mkdir()
        manifest = {"tool": "transplt", "format": 1, "torch": "2.8", "files": {}, "reports": {}}
        (tmp_path / recorded / ".transplt" / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.chdir(tmp_path / typed_in)
    found = find_projects(Path(original), Path(migrated), "", ())
    assert [each.root for each in found] == [tmp_path / root for root in roots]
    for project, given in zip(found, (original, migrated), strict=True):
        assert not given.endswith(".py") or (project.root / project.main).samefile(given)


_READS = """
import torch

rate = float(open("rate.txt").read())  # beside the folder of this script
model = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for step in range(2):
    loss = model(torch.randn(2, 4).cuda()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.torch
def test_run_and_prove_start_a_script_in_the_same_folder(tmp_path: Path) -> None:
    port = _READS.replace("import torch\n", "import torch\nimport torch_npu\n").replace("cuda", "npu")
    for name, text in (("original", _READS), ("migrated", port)):
        (tmp_path / name / "tools").mkdir(parents=True)
        (tmp_path / name / "rate.txt").write_text("0.1")
        (tmp_path / name / "tools" / "train.py").write_text(text)
    script = Path("tools", "train.py")
    code, _, err = transplt_run([str(script)], tmp_path / "migrated")
    assert code == 0, err
    told = prove(Path("..", "original", script), script, tmp_path / "migrated", "1")
    assert (told.verdict, told.sentence) == ("equal", "2 steps compared with the original's")


def test_a_script_in_a_folder_below_is_a_project_of_its_own(folder: Path) -> None:
    assert find_project(folder / "tools" / "train.py", "", ()) == Project(folder / "tools", "train.py")


@pytest.mark.parametrize(
    ("main", "data", "told"),
    [
        ("train.py", (), "no such script: train.py in {}."),
        ("data", (), "no such script: data in {}."),
        ("../net/main.py", (), "--main ../net/main.py: name a path in {}, relative to it."),
        ("/etc/hosts", (), "--main /etc/hosts: name a path in {}, relative to it."),
        ("main.py", ("..",), "--data ..: name a path in {}, relative to it."),
        ("main.py", (".",), "--data .: name a path in {}, relative to it."),
        ("main.py", ("/tmp",), "--data /tmp: name a path in {}, relative to it."),
        ("main.py", ("data/../../other",), "--data data/../../other: name a path in {}, relative to it."),
    ],
)
def test_what_is_no_path_of_the_project(main: str, data: tuple[str, ...], told: str, folder: Path) -> None:
    with pytest.raises(UsageError) as raised:
        find_project(folder, main, data)
    assert str(raised.value) == told.format(folder)


def test_a_folder_without_main_py_says_which_option_names_the_script(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no such script: main\.py in .*; name the script with --main\.$"):
        find_project(tmp_path, "", ())


def test_a_project_that_is_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects, "LIMIT", 35)
    with pytest.raises(UsageError, match=r"has more than 0 MB, .* name its data folders with --data"):
        find_project(folder, "", ())
    assert find_project(folder, "", ("data",)).data == ("data",)
    (folder / ".git").mkdir()
    (folder / ".git" / "pack").write_bytes(b"0" * 100)
    assert find_project(folder, "", ("data/images",)).data == ("data/images",)


def test_data_behind_a_link_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "b.bin").write_bytes(b"0" * 100)
    (folder / "sets").symlink_to(tmp_path / "sets")
    monkeypatch.setattr(projects, "LIMIT", 100)
    with pytest.raises(UsageError, match="--data"):
        find_project(folder, "", ())
    assert find_project(folder, "", ("sets",)).data == ("sets",)


def test_data_that_neither_program_has(folder: Path, tmp_path: Path) -> None:
    migrated = tmp_path / "migrated"
    migrated.mkdir()
    (migrated / "main.py").write_text("")
    with pytest.raises(UsageError, match=r"--data dta: neither .* nor .* has it\.$"):
        find_projects(folder, migrated, "", ("dta",))
    assert find_projects(folder, migrated, "", ("data",))[1].elsewhere == folder.resolve()
    (migrated / "made").mkdir()
    assert find_projects(folder, migrated, "", ("made",))[0].data == ("made",)


def test_a_copy_has_the_files_and_no_caches(folder: Path, tmp_path: Path) -> None:
    for name in (".git", "__pycache__", "venv", "net.egg-info"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("x")
    assert copied(find_project(folder, "", ()), tmp_path) == ["data/images/a.bin", "main.py", "tools/train.py"]


@pytest.mark.parametrize(
    ("data", "link"), [("data", "data"), ("./data/", "data"), ("data/images", "data/images"), ("none", "")]
)
def test_data_are_linked(data: str, link: str, folder: Path, tmp_path: Path) -> None:
    project = find_project(folder, "", (data,))
    names = copied(project, tmp_path)
    assert names == sorted([link or "data/images/a.bin", "main.py", "tools/train.py"])
    if link:
        assert (tmp_path / "copy" / "net" / link).resolve() == folder / link
    assert (tmp_path / "copy" / "net" / "data" / "images" / "a.bin").read_bytes() == b"0123456789"


def test_what_is_no_file_stays_behind(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to(folder / "gone")
    assert copied(find_project(folder, "", ()), tmp_path) == ["data/images/a.bin", "main.py", "tools/train.py"]


def test_folders_that_lead_in_a_circle_are_copied_once(folder: Path, tmp_path: Path) -> None:
    (folder / "here").symlink_to(".")
    (folder / "data" / "tools").symlink_to("../tools")
    (folder / "tools" / "data").symlink_to("../data")
    names = copied(find_project(folder, "", ()), tmp_path)
    assert names == [
        "data/images/a.bin", "data/tools/train.py", "main.py", "tools/data/images/a.bin", "tools/train.py",
    ]  # fmt: skip


def test_a_file_that_cannot_be_read(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object, **more: object) -> None:
        raise shutil.Error([(str(folder / "main.py"), "copy", "[Errno 13] Permission denied")])

    monkeypatch.setattr(shutil, "copytree", refused)
    with pytest.raises(UsageError, match=r"main\.py cannot be copied: \[Errno 13\] Permission denied\.$"):
        find_project(folder, "", ()).copy_to(tmp_path / "copy")


@pytest.mark.parametrize(
    ("scripts", "found"),
    [
        (["train.py", "setup.py"], "train.py"),
        (["bert/__main__.py", "setup.py"], "bert/__main__.py"),
        (["b.py", "a.py"], "no such script: main.py in {net}; name the script with --main (there is a.py, b.py)."),
        ([], "no such script: main.py in {net}; name the script with --main."),
    ],
)
def test_the_script_where_none_is_named(scripts: list[str], found: str, tmp_path: Path) -> None:
    for name in scripts:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("if __name__ == '__main__':\n    pass\n")
    try:
        assert find_project(tmp_path, "", ()).main == found
    except UsageError as error:
        assert str(error) == found.format(net=tmp_path)


def test_an_output_that_is_older_than_its_original(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "main.py").write_text("")
    with pytest.raises(UsageError, match=r"no such script: tools/train.py in .*/out. The original has it: migrate"):
        find_projects(folder, tmp_path / "out", "tools/train.py", ())


@pytest.mark.slow
@pytest.mark.torch
def test_a_package_that_is_started_as_a_module(tmp_path: Path) -> None:
    """By its path, what it imports relatively would not be found."""
    text = "import torch\nfrom .sizes import SIZE\n\nmodel = torch.nn.Linear(SIZE, 1){0}\n"
    text += "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(3):\n"
    text += "    model(torch.ones(2, SIZE){0}).sum().backward()\n    optimizer.step()\n"
    for name, card in (("a", ".cuda()"), ("b", ".npu()")):
        (tmp_path / name / "net").mkdir(parents=True)
        (tmp_path / name / "net" / "sizes.py").write_text("SIZE = 3\n")
        port = "import torch_npu\n" if name == "b" else ""
        (tmp_path / name / "net" / "__main__.py").write_text(port + text.format(card))
    done = prove(tmp_path / "a", tmp_path / "b", tmp_path, "1", main="net/__main__.py")
    assert "equal: 3 steps compared with the original's" in done.output, done.output


@pytest.mark.torch
def test_a_relative_folder_of_pythonpath_is_that_of_the_run(tmp_path: Path) -> None:
    """As the advice on a module at the top of a project has it; runs are forked from a process that began elsewhere."""
    text = "import torch\nfrom net.sizes import SIZE\n\nmodel = torch.nn.Linear(SIZE, 1){0}\n"
    text += "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    text += "model(torch.ones(2, SIZE){0}).sum().backward()\noptimizer.step()\n"
    for name, card in (("a", ".cuda()"), ("b", ".npu()")):
        for inner, source in (("net/sizes.py", "SIZE = 3\n"), ("tools/train.py", text.format(card))):
            (tmp_path / name / inner).parent.mkdir(parents=True)
            (tmp_path / name / inner).write_text(source)
    done = prove(tmp_path / "a", tmp_path / "b", tmp_path, "1", main="tools/train.py", path=".")
    assert "equal: 1 step compared with the original's" in done.output, done.output
