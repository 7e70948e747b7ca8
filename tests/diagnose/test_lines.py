"""Sentences without a code, of CANN's parts, of programs and of people; and codes by their form."""

from __future__ import annotations

import re

import pytest

from tests.diagnose.diagnoses import diagnosed
from tests.diagnose.test_readings import told
from transplt.diagnose.remedies import remedy_of, state_of
from transplt.diagnose.versions_named import VersionsNamed
from transplt.rules.error_numbers import readings
from transplt.rules.errors import complaints, lines, sentences

PLOG = "[ERROR] {}(7,train):2026-01-02-03:04:05.678.901 [a.cc:1] [8]{}\n"


@pytest.mark.parametrize(
    ("part", "said", "names"),
    [
        ("DRV", "HDC init failed, no driver", "davinci_manager"),
        ("HCCL", "rank[0] device ip family[2] is not same as others[10].", "HCCL_SOCKET_FAMILY"),
        ("HCCL", 'fault_info["Failed to connect agent[1,3,]"]', "missing: 1,3,"),
        ("HCCL", "[Init][EnvVarParam] odd", "env | grep HCCL"),
        ("RUNTIME", "ProcessSdmaErrorInfo the value of CQE status is 8", "ECC"),
        ("RUNTIME", "halResourceIdAlloc streamid failed", "streams"),
        ("GE", "GEInitialize failed", "numpy<2"),
        ("DRV", "open /dev/davinci_manager failed, errno(2)", "usermod"),
        ("HCCL", "a sentence that nobody knows", "The text of the line says it"),
        ("RUNTIME", "CQE status is 80", "The text of the line says it"),
    ],
)
def test_a_part_of_cann_says_without_a_code(part: str, said: str, names: str) -> None:
    assert names in told(PLOG.format(part, said))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("ValueError: The fast path is not supported with foo. Please set bar=True.", "As it says: set bar=True"),
        ("ValueError: Foo does not support bar on this device.", "Foo does not support bar"),
        ("RuntimeError: FOO_CONFIG_PATH is not set.", "export FOO_CONFIG_PATH="),
        ("ImportError: foo is not installed.", "pip install foo"),
        ("AssertionError: Foo requires bar > 1, got 1.", "Foo requires bar > 1"),
        ("ValueError: 7 heads cannot be divided by 2.", "that divides it"),
        ("RuntimeError: something went wrong", "No row of errors"),
        ("RuntimeError: please contact the authors", "No row of errors"),
    ],
)
def test_a_message_that_says_what_it_lacks(text: str, names: str) -> None:
    assert names in told(text + "\n")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("    a.cpp:1:10: fatal error: torch_npu/csrc/foo.h: No such file or directory", "cann-header"),
        ("a.cpp:1:10: fatal error: 'Python.h' file not found", "header-missing"),
        ("bash: line 1: foo.h: No such file or directory", "not-there"),
        ("KeyError: 'model.layers.0.mlp.down_proj.weight'", "quant-description"),
        ("KeyError: 'weight'", "?"),
        ("Error Code : 0x80E01801", "card-fault"),
        ("error code = 0x800000, dump info: pc start", ""),
        ("insmod: ERROR: could not insert module drv_foo.ko: Invalid module format", "driver-module"),
        ("modprobe: FATAL: Module foo not found", "?"),
        ("[MIE05E000002] [llm] odd", "mindie-code"),
        ("Init compiler failed[FUNC:Report][FILE:a.cpp][LINE:1]\nInit failed[FUNC:Init][FILE:b.cpp][LINE:1]", "?"),
    ],
)  # fmt: skip
def test_which_error_a_line_is(text: str, name: str) -> None:
    assert (diagnosed(text + "\n").heads or [""])[0] == name


def test_codes_that_cann_documents() -> None:
    said = diagnosed("EE1016: [PID: 7] 2026-01-02-03:04:05.678.901 Copy failed. Reason: capture\n")
    (failure,) = said.failures
    assert failure.head.error is not None and "capture" in remedy_of(failure, {}).cause
    other = diagnosed("EP0099: [PID: 7] 2026-01-02-03:04:05.678.901 odd\n").failures[0].head.error
    assert other is not None and other.code == "EP0099"


def test_faults_of_a_card_by_their_fields() -> None:
    (memory,) = readings("Event id=0x80e01801")
    assert memory == "card 0x80E01801: HBM, the memory of the card: memory cells lost several bits (ECC)"
    assert readings("0x81078603 0x80C9800A") == [
        "card 0x81078603: a network port: the link changed",
        "card 0x80C9800A: an AI core (cube): it did not answer in time",
    ]
    assert readings("0x80000000 at 0x8fffffff, 0x81234567") == []


@pytest.mark.parametrize(
    ("told_of", "names"),
    [
        ('dtype=float16\nanswer: "!!!!!!!!!!!!!!!!"', "bfloat16"),
        ("the output is garbled", "One at a time"),
        ("it is very slow on the NPU", "profile"),
        ("Using a slow image processor as `use_fast` is unset", ""),
        ("done!!!", ""),
    ],
)
def test_what_people_write_of_a_run_without_an_error(told_of: str, names: str) -> None:
    state = state_of("last", told_of)
    assert state.read is bool(names) and names in state.cause + " ".join(state.do)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("torch_npu 2.5.1.post1\nCANN 8.0.0\n", "CANN 8.2.RC1"),
        ("vllm 0.11.0\nvllm-ascend 0.11.0rc1\n/usr/local/Ascend/ascend-toolkit/8.2.RC1/lib", "CANN 8.3.RC1"),
        ("vllm==0.9.2\nvllm_ascend==0.9.1rc1\n", "vllm 0.9.1"),
        ("torch_npu 2.5.1.post1\nCANN 8.2.RC1\n", ""),
        ("torch_npu 2.5.1.post1\nCANN 8.5.0\n", ""),
        ("torch_npu 2.5.1.post1\nCANN 8.0.0 or CANN 8.2.RC1\n", ""),
        ("quay.io/ascend/vllm-ascend:v0.11.0rc1-a3\nInitializing a V1 LLM engine (v0.11.0)\n", ""),
    ],
)
def test_releases_that_a_log_names(text: str, names: str) -> None:
    named = VersionsNamed()
    named.look(text.encode())
    assert names in named.mismatch() and bool(named.mismatch()) is bool(names)


def test_the_expressions_hold_their_groups() -> None:
    for each in (*lines(), *sentences(), *complaints()):
        assert each.pattern is not None
        used = {name for text in (each.cause, *each.do) for name in re.findall(r"\{([a-z]+\d?)\}", text)}
        assert used <= set(each.pattern.groupindex)
