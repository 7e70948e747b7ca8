"""What packages gave up before their first release for the Pythons of this torch_npu: an import fails, or a call.

Facts: rules/support/refused_calls.json, `packages`, and rules/support/gone_names.json, which is read from wheels.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from typing import Any

from transplt.base.grouped import grouped
from transplt.edits.edit import Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.old_names import guarded
from transplt.fixers.codemods.refused_calls import first_torch, since
from transplt.flow.last_value import last_value
from transplt.flow.torch_branches import TorchTests
from transplt.rules.companions import first_wheel
from transplt.rules.releases import release_of
from transplt.rules.since import member, only_newer, only_older, rows_of_gone
from transplt.syntax.nodes import (
    argument_at,
    call_of,
    class_of_method,
    inner_nodes,
    keyword_of,
    lacks,
    of_kind,
    plain_name,
    string_of,
)  # fmt: skip
from transplt.syntax.scan import chain, parent

#: What shows that a file may have a name of a package which most files name, or whose name is a part of other words.
_SEEN = {
    "yaml": ("yaml.load",), "pandas": ("import pandas", "from pandas"), "PIL": ("ImageMath",),
    "matplotlib": ("MatplotlibDeprecationWarning",), "datasets": ("import datasets", "from datasets"),
    "trl": (r"\btrl\b",),
}  # fmt: skip


_Place = ast.expr | ast.stmt | ast.keyword | ast.arg
#: What a row asks of a call that it holds for; `method` only that an object has it called.
_CONDITIONS = ("lacks", "given", "keyword", "positional", "hands_on", "taken", "method", "overridden")


def _words(name: str) -> tuple[str, ...]:
    """One of them stands in a file that has a full name: its package; of NumPy, which all import, itself."""
    root = name.partition(".")[0]
    return (name, f"np.{name[6:]}") if root == "numpy" else _SEEN.get(root, (root,))


_EVERY = {name for row in rows_of_gone() for name in row["names"]}
#: Names of torch, which all import, with their last two parts: the last is not written without the one before it.
_OF_TORCH = [(name, *name.rsplit(".", 2)[-2:]) for name in sorted(_EVERY) if name.startswith("torch.")]
_UNCONDITIONAL = [name for row in rows_of_gone() if row.keys().isdisjoint(_CONDITIONS) for name in row["names"]]
fixer = Fixer(
    __name__,
    code="NPU293",
    rank=366,
    words=tuple(sorted({word for name in _EVERY if not name.startswith("torch.") for word in _words(name)})),
    beside=grouped((above, last if len(last) > 8 else name) for name, above, last in _OF_TORCH),
)
#: The methods of objects among the names.
_METHODS = frozenset(
    name.rpartition(".")[2] for row in rows_of_gone() if row.keys() & {"taken", "method", "attribute"}
    for name in row["names"]
)
#: The methods of packages that a row says something of, where a class has its own.
_OVERRIDDEN = frozenset(
    name.rpartition(".")[2] for row in rows_of_gone() if "overridden" in row for name in row["names"]
)
#: What calls are given by its name, among the rows.
_KEYWORDS = frozenset(row["keyword"] for row in rows_of_gone() if "keyword" in row)


@cache
def _rows(version: str) -> dict[str, dict[str, Any]]:
    """By name, and by `name(keyword=` for what is said of a keyword."""
    rows = (row for row in rows_of_gone() if since(first_torch(row), version))
    return {f"{name}({row['keyword']}=" if "keyword" in row else name: row for row in rows for name in row["names"]}


def _row(work: Work, name: str) -> dict[str, Any] | None:
    """What is said of a full name, where the releases that the project asks for have it no more."""
    row = _rows(work.settings.torch_version).get(name)
    root, project = name.partition(".")[0], work.project
    if row is None or (row.get("each") and (project.path_of(root) or project.has_parts(root))):
        return None  # the tree may be that package itself, of its own time
    package, first, *known = row.get("until", ("", "0"))
    python = next(iter(release_of(work.settings.torch_version).pythons), "")
    oldest = [*known, first_wheel(package, python) or "0"][0]  # what is older does not go with these Pythons
    pins = work.settings.pins_at(work.scan.path)
    if any(pins.get(each) == "@" for each in row.get("repository", ())):
        return None  # its last release is not what the project installs
    needed, lowest = row.get("from", ("", "0"))
    if only_older(pins.get(needed, ""), lowest):
        return None
    asked = pins.get(package, "")
    floor = dict(project.floors).get(package, "0")  # below it the project is told to raise the pin
    if only_older(asked, first) and not (only_older(asked, oldest) or only_older(asked, floor)):
        return None
    newest = row.get("had", first)  # that has it still; a project that asks for newer ones has its reasons
    back = newest and not only_newer(asked, first) and not only_older(f"<{newest}", oldest)
    # What classes of the project have from those of a package is in no table: an older one may not have it either.
    back = back and root not in {
        base.partition(".")[0] for above in project.reach.graph.bases.values() for base in above
    }
    below, gone = ("<=", f"> {newest}") if row.get("had") else ("<", f">= {first}")
    older = f"{package}{below}{newest}" if back else ""
    return row | {"details": (("gone", f"{package} {gone}"), ("back", older))} if package else row


def _is_met(work: Work, row: dict[str, Any], call: ast.Call) -> bool:
    """True for a call that a row with a condition is about."""
    if "given" in row:
        given = argument_at(call, row["index"], row["given"])
        texts = (string_of(each) for each in (given, *_defaults(work, given)))
        return any(re.fullmatch(row["text"], each) for each in texts if each)
    if "lacks" in row:
        return lacks(call, row["lacks"], row["index"]) is True
    if "positional" in row:
        return len(call.args) > int(row["positional"])
    if "taken" in row:
        return _taken_as(call) == int(row["taken"])
    if "keyword" in row:
        given = keyword_of(call, row["keyword"])
        if "handed" in row:  # the package makes an object of this class with one keyword more
            own = (each.body for each in work.scan.classes if each.name == plain_name(given))
            made = (each.args for body in own for each in of_kind(ast.FunctionDef, body) if each.name == "__init__")
            return any(not args.kwarg and row["handed"] not in {each.arg for each in args.args} for args in made)
        return "but" not in row or getattr(given, "value", None) is not row["but"]
    return "method" in row


def _defaults(work: Work, given: ast.expr | None) -> Iterator[ast.expr | None]:
    """What a variable was given, and the default of the option that `args.name` reads."""
    if isinstance(given, ast.Name):
        yield last_value(work.scan, given)
    elif isinstance(given, ast.Attribute):
        for option in map(call_of, work.scan.attributes.get("add_argument", ())):
            if option is not None and [string_of(each) for each in option.args][-1:] == [f"--{given.attr}"]:
                yield keyword_of(option, "default")


def _taken_as(call: ast.Call) -> int:
    """How many things take the result of a call; 0 where that cannot be seen."""
    match parent(call):
        case ast.Assign(targets=[ast.Tuple(elts=names)]) if not [*of_kind(ast.Starred, names)]:
            return len(names)
        case ast.Assign(targets=[ast.Name() | ast.Attribute()]):
            return 1
    return 0


def _told(work: Work, place: _Place, row: dict[str, Any], name: str, blocks: str = "") -> Note:
    """What is said of a place: about the package, or the module, whose functions went together, or the one function, or
    what the row says it is.
    """
    api = name.rpartition(".")[0] if len(row["names"]) > 1 else name
    if "about" in row or row.get("each"):
        api = str(row.get("about", name))
    elif "positional" in row:
        api = name.partition(".")[0]
    blocks = blocks or row.get("blocks", "")
    details = (*row.get("details", ()), *([("condition", row["condition"])] if "condition" in row else []))
    said = (row[key].replace("{name}", name.rpartition(".")[2]) for key in ("message", "help"))
    message, help = (text.replace("{member}", member(name)) for text in said)
    return work.note(place, fixer.code, message, api=api, help=help, blocks=blocks, details=details)


def _of_a_frame(work: Work, call: ast.Call) -> str:
    """The name of a method that only objects of pandas are called with so: by an axis, or a keyword of its own."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="date"), attr="apply"), args=[ast.Lambda(), ast.Constant()]
        ) if b"import pandas" in work.source.utf8:
            return "pandas.Series.apply"  # of one column: a frame's second argument is the axis
        case (
            ast.Call(func=ast.Attribute(attr=method), args=[_, ast.Constant(value=int())])
            | ast.Call(func=ast.Attribute(attr=method), args=[_], keywords=[ast.keyword(arg="ignore_index"), *_])
            | ast.Call(func=ast.Attribute(attr=method), args=[ast.Constant(value=str()), *_])
        ) if b"import pandas" in work.source.utf8:
            return f"pandas.DataFrame.{method}"
    return ""


