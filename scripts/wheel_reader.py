"""What a wheel says of itself: modules, names, signatures, operators; read from the archive, never imported or run."""

from __future__ import annotations

import ast
import json
import re
import warnings
import zipfile
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

#: Schemas among the strings of a shared library: `npu_rms_norm(Tensor self, ...) -> (Tensor, Tensor)`.
_SCHEMA = re.compile(rb"(?<![\x20-\x7e])([A-Za-z_]\w*(?:\.\w+)?\([\x20-\x7e]*\) -> [\x20-\x7e]+)(?=\x00)")
_ENVIRONMENT = re.compile(r"""(?:environ(?:\.get\(|\[)|getenv\()\s*["']([A-Z][A-Z0-9_]+)["']""")
_OPERATOR = re.compile(r"^- (?:func: )?(\w+(?:\.\w+)?)(?:\(|$)|^  func: (\w+(?:\.\w+)?)(?:\(|$)", re.MULTILINE)
_LIBRARY = "torch_npu/lib/libtorch_npu.so"
_OPERATORS = "torch_npu/csrc/aten/npu_native_functions_by_codegen.yaml"
_EXPOSED = "torch_npu/utils/exposed_api.py"
_TRANSFER = "torch_npu/contrib/transfer_to_npu.py"
_TRANSFERRED = "torch_npu/contrib/apis_config.json"


@dataclass(frozen=True, slots=True)
class Module:
    """The names of one module: its `__all__` (None without one), what it binds, parameters of functions and classes."""

    public: tuple[str, ...] | None
    bound: tuple[str, ...]
    signatures: dict[str, str] = field(hash=False)


class Wheel:
    """A wheel on the disk. Raises OSError or zipfile.BadZipFile when it cannot be read."""

    def __init__(self, path: Path) -> None:
        self.archive = zipfile.ZipFile(path)
        self.package, self.version = path.name.split("-")[:2]
        self._trees: dict[str, ast.Module] = {}

    @cached_property
    def sources(self) -> dict[str, str]:
        """Dotted names of the modules of the package -> the members that hold them."""
        found = {}
        for name in sorted(self.archive.namelist()):
            if name.startswith(f"{self.package}/") and name.endswith(".py"):
                parts = name[:-3].split("/")
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = name
        return found

    def text(self, member: str) -> str:
        """A member as text. KeyError where the wheel has none of that name."""
        return self.archive.read(member).decode("utf-8", "replace")

    def tree(self, module: str) -> ast.Module:
        """The parsed source of a module."""
        if module not in self._trees:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._trees[module] = ast.parse(self.text(self.sources[module]))
        return self._trees[module]

    def requires(self, package: str) -> str:
        """What the wheel says of the version of another package that it needs, such as `==2.13.0.*`; else empty."""
        member = next(name for name in self.archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = re.search(rf"^Requires-Dist: {package}\s*([=<>!~][^;\n]*)", self.text(member), re.MULTILINE)
        return found[1].strip() if found else ""

    @cached_property
    def library(self) -> bytes:
        """libtorch_npu.so."""
        return self.archive.read(_LIBRARY)

    @cached_property
    def modules_text(self) -> str:
        """All modules of the package in one text."""
        return "\n".join(map(self.text, self.sources.values()))

    def schemas(self) -> dict[str, list[str]]:
        """Operators that the wheel brings -> their schemas, sorted."""
        found: dict[str, list[str]] = {}
        for text in sorted({match[1].decode() for match in _SCHEMA.finditer(self.library)}):
            found.setdefault(text.partition("(")[0].partition(".")[0], []).append(text)
        return found

    def operators(self) -> dict[str, set[str]]:
        """Section (supported, symint, quant, custom) -> operators with an NPU kernel, with their overloads."""
        parts = re.split(r"^(\w+):.*$", self.text(_OPERATORS), flags=re.MULTILINE)
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        return {name: {a or b for a, b in _OPERATOR.findall(text)} for name, text in sections.items()}

    def names_variable(self, name: str) -> bool:
        """True when the library or a module contains an environment variable's name."""
        return name.encode() in self.library or name in self.modules_text

    def variables(self) -> set[str]:
        """Environment variables that the modules read."""
        return set(_ENVIRONMENT.findall(self.modules_text))

    def public_functions(self) -> set[str]:
        """The operators that torch_npu lists as its public functions."""
        return set(self._lists(_EXPOSED).get("public_npu_functions", ()))

    def transferred(self) -> dict[str, set[str]]:
        """What `transfer_to_npu` replaces, by the list that it stands in."""
        lists = {name: set(words) for name, words in self._lists(_TRANSFER).items() if words}
        listed = json.loads(self.text(_TRANSFERRED))
        return lists | {package: set(row["apis"]) for package, row in listed.items()}

    def _lists(self, member: str) -> dict[str, list[str]]:
        found = {}
        for node in ast.parse(self.text(member)).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.List, ast.Set, ast.Tuple)):
                words = [str(each.value) for each in node.value.elts if isinstance(each, ast.Constant)]
                found.update({target.id: words for target in node.targets if isinstance(target, ast.Name)})
        return found


def module_names(tree: ast.Module) -> Module:
    """The names that stand at the top of a module; those that begin with `_` only as classes with parameters."""
    public: list[str] | None = None
    bound: set[str] = set()
    signatures: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            bound.add(node.name)
            if not node.name.startswith("_"):
                signatures[node.name] = ast.unparse(node.args)
        elif isinstance(node, ast.ClassDef):
            bound.add(node.name)
            made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
            if made:
                signatures[node.name] = ast.unparse(made[0].args)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update((alias.asname or alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [target.id for target in targets if isinstance(target, ast.Name)]
            bound.update(named)
            if "__all__" in named:
                words = [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
                public = [*((public or ()) if isinstance(node, ast.AugAssign) else ()), *map(str, words)]
    kept = tuple(sorted(name for name in bound if not name.startswith("_")))
    return Module(None if public is None else tuple(public), kept, signatures)
