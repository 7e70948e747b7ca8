"""Requirements that nothing needs any more once an adaptor has taken a package over (`--adapt`)."""

from __future__ import annotations

from transplt.base.text.requirement import normalised
from transplt.engine.files.document import Document
from transplt.flow.facts import ProjectFacts
from transplt.flow.replaced_packages import is_taken_over
from transplt.rules.taken_over import Package, packages


def taken_over(document: Document) -> dict[str, tuple[Package, str]]:
    """The distributions that go, normalised, with what they are and what is asked for in their place, if anything."""
    found: dict[str, tuple[Package, str]] = {}
    chosen = {} if document.settings.style == "portable" else dict(document.settings.adapt)  # CUDA needs it still
    for package in document.project.once(_taken_over) if chosen else ():
        if package.adaptor in chosen:
            new = package.distribution if chosen[package.adaptor] == "package" else ""
            found.update((normalised(name), (package, new)) for name in package.distributions)
    return found


def _taken_over(project: ProjectFacts) -> tuple[Package, ...]:
    return tuple(package for package in packages().values() if is_taken_over(package, project, needed=True))