def _of_an_object(work: Work, called: ast.expr) -> str:
    """`pandas.ExcelWriter.save`, for `writer.save` of what was made above; the method of a base, for that of self."""
    match called:
        case ast.Attribute(value=ast.Name() as name, attr=method) if method in _METHODS:
            owner = next(of_kind(ast.ClassDef, chain(called)), None) if name.id == "self" else None
            match last_value(work.scan, name), owner:
                case ast.Call(func=made), _:
                    return f"{work.names.qualified(made)}.{method}"
                case None, ast.ClassDef(bases=[base], body=body):
                    stores = of_kind(ast.Assign, (parent(each) for each in work.scan.stores if each.attr == method))
                    own = any(getattr(each, "name", "") == method for each in body) or any(stores)
                    return "" if own else f"{work.names.qualified(base)}.{method}"
    return ""


@fixer.on(ast.Import)
def imported(work: Work, node: ast.Import | ast.ImportFrom) -> Finds:
    """Report `from scipy.misc import imread`, and `from torchvision.models.utils import x`: a module that is gone."""
    names = [alias.name for alias in node.names]
    if names == ["*"] and {*work.scan.root.stars} == {getattr(node, "module", "")}:
        names = work.once(_unbound)
    if isinstance(node, ast.ImportFrom):
        names = [] if node.level else [node.module or "", *(f"{node.module}.{name}" for name in names)]
    # the packages that each lies in, outermost first, and itself
    names = list(dict.fromkeys(each for name in names for each in accumulate(name.split("."), "{}.{}".format)))
    gone = " "
    for name in names:
        if not name.startswith(gone) and (found := [*_missing(work, node, name)]):
            gone = f"{name}."  # what lies in it is gone with it
            yield from found


