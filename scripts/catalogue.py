"""The catalogue of translations: every message that people read, and what it is in Chinese.

    python scripts/catalogue.py          exit 1 when the catalogue is not that of the sources, or not compiled
    python scripts/catalogue.py --write  take messages that are new, drop those that are gone, compile

Needs Babel, which nothing needs at run time. Translations are written into
`transplt/base/locale/zh/LC_MESSAGES/transplt.po`. A message that has changed is a new one: it is English until somebody
translates it, and `--missing` lists it.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from transplt.base.language import ENGLISH, LANGUAGES, LOCALE
from transplt.rules.pages import all_codes, load
from transplt.rules.tables import read_table

ROOT = Path(__file__).resolve().parent.parent
#: What marks a message in Python and in templates.
KEYWORDS: dict[str, Any] = {
    "gettext": None, "ngettext": (1, 2), "marked": None, "Sentence": None,
}  # fmt: skip
_METHODS = {".py": "python", ".j2": "jinja2.ext:babel_extract"}
_SPEAKING = re.compile(r"base\.language import|\bn?gettext\(")
_NEW = "messages that are not in the catalogue, or no longer in the sources"


def messages() -> Iterator[tuple[str | tuple[str, ...], str]]:
    """Each message (with its plural, where it has one), and the file where it stands."""
    package = ROOT / "transplt"
    for path in sorted(package.rglob("*")):
        if path.suffix in _METHODS and _SPEAKING.search(path.read_text(encoding="utf-8")):
            for _, message, _, _ in extract_from_file(_METHODS[path.suffix], path, keywords=KEYWORDS):
                yield message, path.relative_to(ROOT).as_posix()
    for code in all_codes():
        page = load(code)
        yield from ((text, f"rules/diagnostics/{code}.md") for text in (page.title, page.action) if text)
    table = read_table("support/substitutions.json")
    for row in (*table["families"], *table["entries"]):
        for text in filter(None, (row.get("title"), row.get("how"))):
            yield text, "rules/support/substitutions.json"
    files = read_table("support/files.json")
    for text in (*(row["otherwise"] for row in files["kinds"].values()), *(row["hint"] for row in files["hints"])):
        if "{" not in text:  # what names a release is said as it is
            yield text, "rules/support/files.json"
    yield from helps()


def helps() -> Iterator[tuple[str, str]]:
    """What findings say to do, where it is one text whatever was found: an action says the same."""
    for room in ("fixers", "engine"):
        for path in sorted((ROOT / "transplt" / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.keyword) and node.arg == "help" and isinstance(node.value, ast.Constant):
                    yield node.value.value, path.relative_to(ROOT).as_posix()


def template() -> Catalog:
    """The messages of the sources, sorted by file and text, without places in files, which change with every edit."""
    made = Catalog(domain="transplt", project="transplt", charset="utf-8", fuzzy=False)
    found: dict[Any, set[str]] = {}
    for message, path in messages():
        found.setdefault(message, set()).add(path)
    for message, paths in sorted(found.items(), key=lambda item: (min(item[1]), str(item[0]))):
        made.add(message, locations=[(min(paths), 0)])
    return made


def of(language: str) -> Path:
    """The catalogue of a language."""
    return LOCALE / language / "LC_MESSAGES" / "transplt.po"


def updated(language: str) -> Catalog:
    """The messages of the sources with the translations that there are."""
    old = read_po(io.BytesIO(of(language).read_bytes()), locale=language)
    made = Catalog(language, domain="transplt", project="transplt", charset="utf-8", fuzzy=False)
    for message in template():
        if message.id:
            known = old.get(message.id if isinstance(message.id, str) else message.id[0])
            same = known is not None and known.id == message.id and not known.fuzzy
            made.add(message.id, known.string if same and known else None, locations=message.locations)
    return made


def po_bytes(catalogue: Catalog) -> bytes:
    """A .po file without dates and versions: it changes with the messages alone."""
    out = io.BytesIO()
    write_po(out, catalogue, omit_header=True, width=0, include_lineno=False)
    forms = f'"Plural-Forms: {catalogue.plural_forms}\\n"'
    head = f'msgid ""\nmsgstr ""\n"Language: {catalogue.locale_identifier}\\n"\n'
    return (f'{head}"Content-Type: text/plain; charset=utf-8\\n"\n{forms}\n\n').encode() + out.getvalue()


def mo_bytes(po: bytes, language: str) -> bytes:
    """What gettext reads."""
    catalogue = read_po(io.BytesIO(po), locale=language)
    catalogue.creation_date = catalogue.revision_date = datetime(2000, 1, 1, tzinfo=timezone.utc)
    out = io.BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def strings(mo: bytes) -> dict[Any, str]:
    """The messages of compiled bytes, whichever version of Babel compiled them."""
    table: dict[Any, str] = GNUTranslations(io.BytesIO(mo))._catalog  # type: ignore[attr-defined]
    return {message: text for message, text in table.items() if message}


def missing(catalogue: Catalog) -> list[str]:
    """Messages without a translation."""
    return [str(message.id) for message in catalogue if message.id and not _string(message)]


def _string(message: Any) -> str:
    return message.string if isinstance(message.string, str) else "".join(message.string or ())


def main(arguments: list[str]) -> int:
    stale = 0
    for language in LANGUAGES:
        if language == ENGLISH:
            continue
        catalogue = updated(language)
        po = po_bytes(catalogue)
        mo = mo_bytes(po, language)
        path = of(language)
        if "--missing" in arguments:
            print("\n".join(missing(catalogue)))
        elif "--write" in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(po)
            path.with_suffix(".mo").write_bytes(mo)
        elif path.read_bytes() != po or strings(path.with_suffix(".mo").read_bytes()) != strings(mo):
            print(f"{path.relative_to(ROOT)}: {_NEW}; python scripts/catalogue.py --write", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
