"""Which interpreter runs a program: that of the project's own environment, wherever it was made, or ours."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transplt.base.disk.cache_folder import NoCache, cache_folder
from transplt.base.disk.manifest import read_manifest
from transplt.base.errors import shown
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.proof.launch import interpreter
from transplt.proof.launch.interpreter import Versions
from transplt.proof.launch.options import UsageError

#: The folders in a project that tools make an environment in; uv and Poetry (`virtualenvs.in-project`) the first.
_BESIDE = (".venv", "venv", "env", ".env")
#: What is kept of an environment that `transplt run --setup` made, in its folder of the cache; it is there once the
#: environment is whole.
RECORD = "setup.json"
_PYTHON = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
_CONDA_NAME = re.compile(r"^name:[ \t]*[\"']?([\w.-]+)", re.M)
_OF_POETRY = re.compile(r"^\[tool\.poetry[].]", re.M)
#: What lies at the top of a project.
_AT_THE_TOP = re.compile(
    r"requirements.*\.(?:txt|in)|setup\.(?:py|cfg)|pyproject\.toml|environment\.ya?ml|pipfile|(?:readme|licen[cs]e).*",
    re.I,
)
#: A question to a tool is worth so many seconds.
_PATIENCE = 20.0


@dataclass(frozen=True)
class Chosen:
    """An interpreter, what it has, and in words whose it is ("": it was named, or is the one that runs us)."""

    python: str
    versions: Versions
    origin: str = ""

    @property
    def in_words(self) -> str:
        """A line for the user; "" where nothing was chosen."""
        return f"{shown(self.python)} (torch {self.versions.torch}): {self.origin}" if self.origin else ""


def choose(given: str, start: Path) -> Chosen:
    """The interpreter of a program that lies in or below the folder `start`: the one that is `given` (the folder of an
    environment stands for its own); without one that of the project's environment, where its torch will do; else ours.

    UsageError, in one sentence, where there is none.
    """
    if given:
        inside = os.path.join(given, _PYTHON)
        python = inside if os.path.isdir(given) and os.path.exists(inside) else given
        python = os.path.abspath(python) if os.sep in python else python  # a proof starts it in another folder
        return Chosen(python, interpreter.versions_of(python))
    interpreter.refuse_windows()
    refused = ""
    for origin, python in _found(start):
        found = interpreter.whole_of(python)
        if found.torch and not found.cuda and not interpreter.unfit(found):
            return Chosen(python, found, origin)
        built = f", which is for CUDA {found.cuda}" if found.cuda else ""
        refused = refused or f"{origin} has {f'torch {found.torch}{built}' if found.torch else 'no torch'}"
    try:
        ours = interpreter.versions_of(sys.executable, setup_clause(start))
    except UsageError as error:
        raise UsageError(f"{f'{refused}; ' if refused else ''}{error}") from error
    return Chosen(sys.executable, ours, f"transplt's own, because {refused}" if refused else "")


def setup_clause(start: Path) -> str:
    """What makes an environment that will do."""
    place = project_of(start)
    within = place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place
    words = "" if place == Path.cwd() else f" {shlex.quote(shown(str(within)))}"
    return f"`transplt run --setup{words}` makes an environment with the packages that the project requires"


def _found(start: Path) -> Iterator[tuple[str, str]]:
    """The environments that may be the project's, the surest first: in words, and the interpreter."""
    ours = os.path.realpath(sys.prefix)
    seen: set[str] = set()
    for origin, folder in _folders(start):
        python = os.path.join(folder, _PYTHON)
        if os.path.realpath(folder) not in {ours, *seen} and os.path.isfile(python):
            seen.add(os.path.realpath(folder))
            yield origin, python


def _folders(start: Path) -> Iterator[tuple[str, str]]:
    above = [*project_folders(start)]
    for folder in above:
        if (made := remembered(folder)) is not None:
            yield "the environment of `transplt run --setup`", str(made)
    for folder in above:
        for name in filter(None, (os.environ.get("UV_PROJECT_ENVIRONMENT"), *_BESIDE)):
            if (folder / name / "pyvenv.cfg").is_file() or (folder / name / "conda-meta").is_dir():
                yield f"the project's {name}", str(folder / name)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield f"the environment that is active ({variable})", os.environ[variable]
    for folder in above:
        yield from (("the project's conda environment", each) for each in _of_conda(folder))
        yield from (("the project's Poetry environment", each) for each in _of_poetry(folder))


