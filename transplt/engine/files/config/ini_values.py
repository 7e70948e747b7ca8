"""The values of INI files, `.cfg`, `.conf` and `.properties`: a key and a value on each line."""

from __future__ import annotations

import re

from transplt.engine.files.config.values import WORD, Holder, Value

LONGEST = 1_000_000
_SECTION = re.compile(rb"[ \t]*\[([^\]\n]+)\][ \t]*(?:[#;].*)?\r?")
_ENTRY = re.compile(rb"[ \t]*(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*[=:][ \t]*(.*)")
_COMMENT = re.compile(rb"(?<![ \t])[ \t]+[#;].*\Z")


def values(utf8: bytes) -> list[Value]:
    """The values of a text that have a word of CUDA, or whose key has, in the order of the file.

    Any text is taken: lines that are no entry are skipped, and so are those that go on in the next line.
    """
    found: list[Value] = []
    top = Holder()
    here, at = top, 0
    for line in utf8.split(b"\n"):
        start, at = at, at + len(line) + 1
        if (section := _SECTION.fullmatch(line)) is not None:
            here = Holder(section[1].decode().strip(), top)
            top.texts.setdefault(here.name, "")
            if WORD.search(here.name):
                found.append(Value.many(here.name, top, (start + section.start(1), start + section.end(1))))
        elif (entry := _ENTRY.fullmatch(line.removesuffix(b"\r").rstrip(b" \t"))) is not None:
            name, first = entry[1].decode(), entry.start(2)
            raw = _COMMENT.sub(b"", entry[2])
            quoted = len(raw) > 1 and raw[:1] == raw[-1:] and raw[:1] in b"\"'"
            whole = (start + first, start + first + len(raw))
            inner = (whole[0] + 1, whole[1] - 1) if quoted else whole
            text = utf8[inner[0] : inner[1]].decode()
            here.texts[name] = text
            if WORD.search(text) or WORD.search(name):
                key = (start + entry.start(1), start + entry.end(1))
                extent = None if text.endswith("\\") else inner
                found.append(Value(text, name, here, extent, whole, key))
    return found
