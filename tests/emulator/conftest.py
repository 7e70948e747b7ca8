"""Running programs on the emulated device: each in a process of its own, the device can be made once per process."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests import forked

HERE = Path(__file__).parent
Runner = Callable[..., subprocess.CompletedProcess[str]]


def _torch_is_new_enough() -> bool:
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return False
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= (2, 10)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") is not None and not _torch_is_new_enough():
        pytest.skip("needs torch >= 2.10: pip install '.[emulator]'")


@pytest.fixture
def program(tmp_path: Path) -> Runner:
    """program(name, *arguments, nproc=0, **config): run it with the device on its path; it exits with `code`."""

    def run(
        name: str,
        *arguments: str,
        nproc: int = 0,
        timeout: float = 500,
        code: int | None = 0,
        **config: Any,
    ) -> subprocess.CompletedProcess[str]:
        done = forked.on_npus(HERE / "programs" / name, arguments, tmp_path, nproc, timeout, **config)
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def transplt_run(tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """transplt_run(source_or_path, *arguments, options=[...]): exit code, report and standard error of the run."""

    def run(script: str | Path, *arguments: str, options: list[str] | None = None) -> tuple[int, dict[str, Any], str]:
        if isinstance(script, str):
            path = tmp_path / "train.py"
            path.write_text(script, encoding="utf-8")
            script = path
        report = tmp_path / "report.json"
        words = ["--report", str(report), *(options or []), str(script), *arguments]
        code, output, errors = forked.transplt_run(words, tmp_path)
        content = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
        return code, {**content, "stdout": output}, errors

    return run
