"""Which known errors a line shows."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from transplt.base.grouped import grouped
from transplt.precision.diagnose.anchors import CANN, COMPLAINT, LOGGED, NUMBER, TORCH_NPU, UNKNOWN
from transplt.rules.error_numbers import PLOG, error_of_module, general_error
from transplt.rules.errors import KnownError, Sign, errors_by_code, known_errors

#: A logger's line that is no error: a form of message in it was met and dealt with.
_NOTED = re.compile(r"(?!.{0,160}command error: ).{0,60}?\b(?:WARNING|WARN|INFO|DEBUG)\b")


def errors_in(text: str, whole: str = "") -> list[KnownError]:
    """The known errors that a line shows: codes of CANN, words, codes of torch_npu, return codes. `whole` is the line
    with what a logger puts before it."""
    by_code = errors_by_code()
    found = _by_codes([match[1] for match in CANN.finditer(text)])
    for literal in _literals_in(text):
        for sign, error in _signs()[literal]:
            if sign.pattern is None or sign.pattern.search(text):
                found.append(error)
    codes = [f"ERR{match[2]}" for match in TORCH_NPU.finditer(text)]
    found += [by_code[code] for code in codes if code in by_code]
    found += _by_codes([match[1] for match in NUMBER.finditer(text)])
    if not found and (match := PLOG.search(text)):
        found = [error_of_module(match[1])]
    found = list({error.name: error for error in found if not (error.unless and error.unless.search(text))}.values())
    exact = [error for error in found if not error.alone]
    return exact or ([] if _NOTED.match(whole or text) else found[:1])


def unknown_in(text: str, logged: str = "") -> bool:
    """True for a line that says that something is wrong in a form that errors have; `logged` is what a logger wrote
    as an error."""
    if UNKNOWN.match(text) is not None or LOGGED.search(text) is not None:
        return True
    return bool(logged) and (UNKNOWN.match(logged) is not None or COMPLAINT.match(logged) is not None)


def _by_codes(codes: list[str]) -> list[KnownError]:
    """The errors of codes of CANN and numbers of acl; of those without a row of their own, what their part says."""
    found = [errors_by_code().get(code) or general_error(code) for code in codes]
    return [error for error in found if error is not None]


def _literals_in(text: str) -> list[str]:
    """The literals of signs that a text holds, in the order of the errors: looked for by two letters of each."""
    pairs = _by_pair().keys() & {text[place : place + 2] for place in range(len(text) - 1)}
    held = [row for pair in pairs for row in _by_pair()[pair] if row[1] in text]
    return [literal for _, literal in sorted(held)]


@cache
def _by_pair() -> dict[str, list[tuple[int, str]]]:
    """Each literal, with its place, by the two letters of it that are rarest in all of them."""
    often = Counter(literal[place : place + 2] for literal in _signs() for place in range(len(literal) - 1))
    return grouped(
        (min((literal[at : at + 2] for at in range(len(literal) - 1)), key=lambda each: often[each]), (number, literal))
        for number, literal in enumerate(_signs())
    )


@cache
def _signs() -> dict[str, list[tuple[Sign, KnownError]]]:
    """Each literal once, with the signs that have it, in the order of the errors."""
    return grouped((sign.literal, (sign, error)) for error in known_errors() for sign in error.signs)
