"""Which findings of the analysis an edit has taken care of: the place they speak of is no longer as it was."""

from __future__ import annotations

from collections.abc import Iterable

from transplt.base.finding import Finding
from transplt.base.text.source import Source
from transplt.edits.edit import Note
from transplt.rules.kernel_functions import SAID
from transplt.syntax.scan import Scan

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
    applied = [each for each in found if each.applied and each.code in (*_TUNINGS, *_OPTIMIZERS, *_LOADERS)]
    if not applied:
        return list(notes)
    tuned = _Tuned(applied, source, scan)
    return [note for note in notes if not (tuned.took(note) if note.code in _OF_PLACES else tuned.gave(note))]


class _Tuned:
    """What tunings have written in a file."""

    def __init__(self, applied: list[Finding], source: Source, scan: Scan) -> None:
        self.spans = [(finding.span.start, finding.span.end) for finding in applied if finding.code in _TUNINGS]
        self.starts = {finding.span.start for finding in applied if finding.code in _OPTIMIZERS}
        self.loaders = [finding for finding in applied if finding.code in _LOADERS]
        self.classes = dict(map(source.extent, scan.classes))
        turned = any(finding.code == _ROTARY for finding in applied)
        self.helpers = {source.extent(node)[0] for node in scan.functions if turned}

    def took(self, note: Note) -> bool:
        """True where the place that a note speaks of is no longer as it was."""
        start, end = note.extent
        if note.code == "NPU701":
            if start == end and start in self.helpers:
                return True
            end = max(end, self.classes.get(start, end))
        if note.detail("also"):
            return False  # it speaks of other places too
        if start in self.starts and note.api.startswith(("torch.optim.", "torch.nn.utils.")):
            return True
        return any((a < end and start < b) or a == b == start for a, b in self.spans)

    def gave(self, note: Note) -> bool:
        """True for `without drop_last=True` and the like where the call has got it."""
        missing = note.detail("missing")
        return bool(missing) and any(
            note.extent[0] < finding.span.start < note.extent[1]
            and missing in (finding.edit.after if finding.edit else "")
            for finding in self.loaders
        )
