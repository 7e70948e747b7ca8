"""Commands that install packages: `pip install`, `conda install`, `uv add`, in shell, containers, workflows, notebooks.

They are found by their words; the language around them is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from transplt.base.text.requirement import Requirement, requirement_in

_INSTALL = re.compile(
    r"\b(?:pip[\d.]*|conda|mamba|micromamba)(?:[ \t]+-\S{1,80}){0,6}[ \t]+(?:install|create)\b"
    r"|\b(?:uv|poetry|pdm)[ \t]+add\b|\bpipenv[ \t]+install\b"
)
#: One of these is in each of them.
_INSTALLERS = ("pip", "conda", "mamba", "uv", "poetry", "pdm")
_WORD = re.compile(r"\\\r?\n|\"[^\"\n]*\"|'[^'\n]*'|&&|\|\||[;|\n]|(?:[^\s\\\"';|&]|\\(?!\r?\n|n|\"))+|\\n|\\\"|&")
_WITH_VALUE = re.compile(
    r"-[a-zA-Z]$|--(?:index-url|extra-index-url|find-links|requirement|constraint|target|prefix|channel|name|root|retries|resume-retries|default-index|index|platform|abi|"
    r"python-version|implementation|progress-bar|report|log|proxy|cert|extra|"
    r"trusted-host|cache-dir|timeout|no-binary|only-binary|global-option|config-settings|group|source|python)$"
)
_CLONE = re.compile(
    r"\bgit[ \t]+clone\b[^\n;&|]{0,200}?(?:https?://|ssh://|git@)[\w.@-]+[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?(?=[\s;&|\"']|\Z)"
)
#: A build from a folder: `pip install .`, `pip install csrc/x`, `python setup.py install`.
_BUILDS = re.compile(
    r"\bsetup\.py[ \t]+(?:install|develop|bdist_wheel)\b"
    r"|\bpip[\d.]*[ \t]+(?:install|wheel)(?:[ \t]+-\S{1,80}){0,6}[ \t]+[\"']?(?:\.|\w[\w.-]*/)"
)
#: Whose forks are for NPUs, or for cards of AMD.
_OTHER_OWNERS = frozenset({"ascend", "rocm"})
_COMMENT = re.compile(r"(?:^|(?<=[\s\"]))#(?!!)", re.M)
_ENDS = frozenset({"&&", "||", ";", "|", "&", "\n", "\\n", '\\"'})
#: Short options of installers that take no value.
_FLAGS = frozenset({"-U", "-q", "-y", "-e", "-v", "-I"})


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a command without its quotes, and where it stands."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class InstallCommand:
    """A command from its first word to behind its last one.

    `installer` is its first word (`pip3`, `conda`), `words` are those behind `install`, `requirements` what it asks
    for; `options` are (option, value) with an empty word where it has none.
    """

    start: int
    end: int
    installer: str
    verb: str
    words: tuple[Word, ...]
    requirements: tuple[Requirement, ...]
    options: tuple[tuple[Word, Word], ...]

    @property
    def is_conda(self) -> bool:
        return self.installer.endswith(("conda", "mamba"))


def install_commands(text: str) -> Iterator[InstallCommand]:
    """The commands of a text, none in a comment. A package that is named behind an option's name is no requirement."""
    if not any(installer in text for installer in _INSTALLERS):
        return
    done = seen = 0
    commented = False
    for command in _INSTALL.finditer(text):
        if command.start() < done:
            continue  # a word of the command before
        begin = text.rfind("\n", seen, command.start()) + 1
        commented = (commented and not begin) or _COMMENT.search(text, begin or seen, command.start()) is not None
        seen = command.start()
        if commented:
            continue
        words, done = _words(text, command.end())
        requirements: list[Requirement] = []
        options: list[tuple[Word, Word]] = []
        skip = False
        for word in words:
            option = word.text.startswith("-")
            if option or skip:
                if skip and not option:
                    options[-1] = (options[-1][0], word)
                else:
                    name, equals, value = word.text.partition("=")
                    cut = word.start + len(name)
                    parts = (Word(name, word.start, cut), Word(value, cut + len(equals), word.end))
                    options.append(parts)
                skip = option and _WITH_VALUE.fullmatch(word.text) is not None and word.text not in _FLAGS
            else:
                name = word.text.rpartition("::")[2]
                found = None if name.isdigit() else requirement_in(name, word.end - len(name))
                requirements += [] if found is None else [replace(found, whole=(word.start, word.end))]
        first, last = command.group().split()[0], command.group().split()[-1]
        yield InstallCommand(command.start(), done, first, last, tuple(words), tuple(requirements), tuple(options))


def cloned_packages(text: str) -> Iterator[Requirement]:
    """The repositories that a text clones, where it builds something from a folder; forks for other cards left out."""
    if "git clone" not in text or not _BUILDS.search(text):
        return
    for command in _CLONE.finditer(text):
        begin = text.rfind("\n", 0, command.start()) + 1
        if _COMMENT.search(text, begin, command.start()) is None and command[1].lower() not in _OTHER_OWNERS:
            yield Requirement(command[2], "", *command.span(2), address=True)


def _words(text: str, at: int) -> tuple[list[Word], int]:
    """The words from a place to the end of their command, and where the last one ends."""
    words = []
    end = at
    for word in _WORD.finditer(text, at):
        spelled = word.group()
        if spelled in _ENDS or spelled.startswith("#"):
            break
        if spelled.startswith("\\"):
            continue
        start, end = word.span()
        if spelled[0] in "\"'":
            words.append(Word(spelled[1:-1], start + 1, end - 1))
        else:
            words.append(Word(spelled, start, end))
    return words, end
