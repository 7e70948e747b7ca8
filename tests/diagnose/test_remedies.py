"""The remedy follows from what the text of a failure and the rest of the log say; where nothing is known, from the form
of the last line."""

from __future__ import annotations

import io

import pytest

from tests.diagnose.diagnoses import diagnosed
from transplt.precision.diagnose.findings import Collected
from transplt.precision.diagnose.remedies import Remedy, remedy_of
from transplt.precision.diagnose.scan import LogScan


def remedy(text: str) -> Remedy:
    """The remedy of the first failure."""
    collected = Collected()
    LogScan("0.log", collected).scan(io.BytesIO(text.encode()))
    return remedy_of(collected.failures()[0], collected.clues, collected.torch)


REFUSED = "RuntimeError: call aclnnFoo failed, error code is 161002\nAclNN_Parameter_Error(EZ1001): "


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("The k-axis of the two inputs are different.", "inner dimensions"),
        ("The dim num of x must be in [2, 6], but got 7.", "number of dimensions"),
        ("expected dtype of x is one of [DT_FLOAT], but got DT_DOUBLE: dtype not support.", "the type of one tensor"),
        ("When scale dtype is bfloat16, out dtype should also be bfloat16", "the type of one tensor"),
        ("this platform only support transpose_x2 true, actual false", "transposed"),
        ("Shape [3,4] and [5,4] cannot broadcast.", "broadcast"),
        ("the input x is an empty tensor", "without elements"),
        ("storage format of weight must be NCHW, got NC1HWC0.", "layout"),
        ("the last axis should be aligned to 32", "no multiple"),
        ("shape of gamma should be equal to the last dims of x", "Two shapes"),
        ("the value of epsilon must be greater than 0", "A value of the call"),
    ],
)
def test_the_check_that_fired_says_the_cause(said: str, cause: str) -> None:
    assert cause in remedy(REFUSED + said).cause


def test_a_check_that_says_nothing_leaves_the_general_remedy() -> None:
    assert "A form of the call" in remedy(REFUSED + "no.").cause


REGISTERED = "AttributeError: '_OpNamespace' 'mine' object has no attribute 'foo'\n"
FAILED = "WARNING 09-18 10:33:14 [a.py:64] Failed to import mine_C:libmine.so: cannot open shared object file: none\n"


def test_a_library_that_was_not_loaded_explains_the_operator_that_is_not_registered() -> None:
    found = remedy(FAILED + "INFO 09-18 10:33:15 [a.py:1] loading\n" * 100 + REGISTERED)
    assert "not loaded" in found.cause and found.clues[0].number == 1
    assert not remedy(REGISTERED).clues
    assert diagnosed(FAILED).heads == []


NO_CARD = "npu-smi: dcmi module initialize failed. ret is -8005\n"


def test_rights_are_chosen_where_the_log_shows_them() -> None:
    assert "no capability" in remedy("CapEff: 0000000000000000\n" + NO_CARD).cause
    assert "owner and group" in remedy("crw-rw---- 1 1000 1000 236, 3 Jan 1 00:00 /dev/davinci3\n" + NO_CARD).cause
    assert "Which of the three" in remedy("CapEff: 000001ffffffffff\n" + NO_CARD).do[0]


def test_the_library_of_a_third_party_wants_another_cann() -> None:
    text = "dlopen: /opt/mine/libmine_npu.so: undefined symbol: _ZN2ge8Operator7SetAttrEPKcb\n"
    assert "third party" in remedy(text).cause
    own = "/usr/local/Ascend/lib64/libge_runner.so: undefined symbol: _ZN2ge8Operator7SetAttrEPKcb\n"
    assert "third party" not in remedy(own).cause


def test_switches_of_torch_npu_are_told_to_programs_of_torch_alone() -> None:
    error = "EZ9999: Inner Error!\n errorStr: The MPU address access is invalid.\n"
    steps = "\n".join(remedy("import mindspore\n" + error).do)
    assert "only torch_npu reads ASCEND_LAUNCH_BLOCKING" in steps
    assert "ASCEND_LAUNCH_BLOCKING=1" in "\n".join(remedy("import torch\n" + error).do)
    assert "ASCEND_LAUNCH_BLOCKING=1" in "\n".join(remedy(error).do)


def test_a_warning_at_import_does_not_stand_before_what_ended_the_run() -> None:
    warned = "/x/cextension.py:34: UserWarning: The version of bitsandbytes was compiled without GPU support.\n"
    said = diagnosed(warned + "Traceback (most recent call last):\nFooError: no bar\n")
    assert said.heads == ["?"]
    assert diagnosed(warned).heads == ["bitsandbytes-cuda"]


OOM = "NPU out of memory. Tried to allocate 2.00 GiB"
MISSING = "ImportError: libascend_hal.so: cannot open shared object file"


@pytest.mark.parametrize(
    ("first", "later", "head"),
    [("10:00:00", "10:30:00", "libascend-hal-missing"), ("10:00:00", "10:00:09", "npu-out-of-memory")],
)
def test_what_was_got_over_comes_after_what_ended_the_run(first: str, later: str, head: str) -> None:
    quiet = "step 1\n" * 100
    log = f"2025-01-02 {first} RuntimeError: {OOM}\n{quiet}2025-01-02 {later} {MISSING}\n"
    assert diagnosed(log).heads[0] == head
    two = f"[rank0]: 2025-01-02 {first} RuntimeError: {OOM}\n{quiet}[rank1]: 2025-01-02 {later} {MISSING}\n"
    assert diagnosed(two).heads[0] == "npu-out-of-memory"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("step 2\nKilled\n", "killed"),
        ("./run.sh: line 3: 12345 Killed                  python train.py\n", "killed"),
        ("Bus error (core dumped)\n", "bus-error"),
        ("exitcode  : -9 (pid: 4711)\n", "host-out-of-memory"),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n", "uncaught-exception"),
        ("docker: Error response from daemon: no such image.\n", "container-start"),
        ("train.py: error: argument --lr: invalid float value: 'a'\n", "command-line"),
        ("start\nunsupported builtin op: topk\n", "?"),
        ("aclFooInit failed, ret 3\nbye\n", "?"),
    ],
)
def test_the_end_of_a_log_is_the_last_resort(text: str, name: str) -> None:
    assert diagnosed(text).heads[:1] == [name]
    assert remedy(text).do


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 3: val_error: 0.12\ndone\n",
        "Best model saved\n0 failed, 12 passed\n",
        "mean absolute error: 3\n",
        "Test error rate 3\n",
        "3. Replace torch.export.export: not supported on NPU (hours, 1 place)\n",
        "WARNING: could not load optional part x: no such file\n",
        "INFO 10-11 11:32:59 [a.py:1] connection failed, retry 1\n",
        "left: 1 token, and what is in the files that failed (see report.html)\n",
        "the killed process was replaced\n",
        "Failed samples: 0\n",
    ],
)
def test_a_log_that_ends_well_is_left_alone(text: str) -> None:
    assert diagnosed(text).heads == []


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("Traceback (most recent call last):\nKeyError: 'foo'\n", "a dict does not have"),
        ("Traceback (most recent call last):\nFooError: gone\n", "No row of errors"),
        ("worker 3 exited with exit code -7\n", "bus error"),
    ],
)
def test_a_line_that_nobody_knows_is_read_by_its_form(text: str, cause: str) -> None:
    assert cause in remedy(text).cause
