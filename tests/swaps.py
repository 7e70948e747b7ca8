"""The judge of the edits of names, literals, imports and arguments by places: LibCST's trees.

Each function makes a transform of the small tree of a site, which is how these edits were made once. It leaves spaces,
comments, brackets and quotes where they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from transplt.base.text.lexer import literals
from transplt.trees.transform import CannotRewrite, OfText, Transform, code, expression, text_of


def dotted(name: str) -> Transform:
    """Put a dotted name in the place of a dotted name, in its layout if it has as many parts; else as it is."""
    wanted = name.split(".")

    def transform(node: cst.CSTNode) -> cst.CSTNode | str:
        attributes: list[cst.Attribute] = []
        root = node
        while isinstance(root, cst.Attribute):
            attributes.append(root)
            root = root.value
        if not isinstance(root, cst.Name) or len(attributes) + 1 != len(wanted):
            return name
        new: cst.BaseExpression = root.with_changes(value=wanted[0])
        for attribute, part in zip(reversed(attributes), wanted[1:], strict=True):
            new = attribute.with_changes(value=new, attr=attribute.attr.with_changes(value=part))
        return new

    return transform


def attribute_named(name: str) -> Transform:
    """Give an attribute another name; what it is an attribute of stays."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        if not isinstance(node, cst.Attribute):
            raise CannotRewrite("not an attribute")
        return node.with_changes(attr=node.attr.with_changes(value=name))

    return transform


def with_first(value: str) -> Transform:
    """Put a positional argument in front of all others of the call of a name."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        called = node.func if isinstance(node, cst.Call) else node
        while isinstance(called, cst.Attribute):
            called = called.value
        if not isinstance(node, cst.Call) or not isinstance(called, cst.Name):
            raise CannotRewrite("not a call by name")
        new = cst.Arg(cst.parse_expression(value))
        if node.args:
            new = new.with_changes(comma=_comma())
        return node.with_changes(args=[new, *node.args])

    return transform


def with_twin(text: str, twin: str) -> Transform:
    """Put a second literal behind the argument that is the first one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        for index, arg in enumerate(call.args):
            if isinstance(arg.value, cst.SimpleString) and arg.value.value[1:-1] == text and arg.keyword is None:
                quote = arg.value.value[0]
                new = arg.with_changes(value=cst.SimpleString(f"{quote}{twin}{quote}"))
                first = arg.with_changes(comma=_comma(), whitespace_after_arg=cst.SimpleWhitespace(""))
                return call.with_changes(args=[*call.args[:index], first, new, *call.args[index + 1 :]])
        raise CannotRewrite(f"{text} is not a plain string")

    return transform


def modules_imported(names: Mapping[int, str]) -> Transform:
    """Give modules of `import a.b as c, d` other names, by their place; what follows `as` stays."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        found = cst.ensure_type(line.body[0], cst.Import)
        aliases = [
            alias.with_changes(name=cst.parse_expression(names[index])) if index in names else alias
            for index, alias in enumerate(found.names)
        ]
        return line.with_changes(body=[found.with_changes(names=aliases)])

    return transform


def names_imported(module: str, names: Sequence[tuple[str, str | None] | None]) -> Transform:
    """Import from another module; a name becomes (name, local name or None), None where it stays as it is."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        found = cst.ensure_type(line.body[0], cst.ImportFrom)
        aliases = []
        assert not isinstance(found.names, cst.ImportStar)
        for alias, new in zip(found.names, names, strict=True):
            if new is not None:
                name, local = new
                alias = alias.with_changes(name=cst.Name(name))
                if local is not None and alias.asname is None:
                    space = cst.SimpleWhitespace(" ")
                    alias = alias.with_changes(asname=cst.AsName(cst.Name(local), space, space))
                elif local == name:
                    alias = alias.with_changes(asname=None)
            aliases.append(alias)
        return line.with_changes(body=[found.with_changes(module=cst.parse_expression(module), names=aliases)])

    return transform


def words_in_literal(words: Mapping[str, str]) -> OfText:
    """Replace words (old -> new, one after the other) in a string that is one literal; fields of f-strings stay."""

    def swapped(text: str) -> str:
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    return in_literals(swapped)


def in_literals(change: Callable[[str], str]) -> OfText:
    """Change the text of a string, literal by literal: LibCST recurses in a concatenation of some 500 of them."""

    def write(text: str) -> str:
        parts: list[str] = []
        at = 0
        for item in literals(text):
            parts += (text[at : item.start], _changed(text[item.start : item.end], change))
            at = item.end
        return "".join((*parts, text[at:]))

    return OfText(write)


