"""One file from bytes to bytes: what is kept, what is verified, and what is taken back."""

from __future__ import annotations

import ast
import codecs
import sys
from collections.abc import Callable
from dataclasses import replace

import libcst as cst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.held import compiles, rebuilt
from tests.fuzz.programs import expressions, programs
from tests.harness import migrate
from transplt.base.finding import FileResult, Level, Status
from transplt.base.settings import Settings
from transplt.base.text.source import read_source, splice
from transplt.edits.edit import Beside, Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.transform import CannotRewrite
from transplt.edits.work import Work
from transplt.engine import plan as planning
from transplt.engine.engine import ProjectFacts, index_source, migrate_source

LINE = b"import torch_npu  # noqa: F401\n"
PLAIN = Settings()


def converted(data: bytes, settings: Settings = PLAIN) -> FileResult:
    """Migrate and hold what must hold for every readable file."""
    result = migrate_source(data, "m.py", settings)
    assert result.status is Status.OK
    compile(result.data, "m.py", "exec", dont_inherit=True)
    source = read_source(data)
    parts = [(f.span.start, f.span.end, f.edit.after.encode()) for f in result.findings if f.applied and f.edit]
    assert source.encode(splice(source.utf8, parts)) == result.data
    assert migrate_source(result.data, "m.py", PLAIN).data == result.data
    return result


# --- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before",
    [
        b"import torch\r\nx.cuda()\r\n",
        b"import torch\rx.cuda()\r",
        b"import torch\nif x:\n\ty.cuda()\n",
        b"import torch\n\x0cx.cuda()\n\x0c\n",
        b"import torch\nx.cuda()",
        b"import torch\n\n\n\nx.cuda()   \n  \n\t\n",
        codecs.BOM_UTF8 + b"import torch\nx.cuda()\n",
        "# -*- coding: gbk -*-\nimport torch\ns = '\u4e2d\u6587'; x.cuda()  # \u4e2d\n".encode("gbk"),
        b"# coding: latin-1\nimport torch\ns = '\xe9', x.cuda()\n",
        "import torch\ns = '\u00e9\U0001f600', x.cuda(), '\u00e9'\n".encode(),
        b"import torch\nx = [  # a\n    y.cuda(),  # b\n\n    # c\n]\n",
        b"import torch\nx = y \\\n    .cuda()\n",
        b"import torch\nif x: y.cuda()\nelse: z.cuda()\n",
        b"import torch\nx.cuda();\n",
    ],
)
def test_untouched_bytes_stay(before: bytes) -> None:
    result = converted(before)
    newline = b"\r\n" if b"\r\n" in before else b"\r" if b"\r" in before else b"\n"
    head = b"import torch" + newline
    wanted = before.replace(b".cuda()", b".npu()").replace(head, head + LINE.replace(b"\n", newline), 1)
    assert result.data == wanted


def test_mixed_newlines_stay() -> None:
    result = converted(b"import torch\nx.cuda()\r\ny.cuda()\nz = (\r\n  w.cuda()\n)\n")
    assert result.data == b"import torch\n" + LINE + b"x.npu()\r\ny.npu()\nz = (\r\n  w.npu()\n)\n"


@pytest.mark.parametrize("data", [b"", b"\n", b"# nothing\n", b"x = 1", b"import torch\n", codecs.BOM_UTF8])
def test_files_without_anything(data: bytes) -> None:
    result = converted(data)
    assert (result.data, result.changed, result.findings, result.tokens.found) == (data, False, (), 0)


@pytest.mark.parametrize(
    "data",
    [b"print 'cuda'\n", b"x = '\xff cuda'\n", "cuda".encode("utf-16"), b"cuda\0", b"def f(:\n cuda\n", b"\xff\n"],
)
def test_unreadable_files_are_copied_and_listed(data: bytes) -> None:
    result = migrate_source(data, "m.py", PLAIN)
    assert result.status is Status.UNREADABLE
    assert (result.data, result.changed) == (data, False)
    (finding,) = result.findings
    assert finding.code.startswith("NPU90") and finding.level is Level.MANUAL and finding.open


