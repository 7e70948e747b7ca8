"""The walk over a tree: scopes as Python has them, parents, and the nodes that codemods look at."""

from __future__ import annotations

import ast
import symtable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_properties import compiles, programs
from transplt.base.text.source import UnreadableSource, read_source
from transplt.syntax.modules import import_base, module_name
from transplt.syntax.nodes import is_property
from transplt.syntax.parse import parse
from transplt.syntax.scan import Scan, chain, parent, scan, statement
from transplt.syntax.scopes import Scope


def scanned(text: str, path: str = "m.py") -> Scan:
    source = read_source(text.encode())
    return scan(source, parse(source), path)


@pytest.mark.parametrize(
    ("path", "name"),
    [("a.py", "a"), ("a/b.py", "a.b"), ("a/__init__.py", "a"), ("__init__.py", ""), ("a/b/__init__.py", "a.b")],
)
def test_module_names(path: str, name: str) -> None:
    assert module_name(path) == name


@pytest.mark.parametrize(
    ("path", "statement_", "base"),
    [
        ("a/b/c.py", "from x.y import z", "x.y"),
        ("a/b/c.py", "from . import z", "a.b"),
        ("a/b/c.py", "from .d import z", "a.b.d"),
        ("a/b/c.py", "from ..d import z", "a.d"),
        ("a/b/c.py", "from ... import z", ""),
        ("a/b/__init__.py", "from .d import z", "a.b.d"),
        ("a/b/__init__.py", "from ..d import z", "a.d"),
        ("c.py", "from .d import z", "d"),
        ("c.py", "from .....d import z", "d"),
    ],
)
def test_relative_imports(path: str, statement_: str, base: str) -> None:
    node = ast.parse(statement_).body[0]
    assert isinstance(node, ast.ImportFrom)
    assert import_base(path, node) == base


def test_what_is_collected() -> None:
    found = scanned(
        """
import torch.cuda as tc
from x import y
class A(B):
    def cuda(self): return self.x.cuda(0) == "cuda"
z = d["cuda"]; s = "nothing"
f = lambda a: a.nccl
"""
    )
    assert sorted(found.attributes) == ["cuda", "nccl", "x"]
    assert {node.value for node in found.strings} == {"cuda"}
    assert (len(found.calls), len(found.imports), len(found.classes), len(found.functions)) == (1, 2, 1, 1)
    assert (len(found.compares), len(found.subscripts)) == (1, 1)
    assert found.root.bindings["tc"][0].target == "torch.cuda"
    assert found.root.bindings["y"][0].target == "x.y"


def test_parents_and_statements() -> None:
    found = scanned("def f():\n    if x:\n        return g(torch.cuda)\n")
    node = found.attributes["cuda"][0]
    assert isinstance(statement(node), ast.Return)
    assert [type(item).__name__ for item in chain(node)] == ["Call", "Return", "If", "FunctionDef", "Module"]
    assert parent(found.tree) is found.tree


def test_every_node_has_its_parent_and_scope() -> None:
    found = scanned(
        "@d(1)\nasync def f(a, /, b: int = 2, *c, d=3, **e) -> str:\n"
        "    async with a as b, c: pass\n    return [x async for x in b if x]\n"
        "match v:\n    case {'k': w, **rest} | [w, *rest] if w: pass\n    case P(q=1) as z: pass\n"
        "try: pass\nexcept* E as e: pass\n" if hasattr(ast, "TryStar") else "x = 1\n"
    )
    kinds = (ast.expr, ast.stmt, ast.arg, ast.comprehension, ast.keyword, ast.alias)
    for node in ast.walk(found.tree):
        if isinstance(node, kinds):
            assert any(child is node for child in ast.iter_child_nodes(parent(node)))
            assert isinstance(found.scope_of(node), Scope)


@pytest.mark.parametrize(
    ("decorators", "expected"),
    [
        ("@property", True),
        ("@functools.cached_property", True),
        ("@cuda.setter", True),
        ("@staticmethod", False),
        ("@deco(property)", False),
        ("", False),
    ],
)
def test_properties(decorators: str, expected: bool) -> None:
    node = ast.parse(f"{decorators}\ndef cuda(self): pass").body[0]
    assert is_property(node) is expected
    assert not is_property(ast.Pass())


def test_four_hundred_branches_and_deep_chains() -> None:
    branches = "if x == 0:\n    pass\n" + "".join(f"elif x == {i}:\n    torch.cuda.f({i})\n" for i in range(400))
    source = read_source(branches.encode())
    try:
        tree = parse(source)
    except UnreadableSource:
        pytest.skip("this Python does not read so many branches")
    assert len(scan(source, tree).attributes["cuda"]) == 400
    assert len(scanned("y = " + " + ".join(["x.cuda"] * 1500)).attributes["cuda"]) == 1500