def project_folders(start: Path) -> Iterator[Path]:
    """The folders that a project may begin in, the nearest first: up to the one that is a repository or the output of a
    migration. Without such a one it begins where a README or its requirements lie, no higher than in the current
    folder; else at `start`, or in the current folder where that lies above."""
    start = start.resolve()
    above = [start, *start.parents]
    tops = [each for each in above if (each / ".git").exists() or read_manifest(each) is not None]
    if tops and tops[0] != Path.home():
        top = tops[0]
    else:
        below = above[: above.index(Path.cwd()) + 1] if Path.cwd() in above else [start]
        top = [below[-1], *(each for each in below if _is_top(each))][-1]
    yield from above[: above.index(top) + 1]


def _is_top(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(_AT_THE_TOP.fullmatch(name) for name in os.listdir(folder))
    return False


def project_of(start: Path) -> Path:
    """Where the project begins whose program lies in the folder `start`."""
    return [*project_folders(start)][-1]


def place_of(project: Path) -> Path:
    """The folder of a project's environment in the cache, whether it is there or not. UsageError without a cache."""
    try:
        cache = cache_folder()
    except NoCache as why:
        raise UsageError(f"environments are kept in the user's cache folder, which cannot be used: {why}.") from why
    key = hashlib.blake2b(os.fsencode(project.resolve()), digest_size=8).hexdigest()
    return cache / "environments" / f"{re.sub(r'[^A-Za-z0-9.-]', '_', project.name)[:40]}-{key}"


def remembered(project: Path) -> Path | None:
    """The environment that `transplt run --setup` made for a project, or for the one that a migration made of it, or
    made it of."""
    with contextlib.suppress(UsageError):
        own = place_of(project)
        if (made := _environment_in(own)) is not None:
            return made
        name = migrated_from(project)
        kept = {each.parent: record_of(each.parent) for each in own.parent.glob(f"*/{RECORD}")}
        named = [
            place for place, record in kept.items()
            if (name and Path(str(record.get("project", ""))).name == name) or record.get("of") == project.name
        ]  # fmt: skip
        return _environment_in(named[0]) if len(named) == 1 else None
    return None


def migrated_from(project: Path) -> str:
    """What the project was called that a migration made this one of; "" where none did."""
    return str((read_manifest(project) or {}).get("name", ""))


def _environment_in(place: Path) -> Path | None:
    record = record_of(place)
    return Path(str(record["environment"])) if "environment" in record else None


def record_of(place: Path) -> dict[str, Any]:
    """What is kept of an environment in its folder of the cache; nothing where it is not whole."""
    try:
        table = json.loads(read_regular(place / RECORD, RECORDS, follow=False))
    except (OSError, ValueError, RecursionError):
        return {}
    return table if isinstance(table, dict) else {}


def _of_conda(folder: Path) -> Iterator[str]:
    """The environments of the name that an environment.yml gives, among those that conda has noted in the home."""
    texts = _texts(folder, ("environment.yml", "environment.yaml"))
    names = {name for text in texts for name in _CONDA_NAME.findall(text)}
    for text in _texts(Path.home() / ".conda", ("environments.txt",)) if names else ():
        yield from (each.strip() for each in text.splitlines() if os.path.basename(each.strip()) in names)


def _of_poetry(folder: Path) -> Iterator[str]:
    """What Poetry itself says, asked only of a project of Poetry's."""
    poetry = shutil.which("poetry")
    if poetry is None or not any(map(_OF_POETRY.search, _texts(folder, ("pyproject.toml",)))):
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        told = subprocess.run(
            [poetry, "env", "info", "--path", "--no-interaction"], cwd=folder, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=_PATIENCE, check=False,
        )  # fmt: skip
        if told.returncode == 0 and os.path.isdir(told.stdout.strip()):
            yield told.stdout.strip()


def _texts(folder: Path, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        with contextlib.suppress(OSError):
            yield read_regular(folder / name, RECORDS).decode("utf-8", "replace")
