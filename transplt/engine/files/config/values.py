"""A value in a configuration file, whatever its format: where it stands, under which keys, and beside what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from transplt.base.text.cuda_words import WORD as CUDA_WORD
from transplt.edits.edit import Extent

#: What makes a value, or its key, worth a look.
WORD = re.compile(rf"{CUDA_WORD.pattern.decode()}|multi_gpu", re.I)
#: Keys of mappings whose own keys are variables of the environment.
_ENVIRONMENT = re.compile(
    r"(?:\w+[_-])?(?:envs?|env_set|env_?var(?:iable)?s?|environment(?:_variables)?|environ)", re.I
)
#: Keys that name in a mapping the callee of which its other keys are arguments: Hydra, jsonargparse, torchtune.
_CALLEES = ("_target_", "class_path", "_component_")

#: So many items of a list may be the words of a command.
MOST_ITEMS = 64


@dataclass(slots=True, eq=False)
class Holder:
    """A mapping or a list. `tag`: of YAML, without its marks.

    `texts`: its keys (of a list the numbers of its first items) with their short plain values.
    """

    name: str = ""
    above: Holder | None = None
    is_list: bool = False
    tag: str = ""
    texts: dict[str, str] = field(default_factory=dict)

    def path(self) -> tuple[str, ...]:
        """The keys from the top of the file; items of lists are numbers."""
        found: list[str] = []
        here = self
        while here.above is not None:
            found.append(here.name)
            here = here.above
        return tuple(reversed(found))


@dataclass(slots=True, eq=False)
class Value:
    """A scalar: `text` as it is read. `extent`: the bytes of its text without quotes; None where they are not its text.

    `whole`: with quotes. `lines`: as `extent`, of a block line by line. `key`: the bytes of its own key without quotes,
    None in a list. `before`: the item before it in a list. `others`: by whom else it is read, through an alias or an
    interpolation. `of_many`: it is a mapping or a list, of which nothing but the key is known here.
    """

    text: str
    name: str
    holder: Holder
    extent: Extent | None
    whole: Extent
    key: Extent | None = None
    before: str = ""
    lines: tuple[Extent, ...] = ()
    others: list[tuple[Holder, str]] = field(default_factory=list)
    of_many: bool = False

    def __post_init__(self) -> None:
        if self.extent is not None:
            self.lines = (self.extent,)

    @classmethod
    def many(cls, name: str, holder: Holder, key: Extent) -> Value:
        """A mapping or a list under a key."""
        return cls("", name, holder, None, key, key, of_many=True)

    def paths(self) -> list[tuple[str, ...]]:
        """The full path of its key, then those by which others read it."""
        return [(*holder.path(), name) for holder, name in [(self.holder, self.name), *self.others]]

    def callees(self) -> list[tuple[str, str]]:
        """(callee, argument) of the calls that a configuration makes with the value."""
        found = ((callee_of(holder), name) for holder, name in [(self.holder, self.name), *self.others])
        return [(callee, name) for callee, name in found if callee]

    @property
    def in_environment(self) -> bool:
        """True in a mapping of variables."""
        return not self.holder.is_list and is_environment(self.holder.name)


def is_environment(name: str) -> bool:
    """True for the key of a mapping of variables of the environment."""
    return _ENVIRONMENT.fullmatch(name) is not None


def callee_of(holder: Holder) -> str:
    """The full name of what gets the entries of a mapping as arguments; empty where the file names none."""
    _, _, called = holder.tag.partition(":")
    if called:
        return called
    texts: Mapping[str, str] = holder.texts
    if holder.above is not None and holder.name in ("init_args", "dict_kwargs"):
        texts = holder.above.texts
    return next((texts[key] for key in _CALLEES if "." in texts.get(key, "")), "")


def dotted(path: tuple[str, ...]) -> str:
    """A path for people: `train.devices.0`."""
    return ".".join(path)
