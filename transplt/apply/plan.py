"""The codemods in the order in which they look at a file."""

from __future__ import annotations

from collections.abc import Callable

from transplt.apply import portable
from transplt.apply.npu_side import leave_npu_code
from transplt.codemods import (
    amp,
    arguments,
    bare_devices,
    checkpoints,
    compile_backends,
    cuda_paths,
    data_loader,
    device_slices,
    device_tables,
    distributed,
    environment,
    error_text,
    extensions,
    foreign_devices,
    gates,
    help_text,
    imports,
    libraries,
    local_rank,
    methods,
    nvidia_tools,
    old_packages,
    own_methods,
    packages,
    probes,
    profiler,
    reductions,
    references,
    saved_states,
    specify_device,
    streams,
    strings,
    tensor_types,
    type_strings,
    whole_objects,
)
from transplt.edits.work import Work
from transplt.project.facts import ProjectFacts
from transplt.rules.rule_set import RuleSet
from transplt.settings import Settings
from transplt.syntax.names import Names
from transplt.syntax.scan import Scan
from transplt.text.source import Source
from transplt.values.slots import Flow

#: In order of rank: the first to claim a node (`Work.take`) has it. User rules, structure, renames, then values.
PLANS: tuple[Callable[[Work], None], ...] = (
    profiler.plan,
    imports.plan,
    packages.plan,
    extensions.plan,
    references.calls_by_last_name,
    arguments.plan,
    saved_states.plan,
    checkpoints.plan,
    whole_objects.plan,
    device_tables.plan,
    specify_device.plan,
    device_slices.plan,
    type_strings.plan,
    amp.plan,
    data_loader.plan,
    tensor_types.plan,
    reductions.plan,
    gates.plan,
    streams.plan,
    distributed.plan,
    compile_backends.plan,
    libraries.plan,
    old_packages.plan,
    local_rank.plan,
    probes.plan,
    references.plan,
    methods.plan,
    bare_devices.plan,
    own_methods.plan,
    probes.objects,
    nvidia_tools.plan,
    environment.plan,
    error_text.plan,
    help_text.plan,
    strings.plan,
    foreign_devices.plan,
    cuda_paths.plan,
)


def plan(source: Source, found: Scan, rules: RuleSet, settings: Settings, project: ProjectFacts, flow: Flow | None = None) -> Work:
    """Let every codemod look at a file; nothing is rewritten yet. `flow`: what is known of it without its project."""
    names = Names(found, project.reexports)
    work = Work(source, found, names, rules, settings, project, kept_flow=flow)
    if settings.entry:
        from transplt.themes.distributed import codemod as many_cards

        many_cards.begin(work)
    for codemod in PLANS:
        codemod(work)
    if work.changes or work.notes:
        leave_npu_code(work)
    if settings.adds_code:
        _themes(work)
    if settings.style == "portable":
        portable.adapt(work)
    return work


def _themes(work: Work) -> None:
    """What was asked for on top of the migration; each part is imported when it is."""
    from transplt.edits import writing

    if work.settings.entry:
        from transplt.themes.distributed import codemod as many_cards

        many_cards.plan(work)
    if work.settings.amp != "off":
        from transplt.themes.amp import codemod as mixed_precision

        mixed_precision.plan(work)
    if work.settings.tune:
        from transplt.themes.tunings import codemod as tunings

        tunings.plan(work)
    writing.finish(work)