def _unbound(work: Work) -> list[str]:
    """The names that nothing in the file binds: a star import brings them."""
    lookup, scope_of = work.names.lookup, work.scan.scope_of
    every = work.scan.names.items()
    return [name for name, uses in every if any(lookup(name, scope_of(each)) is None for each in uses)]


@fixer.on(ast.Attribute, last=tuple({name.rpartition(".")[2] for name in _UNCONDITIONAL}))
def read(work: Work, node: ast.Attribute) -> Finds:
    """Report `scipy.misc.imread(...)`, `np.math.pi`, and `class C(Pretrained.Base):`, whose statement fails; what a
    subclass reads of its base, `self._sync_params`."""
    if isinstance(node.ctx, ast.Load):
        yield from _missing(work, node, work.names.qualified(node) or _of_an_object(work, node) or _field(work, node))


def _field(work: Work, node: ast.Attribute) -> str:
    """`transformers.TrainingArguments.no_cuda`, for `self.args.no_cuda` of a Trainer, and `training_args.no_cuda`."""
    match node.value:
        case ast.Attribute(value=ast.Name(id="self"), attr="args"):
            bases = (base for owner in [*of_kind(ast.ClassDef, chain(node))][:1] for base in owner.bases)
            above = [each for base in bases for each in (work.names.qualified(base) or "", *_family(work, base))]
            taken = any(each.startswith("transformers.") and each.endswith("Trainer") for each in above)
        case ast.Name(id="training_args"):
            taken = b"HfArgumentParser" in work.source.utf8
        case _:
            taken = False
    return f"transformers.TrainingArguments.{node.attr}" if taken else ""


