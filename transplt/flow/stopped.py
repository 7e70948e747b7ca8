"""Files of a project to which no program on an NPU comes as they are, in the portable style: edits there help nobody.

They cannot be imported where there is no CUDA, or only scripts lead to them that train through a library which takes
CUDA or the CPU.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from transplt.base.closure import closure
from transplt.base.settings import Settings
from transplt.flow.chooser_place import is_installed
from transplt.flow.facts import ProjectFacts
from transplt.flow.import_layout import is_started, layout_of, reached_from
from transplt.syntax.modules import outermost_package

#: The detail of what stays: what programs do on an NPU before they come to it.
STOPS = "stops"


def stop_of(project: ProjectFacts, path: str, settings: Settings) -> str:
    """What stops whatever comes to a file, in words; empty where nothing does, or adaptors are to cure it."""
    return "" if settings.adapt else project.once(_stopped).get(path, "")


def _stopped(project: ProjectFacts) -> Mapping[str, str]:
    layout, aside, placing = project.once(layout_of), project.aside, project.placing
    ends = {**dict(aside.trainers), **aside.failing}
    if not aside.trainers:
        return ends

    def begins(path: str) -> bool:
        """True for what is started, and for what users of an installed package import."""
        top = outermost_package(path, placing)
        return is_started(project, layout, path) or bool(top and is_installed(project, posixpath.dirname(top)))

    begun = [path for path in layout.edges if path not in ends and begins(path)]
    living = closure(begun, lambda path: (edge.target for edge in layout.edges[path]))
    alive = {*living} - ends.keys()
    reached = ((each, why) for path, why in aside.trainers.items() for each in reached_from(layout, path))
    return {**{each: why for each, why in reached if each not in alive}, **ends}
