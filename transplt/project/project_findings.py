"""Findings about a project as a whole, which no file gives alone: the same for a migration, a check and a survey."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from transplt.base.finding import Finding, Level, Span
from transplt.base.grouped import grouped
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.regular_file import SOURCE, read_regular

#: As in transplt/engine/files/dependencies/codes.py, which what is remembered does not load.
_NOT_ADDED = "NPU844"
OLD_PINS = _TOO_OLD, _PYTHON = ("NPU291", "NPU845")
_OF_REQUIREMENTS = "NPU84"
#: An import of torch_npu that goes in.
_IMPORTED, _TORCH_NPU = "NPU403", "torch-npu"
_COMMAND, _NATIVE = "NPU865", "NPU806"
#: What is said wherever a program runs: of files without map_location, what newer packages refuse, limits and advice,
#: and of torch as required.
_OF_ANY_DEVICE = re.compile(r"NPU(?:152|293|52\d|6(?!02)\d\d|7\d\d|291|84[01456])")
_IMPORT = re.compile(rb"^import torch_npu\b", re.M)
#: What names a card that is not one of CUDA.
_OTHER_CARD = re.compile(rb"\b(?:torch_)?(?:npu|xpu|mps|hpu|mlu|musa)\b")


def of_the_whole(
    first: Finding | None,
    asks: bool,
    kinds: Mapping[str, str],
    root: Path,
    target: TorchTarget,
    settings: Settings,
) -> dict[str, list[Finding]]:
    """By path: what a project imports and does not ask for, and where its files disagree.

    `first` is the first import of torch_npu that goes in; without one the first that is there counts. `asks`: a file
    asks for torch-npu, or will, or has a finding that it does not. `kinds` are the files of the tree `root`; empty
    where only a part of it is looked at. What the settings switch off is left out.
    """
    found = [*target.disagreements]
    if not asks and kinds:
        from transplt.project.torch_npu_requirements import (
            unasked,  # what is remembered needs no reader of requirements
        )

        missing = unasked(lambda: first or _there(kinds, root), dict(sorted(kinds.items())), root, target)
        found += [missing] if missing is not None else []
    reported = (each for each in found if not each.code.startswith(settings.ignored_codes(each.path) or ("-",)))
    return grouped((each.path, each) for each in reported)


def asks_for_a_card(finding: Finding) -> bool:
    """Whether it is about something that only a program for a card has."""
    of_any = _OF_ANY_DEVICE.fullmatch(finding.code)
    return not of_any or (finding.applied and not finding.code.startswith(_OF_REQUIREMENTS))


def is_for_no_card(findings: Iterable[Finding], kinds: Mapping[str, str], root: Path) -> bool:
    """True where nothing asks for a card, as the findings of an analysis tell, and no Python file names one of others:
    a project that was ported already has no word of CUDA.
    """
    return not any(map(asks_for_a_card, findings)) and not any(
        _OTHER_CARD.search(data) for _, data in _python_of(kinds, root)
    )


def as_they_block(files: Sequence[tuple[Finding, ...]], added: bool, without_card: bool) -> list[tuple[Finding, ...]]:
    """The findings of files, those of torch and torch-npu as requirements as their project makes of them: where a list
    of packages asks for torch-npu (`added`), a setup.py that does not stops nothing, and one that alone names torch is
    needed, whoever reaches its file, but stops no import where none of torch_npu goes in: what first computes on the
    card; where none does, or will, the README's command that installs torch is the only one; where nothing asks for a
    card (`without_card`), all may stay as they are, and pins that the Pythons of its torch have no wheel of, unless a
    list of packages gets that torch.
    """
    every = [each for findings in files for each in findings]
    missing = [each for each in every if each.code == _NOT_ADDED]
    listed, alone = added or bool(missing), all(each.aside for each in missing)
    imported = any(each.code == _IMPORTED for each in every) or not any(each.applied for each in every)
    stays = not any(each.applied and each.code.startswith(_OF_REQUIREMENTS) for each in every)
    blocks = "first step" if any(map(_computes_on_the_card, every)) else "later"

    def settled(finding: Finding) -> Finding:
        asks = finding.code == _NOT_ADDED
        moved = asks or (stays and finding.code == _PYTHON) or (finding.code == _TOO_OLD and finding.api == "torch")
        if without_card and finding.open and moved:
            message = f"{finding.message}; nothing in the project needs a card"
            return replace(finding, level=Level.INFO, effort=None, message=message)
        if finding.code == _COMMAND and finding.api == "torch" and not (listed or without_card or "/" in finding.path):
            return replace(finding, blocks="import")
        if not (asks and finding.path.endswith("setup.py")):
            return finding
        if added:
            return replace(finding, blocks="tidy")
        finding = finding if imported or finding.api != _TORCH_NPU else replace(finding, blocks=blocks)
        return replace(finding, aside=False, late="") if alone else finding

    found = [tuple(map(settled, findings)) for findings in files]
    if not any(each.code == _NATIVE and each.open for each in every):
        return found
    from transplt.engine.actions.groups import as_their_actions  # what is remembered does not load it

    return as_their_actions(found)


def _computes_on_the_card(finding: Finding) -> bool:
    """Whether it wrote what every run comes to, and what torch has from torch_npu alone."""
    late = finding.option or finding.aside or finding.late in ("other", "branch", "guard", "handled")
    return finding.applied and not late and finding.path.endswith(".py") and "npu" in getattr(finding.edit, "after", "")


def _there(kinds: Mapping[str, str], root: Path) -> Finding | None:
    """The first import of torch_npu that a file makes as it is loaded."""
    for path, data in _python_of(kinds, root):
        if (match := _IMPORT.search(data)) is not None:
            line = data.count(b"\n", 0, match.start()) + 1
            span = Span(line, 1, line, match.end() - match.start() + 1, match.start(), match.end())
            return Finding(path, span, "", Level.INFO, "")
    return None


def _python_of(kinds: Mapping[str, str], root: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(path for path, kind in kinds.items() if kind == "python"):
        with suppress(OSError):
            yield path, read_regular(root / path, SOURCE)
