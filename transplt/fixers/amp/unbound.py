"""What a file reads and does not import: an `amp` is a NameError there, or what a star import brings; and an import of
torch for mixed precision would give all that reads torch another meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.program.program import enclosing_function
from transplt.syntax.files import File
from transplt.syntax.nodes import is_unbound

#: What is read of torch.cuda.amp, torch.amp and apex.amp.
_READ = ("scale_loss", "master_params", "initialize", "autocast", "GradScaler")


def unbound_amp(file: File) -> list[ast.Attribute]:
    """Where a file reads an `amp` (`apex_amp`) that no binding gives a value, by kind."""
    return [
        node
        for attr in _READ
        for node in file.scan.attributes.get(attr, ())
        if isinstance(node.value, ast.Name)
        and node.value.id.endswith("amp")
        and file.names.lookup(node.value.id, file.scan.scope_of(node)) is None
    ]


def unbound_for(file: File, scopes: Iterable[ast.AST]) -> ast.Attribute | ast.Name | None:
    """What keeps mixed precision out of training code: torch anywhere in the file, an amp in its own scopes, or
    anywhere where a star import may have brought the name.
    """
    if is_unbound(file.scan, "torch"):
        return file.scan.names["torch"][0]
    own = {id(scope) for scope in scopes}
    everywhere = bool(file.scan.root.stars)
    found = unbound_amp(file)
    return next((node for node in found if everywhere or id(enclosing_function(node) or file.scan.tree) in own), None)


def said_of(node: ast.Attribute | ast.Name) -> tuple[str, str]:
    """Why nothing is written beside one, and what to do."""
    read, name = ast.unparse(node), ast.unparse(node.value if isinstance(node, ast.Attribute) else node)
    why = f"this code reads {read}, and the file does not import {name}"
    return why, f"import {name}, or remove its use, and run transplt again"
