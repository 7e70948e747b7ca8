"""Which files of a program run in one process: two scripts that share modules are no part of each other."""

from __future__ import annotations

from transplt.program.program import Program, imported_paths
from transplt.syntax.asks import is_main_guard


def files_alongside(program: Program) -> dict[str, frozenset[str]]:
    """By path: the paths of all files of the program but those that only other main files reach.

    A file that nobody imports and that has no main guard counts as reached by all: it may be loaded by its name.
    """
    files = {file.path: file for file in program.files}
    imports = {path: [each for each in imported_paths(file, program.project) if each in files]
               for path, file in files.items()}  # fmt: skip
    imported = {each for path, every in imports.items() for each in every if each != path}
    mains = {path for path, file in files.items() if any(is_main_guard(node) for node in file.scan.tree.body)}
    roots = {path: _closure(path, imports) for path in files if path in mains or path not in imported}
    found = {}
    for path in files:
        foreign = {root for root, reached in roots.items() if root in mains and path not in reached}
        around = [reached for root, reached in roots.items() if root not in foreign]
        found[path] = frozenset().union(*around, [path])
    return found


def _closure(start: str, imports: dict[str, list[str]]) -> frozenset[str]:
    found, stack = {start}, [start]
    while stack:
        for path in imports[stack.pop()]:
            if path not in found:
                found.add(path)
                stack.append(path)
    return frozenset(found)
