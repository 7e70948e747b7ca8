"""Packages bound to CUDA: one finding a package and file, at the import that matters most.

An import that the program can do without (in a `try` that catches ImportError, or behind a question such as
`if is_xformers_available():`) is a remark: nothing has to be done for the program to run. So is one on CUDA's side of a
choice. Where something raises because the import failed, the finding stands there. A class of a library that is there
(transformers.BitsAndBytesConfig) stops nothing where it is imported: the findings stand where it is used, and a class
that annotations alone name is a remark.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import takewhile

from transplt.base.finding import Effort, Level
from transplt.base.grouped import grouped
from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.unused_imports import is_listed
from transplt.edits.work import Work
from transplt.flow.gates.code_facts import KERNEL_DECORATORS
from transplt.flow.gates.optional_imports import can_fail
from transplt.program.program import enclosing_function
from transplt.rules.packages import is_bound, package_imported_as, runs_unchanged
from transplt.rules.rule import Rule
from transplt.syntax.annotations import is_annotation, is_asked_for
from transplt.syntax.conditions import leaves
from transplt.syntax.nodes import (
    class_of_method,
    following,
    is_none,
    last_name,
    of_kind,
    place_in_block,
    plain_name,
    string_of,
)
from transplt.syntax.scan import FUNCTIONS, chain, parent

#: A file that takes so many names of a package is rewritten rather than changed.
_MANY = 8
#: An import, the rule that reports it, and the full name that it brings.
_Import = tuple[ast.alias | ast.stmt, Rule, str]

fixer = Fixer(__name__, code="NPU501", rank=120)

#: The message of an import for which `can_fail` holds.
GOES_ON = "the program also runs without it"

#: The message of an import whose name another package for Ascend gives below.
REPLACED = "the program replaces it with one from an Ascend package"

#: The message of an import that stands on CUDA's side of a choice.
NOT_ON_NPU = "on an NPU the program does not come here"

#: The message of a class that nothing makes.
NEVER_MADE = "nothing creates one here"

_ASCEND = re.compile(r"(?:^|[._])(?:ascend|npu|hccl|pyhccl)(?:[._]|$)", re.I)
_NPU = re.compile(r"(?:^|_)npu(?:_|$)", re.I)


@fixer.on(ast.Module)
def packages_of_the_file(work: Work, tree: ast.Module) -> Finds:
    """Turn the imports that rules report into findings, one for each rule."""
    groups: dict[str, list[_Import]] = {}
    for node, rule, api in sorted(work.packages, key=lambda item: (item[0].lineno, item[0].col_offset)):
        if _is_own(work, node, api):
            yield work.keep(node, "own-module")
        elif not runs_unchanged(api, rule.old):
            groups.setdefault(rule.old, []).append((node, rule, api))
    for members in groups.values():
        needed = [
            member
            for member in members
            if (not can_fail(member[0]) or _makes_kernels(work, member[1])) and not _elsewhere(member[0])
        ]
        needed.sort(key=lambda member: enclosing_function(member[0]) is not None)
        yield from _of_one_rule(work, needed, members)


def _of_one_rule(work: Work, needed: list[_Import], members: list[_Import]) -> Finds:
    """What is said of the imports that one rule reports, some of which the program needs."""
    node, rule, api = (needed or members)[0]
    if rule.effort is Effort.MEDIUM and len({each for _, _, each in members}) >= _MANY:
        rule = replace(rule, effort=Effort.HIGH)  # the program is built on it
    level = rule.level if rule.level is not Level.SAFE else Level.MANUAL
    last = rule.old.rpartition(".")[2]
    # a class that the rule names, from a library that can be imported without CUDA
    is_class = isinstance(node, ast.alias) and node.name == last and last[:1].isupper() and not is_bound(rule.old)
    made = _made(work, node) if needed and is_class else None
    noted = [node]
    if made:
        for each in made:
            used = "" if enclosing_function(each) is None else "later" if is_in_a_branch(each) else "first step"
            yield _note(work, each, rule, api, level, rule.message, used)
        yield work.keep(node, "reported-package")
    elif needed and made is None:
        apart = grouped((enclosing_function(each[0]), each) for each in needed)
        for several in [needed] if None in apart else apart.values():
            node, _, api = several[0]
            late, blocks = _late(several)
            yield _note(work, node, rule, api, level, f"{rule.message}{late}", blocks)
            noted.append(node)
    elif not needed and not _elsewhere(node) and _is_there_on_npus(rule):
        message = f"{rule.message}; imported where its package is installed"
        yield _note(work, node, rule, rule.old, level, message, "later")
    elif not needed and not _elsewhere(node) and (missed := _missed(work, node)) is not None:
        yield _note(work, missed, rule, api, level, f"{rule.message}; this raises without it", "later")
        yield work.keep(node, "reported-package")
    else:
        goes_on = NEVER_MADE if needed else _elsewhere(node) or GOES_ON
        yield _note(work, node, rule, api, Level.INFO, f"{rule.message}; {goes_on}")
    yield from (work.keep(other, "reported-package") for other, _, _ in members if other not in noted)


def _missed(work: Work, node: ast.alias | ast.stmt) -> ast.stmt | None:
    """What raises because an import failed that the program tries: it asks for a name that the handler sets to None."""
    tried = next(of_kind(ast.Try, chain(node)), None)
    set_to_none = (each for handler in (tried.handlers if tried else ()) for each in of_kind(ast.Assign, handler.body))
    names = {plain_name(target) for each in set_to_none if is_none(each.value) for target in each.targets} - {""}
    for use in (each for name in sorted(names) for each in work.scan.names.get(name, ())):
        test = parent(use)
        match test, parent(test):
            case ast.Compare(ops=[asks], comparators=[ast.Constant(value=None)]), ast.If(test=asked) as question:
                lost = {ast.Is: question.body, ast.IsNot: question.orelse}.get(type(asks), [])
                if asked is test and (raised := next(of_kind(ast.Raise, lost), None)) is not None:
                    return raised
    return None


def _is_there_on_npus(rule: Rule) -> bool:
    """True for a module that stops where its package is there, as it is on NPUs with a plugin."""
    package, _, module = rule.old.partition(".")
    row = package_imported_as(package) if module else None
    return row is not None and row["status"] == "plugin"


def _made(work: Work, node: ast.alias | ast.stmt) -> list[ast.Name] | None:
    """Where an imported class is used, by place, without annotations and questions for its kind. None where that is
    not known: others may take it from here, or more than this import binds its name.
    """
    assert isinstance(node, ast.alias)
    name = node.asname or node.name
    bindings = [each for scope in work.scan.scopes.values() for each in scope.bindings.get(name, ())]
    if len(bindings) != 1:
        return None
    found = [each for each in work.scan.names.get(name, ()) if isinstance(each.ctx, ast.Load)]
    used = [each for each in found if not is_annotation(each) and not is_asked_for(each)]
    exported = is_listed(work, name) or work.project.aside.taken.get(work.scan.path, frozenset()) & {"*", name}
    unknown = exported or not (found or work.project.known)
    if not used and unknown and not _is_named_in_an_annotation(work, name):
        return None
    return sorted(used, key=lambda each: (each.lineno, each.col_offset))


def _is_named_in_an_annotation(work: Work, name: str) -> bool:
    """True for a class that annotations in quotes name."""
    parameters = (each for function in work.scan.functions for each in ast.walk(function.args))
    quoted = (string_of(each.annotation) or "" for each in of_kind(ast.arg, parameters))
    return any(re.search(rf"\b{re.escape(name)}\b", text) for text in quoted)


def _late(needed: list[tuple[ast.alias | ast.stmt, Rule, str]]) -> tuple[str, str]:
    """The function that imports a package, which no module imports as it is loaded, and what that blocks; else empty.
    """
    first = enclosing_function(needed[0][0])
    if first is None:
        return "", ""
    owner = class_of_method(first)
    name = f"{owner.name}.{first.name}" if owner is not None else first.name
    if all(is_in_a_branch(node) for node, _, _ in needed):
        return f"; imported when a branch of {name}() runs", "later"
    return f"; imported when {name}() runs", "first step"


def is_in_a_branch(node: ast.AST) -> bool:
    """True for what a branch of its function holds."""
    inside = takewhile(lambda each: not isinstance(each, FUNCTIONS), chain(node))
    return any(isinstance(each, ast.If) for each in inside)


def _is_own(work: Work, node: ast.alias | ast.stmt, api: str) -> bool:
    """True when the project builds the package, or has it where the file imports it."""
    above = parent(node)
    path = (above.module or "") if isinstance(above, ast.ImportFrom) else api
    project = work.project
    if api in project.modules or project.reach.builds(api):
        return True
    return project.imports_own(path, work.scan.path, work.source.utf8)


def _makes_kernels(work: Work, rule: Rule) -> bool:
    """True for a file that defines kernels of its own with a package: whether they run there is somebody's decision."""
    package = rule.old.partition(".")[0]
    if not any(name.startswith(f"{package}.") for name in KERNEL_DECORATORS):
        return False
    made = (each for node in work.scan.functions for each in node.decorator_list)
    names = (work.names.qualified(each.func if isinstance(each, ast.Call) else each) or "" for each in made)
    return any(name in KERNEL_DECORATORS and name.startswith(f"{package}.") for name in names)


