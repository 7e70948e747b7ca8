"""Environments of conda: CUDA's packages go out, and torch comes from pip, as torch_npu does.

conda has no torch-npu, and torch_npu is installed beside pip's torch: https://github.com/Ascend/pytorch,
docs/zh/installation_guide/references/installation_via_pip.md.
"""

from __future__ import annotations

import re

from transplt.base.finding import Effort, Level
from transplt.base.text.requirement import Requirement, normalised
from transplt.edits.edit import Edit, Finds, Note
from transplt.engine.files.dependencies.codes import ADDED, CUDA_OUT, MOVED, NOT_ADDED, added_help
from transplt.engine.files.dependencies.indexes import has_cpu_index
from transplt.engine.files.dependencies.places import line_of, newline_of, without_line, without_lines
from transplt.engine.files.dependencies.versions import BUILDS, FAMILY, TORCH, TORCH_NPU, Releases, is_part_of_cuda
from transplt.rules.releases import CPU_INDEX

#: Packages that bring conda's own pytorch.
_BRINGS = re.compile(
    r"(?:pytorch|torch)[\w-]*|timm|fastai|lightning|ignite|captum|pyg|kornia|monai|transformers|accelerate"
)
_CHANNEL = re.compile(
    r"^[ \t]*-[ \t]+[\"']?(?:https?://conda\.anaconda\.org/)?nvidia(?:/label/[^\s\"']+)?[\"']?[ \t]*$", re.M
)
_CHANNELS = re.compile(r"^channels:[ \t]*(?:#[^\n]*)?\r?\n(?:[ \t]*(?:-[^\n]*|#[^\n]*)?(?:\r?\n|\Z))+", re.M)
_GROUP = "torch of pip"


def changes(text: str, conda: list[Requirement], every: list[Requirement], releases: Releases) -> Finds:
    """The changes of the list of conda's packages; `every` are those of pip's list too."""
    cuda = [each for each in conda if normalised(each.name) not in TORCH and is_part_of_cuda(each.name)]
    for each in cuda:
        if (gone := without_line(text, each)) is not None:
            message = f"{each.name} is part of CUDA and is replaced by CANN"
            yield Edit((gone[0], gone[1]), CUDA_OUT, message, "", api=each.name)
    if conda:
        yield from _channels(text)
        yield from _to_pip(text, conda, cuda, every, releases)


def _to_pip(
    text: str, conda: list[Requirement], cuda: list[Requirement], every: list[Requirement], releases: Releases
) -> Finds:
    """torch and its family leave the list of conda for that of pip, with torch-npu."""
    torch = [each for each in conda if normalised(each.name) in TORCH]
    if not torch or any(normalised(each.name) == TORCH_NPU for each in every):
        return
    family = [each for each in conda if normalised(each.name) in FAMILY or normalised(each.name) in BUILDS]
    moving = [*torch, *family]
    brings = [each.name for each in conda if each not in (*moving, *cuda) and _BRINGS.fullmatch(normalised(each.name))]
    lines = [without_line(text, each) for each in moving]
    block = _block(text, conda, every, [*moving, *cuda], _from_pip(text, moving, every, releases))
    if brings or None in lines or block is None:
        why = f"{', '.join(brings)} would bring conda's own torch" if brings else "its lines contain more"
        yield Note(
            (torch[0].start, torch[0].end), NOT_ADDED, Level.MANUAL,
            f"torch-npu is not added: it needs torch from pip, and {why}", api=TORCH_NPU, effort=Effort.LOW,
            help=f"install these packages with pip, with torch=={releases.torch} and torch-npu=={releases.torch_npu}",
        )  # fmt: skip
        return
    for each, line in zip(moving, lines, strict=True):
        assert line is not None
        message = f"{each.name} comes from pip, together with torch-npu"
        yield Edit((line[0], line[1]), MOVED, message, "", api=each.name, group=_GROUP)
    at, new = block
    message = f"torch {releases.torch} needs torch-npu {releases.torch_npu} on NPUs, both from pip"
    yield Edit((at, at), ADDED, message, new, api=TORCH_NPU, help=added_help(releases), group=_GROUP)


def unread(text: str) -> str:
    """Why YAML does not read a text, empty where it does."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        return f"the file would no longer be valid YAML: {str(error).splitlines()[0]}"
    return ""


def _channels(text: str) -> Finds:
    """NVIDIA's channel, where it is not the only one and nothing is taken from it by name."""
    block = _CHANNELS.search(text)
    if block is None or re.search(r"-[ \t]+[\"']?nvidia(?:/[\w./-]+)?::", text):
        return
    found = list(_CHANNEL.finditer(text, block.start(), block.end()))
    if found and len(found) < len(re.findall(r"^[ \t]*-", block.group(), re.M)):
        for match in found:
            start, end, new = without_lines(text, *line_of(text, match.start(), match.end()))
            yield Edit((start, end), CUDA_OUT, "the channel of CUDA packages is removed too", new, api="nvidia")


def _from_pip(text: str, moving: list[Requirement], every: list[Requirement], releases: Releases) -> list[str]:
    """What the list of pip gets."""
    there = {normalised(each.name) for each in every if each not in moving}
    index = [f"--extra-index-url {CPU_INDEX}"] if releases.x86_64 and not has_cpu_index(text) else []
    pins = releases.pins({normalised(each.name) for each in moving} - there)
    return index + (pins[1:] if "torch" in there else pins)


def _block(
    text: str, conda: list[Requirement], every: list[Requirement], going: list[Requirement], new: list[str]
) -> tuple[int, str] | None:
    """Where the list of pip, or what goes into it, is written, and its text; None where there is no place."""
    newline = newline_of(text)
    header = re.search(r"^([ \t]*)-([ \t]+)pip:[ \t]*(?:#[^\n]*?)?(?=\r?$)", text, re.M)
    if header is not None:
        first = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)+([ \t]*)-").match(text, header.end())
        indent = first[1] if first is not None and len(first[1]) > len(header[1]) else header[1] + "  "
        return header.end(), "".join(f"{newline}{indent}- {each}" for each in new)
    staying = [each for each in conda if each not in going]
    if not staying:
        return None
    last = max(staying, key=lambda each: each.start)
    start, end = line_of(text, last.start)
    dash = re.match(r"[ \t]*", text[start:end])
    indent = dash.group() if dash is not None else ""
    lines = [] if any(normalised(each.name) == "pip" for each in every) else [f"{indent}- pip"]
    lines += [f"{indent}- pip:", *(f"{indent}  - {each}" for each in new)]
    return end, "".join(f"{newline}{line}" for line in lines)
