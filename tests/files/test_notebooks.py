"""Notebooks: their cells are one Python program, and only the texts of cells change in the file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.finding import FileResult, TokenVerdict
from transplt.base.settings import Settings, TorchTarget
from transplt.base.text.cuda_words import WORD
from transplt.base.text.json_text import values
from transplt.base.text.source import splice
from transplt.engine.engine import index_source
from transplt.engine.files.kind import FileKind
from transplt.engine.files.notebook.cells import read_notebook
from transplt.engine.files.notebook.layout import layout_of
from transplt.engine.files.notebook.magics import masked, refused
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.python_in import other_facts
from transplt.flow.facts import ProjectFacts
from transplt.project.options import Options, make_plan
from transplt.project.tree import migrate_tree
from transplt.rules.reasons import words_of

TARGET = TorchTarget("2.8", "", "2.8.0", "8.5.0", "2.8.0")
_OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["device: cuda:0\n", "Ünïcödé \U0001f600\n"]}
NPU = "import torch_npu  # noqa: F401"


def notebook(cells: Iterable[str], lines: bool = True, **more: Any) -> dict[str, Any]:
    """A notebook of these cells; one that begins with `markdown:` or `raw:` is of that kind."""
    found = []
    for index, text in enumerate(cells):
        kind, colon, rest = text.partition(":")
        kind, text = (kind, rest) if colon and kind in ("markdown", "raw") else ("code", text)
        source: Any = text.splitlines(keepends=True) if lines else text
        cell = {"cell_type": kind, "id": f"c{index}", "metadata": {"tags": ["cuda"]}, "source": source}
        if kind == "code":
            cell |= {"execution_count": index, "outputs": [_OUTPUT]}
        found.append(cell)
    metadata = {"kernelspec": {"name": "cuda", "display_name": "cuda", "language": "python"}}
    return {"cells": found, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5} | more


#: How notebooks lie in files.
FORMS: dict[str, Callable[[Iterable[str]], bytes]] = {
    "jupyter": lambda cells: (json.dumps(notebook(cells), indent=1, ensure_ascii=False) + "\n").encode(),
    "escaped": lambda cells: json.dumps(notebook(cells), indent=2).encode(),
    "colab": lambda cells: json.dumps(notebook(cells), indent=4, ensure_ascii=False).encode(),
    "crlf": lambda cells: (json.dumps(notebook(cells), indent=1) + "\n").replace("\n", "\r\n").encode(),
    "bom": lambda cells: b"\xef\xbb\xbf" + json.dumps(notebook(cells), indent=1).encode(),
    "tabs": lambda cells: json.dumps(notebook(cells), indent="\t").encode(),
    "one line": lambda cells: json.dumps(notebook(cells)).encode(),
    "minified": lambda cells: json.dumps(notebook(cells, lines=False), separators=(",", ":")).encode(),
    "one string": lambda cells: json.dumps(notebook(cells, lines=False), indent=1, ensure_ascii=False).encode(),
}


def migrated(data: bytes, project: ProjectFacts | None = None, path: str = "demo.ipynb", **settings: Any) -> FileResult:
    """Migrate a notebook; the account adds up, the edits are those of the records, a second run changes nothing."""
    result = migrate_other(data, path, FileKind.NOTEBOOK, Settings(**settings), TARGET, project)[0]
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored
    assert tokens.found + tokens.comments == len(WORD.findall(data.lower()))
    assert result.ledger.total(tokens.comments) == tokens
    assert all(words_of(row.cause) for row in result.ledger if row.cause.verdict is TokenVerdict.IGNORED)
    bom = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    text = data.removeprefix(bom)
    edits = [(each.span.start, each.span.end, each.edit) for each in result.findings if each.applied and each.edit]
    assert all(text[start:end] == edit.before.encode() for start, end, edit in edits)
    text = splice(text, [(start, end, edit.after.encode()) for start, end, edit in edits])
    assert bom + text == result.data
    if result.changed:
        nbformat.validate(nbformat.reads(text.decode(), as_version=nbformat.NO_CONVERT))
        settings = {name: value for name, value in settings.items() if name == "style"}
        again = migrate_other(result.data, path, FileKind.NOTEBOOK, Settings(**settings), TARGET, project)[0]
        assert not again.changed, "a second run changes the output"
    return result


def said(result: FileResult, *, applied: bool) -> list[str]:
    return [f"{each.code} {each.within}" for each in result.findings if each.applied is applied and not each.ignored]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Callable[[Iterable[str]], bytes]:
    return FORMS[request.param]


Form = Callable[[Iterable[str]], bytes]


# --- edits: in every layout, and nothing else changes ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # one program: what a cell names, another one uses; the import stands in the cell of the imports
        (
            ["import torch", "device = 'cuda'", "markdown:a `cuda` é", "x = torch.zeros(2, device=device)\n"],
            [f"import torch\n{NPU}", "device = 'npu'", "markdown:a `cuda` é", "x = torch.zeros(2, device=device)\n"],
        ),
        # a guard and what it guards: a name says what it holds, as in a .py file
        (
            ["import torch", "if torch.cuda.is_available():\n    device = 'cuda'", "train(device)"],
            [f"import torch\n{NPU}", "if torch.npu.is_available():\n    device = 'npu'", "train(device)"],
        ),
        (
            [
                "import torch",
                "where = lambda device='cuda:0': run(device)",
                "def f():\n    dist_backend = 'nccl'\n    g(dist_backend)",
            ],
            [
                f"import torch\n{NPU}",
                "where = lambda device='npu:0': run(device)",
                "def f():\n    dist_backend = 'hccl'\n    g(dist_backend)",
            ],
        ),
        # a name that nobody uses as a device stays
        (["name = 'cuda'", "print(name)"], ["name = 'cuda'", "print(name)"]),
        # the last line of a cell ends without a line end, before and after
        (["import torch\n", "torch.cuda.empty_cache()"], [f"import torch\n{NPU}\n", "torch.npu.empty_cache()"]),
        (["import torch; torch.cuda.init()"], [f"{NPU}\nimport torch; torch.npu.init()"]),
        # letters that JSON writes as escapes, and quotes
        (
            ['import torch\nprint("é\\t😀", torch.cuda.is_available(), "\\"")\n'],
            [f'import torch\n{NPU}\nprint("é\\t😀", torch.npu.is_available(), "\\"")\n'],
        ),
        # no import of torch: the import goes below the imports there are
        (
            ["%load_ext autoreload\nimport os\n\nmodel.to('cuda')"],
            [f"%load_ext autoreload\nimport os\n{NPU}\n\nmodel.to('npu')"],
        ),
        (["%%time\nmodel.to('cuda')"], [f"%%time\n{NPU}\nmodel.to('npu')"]),
        # magics, lines for the shell and questions stay; what they time is code
        (
            [
                "%matplotlib inline\n!pip install \\\n  x\nimport torch\n",
                "torch.cuda?\n%timeit -n 3 torch.cuda.synchronize()",
            ],
            [
                f"%matplotlib inline\n!pip install \\\n  x\nimport torch\n{NPU}\n",
                "torch.cuda?\n%timeit -n 3 torch.npu.synchronize()",
            ],
        ),
        (
            ["import torch\nif True:\n    !ls\n    n = !ls\n    torch.cuda.init()"],
            [f"import torch\n{NPU}\nif True:\n    !ls\n    n = !ls\n    torch.npu.init()"],
        ),
        (["pip install x\nimport torch\ntorch.cuda.init()"], [f"pip install x\nimport torch\n{NPU}\ntorch.npu.init()"]),
        # a cell that Python does not read stays, the others do not mind
        (
            ["import torch", "print 'cuda'", "torch.cuda.init()"],
            [f"import torch\n{NPU}", "print 'cuda'", "torch.npu.init()"],
        ),
        # a file that a cell writes is a program of its own
        (
            ["%%writefile a.py\nimport torch\ntorch.cuda.init()\n", "!python a.py"],
            [f"%%writefile a.py\nimport torch\n{NPU}\ntorch.npu.init()\n", "!python a.py"],
        ),
        # for the shell
        (
            [
                "!CUDA_VISIBLE_DEVICES=0 python a.py",
                "%%bash\nexport CUDA_VISIBLE_DEVICES=0\n",
                "%env CUDA_VISIBLE_DEVICES=0",
            ],
            [
                "!ASCEND_RT_VISIBLE_DEVICES=0 python a.py",
                "%%bash\nexport ASCEND_RT_VISIBLE_DEVICES=0\n",
                "%env ASCEND_RT_VISIBLE_DEVICES=0",
            ],
        ),
    ],
)
def test_edits(form: Form, before: list[str], after: list[str]) -> None:
    assert migrated(form(before)).data == form(after)


@pytest.mark.parametrize(
    "cells",
    [
        ["import torch\nx = torch.zeros(2)"],
        ["markdown:torch.cuda.is_available()", "raw:device = 'cuda'"],
        ["# torch.cuda is not used\nprint('no GPU')"],
        ["%%html\n<b>cuda</b>", "%%javascript\nvar cuda = 1;"],
        ["x = '''\n%time torch.cuda\n!ls\n'''\ny = (1\n%2)"],
        ["device = 'cuda'  # transplt: ignore\nmodel.to(device)  # transplt: ignore[NPU201]"],
        [""],
        [],
    ],
)
def test_what_stays(form: Form, cells: list[str]) -> None:
    assert not migrated(form(cells)).changed


def test_a_comment_holds_for_its_line_alone(form: Form) -> None:
    before = "import torch\ntorch.cuda.init()  # transplt: ignore[NPU101]\ntorch.cuda.synchronize()"
    after = f"import torch\n{NPU}\ntorch.cuda.init()  # transplt: ignore[NPU101]\ntorch.npu.synchronize()"
    result = migrated(form([before]))
    assert result.data == form([after])
    assert [each.code for each in result.findings if each.ignored] == ["NPU101"]


@pytest.mark.parametrize(
    ("gone", "left"),
    [("a\n", "b\nc"), ("b\n", "a\nc"), ("a\nb\n", "c"), ("c\n", "a\nb"), ("b\nc\n", "a"), ("a\nb\nc\n", "")],
)
def test_lines_that_go_out_take_their_literals_along(form: Form, gone: str, left: str) -> None:
    data = form(["a\nb\nc", "d"]).removeprefix(b"\xef\xbb\xbf")
    layout = layout_of(data)
    assert layout is not None
    start = layout.program.utf8.index(gone.encode())
    place = layout.program.edit(start, start + len(gone), "", True)
    assert place is not None and place[2] == ""
    assert data[: place[0]] + data[place[1] :] == form([left, "d"]).removeprefix(b"\xef\xbb\xbf") or not left
    assert json.loads(data[: place[0]] + data[place[1] :])


def test_an_edit_does_not_go_through_all_lines_of_its_cell() -> None:
    class Lines(tuple[tuple[int, int], ...]):
        def __iter__(self) -> Iterator[tuple[int, int]]:
            raise AssertionError("a pass over all lines for each edit is quadratic")

    layout = layout_of(FORMS["jupyter"](["x.cuda()\n" * 9]))
    assert layout is not None
    (part,) = layout.program.parts
    cell = replace(part.cell, lines=Lines(part.cell.lines or ()))
    program = replace(layout.program, parts=(replace(part, cell=cell),))
    start = program.starts[0] + 18
    for extent in ((start, start + 9), (start + 2, start + 6), (start, start)):
        for new in ("", "npu\n"):
            assert program.edit(*extent, new, True) == layout.program.edit(*extent, new, True)


def test_an_edit_over_two_cells_is_none() -> None:
    layout = layout_of(FORMS["jupyter"](["a", "b"]))
    assert layout is not None
    assert layout.program.edit(layout.program.starts[0], layout.program.starts[1] + 1, "", True) is None


# --- what is said ----------------------------------------------------------------------------------------------------


def test_findings_name_cell_and_line(form: Form) -> None:
    cells = [
        "import torch",
        "markdown:text",
        "x = 1\ntorch.cuda.init()",
        "print 'cuda'",
        "!ls /opt/cuda",
        "%%cu\ncudaMalloc",
    ]
    result = migrated(form(cells))
    assert said(result, applied=True) == ["NPU403 cell 1, line 1", "NPU101 cell 3, line 2"]
    found = said(result, applied=False)
    assert found[0] == "NPU830 cell 4, line 1"
    assert found[1][6:] == " cell 5, line 1" and found[2] == "NPU803 cell 6, line 2"
    assert result.findings[2].text.endswith("(cell 4, line 1)")


def test_the_account_is_that_of_the_code() -> None:
    cells = ["markdown:cuda", "import torch\ntorch.cuda.init()  # cuda\ncuda_ids = [0]\nprint('nccl')"]
    result = migrated(FORMS["jupyter"](cells))
    found = {row.cause.reason or row.cause.verdict.value for row in result.ledger}
    assert {"notebook-text", "notebook-output", "notebook-data", "converted"} <= found
    assert result.tokens.converted == 1 and result.tokens.comments == 1


def test_a_project_says_what_its_notebooks_reach_and_the_other_way_round() -> None:
    data = FORMS["jupyter"](["from lib import place, NAME", "x = place(x, 'cuda')", "y = y.to(NAME)"])
    files = {"lib.py": b"NAME = 'cuda'\ndef place(x, where):\n    return x.to(where)\n"}
    told = other_facts(data, "demo.ipynb", Settings())
    assert told is not None
    facts = [told, *(index_source(text, name, Settings()) for name, text in files.items())]
    result = migrated(data, ProjectFacts.join(facts))
    assert b"place(x, 'npu')" in result.data
    from transplt.engine.engine import migrate_source

    assert b"NAME = 'npu'" in migrate_source(files["lib.py"], "lib.py", Settings(), ProjectFacts.join(facts)).data


def test_portable_notebooks_go_on_with_cuda() -> None:
    result = migrated(
        FORMS["jupyter"](["import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'"]), style="portable"
    )
    assert b"cuda" in result.data


@pytest.mark.parametrize(
    ("style", "cells"),
    [
        ("portable", ["x = !nvidia-smi\n%timeit x.cuda()"]),
        ("portable", ["%%time\nx.cuda()"]),
        ("portable", ["import os", "%%time\nx.cuda()"]),
        # The line ends of old Macs.
        ("npu", ["import torch\rclass C:\r    def cuda(self):\r        return x.cuda()\r"]),
        ("npu", ["\rimport torch\rx.cuda()\r", "%time x.cuda()\ny = 1"]),
    ],
)
def test_odd_cells_are_written(style: str, cells: list[str]) -> None:
    result = migrated(FORMS["one string"](cells), style=style)
    assert result.changed and not [each.code for each in result.findings if each.code.startswith("NPU99")]


def test_a_portable_notebook_has_the_names_of_the_module_written_that_it_alone_takes(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "model.py").write_text("import torch\nx = torch.zeros(1, device='cuda')\n")
    cells = ["import model", "import torch\ntorch.cuda.synchronize()"]
    (tmp_path / "net" / "lab.ipynb").write_bytes(FORMS["jupyter"](cells))
    plan = make_plan(Options(source=tmp_path / "net", out=tmp_path / "out", style="portable", jobs=1))
    out = migrate_tree(plan).output
    book = (out / "lab.ipynb").read_text()
    assert "from device import device_module" in book and "device_module.synchronize()" in book
    assert "_has_npu = " not in book and "device_module = " in (out / "device.py").read_text()


def test_a_cell_that_may_be_run_alone_reads_nothing_of_the_cells_above() -> None:
    first, text = "import torch\ndevice = 'cuda'", "import torch\ny = torch.zeros(1, device='cuda'{})"
    cells = [first, text.format(""), text.format(", dtype=x.dtype"), "x.to('cuda')"]
    for newline in ("\n", "\r\n"):
        check_cells([each.replace("\n", newline) for each in cells])


def check_cells(cells: list[str]) -> None:
    """The second cell alone stays."""
    result = migrated(FORMS["jupyter"](cells), style="portable")
    after = ["".join(cell["source"]) for cell in json.loads(result.data)["cells"]]
    assert after[1] == cells[1] and after[2:] == [each.replace("'cuda'", "DEVICE_TYPE") for each in cells[2:]]
    assert [each.span.line for each in result.findings if each.open and "run alone" in each.message]


def test_a_cell_that_others_read_from_is_no_cell_of_its_own() -> None:
    cells = ["import torch", "import torch\nmodel = torch.zeros(1).to('cuda')", "y = model.to('cuda')"]
    result = migrated(FORMS["jupyter"](cells), style="portable")
    after = ["".join(cell["source"]) for cell in json.loads(result.data)["cells"]]
    assert after[1].endswith("model = torch.zeros(1).to(DEVICE_TYPE)") and after[2] == "y = model.to(DEVICE_TYPE)"


def test_an_import_stands_above_the_comment_that_explains_the_first_statement(tmp_path: Path) -> None:
    cells = ["# no space here\nname = 'a'", "def f(x):\n    return x.cuda()", "import net"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "net.py").write_text("import torch\n")
    (tmp_path / "in" / "lab.ipynb").write_bytes(FORMS["jupyter"](cells))
    out = migrate_tree(make_plan(Options(tmp_path / "in", out=tmp_path / "out", style="portable", jobs=1))).output
    first = "".join(json.loads((out / "lab.ipynb").read_text())["cells"][0]["source"])
    assert first == f"from device import DEVICE_TYPE\n\n{cells[0]}"


def test_an_import_that_nothing_uses_any_more_stays_in_its_cell() -> None:
    imports = "import torch\nfrom torch.cuda.amp import GradScaler\nfrom torch.cuda import synchronize"
    result = migrated(FORMS["jupyter"]([imports, "s = GradScaler()\nsynchronize()"]), style="portable")
    assert b"device_module.synchronize()" in result.data and b"s = grad_scaler()" in result.data
    assert b"from torch.cuda import synchronize" in result.data and not result.tokens.manual


def test_only_changed_lines() -> None:
    data = FORMS["jupyter"](["import torch\nimport torch_npu\ntorch.cuda.init()\ntorch.cuda.init()"])
    line = data[: data.rindex(b"torch.cuda.init")].count(b"\n") + 1
    result = migrate_other(
        data, "a.ipynb", FileKind.NOTEBOOK, Settings(only_lines=(("a.ipynb", ((line, line),)),)), TARGET
    )[0]
    assert result.data.count(b"torch.npu.init") == 1 and result.data.count(b"torch.cuda.init") == 1


# --- what is no notebook of Python -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b'{"cells": [{"cell_type": "code", "source": ["torch.cuda.init()"',
        b'{"cells": "torch.cuda"}',
        b"[1, 2]",
        b"torch.cuda.init()\n\x80",
        b"[" * 100_000,
        b'{"cells": [1]}',
        json.dumps({"worksheets": [{"cells": []}, {"cells": []}], "nbformat": 3}).encode(),
    ],
)
def test_what_cannot_be_read_is_copied_and_named(data: bytes) -> None:
    result = migrate_other(data, "a.ipynb", FileKind.NOTEBOOK, Settings(), TARGET)[0]
    assert not result.changed
    if data.isascii():
        assert "NPU830" in [each.code for each in result.findings]
    if b"cuda" in data:
        assert "NPU803" in [each.code for each in result.findings]


def test_an_empty_file_is_nothing() -> None:
    assert migrated(b"").findings == ()


def test_another_language_stays_with_its_findings() -> None:
    metadata = {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}
    data = json.dumps(notebook(["x <- cuda()"], metadata=metadata), indent=1).encode()
    result = migrated(data)
    assert not result.changed and "NPU803" in [each.code for each in result.findings]


def test_nbformat_3_is_read() -> None:
    cells = [
        {"cell_type": "code", "language": "python", "input": ["import torch\n", "torch.cuda.init()"], "outputs": []}
    ]
    data = json.dumps({"worksheets": [{"cells": cells}], "metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0})
    result = migrate_other(data.encode(), "a.ipynb", FileKind.NOTEBOOK, Settings(), TARGET)[0]
    lines = json.loads(result.data)["worksheets"][0]["cells"][0]["input"]
    assert lines == ["import torch\n", f"{NPU}\n", "torch.npu.init()"]


@pytest.mark.parametrize("odd", ["\\ud800", "\\u0000", "\\r"])
def test_odd_letters_do_no_harm(odd: str) -> None:
    data = FORMS["jupyter"](["import torch\nprint('ODD')\ntorch.cuda.init()"]).replace(b"ODD", odd.encode())
    result = migrate_other(data, "a.ipynb", FileKind.NOTEBOOK, Settings(), TARGET)[0]
    json.loads(result.data)
    assert odd.encode() in result.data


# --- what must hold for every notebook -------------------------------------------------------------------------------

_PIECES = [
    "import torch",
    "torch.cuda.init()",
    "%time x.cuda()",
    "!ls /opt/cuda",
    "x = 'é'",
    "if x:",
    "    y.cuda()",
    "'''",
    "(",
    ")",
    "",
]


@given(st.lists(st.lists(st.sampled_from(_PIECES), max_size=5), max_size=4), st.sampled_from(sorted(FORMS)))
def test_any_notebook_stays_one(cells: list[list[str]], name: str) -> None:
    data = FORMS[name](["\n".join(lines) for lines in cells])
    result = migrated(data)
    before, after = (json.loads(each.decode("utf-8-sig")) for each in (data, result.data))
    for cell in (*before["cells"], *after["cells"]):
        del cell["source"]
    assert before == after


@given(st.text(alphabet="ab(\"'%!\n \\{#", max_size=40))
def test_a_mask_is_as_long_as_its_cell(text: str) -> None:
    found = masked(text.encode())
    if found is not None:
        assert len(found.utf8) == len(text.encode()) and not refused(found.utf8)


_JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(_JSON, st.booleans(), st.sampled_from([None, 1]))
def test_every_value_stands_where_it_is_said(data: Any, ascii_: bool, indent: int | None) -> None:
    text = json.dumps(data, ensure_ascii=ascii_, indent=indent)
    utf8 = text.encode("utf-8", "replace")
    for path, start, end in values(utf8, 9):
        told = json.loads(utf8)
        for key in path:
            told = told[key]
        assert json.loads(utf8[start:end]) == told


@given(st.text(max_size=30))
def test_a_cell_says_what_json_says(text: str) -> None:
    if any(0xD800 <= ord(each) < 0xE000 for each in text):
        return
    for name in ("escaped", "one string"):
        book = read_notebook(FORMS[name]([f"x{text}"]))
        assert book.cells[0].utf8.decode() == f"x{text}"
        cell, data = book.cells[0], FORMS[name]([f"x{text}"])
        for at in range(len(cell.utf8)):
            if cell.utf8[at] < 0x80 and cell.utf8[at] not in b'\\"\x7f' and cell.utf8[at] >= 0x20:
                assert data[cell.text.start(at)] == cell.utf8[at] == data[cell.text.end(at + 1) - 1]


@pytest.mark.slow
@pytest.mark.skipif("TRANSPLT_EXAMPLES" not in os.environ, reason="TRANSPLT_EXAMPLES names no folder of projects")
def test_notebooks_of_others() -> None:
    for path in sorted(Path(os.environ["TRANSPLT_EXAMPLES"]).rglob("*.ipynb")):
        data = path.read_bytes()
        result = migrate_other(data, path.name, FileKind.NOTEBOOK, Settings(), TARGET)[0]
        assert "NPU99" not in {each.code[:5] for each in result.findings}, path
        if result.changed:
            migrated(data)
        else:
            assert result.data == data


def test_of_the_tunings_only_those_of_single_lines_go_into_cells() -> None:
    cells = ["import torch\nx = torch.zeros(3).cuda()", "x[x < 0] = 0\nopt = torch.optim.Adam(x)", "n[n < 0] = 0"]
    tune = (("masked-assignment", ""), ("fused-optimizer", ""))
    result = migrated(json.dumps(notebook(cells)).encode(), tune=tune)
    assert b"x.masked_fill_(x < 0, 0)" in result.data
    assert b"n[n < 0] = 0" in result.data and b"torch.optim.Adam(x)" in result.data
    assert b"masked_fill_" not in migrated(json.dumps(notebook(cells)).encode()).data
