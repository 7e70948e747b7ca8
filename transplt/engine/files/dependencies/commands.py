"""Commands that install torch: in the release that torch_npu needs, with torch-npu, and without parts of CUDA.

`pip install`, `conda install` and their like in shell scripts, and in the pieces of shell that containers, workflows
and notebooks hold.
"""

from __future__ import annotations

import re
from dataclasses import replace

from transplt.base.finding import Effort, Level
from transplt.base.text.requirement import Requirement, normalised
from transplt.edits.edit import Edit, Extent, Finds, Note
from transplt.engine.files.dependencies.codes import (
    ADDED,
    CUDA_OUT,
    INDEX,
    MOVED,
    NOT_ADDED,
    added_help,
    in_bytes,
    not_added,
    of_older_python,
    shifted,
    why_an_index,
    without_python,
)
from transplt.engine.files.dependencies.indexes import has_cpu_index, has_index, index_changes
from transplt.engine.files.dependencies.others import is_for_others, kept_elsewhere, without_elsewhere
from transplt.engine.files.dependencies.pythons import python_of_image, python_of_wheel
from transplt.engine.files.dependencies.versions import (
    BUILDS,
    FAMILY,
    TORCH,
    TORCH_NPU,
    Releases,
    is_other_build,
    is_part_of_cuda,
    lost_names,
    moved,
)
from transplt.engine.files.document import Document
from transplt.engine.files.install_commands import InstallCommand, install_commands
from transplt.engine.files.requirements import LARGEST
from transplt.rules.releases import fits, index_option

#: What a CI service runs: mostly on hosts with neither GPU nor NPU.
_SERVICES = re.compile(r"(?:^|/)(?:\.(?:github|circleci|buildkite)/|(?:\.gitlab-ci|\.travis|azure-pipelines)[^/]*$)")
#: Options of conda that mean nothing to pip, and name no environment.
_CHANNELS = frozenset({"-c", "--channel"})
_PLAIN = frozenset({"-y", "--yes", "-q", "--quiet", "--override-channels", "--strict-channel-priority"})
_OF_TORCH = {*TORCH, *FAMILY, *BUILDS}
_INDEXES = frozenset({"-i", "--index-url", "--default-index", "--index"})
_NIGHTLY = re.compile(r"--pre\b|/nightly/|/whl/(?:test|rocm|xpu)")


def changes(document: Document) -> Finds:
    """The changes of all commands of a document."""
    if len(document.utf8) <= LARGEST and not is_for_others(document.path):
        yield from install_line_changes(document, 0, len(document.utf8))


def of_image(document: Document, name: str, extent: Extent) -> Finds:
    """A finding for the base image of a recipe that installs torch, where torch_npu has no wheels for its Python."""
    python, releases = python_of_image(name), Releases.of(document)
    if not python or releases is None or not releases.pythons or python in releases.pythons:
        return
    requirements = (each for command in install_commands(document.utf8.decode()) for each in command.requirements)
    if any(normalised(each.name) in TORCH for each in requirements):
        yield without_python(extent, f"the base image {name} has Python {python}", releases)


def broken(document: Document, changed: Document) -> str:
    """Why the changed text must not be written: its commands would install other packages."""
    if document.utf8 == changed.utf8:
        return ""
    texts = (document.utf8.decode(), changed.utf8.decode())
    before, after = ([each for command in install_commands(text) for each in command.requirements] for text in texts)
    return lost_names(before, after)


def install_line_changes(document: Document, start: int, end: int) -> Finds:
    """The changes of the commands in the bytes `start`..`end` of a document, with places of the whole document."""
    releases = Releases.of(document)
    if releases is None or document.settings.style == "portable":
        return
    text = document.utf8[start:end].decode()
    for command in install_commands(text):
        yield from shifted(in_bytes(text, kept_elsewhere(command.requirements)), start)
        command = replace(command, requirements=tuple(without_elsewhere(command.requirements)))
        if not _SERVICES.search(document.path) or _names_cuda(text, command):
            part = Releases.of_part(document, command.requirements) if document.target.of_parts else None
            reader = _of_conda if command.is_conda else _of_pip
            found = reader(text, command, part or releases)
            yield from shifted(in_bytes(text, found), start)


def _names_cuda(text: str, command: InstallCommand) -> bool:
    """True for a command that is for hosts with CUDA: in workflows others install what runs on the CPU."""
    command_text = text[command.start : command.end]
    has_part = any(is_part_of_cuda(each.name) for each in command.requirements)
    return has_part or re.search(r"(?:\+|%2B|/whl/)cu\d", command_text) is not None


def _of_pip(text: str, command: InstallCommand, releases: Releases) -> Finds:
    command_text = text[command.start : command.end]
    yield from _without_cuda(text, command)
    torch = next((each for each in command.requirements if normalised(each.name) in ("torch", "pytorch")), None)
    has_npu = any(normalised(each.name) == TORCH_NPU for each in command.requirements)
    if _NIGHTLY.search(command_text):
        if torch is not None and not has_npu:
            yield not_added(torch.whole, "this is a nightly build, or one for another device", releases)
        return
    family = [each for each in command.requirements if normalised(each.name) in ("torch", "pytorch", *FAMILY)]
    if not family or ((has_cpu_index(command_text) or "+cpu" in command_text) and not _names_cuda(text, command)):
        return  # what runs on the CPU alone is somebody's choice
    pythons = [(each, python_of_wheel(each, text)) for each in family] if releases.pythons else []
    if older := next((each for each, python in pythons if python and python not in releases.pythons), None):
        yield of_older_python(older, text, releases)
        return
    for each in family:
        if each.name != "pytorch":
            yield from _moved(text, each, releases)
    for start, end, option in index_changes(command_text, needs_pypi=torch is not None or has_npu):
        message = "PyTorch's index of CPU builds, which torch_npu needs"
        yield Edit((command.start + start, command.start + end), INDEX, message, option, api="torch")
    if torch is not None and not has_npu:
        yield from _added(text, command, torch, releases)


