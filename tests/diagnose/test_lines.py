"""Sentences without a code, of CANN's parts, of programs and of people; and codes by their form."""

from __future__ import annotations

import re

import pytest

from tests.diagnose.diagnoses import diagnosed
from tests.diagnose.test_readings import told
from transplt.precision.diagnose.remedies import remedy_of, state_of
from transplt.precision.diagnose.versions_named import VersionsNamed
from transplt.rules.error_numbers import general_error, readings
from transplt.rules.errors import complaints, lines, sentences
from transplt.rules.tables import read_table

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
        ("GE", "Failed to find func by type TransData, func_name compile_info_creator", "allow_internal_format"),
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


def test_numbers_that_the_driver_and_the_stores_of_caches_give() -> None:
    assert readings("dcmi_get_card_list failed, ret = -8020")[0].startswith("DCMI -8020: the card is held by another")
    assert readings("ret = -8020") == [] and readings("device error -80") == []
    assert readings("connect failed, status: 103902") == ["HIXL 103902: not connected, or the connection broke"]
    assert readings("status: 1039020") == []
    assert readings("pull failed, ret 0x5010b00e") == ["DataDist 5010B00E: the memory of the card is full"]


@pytest.mark.parametrize(
    ("number", "names"),
    [
        ("107033", "--enforce-eager"),
        ("561108", "ops"),
        ("207012", "other side"),
        ("100011", "om"),
        ("507999", "plog"),
    ],
)
def test_numbers_of_acl_without_a_row(number: str, names: str) -> None:
    known = general_error(number)
    assert known is not None and names in " ".join(known.do)


def test_each_number_of_acl_is_explained() -> None:
    table = read_table("support/error_numbers.json")
    assert set(table["acl"]) == set(table["acl_documented"])


ATB = "[2026-01-02 03:04:05.678901] [error] [7] [operation_base.cpp:1] FooOperation {}\n"


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("inTensor [0] CheckTensorShape failed. ErrorType: 8", "shape"),
        ("tensor dimNum 0 is invalid, should >0 && <= MAX_DIM(8)", "empty tensor"),
        ("CheckIniMatch fail, ErrorType: 13", "float16"),
        ("setup fail, error code: 26", "full"),
        ("something odd", "first line of the log"),
    ],
)
def test_what_atb_refuses(said: str, names: str) -> None:
    said_of = diagnosed(ATB.format(said))
    assert said_of.heads == ["atb-refused"] and names in told(ATB.format(said))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("OSError: /foo/ext.so: undefined symbol: _ZN7c10_npu3barEv", "built against another version of torch_npu"),
        ("ImportError: libtorch_npu.so: undefined symbol: MsprofFooBar", "of different releases"),
        ("ExchangeDevice:a.ts:1 NPU function error: c10_npu::SetDevice(d), error code is 507033\nE39007: x",
         "numbers within the container"),
        ("the current working operator name is FooOperation.", "ATB's operator FooOperation"),
        ("the current working operator name is Foo.", "Foo runs by the older interface"),
        ("the current working operator name is aclnnFoo.", "Where the excerpt has none"),
        ("RuntimeError: Expected a proper Tensor but got None for argument #1 'gamma'", "?"),
        ("Loading safetensors checkpoint shards:   0% Completed | 0/9 [00:00<?, ?it/s]", "?"),
    ],
)  # fmt: skip
def test_which_of_the_causes(text: str, names: str) -> None:
    found = diagnosed(text + "\n").failures
    said = remedy_of(found[0], {}) if found else None
    if names == "?":
        assert said is None or "without weight" not in said.cause
    else:
        assert said is not None and names in " ".join((said.cause, *said.do))


@pytest.mark.parametrize(
    ("path", "server"),
    [
        ("/vllm-workspace/vllm-ascend/vllm_ascend/worker/a.py", True),
        ("/sgl-workspace/sglang/python/sglang/srt/a.py", True),
        ("/usr/lib/python3.11/site-packages/vllm/v1/a.py", True),
        ("/usr/lib/python3.11/site-packages/foo/a.py", False),
    ],
)
def test_where_a_server_fails(path: str, server: bool) -> None:
    stack = f'Traceback (most recent call last):\n  File "{path}", line 1, in f\n    x[i]\n'
    said = told(stack + "IndexError: list index out of range\n")
    assert "not from your code" in said and ("--enforce-eager" in said) is server


def test_weights_that_stand_still() -> None:
    first = state_of("Loading checkpoint shards:   0%|     | 0/4 [00:00<?, ?it/s]")
    later = state_of("Loading checkpoint shards:  50%|##   | 2/4 [00:09<00:09, 4s/it]")
    assert "driver" in first.cause and "VLLM_ENGINE_READY_TIMEOUT_S" in " ".join(later.do)


@pytest.mark.parametrize(
    ("told_of", "names"),
    [
        ('dtype=float16\nanswer: "!!!!!!!!!!!!!!!!"', "bfloat16"),
        ("the output is garbled", "One at a time"),
        ("results on the NPU differ from those of the GPU", "One at a time"),
        ("it runs on the CPU instead of the NPU", "chose its device"),
        ("容器里检测不到NPU", "ls -l /dev/davinci*"),
        ("WARNING not found NPU-specific config, using default", ""),
        ("the memory keeps growing", "memory_summary"),
        ("Memory usage is 3.2 GiB", ""),
        ("TPOT increases from 30 ms to 150 ms with the concurrency", "KV cache is full"),
        ("latency: 30 ms, concurrency: 4, increasing", ""),
        ("--dtype float16\n回复全是感叹号", "bfloat16"),
        ("the NPU is used, and its results are the same", ""),
        ("it is very slow on the NPU", "profile"),
        ("Using a slow image processor as `use_fast` is unset", ""),
        ("done!!!", ""),
    ],
)
def test_what_people_write_of_a_run_without_an_error(told_of: str, names: str) -> None:
    state = state_of("last", told_of.splitlines())
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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("vllm-ascend version: 0.13.0\nqwen3_5_moe is not known\n", "from 0.17.0rc1 on"),
        ("vllm-ascend 0.17.0rc1\nqwen3_5_moe\n", ""),
        ("vllm-ascend 0.16.0rc1\nqwen3_5_moe\n", "from 0.17.0rc1 on"),
        ("vllm-ascend 0.10.2rc1\n--enable-lora\n", "LoRA does not work"),
        ("vllm-ascend 0.10.2rc1\nlora_config=None, enable_lora=False\n", ""),
        ("vllm-ascend 0.18.0\nQwen3.5, kv_producer: the accuracy is low\n", "prefill and decode apart"),
        ("vllm-ascend 0.18.0\nQwen3.5, kv_producer\n", ""),
        ("vllm-ascend 0.18.0 or vllm-ascend 0.17.0rc1\nQwen3.5, kv_producer: accuracy\n", ""),
        (
            "vllm-ascend 0.11.0\nModel Qwen3_5 is already registered, and will be overwritten by qwen3_5\n",
            "",
        ),
    ],
)
def test_notes_on_the_release_that_a_log_names(text: str, names: str) -> None:
    named = VersionsNamed()
    named.look(text.encode())
    assert bool(named.notes()) is bool(names) and names in " ".join(named.notes())


def test_the_expressions_hold_their_groups() -> None:
    for each in (*lines(), *sentences(), *complaints()):
        assert each.pattern is not None
        used = {name for text in (each.cause, *each.do) for name in re.findall(r"\{([a-z]+\d?)\}", text)}
        assert used <= set(each.pattern.groupindex)
