"""Which known errors a line shows."""

from __future__ import annotations

from functools import cache

from transplt.diagnose.anchors import CANN, LOGGED, NUMBER, TORCH_NPU, UNKNOWN
from transplt.rules.errors import KnownError, Sign, errors_by_code, family_of, known_errors


def errors_in(text: str) -> list[KnownError]:
    """The known errors that a line shows: codes of CANN, words, codes of torch_npu, return codes."""
    by_code = errors_by_code()
    found = [by_code[match[1]] for match in CANN.finditer(text) if match[1] in by_code]
    found += [error for sign, error in _signs() if sign.literal in text and _fits(sign, text)]
    codes = [f"ERR{match[2]}" for match in TORCH_NPU.finditer(text)] + [match[1] for match in NUMBER.finditer(text)]
    found += [by_code[code] for code in codes if code in by_code]
    return list({error.name: error for error in found if not _excepted(error, text)}.values())


def unknown_in(text: str) -> bool:
    """True for a line that says that something is wrong in a form that errors have."""
    if UNKNOWN.match(text) or LOGGED.search(text):
        return True
    return any(family_of(match[1]) and match[1] not in errors_by_code() for match in CANN.finditer(text))


def _fits(sign: Sign, text: str) -> bool:
    return sign.pattern is None or sign.pattern.search(text) is not None


def _excepted(error: KnownError, text: str) -> bool:
    return error.unless is not None and error.unless.search(text) is not None


@cache
def _signs() -> tuple[tuple[Sign, KnownError], ...]:
    return tuple((sign, error) for error in known_errors() for sign in error.signs)
