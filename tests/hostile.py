"""A tree of a project that means harm: everything that a file system, a reader or a name can be used for.

`ENTRIES` stand in one tree, and each says what has to become of it. `PROJECTS` each decide about a whole run, so that
they are trees of their own. Whatever of it is executed leaves a file in the folder `witness`.
"""

from __future__ import annotations

import io
import os
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROGRAM = b"import torch\ntorch.cuda.synchronize()\n"

#: What may become of an entry: its file rewritten, its file or link kept as it is, something that is left out and
#: named, or what no output ever holds (.git).
CONVERTED, SAME, NAMED, SKIPPED = "converted", "same", "named", "skipped"


@dataclass(frozen=True)
class Entry:
    """`make` is called with the path (bytes) to make, and the witness; `fails` says why an entry is not there yet."""

    name: bytes
    make: Callable[[bytes, Path], None]
    fate: str
    fails: str = ""

    def __str__(self) -> str:
        text = self.name.decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")
        return text if len(text) < 50 else f"{text[:30]}... ({len(self.name)} bytes)"


def _file(content: bytes, mode: int = 0o644) -> Callable[[bytes, Path], None]:
    def make(path: bytes, witness: Path) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)

    return make


def _link(target: str | bytes) -> Callable[[bytes, Path], None]:
    return lambda path, witness: os.symlink(os.fsencode(target), path)


def _folder(*files: tuple[str, bytes], mode: int = 0o755) -> Callable[[bytes, Path], None]:
    def make(path: bytes, witness: Path) -> None:
        os.makedirs(path)
        for name, content in files:
            _file(content)(os.path.join(path, os.fsencode(name)), witness)
        os.chmod(path, mode)

    return make


def _socket(path: bytes, witness: Path) -> None:
    # A socket's address is short, the way to the tree may be long.
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(os.path.dirname(path))
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.basename(path))
    finally:
        os.fchdir(here)
        os.close(here)


def _sparse(size: int) -> Callable[[bytes, Path], None]:
    def make(path: bytes, witness: Path) -> None:
        with open(path, "wb") as file:
            file.truncate(size)

    return make


def _executable(before: str = "") -> Callable[[bytes, Path], None]:
    """A module that says so when it is run or imported."""

    def make(path: bytes, witness: Path) -> None:
        mark = os.fspath(witness / os.path.basename(os.fsdecode(path)))
        text = f"{before}\nopen({mark!r}, 'w').close()\n".encode() + PROGRAM
        _file(text)(path, witness)

    return make


def _deep(path: bytes, witness: Path) -> None:
    _file(PROGRAM)(path + b"/d" * 200 + b"/a.py", witness)


def _zip() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
        archive.writestr("../../evil.py", PROGRAM)
    return held.getvalue()


def _tar() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        info = tarfile.TarInfo("../evil.py")
        info.size = len(PROGRAM)
        archive.addfile(info, io.BytesIO(PROGRAM))
    return held.getvalue()


def _python(text: str | bytes, before: bytes = PROGRAM) -> Callable[[bytes, Path], None]:
    return _file(before + (text.encode() if isinstance(text, str) else text))


def _names(*names: str | bytes) -> list[Entry]:
    return [Entry(os.fsencode(name), _file(PROGRAM), CONVERTED) for name in names]


def _kept(name: str, content: bytes) -> Entry:
    return Entry(name.encode(), _file(content), SAME)


#: Python's parser gives up on so many terms before 3.13.
DEEP = SAME if sys.version_info < (3, 13) else CONVERTED

