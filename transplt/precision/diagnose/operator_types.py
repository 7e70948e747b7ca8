"""Which types of tensors an operator takes that a failure names without saying so: rules/support/card_types.json."""

from __future__ import annotations

from collections.abc import Iterator

from transplt.precision.diagnose.findings import Failure
from transplt.rules.card_limits import documented_as
from transplt.rules.card_types import lists_of

#: So many are told of one failure.
_MOST = 3
#: Lines that hold the list of types themselves.
_SAID = ("support list", "expected scalar type", "not implemented for DT_")


def types_told(failure: Failure) -> list[str]:
    """What the operators of a failure take by argument and card, a line each; nothing where no check of an operator
    spoke, or where it named the types itself."""
    errors = [failure.head.error, *failure.beside.values()]
    said = "\n".join((failure.head.text, *failure.first.said()))
    if not any(error is not None and error.checks for error in errors) or any(word in said for word in _SAID):
        return []
    return list(dict.fromkeys(line for name in failure.operators for line in _of(name)))[:_MOST]


def _of(function: str) -> Iterator[str]:
    for types, cards in lists_of(function).items():
        where = f"{function} on {', '.join(map(documented_as, cards))}"
        if types.takes:
            yield f"{where}: {types.argument or 'all tensors'} may be {', '.join(types.takes)}"
        elif types.refuses:
            yield f"{where}: {types.argument or 'all tensors'} may not be {', '.join(sorted(types.refuses))}"
