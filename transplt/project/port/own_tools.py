"""What a project's own linters, formatters and type checker say of the files of a port, before and after.

Those that its settings name are run where they are installed beside us, in the environment of its program or on PATH.
They only read: nothing is installed, and no hook is run. A setting could name code of the project for flake8 and mypy to
import, so these get the plain ones alone, as options.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transplt.base.render.cell import many
from transplt.project.line_length import sections_of, table_of, text_of

_SECONDS = 60
#: So many differences of one tool are named.
_MOST = 5
_HOOK = r"^ *- +id: *[\"']?(?:{ids})[\"']? *(?:#.*)?$(?:\n(?! *- +(?:id|repo):).*)*"
#: Options of hooks that change what is said, as they stand in a list of YAML.
_ARGUMENT = re.compile(r"--(profile|line-length|max-line-length|ignore|extend-ignore|select)\b[=\s\"',-]+([\w, ]*\w)")
_REMARK = re.compile(r"(?P<path>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:error: .*\[(?P<type>[\w-]+)\]$|(?P<rule>[\w-]+))")
_BEGIN = re.compile(r"--- (?P<path>.+?)(?::before)?(?:\t.*)?")
_HUNK = re.compile(r"@@ -(?P<line>\d+)")
_PLAIN_OF_FLAKE8 = (
    "ignore", "extend-ignore", "select", "extend-select", "max-line-length", "max-doc-length", "max-complexity",
    "per-file-ignores", "exclude", "extend-exclude",
)  # fmt: skip
_SWITCH_OF_MYPY = re.compile(r"strict|(?:disallow|warn|check|no_implicit|strict|extra)_\w+")


@dataclass(frozen=True, slots=True)
class _Tool:
    """`ids` are its hooks, `own` says whether the settings of a project ask for it; it prints remarks, or `formats` and
    prints what it would change. 1 and what is in `ends` are no failures.
    """

    name: str
    ids: str
    command: tuple[str, ...]
    formats: bool = False
    table: tuple[str, ...] = ()
    section: str = ""
    files: tuple[str, ...] = ()


_RUFF = ("--no-cache", "--force-exclude", "--quiet")
_TOOLS = (
    _Tool("ruff check", "ruff|ruff-check", ("ruff", "check", "--no-fix", "--output-format=concise", *_RUFF),
          table=("ruff",), files=("ruff.toml", ".ruff.toml")),
    _Tool("ruff format", "ruff-format", ("ruff", "format", "--diff", *_RUFF), formats=True, table=("ruff", "format")),
    _Tool("black", "black", ("black", "--check", "--diff", "--quiet", "--workers=1"), formats=True, table=("black",)),
    _Tool("isort", "isort", ("isort", "--check-only", "--diff", "--quiet"), formats=True, table=("isort",),
          section="isort", files=(".isort.cfg",)),
    _Tool("flake8", "flake8", ("flake8", "--isolated"), section="flake8"),
    _Tool("mypy", "mypy", ("mypy", "--config-file=", "--no-incremental", f"--cache-dir={os.devnull}", "--no-pretty",
          "--no-error-summary", "--follow-imports=skip", "--ignore-missing-imports", "--explicit-package-bases"),
          table=("mypy",), section="mypy"),
)  # fmt: skip


def what_they_say(before: Path, after: Path, paths: Collection[str], python: str) -> list[str]:
    """A sentence for each tool that the project names: what it says `after` of these files that it did not `before`.

    `python` is the interpreter of the program, empty where none is known.
    """
    asked = _Asked(before)
    there = sorted(path for path in paths if path.endswith(".py") and (after / path).is_file())
    return [_said_by(tool, asked, before, after, there, python) for tool in _TOOLS if there and asked.names(tool)]


@dataclass(frozen=True)
class _Asked:
    """What the settings of a project ask for."""

    folder: Path

    @cached_property
    def _tables(self) -> Any:
        return table_of(self.folder / "pyproject.toml").get("tool", {})

    @cached_property
    def _hooks(self) -> str:
        return text_of(self.folder / ".pre-commit-config.yaml")

    def names(self, tool: _Tool) -> bool:
        """Whether the project uses a tool."""
        table = self._tables
        for key in tool.table:
            table = table.get(key) if isinstance(table, dict) else None
        found = bool(tool.table) and table is not None
        return found or self._section(tool) is not None or self._hook(tool) is not None or any(
            (self.folder / name).is_file() for name in tool.files
        )

    def _hook(self, tool: _Tool) -> re.Match[str] | None:
        return re.search(_HOOK.format(ids=tool.ids), self._hooks, re.M)

    def _section(self, tool: _Tool) -> Mapping[str, str] | None:
        names = ("setup.cfg", "tox.ini", f".{tool.section}", f"{tool.section}.ini", f".{tool.section}.ini")
        found = (sections_of(self.folder / name) for name in names if tool.section)
        return next((each[tool.section] for each in found if tool.section in each), None)

    def options(self, tool: _Tool) -> Iterator[str]:
        """What a tool is told: of a hook, and of a section whose file it does not read itself."""
        hook = self._hook(tool)
        for name, value in _ARGUMENT.findall(hook[0]) if hook is not None else ():
            yield f"--{name}={value.replace(' ', '')}"
        plain = self._section(tool) or {}
        if tool.name == "flake8":
            for name in _PLAIN_OF_FLAKE8:
                if value := plain.get(name, plain.get(name.replace("-", "_"), "")):
                    yield f"--{name}={','.join(value.replace(',', ' ').split())}"
        elif tool.name == "mypy":
            switches = {**plain, **self._tables.get("mypy", {})}
            on = (name for name, value in switches.items() if str(value).lower() == "true")
            yield from (f"--{name.replace('_', '-')}" for name in on if _SWITCH_OF_MYPY.fullmatch(name))


def _said_by(tool: _Tool, asked: _Asked, before: Path, after: Path, paths: list[str], python: str) -> str:
    """What a tool says of the files that it did not say before, as a sentence."""
    folders = [os.path.dirname(each) for each in (python, sys.executable) if each]
    folders += [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]
    program = shutil.which(tool.command[0], path=os.pathsep.join(folders))
    if program is None:
        return f"{tool.name}: the project names it, and it is not installed here: not run"
    words = [program, *tool.command[1:], *asked.options(tool)]
    try:
        told = [_Told.of(tool, words, folder, paths) for folder in (before, after)]
    except (OSError, subprocess.SubprocessError) as error:
        return f"{tool.name}: not run: {error}"
    new = [*told[1].beyond(told[0])]
    if not new:
        return f"{tool.name}: nothing that it does not say of the original, on {many(len(paths), 'file')}"
    more = [f"and {len(new) - _MOST} more"] if len(new) > _MOST else []
    return f"{tool.name} says what it does not say of the original: {', '.join([*new[:_MOST], *more])}"


@dataclass(frozen=True, slots=True)
class _Told:
    """What a tool says of some files in a folder: lines, by path and rule."""

    folder: Path
    lines: dict[tuple[str, str], list[int]]
    formats: bool

    @classmethod
    def of(cls, tool: _Tool, words: list[str], folder: Path, paths: Iterable[str]) -> _Told:
        """Runs it. OSError or SubprocessError where it does not come to an end as it should."""
        there = [f"./{path}" for path in paths if (folder / path).is_file()]
        lines: dict[tuple[str, str], list[int]] = {}
        if not there:
            return cls(folder, lines, tool.formats)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY", "RUFF"))}
        done = subprocess.run(
            [*words, *there], cwd=folder, env={**kept, "PYTHONSAFEPATH": "1", "NO_COLOR": "1"}, text=True,
            errors="replace", stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1):
            why = [*filter(None, (done.stderr or done.stdout).splitlines()), "no reason is given"][0]
            raise OSError(f"it ended with {done.returncode}: {why[:200]}")
        path = ""
        for line in done.stdout.splitlines():
            if not tool.formats:
                if found := _REMARK.match(line):
                    rule = found["type"] or found["rule"]
                    lines.setdefault((os.path.normpath(found["path"]), rule), []).append(int(found["line"]))
            elif found := _BEGIN.fullmatch(line):
                path = os.path.relpath(folder / found["path"], folder)
            elif found := _HUNK.match(line):
                lines.setdefault((path, "would reformat"), []).append(int(found["line"]))
        return cls(folder, lines, tool.formats)

    def beyond(self, before: _Told) -> Iterator[str]:
        """What is said more often of a file than before: rule, place and count. A formatter says it of a file or not."""
        for (path, rule), lines in sorted(self.lines.items()):
            old = before.lines.get((path, rule), [])
            if not (more := len(lines) - len(old)) > 0 or (old and self.formats):
                continue
            known = Counter(before.text(path, line) for line in old)
            new = [line for line in lines if (known.subtract([text := self.text(path, line)]) or known[text] < 0)]
            yield f"{rule} {path}:{(new or lines)[0]}" + (f" ({more} times)" if more > 1 else "")

    def text(self, path: str, line: int) -> str:
        """A line of a file."""
        return dict(enumerate(text_of(self.folder / path).split("\n"), 1)).get(line, "").strip()
