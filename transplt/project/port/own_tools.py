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
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from transplt.base.render.cell import many
from transplt.base.text.regular_file import OTHER, read_regular
from transplt.project.line_length import sections_of, table_of, text_of

_SECONDS = 60
#: So many differences of one tool are named.
_MOST = 5
_HOOK = r"^ *- +id: *[\"']?(?:{ids})[\"']? *(?:#.*)?$(?:\n(?! *- +(?:id|repo):).*)*"
#: Options of hooks that change what is said, as they stand in a list of YAML, and the tools that have each.
_ARGUMENT = re.compile(r"--(profile|line-length|max-line-length|ignore|extend-ignore)\b[=\s\"',-]+([\w, ]*\w)")
_TAKES = {"profile": ("isort",), "line-length": ("isort", "black", "pyink"), "max-line-length": ("flake8",),
          "ignore": ("flake8",), "extend-ignore": ("flake8",)}  # fmt: skip
_REMARK = re.compile(r"(?P<path>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:error: .*\[(?P<type>[\w-]+)\]$|(?P<rule>[\w-]+))")
_BEGIN = re.compile(r"--- (?P<path>.+?)(?::before)?(?:\t.*)?")
_HUNK = re.compile(r"@@ -(?P<line>\d+)")
_PLAIN_OF_FLAKE8 = (
    "ignore", "extend-ignore", "select", "extend-select", "max-line-length", "max-doc-length", "max-complexity",
    "per-file-ignores", "exclude", "extend-exclude",
)  # fmt: skip
_SWITCH_OF_MYPY = re.compile(r"strict|(?:disallow|warn|check|no_implicit|strict|extra)_\w+")
#: What the project's own runs have beside ours.
_LESS = {"flake8": ", without plugins", "mypy": ", imports not followed"}


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
          mends=("ruff", "check", "--fix-only", *_RUFF)),
    _Tool("ruff format", "ruff-format", ("ruff", "format", "--diff", *_RUFF), formats=True, table=("ruff", "format"),
          mends=("ruff", "format", *_RUFF), mended=(_FORMAT,)),
    _Tool("black", "black", ("black", "--check", "--diff", "--quiet", "--workers=1"), formats=True, table=("black",),
          mends=("black", "--quiet", "--workers=1"), mended=(_FORMAT,)),
    _Tool("pyink", "pyink", ("pyink", "--check", "--diff", "--quiet"), formats=True, table=("pyink",),
          mends=("pyink", "--quiet"), mended=(_FORMAT,)),
    _Tool("yapf", "yapf", ("yapf", "--diff"), formats=True, table=("yapf",), section="yapf", files=(".style.yapf",),
          mends=("yapf", "--in-place"), mended=(_FORMAT,)),
    _Tool("flake8", "flake8", ("flake8", "--isolated"), section="flake8"),
    _Tool("mypy", "mypy", ("mypy", "--config-file=", "--no-incremental", f"--cache-dir={os.devnull}", "--no-pretty",
          "--no-error-summary", "--follow-imports=skip", "--ignore-missing-imports", "--explicit-package-bases"),
          table=("mypy",), section="mypy"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _More:
    """What a tool says so many times more of a file, and where first; `alone`: it did not say it before at all."""

    rule: str
    path: str
    line: int
    count: int
    alone: bool

    def __str__(self) -> str:
        return f"{self.rule} {self.path}:{self.line}" + f" ({self.count} times)" * (self.count > 1)


class OwnTools:
    """The tools that the settings of a project name, and what they say of some of its files `before`.

    `python` is the interpreter of the program, empty where none is known.
    """

    def __init__(self, before: Path, paths: Iterable[str], python: str) -> None:
        self.before, self.paths = before, sorted(path for path in paths if path.endswith(".py"))
        self.tables = table_of(before / "pyproject.toml").get("tool", {})
        self.hooks = text_of(before / ".pre-commit-config.yaml")
        self.tools = [tool for tool in _TOOLS if self.paths and self._asks_for(tool)]
        folders = [os.path.dirname(each) for each in (python, sys.executable) if each]
        folders += [each for each in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]
        self.programs = os.pathsep.join(folders)
        self.first: dict[_Tool, dict[tuple[str, str], list[int]]] = {}
        self.to_mend: dict[tuple[_Tool, str], set[str]] = {}

    def look(self, after: Path) -> None:
        """Finds out which files a formatter has to format again: it had nothing to say of them, and has `after`. So
        with the order of imports, and imports that nothing uses.
        """
        for tool in self.tools:
            with suppress(OSError, subprocess.SubprocessError):
                for each in self._beyond(tool, after) if tool.mends else ():
                    if each.rule in tool.mended and each.alone:
                        self.to_mend.setdefault((tool, each.rule), set()).add(each.path)

    def mend(self, folder: Path, paths: Collection[str]) -> None:
        """Formats those of some files that have to be; what fails shows as a difference. What would lose what it says
        to a linter stays.
        """
        for (tool, rule), wanted in self.to_mend.items():
            held = {path: read_regular(folder / path, OTHER) for path in sorted(wanted & {*paths})}
            with suppress(OSError, subprocess.SubprocessError):
                self._run(tool, tool.mends if tool.formats else (*tool.mends, f"--select={rule}"), folder, held)
                if rule == "F401":  # the order of those around it, where it was right
                    parted = {each.path for each in self._beyond(tool, folder) if each.rule == "I001" and each.alone}
                    self._run(tool, (*tool.mends, "--select=I001"), folder, sorted(parted.intersection(held)))
            for path, data in held.items():
                if read_regular(folder / path, OTHER).count(b"# noqa") < data.count(b"# noqa"):
                    (folder / path).write_bytes(data)

    def differences(self, after: Path) -> Iterator[str]:
        """A sentence for each tool: what it says of the files that it did not say before."""
        for tool in self.tools:
            try:
                new = [*map(str, self._beyond(tool, after))]
            except FileNotFoundError:
                yield f"{tool.name}: not run (the project uses it, but it is not installed here)"
            except subprocess.TimeoutExpired:
                yield f"{tool.name}: not run: it takes longer than {_SECONDS} s"
            except (OSError, subprocess.SubprocessError) as error:
                yield f"{tool.name}: not run: {error}"
            else:
                more = [f"and {len(new) - _MOST} more"] if len(new) > _MOST else []
                where = many(len(self.paths), "file") + _LESS.get(tool.name, "")
                said = f"new errors: {', '.join([*new[:_MOST], *more])}" if new else f"no new errors in {where}"
                yield f"{tool.name}: {said}"

    def _beyond(self, tool: _Tool, after: Path) -> Iterator[_More]:
        """What is said more often of a file than before. A formatter says it of a file or not."""
        if tool not in self.first:
            self.first[tool] = self._said(tool, self.before)
        for (path, rule), lines in sorted(self._said(tool, after).items()):
            old = len(self.first[tool].get((path, rule), ()))
            if len(lines) > old and not (old and tool.formats):
                known, new = (text_of(folder / path).split("\n") for folder in (self.before, after))
                written = (line for line in lines if new[line - 1 : line] != [] and new[line - 1] not in known)
                yield _More(rule, path, next(written, lines[0]), len(lines) - old, not old)

    def _said(self, tool: _Tool, folder: Path) -> dict[tuple[str, str], list[int]]:
        """The lines that a tool speaks of, or at which it would change a file, by path and rule."""
        lines: dict[tuple[str, str], list[int]] = {}
        path = ""
        for line in self._run(tool, tool.command, folder, self.paths).splitlines():
            if tool.formats and (begin := _BEGIN.fullmatch(line)):
                path = os.path.relpath(folder / begin["path"], folder)
            elif tool.formats and (hunk := _HUNK.match(line)):
                lines.setdefault((path, _FORMAT), []).append(int(hunk["line"]))
            elif not tool.formats and (found := _REMARK.match(line)):
                key = os.path.normpath(found["path"]), found["type"] or found["rule"]
                lines.setdefault(key, []).append(int(found["line"]))
        return lines

    def _run(self, tool: _Tool, command: tuple[str, ...], folder: Path, paths: Iterable[str]) -> str:
        """What a tool prints of those of some files that are there. OSError or SubprocessError where it fails."""
        program = shutil.which(command[0], path=self.programs)
        if program is None:
            raise FileNotFoundError(command[0])
        if not (there := [f"./{path}" for path in paths if (folder / path).is_file()]):
            return ""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MYPY", "RUFF"))}
        done = subprocess.run(
            [program, *command[1:], *self._options(tool), *there], cwd=folder, text=True, errors="replace",
            env={**kept, "PYTHONSAFEPATH": "1", "NO_COLOR": "1"}, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stdout):
            why = [*filter(None, (done.stderr or done.stdout).splitlines()), "no reason is given"][0]
            raise OSError(f"it ended with {done.returncode}: {why[:200]}")
        return done.stdout

    # --- what the settings say ---------------------------------------------------------------------------------------

    def _asks_for(self, tool: _Tool) -> bool:
        table = self.tables if tool.table else None
        for key in tool.table:
            table = table.get(key) if isinstance(table, dict) else None
        found = (table, self._section(tool), self._hook(tool))
        return any(each is not None for each in found) or any((self.before / name).is_file() for name in tool.files)

    def _hook(self, tool: _Tool) -> re.Match[str] | None:
        return re.search(_HOOK.format(ids=tool.ids), self.hooks, re.M)

    def _section(self, tool: _Tool) -> dict[str, str] | None:
        names = ("setup.cfg", "tox.ini", f".{tool.section}", f"{tool.section}.ini", f".{tool.section}.ini")
        found = (sections_of(self.before / name) for name in names if tool.section)
        return next((each[tool.section] for each in found if tool.section in each), None)

    def _options(self, tool: _Tool) -> Iterator[str]:
        """What a tool is told: of a hook, and of settings that it does not read itself."""
        hook, plain = self._hook(tool), self._section(tool) or {}
        for name, value in _ARGUMENT.findall(hook[0]) if hook is not None else ():
            if tool.name in _TAKES[name]:
                yield f"--{name}={value.replace(' ', '')}"
        if tool.name == "flake8":
            for name in _PLAIN_OF_FLAKE8:
                if value := plain.get(name, plain.get(name.replace("-", "_"), "")):
                    yield f"--{name}={','.join(value.replace(',', ' ').split())}"
        elif tool.name == "mypy":
            switches = {**plain, **self.tables.get("mypy", {})}
            on = (name for name, value in switches.items() if str(value).lower() == "true")
            yield from (f"--{name.replace('_', '-')}" for name in on if _SWITCH_OF_MYPY.fullmatch(name))
