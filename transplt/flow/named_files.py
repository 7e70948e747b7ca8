"""What the name of a file alone says of it."""

from __future__ import annotations

import re

#: Folders and files that a training script does not run, whatever stands in them.
_NAMED = re.compile(
    r"(^|/)(tests?|testing|unittests?|docs?|benchmark(?:s|ing)?|old|legacy|deprecated|archived?|backup|attic"
    r"|\.[\w-]+)/"
    r"|(^|/)(test_[^/]*\.py|[^/]*_test\.py|conftest\.py|\.gitlab-ci\.yml|[^/]*\.(?:ps1|bat|cmd))$"
)
#: Files for people: what is to do in them is tidying, wherever they lie.
PROSE = (".md", ".rst")
#: Files of commands that run elsewhere than where the project is installed.
_JOB = re.compile(
    r"(?:^|/)(?:[^/]*docker[^/]*(?<!\.py)|[^/]*\.(?:slurm|sbatch|pbs|lsf|def)|cog\.ya?ml|(?:docker-)?compose[^/]*\.ya?ml)$"
    r"|^\.(?:github|devcontainer|circleci)/|^[.]?(?:appveyor|travis|gitlab-ci|azure-pipelines)\.ya?ml$"
)


def of_a_job(path: str) -> bool:
    """True for what a container, a scheduler or a service reads, and nobody who starts the program itself."""
    return _JOB.search(path.lower()) is not None


def named_aside(path: str) -> bool:
    """True for a file that by its name only tests, benchmarks, documentation or a CI service run, or old code."""
    return _NAMED.search(path) is not None and not path.endswith(PROSE)
