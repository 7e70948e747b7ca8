"""Builds rules/support/gone_names.json: names, keywords and methods that packages gave up; read from wheels alone.

    python scripts/build_gone_names.py FOLDER [--used REPOSITORIES]

FOLDER holds wheels of each package of the table, old ones and one new one (`pip download --no-deps`; of torch those for
macOS, which are small); of a release that has none, its sources in a zip of such a name (gym). Gone is a module that
the new wheel does not have, and a name that no statement of its module binds there. Where a module makes its names as
it is imported (`__getattr__`, lazy loaders, compiled code) a name counts as there, unless the stub beside it spells out
`__all__` (NumPy): what is neither there nor in the stub is gone. A keyword is gone where each way to make an object of
the class is in sight, and none takes it, or where the function takes what it names alone; a method where all bases of
the class are, and none has it; what classes of programs read of self where that is so and the module has no such word
any more. Kept is what has its place in the front of a package, what has an answer below, what the table had and, with
`--used`, what public programs use: the .py files below each folder or in each bare git repository are searched for the
names. What a migration renames itself is left out. A package that FOLDER has no wheels of keeps its rows.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

from packaging.version import Version  # noqa: E402
from wheel_reader import Wheel  # noqa: E402

from transplt.base.settings import TORCH_VERSIONS  # noqa: E402
from transplt.fixers.codemods.old_names import _TYPES  # noqa: E402
from transplt.rules.companions import first_wheel  # noqa: E402
from transplt.rules.packages import packages  # noqa: E402
from transplt.rules.rule_set import builtin_rules  # noqa: E402

TABLE = ROOT / "rules" / "support" / "gone_names.json"
#: The folder of a package in its wheel, where that has another name.
_FOLDERS = {
    "scikit_image": "skimage", "scikit_learn": "sklearn", "pillow": "PIL", "Pillow": "PIL", "hydra_core": "hydra",
    "pytorch_ignite": "ignite", "tensorboardx": "tensorboardX",
}  # fmt: skip
#: What makes names as a module is imported.
_OFFERED = re.compile(r"(?:def|class)\s+(\w+)|^(\w+)\s*=|[\"'](\w+)[\"']", re.M)
_DYNAMIC = re.compile(r"def __getattr__|_LazyModule|lazy_loader|lazy\.attach|\bglobals\(\)|\bexec\(|sys\.modules\[")
#: A package that spells out what it offers: in strings, and in imports for type checkers.
_SPELLED = re.compile(r"sys\.modules\[__name__\] = _LazyModule\(")
#: What a stub binds at its top; it may be written for a newer Python than this one.
_BOUND_IN_A_STUB = re.compile(r"^(?:def|class|type)\s+(\w+)|^(\w+)\s*[:=]|^    (?:\w+ as )?(\w+),(?: .*)?$", re.M)
#: What packages are called where they are imported.
_ALIASES = {"numpy": "np", "pandas": "pd", "networkx": "nx", "pytorch_lightning": "pl"}
#: Packages whose release goes with that of torch, which a migration writes.
_BESIDE_TORCH = ("torch", "torchvision", "torchaudio")
#: How deep the names lie that a package offers to all, of those that nearly every program of its field imports.
_FRONT = {
    "skimage": 3, "torchvision": 3, "networkx": 2, "pandas": 2, "torchmetrics": 2, "transformers": 3, "peft": 2,
    "trl": 2, "gymnasium": 3, "pytorch_lightning": 3, "diffusers": 2, "timm": 3, "torch": 4,
    "moviepy": 2, "accelerate": 2, "seaborn": 2, "wandb": 2, "omegaconf": 2, "hydra": 2, "evaluate": 2, "monai": 3,
    "ignite": 3, "stable_baselines3": 3, "pytorch_metric_learning": 2, "tensorboardX": 2, "sacrebleu": 2,
}  # fmt: skip
#: How deep the modules lie whose classes are read: below are single models, by the thousand.
_DEPTH = 2
#: What no program of torch takes: models of TensorFlow and JAX, tools that convert files, lists of names of files.
_OF_OTHERS = re.compile(
    r"(?:^|\.)(?:TF|Flax|FLAX_|load_tf|tf_|[Cc]onvert_\w+_to_|dummy_)\w*$|_(?:tf2?|flax)\b|_ARCHIVE_(?:MAP|LIST)$"
    r"|^transformers\.(?:models|tokenization_utils_tokenizers)\.|^(?!torch\.)(?:.*\.)?_\w*$"
)
#: The modules of torch whose names count, and those that programs take private names of.
_OF_TORCH = re.compile(
    r"torch(?:\.(?:hub|functional|_utils|_six|tensor|_tensor|storage|serialization|multiprocessing|random|linalg|fft|amp|jit"
    r"|quantization|distributed|backends|distributions|utils(?:\.(?!_|hipify|benchmark|flop|collect|bottleneck|data\.datapipes)[\w.]+)?"
    r"|(?:nn(?!\.quant|\.intrinsic|\.qat)|optim|autograd|cuda|backends\.cudnn)(?:\.\w+)*))?"
)
_PRIVATE = re.compile(
    r"torch\.(?:_utils|_six|hub|serialization|distributed|nn\.functional|nn\.modules\.\w+|optim\.\w+|utils\.data\.[\w.]+|utils\.\w+)\.\w+"
)
#: Names that transformers 5 makes of those without `Fast`.
_MADE = re.compile(r"^(transformers\..*(?:Tokenizer|ImageProcessor))Fast$")
_NEWEST_TORCH = TORCH_VERSIONS[-1]
#: The first release that can be imported beside torch 2 (third_party.json), or that takes an accelerator of others.
_OLDEST = {"timm": "0.4.5", "pytorch-lightning": "1.8"}
_ADAMW = "import AdamW from torch.optim; correct_bias is gone, and weight_decay is 0.01 there where none is given"
#: What takes the place of a name, where it has another one.
_HELP = {
    "timm.data.transforms._pil_interp": "import str_to_pil_interp from timm.data.transforms, and call that",
    "timm.models.apply_test_time_pool": "import apply_test_time_pool from timm.layers, with timm 0.9 or newer",
    "timm.models.convert_splitbn_model": "import convert_splitbn_model from timm.layers, with timm 0.9 or newer",
    "timm.models.efficientnet_blocks": "import from timm.models._efficientnet_blocks, with timm 0.9 or newer",
    "timm.models.VisionTransformer.num_tokens": "read num_prefix_tokens",
    "timm.models.vision_transformer.VisionTransformer.num_tokens": "read num_prefix_tokens",
    "timm.optim.Nadam": "write torch.optim.NAdam",
    "timm.optim.nadam.Nadam": "write torch.optim.NAdam",
    "timm.optim.radam.RAdam": "write torch.optim.RAdam",
    "torchvision.models.model_urls": "write ResNet50_Weights.IMAGENET1K_V1.url, with the class of each model",
    "torchvision.models.resnet.model_urls": "write ResNet50_Weights.IMAGENET1K_V1.url, with the class of each model",
    "numpy.trapz": "write np.trapezoid, which NumPy has since 2.0, or scipy.integrate.trapezoid",
    "pytorch_lightning.utilities.distributed": "import rank_zero_only from pytorch_lightning.utilities",
    "pytorch_lightning.utilities.seed.seed_everything": "import seed_everything from pytorch_lightning",
    "numpy.asscalar": "write x.item()",
    "numpy.msort": "write np.sort(x, axis=0)",
    "skimage.measure.marching_cubes_lewiner": "write skimage.measure.marching_cubes",
    "pandas.np": "import numpy",
    "pandas.value_counts": "write pandas.Series(x).value_counts()",
    "networkx.from_numpy_matrix": "write networkx.from_numpy_array",
    "networkx.to_numpy_matrix": "write networkx.to_numpy_array, and @ for the product of two",
    "networkx.from_scipy_sparse_matrix": "write networkx.from_scipy_sparse_array",
    "networkx.to_scipy_sparse_matrix": "write networkx.to_scipy_sparse_array",
    "networkx.read_gpickle": "write pickle.load(open(path, 'rb'))",
    "networkx.write_gpickle": "write pickle.dump(graph, open(path, 'wb'))",
    "scipy.integrate.simps": "write scipy.integrate.simpson(y, x=x)",
    "scipy.linalg.pinv2": "write scipy.linalg.pinv",
    "scipy.misc.face": "import face from scipy.datasets, which needs pooch",
    "scipy.misc.ascent": "import ascent from scipy.datasets, which needs pooch",
    "scipy.ndimage.imread": "write imageio.imread(path)",
    "scipy.signal.hanning": "import hann from scipy.signal.windows",
    "numpy.row_stack": "write np.vstack",
    "numpy.VisibleDeprecationWarning": "write np.exceptions.VisibleDeprecationWarning, from NumPy 1.25 on",
    "numpy.in1d": "write np.isin, which keeps the shape of its first argument",
    "numpy.NINF": "write -np.inf",
    "numpy.asfarray": "write np.asarray(x, dtype=float)",
    "numpy.find_common_type": "write np.result_type, which promotes Python numbers otherwise",
    "numpy.safe_eval": "write ast.literal_eval",
    "sklearn.preprocessing.Imputer": "import SimpleImputer from sklearn.impute",
    "sklearn.cross_validation": "import from sklearn.model_selection, whose splitters take the data in split()",
    "sklearn.grid_search": "import from sklearn.model_selection",
    "torchmetrics.IoU": "write torchmetrics.JaccardIndex(task=..., num_classes=...)",
    "torchmetrics.F1": "write torchmetrics.F1Score(task=..., num_classes=...)",
    "torchmetrics.PSNR": "import PeakSignalNoiseRatio from torchmetrics.image",
    "torchmetrics.SSIM": "import StructuralSimilarityIndexMeasure from torchmetrics.image",
    "torchmetrics.FID": "import FrechetInceptionDistance from torchmetrics.image.fid",
    "torchmetrics.AverageMeter": "write torchmetrics.MeanMetric",
    "datasets.load_metric": "install evaluate, and write evaluate.load",
    "huggingface_hub.cached_download": "write huggingface_hub.hf_hub_download(repo_id, filename)",
    "skimage.feature.greycomatrix": "write graycomatrix",
    "skimage.feature.greycoprops": "write graycoprops",
    "accelerate.Accelerator(fp16=": "write mixed_precision='fp16'",
    "accelerate.Accelerator(logging_dir=": "write project_dir= for logging_dir=",
    **{
        f"accelerate.Accelerator({keyword}=": f"pass {keyword}= to accelerate.DataLoaderConfiguration, "
        "and that as dataloader_config="
        for keyword in ("dispatch_batches", "even_batches", "use_seedable_sampler")
    },
    "hydra.main(strict=": "remove strict=",
    "monai.transforms.AddChannel": "write EnsureChannelFirst(channel_dim='no_channel')",
    "monai.transforms.AddChanneld": "write EnsureChannelFirstd(keys, channel_dim='no_channel')",
    "monai.transforms.AsChannelFirst": "write EnsureChannelFirst(channel_dim=-1)",
    "monai.transforms.AsChannelFirstd": "write EnsureChannelFirstd(keys, channel_dim=-1)",
    "moviepy.editor": "import from moviepy, whose clips have with_duration for set_duration, subclipped for subclip",
    "sacrebleu.corpus_bleu(sys_stream=": "write hypotheses= for sys_stream=",
    "sacrebleu.corpus_bleu(ref_streams=": "write references= for ref_streams=",
    "seaborn.FacetGrid(size=": "write height= for size=",
    "seaborn.JointGrid(size=": "write height= for size=",
    "seaborn.PairGrid(size=": "write height= for size=",
    "seaborn.lmplot(size=": "write height= for size=",
    "seaborn.factorplot": "write seaborn.catplot, with kind='point'",
    "seaborn.tsplot": "write seaborn.lineplot",
    "transformers.AdamW": _ADAMW,
    "transformers.optimization.AdamW": _ADAMW,
    "transformers.deepspeed": "import from transformers.integrations",
    "transformers.generation_utils": "import from transformers.generation, or GenerationMixin from transformers",
    "transformers.modeling_utils.PretrainedConfig": "import PretrainedConfig from transformers",
    "transformers.AutoModelWithLMHead": "take AutoModelForCausalLM, AutoModelForMaskedLM or AutoModelForSeq2SeqLM",
    "transformers.AutoModelForVision2Seq": "take AutoModelForImageTextToText",
    "transformers.generation_logits_process": "import from transformers.generation",
    "transformers.generation_stopping_criteria": "import from transformers.generation",
    "transformers.file_utils.cached_path": "write hf_hub_download of huggingface_hub for a file of the hub",
    "transformers.EvaluationStrategy": "write IntervalStrategy",
    "transformers.trainer_utils.EvaluationStrategy": "write IntervalStrategy",
    "transformers.is_torch_tpu_available": "take out the branch for TPUs, or write is_torch_xla_available",
    "transformers.glue_compute_metrics": "evaluate.load('glue', task) has the metrics",
    "transformers.Trainer.is_local_master": "write is_local_process_zero()",
    "transformers.Trainer.is_world_master": "write is_world_process_zero()",
    "transformers.Trainer(tokenizer=": "write processing_class= for tokenizer=, which 4.46 and newer take",
    "transformers.TrainingArguments(evaluation_strategy=": "write eval_strategy= for evaluation_strategy=",
    "transformers.TrainingArguments(warmup_ratio=": "write warmup_steps=, which takes a share of all steps since 5.0",
    "transformers.TrainingArguments(logging_dir=": "set the environment variable TENSORBOARD_LOGGING_DIR instead",
    "transformers.TrainingArguments(no_cuda=": "write use_cpu=",
    "transformers.TrainingArguments(per_gpu_train_batch_size=": "write per_device_train_batch_size=",
    "transformers.TrainingArguments(per_gpu_eval_batch_size=": "write per_device_eval_batch_size=",
    "transformers.TrainingArguments(group_by_length=": "write train_sampling_strategy='group_by_length'",
    "sklearn.utils.linear_assignment_": "write np.stack(scipy.optimize.linear_sum_assignment(cost), axis=1)",
    **{
        f"trl.{kind}Trainer({keyword}=": f"pass {keyword}= to trl.{kind}Config, and that as args="
        for kind, moved in {
            "DPO": (
                "beta", "dataset_num_proc", "disable_dropout", "label_smoothing", "loss_type", "max_length",
                "model_init_kwargs", "precompute_ref_log_probs", "truncation_mode",
            ),
            "SFT": ("dataset_num_proc", "dataset_text_field", "model_init_kwargs", "packing"),
        }.items()
        for keyword in moved
    },
    "trl.DPOTrainer(tokenizer=": "write processing_class= for tokenizer=",
    "trl.SFTTrainer(tokenizer=": "write processing_class= for tokenizer=",
    "pytorch_lightning.ModelCheckpoint(filepath=": "write dirpath= and filename=",
    "pytorch_lightning.ModelCheckpoint(period=": "write every_n_epochs=",
    "pytorch_lightning.ModelCheckpoint(prefix=": "begin filename= with the prefix",
    "pytorch_lightning.Trainer(gpus=": "write devices= and accelerator=",
    "pytorch_lightning.Trainer(resume_from_checkpoint=": "pass the path to trainer.fit as ckpt_path=",
    "numpy.percentile(interpolation=": "write method= for interpolation=, which NumPy has since 1.22",
    "numpy.quantile(interpolation=": "write method= for interpolation=, which NumPy has since 1.22",
    "pandas.Float64Index": "write pandas.Index(values, dtype='float64')",
    "pandas.Int64Index": "write pandas.Index(values, dtype='int64')",
    "pandas.UInt64Index": "write pandas.Index(values, dtype='uint64')",
    "pandas.factorize(na_sentinel=": "write use_na_sentinel=, False for None",
    "pandas.to_pickle(path=": "write filepath_or_buffer= for path=, or pass the path without a name",
    "pandas.read_pickle(path=": "write filepath_or_buffer= for path=, or pass the path without a name",
    "pandas.Series(fastpath=": "remove fastpath=",
    "pandas.infer_freq(warn=": "remove warn=",
    "scipy.special.comb(legacy=": "remove legacy=; for what legacy=True did, pass floats",
    "torchvision.transforms.RandomAffine(fillcolor=": "write fill= for fillcolor=",
    "torchvision.transforms.RandomAffine(resample=": "write interpolation= for resample=, with an InterpolationMode",
    "torchvision.transforms.RandomRotation(resample=": "write interpolation= for resample=, with an InterpolationMode",
    "diffusers.pipeline_utils": "import DiffusionPipeline and ImagePipelineOutput from diffusers",
    "diffusers.modeling_utils": "import ModelMixin from diffusers",
    "diffusers.models.attention.CrossAttention": "import Attention from diffusers.models.attention_processor",
    "diffusers.models.attention.AttentionBlock": "import Attention from diffusers.models.attention_processor",
    "diffusers.SchedulerMixin.set_format": "take the call out: schedulers compute with tensors of torch",
    "gymnasium.wrappers.GrayScaleObservation": "write GrayscaleObservation",
    "gymnasium.wrappers.RecordEpisodeStatistics(deque_size=": "write buffer_length= for deque_size=",
    "gymnasium.wrappers.TransformObservation(f=": "write func= for f=, and pass observation_space= too",
    "gymnasium.wrappers.TransformReward(f=": "write func= for f=",
    "gymnasium.vector.make": "write gymnasium.make_vec",
    "torch.functional.align_tensors": "take the import out, or align the tensors by hand",
    **{
        f"transformers.{name}FeatureExtractor": f"take {name}ImageProcessor"
        for name in "Beit CLIP ConvNext DPT Deit Detr ViT Segformer Yolos".split()
    },
    **{
        f"timm.models.layers.{name}": "import from timm.layers instead of timm.models.layers, with timm 0.9 or newer"
        for name in "activations attention_pool2d helpers linear mlp norm_act patch_embed".split()
    },
}
#: The same, by the form of a name.
_OF_FORM = (
    (re.compile(r"transformers\.(?:configuration|modeling|tokenization)_(?!attn_)\w+"),
     "import from transformers.models.bert.modeling_bert and the like, or from transformers itself"),
    (re.compile(r"gymnasium\.wrappers\.[a-z_]+(?:\.\w+)?"), "import the wrapper's class from gymnasium.wrappers"),
    (re.compile(r"skimage\.[\w.]+\(multichannel="),
     "write channel_axis=-1 for multichannel=True, and remove multichannel=False (0.19 and newer)"),
    (re.compile(r"skimage\.[\w.]+\(selem="), "write footprint= for selem=, which 0.19 and newer take"),
    (re.compile(r"skimage\.[\w.]+\(max_iter="), "write max_num_iter= for max_iter=, which 0.19 and newer take"),
    (re.compile(r"skimage\.[\w.]+\((?:random_state|seed)="), "write rng= for random_state= or seed="),
    (re.compile(r"skimage\.[\w.]+\(in_?place="), "write out= and the array itself for True"),
    (re.compile(r"transformers\.modeling_utils\.(?:apply_chunking_to_forward|prune_linear_layer|Conv1D)"),
     "import {name} from transformers.pytorch_utils"),
    (re.compile(r"[\w.]+\.(?:Any|Callable|Dict|Iterable|List|NamedTuple|Optional|Sequence|Set|Tuple|Type|Union)"),
     "import {name} from typing"),
)  # fmt: skip
#: What the rules and old_names.py rename.
_RENAMED = {f"numpy.{name}" for name in _TYPES} | builtin_rules(_NEWEST_TORCH).names.keys()
#: What hands on the arguments of what it stands above.
_AS_WRITTEN = re.compile(r"deprecate_kwarg\(|_defaults_from_env_vars|no_type_check")
#: Decorators of functions that add no keyword.
_ADDS_NONE = re.compile(
    r"lru_cache|cache|contextmanager|deprecat|rename|validate_params|xp_capabilities|_apply_over_batch|set_module"
    r"|array_function_dispatch|no_grad|wraps|overload|_copy_docs|docstring|doc\b|Appender|Substitution|preserve_channel"
)
#: The keyword that a decorator still takes.
_OLD_KEYWORD = re.compile(r"(?:deprecate|rename)\w*\((?:old_arg_name=)?['\"](\w+)['\"]")
#: What the adaptor of Lightning writes, or speaks of.
_SAID_ELSEWHERE = frozenset({"gpus", "from_argparse_args", "amp_backend"})
#: Bases that are of no package here, and what a torch.nn.Module has.
_PLAIN = frozenset({"object", "ABC", "Generic", "Protocol", "Enum", "Module", "Callable", "Dataset"})
#: Methods that each Module has, whether its own class writes them or not.
_OF_MODULES = frozenset({"cpu", "cuda", "to"})
#: Names that classes of several packages have, or of programs, which are read by their last name.
_SHARED = frozenset({"Trainer", "Transform"})
_LEFT_OUT = re.compile(
    r"(?:^|\.)(?:tests?|testing|conftest|_?vendor(?:ed)?|externals?|_\w+|setup"
    r"|image_processing_\w+_fast"  # transformers 5 finds these by a name of their own
    r"|dummy_\w+|modeling_(?:flax|tf)_\w+)(?:\.|$)"
)


@dataclass(frozen=True)
class Seen:
    """What programs import from modules of packages, as full names; pairs such as `np.trapz`."""

    names: set[str]
    pairs: set[str]
    starred: set[str]  # modules from which one takes everything
    above: set[str]  # the last names of what classes are derived from

    @cached_property
    def owners(self) -> set[str]:
        """What a name is read of in one of the pairs."""
        return {pair.partition(".")[0] for pair in self.pairs}


@dataclass(frozen=True)
class Made:
    """How an object of a class is made: the keywords that it names; `inherits`: those of its bases too."""

    bases: tuple[str, ...]
    methods: frozenset[str]
    members: frozenset[str]  # methods, and all else that the class binds
    keywords: frozenset[str] = frozenset()
    inherits: bool = True
    open_: bool = False


def _made(node: ast.ClassDef) -> Made:
    """What a class says; one that is made in a way of its own is open."""
    bases = tuple(ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases)
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    own = (each for item in node.body if not isinstance(item, ast.FunctionDef) for each in ast.walk(item))
    kept = {each.id for each in own if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    set_ = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    kept |= {each.attr for each in set_ if isinstance(each.value, ast.Name) and each.value.id == "self"}
    members = frozenset({*methods, *kept})
    init, decorators = methods.get("__init__"), [ast.unparse(each) for each in node.decorator_list]
    if "__new__" in methods or node.keywords or any("strict" in each for each in decorators):
        return Made(bases, frozenset(methods), members, open_=True)
    if init is not None:
        renamed = re.findall(r"deprecate_kwarg\('(\w+)'", " ".join(map(ast.unparse, init.decorator_list)))
        named = {each.arg for each in (*init.args.args[1:], *init.args.kwonlyargs)}
        other = not all(_AS_WRITTEN.search(ast.unparse(each)) for each in init.decorator_list)
        keywords, other = frozenset({*named, *renamed}), other or init.args.kwarg is not None
        return Made(bases, frozenset(methods), members, keywords, inherits=False, open_=other)
    fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
    names = [each.id for each in fields if isinstance(each, ast.Name)]
    keywords = frozenset(names if any("dataclass" in each for each in decorators) else ())
    return Made(bases, frozenset(methods), members, keywords)


def _outside_of_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs as a module is loaded; of a class its name alone."""
    left: list[ast.AST] = [tree]
    while left:
        yield (node := left.pop())
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            left.extend(ast.iter_child_nodes(node))


