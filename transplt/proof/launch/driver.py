"""The libraries that stand for CANN on the emulated card: compiled once for each wheel of torch_npu."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import mmap
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from transplt.base.disk.whole_folder import whole_folder
from transplt.base.errors import reason, shown
from transplt.base.extras import install_command
from transplt.proof.launch import elf
from transplt.proof.launch.elf import read_symbols
from transplt.proof.launch.options import UsageError

#: Library -> its source.
_SOURCES = {"ascendcl": "driver.c", "hccl": "collectives.c"}
#: Libraries without code, by those in which a look-up goes on: a program is linked with these, or opens them by name.
_COMPANIONS = {
    "ascendcl": (
        "acl_op_compiler", "ge_runner", "graph", "acl_tdt_channel", "opapi", "mspti", "msprofiler", "ascend_hal",
    ),
    "hccl": ("hcomm",),
}  # fmt: skip
#: The libraries of a wheel that are linked with CANN's; others are opened on use.
_LINKED = ("libtorch_npu.so", "libtensorpipe.so", "libnpu_profiler.so")
#: Symbols of CANN, those of the class library `ge` (in the wheel for torch 2.5) as C++ spells them.
_CANN = re.compile(r"(?:acl|ge[A-Z]|Msprof|rt[A-Z]|Hccl|_ZNK?2ge)\w*")
#: An operator is looked up by its name, and by the name of the function that asks for its workspace.
_OPERATOR = re.compile(rb"\bacl(?:nn)?[A-Z]\w*(?=\0)")
_WORKSPACE = "GetWorkspaceSize"
#: The oldest glibc that the wheels run on (manylinux_2_28), for a compiler that brings its own.
_GLIBC = "2.28"
#: A line with the cause in it, of a compiler or a linker; what gcc says of the linker's end has none.
_ERROR = re.compile(r"^(?!collect2: error: ld returned).*(?:error|failed|cannot)", re.IGNORECASE)
#: What torch_npu looks for below ASCEND_HOME_PATH before it loads.
_PARTS = ("runtime", "compiler")
_FLAGS = ("-O1", "-shared", "-fPIC", "-fvisibility=hidden")


def sources() -> Path:
    return Path(__file__).parents[2] / "emulator" / "card"


def place_of(wheel: Path, cache: Path) -> Path:
    """Where the libraries for an unpacked wheel lie in a cache, whether they are there or not."""
    made_of = hashlib.blake2b(digest_size=16)
    records = sorted(wheel.glob("torch_npu-*.dist-info/RECORD"))  # the digest of every file of the wheel
    for path in [*sorted(sources().glob("*.[ch]")), Path(__file__), Path(elf.__file__), *records]:
        made_of.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return cache / f"driver-{made_of.hexdigest()}"


def build(wheel: Path, cache: Path) -> Path:
    """The folder of the libraries for an unpacked wheel, made where it is missing, with `operators.json`: the names
    of its operators by their numbers. UsageError, a sentence, where they cannot be made.
    """
    folder = place_of(wheel, cache)
    if folder.is_dir():
        return folder
    try:
        linked = [read_symbols(wheel / "torch_npu" / "lib" / name) for name in _LINKED]
        operators = _operators(wheel / "torch_npu" / "lib" / _LINKED[0])
    except (OSError, ValueError) as error:
        raise UsageError(f"torch_npu in {shown(wheel)} is damaged ({error}): transplt emulator remove") from error
    machine = linked[0].machine
    wanted = {name for each in linked for name in each.undefined if _CANN.fullmatch(name)}
    compiler = _compiler(machine)
    print("Building the driver of the emulated card (once, some 10 s)", file=sys.stderr, flush=True)
    try:
        with whole_folder(folder) as made:
            (made / "operators.json").write_text(json.dumps(operators), "utf-8")
            for name in _PARTS:
                (made / name).mkdir()
            for name in ("operators.inc", "absent.inc"):
                (made / name).write_text("", "utf-8")  # for a first time, to see what the sources define
            for library in _SOURCES:
                _compile(compiler, made, library, sources() / _SOURCES[library])
            ours = [read_symbols(made / f"lib{library}.so") for library in _SOURCES]
            if ours[0].machine != machine:
                raise UsageError(f"{shlex.join(compiler)} compiles for another machine than {machine}: set CC.")
            absent = sorted(wanted.difference(*(each.defined for each in ours)))
            stubs = [f"OP({name}, {number})\n" for number, name in enumerate(operators)]
            (made / "operators.inc").write_text("".join(stubs), "utf-8")
            (made / "absent.inc").write_text("".join(f"ABSENT({name})\n" for name in absent), "utf-8")
            _compile(compiler, made, "ascendcl", sources() / _SOURCES["ascendcl"])
            for (library, companions), each in zip(_COMPANIONS.items(), ours, strict=True):
                # A linker leaves out a library of which nothing is used, and what nobody can see.
                used, source = min(each.defined), made / f"uses_{library}.c"
                visible = '__attribute__((visibility("default")))'
                source.write_text(f"extern char {used}[]; {visible} char *used_of_{library} = {used};\n", "utf-8")
                for name in companions:
                    _compile(compiler, made, name, source, f"-L{made}", "-Wl,-rpath,$ORIGIN", f"-l{library}")
    except OSError as error:
        why = reason(error)
        raise UsageError(f"the driver of the emulated card cannot be written to {shown(cache)}: {why}.") from error
    return folder


def _operators(library: Path) -> list[str]:
    """The names of the operators that a libtorch_npu.so looks up, sorted."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        names = {name.decode("ascii") for name in _OPERATOR.findall(data)}
    return sorted(name for name in names if name + _WORKSPACE in names)


def _compiler(machine: str) -> list[str]:
    """The command of a C compiler. UsageError where there is none."""
    if own := shlex.split(os.environ.get("CC", "")):
        return own
    if found := next((path for path in map(shutil.which, ("cc", "gcc", "clang")) if path is not None), None):
        return [found]
    if importlib.util.find_spec("ziglang") is not None:
        # Of a target with a name it compiles for any processor of that kind, not for this one.
        return [sys.executable, "-m", "ziglang", "cc", "-target", f"{machine}-linux-gnu.{_GLIBC}"]
    raise UsageError(
        f"no C compiler (cc) was found for the driver of the emulated card: install gcc, or {install_command('zig')}"
    )


def _compile(compiler: list[str], folder: Path, library: str, source: Path, *linking: str) -> None:
    """Make one library. UsageError with what the compiler says."""
    name = f"lib{library}.so"
    command = [*compiler, *_FLAGS, "-I", str(folder), "-o", str(folder / name), str(source), f"-Wl,-soname,{name}"]
    try:
        done = subprocess.run(
            [*command, *linking, "-lpthread"], env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError as error:
        raise UsageError(f"the C compiler {shown(compiler[0])} cannot be started: {reason(error)}.") from error
    if done.returncode:
        lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        said = next((line for line in lines if _ERROR.search(line)), (lines or [f"exit code {done.returncode}"])[0])
        raise UsageError(f"{shown(compiler[0])} cannot build the driver of the emulated card ({name}): {shown(said)}")
