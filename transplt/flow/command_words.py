"""The words of a command: what each stands for, and what is started behind the wrappers and launchers before it.

A command is a shell's, or a list of words that some program starts as they are (`CMD ["python", "train.py"]`,
`subprocess.run([...])`): what its words mean is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Commands that start what stands behind them, and their options that take a word of their own.
WRAPPERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("nohup", "exec", "command", "setsid", "builtin", "stdbuf", "time", "then", "do"), frozenset()),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n", "-p"}),
    "timeout": frozenset({"-s", "-k"}),
    "taskset": frozenset({"-c"}),
    "numactl": frozenset(),
    "sudo": frozenset({"-u", "-g", "-h", "-p"}),
    "env": frozenset({"-u", "-C", "-S"}),
    "watch": frozenset({"-n", "--interval"}),
}
#: Wrappers with a first word of their own: the time limit, the mask.
_WITH_OWN_WORD = frozenset({"timeout", "taskset"})
#: Wrappers that need a second word: `uv run python x.py`.
_RUNNERS = {("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("conda", "run"),
            ("mamba", "run"), ("pixi", "run"), ("coverage", "run")}  # fmt: skip
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*")
#: Launchers of training scripts.
_LAUNCHERS = frozenset(
    "torchrun deepspeed accelerate horovodrun mpirun mpiexec srun mpirun_rsh orterun prun composer colossalai "
    "lightning fabric bsub sbatch qsub salloc".split()
)
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash"})
_ASSIGNS = re.compile(r"[A-Za-z_]\w*=")
_SCRIPT = re.compile(r".*\.pyw?")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command: its bytes, its source, and what it stands for (None: the shell works it out)."""

    extent: tuple[int, int]
    source: str
    value: str | None
    node: Any = None  # of the shell's grammar


@dataclass(frozen=True, slots=True)
class Started:
    """A Python program that a command starts: its path or module as written, and the words behind and before it."""

    script: str
    arguments: tuple[Word, ...]
    before: tuple[Word, ...]


def split(text: str, start: int) -> list[Word]:
    """The words in a text that is read word by word, such as the options in a variable; `start`: where it begins."""
    found = []
    for match in re.finditer(r"[^\s\\]+", text):
        at = start + len(text[: match.start()].encode())
        found.append(Word((at, at + len(match.group().encode())), match.group(), match.group()))
    return found


def base(word: Word) -> str:
    """The name of a program without its folder; empty where the shell works it out."""
    return (word.value or "").rpartition("/")[2]


def unwrapped(words: Sequence[Word]) -> Sequence[Word]:
    """The words from the program on that wrappers start; assignments of `env` are passed by."""
    while words:
        name = base(words[0])
        if len(words) > 1 and (name, words[1].value) in _RUNNERS:
            words = behind_options(words[2:], frozenset({"-n", "--name", "-p", "--prefix", "--extra", "--with"}))
        elif name in WRAPPERS:
            words = behind_options(words[1:], WRAPPERS[name])
            if name in _WITH_OWN_WORD and words:
                words = words[1:]
        elif _ASSIGNS.match(words[0].source):
            words = words[1:]
        else:
            break
    return words


def behind_options(words: Sequence[Word], with_word: frozenset[str]) -> Sequence[Word]:
    """The words behind the options at the start; `with_word`: options that take a word of their own."""
    at = 0
    while at < len(words) and words[at].source.startswith("-"):
        at += 2 if words[at].value in with_word else 1
    return words[at:]


def is_python(word: Word) -> bool:
    """True for a Python interpreter, by its name or the variable that holds one."""
    return _PYTHON.fullmatch(word.value or "") is not None or re.fullmatch(
        r'"?\$\{?PY(?:THON)?\w*\}?"?', word.source, re.I
    ) is not None


def started(words: Sequence[Word]) -> Started | None:
    """The Python program that a command starts, through wrappers and launchers; None where no Python file is named."""
    words = unwrapped(words)
    if not words:
        return None
    launches = base(words[0]) in _LAUNCHERS or is_python(words[0])
    if not launches and not _SCRIPT.fullmatch(words[0].value or ""):
        return None
    for at, word in enumerate(words):
        value = word.value or ""
        if value == "-c" and is_python(words[at - 1]):
            return None
        if _SCRIPT.fullmatch(word.value or word.source.strip("\"'")) or re.search(r"\.py\}?\"?$", word.source):
            return Started(value, tuple(words[at + 1 :]), tuple(words[:at]))
        if value in ("-m", "--module") and at + 1 < len(words):
            module = words[at + 1].value or ""
            if module.startswith(("torch.distributed.", "torch.multiprocessing", "accelerate.", "deepspeed.", "pdb")):
                continue
            path = module.replace(".", "/") + ".py" if module else ""
            return Started(path, tuple(words[at + 2 :]), tuple(words[:at]))
    return None
