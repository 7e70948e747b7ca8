"""A theme whose result does not hold is taken back as a whole; the migration and the other themes stay."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from tests.mixed_precision.test_recognise import NET, TRAIN
from transplt.edits.groups import MANY_CARDS, MIXED_PRECISION, TUNINGS
from transplt.edits.writing import Writer
from transplt.finding import Level
from transplt.themes.tunings import compile_mode


def test_what_breaks_a_file_goes_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(writer: Writer, value: str) -> None:
        writer.after(writer.work.scan.tree.body[0], ["this is no Python"], "NPU752", "a line that does not compile")

    monkeypatch.setattr(compile_mode, "plan", broken)
    source = TRAIN + "torch.cuda.synchronize()\n"
    result = migrate(source, files={"net.py": NET}, amp="native", tune=(("compile-mode", ""),))
    assert b"no Python" not in result.data
    assert b"scaler.step(optimizer)" in result.data and b"torch.npu.synchronize()" in result.data
    (taken,) = [finding for finding in result.findings if finding.code == "NPU992"]
    assert taken.level is Level.MANUAL and taken.message.startswith("taken back: everything that tuned this file")
    assert taken.help.startswith("tune it by hand")


@pytest.mark.parametrize(
    ("code", "theme"),
    [("NPU330", MANY_CARDS), ("NPU349", MANY_CARDS), ("NPU740", MIXED_PRECISION), ("NPU749", MIXED_PRECISION),
     ("NPU750", TUNINGS), ("NPU782", TUNINGS), ("NPU201", None), ("NPU350", None), ("NPU701", None), ("NPU790", None)],
)  # fmt: skip
def test_each_code_has_its_theme(code: str, theme: object) -> None:
    assert [each for each in (MANY_CARDS, MIXED_PRECISION, TUNINGS) if each.has(code)] == ([theme] if theme else [])
