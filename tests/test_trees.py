"""Edits of names, strings, imports and calls: what they make of a text in any layout, and what they refuse."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable

import libcst as cst
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transplt.base.text.lexer import literals, one_plain_literal
from transplt.edits.trees.calls import with_first, with_twin
from transplt.edits.trees.expressions import module_named
from transplt.edits.trees.literals import in_literals, words_in_literal
from transplt.edits.trees.names import attribute_named, dotted, modules_imported, names_imported
from transplt.edits.trees.removals import without_names
from transplt.edits.trees.transform import CannotRewrite, New, code, rewritten
from transplt.fixers.codemods.texts import swap_words


def made(new: New, text: str, kind: type[ast.AST] = ast.expr) -> str:
    """What an edit makes of a text."""
    return rewritten(text, [new], kind)


def refused(new: New, text: str, kind: type[ast.AST] = ast.expr) -> None:
    with pytest.raises(CannotRewrite):
        made(new, text, kind)


# --- dotted names ----------------------------------------------------------------------------------------------------

SPACE = st.sampled_from(["", "", "", " ", "\t", "\n", "\r\n  ", " # a.b (c\n ", "\\\n", "\\\r\n ", "\f"])
#: Of `ﬁ` Python makes `fi`: what a name is and how it is spelled differ.
NAME = st.sampled_from(["torch", "cuda", "x", "_hole0_", "größe", "ﬁ"])


@st.composite
def chains(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A dotted name as a form with fields, and the names that go into them."""
    form, names = "{}", [draw(NAME), *draw(st.lists(NAME, max_size=4))]
    for _ in names[1:]:
        if draw(st.integers(0, 5)) == 0:
            form = f"({draw(SPACE)}{form}{draw(SPACE)})"
        form = f"{form}{draw(SPACE)}.{draw(SPACE)}{{}}"
    return form, names


@given(chains(), st.sampled_from(["torch", "torch.npu", "torch_npu.npu.amp", "a.b.c.d"]))
def test_dotted(chain: tuple[str, list[str]], name: str) -> None:
    (form, names), wanted = chain, name.split(".")
    after = form.format(*wanted) if len(wanted) == len(names) else name
    assert made(dotted(name), form.format(*names)) == after


@pytest.mark.parametrize(
    "text",
    ["f().cuda", "x[0].cuda", "(a + b).cuda", "'torch'.cuda", "f'{x}'.cuda", "(await x).cuda", "1 .cuda",
     "(lambda: x).cuda", "{}.cuda", "(yield x).cuda", "(x,).cuda", "(x if y else z).cuda", "(not x).cuda"],
)  # fmt: skip
def test_what_is_no_dotted_name_gets_the_new_one_as_it_is(text: str) -> None:
    assert made(dotted("torch.npu"), text) == "torch.npu"
    assert made(attribute_named("npu"), text) == text.removesuffix("cuda") + "npu"


@given(chains())
def test_last_name(chain: tuple[str, list[str]]) -> None:
    form, names = chain
    if len(names) == 1:
        refused(attribute_named("npu"), form.format(*names))
    else:
        assert made(attribute_named("npu"), form.format(*names)) == form.format(*names[:-1], "npu")


@given(chains())
def test_module_named(chain: tuple[str, list[str]]) -> None:
    form, names = chain
    if len(names) < 3:
        refused(module_named("npu"), form.format(*names))
    else:
        assert made(module_named("npu"), form.format(*names)) == form.format(*names[:-2], "npu", names[-1])


ARGUMENTS = st.lists(st.sampled_from(["a", "*a", "k=1", "**k", "'('", "f(b)"]), max_size=3)


@given(chains(), ARGUMENTS, SPACE, SPACE)
def test_first_argument(chain: tuple[str, list[str]], arguments: list[str], before: str, space: str) -> None:
    callee = chain[0].format(*chain[1])
    text = f"{callee}{before}({space}{f',{space}'.join(arguments)}{space})"
    assume(readable(text))
    inside = f"{space}'npu', {f',{space}'.join(arguments)}{space}" if arguments else f"{space}{space}'npu'"
    assert made(with_first("'npu'"), text) == f"{callee}{before}({inside})"


@pytest.mark.parametrize("text", ["f()()", "f().g()", "f() + g()", "x[0]()", "x", "(lambda: x)()"])
def test_first_argument_of_something_else(text: str) -> None:
    refused(with_first("1"), text)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("p.add_argument('--a_b')", "p.add_argument('--a_b', '--a-b')"),
        ('p.add_argument( "--a_b" , type=int)', 'p.add_argument( "--a_b", "--a-b" , type=int)'),
        ("p.add_argument('-a',\r\n  '--a_b'  # why\r\n)", "p.add_argument('-a',\r\n  '--a_b', '--a-b'  # why\r\n)"),
        ("p.add_argument('-ü', '--a_b', *more)", "p.add_argument('-ü', '--a_b', '--a-b', *more)"),
        ("p.add_argument(('--a_b'), 1)", "p.add_argument(('--a_b'), '--a-b', 1)"),
        ("p.add_argument(('--a_b'))", "p.add_argument(('--a_b'), '--a-b')"),
        ("p.add_argument(\n    '--a_b',\n    dest=d,\n)", "p.add_argument(\n    '--a_b', '--a-b',\n    dest=d,\n)"),
    ],
)
def test_a_second_spelling(text: str, after: str) -> None:
    assert made(with_twin("--a_b", "--a-b"), text) == after


