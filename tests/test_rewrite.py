"""From a node and its changes to the smallest edits: holes, nesting, layout, failures."""

from __future__ import annotations

import ast
from collections.abc import Callable

import libcst as cst
import pytest

from transplt.base.finding import Operation
from transplt.base.text.source import Source, read_source, splice
from transplt.edits.edit import Edit
from transplt.edits.rewrite import Site, build_sites, findings_of, rewrite_site
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.trees.transform import CannotRewrite
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan


def rename(new: str) -> Callable[[cst.CSTNode], cst.CSTNode]:
    return lambda node: cst.ensure_type(node, cst.Attribute).with_changes(attr=cst.Name(new))


def bench(text: str, attr: str = "cuda", transform: Callable[[cst.CSTNode], cst.CSTNode | str] | None = None):  # type: ignore[no-untyped-def]
    """A source, the sites of all attributes of a name, and the text after their changes with the edits made."""
    source = read_source(text.encode())
    found = scan(source, parse(source))
    nodes = sorted(found.attributes[attr], key=lambda node: source.extent(node))
    sites = build_sites(source, [Edit(node, "NPU1", "m", transform or rename("npu")) for node in nodes])
    edits, failures = [], []
    for site in sites:
        _, site_edits, site_failures = rewrite_site(source, site)
        edits += site_edits
        failures += site_failures
    after = splice(source.utf8, [(edit.start, edit.end, edit.after.encode()) for edit in edits]).decode()
    return source, sites, after, edits, failures


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda()", "x.npu()"),
        ("x . cuda", "x . npu"),
        ("(x).cuda", "(x).npu"),
        ("(\n    x  # c\n    .cuda  # d\n)", "(\n    x  # c\n    .npu  # d\n)"),
        ("x.cuda.cuda", "x.npu.npu"),
        ("f(a.cuda)(b.cuda).cuda", "f(a.npu)(b.npu).npu"),
        ("f(lambda: a.cuda, *b.cuda, **c.cuda)", "f(lambda: a.npu, *b.npu, **c.npu)"),
        ("x[a.cuda : b.cuda].cuda", "x[a.npu : b.npu].npu"),
        ("[a.cuda for a in b.cuda if c.cuda]", "[a.npu for a in b.npu if c.npu]"),
        ("f(a.cuda for a in b).cuda", "f(a.npu for a in b).npu"),
        ("x.cuda if y.cuda else z.cuda", "x.npu if y.npu else z.npu"),
        ("f'{x.cuda!r:>{w.cuda}} {y}'", "f'{x.npu!r:>{w.npu}} {y}'"),
        ("(await x.cuda)", "(await x.npu)"),
        ("(yield x.cuda)", "(yield x.npu)"),
        ("(y := x.cuda)", "(y := x.npu)"),
        ("{'a': x.cuda, **y.cuda}", "{'a': x.npu, **y.npu}"),
        ("\u00e9.cuda + '\u4e2d'.cuda", "\u00e9.npu + '\u4e2d'.npu"),
        ("x.\\\n    cuda", "x.\\\n    npu"),
    ],
)
def test_wherever_the_node_stands(before: str, after: str) -> None:
    text = f"async def f():\n    {before}\n" if "await" in before else f"{before}\n"
    if "yield" in before:
        text = f"def f():\n    {before}\n"
    _, _, result, _, failures = bench(text)
    assert result == text.replace(before, after)
    assert not failures


def test_edits_are_the_smallest_words_that_differ() -> None:
    _, _, _, edits, _ = bench("value = some.very.long.cuda(1)\n")
    assert [(edit.start, edit.end, edit.after) for edit in edits] == [(23, 27, "npu")]
    _, _, _, (edit,), _ = bench("x.cuda_stream\n", "cuda_stream", rename("npu_stream"))
    assert edit.after == "npu_stream", "a word is changed as a whole"


def test_nested_sites_are_one_site_with_children() -> None:
    _, sites, _, edits, _ = bench("f(x.cuda, y).cuda\n")
    assert len(sites) == 1 and len(sites[0].children) == 1
    assert len(edits) == 2


def test_long_operands_are_holes() -> None:
    seen: list[str] = []

    def look(node: cst.CSTNode) -> cst.CSTNode:
        seen.append(cst.Module([]).code_for_node(node))
        return rename("npu")(node)

    argument = "a" * 100
    _, _, after, _, _ = bench(f"f({argument}).cuda\n", transform=look)
    assert seen == ["_hole0_.cuda"]
    assert after == f"f({argument}).npu\n"


def test_changes_of_one_node_run_in_order() -> None:
    source = read_source(b"x.a\n")
    found = scan(source, parse(source))
    node = found.attributes["a"][0]
    planned = [Edit(node, "NPU1", "one", rename("b")), Edit(node, "NPU2", "two", lambda n: "y.c")]
    (site,) = build_sites(source, planned)
    text, edits, _ = rewrite_site(source, site)
    assert text == "y.c"
    (record,) = findings_of(source, "m.py", edits)
    assert (record.code, record.message, record.applied) == ("NPU1", "one; two", True)
    assert record.edit is not None and record.edit.before == "x.a"


