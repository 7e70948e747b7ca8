"""What people read in their own language: sentences with named places, looked up in the catalogue of that language.

English is what the code says. `locale/<language>/LC_MESSAGES/transplt.po` beside this module holds the other language
(`scripts/catalogue.py` keeps it), and what is not in it stays English. Data for programs (JSON, CSV, the log) is always
English: only renderers ask here.
"""

from __future__ import annotations

import gettext as catalogues
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, TextIO

ENGLISH = "en"
#: The languages that there are, as `--language` takes them.
LANGUAGES = (ENGLISH, "zh")
#: Likewise, as the attribute `lang` of a page has them.
PAGE_LANGUAGES = {ENGLISH: "en", "zh": "zh-CN"}
LOCALE = Path(__file__).parent / "locale"
_spoken: ContextVar[str] = ContextVar("language", default=ENGLISH)


class Sentence(str):
    """A sentence in English that knows what it was made of, and so can be said in another language.

    `template` has the places of its values in braces; a value that is a sentence itself is translated too. What is cut
    out of one or replaced in it is a plain text.
    """

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> Sentence:
        made = super().__new__(cls, template.format_map(values))
        made.template, made.values = template, values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _sentence, (self.template, self.values)


def _sentence(template: str, values: dict[str, Any]) -> Sentence:
    return Sentence(template, **values)


def marked(message: str) -> str:
    """`message` itself: one for the catalogue that is translated where it is shown."""
    return message


def gettext(message: str, /, **values: Any) -> str:
    """A message of ours in the language that is spoken, with the values in its places."""
    text = _catalogue(_spoken.get()).gettext(message) if message else message
    return text.format_map(values) if values else text


def ngettext(one: str, more: str, count: int, /, **values: Any) -> str:
    """Likewise, with the form that goes with `count`, which is a value of that name too."""
    return _catalogue(_spoken.get()).ngettext(one, more, count).format_map({"count": count, **values})


def translated(text: str) -> str:
    """A text in the language that is spoken: a sentence by its template, another as a whole."""
    if isinstance(text, Sentence):
        values = {name: translated(value) if isinstance(value, str) else value for name, value in text.values.items()}
        return gettext(text.template).format_map(values)
    return gettext(text)


def language() -> str:
    """The language that is spoken, one of `LANGUAGES`."""
    return _spoken.get()


def of_pages() -> dict[str, Any]:
    """What templates of pages call."""
    return {"gettext": gettext, "ngettext": ngettext, "lang": PAGE_LANGUAGES[language()]}


@contextmanager
def spoken(name: str) -> Iterator[None]:
    """Renderers that run inside speak this language, one of `LANGUAGES`."""
    token = _spoken.set(name)
    try:
        yield
    finally:
        _spoken.reset(token)


@contextmanager
def spoken_on(stream: TextIO) -> Iterator[None]:
    """Inside, a stream that cannot show the language gets English."""
    with spoken(language() if _shows(stream, language()) else ENGLISH):
        yield


def _shows(stream: TextIO, name: str) -> bool:
    if name == ENGLISH:
        return True
    try:
        _catalogue(name).gettext("nothing left to do").encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@cache
def _catalogue(name: str) -> catalogues.NullTranslations:
    if name == ENGLISH:
        return catalogues.NullTranslations()
    return catalogues.translation("transplt", LOCALE, [name], fallback=True)
