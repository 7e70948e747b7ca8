"""What paths alone say of files; full names of modules, from paths and from relative imports."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Container, Iterable

#: Folders and files that a training script does not run, whatever stands in them.
_NAMED = re.compile(
    r"(^|/)(tests?|testing|unittests?|docs?|benchmark(?:s|ing)?|old|legacy|deprecated|archived?|backup|attic"
    r"|\.[\w-]+)/"
    r"|(^|/)(test_[^/]*\.py|[^/]*_test\.py|conftest\.py|\.gitlab-ci\.yml|[^/]*\.(?:ps1|bat|cmd))$"
)
#: Files for people: what is to do in them is tidying, wherever they lie.
PROSE = (".md", ".rst")
#: Files of commands that run elsewhere than where the project is installed.
_JOB = re.compile(
    r"(?:^|/)(?:[^/]*docker[^/]*(?<!\.py)|[^/]*\.(?:slurm|sbatch|pbs|lsf|def)|cog\.ya?ml|(?:docker-)?compose[^/]*\.ya?ml)$"
    r"|^\.(?:github|devcontainer|circleci)/|^[.]?(?:appveyor|travis|gitlab-ci|azure-pipelines)\.ya?ml$"
)


def module_name(path: str) -> str:
    """Dotted name of the module at a path relative to the project (`a/b/__init__.py` is `a.b`; so is its stub).

    A script without a suffix and a notebook have a name that no import can say (`a.<demo_ipynb>`).
    """
    stem, dot, suffix = path.rpartition(".")
    if f"{dot}{suffix}" not in (".py", ".pyi", ".pyw"):
        folder, slash, name = path.rpartition("/")
        stem = f"{folder}{slash}<{name.replace('.', '_')}>"
    dotted = stem.replace("/", ".")
    if dotted.endswith(".__init__"):
        return dotted[: -len(".__init__")]
    return "" if dotted == "__init__" else dotted


def import_base(path: str, node: ast.ImportFrom) -> str:
    """Full name of the module that a `from` import names, relative ones resolved against the file's path."""
    return absolute(path, node.level, node.module or "")


def modules_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that an import names, as they are written, without the dots of a relative one."""
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]


def absolute(path: str, level: int, module: str) -> str:
    """Full name of a module that a file at a path names with `level` dots before it."""
    if not level:
        return module
    package = module_name(path).split(".") if path.endswith("__init__.py") else module_name(path).split(".")[:-1]
    kept = package[: len(package) - (level - 1)] if level > 1 else package
    return ".".join([*kept, *([module] if module else [])])


def outermost_package(path: str, files: Container[str]) -> str:
    """The folder of the outermost package that holds a file, among all `files`; empty where its folder is none."""
    return next(iter(packages_of(path, files)), "")


def packages_of(path: str, files: Container[str]) -> list[str]:
    """The folders of the packages that hold a file, the outermost first."""
    found: list[str] = []
    folder = posixpath.dirname(path)
    while folder and f"{folder}/__init__.py" in files:
        found.insert(0, folder)
        folder = posixpath.dirname(folder)
    return found


def imported_names(path: str, nodes: Iterable[ast.Import | ast.ImportFrom]) -> tuple[str, ...]:
    """Full names that import statements of a file name, by place: modules, and what is taken from them
    (`m.*` for all of it)."""
    found: dict[str, None] = {}
    for node in sorted(nodes, key=lambda item: (item.lineno, item.col_offset)):
        if isinstance(node, ast.Import):
            found.update((alias.name, None) for alias in node.names)
            continue
        base = import_base(path, node)
        found[base] = None
        found.update((f"{base}.{each.name}" if base else each.name, None) for each in node.names)
    return tuple(found)


def of_a_job(path: str) -> bool:
    """True for what a container, a scheduler or a service reads, and nobody who starts the program itself."""
    return _JOB.search(path.lower()) is not None


def named_aside(path: str) -> bool:
    """True for a file that by its name only tests, benchmarks, documentation or a CI service run, or old code."""
    return _NAMED.search(path) is not None and not path.endswith(PROSE)
