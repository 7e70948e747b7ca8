"""Swaps against LibCST: what a swap does to the text of a node, the same edit of its tree does too."""

from __future__ import annotations

import ast
import re
import sys

import libcst as cst
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transplt.codemods.help_text import swap_words
from transplt.text.lexer import literals, one_plain_literal
from transplt.trees.swaps import (
    dotted,
    first_argument,
    in_literals,
    last_name,
    modules_imported,
    names_imported,
    words_in_literal,
)
from transplt.trees.transform import CannotRewrite, Swap

NEWLINE = re.compile(r"\r\n|\r|\n")


def expression(text: str) -> cst.BaseExpression:
    node = cst.parse_expression(f"({text})")
    return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])


def code(node: cst.CSTNode, text: str) -> str:
    found = NEWLINE.search(text)
    return cst.Module([], default_newline=found.group() if found else "\n").code_for_node(node)


# --- the same edits on trees -----------------------------------------------------------------------------------------


def tree_dotted(text: str, name: str) -> str:
    node = expression(text)
    wanted = name.split(".")
    have: list[cst.Attribute] = []
    current: cst.BaseExpression = node
    while isinstance(current, cst.Attribute):
        have.append(current)
        current = current.value
    if not isinstance(current, cst.Name) or len(have) + 1 != len(wanted):
        return name
    rebuilt: cst.BaseExpression = current.with_changes(value=wanted[0])
    for attribute, part in zip(reversed(have), wanted[1:], strict=True):
        rebuilt = attribute.with_changes(value=rebuilt, attr=attribute.attr.with_changes(value=part))
    return code(rebuilt, text)


def tree_last_name(text: str, name: str) -> str:
    return code(cst.ensure_type(expression(text), cst.Attribute).with_changes(attr=cst.Name(name)), text)


def tree_literals(node: cst.CSTNode, change) -> cst.CSTNode:  # type: ignore[no-untyped-def]
    if isinstance(node, cst.SimpleString):
        return node.with_changes(value=change(node.value))
    if isinstance(node, cst.ConcatenatedString):
        return node.with_changes(left=tree_literals(node.left, change), right=tree_literals(node.right, change))
    if isinstance(node, cst.FormattedString):
        parts = [
            part.with_changes(value=change(part.value)) if isinstance(part, cst.FormattedStringText) else part
            for part in node.parts
        ]
        return node.with_changes(parts=parts)
    raise CannotRewrite("not a plain string")


def tree_modules_imported(text: str, names: dict[int, str]) -> str:
    line = cst.ensure_type(cst.parse_statement(text + "\n"), cst.SimpleStatementLine)
    imported = cst.ensure_type(line.body[0], cst.Import)
    aliases = [
        alias.with_changes(name=cst.parse_expression(names[index])) if index in names else alias
        for index, alias in enumerate(imported.names)
    ]
    return code(line.with_changes(body=[imported.with_changes(names=aliases)]), text).rstrip("\r\n")


def tree_names_imported(text: str, module: str, names: list[tuple[str, str | None] | None]) -> str:
    line = cst.ensure_type(cst.parse_statement(text + "\n"), cst.SimpleStatementLine)
    imported = cst.ensure_type(line.body[0], cst.ImportFrom)
    assert not isinstance(imported.names, cst.ImportStar)
    aliases = []
    for alias, new in zip(imported.names, names, strict=True):
        if new is not None:
            name, local = new
            alias = alias.with_changes(name=cst.Name(name))
            if local is not None and alias.asname is None:
                space = cst.SimpleWhitespace(" ")
                alias = alias.with_changes(asname=cst.AsName(cst.Name(local), space, space))
            elif local is not None and local == name:
                alias = alias.with_changes(asname=None)
        aliases.append(alias)
    changed = imported.with_changes(module=cst.parse_expression(module), names=aliases)
    return code(line.with_changes(body=[changed]), text).rstrip("\r\n")


# --- dotted names ----------------------------------------------------------------------------------------------------

SPACE = st.sampled_from(["", "", "", " ", "\t", "\n", "\r\n  ", " # a.b (c\n ", "\\\n", "\\\r\n ", "\f"])
NAME = st.sampled_from(["torch", "cuda", "x", "_hole0_", "größe", "None"])


@st.composite
def chains(draw: st.DrawFn) -> str:
    text = draw(NAME)
    for attr in draw(st.lists(NAME.filter(lambda name: name != "None"), max_size=4)):
        if draw(st.integers(0, 5)) == 0:
            text = f"({draw(SPACE)}{text}{draw(SPACE)})"
        text = f"{text}{draw(SPACE)}.{draw(SPACE)}{attr}"
    return text


@given(chains(), st.sampled_from(["torch", "torch.npu", "torch_npu.npu.amp", "a.b.c.d"]))
def test_dotted(text: str, name: str) -> None:
    assert dotted(name).apply(text) == tree_dotted(text, name)