ENTRIES: tuple[Entry, ...] = (
    # What is no file.
    Entry(b"fifo", lambda path, _: os.mkfifo(path), NAMED),
    Entry(b"fifo.py", lambda path, _: os.mkfifo(path), NAMED),
    Entry(b"requirements-fifo.txt", lambda path, _: os.mkfifo(path), NAMED),
    Entry(b"socket", _socket, NAMED),
    Entry(b"socket.py", _socket, NAMED),
    Entry(b"zero.py", _link("/dev/zero"), NAMED),
    Entry(b"random", _link("/dev/urandom"), NAMED),
    Entry(b"tty", _link("/dev/tty"), NAMED),
    Entry(b"stdin.py", _link("/dev/stdin"), NAMED),
    Entry(b"memory", _link("/proc/self/mem"), NAMED),
    Entry(b"folder.py", _folder(("in.py", PROGRAM)), SAME),
    Entry(b"empty_folder", _folder(), SAME),
    Entry(b"__init__.py", _folder(("__init__.py", PROGRAM)), SAME),
    # Links.
    Entry(b"self", _link("self"), NAMED),
    Entry(b"self.py", _link("self.py"), NAMED),
    Entry(b"ping", _link("pong"), NAMED),
    Entry(b"pong", _link("ping"), NAMED),
    Entry(b"here", _link("."), NAMED),
    Entry(b"above", _link(".."), NAMED),
    Entry(b"root", _link("/"), NAMED),
    Entry(b"nowhere.py", _link("no/such/file"), NAMED),
    Entry(b"passwd.py", _link("/etc/passwd"), NAMED),
    Entry(b"outside.py", _link("../outside/victim.py"), NAMED),
    Entry(b"outside", _link("../outside"), NAMED),
    Entry(b"long_link", _link("x/../" * 700 + "a"), NAMED),
    Entry(b"inside.py", _link("plain.py"), SAME),
    Entry(b"to_fifo.py", _link("fifo.py"), NAMED),
    Entry(b"link\nto", _link("/"), NAMED),
    # Names.
    *_names(
        "plain.py", "new\nline.py", "tab\t.py", "bell\x07.py", "escape\x1b[31m.py", "return\r.py", "\u202egnp.yp.py", "zero\u200bwidth.py", "\u2028.py",
        b"\xff\xfe.py", b"caf\xe9.py", b"\xed\xa0\x80.py", "\u00e9.py", "e\u0301.py", "\U0001f525.py", " .py", "-rf.py", "--output=x.py", "$(touch x).py",
        "`id`.py", "'.py", '".py', "=1+1.py", "@SUM.py", "%s%n.py", "{0}.py", "a;b.py", "a|b.py", "a\\b.py", "..py", "...py", "~.py", "*.py", "[a].py",
        "#.py", "CON.py", "nul.py", "COM1.py", "aux.py", "case.py", "CASE.py", "Case.py", "x" * 252 + ".py", "\u4e2d" * 84 + ".py", "<script>.py", "&amp;.py",
        "{{x}}.py", "trailing. .py",
    ),
    # Modules that somebody could import by mistake.
    *(
        Entry(name.encode(), _executable(), CONVERTED)
        for name in (
            "click.py", "sitecustomize.py", "usercustomize.py", "torch.py", "conftest.py", "setup.py", "libcst.py", "ast.py", "json.py", "transplt.py",
            "__main__.py", "tests/conftest.py", "rich/__init__.py",
        )
    ),
    # Contents.
    _kept("empty.py", b""),
    _kept("newline.py", b"\n"),
    _kept("nul.txt.py", b"\0" * 100),
    _kept("nul_in.py", PROGRAM + b"x = '\0'\n"),
    _kept("bom_only.py", b"\xef\xbb\xbf"),
    _kept("utf16.py", PROGRAM.decode().encode("utf-16")),
    _kept("latin.py", PROGRAM + b"# caf\xe9\n"),
    _kept("cookie.py", b"# coding: no-such-codec\n" + PROGRAM),
    _kept("undefined.py", b"# coding: undefined\n" + PROGRAM),
    _kept("zip.py", _zip()),
    _kept("tar.py", _tar()),
    _kept("pickle.py", b"cos\nsystem\n(S'touch x'\ntR.torch.cuda"),
    _kept("elf.py", b"\x7fELF\x02\x01\x01" + b"\0" * 60),
    _kept("python2.py", b"import torch\nprint torch.cuda\n"),
    _kept("brackets.py", PROGRAM + b"x = " + b"(" * 5000 + b")" * 5000 + b"\n"),
    _kept("open_bracket.py", PROGRAM + b"x = " + b"[" * 100_000),
    _kept("many_nots.py", PROGRAM + b"x = " + b"not " * 100_000 + b"1\n"),
    Entry(b"double_bom.py", _file(b"\xef\xbb\xbf\xef\xbb\xbf" + PROGRAM), SAME),
    Entry(b"bom.py", _file(b"\xef\xbb\xbf" + PROGRAM), CONVERTED),
    Entry(b"crlf.py", _file(PROGRAM.replace(b"\n", b"\r\n")), CONVERTED),
    Entry(b"cr.py", _file(PROGRAM.replace(b"\n", b"\r")), CONVERTED),
    Entry(b"mixed.py", _file(b"import torch\r\ntorch.cuda.synchronize()\rx = 1\n"), CONVERTED),
    Entry(b"huge_int.py", _python("x = " + "9" * 100_000 + "\n"), SAME),
    Entry(b"huge_hex.py", _python("x = 0x" + "f" * 100_000 + "\n"), CONVERTED),
    Entry(b"decorators.py", _python("@torch.cuda.amp.custom_fwd\n" * 2000 + "def f(): pass\n"), CONVERTED),
    Entry(b"long_line.py", _python("x = '" + "a" * 2_000_000 + "'\n"), CONVERTED),
    Entry(b"long_name.py", _python("a" * 500_000 + " = 1\n"), CONVERTED),
    Entry(b"terms.py", _python("x = " + " + ".join(["y"] * 3000) + "\n"), DEEP),
    Entry(b"parameters.py", _python("def f(" + ", ".join(f"a{i}" for i in range(3000)) + "): pass\n"), CONVERTED),
    Entry(b"power.py", _python("x = 9 ** 9 ** 9 ** 9\ny = 'a' * 10 ** 12\n"), CONVERTED),
    Entry(b"form_feed.py", _python("\x0cif 1:\n\x0c \tpass\n"), CONVERTED),
    Entry(b"bidi.py", _python("x = '\u202e' # \u2066\u202e\n"), CONVERTED),
    Entry(b"alike.py", _python("t\u043erch = \U0001d4ec = 1\n"), CONVERTED),
    Entry(b"no_newline.py", _file(PROGRAM.rstrip()), CONVERTED),
    Entry(b"sparse.bin", _sparse(3 * 2**30), NAMED),
    Entry(b"bomb.ipynb", _file(b'{"cells": ' + b"[" * 50_000 + b"]" * 50_000 + b', "x": "cuda"}'), SAME),
    Entry(b"bomb.yaml", _file(b"a: &a [cuda]\n" + b"".join(b"%c: &%c [*%c,*%c]\n" % (c + 1, c + 1, c, c) for c in range(97, 121))), SAME),
    Entry(b"no_end.json", _file(b'{"cuda": "' + b"\\" * 100_001), SAME),
    Entry(b"words.txt", _file(b"cuda " * 200_000), SAME),
    Entry(b"bomb.sh", _file(b"#!/bin/sh\n:(){ :|:& };:\npython x.py cuda $(touch x)\n", 0o755), SAME),
    Entry(b"set_id.py", _file(PROGRAM, 0o4755), CONVERTED),
    Entry(b"read_only.py", _file(PROGRAM, 0o444), CONVERTED),
    Entry(b"unreadable.py", _file(PROGRAM, 0), NAMED),
    Entry(b"unreadable.txt", _file(PROGRAM, 0), NAMED),
    Entry(b"closed", _folder(("a.py", PROGRAM), mode=0), NAMED),
    Entry(b"no_listing", _folder(("a.py", PROGRAM), mode=0o311), NAMED),
    # Depth, and what tools leave behind.
    Entry(b"deep", _deep, SAME),
    Entry(b"loop", _folder(("__init__.py", b"from . import a\nfrom .a import *\n"), ("a.py", b"from . import *\n" + PROGRAM)), SAME),
    Entry(b"wide", _folder(*((f"{i}.txt", b"x") for i in range(500))), SAME),
    Entry(b"ignoring", _folder((".gitignore", b"*a*a*a*a*a*a*a*b\n" + b"**/" * 50 + b"x\n" + b"*" * 60 + b"b\n[z-a]\n[[:x:]]\n"), ("a" * 200, b"x")), SAME),
    Entry(b"repository", _folder((".git/index", b"DIRC\0\0\0\2\xff\xff\xff\xff" + b"\0" * 70), ("a.py", PROGRAM)), SAME),
    Entry(b"worktree", _folder((".git", b"gitdir: /\n"), ("a.py", PROGRAM)), SAME),
    Entry(b"worktree_of_itself", _folder((".git", b"gitdir: .git\n"), ("a.py", PROGRAM)), SAME),
    Entry(b"report.html", _file(b"mine"), SAME),
    Entry(b"change_list.csv", _file(b"mine"), SAME),
    Entry(b"environment", _folder(("pyvenv.cfg", b""), ("a.py", PROGRAM)), NAMED),
    Entry(b"inner_settings", _folder(("pyproject.toml", b"[tool.transplt\n"), ("a.py", PROGRAM)), SAME),
    Entry(b".git", _folder(("config", b"[core]\n\tfsmonitor = touch x\n"), ("index", b"DIRC")), SKIPPED),
)  # fmt: skip


