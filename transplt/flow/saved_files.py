"""Names of the files that a program saves with `torch.save` and loads, and whether what it saves lies on the CPU.

Read from the bytes, so that a file without a CUDA word tells it too: data that a script prepares on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase

#: What the names of files are called that come from somebody else.
PUBLISHED = re.compile(
    r"pre_?train|download|from_url|hf_hub|cached_(?:path|file)|imagenet|(?:^|_)vgg|lpips|inception|backbone"
    r"|init_(?:ckpt|checkpoint|weight)",
    re.IGNORECASE,
)
#: The option of a command that is given such a file.
_GIVEN = re.compile(rf"--(\w[\w-]*)[= ](?=(?!-)\S*(?:{PUBLISHED.pattern}))", re.IGNORECASE)
_SAVE = re.compile(rb"\btorch\.save\(")
_LOAD = re.compile(rb"\btorch\.load\(")
_ENDS_IN_STRING = re.compile(rb"[\"']([^\"'\n]{1,200})[\"']\Z")
_ENDS_IN_NAME = re.compile(rb"([A-Za-z_]\w*)\Z")
_STRING = re.compile(rb"[\"']([^\"'\n]{1,200})[\"']")
_PLACE = re.compile(r"\{[^{}]*\}|%[-+.\d]*[a-z]")
_ON_CPU = re.compile(rb"\.cpu\(\)|\.to\([\"']cpu[\"']\)|device=[\"']cpu[\"']")
_ANYTHING = re.compile(rb"weights_only[\"']?\s*[=:]\s*False")
_CHECKPOINTS = (b".pt", b".pth", b".ckpt", b".bin", b".pkl", b".tar", b".t7", b".th", b".model", b".pickle")
#: A call that is longer than this is not read to its end.
_LONGEST = 600


def options_published(started: Mapping[str, Collection[str]]) -> frozenset[tuple[str, str]]:
    """The paths of files and options of theirs that a command which starts the file gives what somebody else made."""
    given = ((path, name) for path, rests in started.items() for name in _GIVEN.findall(" ".join(rests)))
    return frozenset((path, name.replace("-", "_")) for path, name in given)


def saved_files(data: bytes) -> tuple[tuple[str, bool], ...]:
    """(pattern of the last part of the path, it was saved from the CPU) for each string in a `torch.save(...)`."""
    if b"torch.save(" not in data:
        return ()
    found: dict[str, bool] = {}
    lowered = data.lower()
    without_device = b"cuda" not in lowered and b"device" not in lowered
    for match in _SAVE.finditer(data):
        call = _call(data, match.end())
        on_cpu = without_device or _ON_CPU.search(call) is not None
        strings = _STRING.findall(call)
        if not any(b"." in string for string in strings):  # the path has a name: any that is written out in the file
            strings = [string for string in _STRING.findall(data) if string.lower().endswith(_CHECKPOINTS)]
        for string in strings:
            name = _PLACE.sub("*", string.decode("utf-8", "replace").replace("\\", "/")).rpartition("/")[2]
            if "." in name:
                name = f"*{name}" if name.startswith(".") else name
                found[name] = found.get(name, True) and on_cpu
    return tuple(sorted(found.items()))


def loads_strictly(data: bytes) -> bool:
    """True for a file that loads checkpoints as `torch.load` does since torch 2.6: tensors and plain values alone."""
    return b"torch.load(" in data and _ANYTHING.search(data) is None


def loaded_files(data: bytes) -> tuple[str, ...]:
    """What names the files that `torch.load(...)` reads: patterns of the last part of their paths, and constants.

    One that is not known is an empty text, and the name of a variable where the file saves to it as well.
    """
    if b"torch.load(" not in data:
        return ()
    found: set[str] = set()
    for match in _LOAD.finditer(data):
        path = _call(data, match.end(), b",").strip()
        own = _ENDS_IN_NAME.match(path) and re.search(rb"torch\.save\([^\n]*,[ \t]*%s[ \t]*\)" % path, data)
        found |= {path.decode()} if own else path_names(path, data)
    return tuple(sorted(found))


def path_names(path: bytes, data: bytes, depth: int = 0) -> set[str]:
    """What the last part of a path is called, an expression in the file `data`: a pattern, and a constant's name."""
    text = path.strip().rstrip(b") \n\t")
    if (end := _ENDS_IN_STRING.search(text)) is not None:
        name = _PLACE.sub("*", end[1].decode("utf-8", "replace").replace("\\", "/")).rpartition("/")[2]
        return {name}
    word = _ENDS_IN_NAME.search(text)
    if word is None or depth > 2:
        return {""}
    name = word[1].decode()
    values = re.findall(rb"^[ \t]*" + re.escape(word[1]) + rb"[ \t]*=(?!=)[ \t]*([^\n]+)$", data, re.M)
    if name.isupper():
        return {name}.union(*(path_names(value, data, depth + 1) for value in values)) - ({""} if values else set())
    if not values or (word.start() and text[word.start() - 1 : word.start()] == b"."):
        return {""}
    return set().union(*(path_names(value, data, depth + 1) for value in values))


def may_be_loaded(names: Iterable[str], loaded: Collection[str]) -> bool:
    """True where one of the names of a file may be among those that the program loads; nothing loaded says nothing."""
    known = set(names)
    if not loaded or not known or "" in known or "" in loaded:
        return True
    return any(one == other or fnmatchcase(one, other) or fnmatchcase(other, one) for one in known for other in loaded)


def saved_as(name: str, saved: tuple[tuple[str, bool], ...]) -> bool | None:
    """Whether a file of this name was saved from the CPU; None for one that the program does not save."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kinds = [on_cpu for pattern, on_cpu in saved if fnmatchcase(last, pattern)]
    return all(kinds) if kinds else None


def _call(data: bytes, start: int, ends: bytes = b"") -> bytes:
    """The arguments of a call from its opening bracket to the closing one, or to the first comma that `ends` them."""
    depth = 1
    for at in range(start, min(len(data), start + _LONGEST)):
        byte = data[at : at + 1]
        depth += (byte in b"([{") - (byte in b")]}")
        if not depth or (depth == 1 and byte == ends):
            return data[start:at]
    return data[start : start + _LONGEST]