@pytest.mark.parametrize(
    ("path", "data", "entry", "reported"),
    [
        # no training comes to it, and it has no CUDA word: it is copied, whether code is added elsewhere or not
        ("tf/net.py", b"print 'net'\n", "", False),
        ("tf/net.py", b"print 'net'\n", "train.py", False),
        ("tf/net.py", b"print 'cuda'\n", "", True),
        ("tf/net.py", b"print 'cuda'\n", "train.py", True),
        ("net.py", b"print 'net'\n", "train.py", True),
    ],
)
def test_files_that_no_training_reaches_fail_alike_for_one_card_and_for_many(
    path: str, data: bytes, entry: str, reported: bool
) -> None:
    settings = replace(PLAIN, entry=entry)
    files = {"train.py": b"import net\nloss.backward()\n", "net.py": b"", "tf/net.py": b"", path: data}
    project = ProjectFacts.join([index_source(text, name, settings) for name, text in sorted(files.items())])
    found = migrate_source(data, path, settings, project).findings
    assert [each.code for each in found] == ["NPU901"] * reported


# --- the language ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "async def f():\n    async with torch.cuda.stream(s) as t:\n        return [await x.cuda() async for x in y]\n",
        "if (y := x.cuda()) is not None:\n    print(y)\n",
        "match x:\n    case [a, *b] if a.is_cuda: b.cuda()\n    case P(q=1): pass\n",
        "@wrap(torch.cuda.current_stream)\ndef f(): pass\n",
        "class A(torch.nn.Module, metaclass=m(torch.cuda.Stream)):\n    x: torch.cuda.Stream = torch.cuda.Event()\n",
        "def f(a=torch.cuda.device_count(), /, *, b: int = torch.cuda.Stream()) -> torch.cuda.Event: ...\n",
        "x = lambda a, *b, c=torch.cuda.Stream(), **d: a.cuda()\n",
        "x = {**y.cuda(), 'a': [*z.cuda()]}\n",
        "del x.y[torch.cuda.current_device()]\n",
        "x[torch.cuda.current_device()] += y.cuda()\n",
        "for x.a in torch.cuda.Stream(), y.cuda():\n    break\nelse:\n    torch.cuda.synchronize()\n",
        "with torch.cuda.stream(s), torch.cuda.device(0) as d:\n    pass\n",
        "try: pass\nexcept (E, torch.cuda.OutOfMemoryError) as e: raise e\nfinally: y.cuda()\n",
        "assert torch.cuda.is_available(), f'{torch.cuda.device_count()} {x!r:>{torch.cuda.device_count()}}'\n",
        "def f():\n    global x\n    x = yield torch.cuda.Event()\n    yield from x.cuda()\n    return x.cuda()\n",
        "x = torch.cuda.Stream() if torch.cuda.is_available() else None\n",
        "print(f'{x.cuda()}' f\"{y.cuda()}\" 'z')\n",
        "x = not torch.cuda.is_available() or -torch.cuda.device_count() < 3 < torch.cuda.device_count()\n",
    ],
)
def test_every_place_of_the_language(source: str) -> None:
    data = b"import torch\n" + source.encode()
    result = converted(data)
    assert result.tokens.found == result.tokens.converted
    assert result.data == b"import torch\n" + LINE + data[13:].replace(b"cuda", b"npu").replace(
        b"torch.npu.OutOfMemoryError", b"torch.OutOfMemoryError"
    )


@pytest.mark.skipif(sys.version_info < (3, 12), reason="a form of Python 3.12")
@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("x = f'{d['cuda_x']} {y.cuda()}'\n", "x = f'{d['cuda_x']} {y.npu()}'\n"),
        ("x = f'{f'{y.cuda()}'}'\n", "x = f'{f'{y.npu()}'}'\n"),
        ("x = f'''{\n    y.cuda()  # why\n}'''\n", "x = f'''{\n    y.npu()  # why\n}'''\n"),
        ("x = f'{'\\n'.join(z.cuda() for z in y)}'\n", "x = f'{'\\n'.join(z.npu() for z in y)}'\n"),
        ("type S[T] = dict[T, torch.cuda.Stream]\n", "type S[T] = dict[T, torch.npu.Stream]\n"),
        ("def f[T: torch.cuda.Stream](x: T): ...\n", "def f[T: torch.npu.Stream](x: T): ...\n"),
    ],
)
def test_newer_forms(source: str, after: str) -> None:
    result = converted(b"import torch\n" + source.encode())
    assert result.data.decode() == "import torch\n" + LINE.decode() + after


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a form of Python 3.11")
def test_except_groups() -> None:
    source = b"import torch\ntry:\n    x.cuda()\nexcept* ValueError:\n    y.cuda()\n"
    assert converted(source).data == source.replace(b"cuda", b"npu").replace(b"torch\n", b"torch\n" + LINE, 1)


