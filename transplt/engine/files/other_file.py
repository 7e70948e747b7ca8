"""The way of one file that is not Python: its edits, its words, what it asks for, its ignore comments."""

from __future__ import annotations

from transplt.base import stages
from transplt.base.finding import Cause, FileResult, Finding, Ledger, TokenVerdict
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.cuda_words import WORD, Token
from transplt.engine.account import Cover, cause_of, taken_away
from transplt.engine.files.document import Document, text_of
from transplt.engine.files.gpu_words import GONE, OF_MEMORY, beside_tokens, gpu_word_findings
from transplt.engine.files.ignore_lines import ignore_line_findings
from transplt.engine.files.kind import FileKind
from transplt.engine.files.npu_twin import handled, has_npu_twin, is_for_cuda, lock_of, why_left
from transplt.engine.files.python_in import whole_python
from transplt.engine.files.requirements import with_requirements
from transplt.engine.files.rewrite import Rewritten, rewritten
from transplt.engine.files.tokens import FILE_BESIDE, PROJECT_BESIDE, Known, scan_other_file, tokens_of_one_cause
from transplt.engine.own_identifiers import ignored
from transplt.flow.facts import ProjectFacts

_LEFT = Cause(TokenVerdict.IGNORED, "", "left-by-plan")


def migrate_other(
    data: bytes,
    path: str,
    kind: FileKind,
    settings: Settings,
    target: TorchTarget,
    project: ProjectFacts | None = None,
    root: str = "",
    twin: bool = False,
) -> tuple[FileResult, int]:
    """The result for one file, and how many of its words stand in prose. `root`: the folder in which a twin may lie;
    `twin`: one will.

    A file with a twin for the NPU is not edited, nor is one for CUDA in a project that supports NPUs, nor any that is
    not UTF-8.
    """
    if settings.leaves(path):
        ledger = Ledger() if kind is FileKind.BINARY else tokens_of_one_cause(data, _LEFT)
        return FileResult(path, data, (), ledger.total(), ledger=ledger), 0
    if (whole := whole_python(data, path, kind, settings, project)) is not None:
        return whole, 0
    off = settings.ignored_codes(path)
    source = None if kind is FileKind.BINARY else text_of(data)
    text = data if source is None else source.utf8
    for_cuda = is_for_cuda(path, kind, project, text)
    lock = lock_of(root, path, settings.style)
    beside = FILE_BESIDE if twin or has_npu_twin(root, path, kind, lock) else PROJECT_BESIDE if for_cuda else ""
    done = Rewritten(text)
    if source is not None and not beside:
        stages.enter(stages.SEARCHED)
        done = rewritten(Document(source, path, kind, settings, target, project or ProjectFacts(), lock=lock))
        done.findings = list(handled(tuple(done.findings), project))
    stages.enter(stages.COUNTED)
    known = _known(text, done)
    other = scan_other_file(text, path, kind, target, off, beside or why_left(path, kind, project), known)
    found = other.findings
    read = beside or (kind is FileKind.NOTEBOOK and done.kept)  # what it asks for was found in its cells
    if words := [] if read else _not_reported(gpu_word_findings(text, path, kind, settings.pins, off), known, project):
        found = tuple(beside_tokens(found, words))
    if not for_cuda:
        met = project.floors if project is not None and project.known else None
        found = with_requirements(found, text, path, kind, off, known, met)
    if settings.analysis and kind is FileKind.NATIVE:
        from transplt.engine.analysis.native import findings_of

        found = (*found, *(each for each in findings_of(text, path) if not each.code.startswith(off)))
    found = handled((*found, *done.findings), project)
    if comments := ignore_line_findings(text, path, kind, found, off, settings.in_place):
        found = (*found, *comments)
    if kind is FileKind.NOTEBOOK and found:
        from transplt.engine.files.notebook.cells import in_cells

        found = in_cells(found, text)
    found = tuple(sorted(found, key=Finding.sort_key))
    new = data if source is None else source.encode(done.utf8)
    result = FileResult(path, new, found, other.tokens, changed=new != data, ledger=other.ledger)
    return result, other.prose


def _known(text: bytes, done: Rewritten) -> Known:
    """What the editors know of a place: of words that they took away, spoke of, or know to stay."""
    if not done.findings and not done.kept:
        return lambda start, end: None
    tokens = [Token(match.start(), match.end(), "") for match in WORD.finditer(text.lower())]
    gone = taken_away(text, tokens, done.spliced)
    edits = Cover((each.span.start, each.span.end, cause_of(each)) for each in done.findings if each.applied)
    ranges = [(each.span.start, each.span.end, cause_of(each)) for each in done.findings if not each.applied]
    ranges += [(*each.extent, ignored(each.reason, each.detail)) for each in done.kept]
    others = Cover(ranges)
    words = {token.start for token in tokens}

    def known(start: int, end: int) -> Cause | None:
        at = Token(start, end, "")
        if start in gone or start not in words:
            if (cause := edits.cause(at)) is not None:
                return cause
            if start in gone:
                return Cause(TokenVerdict.CONVERTED)
        cause = others.cause(at)
        if cause is not None and cause.reason == "both":
            return edits.cause(at) or cause  # the NPU's stands beside it
        return cause

    return known


def _not_reported(findings: list[Finding], known: Known, project: ProjectFacts | None) -> list[Finding]:
    """The findings of places that nobody else speaks of, remarks on memory, and of fields of TrainingArguments those
    that the project does not have itself.
    """
    places = [(each, each.span.start, max(each.span.end, each.span.start + 1)) for each in findings]
    kept = [each for each, start, end in places if each.code == OF_MEMORY or known(start, end) is None]
    taken = project or ProjectFacts()
    asked = "transformers" in dict(taken.floors)
    return [each for each in kept if each.code != GONE or (asked and each.detail("field") not in taken.options)]
