"""Libraries above torch: transformers, accelerate, Lightning, DeepSpeed, mmengine, apex."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source
from transplt.flow.facts import ProjectFacts


@pattern("P23", "P33", "P36")
@pytest.mark.parametrize(
    ("head", "before", "after"),
    [
        ("from transformers import AutoModel", 'm = AutoModel.from_pretrained("x", device_map="cuda")',
         'm = AutoModel.from_pretrained("x", device_map="npu")'),
        ("from transformers import AutoModel", 'm = AutoModel.from_pretrained("x", device_map={"": "cuda:0"})',
         'm = AutoModel.from_pretrained("x", device_map={"": "npu:0"})'),
        ("from transformers import pipeline", 'p = pipeline("text-generation", device="cuda:0")',
         'p = pipeline("text-generation", device="npu:0")'),
        ("from transformers import TrainingArguments", 'a = TrainingArguments("out", ddp_backend="nccl", bf16=True)',
         'a = TrainingArguments("out", ddp_backend="hccl", bf16=True)'),
        ("import deepspeed", 'deepspeed.init_distributed(dist_backend="nccl")',
         'deepspeed.init_distributed(dist_backend="hccl")'),
        ("import deepspeed", 'deepspeed.init_distributed("nccl")', 'deepspeed.init_distributed("hccl")'),
        ("from mmengine.config import Config", "env = dict(dist_cfg=dict(backend='nccl'))",
         "env = dict(dist_cfg=dict(backend='hccl'))"),
        ("from mmdet.apis import init_detector", "m = init_detector(config, weights, device='cuda:0')",
         "m = init_detector(config, weights, device='npu:0')"),
        ("from accelerate.utils import InitProcessGroupKwargs", 'k = InitProcessGroupKwargs(backend="nccl")',
         'k = InitProcessGroupKwargs(backend="hccl")'),
        ("import accelerate", 'accelerate.PartialState(backend="nccl")', 'accelerate.PartialState(backend="hccl")'),
        ("from lightning.pytorch.strategies import DDPStrategy", 's = DDPStrategy(process_group_backend="nccl")',
         's = DDPStrategy(process_group_backend="hccl")'),
        ("from trl import SFTConfig", 'a = SFTConfig(output_dir="x", ddp_backend="nccl")',
         'a = SFTConfig(output_dir="x", ddp_backend="hccl")'),
        ("from mmengine.dist import init_dist", 'init_dist("slurm", backend="nccl")',
         'init_dist("slurm", backend="hccl")'),
        ("from ray.train.torch import TorchConfig", 'c = TorchConfig(backend="nccl", timeout_s=60)',
         'c = TorchConfig(backend="hccl", timeout_s=60)'),
        ("from vllm.distributed import init_distributed_environment as begin", 'begin(1, 0, "env://", 0, "nccl")',
         'begin(1, 0, "env://", 0, "hccl")'),
        ("import timm.utils", 'timm.utils.init_distributed_device_so("npu", dist_backend="nccl")',
         'timm.utils.init_distributed_device_so("npu", dist_backend="hccl")'),
    ],
)  # fmt: skip
def test_devices_and_backends_of_libraries(head: str, before: str, after: str) -> None:
    result = migrate(f"{head}\n{before}\n")
    assert result.data.decode().endswith(f"{after}\n")
    assert result.tokens.converted == result.tokens.found


@pattern("P2")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from accelerate import DistributedType\nmany = kind == DistributedType.MULTI_GPU",
            "from accelerate import DistributedType\nmany = kind == DistributedType.MULTI_NPU",
        ),
        (
            "from torch.multiprocessing import reductions\nx = reductions.rebuild_cuda_tensor(*args)",
            "from torch.multiprocessing import reductions\nimport torch_npu  # noqa: F401\n"
            "x = torch_npu.multiprocessing.reductions.rebuild_npu_tensor(*args)",
        ),
        (
            "from transformers.utils import is_torch_cuda_available\non = is_torch_cuda_available()",
            "from transformers.utils import is_torch_npu_available\non = is_torch_npu_available()",
        ),
        (
            "from mmengine.device import is_cuda_available\non = is_cuda_available()",
            "from mmengine.device import is_npu_available\non = is_npu_available()",
        ),
    ],
)
def test_names_with_a_twin(before: str, after: str) -> None:
    check_rewrite(before + "\n", after + "\n", codes_applied=["NPU140"] if "accelerate" in before else None)


@pattern("P54")
@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ('attn_implementation="flash_attention_2"', "NPU141"),
        ("use_flash_attention_2=True", "NPU141"),
        ("load_in_8bit=True", "NPU142"),
        ("load_in_4bit=True", "NPU142"),
    ],
)
def test_arguments_of_models(argument: str, code: str) -> None:
    check_noop(
        f'from transformers import AutoModel\nm = AutoModel.from_pretrained("x", {argument})\n', open_codes=[code]
    )


@pattern("P56", "P51")
@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ("tf32=True", "NPU143"),
        ('optim="adamw_bnb_8bit"', "NPU144"),
        ('optim="paged_adamw_32bit"', "NPU144"),
        ('optim="adamw_apex_fused"', "NPU144"),
        ('half_precision_backend="apex"', "NPU144 NPU293"),  # a field that transformers 5 lacks
    ],
)
def test_arguments_of_training(argument: str, code: str) -> None:
    check_noop(
        f'from transformers import TrainingArguments\na = TrainingArguments("out", {argument})\n',
        open_codes=code.split(),
    )


def test_a_call_with_every_argument_of_transformers() -> None:
    arguments = (
        'attn_implementation="flash_attention_2", use_flash_attention_2=True, load_in_8bit=True, load_in_4bit=True, '
        'tf32=True, optim="adamw_bnb_8bit", half_precision_backend="apex", fp16_backend="apex"'
    )
    check_noop(
        f"from transformers import TrainingArguments\na = TrainingArguments({arguments})\n",
        open_codes=["NPU141", "NPU142", "NPU143", "NPU144", "NPU293"],
    )


@pattern("P34")
@pytest.mark.parametrize(
    "argument",
    [
        "use_cpu=True",
        'fp16=True, optim="adamw_torch"',
        "bf16=True",
        "tf32=False",
        'optim="adamw_torch_fused"',
        'optim="adamw_torch"',
        "load_in_8bit=False",
        'attn_implementation="sdpa"',
        'device_map="auto"',
    ],
)
def test_arguments_that_stay(argument: str) -> None:
    check_noop(f'from transformers import TrainingArguments\na = TrainingArguments("out", {argument})\n')


@pattern("T3")
@pytest.mark.parametrize(
    "call",
    [
        'L.Trainer(accelerator="gpu", devices=2)',
        'L.Trainer(accelerator="cuda")',
        "L.Trainer(gpus=2)",
        'L.Trainer(accelerator="cuda" if on else "cpu")',
        'L.Fabric(accelerator="cuda")',
    ],
)
def test_lightning_has_no_npu(call: str) -> None:
    result = check_noop(f"import lightning as L\nt = {call}\n", open_codes=["NPU145"])
    assert result.tokens.unknown == 0


@pattern("T3")
@pytest.mark.parametrize(
    "call",
    [
        'L.Trainer(accelerator="cpu")',
        "L.Trainer(accelerator=NPUAccelerator())",
        'L.Fabric("cpu")',
        'L.Trainer(**{"accelerator": "cpu", "devices": 2})',
        'L.Fabric(accelerator="tpu", devices=1)',
        "L.LightningModule()",
    ],
)
def test_trainers_that_ask_for_no_gpu(call: str) -> None:
    check_noop(f"import lightning as L\nt = {call}\n")


@pattern("T3")
@pytest.mark.parametrize(
    "call",
    [
        'L.Trainer(accelerator="auto")',
        "L.Trainer(max_epochs=1)",
        "L.Fabric(devices=8)",
        "L.Fabric()",
        'L.Fabric("auto")',
        "L.Trainer(**options)",
        "L.Trainer(devices=2, **vars(args))",
        "L.Trainer(accelerator=args.accelerator)",
    ],
)
def test_without_an_accelerator_lightning_takes_the_cpu(call: str) -> None:
    result = check_noop(f"import lightning as L\nt = {call}\n", open_codes=["NPU145"])
    assert any("silently" in each.message and "the CPU" in each.message for each in result.findings)


@pytest.mark.parametrize(
    "text",
    [
        'options = {"accelerator": "cpu"}\nt = L.Trainer(**options)',
        'options = dict(accelerator="cpu")\nt = L.Trainer(**options)',
        'options = {}\noptions["accelerator"] = "cpu"\nt = L.Trainer(**options)',
        'kind = "cpu"\nt = L.Trainer(accelerator=kind)',
    ],
)
def test_an_accelerator_that_a_star_brings(text: str) -> None:
    check_noop(f"import lightning as L\n{text}\n")


CLI = "from lightning.pytorch.cli import LightningCLI\n"


@pytest.mark.parametrize(
    "text",
    [
        "LightningCLI(Net, Data)",
        'LightningCLI(Net, Data, trainer_defaults={"max_epochs": 2})',
        "class Mine(LightningCLI):\n    def after_fit(self): ...\nMine(Net, Data)",
    ],
)
def test_the_command_line_of_lightning_chooses_too(text: str) -> None:
    check_noop(f"{CLI}{text}\n", open_codes=["NPU145"])


@pytest.mark.parametrize(
    "text",
    [
        'LightningCLI(Net, Data, trainer_defaults={"accelerator": "cpu"})',
        "LightningCLI(Net, Data, trainer_defaults=dict(accelerator=NPU()))",
        "class Mine(LightningCLI):\n    def after_fit(self): ...\nYours(Net, Data)",
    ],
)
def test_a_command_line_that_names_its_accelerator(text: str) -> None:
    check_noop(f"{CLI}{text}\n")


def test_up_to_19_lightning_took_the_cpu_on_a_gpu_too() -> None:
    line = "import pytorch_lightning as pl\nt = pl.Trainer(max_epochs=1)\n"
    check_noop(line, pins=(("pytorch-lightning", "==1.9.4"),))
    check_noop(line, open_codes=["NPU145"], pins=(("pytorch-lightning", ">=1.9"),))


@pytest.mark.parametrize(
    ("text", "lines", "moves"),
    [
        ('kind = "cuda" if torch.cuda.is_available() else "cpu"\nf = L.Fabric(accelerator=kind)', [3, 4], False),
        ('kind = "gpu" if torch.cuda.is_available() else "cpu"\nf = L.Fabric(accelerator=kind)', [4], True),
    ],
)
def test_the_word_that_a_gate_guards_is_reported_where_it_stands(text: str, lines: list[int], moves: bool) -> None:
    """The gate of "cuda" stays with its word: moved alone it would ask for CUDA where there is an NPU."""
    result = migrate(f"import torch\nimport lightning as L\n{text}\n")
    assert [each.span.line for each in result.findings if each.code == "NPU145"] == lines
    assert result.changed == moves
    assert result.tokens.unknown == 0


def test_another_fabric_is_none() -> None:
    check_noop("from loom import Fabric\nimport lightning\nt = Fabric(devices=2)\n")
    check_noop("import lightning as L\nfrom transformers import Trainer\nt = Trainer(model)\n")


@pattern("T3")
def test_another_trainer() -> None:
    check_noop('from project import Trainer\nt = Trainer(accelerator="gpu", note="lightning")\n')


@pattern("P51", "P52", "P53", "P54", "P55", "P56", "P57")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("from apex import amp", "NPU511"),
        ("from apex.optimizers import FusedNovoGrad", "NPU511"),
        ("from apex.normalization import FusedLayerNorm", "NPU510"),
        ("from apex.parallel import DistributedDataParallel", "NPU510"),
        ("from apex.parallel.LARC import LARC", "NPU511"),
        ("from apex.multi_tensor_apply import multi_tensor_applier", "NPU510"),
        ("import amp_C", "NPU510"),
        ("from flash_attn import flash_attn_func", "NPU510"),
        ("from xformers.ops import memory_efficient_attention", "NPU510"),
        ("import bitsandbytes as bnb", "NPU510"),
        ("from transformers import BitsAndBytesConfig", "NPU510"),
        ("import triton", "NPU512"),
    ],
)
def test_packages_are_reported_where_they_are_imported(line: str, code: str) -> None:
    result = check_noop(f"{line}\n", open_codes=[code])
    assert all(finding.help for finding in result.findings)


@pattern("P51", "P52")
def test_uses_of_apex_are_no_further_findings() -> None:
    result = check_noop(
        """
        from apex import amp

        def step(model, optimizer, loss):
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        """,
        open_codes=["NPU511"],
    )
    assert len(result.findings) == 1


@pattern("P53")
def test_similar_modules_of_apex() -> None:
    check_rewrite(
        "from apex.normalization import FusedLayerNorm\nnorm = FusedLayerNorm(8)\n",
        "from torch.nn import LayerNorm as FusedLayerNorm\nnorm = FusedLayerNorm(8)\n",
        similar=True,
    )


@pattern("P53")
def test_of_two_calls_in_one_expression_the_usable_one_is_written() -> None:
    result = check_rewrite(
        """
        import torch
        from apex.normalization import FusedLayerNorm
        norms = [FusedLayerNorm(8), FusedLayerNorm(8, memory_efficient=True)]
        """,
        """
        import torch
        from apex.normalization import FusedLayerNorm
        norms = [torch.nn.LayerNorm(8), FusedLayerNorm(8, memory_efficient=True)]
        """,
        similar=True,
        open_codes=["NPU510"],
    )
    found = [(each.span.line, "no memory_efficient" in each.message) for each in result.findings if each.open]
    assert found == [(3, True)]


@pattern("P53")
@pytest.mark.parametrize("use", ["isinstance(norms[0], FusedLayerNorm)", "kinds = FusedLayerNorm"])
def test_no_call_is_written_where_the_name_is_also_used_as_a_class(use: str) -> None:
    """What becomes torch's would be no instance of apex's class any more."""
    check_noop(
        f"""
        from apex.normalization import FusedLayerNorm
        norms = [FusedLayerNorm(8), FusedLayerNorm(8, memory_efficient=True)]
        {use}
        """,
        similar=True,
        open_codes=["NPU510"],
    )


@pattern("P55")
def test_the_attention_of_xformers() -> None:
    check_noop(
        """
        from diffusers import StableDiffusionPipeline
        pipe = StableDiffusionPipeline.from_pretrained("x")
        pipe.enable_xformers_memory_efficient_attention()
        """,
        open_codes=["NPU146"],
    )


@pytest.mark.parametrize(
    ("imported", "call", "after"),
    [
        ("apex.contrib.layer_norm.FastLayerNorm", "(8, 1e-6)", "torch.nn.LayerNorm"),
        ("apex.contrib.group_norm.GroupNorm", "(4, 8, eps=1e-6)", "torch.nn.GroupNorm"),
        ("bitsandbytes.optim.RMSprop8bit", "(p, 0.1, weight_decay=0.1)", "torch.optim.RMSprop"),
        ("bitsandbytes.optim.Adagrad32bit", "(p, lr=0.1, eps=1e-8)", "torch.optim.Adagrad"),
        ("flash_attn.losses.cross_entropy.CrossEntropyLoss", "(ignore_index=0)", "torch.nn.CrossEntropyLoss"),
        ("flash_attn.ops.fused_dense.FusedDense", "(4, 8, False)", "torch.nn.Linear"),
    ],
)
def test_similar_apis(imported: str, call: str, after: str) -> None:
    module, name = imported.rsplit(".", 1)
    new, last = after.rsplit(".", 1)
    told = f" as {name}" if last != name else ""
    before = f"from {module} import {name}\nmade = {name}{call}\n"
    check_noop(before, open_codes=["NPU510"])
    check_rewrite(before, f"from {new} import {last}{told}\nmade = {name}{call}\n", similar=True)


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("apex.contrib.layer_norm.FastLayerNorm", "(hidden_size=8)"),
        ("apex.contrib.group_norm.GroupNorm", "(4, 8, act='silu')"),
        ("bitsandbytes.optim.RMSprop", "(p, momentum=0.9)"),
        ("bitsandbytes.optim.Adagrad", "(p, optim_bits=8)"),
        ("flash_attn.losses.cross_entropy.CrossEntropyLoss", "(0)"),
        ("flash_attn.losses.cross_entropy.CrossEntropyLoss", "(process_group=group)"),
        ("flash_attn.ops.fused_dense.FusedDense", "(4, 8, True, True)"),
        ("apex.optimizers.FusedLAMB", "(p, lr=0.1)"),
        ("apex.optimizers.FusedLAMB", "(p, weight_decay=0.1, max_grad_norm=2.0)"),
    ],
)
def test_calls_with_other_options_have_no_similar_api(imported: str, call: str) -> None:
    module, name = imported.rsplit(".", 1)
    source = f"from {module} import {name}\nmade = {name}{call}\n"
    result = migrate(source, similar=True)
    assert result.data.decode() == source
    assert {finding.code for finding in result.findings} & {"NPU510", "NPU120"}


def test_similar_apis_of_torch_cuda() -> None:
    errors = "import torch\ntry:\n    run()\nexcept torch.cuda.CudaError:\n    stop()\n"
    check_noop(errors, open_codes=["NPU501"], similar=True)
    stream = "import torch\nstream = torch.cuda.get_stream_from_external(address, 0)\n"
    check_noop(stream, open_codes=["NPU501"])
    check_noop(stream, open_codes=["NPU501"], similar=True, torch_version="2.8")
    check_rewrite(
        stream,
        "import torch\nimport torch_npu  # noqa: F401\nstream = torch.npu.ExternalStream(address, 0)\n",
        similar=True,
        torch_version="2.13",
    )


def test_the_optimizer_of_large_batches() -> None:
    check_rewrite(
        "from apex.optimizers import FusedLAMB\nmade = FusedLAMB(p, lr=0.1, weight_decay=0.1)\n",
        "from torch_npu.optim import NpuFusedLamb as FusedLAMB\nimport torch_npu  # noqa: F401\n"
        "made = FusedLAMB(p, lr=0.1, weight_decay=0.1)\n",
        similar=True,
        torch_version="2.13",
    )


@pytest.mark.parametrize(
    "line",
    [
        "ray.init(num_gpus=2)",
        "@ray.remote(num_gpus=1)\ndef work(): ...",
        "Actor.options(num_gpus=0.5).remote()",
    ],
)
def test_ray_counts_npus_by_another_name(line: str) -> None:
    check_noop(f"import ray\n{line}\n", open_codes=["NPU147"])


@pytest.mark.parametrize("line", ["ray.init(num_cpus=2)", "ray.init(num_gpus=0)", "train(num_gpus=2)"])
def test_calls_of_ray_that_ask_for_no_gpu(line: str) -> None:
    check_noop(f"import ray\n{line}\n")


@pattern("P41")
def test_parallel_modules_of_mmcv() -> None:
    check_rewrite(
        "from mmcv.parallel import MMDistributedDataParallel\nmodel = MMDistributedDataParallel(model)\n",
        """
        from mmcv.device.npu import NPUDistributedDataParallel as MMDistributedDataParallel
        model = MMDistributedDataParallel(model)
        """,
    )
    check_noop(
        "import mmcv.parallel\nmodel = mmcv.parallel.MMDataParallel(model, device_ids=[0])\n", open_codes=["NPU507"]
    )


@pytest.mark.parametrize(
    ("source", "code", "blocks"),
    [
        ("import torch_geometric.nn as gnn\nmodel = gnn.DataParallel(model)\n", "NPU507", "first step"),
        ("from torch_geometric.nn import data_parallel as d\nmodel = d.DataParallel(model)\n", "NPU507", "first step"),
        ("from audiotools import ml\naccel = ml.Accelerator(amp=True)\n", "NPU510", "first step"),
    ],
)
def test_names_that_take_cuda_or_the_cpu(source: str, code: str, blocks: str) -> None:
    result = check_noop(source, open_codes=[code])
    assert {each.blocks for each in result.findings if each.open} == {blocks}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("from mmcv.ops import nms", "NPU512"),
        ("import faiss\nindex = faiss.index_cpu_to_gpu(resources, 0, index)", "NPU510"),
    ],
)
def test_more_packages(line: str, code: str) -> None:
    check_noop(f"{line}\n", open_codes=[code])


@pytest.mark.parametrize(
    "line",
    [
        "from deepspeed.ops.deepspeed4science import DS4Sci_EvoformerAttention",
        "from deepspeed.ops.sparse_attention import SparseSelfAttention",
    ],
)
def test_kernels_of_deepspeed_for_cuda_alone(line: str) -> None:
    check_noop(f"{line}\n", open_codes=["NPU510"])


@pytest.mark.parametrize("line", ["from deepspeed.ops.adam import DeepSpeedCPUAdam", "import deepspeed"])
def test_what_deepspeed_has_for_npus(line: str) -> None:
    check_noop(f"{line}\n")


# --- trees that are the library --------------------------------------------------------------------------------------

#: An accelerate from before 0.21, whose files import each other as its users do.
OLD_ACCELERATE = {
    "accelerate/__init__.py": "from .utils import DistributedType, is_cuda_available\n",
    "accelerate/utils/__init__.py": """
        from .dataclasses import DistributedType
        from .imports import is_cuda_available
        """,
    "accelerate/utils/dataclasses.py": """
        import enum

        class DistributedType(str, enum.Enum):
            NO = "NO"
            MULTI_GPU = "MULTI_GPU"
        """,
    "accelerate/utils/imports.py": "import torch\ndef is_cuda_available():\n    return torch.cuda.is_available()\n",
}
NEW_MEMBER = OLD_ACCELERATE["accelerate/utils/dataclasses.py"] + '    MULTI_NPU: str = "MULTI_NPU"\n'
USES_ACCELERATE = [
    ("accelerate/state.py", "from .utils import DistributedType\nx = DistributedType.MULTI_GPU\n"),
    ("accelerate/state.py", "from .utils.dataclasses import DistributedType as D\nx = D.MULTI_GPU\n"),
    ("tests/test_state.py", "from accelerate import DistributedType\nx = DistributedType.MULTI_GPU\n"),
    ("tests/test_state.py", "import accelerate\nx = accelerate.DistributedType.MULTI_GPU\n"),
    ("tests/test_state.py", "x = state.distributed_type == 'MULTI_GPU'\n"),
]


def in_sources(files: dict[str, str]) -> dict[str, str]:
    """The same tree with its package in `src`."""
    return {f"src/{path}" if path.startswith("accelerate") else path: text for path, text in files.items()}


@pytest.mark.parametrize("folder", [dict, in_sources])
@pytest.mark.parametrize(("path", "source"), USES_ACCELERATE)
def test_a_name_that_the_sources_of_the_library_do_not_have(path: str, source: str, folder: Any) -> None:
    files = folder({path: source, **OLD_ACCELERATE})
    path = next(each for each in files if each.endswith(path))
    check_noop(files.pop(path), path=path, files=files)


@pytest.mark.parametrize(("path", "source"), USES_ACCELERATE)
def test_a_name_that_the_sources_of_the_library_have(path: str, source: str) -> None:
    files = {**OLD_ACCELERATE, "accelerate/utils/dataclasses.py": NEW_MEMBER}
    check_rewrite(source, source.replace("MULTI_GPU", "MULTI_NPU"), path=path, files=files)


def test_a_file_of_the_library_seen_alone() -> None:
    """A relative import leads into the package itself, and nobody knows what that has."""
    source = "from .utils import DistributedType\nx = DistributedType.MULTI_GPU\n"
    result = migrate_source(source.encode(), "accelerate/state.py", Settings(), ProjectFacts())
    assert not result.changed


@pytest.mark.parametrize(
    ("files", "source"),
    [
        (OLD_ACCELERATE, "from accelerate.utils import is_cuda_available\nx = is_cuda_available()\n"),
        ({"src/transformers/utils/import_utils.py": "def is_torch_cuda_available():\n    return True\n"},
         "from transformers.utils.import_utils import is_torch_cuda_available\nx = is_torch_cuda_available()\n"),
        ({"mmcv/parallel/__init__.py": "from .distributed import MMDistributedDataParallel\n",
          "mmcv/parallel/distributed.py": "class MMDistributedDataParallel(Base):\n    pass\n"},
         "from mmcv.parallel import MMDistributedDataParallel\nm = MMDistributedDataParallel(net)\n"),
        ({"mmengine/device/utils.py": "def is_cuda_available() -> bool:\n    return True\n"},
         "import mmengine.device.utils as u\nx = u.is_cuda_available()\n"),
        # a class of the project's own, of that name or with such a member
        ({"kinds.py": "class DistributedType:\n    MULTI_GPU = 'MULTI_GPU'\n"},
         "from kinds import DistributedType\nx = s.distributed_type == 'MULTI_GPU' or DistributedType.MULTI_GPU\n"),
    ],
)  # fmt: skip
def test_what_a_tree_defines_itself_keeps_its_name(files: dict[str, str], source: str) -> None:
    check_noop(source, path="tests/test_it.py", files=files)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"scripts/accelerate.py": "print('starts it')\n"},  # a script that is called so
        {"trainers/accelerate.py": "def begin():\n    MULTI = 1\n"},
        {"kinds.py": "x = dict(MULTI_GPU=1)\ny = DistributedType.MULTI_GPU\n"},  # it defines nothing
    ],
)
def test_users_of_an_installed_library(files: dict[str, str]) -> None:
    source = "from accelerate import DistributedType as D\nx = D.MULTI_GPU\ny = s.distributed_type == 'MULTI_GPU'\n"
    check_rewrite(source, source.replace("MULTI_GPU", "MULTI_NPU"), files=files)


def test_similar_optimizers_in_the_tree_of_their_library() -> None:
    source = "from bitsandbytes.optim import AdamW8bit\nopt = AdamW8bit(model.parameters(), lr=1e-3)\n"
    own = {"bitsandbytes/optim/__init__.py": "from .adamw import AdamW8bit\n",
           "bitsandbytes/optim/adamw.py": "class AdamW8bit(Base):\n    pass\n"}  # fmt: skip
    assert migrate(source, similar=True).changed
    assert not migrate(source, path="tests/test_optim.py", files=own, similar=True).changed
