"""pip and uv as they are run for a user: with the user's settings of indexes, and a clause of why they failed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Sequence

from transplt.base.errors import shown

#: A package that takes longer, in seconds, is one that is being compiled.
LONGEST = 900.0
#: What pip's settings are called for uv, which reads none of pip's.
_FOR_UV = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL": "UV_INDEX", "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_NO_INDEX": "UV_NO_INDEX", "PIP_CONSTRAINT": "UV_CONSTRAINT", "PIP_CERT": "SSL_CERT_FILE",
}  # fmt: skip
#: Lines of pip and uv that say which package it is: of its releases, what they ask for, or how it is built.
_BLAMES = re.compile(
    r"(?i)Cannot install|No matching distribution|Could not find a version|Failed (?:building|to build)"
    r"|because (?:you require|there (?:is|are) no)|depends on torch"
)


class Failed(Exception):
    """Why something was not installed, as a clause for the user; `offline` where the index could not be reached, and
    `output` is what pip or uv printed."""

    def __init__(self, why: str, offline: bool = False, output: str = "") -> None:
        super().__init__(why)
        self.offline, self.output = offline, output

    def names(self, name: str) -> bool:
        """Whether a line that says what went wrong names a distribution."""
        word = re.compile(rf"(?<![\w.-]){re.escape(name).replace('-', '[-_.]')}(?![\w-])", re.IGNORECASE)
        return any(word.search(line) for line in self.output.splitlines() if _BLAMES.search(line))


def carry_out(command: Sequence[str], keep_open: Sequence[int] = ()) -> str:
    """Run pip, uv or a Python of an environment, which inherits the files `keep_open`, and give what it printed. Failed
    where it fails.
    """
    # What the user has decided for environments of their own does not hold for ours.
    environment = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_NO_INPUT": "1"}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    for theirs, ours in _FOR_UV.items():
        if os.environ.get(theirs) and ours not in environment:
            environment[ours] = os.environ[theirs]
    environment.pop("PYTHONPATH", None)
    try:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True, pass_fds=keep_open,
        )  # fmt: skip
    except OSError as error:
        raise Failed(f"{shown(command[0])} cannot be started: {error.strerror}") from error
    try:
        output, _ = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired as error:
        _end(process)
        raise Failed(f"the installation took longer than {LONGEST / 60:.0f} minutes") from error
    except BaseException:
        _end(process)
        raise
    if process.returncode:
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"(?i)\W*(?:error|because)\b|\w+Error:", line)]
        said = (errors or lines or [f"exit code {process.returncode}"])[-1]
        offline = any("Retrying (" in line or "error sending request" in line for line in lines)
        raise Failed(shown(said.removeprefix("ERROR: ")), offline, output)
    return output


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
