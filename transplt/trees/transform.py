"""What an edit does to the text of its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transplt.trees.lazy import cst


class CannotRewrite(Exception):
    """A codemod met a form that it does not handle; the site becomes a manual finding."""


@dataclass(frozen=True, slots=True)
class Swap:
    """An edit of a node's own text, for which no tree has to be made: skeleton in, its new text out."""

    apply: Callable[[str], str]


#: Gets the LibCST root of the skeleton (an expression, or the SimpleStatementLine of an import) and returns the new
#: root, or its source text.
TreeTransform = Callable[["cst.CSTNode"], "cst.CSTNode | str"]
Transform = Swap | TreeTransform
