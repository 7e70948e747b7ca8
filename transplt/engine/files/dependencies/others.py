"""Requirements of others than the training: files for another device, for documents, for a linter, and requirements
whose condition holds on no host with NPUs (`; sys_platform == "win32"`); and what an NPU needs of others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from transplt.base.finding import Finding
from transplt.base.text.requirement import Requirement, normalised
from transplt.edits.edit import Finds, Kept
from transplt.rules.companions import asked_by_cann, asked_by_torch, beside_newer, first_wheel, older_pins, older_than
from transplt.rules.packages import TOO_OLD, numbers_of

#: A word of the name of a file, of a folder, or of an extra.
FOR_OTHERS = re.compile(
    r"(?:^|[-_./])(?:cpu|rocm|amd|mps|mac|macos|osx|windows|win|xpu|hpu|tpu|flax|jax|tensorflow|npu|ascend|docs?|doc|sphinx|readthedocs|"
    r"rtd|lint|linting|pre-commit)(?=[-_./]|$)"
)
_NPU = re.compile(r"npu|ascend")
#: How the comment begins that names what needs no bound.
OF_CANN = "# CANN's own Python packages import these, too:"


def is_for_others(path: str) -> bool:
    """True for a path that names another device, documents or a linter: its requirements are theirs."""
    return FOR_OTHERS.search(path.lower().rsplit(".", 1)[0]) is not None


def speaks_for_others(name: str) -> bool:
    """True where what `name` (a path, or the name of an extra) holds says nothing of the torch that is trained with.

    What is for the NPU does say it: nothing says it better.
    """
    return any(not _NPU.search(match.group()) for match in FOR_OTHERS.finditer(name.lower()))


def without_elsewhere(requirements: Iterable[Requirement]) -> list[Requirement]:
    """The requirements that a host with NPUs may have to install."""
    return [each for each in requirements if not each.is_elsewhere]


def kept_elsewhere(requirements: Iterable[Requirement]) -> Finds:
    """Why the words of CUDA stay in the requirements that no host with NPUs installs."""
    for each in requirements:
        if each.is_elsewhere:
            yield Kept(each.whole if each.whole != (0, 0) else (each.start, each.end), "elsewhere")


def needed_by_cann(listed: Iterable[Requirement], cann: str) -> list[str]:
    """What the Python packages of a CANN import and a list does not ask for, and bounds that its own leave room for."""
    needs = []
    for name, bound in asked_by_cann(cann).items():
        asked = [each for each in listed if normalised(each.name) == name]
        newest = {"<2": "1.26.4"}.get(bound, "")
        if not asked or (newest and all(each.allows(newest) is not False for each in asked)):
            needs.append(f"{name}{bound}")
    return needs


def floors(
    listed: Sequence[Requirement], found: Iterable[Finding], torch: str, pythons: Sequence[str]
) -> Iterator[tuple[Requirement, str]]:
    """The pins that are older than these Pythons, which pip cannot install, than what the torch asks for, or than what
    is `found` to be the first release for NPUs; and the first release that is not, empty where none is known.
    """
    open_ = (each for each in found if each.code == TOO_OLD and each.open)
    wanted = {each.api: each.detail("wanted").partition(">=")[2] for each in open_}
    older = [*older_pins(listed, pythons, only=True), *older_than(listed, lambda name: asked_by_torch(name, torch))]
    # Beside a bound of protobuf pip has to find an older tensorflow, with a wheel for the Python.
    others = ("tensorflow", "protobuf") if any(each.name == "tensorflow" for each in older) else ()
    older += [each for other in others for each in older_than(listed, partial(beside_newer, other=other))]
    for each in (*older, *(each for each in listed if wanted.get(normalised(each.name)))):
        name = normalised(each.name)
        known = (wanted.get(name, ""), asked_by_torch(name, torch), first_wheel(name, pythons[0]))
        beside = filter(None, (beside_newer(name, other) for other in others))
        yield each, max(filter(None, known), key=numbers_of, default=next(beside, ""))