def _moved(text: str, requirement: Requirement, releases: Releases) -> Finds:
    new = moved(requirement, text, releases)
    if new is not None:
        start, end = requirement.whole if requirement.address else (requirement.start, requirement.clauses[1])
        name = requirement.name if requirement.address else text[start : requirement.clauses[0]]
        message = (f"{requirement.name} {new.lstrip('=~^<> ')}: the release that goes with torch-npu "
                   f"{releases.torch_npu}")
        yield Edit((start, end), MOVED, message, name + new, api=requirement.name)


def _added(text: str, command: InstallCommand, torch: Requirement, releases: Releases) -> Finds:
    """torch-npu behind torch, and the index that its wheels for x86_64 need."""
    command_text = text[command.start : command.end]
    if is_other_build(torch, text) or re.search(r"[${`]", text[torch.whole[0] : torch.whole[1]]):
        yield not_added(torch.whole, "the version of torch cannot be determined here", releases)
        return
    if any(option.text in _INDEXES and "$" in value.text for option, value in command.options):
        yield not_added(torch.whole, "the packages come from an index that cannot be read here", releases)
        return
    at = _behind(text, torch)
    message = f"torch {releases.torch} needs torch-npu {releases.torch_npu} on NPUs"
    added = f" {TORCH_NPU}=={releases.torch_npu}"
    yield Edit((at, at), ADDED, message, added, api=TORCH_NPU, help=added_help(releases))
    pip = command.installer.startswith("pip") and command.installer != "pipenv"
    if pip and releases.x86_64 and not has_index(command_text):
        at = max(_behind(text, each) for each in command.requirements)
        yield Edit((at, at), INDEX, why_an_index(releases), index_option(releases.x86_64), api="torch")


def _of_conda(text: str, command: InstallCommand, releases: Releases) -> Finds:
    """A command for torch alone becomes one of pip, as in transplt/engine/files/dependencies/conda.py."""
    packages = [(normalised(each.name), each) for each in command.requirements]
    torch = next((each for name, each in packages if name in TORCH), None)
    for _, each in packages:
        if each.name == "python" and not fits(each.versions, releases.pythons):
            yield without_python(each.whole, f"the environment has python{each.versions}", releases)
    if nightly := next((each for name, each in packages if name.startswith("pytorch-nightly")), None):
        yield not_added(nightly.whole, "this is a nightly build, or one for another device", releases)
    if torch is None:
        yield from _without_cuda(text, command)
        return
    new = ["pip", "install", *releases.pins({name for name, _ in packages})]
    new += index_option(releases.x86_64).split()
    if command.verb != "install" or not _is_torch_alone(text, command):
        yield Note(
            torch.whole, NOT_ADDED, Level.MANUAL, "conda has no torch-npu: torch and torch-npu come from pip",
            api=TORCH_NPU, effort=Effort.LOW, help=f"install the others with conda, then {' '.join(new)}",
        )  # fmt: skip
        return
    message = (f"torch {releases.torch} and torch-npu {releases.torch_npu} are installed with pip; CUDA packages are "
               "removed")
    yield Edit((command.start, command.end), MOVED, message, " ".join(new), api="torch", help=added_help(releases))


def _is_torch_alone(text: str, command: InstallCommand) -> bool:
    """True for a command of conda that installs torch, its family and parts of CUDA, by options that pip needs not."""
    known = {each.whole[0] for each in command.requirements}
    known |= {word.start for option in command.options for word in option}
    return (
        all(is_part_of_cuda(each.name) or normalised(each.name) in _OF_TORCH for each in command.requirements)
        and all(option.text in _CHANNELS or option.text in _PLAIN for option, _ in command.options)
        and all(word.start in known for word in command.words)
        and re.search(r"[${`]", text[command.start : command.end]) is None
    )


def _without_cuda(text: str, command: InstallCommand) -> Finds:
    """The parts of CUDA go, where the command asks for something else as well."""
    cuda = [each for each in command.requirements if is_part_of_cuda(each.name)]
    for each in cuda if len(cuda) < len(command.requirements) else ():
        message = f"{each.name} is part of CUDA and is replaced by CANN"
        yield Edit(_word(text, each), CUDA_OUT, message, "", api=each.name)


def _behind(text: str, requirement: Requirement) -> int:
    """The place behind a word and its quote."""
    end = requirement.whole[1]
    return end + (text[end : end + 1] in ('"', "'") and text[requirement.whole[0] - 1] == text[end])


def _word(text: str, requirement: Requirement) -> tuple[int, int]:
    """A word with its quotes and the blanks before it."""
    start, end = requirement.whole[0], _behind(text, requirement)
    start -= end > requirement.whole[1]
    while start and text[start - 1] in " \t":
        start -= 1
    return start, end
