"""Recipes in YAML and JSON for containers, clusters and CI services: which file is one, and who reads it."""

from __future__ import annotations

import re

from transplt.edits.edit import Finds
from transplt.engine.files.document import Document
from transplt.engine.files.kind import FileKind
from transplt.engine.files.variables import together

_KUBERNETES = re.compile(rb"^[ \t]*apiVersion[ \t]*:", re.MULTILINE)
_WORKFLOW = re.compile(
    r"(?:.*/)?(?:\.github/(?:workflows|actions)/.*\.ya?ml|\.circleci/.*\.ya?ml|\.buildkite/.*\.ya?ml"
    r"|\.gitlab/.*\.ya?ml|(?:[^/]*[-_.])?(?:gitlab-ci|azure-pipelines?|travis|bitbucket-pipelines|appveyor)"
    r"(?:[-_.][^/]*)?\.ya?ml|action\.ya?ml)"
)
_YAML = (".yml", ".yaml")
_DEVCONTAINERS = ("devcontainer.json", ".devcontainer.json")


def is_workflow(path: str) -> bool:
    """True for the path of a file that a CI service runs."""
    return _WORKFLOW.fullmatch(path.lower()) is not None


def is_cluster(document: Document) -> bool:
    """True for a compose file, a Kubernetes manifest, the values of a chart that asks for cards, a devcontainer."""
    if document.kind is FileKind.DOCKER:
        return document.name.endswith(_YAML)
    if document.name in _DEVCONTAINERS:
        return True
    named = b"nvidia.com/" in document.utf8 or _KUBERNETES.search(document.utf8) is not None
    return document.name.endswith(_YAML) and named


def is_recipe(document: Document) -> bool:
    """True for a file that the editors of recipes read, so that no other judges its keys."""
    return is_workflow(document.path) or is_cluster(document)


def changes(document: Document) -> Finds:
    """What is changed in a recipe, and what is noted of it."""
    if is_workflow(document.path):
        from transplt.engine.files.workflows import changes as of_workflow

        yield from together(document, of_workflow(document))
    elif is_cluster(document):
        from transplt.engine.files.clusters import changes as of_cluster

        yield from together(document, of_cluster(document))


def broken(document: Document, changed: Document) -> str:
    """Why the changed recipe must not be written."""
    if not is_recipe(document):
        return ""
    from transplt.engine.files.yaml_nodes import read_yaml

    return "the result is not valid YAML" if read_yaml(document) is not None and read_yaml(changed) is None else ""
