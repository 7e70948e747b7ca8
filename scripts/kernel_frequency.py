"""Which functions of compiled modules the Python files of projects call, by the number of projects.

    python scripts/kernel_frequency.py REPOSITORY...               print the table
    python scripts/kernel_frequency.py --within 5 REPOSITORY...    the folders of that depth are a project each

A repository is a Git directory, bare or not, of which HEAD is read. A compiled module is what a project builds
(`CUDAExtension("x", ...)`, `load(name="x")`, `make_cuda_ext(name="x")`), what is called `_C`, `_ext`, `..._cuda` or
`..._ext`, what mmcv loads by `load_ext`, and each that rules/support/kernels.json knows. A function counts once for a
project, however often it is called there.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Calls that build a module or give one that is built; the first argument or `name` is the module's name.
_BUILDS = frozenset("CUDAExtension CppExtension CUDA_EXT make_cuda_ext make_cuda_ext_ndim load load_inline".split())
_LOADS = frozenset("load load_inline load_ext get_plugin _init".split())
_ENDS = re.compile(r"(?:^_C|^_ext|_cuda|_ext|_cuda_lib|_CUDA|^_backend)$")
#: Modules of torch and of others that end so and hold no kernels of a project, and what modules have that is no kernel.
_OTHERS = frozenset("torch torch_npu numpy cupy numba".split())
_WORDS = r"CUDAExtension|CppExtension|make_cuda_ext|cpp_extension|_ext\b|_C\b|_cuda\b|_cuda_lib\b|load_ext|_CUDA\b"


def called_in(text: str, built: frozenset[str]) -> Iterator[tuple[str, str]]:
    """(module, function) for each call into a compiled module; nothing where Python 3 does not read the text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    modules: dict[str, str] = {}
    functions: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_compiled(alias.name, built):
                    modules[alias.asname or alias.name] = alias.name.rpartition(".")[2]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module or "").partition(".")[0] in _OTHERS:
                    continue
                if is_compiled(alias.name, built):
                    modules[alias.asname or alias.name] = alias.name
                elif node.module and is_compiled(node.module, built):
                    functions[alias.asname or alias.name] = node.module.rpartition(".")[2], alias.name
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name = ast.unparse(node.value.func).rpartition(".")[2]
            first = next((each.value for each in _names(node.value)), "")
            if name in _LOADS and first and ("cpp_extension" in text or "load_ext" in text):
                modules.update((ast.unparse(target), first) for target in node.targets)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
            yield modules[ast.unparse(node.value)], node.attr
        elif isinstance(node, ast.Name) and node.id in functions and isinstance(node.ctx, ast.Load):
            yield functions[node.id]


def is_compiled(module: str, built: frozenset[str]) -> bool:
    """True for the name of a compiled module, with what it lies in or without."""
    last = module.rpartition(".")[2]
    return module.partition(".")[0] not in _OTHERS and (last in built or bool(_ENDS.search(last)))


def built_in(text: str) -> Iterator[str]:
    """The last names of the compiled modules that a file builds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _BUILDS:
            last = (each.value.rpartition(".")[2] for each in _names(node))
            yield from (name for name in last if name.isidentifier())


def _names(call: ast.Call) -> Iterator[ast.Constant]:
    given = [*(each.value for each in call.keywords if each.arg in ("name", "module_name")), *call.args[:1]]
    yield from (each for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str))


def texts_of(repository: Path) -> Iterator[tuple[str, str]]:
    """Path and text of the Python files at HEAD that a compiled module may be named in: by how such modules are called,
    or by the names of those that are built in the repository.
    """
    texts = dict(_with(repository, _WORDS))
    names = {*_known(), *(name for text in texts.values() for name in built_in(text))}
    words = "|".join(sorted(re.escape(name) for name in names))
    texts.update(_with(repository, f"(import|from) .*\\b({words})\\b"))
    yield from texts.items()


def _with(repository: Path, words: str) -> Iterator[tuple[str, str]]:
    """Path and text of the Python files at HEAD in which a pattern of `git grep -E` is found."""
    found = subprocess.run(
        ["git", "-C", repository, "grep", "-lE", words, "HEAD", "--", "*.py"],
        capture_output=True, text=True, check=False,
    ).stdout.splitlines()  # fmt: skip
    for line in found:
        data = subprocess.run(["git", "-C", repository, "show", line], capture_output=True, check=False).stdout
        yield line.partition(":")[2], data.decode("utf-8", "replace")


def _known() -> frozenset[str]:
    rows = json.loads((ROOT / "rules" / "support" / "kernels.json").read_text(encoding="utf-8"))["kernels"]
    return frozenset(module for row in rows for module in row["modules"])


def table(repositories: Iterable[Path], within: int) -> dict[tuple[str, str], set[str]]:
    """The projects that call a function of a module, by module and function."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for repository in repositories:
        projects: dict[str, list[str]] = defaultdict(list)
        for path, text in texts_of(repository):
            parts = path.split("/")[:within]
            projects["/".join([str(repository), *parts])].append(text)
        for project, texts in projects.items():
            built = frozenset(name for text in texts for name in built_in(text)) | _known()
            for text in texts:
                for call in called_in(text, built):
                    found[call].add(project)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Which functions of compiled modules projects call, by projects.")
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--within", type=int, default=0, help="folders of this depth are a project each")
    parser.add_argument("--json", action="store_true", help="rows of projects, module and function")
    given = parser.parse_args(argv)
    found = table(given.repositories, given.within)
    rows = [(len(where), *call, sorted(where)) for call, where in found.items()]
    rows.sort(key=lambda row: (-row[0], row[1:]))
    if given.json:
        print(json.dumps(rows, indent=1))
        return 0
    for count, module, function, _ in rows:
        print(f"{count:4} {module}.{function}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
