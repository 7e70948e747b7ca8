"""A wheel, built and installed into an empty environment, finds its rules and migrates a sample."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
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


@pytest.mark.network
def test_installed_wheel_migrates_a_sample(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    install = [scripts / "python", "-m", "pip", "install", "--quiet", "--retries", "10"]
    install += ["-c", ROOT / ".ci" / "constraints.txt", wheel]
    done = subprocess.run(install, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not os.environ.get("CI"):
        pytest.skip(f"the dependencies could not be downloaded: {done.stderr.strip().splitlines()[-1:]}")
    assert done.returncode == 0, done.stderr

    sample = SAMPLES / "image_classifier"
    command = [scripts / "transplt", "-i", sample / "cuda", "-o", tmp_path / "out"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    expected = golden_files(sample / "expected")
    assert expected
    assert golden_files(tmp_path / "out" / "cuda_msft") == expected
