"""Packages of CUDA that the package manager of a Linux distribution installs, and what opens NVIDIA's repositories."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transplt.base.finding import Effort, Level
from transplt.base.settings import TorchTarget
from transplt.edits.edit import Finds, Note
from transplt.engine.files.document import Document
from transplt.engine.files.shell.script import read_script
from transplt.engine.files.shell.words import words_of
from transplt.flow.command_words import Word, base, unwrapped
from transplt.rules.containers import package_text

PACKAGES = "NPU855"
_INSTALLERS = frozenset("apt-get apt apt-cache aptitude yum dnf microdnf zypper apk dpkg rpm".split())
_INSTALL = frozenset({"install", "add", "localinstall", "reinstall", "-i", "remove", "purge", "search"})
_FROM_NVIDIA = re.compile(r"developer\.download\.nvidia\.com|nvidia\.github\.io|cuda-keyring|cuda_\d[\w.]*_linux")
_MOST = 6


def changes(document: Document) -> Finds:
    """One note for each command that installs packages of CUDA, or fetches them."""
    script = read_script(document)
    if script is None:
        return
    for command in script.walk("command"):
        words = unwrapped(words_of(script, command))
        named = _cuda_packages(words, document.target)
        if named:
            names = list(dict.fromkeys(word.source.strip("\"'") for word, _ in named))
            more = " ..." if len(names) > _MOST else ""
            message = f"CUDA packages are installed: {', '.join(names[:_MOST])}{more}"
            extent = named[0][0].extent[0], named[-1][0].extent[1]
            yield Note(extent, PACKAGES, Level.MANUAL, message, names[0], named[0][1], Effort.LOW)


def _cuda_packages(words: Sequence[Word], target: TorchTarget) -> list[tuple[Word, str]]:
    """The words that name packages of CUDA, and what to do about them."""
    installs = bool(words) and base(words[0]) in _INSTALLERS and any(word.source in _INSTALL for word in words[1:4])
    found = []
    for word in words:
        text = word.source.strip("\"'")
        if _FROM_NVIDIA.search(text):
            found.append((word, package_text("nvidia", target)))
        elif installs and not text.startswith("-") and (advice := package_text(text, target)):
            found.append((word, advice))
    return found
