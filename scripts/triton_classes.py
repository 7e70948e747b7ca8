"""Compares what people changed in Triton kernels for NPUs with what transplt says and writes of the same kernels.

    python scripts/triton_classes.py CLONES           the half that findings and edits are made with
    python scripts/triton_classes.py CLONES --aside   the half that is looked at once, when they are done
    python scripts/triton_classes.py CLONES --tune triton

CLONES holds clones of Liger-Kernel and flash-linear-attention (see triton_pairs.py). A row is a class, a column a pair
of files. `d` transplt edits it, `f` it is found, `-` it is left though people changed it, `.` people changed nothing
of it, and in capitals where transplt speaks of what people kept. People changed a class where its count is another one
in their file.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import triton_pairs  # noqa: E402

from transplt.base.finding import Finding  # noqa: E402
from transplt.base.settings import Settings  # noqa: E402
from transplt.engine.engine import index_source, migrate_source  # noqa: E402
from transplt.fixers.tunings.table import parse_tunings  # noqa: E402
from transplt.flow.facts import ProjectFacts  # noqa: E402

Count = Callable[[ast.Module], int]
_CORES = ("core_count", "num_core", "num_vectorcore", "num_aicore", "multiprocessor")
_BUFFER = ("ub_", "tiling", "sub_block", "block_sub", "block_size_sub", "row_tile")


def _calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in names:
            yield node


def _keywords(tree: ast.AST, *names: str) -> int:
    return sum(
        each.arg in names for node in ast.walk(tree) if isinstance(node, ast.Call) for each in node.keywords
    ) + sum(isinstance(node, ast.Constant) and node.value in names for node in ast.walk(tree))


def _words(tree: ast.AST, *parts: str) -> int:
    """Names of variables, attributes, functions and imports that hold one of some words."""
    names = [getattr(node, kind, None) for node in ast.walk(tree) for kind in ("id", "attr", "name", "module")]
    return sum(isinstance(name, str) and any(part in name.lower() for part in parts) for name in names)


def _largest(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.Constant) and node.value == 65536 for node in ast.walk(tree))


def _copies(tree: ast.AST) -> int:
    """`tile + 0.0`."""
    added = (node.right for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add))
    return sum(isinstance(each, ast.Constant) and each.value == 0 and type(each.value) is float for each in added)


def _precision(tree: ast.AST) -> int:
    return sum(
        each.arg in ("allow_tf32", "input_precision", "max_num_imprecise_acc", "out_dtype")
        for node in _calls(tree, "dot", "dot_scaled")
        for each in node.keywords
    )


def _int64(tree: ast.AST) -> int:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "int64")
    return sum(isinstance(node.value, ast.Name) and node.value.id == "tl" for node in found)


def _dimensions(tree: ast.AST) -> int:
    """Programs asked for their place in a second or third dimension."""
    asked = (call.args[0] if call.args else call.keywords[0].value for call in _calls(tree, "program_id"))
    return sum(isinstance(each, ast.Constant) and each.value in (1, 2) for each in asked)


@dataclass(frozen=True, slots=True)
class Class:
    """A class of changes: how it is counted in a file, and the codes under which transplt speaks of it. `less`: people
    take it out; else they bring it in."""

    name: str
    count: Count
    codes: tuple[str, ...]
    less: bool = True


def _bindings(*parts: str) -> Count:
    return lambda tree: _words(tree, *parts)


def _given(*names: str) -> Count:
    return lambda tree: _keywords(tree, *names)


def _called(*names: str) -> Count:
    return lambda tree: sum(1 for _ in _calls(tree, *names))


CLASSES = (
    Class("num_warps, num_stages", _given("num_warps", "num_stages"), ("NPU561", "NPU567")),
    Class("loop over the cores", _called("num_programs"), ("NPU560", "NPU568", "NPU774"), False),
    Class("count of cores", _bindings(*_CORES), ("NPU560", "NPU568", "NPU774"), False),
    Class("grids of more dimensions", _dimensions, ("NPU560", "NPU568", "NPU774")),
    Class("blocks bound by the buffer", _bindings(*_BUFFER), ("NPU574", "NPU775"), False),
    Class("int64", _int64, ("NPU576", "NPU776")),
    Class("libdevice", _bindings("libdevice"), ("NPU563",)),
    Class("autotune", _bindings("autotune"), ("NPU561", "NPU567")),
    Class("hints for a cache", _given("cache_modifier", "eviction_policy", "volatile"), ("NPU561",)),
    Class("a bound of 65536", _largest, ("NPU560", "NPU574")),
    Class("static_range", _called("static_range"), ("NPU566",)),
    Class("block pointers", _called("make_block_ptr", "make_tensor_descriptor", "advance"), ("NPU565",)),
    Class("precision of products", _precision, ("NPU572",)),
    Class("copies of left operands", _copies, ("NPU578",), False),
    Class("care_padding", _given("care_padding"), ("NPU778",), False),
)


def show(clone: Path, path: str) -> str:
    """A file of a clone."""
    return subprocess.run(
        ["git", "-C", str(clone), "show", f"HEAD:{path}"], check=True, capture_output=True, text=True
    ).stdout


def findings_of(clone: Path, paths: list[str], tune: str) -> dict[str, tuple[Finding, ...]]:
    """The findings on some files of a clone, read as a project of their own: the clone has a port to NPUs already.

    What one of the files chooses for NPUs speaks for that file alone.
    """
    settings = Settings(tune=parse_tunings(tune, Settings().torch_version) if tune else (), unsafe_fixes=bool(tune))
    sources = {path: show(clone, path).encode() for path in paths}
    project = ProjectFacts.join([index_source(data, name, settings) for name, data in sources.items()])
    project.portable = False
    return {path: tuple(migrate_source(sources[path], path, settings, project).findings) for path in paths}


def mark(each: Class, before: int, after: int, found: tuple[Finding, ...]) -> str:
    """One place of the table."""
    spoken = [finding for finding in found if finding.code in each.codes]
    changed = after < before if each.less else after > before
    if not changed:
        kept = before if each.less else 0
        return "F" if spoken and (kept or not each.less) else "."
    if any(finding.applied or finding.edit is not None for finding in spoken):
        return "d"
    return "f" if spoken else "-"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--aside", action="store_true")
    parser.add_argument("--tune", default="")
    given = parser.parse_args()
    columns: list[tuple[str, list[str]]] = []
    for name in (triton_pairs.LIGER, triton_pairs.FLA):
        clone = triton_pairs.clone(given.clones, name)
        pairs = triton_pairs.halves(given.clones, name)[given.aside]
        found = findings_of(clone, [gpu for gpu, _ in pairs], given.tune)
        for gpu, npu in pairs:
            before, after = ast.parse(show(clone, gpu)), ast.parse(show(clone, npu))
            column = [mark(each, each.count(before), each.count(after), found[gpu]) for each in CLASSES]
            columns.append((gpu, column))
    for index, (path, _) in enumerate(columns, 1):
        print(f"{index:3d} {path}")
    width = max(len(each.name) for each in CLASSES)
    print(" " * width, *(f"{index:>2d}" for index in range(1, len(columns) + 1)), " edited found left spoken of")
    for row, each in enumerate(CLASSES):
        marks = [column[row] for _, column in columns]
        counts = "  ".join(f"{marks.count(kind):4d}" for kind in "df-F")
        print(f"{each.name:{width}s}", *(f" {kind}" for kind in marks), counts)


if __name__ == "__main__":
    main()
