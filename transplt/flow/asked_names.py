"""What files take from each other and use only where an option asks for it: `if args.export: run_export(model)`.

Read from bytes, for files that nobody parses as well. A name that a file mentions elsewhere too is used without one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, islice
from types import MappingProxyType

from transplt.base.text.text_search import on_lines_with, words_of
from transplt.flow.option_defaults import HOLDERS, Option

#: What a program is started for or trained with, and what stands for the card: it is given whenever it trains; not
#: what asks for several (`use_multi_gpu`).
GIVEN = re.compile(
    r"(?:^|(?<!multi)(?<!multiple)_)(?:train|training|fit|cuda|[gn]pus?|devices?|local_rank|rank)(?:_|$)"
    r"|^(?:labels?|targets?)$", re.I
)
#: A branch that an entry of settings opens, alone or beside something else.
_OPENS = re.compile(
    rb"^(?P<indent>[ \t]*)(?:el)?if[ \t]+\(?(?P<not>not[ \t]+)?(?:\w+\.)*\w*(?<![A-Za-z])"
    rb"(?:" + HOLDERS.encode() + rb"|hps|FLAGS)(?:\.\w+)*\.(?P<name>\w+)"
    rb"(?:[ \t]*==[ \t]*(?:True|([\"'])(?P<value>[\w.-]+)\4))?\)?[ \t]*(?:and\b(?:(?! or )[^\n])*)?:[ \t\r]*(?:#.*)?$",
    re.M,
)
#: A name: not an option of a command line, what holds one, nor a word of a text.
_NAME = re.compile(
    rb"(?<!\w)(?<!--)(?<!args\.)(?<!opt\.)(?<!opts\.)(?<!cfg\.)(?<![\"'](?=\w+[ :]))[A-Za-z_]\w*"
)
_OF_A_NAME = re.compile(rb"[\w\x80-\xff]")
#: A class or a function of a module.
_DEFINES = re.compile(rb"^(?:class|def)[ \t]+(?P<name>\w+)[^\n]*:[ \t\r]*(?:#[^\n]*)?$", re.M)
#: So many branches in each other are looked at, and so many definitions of a file.
_DEEP, _MOST = 4, 200
#: By name: for each place that mentions it, the conditions of which one opens none of them by default.
Asked = tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]


def asked_in(data: bytes, imports: Iterable[tuple[int, int]], names: Iterable[str]) -> Asked:
    """Of full names that a file imports what it mentions in branches of options alone; `imports`: where it does so."""
    taken = {name.rpartition(".")[2].encode() for name in names}
    blocks = _blocks(data) if taken else []
    held = {name for start, end, _ in blocks for name in taken.intersection(words_of(data[start:end]))}
    if not held:
        return ()
    found: dict[bytes, dict[tuple[str, ...], None]] = {}
    spans = chain(sorted(imports), [(len(data), len(data))])
    start, end = next(spans)
    at, around = 0, list[tuple[int, int, str]]()
    for match in _NAME.finditer(data):
        while match.start() >= end and end < len(data):
            start, end = next(spans)
        name = match[0]
        if name not in held or start <= match.start() < end:
            continue
        while at < len(blocks) and blocks[at][0] <= match.start():
            around.append(blocks[at])
            at += 1
        around = [block for block in around if match.start() < block[1]]
        found.setdefault(name, {})[tuple(condition for _, _, condition in around)] = None
    rows = ((name.decode(), tuple(places)) for name, places in found.items() if () not in places)
    return tuple(sorted(rows))


def _blocks(data: bytes) -> list[tuple[int, int, str]]:
    """Where the branches of options are, and what opens each: `export`, `!fast`, `mode=apex`."""
    found: list[tuple[int, int, str]] = []
    around: list[int] = []
    for match in on_lines_with(b"if ", _OPENS, data):
        around = [end for end in around if match.start() < end]
        if len(around) < _DEEP:
            value = b"=" + match["value"] if match["value"] else b""
            end = end_of_block(data, match.end() + 1, len(match["indent"]))
            around.append(end)
            found.append((match.end(), end, (b"!" * bool(match["not"]) + match["name"] + value).decode()))
    return sorted([*found, *_definitions(data)]) if found or b"class " in data else found


def _definitions(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Where the classes and functions of a module are that nothing in it mentions: `@Name` opens each."""
    for match in islice(_DEFINES.finditer(data), _MOST):
        above = data[data.rfind(b"\n", 0, max(match.start() - 1, 0)) + 1 : match.start()]
        if not above.lstrip().startswith((b"@", b")")):
            (first, last), name = match.span("name"), match["name"]
            end = end_of_block(data, match.end() + 1, 0)
            spans = ((0, first), (last, match.end()), (end, len(data)))
            if not any(_mentions(data, name, *span) for span in spans):
                yield match.end(), end, f"@{name.decode()}"


def _mentions(data: bytes, name: bytes, start: int, end: int) -> bool:
    """True where a name stands between two places, and is no part of another."""
    while (at := data.find(name, start, end)) >= 0:
        start = at + len(name)
        if not _OF_A_NAME.match(data, start) and not (at and _OF_A_NAME.match(data, at - 1)):
            return True
    return False


def asked_for(files: Collection[tuple[Asked, Iterable[str]]], options: Mapping[str, Option]) -> dict[str, str]:
    """By name: the option without which no file of a project uses what it imports under this name. Of each file what
    it asks for, and the full names that it takes from others to use them. What only such a class uses is behind it.
    """
    found: dict[str, str] = {}
    for _ in range(_DEEP):
        known, found = found, _asked_beside(files, options, found)
        if found == known:
            break
    return found


def _asked_beside(
    files: Collection[tuple[Asked, Iterable[str]]], options: Mapping[str, Option], known: Mapping[str, str]
) -> dict[str, str]:
    """`asked_for`, where some names are known to be."""
    found: dict[str, str] = {}
    for asked, _ in files:
        for name, places in asked:
            ways = [next(filter(None, (unmet(each, options, known) for each in place)), "") for place in places]
            found[name] = ways[0] if all(ways) and found.get(name, ways[0]) else ""
    for asked, taken in files if found else ():
        for name in {full.rpartition(".")[2] for full in taken} - {name for name, _ in asked}:
            found.pop(name, None)
    return {name: words for name, words in found.items() if words}


def unmet(condition: str, options: Mapping[str, Option], known: Mapping[str, str] = MappingProxyType({})) -> str:
    """How an option is given that opens a branch; empty where it is open by default, or may be."""
    if condition.startswith("@"):
        return known.get(condition[1:], "")
    name, is_text, value = condition.lstrip("!").partition("=")
    option = options.get(name)
    if option is None or not option.default or GIVEN.search(name):
        return ""
    if is_text:
        other = isinstance(option.default[0], str | None) and option.default[0] != value
        return f"{option.words} {value}".replace("= ", "=", 1) if other else ""
    return option.words if bool(option.default[0]) is condition.startswith("!") else ""


def end_of_block(data: bytes, at: int, depth: int) -> int:
    """Where a block ends that begins at a line, below a header that is indented that far."""
    found = _line_within(depth).search(data, at - 1) if 0 < at < len(data) else None
    return found.start() + 1 if found is not None else len(data)


@cache
def _line_within(depth: int) -> re.Pattern[bytes]:
    """A line that is indented so far at most, and holds more than a comment."""
    return re.compile(rb"\n[ \t\r]{0,%d}[^ \t\r\n#]" % depth)
