"""CUDA words in identifiers: names of the project's own, of other libraries, keywords and attributes stay."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence, Set

from transplt.base.finding import Cause, TokenVerdict
from transplt.base.text.cuda_words import WORDS, Token, mentions_cuda
from transplt.base.text.source import Source
from transplt.base.text.text_search import names_in
from transplt.edits.work import Work
from transplt.flow.callees import FOREIGN
from transplt.flow.facts import ProjectFacts
from transplt.rules.packages import package_imported_as
from transplt.syntax.modules import import_base
from transplt.syntax.names import SELF
from transplt.syntax.scopes import Binding

#: A byte range and why the tokens in it have their verdict.
Range = tuple[int, int, Cause]


def ignored(reason: str, detail: str = "") -> Cause:
    """The cause of a token that stays."""
    return Cause(TokenVerdict.IGNORED, "", reason, detail)


OWN, KEYWORD, _ALIAS = ignored("own-name"), ignored("keyword"), ignored("alias")
#: Words that are whole identifiers as often as parts of one.
_WORDS = tuple(form for word in WORDS for form in (word.decode(), word.decode().upper(), word.decode().capitalize()))
_OTHER_WORD = re.compile("barracuda", re.I)
_NAME = re.compile(rb"[A-Za-z0-9_\x80-\xff]*")
_NAME_END = re.compile(rb"[A-Za-z0-9_\x80-\xff]*\Z")


# --- longer identifiers ----------------------------------------------------------------------------------------------


class LongerNames:
    """Why an identifier that merely holds a CUDA word (`use_cuda`, `CudaModule`, `is_nccl_ok`) stays.

    `reported` says whether an open finding lies in a byte range.
    """

    def __init__(self, work: Work, reported: Callable[[int, int], bool]) -> None:
        self.work = work
        self.reported = reported
        self.by_end: dict[int, ast.Attribute] = {}
        self.seen: set[str] = set()
        self.known: dict[str, Cause] = {}
        self.keywords: set[str] | None = None
        self.bound: dict[str, list[Binding]] | None = None

    def cause(self, token: Token) -> Cause | None:
        """Why the name that holds a token stays; None for a token that is no part of a longer name."""
        if token.where != "code":
            return None
        utf8 = self.work.source.utf8
        head = _NAME_END.search(utf8, max(0, token.start - 200), token.start)
        tail = _NAME.match(utf8, token.end)
        assert head is not None and tail is not None
        if not head.group() and not tail.group():
            return None
        name = utf8[head.start() : tail.end()].decode()
        if _OTHER_WORD.search(name):
            return ignored("other-word")
        dotted = utf8[head.start() - 1 : head.start()] == b"."
        if dotted and (node := self._attribute(name, tail.end())) is not None:
            return self._why_attribute(node)
        if name not in self.known:
            self.known[name] = self._why(name)
        return self.known[name]

    def _attribute(self, name: str, end: int) -> ast.Attribute | None:
        """The attribute whose name ends at a byte offset."""
        if name not in self.seen:
            self.seen.add(name)
            every = self.work.scan.attributes.get(name, ())
            self.by_end.update((self.work.source.extent(node)[1], node) for node in every)
        return self.by_end.get(end)

    def _why_attribute(self, node: ast.Attribute) -> Cause:
        full = self.work.names.qualified(node)
        if full is not None:
            return ignored("package-name", full.partition(".")[0]) if self._is_hidden(full) else self._imported(full)
        base = node.value
        if node.attr in self.work.project.flags or node.attr in self.work.once(_written):
            return ignored("own-data")
        if isinstance(base, ast.Name) and base.id in SELF and self._bindings().get(node.attr):
            return ignored("own-member")
        while isinstance(base, (ast.Call, ast.Attribute, ast.Subscript)):
            if self.reported(*self.work.source.extent(base)):
                return ignored("reported-beside")
            base = base.func if isinstance(base, ast.Call) else base.value
        return ignored("attribute")

    def _is_hidden(self, full: str) -> bool:
        """True for a member of a library that has the name of a folder of the project, which defines no such member."""
        project = self.work.project
        module, _, name = full.rpartition(".")
        root = full.partition(".")[0]
        if root not in FOREIGN and package_imported_as(root) is None:
            return False  # whose members may be made while the program runs
        if not project.known or project.canonical(module) not in project.modules:
            return False
        return project.canonical(full) not in project.modules and name not in project.once(_members)

    def _why(self, name: str) -> Cause:
        bindings = self._bindings().get(name)
        if bindings:
            imported = [binding.target for binding in bindings if binding.kind == "import"]
            if not imported:
                return OWN
            return self._imported(imported[0])
        scan = self.work.scan
        if self.keywords is None:
            self.keywords = {word.arg for call in scan.calls for word in call.keywords if word.arg}
        if name in self.keywords:
            return KEYWORD
        if name in scan.names:
            return ignored("star-name")
        for node in scan.imports:
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if any(name in part.split(".") for part in (module, *(alias.name for alias in node.names))):
                return self._imported(module or next(alias.name for alias in node.names if name in alias.name))
        return OWN

    def _imported(self, target: str) -> Cause:
        root = target.split(".")[0]
        if root == "torch":
            return ignored("torch-name")
        return OWN if target.startswith("pytest.mark.") else _of_package(self.work, target.rpartition(".")[0] or target)

    def _bindings(self) -> dict[str, list[Binding]]:
        if self.bound is None:
            self.bound = {}
            for scope in self.work.scan.scopes.values():
                for name, bindings in scope.bindings.items():
                    self.bound.setdefault(name, bindings)
        return self.bound


# --- identifiers that are the word itself ----------------------------------------------------------------------------


def own_names(work: Work, applied: Sequence[tuple[int, int, bytes]]) -> list[Range]:
    """Identifiers that are exactly `cuda`, `nccl`, ...: variables, parameters, keywords, other libraries' modules."""
    scan, source = work.scan, work.source
    held = names_in(source.utf8)
    words = [word for word in _WORDS if word.encode() in held]
    moved = _moved_now(work, applied)
    kept = [each for word in words for each in (*_names(work, word, moved), *_attributes(work, word))]
    for scope in scan.scopes.values():
        for word in words:
            for binding in scope.bindings.get(word, ()):
                at = _name_of_binding(source, binding, word)
                if at is not None:
                    kept.append((at, at + len(word), OWN))
                elif (alias := _moved_alias(work, binding, word)) is not None:
                    end = source.offset(alias.end_lineno or alias.lineno, alias.end_col_offset or 0)
                    kept.append((end - len(word), end, _ALIAS))
    kept += _imported_names(work)
    for call in scan.calls:
        for keyword in call.keywords:
            if keyword.arg in words:
                start = source.extent(keyword)[0]
                kept.append((start, start + len(keyword.arg), KEYWORD))
    return kept


