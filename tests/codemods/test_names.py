"""What the tables of names do to a file: renamed, reported or left, by torch version."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pytest.mark.parametrize(
    ("statement", "after", "code"),
    [
        pytest.param("x = torch.cuda.is_available()", "x = torch.npu.is_available()", "NPU101", marks=pattern("P1")),
        pytest.param("x = torch.cuda.device_count()", "x = torch.npu.device_count()", "NPU101", marks=pattern("P2")),
        pytest.param("torch.cuda.set_device(rank)", "torch.npu.set_device(rank)", "NPU101", marks=pattern("P3")),
        pytest.param("torch.cuda.synchronize()", "torch.npu.synchronize()", "NPU101", marks=pattern("P4")),
        pytest.param("torch.cuda.empty_cache()", "torch.npu.empty_cache()", "NPU104", marks=pattern("P5")),
        pytest.param("torch.cuda.manual_seed_all(0)", "torch.npu.manual_seed_all(0)", "NPU106", marks=pattern("P6")),
        pytest.param(
            "x = torch.cuda.current_device()", "x = torch.npu.current_device()", "NPU101", marks=pattern("P7")
        ),
        pytest.param(
            "torch.cuda.reset_peak_memory_stats()", "torch.npu.reset_peak_memory_stats()", "NPU104", marks=pattern("P8")
        ),
        pytest.param("x = torch.cuda.get_rng_state()", "x = torch.npu.get_rng_state()", "NPU106", marks=pattern("P9")),
        pytest.param("x = torch.cuda.Stream()", "x = torch.npu.Stream()", "NPU105", marks=pattern("P10")),
        pytest.param(
            "with torch.cuda.device(1): pass", "with torch.npu.device(1): pass", "NPU101", marks=pattern("P11")
        ),
        pytest.param(
            "x = torch.cuda.HalfTensor(4)", "x = torch.npu.HalfTensor(4)", "NPU109", marks=pattern("P46", "T19")
        ),
        pytest.param(
            "x = torch.cuda.default_generators[0]",
            "x = torch.npu.default_generators[0]",
            "NPU101",
            marks=pattern("T22"),
        ),
    ],
)
def test_names_that_torch_npu_has(statement: str, after: str, code: str) -> None:
    head = "import torch\n"
    check_rewrite(
        f"{head}{statement}\n",
        f"{head}import torch_npu  # noqa: F401\n{after}\n",
        codes_applied=[code, "NPU403"],
    )


@pattern("P17", "P18")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch.cuda as tc\ntc.empty_cache()", "import torch.npu as tc\ntc.empty_cache()"),
        ("from torch.cuda import empty_cache\nempty_cache()", "from torch.npu import empty_cache\nempty_cache()"),
        (
            "from torch.cuda.amp import autocast as ac\nwith ac(): pass",
            "from torch_npu.npu.amp import autocast as ac\nwith ac(): pass",
        ),
        ("from torch.cuda import nvtx as n\nn.mark('a')", "from torch.npu import mstx as n\nn.mark('a')"),
        (
            "from torch.cuda.memory import mem_get_info\nmem_get_info()",
            "from torch.npu import mem_get_info\nmem_get_info()",
        ),
    ],
)
def test_imports(before: str, after: str) -> None:
    check_rewrite(before + "\n", f"import torch_npu  # noqa: F401\n{after}\n")


@pattern("P60", "P18")
def test_a_module_whose_counterpart_is_a_class() -> None:
    check_rewrite(
        """
        import torch
        import torch.cuda.nvtx as nvtx

        nvtx.range_push(msg="step")
        nvtx.range_pop()
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch.npu import mstx as nvtx

        nvtx.range_push(message="step")
        nvtx.range_pop()
        """,
    )
    check_rewrite(
        """
        import torch
        import torch.cuda.nvtx
        torch.cuda.nvtx.mark("a")
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        import torch.npu
        torch.npu.mstx.mark("a")
        """,
    )
    check_rewrite(
        """
        import os, torch.cuda.nvtx as nvtx
        nvtx.mark("a")
        """,
        """
        import os, torch.cuda.nvtx as nvtx
        nvtx.mark("a")
        """,
        open_codes=["NPU108"],
    )


@pytest.mark.parametrize("name", ["cuda", "nccl", "gpu"])
def test_an_alias_keeps_its_name(name: str) -> None:
    result = check_rewrite(
        f"import torch.cuda as {name}\n{name}.empty_cache()\n",
        f"import torch_npu  # noqa: F401\nimport torch.npu as {name}\n{name}.empty_cache()\n",
    )
    assert result.tokens.unknown == 0
    check_rewrite(
        f"from torch import cuda as {name}\n{name}.empty_cache()\n",
        f"import torch_npu  # noqa: F401\nfrom torch import npu as {name}\n{name}.empty_cache()\n",
    )


class TestArguments:
    """Calls whose arguments change with the name, or that cannot be carried over."""

    @pattern("P13", "T15")
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("()", "()"),
            ("(enabled=fp16)", "(enabled=fp16)"),
            ("(2.0, 3.0)", "(2.0, 3.0)"),
            ("(2.0, 3.0, 0.5, 100, fp16)", "(2.0, 3.0, 0.5, 100, enabled=fp16)"),
        ],
    )
    def test_grad_scaler_of_torch_npu_has_a_parameter_before_enabled(self, before: str, after: str) -> None:
        check_rewrite(
            f"import torch\nscaler = torch.cuda.amp.GradScaler{before}\n",
            f"import torch\nimport torch_npu  # noqa: F401\nscaler = torch.npu.amp.GradScaler{after}\n",
            torch_version="2.2",
        )

    @pattern("P66")
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("get_device_name()", "get_device_name()"),
            ("get_device_name(0)", "get_device_name(0)"),
            ("get_device_name(device=0)", "get_device_name(device_name=0)"),
            ("get_device_properties(device = d).total_memory", "get_device_properties(device_name = d).total_memory"),
            (
                "can_device_access_peer(device=0, peer_device=1)",
                "can_device_access_peer(device_id=0, peer_device_id=1)",
            ),
        ],
    )
    def test_renamed_keywords(self, before: str, after: str) -> None:
        check_rewrite(
            f"import torch\nx = torch.cuda.{before}\n",
            f"import torch\nimport torch_npu  # noqa: F401\nx = torch.npu.{after}\n",
        )

    @pattern("P61")
    def test_graphs(self) -> None:
        check_rewrite(
            """
            import torch
            g = torch.cuda.CUDAGraph()
            with torch.cuda.graph(g, None, side, "relaxed"):
                pass
            """,
            """
            import torch
            import torch_npu  # noqa: F401
            g = torch.npu.NPUGraph()
            with torch.npu.graph(g, None, side, capture_error_mode="relaxed"):
                pass
            """,
        )

    @pytest.mark.parametrize(
        "call",
        [
            "Event(external=True)",
            "CUDAGraph(keep_graph=True)",
            "graph(g, check_input_liveness=True)",
            "get_device_name(*args)",
            "get_device_name(**options)",
            "memory_snapshot(pool, True)",
        ],
    )
    def test_calls_that_stay(self, call: str) -> None:
        check_noop(f"import torch\nx = torch.cuda.{call}\n", open_codes=["NPU505"])

    @pattern("P67")
    def test_a_keyword_that_some_versions_take(self) -> None:
        source = "import torch\nx = torch.cuda.is_bf16_supported(including_emulation=False)\n"
        check_noop(source, open_codes=["NPU505"], torch_version="2.8")
        check_rewrite(
            source,
            "import torch\nimport torch_npu  # noqa: F401\n"
            "x = torch.npu.is_bf16_supported(including_emulation=False)\n",
            torch_version="2.9",
        )


class TestReported:
    """Names that stay, and what is said of them."""

    @pattern("P43", "P44", "P45")
    @pytest.mark.parametrize(
        "statement",
        [
            "torch.backends.cudnn.benchmark = True",
            "torch.backends.cudnn.deterministic = True",
            "torch.backends.cuda.matmul.allow_tf32 = True",
            "torch.backends.cudnn.allow_tf32 = True",
            "torch.backends.cuda.enable_flash_sdp(False)",
            "torch.set_float32_matmul_precision('high')",
            "with torch.backends.cudnn.flags(enabled=False): pass",
        ],
    )
    def test_switches_without_effect_are_no_work(self, statement: str) -> None:
        result = check_noop(f"import torch\n{statement}\n", open_codes=["NPU504"])
        assert not any(finding.open for finding in result.findings)

    @pattern("P43")
    def test_an_alias_of_cudnn(self) -> None:
        check_noop("import torch.backends.cudnn as cudnn\ncudnn.benchmark = True\n", open_codes=["NPU504"])

    @pattern("P65", "T13", "T12")
    @pytest.mark.parametrize(
        ("expression", "code"),
        [
            ("torch.version.cuda.split('.')", "NPU506"),
            ("torch.backends.cudnn.version() > 8000", "NPU506"),
            ("torch.backends.cuda.is_built()", "NPU506"),
            ("torch.cuda.get_device_capability() >= (9, 0)", "NPU503"),
            ("torch.cuda.get_arch_list()", "NPU501"),
            ("torch.cuda.nccl.version()", "NPU501"),
            ("torch.cuda.cudart().cudaProfilerStart()", "NPU501"),
            ("torch.cuda.profiler.start()", "NPU501"),
            ("torch.cuda.comm.broadcast(x, [0, 1])", "NPU501"),
            ("torch.cuda._exchange_device(0)", "NPU501"),
        ],
    )
    def test_gates_and_names_without_counterpart(self, expression: str, code: str) -> None:
        result = check_noop(f"import torch\nx = {expression}\n", open_codes=[code])
        assert sum(finding.open for finding in result.findings) == 1

    @pattern("P41", "T27")
    def test_data_parallel(self) -> None:
        check_noop("import torch.nn as nn\nx = nn.parallel.data_parallel(model, x)\n", open_codes=["NPU507"])

    @pattern("P58")
    def test_cuda_extensions(self) -> None:
        check_noop(
            """
            from torch.utils.cpp_extension import BuildExtension, CUDA_HOME
            from torch.utils import cpp_extension
            ext = cpp_extension.CUDAExtension("ops", sources) if CUDA_HOME else cpp_extension.CppExtension("ops", plain)
            """,
            open_codes=["NPU550", "NPU551", "NPU860"],
        )

    @pattern("P53", "P54", "P55", "P56", "P57", "P64")
    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("import apex", "NPU511"),
            ("from flash_attn import flash_attn_func", "NPU510"),
            ("import xformers.ops as xops", "NPU510"),
            ("import bitsandbytes as bnb", "NPU510"),
            ("import triton.language as tl", "NPU512"),
            ("import pynvml", "NPU510"),
            ("from torchvision.ops import nms", "NPU512"),
            ("from torchvision.ops.boxes import batched_nms", "NPU512"),
            ("from torchvision.ops import RoIAlign", "NPU512"),
            ("from torchvision.ops.deform_conv import DeformConv2d", "NPU512"),
            ("from torchvision.ops.poolers import MultiScaleRoIAlign", "NPU512"),
        ],
    )
    def test_packages_are_reported_at_their_import(self, statement: str, code: str) -> None:
        result = check_noop(f"{statement}\n", open_codes=[code], torch_version="2.7")
        assert len(result.findings) == 1

    @pytest.mark.parametrize(("version", "code"), [("2.1", "NPU512"), ("2.4", "NPU523"), ("2.8", "NPU523")])
    def test_the_adapter_of_torchvision_is_there_for_some_torch(self, version: str, code: str) -> None:
        source = "from torchvision.ops import nms\nkept = nms(boxes, scores, 0.5)\n"
        found = migrate(source, torch_version=version).findings
        assert {(each.code, each.open) for each in found} == {(code, code == "NPU512")}

    @pytest.mark.parametrize(
        "files",
        [{"triton/__init__.py": "", "triton/ops.py": ""}, {"src/triton/__init__.py": "", "src/triton/ops.py": ""}],
    )
    def test_a_package_of_the_project_is_its_own(self, files: dict[str, str]) -> None:
        check_noop("import triton\nfrom triton.ops import matmul\n", files=files)

    @pytest.mark.parametrize("beside", ["tools/triton.py", "tools/triton/__init__.py"])
    def test_a_module_beside_a_script_is_its_own(self, beside: str) -> None:
        check_noop("import triton\n", path="tools/run.py", files={beside: ""})
        package = {beside: "", "tools/__init__.py": ""}
        check_noop("import triton\n", path="tools/run.py", files=package, open_codes=["NPU512"])
        check_noop("import sys\nsys.path.append(HERE)\nimport triton\n", path="tools/run.py", files=package)

    def test_a_module_of_that_name_deep_in_the_project_is_another(self) -> None:
        check_noop("import triton\n", files={"tools/triton.py": ""}, open_codes=["NPU512"])

    def test_packages_that_work_are_not(self) -> None:
        check_noop("from torchvision.ops.boxes import box_iou, clip_boxes_to_image, remove_small_boxes\n")
        check_noop("from torchvision.ops import FeaturePyramidNetwork, boxes, sigmoid_focal_loss\n")
        check_noop("import transformers\nimport timm\nfrom torchvision import transforms\nimport accelerate  # cuda\n")

    def test_a_name_that_no_table_has_is_unknown(self) -> None:
        result = check_noop("import torch\ntorch.cuda.brand_new_api()\n", open_codes=["NPU601"])
        assert [finding.level.value for finding in result.findings] == ["unknown"]


class TestVersions:
    @pattern("P60")
    def test_ranges(self) -> None:
        source = "import torch\ntorch.cuda.nvtx.range_push(msg='step')\ntorch.cuda.nvtx.range_pop()\n"
        check_rewrite(
            source,
            "import torch\nimport torch_npu  # noqa: F401\n"
            "torch.npu.mstx.range_push(message='step')\ntorch.npu.mstx.range_pop()\n",
            torch_version="2.7",
        )
        check_noop(source, open_codes=["NPU502"], torch_version="2.8")
        check_noop(source, open_codes=["NPU502"], torch_version="2.1")

    @pattern("T1")
    def test_out_of_memory(self) -> None:
        source = "import torch\ntry:\n    step()\nexcept torch.cuda.OutOfMemoryError:\n    pass\n"
        after = source.replace("torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError")
        check_rewrite(source, after, torch_version="2.6")
        check_noop(source, open_codes=["NPU502"], torch_version="2.5")

    def test_ipc(self) -> None:
        source = "import torch\ntorch.cuda.ipc_collect()\n"
        after = "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.{}()\n"
        check_rewrite(source, after.format("ipc_collect"), torch_version="2.6")
        check_noop(source, open_codes=["NPU502"], torch_version="2.4")
        check_rewrite(source, after.format("empty_cache"), torch_version="2.4", similar=True)


class TestDistributedNames:
    @pattern("P39", "T24")
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("dist.is_nccl_available()", "dist.is_hccl_available()"),
            ("dist.Backend.NCCL", "dist.Backend.HCCL"),
            ("isinstance(group, dist.ProcessGroupNCCL)", "isinstance(group, {}.ProcessGroupHCCL)"),
        ],
    )
    def test_names_of_nccl(self, before: str, after: str) -> None:
        check_rewrite(
            f"import torch.distributed as dist\nx = {before}\n",
            "import torch.distributed as dist\nimport torch_npu  # noqa: F401\n"
            f"x = {after.format('torch_npu._C._distributed_c10d')}\n",
        )


class TestSimilar:
    """-sim: a similar API where every use fits, else the finding stays."""

    @pattern("P53")
    def test_an_import(self) -> None:
        source = "from apex.normalization import FusedLayerNorm\nnorm = FusedLayerNorm(8, eps=1e-6)\n"
        check_noop(source, open_codes=["NPU510"])
        check_rewrite(
            source,
            "from torch.nn import LayerNorm as FusedLayerNorm\nnorm = FusedLayerNorm(8, eps=1e-6)\n",
            similar=True,
            codes_applied=["NPU120"],
        )

    @pytest.mark.parametrize(
        "call",
        ["FusedAdam(params)", "FusedAdam(params, weight_decay=0.1, adam_w_mode=False)", "FusedAdam(params, **options)"],
    )
    def test_an_import_stays_when_a_call_does_not_fit(self, call: str) -> None:
        check_noop(f"from apex.optimizers import FusedAdam\noptimizer = {call}\n", similar=True, open_codes=["NPU510"])

    def test_each_call_is_written_or_reported_once(self) -> None:
        head, other = "from apex.optimizers import FusedAdam\n", "b = FusedAdam(x, adam_w_mode=False)\n"
        result = check_rewrite(
            f"{head}a = FusedAdam(x, weight_decay=0.1)\n{other}",
            f"{head}import torch\na = torch.optim.AdamW(x, weight_decay=0.1)\n{other}",
            similar=True,
            open_codes=["NPU510"],
        )
        assert [each.span.line for each in result.findings if each.open] == [3]

    def test_a_value_stays_when_the_arguments_decide(self) -> None:
        check_noop(
            "from apex.optimizers import FusedAdam\noptimizers = {'adam': FusedAdam}\n",
            similar=True,
            open_codes=["NPU510"],
        )

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (
                "from apex.parallel import convert_syncbn_model\n",
                "from torch.nn import SyncBatchNorm\nconvert_syncbn_model = SyncBatchNorm.convert_sync_batchnorm\n",
            ),
            (
                "from apex.parallel import convert_syncbn_model as sync\n",
                "from torch.nn import SyncBatchNorm\nsync = SyncBatchNorm.convert_sync_batchnorm\n",
            ),
            (
                "from mine import SyncBatchNorm\nfrom apex.parallel import convert_syncbn_model as sync\n",
                "from mine import SyncBatchNorm\n"
                "from torch.nn import SyncBatchNorm as sync\nsync = sync.convert_sync_batchnorm\n",
            ),
        ],
    )
    def test_a_method_of_a_class_is_not_imported_from_it(self, before: str, after: str) -> None:
        check_rewrite(before, after, similar=True)

    def test_an_argument_with_the_name_of_an_import_does_not_keep_it(self) -> None:
        uses = "optimizer = FusedAdam(params, weight_decay=0.1)\ndef build(FusedAdam):\n    return FusedAdam(params)\n"
        check_rewrite(
            f"from apex.optimizers import FusedAdam\n{uses}",
            f"from torch.optim import AdamW as FusedAdam\n{uses}",
            similar=True,
        )

    @pattern("P56")
    def test_the_record_says_what_may_differ(self) -> None:
        result = check_rewrite(
            "import torch\nimport bitsandbytes as bnb\nopt = bnb.optim.AdamW8bit(params, lr=1e-4)\n",
            "import torch\nimport bitsandbytes as bnb\nopt = torch.optim.AdamW(params, lr=1e-4)\n",
            similar=True,
            open_codes=["NPU510"],
        )
        (edit,) = (finding for finding in result.findings if finding.code == "NPU120")
        assert "state stays in 32 bits" in edit.message


@pattern("T9", "T7")
@pytest.mark.parametrize(
    "source",
    [
        "import jax\nx = jax.devices('gpu')  # cuda\n",
        "class cuda:\n    empty_cache = 1\nx = cuda.empty_cache\n",
        "def f(torch):\n    return torch.version\n# cuda\n",
        "import paddle\npaddle.device.synchronize()  # cuda\n",
        "torch = load()\nx = torch.stream()  # cuda\n",
        "import mytorch.nn as nn  # cuda\nx = nn.DataParallel(1)\n",
    ],
)
def test_names_of_others(source: str) -> None:
    result = check_noop(source)
    assert not any(finding.open for finding in result.findings)
