"""The one place where git is run: on a repository of somebody else, whose configuration can name programs.

`.git/config` may give git a file system monitor, hooks, filters of contents and transports to start. What is known by
its name is switched off here; filters have names of the repository's own choice, so these are looked up first (`git
config` starts nothing). The configuration of the user and of the machine stays in force: what is safe and what git-lfs
does stands there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

_OFF = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "diff.external=",
    "protocol.allow=never",
    "submodule.recurse=false",
)
#: No index is written, so that no hook of that runs; nothing is fetched; nobody is asked.
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
}
#: So many characters of git's own reason are passed on.
_LONGEST_REASON = 200
#: Scopes of the configuration that belong to the repository.
_OWN_SCOPES = (b"local", b"worktree")


def status(top: Path, *paths: str) -> bytes:
    """`git status --porcelain -z` of the repository at `top`, or of these paths in it. OSError when git is not there or
    fails.

    Nobody looks into submodules: they have a configuration of their own.
    """
    off = [*_OFF, *_filters_off(top)]
    return _run(top, off, "status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty", "--", *paths)


def commit_of(folder: Path) -> str:
    """The commit that a folder of a work tree is at, with `+changes` where files in it are others or new; "" where git
    tracks nothing in it, is not there, or cannot say."""
    try:
        if not _run(folder, _OFF, "ls-files", "-z", "--", "."):
            return ""
        commit = _run(folder, _OFF, "rev-parse", "--verify", "HEAD").decode("ascii", "replace").strip()
        return f"{commit}+changes" if status(folder, ".") else commit
    except OSError:
        return ""


def commit_before(top: Path, ref: str) -> str:
    """The commit at which HEAD left `ref`. LookupError, with what to do, where there is none; OSError as for status."""
    try:
        commit = _run(top, _OFF, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except FileNotFoundError:
        raise
    except OSError:
        raise LookupError("git does not know this commit; fetch it, or name another one") from None
    name = commit.decode("ascii", "replace").strip()
    try:
        return _run(top, _OFF, "merge-base", name, "HEAD").decode("ascii", "replace").strip()
    except OSError:
        shallow = _run(top, _OFF, "rev-parse", "--is-shallow-repository").strip() == b"true"
        hint = "the clone is shallow: fetch its history (git fetch --unshallow; in CI fetch-depth: 0)"
        raise LookupError(f"it has no commit in common with HEAD{'; ' + hint if shallow else ''}") from None


def difference(top: Path, commit: str) -> bytes:
    """The patch from a commit to the working tree, without context; nothing of the configuration changes its form."""
    plain = (
        "--no-ext-diff", "--no-textconv", "--no-color", "--text", "--unified=0", "--inter-hunk-context=0",
        "--no-relative", "--find-renames", "--diff-filter=d", "--ignore-submodules=all", "--src-prefix=a/",
        "--dst-prefix=b/", "--no-indent-heuristic", "--diff-algorithm=myers", "--submodule=short",
    )  # fmt: skip
    return _run(top, [*_OFF, *_filters_off(top)], "diff", *plain, commit, "--")


def untracked(top: Path) -> list[bytes]:
    """The files that git neither knows nor ignores, relative to `top`."""
    listed = _run(top, _OFF, "ls-files", "--others", "--exclude-standard", "-z")
    return [name for name in listed.split(b"\0") if name]


def run_git(top: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> bytes:
    """What a command of git says that looks at objects and refs alone, and at no file of the working tree."""
    return _run(top, _OFF, *arguments, stdin=stdin, environment=environment)


#: What may be cloned, and nothing else: `ext::` starts programs, http and git prove nothing of who answers.
SCHEMES = ("https", "ssh", "file")
_URL = re.compile(r"(https|ssh|file)://[^\s-]\S*")
#: `host:path` as ssh has it; with a name before it, so that it is no path of a drive.
_SCP = re.compile(r"\w[\w.-]*@\w[\w.-]*:[^\s:-]\S*")
#: Over the settings above: a remote is spoken to, by the user's own programs, and nobody is asked anything.
_REMOTE = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    *(f"protocol.{scheme}.allow=always" for scheme in SCHEMES),
    "submodule.recurse=false",
    "init.templateDir=",
)
_REMOTE_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES),
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GCM_INTERACTIVE": "never",
}


def is_url(text: str) -> bool:
    """True for a URL that `clone` takes: https, ssh (`user@host:path` too) and file."""
    return _URL.fullmatch(text) is not None or _SCP.fullmatch(text) is not None


def remote_head(url: str) -> str:
    """The commit that a clone of a URL would have. OSError when the remote does not answer or has none."""
    asked = ("ls-remote", "--quiet", "--", _checked(url), "HEAD")
    output = _run(Path.cwd(), _REMOTE, *asked, environment=_REMOTE_ENVIRONMENT)
    commit = output.decode("ascii", "replace").partition("\t")[0]
    if not commit:
        raise OSError("the remote has no commit")
    return commit


def clone(url: str, folder: str) -> str:
    """Clones the newest commit of a URL into a new folder, without submodules and hooks; returns the commit.

    OSError when git is not there or fails.
    """
    options = ("--quiet", "--depth", "1", "--no-recurse-submodules", "--no-tags", "--template=")
    _run(Path(folder).parent, _REMOTE, "clone", *options, "--", _checked(url), folder, environment=_REMOTE_ENVIRONMENT)
    return run_git(Path(folder), "rev-parse", "HEAD").decode("ascii", "replace").strip()


def _checked(url: str) -> str:
    if not is_url(url):
        raise OSError("only URLs of https, ssh and file are cloned")
    return url


def _filters_off(top: Path) -> Iterable[str]:
    """Settings that switch off the filters that the repository itself configures. OSError for a name that hides one."""
    listed = _run(top, _OFF, "config", "--list", "--show-scope", "--name-only", "-z").split(b"\0")
    for scope, key in zip(listed[::2], listed[1::2], strict=False):
        name = os.fsdecode(key)
        if scope not in _OWN_SCOPES or not name.startswith("filter."):
            continue
        if "=" in name:  # `git -c` would take what is before it for the key
            raise OSError(f"its configuration has a filter with an odd name: {name!r}")
        yield f"{name}={'false' if name.endswith('.required') else ''}"


def _run(
    top: Path,
    settings: Iterable[str],
    *arguments: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> bytes:
    command = [_git(), "-C", str(top), "--no-pager"]
    for setting in settings:
        command += ["-c", setting]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [*command, *arguments],
            env=kept | _ENVIRONMENT | dict(environment or {}),
            input=stdin,
            capture_output=True,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        errors = error.stderr.decode("utf-8", "replace").strip().splitlines()
        # git says more below its reason: "Please make sure you have the correct access rights"
        why = [line for line in errors if line.startswith(("fatal: ", "error: "))][-1:] or errors[-1:]
        reason = "".join(c if c.isprintable() else " " for c in why[0][:_LONGEST_REASON]) if why else ""
        raise OSError(f"git {arguments[0]} ended with {error.returncode}{': ' * bool(reason)}{reason}") from error
    except ValueError as error:  # a null byte
        raise OSError(str(error)) from error
    return done.stdout


def _git() -> str:
    """The program, from the absolute folders of PATH: one in the current folder may belong to the input."""
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)]
    found = shutil.which("git", path=os.pathsep.join(folders))
    if found is None or os.path.dirname(found) not in folders:
        raise FileNotFoundError("git is not installed")
    return found
