"""Which files are worth a look: those that hold a word of a rule or of a fixer in force."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules

from transplt.base.settings import Settings
from transplt.base.text.text_search import Texts, joined, names_in
from transplt.rules.rule_set import RuleSet, compile_rules
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of

_TOOL, _GPU = "transplt", "gpu"
#: What the fixers of each package state, by scripts/fixer_words.py: their modules are for files with something in them.
WORDS = "support/fixer_words.json"
CODEMODS, KERNELS = "transplt.fixers.codemods", "transplt.fixers.triton.codemods"
#: One of these is in every file that a fixer for kernels in Triton looks at.
OF_KERNELS = Texts(b"triton", b"atomic_", b"static_range")
_NPU = frozenset({b"npu", b"NPU", b"torch_npu"})
#: So many names are known to say nothing.
_MOST_PLAIN = 200_000


def worth_a_look(data: bytes, settings: Settings, *, ported: bool = True) -> bool:
    """Whether the bytes hold a literal or a word of the rules in force, in any case: most files of a library do not.

    What an NPU refuses it refuses in a file that was ported, too: with `ported` a file that names the NPU is looked at.
    """
    kernels = OF_KERNELS.in_(data)
    known = _known(settings.torch_version, settings.similar, settings.user_rules, settings.fixers, kernels)
    every = names_in(data)
    if ported and not every.isdisjoint(_NPU):
        return True
    left = every - known.plain
    small = {name.lower() for name in left}
    names, lowered = joined(small), data.lower()
    if _TOOL in names:  # it may speak to us in a comment
        return True
    if known.literals.among(names, lowered) or (_GPU in names and known.of_gpus.among(names, lowered)):
        return True
    if any(texts.among(names, lowered) and needs.in_(data) for texts, needs in known.needing):
        return True
    words = compile_rules(settings).words
    if any(not small.isdisjoint(words[word]) and known.of(word, data) for word in words.keys() & small):
        return True
    known.learn(left, names)
    return False


@dataclass(frozen=True, slots=True)
class _Known:
    """The literals of the rules and fixers in force, those that hold `gpu` apart, which most files have not; those of
    fixers that need another text in the file too, by what they need; the rules' words.

    `plain` are names of files without any of them in which none can stand, in any case: the files of a project have
    most of their names in common, and these are looked at once. `standard`: how modules of the standard library that
    rules name are read: most files import them for something else.
    """

    literals: Texts
    of_gpus: Texts
    needing: tuple[tuple[Texts, Texts], ...]
    words: frozenset[bytes]
    parts: tuple[str, ...]
    plain: set[bytes]
    standard: dict[bytes, re.Pattern[bytes]]

    def of(self, word: bytes, data: bytes) -> bool:
        """False for a module of the standard library of which the file reads no name of a rule."""
        return word not in self.standard or self.standard[word].search(data) is not None

    def learn(self, names: frozenset[bytes], lowered: str) -> None:
        """Take up the plain ones among the names of a file, which are joined in `lowered` in small letters."""
        if len(self.plain) < _MOST_PLAIN:
            held = [part for part in self.parts if part in lowered]
            for name in names:
                small = name.lower()
                if small not in self.words and not any(part in small.decode("latin-1") for part in held):
                    self.plain.add(name)


@lru_cache(maxsize=32)
def _known(
    torch_version: str,
    similar: bool,
    user_rules: tuple[tuple[str, str], ...],
    fixers: tuple[tuple[str, str, str, str], ...],
    kernels: bool,
) -> _Known:
    settings = Settings(torch_version=torch_version, similar=similar, user_rules=user_rules, fixers=fixers)
    rules, needing = compile_rules(settings), dict[tuple[bytes, ...], set[bytes]]()
    literals = {*rules.literals}
    for versions, needs, listed in _stated(fixers, kernels=kernels):
        if not versions or torch_version in versions_of(versions):
            into = needing.setdefault(tuple(map(str.encode, needs)), set()) if needs else literals
            into.update(word.lower().encode() for word in listed)
    shortest: list[bytes] = []
    for each in sorted(literals, key=len):
        if not any(other in each for other in shortest):
            shortest.append(each)
    of_gpus = Texts(*(each for each in shortest if b"gpu" in each))
    others = Texts(*(each for each in shortest if b"gpu" not in each))
    beside = tuple((Texts(*sorted(words - literals)), Texts(*needs)) for needs, words in sorted(needing.items()))
    parts = {_TOOL, _GPU, *others.names, *of_gpus.names}
    parts.update(name for texts, _ in beside for name in texts.names)
    names = frozenset().union(rules.words, *rules.words.values())
    return _Known(others, of_gpus, beside, names, (*parts,), set(), _standard(rules))


def _stated(
    added: tuple[tuple[str, str, str, str], ...], *, kernels: bool
) -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """The versions of torch, the texts that a file must hold, and the words of the fixers of every migration."""
    new = list[str]()
    for package in (CODEMODS, *([KERNELS] if kernels else [])):
        known = read_table(WORDS)[package]
        for each in iter_modules(import_module(package).__path__):
            yield from known.get(each.name, ())
            new += () if each.name in known else (f"{package}.{each.name}",)
    if new or added:
        from transplt.edits.added_fixers import Added, added_fixers
        from transplt.edits.fixer import fixers_in

        ours = (fixer for module in new for fixer in fixers_in(module))
        for fixer in (*ours, *added_fixers([Added(*each) for each in added])):
            yield from fixer.stated()


def _standard(rules: RuleSet) -> dict[bytes, re.Pattern[bytes]]:
    """`collections.Mapping`, `from collections import OrderedDict, Mapping`, and any use of `collections as c`."""
    found = {}
    for module in map(str.encode, rules.roots & sys.stdlib_module_names):
        if module in (names := rules.words.get(module, {module})):
            continue  # by itself it is enough
        named = rb"(?:%s)\b" % b"|".join(map(re.escape, sorted(names)))
        listed = rb"import\b(?:\s*\([^)]*?|(?:[^\r\n\\]|\\\r?\n)*?)\b" + named
        found[module] = re.compile(rb"\b%s\s*(?:\.\s*%s|%s|as\b)" % (module, named, listed), re.IGNORECASE)
    return found
