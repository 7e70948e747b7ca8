"""Workflows of CI services: steps as shell, variables, images, and runners with GPUs.

Text that the service puts in (`${{ matrix.python }}`, `<< parameters.x >>`) is hidden from the shell's grammar behind a
name of the same length; what the shell's editors say of a place that holds such text is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace

from transplt.edits.edit import Edit, Extent, Finds, Found
from transplt.files.document import Document
from transplt.files.kind import FileKind
from transplt.files.pieces import in_lines
from transplt.files.recipe_keys import Recipe, is_environment
from transplt.files.yaml_nodes import Node, Pair, ScalarNode, SequenceNode, below, read_yaml, scalars, text_lines
from transplt.rules.containers import container_text
from transplt.text.source import Source

#: Keys that hold commands; `command` and `bash` are steps of CircleCI, Buildkite and Azure.
_STEPS = frozenset(
    "run script before_script after_script command commands bash before_install install cmd".split()
)
#: Keys above which a step is no shell script of this service.
_NO_STEPS = frozenset({"services", "with", "inputs", "parameters", "outputs", "strategy", "matrix", "defaults"})
_SHELLS = re.compile(r"(?:/\S*/)?(?:ba|z|da|k)?sh\b")
_INSERTED = re.compile(rb"\$\{\{.*?\}\}|\$\[\[.*?\]\]|<<\s*[\w.-]+\s*>>")
_GPUS = re.compile(r"--gpus\b|--runtime[= ]nvidia|nvidia\.com/gpu")
_RUNNER = re.compile(r"gpu|nvidia|cuda", re.IGNORECASE)
_RUNNERS = frozenset({"runs-on", "resource_class", "tags", "pool", "agents", "machine"})
_IMAGES = frozenset({"image", "container"})


def changes(document: Document) -> Finds:
    """What is changed in a workflow, and what is said of it."""
    yaml = read_yaml(document)
    if yaml is None:
        return
    recipe = Recipe(document, yaml)
    inserted = [match.span() for match in _INSERTED.finditer(document.utf8)]
    hidden = _hidden(document)
    for pair in yaml.pairs():
        if pair.name in _STEPS and not _NO_STEPS & set(pair.above):
            shell = below(pair.mapping, "shell")
            if shell is None or (isinstance(shell, ScalarNode) and _SHELLS.match(str(shell.value))):
                for found in _step(recipe, hidden, pair.value):
                    if not _holds(found, inserted):
                        yield found
        elif is_environment(pair):
            yield from recipe.environment(pair.value)
        else:
            yield from _said(recipe, pair)


def _hidden(document: Document) -> Document:
    """The document with a name for each text that the service puts in: as many bytes, and the same lines."""
    utf8 = _INSERTED.sub(lambda match: re.sub(rb"[^\r\n]", b"X", match[0]), document.utf8)
    return replace(document, source=Source(utf8, line_starts=document.source.line_starts))


def _step(recipe: Recipe, hidden: Document, value: Node) -> Finds:
    if isinstance(value, SequenceNode):
        # Commands of a list run one after the other in one shell; each is read for itself.
        for item in value.value:
            yield from _step(recipe, hidden, item)
    elif isinstance(value, ScalarNode):
        lines = text_lines(recipe.document, recipe.yaml, value)
        if lines:
            yield from in_lines(hidden, lines, FileKind.SHELL)


def _holds(found: Found, inserted: list[Extent]) -> bool:
    """True for what speaks of a place that the service fills."""
    extent = found.where if isinstance(found, Edit) else found.extent
    assert isinstance(extent, tuple)
    at = bisect_right(inserted, (extent[1], -1)) - 1
    return at >= 0 and inserted[at][1] > extent[0] and inserted[at][0] < extent[1]


def _said(recipe: Recipe, pair: Pair) -> Finds:
    value = pair.value
    if pair.name in _IMAGES:
        yield from recipe.image(value)
    elif pair.name == "options" and isinstance(value, ScalarNode) and _GPUS.search(str(value.value)):
        message = "the container of the job is started with NVIDIA's cards"
        yield recipe.devices(recipe.extent(value), message, "--gpus", container_text("workflow"))
    elif pair.name in _RUNNERS:
        for each in scalars(value):
            if _RUNNER.search(str(each.value)) and not _INSERTED.search(str(each.value).encode()):
                message = f"the job runs where there are GPUs: {each.value}"
                yield recipe.devices(recipe.extent(each), message, pair.name, container_text("runner"))
