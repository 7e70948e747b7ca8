"""What is surveyed: folders and URLs, from the command line and from lists, each with a name of its own."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transplt.base.disk.git_command import is_url
from transplt.base.errors import UsageError, reason, shown
from transplt.base.text.regular_file import SETTINGS, read_regular

#: Whatever has a scheme or starts a program for a transport (`ext::sh -c ...`) is meant as a URL.
_MEANT_AS_URL = re.compile(r"[\w+.-]+(://|::)")
_SECRET = re.compile(r"(?<=://)[^/@]*@")


@dataclass(frozen=True, slots=True)
class Source:
    """One repository: an absolute path, or a URL. `shown` is what reports show, without a password."""

    text: str
    name: str
    is_url: bool

    @property
    def shown(self) -> str:
        return _SECRET.sub("", self.text) if self.is_url else shown(self.text)


def read_list(path: Path) -> list[str]:
    """The lines of a list, without comments (#); folders are relative to it. UsageError if unreadable."""
    try:
        text = read_regular(path, SETTINGS).decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{shown(path)} is not UTF-8") from error
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line if _url(line) else os.path.join(path.parent, line) for line in lines if line]


def sources_of(texts: Iterable[str]) -> list[Source]:
    """The sources in their order, each once. UsageError for a URL of another kind than https, ssh and file."""
    found: dict[str, bool] = {}
    for text in texts:
        if text.startswith("-"):
            raise UsageError(f"{shown(text)} begins with a hyphen; write ./{shown(text)} for a folder")
        url = _url(text)
        if url and not is_url(text):
            raise UsageError(f"{shown(text)}: only URLs of https, ssh and file are cloned")
        found.setdefault(text if url else os.path.realpath(text), url)
    names = _names(list(found))
    return [Source(text, name, url) for (text, url), name in zip(found.items(), names, strict=True)]


def _url(text: str) -> bool:
    return _MEANT_AS_URL.match(text) is not None or is_url(text)


def _names(texts: Sequence[str]) -> list[str]:
    """The last part of each, with the one before it where several have the same, and a number where that is too."""
    parts = [[part for part in re.split(r"[/\\:]", text.rstrip("/").removesuffix(".git")) if part] for text in texts]
    short = [shown(each[-1]) if each else "root" for each in parts]
    counts = Counter(short)
    longer = [shown("/".join(each[-2:])) if counts[name] > 1 else name for each, name in zip(parts, short, strict=True)]
    seen: Counter[str] = Counter()
    names = []
    for name in longer:
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def projects_in(folder: Path) -> list[str]:
    """The folders right in one that look like projects of their own, where it is none itself."""
    signs = (".git", "setup.py", "pyproject.toml", "requirements.txt", "README.md", "README.rst")
    try:
        if any((folder / sign).exists() for sign in signs):
            return []
        return sorted(each.name for each in folder.iterdir() if any((each / sign).exists() for sign in signs))
    except OSError:
        return []
