"""What the files of a project say to each other for the analysis, and their sum."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from transplt.engine.analysis.extensions import facts_of, fallen
from transplt.flow.graph import canonical_name, unique_suffixes
from transplt.flow.support import ExtensionFacts, SupportFacts, SupportProject
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.scan import Scan

#: A file without any of these has nothing to do with torch, nor with the packages on top of it.
_WORDS = (b"torch", b"transformers", b"accelerate", b"diffusers", b"deepspeed", b"lightning", b"mmengine", b"mmcv")


def concerns(data: bytes, path: str) -> bool:
    """True for a file that the analysis has to read: it names torch, or passes on what others define."""
    return any(word in data for word in _WORDS) or (path.endswith("__init__.py") and b"import" in data)


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
        module, tuple(sorted(imports.items())), tuple(sorted(set(scan.root.stars))), tuple(bases), facts_of(scan, names)
    )


def _base(scan: Scan, names: Names, module: str, base: ast.expr) -> str:
    full = names.qualified(base)
    if full is None and isinstance(base, ast.Name) and base.id in scan.root.bindings:
        return f"{module}.{base.id}".strip(".")
    return full or ""


def join(facts: Iterable[SupportFacts], library: Mapping[str, str]) -> SupportProject:
    """The sum of the facts; `library` holds names of other projects that fall with an extension."""
    every = sorted(facts, key=lambda item: item.module)
    modules = {item.module for item in every}
    known = partial(canonical_name, modules=modules, suffixes=unique_suffixes(modules))
    exports: dict[str, str] = {}
    bases: dict[str, tuple[str, ...]] = {}
    for item in every:
        for local, target in item.imports:
            exports[f"{item.module}.{local}".strip(".")] = known(target)
        bases.update({name: tuple(map(known, found)) for name, found in item.bases})
    of_module: dict[str, dict[str, None]] = {}  # what each module passes on
    for name in exports:
        module, _, last = name.rpartition(".")
        of_module.setdefault(module, {})[last] = None
    for item in every:
        for star in item.stars:
            source = known(star)
            for last in [*of_module.get(source, ())]:
                if (name := f"{source}.{last}") in exports:
                    exports.setdefault(f"{item.module}.{last}", exports[name])
                    of_module.setdefault(item.module, {})[last] = None
    settled = {name: _follow(name, exports) for name in exports}
    extensions = [_renamed(item.extensions, known) for item in every]
    found = fallen(extensions, modules, settled, dict(library))
    # Names that lead to a class of the project say so too: bases are looked up by any of their names.
    for name, target in settled.items():
        if target in bases:
            bases.setdefault(name, (target,))
    project = SupportProject(settled, bases, found)
    project.saved = tuple(_importable(project).items())
    return project


def _renamed(facts: ExtensionFacts, known: Callable[[str], str]) -> ExtensionFacts:
    edges = tuple((who, known(whom)) for who, whom in facts.edges)
    maybe = tuple((who, known(whom)) for who, whom in facts.maybe)
    return replace(facts, edges=edges, maybe=maybe)


def _follow(name: str, exports: dict[str, str]) -> str:
    """Where a chain of imports ends."""
    for _ in range(8):
        target = exports.get(name)
        if target is None or target == name:
            break
        name = target
    return name


def _importable(project: SupportProject) -> dict[str, str]:
    """Names of what falls for certain, with the extension, re-exports too: for projects that import this one."""
    certain = {name: why.extension for name, why in project.fallen.items() if why.certain}
    found = dict(certain)
    for name, target in project.exports.items():
        if target in certain:
            found[name] = certain[target]
    return dict(sorted(found.items()))
