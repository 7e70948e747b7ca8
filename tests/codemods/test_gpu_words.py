"""Words that bind to a GPU without naming CUDA, in Python: each in its place, and the same words elsewhere."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate
from transplt.base.finding import Level

#: (row of the table, code, source): a finding with the code, and nothing changes.
FOUND = [
    ("flash_attention_2", "NPU141", 'm = load("x", attn_implementation="flash_attention_2")'),
    ("flash_attention_2", "NPU141", 'def load(name, attn_implementation="flash_attention_2"): ...'),
    ("flash_attention_2", "NPU141", 'def load(name, *, attn_implementation="flash_attention_2"): ...'),
    ("flash_attention_2", "NPU141", 'p.add_argument("--attn_implementation", default="flash_attention_2")'),
    ("flash_attention_2", "NPU141", 'p.add_argument("--ds.attn-implementation", default="flash_attention_2")'),
    ("use_flash_attention_2", "NPU141", 'm = load("x", use_flash_attention_2=True)'),
    ("load_in_8bit", "NPU142", 'm = load("x", load_in_8bit=True)'),
    ("load_in_8bit", "NPU142", 'kwargs["load_in_4bit"] = quantise'),
    ("load_in_8bit", "NPU142", 'model_kwargs = {"load_in_8bit": True}'),
    ("load_in_8bit", "NPU142", "class Loader:\n    load_in_4bit: bool = True"),
    ("load_in_8bit", "NPU142", "self.load_in_4bit = True"),
    ("tf32", "NPU143", "a = SFTConfig(tf32=True)"),
    ("optim of bitsandbytes", "NPU144", 'a = TrainingArguments("out", optim="paged_adamw_8bit")'),
    ("optim of bitsandbytes", "NPU144", 'class A:\n    optim: str = field(default="paged_adamw_32bit")'),
    ("optim of bitsandbytes", "NPU144", 'a = TrainingArguments("out", optim="paged_adamw_8bit" if small else "adamw")'),
    ("optim of bitsandbytes", "NPU144", 'name = "adamw_bnb_8bit"\na = TrainingArguments("out", optim=name)'),
    ("optim of torchao", "NPU144", 'a = TrainingArguments("out", optim="adamw_torch_8bit")'),
    ("optim of apex", "NPU144", 'a = TrainingArguments("out", optim="adamw_apex_fused")'),
    ("half_precision_backend", "NPU144", 'a = TrainingArguments("out", half_precision_backend="apex")'),
    ("attention of xformers", "NPU146", "pipe.enable_xformers_memory_efficient_attention()"),
    ("accelerator of Lightning", "NPU145", 'import lightning\nt = {"accelerator": "gpu"}'),
    ("accelerator of Lightning", "NPU145", 'import pytorch_lightning\ntrainer_config["gpus"] = 2'),
    ("accelerator of Lightning", "NPU145", 'import pytorch_lightning\nfound = trainer_config["gpus"]'),
    ("accelerator of Lightning", "NPU145",
     "import pytorch_lightning\nif config.trainer.get('accelerator') == 'gpu':\n    precision = 16"),
    ("accelerator of Lightning", "NPU145", "import pytorch_lightning as pl\npl.Trainer.from_argparse_args(a, gpus=1)"),
    ("flash_attention_3", "NPU141", 'm = load(attn_implementation="flash_attention_3")'),
    ("torch_compile of transformers", "NPU512", "a = TrainingArguments('out', torch_compile=True)"),
    ("torch_compile of transformers", "NPU512", "a = SFTConfig(torch_compile_backend='inductor')"),
    ("torch_compile of transformers", "NPU512",
     "import accelerate\na = accelerate.Accelerator(dynamo_backend='inductor')"),
    ("use_liger_kernel", "NPU512", "a = TrainingArguments('out', use_liger_kernel=True)"),
    ("use_vllm", "NPU512", "a = GRPOConfig(use_vllm=True)"),
    ("quantization of vLLM", "NPU158", 'import vllm\nm = vllm.LLM("m", quantization="awq")'),
    ("kv_cache_dtype of vLLM", "NPU158", 'from vllm import LLM\nm = LLM("m", kv_cache_dtype="fp8_e5m2")'),
    ("device of vLLM", "NPU158", 'from vllm import LLM\nm = LLM("m", device="npu")'),
    ("VLLM_ATTENTION_BACKEND", "NPU158", 'os.environ["VLLM_ATTENTION_BACKEND"] = "FLASHINFER"'),
    ("sparse attention of DeepSpeed", "NPU286", 'import deepspeed\nc = {"sparse_attention": {"mode": "fixed"}}'),
    ("offloading of diffusers", "NPU149", "import diffusers\np.enable_model_cpu_offload()"),
    ("no accelerator of Lightning", "NPU145", "import lightning as L\nL.Fabric(devices=2)"),
    ("no accelerator of Lightning", "NPU145", 'import lightning as L\nt = {"accelerator": "auto"}'),
    ("no accelerator of Lightning", "NPU145",
     "from lightning.pytorch.cli import LightningCLI\nLightningCLI(Net, Data)"),
    ("an accelerator of Lightning from elsewhere", "NPU145", "import lightning as L\nL.Fabric(accelerator=a.kind)"),
    ("accelerator of Lightning", "NPU145", 'import lightning as L\nkind = "gpu"\nL.Trainer(accelerator=kind)'),
    # what a condition on anything else has the NPU's word in chooses no device
    ("accelerator of Lightning", "NPU145",
     'import lightning as L\nif first:\n    L.Trainer(accelerator="gpu")\nelse:\n    where = "npu"'),
    ("num_gpus of ray", "NPU147", "import ray\nray.init(num_gpus=2)"),
    ("num_gpus of ray", "NPU147", "from ray import remote\n\n@remote(num_gpus=1)\nclass Actor: ..."),
    ("num_gpus of ray", "NPU147", "import ray\nActor.options(num_gpus=share).remote()"),
    ("num_gpus of ray", "NPU147", "import ray\nds.map_batches(f, num_gpus=1)"),
    ("num_gpus of ray", "NPU147", 'from ray import tune\ntune.run(t, config={"num_gpus": 1})'),
    ("num_gpus of ray", "NPU147", "from ray.rllib import PPO\nc = PPO().resources(num_gpus=1, num_gpus_per_worker=1)"),
    ("resource GPU of ray", "NPU147", 'import ray\n\n@ray.remote(resources={"GPU": 1})\ndef f(): ...'),
    ("resource GPU of ray", "NPU147", 'from ray import tune\ntune.run(t, resources_per_trial={"cpu": 4, "gpu": 1})'),
    ("resource GPU of ray", "NPU147", 'import ray\nbundles = [{"GPU": 1, "CPU": 1} for _ in range(4)]'),
    ("resource GPU of ray", "NPU147", 'import ray\nhave = ray.cluster_resources().get("GPU", 0)'),
    ("resource GPU of ray", "NPU147", 'import ray\nhave = ray.available_resources()["GPU"]'),
    ("resource GPU of ray", "NPU147", 'import ray\nids = ray.get_runtime_context().get_accelerator_ids()["GPU"]'),
    ("num_gpus of ray", "NPU147", 'import ray\noptions = {"num_gpus": 1}\nEngine.options(**options).remote(**options)'),
    ("use_gpu of ray", "NPU147", "from ray.train import ScalingConfig\ns = ScalingConfig(num_workers=2, use_gpu=True)"),
    ("use_gpu of ray", "NPU147", "from ray.air import ScalingConfig\ns = ScalingConfig(use_gpu=bool(gpus))"),
    ("gpu ids of ray", "NPU147", "import ray\nmine = ray.get_gpu_ids()"),
    ("GPUs of submitit", "NPU280", "import submitit\nexecutor.update_parameters(gpus_per_node=n, nodes=2)"),
    ("GPUs of submitit", "NPU280", 'import submitit\nexecutor.update_parameters(slurm_gres="gpu:volta:8")'),
    ("a card with 80 GB", "NPU295", 'import submitit\nexecutor.update_parameters(slurm_constraint="a100_80gb")'),
    ("a card with 80 GB", "NPU295", 'import modal\n@app.function(gpu="A100-80GB:2")\ndef train(): ...'),
    ("GPUs of Slurm", "NPU280", 'job = Slurm(gres="gpu:1")'),
    ("GPUs of Slurm", "NPU280", 'JOB = """#!/bin/bash\n#SBATCH --gres=gpu:8\npython train.py\n"""'),
    ("GPUs of Slurm", "NPU280", 'JOB = f"#!/bin/bash\\n#SBATCH --gpus-per-node={n}\\n"'),
    ("GPUs of Slurm", "NPU280", 'os.system("srun --gres=gpu:8 python train.py")'),
    ("GPUs of docker", "NPU280", 'subprocess.run(["docker", "run", "--gpus", "all", image])'),
    ("mode reduce-overhead", "NPU281", 'import torch\nf = torch.compile(f, mode="reduce-overhead")'),
    ("mode reduce-overhead", "NPU281", 'import torch\nmodel.compile(mode="max-autotune")'),
    ("triton.cudagraphs", "NPU281", 'import torch\nf = torch.compile(f, options={"triton.cudagraphs": True})'),
    ("triton.cudagraphs", "NPU281", "import torch\ntorch._inductor.config.triton.cudagraphs = True"),
    ("device=0 of a pipeline", "NPU282", 'from transformers import pipeline\np = pipeline("x", device=0)'),
    ("device_map to a number", "NPU282", "m = AutoModel.from_pretrained(name, device_map=0)"),
    ("device=0 of torch", "NPU282", "import torch\nx = torch.zeros(2, device=0)"),
    ("device=0 of torch", "NPU282", "import torch\nd = torch.device(0)"),
    ("map_location=0", "NPU283", "import torch\ns = torch.load(path, map_location=0)"),
    ("device=0 of Ultralytics", "NPU283", "from ultralytics import YOLO\nYOLO(name).train(data=data, device=0)"),
    ("device=0 of Ultralytics", "NPU283", 'from ultralytics import YOLO\nYOLO(name).predict(x, device="0,1")'),
    ("attention kernels of the Hub", "NPU141", 'm = load(name, attn_implementation="kernels-community/flash-attn3")'),
    ("attention kernels of the Hub", "NPU141", 'm = load(n, attn_implementation="kernels-community/vllm-flash-attn3")'),
    ("flash_attention_3", "NPU141", 'm = load(name, attn_implementation="flash_attention_3")'),
    ("GPTQConfig", "NPU512", "import transformers\nc = transformers.GPTQConfig(bits=4)"),
    ("trust_remote_code", "NPU296",
     'from transformers import AutoModel\nm = AutoModel.from_pretrained("a/b", trust_remote_code=True)'),
    ("trust_remote_code", "NPU296",
     "import transformers\nm = transformers.AutoModelForCausalLM.from_pretrained(p, trust_remote_code=True, x=1)"),
    ("quantize of ChatGLM", "NPU142", "from transformers import AutoModel\nm = model.half().quantize(4)"),
    ("device of lm_eval", "NPU283", 'from lm_eval.models.huggingface import HFLM\nm = HFLM("x", device="npu")'),
    ("device of lm_eval", "NPU283", 'import lm_eval\nd = "npu"\nlm_eval.simple_evaluate(model=m, device=d)'),
    ("GPUs of faiss", "NPU287", "import faiss\nif faiss.get_num_gpus() > 1: ..."),
    ("gpu of XGBoost", "NPU287", 'm = XGBClassifier(tree_method="gpu_hist")'),
    ("gpu of XGBoost", "NPU287", 'params = {"tree_method": "gpu_hist"}'),
    ("gpu of LightGBM", "NPU287", 'import lightgbm\nm = lightgbm.LGBMClassifier(device="gpu")'),
    ("gpu of LightGBM", "NPU287", 'import lightgbm\nparams = {"device_type": "gpu"}'),
    ("gpu of CatBoost", "NPU287", 'm = CatBoostClassifier(task_type="GPU")'),
    ("gpu of spaCy", "NPU287", "import spacy\nspacy.require_gpu()"),
    ("gpu of EasyOCR", "NPU287", 'import easyocr\nr = easyocr.Reader(["en"], gpu=True)'),
    ("use_gpu of stanza", "NPU287", 'import stanza\nn = stanza.Pipeline("en", use_gpu=True)'),
    ("cuda of torch_fidelity", "NPU287", "import torch_fidelity as f\nm = f.calculate_metrics(input1='a', cuda=True)"),
    ("cuda of torch_fidelity", "NPU287", "from torch_fidelity import calculate_metrics\nm = calculate_metrics(fid=1)"),
    ("optimizers of ColossalAI", "NPU144",
     "from colossalai.nn.optimizer import HybridAdam\no = HybridAdam(m.parameters())"),
    ("GPUs that Slurm counts", "NPU280", 'import os\nn = int(os.environ["SLURM_GPUS_ON_NODE"])'),
    ("GPUs that Slurm counts", "NPU280", 'import os\nn = os.getenv("SLURM_GPUS_PER_NODE")'),
    ("resource GPU of ray", "NPU147", 'import ray\nc = {"bundles": [[{"GPU": 1}]]}'),
    ("resource GPU of ray", "NPU147", 'import ray\nn = sum(b.get("GPU", 0) for b in group.bundle_specs)'),
    ("resource GPU of ray", "NPU147", 'import ray\nn = [node["Resources"].get("GPU") for node in ray.nodes()]'),
    ("MULTI_GPU of accelerate", "NPU140", ""),
]  # fmt: skip
#: Codes that the imports of these sources have besides.
BESIDES = {"NPU510", "NPU511", "NPU512"}