@dataclass(frozen=True)
class Project:
    """Files of a project on its own; `special` makes what is no plain file. `codes` are the exit codes that are right.

    A file good.py lies in each; with `good` it is in the output of a migration that was not refused.
    """

    name: str
    files: tuple[tuple[str, bytes], ...] = ()
    special: Callable[[Path, Path], None] = lambda top, witness: None
    codes: tuple[int, ...] = (0, 1)
    command: tuple[str, ...] = ("-i", "{project}", "-o", "{out}")
    good: bool = True
    fails: str = ""

    def __str__(self) -> str:
        return self.name


def _settings(text: str) -> tuple[str, bytes]:
    return "pyproject.toml", f"[tool.transplt]\n{text}\n".encode()


def _made(name: str, make: Callable[[bytes, Path], None]) -> Callable[[Path, Path], None]:
    return lambda top, witness: make(os.fsencode(top / name), witness)


def _repository(top: Path, witness: Path) -> None:
    """A clean repository whose configuration names programs in every place that `git status` looks at."""
    program = top / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch '{witness}/git'\ncat\n")
    program.chmod(0o755)
    (top / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    git = ["git", "-C", os.fspath(top), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "x"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "filter.evil.clean", "filter.evil.process", "diff.evil.command", "diff.evil.textconv"):
        subprocess.run([*git, "config", name, str(program)], check=True)
    shutil.copy(program, top / ".git" / "hooks" / "post-index-change")
    os.utime(top / "good.py", (1, 1))  # git has to look at the content again


def _long_path(top: Path, witness: Path) -> None:
    """A file under a path that is longer than the system takes in one piece."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(17):
        os.mkdir("l" * 240, dir_fd=at)
        below = os.open("l" * 240, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    with open("a.py", "wb", opener=lambda path, flags: os.open(path, flags, dir_fd=at)) as file:
        file.write(PROGRAM)
    os.close(at)


_FIX = ("check", "--fix", "--style", "npu", "{project}")

PROJECTS: tuple[Project, ...] = (
    Project("no TOML", (("pyproject.toml", b"[tool.transplt\n"),), codes=(2,)),
    Project("deep TOML", (("pyproject.toml", b"[tool.transplt]\nx = " + b"[" * 50_000),), codes=(2,)),
    Project("TOML of bytes", (("pyproject.toml", b"transplt\xff\0"),), codes=(2,)),
    Project("settings that are a list", (("pyproject.toml", b"[tool]\ntransplt = []\n"),), codes=(2,)),
    Project("settings as a FIFO", special=_made("pyproject.toml", lambda path, _: os.mkfifo(path)), codes=(2,)),
    Project("settings of zeros", special=_made("pyproject.toml", _link("/dev/zero")), codes=(0, 1, 2)),
    Project("settings of 3 GB", special=_made("pyproject.toml", _sparse(3 * 2**30)), codes=(2,)),
    Project("settings in a folder", special=_made("pyproject.toml", _folder()), codes=(0, 1, 2)),
    Project("rules outside", (_settings("rules = ['/etc/passwd']"),), codes=(2,)),
    Project("rules above", (_settings("rules = ['../outside/rules.json']"),), codes=(2,)),
    Project("rules through a link", (_settings("rules = ['r.json']"),), _made("r.json", _link("/etc/passwd")), (2,)),
    Project("rules as a FIFO", (_settings("rules = ['r.json']"),), _made("r.json", lambda path, _: os.mkfifo(path)), (2,)),
    Project("rules of zeros", (_settings("rules = ['r.json']"),), _made("r.json", _link("/dev/zero")), (2,)),
    Project("rules of 3 GB", (_settings("rules = ['r.json']"),), _made("r.json", _sparse(3 * 2**30)), (2,)),
    Project("rules nested", (_settings("rules = ['r.json']"), ("r.json", b"[" * 100_000)), codes=(2,)),
    Project("rules with a name that is no name", (_settings("rules = ['r.json']"), ("r.json", b'{"rules": {"FuncNameModifyRule": [{"old_name": "a\\u0000", "new_name": "import os"}]}}')), codes=(2,)),
    Project("a rule that breaks the program", (_settings("rules = ['r.json']"), ("r.json", b'{"rules": {"ArgsModifyRule": [{"func_name": "synchronize", "arg_idx": 0, "arg_new": "x:=1"}]}}')), codes=(0, 1, 2)),
    Project("rules given as a FIFO", special=_made("r.json", lambda path, _: os.mkfifo(path)), codes=(2,), command=("-i", "{project}", "-o", "{out}", "-r", "{project}/r.json")),
    Project("rules given as zeros", codes=(2,), command=("-i", "{project}", "-o", "{out}", "-r", "/dev/zero")),
    Project("a baseline of zeros", codes=(2,), command=("check", "{project}", "--baseline", "/dev/zero")),
    Project("a baseline as a FIFO", special=_made("b.json", lambda path, _: os.mkfifo(path)), codes=(2,), command=("check", "{project}", "--baseline", "{project}/b.json")),
    Project("Python of 3 GB", special=_made("sparse.py", _sparse(3 * 2**30)), codes=(1,)),
    Project("an index as a FIFO", ((".git/HEAD", b"x"),), _made(".git/index", lambda path, _: os.mkfifo(path))),
    Project("ignores as a FIFO", ((".git/index", b"DIRC\0\0\0\2\0\0\0\0" + b"\0" * 20),), _made(".gitignore", lambda path, _: os.mkfifo(path))),
    Project("a file that idna cannot encode", (("idna.py", b"# coding: idna\n" + PROGRAM + b"# " + b"a" * 100 + b"\n"),), codes=(1,)),
    Project("requirements as a FIFO", special=_made("requirements.txt", lambda path, _: os.mkfifo(path))),
    Project("everything ignored", (_settings("exclude = ['**']"),), codes=(0, 1, 2), good=False),
    Project("excluded forever", (_settings("exclude = ['*a*a*a*a*a*a*a*b', '" + "*" * 60 + "b']"), ("a" * 250, b"x"))),
    Project("no such pattern", (_settings("exclude = ['[z-a]']"),), codes=(2,)),
    Project("ignored forever", (_settings("per-file-ignores = {'" + "*a" * 25 + "b' = ['NPU']}"), ("a" * 240 + ".py", PROGRAM))),
    Project("a path of 4,000 bytes", special=_long_path, codes=(0, 1)),
    Project("a manifest of somebody else", ((".transplt/manifest.json", b'{"tool": "transplt", "format": 1, "files": {}, "reports": {"a.py": 1}}'),), codes=(0, 1, 2)),
    Project("git's programs, looked at", special=_repository),
    Project("git's programs, fixed in place", special=_repository, codes=(0, 1, 2), command=_FIX),
)  # fmt: skip


def build(top: Path, witness: Path) -> None:
    """The tree of all entries."""
    top.mkdir()
    root = os.fsencode(top)
    for entry in ENTRIES:
        path = os.path.join(root, entry.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        entry.make(path, witness)


def build_project(project: Project, top: Path, witness: Path) -> None:
    top.mkdir()
    for name, content in (("good.py", PROGRAM), *project.files):
        _file(content)(os.fsencode(top / name), witness)
    project.special(top, witness)


def open_up(top: Path) -> None:
    """Makes closed folders readable, so that the tree can be looked at and removed."""
    for folder, names, _ in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.chmod(path, 0o755)