def _missing(work: Work, node: ast.expr | ast.stmt, name: str) -> Iterator[Note]:
    """What is reported where a name is gone: an import, or a class made from it, fails as the module is loaded."""
    row = _row(work, name)
    tests = TorchTests(work.names, work.settings.torch_version)
    if row is not None and row.keys().isdisjoint(_CONDITIONS) and not guarded(node, tests):
        holds = isinstance(node, ast.stmt) or isinstance(parent(node), ast.ClassDef)
        yield _told(work, node, row, name, "import" if holds and work.scan.scope_of(node).kind == "module" else "")


@fixer.on(ast.Call)
def called(work: Work, call: ast.Call) -> Finds:
    """Report `yaml.load(f)`, `mel(22050, 1024)` of librosa, and `writer.save()`."""
    name = work.names.qualified(call.func) or _of_an_object(work, call.func) or _of_a_frame(work, call)
    kin = f"{name.partition('.')[0]}.*.{name.rpartition('.')[2]}"  # what is said of a name beside its row
    asked: list[tuple[_Place, str, str]] = [(call.func, name, ""), (call.func, kin, "")]
    for given in (each for each in call.keywords if each.arg in _KEYWORDS):
        asked += ((given, each, f"({given.arg}=") for each in (name, *_family(work, call.func)))
    for place, each, of in asked:
        row = _row(work, f"{each}{of}")
        if row is not None and _is_met(work, row, call) and not guarded(call):  # asked last: it reads all that is above
            yield _told(work, place, row, each)


def _family(work: Work, named: ast.expr) -> Iterator[str]:
    """The full names of the classes above one of the project, those of packages included; of a method of a package's
    class that of all its kin.
    """
    name = work.names.qualified(named) or f"{work.file.module}.{plain_name(named)}"
    graph = work.project.reach.graph
    yield from graph.above(graph.settled(name))
    yield f"{name.partition('.')[0]}.*.{name.rpartition('.')[2]}"


@fixer.on(ast.FunctionDef)
def registered(work: Work, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Finds:
    """Report a model of the project that timm makes, and that gets a keyword of timm's that its class does not take."""
    row = _row(work, work.names.qualified(node.decorator_list[0]) or "") if node.decorator_list else None
    if row is None or "hands_on" not in row or node.args.kwarg is None or "pretrained_cfg" in work.text(node):
        return
    for call in inner_nodes(node, ast.Call):
        handed = any(each.arg is None and plain_name(each.value) == node.args.kwarg.arg for each in call.keywords)
        if handed and _takes_no_other(work, call.func):
            yield _told(work, call.func, row, "")


def _takes_no_other(work: Work, called: ast.expr) -> bool:
    """True for a model of timm, and for a class of the file that takes its own keywords alone, or hands them to one."""
    own = [each for each in work.scan.classes if each.name == plain_name(called)]
    if not own:
        return (work.names.qualified(called) or "").startswith("timm.models.")
    made = (each for each in own[0].body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    return all(each.args.kwarg is None for each in made) or any(_takes_no_other(work, base) for base in own[0].bases)


@fixer.on(ast.FunctionDef)
def overridden(work: Work, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Finds:
    """Report a method of a package's class that the package calls no more, or calls in another way."""
    owner = class_of_method(node)
    for base in owner.bases if owner and node.name in _OVERRIDDEN else ():
        name = work.names.qualified(base) or ""
        for above in (each.rstrip(":") for each in (name, *_family(work, base))):
            row = _row(work, f"{above}.{node.name}") or _row(work, f"{above.partition('.')[0]}.*.{node.name}")
            if row is not None and "overridden" in row and (place := _unfit(row, node.args)) is not None:
                yield _told(work, place, row, name or above)
                return


def _unfit(row: dict[str, Any], args: ast.arguments) -> ast.arg | None:
    """The parameter that a package hands on no more (`asks`); the last one, where there is none for what it does."""
    given = {each.arg: each for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    if "asks" in row:
        found = given.get(row["asks"])
        return None if args.defaults and found is args.args[-1] else found  # such a default does no harm
    named = args.kwarg is not None or row.get("omits") in given or len(given) >= row.get("takes", len(given) + 1)
    fits = "omits" in row and named
    return None if fits else next(reversed(given.values()), None)