# --- size ------------------------------------------------------------------------------------------------------------


def test_long_expressions_and_many_branches() -> None:
    terms = b"import torch\ny = " + b" + ".join([b"x.cuda()"] * 1500) + b"\n"
    assert converted(terms).tokens.converted == 1500
    branches = b"import torch\nif x == 0:\n    pass\n" + b"".join(
        b"elif x == %d:\n    y%d.cuda()\n" % (i, i) for i in range(400)
    )
    result = migrate_source(branches, "m.py", PLAIN)
    if result.status is Status.OK:
        assert result.data.count(b".npu()") == 400
    else:
        assert result.data == branches


@pytest.mark.parametrize("links", [101, 303, 500])
@pytest.mark.parametrize("link", [".cuda()", ".to('cuda')", ".cuda().float()"])
def test_chains_of_calls_change_in_one_run(links: int, link: str) -> None:
    """What is left out at a depth would not be as deep in the output, and a second run would change it."""
    links //= 1 + link.count("float")
    source = "import torch\nx = torch.ones(1)" + link * links + "\n"
    result = migrate_source(source.encode(), "m.py", PLAIN)
    expected = source.replace("cuda", "npu").replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n")
    assert result.data.decode() == expected
    assert not any(finding.code in ("NPU990", "NPU992") for finding in result.findings)
    assert migrate_source(result.data, "m.py", PLAIN).data == result.data


@pytest.mark.parametrize("depth", [50, 159, 400, 1500, 7000])
def test_deep_chains_never_crash(depth: int) -> None:
    data = b"import torch\nx = y" + b".cuda()" * depth + b"\nz.cuda()\n"
    result = migrate_source(data, "m.py", PLAIN)
    tokens = result.tokens
    assert tokens.found == depth + 1 == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    if result.status is Status.OK:
        # What Python parses it may still refuse to compile for its depth, the input as well as the output.
        assert ast.unparse(ast.parse(result.data).body[-1]) == "z.npu()"
    else:
        assert result.data == data


@pytest.mark.parametrize("depth", [60, 150])
def test_deep_brackets_never_crash(depth: int) -> None:
    data = b"import torch\nx = " + b"f(" * depth + b"y.cuda()" + b")" * depth + b"\n"
    result = migrate_source(data, "m.py", PLAIN)
    if result.status is Status.OK:
        assert b"y.npu()" in result.data
    else:
        assert result.data == data


def test_many_sites() -> None:
    data = b"import torch\n" + b"x = y.cuda(torch.cuda.current_device())\n" * 2000
    assert converted(data).tokens.converted == 4000


# --- verification ----------------------------------------------------------------------------------------------------

SOURCE = b"import torch\na.cuda()\nbad()\nb.cuda()\nbad()\nc.cuda()\n"


def inject(monkeypatch: pytest.MonkeyPatch, transform: Callable[[cst.CSTNode], cst.CSTNode | str]) -> None:
    """A fixer that rewrites each call of `bad`."""
    fixer = Fixer("tests.bad", code="NPU101")

    @fixer.on(ast.Call, last="bad")
    def bad(work: Work, call: ast.Call) -> Finds:
        yield Edit(call, "NPU101", "a bad edit", transform)

    with_fixer(monkeypatch, fixer)


def with_fixer(monkeypatch: pytest.MonkeyPatch, fixer: Fixer) -> None:
    """One more fixer, behind all others."""
    in_force = planning.in_force
    monkeypatch.setattr(planning, "in_force", lambda *asked, **kernels: (*in_force(*asked, **kernels), fixer))