FLAGS = st.sampled_from(
    ["'--a_b'", '"--a_b"', "('--a_b')", "( # (a)\n'--a_b'\n)", "(('--a_b' ) )", "'ü'", "*a", "k='--a_b'", "f('--a_b')"]
)


@given(st.lists(FLAGS, max_size=4), SPACE, SPACE, SPACE, st.booleans())
def test_a_second_spelling_in_any_layout(
    arguments: list[str], before: str, space: str, behind: str, comma: bool
) -> None:
    def call(given: list[str]) -> str:
        return f"p.option{before}({space}{f'{behind},{space}'.join(given)}{behind}{',' if comma else ''}{space})"

    assume(readable(call(arguments)))
    at = next((at for at, each in enumerate(arguments) if "--a_b" in each and each[0] in "'\"("), None)
    if at is None:
        refused(with_twin("--a_b", "--a-b"), call(arguments))
        return
    twin = '"--a-b"' if '"' in arguments[at] else "'--a-b'"
    after = call([*arguments[:at], f"{arguments[at]}, {twin}", *arguments[at + 1 :]])
    assert made(with_twin("--a_b", "--a-b"), call(arguments)) == after


@pytest.mark.parametrize("text", ["f(r'--a_b')", "f(name='--a_b')", 'f("""--a_b""")', "f('--a' '_b')", "f(['--a_b'])"])
def test_a_second_spelling_of_something_else(text: str) -> None:
    refused(with_twin("--a_b", "--a-b"), text)


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


def changed(literal: str, change: Callable[[str], str] = swap_words) -> str:
    """A literal after a change, as LibCST's tree of it has text and fields."""
    node = cst.parse_expression(literal)
    if isinstance(node, cst.SimpleString):
        return change(node.value)
    parts = cst.ensure_type(node, cst.FormattedString).parts
    new = [p.with_changes(value=change(p.value)) if isinstance(p, cst.FormattedStringText) else p for p in parts]
    return code(node.with_changes(parts=new))


@given(SEVERAL)
def test_literals(parts: list[tuple[str, str]]) -> None:
    text = together(parts)
    assume(readable(text))
    found = literals(text)
    assert [text[item.start : item.end] for item in found] == [literal for literal, _ in parts]
    node = cst.parse_expression(f"({text})")
    plain = isinstance(node, (cst.SimpleString, cst.FormattedString))
    assert one_plain_literal(text, []) == plain
    if isinstance(node, cst.FormattedString):
        of_text = "".join(part.value for part in node.parts if isinstance(part, cst.FormattedStringText))
        assert one_plain_literal(text, ["cuda"]) == (of_text.count("cuda") == 1)
    elif isinstance(node, cst.SimpleString):
        assert one_plain_literal(text, ["cuda"]) == (node.value.count("cuda") == 1)
    after = "".join(changed(literal) + space for literal, space in parts[:-1]) + changed(parts[-1][0])
    assert made(in_literals(swap_words), text) == after


@pytest.mark.parametrize("text", ["'a''b'", "''\"\"", "r'a'f'b'", "f'{x}'u'b'"])
def test_literals_without_a_space_between(text: str) -> None:
    assert len(literals(text)) == 2


@given(EXPRESSIONS)
def test_words_in_a_literal(text: str) -> None:
    words = {"cuda": "npu"}
    if "cuda" in text:
        assert made(words_in_literal(words), text) == changed(text, lambda part: part.replace("cuda", "npu"))
    else:
        refused(words_in_literal(words), text)


@pytest.mark.parametrize(
    ("text", "after"),
    [("rf'cuda \\\n {x}'", "rf'npu \\\n {x}'"), ("'a' rf'cuda\\\n'", "'a' rf'npu\\\n'")],
)
def test_a_literal_that_libcst_refuses_is_changed_on_its_text(text: str, after: str) -> None:
    ast.parse(f"({text})")
    with pytest.raises(cst.ParserSyntaxError):
        cst.parse_expression(f"({text})")
    assert made(in_literals(lambda found: found.replace("cuda", "npu")), text) == after


def test_a_concatenation_is_never_one_tree() -> None:
    """LibCST recurses in some 500 literals that stand side by side."""
    text = "\n".join(["'cuda'"] * 3000)
    assert made(in_literals(lambda found: found.replace("cuda", "npu")), text) == text.replace("cuda", "npu")


@pytest.mark.parametrize(
    "text", ["'cuda' 'b'", "x", "'cuda' + x", "'cuda'.upper()", "('cuda')", "f'{x", "f'{x:{y}", "'cuda", "f'cuda", ""]
)
def test_words_of_anything_else_are_left(text: str) -> None:
    assert not one_plain_literal(text, ["cuda"])
    refused(words_in_literal({"cuda": "npu"}), text)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="f-strings nest freely from Python 3.12 on")
