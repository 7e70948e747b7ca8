"""Which files are worth a look: those that hold a word of a rule or of a fixer in force."""

from __future__ import annotations

from functools import lru_cache

from transplt.apply.plan import in_force
from transplt.rules.rule_set import compile_rules
from transplt.settings import Settings
from transplt.text.marks import Texts, names_in

_TOOL, _GPU = b"transplt", b"gpu"


def worth_a_look(data: bytes, settings: Settings) -> bool:
    """Whether the bytes hold a literal or a word of the rules in force, in any case: most files of a library do not."""
    names, lowered = names_in(data).lower(), data.lower()
    if _TOOL in names:  # it may speak to us in a comment
        return True
    literals, of_gpus, needing = _words(settings.torch_version, settings.similar, settings.user_rules, settings.fixers)
    if literals.among(names, lowered) or (_GPU in names and of_gpus.among(names, lowered)):
        return True
    if any(needs.in_(data) and texts.among(names, lowered) for texts, needs in needing):
        return True
    words, held = compile_rules(settings).words, {*names.split()}
    return any(not held.isdisjoint(words[word]) for word in words.keys() & held)


@lru_cache(maxsize=32)
def _words(
    torch_version: str,
    similar: bool,
    user_rules: tuple[tuple[str, str], ...],
    fixers: tuple[tuple[str, str, str, str], ...],
) -> tuple[Texts, Texts, tuple[tuple[Texts, Texts], ...]]:
    """The literals of the rules and fixers in force, those that hold `gpu` apart, which most files have not; and those
    of fixers that need another text in the file too, by what they need.
    """
    settings = Settings(torch_version=torch_version, similar=similar, user_rules=user_rules, fixers=fixers)
    literals, needing = set(compile_rules(settings).literals), dict[tuple[bytes, ...], set[bytes]]()
    for fixer in in_force(settings):
        words = {word.lower().encode() for word in fixer.words}
        if fixer.needs:
            needing.setdefault(fixer.needs, set()).update(words)
        else:
            literals.update(words)
    shortest = [each for each in sorted(literals) if not any(other in each for other in literals - {each})]
    of_gpus = [each for each in shortest if _GPU in each]
    return (
        Texts(*(each for each in shortest if _GPU not in each)),
        Texts(*of_gpus),
        tuple((Texts(*sorted(words - literals)), Texts(*needs)) for needs, words in sorted(needing.items())),
    )
