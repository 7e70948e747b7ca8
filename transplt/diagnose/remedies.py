"""What to do for one failure: the general steps of its error, or those of the cause that the log itself points to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from transplt.diagnose.found import Failure, Line
from transplt.rules.errors import KnownError, When, checks, forms

_SWITCH = "ASCEND_LAUNCH_BLOCKING"
_WITHOUT_TORCH = (
    "Find the operator: wait for the stream after each call, or run the operators one by one (MindSpore: "
    "pynative_synchronize=True; ASCEND_LAUNCH_BLOCKING is read by torch_npu alone)."
)


#: What a logger puts before its text.
_LOGGER = re.compile(
    r"^(?:\[?\d{4}-\d\d-\d\d[ T][\d:.,+]+\]? ?)?(?:- [\w.]+ - )?(?:\[?(?:ERROR|CRITICAL|FATAL)\]?[ :-]*)?"
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """The cause, the steps, and the lines of the log that decided for them."""

    cause: str
    do: tuple[str, ...]
    clues: tuple[Line, ...] = ()


def remedy_of(failure: Failure, clues: Mapping[str, Line], torch: bool = True) -> Remedy:
    """The remedy for a failure, chosen by its text and by the clues of all logs; by its form where nobody knows it."""
    error = failure.head.error
    if error is None:
        said = _LOGGER.sub("", failure.head.text)
        return next(Remedy(form.cause, form.do) for form in forms() if _holds(form, said))
    found = _chosen(error, _text_of(failure), clues)
    return found if torch else replace(found, do=_without_torch(found.do))


def _chosen(error: KnownError, text: str, clues: Mapping[str, Line]) -> Remedy:
    for each in (*error.when, *(checks() if error.checks else ())):
        if each.clue in clues:
            return Remedy(each.cause, each.do, (clues[each.clue],))
        if _holds(each, text):
            return Remedy(each.cause, each.do)
    return Remedy(error.cause, error.do)


def _holds(when: When, text: str) -> bool:
    return when.pattern is not None and when.pattern.search(text) is not None


def _text_of(failure: Failure) -> str:
    block = failure.first
    said = [failure.head.text, *(line.text for line in block.lines), *block.details, *failure.head.around]
    return "\n".join(dict.fromkeys(said))


def _without_torch(do: tuple[str, ...]) -> tuple[str, ...]:
    """Steps for a program that is not torch's."""
    return tuple(dict.fromkeys(_WITHOUT_TORCH if re.search(rf"\b{_SWITCH}\b", step) else step for step in do))
