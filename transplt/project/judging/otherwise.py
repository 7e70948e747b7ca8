"""What is computed otherwise, as people are told of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.project.judging.statements import Statement

_LINE = "\n"


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Something that is computed otherwise: the statements of the original and of the port, what it is, and the `words`
    that differ. One that may come to the same is not `sure`; `rewritten`: the function around it, if
    that was written anew and only a run can tell."""

    before: Statement | None
    after: Statement | None
    what: str = ""
    sure: bool = True
    words: tuple[str, ...] = ()
    rewritten: str = ""

    @property
    def at(self) -> Statement:
        """Where it is, in the port if it is there."""
        at = self.after or self.before
        assert at is not None
        return at

    @property
    def sentence(self) -> str:
        """What a person reads of it."""
        at = self.at
        text, place = f"`{at.shown}`", at.scope or "the module"
        if self.what:
            return f"{text} in {place}: {self.what}"
        if self.after and isinstance(self.after.node, (ast.If, ast.With, ast.Try, ast.For, ast.While)):
            text += f" around `{ast.unparse(self.after.node.body[0]).partition(_LINE)[0]}`"
        return f"{text} was added in {place}" if self.after else f"{text} was removed from {place}"
