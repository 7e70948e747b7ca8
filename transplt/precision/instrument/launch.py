"""What starts a probe copy: its environment, a launch script, and the shell scripts that the program brings."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from transplt.engine.files.kind import FileKind, kind_of
from transplt.precision.instrument.script import Probing

LAUNCH = "run_probe.sh"
_SHELLS = ("", ".sh", ".bash", ".zsh", ".ksh", ".slurm", ".sbatch", ".pbs")


def environment_lines(probing: Probing, seed: int) -> tuple[str, ...]:
    """What a launch script sets before it starts the probe copy.

    Source: mindstudio-probe 26.2.0 (its seed_all, and its refusal of TorchDynamo), the CUDA documentation of
    CUBLAS_WORKSPACE_CONFIG.
    """
    lines = [f"PYTHONHASHSEED={seed}", "HCCL_DETERMINISTIC=true", "TORCHDYNAMO_DISABLE=1"]
    return (*lines, "CUBLAS_WORKSPACE_CONFIG=:4096:8") if probing.deterministic else tuple(lines)


def launch_script(main: str, environment: tuple[str, ...]) -> str:
    """The script that starts the probe copy of `main` from its folder."""
    exports = "".join(f"export {line}\n" for line in environment)
    return (
        "#!/bin/sh\n# Starts the probe copy; the dump goes to $TRANSPLT_PROBE_DUMP (probe_dump).\n"
        f'{exports}cd "$(dirname "$0")" && exec ${{PYTHON:-python}} {shlex.quote(main)} "$@"\n'
    )


def starts(path: str, data: bytes, main: str) -> bool:
    """True for a shell script that names the script `main`, or it as a module (`-m tools.train`)."""
    if PurePosixPath(path).suffix not in _SHELLS or kind_of(path, data) is not FileKind.SHELL:
        return False
    module = main.removesuffix(".py").replace("/", ".").encode()
    if re.search(rb"-m[ =]" + re.escape(module) + rb"(?![\w.])", data):
        return True
    script, here = PurePosixPath(main), PurePosixPath(path).parent
    for found in re.findall(rb"[^\s\"'=;(]*(?<![\w.-])" + re.escape(script.name.encode()) + rb"(?!\w)", data):
        named = PurePosixPath(found.decode(errors="replace"))
        if str(named.parent) == ".":
            if here == script.parent or str(script.parent) == ".":
                return True
        elif named.parent.name in (script.parent.name, "..") or named.parts[0].startswith("$"):
            return True
    return False


def with_environment(data: bytes, environment: tuple[str, ...]) -> bytes:
    """A shell script that sets the environment first: below the comments at its head, which may be read by a scheduler.
    """
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    exports = b"".join(f"export {line}".encode() + newline for line in environment)
    lines = data.splitlines(keepends=True)
    commands = (number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(b"#"))
    at = next(commands, len(lines))
    return b"".join((*lines[:at], exports, *lines[at:]))
