"""Which torch_npu a run has, and what its processes are given for it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.emulator.test_torch_npu_wheel import Command, command, found, interpreter, needs_linux
from transplt.proof.launch import driver, torch_npu_wheel
from transplt.proof.launch.device_backend import ran_on, torch_npu_of
from transplt.proof.launch.interpreter import Versions
from transplt.proof.launch.options import RunOptions, TorchNpu, Trace, UsageError
from transplt.proof.launch.runner import CARD, SITE, SITES, _config, _environment

__all__ = ["command"]

OPTIONS = RunOptions("train.py", (), sys.executable)
HERE = found("2.13.0+cpu")
VENDORS = TorchNpu("2.13.0", "/cache/torch_npu/2.13.0", "/cache/torch_npu/driver", "/cache/torch_npu/pyyaml")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of wheels; a driver is there for each."""
    monkeypatch.setattr(torch_npu_wheel, "folder_of_wheels", lambda: tmp_path)
    monkeypatch.setattr(driver, "build", lambda wheel, folder: folder / "driver")
    return tmp_path


@pytest.mark.parametrize("python", [sys.executable, "/my env/python"])
def test_without_the_wheel_the_one_command_is_named(cache: Path, python: str) -> None:
    options = replace(OPTIONS, python=python)
    with pytest.raises(UsageError) as error:
        torch_npu_of(options, HERE, cache)
    given = "" if python == sys.executable else " --python '/my env/python'"
    assert str(error.value).endswith(f"torch_npu 2.13.0, which is not here yet: transplt emulator install{given}")


def test_the_wheel_that_is_there_is_used(cache: Path) -> None:
    (cache / "2.13.0-cp311-linux_x86_64").mkdir()
    chosen = torch_npu_of(OPTIONS, HERE, cache)
    assert chosen == TorchNpu("2.13.0", str(cache / "2.13.0-cp311-linux_x86_64"), str(cache / "driver"))
    assert ran_on(chosen, "910B") == ran_on(chosen, "910B", "2.13") == "torch_npu 2.13.0 (emulated 910B)"
    assert ran_on(chosen, "910B", "2.1").endswith("(emulated 910B); the migration targets torch 2.1")
    with pytest.raises(UsageError, match="not here yet"):
        torch_npu_of(OPTIONS, found("2.13.0", yaml=""), cache)  # PyYAML is missing, and so is its folder
    (cache / "pyyaml-cp311-linux_x86_64").mkdir()
    chosen = torch_npu_of(OPTIONS, found("2.13.0", yaml=""), cache)
    assert chosen is not None and chosen.needs == str(cache / "pyyaml-cp311-linux_x86_64")


def test_another_host_has_none(cache: Path) -> None:
    assert torch_npu_of(replace(OPTIONS, host="cuda"), HERE, cache) is None


@pytest.mark.parametrize(
    ("interpreter", "why"),
    [
        (found("2.13.1"), "no torch_npu was released for torch 2.13.1; `transplt run --setup "),
        (found("2.15.0"), "no torch_npu was released for torch 2.15.0; `transplt run --setup "),
        (replace(HERE, abi="cpython-311-darwin"), "torch_npu is for CPython on Linux, "),
        (replace(HERE, abi="cp311-win_amd64"), "torch_npu is for CPython on Linux, "),
    ],
)
def test_where_none_was_released_the_way_to_one_is_named(cache: Path, interpreter: Versions, why: str) -> None:
    with pytest.raises(UsageError) as error:
        torch_npu_of(OPTIONS, interpreter, cache)
    told = str(error.value)
    assert told.startswith(why) and told.count("docker build ") == 1 and len(told.splitlines()) == 1


def test_what_a_process_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    theirs = _environment(replace(OPTIONS, torch_npu=VENDORS), tmp_path / "config.json", "npu")
    assert theirs["PYTHONPATH"].split(os.pathsep) == [VENDORS.wheel, str(SITE), str(CARD), "/mine"]
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in theirs
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD")
    cuda = _environment(OPTIONS, tmp_path / "config.json", "cuda")
    assert cuda["PYTHONPATH"] == str(SITES["cuda"]) and cuda["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    config = _config(replace(OPTIONS, torch_npu=VENDORS), (), tmp_path, None)
    assert (config["driver"], config["needs"]) == (VENDORS.driver, VENDORS.needs)


@pytest.mark.parametrize(
    ("trace", "user", "given"),
    [(Trace(), None, "disabled"), (Trace(), "offline", "offline"), (None, None, None), (None, "online", "online")],
)
def test_the_runs_of_a_proof_are_none_for_weights_and_biases(
    trace: Trace | None, user: str | None, given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    if user is not None:
        monkeypatch.setenv("WANDB_MODE", user)
    environment = _environment(replace(OPTIONS, trace=trace), tmp_path / "config.json", "cuda")
    assert environment.get("WANDB_MODE") == given


@needs_linux
def test_a_run_without_it_ends_with_the_one_command(command: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    python = interpreter(tmp_path, "2.13.0+cpu")
    done = command("run", "--python", python, "train.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: ") and len(done.stderr.splitlines()) == 1
    assert done.stderr.rstrip().endswith(f"transplt emulator install --python {python}")


@needs_linux
def test_a_run_with_it_has_all_of_it(command: Command, tmp_path: Path) -> None:
    """The script's own process has the wheel on its path; the driver was built."""
    (tmp_path / "train.py").touch()
    python = interpreter(tmp_path, "2.13.0+cpu")
    assert command("emulator", "install", "--python", python).returncode == 0
    done = command("run", "--exit-zero", "--python", python, "train.py")
    path, written = done.stdout.splitlines()
    wheel, site, *_ = path.split(os.pathsep)
    assert Path(wheel, "torch_npu", "__init__.py").is_file() and site == str(SITE)
    config = json.loads(written)
    assert json.loads(Path(config["driver"], "operators.json").read_text()) == [] and config["needs"] == ""
    assert "ran on: torch_npu 2.13.0 (emulated 910B)" in done.stderr