#: The same words in other places, and other values in the same: nothing is said.
QUIET = [
    "import torch_fidelity\nm = torch_fidelity.calculate_metrics(input1='a', cuda=False)",
    "m = calculate_metrics(input1='a')\nn = metrics.calculate_metrics(fid=True)",
    "from colossalai.nn.optimizer import CPUAdam\no = CPUAdam(m.parameters())",
    "from deepspeed_like import HybridAdam\no = HybridAdam(m.parameters())",
    'import os\nn = os.environ.get("SLURM_GPUS_ON_NODE", "8")\nm = os.getenv("SLURM_GPUS_ON_NODE", 8)',
    'import os\nunder_slurm = "SLURM_GPUS_ON_NODE" in os.environ\nrow = {"SLURM_GPUS_ON_NODE": 8}',
    'import os\nn = os.environ["SLURM_NTASKS_PER_NODE"]\nos.environ["SLURM_GPUS_ON_NODE"] = "8"',
    'bundles = [[{"GPU": 1}]]\nn = sum(b.get("GPU", 0) for b in group.bundle_specs)',
    'import ray\nn = sum(b.get("GPU", 0) for b in shop.articles)\nprices = {"card": [{"GPU": 1}]}',
    'import diffusers\np.enable_model_cpu_offload(device="npu")\np.enable_sequential_cpu_offload(0, "npu")',
    "p.enable_model_cpu_offload()",
    "a = TrainingArguments('out', torch_compile=False, use_liger_kernel=False)",
    "net = Net(torch_compile=True, quantization='awq', kv_cache_dtype='fp8')",
    'from vllm import LLM\nm = LLM("m", quantization="ascend", kv_cache_dtype="auto")',
    'from vllm import LLM\nm = LLM("m", quantization=None)\nn = Net("m", device="npu")',
    'a = TrainingArguments("out", torch_compile_backend="aot_eager", torch_compile=args.compile)',
    'm = load(attn_implementation="sdpa")\nname = "kernels-community/flash-attn"',
    "a = GRPOConfig(use_vllm=False)",
    'c = {"sparse_attention": None}',
    'import deepspeed\nc = {"sparse_attention": None}',
    'found = os.environ.get("VLLM_ATTENTION_BACKEND")',
    "parser.add_argument('--gpus', type=int, default=1)",
    "parser.add_argument('--num_gpus', default=8, help='GPUs of --gres=gpu:8')",
    "gpus = 8\nnum_gpus = gpus\nuse_gpu = True\nrun(num_gpus=num_gpus, use_gpu=use_gpu, gpus=gpus)",
    "net = Net(num_gpus=2)",
    'm = load(name, attn_implementation="sdpa")',
    'm = load("kernels-community/flash-attn3", attn_implementation=args.attention)',
    "from transformers import AutoModel\nm = codec.quantize(audio)",
    "from project import codec\nm = codec.quantize(4)",
    "from project import GPTQConfig\nc = GPTQConfig(bits=4)",
    'import lm_eval\nlm_eval.simple_evaluate(model=m, device="npu:0")',
    'import lm_eval\nlm_eval.simple_evaluate(model=m, device="cpu")\nx.to("npu")',
    'message = "accelerator gpu, MULTI_GPU, flash_attention_2, paged_adamw_8bit"',
    'def f():\n    """Use `num_gpus`, {"GPU": 1}, docker run --gpus all and reduce-overhead."""',
    'table = {"GPU": 1, "gpu": 2, "num_gpus": 8}',
    'import ray\ncolumns = ["CPU", "GPU"]',
    'import ray\nprices = {"GPU": 3.5}',
    "import ray\nray.init(num_gpus=0)\nf = ray.remote(num_gpus=None)(g)",
    'import ray\nray.remote(resources={"NPU": 1})',
    'import ray\noptions = {"num_gpus": 0}',
    'import ray\nheld = {"num_gpus": 0.2, "seed": 1}\nEngine.options(num_cpus=1).remote(**held)',
    "import ray\ntrain(num_gpus=4)",
    "from ray.train import ScalingConfig\ns = ScalingConfig(num_workers=2, use_gpu=False)",
    "from project import ScalingConfig\ns = ScalingConfig(use_gpu=True)",
    'class Trainer: ...\nt = Trainer(accelerator="gpu", gpus=2)',
    'config = {"accelerator": "gpu", "gpus": 2}',
    "m = load(name, load_in_8bit=False, use_flash_attention_2=False)",
    "m = load(name, load_in_8bit=quantise)",
    'found = kwargs["load_in_8bit"]',
    'if "load_in_8bit" in kwargs: ...',
    "def load(name, load_in_8bit=False): ...",
    'a = SFTConfig(tf32=False, optim="adamw_torch")',
    "set_precision(tf32=True)",
    'a = TrainingArguments("out", optim=args.optim)',
    'net = Net(mode="reduce-overhead")',
    'import torch\nf = torch.compile(f, mode="default")',
    'import torch\nf = torch.compile(f, mode="max-autotune-no-cudagraphs".replace("x", "y"))',
    'import torch\nf = interpolate(x, mode="reduce-overhead")',
    "import torch\nx = torch.zeros(2, device=rank)",
    "import torch\ns = torch.load(path, map_location=device)",
    'import torch\ns = torch.load(path, map_location="cpu")',
    "import torch\ns = own.load(path, map_location=0)",
    "writer = cv2.VideoWriter(path, device=0)",
    'from transformers import pipeline\np = pipeline("x", device=-1)',
    'from transformers import pipeline\np = pipeline("x", device=index)',
    "model.train(device=0)",
    'from ultralytics import YOLO\nYOLO(name).train(data=data, device="cpu")',
    "executor.update_parameters(gpus_per_node=8)",
    "import submitit\nexecutor.update_parameters(cpus_per_task=8)",
    "import submitit\nexecutor.update_parameters(gpus_per_node=0)",
    'import submitit\nexecutor.update_parameters(slurm_constraint="volta32gb")',
    'import modal\n@app.function(gpu="A100")\ndef train(): ...',
    'card = Card(gpu="A100-80GB")',
    'job = Slurm(gres="npu:8")',
    'JOB = """#SBATCH --gres=npu:8\n#SBATCH --nodes=2\n"""',
    'HELP = "submit with srun --gres=gpu:8"',
    'print("docker run --gpus all")',
    'subprocess.run(["docker", "run", "--device", "/dev/davinci0", image, "python", "main.py", "--gpus", "2"])',
    'subprocess.run(["python", "main.py", "--gpus", "2"])',
    'm = XGBClassifier(tree_method="hist")',
    'params = {"device": "gpu", "device_type": "gpu"}',
    'm = CatBoostClassifier(task_type="CPU")',
    'import ray\nif kind == "gpu":\n    c["num_gpus"] = 1\nelif kind == "npu":\n    c["resources"] = {"NPU": 1}',
    'import lightning\ntrainer_config["accelerator"] = "ddp"',
    'import lightning\nif spec.get("accelerator") == "gpu": ...',
    'if trainer.get("accelerator") == "gpu": ...',
    'import lightning as L\nif device == "gpu":\n    L.Trainer(accelerator="gpu")\nelse:\n    where = "npu"',
    'import ray\nc = {"resources": {"GPU": 1} if kind == "gpu" else {"NPU": 1}}',
    "from project import require_gpu\nrequire_gpu()",
    'r = Reader(["en"], gpu=True)',
    "n = Pipeline(use_gpu=True)",
    'if args.distributed_type == "DEEPSPEED": ...',
    'if name == "MULTI_GPU": ...',
    'if state.distributed_type in ("MULTI_NPU", "MULTI_GPU"): ...',
]


