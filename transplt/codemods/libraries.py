"""Libraries above torch: arguments that pick a CUDA-bound part of them.

Facts: rules/support/third_party.json; transformers/training_args.py (optim, tf32, half_precision_backend),
transformers/modeling_utils.py (attn_implementation, load_in_8bit); diffusers' ModelMixin.enable_npu_flash_attention;
ray's page on accelerators (resource name NPU); Lightning 2.6 has no accelerator for NPUs.
"""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.finding import Effort, Level
from transplt.syntax.asks import keyword_of, last_name

fixer = Fixer(
    __name__,
    code="NPU144",
    rank=340,
    words=(
        "flash_attention_2", "load_in_", "tf32", "8bit", "paged_adamw", "adamw_apex", "half_precision_backend",
        "fp16_backend", "num_gpus", "enable_xformers",
    ),
)  # fmt: skip

_LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")
_OPTIM = re.compile(r"paged_.*|.*(?:8bit|4bit|bnb).*|adamw_apex_fused")


@fixer.on(ast.Attribute, last="enable_xformers_memory_efficient_attention")
def attention_of_xformers(work: Work, node: ast.Attribute) -> Finds:
    yield work.note(
        node,
        "NPU146",
        "the attention of xformers has no NPU kernels",
        help="call enable_npu_flash_attention() instead (diffusers 0.27 or newer), or leave the call out",
    )


@fixer.on(ast.Module)
def arguments_of_libraries(work: Work, tree: ast.Module) -> Finds:
    """Report what the arguments of libraries ask of CUDA."""
    utf8 = work.source.utf8
    if b"num_gpus" in utf8 and b"ray" in utf8:
        yield from _ray(work)
    lightning = b"lightning" in utf8
    if not (lightning or any(word in utf8 for word in _WORDS)):
        return
    for call in work.scan.calls:
        if not call.keywords:
            continue
        names = {keyword.arg for keyword in call.keywords}
        if names & _ARGUMENTS:
            yield from _transformers(work, call)
        if lightning and names & {"accelerator", "gpus"}:
            yield from _lightning(work, call)


_ARGUMENTS = frozenset(
    "attn_implementation use_flash_attention_2 load_in_8bit load_in_4bit tf32 optim half_precision_backend "
    "fp16_backend".split()
)
_WORDS = tuple(name.encode() for name in sorted(_ARGUMENTS))


# --- transformers ----------------------------------------------------------------------------------------------------


def _transformers(work: Work, call: ast.Call) -> Finds:
    for keyword in call.keywords:
        value = keyword.value
        given = value.value if isinstance(value, ast.Constant) else None
        if keyword.arg == "attn_implementation" and given == "flash_attention_2":
            yield work.note(
                keyword,
                "NPU141",
                "flash_attention_2 is carried out by torch_npu's fused attention",
                level=Level.INFO,
                help='needs transformers 4.51 or newer (not 4.55.3); "sdpa" works with any version',
            )
        elif keyword.arg == "use_flash_attention_2" and given is True:
            yield work.note(
                keyword,
                "NPU141",
                "use_flash_attention_2 asks for the CUDA package flash_attn",
                help='write attn_implementation="sdpa", or "flash_attention_2" with transformers 4.51 or newer',
            )
        elif keyword.arg in ("load_in_8bit", "load_in_4bit") and given is True:
            if isinstance(call.func, ast.Name) and call.func.id == "BitsAndBytesConfig":
                continue  # reported at its import
            yield work.note(
                keyword,
                "NPU142",
                "quantisation by bitsandbytes does not run on NPU",
                help="load the model in bfloat16, or in a format that gptqmodel reads",
                effort=Effort.MEDIUM,
            )
        elif keyword.arg == "tf32" and given is True and last_name(call.func).endswith(("TrainingArguments", "Config")):
            yield work.note(
                keyword,
                "NPU143",
                "transformers refuses tf32=True without an NVIDIA GPU",
                help="leave it out; torch.npu.matmul.allow_hf32 is the NPU's own switch",
            )
        elif keyword.arg == "optim" and isinstance(given, str) and _OPTIM.fullmatch(given):
            apex = "apex" in given
            yield work.note(
                keyword,
                "NPU144",
                f"the optimizer {given!r} needs {'apex' if apex else 'bitsandbytes'}, which has no kernels for NPU",
                help='use "adamw_torch_npu_fused" or "adamw_torch"',
            )
        elif keyword.arg in ("half_precision_backend", "fp16_backend") and given == "apex":
            yield work.note(
                keyword, "NPU144", "mixed precision by apex", help='use "auto": autocast and GradScaler of torch'
            )


# --- ray -------------------------------------------------------------------------------------------------------------


def _ray(work: Work) -> Finds:
    """`@ray.remote(num_gpus=1)`: NPUs are a resource of their own, `resources={"NPU": 1}`."""
    if "ray" not in {binding.target.split(".")[0] for found in work.scan.root.bindings.values() for binding in found}:
        return
    for call in work.scan.calls:
        for keyword in call.keywords:
            if keyword.arg != "num_gpus" or (isinstance(keyword.value, ast.Constant) and not keyword.value.value):
                continue
            if work.names.qualified(call.func) in ("ray.remote", "ray.init") or last_name(call.func) == "options":
                yield work.note(
                    keyword,
                    "NPU147",
                    "num_gpus asks ray for GPUs",
                    help='ask for NPUs: resources={"NPU": ...}; ray finds the cards of a node by itself',
                )


# --- Lightning -------------------------------------------------------------------------------------------------------


def _lightning(work: Work, call: ast.Call) -> Finds:
    if last_name(call.func) not in ("Trainer", "Fabric", "from_argparse_args"):
        return
    full = work.names.qualified(call.func)
    if full is not None and full.split(".")[0] not in _LIGHTNING:
        return
    accelerator = keyword_of(call, "accelerator")
    words = [] if accelerator is None else [node for node in ast.walk(accelerator) if isinstance(node, ast.Constant)]
    named = [node for node in words if node.value in ("gpu", "cuda")]
    if keyword_of(call, "gpus") is None and not named:
        return
    for node in named:
        work.take(node)
    yield work.note(
        call,
        "NPU145",
        "Lightning has no accelerator for NPUs",
        api=full or "",
        help="give the trainer an Accelerator of your own, or train with plain PyTorch or accelerate",
        effort=Effort.HIGH,
    )
