"""Writes scripts/facts/triton_libdevice.json, the names that triton-ascend has: `python scripts/triton_names.py CLONE`.

CLONE is a clone of github.com/triton-lang/triton-ascend with its release branches: functions of libdevice and of
tl.math, and the options that a launch takes. What is read is parsed, not imported.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import fact_store

#: The releases, with their branch and the folders of libdevice and of the back end there.
RELEASES = {
    "3.2.0": ("release/3.2.x", "ascend/language/ascend", "ascend/backend"),
    "3.2.1": ("release/3.2.1", "third_party/ascend/language/cann", "third_party/ascend/backend"),
    "main": ("main", "third_party/ascend/language/cann", "third_party/ascend/backend"),
}
MATH = "python/triton/language/math.py"
#: Where the release that changes an installed Triton puts names into its modules.
PATCH = "triton_patch/python/triton_patch/testing.py"
MODULES = {"3.2.0": "triton.language.extra.ascend.libdevice", "3.2.1": "triton.language.extra.cann.libdevice"}


def main(clone: Path) -> None:
    """Write the facts."""
    newest = RELEASES["main"][0]
    options = {name for branch, _, backend in RELEASES.values()
               for name in _fields(_read(clone, branch, f"{backend}/compiler.py"), "NPUOptions")}  # fmt: skip
    facts = {
        "about": "Names of triton-ascend, by release; written by scripts/triton_names.py. `functions`: of libdevice, "
        "those too that the package puts there; `math`: of tl.math in every release; `math of releases`: what one has "
        "beside these; `cuda`: of libdevice for CUDA; `options`: what a launch takes beside the parameters of its "
        "kernel, of any release.",
        "source": f"triton-lang/triton-ascend: {', '.join(branch for branch, *_ in RELEASES.values())}",
        "commits": {name: _commit(clone, branch) for name, (branch, *_) in RELEASES.items()},
        "modules": MODULES,
        "functions": {
            name: sorted(_functions(clone, branch, folder)) for name, (branch, folder, _) in RELEASES.items()
        },
        "math": sorted(_defined(_read(clone, newest, MATH))),
        "math of releases": {name: sorted(_math(clone, branch, folder)) for name, (branch, folder, _) in
                             RELEASES.items()},
        "cuda": sorted(_defined(_read(clone, newest, "third_party/nvidia/language/cuda/libdevice.py"))),
        "options": sorted(options),
    }
    fact_store.write("triton_libdevice", facts)


def _functions(clone: Path, branch: str, folder: str) -> set[str]:
    put_there = _put(_read(clone, branch, _putting(clone, branch, folder)), "libdevice")
    return put_there | set(_defined(_read(clone, branch, f"{folder}/libdevice.py")))


def _math(clone: Path, branch: str, folder: str) -> set[str]:
    """What a release has in tl.math that the newest does not define there: of its own module, or put there."""
    put_there = _put(_read(clone, branch, _putting(clone, branch, folder)), "math")
    defined = set(_defined(_read(clone, branch, MATH))) if _has(clone, branch, MATH) else set()
    return (put_there | defined) - set(_defined(_read(clone, RELEASES["main"][0], MATH)))


def _putting(clone: Path, branch: str, folder: str) -> str:
    """The file that puts functions into modules."""
    return PATCH if _has(clone, branch, PATCH) else f"{folder}/__init__.py"


def _has(clone: Path, branch: str, path: str) -> bool:
    return bool(_git(clone, "ls-tree", branch, path))


def _put(text: str, module: str) -> set[str]:
    """The public names that a text puts into a module: `math.tanh = ...`, `language.math.tanh = ...`."""
    return {
        target.attr
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and ast.unparse(target.value).rpartition(".")[2] == module
        and not target.attr.startswith("_")
    }


def _defined(text: str) -> Iterator[str]:
    """The public functions of a module, those under its conditions too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and _is_builtin(node):
            yield node.name


def _is_builtin(node: ast.FunctionDef) -> bool:
    return any("extern" in ast.unparse(each) or "builtin" in ast.unparse(each) or "jit" in ast.unparse(each)
               for each in node.decorator_list)  # fmt: skip


def _fields(text: str, name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield from (each.target.id for each in node.body
                        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name))  # fmt: skip


def _read(clone: Path, branch: str, path: str) -> str:
    return _git(clone, "show", f"{branch}:{path}")


def _commit(clone: Path, branch: str) -> str:
    return _git(clone, "rev-parse", "--short=9", branch).strip()


def _git(clone: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(clone), *arguments], check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
