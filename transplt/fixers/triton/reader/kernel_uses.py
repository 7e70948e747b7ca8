"""Where kernels are used: that all launches of one are known, and written out in its own file."""

from __future__ import annotations

import ast

from transplt.fixers.triton.reader.kernels import Kernel, kernels_in
from transplt.fixers.triton.reader.launches import Launch, launches_in
from transplt.flow.facts import ProjectFacts
from transplt.program.programs import programs_of
from transplt.syntax.files import File
from transplt.syntax.scan import parent


def every_launch(kernel: Kernel, project: ProjectFacts) -> list[Launch] | str:
    """All launches of a kernel, where they are `kernel[grid](...)` in its own file; else why they are not known, empty
    for a function that only kernels call.
    """
    file = kernel.file
    own = [launch for launch in launches_in(file, project) if launch.kernel.node is kernel.node]
    seen = {id(launch.call.func) for launch in own}
    kernels = kernels_in(file)
    called = False
    for name in file.scan.names.get(kernel.name, ()):
        bindings = file.names.bindings_of(name)
        if not isinstance(name.ctx, ast.Load) or all(each.node is not kernel.node for each in bindings):
            continue
        if len(bindings) != 1:
            return "there are several functions with its name"
        above = parent(name)
        if isinstance(above, ast.Call) and above.func is name and any(each.holds(above) for each in kernels):
            called = True
        elif not (isinstance(above, ast.Subscript) and above.value is name and id(above) in seen):
            return f"line {name.lineno} uses it without launching it"
    if called:
        return "other kernels call it too" if own else ""
    if not own:
        return "no launch of it was found"
    for path in sorted(project.sources):
        if path != kernel.file.path and kernel.name.encode() in project.sources[path]:
            other = programs_of(project).file(path)
            if other is not None and _takes(project, other, kernel):
                return f"{path} uses it too"
    return own


def _takes(project: ProjectFacts, file: File, kernel: Kernel) -> bool:
    def is_its(full: str) -> bool:
        module = project.canonical(full).rpartition(".")[0]
        return project.path_of(module) in ("", kernel.file.path)

    bindings = file.scan.root.bindings.get(kernel.name, [])
    scopes = [scope.bindings.get(kernel.name, []) for scope in file.scan.scopes.values()]
    imports = [each for every in (bindings, *scopes) for each in every if each.kind == "import"]
    if any(is_its(each.target) for each in imports):
        return True
    if kernel.name in file.scan.names and not bindings and file.scan.root.stars:
        return True
    for alias in (alias for node in file.scan.imports if isinstance(node, ast.ImportFrom) for alias in node.names):
        if alias.name == kernel.name and alias.asname:
            return True
    attributes = (file.names.qualified(each) for each in file.scan.attributes.get(kernel.name, ()))
    return any(full is not None and is_its(full) for full in attributes)
