"""The blocks of code in a document, by the lines that a reader copies: without indentation, fences and prompts.

Markdown: CommonMark, fenced and indented code blocks. reStructuredText: the directive code-block, and literal blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from transplt.edits.edit import Extent

SHELL, PYTHON = "shell", "python"
_LANGUAGES = {
    **dict.fromkeys("bash sh shell zsh ksh console shell-session shellsession bash-session terminal".split(), SHELL),
    **dict.fromkeys("python py python3 py3 pycon pytb".split(), PYTHON),
    **dict.fromkeys(("", "text", "none", "plaintext", "txt"), SHELL),
}
_FENCE = re.compile(
    rb"([ \t]*(?:>(?:[ \t]?>)*[ \t]*)?(?:[-*+][ \t]+|\d{1,3}[.)][ \t]+)?)(`{3,}|~{3,})[ \t]*([^\s`{]*)[^\n`]*\n?"
)
_DIRECTIVE = re.compile(rb"([ \t]*)\.\.[ \t]+(?:code-block|code|sourcecode|prompt)::[ \t]*([\w-]*)[^\n]*\n?")
_LITERAL = re.compile(rb"([ \t]*)(?![ \t]|\.\.)[^\n]*::[ \t]*\r?\n?")
_OPTION = re.compile(rb"[ \t]*:[\w-]+:")
_PROMPT = re.compile(rb"(?:[\w.@~:/()\[\]-]{0,60})?\$[ \t]+")
_GOES_ON = re.compile(rb"\\[ \t]*\r?\n?\Z")
#: What a block in no language is Python by.
_STATEMENT = re.compile(rb"(?:>>> )?(?:import [\w.]+|from [\w.]+ import |def \w+\(|class \w+[:(]|with torch)")
_DOCTEST = re.compile(rb">>>|\.\.\.")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: SHELL or PYTHON, and its lines, each a byte range with its line end."""

    language: str
    lines: tuple[Extent, ...]


def blocks(utf8: bytes, name: str) -> Iterator[Block]:
    """The blocks of a document in which commands or Python may stand, in order. `name`: its file's."""
    lines = _lines(utf8)
    found = _of_rst(utf8, lines) if name.endswith((".rst", ".rest")) else _of_markdown(utf8, lines)
    for language, inner in found:
        known = _LANGUAGES.get(language.lower())
        if not language and any(_STATEMENT.match(utf8, start, end) for start, end in inner):
            known = PYTHON
        if known is SHELL:
            inner = _commands(utf8, inner)
        elif known is PYTHON and any(_DOCTEST.match(utf8, start, end) for start, end in inner):
            continue
        if known is not None and inner:
            yield Block(known, tuple(inner))


def _lines(utf8: bytes) -> list[Extent]:
    found = []
    at = 0
    while at < len(utf8):
        end = utf8.find(b"\n", at) + 1 or len(utf8)
        found.append((at, end))
        at = end
    return found


def _of_markdown(utf8: bytes, lines: Sequence[Extent]) -> Iterator[tuple[str, list[Extent]]]:
    at = 0
    blank = True
    while at < len(lines):
        start, end = lines[at]
        fence = _FENCE.match(utf8, start, end)
        at += 1
        if fence is not None:
            inner = []
            closing = re.compile(rb"[ \t>]*" + re.escape(fence[2]) + rb"[`~]*[ \t]*\r?\n?")
            while at < len(lines) and not closing.fullmatch(utf8, *lines[at]):
                inner.append(_without(utf8, lines[at], len(fence[1])))
                at += 1
            at += 1
            yield fence[3].decode("utf-8", "replace"), inner
            blank = True
        elif blank and _indented(utf8, start, end):
            inner = [_without(utf8, (start, end), 4)]
            while at < len(lines) and (_indented(utf8, *lines[at]) or not utf8[slice(*lines[at])].strip()):
                inner.append(_without(utf8, lines[at], 4))
                at += 1
            yield "", inner
            blank = True
        else:
            blank = not utf8[start:end].strip()


def _of_rst(utf8: bytes, lines: Sequence[Extent]) -> Iterator[tuple[str, list[Extent]]]:
    at = 0
    while at < len(lines):
        match = _DIRECTIVE.match(utf8, *lines[at]) or _LITERAL.fullmatch(utf8, *lines[at])
        at += 1
        if match is None:
            continue
        language = match[2].decode() if match.re is _DIRECTIVE else ""
        outer = len(match[1].expandtabs())
        inner: list[Extent] = []
        depth = 0
        while at < len(lines):
            start, end = lines[at]
            text = utf8[start:end]
            if text.strip():
                indent = len(text) - len(text.lstrip())
                if indent <= outer:
                    break
                depth = depth or indent
                if inner or not _OPTION.match(text):
                    inner.append(_without(utf8, lines[at], depth))
            elif inner:
                inner.append(lines[at])
            at += 1
        yield language, inner


def _indented(utf8: bytes, start: int, end: int) -> bool:
    return utf8.startswith((b"    ", b"\t"), start) and bool(utf8[start:end].strip())


def _without(utf8: bytes, line: Extent, width: int) -> Extent:
    """A line without what stands before a block, as far as that is indentation or a quotation mark."""
    start, end = line
    while width and start < end and utf8[start : start + 1] in (b" ", b"\t", b">"):
        start += 1
        width = 0 if utf8[start - 1 : start] == b"\t" else width - 1
    return start, end


def _commands(utf8: bytes, lines: list[Extent]) -> list[Extent]:
    """The commands of a block: without prompts, and without what is printed where there are prompts."""
    prompts = [_PROMPT.match(utf8, start, end) for start, end in lines]
    if not any(prompts):
        return lines
    found = []
    goes_on = False
    for (start, end), prompt in zip(lines, prompts, strict=True):
        if prompt is not None:
            found.append((prompt.end(), end))
        elif goes_on:
            more = re.compile(rb"[ \t]*>[ \t]").match(utf8, start, end)
            found.append((more.end() if more else start, end))
        else:
            continue
        goes_on = _GOES_ON.search(utf8[start:end]) is not None
    return found