def _note(
    work: Work, node: ast.alias | ast.stmt | ast.Name, rule: Rule, api: str, level: Level, message: str,
    blocks: str = "",
) -> Note:
    effort = rule.effort if level is Level.MANUAL else None
    blocks, others = blocks or rule.blocks, rule.help.removeprefix("instead: ").split(", or ")
    path_of = work.project.path_of  # what the project is itself, `lomo-optim` of lomo_optim, is no advice to it
    others = [each for each in others if not any(map(path_of, re.findall(r"\w+_\w+", each.replace("-", "_"))))]
    help = f"instead: {', or '.join(others)}" if others and rule.help.startswith("instead: ") else rule.help
    return Note(work.source.extent(node), rule.code, level, message, api, help, effort, blocks=blocks)


def _elsewhere(node: ast.alias | ast.stmt) -> str:
    """Why an NPU does without an import: it takes another, or another branch; empty where it does not."""
    if _is_replaced(node):
        return REPLACED
    return NOT_ON_NPU if _is_for_cuda(node) else ""


def _is_for_cuda(node: ast.AST) -> bool:
    """True for what stands in the `else` of a question for an NPU, or behind one that leaves."""
    while not isinstance(node, (ast.Module, *FUNCTIONS)):
        above = parent(node)
        match above:
            case ast.If(test=test, orelse=other) if node in other and _asks_for_an_npu(test):
                return True
            case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test), body=body) if node in body:
                if _asks_for_an_npu(test):
                    return True
        if isinstance(node, ast.stmt) and _is_left_before(node):
            return True
        node = above
    return False


