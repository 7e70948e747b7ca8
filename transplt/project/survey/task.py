"""What is asked of one repository, as it goes to a worker and to the process that analyses it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """One repository: a folder, or a URL that is cloned. `name` is unique in a survey.

    `known` is the key under which an analysis of it is there already, empty for none. `seconds` bounds the wall clock,
    `memory_mb` the address space of the process that analyses it, `most_mb` what all files together may hold (and a
    single file of a clone).
    """

    name: str
    source: str
    is_url: bool = False
    known: str = ""
    torch_version: str | None = None
    hardware: str | None = None
    rules: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    isolated: bool = False
    seconds: int = 600
    memory_mb: int = 4096
    most_mb: int = 2048


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a task: `row` (JSON) under `key`; neither where `known` still holds; or why it `failed`.

    `cpu` are the seconds of the process that analysed it, `peak_mb` the most memory that it had.
    """

    key: str = ""
    row: str = ""
    failed: str = ""
    cpu: float = 0.0
    peak_mb: int = 0

    @property
    def same(self) -> bool:
        """True when nothing has changed since the analysis that is there."""
        return not self.row and not self.failed
