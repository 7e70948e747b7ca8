"""What a shell script starts. In the portable style one that starts a program gets a twin for NPUs (`run_npu.sh`) and
stays what it is; a job of a cluster gets none, since each cluster has names of its own for its cards.
"""

from __future__ import annotations

import re

from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.words import words_of
from transplt.flow.command_options import path_of
from transplt.flow.command_words import base, started, unwrapped
from transplt.flow.facts import ProjectFacts
from transplt.flow.import_layout import layout_of, leading_to

PROGRAM, JOB = "program", "job"
#: What builds and installs the program.
_TOOLS = frozenset({"setup.py", "pip.py", "venv.py"})
#: A request for cards, and what NCCL has to know of the network of one cluster.
_ASKS_A_CLUSTER = re.compile(
    rb"^(?:#(?:SBATCH|PBS|BSUB|\$)[ \t]|[ \t]*(?:export[ \t]+)?NCCL_(?:FASTRAK|IB_HCA|NET|TOPO|TUNER)\w*=)", re.M
)
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


def takes_the_module(script: Script) -> bool:
    """True where what a script starts imports the module of the accelerator, as a program does that speaks of CUDA; of
    one that starts nothing, where the project has any.
    """
    project, path = script.document.project, script.document.path
    programs = (started(unwrapped(words_of(script, command))) for command in script.walk("command"))
    found = {path_of(project, path, each) for each in programs if each is not None}
    speaking = project.once(_speaking)
    return "" not in found and bool(speaking & found if found else speaking)


def _speaking(project: ProjectFacts) -> frozenset[str]:
    """The files that reach one that speaks of CUDA."""
    speaking = (path for path, facts in project.placing.items() if facts.speaks and path.endswith(".py"))
    return frozenset(leading_to(project.once(layout_of), speaking))
