"""The vendor's torch_npu: which one fits, how it comes into the cache, and what the command says."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulator.elf_file import elf_file
from tests.emulator.test_driver_build import compiler
from tests.privileges import as_any_owner
from transplt.base.settings import TORCH_VERSIONS
from transplt.proof.launch.interpreter import Versions, whole_of
from transplt.proof.launch.options import UsageError
from transplt.proof.launch.torch_npu_wheel import NoWheel, Wheel, fetch, newest_release, wheel_for
from transplt.rules.package_releases import newest_torch_npu

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., subprocess.CompletedProcess[str]]
ABI = "cpython-311-x86_64-linux-gnu"


def found(torch: str, abi: str = ABI, cuda: str = "", numpy: str = "2.1", yaml: str = "6.0") -> Versions:
    return Versions(torch, numpy, "3.11.7", (), yaml, cuda, abi)


@pytest.mark.parametrize(
    ("versions", "version", "name", "needs"),
    [
        (found("2.13.0+cpu"), "2.13.0", "2.13.0-cp311-linux_x86_64", ""),
        (found("2.10.0", "cpython-314-aarch64-linux-gnu"), "2.10.0.post7", "2.10.0.post7-cp314-linux_aarch64", ""),
        (found("2.13.0", yaml=""), "2.13.0", "2.13.0-cp311-linux_x86_64", "pyyaml-cp311-linux_x86_64"),
        (
            found("2.14.0+cpu", numpy="", yaml=""), "2.14.0", "2.14.0-cp311-linux_x86_64",
            "numpy+pyyaml-cp311-linux_x86_64",
        ),
    ],
)  # fmt: skip
def test_the_wheel_that_fits(versions: Versions, version: str, name: str, needs: str) -> None:
    wheel = wheel_for(versions)
    assert (wheel.version, wheel.name, wheel.needs) == (version, name, needs)


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        (found("2.13.1"), "no torch_npu was released for torch 2.13.1"),
        (found("2.13.0a0+gitabc"), "no torch_npu was released for torch 2.13.0a0"),
        (found("2.13.0", "cpython-311-darwin"), "on Linux, x86_64 or aarch64, not for cpython-311-darwin"),
        (found("2.13.0", "cpython-311-x86_64-linux-musl"), "not for cpython-311-x86_64-linux-musl"),
        (found("2.13.0", "cpython-314t-x86_64-linux-gnu"), "not for cpython-314t-x86_64-linux-gnu"),
        (found("2.13.0", "cpython-313-riscv64-linux-gnu"), "not for cpython-313-riscv64-linux-gnu"),
        (found("2.13.0", "pypy311-pp73"), "not for pypy311-pp73"),
        (found("2.13.0", ""), "not for this interpreter"),
        (found("2.13.0", "cpython-315-x86_64-linux-gnu"), "torch_npu 2.13.0 is for Python 3.10, .*, not for 3.15"),
        (found("2.14.0+cu130", cuda="13.0"), "torch_npu 2.14.0 aborts next to a torch for CUDA 13.0; .*/whl/cpu"),
        (found("2.10.0+cu128", cuda="12.8"), "torch_npu 2.10.0.post7 aborts next to a torch for CUDA 12.8"),
    ],
)
def test_where_none_fits(versions: Versions, why: str) -> None:
    with pytest.raises(NoWheel, match=why):
        wheel_for(versions)


def test_the_table_has_each_version_that_can_be_asked_for() -> None:
    assert [newest_release(version).rpartition(".")[0] for version in TORCH_VERSIONS] == [*TORCH_VERSIONS]
    for release, (version, _) in newest_torch_npu().items():
        assert version == release or version.startswith(f"{release}.post")


def test_what_an_interpreter_says_of_itself_and_what_we_find_are_one(tmp_path: Path) -> None:
    """By another name, the interpreter of the tests is asked as any other."""
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    asked = whole_of(str(other))
    ours = whole_of(sys.executable)
    assert (asked.torch, asked.python, asked.abi, asked.yaml) == (ours.torch, ours.python, ours.abi, ours.yaml)


def test_a_build_for_cuda_is_seen(tmp_path: Path) -> None:
    python = interpreter(tmp_path, "2.14.0+cu130", "cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n")
    assert whole_of(str(python)).cuda == "13.0"
    assert whole_of(str(interpreter(tmp_path, "2.14.0", "cuda: Optional[str] = None\nhip = '1'\n"))).cuda == ""


def interpreter(folder: Path, torch: str, version_file: str = "") -> Path:
    """Python with a torch, as far as one looks at it without an import; of a script it says what it would be given."""
    site = folder / f"site-{torch}"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text("raise RuntimeError('torch is imported')\n")
    (site / "torch" / "version.py").write_text(version_file)
    for name, version in (("torch", torch), ("numpy", "2.1"), ("PyYAML", "6.0")):
        metadata = site / f"{name}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    python = folder / f"python-{torch}"
    python.write_text(
        '#!/bin/sh\n[ "$1" = train.py ] && { echo "$PYTHONPATH"; cat "$TRANSPLT_EMULATOR"; exit; }\n'
        f'PYTHONPATH={site} exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    return python


def put_wheel(index: Path, version: str = "2.13.0") -> None:
    """A wheel of torch_npu for this interpreter, as far as pip and the driver look at it."""
    machine = os.uname().machine
    libraries = ("libtorch_npu.so", "libtensorpipe.so", "libnpu_profiler.so")
    files = {f"torch_npu/lib/{name}": elf_file(machine, undefined=["aclInit"]) for name in libraries}
    info = f"torch_npu-{version}.dist-info"
    files["torch_npu/__init__.py"] = b""
    head = f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {version}\nRequires-Dist: no-such\n"
    files[f"{info}/METADATA"] = head.encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    rows = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}"
        for name, data in files.items()
    ]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    index.mkdir(exist_ok=True)
    with zipfile.ZipFile(index / f"torch_npu-{version}-py3-none-any.whl", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)


needs_linux = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"), reason="torch_npu is for Linux"
)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """command(*arguments): `transplt` with a cache and an index of its own, and a C compiler that is none."""
    put_wheel(tmp_path / "index")
    compiler(tmp_path, monkeypatch, os.uname().machine)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(tmp_path / "index"))):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-m", "transplt", *map(str, arguments)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return run


@needs_linux
def test_it_is_fetched_once(command: Command, tmp_path: Path) -> None:
    python = interpreter(tmp_path, "2.13.0+cpu")
    first = command("emulator", "install", "--python", python)
    assert first.returncode == 0, first.stderr
    assert len(first.stdout.splitlines()) == 2 and first.stdout.count("now in") == 2
    cache = tmp_path / "cache" / "transplt" / "torch_npu"
    (wheel,) = cache.glob("2.13.0-cp3*")
    assert (wheel / "torch_npu" / "lib" / "libtorch_npu.so").is_file()
    assert len([*cache.iterdir()]) == 2 and str(wheel) in first.stdout
    again = command("emulator", "install", "--python", python)
    assert again.returncode == 0 and again.stderr == "" and again.stdout.count("already in") == 2
    removed = command("emulator", "remove")
    assert removed.returncode == 0 and not cache.exists()
    assert "nothing is in" in command("emulator", "remove").stdout


@needs_linux
def test_without_pip_ours_fetches_it(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uv makes environments without pip."""
    python = interpreter(tmp_path, "2.13.0+cpu")
    (tmp_path / "site-2.13.0+cpu" / "pip.py").write_text("raise SystemExit(1)\n")
    done = command("emulator", "install", "--python", python)
    assert done.returncode == 0 and done.stdout.count("now in") == 2, done.stderr