@pytest.mark.parametrize(("word", "code", "source"), [each for each in FOUND if each[2]])
def test_a_word_in_its_place_is_found(word: str, code: str, source: str) -> None:
    result = migrate(f"{source}\n")
    assert not result.changed
    codes = {finding.code for finding in result.findings}
    assert code in codes <= {code, *BESIDES}
    assert all(finding.help for finding in result.findings if finding.code == code)


@pytest.mark.parametrize("source", QUIET)
def test_the_word_elsewhere_is_none(source: str) -> None:
    result = migrate(f"{source}\n")
    assert not result.changed
    assert [finding.code for finding in result.findings if finding.code not in BESIDES] == []


@pytest.mark.parametrize(
    "source",
    [
        "a = TrainingArguments('out', torch_compile=False, use_liger_kernel=False)",
        "net = Net(torch_compile=True)",
        'a = TrainingArguments("out", torch_compile_backend="aot_eager", torch_compile=args.compile)',
        "a = GRPOConfig(use_vllm=False)\nb = Net(use_vllm=True)",
        "def f(use_liger_kernel=False, use_vllm=True): ...",
    ],
)
def test_what_needs_no_package_more(source: str) -> None:
    assert list(migrate(f"{source}\n").findings) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('many = state.distributed_type == "MULTI_GPU"', 'many = state.distributed_type == "MULTI_NPU"'),
        (
            'many = self.accelerator.distributed_type in ["MULTI_GPU", "DEEPSPEED"]',
            'many = self.accelerator.distributed_type in ["MULTI_NPU", "DEEPSPEED"]',
        ),
        ("many = 'MULTI_GPU' != distributed_type", "many = 'MULTI_NPU' != distributed_type"),
    ],
)
def test_the_kind_of_a_run_has_another_name(before: str, after: str) -> None:
    check_rewrite(f"{before}\n", f"{after}\n", codes_applied=["NPU140"])


