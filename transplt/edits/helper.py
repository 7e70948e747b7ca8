"""Calls of the functions that a port needs beyond an edit (transplt/helper): `npu_port.start()`.

A file of a project imports the module `npu_port` that is written beside the program. Where no second file is written
(a single file, a notebook, `check --fix`, an editor), the functions stand in the file that calls them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from transplt.base.finding import Level
from transplt.edits.edit import AtTop, Edit, Found
from transplt.edits.helper_import import from_line, import_line, imported_as, taken_as
from transplt.edits.helper_inline import Inline
from transplt.edits.helper_source import public_names
from transplt.edits.lines import blank_lines_above
from transplt.edits.work import Work
from transplt.flow.accelerator_place import NOTEBOOK, is_added_to, module_place
from transplt.flow.helper_place import NAME, HelperPlace
from transplt.flow.import_layout import layout_of, reached_from
from transplt.rules.versions import loads_itself
from transplt.syntax.nodes import has_main_guard, is_main_guard, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, parent

#: The code of an import of the module, and of the file itself; and of what a module that is there lacks.
CODE, LACKS = "NPU156", "NPU157"
#: What gives all names of a file, and methods of it that ask for single ones.
_NAMES_OF_IT, _ONE_NAME = ("globals", "vars", "locals", "dir"), ("get", "update", "setdefault", "pop")


@dataclass(frozen=True, slots=True)
class Called:
    """`text` is what to call, empty where that cannot be; `found` is what the file needs for it, or why it cannot."""

    text: str
    found: tuple[Found, ...] = ()


@dataclass(slots=True)
class _Given:
    """What a file was given so far: the place and the local name of the module, or what stands in it itself.

    In the portable style names are taken from the module: `taken` has their names here.
    """

    place: HelperPlace | None
    local: str
    inline: Inline
    taken: dict[str, str] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    edits: list[Edit] = field(default_factory=list)
    grouped: set[tuple[int, str]] = field(default_factory=set)

    def of(self, group: str) -> tuple[Edit, ...]:
        """The edits that a group has not asked for yet: it may be taken back, and others need them still."""
        new = [(at, edit) for at, edit in enumerate(self.edits) if (at, group) not in self.grouped]
        self.grouped.update((at, group) for at, _ in new)
        return tuple(replace(edit, group=group) for _, edit in new)


def helper(
    work: Work,
    name: str,
    *,
    group: str,
    code: str,
    message: str,
    at: ast.AST | None = None,
    level: Level = Level.SAFE,
    asked: bool = False,
    freed: bool = False,
) -> Called:
    """How a file calls a function of the helper; what is `found` is to be yielded or added, in this order.

    `at` is the node that calls it: functions that stand in the file stand above it, or there is no text to call. `code`
    and `message` are those of the record of functions that go into the file itself. `freed`: the import goes that gave
    the file this name, and what it called stays.
    """
    assert name in public_names(), f"{name} would not be written"
    given = work.once(_given)
    if given.place is None:
        return _inline(work, given, name, Edit(AtTop(), code, message, "", level, group=group, asked=asked), at)
    if not given.place.paths:
        return Called(given.taken.get(name, ""))
    if lacking := lacking_of(work, [name]):
        note = () if name in given.said else (_lacking_note(work, given.place, lacking, at),)
        given.said.add(name)
        return Called("", note)
    if work.settings.style == "portable":
        if name not in given.taken:
            lead = "_" if work.once(_reads_its_names) else ""  # private where the file looks through its own names
            first = f"{lead}ACCELERATOR_{name}" if name.isupper() else f"{lead}accelerator_{name}"
            free = (f"{lead}{name}", first, *(f"{first}_{number}" for number in range(1, 10)))
            local = given.taken[name] = name if freed else _first_free(work, free, name)
            line = from_line(work, given.place, [(name, local)])
            message = f"{line}: the accelerator, chosen once"
            given.edits.append(Edit(AtTop(local, always=freed), CODE, message, line, level, asked=asked))
        return Called(given.taken[name], given.of(group))
    if not given.local:
        given.local = _local(work, given.place)
        line = import_line(work, given.place, given.local)
        message = f"{line}: functions that the port calls"
        given.edits.append(Edit(AtTop(f"{given.local}."), CODE, message, line, level, asked=asked))
    return Called(f"{given.local}.{name}", given.of(group))


def complete(work: Work) -> None:
    """A module of the project that chooses the device gets what other files take from it."""
    names = dict(work.settings.completes or ()).get(work.scan.path, ())
    added = work.once(_given).inline.add(names, None, exact=True) if names else None
    if added is None:
        return
    message = f"{', '.join(names)}: the accelerator, chosen once, also for the files that import this module"
    for line in added.imports:
        work.add(Edit(AtTop(), CODE, message, line, group="names for others"))
    text = f"{blank_lines_above(work.source, added.place.node)}{added.text}\n\n"
    work.add(Edit(replace(added.place, called=()), CODE, message, text, group="names for others"))


def taken_from_helper(
    work: Work,
    names: Sequence[tuple[str, str]],
    *,
    group: str,
    code: str,
    message: str,
    at: ast.stmt,
    asked: bool = False,
) -> Called:
    """The statement by which a file takes functions of the helper under names of its own, (name, name here) of each: it
    stands in the place of the import `at`. Where functions stand in the file itself it is an assignment.
    """
    given = work.once(_given)
    if given.place is None:
        called = [helper(work, name, group=group, code=code, message=message, at=at, asked=asked) for name, _ in names]
        if not all(each.text for each in called):
            return Called("")
        left, right = ", ".join(local for _, local in names), ", ".join(each.text for each in called)
        return Called(f"{left} = {right}", tuple(found for each in called for found in each.found))
    if lacking := lacking_of(work, [name for name, _ in names]):
        return Called("", (_lacking_note(work, given.place, lacking, at),))
    return Called(from_line(work, given.place, names))


def imported_in_place(work: Work) -> str:
    """The import of the helper, for a caller that writes it in the place of another one at the top of the file; empty
    where the file has it already, or has the functions in itself.
    """
    given = work.once(_given)
    if given.place is None or given.local:
        return ""
    given.local = _local(work, given.place)
    return import_line(work, given.place, given.local)


def load_at_entry(work: Work) -> None:
    """A program that gets its device as a string (`--device npu`) loads the module where it begins: with a torch below
    2.5 nothing else loads torch_npu. A module that it imports and that asks for an accelerator does so as well.
    """
    given = work.once(_given)
    if given.place is None or not given.place.paths or given.taken or loads_itself(work.settings.torch_version):
        return
    layout, path = work.project.once(layout_of), work.scan.path
    others = (each for each in reached_from(layout, path) if each != path)
    if any(each in layout.ours or work.project.placing[each].asks for each in others):
        return
    options = (each for each in work.scan.calls if last_name(each.func) in ("add_argument", "option", "Option"))
    named = (string_of(argument) for each in options for argument in each.args)
    if "--device" not in named or not starts_something(work.scan.tree) or lacking_of(work, ["DEVICE_TYPE"]):
        return
    local = _first_free(work, ("DEVICE_TYPE", "ACCELERATOR_DEVICE_TYPE"), "DEVICE_TYPE")
    line = f"{from_line(work, given.place, [('DEVICE_TYPE', local)])}  # noqa: F401"
    message = f"{line}: the accelerator has to be loaded before a device is named"
    work.add(Edit(AtTop(local, always=True), CODE, message, line, group="accelerator at the entry"))


def lacking_of(work: Work, names: Iterable[str]) -> list[str]:
    """Those of some functions that the project's module lacks: it was written earlier, and is not edited again but for
    what a migration of the project adds in the portable style.
    """
    place = work.once(_given).place
    if place is None or place.there is None or is_added_to(work.project, work.settings, place):
        return []
    return [name for name in names if name not in place.there]


def in_file(work: Work) -> bool:
    """True where functions stand in the file that calls them."""
    return work.once(_given).place is None


def _given(work: Work) -> _Given:
    place = None
    portable, path = work.settings.style == "portable", work.scan.path
    kinds = (".py", NOTEBOOK) if portable else ".py"
    if (work.settings.helper_file or portable) and path in work.project.placing and path.endswith(kinds):
        starts = starts_something(work.scan.tree)
        tried = portable and only_tries_itself(work.scan.tree, work.source.utf8)
        place = module_place(work.project, work.scan.path, work.settings, starts=starts, tried=tried)
    if portable and not work.project.known and ((taken := taken_as(work, None)) or work.settings.helper):
        return _Given(HelperPlace((), "", None), "", Inline(work), taken)  # what else the module has is not known
    if place is None or portable:
        return _Given(place, "", Inline(work), {} if place is None else taken_as(work, place))
    return _Given(place, imported_as(work, place), Inline(work))


def only_tries_itself(tree: ast.Module, data: bytes) -> bool:
    """True for a file in which nothing speaks of CUDA but what stands behind its main guard, or in a `main`."""
    lines = data.lower().splitlines()
    for node in tree.body:
        tries = is_main_guard(node) or (isinstance(node, ast.FunctionDef) and node.name == "main")
        if not tries and any(b"cuda" in line for line in lines[node.lineno - 1 : node.end_lineno]):
            return False
    return has_main_guard(tree)


def starts_something(tree: ast.Module) -> bool:
    """True for a file that is started, and not only imported: it has a main guard, or does something by itself below
    all that it defines.
    """
    below = takewhile(lambda node: not isinstance(node, (*FUNCTIONS, ast.ClassDef)), reversed(tree.body))
    return has_main_guard(tree) or any(
        isinstance(node, (ast.For, ast.While, ast.With))
        or (isinstance(node, (ast.Expr, ast.Assign)) and isinstance(node.value, ast.Call))
        for node in below
    )


def _local(work: Work, place: HelperPlace) -> str:
    """A name for the module that means nothing in the file yet."""
    return _first_free(work, (place.module, "npu_helper", "npu_helper_1", "npu_helper_2"), NAME)


def _first_free(work: Work, names: Iterable[str], wanted: str) -> str:
    for name in names:
        if not work.scan.binds(name) and name not in work.new_names and name not in work.scan.names:
            work.new_names.add(name)
            return name
    raise ValueError(f"{work.scan.path} has all names that {wanted} may get")


def _reads_its_names(work: Work) -> bool:
    """True for a file that asks for all of its names, as `globals().items()` does, and not for one of them alone."""
    for call in work.scan.calls:
        if isinstance(call.func, ast.Name) and call.func.id in _NAMES_OF_IT and not call.args and not call.keywords:
            above = parent(call)
            one = isinstance(above, (ast.Subscript, ast.Compare)) or getattr(above, "attr", "") in _ONE_NAME
            if not one and (call.func.id == "globals" or work.scan.scope_of(call) is work.scan.root):
                return True
    return False


def _lacking_note(work: Work, place: HelperPlace, names: list[str], at: ast.AST | None) -> Found:
    node = at if isinstance(at, (ast.expr, ast.stmt)) else work.scan.tree.body[0]
    what, path = ", ".join(names), place.paths[0]
    return work.note(
        node,
        LACKS,
        f"{path} has no {what}, which this edit needs; transplt does not edit a helper file that it wrote earlier",
        help=f"move {path} away and migrate again: the new file has all functions that the project calls. Then apply "
        "your own changes to it",
    )


def _inline(work: Work, given: _Given, name: str, like: Edit, at: ast.AST | None) -> Called:
    """Functions in the file itself; `like` has what their edits have in common."""
    inline = given.inline
    if name not in inline.names:
        before = bool(inline.names)
        added = inline.add((name,), at)
        if added is None:
            return Called("")
        lead = "" if before else blank_lines_above(work.source, added.place.node)
        text = added.text if added.place.below else f"{lead}{added.text}\n\n"
        given.edits += [replace(like, new=line) for line in added.imports]
        given.edits.append(replace(like, where=added.place, new=text))
    return Called(inline.names[name], given.of(like.group))
