"""`attention`: the functions of flash-attn come from the project's own, or (`=package`) from flash-attn-npu.

Source: flash-attn 2.8.4 (Dao-AILab/flash-attention@0251105) and 1.0.9; flash-attn-npu 0.4.2.post1.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.adaptors.package import Package, turn_package
from transplt.fixers.adaptors.package_probes import turn_probes
from transplt.fixers.adaptors.unpadding import unpadding
from transplt.fixers.adaptors.writer import value_of, writer_for
from transplt.syntax.modules import import_base

fixer = Fixer(__name__, code="NPU872", rank=-90, theme="adapt:attention", needs=(b"flash_attn",), value="(?:package)?",
              example="package")  # fmt: skip

_NEW = ("func", "kvpacked_func", "qkvpacked_func", "varlen_func", "varlen_kvpacked_func", "varlen_qkvpacked_func")
_OLD = ("unpadded_func", "unpadded_kvpacked_func", "unpadded_qkvpacked_func")
_FUNCTIONS = (*(f"flash_attn_{each}" for each in (*_NEW, *_OLD)), "flash_attn_with_kvcache")
#: Of which the package for Ascend has the same.
_OF_PACKAGE = (*(f"flash_attn_{each}" for each in _NEW), "flash_attn_with_kvcache")
_PADDING = (
    "index_first_axis", "index_put_first_axis", "pad_input", "unpad_input", "unpad_input_for_concatenated_sequences",
)  # fmt: skip
_ROTARY = ("RotaryEmbedding", "apply_rotary_emb", "apply_rotary_emb_kv_", "apply_rotary_emb_qkv_",
           "apply_rotary_emb_torch")  # fmt: skip
FLASH = Package(
    "flash_attn",
    {
        **{f"flash_attn.{name}": name for name in _FUNCTIONS},
        **{f"flash_attn.flash_attn_interface.{name}": name for name in _FUNCTIONS},
        **{f"flash_attn.bert_padding.{name}": name for name in _PADDING},
        **{f"flash_attn.layers.rotary.{name}": name for name in _ROTARY},
        "flash_attn.layers.rotary.apply_rotary_emb_func": "apply_rotary_emb",
        **{f"flash_attn.ops.rms_norm.{name}": name for name in ("RMSNorm", "rms_norm")},
        **{f"flash_attn.flash_attention.{name}": name for name in ("FlashAttention", "FlashMHA")},
        **{f"flash_attn.modules.mha.{name}": name for name in ("FlashCrossAttention", "FlashSelfAttention")},
    },
    {"flash_attn.__version__": '"2.8.4"'},
    {"flash_attn.bert_padding.rearrange": "einops.rearrange"},
)


@fixer.on(ast.Module)
def attention_of_flash_attn(work: Work, tree: ast.Module) -> Finds:
    """Take from the helper what a file takes from flash-attn."""
    writer = writer_for(work, fixer)
    if writer is None:
        return
    package, left = unpadding(work, FLASH)
    package = package.without(_both_ages(work))
    if value_of(work, fixer) == "package":
        package = _with_package(package)
    for node, message, help_ in left:
        writer.remark(node, fixer.code, message, help_)
    turned = turn_package(writer, package, fixer.code, ("NPU510",))
    turn_probes(writer, package, fixer.code, turned=turned)
    yield from writer.found


def _both_ages(work: Work) -> set[str]:
    """The functions of flash-attn 1 that a file may take from 2 as well: which corner their masks begin in is open."""
    taken: set[str] = set()
    for node in work.scan.imports:
        if isinstance(node, ast.ImportFrom) and (import_base(work.scan.path, node) or "").startswith("flash_attn"):
            taken.update(alias.name for alias in node.names)
    both = [f"flash_attn_{each}" for each in _OLD if "qkv" not in each]
    both = [name for name in both if name in taken and name.replace("unpadded", "varlen") in taken]
    return {full for full in FLASH.names if full.rpartition(".")[2] in both}


def _with_package(package: Package) -> Package:
    """The same, with the functions of flash-attn-npu where it has them."""
    moved = {full: f"flash_attn_npu.{name}" for full, name in package.names.items() if name in _OF_PACKAGE}
    return Package(package.root, package.without(moved).names, package.constants, {**package.moved, **moved})
