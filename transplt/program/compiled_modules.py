"""Compiled modules in the files of a project: what brings one, what is called of it, and what can take its place.

What is known of their functions: rules/support/kernel_functions/.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from transplt.flow.cuda_builds import BUILDERS
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.npu_choices import mentions_npu
from transplt.program.program import File
from transplt.rules.kernel_functions import KernelFunction, compiled_modules
from transplt.syntax.modules import import_base, module_name
from transplt.syntax.names import IMPORT_CALLS, assigned_value
from transplt.syntax.nodes import argument_at, call_of, inner_nodes, keyword_of, last_name, string_of
from transplt.syntax.scan import parent

#: An operator that some compiled module has registered with torch.
_OPERATOR = re.compile(rb"\btorch\.ops\.(\w+)\.\w")
_OPERATORS = "torch.ops."
#: What gives the module whose name it is given; `load_ext` is mmcv's, with the names of its functions.
_IMPORTERS = (*IMPORT_CALLS, "load_ext")


@dataclass(slots=True)
class Compiled:
    """A compiled module as a file has it: what brings it, and where something of it is read.

    `uses` are the expressions that are one of its functions, with the function's name; `others` are reads of anything
    else of it. Nothing brings operators that torch has (`torch.ops.detectron2`), where some module is imported that
    registers them; `full` is the full name of an import. Functions that a statement takes have no `alias`. `held` are
    functions of ours that sources below the file's folder say a kernel of theirs to be.
    """

    file: File
    name: str
    brought: ast.stmt | None
    alias: ast.alias | None = None
    full: str = ""
    uses: list[tuple[ast.expr, str]] = field(default_factory=list)
    others: list[ast.expr] = field(default_factory=list)
    held: frozenset[str] = frozenset()

    def rows(self) -> list[KernelFunction | None]:
        """What says the function of each use, as it is called there; None where nothing does."""
        known = compiled_modules().get(self.name, {})
        return [self._row(known.get(name, ()), use) for use, name in self.uses]

    def _row(self, rows: tuple[KernelFunction, ...], use: ast.expr) -> KernelFunction | None:
        """The row that fits a use, with the variant that the sources say it to be."""
        helpers = [next((each.helper for each in row.variants if each.helper in self.held), row.helper) for row in rows]
        named = zip(rows, helpers, strict=True)
        known = [replace(row, helper=helper) for row, helper in named if helper]
        call = call_of(use)
        if call is None:
            return known[0] if len({row.helper for row in known}) == 1 else None
        given = _arguments_given(self.file, call)
        if given is None:
            return None
        count, names = given
        fit = (row for row in known if len(row.arguments) == count + len(names) and names <= {*row.arguments[count:]})
        return next(fit, None)

    @property
    def missing(self) -> list[str]:
        """The functions that nothing says, sorted."""
        return sorted({name for (_, name), row in zip(self.uses, self.rows(), strict=True) if row is None})

    def can_go(self, project: ProjectFacts) -> bool:
        """True where the file can do without the module."""
        known = bool(self.uses) and not self.others and not self.missing
        return known and not self._is_passed_on(project) and not self.registers(project)

    def registers(self, project: ProjectFacts) -> bool:
        """True for an import that may register operators which some file goes on to call."""
        kept = project.once(_kept_operators) if self.full else frozenset()
        return bool(kept.intersection(self.full.split(".")))

    def _is_passed_on(self, project: ProjectFacts) -> bool:
        """True where other files take its name from this one, or the file lists its names for them."""
        if not isinstance(self.brought, (ast.Import, ast.ImportFrom)) or self.brought not in self.file.scan.tree.body:
            return False
        taken = [self.alias] if self.alias is not None else self.brought.names
        names = [f"{module_name(self.file.path)}.{alias.asname or alias.name}" for alias in taken]
        names.append(f"{module_name(self.file.path)}.*")
        return any(name in project.used_names for name in names) or "__all__" in self.file.scan.root.bindings


def given_up(project: ProjectFacts) -> frozenset[str]:
    """The last names of the modules that no file of a project needs, because all that is called of them is said, and
    `module.function` of what is not called of the others any more. A file that supports NPUs by itself is not edited.
    """
    if project.portable:
        return frozenset()
    known, kept = {name.encode(): name for name in compiled_modules()}, set[str]()
    found = set[str]()
    for path, text in project.sources.items():
        file = project.files.read(path, text) if any(name in text for name in known) else None
        if file is None:
            continue
        for held in compiled_in(file, project):
            called = {f"{held.name}.{function}" for _, function in held.uses}
            goes = held.can_go(project) and not mentions_npu(text)
            (found if goes else kept).update({held.name}, called)
    return frozenset(found - kept)


def _kernels_below(project: ProjectFacts, folder: str) -> frozenset[str]:
    """Functions of ours that a source below a folder says a kernel of its to be, and none says not to be."""
    below = [said for path, said in project.kernels.items() if path.startswith(f"{folder}/" if folder else "")]
    named = {name for said in below for name in said}
    return frozenset(name for name in named if all(said.get(name, True) for said in below))


def _kept_operators(project: ProjectFacts) -> frozenset[str]:
    """The names under torch.ops of which a file of the project calls something that nothing says."""
    found = set[str]()
    for path, text in project.sources.items():
        called = {name.decode() for name in _OPERATOR.findall(text)}
        file = project.files.read(path, text) if called else None
        if file is not None:
            said = [held for held in compiled_in(file, project) if held.brought is None]
            found |= called - {held.name.rpartition(".")[2] for held in said if not held.missing and not held.others}
    return frozenset(found)


def _arguments_given(file: File, call: ast.Call) -> tuple[int, set[str]] | None:
    """How many arguments a call gives by place, and the names of the others; None where nobody can tell.

    `f(*given, **named)` gives what the function around it has put into a list and a dict for this call alone.
    """
    count, names = len(call.args), [keyword.arg for keyword in call.keywords if keyword.arg]
    for arg in [each for each in call.args if isinstance(each, ast.Starred)]:
        saved = isinstance(arg.value, ast.Attribute) and arg.value.attr == "saved_tensors"
        added = _tensors_saved(file, arg) if saved else _length(file, arg)
        if added is None:
            return None
        count += added - 1
    for keyword in [each for each in call.keywords if each.arg is None]:
        held = _display(file, keyword.value, keyword)
        texts = [string_of(key) or "" for key in held.keys] if isinstance(held, ast.Dict) else []
        if not texts or not all(texts):
            return None
        names += texts
    return (count, {*names}) if len({*names}) == len(names) else None


def _length(file: File, arg: ast.Starred) -> int | None:
    held = _display(file, arg.value, arg)
    if not isinstance(held, (ast.List, ast.Tuple)) or any(isinstance(each, ast.Starred) for each in held.elts):
        return None
    return len(held.elts)


def _tensors_saved(file: File, node: ast.AST) -> int | None:
    """How many tensors the class around a node saves for its backward, where one call says it."""
    while not isinstance(node, (ast.ClassDef, ast.Module)):
        node = parent(node)
    calls = list(inner_nodes(node, ast.Call))
    saves = [call for call in calls if last_name(call.func) == "save_for_backward"]
    given = _arguments_given(file, saves[0]) if len(saves) == 1 and isinstance(node, ast.ClassDef) else None
    return given[0] if given is not None and not given[1] else None


def _display(file: File, value: ast.expr, around: ast.AST) -> ast.expr | None:
    """What a name stands for that a function binds once and reads to pass on its elements alone."""
    if not isinstance(value, ast.Name):
        return value
    scope = file.scan.scope_of(value)
    bindings = scope.bindings.get(value.id, ())
    reads = [use for use in file.scan.names.get(value.id, ()) if isinstance(use.ctx, ast.Load)]
    own = [use for use in reads if file.scan.scope_of(use) is scope]
    if len(bindings) != 1 or any(type(parent(use)) is not type(around) for use in own):
        return None
    return assigned_value(bindings[0].node)


def compiled_in(file: File, project: ProjectFacts) -> list[Compiled]:
    """The compiled modules of the table that a file has, with what it reads of them."""
    operators = (name for name in compiled_modules() if name.startswith(_OPERATORS))
    brought: dict[str, Compiled] = {name: Compiled(file, name, None) for name in operators}
    functions: dict[str, Compiled] = {}
    for full, held in _imported(file, project):
        (brought if held.alias is not None else functions)[full] = held
    for name, full in file.names.references():
        _take(brought, functions, name, full)
    every = [held for held in brought.values() if held.brought is not None or held.uses or held.others]
    every += {id(held): held for held in functions.values()}.values()
    for held, variable in _built(file):
        for use in file.scan.names.get(variable, ()):
            match above := parent(use):
                case ast.Attribute(ctx=ast.Load()):
                    held.uses.append((above, above.attr))
                case _ if isinstance(use.ctx, ast.Load):
                    held.others.append(use)
        every.append(held)
    below = project.once(_kernels_below, posixpath.dirname(file.path)) if project.kernels else frozenset()
    for held in every:
        held.held = below
    return every


def _take(brought: dict[str, Compiled], functions: dict[str, Compiled], name: ast.Name, full: str) -> None:
    """Take down a read of a module or of a function of one."""
    node: ast.expr = name
    while True:
        above = parent(node)
        if full in functions:
            functions[full].uses.append((node, full.rpartition(".")[2]))
            return
        if full in brought:
            if isinstance(above, ast.Attribute) and isinstance(above.ctx, ast.Load):
                brought[full].uses.append((above, above.attr))
            else:
                brought[full].others.append(node)
            return
        if not isinstance(above, ast.Attribute):
            return
        node, full = above, f"{full}.{above.attr}"


def _imported(file: File, project: ProjectFacts) -> Iterator[tuple[str, Compiled]]:
    """The modules, and the functions that are taken from one, by their full names."""
    known = compiled_modules()
    for node in file.scan.imports:
        base = import_base(file.scan.path, node) if isinstance(node, ast.ImportFrom) else ""
        last = base.rpartition(".")[2]
        taken = [alias.name for alias in node.names]
        functions = None
        if last in known and not known[last].keys().isdisjoint(taken) and not _is_source(project, base):
            functions = Compiled(file, last, node, full=base)
        for alias in node.names:
            full = f"{base}.{alias.name}" if base else alias.name
            if functions is not None:
                yield full, functions
            elif full.rpartition(".")[2] in known and not _is_source(project, full):
                yield full, Compiled(file, full.rpartition(".")[2], node, alias, full)


def _is_source(project: ProjectFacts, module: str) -> bool:
    """True for a module that the project has in Python."""
    known = project.canonical(module)
    return any(name in project.modules for name in (known, module)) or known in project.defined


def _built(file: File) -> Iterator[tuple[Compiled, str]]:
    """Variables of the file that hold a module which is built or imported by a call, with the module."""
    known = compiled_modules()
    for name, bindings in file.scan.root.bindings.items():
        value = assigned_value(bindings[0].node) if len(bindings) == 1 else None
        if not isinstance(value, ast.Call) or (not value.args and keyword_of(value, "name") is None):
            continue
        if file.names.qualified(value.func) not in BUILDERS and last_name(value.func) not in _IMPORTERS:
            continue
        given = string_of(argument_at(value, 0, "name")) or ""
        module = next((each for each in (given.rpartition(".")[2], name) if each in known), "")
        statement = parent(bindings[0].node)
        if module and isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            yield Compiled(file, module, statement), name
