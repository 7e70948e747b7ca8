"""What a shell script starts. In the portable style one that starts a program gets a twin for NPUs (`run_npu.sh`) and
stays what it is; a job of a cluster gets none, since each cluster has names of its own for its cards.
"""

from __future__ import annotations

import re

from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.words import words_of
from transplt.flow.command_words import base, started, unwrapped

PROGRAM, JOB = "program", "job"
#: What builds and installs the program.
_TOOLS = frozenset({"setup.py", "pip.py", "venv.py"})
_ASKS_A_CLUSTER = re.compile(rb"^#(?:SBATCH|PBS|BSUB|\$)[ \t]", re.M)
_OF_A_CLUSTER = frozenset("srun sbatch salloc qsub bsub".split())


def starts(script: Script) -> str:
    """What a script starts, a `program` or a `job`; empty for neither."""
    found = ""
    for command in script.walk("command"):
        words = unwrapped(words_of(script, command))
        if words and base(words[0]) in _OF_A_CLUSTER:
            return JOB
        program = started(words)
        if program is not None and program.script.rpartition("/")[2] not in _TOOLS:
            found = PROGRAM
    return JOB if found and _ASKS_A_CLUSTER.search(script.document.utf8) else found