@pytest.mark.parametrize(
    "text",
    ["f().cuda", "x[0].cuda", "(a + b).cuda", "'torch'.cuda", "f'{x}'.cuda", "(await x).cuda", "1 .cuda",
     "(lambda: x).cuda", "{}.cuda", "(yield x).cuda", "(x,).cuda", "(x if y else z).cuda", "(not x).cuda"],
)  # fmt: skip
def test_what_is_no_dotted_name_gets_the_new_one_as_it_is(text: str) -> None:
    assert dotted("torch.npu").apply(text) == tree_dotted(text, "torch.npu") == "torch.npu"
    assert last_name("npu").apply(text) == tree_last_name(text, "npu")


@given(chains())
def test_last_name(text: str) -> None:
    if not isinstance(ast.parse(f"({text})", mode="eval").body, ast.Attribute):
        with pytest.raises(CannotRewrite):
            last_name("npu").apply(text)
    else:
        assert last_name("npu").apply(text) == tree_last_name(text, "npu")


@pytest.mark.parametrize("text", ["#" * 40, "(" * 40 + "#" * 40, "a" + "\r\n" * 40 + "+ b", "a.\\\n" * 40 + "()"])
def test_no_pattern_backtracks(text: str) -> None:
    assert dotted("x").apply(text) == "x"


ARGUMENTS = st.lists(st.sampled_from(["a", "*a", "k=1", "**k", "'('", "f(b)"]), max_size=3)


@given(chains(), ARGUMENTS, SPACE, SPACE)
def test_first_argument(callee: str, arguments: list[str], before: str, space: str) -> None:
    text = f"{callee}{before}({space}{f',{space}'.join(arguments)}{space})"
    assume("None" not in callee and readable(text))
    call = cst.ensure_type(expression(text), cst.Call)
    first = cst.Arg(cst.SimpleString("'npu'"))
    if call.args:
        first = first.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    assert first_argument("'npu'").apply(text) == code(call.with_changes(args=[first, *call.args]), text)


@pytest.mark.parametrize("text", ["f()()", "f().g()", "f() + g()", "x[0]()", "x", "(lambda: x)()"])
def test_first_argument_of_something_else(text: str) -> None:
    with pytest.raises(CannotRewrite):
        first_argument("1").apply(text)


# --- strings ---------------------------------------------------------------------------------------------------------

QUOTE = st.sampled_from(["'", '"', "'''", '"""'])
PIECE = st.sampled_from(
    ["cuda", "CUDA", "cuda:0", " ", "a", "\\\\", "\\'", '\\"', "\\n", "\\x63", "#", "cu", "da", "ü", "\\\n", "\\\r\n"]
)
FIELD = st.sampled_from(
    ["{x}", "{{", "}}", "{{{x}}}", "{x!r}", "{x!r:>{y}}", "{x:>10}", "{x:%H:%M}", "{x[a:b]}", "{ {1: 2}[1] }",
     "{(lambda: 1)()}", "{x=}", "{x:{y}{z}}", "{x.cuda}", "{x != y}", "{f(a, *b)}", "\\N{DASH}", "{x:,}", "{x:#x}"]
)  # fmt: skip


@st.composite
def strings(draw: st.DrawFn) -> str:
    quote = draw(QUOTE)
    prefix = draw(st.sampled_from(["", "", "r", "R", "u", "f", "f", "F", "rf", "fR"]))
    formatted, raw = "f" in prefix.lower(), "r" in prefix.lower()
    pieces = draw(st.lists(PIECE | FIELD if formatted else PIECE, max_size=6))
    inner = draw(st.sampled_from(['{x["cuda"]}', "{x['}']}", "{'a' + \"{\"}"]))
    if formatted and quote[0] not in inner:
        pieces.append(inner)
    if raw:
        pieces = [piece for piece in pieces if not piece.startswith("\\N")]
    return f"{prefix}{quote}{''.join(pieces)}{quote}"


def readable(text: str) -> bool:
    """True for what Python and LibCST read; LibCST refuses some (`rf'` before a line that goes on)."""
    try:
        ast.parse(f"({text})")
        cst.parse_expression(f"({text})")
    except (SyntaxError, cst.ParserSyntaxError):
        return False
    return True


EXPRESSIONS = strings().filter(readable)
BETWEEN = st.sampled_from([" ", "\n", "  # 'cuda'\r\n", "\\\n"])
SEVERAL = st.lists(st.tuples(EXPRESSIONS, BETWEEN), min_size=1, max_size=3)


def together(parts: list[tuple[str, str]]) -> str:
    """Literals side by side, with layout between."""
    return "".join(literal + space for literal, space in parts[:-1]) + parts[-1][0]


def tree_text(text: str) -> str | None:
    """What a replacement of words looks at in one literal; None for anything else."""
    node = expression(text)
    if isinstance(node, cst.FormattedString):
        return "".join(part.value for part in node.parts if isinstance(part, cst.FormattedStringText))
    return node.value if isinstance(node, cst.SimpleString) else None


