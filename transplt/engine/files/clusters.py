"""Compose files, Kubernetes, Helm values and devcontainers: what asks for NVIDIA's cards, with the text to paste."""

from __future__ import annotations

import re

from transplt.edits.edit import Finds, Note
from transplt.engine.files.document import Document
from transplt.engine.files.kind import FileKind
from transplt.engine.files.recipe_keys import Recipe, is_environment
from transplt.engine.files.yaml_nodes import (
    MappingNode,
    Node,
    Pair,
    ScalarNode,
    SequenceNode,
    below,
    read_yaml,
    scalars,
)
from transplt.rules.containers import container_text

_RESOURCE = re.compile(r"(?:^|/)nvidia\.com/|^nvidia\.com/|^amd\.com/gpu")
_GPU = re.compile(r"nvidia|gpu|cuda", re.IGNORECASE)
#: Keys of Kubernetes that choose nodes.
_NODES = frozenset({"nodeSelector", "tolerations", "nodeAffinity"})


def changes(document: Document) -> Finds:
    """What is changed in a recipe for containers, and what is noted of it."""
    yaml = read_yaml(document)
    if yaml is None:
        return
    recipe = Recipe(document, yaml)
    if document.name.endswith(".json"):
        for pair in yaml.pairs():
            yield from _devcontainer(recipe, pair)
        return
    compose = document.kind is FileKind.DOCKER
    for pair in yaml.pairs():
        if is_environment(pair):
            yield from recipe.environment(pair.value)
        elif pair.name == "image":
            yield from recipe.image(pair.value)
        elif pair.name in (keys := ("entrypoint", "command") if compose else ("command", "args")):
            # What a container starts: the two keys of it together, at the first of them that it has.
            first, then = (below(pair.mapping, key) for key in keys)
            if pair.value is (then if first is None else first) and pair.above[-1:] != ("build",):
                yield from recipe.started(first, then)
        elif compose:
            yield from _compose(recipe, pair)
        else:
            yield from _kubernetes(recipe, pair)


# --- compose ---------------------------------------------------------------------------------------------------------


def _compose(recipe: Recipe, pair: Pair) -> Finds:
    value = pair.value
    if pair.name == "runtime" and _is(value, "nvidia"):
        yield _asks(recipe, pair, "runtime: nvidia")
    elif pair.name == "gpus" and isinstance(value, (ScalarNode, SequenceNode)):
        yield _asks(recipe, pair, "gpus")
    elif pair.name == "devices" and isinstance(value, SequenceNode):
        if any(_asks_for_gpu(each) for each in value.value):
            yield _asks(recipe, pair, "NVIDIA devices")
    elif pair.name == "args" and pair.above[-1:] == ("build",):
        yield from recipe.environment(value)


def _asks(recipe: Recipe, pair: Pair, what: str) -> Note:
    message = f"the service requests NVIDIA cards: {what}"
    return recipe.devices(recipe.from_to(pair.key, pair.value), message, pair.name, container_text("compose"))


def _is(node: Node, text: str) -> bool:
    return isinstance(node, ScalarNode) and node.value == text


def _asks_for_gpu(device: Node) -> bool:
    """True for a reservation of devices: `driver: nvidia`, `capabilities: [gpu]`, a name of NVIDIA's devices."""
    if isinstance(device, ScalarNode):
        return "nvidia" in str(device.value).lower()
    driver, capabilities = below(device, "driver"), below(device, "capabilities")
    names = {str(each.value) for each in scalars(capabilities)} if capabilities is not None else set()
    return (driver is not None and _is(driver, "nvidia")) or not names.isdisjoint(("gpu", "nvidia-compute"))


# --- Kubernetes ------------------------------------------------------------------------------------------------------


def _kubernetes(recipe: Recipe, pair: Pair) -> Finds:
    if pair.name == "resources" or (pair.name in ("limits", "requests") and "resources" not in pair.above):
        yield from _resources(recipe, pair.value)
    elif pair.name in _NODES:
        start, end = recipe.from_to(pair.key, pair.value)
        if _GPU.search(recipe.document.utf8[start:end].decode().partition(":")[2]):
            message = f"this selects nodes with GPUs: {pair.name}"
            yield recipe.devices((start, end), message, pair.name, container_text("node"))
    elif pair.name == "runtimeClassName" and isinstance(pair.value, ScalarNode) and _GPU.search(str(pair.value.value)):
        message = f"the pod runs in NVIDIA's container runtime: {pair.value.value}"
        help_ = "remove it, or name the class of the Ascend Docker Runtime if the cluster has one"
        yield recipe.devices(recipe.from_to(pair.key, pair.value), message, "runtimeClassName", help_)


def _resources(recipe: Recipe, resources: Node) -> Finds:
    """One note for a container: what it asks for, in its limits and its requests."""
    rows = []
    for mapping in (below(resources, "limits"), below(resources, "requests"), resources):
        if isinstance(mapping, MappingNode):
            rows += [(key, value) for key, value in mapping.value if _RESOURCE.search(str(key.value))]
    if not rows:
        return
    rows.sort(key=lambda row: row[0].start)
    key, value = rows[0]
    number = str(value.value) if isinstance(value, ScalarNode) else ""
    extent = recipe.extent(key)[0], recipe.extent(rows[-1][1])[1]
    message = f"the container requests NVIDIA cards: {key.value}: {number}".rstrip(": ")
    yield recipe.devices(extent, message, str(key.value), container_text("kubernetes", number))


# --- devcontainer ----------------------------------------------------------------------------------------------------


def _devcontainer(recipe: Recipe, pair: Pair) -> Finds:
    value = pair.value
    help_ = container_text("devcontainer")
    if is_environment(pair):
        yield from recipe.environment(value)
    elif pair.name == "image":
        yield from recipe.image(value)
    elif pair.name == "runArgs":
        arguments = [str(each.value) for each in scalars(value)]
        if any(each.startswith("--gpus") or each in ("--runtime=nvidia", "nvidia") for each in arguments):
            message = "the container is started with NVIDIA cards"
            yield recipe.devices(recipe.from_to(pair.key, value), message, "--gpus", help_)
    elif pair.name == "gpu" and "hostRequirements" in pair.above:
        message = "the container requests a GPU from its host"
        yield recipe.devices(recipe.from_to(pair.key, value), message, "hostRequirements.gpu", help_)
    elif pair.name.startswith("ghcr.io/") and "cuda" in pair.name:
        message = f"the CUDA toolkit is installed in the container: {pair.name}"
        help_ = "remove it: start from a quay.io/ascend/cann image, which has CANN"
        yield recipe.devices(recipe.from_to(pair.key, value), message, pair.name, help_)
