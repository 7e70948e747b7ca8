"""The driver of the emulated card: what is read from libraries, and how it is built, once and whole."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.emulator.elf_file import elf_file
from tests.privileges import as_any_owner
from transplt.base.disk.whole_folder import whole_folder
from transplt.proof.launch import driver
from transplt.proof.launch.elf import read_symbols
from transplt.proof.launch.options import UsageError

OPERATORS = ["aclnnAbs", "aclnnMul", "aclnnAdd"]
WANTED = ["aclInit", "aclrtMalloc", "rtKernelLaunch", "MsprofReportApi", "_ZN2ge5ShapeC1Ev", "malloc", "aclIsNot"]
LIBRARIES = ["libtorch_npu.so", "libtensorpipe.so", "libnpu_profiler.so"]
#: Compiles nothing: puts a library at the place behind -o, and notes what it was told.
FAKE = """#!{python} -I
import os, shutil, sys
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
shutil.copy({library!r}, sys.argv[sys.argv.index("-o") + 1])
{more}
"""
HERE = platform.machine() if platform.machine() in ("x86_64", "aarch64") else "x86_64"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="torch_npu is for Linux")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """An unpacked wheel of torch_npu, as far as the driver looks at one."""
    folder = tmp_path / "wheel"
    lib = folder / "torch_npu" / "lib"
    lib.mkdir(parents=True)
    for name in LIBRARIES:
        lib.joinpath(name).write_bytes(elf_file(HERE, undefined=["free"]))
    looked_up = [each for name in OPERATORS for each in (name, f"{name}GetWorkspaceSize")]
    texts = [*looked_up, "aclnnNoWorkspace", "notaclnnAbs", "aclrtQuery"]
    lib.joinpath(LIBRARIES[0]).write_bytes(elf_file(HERE, ["torch_npu_init"], WANTED[:-1], texts))
    lib.joinpath(LIBRARIES[1]).write_bytes(elf_file(HERE, undefined=WANTED[-1:]))
    record = folder / "torch_npu-2.13.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("torch_npu/lib/libtorch_npu.so,sha256=abc,1\n")
    return folder


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return compiler(tmp_path, monkeypatch)


def compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, machine: str = HERE, more: str = "") -> Path:
    """A stand-in for the C compiler; where it notes its calls."""
    library, log, script = folder / "built.so", folder / "calls", folder / "cc"
    library.write_bytes(elf_file(machine, ["aclInit", "aclrtMalloc", "HcclSend"]))
    script.write_text(FAKE.format(python=sys.executable, log=str(log), library=str(library), more=more))
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return log


def test_symbols_of_a_library_of_this_machine() -> None:
    name = ctypes.util.find_library("c") or ""
    with open("/proc/self/maps") as maps:
        loaded = {line.split()[-1] for line in maps if name and line.rstrip().endswith(name)}
    for path in loaded:
        found = read_symbols(Path(path))
        assert found.machine == platform.machine()
        assert {"malloc", "printf", "environ"} <= found.defined
        assert not found.defined & found.undefined
    assert loaded or not name


def test_what_is_no_library_is_said(tmp_path: Path) -> None:
    for data in (b"text, and a good deal of it", elf_file()[:100], elf_file(defined=["a"])[:-12]):
        (tmp_path / "some.so").write_bytes(data)
        with pytest.raises(ValueError, match=r"some\.so is "):
            read_symbols(tmp_path / "some.so")


def test_it_is_built_once(wheel: Path, tmp_path: Path, log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    built = driver.build(wheel, tmp_path / "cache")
    libraries = "ascendcl hccl acl_op_compiler ge_runner graph acl_tdt_channel opapi mspti msprofiler ascend_hal hcomm"
    assert {path.name for path in built.glob("*.so")} == {f"lib{name}.so" for name in libraries.split()}
    assert json.loads((built / "operators.json").read_text()) == sorted(OPERATORS)
    assert (built / "operators.inc").read_text() == "OP(aclnnAbs, 0)\nOP(aclnnAdd, 1)\nOP(aclnnMul, 2)\n"
    absent = ["MsprofReportApi", "_ZN2ge5ShapeC1Ev", "aclIsNot", "rtKernelLaunch"]
    assert (built / "absent.inc").read_text() == "".join(f"ABSENT({name})\n" for name in absent)
    assert (built / "runtime").is_dir() and (built / "compiler").is_dir()  # torch_npu asks whether they are there
    assert len(capfd.readouterr().err.splitlines()) == 1
    calls = log.read_text()
    assert driver.build(wheel, tmp_path / "cache") == built
    assert log.read_text() == calls and capfd.readouterr().err == ""
    assert os.listdir(tmp_path / "cache") == [built.name]


def test_another_wheel_has_another(wheel: Path, tmp_path: Path, log: Path) -> None:
    first = driver.build(wheel, tmp_path / "cache")
    record = next(wheel.glob("*.dist-info/RECORD"))
    record.write_text(record.read_text().replace("abc", "abd"))
    assert driver.build(wheel, tmp_path / "cache") != first


def test_two_at_once_end_well(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both compile, and one is the first to put its folder in place."""
    together = threading.Barrier(2)
    compile_one = driver._compile

    def both(command: list[str], folder: Path, library: str, source: Path, *linking: str) -> None:
        if library == "hcomm":
            together.wait(60)
        compile_one(command, folder, library, source, *linking)

    compiler(tmp_path, monkeypatch)
    monkeypatch.setattr(driver, "_compile", both)
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(driver.build(wheel, tmp_path / "cache"))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2 and found[0] == found[1]
    assert os.listdir(tmp_path / "cache") == [found[0].name]
    assert len([*found[0].glob("*.so")]) == 11


