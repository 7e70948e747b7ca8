"""Workflows of CI services: steps as shell, variables, images, and runners with GPUs.

Text that the service puts in (`${{ matrix.python }}`, `<< parameters.x >>`) is hidden from the shell (inserted.py).
"""

from __future__ import annotations

import re
from dataclasses import replace

from transplt.base.finding import Effort, Level
from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Finds, Kept, Note
from transplt.engine.files.document import Document
from transplt.engine.files.inserted import Inserted, hide
from transplt.engine.files.recipe_keys import Recipe, is_environment
from transplt.engine.files.yaml_nodes import (
    Node,
    Pair,
    ScalarNode,
    SequenceNode,
    below,
    folded_lines,
    read_yaml,
    scalars,
    text_lines,
)
from transplt.rules.containers import container_text, package_text, variable_text
from transplt.rules.environment import variables

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
_IMAGES = ("image", "container")
_TITLES = frozenset({"name", "id", "description", "title", "displayName"})
_TOOLKIT = re.compile(r"(?i)cuda-toolkit|/[\w-]*cuda[\w-]*@")
_ENVIRONMENT = re.compile(rb"\benv\.(\w+)")
PACKAGES = "NPU855"


def changes(document: Document) -> Finds:
    """What is changed in a workflow, and what is noted of it."""
    yaml = read_yaml(document)
    if yaml is None:
        return
    recipe = Recipe(document, yaml)
    hidden = hide(document, _INSERTED)
    # What the service puts in goes by names of the workflow's own, unless it is a variable of the environment.
    for start, end in hidden.places:
        names = [name.decode() for name in _ENVIRONMENT.findall(document.utf8[start:end])]
        if not any(name in variables() or variable_text(name) for name in names):
            yield Kept((start, end), "own-name")
    for pair in yaml.pairs():
        # Keys are names of the workflow and of the service, and titles are for people.
        is_variable = pair.name in variables() or bool(variable_text(pair.name)) or pair.name.isupper()
        if mentions_cuda(pair.name.lower().encode()) and not is_variable:
            yield Kept(recipe.extent(pair.key), "key")
        if pair.name in _TITLES and isinstance(pair.value, ScalarNode):
            yield Kept(recipe.extent(pair.value), "words")
        if pair.name in _STEPS and not _NO_STEPS & set(pair.above):
            shell = below(pair.mapping, "shell")
            if shell is None or (isinstance(shell, ScalarNode) and _SHELLS.match(str(shell.value))):
                yield from _step(recipe, hidden, pair.value)
        elif is_environment(pair):
            yield from recipe.environment(pair.value)
        else:
            yield from _job_settings(recipe, pair)


def _step(recipe: Recipe, hidden: Inserted, value: Node) -> Finds:
    if isinstance(value, SequenceNode):
        # Commands of a list run one after the other in one shell; each is read for itself.
        for item in value.value:
            yield from _step(recipe, hidden, item)
    elif isinstance(value, ScalarNode):
        lines = text_lines(recipe.document, recipe.yaml, value)
        folded = None if lines else folded_lines(hidden.hidden, recipe.yaml, value)
        if lines:
            yield from hidden.shell(lines)
        elif folded is not None:
            yield from replace(hidden, hidden=folded[0]).shell(folded[1])


def _job_settings(recipe: Recipe, pair: Pair) -> Finds:
    value = pair.value
    if pair.name.endswith(_IMAGES):
        yield from recipe.image(value)
    elif pair.name == "uses" and isinstance(value, ScalarNode) and _TOOLKIT.search(str(value.value)):
        message = f"the CUDA toolkit is installed: {value.value}"
        last = below(pair.mapping, "with") or value
        help_ = package_text("cuda-toolkit", recipe.document.target)
        yield Note(recipe.from_to(pair.key, last), PACKAGES, Level.MANUAL, message, str(value.value), help_, Effort.LOW)
    elif pair.name == "options" and isinstance(value, ScalarNode) and _GPUS.search(str(value.value)):
        message = "the container of the job is started with NVIDIA cards"
        yield recipe.devices(recipe.from_to(pair.key, value), message, "--gpus", container_text("workflow"))
    elif pair.name in _RUNNERS:
        for each in scalars(value):
            if _RUNNER.search(str(each.value)) and not _INSERTED.search(str(each.value).encode()):
                message = f"the job runs on GPU hosts: {each.value}"
                extent = recipe.from_to(pair.key, each) if each is value else recipe.extent(each)
                yield recipe.devices(extent, message, pair.name, container_text("runner"))
