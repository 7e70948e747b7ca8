"""`env_npu.sh`: every setting in comments, with its cost and source; and what `explain` says of one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from transplt.engine.analysis.known import facts_of, resolved
from transplt.faces.cli.library import migrate_tree
from transplt.project.report.host_script import HOST_SCRIPT, render_host_script
from transplt.rules.host_settings import host_settings
from transplt.rules.tables import read_table

SOURCE = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\n"


def project(folder: Path) -> Path:
    (folder / "net").mkdir()
    (folder / "net" / "train.py").write_text(SOURCE, encoding="utf-8")
    return folder / "net"


def test_every_setting_has_its_cost_its_source_and_a_way_back() -> None:
    for setting in host_settings():
        assert all((setting.lines, setting.undo, setting.what, setting.cost, setting.source)), setting.name
        assert not setting.what.endswith(".")
    groups = read_table("support/host_settings.json")["_meta"]["groups"]
    assert list(dict.fromkeys(setting.group for setting in host_settings())) == list(groups.values())


def test_everything_is_a_comment_and_no_line_is_too_long() -> None:
    lines = render_host_script().decode("ascii").splitlines()
    assert all(not line or line.startswith("#") for line in lines)
    assert all(len(line) <= 120 for line in lines if line.startswith("##"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_what_stands_in_comments_is_shell(tmp_path: Path) -> None:
    """With all signs taken away the script is still one that bash reads; nothing of it is run."""
    commands = [line[2:] for line in render_host_script().decode().splitlines() if line.startswith("# ")]
    begin = commands.index("export TASK_QUEUE_ENABLE=2")
    script = tmp_path / "all.sh"
    script.write_text("\n".join([*commands[begin:], *(line for each in host_settings() for line in each.undo)]))
    done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_sourced_as_it_is_it_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / HOST_SCRIPT).write_bytes(render_host_script())
    command = ["bash", "-c", f"before=$(env); source ./{HOST_SCRIPT}; test \"$before\" = \"$(env)\" && ls"]
    path = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=path)
    assert (done.returncode, done.stdout) == (0, f"{HOST_SCRIPT}\n")


def test_a_migration_that_tunes_has_one(tmp_path: Path) -> None:
    plain = migrate_tree(project(tmp_path), tmp_path / "plain")
    tuned = migrate_tree(tmp_path / "net", tmp_path / "tuned", tune="hf32")
    assert not (Path(plain.output) / HOST_SCRIPT).exists()
    assert (Path(tuned.output) / HOST_SCRIPT).read_bytes() == render_host_script()


def test_a_script_of_the_project_keeps_its_name(tmp_path: Path) -> None:
    (project(tmp_path) / HOST_SCRIPT).write_text("echo mine\n")
    tuned = Path(migrate_tree(tmp_path / "net", tmp_path / "out", tune="hf32").output)
    assert (tuned / HOST_SCRIPT).read_text() == "echo mine\n"
    assert (tuned / f"transplt_{HOST_SCRIPT}").read_bytes() == render_host_script()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ACL_OP_SELECT_IMPL_MODE", "it takes high_performance, high_precision; deprecated in torch_npu"),
        ("ACL_AICORE_NUM", "its value is a number from 1 to 32"),
        ("acl_op_debug_level", "an option of torch.npu.set_option"),
        ("jitCompile", "torch.npu.set_compile_mode"),
        ("tcmalloc", "cost: memory is given back later"),
        ("CPU_AFFINITY_CONF", "cost: other programs on those cores"),
    ],
)
def test_options_and_settings_are_explained(name: str, text: str) -> None:
    known = resolved(name)
    assert any(text in fact.text and fact.source for fact in facts_of(known))


def test_an_option_that_is_none_is_not_explained() -> None:
    assert resolved("ACL_OP_SELECT_IMPLMODE") == ""