class Package:
    """The modules of one wheel and what stands in them."""

    def __init__(self, path: Path) -> None:
        self.wheel = Wheel(path)
        self.name = self.wheel.package = _FOLDERS.get(self.wheel.package, self.wheel.package)
        self.version = self.wheel.version

    @cached_property
    def compiled(self) -> set[str]:
        """Modules that are compiled, and those of the folders around all modules."""
        found = set()
        for name in self.wheel.archive.namelist():
            if name.startswith(f"{self.name}/") and name.endswith((".so", ".pyd", ".pyi")):
                found.add(name.partition(".")[0].replace("/", "."))
        return found

    @cached_property
    def folders(self) -> set[str]:
        modules = [*self.wheel.sources, *self.compiled]
        return {".".join(each.split(".")[:end]) for each in modules for end in range(1, each.count(".") + 2)}

    @cached_property
    def defined(self) -> set[str]:
        """The names of all functions and classes, and all words in strings: what a lazy module may offer."""
        kept = (member for module, member in self.wheel.sources.items() if "_expired_" not in module)
        text = "\n".join(map(self.wheel.text, kept))
        stubs = [each for each in self.wheel.archive.namelist() if each.endswith(".pyi")]
        named = {name for each in stubs for name in re.findall(r"\w+", self.wheel.text(each))}
        return named | {name for each in _OFFERED.findall(text) for name in each if name}

    @cache  # noqa: B019
    def stub(self, module: str) -> tuple[frozenset[str], frozenset[str]]:
        """What the stub of a package binds at its top, and what its `__all__` spells out."""
        member = f"{module.replace('.', '/')}/__init__.pyi"
        text = self.wheel.text(member) if member in self.wheel.archive.namelist() else ""
        spelled = {name for all_ in re.findall(r"^__all__ = \[(.*?)^\]", text, re.M | re.S)
                   for name in re.findall(r'"(\w+)"', all_)}  # fmt: skip
        bound = {name for found in _BOUND_IN_A_STUB.findall(text) for name in found if name}
        return frozenset(bound | spelled), frozenset(spelled)

    @cache  # noqa: B019
    def bound(self, module: str, seen: frozenset[str] = frozenset()) -> tuple[frozenset[str], frozenset[str], bool]:
        """What a module binds, which of it is of this package, and whether it may have more names than that."""
        text = self.wheel.text(self.wheel.sources[module])
        try:
            tree = ast.parse(text)  # not kept, as those of the wheel are: a large package has millions of lines
        except SyntaxError:
            return frozenset(), frozenset(), True
        names, own = set(), set()
        spelled = bool(_SPELLED.search(text)) and "def __getattr__" not in text
        open_ = bool(_DYNAMIC.search(text)) and not spelled
        is_package = self.wheel.sources[module].endswith("/__init__.py")
        for node in _outside_of_functions(tree):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.add(node.name)
                    if node in tree.body:
                        own.add(node.name)
                case ast.Import():
                    names.update((each.asname or each.name).split(".")[0] for each in node.names)
                case ast.ImportFrom():
                    parts = module.split(".")
                    parts = parts[: len(parts) - node.level + is_package] if node.level else []
                    base = ".".join([*parts, *([node.module] if node.module else [])])
                    inside = base.split(".")[0] == self.name
                    for each in node.names:
                        if each.name != "*":
                            names.add(each.asname or each.name)
                            if inside and is_package:
                                own.add(each.asname or each.name)
                        elif not inside or base in self.compiled - self.wheel.sources.keys():
                            open_ = True
                        elif base in self.wheel.sources and base not in seen:
                            more, theirs, loose = self.bound(base, seen | {module})
                            names |= more
                            own |= {name for name in theirs if is_package and not name.startswith("_")}
                            open_ |= loose
                case ast.Name(ctx=ast.Store()):
                    names.add(node.id)
                case ast.Constant(value=str() as name) if spelled:
                    names.add(name)
        own |= {each.id for node in tree.body if isinstance(node, ast.Assign) for each in node.targets
                if isinstance(each, ast.Name) and not each.id.startswith("__")}
        return frozenset(names), frozenset(own), open_

    def has(self, name: str) -> bool:
        """Whether a full name is there, or may be."""
        parts = _MADE.sub(r"\1", name).split(".")
        for end in range(len(parts), 0, -1):
            module = ".".join(parts[:end])
            if module in self.folders:
                break
        else:
            return False
        if end == len(parts):
            return True
        if module not in self.wheel.sources:
            return module in self.compiled
        names, _, loose = self.bound(module)
        if parts[end] in names:
            return True
        there, spelled = self.stub(module)
        if spelled:
            return parts[end] in there
        text = self.wheel.text(self.wheel.sources[module]) if loose else ""
        if module.startswith("torch.") and module not in self.compiled and "import *" not in text:
            return bool(re.search(rf"\b{parts[end]}\b", text))
        return loose and (parts[end] in self.defined or module in self.compiled or not self.wheel.sources)

    @cached_property
    def classes(self) -> dict[str, list[tuple[str, Made]]]:
        """By name: the modules of the classes at the top of modules, and how objects of them are made."""
        found: dict[str, list[tuple[str, Made]]] = {}
        for module, member in self.wheel.sources.items():
            if module.count(".") <= _DEPTH and not _LEFT_OUT.search(module):
                try:
                    tree = ast.parse(self.wheel.text(member))
                except SyntaxError:
                    continue
                for node in tree.body:
                    if isinstance(node, ast.ClassDef):
                        found.setdefault(node.name, []).append((module, _made(node)))
        return found

    @cache  # noqa: B019
    def keywords(self, cls: str, below: frozenset[str] = frozenset()) -> frozenset[str] | None:
        """What the one class of a name takes by keyword; None where that is not in sight, or may be anything."""
        (_, made), *others = self.classes.get(cls, [("", None)])
        if made is None or others or made.open_ or cls in below:
            return None
        bases = [base for base in made.bases if base not in _PLAIN and made.inherits]
        above = [self.keywords(base, below | {cls}) for base in bases]
        return None if None in above else made.keywords.union(*filter(None, above))

    @cache  # noqa: B019
    def members(self, cls: str, below: frozenset[str] = frozenset()) -> frozenset[str] | None:
        """The members of the one class of a name; None where they are not in sight."""
        (_, made), *others = self.classes.get(cls, [("", None)])
        if made is None or others or cls in below or ("__getattr__" in made.members and "Module" not in made.bases):
            return None
        above = [self.members(base, below | {cls}) for base in made.bases if base not in _PLAIN]
        return None if None in above else made.members.union(*filter(None, above))

    @cache  # noqa: B019
    def homes(self, cls: str) -> tuple[str, ...]:
        """The full names of the one class of a name that programs may write: of the packages above it, and its own."""
        (module, _), *_ = self.classes[cls]
        parts = module.split(".")
        above = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        return tuple(f"{each}.{cls}" for each in above if cls in self.bound(each)[0])

    @cached_property
    def functions(self) -> dict[str, Made | None]:
        """By the full names that programs may write: what the functions at the top of modules take, and the last part
        of their module as the one base; None for two functions.
        """
        found: dict[str, Made | None] = {}
        for module, member in self.wheel.sources.items():
            parts = module.split(".")
            outer = [".".join(parts[:end]) for end in range(1, len(parts))]
            if len(outer) > _DEPTH or _LEFT_OUT.search(".".join(outer)) or re.search(r"test|conftest", module):
                continue
            try:
                tree = ast.parse(self.wheel.text(member))
            except SyntaxError:
                continue
            for node in tree.body:
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                    args = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    told = " ".join(map(ast.unparse, node.decorator_list))
                    named = frozenset({*(each.arg for each in args), *_OLD_KEYWORD.findall(told)})
                    more = not all(_ADDS_NONE.search(ast.unparse(each)) for each in node.decorator_list)
                    more = more or node.args.kwarg is not None
                    made = Made((parts[-1].lstrip("_"),), frozenset(), frozenset(), named, open_=more)
                    homes = [each for each in outer if each in self.wheel.sources
                             and node.name in self.bound(each)[0] | self.stub(each)[0]]  # fmt: skip
                    for home in [*homes, *([] if parts[-1].startswith("_") else [module])]:
                        full = f"{home}.{node.name}"
                        found[full] = None if full in found and found[full] != made else made
        return found

    def offers(self, seen: Seen) -> Iterator[str]:
        """The full names of modules, and of what is defined in them, handed on by a package, or taken by programs."""
        for module in self.wheel.sources:
            if not _LEFT_OUT.search(module) or _OF_TORCH.fullmatch(module):
                yield module
                if asked(module, seen):
                    names, own, _ = self.bound(module)
                    taken = {name for name in names if module in seen.starred or f"{module}.{name}" in seen.names}
                    yield from (f"{module}.{name}" for name in own | taken | self.stub(module)[0])


