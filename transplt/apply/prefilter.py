"""Which files are worth a look: those that hold a word of a rule or of a fixer in force."""

from __future__ import annotations

import re
from functools import lru_cache

from transplt.apply.plan import in_force
from transplt.rules.rule_set import compile_rules
from transplt.settings import Settings

_TOOL = b"transplt"
_IDENTIFIER = re.compile(rb"[\w\x80-\xff]+")


def worth_a_look(data: bytes, settings: Settings) -> bool:
    """Whether the bytes hold a literal of the rules in force, in any case; most files of a library hold none."""
    lowered = data.lower()
    if _TOOL in lowered:  # it may speak to us in a comment
        return True
    if any(word in lowered for word in _words(settings.torch_version, settings.similar, settings.user_rules)):
        return True
    words = compile_rules(settings).words
    return bool(words) and not words.isdisjoint(_IDENTIFIER.findall(lowered))


@lru_cache(maxsize=32)
def _words(torch_version: str, similar: bool, user_rules: tuple[tuple[str, str], ...]) -> tuple[bytes, ...]:
    settings = Settings(torch_version=torch_version, similar=similar, user_rules=user_rules)
    of_fixers = {word.lower().encode() for fixer in in_force(settings) for word in fixer.words}
    return tuple(sorted({*compile_rules(settings).literals, *of_fixers}))
