"""The command: what it prints, its exit codes, and what it refuses."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import errors_table
from transplt.faces.cli.main import entry_point
from transplt.rules.errors import known_errors

OOM = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB"
LOG = f'Traceback (most recent call last):\n  File "/job/net/train.py", line 1, in <module>\n    step()\n{OOM}\n'


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["transplt", *arguments])
        code = entry_point()
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_text(call: Any, tmp_path: Path) -> None:
    (tmp_path / "rank_3.log").write_text(LOG)
    code, out, _ = call("diagnose", "rank_3.log")
    assert code == 1
    assert out.startswith("transplt diagnose: 1 error in 4 lines of 1 log; begin with the first\n\n1. The card ran out")
    assert "where     rank_3.log:4, rank 3" in out and "source    /job/net/train.py:1 in <module>: step()" in out
    assert "foretold  NPU792: More memory than the card has" in out


def test_json_and_project(call: Any, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "train.py").write_text("step(1)\n")
    code, out, _ = call("diagnose", "a.log", "--project", "net", "--format=json")
    document = json.loads(out)
    assert code == 1 and document["format"] == 1
    error = document["errors"][0]
    assert (error["name"], error["kind"], error["line"], error["times"]) == ("npu-out-of-memory", "cause", 4, 1)
    assert error["own_source"] == {"path": "train.py", "line": 1, "function": "<module>", "text": "step(1)"}
    assert error["foretold_by"] == ["NPU792", "NPU230"] and error["do"] and document["sources"][0]["lines"] == 4


def test_known_silent_errors_of_an_operator_that_a_failure_names(call: Any, tmp_path: Path) -> None:
    line = "    out = torch_npu.npu_fused_infer_attention_score(q, k, v)"
    (tmp_path / "a.log").write_text(LOG.replace("    step()", line))
    _, out, _ = call("diagnose", "a.log")
    assert "   silent    the mask is not applied to keys from position 512 on" in out and "(NPU736," in out
    _, out, _ = call("diagnose", "a.log", "--format=json")
    told = json.loads(out)["errors"][0]["silent_errors"]
    assert told[0]["operators"] == ["torch_npu.npu_fused_infer_attention_score"]
    assert all(each["what"] and each["do"] and each["source"].startswith("https://") for each in told)
    (tmp_path / "a.log").write_text(LOG)
    assert json.loads(call("diagnose", "a.log", "--format=json")[1])["errors"][0]["silent_errors"] == []


def test_nothing_found(call: Any, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("epoch 1\nWarning: Non finite check and unscale on NPU device!\n")
    code, out, _ = call("diagnose", "a.log")
    assert code == 0 and out.startswith("transplt diagnose: no error in 2 lines of 1 log\n\nNo errors:\n")


def test_standard_input(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    code, out, _ = call("diagnose", "-")
    assert code == 1 and "standard input:4" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LOG.encode())))
    assert call("diagnose", "--exit-zero")[0] == 0


def test_a_folder_of_logs(call: Any, tmp_path: Path) -> None:
    (tmp_path / "log" / "plog").mkdir(parents=True)
    (tmp_path / "log" / "plog" / "plog-77_1.log").write_text(LOG)
    (tmp_path / "log" / "picture.png").write_bytes(b"\x89PNG")
    code, out, _ = call("diagnose", "log")
    assert code == 1 and "plog-77_1.log:4, process 77" in out


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x1f\x8b\x08\x00abc", "it is compressed; unpack it first"),
        ("Error: x\n".encode("utf-16"), "it is UTF-16; save it as UTF-8 first"),
    ],
)
def test_what_is_no_log_is_refused(call: Any, tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "a.log").write_bytes(data)
    code, out, err = call("diagnose", "a.log")
    assert (code, out) == (2, "") and says in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothere.log"], "nothere.log does not exist"),
        (["empty"], "empty contains no logs"),
        (["a.log", "--project", "nothere"], "nothere is not a folder"),
        (["\x1b[2J.log"], "\\x1b[2J.log does not exist"),
    ],
)
def test_bad_input(call: Any, tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.log").write_text(LOG)
    code, out, err = call("diagnose", *arguments)
    assert (code, out) == (2, "") and says in err


def test_explain_knows_codes_of_errors(call: Any) -> None:
    code, out, _ = call("explain", "EZ9999")
    assert code == 0 and out.startswith("# EZ9999: An operator failed inside")
    assert call("explain", "ERR01002")[1].startswith("# ERR002: ")
    assert "NPU334" in call("explain", "107001")[1]
    document = json.loads(call("explain", "EI0002", "--format=json")[1])
    assert (document["code"], document["kind"]) == ("EI0002", "consequence")


def test_explain_says_who_says_a_code_that_is_not_known(call: Any) -> None:
    code, _, err = call("explain", "EI0999")
    assert code == 2 and "codes that begin with EI come from HCCL" in err


def test_pages_of_findings_name_the_errors_that_they_foretell(call: Any) -> None:
    assert "- npu-out-of-memory: The card ran out of memory" in call("explain", "NPU792")[1]
    foretold = json.loads(call("explain", "NPU724", "--format=json")[1])["errors"]
    assert {row["name"] for row in foretold} >= {"npu-forked"}


def test_the_tables_of_all_errors() -> None:
    rows = [line for line in errors_table.tables().splitlines() if line.startswith("| <a id=")]
    assert len(rows) == len(known_errors())
    assert any("`EI0002`" in row and "| consequence |" in row for row in rows)
