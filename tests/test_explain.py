"""`transplt explain`: codes, and what the tables know of a name."""

from __future__ import annotations

import json
import re
import sys

import pytest

from transplt.base.settings import TORCH_VERSIONS
from transplt.engine.analysis.known import _companions, _package, _release, facts_of, known_names, nearest, resolved
from transplt.faces.cli import main as cli
from transplt.faces.cli.completing import KnownName
from transplt.project.launch import launch_script
from transplt.rules.fault_finding import names_with_guidance
from transplt.rules.host_settings import host_settings
from transplt.rules.package_releases import asked_for
from transplt.rules.packages import packages
from transplt.rules.tables import read_table


def explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["transplt", "explain", *words])
    monkeypatch.setattr(cli, "_catch_signals", lambda: None)
    code = cli.entry_point()
    out, err = capsys.readouterr()
    return code, out, err


def told(name: str) -> list[tuple[str, str, str]]:
    return [(fact.topic, fact.code, fact.text) for fact in facts_of(name)]


@pytest.mark.parametrize(
    ("name", "topic", "code", "text"),
    [
        ("torch.cuda.amp.autocast", "Rename", "NPU103", "becomes torch.npu.amp.autocast"),
        ("torch.cuda.amp.autocast", "Support", "", "documented as supported"),
        ("torch.cuda.amp.autocast", "torch_npu", "", "torch.npu.amp.autocast is there"),
        ("torch.cuda.host_memory_stats", "Rename", "NPU104", "becomes torch.npu.host_memory_stats"),
        ("torch.cuda.host_memory_stats", "Finding", "NPU502", "has no counterpart on NPU in this version"),
        ("torch.nn.DataParallel", "Finding", "NPU507", "works on one NPU only"),
        ("torch.nn.parallel.DataParallel", "Support", "", "(as torch.nn.DataParallel)"),
        ("torch.topk", "Support", "", "documented"),
        ("aten::index", "Types refused", "", "self of index.Tensor: no complex128, complex32, complex64, uint16"),
        ("aten::index.Tensor", "Types refused", "", "(Ascend 910B (Atlas A2), Ascend 910_93 (Atlas A3))"),
        ("torch.gather", "Types refused", "", "self of gather: no complex128, complex32, complex64 ("),
        ("torch.Tensor.sort", "Types refused", "", "self of sort and self of sort.stable: no complex128"),
        ("torch.matmul", "Types refused", "", "mm: no bool, complex128"),
        ("torch.nonzero", "Advice", "NPU712", "depends on the data"),
        ("torch.nn.functional.scaled_dot_product_attention", "Faster on NPU", "NPU701", "npu_fusion_attention"),
        ("torch-npu", "Releases", "", "torch==2.14.0 with torch-npu==2.14.0, CANN 9.1.0, Python 3.10"),
        ("torch_npu", "Releases", "", "torch==2.1.0 with torch-npu==2.1.0.post17, CANN 8.3.RC1, Python 3.8 to 3.11"),
        ("torch-npu", "Every release", "", "torch-npu 2.8.0.post5, for torch 2.8.0: 2026-07-02; Python 3.9 to 3.13"),
        ("torch-npu", "Every release", "", "torch-npu 2.9.0.post8, for torch 2.9.0: 2026-09-02; Python 3.10 to 3.13"),
        ("vllm", "Goes together", "", "vllm-ascend 0.18.0: vllm 0.18.0, triton-ascend 3.2.0.dev20260322, torch 2.9.0,"),
        ("vllm-ascend", "Goes together", "", "torch-npu 2.8.0.post2, CANN 8.5.0, Python 3.10 to 3.11"),
        ("dgl-ascend", "Releases", "", "dgl-ascend 0.0.3, for dgl: 2026-10-21; Python 3.11; for aarch64"),
        ("dgl", "Releases", "", "dgl-ascend needs CANN 8.5 or newer; Ascend 910B"),
        ("cupy-cuda12x", "Package", "", "numpy-ascend, one author's fork of CuPy"),
        ("cann", "Releases", "", "torch and torch-npu have the same minor version; CANN"),
        ("torch.profiler.profile", "Rename", "NPU130", "becomes torch_npu.profiler.profile"),
        ("torch.autocast", "Form", "", 'torch.autocast("cuda") becomes torch.autocast("npu")'),
        ("torch.npu.matmul.allow_hf32", "Tuning", "", "written by a tuning"),
        ("CUDA_VISIBLE_DEVICES", "Variable", "", "becomes ASCEND_RT_VISIBLE_DEVICES; partly with the same values"),
        ("ASCEND_RT_VISIBLE_DEVICES", "Variable", "", "takes the place of CUDA_VISIBLE_DEVICES"),
        ("CUBLAS_WORKSPACE_CONFIG", "Variable", "", "without a counterpart"),
        ("ACL_DUMP_DATA", "Variable", "", "keep 0 while operators of a dump are mapped"),
        ("PTCOPY_ENABLE", "Variable", "", "scripts need it no more"),
        ("DYNAMIC_OP", "Variable", "", "ADD#MUL"),
        ("DUMP_GRAPH_LEVEL", "Variable", "", "nothing without DUMP_GE_GRAPH"),
        ("INF_NAN_MODE_ENABLE", "Finding faults", "", "sees kernels of the AI cores alone"),
        ("overflow", "Finding faults", "", "run it on one card without distributed"),
        ("torch.use_deterministic_algorithms", "Finding faults", "", "Turn it on when two runs of the same program"),
        ("torch.nn.LSTM", "Finding faults", "", "ReduceSum and ReduceMean may go against"),
        ("torch.sum", "Finding faults", "", "look at these first"),
        ("HCCL_DETERMINISTIC", "Finding faults", "", "collectives add in their own order"),
        ("shrink-model", "Finding faults", "", "fewer layers on one machine, a batch of 8 or less"),
        ("one-card", "Finding faults", "", "one card first"),
        ("flash_attn", "Package", "", "instead: torch_npu.npu_fusion_attention"),
        ("flash-attn", "Package", "", "(import flash_attn): replacement"),
        ("apex", "Finding", "NPU511", "needs an Ascend version"),
        ("deepspeed.ops.adam.FusedAdam", "Package", "", "DeepSpeed's own builder for NPUs"),
        ("deepspeed.ops.adam.FusedAdam", "Package", "", "communicates by HCCL"),
        ("torch_cluster.fps", "Package", "", "mx_driving.furthest_point_sampling has a similar meaning"),
        (
            "pytorch3d.ops.anything", "Package", "",
            "pytorch3d.ops.anything is part of pytorch3d: see transplt explain pytorch3d",
        ),
        ("pytorch3d.ops.anything", "Package", "", "pytorch3d (import pytorch3d): unsupported"),
        ("mmcv.ops.nms3d", "Kernel", "", "on NPU mx_driving.nms3d(boxes, scores, iou_threshold)"),
        ("flash_attn.flash_attn_interface.flash_attn_func", "Package", "", "is part of flash_attn"),
        ("apex.normalization.FusedLayerNorm", "Package", "", "is part of apex.normalization"),
        ("triton.language.dot", "Wrong without an error", "NPU736", "the left operand is overwritten"),
        ("triton.language.dot", "Package", "", "triton.language.dot is part of triton"),
        ("torch.nn.functional.gelu", "Wrong without an error", "NPU736", "computed with tanh"),
        ("flag_gems.enable", "Wrong without an error", "NPU736", ""),
        (
            "torch_npu.npu_fused_infer_attention_score",
            "Wrong without an error",
            "NPU736",
            "not applied to keys from position 512",
        ),
        ("triton", "Package", "", "3.2.1 (CANN 9.0)"),
        ("vllm", "Package", "", "device= and --device are gone since vllm 0.10"),
        ("megatron.core", "Package", "", "MegatronAdaptor (import megatron_adaptor"),
        ("ultralytics", "Package", "", "since 8.4.111"),
        ("ultralytics", "Package", "", "checked in 2026-11"),
        ("torch_npu.npu_mrope", "Operator of torch_npu", "", "documented for A3, A2"),
        ("torch_npu.npu_indexing", "Operator of torch_npu", "", "to be removed"),
        ("torch_npu.npu_sort_v2", "Operator of torch_npu", "", "use instead: torch.sort"),
        ("scipy.misc", "Finding", "NPU293", "imread, imresize, imsave, toimage"),
        ("scipy.misc.imread", "Finding", "NPU293", "SciPy 1.2 removed"),
        ("pkg_resources", "Finding", "NPU293", "setuptools has no pkg_resources since 82"),
        ("torch.stft", "Finding", "NPU293", "return_complex"),
        ("torch.nn.DataParallel", "Finding", "NPU507", "works on one NPU only"),
        ("fused-optimizer", "Tuning", "NPU750", "--tune fused-optimizer"),
        ("nccl", "Word", "NPU602", "a CUDA word"),
        ("nccl", "Form", "", 'string "nccl" becomes "hccl"'),
        ("nvidia-smi", "Other files", "", "nvidia-smi becomes npu-smi info"),
        ("torch.cuda", "Module", "", "a module of torch"),
        ("torch.cuda", "Codes that mention it", "NPU101", ""),
    ],
)
def test_what_is_known(name: str, topic: str, code: str, text: str) -> None:
    assert any((topic, code) == fact[:2] and text in fact[2] for fact in told(name)), told(name)


