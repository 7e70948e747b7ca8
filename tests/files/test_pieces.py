"""Pieces of another language in a document: what their editors say, at the places of the document."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import TARGET, project
from transplt.base.settings import Settings
from transplt.base.text.source import splice
from transplt.edits.edit import Edit, Found, Kept, Note
from transplt.engine.files.document import Document, text_of
from transplt.engine.files.embedded_pieces import in_lines, in_piece, reads
from transplt.engine.files.kind import FileKind


def document(text: str) -> Document:
    source = text_of(text.encode())
    assert source is not None
    return Document(source, "Dockerfile", FileKind.DOCKER, Settings(torch_version="2.8"), TARGET, project())


def spliced(text: str, found: list[Found]) -> str:
    edits = [each for each in found if isinstance(each, Edit)]
    ranges = sorted((*each.where, str(each.new).encode()) for each in edits if isinstance(each.where, tuple))
    return splice(text.encode(), ranges).decode()


def test_a_piece_has_the_places_of_its_document() -> None:
    text = "RUN é CUDA_VISIBLE_DEVICES=0 python train.py --device cuda && echo cuda # x"
    start, end = text.encode().index(b"CUDA"), len(text.encode()) - 4
    found = list(in_piece(document(text), start, end, FileKind.SHELL))
    new = "RUN é ASCEND_RT_VISIBLE_DEVICES=0 python train.py --device npu && echo cuda # x"
    assert spliced(text, found) == new
    (kept,) = [each for each in found if isinstance(each, Kept)]
    assert text.encode()[slice(*kept.extent)] == b"cuda"


def test_what_is_said_of_a_piece() -> None:
    text = "RUN nvidia-smi -L | wc -l"
    (note,) = in_piece(document(text), 4, len(text), FileKind.SHELL)
    assert isinstance(note, Note) and note.code == "NPU816" and text[slice(*note.extent)] == "nvidia-smi -L"


def lines(text: str, indent: str) -> list[tuple[int, int]]:
    """The lines of a text without an indentation."""
    found, at = [], 0
    for line in text.splitlines(keepends=True):
        found.append((at + len(indent), at + len(line)))
        at += len(line)
    return found


def test_lines_that_go_in_get_the_indentation() -> None:
    text = "    import torch\n    torch.cuda.init()\n"
    found = list(in_lines(document(text), lines(text, "    "), FileKind.PYTHON))
    assert spliced(text, found) == "    import torch\n    import torch_npu  # noqa: F401\n    torch.npu.init()\n"


def test_lines_do_not_go_in_behind_something_else() -> None:
    text = "> import torch\n> torch.cuda.init()\n"
    found = list(in_lines(document(text), lines(text, "> "), FileKind.PYTHON))
    assert not any(isinstance(each, Edit) for each in found)


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("import torch; torch.cuda.init()", "import torch_npu; import torch; torch.npu.init()"),
        ("import torch", "import torch"),
        ("torch.cuda.init(", "torch.cuda.init("),
        ("", ""),
    ],
)
def test_python_in_one_line(text: str, new: str) -> None:
    found = list(in_piece(document(text), 0, len(text), FileKind.PYTHON))
    assert spliced(text, found) == new


def test_nothing_of_no_lines() -> None:
    assert list(in_lines(document("cuda"), [], FileKind.SHELL)) == []


def test_what_the_grammar_reads() -> None:
    assert reads(document("echo a"), [(0, 6)], FileKind.SHELL)
    assert not reads(document("echo 'a"), [(0, 7)], FileKind.SHELL)