def _names(work: Work, word: str, moved: Set[Binding]) -> Iterator[Range]:
    """Where a word is a name that stays."""
    known: dict[int, Cause | None] = {}  # by what binds a name, else by the scope in which it stands
    for node in work.scan.names.get(word, ()):
        scope = work.scan.scope_of(node)
        found = work.names.lookup(word, scope)
        key = id(scope) if found is None else id(found[1])
        if key not in known:
            known[key] = _why_name(work, node, moved)
        if (cause := known[key]) is not None:
            yield (*work.source.extent(node), cause)


def _attributes(work: Work, word: str) -> Iterator[Range]:
    """Where a word is an attribute that stays."""
    of_cudnn = word in work.project.reads.cudnn
    for node in work.scan.attributes.get(word, ()) if of_cudnn or not word.islower() else ():
        extent, root = work.source.extent(node), (work.names.qualified(node) or "").partition(".")[0]
        if not word.islower() and root in FOREIGN:
            yield (*extent, ignored("library-name", root))
        elif not word.islower() and _is_member(work, node):
            yield (*extent, ignored("own-member"))
        elif of_cudnn and root != "torch":
            yield (*extent, ignored("cudnn-setting"))


def _moved_now(work: Work, applied: Sequence[tuple[int, int, bytes]]) -> set[Binding]:
    """Imports that bring something new under the name that they had."""
    kept = [binding for binding, name in work.renamed.items() if name in _WORDS]
    starts = [start for start, _, _ in applied]
    found: set[Binding] = set()
    for binding in kept:
        assert isinstance(binding.node, ast.stmt)
        start, end = work.source.extent(binding.node)
        if bisect_right(starts, end) > bisect_left(starts, start):
            found.add(binding)
    return found


