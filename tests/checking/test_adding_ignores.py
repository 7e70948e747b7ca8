"""`check --fix --add-ignores REASON`: a comment behind each line whose finding is left, where the line can take one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checking.conftest import FIXED, TRAIN, Call
from transplt.base.finding import Finding, Level, Span
from transplt.engine.files.add_ignores import with_ignores

WHY = "one card only"
TAIL = "  # transplt: ignore[NPU1] why"


def findings(*places: tuple[int, int, str]) -> list[Finding]:
    return [
        Finding("x", Span(line, 1, end, 1, 0, 0), code, Level.MANUAL, "m") for line, end, code in places
    ]


def added(path: str, text: str, *places: tuple[int, int, str]) -> tuple[str, int]:
    """The text with the comments, and for how many findings there is none."""
    data, left = with_ignores(text.encode(), path, findings(*places), "why")
    return data.decode(), len(left)


def test_what_fix_leaves_gets_a_comment(project: Path, call: Call) -> None:
    code, out, err = call("check", "--fix", "--style", "npu", "--add-ignores", WHY)
    line = "    return nn.DataParallel, model.to(device)"
    expected = FIXED.replace(line, f"{line}  # transplt: ignore[NPU507] {WHY}")
    assert (code, out) == (0, "") and (project / "train.py").read_text() == expected
    assert "wrote ignore comments in 1 line of 1 file\nfixed 2 edits in 1 file\nnothing left to do" in err
    assert call("check")[0] == 0


def test_lines_that_take_none_are_named_and_left(project: Path, call: Call) -> None:
    (project / "train.py").write_text("")
    (project / "conf.json").write_text('{"device": "cuda:x", "gpus": 1}\n')
    (project / "Dockerfile").write_text("FROM nvidia/cuda:12\n")
    code, out, err = call("check", "--fix", "--style", "npu", "--add-ignores", WHY, "--format", "concise")
    assert code == 1 and out.startswith("Dockerfile:1:") and "ignore comments are not possible in Dockerfile:1" in err
    assert (project / "Dockerfile").read_text() == "FROM nvidia/cuda:12\n"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "x = 1"), ("run.sh", "a=1 b"), ("c.yaml", "a: b"), ("p.toml", "a = 1"),
        ("requirements.txt", "torch==2.0"),
    ],
)  # fmt: skip
def test_behind_a_line(path: str, line: str) -> None:
    assert added(path, f"{line}\n", (1, 1, "NPU1")) == (f"{line}{TAIL}\n", 0)
    assert added(path, f"{line}  \r\n", (1, 1, "NPU1")) == (f"{line}{TAIL}\r\n", 0)
    assert added(path, line, (1, 1, "NPU1")) == (f"{line}{TAIL}", 0)


def test_sources_of_c() -> None:
    text = "#include <cuda.h>\nint x;  // y\n"
    assert added("a.cu", text, (1, 1, "NPU1"))[0].startswith("#include <cuda.h>  // transplt: ignore[NPU1] why\n")
    assert added("a.cu", text, (2, 2, "NPU1"))[0].endswith("int x;  // y  // transplt: ignore[NPU1] why\n")


def test_codes_of_one_line_stand_together_and_beside_those_that_are_there() -> None:
    assert added("a.py", "x\n", (1, 1, "NPU1"), (1, 1, "NPU2"), (1, 1, "NPU1")) == (
        "x  # transplt: ignore[NPU1, NPU2] why\n", 0,
    )  # fmt: skip
    text = "x  # transplt: ignore[NPU3] old\n"
    assert added("a.py", text, (1, 1, "NPU1")) == ("x  # transplt: ignore[NPU3, NPU1] old\n", 0)


def test_behind_the_last_line_where_the_first_takes_none() -> None:
    assert added("a.py", 'x = """cuda\ny"""\n', (1, 2, "NPU1")) == (f'x = """cuda\ny"""{TAIL}\n', 0)
    assert added("a.py", "x = a + \\\n    b\n", (1, 2, "NPU1")) == (f"x = a + \\\n    b{TAIL}\n", 0)


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.py", 'x = """\ncuda\n"""\n', 2),
        ("a.py", "#!/usr/bin/env python\n", 1),
        ("a.py", "x = 1 \\\n\n", 1),
        ("a.py", "print 'cuda'\n", 1),
        ("run.sh", "python a.py \\\n  --gpu 1\n", 1),
        ("run.sh", "cat <<E\ncuda\nE\n", 2),
        ("run.sh", "x='\ncuda\n'\n", 2),
        ("run.sh", "#SBATCH --gres=gpu:1\n", 1),
        ("c.yaml", "a: |\n  cuda\n", 2),
        ("c.yaml", "a: b\n  cuda\n", 1),
        ("c.yaml", "a: 'b\n  cuda'\n", 1),
        ("p.toml", 'a = """\ncuda\n"""\n', 2),
        ("requirements.txt", "torch \\\n --hash=sha256:0\n", 1),
        ("requirements.txt", "pytorch=1.4.0=py3.7_cuda10.1\n", 1),
        ("a.cu", "#define X \\\n  cuda\n", 1),
        ("a.cu", 'auto x = R"(\ncuda\n)";\n', 2),
        ("c.json", '{"a": "cuda"}\n', 1),
        ("c.ini", "a = cuda\n", 1),
        ("Makefile", "a = cuda\n", 1),
        ("README.md", "cuda\n", 1),
    ],
)
def test_what_takes_none(path: str, text: str, line: int) -> None:
    assert added(path, text, (line, line, "NPU1")) == (text, 1)


def test_one_line_without_room_leaves_the_others_theirs() -> None:
    text = 'a = 1\nx = """\ncuda\n"""\nb = 2\n'
    new, left = added("a.py", text, (1, 1, "NPU1"), (3, 3, "NPU1"), (5, 5, "NPU2"))
    assert left == 1 and new == f'a = 1{TAIL}\nx = """\ncuda\n"""\nb = 2  # transplt: ignore[NPU2] why\n'


@pytest.mark.parametrize("reason", ["", " ", "a\nb", "# noqa", "x # transplt: ignore"])
def test_a_reason_that_is_none(reason: str, project: Path, call: Call) -> None:
    code, _, err = call("check", "--fix", "--style", "npu", "--add-ignores", reason)
    assert code == 2 and "--add-ignores needs the reason" in err and (project / "train.py").read_text() == TRAIN


@pytest.mark.parametrize("more", [("--diff",), ("--fix", "--diff"), ("--fix", "-"), ("--fix", "--watch")])
def test_what_it_does_not_go_with(more: tuple[str, ...], project: Path, call: Call) -> None:
    code, _, err = call("check", "--add-ignores", WHY, *more)
    assert code == 2 and "--add-ignores cannot be combined" in err


def test_without_fix_it_says_what_is_missing(project: Path, call: Call) -> None:
    code, _, err = call("check", "--add-ignores", WHY)
    assert code == 2 and err.endswith("Error: --add-ignores needs --fix\n")
    assert (project / "train.py").read_text() == TRAIN