def asked(module: str, seen: Seen) -> bool:
    """Whether a name of a module may be one that is kept: large packages have thousands that no program reads."""
    parts = module.split(".")
    helped = any(name.startswith(f"{module}.") for name in _HELP)
    alias = _ALIASES.get(module, parts[-1])
    read = alias in seen.owners and parts[0] not in ("transformers", "torch")
    return helped or in_front(module) or module in seen.names or read


def in_front(module: str) -> bool:
    """Whether the names of a module count, used or not."""
    root = module.partition(".")[0]
    if module.startswith("torch."):
        return bool(_OF_TORCH.fullmatch(module))
    return module.count(".") + 1 < _FRONT.get(root, 0)


def gone(wheels: list[Package], seen: Seen) -> dict[str, tuple[str, str]]:
    """Names -> the newest of the older wheels that has one, and the oldest behind it that has not."""
    *older, newest = sorted(wheels, key=lambda each: Version(each.version))
    found: dict[str, tuple[str, str]] = {}
    for at, package in enumerate(older):
        for name in package.offers(seen):
            if not newest.has(name):
                without = next(each for each in [*older[at + 1 :], newest] if not each.has(name))
                if without is newest or not any(each.has(name) for each in older[older.index(without) :]):
                    found[name] = package.version, without.version
    return {name: row for name, row in found.items() if not _inside(name, found)}


