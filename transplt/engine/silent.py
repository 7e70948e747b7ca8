"""Files in which no fixer finds anything, by their bytes: most of a library, and what a clean check is quick for. What
looks into files is not imported here.
"""

from __future__ import annotations

from transplt.base.finding import Cause, Effort, FileResult, Finding, Level, Span, Status, TokenVerdict
from transplt.base.settings import Settings
from transplt.base.text.old_names import may_hold_old_names
from transplt.base.text.source import UnreadableSource, read_source
from transplt.base.text.token_rows import ledger_of
from transplt.engine.prefilter import worth_a_look
from transplt.syntax.parse import parse

#: A file without any of these has nothing to do with torch, nor with the packages on top of it.
_WORDS = (b"torch", b"transformers", b"accelerate", b"diffusers", b"deepspeed", b"lightning", b"mmengine", b"mmcv")


def concerns(data: bytes, path: str) -> bool:
    """True for a file that the analysis has to read: it names torch, or passes on what others define."""
    return any(word in data for word in _WORDS) or (path.endswith("__init__.py") and b"import" in data)


def silent_result(data: bytes, path: str, settings: Settings) -> FileResult | None:
    """The result of a file that is given alone, where its bytes tell it: a file of ours has our name in it."""
    asked = settings.codemods or settings.adds_code or settings.leaves(path)
    if asked or concerns(data, path) or worth_a_look(data, settings) or may_hold_old_names(data):
        return None
    return untouched(data, path, whole=True)


def untouched(data: bytes, path: str, *, whole: bool) -> FileResult:
    """The result of a file in which nothing is found, or why Python does not read it. It is parsed where the `whole` of
    it is asked about, as a migration says that nothing is left to do; else only its bytes are looked at.
    """
    try:
        if whole:
            parse(read_source(data))
        elif not data.isascii() or b"\0" in data or b"coding" in data[:1000]:
            read_source(data)
    except UnreadableSource as error:
        return unreadable_result(data, path, error)
    return FileResult(path, data)


def unreadable_result(data: bytes, path: str, error: UnreadableSource) -> FileResult:
    """A file that stays as it is, with the reason; its tokens are unknown."""
    span = Span(error.line, error.column, error.line, error.column, 0, 0)
    help_ = error.help or "the file is not changed: fix it and run transplt again"
    details = (("python", error.python),) if error.python else ()
    finding = Finding(
        path, span, error.code, Level.MANUAL, error.reason, effort=Effort.MEDIUM, help=help_, details=details
    )  # fmt: skip
    ledger, count = ledger_of(data, Cause(TokenVerdict.MANUAL, error.code))
    return FileResult(path, data, (finding,), count, Status.UNREADABLE, ledger=ledger)