def _why_name(work: Work, node: ast.Name, moved: Set[Binding]) -> Cause | None:
    """Why a Name stays; None for one that torch gave its meaning, or that cannot be decided."""
    found = work.names.lookup(node.id, work.scan.scope_of(node))
    if found is None:
        passed_on = work.names.resolve(node.id, work.scan.scope_of(node))
        return _ALIAS if passed_on is not None else None
    roots = {binding.target.split(".")[0] for binding in found[1] if binding.kind == "import"}
    if "torch" in roots:
        held = any(binding in moved or _moved_alias(work, binding, node.id) for binding in found[1])
        return _ALIAS if held else None
    for target in sorted(binding.target for binding in found[1] if binding.kind == "import"):
        return _of_package(work, target.rpartition(".")[0] or target)
    if work.names.resolve(node.id, work.scan.scope_of(node)) is not None:
        return _ALIAS
    return OWN


def _moved_alias(work: Work, binding: Binding, name: str) -> ast.alias | None:
    """The `x as name` of an import of which x has moved, now or in an earlier run, while the name stays."""
    if not isinstance(binding.node, (ast.Import, ast.ImportFrom)):
        return None
    if not binding.target.startswith(("torch.npu", "torch_npu")):
        matched = work.rules.resolve(binding.target)
        if matched is None or not matched[0].renames:
            return None
    return next((alias for alias in binding.node.names if alias.asname == name), None)


def _is_member(work: Work, node: ast.Attribute) -> bool:
    """True for a member of a class that the project defines (`Device.CUDA`)."""
    full = work.names.qualified(node)
    if full is not None:
        return work.slots.own.project_name(full) is not None
    base = node.value
    if not isinstance(base, ast.Name):
        return False
    found = work.names.lookup(base.id, work.scan.scope_of(base))
    return found is not None and all(binding.kind in ("class", "param") for binding in found[1])


def _imported_names(work: Work) -> list[Range]:
    """The import statements that do not reach into torch, where they hold a CUDA word."""
    kept: list[Range] = []
    for node in work.scan.imports:
        extent = work.source.extent(node)
        if not mentions_cuda(work.source.utf8[slice(*extent)].lower()):
            continue
        if isinstance(node, ast.ImportFrom):
            base = import_base(work.scan.path, node)
            if base.split(".")[0] != "torch" or node.level:
                kept.append((*extent, _gives(work, base, bool(node.level))))
        else:
            for alias in node.names:
                if alias.name.split(".")[0] != "torch":
                    kept.append((*work.source.extent(alias), _gives(work, alias.name, False)))
    return kept


def _gives(work: Work, module: str, relative: bool) -> Cause:
    if _OTHER_WORD.search(module):
        return ignored("other-word")
    return OWN if relative else _of_package(work, module)


def _of_package(work: Work, module: str) -> Cause:
    """Whose name it is that a module other than torch gives. A folder of the project may be called like a library."""
    root = module.split(".")[0]
    known = root in FOREIGN and root not in work.project.packages
    if not known and work.slots.own.project_name(module) is not None:
        return OWN
    if ("." in module or not known) and work.project.once(ProjectFacts.below, module):
        return ignored("own-module")
    of_npus = not {"npu", "ascend"}.isdisjoint(root.split("_"))  # torch_npu, vllm_ascend
    return ignored("library-name" if known else "npu-package" if of_npus else "package-name", root)


def _name_of_binding(source: Source, binding: Binding, word: str) -> int | None:
    """Where the name stands in what binds it."""
    node = binding.node
    if isinstance(node, (ast.Name, ast.arg)):
        return source.extent(node)[0]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.ExceptHandler)):
        at = source.offset(node.lineno, node.col_offset)
        match = re.compile(rb"\b" + word.encode() + rb"\b").search(source.utf8, at)
        return match.start() if match else None
    return None


def _members(project: ProjectFacts) -> frozenset[str]:
    """The names of what the modules and classes of a project define."""
    return frozenset(each.rpartition(".")[2] for each in project.defined if "." in each)


def _written(work: Work) -> frozenset[str]:
    """The names of the attributes that a file writes."""
    attributes = work.scan.attributes.items()
    return frozenset(name for name, found in attributes if any(not isinstance(each.ctx, ast.Load) for each in found))
