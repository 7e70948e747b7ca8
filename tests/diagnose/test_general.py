"""What is said where an error has no row of its own: its part, its number, the lines behind it, and the order."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnoses import diagnosed
from transplt.precision.diagnose.cann_details import detail_in
from transplt.rules.error_numbers import error_of_module, general_error, readings
from transplt.rules.errors import Kind, errors_by_code
from transplt.rules.tables import read_table

NUMBERS = read_table("support/error_numbers.json")


@pytest.mark.parametrize(
    ("text", "name", "means"),
    [
        ("[PID: 7] 2026-01-02-03:04:05.678.901 Not_Supported(EH0006): aclrtX is not supported.", "code-eh0006", "acl"),
        ("EP0003: Value /npu for configuration item dump_path is invalid.", "code-ep0003", "dump"),
        ("Invalid_Argument(EZ0019): The dtype of x is float64.", "code-ez0019", "a type"),
        ("NPU function error: aclrtLaunchKernel, error code is 507027", "acl-507027", "kernel is not found"),
        ("NPU function error: aclrtLaunchKernel, error code is 507888", "acl-507888", "while it worked"),
    ],
)
def test_a_code_without_a_row_is_read_by_its_part(text: str, name: str, means: str) -> None:
    said = diagnosed(text)
    assert said.heads == [name]
    error = said.failures[0].head.error
    assert error is not None and means in error.means and error.do


@pytest.mark.parametrize(
    "text", ["error code is 123456", "E1234 is no code", "see XX1234: none", "step 507027 of 900000"]
)
def test_other_numbers_are_no_codes(text: str) -> None:
    assert diagnosed(text).named == set()


def test_no_number_is_explained_twice() -> None:
    assert not {*NUMBERS["acl"]} & {*errors_by_code()}
    assert general_error("XX0001") is None and general_error("999999") is None


def test_a_line_of_the_plog_without_a_code_names_its_module() -> None:
    said = diagnosed("[ERROR] HCCP(9,python):2025-01-02-03:04:05.678.901 [ra_host.c:77]something is wrong\n")
    assert said.heads == ["plog-hccp"] and said.failures[0].head.error is error_of_module("HCCP")
    assert "network of the cards" in error_of_module("HCCP").title
    assert error_of_module("HCCP").kind is Kind.WRAPPER


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RuntimeError: HCCL function error: HcclGetRootInfo(&id), error code is 11", "HCCL 11: a TCP connection"),
        ("[ERROR] HCCL(9,):2025-01-02-03:04:05.678.901 [a.cc:1] call trace: hcclRet -> 9", "HCCL 9: waiting"),
        ("errNo[0x0000000005000007] hcclComm init error", "HCCL 7: a resource"),
        ("halMemAlloc failed: drvRetCode=6!", "driver 6: no memory"),
        ("undefined symbol: _ZN5torch3fooERKSs", "old C++ ABI"),
        ("undefined symbol: _ZN3Mki2DlC1ERKNSt7__cxx1112basic_stringIcEE", "new C++ ABI"),
    ],
)
def test_numbers_of_other_parts_are_read(text: str, said: str) -> None:
    assert any(said in reading for reading in readings(text))


@pytest.mark.parametrize(
    "text",
    ["error code is 11", "retCode: 9 of the reader", "HCCL(9,): ret[0]", "undefined symbol: cadam32bit", "loss 5.0"],
)
def test_numbers_that_are_nobody_s_are_not(text: str) -> None:
    assert readings(text) == []


OOM = (
    "NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.00 GiB total capacity; {used} already allocated; {used} "
    "current active; {free} free; {reserved} reserved in total by PyTorch)"
)


@pytest.mark.parametrize(
    ("used", "free", "reserved", "said"),
    [
        ("55.00 GiB", "1.80 GiB", "57.00 GiB", "fills the card itself"),
        ("1010.15 MiB", "39.48 MiB", "1.02 GiB", "another process"),
        ("30.00 GiB", "1.00 GiB", "57.00 GiB", "fragmented"),
    ],
)
def test_who_holds_the_memory(used: str, free: str, reserved: str, said: str) -> None:
    (reading,) = readings(OOM.format(used=used, free=free, reserved=reserved))
    assert said in reading


def test_what_cann_says_behind_a_code_is_shown_once_and_without_what_hands_it_on() -> None:
    said = diagnosed(
        "EZ9999: Inner Error!\n"
        "EZ9999: [PID: 1] 2025-01-02-03:04:05.678.901 The size of x is odd.[FUNC:CheckX][FILE:x_infer.cc][LINE:9]\n"
        "        TraceBack (most recent call last):\n"
        "        call failed, ret:1[FUNC:ReportCallError][FILE:log_inner.cpp][LINE:1]\n"
        "        The size of x is odd.[FUNC:CheckX][FILE:x_infer.cc][LINE:9]\n"
    )
    assert said.failures[0].first.said() == ["The size of x is odd (x_infer.cc)"]
    assert detail_in("step 1 of 2") == ""


def test_a_message_that_goes_on_in_the_next_lines_is_shown_with_them() -> None:
    text = "AclNN_Parameter_Error(EZ1001):\nThe group size of y is odd,\nexpected 64.\nERROR something else\n"
    said = diagnosed(text)
    assert said.failures[0].head.text == "AclNN_Parameter_Error(EZ1001): The group size of y is odd, expected 64."


def test_a_message_of_several_lines_stays_with_the_process_that_its_first_line_names() -> None:
    said = diagnosed(
        "[rank7]:[E928 compiler_depend.ts:429] NPU function error: call aclnnAdd failed, error code is 507035\n"
        "[ERROR] 2025-09-28-07:22:30 (PID:3, Device:7, RankID:-1) ERR00100 PTA call acl api failed\n"
        "EZ9999: Inner Error!\n"
    )
    assert said.heads == ["acl-507035"] and said.failures[0].head.who == "rank 7"


def test_causes_come_before_what_says_only_that_something_failed() -> None:
    said = diagnosed(
        "(EngineCore pid=1) [ERROR] 2025-09-28-07:22:30 (PID:3, Device:7, RankID:-1) ERR00100 PTA call acl api failed\n"
        "(Worker pid=2) RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n"
        "(APIServer pid=3) RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert said.heads == ["npu-out-of-memory", "err-100", "engine-failed"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ModuleNotFoundError: No module named 'librosa'", "module-missing"),
        ("ModuleNotFoundError: No module named 'vllm.benchmarks'", "vllm-pair"),
        ("ImportError: cannot import name 'a' from 'b' (/x/b.py)", "import-name"),
        ("ImportError: cannot import name 'a' from 'triton.language' (/x/b.py)", "triton-two"),
        ("TypeError: f() got an unexpected keyword argument 'x'", "call-signature"),
    ],
)
def test_forms_of_python_s_own_errors(text: str, name: str) -> None:
    """A form is named only where no error is known that says more."""
    assert diagnosed(text).heads == [name] and diagnosed(text).named == {name}


@pytest.mark.parametrize(
    "text",
    [
        "WARNING 11-17 11:40:00 [_custom_ops.py:20] Failed to import x with ImportError: No module named 'x'",
        "2025-01-02 03:04:05 - INFO - falling back: ImportError: cannot import name 'a' from 'b'",
        "DEBUG: FileNotFoundError: [Errno 2] No such file or directory: 'cache'",
    ],
)
def test_what_a_logger_says_in_passing_is_no_error(text: str) -> None:
    assert diagnosed(text).heads == []


def test_a_package_for_cuda_is_named_by_the_frames_of_its_import_alone() -> None:
    frame = '  File "/opt/lib/python3.10/site-packages/{}", line 11, in {}\n    import x\n'
    head = "Traceback (most recent call last):\n"
    assert diagnosed(head + frame.format("transformer_engine/__init__.py", "<module>")).heads == ["cuda-package-frame"]
    assert diagnosed(head + frame.format("transformer_engine/layer.py", "forward")).heads == []
    assert diagnosed(head + frame.format("numpy/__init__.py", "<module>")).heads == []


VLLM = "ERROR 10-11 11:32:59 [model_runner_v1.py:3556] "


@pytest.mark.parametrize(
    "text",
    [
        f"{VLLM}The quux of the frobber is insufficient for this model.",
        f"(Worker_TP11 pid=15618) {VLLM}Frobbing the quux has failed",
        f"{VLLM}FrobError: no quux",
        "2024-09-20 07:49:24,787 - lmdeploy - ERROR - Engine loop failed with error: no quux",
    ],
)
def test_what_a_logger_says_as_an_error_is_shown_where_nobody_knows_it(text: str) -> None:
    assert diagnosed(text).heads == ["?"]


@pytest.mark.parametrize(
    "text",
    [
        f"{VLLM}    raise FrobError('cannot frob')",
        f'{VLLM}  File "/x/model_runner.py", line 3, in failed',
        f"{VLLM}Traceback (most recent call last):",
        f"{VLLM}Recommended solutions:",
        f"{VLLM}                ^^^^^^^^^",
        f"{VLLM}Dumping input data of the step that failed",
        "INFO 10-11 11:32:59 [a.py:1] Nothing failed, retrying is not supported",
        "The run of last week failed",
    ],
)
def test_lines_of_a_traceback_and_of_a_list_are_no_errors_of_their_own(text: str) -> None:
    assert diagnosed(text).heads == []
