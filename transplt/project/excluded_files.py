"""What the settings of an input keep from being found and edited: a project may switch itself off; that is reported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from transplt.base.disk.walk import Excluded
from transplt.base.errors import shown
from transplt.base.language import Sentence, marked
from transplt.base.settings import Settings
from transplt.project.config import Config

_WITHOUT = "--isolated ignores this"
_CODES = marked("{file}: per-file-ignores turns off codes in {touched} of {files}")
_ALL_CODES = marked("{file}: per-file-ignores turns off codes in {touched} of {files}, all codes in {every}")


def kept_back(config: Config, settings: Settings, files: Sequence[str], left_out: Iterable[str]) -> tuple[str, ...]:
    """One sentence a key: in how many of `files` codes are switched off, and how many of `left_out` are excluded.

    Paths are relative to the input. Empty where the settings of the input switch nothing off.
    """
    if config.folder is None:
        return ()
    notes = []
    own = replace(settings, decided=None)
    ignored = [own.ignored_codes(path) for path in files]
    touched = sum(map(bool, ignored))
    if touched:
        every = sum("NPU" in codes for codes in ignored)
        notes.append(
            Sentence(
                _ALL_CODES if every else _CODES,
                file=settings_file(config, "per-file-ignores"), touched=touched, every=every,
                files=_counted(len(files), marked("{count} file"), marked("{count} files")),
            )
        )  # fmt: skip
    excluded = Excluded((settings.base, config.exclude))
    out = sum(excluded.matches(path) or excluded.matches(path + "/") for path in left_out)
    if out:
        file = settings_file(config, "exclude")
        paths = _counted(out, marked("{count} path"), marked("{count} paths"))
        notes.append(Sentence("{file}: exclude skips {paths}", file=file, paths=paths))
    return tuple(Sentence("{note}; --isolated ignores this", note=each) for each in notes)


def _counted(count: int, one: str, more: str) -> Sentence:
    return Sentence(one if count == 1 else more, count=count)


def may_keep_back(config: Config) -> tuple[str, ...]:
    """The same of the settings alone, by their patterns."""
    file = settings_file(config, "per-file-ignores")
    notes = [
        f"{file}: per-file-ignores turns off {', '.join(codes) or 'all codes'} for {pattern!r}"
        for pattern, codes in config.per_file_ignores
    ]
    if config.exclude:
        notes.append(f"{settings_file(config, 'exclude')}: exclude skips {', '.join(map(repr, config.exclude))}")
    return tuple(f"{each}; {_WITHOUT}" for each in notes)


def settings_file(config: Config, key: str = "") -> str:
    """The file of the settings, or the one that sets a key, as it is shown, from the current folder; empty where there
    is none.
    """
    if config.folder is None:
        return ""
    return shown(os.path.relpath(dict(config.inherited).get(key, config.folder / "pyproject.toml")))
