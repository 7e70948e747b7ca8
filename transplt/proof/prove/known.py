"""Runs of an original that were made before: it stays the same while its port is mended, so they need not be again."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import transplt
from transplt.base.disk.cache_folder import Cache, NoCache
from transplt.base.disk.mirror import hash_file
from transplt.proof.launch.interpreter import Versions
from transplt.proof.launch.options import RunOptions
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.projects import Project, hash_of

#: Characters of a run that is kept at most: the cache is there for others, too.
_MOST = 16 * 1024 * 1024
#: Variables of the environment that are others in each shell, and those that each run gets from us.
_OF_SHELLS = frozenset("PWD OLDPWD SHLVL _ TERM".split())
_OURS = frozenset(
    "TORCH_DEVICE_BACKEND_AUTOLOAD PYTHONHASHSEED CUDA_VISIBLE_DEVICES PYTHONSAFEPATH OMP_NUM_THREADS "
    "MKL_NUM_THREADS".split()
)
_BEGINNINGS = ("SSH_", "TRANSPLT_")


@dataclass
class Known:
    """The runs that are in the cache; `versions` are those of the interpreter that makes them. `used` counts those
    that this proof has from others, which made them."""

    cache: Cache
    versions: Versions
    used: int = 0
    _made: set[str] = field(default_factory=set)
    _digests: dict[Project, str] = field(default_factory=dict)

    @classmethod
    def of_user(cls, versions: Versions) -> Known | None:
        """Those of the user's cache; None where there is none."""
        try:
            return cls(Cache.of_user(), versions)
        except NoCache:
            return None

    def key(self, project: Project, options: RunOptions, host: str, watched: dict[str, list[int]]) -> str:
        """What names a run: all that decides what it does, as far as that can be known."""
        if project not in self._digests:
            # The files of the data that are not copied.
            roots = (project.root, project.elsewhere or project.root)
            held = [folder / name for name in project.data for folder in roots]
            paths = sorted({path for each in held for path in (each, *each.rglob("*")) if path.is_file()})
            linked = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
            self._digests[project] = repr((project.main, hash_of(project), linked))
        asked = asdict(replace(options, timeout=None, folder=""))
        stubs = [hash_file(name) for name in options.stubs if os.path.isfile(name)]
        told = [
            _tool(), asdict(self.versions), self._digests[project], host, asked, stubs, sorted(watched.items()),
            _environment(),
        ]  # fmt: skip
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:32]

    def get(self, key: str) -> tuple[ScriptRun, Path] | None:
        """The run, and the folder that its program lay in; None where it was not made, or cannot be read."""
        text = self.cache.read(key)
        try:
            kept: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text or "", validate=True)))
            lists = {name: tuple(kept["run"][name]) for name in ("processes", "traces", "waits")}
            run = ScriptRun(**{**kept["run"], "seconds": 0.0, **lists})
        except (EOFError, OSError, ValueError, KeyError, TypeError):
            return None
        self.used += key not in self._made
        return run, Path(kept["root"])

    def put(self, key: str, run: ScriptRun, root: Path) -> None:
        packed = gzip.compress(json.dumps({"root": str(root), "run": vars(run)}).encode(), 1)
        text = base64.b64encode(packed).decode("ascii")
        if len(text) <= _MOST:
            self._made.add(key)
            self.cache.write(key, text)


def _environment() -> dict[str, str]:
    """What a program may ask the environment for, and every run has alike."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in _OF_SHELLS | _OURS and not name.startswith(_BEGINNINGS)
    }


@cache
def _tool() -> str:
    """What makes a run and records it: the emulated hosts, and what starts them."""
    root = Path(transplt.__file__).parent
    digest = hashlib.sha256(transplt.__version__.encode())
    for folder in ("emulator", "proof/launch"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(hash_file(str(path)).encode())
    return digest.hexdigest()