def test_it_is_called_differently_in_the_portable_style() -> None:
    check_noop('many = state.distributed_type == "MULTI_GPU"\n', open_codes=["NPU140"], style="portable")


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_up_to_torch_22_a_number_is_cuda(version: str) -> None:
    check_rewrite(
        "import torch\nx = torch.zeros(2, device=0)\n",
        'import torch\nimport torch_npu  # noqa: F401\nx = torch.zeros(2, device="npu:0")\n',
        torch_version=version,
    )


@pytest.mark.parametrize(
    ("asked", "level"), [("==4.30.0", Level.MANUAL), ("==4.51.3", Level.INFO), (">=4.30", Level.INFO)]
)
def test_the_pinned_version_decides(asked: str, level: Level) -> None:
    result = migrate('m = load("x", attn_implementation="flash_attention_2")\n', pins=(("transformers", asked),))
    assert [finding.level for finding in result.findings] == [level]


@pytest.mark.parametrize(
    "source",
    [
        'import ray\nif __name__ == "__main__":\n    ray.init(num_gpus=2)\n    run("npu")\n',
        'import ray\nif ready:\n    ray.init(num_gpus=2)\nelse:\n    run()\nkind = "npu"\n',
    ],
)
def test_the_npu_elsewhere_in_the_file_is_no_other_arm(source: str) -> None:
    check_noop(source, open_codes=["NPU147"])


