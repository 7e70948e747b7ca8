"""A wheel holds the package and its rules, and migrates a sample without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.regen_samples import SAMPLES, golden_files

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.xdist_group("wheel_build")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("transplt-*.whl")
    return built


def test_wheel_holds_the_package_its_rules_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "transplt/py.typed" in names
    assert "transplt/_rules/schema.json" in names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"transplt"}
    packed = {name.removeprefix("transplt/_rules/") for name in names if name.startswith("transplt/_rules/")}
    tracked = {path.relative_to(ROOT / "rules").as_posix() for path in (ROOT / "rules").rglob("*") if path.is_file()}
    assert packed == {name for name in tracked if "__pycache__" not in name}


def test_the_wheel_alone_migrates_a_sample(wheel: Path, tmp_path: Path) -> None:
    """Unpacked where nothing of the checkout is in reach; the README's first command installs one too (.ci/run)."""
    home = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(home)
    sample = SAMPLES / "image_classifier"
    command = [sys.executable, "-m", "transplt", "-i", sample / "cuda", "-o", tmp_path / "out"]
    env = {**os.environ, "PYTHONPATH": str(home)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    expected = golden_files(sample / "expected")
    assert expected
    assert golden_files(tmp_path / "out" / "cuda_msft") == expected
