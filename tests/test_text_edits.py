"""Files that are not Python are edited by the rules of the engine: records, ignores, levels, account, second run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from transplt.base.finding import FileResult, Level, TokenCount
from transplt.base.settings import Settings, TorchTarget
from transplt.edits.edit import Edit, Finds, Kept, Note
from transplt.engine.files import editors
from transplt.engine.files.document import Document
from transplt.engine.files.kind import FileKind
from transplt.engine.files.other_file import migrate_other

TARGET = TorchTarget("2.8", "", "2.8.0", "8.5.0", "2.8.0")


class Renames:
    """An editor that writes hccl for each nccl; `later` is what it makes of its own output."""

    def __init__(self, level: Level = Level.SAFE, later: str = "", why: str = "") -> None:
        self.level, self.later, self.why = level, later, why

    def changes(self, document: Document) -> Finds:
        for old, new in (("nccl", "hccl"), ("hccl", self.later)) if self.later else (("nccl", "hccl"),):
            at = -1
            while (at := document.utf8.find(old.encode(), at + 1)) >= 0:
                yield Edit((at, at + 4), "NPU801", f"{old} becomes {new}", new, self.level)
        if (at := document.utf8.find(b"cuda_ids")) >= 0:
            yield Kept((at, at + 8), "key")
        if (at := document.utf8.find(b"nvcc")) >= 0:
            yield Note((at, at + 4), "NPU806", Level.MANUAL, "a compiler")

    def broken(self, document: Document, changed: Document) -> str:
        return self.why


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch


def migrated(patch: pytest.MonkeyPatch, text: bytes, editor: Renames | None = None, **settings: object) -> FileResult:
    chosen = editor or Renames()
    entry = editors._Entry("this", frozenset({FileKind.SHELL}), (b"cuda", b"nccl", b"hccl", b"nvcc"))
    patch.setattr(editors, "EDITORS", (entry,))
    patch.setattr(editors, "import_module", lambda name: chosen)
    return migrate_other(text, "run.sh", FileKind.SHELL, Settings(**settings), TARGET)[0]  # type: ignore[arg-type]


def test_an_edit_is_made_recorded_and_counted(edit: pytest.MonkeyPatch) -> None:
    result = migrated(edit, "é --backend nccl\n".encode())
    assert result.data.decode() == "é --backend hccl\n" and result.changed
    (finding,) = result.findings
    assert finding.applied and finding.edit is not None
    assert (finding.span.line, finding.span.column, finding.edit.before, finding.edit.after) == (1, 13, "nccl", "hccl")
    assert result.tokens == TokenCount(1, converted=1)


def test_a_byte_order_mark_and_line_ends_stay(edit: pytest.MonkeyPatch) -> None:
    assert migrated(edit, b"\xef\xbb\xbfa nccl\r\nb nccl").data == b"\xef\xbb\xbfa hccl\r\nb hccl"


def test_what_is_said_or_kept_needs_no_other_finding(edit: pytest.MonkeyPatch) -> None:
    result = migrated(edit, b"nvcc x\ncuda_ids=1\ncuda\n")
    assert [(each.code, each.span.line) for each in result.findings] == [("NPU806", 1), ("NPU801", 3)]
    assert result.tokens == TokenCount(3, manual=2, ignored=1)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (b"nccl # transplt: ignore[NPU801]\n", {}),
        (b"nccl\n", {"per_file_ignores": (("*.sh", ("NPU8",)),)}),
    ],
)
def test_what_is_switched_off_stays(edit: pytest.MonkeyPatch, text: bytes, settings: dict[str, object]) -> None:
    result = migrated(edit, text, **settings)
    assert not result.changed and result.tokens == TokenCount(1, ignored=1)


def test_an_unsafe_edit_is_offered(edit: pytest.MonkeyPatch) -> None:
    result = migrated(edit, b"nccl\n", Renames(Level.UNSAFE))
    assert not result.changed and [each.applied for each in result.findings] == [False]
    assert migrated(edit, b"nccl\n", Renames(Level.UNSAFE), unsafe_fixes=True).data == b"hccl\n"


def test_what_a_second_run_would_change_is_taken_back(edit: pytest.MonkeyPatch) -> None:
    result = migrated(edit, b"nccl\n", Renames(later="xccl"))
    assert not result.changed and [each.code for each in result.findings] == ["NPU992"]
    assert "a second run would change it again" in result.findings[0].message


def test_what_its_format_does_not_read_is_taken_back(edit: pytest.MonkeyPatch) -> None:
    result = migrated(edit, b"nccl\n", Renames(why="no shell reads it"))
    assert not result.changed and "no shell reads it" in result.findings[0].message


def test_other_bytes_than_utf8_are_left(edit: pytest.MonkeyPatch) -> None:
    result = migrated(edit, b"\xe9 nccl\n")
    assert not result.changed and [each.code for each in result.findings] == ["NPU801"]


def test_with_changed_lines_alone(edit: pytest.MonkeyPatch) -> None:
    result = migrated(edit, b"nccl\nnccl\n", only_lines=(("run.sh", ((2, 2),)),))
    assert result.data == b"nccl\nhccl\n"
