"""A log for others: names are replaced, the same at each place, and what tells of the fault stays as it was."""

from __future__ import annotations

import io

import pytest

from tests.diagnose.test_command import LOG, call
from transplt.precision.diagnose.sharing import Anonymous, ends_of

__all__ = ["call"]


@pytest.mark.parametrize(
    ("line", "shared"),
    [
        ('File "/home/alice/net/train.py", line 5', 'File "/folder1/train.py", line 5'),
        (
            'File "/data/a/lib/site-packages/torch_npu/npu/utils.py"',
            'File "/folder1/site-packages/torch_npu/npu/utils.py"',
        ),
        ("cd /data/alice/vllm-ascend/vllm_ascend/worker", "cd /folder1/vllm-ascend/vllm_ascend/worker"),
        (r"open C:\Users\alice\net\a.py", "open /folder1/a.py"),
        ("/data/a/x.py and /data/a/y.py and /data/b/x.py", "/folder1/x.py and /folder1/y.py and /folder2/x.py"),
        ("HF_TOKEN=hf_abcdefghijklmnopqrstuv", "HF_TOKEN=<secret1>"),
        ("Authorization: Bearer abcdef.ghijkl", "Authorization: Bearer <secret1>"),
        ('"api_key": "0123456789abcdef"', '"api_key": "<secret1>"'),
        (
            "(Worker pid=1, ip=10.12.3.4) 10.12.3.4:80 10.9.9.9",
            "(Worker pid=1, ip=<address1>) <address1>:80 <address2>",
        ),
        ("fe80::1ff:fe23:4567:890a and aa:bb:cc:dd:ee:ff", "<address1> and <address2>"),
        ("[alice@node-7 run]$ ls", "[user1@host1 run]$ ls"),
        ("root@node-7:/opt# ls; ssh node-7", "root@host1:/opt# ls; ssh host1"),
        ("MASTER_ADDR=node17.corp.example.com", "MASTER_ADDR=host1"),
        ("GET https://bob:pw@git.corp.example.com:8443/team/x", "GET https://host1:8443/..."),
        ("write to alice.b@corp.example.com", "write to user1"),
        ("/home/alice/a.log belongs to alice", "/folder1/a.log belongs to user1"),
    ],
)
def test_what_names_somebody_is_replaced(line: str, shared: str) -> None:
    assert Anonymous().text(line) == shared


@pytest.mark.parametrize(
    "line",
    [
        "npu-smi 24.1.0.3 Version: 24.1.0.3",
        "max_tokens: 2048, pad_token: 151643, eos_token: None",
        '  File "/usr/local/Ascend/ascend-toolkit/latest/opp/x.py", line 80, in f',
        '  File "/usr/lib/python3.11/site-packages/torch/x.py", line 8, in g',
        "EZ9999[PID: 9] 2025-05-27-06:52:12.455.807 (EZ9999): dump info: pc start: 0x12c08127bb74",
        "undefined symbol: _ZN3atb15CreateOperationINS_5infer14GroupTopkParamEEEiRKT_PPNS_9OperationE",
        "connect 127.0.0.1:29500, listen 0.0.0.0:80",
        "see https://github.com/Ascend/pytorch/issues/1",
        "RuntimeError: shape [2, 3] and/or dtype torch.float16 at op/kernel",
        "loss: 0.25 lr: 1e-5 3/10 it/s",
    ],
)
def test_what_tells_of_the_fault_stays(line: str) -> None:
    assert Anonymous().text(line) == line


@pytest.mark.parametrize(
    "line", ["host=" + "a." * 100_000, "a@" * 100_000, "ab:" * 100_000, "1.2.3.4." * 40_000, "\t\n" * 100_000]
)
def test_long_lines_take_no_longer_than_their_length(line: str) -> None:
    """Each was minutes where a pattern began anew at every letter."""
    assert Anonymous().text(line) == line


def test_what_was_replaced_is_counted() -> None:
    anonymous = Anonymous(["box9"], ["bob"])
    assert (
        anonymous.text("bob on box9 in /data/a/x.py, /data/b/y.py") == "user1 on host1 in /folder1/x.py, /folder2/y.py"
    )
    assert anonymous.told() == ["2 folders", "1 user", "1 host"]


def test_of_a_long_log_both_ends_are_given() -> None:
    text = ends_of(io.BytesIO(b"first\n" + b"x" * 2_000_000 + b"\nlast"))
    assert text.startswith("first\n") and text.endswith("\nlast") and "1000011 bytes are left out here" in text
    assert ends_of(io.BytesIO(b"a\nb\n")) == "a\nb\n"


def test_the_command_writes_it_and_says_what_was_replaced(call, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "a.log").write_text(LOG)
    code, out, err = call("diagnose", "a.log", "--share", "given.txt")
    text = (tmp_path / "given.txt").read_text()
    assert (
        code == 1
        and out.startswith("transplt diagnose: 1 error")
        and "given.txt is written; replaced: 1 folder" in err
    )
    assert "/job/net" not in text and "/folder1/train.py:1 in <module>: step()" in text and "==== a.log ====" in text
    assert call("diagnose", "a.log", "--share", "a.log")[0] == 2 and (tmp_path / "a.log").read_text() == LOG
    assert call("diagnose", "-", "--share", "given.txt")[2].endswith("--share needs logs in files\n")
