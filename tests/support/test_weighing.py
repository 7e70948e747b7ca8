"""What comes of an API as all witnesses have it: the documentation, the operators that it reaches, and ports.

`TRUE_STOPS` was listed first, from the sources, so that nothing is won by keeping quiet: the documentation says no, and
the operator stands in no release of op_plugin_functions.yaml (Ascend/op-plugin@517f2e7) and npu_native_functions.yaml
(Ascend/pytorch@9e73e70), or what the API is for is not there on an NPU at all.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.harness import findings
from transplt.base.finding import Level
from transplt.base.settings import TORCH_VERSIONS
from transplt.engine.analysis.known import facts_of
from transplt.rules import weighing
from transplt.rules.support_tables import published, verdict
from transplt.rules.weighing import Status, Weighed, known_ports, weigh

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from build_emulator_tables import operators_table

#: API -> the operator that no torch_npu has a kernel for; documented as unsupported.
WITHOUT_KERNEL = {
    "torch.poisson": "poisson",
    "torch.heaviside": "heaviside",
    "torch.linalg.ldl_factor": "linalg_ldl_factor_ex",
    "torch.linalg.lstsq": "linalg_lstsq",
    "torch.nn.MultiLabelMarginLoss": "multilabel_margin_loss_backward",
    "torch.distributions.binomial.Binomial.sample": "binomial",
    "torch.distributions.weibull.Weibull.variance": "lgamma",
    "torch.Tensor.geometric_": "geometric",
    "torch.Tensor.mode": "mode",
    "torch.Tensor.to_mkldnn": "to_mkldnn",
    "torch.Tensor.to_sparse_csr": "_to_sparse_csr",
    "torch.Tensor.to_sparse_csc": "_to_sparse_csc",
    "torch.Tensor.to_sparse_bsr": "_to_sparse_bsr",
    "torch.Tensor.to_sparse_bsc": "_to_sparse_bsc",
    "torch.Tensor.crow_indices": "_to_sparse_csr",
    "torch.Tensor.col_indices": "_to_sparse_csr",
    "torch.Tensor.ccol_indices": "_to_sparse_csc",
    "torch.Tensor.row_indices": "_to_sparse_csc",
}
#: Refused for sparse tensors (VariableFallbackKernel.cpp: npu_Sparse_fallback), whatever the documentation says.
SPARSE = ("torch.Tensor.smm", "torch.Tensor.sspaddmm", "torch.smm", "torch.sspaddmm", "torch.hspmm", "torch.sparse.mm",
          "torch.sparse.addmm", "torch.sparse.softmax", "torch.sparse.log_softmax")  # fmt: skip
#: What is no operator: layouts, types, devices and tools that an NPU does not have; documented as unsupported.
NOT_THERE = """
torch.sparse_csr_tensor torch.sparse_csc_tensor torch.sparse_bsr_tensor torch.sparse_bsc_tensor
torch.sparse_compressed_tensor torch.nested.to_padded_tensor torch.nested.narrow torch.nested.masked_select
torch.nested.nested_tensor_from_jagged
torch.Tensor.cdouble torch.Tensor.chalf torch.nn.Module.double torch.QInt8Storage torch.QInt32Storage
torch.QUInt8Storage torch.QUInt4x2Storage torch.QUInt2x4Storage torch.UntypedStorage.float8_e4m3fn
torch.UntypedStorage.float8_e5m2 torch.TypedStorage.float8_e4m3fn torch.TypedStorage.float8_e5m2
torch.nn.Module.xpu torch.nn.Module.ipu torch.UntypedStorage.hpu torch.UntypedStorage.mps torch.TypedStorage.hpu
torch.nn.utils.rnn.PackedSequence.is_cuda torch.UntypedStorage.is_cuda torch.TypedStorage.is_cuda
torch.distributed.all_gather_multigpu torch.distributed.all_reduce_multigpu torch.distributed.broadcast_multigpu
torch.distributed.reduce_multigpu torch.distributed.reduce_scatter_multigpu
torch.nn.parallel.data_parallel torch.autograd.profiler.emit_nvtx torch.autograd.profiler.emit_itt
torch.autograd.profiler.load_nvprof
torch.UntypedStorage.from_file torch.utils.cpp_extension.load
torch.distributed.pipeline.sync.Pipe
torch.ao.nn.quantized.dynamic.Linear torch.ao.nn.quantizable.LSTM torch.ao.nn.qat.Linear
""".split()
#: Not documented as unsupported, and without a kernel all the same.
ON_CPU = {
    "torch.lgamma": "lgamma", "torch.digamma": "digamma", "torch.linalg.eigh": "_linalg_eigh",
    "torch.linalg.eig": "linalg_eig", "torch.linalg.eigvals": "linalg_eig", "torch.linalg.det": "_linalg_det",
    "torch.linalg.solve": "_linalg_solve_ex", "torch.lu_solve": "linalg_lu_solve", "torch.geqrf": "geqrf",
    "torch.cholesky_solve": "_cholesky_solve_helper", "torch.igamma": "igamma", "torch.mode": "mode",
    "torch.linalg.matrix_exp": "linalg_matrix_exp", "torch.nextafter": "nextafter", "torch.hypot": "hypot",
    "torch.special.airy_ai": "special_airy_ai", "torch.special.zeta": "special_zeta", "torch.i0": "i0",
    "torch.nn.HuberLoss": "huber_loss", "torch.nn.functional.fractional_max_pool2d": "fractional_max_pool2d",
}  # fmt: skip
#: Documented as unsupported, in programs that train on NPUs for years (Ascend/ModelZoo-PyTorch@6a2804a3).
FALSE_ALARMS = (
    "torch.nn.utils.clip_grad_norm_", "torch.nn.GRU", "torch.nn.RNN", "torch.nn.MaxPool1d",
    "torch.nn.MultiheadAttention", "torch.nn.AdaptiveMaxPool2d", "torch.nn.utils.rnn.pack_padded_sequence",
    "torch.nn.utils.rnn.pad_packed_sequence",
    "torch.nn.functional.avg_pool3d", "torch.cdist", "torch.nn.functional.grid_sample", "torch.nn.ConvTranspose3d",
    "torch.nn.functional.gumbel_softmax",
)  # fmt: skip


def said_no(api: str) -> list[str]:
    """The versions whose documentation says no."""
    return [version for version in published() if (row := verdict(api, version)) is not None and row.status == "no"]


def test_sixty_true_stops_are_listed() -> None:
    assert len(WITHOUT_KERNEL) + len(SPARSE) + len(NOT_THERE) >= 60


@pytest.mark.parametrize("api", WITHOUT_KERNEL)
def test_what_has_no_kernel_stops_where_the_documentation_says_no(api: str) -> None:
    assert WITHOUT_KERNEL[api] not in operators_table()["aten"]
    assert said_no(api)
    for version in said_no(api):
        found = weigh(api, version)
        assert found.status is Status.STOPS and WITHOUT_KERNEL[api] in found.lacks


@pytest.mark.parametrize("api", SPARSE)
def test_what_is_refused_for_sparse_tensors_stops_in_each_version(api: str) -> None:
    assert {weigh(api, version).status for version in TORCH_VERSIONS} == {Status.STOPS}


@pytest.mark.parametrize("api", NOT_THERE)
def test_what_is_no_operator_stays_with_the_documentation(api: str) -> None:
    assert said_no(api)
    assert {weigh(api, version).status for version in said_no(api)} == {Status.STOPS}


@pytest.mark.parametrize("api", ON_CPU)
def test_what_has_no_kernel_is_said_where_the_documentation_is_silent(api: str) -> None:
    assert ON_CPU[api] not in operators_table()["aten"]
    for version in TORCH_VERSIONS:
        found = weigh(api, version)
        assert found.status is Status.ON_CPU and ON_CPU[api] in found.lacks


@pytest.mark.parametrize("api", FALSE_ALARMS)
def test_what_ports_train_with_is_no_stop(api: str) -> None:
    assert said_no(api)
    assert all(weigh(api, each).status is not Status.STOPS for each in published())
    found = weigh(api, said_no(api)[0])
    assert found.status is Status.DOUBTED and found.executed and not found.lacks


@pytest.mark.parametrize(
    ("api", "status"),
    [
        ("torch.abs", Status.LIMITED),
        ("torch.relu", Status.WORKS),  # silent, its operator is in the list
        ("torch.linalg.inv", Status.ON_CPU),
        ("torch.inverse", Status.WORKS),  # the same, but op-plugin has a kernel of that name
        ("torch.nn.functional.embedding_bag", Status.ON_CPU),  # a no that contradicts nn.EmbeddingBag
        ("torch.Size", Status.WORKS),
        ("torch.Tensor.share_memory_", Status.WORKS),  # of the host's tensors
        ("torch.jit.trace", Status.UNKNOWN),
        ("torch.never_heard_of", Status.UNKNOWN),
        ("torch.nn.BatchNorm2d", Status.LIMITED),
    ],
)
def test_the_others(api: str, status: Status) -> None:
    assert weigh(api, "2.13").status is status


def test_an_interface_of_files_on_the_host_is_no_stop() -> None:
    assert weigh("torch.distributed.checkpoint.StorageReader", "2.3").status is Status.WORKS


def test_a_version_counts() -> None:
    assert weigh("torch.bitwise_left_shift", "2.6").status is Status.ON_CPU
    assert weigh("torch.bitwise_left_shift", "2.7").lacks == ()
    assert weigh("torch.linalg.lstsq", "2.1").status is Status.STOPS
    assert weigh("torch.linalg.lstsq", "2.13").status is Status.ON_CPU  # documented so


@pytest.mark.parametrize(
    ("weighed", "words"),
    [
        (Weighed(Status.STOPS, lacks=("poisson",)), ("its operator aten::poisson has no NPU kernel",)),
        (
            Weighed(Status.STOPS, lacks=("a", "sparse:b"), executed=True),
            ("its operators aten::a, aten::b of sparse tensors have no NPU kernel",),
        ),
        (
            Weighed(Status.DOUBTED, executed=True, ports=39),
            ("all operators that it reaches have NPU kernels", "39 migrated projects that train on NPUs use it"),
        ),
        (
            Weighed(Status.DOUBTED, executed=True, may_lack=("c",)),
            ("the operators of its plain calls have NPU kernels (its operator aten::c has none)",),
        ),
        (
            Weighed(Status.DOUBTED, named=True, ports=1),
            ("the operator of its name has an NPU kernel", "a migrated project uses it"),
        ),
        (Weighed(Status.UNKNOWN), ()),
    ],
)
def test_witnesses_in_words(weighed: Weighed, words: tuple[str, ...]) -> None:
    assert weighed.witnesses == words


def test_ports_are_counted_without_those_to_measure_on() -> None:
    assert known_ports("torch.nn.utils.clip_grad_norm_") > 20
    assert known_ports("torch.never_heard_of") == 0
    assert known_ports("torch.nn.DataParallel") == 0  # named in a branch that ports do not take
    assert "250 ports" in weighing.sources()["ports"]


# --- findings --------------------------------------------------------------------------------------------------------


def test_a_stop_names_its_operator() -> None:
    (found,) = findings("import torch\ntorch.poisson(x)\n", torch_version="2.8")
    assert (found.code, found.level) == ("NPU520", Level.MANUAL)
    assert found.message == (
        "torch.poisson is documented as not supported on NPU with torch 2.8, and its operator aten::poisson has no NPU "
        "kernel"
    )


def test_the_documentation_alone_is_said_to_be_alone() -> None:
    source = "import torch\nclass M(torch.nn.Module):\n    def go(self):\n        self.ipu()\n"
    (found,) = [each for each in findings(source) if each.code == "NPU520"]
    assert found.level is Level.MANUAL and found.help.startswith("only the documentation says so")


def test_a_documentation_that_kernels_contradict_is_one_remark_a_file() -> None:
    source = "import torch\na = torch.nn.GRU(3, 3)\nb = torch.nn.GRU(3, 3)\n"
    (found,) = [each for each in findings(source, torch_version="2.1") if each.code == "NPU520"]
    assert found.level is Level.INFO and not found.open
    assert "but all operators that it reaches have NPU kernels, and " in found.message
    assert found.message.endswith("projects that train on NPUs use it (also in line 3)")


def test_what_the_cpu_computes_is_a_remark() -> None:
    (found,) = findings("import torch\ntorch.lgamma(x)\n")
    assert (found.code, found.level) == ("NPU523", Level.INFO)
    assert "aten::digamma, aten::lgamma have no NPU kernel" in found.message


def test_explain_names_the_witnesses() -> None:
    said = {(fact.topic, fact.code): fact for fact in facts_of("torch.nn.GRU")}
    assert said["Verdict", "NPU520"].text == "a remark: only the documentation says that it is not supported"
    assert "2.1" in said["Verdict", "NPU520"].versions and "2.13" not in said["Verdict", "NPU520"].versions
    assert "migrated projects" in said["Ports", ""].text
    assert [fact.text for fact in facts_of("torch.linalg.eigh") if fact.topic == "Verdict"] == [
        "a remark: torch_npu computes it on the CPU"
    ]
    assert [fact for fact in facts_of("torch.never_heard_of") if fact.topic != "Support"] == []