def _is_left_before(node: ast.stmt) -> bool:
    """True where the block of a statement is left on an NPU in front of it; a block is gone through once."""
    block, index = place_in_block(node)
    known: dict[int, int] = parent(node).__dict__.setdefault("_left_on_an_npu", {})
    if id(block) not in known:
        known[id(block)] = next(
            (
                at
                for at, each in enumerate(block)
                if isinstance(each, ast.If) and not each.orelse and leaves(each.body) and _asks_for_an_npu(each.test)
            ),
            len(block),
        )
    return known[id(block)] < index


def _asks_for_an_npu(test: ast.expr) -> bool:
    """True for `is_npu_available`, `is_torch_npu_available()`, `torch.npu.is_available()`, `device.type == "npu"`."""
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return "npu" in (string_of(left), string_of(right))
        case ast.Call(func=ast.Name() | ast.Attribute() as named) | (ast.Name() | ast.Attribute() as named):
            return bool(_NPU.search(last_name(named))) or ast.unparse(named) == "torch.npu.is_available"
    return False


def _is_replaced(node: ast.AST) -> bool:
    """True for an import of a name that an `if` below, in the same block, imports again from a package for Ascend."""
    while not isinstance(node, ast.stmt):
        node = parent(node)
    if not isinstance(node, ast.ImportFrom):
        return False
    names = {alias.asname or alias.name for alias in node.names}
    for below in following(node):
        for each in below.body if isinstance(below, ast.If) else ():
            again = {alias.asname or alias.name for alias in each.names} if isinstance(each, ast.ImportFrom) else set()
            if isinstance(each, ast.ImportFrom) and _ASCEND.search(each.module or "") and names <= again:
                return True
    return False
