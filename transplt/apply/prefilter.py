"""Which files are worth a look: those that hold a word of a rule or of a fixer in force."""

from __future__ import annotations

from functools import lru_cache

from transplt.apply.plan import in_force
from transplt.rules.rule_set import compile_rules
from transplt.settings import Settings
from transplt.text.marks import Texts

_TOOL, _GPU = b"transplt", b"gpu"
#: A space for what is in no identifier: split there, a file is read twice as fast as by a regular expression.
_APART = bytes(byte if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(256))


def worth_a_look(data: bytes, settings: Settings) -> bool:
    """Whether the bytes hold a literal or a word of the rules in force, in any case: most files of a library do not."""
    lowered = data.lower()
    if _TOOL in lowered:  # it may speak to us in a comment
        return True
    literals, of_gpus, needing = _words(settings.torch_version, settings.similar, settings.user_rules, settings.fixers)
    if literals.in_(lowered) or (_GPU in lowered and of_gpus.in_(lowered)):
        return True
    if any(word in lowered and any(need in data for need in needs) for word, needs in needing):
        return True
    words, held = compile_rules(settings).words, set(lowered.translate(_APART).split())
    return any(not held.isdisjoint(words[word]) for word in words.keys() & held)


@lru_cache(maxsize=32)
def _words(
    torch_version: str,
    similar: bool,
    user_rules: tuple[tuple[str, str], ...],
    fixers: tuple[tuple[str, str, str, str], ...],
) -> tuple[Texts, Texts, tuple[tuple[bytes, tuple[bytes, ...]], ...]]:
    """The literals of the rules and fixers in force, those that hold `gpu` apart, which most files have not; and those
    of fixers that need another text in the file too.
    """
    settings = Settings(torch_version=torch_version, similar=similar, user_rules=user_rules, fixers=fixers)
    literals, needing = set(compile_rules(settings).literals), set[tuple[bytes, tuple[bytes, ...]]]()
    for fixer in in_force(settings):
        words = {word.lower().encode() for word in fixer.words}
        if fixer.needs:
            needing.update((word, fixer.needs) for word in words)
        else:
            literals.update(words)
    shortest = [each for each in sorted(literals) if not any(other in each for other in literals - {each})]
    of_gpus = [each for each in shortest if _GPU in each]
    return (
        Texts(*(each for each in shortest if _GPU not in each)),
        Texts(*of_gpus),
        tuple(sorted(each for each in needing if each[0] not in literals)),
    )
