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
from transplt.proof.launch.device_backend import HAND_MADE, REAL, VARIABLE, backend_of
from transplt.proof.launch.options import RunOptions, TorchNpu, Trace, UsageError
from transplt.proof.launch.runner import CARD, SITE, _config, _environment

__all__ = ["command"]

OPTIONS = RunOptions("train.py", (), sys.executable)
HERE = found("2.13.0+cpu")
VENDORS = TorchNpu("2.13.0", "/cache/torch_npu/2.13.0", "/cache/torch_npu/driver", "/cache/torch_npu/pyyaml")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of wheels; a driver is there for each."""
    monkeypatch.setattr(torch_npu_wheel, "folder_of_wheels", lambda: tmp_path)
    monkeypatch.setattr(driver, "build", lambda wheel, folder: folder / "driver")
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path


@pytest.mark.parametrize("python", [sys.executable, "/my env/python"])
def test_without_the_wheel_the_one_command_is_named(cache: Path, python: str) -> None:
    options = replace(OPTIONS, python=python)
    with pytest.raises(UsageError) as error:
        backend_of(options, HERE)
    given = "" if python == sys.executable else " --python '/my env/python'"
    assert str(error.value).endswith(f"torch_npu 2.13.0, which is not here yet: transplt emulator install{given}")


def test_the_wheel_that_is_there_is_used(cache: Path) -> None:
    (cache / "2.13.0-cp311-linux_x86_64").mkdir()
    chosen = backend_of(OPTIONS, HERE)
    assert chosen.torch_npu == TorchNpu("2.13.0", str(cache / "2.13.0-cp311-linux_x86_64"), str(cache / "driver"))
    assert chosen.in_words("910B") == chosen.in_words("910B", "2.13") == "torch_npu 2.13.0 on an emulated 910B"
    assert chosen.in_words("910B", "2.1").endswith("910B, and not on that for torch 2.1")
    with pytest.raises(UsageError, match="not here yet"):
        backend_of(OPTIONS, found("2.13.0", yaml=""))  # PyYAML is missing, and so is its folder
    (cache / "pyyaml-cp311-linux_x86_64").mkdir()
    chosen = backend_of(OPTIONS, found("2.13.0", yaml=""))
    assert chosen.torch_npu is not None and chosen.torch_npu.needs == str(cache / "pyyaml-cp311-linux_x86_64")


def test_where_no_wheel_is_it_is_the_hand_made_one(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = backend_of(OPTIONS, found("2.13.1"))
    words = "a hand-made torch_npu on an emulated A3: no torch_npu was released for torch 2.13.1"
    assert chosen.torch_npu is None and chosen.in_words("A3") == words
    monkeypatch.setenv(VARIABLE, REAL)
    with pytest.raises(UsageError, match=r"^TRANSPLT_TORCH_NPU=real: no torch_npu was released for torch 2\.13\.1\.$"):
        backend_of(OPTIONS, found("2.13.1"))


@pytest.mark.parametrize("more", [{"host": "cuda"}, {"trace": Trace()}])
def test_what_keeps_the_hand_made_one(cache: Path, more: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    options = replace(OPTIONS, **more)  # type: ignore[arg-type]
    assert backend_of(options, HERE).torch_npu is None
    assert backend_of(options, HERE).in_words("910B") == "a hand-made torch_npu on an emulated 910B"
    monkeypatch.setenv(VARIABLE, REAL)
    (cache / "2.13.0-cp311-linux_x86_64").mkdir()
    assert (backend_of(options, HERE).torch_npu is None) == ("host" in more)


def test_the_variable_asks_for_one(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, HAND_MADE)
    assert backend_of(OPTIONS, HERE).torch_npu is None
    monkeypatch.setenv(VARIABLE, "")
    with pytest.raises(UsageError, match="not here yet"):
        backend_of(OPTIONS, HERE)
    monkeypatch.setenv(VARIABLE, "vendor")
    with pytest.raises(UsageError, match=r"TRANSPLT_TORCH_NPU=vendor: it is real or hand-made\."):
        backend_of(OPTIONS, HERE)


def test_what_a_process_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    theirs = _environment(replace(OPTIONS, torch_npu=VENDORS), tmp_path / "config.json", "npu")
    assert theirs["PYTHONPATH"].split(os.pathsep) == [VENDORS.wheel, str(SITE), str(CARD), "/mine"]
    assert "TORCH_DEVICE_BACKEND_AUTOLOAD" not in theirs
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.delenv("TORCH_DEVICE_BACKEND_AUTOLOAD")
    ours = _environment(OPTIONS, tmp_path / "config.json", "npu")
    assert ours["PYTHONPATH"] == str(SITE) and ours["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    for torch_npu, driver_folder, needs in ((VENDORS, VENDORS.driver, VENDORS.needs), (None, "", "")):
        config = _config(replace(OPTIONS, torch_npu=torch_npu), (), tmp_path, None)
        assert (config["driver"], config["needs"]) == (driver_folder, needs)


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
    """The script's own process finds the wheel before the hand-made torch_npu; the driver was built."""
    (tmp_path / "train.py").touch()
    python = interpreter(tmp_path, "2.13.0+cpu")
    assert command("emulator", "install", "--python", python).returncode == 0
    done = command("run", "--exit-zero", "--python", python, "train.py")
    path, written = done.stdout.splitlines()
    wheel, site, *_ = path.split(os.pathsep)
    assert Path(wheel, "torch_npu", "__init__.py").is_file() and site == str(SITE)
    config = json.loads(written)
    assert json.loads(Path(config["driver"], "operators.json").read_text()) == [] and config["needs"] == ""
    assert "ran on: torch_npu 2.13.0 on an emulated 910B" in done.stderr
