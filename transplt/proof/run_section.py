"""What `transplt run` and `transplt prove` found, put by `--report` into the page of the migration that they ran."""

from __future__ import annotations

import errno
import html
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from transplt.base.disk.manifest import MANIFEST, read_manifest
from transplt.base.disk.mirror import hash_file
from transplt.base.disk.replace import replace_file
from transplt.base.render.cell import visible
from transplt.base.render.proofs import Seen, proofs
from transplt.base.text.regular_file import RECORDS, read_regular

#: Name of the comments that a section stands between -> its heading.
_HEADINGS = {"run": "Run on the emulated NPU", "proof": "Compared with the original"}
_PAGE = "report.html"
#: The errors of a folder that may not be written.
_CLOSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def _add(name: str, folder: Path, word: str, sentence: str, text: str, seen: Iterable[Seen] = ()) -> bool:
    """Put the result of a run, or of a proof, into `report.html` of a migrated folder, in the place of an earlier one.

    `word` and `sentence` are its verdict, `text` is all of it, and `seen` what it reports about single lines: that
    stands with the actions that it proves.

    False, and nothing is written, where transplt wrote no page there, somebody has edited it since, or the folder may
    not be written. The manifest follows, so that the page still counts as transplt's own.
    """
    manifest = read_manifest(folder)
    page = folder / _PAGE
    if manifest is None or manifest["reports"].get(_PAGE) is None or not page.is_file():
        return False
    if hash_file(str(page)) != manifest["reports"][_PAGE]:
        return False
    old = read_regular(page, RECORDS).decode("utf-8")
    new = _put(old, name, _section(name, word, sentence, text, proofs(manifest, seen)))
    if new is None:
        return False
    link = f'<li><a href="#{name}">{_HEADINGS[name]}</a></li>'
    try:
        replace_file(page, (_put(new, f"{name}-link", link) or new).encode())
    except OSError as error:
        if error.errno in _CLOSED:
            return False
        raise
    manifest["reports"][_PAGE] = hash_file(str(page))
    replace_file(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return True


add_run, add_proof = partial(_add, "run"), partial(_add, "proof")


def _put(page: str, name: str, inner: str) -> str | None:
    """The page with `inner` between the comments of that name; None where it has none."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    head, found, rest = page.partition(begin)
    if not found or end not in rest:
        return None
    return f"{head}{begin}{inner}{end}{rest.partition(end)[2]}"


def _section(name: str, word: str, sentence: str, text: str, proven: list[tuple[int, str, list[str]]]) -> str:
    escaped = html.escape(text)
    rows = "".join(
        f'<li><a href="#action-{number}">{number}. {_escaped(title)}</a>'
        f"<ul>{''.join(f'<li>{_escaped(line)}</li>' for line in lines)}</ul></li>"
        for number, title, lines in proven
    )
    shown = f'  <h3>Which actions it shows</h3>\n  <ul class="proofs">{rows}</ul>\n' if rows else ""
    return (
        f'\n<section aria-labelledby="h-{name}">\n<details class="fold" open><summary>'
        f'<h2 id="h-{name}">{_HEADINGS[name]}</h2></summary>\n<div class="inside" id="{name}" tabindex="-1">\n'
        f"  <p>Verdict: <strong>{html.escape(word)}</strong>: {_escaped(sentence)}</p>\n{shown}"
        f'  <pre class="run" tabindex="0">{escaped}</pre>\n</div></details>\n</section>\n'
    )


def _escaped(text: str) -> str:
    return html.escape(visible(text))
