"""Whole logs: ordinary ones, several ranks, tracebacks, and hostile ones."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from tests.diagnose.diagnoses import diagnosed
from transplt.precision.diagnose.findings import Collected
from transplt.precision.diagnose.log_pieces import PIECE
from transplt.precision.diagnose.report import Source, diagnosis_text
from transplt.precision.diagnose.scan import LogScan
from transplt.precision.diagnose.stacks import Project, own_frame

PROGRESS = "".join(
    f"\r{n:3}%|{'#' * (n // 10):10}| {n}/100 [00:{n:02}<00:10, 5.98it/s, loss={3 - n / 50:.3f}]" for n in range(100)
)
#: Logs of trainings in which nothing is wrong with the card.
ORDINARY = {
    "progress": f"Loading checkpoint shards: 100%|####| 2/2 [00:12<00:00, 6.04s/it]\n{PROGRESS}\nepoch 1 done, acc 0.91\n",
    "json lines": '{"loss": 2.345, "grad_norm": 1.25, "learning_rate": 0.0003, "epoch": 0.5, "step": 107002}\n' * 50,
    "numbers like codes": "step 507015 loss 2.1\nsamples 561002 of 999999\nhash E10001 ok\nmodel EZ9999 loaded\nid=107001\n",
    "warnings": (
        "/usr/lib/python3.10/site-packages/torch/nn/modules/module.py:1: UserWarning: Error handling is deprecated\n"
        "W0719 18:42:55.168000 1315 torch/distributed/run.py:779] Setting OMP_NUM_THREADS environment variable\n"
        "[2024-05-21 11:58:06,441] [INFO] [comm.py:637:init_distributed] cdb=None\n"
        " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.\n"
        "FutureWarning: `clean_up_tokenization_spaces` was not set. error rate 0.0, failed: 0, skipped: 2\n"
    ),
    "harmless": (
        "<frozen importlib._bootstrap>:671: ImportWarning: TEMetaPathLoader.exec_module() not found; falling back\n"
        "torch_npu/utils/storage.py:38: UserWarning: TypedStorage is deprecated. It will be removed in the future\n"
        "Warning: Non finite check and unscale on NPU device!\nGradient overflow. Skipping step\n"
    ),
    "deepspeed": (
        "[2024-05-21 11:58:06,441] [INFO] [real_accelerator.py:191:get_accelerator] Setting ds_accelerator to npu\n"
        "[2024-05-21 11:58:07,012] [INFO] [loss_scaler.py:190:update_scale] OVERFLOW! Rank 0 Skipping step.\n"
        "[Rank 0] (after 100 iterations) memory (MB) | allocated: 2048.0 | max allocated: 4096.0 | reserved: 5000.0\n"
    ),
    "megatron": (
        " iteration      100/  500000 | consumed samples:  12800 | elapsed time per iteration (ms): 1234.5 | learning rate: "
        "1.0E-04 | lm loss: 6.1E+00 | loss scale: 65536.0 | number of skipped iterations: 0 | number of nan iterations: 0 |\n"
    )
    * 20,
    "names of parameters": "module.layer1.0.conv1.weight\nmodule.fc.bias initialised\ntorch._C is loaded\nnvcc is not needed\n",
    "an end by the keyboard": 'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\nKeyboardInterrupt\n',
    "words of other programs": (
        "listening on port 29500\nlisten on port 8080 ok\nsetup failed! trying again\nstatus: 200000 samples read\n"
        "the working set has 507015 rows, result = 500000 images, errno: 0, errorCode=0\nub overflow protection is on\n"
        "opType: 3, Equal\nop type = Conv2D\nthe process uses call aclnnAdd\ngrid should be less than wide\n"
        "Index 5 out of range [0, 4]\nASCEND_RT_VISIBLE_DEVICES=0,1 is set\ntransport init done\n"
    ),
    "environment": "MASTER_PORT=29500\nASCEND_RT_VISIBLE_DEVICES=0,1\nHCCL_CONNECT_TIMEOUT=600\nTASK_QUEUE_ENABLE=2\n",
}
#: Errors of the program itself: told as not known, and never as one of the card.
OF_THE_PROGRAM = {
    "key": 'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n    x["a"]\nKeyError: \'a\'\n',
    "shape": (
        'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n    a @ b\n'
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)\n"
    ),
    "file": (
        'Traceback (most recent call last):\n  File "train.py", line 4, in <module>\n    open("x")\n'
        "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.json'\n"
    ),
    "module": (
        'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    import datasets\n'
        "ModuleNotFoundError: No module named 'datasets'\n"
    ),
    "assertion": (
        "[rank1]: Traceback (most recent call last):\n"
        '[rank1]:   File "/home/u/train.py", line 9, in main\n[rank1]:     assert n > 0\n[rank1]: AssertionError\n'
    ),
    "state": (
        "RuntimeError: Error(s) in loading state_dict for Net:\n"
        '\tsize mismatch for fc.weight: copying a param with shape torch.Size([10]) from checkpoint\n'
    ),
}  # fmt: skip

OOM = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)"
TIMEOUT = "EI0002: [PID: 70{}] 2025-04-08-18:{}:20.444.436 The wait execution of the Notify register times out."


@pytest.mark.parametrize("log", ORDINARY.values(), ids=[*ORDINARY])
def test_an_ordinary_log_gives_no_alarm(log: str) -> None:
    assert diagnosed(log).heads == []


@pytest.mark.parametrize("log", OF_THE_PROGRAM.values(), ids=[*OF_THE_PROGRAM])
def test_an_error_of_the_program_is_not_one_of_the_card(log: str) -> None:
    """It is shown as it stands, or by its form; its page says that it is no matter of the card."""
    said = diagnosed(log)
    forms = {"shapes-of-program", "path-missing", "module-missing", "weights-do-not-fit"}
    assert said.named <= forms and len(said.heads) == 1


def test_an_unknown_error_is_shown_with_what_is_around_it() -> None:
    said = diagnosed("before 1\nbefore 2\nbefore 3\nValueError: odd\nafter 1\nafter 2\nafter 3\n")
    head = said.failures[0].head
    assert (head.text, head.number) == ("ValueError: odd", 4)
    assert [line for line in head.around if line] == ["before 2", "before 3", "after 1", "after 2"]


# --- several ranks ---------------------------------------------------------------------------------------------------


def test_the_cause_comes_before_those_that_waited_for_it() -> None:
    """In the file of rank 0 the timeout is all there is; the cause is in another file, and earlier."""
    waiting = [f"2025-04-08 17:00:00,000 start\n{TIMEOUT.format(n, 30 + n)}\n" for n in range(3)]
    failed = f"2025-04-08 17:00:00,000 start\n2025-04-08 18:01:02,003 step 7\n{OOM}\n"
    said = diagnosed(*waiting, failed, names=("rank_0.log", "rank_1.log", "rank_2.log", "rank_3.log"))
    assert said.heads == ["npu-out-of-memory", "hccl-ei0002"]
    assert (said.failures[0].head.who, str(said.failures[0].head.moment)) == ("rank 3", "2025-04-08 18:01:02.003")
    assert said.failures[1].times == 3 and len(said.failures[1].who) == 3


def test_the_cause_comes_first_even_where_it_is_written_last() -> None:
    assert diagnosed(f"{TIMEOUT.format(1, 30)}\n" + "x\n" * 100 + f"{OOM}\n").heads == [
        "npu-out-of-memory",
        "hccl-ei0002",
    ]


def test_of_two_causes_the_earlier_one_comes_first() -> None:
    first = "2025-04-08 18:00:00,000\nRuntimeError: Tensors must be contiguous\n"
    second = f"2025-04-08 17:59:00,000\n{OOM}\n"
    assert diagnosed(first, second).heads == ["npu-out-of-memory", "hccl-not-contiguous"]


@pytest.mark.parametrize(
    ("line", "who"),
    [
        (f"[rank3]: {OOM}", "rank 3"), (f"[default3]:{OOM}", "rank 3"), (f"[3]: {OOM}", "rank 3"),
        (f"worker-1: {OOM}", "worker-1"), (f"(VllmWorker rank=1 pid=97) {OOM}", "rank 1"),
        (f"(Worker pid=1) (Worker_TP1 pid=1) ERROR 03-25 06:14:02 [a.py:880] {OOM}", "Worker_TP1 pid=1"),
        ("[ERROR] 2025-01-01-00:00:00 (PID:5, Device:0, RankID:16) ERR00100 PTA call acl api failed.", "rank 16"),
        ("EI0002: [PID: 7277] 2024-11-28-11:59:30.645.648 The wait", "process 7277"),
        ("[ERROR] HCCL(130250,python):2021-10-14-00:50:50.787.375 [a.cc:1][1]get socket timeout, total[4]", "process 130250"),
        (f"[rank1]:[W1031 21:35:04.8 a.ts:57] {OOM}", "rank 1"), (OOM, ""),
    ],
)  # fmt: skip
def test_who_wrote_a_line(line: str, who: str) -> None:
    assert diagnosed(line).failures[0].head.who == who


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        ("EI0002: [PID: 7] 2024-11-28-11:59:30.645.648 The wait", "2024-11-28 11:59:30.645648"),
        (f"[2024-05-21 11:58:06,441] {OOM}", "2024-05-21 11:58:06.441"),
        (f"(w pid=1) ERROR 12-10 10:52:09 [a.py:58] {OOM}", "12-10 10:52:09"),
        (f"[E1029 03:18:08.667296670 a.ts:444] {OOM}", "10-29 03:18:08.667296"),
    ],
)
def test_when_a_line_was_written(line: str, moment: str) -> None:
    found = diagnosed(line).failures[0].head.moment
    assert str(found or "") == moment


# --- the line of the user's source ------------------------------------------------------------------------------------

STACK = """[rank0]: Traceback (most recent call last):
[rank0]:   File "/cluster/job/proj/train.py", line 2, in main
[rank0]:     loss = step(net)
[rank0]:   File "/cluster/job/proj/lib/steps.py", line 1, in step
[rank0]:     return net(x)
[rank0]:   File "/opt/python3.10/site-packages/torch/nn/modules/module.py", line 1518, in _call_impl
[rank0]:     return forward_call(*args, **kwargs)
[rank0]: RuntimeError: NPU function error: call aclnnAdd failed, error code is 507015
"""


def test_the_source_is_the_innermost_frame_that_is_not_installed() -> None:
    frame = own_frame(diagnosed(STACK).failures[0].first.frames, None)
    assert frame is not None
    assert (frame.path, frame.line, frame.source) == ("/cluster/job/proj/lib/steps.py", 1, "return net(x)")


def test_with_a_project_paths_are_those_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "steps.py").write_text("def step(net): return net(1)\n")
    frame = own_frame(diagnosed(STACK).failures[0].first.frames, Project(tmp_path))
    assert frame is not None
    assert (frame.path, frame.line, frame.source) == ("lib/steps.py", 1, "def step(net): return net(1)")


def test_frames_of_two_ranks_do_not_mix() -> None:
    lines = [line.split(": ", 1)[1] for line in STACK.splitlines()]
    other = [f"[rank1]: {line.replace('steps', 'others')}" for line in lines]
    mixed = [line for pair in zip(STACK.splitlines(), other, strict=True) for line in pair]
    said = diagnosed("\n".join(mixed))
    assert [len(failure.first.frames) for failure in said.failures] == [3]
    assert {Path(frame.path).name for frame in said.failures[0].first.frames} == {"train.py", "steps.py", "module.py"}


# --- hostile logs ----------------------------------------------------------------------------------------------------

HOSTILE = {
    "escapes": b"\x1b[31m\x1b]0;title\x07" + OOM.encode() + b"\x1b[0m\x1b[2J\x9b\xff\n",
    "nulls": b"\0\0\0" + OOM.encode() + b"\0\n\0\n",
    "a long line": b"x" * 3_000_000 + OOM.encode() + b"y" * 3_000_000,
    "binary before": bytes(range(256)) * 1000 + b"\n" + OOM.encode(),
    "no end": OOM.encode(),
    "carriage returns": b"\r".join([b" 5%|#   | 1/20"] * 500) + b"\r" + OOM.encode() + b"\r\n",
    "between two pieces": b"-" * (PIECE - 20) + b"\n" + OOM.encode() + b"\n",
    "a cut in a word": b"z\n" * ((PIECE - 40) // 2) + OOM.encode() + b"\n",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=[*HOSTILE])
def test_a_hostile_log_does_no_harm(data: bytes) -> None:
    collected = Collected()
    LogScan("x\x1b[2J.log", collected).scan(io.BytesIO(data))
    assert [failure.head.error and failure.head.error.name for failure in collected.failures()] == ["npu-out-of-memory"]
    text = diagnosis_text(collected, [Source("x\x1b[2J.log", 1, ())], None)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert max(map(len, text.splitlines())) < 400


def test_random_bytes_are_no_error() -> None:
    assert diagnosed(random.Random(1).randbytes(2_000_000)).named == set()


def test_what_comes_up_again_and_again_is_left_out_after_a_while() -> None:
    """What is found stays the same size, and what comes behind is still found."""
    flood = f"{OOM}\n" * 10_000 + "KeyError: 'x'\n" * 10_000 + "RuntimeError: Tensors must be contiguous\n"
    collected = Collected()
    scan = LogScan("flood.log", collected)
    scan.scan(io.BytesIO(flood.encode()))
    assert {failure.head.error.name for failure in collected.failures() if failure.head.error} >= {"npu-out-of-memory"}
    assert "hccl-not-contiguous" in {
        name
        for failure in collected.failures()
        for name in (failure.head.error.name if failure.head.error else "", *failure.beside)
    }
    assert scan.cut_short and scan.lines == 20_001


def test_many_different_unknown_errors_are_bounded() -> None:
    said = diagnosed(
        "".join(f"Odd{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}Error: x\n" + "-\n" * 70 for n in range(90))
    )
    assert len(said.heads) == 50