@given(SEVERAL)
def test_literals(parts: list[tuple[str, str]]) -> None:
    text = together(parts)
    assume(readable(text))
    found = literals(text)
    assert [text[item.start : item.end] for item in found] == [literal for literal, _ in parts]
    seen = tree_text(text)
    assert one_plain_literal(text, []) == (seen is not None)
    assert one_plain_literal(text, ["cuda"]) == (seen is not None and seen.count("cuda") == 1)
    after = code(tree_literals(expression(text), swap_words), text)
    assert in_literals(swap_words).apply(text) == after


@pytest.mark.parametrize("text", ["'a''b'", "''\"\"", "r'a'f'b'", "f'{x}'u'b'"])
def test_literals_without_a_space_between(text: str) -> None:
    assert len(literals(text)) == 2


@given(EXPRESSIONS)
def test_words_in_a_literal(text: str) -> None:
    swap = words_in_literal({"cuda": "npu"})
    if "cuda" in text:
        assert swap.apply(text) == code(tree_literals(expression(text), lambda t: t.replace("cuda", "npu")), text)
    else:
        with pytest.raises(CannotRewrite):
            swap.apply(text)


@pytest.mark.parametrize(
    "text", ["'cuda' 'b'", "x", "'cuda' + x", "'cuda'.upper()", "('cuda')", "f'{x", "f'{x:{y}", "'cuda", "f'cuda", ""]
)
def test_words_of_anything_else_are_left(text: str) -> None:
    assert not one_plain_literal(text, ["cuda"])
    with pytest.raises(CannotRewrite):
        words_in_literal({"cuda": "npu"}).apply(text)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="f-strings nest freely from Python 3.12 on")
@pytest.mark.parametrize(
    "text",
    ["f'{x['a']}cuda'", "f'{f'{x:{'a'}}'}cuda'", "f'{x # it}s\n}cuda'", 'f"{"}"}cuda{"{"}"', "f'{\n'''}'''}cuda'",
     "f'{x if'}'else y}cuda'"],
)  # fmt: skip
def test_fields_that_nest(text: str) -> None:
    ast.parse(text)
    assert words_in_literal({"cuda": "npu"}).apply(text) == text.replace("cuda", "npu")


# --- imports ---------------------------------------------------------------------------------------------------------

GAP = st.sampled_from([" ", "  ", "\t", " \\\n", "\\\r\n "])
LOOSE = st.sampled_from(["", "", " ", " \\\n  "])
INSIDE = st.sampled_from(["", " ", "\n    ", "  # as, (import)\n    ", "\r\n"])
MODULE = st.sampled_from(["torch", "torch.cuda", "torch . cuda", "torch.cuda.amp", "importer", "asset.imports"])
LOCAL = st.sampled_from(["autocast", "GradScaler", "as_", "imported", "npu"])


@given(st.lists(st.tuples(MODULE, st.none() | LOCAL), min_size=1, max_size=3), GAP, LOOSE, st.sets(st.integers(0, 2)))
def test_modules_imported(items: list[tuple[str, str | None]], gap: str, loose: str, chosen: set[int]) -> None:
    aliases = [module if local is None else f"{module}{gap}as{gap}{local}" for module, local in items]
    text = f"import{gap}" + f"{loose},{loose}".join(aliases)
    names = {index: "torch.npu" for index in chosen if index < len(items)}
    assert modules_imported(names).apply(text) == tree_modules_imported(text, names)


#: An imported name, its local name, and what they become.
IMPORTED = st.tuples(LOCAL, st.none() | LOCAL, st.none() | st.tuples(LOCAL, st.none() | LOCAL))


@given(
    MODULE,
    st.lists(IMPORTED, min_size=1, max_size=3),
    GAP,
    st.none() | INSIDE,
    st.booleans(),
)
def test_names_imported(
    module: str,
    items: list[tuple[str, str | None, tuple[str, str | None] | None]],
    gap: str,
    inside: str | None,
    comma: bool,
) -> None:
    between = "" if inside is None else inside
    aliases = [name if local is None else f"{name}{gap}as{gap}{local}" for name, local, _ in items]
    listed = f"{between},{between}".join(aliases)
    if inside is None:
        text = f"from{gap}{module}{gap}import{gap}{listed}"
    else:
        text = f"from{gap}{module}{gap}import{gap}({between}{listed}{',' if comma else ''}{between})"
    # A name that has a local one keeps it, or loses it where it is the new name.
    new = [None if n is None else (n[0], n[1] if local is None else n[1] or local) for _, local, n in items]
    assert names_imported("torch.npu.amp", new).apply(text) == tree_names_imported(text, "torch.npu.amp", new)


@pytest.mark.parametrize("text", ["import torch; x = 1", "x = 'a'", "from a import b + c"])
def test_what_is_no_import(text: str) -> None:
    with pytest.raises(CannotRewrite):
        modules_imported({0: "torch.npu"}).apply(text)


def test_a_swap_is_a_value() -> None:
    assert isinstance(dotted("a.b"), Swap)
