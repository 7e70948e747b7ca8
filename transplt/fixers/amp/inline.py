"""`criterion(model(x), y).backward()`: the loss gets a name, and its backward pass is written behind it."""

from __future__ import annotations

import ast

from transplt.edits.trees.statements import receiver_named, without_method
from transplt.edits.writer import Writer
from transplt.syntax.scan import statement


def name_loss(writer: Writer, call: ast.Call, name: str, code: str, messages: tuple[str, str], *, bare: bool) -> str:
    """Give a loss that is worked out in the statement of its backward pass a name; the text of the rest of the call.

    The expression stays where it is, with what other fixers do to it; with `bare` brackets around it go. `messages` are
    for the name that comes and for the backward pass that goes.
    """
    assert isinstance(call.func, ast.Attribute)
    source, loss, stmt = writer.work.source, call.func.value, statement(call)
    transforms = (receiver_named(name, bare=bare), without_method())
    for message, transform in zip(messages, transforms, strict=True):
        writer.rewrite(stmt, code, message, transform, holes=(loss,), apart=True)
    first, last = source.extent(stmt)
    start, end = source.extent(loss)
    rest = source.slice(end, last)
    if source.slice(first, start).strip() == "(":  # `(a + b).backward()`
        rest = rest[rest.index(")") + 1 :]
    return rest
