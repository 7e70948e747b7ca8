"""Questions whether a package is installed, `importlib.util.find_spec("flash_attn") is not None`: its functions are.

They are answered where the file took all that it needs of the package from the helper, and in files that take nothing
of it while others of the project do.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.trees.expressions import between
from transplt.edits.unused_imports import drop_unused
from transplt.fixers.adaptors.package import imports_of
from transplt.fixers.adaptors.writer import AdaptorWriter
from transplt.flow.replaced_packages import is_taken_over
from transplt.rules.taken_over import Package
from transplt.syntax.nodes import string_of
from transplt.syntax.scan import parent

_FINDERS = ("importlib.util.find_spec", "importlib.find_loader", "pkgutil.find_loader")
#: Who asks a library for the package by name: that needs the package itself, whatever we have.
_OF_LIBRARIES = re.compile(rb"flash_attention_2|attn_implementation|use_flash_attention|enable_xformers")


def turn_probes(writer: AdaptorWriter, package: Package, code: str, *, turned: bool) -> None:
    """Answer the questions of a file, where what they ask for is there now. `turned`: its own imports were."""
    work = writer.work
    if not any(word in work.source.utf8 for word in (b"find_spec", b"find_loader")):
        return
    found = work.calls_by_name(_FINDERS)
    named = [string_of(call.args[0]) if len(call.args) == 1 and not call.keywords else None for call in found]
    calls = [call for call, name in zip(found, named, strict=True) if name is not None and package.holds(name)]
    if not calls or _OF_LIBRARIES.search(work.source.utf8):
        return
    takes = bool(imports_of(work, package))
    if not (turned if takes else is_taken_over(package, work.project, but=work.scan.path)):
        return
    written: list[ast.expr] = []
    for call in calls:
        question, answer = _question(call)
        if question is None or writer.has_branch(question) or writer.keeps(question, code) or not work.take(question):
            continue
        message = f"{ast.unparse(question)} -> {answer}: its functions come from npu_port"
        lead = f'{writer.card} == "npu" or' if answer == "True" else f'{writer.card} != "npu" and'
        new = between(f"({lead} ", ")") if writer.portable else answer
        writer.rewrite(question, code, message, new, api=package.root)
        written.append(call.func)
    drop_unused(writer, written, code)


def _question(call: ast.Call) -> tuple[ast.expr | None, str]:
    """The comparison with None, or `bool(...)`, that a call stands in, and its answer."""
    match parent(call):
        case (
            ast.Compare(
                left=left, ops=[ast.Is() | ast.IsNot() as asked], comparators=[ast.Constant(value=None)]
            ) as above
        ):
            return (above, str(isinstance(asked, ast.IsNot))) if left is call else (None, "")
        case ast.Call(func=ast.Name(id="bool"), args=[given]) as above if given is call:
            return above, "True"
    return None, ""
