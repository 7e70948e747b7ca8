"""Words that bind to a GPU without naming CUDA in files that are not Python: keys of configurations, flags of commands.

The words, their places and their messages: rules/support/gpu_words.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from transplt.base.finding import Finding, Level, Span
from transplt.base.grouped import grouped
from transplt.base.text.commands import flags_of, logical_lines
from transplt.base.text.ignore_comments import ignore_comments, switched_off
from transplt.base.text.key_paths import key_lines
from transplt.base.text.text_search import Marked
from transplt.engine.files.kind import FileKind
from transplt.engine.files.tokens import MAX_FINDINGS
from transplt.rules.gpu_words import GpuWord, PathPlace, commands, level_and_help, places_of
from transplt.rules.since import only_newer

_COMMANDS = frozenset(
    {FileKind.SHELL, FileKind.DOCKER, FileKind.CONFIG, FileKind.REQUIREMENTS, FileKind.SCRIPT, FileKind.NOTEBOOK}
)
_KEYS = frozenset({FileKind.CONFIG, FileKind.DOCKER, FileKind.REQUIREMENTS})
#: What every file with such a word holds, in any case.
_WORDS = (
    r"gpu flash_att 4bit 8bit tf32 paged_ bnb lamb\b lion\b accelerator lightning reduce-overhead max-autotune apex"
    r" \bamp\b sparse_att xformers device= srun sbatch salloc 80gb torch_compile torch-compile dynamo liger vllm sglang"
    r" megatron kernels-community impl_backend nsys rollout.quant quantization_bit quantization-bit evaluation_strategy"
    r" group_by_length overwrite_output_dir warmup_ratio save_safetensors"
).split()
_HINTS = Marked("|".join(_WORDS), *_WORDS)
#: The rest of a word that is cut off, and what parts the name of a flag from its value.
_WORD_END = re.compile(r"[^\s\"'\\;|&]*")
_PARTS = re.compile(r"[\s=]+")
_MAX_SHOWN = 120
#: What a package has no more.
GONE = "NPU293"
#: A remark of its own, whatever else is said of its line: how much memory the card has that is asked for.
OF_MEMORY = "NPU295"
#: What is longer is data: no program is configured by it.
_LONGEST_CONFIG = 1_000_000
_MAKE = ("makefile", "gnumakefile")


@dataclass(frozen=True, slots=True)
class _Hit:
    """A word in a line (from 0) from one column to another, in characters; `name` and `value` are those of the
    key or the flag.
    """

    word: GpuWord
    line: int
    start: int
    end: int
    name: str
    value: str


def gpu_word_findings(
    data: bytes, path: str, kind: FileKind, pins: Sequence[tuple[str, str]], ignored_codes: tuple[str, ...] = ()
) -> list[Finding]:
    """One finding for each word in its place, in the order of the file."""
    makes = kind is FileKind.NATIVE and path.rpartition("/")[2].lower() in _MAKE
    if kind in _KEYS and len(data) > _LONGEST_CONFIG:
        return []
    if not (makes or kind in _COMMANDS) or not _HINTS.may_match(text := data.decode("utf-8", "surrogateescape")):
        return []
    lines = text.split("\n")
    if not any(map(_HINTS.search, lines)):
        return []
    hits = {(hit.line, hit.word.word): hit for hit in (*_flags(lines), *(_keys(text) if kind in _KEYS else ()))}
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = [_finding(path, lines, starts, hit, pins) for hit in hits.values() if hit.word.is_for(pins)]
    in_order = sorted(found, key=lambda each: each.sort_key())
    kept = in_order[:MAX_FINDINGS]
    if len(in_order) > len(kept):
        more = f"{kept[-1].message}; {len(in_order) - len(kept)} more lines of this file request GPUs"
        kept[-1] = replace(kept[-1], message=more)
    held = [ignore_comments(lines[each.span.line - 1].encode("utf-8", "surrogateescape")) for each in kept]
    why = [switched_off(each.code, ignored_codes, comments) for each, comments in zip(kept, held, strict=True)]
    return [replace(each, ignored=reason) for each, reason in zip(kept, why, strict=True)]


def _flags(lines: list[str]) -> Iterator[_Hit]:
    called = re.compile("|".join(command for command, _ in commands() if command))
    for first, group in logical_lines(lines, _HINTS):
        calls = any(called.search(line) or "#" in line for line in group)
        for command, wanted in commands() if calls else commands()[:1]:
            for flags in flags_of(group, command, first):
                for place, word in wanted:
                    match = place.pattern.search(flags.text)
                    if match and not (place.unless and any(map(place.unless.search, lines))):
                        rest = _WORD_END.match(flags.text, match.end())
                        text = match.group() + (rest.group() if rest is not None else "")
                        start = flags.start + match.start()
                        name, *value = (part.strip("\"'\\ ") for part in _PARTS.split(text, maxsplit=1))
                        yield _Hit(word, flags.line, start, start + len(text), name, "".join(value))


def _keys(text: str) -> Iterator[_Hit]:
    lines = key_lines(text)
    near = grouped((line.above, line.path.rpartition(".")[2]) for line in lines)
    known: dict[tuple[int, str], bool] = {}

    def stands_beside(place: PathPlace, above: int) -> bool:
        if place.without is not None and any(map(place.without.fullmatch, near[above])):
            return False
        if place.beside is None:
            return True
        key = (above, place.beside.pattern)
        if key not in known:
            keys = (*near.get(above, ()), *near.get(-1, ()))
            known[key] = any(place.beside.fullmatch(each) for each in keys)
        return known[key]

    for line in lines:
        if _HINTS.search(line.path) or _HINTS.search(line.value):
            for place, word in places_of(PathPlace):
                if place.path.fullmatch(line.path) is None or not stands_beside(place, line.above):
                    continue
                if place.value is None or place.value.fullmatch(line.value) is not None:
                    yield _Hit(word, line.line, line.start, line.end, line.path.rpartition(".")[2], line.value)


def _finding(
    path: str, lines: list[str], starts: list[int], hit: _Hit, pins: Sequence[tuple[str, str]]
) -> Finding:
    line = lines[hit.line]
    level, help_ = level_and_help(hit.word, pins)
    shown, value = (_shown(text) for text in (line[hit.start : hit.end], hit.value))
    start, end = (starts[hit.line] + len(line[:at].encode("utf-8", "surrogateescape")) for at in (hit.start, hit.end))
    package, first = hit.word.holds_from or ("", "0")
    older = "" if only_newer(dict(pins).get(package, ""), first) else f"{package}<{first}"
    gone = (("gone", f"{package} >= {first}" if package else ""), ("back", older), ("field", hit.name.strip("-")))
    return Finding(
        path=path,
        span=Span(hit.line + 1, hit.start + 1, hit.line + 1, hit.end + 1, start, end),
        code=hit.word.code,
        level=level,
        message=hit.word.message.replace("{text}", shown).replace("{value}", repr(value)),
        api=hit.word.of or _shown(hit.name),
        effort=hit.word.effort if level is Level.MANUAL else None,
        help=help_,
        details=gone if hit.word.code == GONE else (),
    )


def _shown(text: str) -> str:
    return text.strip().rstrip(",").encode("utf-8", "surrogateescape").decode("utf-8", "replace")[:_MAX_SHOWN]


def beside_tokens(findings: Sequence[Finding], words: Sequence[Finding]) -> list[Finding]:
    """The findings of a file, one a line: the help of a word is added to the finding for the CUDA tokens beside it."""
    by_line = {word.span.line: word for word in words}
    joined = [
        replace(each, help="; ".join(filter(None, (each.help, by_line[each.span.line].help))))
        if each.span.line in by_line and by_line[each.span.line].level is Level.MANUAL
        else each
        for each in findings
    ]
    taken = {each.span.line for each in findings}
    alone = (word for word in words if word.code == OF_MEMORY or word.span.line not in taken)
    return sorted([*joined, *alone], key=lambda each: each.sort_key())