def gone_members(wheels: list[Package]) -> Iterator[tuple[str, str, str]]:
    """The full names of methods, and `Class(keyword=`, of classes in the front of a package; the newest wheel whose
    class has it, and the oldest behind it whose class does not.
    """
    *older, newest = sorted(wheels, key=lambda each: Version(each.version))
    for cls in newest.classes:
        for ask, form in ((Package.keywords, "{}({}="), (Package.members, "{}.{}")):
            now = ask(newest, cls)
            before = {at: ask(package, cls) or frozenset[str]() for at, package in enumerate(older)}
            for name in sorted(frozenset().union(*before.values()) - now) if now is not None else ():
                at = max(at for at, names in before.items() if name in names)
                without = next(each for each in [*older[at + 1 :], newest] if ask(each, cls) is not None)
                (_, made), *_ = older[at].classes[cls]
                own = ask is Package.keywords or name in made.methods or (made.inherits and name in made.keywords)
                if own and not name.startswith("_") and name not in _SAID_ELSEWHERE | _OF_MODULES:
                    for home in sorted({*newest.homes(cls)} & {*older[at].homes(cls)}):
                        if in_front(home.rpartition(".")[0]) and not re.match(r"timm\.models\.|.*\._\w*$", home):
                            yield form.format(home, name), older[at].version, without.version