def test_where_a_rule_speaks_no_other_verdict_does() -> None:
    assert not [fact for fact in facts_of("torch.nn.DataParallel") if fact.topic == "Verdict"]


def test_every_variable_that_our_scripts_offer_is_known() -> None:
    names = set(re.findall(r"export ([A-Z][A-Z0-9_]+)=", launch_script("train.py")))
    names |= {name for setting in host_settings() for name in setting.variables}
    assert {"HCCL_EXEC_TIMEOUT", "ASCEND_SLOG_PRINT_TO_STDOUT", "ASCEND_GLOBAL_EVENT_ENABLE"} <= names
    assert {"DUMP_GE_GRAPH", "TUNE_BANK_PATH"} <= names
    for name in names:
        found = [fact for fact in facts_of(name) if fact.topic in ("Variable", "Host")]
        assert found and all(fact.source for fact in found), name


def test_what_is_known_of_finding_faults_has_a_source() -> None:
    for name in names_with_guidance():
        assert resolved(name) == name
        assert all(fact.source for fact in facts_of(name) if fact.topic == "Finding faults")
    assert not [fact for fact in facts_of("torch.relu") if fact.topic == "Finding faults"]
    assert not [fact for fact in facts_of("HCCL_EXEC_TIMEOUT") if fact.topic == "Finding faults"]


