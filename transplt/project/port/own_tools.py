"""What a project's own linters, formatters and type checker say of the files of a port, before and after.

Those that its settings name are run where they are installed beside us, in the environment of its program or on PATH,
on copies. Nothing is installed, no hook is run, and nothing of the project is imported: a setting could name code of it
for flake8 and mypy, so these get the plain ones alone, as options. A file that a formatter had nothing to say of before
is formatted by it again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transplt.base.render.cell import many
from transplt.project.line_length import sections_of, table_of, text_of

_SECONDS = 60
Lines = dict[tuple[str, str], list[int]]
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
    """`ids` are its hooks, `table` (of pyproject.toml), `section` and `files` the settings that ask for it. It prints
    remarks, or `formats` and prints what it would change; `mends` does what it asks for by the rules `mended`.
    """

    name: str
    ids: str
    command: tuple[str, ...]
    formats: bool = False
    table: tuple[str, ...] = ()
    section: str = ""
    files: tuple[str, ...] = ()
    mends: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


_FORMAT = "would reformat"
_RUFF = ("--no-cache", "--force-exclude", "--quiet")
_TOOLS = (
    _Tool("isort", "isort", ("isort", "--check-only", "--diff", "--quiet"), formats=True, table=("isort",),
          section="isort", files=(".isort.cfg",), mends=("isort", "--quiet"), mended=(_FORMAT,)),
    _Tool("ruff check", "ruff|ruff-check", ("ruff", "check", "--no-fix", "--output-format=concise", *_RUFF),
          table=("ruff",), files=("ruff.toml", ".ruff.toml"), mended=("I001", "F401"),
          mends=("ruff", "check", "--fix-only", "--select=I001,F401", *_RUFF)),
    _Tool("ruff format", "ruff-format", ("ruff", "format", "--diff", *_RUFF), formats=True, table=("ruff", "format"),
          mends=("ruff", "format", *_RUFF), mended=(_FORMAT,)),
    _Tool("black", "black", ("black", "--check", "--diff", "--quiet", "--workers=1"), formats=True, table=("black",),
          mends=("black", "--quiet", "--workers=1"), mended=(_FORMAT,)),
    _Tool("flake8", "flake8", ("flake8", "--isolated"), section="flake8"),
    _Tool("mypy", "mypy", ("mypy", "--config-file=", "--no-incremental", f"--cache-dir={os.devnull}", "--no-pretty",
          "--no-error-summary", "--follow-imports=skip", "--ignore-missing-imports", "--explicit-package-bases"),
          table=("mypy",), section="mypy"),
)  # fmt: skip


class OwnTools:
    """The tools that the settings of a project name, and what they say of some of its files `before`.

    `python` is the interpreter of the program, empty where none is known.
    """

    def __init__(self, before: Path, paths: Iterable[str], python: str) -> None:
        self.before = before
        self.paths = sorted(path for path in paths if path.endswith(".py"))
        self.asked = _Asked(before)
        self.tools = [tool for tool in _TOOLS if self.paths and self.asked.names(tool)]
        folders = [os.path.dirname(each) for each in (python, sys.executable) if each]
        folders += [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]
        self.path = os.pathsep.join(folders)
        self.first: dict[_Tool, _Told] = {}
        self.to_mend: dict[_Tool, set[str]] = {}

    def look(self, after: Path) -> None:
        """Finds out which files a formatter has to format again: it had nothing to say of them, and has `after`. So
        with the order of imports, and imports that nothing uses.
        """
        for tool in self.tools:
            with suppress(OSError, subprocess.SubprocessError):
                new = self._beyond(tool, after) if tool.mends else []
                self.to_mend[tool] = {each.path for each in new if each.rule in tool.mended and each.alone}

    def mend(self, folder: Path, paths: Collection[str]) -> None:
        """Formats those of some files that have to be; what fails shows as a difference."""
        for tool, wanted in self.to_mend.items():
            with suppress(OSError, subprocess.SubprocessError):
                if its := sorted(wanted & {*paths}):
                    self._run(tool, tool.mends, folder, its)

    def differences(self, after: Path) -> list[str]:
        """A sentence for each tool: what it says of the files that it did not say before."""
        return [self._difference(tool, after) for tool in self.tools]

    def _difference(self, tool: _Tool, after: Path) -> str:
        try:
            new = self._beyond(tool, after)
        except FileNotFoundError:
            return f"{tool.name}: the project names it, and it is not installed here: not run"
        except (OSError, subprocess.SubprocessError) as error:
            return f"{tool.name}: not run: {error}"
        if not new:
            return f"{tool.name}: nothing that it does not say of the original, on {many(len(self.paths), 'file')}"
        named = [f"{each.rule} {each.path}:{each.line}" + f" ({each.count} times)" * (each.count > 1) for each in new]
        more = [f"and {len(new) - _MOST} more"] if len(new) > _MOST else []
        return f"{tool.name} says what it does not say of the original: {', '.join([*named[:_MOST], *more])}"

    def _beyond(self, tool: _Tool, after: Path) -> list[_More]:
        if tool not in self.first:
            self.first[tool] = self._told(tool, self.before)
        return [*self._told(tool, after).beyond(self.first[tool])]

    def _told(self, tool: _Tool, folder: Path) -> _Told:
        printed = self._run(tool, tool.command, folder, self.paths)
        return _Told(folder, tool.formats, _changes(printed, folder) if tool.formats else _remarks(printed))

    def _run(self, tool: _Tool, command: tuple[str, ...], folder: Path, paths: Iterable[str]) -> str:
        """What a tool prints of those of some files that are there."""
        program = shutil.which(command[0], path=self.path)
        if program is None:
            raise FileNotFoundError(command[0])
        words = [program, *command[1:], *self.asked.options(tool)]
        if not (there := [f"./{path}" for path in paths if (folder / path).is_file()]):
            return ""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY", "RUFF"))}
        done = subprocess.run(
            [*words, *there], cwd=folder, env={**kept, "PYTHONSAFEPATH": "1", "NO_COLOR": "1"}, text=True,
            errors="replace", stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
            why = [*filter(None, (done.stderr or done.stdout).splitlines()), "no reason is given"][0]
            raise OSError(f"it ended with {done.returncode}: {why[:200]}")
        return done.stdout


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
        found = (table if tool.table else None, self._section(tool), self._hook(tool))
        return any(each is not None for each in found) or any((self.folder / name).is_file() for name in tool.files)

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


def _remarks(printed: str) -> Lines:
    """The lines that a linter speaks of, by path and rule."""
    lines: Lines = {}
    for found in filter(None, map(_REMARK.match, printed.splitlines())):
        key = os.path.normpath(found["path"]), found["type"] or found["rule"]
        lines.setdefault(key, []).append(int(found["line"]))
    return lines


def _changes(printed: str, folder: Path) -> Lines:
    """The lines at which a formatter would change a file, by path."""
    lines: Lines = {}
    path = ""
    for line in printed.splitlines():
        if found := _BEGIN.fullmatch(line):
            path = os.path.relpath(folder / found["path"], folder)
        elif found := _HUNK.match(line):
            lines.setdefault((path, _FORMAT), []).append(int(found["line"]))
    return lines


@dataclass(frozen=True, slots=True)
class _More:
    """What a tool says so many times more of a file, and where first; `alone`: it did not say it before at all."""

    rule: str
    path: str
    line: int
    count: int
    alone: bool


@dataclass(frozen=True, slots=True)
class _Told:
    """What a tool says of some files in a folder."""

    folder: Path
    formats: bool
    lines: Lines

    def beyond(self, before: _Told) -> Iterator[_More]:
        """What is said more often of a file than before. A formatter says it of a file or not."""
        for (path, rule), lines in sorted(self.lines.items()):
            old = before.lines.get((path, rule), [])
            if (count := len(lines) - len(old)) > 0 and not (old and self.formats):
                known = {before.text(path, line) for line in old}
                first = next((line for line in lines if self.text(path, line) not in known), lines[0])
                yield _More(rule, path, first, count, not old)

    def text(self, path: str, line: int) -> str:
        """A line of a file."""
        return dict(enumerate(text_of(self.folder / path).split("\n"), 1)).get(line, "").strip()
