"""What packages gave up before their first release for the Pythons of this torch_npu: an import fails, or a call.

Facts: rules/support/refused_calls.json, `packages`, and rules/support/gone_names.json, which is read from wheels.
"""

from __future__ import annotations

import ast
from functools import cache
from itertools import accumulate
from typing import Any

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.old_names import guarded
from transplt.fixers.codemods.refused_calls import first_torch, since
from transplt.rules.since import only_older
from transplt.rules.tables import read_table
from transplt.syntax.nodes import inner_nodes, keyword_of, lacks, of_kind, plain_name

#: What shows that a file may have a name of a package which most files name: only these are looked at.
_SEEN = {"yaml": ("yaml.load",), "pandas": ("import pandas",)}


@cache
def every_row() -> tuple[dict[str, Any], ...]:
    """What wheels say, and behind it what people wrote, which counts where both speak of a name."""
    tables = ("support/gone_names.json", "support/refused_calls.json")
    return tuple(row for table in tables for row in read_table(table)["packages"])


def _words(name: str) -> tuple[str, ...]:
    """One of them stands in a file that has a full name: its package; of NumPy, which all files import, itself."""
    package, _, rest = name.partition(".")
    return (f"np.{rest}", name) if package == "numpy" else _SEEN.get(package, (package,))


fixer = Fixer(
    __name__,
    code="NPU293",
    rank=366,
    words=tuple(sorted({word for row in every_row() for name in row["names"] for word in _words(name)})),
)


def packages() -> frozenset[str]:
    """The packages whose versions, where a project asks for some, say whether it meets what is gone."""
    return frozenset(name for row in every_row() for name in (*row.get("until", ())[:1], *row.get("repository", ())))


@cache
def _rows(version: str) -> dict[str, dict[str, Any]]:
    return {name: row for row in every_row() if since(first_torch(row), version) for name in row["names"]}


#: What a row asks of a call that it holds for.
_CONDITIONS = ("lacks", "keyword", "positional", "hands_on")


def _row(work: Work, name: str) -> dict[str, Any] | None:
    """What is said of a full name, where the releases that the project asks for have it no more."""
    row = _rows(work.settings.torch_version).get(name)
    if row is None or (row.get("each") and work.project.path_of(name.partition(".")[0])):
        return None  # the tree may be that package itself, of its own time
    package, first, oldest = (*row.get("until", ("", "0")), "0")[:3]  # what is older does not go with these Pythons
    pins = dict(work.settings.pins)
    if any(pins.get(each) == "@" for each in row.get("repository", ())):
        return None  # its last release is not what the project installs
    asked = pins.get(package, "")
    return row if only_older(asked, oldest) or not only_older(asked, first) else None


def _is_met(row: dict[str, Any], call: ast.Call) -> bool:
    """True for a call that a row is about: a function that is gone is met by its module's name alone."""
    if "lacks" in row:
        return lacks(call, row["lacks"], row["index"]) is True
    if "keyword" in row:
        return keyword_of(call, row["keyword"]) is not None
    if "positional" in row:
        return len(call.args) > int(row["positional"])
    return isinstance(call.func, ast.Attribute)  # else its import is reported


def _about(row: dict[str, Any], name: str) -> str:
    """The package, or the module, whose functions went together, or the one function; what the row says it is."""
    if "about" in row or row.get("each"):
        return str(row.get("about", name))
    if "positional" in row:
        return name.partition(".")[0]
    return name.rpartition(".")[0] if len(row["names"]) > 1 else name


def _of_a_frame(work: Work, call: ast.Call) -> str:
    """The name of a method that only objects of pandas are called with so: by an axis, or a keyword of its own."""
    match call:
        case (
            ast.Call(func=ast.Attribute(attr=method), args=[_, ast.Constant(value=int())])
            | ast.Call(func=ast.Attribute(attr=method), args=[_], keywords=[ast.keyword(arg="ignore_index"), *_])
        ) if b"import pandas" in work.source.utf8:
            return f"pandas.DataFrame.{method}"
    return ""


@fixer.on(ast.Import)
def imported(work: Work, node: ast.Import | ast.ImportFrom) -> Finds:
    """Report `from scipy.misc import imread`, and `from torchvision.models.utils import x`: a module that is gone."""
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [] if node.level else [node.module or "", *(f"{node.module}.{name}" for name in names)]
    # the packages that each lies in, outermost first, and itself
    names = list(dict.fromkeys(each for name in names for each in accumulate(name.split("."), "{}.{}".format)))
    for name in names:
        yield from _missing(work, node, name)


@fixer.on(ast.ClassDef)
def inherited(work: Work, node: ast.ClassDef) -> Finds:
    """Report `class Scale(transforms.Scale):`, whose statement fails."""
    for base in of_kind(ast.Attribute, node.bases):
        yield from _missing(work, base, work.names.qualified(base) or "")


def _missing(work: Work, node: ast.expr | ast.stmt, name: str) -> Finds:
    """What is reported of a statement that fails where a name is gone."""
    row = _row(work, name)
    if row is not None and row.keys().isdisjoint(_CONDITIONS) and not guarded(node):
        blocks = "import" if work.scan.scope_of(node).kind == "module" else ""
        yield work.note(node, fixer.code, row["message"], api=_about(row, name), help=row["help"], blocks=blocks)


@fixer.on(ast.Call)
def called(work: Work, call: ast.Call) -> Finds:
    """Report `scipy.misc.imread(...)`, `yaml.load(f)`, and `mel(22050, 1024)` of librosa."""
    name = work.names.qualified(call.func) or _of_a_frame(work, call)
    row = _row(work, name)
    if row is not None and _is_met(row, call) and not guarded(call):  # asked last: it reads all that stands above
        api, blocks = _about(row, name), row.get("blocks", "")
        yield work.note(call.func, fixer.code, row["message"], api=api, help=row["help"], blocks=blocks)


@fixer.on(ast.FunctionDef)
def registered(work: Work, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Finds:
    """Report a model of the project that timm makes, and that gets a keyword of timm's which its class does not take.
    """
    row = _row(work, work.names.qualified(node.decorator_list[0]) or "") if node.decorator_list else None
    if row is None or "hands_on" not in row or node.args.kwarg is None or "pretrained_cfg" in work.text(node):
        return
    for call in inner_nodes(node, ast.Call):
        handed = any(each.arg is None and plain_name(each.value) == node.args.kwarg.arg for each in call.keywords)
        if handed and _takes_no_other(work, call.func):
            yield work.note(call.func, fixer.code, row["message"], api=row["about"], help=row["help"])


def _takes_no_other(work: Work, called: ast.expr) -> bool:
    """True for a model of timm, and for a class of the file that takes its own keywords alone, or hands them to one."""
    own = [each for each in work.scan.classes if each.name == plain_name(called)]
    if not own:
        return (work.names.qualified(called) or "").startswith("timm.models.")
    made = (each for each in own[0].body if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    return all(each.args.kwarg is None for each in made) or any(_takes_no_other(work, base) for base in own[0].bases)
