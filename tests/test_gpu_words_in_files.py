"""Words that bind to a GPU without naming CUDA, in scripts and configurations: in their places and elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from transplt.base.finding import Finding, Level
from transplt.base.settings import Settings, TorchTarget
from transplt.engine.engine import index_source, join_facts
from transplt.engine.files.gpu_words import beside_tokens, gpu_word_findings
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.tokens import MAX_FINDINGS
from transplt.rules.pages import load
from transplt.rules.tables import rules_dir

#: (row of the table, file, code, text with the word in the line that ends with `<`).
FOUND = [
    ("flash_attention_2", "run.sh", "NPU141", "python a.py --attn_implementation flash_attention_2<"),
    ("flash_attention_2", "run.sh", "NPU141", "torchrun a.py \\\n --ds.attn_implementation=flash_attention_2 \\<\n"),
    ("flash_attention_2", "c.yaml", "NPU141", "model:\n  attn_implementation: flash_attention_2<"),
    ("use_flash_attention_2", "c.yaml", "NPU141", "use_flash_attention_2: true<"),
    ("load_in_8bit", "c.yaml", "NPU142", "load_in_4bit: true<"),
    ("load_in_8bit", "run.sh", "NPU142", "python a.py --load_in_4bit --x<"),
    ("load_in_8bit", "run.sh", "NPU142", "python a.py --load_in_8bit True<"),
    ("load_in_8bit", "config.json", "NPU142", '{\n  "quantization_config": {\n    "load_in_4bit": true<\n  }\n}'),
    ("tf32", "run.sh", "NPU143", "torchrun a.py --bf16 True \\\n  --tf32 True \\<\n  --x"),
    ("tf32", "c.yml", "NPU143", "bf16: auto\ntf32: true<"),
    ("optim of bitsandbytes", "run.sh", "NPU144", "python a.py --optim paged_adamw_8bit<"),
    ("optim of bitsandbytes", "c.yaml", "NPU144", "optimizer: adamw_bnb_8bit<"),
    ("optim of torchao", "c.yaml", "NPU144", "optimizer: adamw_torch_8bit<"),
    ("optim of apex", "run.sh", "NPU144", "python a.py --optim=adamw_apex_fused<"),
    ("half_precision_backend", "run.sh", "NPU144", "python a.py --half_precision_backend apex<"),
    ("attention of xformers", "run.sh", "NPU146", "python a.py --enable_xformers_memory_efficient_attention<"),
    ("accelerator of Lightning", "c.yaml", "NPU145", "trainer:\n  accelerator: gpu<\n  devices: 8"),
    ("accelerator of Lightning", "c.yaml", "NPU145", "trainer:\n  max_epochs: 1\n  gpus: 8<"),
    ("accelerator of Lightning", "gpu.yaml", "NPU145", "defaults:\n  - default\n\naccelerator: gpu<\ndevices: 1"),
    ("flash_attention_2", "run.sh", "NPU141",
     "python3 -m a \\\n  +model.override_config.attn_implementation=flash_attention_2 \\<\n  x=1"),
    ("attention kernels of the Hub", "c.yaml", "NPU141", "attn_implementation: kernels-community/flash-attn3<"),
    ("torch_compile of transformers", "run.sh", "NPU512", "python a.py --torch_compile True --x<"),
    ("torch_compile of transformers", "run.sh", "NPU512", "python a.py --torch_compile<"),
    ("torch_compile of transformers", "run.sh", "NPU512", "accelerate launch --dynamo_backend inductor a.py<"),
    ("torch_compile of transformers", "run.sh", "NPU512",
     "python -m v actor_rollout_ref.actor.use_torch_compile=True<"),
    ("torch_compile of transformers", "c.yaml", "NPU512",
     "compute_environment: LOCAL_MACHINE\ndynamo_config:\n  dynamo_backend: INDUCTOR<"),
    ("torch_compile of transformers", "c.yaml", "NPU512", "bf16: true\ntorch_compile: true<"),
    ("use_liger_kernel", "run.sh", "NPU512", "python a.py --use_liger_kernel True<"),
    ("use_liger_kernel", "run.sh", "NPU512", "python a.py --use_liger_kernel<"),
    ("use_liger_kernel", "c.yaml", "NPU512", "model: x\nuse_liger_kernel: true<"),
    ("use_liger_kernel", "run.sh", "NPU512", "python -m v model.use_liger=True<"),
    ("use_vllm", "run.sh", "NPU512", "python a.py --use_vllm True --vllm_mode colocate<"),
    ("use_vllm", "run.sh", "NPU512", "python -m v \\\n  actor_rollout_ref.rollout.name=vllm \\<\n  x=1"),
    ("use_vllm", "run.sh", "NPU512", "vllm serve name --tensor-parallel-size 2<"),
    ("quantization of vLLM", "run.sh", "NPU158", "vllm serve \\\n  --quantization awq<"),
    ("kv_cache_dtype of vLLM", "run.sh", "NPU158", "vllm serve \\\n  --kv-cache-dtype fp8<"),
    ("device of vLLM", "run.sh", "NPU158", "python -m vllm.entrypoints.openai.api_server \\\n --device npu<"),
    ("VLLM_ATTENTION_BACKEND", "run.sh", "NPU158", "export VLLM_ATTENTION_BACKEND=XFORMERS<"),
    ("sglang in verl", "run.sh", "NPU158", "python -m v \\\n  actor_rollout_ref.rollout.name=sglang \\<\n  x=1"),
    ("megatron in verl", "run.sh", "NPU512", "python -m v actor_rollout_ref.actor.strategy=megatron<"),
    ("megatron in verl", "run.sh", "NPU512", "python -m v --config-name='ppo_megatron_trainer.yaml'<"),
    ("Triton kernels of verl", "run.sh", "NPU512",
     "python -m v actor_rollout_ref.model.fused_kernel_options.impl_backend=triton<"),
    ("nsys in verl", "run.sh", "NPU158", "python -m v global_profiler.tool=nsys<"),
    ("accelerator of Lightning", "run.sh", "NPU145", "python a.py fit --trainer.accelerator=gpu<"),
    ("accelerator of Lightning", "run.sh", "NPU145", "python a.py trainer=gpu<"),
    ("accelerator of Lightning", "run.sh", "NPU145", "fabric run --accelerator=cuda --devices=2 a.py<"),
    ("no accelerator of Lightning", "run.sh", "NPU145", "lightning run model --accelerator auto a.py<"),
    ("no accelerator of Lightning", "c.yaml", "NPU145", "trainer:\n  accelerator: auto<\n  devices: 8"),
    ("no accelerator of Lightning", "c.yaml", "NPU145",
     "trainer:\n  _target_: pytorch_lightning.Trainer<\n  devices: 2"),
    ("num_gpus of ray", "run.sh", "NPU147", "ray start --head --num-gpus=8<"),
    ("resource GPU of ray", "run.sh", "NPU147", "ray start --head --resources='{\"GPU\": 8}'<"),
    ("quantize of ChatGLM", "run.sh", "NPU142", "python main.py \\\n    --quantization_bit 4<"),
    ("quantize of ChatGLM", "run.sh", "NPU142", "python main.py --quantization-bit=8 --lr 1<"),
    ("evaluation_strategy of TrainingArguments", "run.sh", "NPU293",
     "torchrun a.py \\\n  --evaluation_strategy no \\<\n  --x"),
    ("evaluation_strategy of TrainingArguments", "c.yaml", "NPU293", "model: x\nevaluation_strategy: steps<"),
    ("group_by_length of TrainingArguments", "c.yaml", "NPU293",
     "per_device_train_batch_size: 2\ngroup_by_length: false<"),
    ("warmup_ratio of TrainingArguments", "run.sh", "NPU293", "torchrun a.py --warmup_ratio 0.03<"),
    ("overwrite_output_dir of TrainingArguments", "run.sh", "NPU293", "python a.py --overwrite_output_dir<"),
    ("save_safetensors of TrainingArguments", "run.sh", "NPU293", "python a.py --save_safetensors False<"),
    ("GPUs of Slurm", "run.sh", "NPU280", "#!/bin/bash\n#SBATCH --gres=gpu:8<"),
    ("GPUs of Slurm", "run.slurm", "NPU280", "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8<"),
    ("GPUs of Slurm", "run.sh", "NPU280", "srun -p x --gres=gpu:a100:8 python a.py<"),
    ("GPUs of Slurm", "run.sh", "NPU280", "srun -p x \\\n  --gres=gpu:${GPUS} \\<\n  python a.py"),
    ("GPUs of Slurm", "run.sh", "NPU280", 'sbatch_args="$sbatch_args --gpus-per-node=1 --mem=0"<'),
    ("GPUs of Slurm", "run.sh", "NPU280", "salloc -G 8<"),
    ("GPUs of Slurm", "c.yaml", "NPU280", "hydra:\n  launcher:\n    gpus_per_node: 8<\n    timeout_min: 60"),
    ("GPUs of Slurm", "c.yaml", "NPU280", "gres: gpu:8<"),
    ("a card with 80 GB", "run.sh", "NPU295", "#!/bin/bash\n#SBATCH --constraint=a100_80gb<"),
    ("a card with 80 GB", "run.sh", "NPU295", "sbatch -C 'a100&gpu80g' job.sh<"),
    ("a card with 80 GB", "pod.yaml", "NPU295",
     "spec:\n  nodeSelector:\n    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB<"),
    ("a card with 80 GB", "pod.yaml", "NPU295",
     "nodeSelector:\n  cloud.google.com/gke-accelerator: nvidia-h100-80gb<"),
    ("a card with 80 GB", "pod.yaml", "NPU295",
     "affinity:\n  matchExpressions:\n    - key: nvidia.com/gpu.product\n      values:\n"
     "        - NVIDIA-H100-80GB-HBM3<"),
    ("GPUs of a batch system", "run.pbs", "NPU280", "#PBS -l select=1:ncpus=8:ngpus=4<"),
    ("GPUs of Slurm", "run.sh", "NPU280", "#SBATCH --nodes=1\n#SBATCH --gpu-bind=single:1<\n"),
    ("GPUs of Slurm", "run.sh", "NPU280", "srun --gpu-bind closest python a.py<"),
    ("GPUs that Slurm counts", "run.sh", "NPU280", "torchrun --nproc_per_node=$SLURM_GPUS_ON_NODE a.py<"),
    ("GPUs that Slurm counts", "run.sh", "NPU280", "GPUS=${SLURM_GPUS_PER_NODE}<\ntorchrun a.py"),
    ("GPUs of docker", "run.sh", "NPU280", "docker run --rm \\\n  --gpus all \\<\n  image python a.py"),
    ("GPUs of docker", "run.sh", "NPU280", "sudo docker run --gpus '\"device=0,1\"' image<"),
    ("GPUs of docker", "Makefile", "NPU280", "PARAMETERS := \\\n\t--gpus all \\<\n\t-v x:y"),
    ("GPUs of docker", "ci.yml", "NPU280", "jobs:\n  a:\n    container:\n      image: x\n      options: --gpus all<"),
    ("GPUs of docker", "docker-compose.yml", "NPU280", "services:\n  a:\n    gpus: all<"),
    ("GPUs of docker", "docker-compose.yml", "NPU280",
     "services:\n  a:\n    deploy:\n      resources:\n        reservations:\n          devices:\n"
     "            - driver: x\n              capabilities: [gpu]<"),
    ("GPUs of docker", "docker-compose.yml", "NPU280",
     "services:\n  a:\n    devices:\n    - capabilities:\n      - gpu<"),
    ("GPUs of Kubernetes", "pod.yaml", "NPU280",
     "spec:\n  containers:\n    - name: a\n      resources:\n        limits:\n          amd.com/gpu: 8<"),
    ("GPUs of Kubernetes", "sky.yaml", "NPU280", "resources:\n  accelerators: A100:8<"),
    ("mode reduce-overhead", "c.yaml", "NPU281", "torch_compile_mode: reduce-overhead<"),
    ("device=0 of Ultralytics", "run.sh", "NPU283", "yolo train data=x device=0,1<"),
    ("multi_gpu of accelerate", "run.sh", "NPU284", "accelerate launch --multi_gpu --num_processes 8 a.py<"),
    ("multi_gpu of accelerate", "acc.yaml", "NPU284", "compute_environment: LOCAL\ndistributed_type: MULTI_GPU<"),
    ("multi_gpu of accelerate", "acc.yaml", "NPU284", "compute_environment: LOCAL_MACHINE\ngpu_ids: all<"),
    ("num_gpus of deepspeed", "run.sh", "NPU284", "deepspeed --num_gpus=8 a.py --deepspeed ds.json<"),
    ("one process for each GPU", "run.sh", "NPU285", "torchrun --standalone --nproc_per_node=gpu a.py<"),
    ("one process for each GPU", "run.sh", "NPU285", "python -m torch.distributed.run --nproc-per-node gpu a.py<"),
    ("one process for each GPU", "ci.yml", "NPU285", "steps:\n  - run: torchrun --nproc_per_node=gpu a.py<"),
    ("optimizer of DeepSpeed", "ds.json", "NPU286",
     '{\n  "train_batch_size": 8,\n  "optimizer": {\n    "type": "Lamb",<\n    "params": {}\n  }\n}'),
    ("amp of DeepSpeed", "ds.json", "NPU286", '{\n  "train_batch_size": 8,\n  "amp": {\n    "enabled": true<\n  }\n}'),
    ("sparse attention of DeepSpeed", "ds.json", "NPU286",
     '{\n  "train_batch_size": 8,\n  "sparse_attention": {\n    "mode": "fixed"<\n  }\n}'),
]  # fmt: skip

#: The same words elsewhere, and other values in the same places.
QUIET = [
    ("run.sh", "torchrun --nproc_per_node=${SLURM_GPUS_ON_NODE:-8} a.py"),
    ("run.sh", "echo $SLURM_GPUS_ON_NODE\nN=$SLURM_NTASKS_PER_NODE\npython a.py"),
    ("run.sh", "#SBATCH --ntasks-per-node=8\n#SBATCH --cpu-bind=cores\nexport SLURM_CPU_BIND=cores"),
    ("run.sh", "python a.py --torch_compile False --use_liger_kernel False --use_vllm=false"),
    ("run.sh", "python a.py --torch_compile_mode default --no_torch_compile"),
    ("run.sh", "python -m v actor_rollout_ref.actor.use_torch_compile=False actor_rollout_ref.actor.strategy=fsdp"),
    ("run.sh", "vllm serve --quantization ascend --kv-cache-dtype auto"),
    ("run.sh", "python a.py --quantization awq --kv-cache-dtype fp8 --device npu --model name"),
    ("run.sh", 'python -m v \\\n actor_rollout_ref.rollout.name=sglang \\\n +e.sglang.attention_backend="ascend"'),
    ("run.sh", "python -m v global_profiler.tool=npu rollout.name=sglang"),
    ("c.yaml", "compute_environment: LOCAL_MACHINE\ndynamo_config:\n  dynamo_backend: 'no'"),
    ("c.yaml", "torch_compile: false\nuse_liger_kernel: false\nuse_vllm: false"),
    ("c.yaml", "name: vllm and sglang with megatron\nliger: none"),
    ("c.yaml", "trainer:\n  _target_: pytorch_lightning.Trainer\n  devices: 2\n  accelerator: cpu"),
    ("c.yaml", "trainer:\n  _target_: project.Trainer\n  devices: 2\naccelerator: auto"),
    ("run.sh", "fabric run --accelerator=cpu --devices=2 a.py"),
    ("README.md", "docker run --gpus all image\n#SBATCH --gres=gpu:8\n"),
    ("notes.txt", "accelerate launch --multi_gpu a.py"),
    ("run.sh", "python a.py --gpus 8 --num_gpus 8 --gpu_ids 0,1 --multi_gpu --use_gpu"),
    ("run.sh", "# docker run --gpus all image\n# srun --gres=gpu:8 x"),
    ("run.sh", 'echo "use: docker run --gpus 2 image"'),
    ("run.sh", 'echo "python a.py --attn_implementation flash_attention_2"'),
    ("run.sh", "torchrun --nproc_per_node=8 a.py --nproc_per_node gpu"),
    ("run.sh", "torchrun --nproc_per_node=$GPUS a.py"),
    ("run.sh", "accelerate launch a.py --multi_gpu --gpu_ids 0"),
    ("run.sh", "deepspeed a.py --num_gpus 8"),
    ("run.sh", "pip install deepspeed\npython a.py --num_gpus=8"),
    ("run.sh", "srun -n 8 python a.py --gpus 8"),
    ("run.sh", "srun --gres=npu:8 python a.py"),
    ("run.sh", "#SBATCH --gres=npu:8\n#SBATCH --ntasks=8"),
    ("run.sh", "docker run --device /dev/davinci0 image python a.py --gpus 2"),
    ("run.sh", "docker build --build-arg gpus=all ."),
    ("run.sh", "#SBATCH --constraint=a100_40gb\n#SBATCH --constraint=v100-180gb\n#SBATCH --constraint=a100"),
    ("run.sh", "srun python a.py --constraint 80gb\npython b.py --constraint=80gb -C 80gb"),
    ("run.sh", "# runs on 8 A100 with 80GB\necho 'needs H100 80GB'"),
    ("vllm.yaml", "gpu_memory_utilization: 0.9"),
    ("pod.yaml", "spec:\n  nodeSelector:\n    nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB"),
    ("run.sh", "python a.py --tf32 False --load_in_8bit False --load_in_4bit=False --optim adamw_torch"),
    ("run.sh", "python a.py --optimizer sgd --attn_implementation sdpa"),
    ("run.sh", "python a.py --accelerator cpu trainer=ddp trainer.accelerator=cpu"),
    ("run.sh", "gpus=8\nNUM_GPUS=$gpus"),
    ("run.sh", "yolo train data=x device=cpu"),
    ("c.yaml", "gpus: 8\nnum_gpus: 8\nuse_gpu: true\ngpu_ids: [0, 1]"),
    ("c.yaml", "accelerator: gpu"),
    ("c.yaml", "trainer:\n  accelerator: cpu\n  gpus: 0"),
    ("c.yaml", "trainer:\n  # accelerator: gpu\n  devices: 1"),
    ("c.yaml", "help: |\n  trainer:\n    accelerator: gpu\n  load_in_4bit: true\nx: 1"),
    ("c.yaml", "gpus_per_node: 8"),
    ("c.yaml", "hydra:\n  launcher:\n    gpus_per_node: 0"),
    ("c.yaml", "optim: adamw_torch\ntf32: false\nload_in_8bit: false\nattn_implementation: sdpa"),
    ("c.yaml", "name: paged_adamw_8bit\nnote: flash_attention_2"),
    ("c.yaml", "optimizer:\n  type: Lamb"),
    ("c.yaml", "amp:\n  enabled: true"),
    ("c.yaml", "capabilities: [gpu]"),
    ("c.yaml", "distributed_type: MULTI_NPU"),
    ("ci.yml", "jobs:\n  gpu:\n    runs-on: [self-hosted, gpu]\n    env:\n      options: --gpus"),
    ("ds.json", '{\n  "train_batch_size": 8,\n  "optimizer": {\n    "type": "AdamW"\n  }\n}'),
    ("ds.json", '{\n  "train_batch_size": 8,\n  "amp": {\n    "enabled": false\n  }\n}'),
    ("pod.yaml", "resources:\n  limits:\n    cpu: 8\n    huawei.com/Ascend910: 8"),
    ("c.toml", "[tool.x]\ngpus = 8\naccelerator = 'gpu'"),
    ("a.py.txt", "ray.init(num_gpus=8)"),
]  # fmt: skip


def words(name: str, text: str, pins: tuple[tuple[str, str], ...] = ()) -> list[Finding]:
    data = text.encode()
    return gpu_word_findings(data, name, kind_of(name, data), pins)


@pytest.mark.parametrize(("word", "name", "code", "text"), FOUND)
def test_a_word_in_its_place_is_found(word: str, name: str, code: str, text: str) -> None:
    lines = text.split("\n")
    (line,) = (number for number, each in enumerate(lines, 1) if each.endswith("<"))
    source = text.replace("<\n", "\n").removesuffix("<")
    (finding,) = words(name, f"{source}\n")
    assert (finding.code, finding.span.line) == (code, line)
    assert finding.help and finding.api
    assert (finding.effort is None) is (finding.level is Level.INFO)
    assert source.encode()[finding.span.start : finding.span.end].decode() in lines[line - 1]


@pytest.mark.parametrize(("name", "text"), QUIET)
def test_the_word_elsewhere_is_none(name: str, text: str) -> None:
    assert words(name, f"{text}\n") == []


def test_a_toml_section_is_part_of_the_way() -> None:
    (finding,) = words("c.toml", "[trainer]\naccelerator = 'gpu'\n")
    assert (finding.code, finding.span.line) == ("NPU145", 2)


def test_a_line_with_windows_ends_and_umlauts() -> None:
    (finding,) = words("run.sh", "größe=1; srun --gres=gpu:8 x\r\n")
    assert (finding.span.column, finding.span.start) == (15, 16)
    assert finding.message == "this asks Slurm for GPUs: --gres=gpu:8"


def test_bytes_that_are_no_utf8() -> None:
    data = b"x=\xff\xfe\nsrun --gres=gpu:8 \xff\n"
    (finding,) = gpu_word_findings(data, "run.sh", kind_of("run.sh", data), ())
    assert data[finding.span.start : finding.span.end] == b"--gres=gpu:8"


def test_where_the_line_names_cuda_too_there_is_one_finding() -> None:
    from tests.test_other_files import scan

    text = "docker run --gpus all nvidia/cuda:12\nsrun --gres=gpu:8 x\n"
    both = beside_tokens(scan("run.sh", text).findings, words("run.sh", text))
    assert [(each.code, each.span.line) for each in both] == [("NPU801", 1), ("NPU280", 2)]
    assert "/dev/davinci0" in both[0].help


def test_a_comment_and_the_settings_switch_a_word_off() -> None:
    text = "srun --gres=gpu:8 x  # transplt: ignore[NPU280]\n"
    assert [each.ignored for each in words("run.sh", text)] == ["ignored by a comment"]
    found = gpu_word_findings(b"srun --gres=gpu:8 x\n", "run.sh", kind_of("run.sh", b""), (), ("NPU28",))
    assert [each.ignored for each in found] == ["ignored for this file in the settings"]


def test_the_pinned_version_decides() -> None:
    (finding,) = words("run.sh", "accelerate launch --multi_gpu a.py\n", (("accelerate", "==0.20.3"),))
    assert finding.level is Level.MANUAL
    assert "accelerate>=0.21.0" in finding.help


@pytest.mark.parametrize(
    ("asked", "code", "found"),
    [
        ("", "from transformers import HfArgumentParser, TrainingArguments\n", ["NPU293"]),
        ("==4.45.2", "from transformers import HfArgumentParser, TrainingArguments\n", []),
        # of its own, and of a field of its own
        ("", "from transformers import Trainer\nparser.add_argument('--warmup_ratio', type=float)\n", []),
        ("", "import transformers\n", []),
        ("", "from dataclasses import dataclass\nfrom transformers import TrainingArguments\n@dataclass\n"
             "class Own(TrainingArguments):\n    warmup_ratio: float = 0.1\n", []),
    ],
)
def test_a_field_that_transformers_lacks_is_told_of_where_the_project_hands_it_on(
    asked: str, code: str, found: list[str]
) -> None:
    settings = Settings(pins=(("transformers", asked),) if asked else ())
    project = join_facts([index_source(code.encode(), "train.py", settings)], settings)
    text = b"torchrun train.py --warmup_ratio 0.03\n"
    target = TorchTarget("2.14", "")
    result, _ = migrate_other(text, "run.sh", kind_of("run.sh", text), settings, target, project=project)
    assert [each.code for each in result.findings] == found


@pytest.mark.parametrize(
    ("name", "text", "codes"),
    [
        ("run.sh", "srun --gres=gpu:a100-80gb:4 a\n", ["NPU280", "NPU295"]),
        ("run.sh", "srun --gres=gpu:nvidia_a100_80gb_pcie:4 a\n", ["NPU280", "NPU295"]),
        ("run.sh", "srun --gres=gpu:h100:8 a\n", ["NPU280", "NPU295"]),
        ("run.sh", "srun --gres=gpu:a100:8 a\n", ["NPU280"]),
        ("run.sh", "srun --gres=gpu:h1000:8 a\n", ["NPU280"]),
        ("sky.yaml", "resources:\n  accelerators: A100-80GB:8\n", ["NPU280", "NPU295"]),
        ("sky.yaml", "resources:\n  accelerators: A100:8\n", ["NPU280"]),
    ],
)
def test_how_large_a_card_is_stands_beside_that_it_is_a_gpu(name: str, text: str, codes: list[str]) -> None:
    assert sorted(each.code for each in words(name, text)) == codes


def test_the_memory_is_said_where_the_place_is_known_otherwise() -> None:
    text = b"kind: Pod\nspec:\n  nodeSelector:\n    nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB\n"
    result, _ = migrate_other(text, "pod.yaml", kind_of("pod.yaml", text), Settings(), TorchTarget("2.8", ""))
    assert [(each.code, each.span.line) for each in result.findings] == [("NPU854", 3), ("NPU295", 4)]


def test_the_example_of_the_page_of_memory() -> None:
    page = (Path(rules_dir()) / "diagnostics" / "NPU295.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert [(each.code, each.level) for each in words("run.sh", text) if each.code != "NPU280"] == [
        ("NPU295", Level.INFO)
    ]


@pytest.mark.parametrize("code", ["NPU284", "NPU285", "NPU286"])
def test_the_example_of_the_page_is_what_happens(code: str) -> None:
    page = (Path(rules_dir()) / "diagnostics" / f"{code}.md").read_text(encoding="utf-8")
    ((language, text),) = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    name = {"sh": "run.sh", "yaml": "acc.yaml", "json": "ds.json"}[language]
    assert {(each.code, each.level) for each in words(name, text)} == {(code, load(code).level)}


def test_a_file_full_of_words_does_not_drown_the_report() -> None:
    found = words("run.sh", "srun --gres=gpu:8 x\n" * (MAX_FINDINGS + 50))
    assert len(found) == MAX_FINDINGS
    assert found[-1].message.endswith("; 50 more lines of this file request GPUs")


@pytest.mark.parametrize(
    "text",
    [
        "a:\n" * 5000,
        "- " * 5000 + "gpu: 1",
        "".join(f"{' ' * depth}gpu{depth}:\n" for depth in range(800)),
        "accelerator: gpu\n" * 20_000,
        "srun " + "--gres=" * 2500 + "gpu",
        "docker run \\\n" * 5000 + "--gpus all",
        '{"gpu": ' * 5000,
    ],
    ids=["keys", "dashes", "deep", "alike", "flags", "continued", "json"],
)
def test_a_file_of_any_shape_is_read(text: str) -> None:
    words("c.yaml", text)
    words("run.sh", text)
