"""Python that runs while an image is built, where there is neither a card nor a driver.

`import torch_npu` needs the driver, and so does `import torch` beside it, which loads torch_npu by itself since 2.5:
such a command gets `TORCH_DEVICE_BACKEND_AUTOLOAD=0`, and its code stays, as torch.npu is not there then.
Source: docs.pytorch.org, "Autoloading Out-of-Tree Extension"; torch_npu links against the driver's libraries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from tree_sitter import Node

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Found, Kept, Note, extent_of
from transplt.engine.files.document import Document
from transplt.engine.files.shell.script import Script, read_script
from transplt.engine.files.shell.words import words_of
from transplt.flow.command_words import Word, base, is_python, started
from transplt.rules.versions import loads_itself

AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_SET, _LEFT = "NPU851", "NPU805"
_MESSAGE = "torch must not load torch_npu during the build of an image, without a driver"
#: Packages that import torch.
_TORCH = re.compile(
    r"(?:^|[;:\n])[ \t]*(?:import|from)[ \t]+(?:[\w.]+[ \t]*,[ \t]*)*"
    r"(?:torch(?!_npu)\w*|transformers|diffusers|accelerate|timm|sentence_transformers|lightning|pytorch_lightning)\b"
)
_EXPORTED = re.compile(rf"\bexport\b[^\n;&|]*\b{AUTOLOAD}=")
#: What torch answers without CUDA, too: no, none, or nothing.
_ASKED = re.compile(
    r"torch\.cuda\.(?:is_available|device_count|is_initialized)\(\)|torch\.version\.cuda"
    r"|torch\.backends\.(?:cuda\.is_built|cudnn\.is_available|cudnn\.version)\(\)"
)
_OF_NPU = re.compile(r"npu|hccl", re.I)


def changes(document: Document) -> Finds:
    """The variable in front of the commands of an image's build that import torch."""
    if not document.building or document.settings.style != "npu" or not loads_itself(document.settings.torch_version):
        return
    script = read_script(document)
    if script is None:
        return
    exported = _EXPORTED.search(document.utf8.decode())
    for node in script.walk("command"):
        above = script.above(node)
        whole = above if above is not None and above.type == "redirected_statement" else node
        is_set = AUTOLOAD in script.text(node) or (exported is not None and exported.start() < node.start_byte)
        words = words_of(script, node)
        if script.sound(whole) and not is_set and _imports_torch(_code(script, whole, words)):
            python = next(word for word in words if is_python(word))
            at = python.extent[0] if base(words[0]) == "sudo" else node.start_byte
            yield Edit((at, at), _SET, _MESSAGE, f"{AUTOLOAD}=0 ", api="torch_npu")


def of_a_list(document: Document, words: Sequence[Word]) -> Finds:
    """The same for a command as a list of words, `RUN ["python", "-c", "import torch"]`, which no shell reads."""
    if document.settings.style != "npu" or not loads_itself(document.settings.torch_version):
        return
    if len(words) > 2 and is_python(words[0]) and words[1].value == "-c" and _imports_torch(words[2].value or ""):
        at = words[0].extent[0] - 1
        yield Edit((at, at), _SET, _MESSAGE, f'"env", "{AUTOLOAD}=0", ', api="torch_npu")


def _code(script: Script, whole: Node, words: Sequence[Word]) -> str:
    """The Python that a command runs from its own words, or from a here-document; empty for any other."""
    python = next((at for at, word in enumerate(words) if is_python(word)), len(words))
    for at, word in enumerate(words[python + 1 :], python + 1):
        if words[at - 1].value == "-c":
            return word.source.strip("\"'")
        if words[at - 1].value == "-m":
            return f"import {word.value}"
    if python == len(words) or started(words) is not None or whole.type != "redirected_statement":
        return ""
    return "\n".join(script.text(body) for body in script.walk("heredoc_body", below=whole))


def _imports_torch(code: str) -> bool:
    return "torch_npu" not in code and _TORCH.search(code) is not None


def left_as_it_is(document: Document, found: Iterable[Found]) -> Iterator[Found]:
    """What was found in Python that runs at build time: an edit for the NPU is a note, or nothing to do where the code
    asks what torch answers everywhere.
    """
    asked = [match.span() for match in _ASKED.finditer(document.utf8.decode("latin-1"))]
    for each in found:
        if not isinstance(each, Edit) or not _OF_NPU.search(str(each.new)):
            yield each
            continue
        start, end = extent = extent_of(each)
        if any(first <= start and end <= last for first, last in asked):
            yield Kept(extent, "build-time")
        elif end > start:
            yield Note(
                extent, _LEFT, Level.MANUAL,
                f"this runs during the build of the image, without an NPU; not done: {each.message}",
                each.api, "do this in the running container, which has the driver and the cards", Effort.LOW,
            )  # fmt: skip
