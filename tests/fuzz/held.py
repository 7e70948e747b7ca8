"""What has to hold for every input, whatever it is. AssertionError says what does not."""

from __future__ import annotations

import ast
import codecs
import errno
import io
import json
import os
import re
import tokenize
import warnings
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import decode_source
from pathlib import Path

from transplt.base.finding import FileResult, Finding, Status
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.cuda_words import WORDS, find_tokens
from transplt.base.text.source import UnreadableSource, read_source, splice
from transplt.engine.engine import index_source, join_facts, migrate_source, survey_source
from transplt.engine.files.gpu_words import beside_tokens, gpu_word_findings
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.requirements import with_requirements
from transplt.engine.files.tokens import scan_other_file
from transplt.rules.pages import all_codes

PATH = "m.py"
TARGET = TorchTarget("2.8", "the default")


def compiles(data: bytes) -> bool:
    """True for what Python takes. Depth that is too much for the parser counts as a refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Bytes that are not of the encoding pass in comments, when they are compiled and not run.
            decode_source(data)
            compile(data, PATH, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
        return False
    return True


def refused(data: bytes) -> bool:
    """True for what is no Python by its grammar, whatever the depth."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except SyntaxError as error:
        return "too many" not in str(error)
    except (ValueError, LookupError, RecursionError, MemoryError):
        return False
    return False


def rebuilt(data: bytes, result: FileResult) -> bytes:
    """The input with the recorded edits applied, by their spans in the UTF-8 form of the text."""
    edits = [(f.span.start, f.span.end, f.edit) for f in result.findings if f.applied and f.edit is not None]
    if not edits:
        return data
    source = read_source(data)
    text, out, position = source.utf8, b"", 0
    for start, end, edit in sorted(edits, key=lambda item: item[:2]):
        assert position <= start, "two records for one place"
        assert text[start:end].decode() == edit.before, f"the record says {edit.before!r}"
        out += text[position:start] + edit.after.encode()
        position = end
    return source.encode(out + text[position:])


def hold_python(data: bytes, settings: Settings) -> FileResult:
    """The whole way of one file of bytes, alone in its project."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        project = join_facts([index_source(data, PATH, settings)], settings)
        result = migrate_source(data, PATH, settings, project)
        hold_findings(result.findings, _length(data))
        hold_account(data, result)
        assert rebuilt(data, result) == result.data, "the recorded edits do not give the output"
        assert result.changed == (result.data != data)
        assert result.status is not Status.INTERNAL
        if result.status is Status.UNREADABLE:
            assert result.data == data
            assert result.findings, "an unreadable file has to be mentioned"
        if compiles(data):
            assert result.status is Status.OK or not _comes_back(data), result.findings
            assert compiles(result.data), "the output does not compile"
        # Without markers: a portable file may have other things to say about itself than the file it came from.
        again = replace(settings.without_themes(), annotate=False, user_rules=())
        assert migrate_source(result.data, PATH, again).data == result.data, "a second run changes the output"
        survey_source(data, PATH, settings, project)
    return result


def hold_account(data: bytes, result: FileResult) -> None:
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored, tokens
    if result.status is Status.OK:
        assert tokens.found == sum(token.where != "comment" for token in find_tokens(_utf8(data))), tokens


def hold_other(data: bytes, path: str) -> FileKind:
    """The account of a file that is not Python, and what its editors make of it: a second run changes nothing."""
    kind = kind_of(path, data)
    other = scan_other_file(data, path, kind, TARGET)
    found = with_requirements(other.findings, data, path, kind, ())
    hold_findings(beside_tokens(found, gpu_word_findings(data, path, kind, ())), len(data))
    tokens = other.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored, tokens
    if kind is not FileKind.BINARY:
        lowered = data.lower()
        assert tokens.found + tokens.comments == _words(lowered), tokens
    result = migrate_other(data, path, kind, Settings(), TARGET)[0]
    hold_findings(result.findings, len(data) * 4)  # places in the text, which a cookie may say how to read
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored, tokens
    if result.changed:
        assert not migrate_other(result.data, path, kind, Settings(), TARGET)[0].changed, "a second run changes it"
    return kind


def hold_notebook(data: bytes) -> None:
    """Of a notebook nothing changes but the texts of its code cells; the records are its edits; it is done once."""
    result = migrate_other(data, "train.ipynb", FileKind.NOTEBOOK, Settings(), TARGET)[0]
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    hold_findings(result.findings, len(data) - len(bom))
    assert result.tokens.found + result.tokens.comments == _words(data.lower()), result.tokens
    if not result.changed:
        return
    text = data[len(bom) :]
    edits = [(each.span.start, each.span.end, each.edit) for each in result.findings if each.applied and each.edit]
    assert bom + splice(text, [(start, end, edit.after.encode()) for start, end, edit in edits]) == result.data
    before, after = (json.loads(each.decode("utf-8-sig")) for each in (data, result.data))
    for book in (before, after):
        for cell in (book.get("worksheets") or [book])[0]["cells"]:
            if cell.get("cell_type") == "code":
                cell["source" if "source" in cell else "input"] = ""
    assert before == after
    assert not migrate_other(result.data, "train.ipynb", FileKind.NOTEBOOK, Settings(), TARGET)[0].changed


def hold_findings(findings: Iterable[Finding], length: int) -> None:
    """Findings name a code that has a page, lie in the text, and blame nothing on ourselves."""
    known = set(all_codes())
    for finding in findings:
        span = finding.span
        assert finding.code in known, finding
        assert 0 <= span.start <= span.end <= length, finding
        assert span.line >= 1 and span.column >= 1 and (span.line, span.column) <= (span.end_line, span.end_column)
        assert finding.code != "NPU991" and "defect of transplt" not in finding.help, finding
        assert finding.message.strip()


def hold_message(error: Exception) -> None:
    """An error for the user is one printable line."""
    text = str(error)
    assert text.strip() and text.isprintable(), f"not one printable line: {text!r}"


def photograph(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below a folder, links not followed: mode, time of the last change in ns, content or target."""
    found: dict[str, tuple[int, int, bytes]] = {}
    pending = [os.fspath(folder)]
    while pending:
        try:
            listing = os.scandir(pending.pop())
        except OSError:  # closed, or its path too long
            continue
        with listing:
            for entry in listing:
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError as error:
                    assert error.errno == errno.ENAMETOOLONG, error
                    continue
                content = b""
                if entry.is_symlink():
                    content = os.fsencode(os.readlink(entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False) and info.st_size < 2**20:
                    try:
                        content = Path(entry.path).read_bytes()
                    except PermissionError:
                        content = b"(unreadable)"
                found[os.path.relpath(entry.path, folder)] = (info.st_mode, info.st_mtime_ns, content)
    return found


def _comes_back(data: bytes) -> bool:
    """True for bytes that are the same when they are decoded and encoded again: others are never rewritten."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    try:
        return data.decode(encoding).encode(encoding) == data
    except (UnicodeError, LookupError):
        return False


def _utf8(data: bytes) -> bytes:
    try:
        return read_source(data).utf8
    except UnreadableSource:
        return data


def _length(data: bytes) -> int:
    return len(_utf8(data))


def _words(lowered: bytes) -> int:
    """How many words of CUDA the bytes hold, counted without looking into one twice (cudnn holds no cuda)."""
    return len(re.findall(b"|".join(sorted(WORDS, reverse=True)), lowered))