def gone_keywords(wheels: list[Package]) -> Iterator[tuple[str, str, str]]:
    """The same of functions: `function(keyword=`, where the new one takes what it names alone."""
    *older, newest = sorted(wheels, key=lambda each: Version(each.version))
    for full, now in newest.functions.items():
        every = (each.functions.get(full) for each in older)
        before = [made if made is not None and now is not None and made.bases == now.bases else None for made in every]
        named = frozenset[str]().union(*(made.keywords for made in before if made is not None))
        for name in sorted(named - now.keywords) if now is not None and not now.open_ else ():
            at = max(at for at, made in enumerate(before) if made is not None and name in made.keywords)
            later = [*older[at + 1 :], newest]
            without = next(each for each in later if each.functions.get(full) is not None)
            if not name.startswith("_"):
                yield f"{full}({name}=", older[at].version, without.version


def gone_of_self(wheels: list[Package], seen: Seen) -> Iterator[tuple[str, str, str]]:
    """The same of what classes of programs read of themselves, where it is their base that had it."""
    *older, newest = sorted(wheels, key=lambda each: Version(each.version))
    for cls in sorted((seen.above & newest.classes.keys()) - _SHARED):
        now, (module, _) = newest.members(cls), newest.classes[cls][0]
        words = {*re.findall(r"\w+", newest.wheel.text(newest.wheel.sources[module]))}
        before = {at: package.members(cls) or frozenset[str]() for at, package in enumerate(older)}
        gone_ones = frozenset[str]().union(*before.values()) - words if now is not None else frozenset[str]()
        gone_ones -= (now or gone_ones) | _OF_MODULES
        for name in sorted(each for each in gone_ones if f"self.{each}" in seen.pairs and each[0] != "_"):
            at = max(at for at, names in before.items() if name in names)
            without = next(each for each in [*older[at + 1 :], newest] if each.members(cls) is not None)
            for home in sorted({*newest.homes(cls)} & {*older[at].homes(cls)}):
                yield f"{home}.{name}", older[at].version, without.version