@needs_linux
def test_it_may_be_fetched_for_a_torch_that_is_not_there_yet(command: Command, tmp_path: Path) -> None:
    version = newest_torch_npu()["2.12.0"][0]
    put_wheel(tmp_path / "index", version)
    done = command("emulator", "install", "--torch-version", "2.12", "--python", interpreter(tmp_path, "2.13.0"))
    assert done.returncode == 0 and f"torch_npu {version} for" in done.stdout, done.stderr


@needs_linux
@pytest.mark.parametrize(
    ("torch", "said"),
    [
        ("2.13.1", "no torch_npu was released for torch 2.13.1; `transplt run --setup` makes an environment with the"),
        ("2.12.0", r"torch_npu cannot be downloaded: No matching distribution found for torch-npu==2.12.0"),
        ("2.9.1", "PyTorch 2.10 or newer is needed"),
    ],
)
def test_what_cannot_be_fetched_is_one_sentence(command: Command, tmp_path: Path, torch: str, said: str) -> None:
    done = command("emulator", "install", "--python", interpreter(tmp_path, torch))
    assert done.returncode == 2 and said in done.stderr
    errors = [line for line in done.stderr.splitlines() if not line.startswith("Fetching")]
    assert len(errors) == 1 and done.stdout == ""
    assert not [*tmp_path.glob("cache/transplt/torch_npu/*")]


@needs_linux
def test_without_a_network_it_says_so(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    done = command("emulator", "install", "--python", interpreter(tmp_path, "2.12.0"))
    assert done.returncode == 2 and "cannot be downloaded (it cannot reach its index): No matching" in done.stderr


@needs_linux
def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "torch_npu").mkdir(mode=0o500)
    with as_any_owner(), pytest.raises(UsageError, match=r"torch_npu cannot be written to .*: Permission denied\."):
        fetch(Wheel("2.13.0", "3.11", "x86_64"), sys.executable, tmp_path / "torch_npu")


@needs_linux
def test_a_cache_that_others_may_write_is_not_used(command: Command, tmp_path: Path) -> None:
    python = interpreter(tmp_path, "2.13.0")
    (tmp_path / "cache" / "transplt").mkdir(parents=True)
    (tmp_path / "cache" / "transplt").chmod(0o777)
    done = command("emulator", "install", "--python", python)
    assert done.returncode == 2 and "others may write into" in done.stderr


def test_the_name_of_a_folder_says_for_what_it_is() -> None:
    wheel = Wheel("2.13.0", "3.10", "aarch64", ("pyyaml",))
    assert (wheel.name, wheel.needs) == ("2.13.0-cp310-linux_aarch64", "pyyaml-cp310-linux_aarch64")
