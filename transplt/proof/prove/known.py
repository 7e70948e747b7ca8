"""Runs of an original that were made before: it stays the same while its port is mended, so they need not be again."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import transplt
from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.projects import Project

#: Bytes that are kept at most; the runs that were asked for longest ago go first.
LIMIT = 256 * 1024 * 1024
#: Variables of the environment that programs and their libraries ask for.
_ASKED = ("CUDA", "TORCH", "OMP", "MKL", "NCCL", "HF_", "TRANSFORMERS", "ACCELERATE", "DEEPSPEED", "PYTHON")


@dataclass
class Known:
    """The runs that are kept in `folder`; `torch` is the version of the interpreter that makes them. `used` counts
    those that were not made again."""

    folder: Path
    torch: str
    used: int = 0
    _digests: dict[Project, str] = field(default_factory=dict)

    def key(self, project: Project, options: RunOptions, host: str, watched: dict[str, list[int]]) -> str:
        """What names a run: all that decides what it does, as far as that can be known."""
        if project not in self._digests:
            self._digests[project] = project.digest()
        asked = asdict(replace(options, timeout=None, folder=""))
        stubs = [hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in options.stubs if Path(name).is_file()]
        environment = {name: value for name, value in os.environ.items() if name.startswith(_ASKED)}
        told = [_tool(), self.torch, self._digests[project], host, asked, stubs, sorted(watched.items()), environment]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()

    def get(self, key: str) -> tuple[ScriptRun, Path] | None:
        """The run, and the folder that its program lay in; None where it was not made, or cannot be read."""
        path = self.folder / f"{key}.json.gz"
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                kept: dict[str, Any] = json.load(file)
            run = ScriptRun(**{**kept["run"], "processes": tuple(kept["run"]["processes"]),
                               "traces": tuple(kept["run"]["traces"])})  # fmt: skip
        except (OSError, EOFError, ValueError, KeyError, TypeError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        self.used += 1
        return replace(run, seconds=0.0), Path(kept["root"])

    def put(self, key: str, run: ScriptRun, root: Path) -> None:
        """Keep a run; does nothing where the folder cannot be written."""
        path = self.folder / f"{key}.json.gz"
        part = path.with_suffix(f".{os.getpid()}.part")
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with gzip.open(part, "wt", encoding="utf-8", compresslevel=1) as file:
                json.dump({"root": str(root), "run": vars(run)}, file)
            os.replace(part, path)
            self._forget()

    def _forget(self) -> None:
        kept = sorted(self.folder.glob("*.json.gz"), key=lambda path: path.stat().st_mtime, reverse=True)
        size = 0
        for path in kept:
            size += path.stat().st_size
            if size > LIMIT:
                path.unlink(missing_ok=True)


def known_runs(torch: str) -> Known:
    """Those of this user: in `$XDG_CACHE_HOME/transplt/runs`, else below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Known(Path(base) / "transplt" / "runs", torch)


@cache
def _tool() -> str:
    """What makes a run and records it: the emulated hosts, and what starts them."""
    root = Path(transplt.__file__).parent
    digest = hashlib.sha256(transplt.__version__.encode())
    for folder in ("emulator", "proof/launch"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
