"""Which findings of the analysis an edit has taken care of: the place they speak of is no longer as it was."""

from __future__ import annotations

from collections.abc import Iterable

from transplt.base.finding import Finding
from transplt.base.text.source import Source
from transplt.edits.edit import Note
from transplt.rules.kernel_functions import SAID
from transplt.syntax.scan import FUNCTIONS, Scan

#: Faster forms, float64, masks of -inf, limits of an API: what they say is about one place.
_OF_PLACES = ("NPU701", "NPU710", "NPU711", "NPU726", "NPU727", "NPU521", "NPU522", "NPU523", "NPU524")
_TUNINGS = ("NPU760", "NPU761", "NPU762", "NPU763", "NPU764", "NPU765", "NPU768", "NPU769", "NPU770", "NPU771")
_ROTARY = "NPU762"
#: They replace the name that is called; what they write elsewhere is beside the point.
_OPTIMIZERS = ("NPU750", "NPU751")
_LOADERS = ("NPU756", "NPU757")


def still_there(notes: Iterable[Note], found: Iterable[Finding]) -> list[Note]:
    """The notes that do not speak of the build or the import of an extension that is gone."""
    gone = [(each.span.start, each.span.end) for each in found if each.applied and each.code == SAID]
    return [note for note in notes if not any(a <= note.extent[0] and note.extent[1] <= b for a, b in gone)]


def left_over(notes: Iterable[Note], found: Iterable[Finding], source: Source, scan: Scan) -> list[Note]:
    """The notes at places that no tuning has written anew."""
    applied = [finding for finding in found if finding.applied]
    edits = [finding for finding in applied if finding.code in _TUNINGS]
    starts = {finding.span.start for finding in applied if finding.code in _OPTIMIZERS}
    loaders = [finding for finding in applied if finding.code in _LOADERS]
    if not edits and not starts and not loaders:
        return list(notes)
    spans = [(finding.span.start, finding.span.end) for finding in edits]
    whole = {source.extent(node)[0]: source.extent(node)[1] for node in scan.classes}
    helpers = {source.extent(node)[0] for node in scan.functions if isinstance(node, FUNCTIONS)}
    turned = any(finding.code == _ROTARY for finding in edits)
    kept = []
    for note in notes:
        start, end = note.extent
        if note.code in _OF_PLACES:
            end = max(end, whole.get(start, end) if note.code == "NPU701" else end)
            elsewhere = bool(note.detail("also"))
            if not elsewhere and any((a < end and start < b) or a == b == start for a, b in spans):
                continue
            if not elsewhere and start in starts and note.api.startswith(("torch.optim.", "torch.nn.utils.")):
                continue
            if note.code == "NPU701" and turned and start == note.extent[1] and start in helpers:
                continue
        elif _given_now(note, loaders):
            continue
        kept.append(note)
    return kept


def _given_now(note: Note, loaders: list[Finding]) -> bool:
    """True for `without drop_last=True` and the like where the call has got it."""
    missing = note.detail("missing")
    return bool(missing) and any(
        note.extent[0] < finding.span.start < note.extent[1]
        and missing in (finding.edit.after if finding.edit else "")
        for finding in loaders
    )
