"""`--amp` on one file, after everything else was planned."""

from __future__ import annotations

from transplt.edits.work import Work
from transplt.edits.writing import Writer
from transplt.finding import Level
from transplt.themes.amp.recognise import Precision, already, found_in
from transplt.themes.amp.shape import Unit, find_units

IMPORTS = ("NPU740", "an import for mixed precision")


def plan(work: Work) -> None:
    """Write mixed precision around what the other codemods wrote."""
    trains = b".backward(" in work.source.utf8
    if work.settings.ignored_codes(work.scan.path) and not _wanted(work):
        return
    own = found_in(work.scan, work.names)
    writer = Writer(work, *IMPORTS, level=Level.UNSAFE, asked=True)
    if work.settings.amp == "apex":
        _apex(work, own or already(work))
    if own is not None:
        _explain(writer, own, None)
        return
    if b"masked_fill" in work.source.utf8 and work.settings.amp == "native" and work.settings.amp_dtype == "float16":
        _constants(writer)
    if work.settings.amp_flag and already(work) is None:
        from transplt.themes.amp import flag

        flag.plan(work)
    if not trains:
        return
    units = find_units(work)
    found = already(work) if units else None
    if found is not None:
        _explain(writer, found, units[0])
    elif work.settings.amp == "native" and units:
        from transplt.themes.amp import native

        native.write(writer, units)


def _apex(work: Work, found: Precision | None) -> None:
    """apex in a program without mixed precision; in one that has apex, what takes the place of CUDA kernels."""
    from transplt.themes.amp import apex, apex_replacements

    if found is None:
        apex.plan(work)
    elif found.what == "apex.amp" and b"apex" in work.source.utf8 and work.settings.style == "npu":
        apex_replacements.replace(apex.writer_for(work))


def _constants(writer: Writer) -> None:
    """Constants beyond float16, in the files of a project that gets mixed precision."""
    texts = writer.work.project.sources.values() or [writer.work.source.utf8]
    if any(b".backward(" in text for text in texts) and already(writer.work) is None:
        from transplt.themes.amp.half_limits import fit_constants

        fit_constants(writer)


def _wanted(work: Work) -> bool:
    off = work.settings.ignored_codes(work.scan.path)
    return not any(code.startswith(off) for code in ("NPU740", "NPU741"))


def _explain(writer: Writer, found: Precision, unit: Unit | None) -> None:
    """Say that a program has mixed precision, at the place that gives it or, for another file's, where it trains."""
    node = found.node if unit is None else unit.first
    there = "" if unit is None else f" in {found.path}"
    writer.remark(
        node,
        "NPU742",
        f"this program has mixed precision already ({found.what}{there}): nothing is added to it",
        f"precision is set by {found.where}" if found.where else "",
    )