def test_a_text_may_repeat_a_string_with_an_expression() -> None:
    source = read_source(b'f(f"cuda:{x.cuda}")\n')
    found = scan(source, parse(source))
    (call,) = found.calls
    planned = [
        Edit(call, "NPU1", "twice", lambda node: node.with_changes(args=[node.args[0], node.args[0]])),
        Edit(call.args[0], "NPU1", "string", words_in_literal({"cuda": "npu"})),
        Edit(found.attributes["cuda"][0], "NPU1", "name", rename("npu")),
    ]
    (site,) = build_sites(source, planned)
    text, edits, _ = rewrite_site(source, site)
    assert text == 'f(f"npu:{x.npu}", f"npu:{x.npu}")'
    assert splice(source.utf8, [(edit.start, edit.end, edit.after.encode()) for edit in edits]).decode() == f"{text}\n"


def test_a_text_may_drop_its_holes() -> None:
    long = "b" * 80
    _, _, after, edits, _ = bench(f"f({long}, x.cuda).cuda\n", transform=lambda node: "g()")
    assert after == "g()\n"
    assert len(edits) == 1


@pytest.mark.parametrize("error", [CannotRewrite("no such form"), ValueError("boom\nmore")])
def test_a_codemod_that_fails_costs_its_site_only(error: Exception) -> None:
    def fail(node: cst.CSTNode) -> cst.CSTNode:
        raise error

    _, _, after, edits, failures = bench("f(x).cuda\n", transform=fail)
    assert (after, edits) == ("f(x).cuda\n", [])
    assert failures[0].reason.endswith(str(error).splitlines()[0])


def test_a_failing_site_keeps_what_was_done_inside() -> None:
    source = read_source(b"f(x.cuda).nccl\n")
    found = scan(source, parse(source))

    def fail(node: cst.CSTNode) -> cst.CSTNode:
        raise CannotRewrite("no")

    planned = [
        Edit(found.attributes["nccl"][0], "NPU1", "m", fail),
        Edit(found.attributes["cuda"][0], "NPU1", "m", rename("npu")),
    ]
    (site,) = build_sites(source, planned)
    text, edits, failures = rewrite_site(source, site)
    assert text == "f(x.npu).nccl"
    assert (len(edits), len(failures)) == (1, 1)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_inside_a_site_stay(newline: str) -> None:
    text = newline.join(["x = (", "    y", "    .cuda(", "        1,  # one", "    )", ")", ""])
    _, _, after, edits, _ = bench(text)
    assert after == text.replace(".cuda", ".npu")
    assert [edit.after for edit in edits] == ["npu"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_statements(newline: str) -> None:
    text = newline.join(["if x:", "    import a, b  # both", "    y", ""])
    source = read_source(text.encode())
    found = scan(source, parse(source))

    def swap(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        imported = cst.ensure_type(line.body[0], cst.Import)
        names = [alias.with_changes(name=cst.Name("c")) for alias in imported.names]
        return line.with_changes(body=[imported.with_changes(names=names)])

    (site,) = build_sites(source, [Edit(found.imports[0], "NPU1", "m", swap)])
    _, edits, _ = rewrite_site(source, site)
    after = splice(source.utf8, [(e.start, e.end, e.after.encode()) for e in edits]).decode()
    assert after == text.replace("a, b", "c, c")


def test_operations() -> None:
    source = read_source(b"f(a, b)\n")
    found = scan(source, parse(source))

    def drop(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        return call.with_changes(args=[call.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)])

    def add(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        return call.with_changes(args=[*call.args, cst.Arg(cst.Name("c"))])

    def record(transform: Callable[[cst.CSTNode], cst.CSTNode]) -> tuple[Operation, str, str]:
        site = Site(found.calls[0], 0, 7, [Edit(found.calls[0], "NPU1", "m", transform)])
        _, edits, _ = rewrite_site(source, site)
        (finding,) = findings_of(source, "m.py", edits)
        assert finding.edit is not None
        return finding.edit.operation, finding.edit.before, finding.edit.after

    assert record(drop) == (Operation.DELETE, ", b", "")
    assert record(add) == (Operation.INSERT, "", ", c")


@pytest.mark.parametrize("count", [200, 1500])
def test_long_expressions(count: int) -> None:
    text = "y = " + " + ".join(["x.cuda"] * count) + "\n"
    _, _, after, edits, failures = bench(text)
    assert after == text.replace("cuda", "npu")
    assert (len(edits), failures) == (count, [])


def test_a_deep_chain() -> None:
    text = "y = x" + ".cuda()" * 60 + "\n"
    source = read_source(text.encode())
    assert isinstance(parse(source), ast.Module) and isinstance(source, Source)
    _, _, after, _, failures = bench(text)
    assert after == text.replace("cuda", "npu")
    assert failures == []