def test_types_have_the_place_of_their_list() -> None:
    (fact,) = (fact for fact in facts_of("torch.gather") if fact.topic == "Types refused")
    assert fact.source.startswith("aclnnGather: ") and "aclnn_gather.cpp" in fact.source


def test_versions_and_sources() -> None:
    facts = {fact.code: fact for fact in facts_of("torch.cuda.host_memory_stats") if fact.code}
    assert facts["NPU502"].versions[-1] == "2.6"
    assert facts["NPU104"].versions[0] == "2.7"
    assert facts["NPU104"].source == "rules/memory.json"
    said = {fact.topic: fact.source for fact in facts_of("torch.cuda.amp.autocast")}
    assert said["Support"].startswith("the native API support tables")


def test_no_text_of_a_table_is_told_unfilled() -> None:
    """A word of the table, a field without its value, a sentence that ends in nothing."""
    unfilled = re.compile(r"`(?:first|since|status|note)`|\{\w*\}|\bis None\b|; ;|: (?:;|$)| \(\)|where one is known")
    names = {key for row in packages() for key in (*row["pip"], *row["import"])} | {*asked_for(), "cann"}
    told = [fact.text for name in names for reader in (_package, _release, _companions) for fact in reader(name)]
    assert len(told) > 500
    assert [text for text in told if unfilled.search(text)] == []