@pytest.mark.parametrize(
    "text",
    ["(yield)", "(await x)", "(__debug__ := 1)", "(lambda x, x: 1)"],
)
def test_edits_that_break_the_file_are_taken_back_alone(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    inject(monkeypatch, lambda node: text)
    result = migrate_source(SOURCE, "m.py", PLAIN)
    assert result.data == b"import torch\n" + LINE + SOURCE[13:].replace(b"cuda", b"npu")
    taken = [finding for finding in result.findings if finding.code == "NPU992"]
    assert [finding.span.line for finding in taken] == [3, 5]
    assert all(finding.open and not finding.applied and "a bad edit" in finding.message for finding in taken)
    assert rebuilt(SOURCE, result) == result.data


@pytest.mark.parametrize(
    "around",
    [
        "def g():\n    bad()\n",
        "def g(x=bad()):\n    pass\n",
        "@bad()\ndef g():\n    pass\n",
        "class A:\n    x = bad()\n",
        "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        bad()\n",
        "class A:\n    class B:\n        def f(self):\n            bad()\n",
        "if x:\n    def f():\n        bad()\n",
    ],
)
def test_an_edit_that_does_not_compile_is_found_anywhere(monkeypatch: pytest.MonkeyPatch, around: str) -> None:
    inject(monkeypatch, lambda node: "(__debug__ := 1)")
    source = f"use_cuda = 1\ndef f():\n    return 1\n\n{around}".encode()
    result = migrate_source(source, "m.py", PLAIN)
    assert result.data == source
    (taken,) = [finding for finding in result.findings if finding.code == "NPU992"]
    assert "__debug__" in taken.message


@pytest.mark.parametrize("text", ["bad(", "return", "1 = 2", "'''", "bad() else", "x; y", "(", "#"])
def test_texts_that_are_no_expression_never_reach_the_file(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    inject(monkeypatch, lambda node: text)
    result = migrate_source(SOURCE, "m.py", PLAIN)
    assert result.data == b"import torch\n" + LINE + SOURCE[13:].replace(b"cuda", b"npu")
    assert [finding.span.line for finding in result.findings if finding.code == "NPU990"] == [3, 5]


def test_only_the_bad_one_of_many_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def sometimes(node: cst.CSTNode) -> cst.CSTNode | str:
        seen.append(1)
        return "(yield)" if cst.Module([]).code_for_node(node) == "bad(13)" else node

    inject(monkeypatch, sometimes)
    source = b"import torch\n" + b"".join(b"x%d.cuda(bad(%d))\n" % (i, i) for i in range(40))
    result = migrate_source(source, "m.py", PLAIN)
    assert result.data == b"import torch\n" + LINE + source[13:].replace(b"cuda", b"npu")
    assert [finding.span.line for finding in result.findings if finding.code == "NPU992"] == [15]
    assert len(seen) < 40 * 40, "found by halving"


def test_edits_that_a_second_run_would_change_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    inject(monkeypatch, lambda node: "bad(1 + " + cst.Module([]).code_for_node(node) + ")")
    source = SOURCE + b"use_cuda = 1\n"
    result = migrate_source(source, "m.py", PLAIN)
    assert result.data == b"import torch\n" + LINE + SOURCE[13:].replace(b"cuda", b"npu") + b"use_cuda = 1\n"
    taken = [finding for finding in result.findings if finding.code == "NPU992"]
    assert [finding.span.line for finding in taken] == [3, 5]
    assert all("second run" in finding.message for finding in taken)


@pytest.mark.parametrize("error", [CannotRewrite("no such form"), KeyError("x"), RecursionError(), AssertionError()])
def test_a_codemod_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(node: cst.CSTNode) -> cst.CSTNode:
        raise error

    inject(monkeypatch, fail)
    result = migrate_source(SOURCE, "m.py", PLAIN)
    assert result.data == b"import torch\n" + LINE + SOURCE[13:].replace(b"cuda", b"npu")
    assert [finding.span.line for finding in result.findings if finding.code == "NPU990"] == [3, 5]


def test_a_line_that_breaks_the_file_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    fixer = Fixer("tests.line", code="NPU214")

    @fixer.on(ast.Module)
    def line(work: Work, tree: ast.Module) -> Finds:
        yield Edit(Beside(tree.body[1], below=True, apart=True), "NPU214", "a bad line", ")")

    with_fixer(monkeypatch, fixer)
    result = migrate_source(SOURCE, "m.py", PLAIN)
    compile(result.data, "m.py", "exec")
    assert result.data == b"import torch\n" + LINE + SOURCE[13:].replace(b"cuda", b"npu")
    (finding,) = [finding for finding in result.findings if finding.code == "NPU992"]
    assert "a bad line" in finding.message


def test_a_change_that_is_switched_off_costs_no_other() -> None:
    source = b"import torch\nx.cuda()\ny.cuda()  # transplt: ignore\nz.cuda()\n"
    result = migrate_source(source, "m.py", PLAIN)
    assert result.data == b"import torch\n" + LINE + b"x.npu()\ny.cuda()  # transplt: ignore\nz.npu()\n"


def test_a_file_that_python_only_parses_is_still_rewritten() -> None:
    """`return` outside of a function is refused by the compiler alone: the output is no worse than the input."""
    source = b"import torch\nreturn x.cuda()\n"
    result = migrate_source(source, "m.py", PLAIN)
    assert result.data in (source, b"import torch\n" + LINE + b"return x.npu()\n")
    assert result.tokens.found == 1


def test_user_rules_stay_out_of_the_second_run() -> None:
    rules = '{"rules": {"ArgsModifyRule": [{"func_name": "f", "arg_idx": 0, "arg_new": ""}]}}'
    result = migrate_source(b"f(1, 2, 3)\n", "m.py", Settings(user_rules=(("r.json", rules),)))
    assert result.data == b"f(2, 3)\n"


# --- the project -----------------------------------------------------------------------------------------------------


def facts(files: dict[str, bytes]) -> ProjectFacts:
    return ProjectFacts.join([index_source(data, path, PLAIN) for path, data in files.items()])


def edits(result: FileResult) -> set[tuple[int, int, str]]:
    return {(f.span.start, f.span.end, f.edit.after) for f in result.findings if f.applied and f.edit is not None}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs(), programs())
def test_a_file_alone_is_edited_no_more_than_in_its_project(one: bytes, other: bytes) -> None:
    project = facts({"one.py": one, "other.py": other})
    alone = migrate_source(one, "one.py", PLAIN)
    together = migrate_source(one, "one.py", PLAIN, project)
    assert together.tokens.found == alone.tokens.found
    if not project.portable:  # a project that supports NPUs already is left alone as a whole
        assert edits(alone) <= edits(together)
    if compiles(one):
        assert compiles(alone.data) and compiles(together.data)
        assert migrate_source(together.data, "one.py", PLAIN, project).data == together.data


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs(), programs())
def test_the_order_of_the_files_does_not_matter(one: bytes, other: bytes) -> None:
    files = {"one.py": one, "other.py": other}
    assert facts(files) == facts(dict(reversed(files.items())))
    results = []
    for names in (["one.py", "other.py"], ["other.py", "one.py"]):
        project = facts(files)
        made = [migrate_source(files[name], name, PLAIN, project) for name in names]
        results.append(sorted(made, key=lambda result: result.path))
    assert results[0] == results[1]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(programs())
def test_one_pass_or_two(data: bytes) -> None:
    """Migrating what was migrated, in its own new project, gives the same bytes."""
    once = migrate_source(data, "m.py", PLAIN, facts({"m.py": data}))
    twice = migrate_source(once.data, "m.py", PLAIN, facts({"m.py": once.data}))
    assert twice.data == once.data
    assert not edits(twice)


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(expressions(), st.sampled_from(["x = {}\n", "f({})\n", "if {}:\n    pass\n", "def f(a={}): ...\n"]))
def test_an_expression_wherever_it_stands(expression: str, frame: str) -> None:
    source = "import torch\nfrom torch import cuda\nimport torch.cuda as tc\n" + frame.format(expression)
    if not compiles(source.encode()):
        return
    result = migrate(source, path="m.py")
    assert rebuilt(source.encode(), result) == result.data


def test_indexing_is_remembered_for_the_same_bytes_only() -> None:
    index_source(b"import torch\nx.cuda()\n", "m.py", PLAIN)
    other = b"import torch\nyy.cuda()\n"
    assert migrate_source(other, "m.py", PLAIN).data == b"import torch\n" + LINE + b"yy.npu()\n"