def test_one_call_is_one_finding_of_a_word() -> None:
    result = migrate('import lightning as L\nt = L.Trainer(accelerator="gpu", gpus=2)\n')
    assert [finding.code for finding in result.findings if finding.code == "NPU145"] == ["NPU145"]


def test_a_comment_switches_it_off() -> None:
    result = migrate("import ray\nray.init(num_gpus=2)  # transplt: ignore[NPU147]\n")
    assert [bool(finding.ignored) for finding in result.findings] == [True]


def test_the_question_in_front_of_a_word_that_stays_stays_too() -> None:
    check_noop(
        """
        import lightning as L
        import torch

        if torch.cuda.is_available():
            accelerator = "cuda"
        else:
            accelerator = "cpu"
        fabric = L.Fabric(accelerator=accelerator, devices=1)
        """,
        open_codes=["NPU145"],
    )


def test_a_string_that_moves_takes_its_question_along() -> None:
    line = "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nlm_eval.simple_evaluate(m, device=device)\n"
    found = migrate(f"import lm_eval\nimport torch\n{line}").data
    assert b"'npu' if torch.npu.is_available() else 'cpu'" in found


@pytest.mark.parametrize(
    "source",
    [
        "if torch.cuda.is_available():\n    x = x.cuda()\nfabric = L.Fabric(accelerator='cuda')\n",
        "if not torch.cuda.is_available():\n    kind = 'cuda'\nfabric = L.Fabric(accelerator=kind)\n",
    ],
)
def test_another_question_moves(source: str) -> None:
    assert b"torch.npu.is_available()" in migrate(f"import lightning as L\nimport torch\n{source}").data