@pytest.mark.parametrize(
    "text",
    ["f'{x['a']}cuda'", "f'{f'{x:{'a'}}'}cuda'", "f'{x # it}s\n}cuda'", 'f"{"}"}cuda{"{"}"', "f'{\n'''}'''}cuda'",
     "f'{x if'}'else y}cuda'"],
)  # fmt: skip
def test_fields_that_nest(text: str) -> None:
    ast.parse(text)
    assert made(words_in_literal({"cuda": "npu"}), text) == text.replace("cuda", "npu")


# --- imports ---------------------------------------------------------------------------------------------------------

GAP = st.sampled_from([" ", "  ", "\t", " \\\n", "\\\r\n "])
LOOSE = st.sampled_from(["", "", " ", " \\\n  "])
INSIDE = st.sampled_from(["", " ", "\n    ", "  # as, (import)\n    ", "\r\n"])
MODULE = st.sampled_from(
    ["torch", "torch.cuda", "torch . cuda", "torch.\\\n ﬁ", "torch.cuda.amp", "importer", "asset.imports"]
)
LOCAL = st.sampled_from(["autocast", "GradScaler", "as_", "imported", "npu"])


@given(st.lists(st.tuples(MODULE, st.none() | LOCAL), min_size=1, max_size=3), GAP, LOOSE, st.sets(st.integers(0, 2)))
def test_modules_imported(items: list[tuple[str, str | None]], gap: str, loose: str, chosen: set[int]) -> None:
    aliases = [module if local is None else f"{module}{gap}as{gap}{local}" for module, local in items]
    text = f"import{gap}" + f"{loose},{loose}".join(aliases)
    names = {index: "torch.npu" for index in chosen if index < len(items)}
    new = [
        (names.get(index, module), "" if local is None else f"{gap}as{gap}{local}")
        for index, (module, local) in enumerate(items)
    ]
    after = f"import{gap}" + f"{loose},{loose}".join(module + local for module, local in new)
    assert made(modules_imported(names), text, ast.stmt) == after


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

    def statement(module: str, aliases: list[str]) -> str:
        listed = f"{between},{between}".join(aliases)
        if inside is not None:
            listed = f"({between}{listed}{',' if comma else ''}{between})"
        return f"from{gap}{module}{gap}import{gap}{listed}"

    text = statement(module, [name if local is None else f"{name}{gap}as{gap}{local}" for name, local, _ in items])
    # A name that has a local one keeps it, or loses it where it is the new name.
    new = [None if n is None else (n[0], n[1] if local is None else n[1] or local) for _, local, n in items]
    after = []
    for (name, local, _), to in zip(items, new, strict=True):
        wanted, known = to or (name, local)
        if local is None:
            after.append(f"{wanted} as {known}" if known is not None else wanted)
        else:
            after.append(wanted if to is not None and known == wanted else f"{wanted}{gap}as{gap}{local}")
    assert made(names_imported("torch.npu.amp", new), text, ast.stmt) == statement("torch.npu.amp", after)


@pytest.mark.parametrize(
    ("text", "names", "after"),
    [
        ("from a import b, c as d, e", ["b"], "from a import c as d, e"),
        ("from a import b, c as d, e", ["d", "e"], "from a import b"),
        ("from a import (\n    b,  # one\n    c,\n)", ["c"], "from a import (\n    b,\n)"),
        ("import a.b, c as d", ["a"], "import c as d"),
    ],
)
def test_without_names(text: str, names: list[str], after: str) -> None:
    assert made(without_names(*names), text, ast.stmt) == after
    one_by_one = [without_names(name) for name in names]
    assert rewritten(text, one_by_one, ast.stmt) == after


@pytest.mark.parametrize(
    ("text", "names"), [("from a import b, c", ["d"]), ("from a import b, c", ["b", "c"]), ("from a import *", ["b"])]
)
def test_names_that_cannot_go(text: str, names: list[str]) -> None:
    refused(without_names(*names), text, ast.stmt)


@pytest.mark.parametrize("text", ["import torch; x = 1", "x = 'a'", "from a import b + c"])
def test_what_is_no_import(text: str) -> None:
    refused(modules_imported({0: "torch.npu"}), text, ast.stmt)
    refused(names_imported("torch.npu", [("b", None)]), text, ast.stmt)


@pytest.mark.parametrize("text", ["from . import b", "from .cuda import b", "from a import *", "import b"])
def test_what_is_no_import_of_names_of_a_module(text: str) -> None:
    refused(names_imported("torch.npu", [("b", None)]), text, ast.stmt)


@pytest.mark.parametrize("text", ["x +", "f('", "x; y"])
def test_what_is_no_expression(text: str) -> None:
    for new in (dotted("torch.npu"), attribute_named("npu"), with_first("1"), with_twin("a", "b")):
        refused(new, text)


# --- the new text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["a, b", "a,", "()"])
def test_a_name_may_become_several(after: str) -> None:
    assert made(after, "x") == after


@pytest.mark.parametrize("after", ["", " ", "# a"])
def test_an_expression_never_becomes_nothing(after: str) -> None:
    refused(after, "x")
