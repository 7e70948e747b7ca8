"""Who is given the name of a backend of communication: rules/support/communication_backends.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from transplt.rules.tables import read_table

TABLE = "support/communication_backends.json"


@dataclass(frozen=True, slots=True)
class OwnNames:
    """What a library makes of a backend that it looks up among names of its own.

    `kept`: nccl is right on NPUs; otherwise `message` says what is wrong with it, `help` what to do, `adaptor`
    which one writes it, and `since` for which version of what that is called after.
    """

    library: str
    kept: bool
    message: str
    help: str
    adaptor: str = ""
    since: str = ""


def passed_on() -> Iterator[tuple[str, int | str]]:
    """The arguments that reach torch.distributed: (full name of the callee, position or keyword).

    The callee is empty where any call passes the keyword on.
    """
    for row in read_table(TABLE)["passed_on"]:
        for callee in row.get("callees", ("",)):
            yield from ((callee, argument) for argument in row["arguments"])


def own_names(callee: str, argument: int | str) -> OwnNames | None:
    """What the library of a callee (its full name) makes of an argument; None where no row knows it."""
    return _own()[0].get((callee, argument))


def owned() -> Iterator[tuple[str, int | str, str]]:
    """The arguments that a library looks up among names of its own, by callee, and the library."""
    yield from ((*place, names.library) for place, names in _own()[0].items())


def own_names_of(library: str) -> OwnNames:
    """What a library makes of the backends that it is given; KeyError for one without a row."""
    return _own()[2][library]


def own_names_below(keys: Iterable[str]) -> OwnNames | None:
    """What a library makes of a value below one of some keys: settings, arguments or options, dotted or not."""
    below = _own()[1]
    parts = (part for each in keys for part in _parts(each))
    return next((below[part] for part in parts if part in below), None)


def _parts(key: str) -> list[str]:
    """The names in a key, an argument or an option, dotted or not."""
    return re.split(r"[./]", key.lstrip("-+").lower().replace("-", "_"))


def read_elsewhere(keys: Iterable[str]) -> str:
    """What is to be known of a value, by the keys that lead to it, that a program outside of a project may read."""
    rows = ((key, str(row["why"])) for row in read_table(TABLE)["elsewhere"] for key in row["keys"])
    path = ".".join(("", *(part for each in keys for part in _parts(each))))
    return next((why for key, why in rows if path.endswith(f".{key}")), "")


def without_own_names(text: str) -> tuple[str, str]:
    """A text with blanks in place of options and keys whose values a library looks up among names of its own, and that
    library; empty where there is none. `vllm serve m --weight-transfer-config '{"backend": "nccl"}'`
    """
    library = ""
    for pattern, names in _written():
        text, count = pattern.subn(lambda match: " " * len(match.group()), text)
        library = names.library if count else library
    return text, library


@cache
def _written() -> tuple[tuple[re.Pattern[str], OwnNames], ...]:
    """How a value stands behind a key: as one word, or as a mapping that may be quoted, in a string of JSON too."""
    return tuple(
        (
            re.compile(
                rf"(?<!\w){key.replace('_', '[-_]')}(?:\.\w+)?\\?[\"']?(?:[ \t]*[=,:][ \t]*|[ \t]+)(?:\\?[\"'])*"
                r"(?:\{[^{}\n]*\}|[\w.-]+)"
            ),
            names,
        )
        for key, names in _own()[1].items()
        if names.kept
    )


@cache
def _own() -> tuple[dict[tuple[str, int | str], OwnNames], dict[str, OwnNames], dict[str, OwnNames]]:
    """By argument of a callee, by key, and by library."""
    callees: dict[tuple[str, int | str], OwnNames] = {}
    keys: dict[str, OwnNames] = {}
    libraries: dict[str, OwnNames] = {}
    for row in read_table(TABLE)["own"]:
        said = (str(row.get(key, "")) for key in ("message", "help", "adaptor", "since"))
        names = OwnNames(row["library"], row.get("kept", False), *said)
        callees.update({(callee, argument): names for callee in row["callees"] for argument in row["arguments"]})
        keys.update(dict.fromkeys(row.get("keys", ()), names))
        libraries[names.library] = names
    return callees, keys, libraries