# --- symtable as the oracle ------------------------------------------------------------------------------------------


def check_scopes(text: str) -> None:
    """Each scope binds the names that Python's own symbol table says are local to it."""
    found = scanned(text)
    by_line: dict[tuple[str, str, int], list[Scope]] = {}
    for scope in found.scopes.values():
        if scope.kind in ("class", "function"):
            node = scope.node
            assert isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            by_line.setdefault((scope.kind, node.name, node.lineno), []).append(scope)
    # `global x` binds at module level without a trace in the module's own table, and so does `:=` in a comprehension
    # there; Python 3.12 lists the variables of an inlined comprehension with its function.
    unlike = {n for other in found.scopes.values() for n, how in other.outward.items() if how == "global"}
    for other in found.scopes.values():
        if other.kind == "comprehension":
            unlike |= other.bindings.keys()
            unlike |= {
                binding.node.id
                for bindings in other.binder().bindings.values()
                for binding in bindings
                if isinstance(binding.node, ast.Name) and isinstance(parent(binding.node), ast.NamedExpr)
            }
    stack = [symtable.symtable(text, "m.py", "exec")]
    while stack:
        table = stack.pop()
        kind, name = str(table.get_type()).rpartition(".")[2].lower(), table.get_name()
        stack += table.get_children()
        if table.get_type() == "module":
            scopes = [found.root]
        elif kind in ("class", "function") and name not in ("lambda", "genexpr", "listcomp", "setcomp", "dictcomp"):
            scopes = by_line.get((kind, name, table.get_lineno()), [])
            assert scopes, (kind, name, table.get_lineno())
            if len(scopes) > 1:
                continue
        else:
            continue
        scope = scopes[0]
        local = {s.get_name() for s in table.get_symbols() if _binds(s, table)}
        bound = {name for name in scope.bindings if name not in scope.outward}
        assert local - unlike == bound - unlike


def _binds(symbol: symtable.Symbol, table: symtable.SymbolTable) -> bool:
    if table.get_type() == "module":
        return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
    if symbol.get_name().startswith(("__", ".")):
        return False  # __class__, __classdict__, the hidden argument of a comprehension
    return symbol.is_local() and (
        symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter() or symbol.is_namespace()
    )


NAMES = st.sampled_from(["a", "b", "cuda", "torch"])
LINES = st.one_of(
    st.builds("{} = {}".format, NAMES, NAMES),
    st.builds("{}: {} = {}".format, NAMES, NAMES, NAMES),
    st.builds("{} += {}".format, NAMES, NAMES),
    st.builds("{}, (*{}, x.{}) = y".format, NAMES, NAMES, NAMES),
    st.builds("import {} as {}".format, NAMES, NAMES),
    st.builds("import {}.{}".format, NAMES, NAMES),
    st.builds("from {} import {}".format, NAMES, NAMES),
    st.builds("del {}".format, NAMES),
    st.builds("print({}, [{} for {} in {}])".format, NAMES, NAMES, NAMES, NAMES),
    st.builds("print(lambda {}: ({} := {}))".format, NAMES, NAMES, NAMES),
    st.builds("print(({} := {}))".format, NAMES, NAMES),
    st.builds("print([({} := 1) for x in y])".format, NAMES),
    st.builds("for {} in {}: pass".format, NAMES, NAMES),
    st.builds("with x as {}, y as ({}, z): pass".format, NAMES, NAMES),
    st.builds("try: pass\nexcept E as {}: pass".format, NAMES),
    st.builds("match x:\n    case [{}, *_]: pass\n    case {{'k': y, **{}}}: pass".format, NAMES, NAMES),
    st.builds("global {}".format, NAMES),
    st.builds("nonlocal {}".format, NAMES),
)
HEADS = st.one_of(
    st.builds("def {}({}, /, b2={}, *{}2, k={}, **z):".format, NAMES, NAMES, NAMES, NAMES, NAMES),
    st.builds("class {}({}):".format, NAMES, NAMES),
    st.builds("async def {}({}: {}) -> {}:".format, NAMES, NAMES, NAMES, NAMES),
    st.just("if x:"),
    st.just("while x:"),
)


@st.composite
def blocks(draw: st.DrawFn, depth: int = 3) -> str:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        if depth and draw(st.booleans()):
            body = draw(blocks(depth - 1))
            lines.append(draw(HEADS) + "\n" + "\n".join("    " + line for line in body.split("\n")))
        else:
            lines.append(draw(LINES))
    return "\n".join(lines)


@given(blocks())
def test_scopes_are_those_of_python(text: str) -> None:
    try:
        compile(text, "m.py", "exec", dont_inherit=True)
    except SyntaxError:
        return
    check_scopes(text)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs())
def test_scopes_of_whole_programs(data: bytes) -> None:
    if compiles(data):
        check_scopes(read_source(data).text)