def _changed(old: str, change: Callable[[str], str]) -> str:
    node = cst.parse_expression(old)
    if isinstance(node, cst.SimpleString):
        return text_of(node.with_changes(value=change(node.value)), old)
    parts = [
        part.with_changes(value=change(part.value)) if isinstance(part, cst.FormattedStringText) else part
        for part in cst.ensure_type(node, cst.FormattedString).parts
    ]
    return text_of(node.with_changes(parts=parts), old)


def _comma() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def with_keyword(name: str, value: str) -> Transform:
    """Add a keyword argument behind the others (before `**kwargs`), in the layout of the last one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        new = cst.Arg(cst.parse_expression(value), keyword=cst.Name(name), equal=_tight())
        at = next((i for i, arg in enumerate(call.args) if arg.star == "**"), len(call.args))
        args = list(call.args)
        if at < len(args):
            args.insert(at, new.with_changes(comma=_comma()))
        elif args:
            last = args[-1]
            between = next((arg.comma for arg in args[:-1] if isinstance(arg.comma, cst.Comma)), _comma())
            between = _without_comments(between)
            new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
            args[-1:] = [last.with_changes(comma=between, whitespace_after_arg=cst.SimpleWhitespace("")), new]
        else:
            args = [new]
        return call.with_changes(args=args)

    return transform


def with_new_keyword(name: str, value: str, column: int | None) -> Transform:
    """As `with_keyword`, on a line of its own at a column where one is given; nothing where the call has the argument.
    """
    add = with_keyword(name, value)

    def transform(node: cst.CSTNode) -> cst.CSTNode | str:
        if not isinstance(node, cst.Call) or any(arg.keyword and arg.keyword.value == name for arg in node.args):
            return node
        call = cst.ensure_type(add(node), cst.Call)
        at = next(index for index, arg in enumerate(call.args) if arg.keyword and arg.keyword.value == name)
        if not at:
            return call
        between: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
        if column is not None:
            between = cst.ParenthesizedWhitespace(last_line=cst.SimpleWhitespace(" " * column))
        before = call.args[at - 1].with_changes(comma=cst.Comma(whitespace_after=between))
        return call.with_changes(args=[*call.args[: at - 1], before, *call.args[at:]])

    return transform


def with_named(index: int, name: str) -> Transform:
    """Give the positional argument at a place its name."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        arg = call.args[index]
        if arg.keyword is not None or any(before.star for before in call.args[: index + 1]):
            raise CannotRewrite("the argument is not where it is expected")
        named = arg.with_changes(keyword=cst.Name(name), equal=_tight())
        return call.with_changes(args=[*call.args[:index], named, *call.args[index + 1 :]])

    return transform


def renamed_arguments(keywords: Mapping[str, str], positional: Mapping[int, str]) -> Transform:
    """Give keywords other names, and positional arguments at some places a name."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        args = []
        for index, arg in enumerate(call.args):
            if arg.keyword is not None and arg.keyword.value in keywords:
                arg = arg.with_changes(keyword=arg.keyword.with_changes(value=keywords[arg.keyword.value]))
            elif arg.keyword is None and not arg.star and index in positional:
                arg = arg.with_changes(keyword=cst.Name(positional[index]), equal=_tight())
            args.append(arg)
        return call.with_changes(args=args)

    return transform


def keyword_replaced(old: str, name: str, value: str) -> Transform:
    """Give a keyword argument another name and value where it stands."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        for index, arg in enumerate(call.args):
            if arg.keyword is not None and arg.keyword.value == old:
                new = arg.with_changes(keyword=cst.Name(name), value=cst.parse_expression(value))
                return call.with_changes(args=[*call.args[:index], new, *call.args[index + 1 :]])
        raise CannotRewrite(f"the call has no argument {old}")

    return transform