@pytest.mark.parametrize(
    "source",
    [
        'from transformers import AutoTokenizer\nt = AutoTokenizer.from_pretrained("a/b", trust_remote_code=True)\n',
        'from transformers import AutoConfig\nc = AutoConfig.from_pretrained("a/b", trust_remote_code=True)\n',
        'from transformers import AutoModel\nm = AutoModel.from_pretrained("a/b", trust_remote_code=False)\n',
        'from transformers import AutoModel\nm = AutoModel.from_pretrained("a/b", trust_remote_code=trusted)\n',
        'from transformers import AutoModel\nm = AutoModel.from_pretrained("a/b")\n',
        'from datasets import load_dataset\nd = load_dataset("a/b", trust_remote_code=True)\n',
    ],
)
def test_no_model_of_the_hub_with_its_code(source: str) -> None:
    assert "NPU296" not in [each.code for each in migrate(source).findings]


XFORMERS = "pipe.enable_xformers_memory_efficient_attention()"


@pytest.mark.parametrize(
    ("source", "level"),
    [
        (f"try:\n    {XFORMERS}\nexcept Exception as error:\n    print(error)\n", Level.INFO),
        (f"try:\n    {XFORMERS}\nexcept:\n    pass\n", Level.INFO),
        # who does not go on, goes on after another error, or loses more than the word
        (f"try:\n    {XFORMERS}\nexcept Exception:\n    raise\n", Level.MANUAL),
        (f"try:\n    {XFORMERS}\nexcept ImportError:\n    pass\n", Level.MANUAL),
        (f"try:\n    {XFORMERS}\n    train()\nexcept Exception as error:\n    print(error)\n", Level.MANUAL),
        (f"try:\n    run()\nexcept Exception:\n    {XFORMERS}\n", Level.MANUAL),
    ],
)
def test_a_word_that_a_program_goes_on_without(source: str, level: Level) -> None:
    assert [each.level for each in migrate(source).findings if each.code == "NPU146"] == [level]