def test_a_killed_build_is_taken_for_nothing(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler(tmp_path, monkeypatch, more="import signal; os.kill(os.getppid(), signal.SIGKILL)")
    code = (
        "import sys; from pathlib import Path; from transplt.proof.launch.driver import build; "
        "build(*map(Path, sys.argv[1:]))"
    )
    killed = subprocess.run([sys.executable, "-c", code, wheel, tmp_path / "cache"], capture_output=True, check=False)
    assert killed.returncode == -9
    (left,) = (tmp_path / "cache").iterdir()
    assert left.name.startswith(".driver-")
    compiler(tmp_path, monkeypatch)
    assert len([*driver.build(wheel, tmp_path / "cache").glob("*.so")]) == 11
    assert left.is_dir()  # of a process that may live
    os.utime(left, (0, 0))
    with whole_folder(left.with_name(left.name[1:].rpartition(".")[0])):
        assert not left.exists()


def test_no_compiler(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ziglang", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"no C compiler \(cc\) .*: install gcc, or .*zig"):
        driver.build(wheel, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("machine", "more", "said"),
    [
        (HERE, "sys.exit('warning: w\\ndriver.c:3:1: error: no such thing\\nerror: 1')", r"cc .*c:3:1: error: no such"),
        (HERE, r"sys.exit('collect2: error: ld returned 1\nld: final link failed: No space')", "failed: No space"),
        (HERE, "sys.exit(1)", "cc .*exit code 1"),
        ("aarch64" if HERE == "x86_64" else "x86_64", "", f"cc compiles for another machine than {HERE}"),
    ],
)
def test_a_compiler_that_fails(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, more: str, said: str
) -> None:
    compiler(tmp_path, monkeypatch, machine, more)
    with pytest.raises(UsageError, match=said):
        driver.build(wheel, tmp_path / "cache")
    assert os.listdir(tmp_path / "cache") == []


def test_a_compiler_that_is_not_there(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "none -g"))
    with pytest.raises(UsageError, match=r"the C compiler .*none cannot be started: No such file"):
        driver.build(wheel, tmp_path / "cache")


def test_a_cache_that_cannot_be_written(wheel: Path, tmp_path: Path, log: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o500)
    with as_any_owner(), pytest.raises(UsageError, match=r"cannot be written to .*cache: Permission denied\."):
        driver.build(wheel, cache)
    cache.chmod(0o700)
    built = driver.build(wheel, cache)
    cache.chmod(0o500)
    with as_any_owner():
        assert driver.build(wheel, cache) == built  # what is there is used


def test_a_wheel_that_is_damaged(wheel: Path, tmp_path: Path, log: Path) -> None:
    (wheel / "torch_npu" / "lib" / LIBRARIES[2]).write_bytes(b"")
    with pytest.raises(UsageError, match="is damaged"):
        driver.build(wheel, tmp_path / "cache")


DRIVER = """
#define API __attribute__((visibility("default")))
#define DEFINED(name) API int name(void)
#define OP(name, number) API int name(void) { return number; } API int name##GetWorkspaceSize(void) { return 7; }
#define ABSENT(name) API int name(void) { return 1; }
DEFINED(aclInit) { return 0; }
API void *aclrtMalloc(void) { return 0; }
#include "operators.inc"
#include "absent.inc"
"""


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")
def test_what_a_compiler_makes(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators answer by their numbers, absent symbols refuse; a look-up in a companion goes on."""
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(driver, "sources", lambda: tmp_path)
    (tmp_path / "driver.c").write_text(DRIVER)
    (tmp_path / "collectives.c").write_text('__attribute__((visibility("default"))) int HcclSend(void) { return 5; }\n')
    built = driver.build(wheel, tmp_path / "cache")
    code = (
        "import ctypes, sys; "
        "lib = [ctypes.CDLL(f'{sys.argv[1]}/lib{name}.so') for name in ('opapi', 'graph', 'hcomm')]; "
        "print(lib[0].aclnnMul(), lib[1].aclnnMulGetWorkspaceSize(), lib[0].rtKernelLaunch(), lib[0].aclInit(), "
        "lib[2].HcclSend())"
    )
    done = subprocess.run([sys.executable, "-c", code, built], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "7", "1", "0", "5"]
    assert read_symbols(built / "libascendcl.so").machine == platform.machine()
