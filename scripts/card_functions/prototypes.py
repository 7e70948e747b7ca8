"""The prototypes of CANN's operator functions, of headers and of the pages of ops-nn and ops-math."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .arguments import CHANGED, FILLED, OPTIONAL, PROTOTYPE, Argument, snake

_PROTOTYPE = re.compile(r"\baclnnStatus\s+(acl\w+)GetWorkspaceSize\s*\(([^(){};]*)\)")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_PARAMETER = re.compile(r"(?P<const>const\s+)?(?P<type>\w+)\s*(?P<pointer>\*?)\s*(?:const\s+)?(?P<name>\w+)$")
#: In a page, whether an argument is read or written stands in the cell after its name, or in brackets after it.
_SECTION = re.compile(r"^#+.*?\b(acl\w+)GetWorkspaceSize.*$", re.M)
_DIRECTION = re.compile(
    r"(?:<td[^>]*>|^\s*[-*|])\s*(?P<name>[A-Za-z]\w*)\s*(?:\((?:const\s+)?acl\w+\s*\*?\s*[,)])?"
    r"(?:\s*</td>\s*<td[^>]*>|\s*\|)?\s*(?P<way>[^<|)\n]{0,9})",
    re.M,
)
_READ, _WRITTEN = "\u8f93\u5165", "\u8f93\u51fa"
_NARROW = {0xFF08: "(", 0xFF09: ")", 0xFF0C: ","}
#: What neither prototype nor page says right: op-plugin passes running statistics, what it made empty, an input that
#: may be nothing, and `Tensor(a!)` of its schemas.
BY_HAND = {
    ("aclnnSyncBatchNormGatherStats", "mean"): CHANGED, ("aclnnSyncBatchNormGatherStats", "variance"): CHANGED,
    ("aclnnNpuFormatCast", "dst_tensor"): FILLED, ("aclnnConfusionTranspose", "x"): "",
    ("aclnnFusedCrossEntropyLossWithMaxSum", "vocab_parallel_logits"): "", ("aclnnSilentCheckV2", "max"): CHANGED,
    ("aclnnApplyAdam", "m"): CHANGED, ("aclnnApplyAdam", "v"): CHANGED, ("aclnnAdvanceStep", "input_tokens"): CHANGED,
}  # fmt: skip
_TRIAL = re.compile(r"(^|/)(experimental|tests?|examples|stub)/")


def read(folder: Path, suffix: str) -> Iterator[tuple[str, tuple[Argument, ...]]]:
    """Functions and their arguments, of files of a checkout with this suffix; of trials what nothing released has."""
    paths = [(path.relative_to(folder).as_posix(), path) for path in folder.rglob(f"*{suffix}") if path.is_file()]
    released: set[str] = set()
    for name, path in sorted(paths, key=lambda each: (bool(_TRIAL.search(each[0])), each[0])):
        text = _COMMENT.sub(" ", path.read_text("utf-8", "replace"))
        for match in _PROTOTYPE.finditer(text):
            if _TRIAL.search(name) and match[1] in released:
                continue
            parameters = [" ".join(part.split()) for part in match[2].split(",")]
            if len(parameters) > 2 and parameters[-1].startswith("aclOpExecutor"):
                found = tuple(_argument(part) for part in parameters[:-2])
                if all(each is not None for each in found):
                    if not _TRIAL.search(name):
                        released.add(match[1])
                    yield match[1], tuple(each for each in found if each is not None)


def directions(folder: Path) -> dict[tuple[str, str], str]:
    """What pages say of (function, argument): read, filled, or read and written."""
    found: dict[tuple[str, str], str] = {}
    for path in sorted(folder.rglob("aclnn*.md")):
        sections = _SECTION.split(path.read_text("utf-8", "replace").translate(_NARROW))
        for function, text in zip(sections[1::2], sections[2::2], strict=True):
            for match in _DIRECTION.finditer(text):
                reads, writes = _READ in match["way"], _WRITTEN in match["way"]
                if reads or writes:
                    mark = CHANGED if reads and writes else FILLED if writes else ""
                    found.setdefault((function, bare(match["name"])), mark)
    return found


def bare(name: str) -> str:
    """The name of an argument as the table has it."""
    return snake(re.sub(r"(Ref|Optional)+$", "", name))


def _argument(text: str) -> Argument | None:
    """One parameter. A tensor that is not const may be filled; a name that ends in `Ref` is read and written."""
    match = _PARAMETER.match(text)
    kind = PROTOTYPE.get(match["type"] + match["pointer"], "") if match else ""
    if match is None or not kind:
        return None
    name, ends = bare(match["name"]), match["name"][-11:]
    marks = ""
    if kind in "tT" and "Ref" in ends:
        marks = CHANGED
    elif kind in "tT" and not match["const"]:
        marks = FILLED
    return Argument(name, kind, marks + OPTIONAL * ("Optional" in ends))


def marked(function: str, argument: Argument, said: str | None) -> Argument:
    """An argument with the mark that prototype and page have together."""
    declared, optional = argument.marks.removesuffix(OPTIONAL), argument.marks[-1:] if argument.marks else ""
    result = argument.name == "out" or (argument.name.endswith("_out") and argument.name != "grad_out")
    inplace = function.startswith("aclnnInplace") and argument.name == "self"
    if argument.kind not in "tT":
        return argument
    if (function, argument.name) in BY_HAND:
        mark = BY_HAND[function, argument.name]
    elif said == FILLED and declared == CHANGED and result:
        mark = FILLED
    elif inplace:
        mark = CHANGED
    elif declared == CHANGED or said is None:
        mark = declared or FILLED * result
    elif said == "" and declared == FILLED:
        mark = FILLED if result else CHANGED if argument.name.startswith("running_") else ""
    else:
        mark = said
    return replace(argument, marks=mark + OPTIONAL * (optional == OPTIONAL))
