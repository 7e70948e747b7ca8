"""tokens.csv: a row for each token of the input, at its place, and no other; the same in the page."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from transplt.base.finding import Ledger, TokenVerdict
from transplt.base.settings import TorchTarget
from transplt.base.text.cuda_words import WORDS
from transplt.engine.files.kind import kind_of
from transplt.engine.files.tokens import scan_other_file
from transplt.faces.cli.main import main
from transplt.project.report.tokens import COLUMNS
from transplt.rules.reasons import reasons

FILES = {
    "a.py": b"import torch\n\xc3\xbc = 'd\xc3\xbc cuda'; x.cuda()  # cuda\nuse_cuda = lib.nvtx\n",
    "latin.py": "# -*- coding: latin-1 -*-\nü = 'ü'; x.cuda()\n".encode("latin-1"),
    "bom.py": b"\xef\xbb\xbfx.cuda()\r\nuse_CUDA = 1\r\n",
    "broken.py": b"def f(:\n  cuda # cuda\n",
    "run.sh": "# cuda\nü='é' CUDA_VISIBLE_DEVICES=0 python a.py --cuda # nccl\r\n".encode(),
    "README.md": b"cuda and cuda\nNVIDIA\n",
    "env.yaml": b"device: cuda\nbackend: nccl # transplt: ignore\n",
    "k.cu": b"#include <cuda.h>\n// cuda\nvoid f() { cudaMalloc(); }\n",
    "n.ipynb": b'{"x": "cuda",\n"image/png": "' + b"cuda" * 2000 + b'"}\n',
    "p.ipynb": b'{"image/png": "' + b"iVBOR0w9GgoA/ANSUhEU0NvcC5Pq+7" * 200 + b'"}\n',  # letters of a picture: no word
    "b.bin": b"\0cuda",
}


def report(tmp_path: Path, files: dict[str, bytes], *options: str) -> Path:
    source = tmp_path / "demo"
    source.mkdir()
    for name, data in files.items():
        (source / name).write_bytes(data)
    done = CliRunner().invoke(main, ["-i", str(source), "-o", str(tmp_path / "out"), *options])
    assert done.exit_code in (0, 1), done.output
    return tmp_path / "out" / "demo_msft"


@pytest.mark.parametrize("options", [(), ("--report-only",), ("--jobs", "2"), ("--no-html",)])
def test_each_row_is_a_token_at_its_place_and_the_sums_are_those_of_the_log(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    folder = report(tmp_path, FILES, *options)
    text = (folder / "tokens.csv").read_bytes().decode("utf-8")
    assert text.splitlines()[0] == ",".join(COLUMNS) and text.count("\n") == text.count("\r\n")
    rows = list(csv.DictReader(text.splitlines()))
    assert rows == sorted(rows, key=lambda row: (row["File"], int(row["Line"]), int(row["Column"])))
    for row in rows:
        source = FILES[row["File"]].decode("latin-1" if row["File"] == "latin.py" else "utf-8").removeprefix("\ufeff")
        line = source.split("\n")[int(row["Line"]) - 1]
        assert line[int(row["Column"]) - 1 :].startswith(row["Token"]), row
        assert row["Token"].lower().encode() in WORDS and row["Reason"] and row["Code"]
    places = Counter((row["File"], row["Line"], row["Column"]) for row in rows)
    assert max(places.values()) == 1
    sums = Counter(row["Verdict"] for row in rows)
    counts = ", ".join(f"{sums[each.value]} {each.value}" for each in TokenVerdict)
    assert f"CUDA words: {len(rows)} found, {counts}" in (folder / "msFmkTranspltlog.txt").read_text("utf-8")
    per_file = Counter(row["File"] for row in rows)
    assert per_file == {
        "a.py": 4, "latin.py": 1, "bom.py": 2, "broken.py": 1, "run.sh": 2, "README.md": 3, "env.yaml": 2, "k.cu": 2,
        "n.ipynb": 2001,  # a long line without digits and capitals is a text
    }  # fmt: skip


def test_what_the_code_column_holds_is_known_to_explain(tmp_path: Path) -> None:
    folder = report(tmp_path, FILES)
    codes = {row["Code"] for row in csv.DictReader((folder / "tokens.csv").read_text("utf-8").splitlines())}
    assert {"own-name", "prose-file", "notebook-output", "NPU210", "NPU901", "NPU602"} <= codes
    for code in codes:
        assert CliRunner().invoke(main, ["explain", code]).exit_code == 0, code


def test_a_name_that_is_taken_is_left_to_the_project(tmp_path: Path) -> None:
    folder = report(tmp_path, {"a.py": b"x.cuda()\n", "tokens.csv": b"mine,cuda\n"})
    assert (folder / "tokens.csv").read_bytes() == b"mine,cuda\n"
    assert "a.py,1,3,cuda,converted,NPU210," in (folder / "transplt_tokens.csv").read_text("utf-8")


def test_the_page_shows_every_token_and_the_doubtful_first(tmp_path: Path) -> None:
    files = {**FILES, "doubt.py": b"y = x.is_cuda_ok\nz = 'a_cuda'\n"}
    page = (report(tmp_path, files) / "report.html").read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    tokens = json.loads(found[1])["tokens"]
    assert sum(cause[4] for cause in tokens["causes"]) == sum(len(flat) // 4 for _, flat, _ in tokens["files"])
    kinds = [cause[3] or cause[0] for cause in tokens["causes"]]
    order = ["high", "medium", "not understood", "left", "low", "converted"]
    assert kinds == sorted(kinds, key=order.index) and kinds[0] == "high"
    (lines,) = (lines for path, _, lines in tokens["files"] if path == "doubt.py")
    assert lines == [[1, "y = x.is_cuda_ok"], [2, "z = 'a_cuda'"]]


@given(st.lists(st.sampled_from([b"cuda", b"NCCL", b" ", b"\n", b"# ", b"\xc3\xbc", b"\xff", b"x_", b"\r\n", b"//"])))
def test_rows_of_other_files_are_the_sums(parts: list[bytes]) -> None:
    data = b"".join(parts)
    for name in ("a.sh", "a.md", "a.cu", "a.yaml", "a.ipynb", "requirements.txt"):
        other = scan_other_file(data, name, kind_of(name, data), TorchTarget("2.13", "", "", ""))
        assert other.ledger.total(other.tokens.comments) == other.tokens
        lines = data.split(b"\n")
        for row in other.ledger:
            line = lines[row.line - 1].decode("utf-8", "replace")
            assert line[row.column - 1 :].startswith(row.token)
            assert not row.cause.reason or row.cause.reason in reasons()


def test_a_ledger_costs_16_bytes_a_token() -> None:
    many = list(Ledger.of([])) + list(scan_other_file(b"cuda\n" * 1000, "a.md", kind_of("a.md", b""), TARGET).ledger)
    ledger = Ledger.of(many)
    assert list(ledger) == many and len(ledger) == 1000
    assert len(ledger.packed) == 16_000 and len(ledger.words) == len(ledger.causes) == 1


TARGET = TorchTarget("2.13", "", "", "")