def _inside(name: str, found: dict[str, Any]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:end]) in found for end in range(1, len(parts)))


def used(repositories: list[Path], roots: set[str]) -> Seen:
    """What the programs of some folders, or bare git repositories, take of packages."""
    names, pairs, starred, above = set[str](), set[str](), set[str](), set[str]()
    start = rf"^[ \t]*(from|import)[ \t]+({'|'.join(sorted(roots))})\b"
    for each in repositories:
        text = _lines(each, "-E", "-A12", start)
        for module, listed in re.findall(r"from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n(]+)", text):
            names.add(module)
            starred.update({module} if listed.strip() == "*" else ())
            names.update(f"{module}.{name}" for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", listed))
        names.update(re.findall(r"import\s+([\w.]+)", text))
        pairs.update(_lines(each, "-oE", r"[A-Za-z_][A-Za-z_0-9]*\.[A-Za-z_][A-Za-z_0-9]*").split())
        text = _lines(each, "-oE", r"^[ \t]*class[ \t]+\w+\([^)]*\)")
        every = re.findall(r"\(([^)]*)\)", text)
        above.update(name for bases in every for name in re.findall(r"(\w+)\s*(?:,|$)", bases))
    return Seen(names, pairs, starred, above)


def _lines(repository: Path, *how: str) -> str:
    bare = (repository / "HEAD").exists()
    where, tree = (["--git-dir", str(repository), "grep"], ["HEAD"]) if bare else (["grep", "--no-index"], [])
    command = ["git", *where, "-hI", *how, *tree, "--", "*.py"]
    run = subprocess.run(command, capture_output=True, check=False, cwd=None if bare else repository)
    return run.stdout.decode("utf-8", "replace")


def kept(name: str, seen: Seen) -> bool:
    """Whether programs use a name, or it stands in the front of a package that nearly all of them import."""
    if name in _RENAMED or name in _HELP:
        return name not in _RENAMED
    parts = name.split(".")
    alias = _ALIASES.get(parts[0], parts[0]) if len(parts) == 2 else parts[-2]
    front = in_front(name.rpartition(".")[0]) and not _OF_OTHERS.search(name)
    front = front and (not parts[-1].startswith("_") or bool(_PRIVATE.fullmatch(name)))
    return front or name in seen.names or f"{alias}.{parts[-1]}" in seen.pairs


def rows_of(package: list[Package], seen: Seen) -> Iterator[dict[str, Any]]:
    """What the table says of one package: a row for the names that went together and have one answer."""
    newest = max(package, key=lambda each: Version(each.version))
    dist = newest.wheel.archive.filename.rpartition("/")[2].split("-")[0].replace("_", "-").lower()  # type: ignore[union-attr]
    oldest = first_wheel(dist, "3.10") or _OLDEST.get(dist, "0")
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for name, (had, without) in sorted(gone(package, seen).items()):
        if kept(name, seen):
            found.setdefault((had, without, _answer(name), ""), []).append(name)
    members = sorted(gone_members(package)) if dist != "torch" else []  # refused_calls.json has those of torch
    fields = {name.rstrip("=").replace("(", ".") for name, _, _ in members if name.endswith("=")}
    if dist != "torch":
        functions = gone_keywords(package)
        members += sorted(each for each in functions if kept(each[0].partition("(")[0], seen))
    for name, had, without in (each for each in members if each[0] not in _said()):  # a field is read too
        cls, called, keyword = name.rstrip("=").partition("(")
        how = keyword if called else "" if name in fields else "()"
        found.setdefault((had, without, _answer(name), how), []).append(cls)
    for name, had, without in gone_of_self(package, seen):
        found.setdefault((had, without, _answer(name), "self"), []).append(name)
    for (had, without, answer, how), names in sorted(found.items()):
        older = had if Version(had) >= max(map(Version, (oldest, _of_npus().get(dist, "0")))) else ""
        row: dict[str, Any] = {"names": names, "python": "3.10", "until": [dist, without, oldest], "had": older}
        if dist in _BESIDE_TORCH:
            row = {"names": names, "since": _since(dist, without)}
        if how:
            row |= {"()": {"method": True}, "self": {"attribute": True}}.get(how, {"keyword": how})
        no_more = dict.fromkeys(("", "self"), f"{dist} no longer has {{member}}")
        no_more |= {"()": f"{dist} no longer has the method {{member}}"}
        no_more.setdefault(how, f"{{member}} of {dist} no longer takes {how}=")
        copied = "" if older or how else ", or keep a copy of {name}"
        yield row | {
            "each": True,
            "message": f"{no_more[how]} (removed after {had}, in {without} at the latest)",
            "help": answer or f"look for a replacement in the release notes of {dist}{copied}",
            "source": f"the wheels of {dist} {had} and {without}",
        }


def _answer(name: str) -> str:
    """What takes the place of a name, where that is known; of a part of a class, of the same in another place."""
    root = name.partition(".")[0]
    tails = {each.removeprefix(f"{root}."): said for each, said in _HELP.items() if each.startswith(f"{root}.")}
    kin = (said for tail, said in tails.items() if re.search(r"\W", tail) and name.endswith(tail))
    by_form = (said for form, said in _OF_FORM if form.fullmatch(name))
    return _HELP.get(name) or next(kin, "") or next(by_form, "")


@cache
def _said() -> frozenset[str]:
    """The keywords that refused_calls.json has rows of its own for."""
    rows = json.loads(TABLE.with_name("refused_calls.json").read_bytes())["packages"]
    return frozenset(f"{name}({row['keyword']}=" for row in rows if "keyword" in row for name in row["names"])


@cache
def _of_npus() -> dict[str, str]:
    """The first release of each package that knows NPUs."""
    return {name: row["first"] for row in packages() if "first" in row for name in row["pip"]}


def _since(dist: str, without: str) -> str:
    """The first torch that goes with a release."""
    major, minor = Version(without).release[:2]
    torch = Version(f"2.{minor - 15}" if dist == "torchvision" and minor > 15 else without)
    if (dist == "torchvision" and minor <= 15) or (dist != "torchvision" and major < 2):
        return TORCH_VERSIONS[0]
    return next(each for each in TORCH_VERSIONS if Version(each).release >= torch.release[:2])


def write(wheels: dict[str, list[Package]], found: dict[str, list[dict[str, Any]]]) -> None:
    """Write the table, with the wheels that it was read from; a package without wheels here keeps its rows."""
    table = json.loads(TABLE.read_bytes())
    before: dict[str, list[dict[str, Any]]] = {}
    for row in table["packages"]:
        before.setdefault(row["names"][0].partition(".")[0], []).append(row)
    rows = [row for _, each in sorted({**before, **found}.items()) for row in each]
    read = {name: sorted({each.version for each in of_one}, key=Version) for name, of_one in wheels.items()}
    versions = dict(sorted({**table["_meta"]["source"], **read}.items()))
    about = (
        "Names that packages had and have no more, in the form of refused_calls.json, `packages`. Written by "
        "scripts/build_gone_names.py: names that public programs use, of the wheels in `source`."
    )
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    meta = json.dumps({"about": about, "source": versions})
    TABLE.write_text(f'{{\n "_meta": {meta},\n "packages": [\n{lines}\n ]\n}}\n', encoding="utf-8")


def main() -> None:
    """Read the wheels and the programs, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--used", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    read: dict[str, list[Package]] = {}
    for path in sorted(given.folder.rglob("*.whl")):
        package = Package(path)
        read.setdefault(package.name, []).append(package)
    seen = used(given.used, set(read))
    had = {name for row in json.loads(TABLE.read_bytes())["packages"] for name in row["names"]}
    seen.names.update(had, (name.rpartition(".")[0] for name in had))
    write(read, {name: [*rows_of(each, seen)] for name, each in read.items() if len(each) > 1})


if __name__ == "__main__":
    main()