@pytest.mark.parametrize(
    "name",
    ["torch.cuda.amp.autcast", "torch.cuda.nothing", "CUDA_VISIBLE", "x", "", "torch.no.such", "../schema",
     "tensorflow.keras.Model"],
)
def test_nothing_is_known_of_other_names(name: str) -> None:
    assert facts_of(name) == []


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("torch.cuda.amp.autocast", "torch.cuda.amp.autocast"),
        ("torch.cuda.synchronize()", "torch.cuda.synchronize"),
        ("nn.DataParallel", "torch.nn.DataParallel"),
        ("scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention"),
        ("cuda_visible_devices", "CUDA_VISIBLE_DEVICES"),
        ("NCCL", "NCCL"),
        ("flash_attn_with_kvcache", "flash_attn.flash_attn_with_kvcache"),
        ("fps", "torch_cluster.fps"),
        ("npu_mrope", "torch_npu.npu_mrope"),
        ("tl.dot", "triton.language.dot"),
        ("step", ""),
        ("torch.cuda.amp.autcast", ""),
    ],
)
def test_which_name_is_meant(said: str, meant: str) -> None:
    assert resolved(said) == meant


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("torch.cuda.amp.autcast", "torch.cuda.amp.autocast"),
        ("CUDA_VISIBLE_DEVICE", "CUDA_VISIBLE_DEVICES"),
        ("flash_atn", "flash_attn"),
        ("torch.nn.scaled_dot_product_attention", "torch.nn.functional.scaled_dot_product_attention"),
    ],
)
def test_the_nearest_names(name: str, near: str) -> None:
    assert near in nearest(name)


def test_something_is_known_of_every_known_name() -> None:
    names = known_names()
    assert len(names) > 4000
    assert [name for name in names[::397] if not facts_of(name)] == []
    assert set(read_table("support/env_vars.json")["npu_only"]) <= set(names)


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = explained(monkeypatch, capsys, "torch.cuda.amp.autocast")
    assert (code, err) == (0, "")
    newest = TORCH_VERSIONS[-1]
    first = f"# torch.cuda.amp.autocast\n\n## Rename\n\n- NPU103, torch 2.1-{newest}: becomes torch.npu.amp.autocast\n"
    assert out.startswith(first + "  Source: rules/amp.json\n")
    code, out, _ = explained(monkeypatch, capsys, "--format=json", "CUDA_HOME")
    assert json.loads(out)["name"] == "CUDA_HOME"
    assert json.loads(out)["facts"][0]["topic"] == "Variable"
    code, out, _ = explained(monkeypatch, capsys, "npu201", "--format=json")
    assert (json.loads(out)["code"], json.loads(out)["level"]) == ("NPU201", "safe")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch.cuda.amp.autcast", "about torch.cuda.amp.autcast; similar names: torch.cuda.amp.auto"),
        ("NPU999", "NPU999 is not a code of transplt"),
        ("E501", "E501 is not a code of transplt"),
        ("a" * 5000, "nothing is known about aaaa"),
        ("a\nb", "nothing is known about a\\nb"),
    ],
)
def test_names_that_nobody_knows(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = explained(monkeypatch, capsys, name)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err) < 500


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("NPU20", "NPU201"),
        ("npu20", "NPU201"),
        ("torch.cuda.amp.auto", "torch.cuda.amp.autocast"),
        ("CUDA_VIS", "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_completion(begun: str, expected: str) -> None:
    items = KnownName().shell_complete(None, None, begun)  # type: ignore[arg-type]
    assert expected in [item.value for item in items]
    assert len(items) <= 400


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("autocats", "torch.autocast"),
        ("GradScalr", "torch.cuda.amp.GradScaler"),
        ("torch.cuda.synchronise", "torch.cuda.synchronize"),
        ("flash_atn", "flash_attn"),
    ],
)
def test_a_name_with_a_typing_error(name: str, meant: str) -> None:
    assert nearest(name)[0] == meant