def without_keyword(name: str) -> Transform:
    """Leave a keyword argument out; the last one has the comma, or none, that the last one had."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        kept = [arg for arg in call.args if arg.keyword is None or arg.keyword.value != name]
        if kept and kept[-1] is not call.args[-1]:
            kept[-1] = _as_last(kept[-1], call.args[-1])
        return call.with_changes(args=kept)

    return transform


def _as_last(arg: cst.Arg, last: cst.Arg) -> cst.Arg:
    """An argument with the layout of the last one; a comment behind it stays."""
    between = arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else None
    if not isinstance(between, cst.ParenthesizedWhitespace) or between.first_line.comment is None:
        return arg.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    assert isinstance(arg.comma, cst.Comma)
    end = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else None
    if isinstance(end, cst.ParenthesizedWhitespace):
        between = end.with_changes(first_line=between.first_line)
    return arg.with_changes(comma=arg.comma.with_changes(whitespace_after=between))


def without_any_argument(node: cst.CSTNode) -> cst.CSTNode:
    """A call without its arguments."""
    return cst.ensure_type(node, cst.Call).with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))


def only_argument(node: cst.CSTNode) -> cst.CSTNode:
    """The first argument of a call in place of the call."""
    return cst.ensure_type(node, cst.Call).args[0].value


def callee(node: cst.CSTNode) -> cst.CSTNode:
    """What is called, in place of the call."""
    return cst.ensure_type(node, cst.Call).func


def calling(name: str) -> Transform:
    """Call another function with the same arguments."""
    return lambda node: cst.ensure_type(node, cst.Call).with_changes(func=cst.parse_expression(name))


def with_last_name(name: str) -> Transform:
    """`a.name(...)` in place of `a.b(...)`."""
    renamed = attribute_named(name)

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        return call.with_changes(func=renamed(call.func))

    return transform


def between(before: str, after: str) -> Transform:
    """Put an expression between two texts."""
    return lambda node: f"{before}{code(node)}{after}"


def receiver(node: cst.CSTNode) -> cst.CSTNode:
    """`x` in place of `x.method(...)`."""
    return _method(node).value


def calling_method_of(new: str) -> Transform:
    """`new.method(...)` in place of `x.method(...)`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        method = _method(node).with_changes(value=cst.parse_expression(new))
        return cst.ensure_type(node, cst.Call).with_changes(func=method)

    return transform


def handed_to(function: str) -> Transform:
    """`function(x)` in place of `x.method()`."""
    return lambda node: f"{function}({code(receiver(node))})"


def scaled_by(scaler: str) -> Transform:
    """`scaler.scale(x).method(...)` in place of `x.method(...)`; brackets around x become those of the call."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        method = _method(node)
        loss = method.value
        scaled = cst.Call(cst.parse_expression(f"{scaler}.scale"), [cst.Arg(loss)])
        if loss.lpar:
            bare = loss.with_changes(lpar=loss.lpar[1:], rpar=loss.rpar[:-1])
            given = cst.Arg(bare, whitespace_after_arg=loss.rpar[-1].whitespace_before)
            scaled = scaled.with_changes(args=[given], whitespace_before_args=loss.lpar[0].whitespace_after)
        return cst.ensure_type(node, cst.Call).with_changes(func=method.with_changes(value=scaled))

    return transform


def wrapped_anew(function: str, more: str, *, behind: bool) -> Transform:
    """`function(x, more)` in place of `f(x, ...)`, or with `behind` in place of `f(x, ...).g()`."""

    def transform(node: cst.CSTNode) -> str:
        wrapper = cst.ensure_type(receiver(node) if behind else node, cst.Call)
        return f"{function}({code(wrapper.args[0].value)}{f', {more}' if more else ''})"

    return transform


def module_named(name: str) -> Transform:
    """`a.name.c` in place of `a.b.c`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        outer = cst.ensure_type(node, cst.Attribute)
        inner = cst.ensure_type(outer.value, cst.Attribute)
        return outer.with_changes(value=inner.with_changes(attr=cst.Name(name)))

    return transform


def compared_with(new: str, operator: str, *, brackets: bool) -> Transform:
    """`a in x or new in x` in place of `a in x`, with another operator where one is given."""

    def transform(node: cst.CSTNode) -> str:
        found = cst.ensure_type(node, cst.Comparison)
        second = found.with_changes(left=cst.parse_expression(new), lpar=(), rpar=())
        text = f"{code(found.with_changes(lpar=(), rpar=()))} {operator} {code(second)}"
        return f"({text})" if brackets or found.lpar else text

    return transform


def left_side(tail: str) -> Transform:
    """What a comparison compares, with another comparison behind it."""
    return lambda node: code(cst.ensure_type(node, cst.Comparison).left) + tail


def and_also(condition: str) -> Transform:
    """`x and condition` in place of `x`."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        loose = isinstance(node, (cst.IfExp, cst.Lambda, cst.NamedExpr)) or (
            isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or)
        )
        text = code(node)
        bare = not getattr(node, "lpar", ())
        return expression(f"({text}) and {condition}" if loose and bare else f"{text} and {condition}")

    return transform


def _without_comments(comma: cst.Comma) -> cst.Comma:
    text = re.sub(r"(?:[ \t\f]*#.*\n)+", r"\n", code(comma))
    return cst.ensure_type(cst.ensure_type(cst.parse_expression(f"f(a{text}b)"), cst.Call).args[0].comma, cst.Comma)


def _method(node: cst.CSTNode) -> cst.Attribute:
    return cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute)


def _tight() -> cst.AssignEqual:
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
