"""What the files of a project say to each other for the analysis, and their sum."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from transplt.engine.analysis.extensions import facts_of, fallen
from transplt.flow.gates.graph import Graph, ancestors, canonical_name, unique_suffixes
from transplt.flow.support import SupportFacts, SupportProject
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.scan import Scan


def support_facts(scan: Scan, names: Names) -> SupportFacts:
    """The facts of a scanned file; `names` without what its project passes on."""
    module = module_name(scan.path)
    imports = {
        local: binding.target
        for local, bindings in scan.root.bindings.items()
        for binding in bindings[:1]
        if binding.kind == "import"
    }
    bases = []
    for node in scan.classes:
        found = tuple(full for base in node.bases if (full := _base(scan, names, module, base)))
        if found:
            bases.append((f"{module}.{node.name}".strip("."), found))
    return SupportFacts(
        module,
        tuple(sorted(imports.items())),
        tuple(scan.root.stars),
        tuple(bases),
        facts_of(scan, names),
    )


def _base(scan: Scan, names: Names, module: str, base: ast.expr) -> str:
    full = names.qualified(base)
    if full is None and isinstance(base, ast.Name) and base.id in scan.root.bindings:
        return f"{module}.{base.id}".strip(".")
    return full or ""


def join(facts: Iterable[SupportFacts], library: Mapping[str, str]) -> SupportProject:
    """The sum of the facts; `library` holds names of other projects that fall with an extension."""
    every = sorted(facts, key=lambda item: item.module)
    modules = frozenset(item.module for item in every)
    known = partial(canonical_name, modules=modules, suffixes=unique_suffixes(modules))
    graph = Graph(
        known,
        modules,
        defined=frozenset(name for item in every for name in item.extensions.defined),
        aliases={f"{item.module}.{local}".strip("."): target for item in every for local, target in item.imports},
        stars={item.module: item.stars for item in every},
        bases={name: tuple(map(known, found)) for item in every for name, found in item.bases},
    )
    exports = {name: graph.settled(name) for name in _passed_on(graph)}
    # Names that lead to a class of the project say so too: bases are looked up by any of their names.
    bases = {name: (target,) for name, target in exports.items() if target in graph.bases} | graph.bases
    project = SupportProject(exports, bases, fallen([item.extensions for item in every], graph, dict(library)))
    project.saved = tuple(_importable(project).items())
    return project


def _passed_on(graph: Graph) -> Iterator[str]:
    """The full names under which modules pass on what they import, by themselves or by a star; a module of a package
    is what its name says, whatever a star brings under that.
    """
    yield from graph.aliases
    imported: dict[str, list[str]] = {}
    for name in graph.aliases:
        module, _, last = name.rpartition(".")
        imported.setdefault(module, []).append(last)
    for module in graph.stars:
        for source in ancestors(module, lambda each: map(graph.canonical, graph.stars.get(each, ()))):
            names = (f"{module}.{last}" for last in imported.get(source, ()))
            yield from (name for name in names if name not in graph.modules)


def _importable(project: SupportProject) -> dict[str, str]:
    """Names of what falls for certain, with the extension, re-exports too: for projects that import this one."""
    certain = {name: why.extension for name, why in project.fallen.items() if why.certain}
    found = dict(certain)
    for name, target in project.exports.items():
        if target in certain:
            found[name] = certain[target]
    return dict(sorted(found.items()))
