"""scaled_dot_product_attention and flash_attn as torch_npu's fused attention."""

from __future__ import annotations

import re

import pytest

from tests.harness import codes, migrate
from tests.tunings.tuned import check_tuned, check_untuned
from transplt.fixers.tunings.table import tunings
from transplt.rules.tuning_facts import schemas, versions

TRIANGLE = "atten_mask=causal_mask(q.device)"
TUNE = "fusion-attention"
MASK = '''
@functools.lru_cache(maxsize=None)
def causal_mask(device):
    """The upper triangle that npu_fusion_attention takes in its causal modes, made once for a device."""
    with torch.inference_mode(False):
        return torch.triu(torch.ones(2048, 2048, dtype=torch.bool, device=device), diagonal=1)
'''
MODEL = """
import torch
{imports}
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        self.p = 0.1
        self.qkv = nn.Linear(8, 24)
        self.q_norm = nn.LayerNorm(4)

    def forward(self, x, mask, causal):
        qkv = self.qkv(x).reshape(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        {body}
        return F.relu(out)
"""
BEFORE, AFTER = "import torch.nn.functional as F", "import torch_npu  # noqa: F401\nimport torch.nn.functional as F"


def model(body: str, imports: str = BEFORE) -> str:
    return MODEL.format(body=body.replace("\n", "\n        "), imports=imports)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("", "scale=q.shape[-1] ** -0.5"),
        ("scale=0.5", "scale=0.5"),
        ("scale=None", "scale=q.shape[-1] ** -0.5"),
        ("scale=causal", "scale=q.shape[-1] ** -0.5 if causal is None else causal"),
        ("dropout_p=0.0, scale=1.0", "scale=1.0"),
        ("dropout_p=0.1, scale=1.0", "keep_prob=0.9, scale=1.0"),
        ("dropout_p=self.p, scale=1.0", "keep_prob=1.0 - self.p, scale=1.0"),
        ("dropout_p=self.p * 2, scale=1.0", "keep_prob=1.0 - (self.p * 2), scale=1.0"),
        (
            "dropout_p=self.p if self.training else 0.0, scale=1.0",
            "keep_prob=1.0 - self.p if self.training else 1.0, scale=1.0",
        ),
        (
            "dropout_p=(self.p + 0.1 if self.training else 0), scale=1.0",
            "keep_prob=1.0 - (self.p + 0.1) if self.training else 1.0, scale=1.0",
        ),
        ("attn_mask=None, is_causal=False, enable_gqa=True, scale=1.0", "scale=1.0"),
        ("None, 0.0, False, scale=1.0", "scale=1.0"),
    ],
)
def test_arguments(given: str, written: str) -> None:
    call = f"out = F.scaled_dot_product_attention(q, k, v{', ' if given else ''}{given})"
    arguments = ["q", "k", "v", "head_num=q.shape[1]", 'input_layout="BNSD"', *written.split(", ")]
    line = f"out = torch_npu.npu_fusion_attention({', '.join(arguments)})[0]"
    if len(line) > 112:
        line = "out = torch_npu.npu_fusion_attention(\n    " + ",\n    ".join(arguments) + ",\n)[0]"
    check_tuned(TUNE, model(call), model(line, AFTER))


@pytest.mark.parametrize(
    ("body", "mask"),
    [
        ("mask = torch.ones(5, 5, dtype=torch.bool).tril()", "atten_mask=~mask"),
        ("mask = torch.tril(torch.ones((5, 5), dtype=torch.bool))", "atten_mask=~mask"),
        ("mask = torch.ones(5, 5, dtype=torch.bool).tril(diagonal=0)", "atten_mask=~mask"),
        ("mask = torch.ones(5, 5, dtype=torch.bool).tril(diagonal=-1)", "atten_mask=~mask, inner_precise=2"),
        ("mask = torch.ones(5, 5, dtype=torch.bool).tril(diagonal=1)", "atten_mask=~mask, inner_precise=2"),
    ],
)
def test_masks_are_turned_round(body: str, mask: str) -> None:
    body = body.replace("5, 5", "q.size(2), k.size(2)")
    call = "out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)"
    arguments = ["q", "k", "v", "head_num=q.shape[1]", 'input_layout="BNSD"', *mask.split(", "), "scale=1.0"]
    line = f"out = torch_npu.npu_fusion_attention({', '.join(arguments)})[0]"
    if len(line) > 112:
        line = "out = torch_npu.npu_fusion_attention(\n    " + ",\n    ".join(arguments) + ",\n)[0]"
    check_tuned(TUNE, model(f"{body}\n{call}"), model(f"{body}\n{line}", AFTER))


@pytest.mark.parametrize(
    "body",
    [
        "q, k, v = self.qkv(x).view(2, 5, 24).chunk(3, -1)",
        "qkv = self.qkv(x).view(2, 5, 24)\nq, k, v = qkv.split(8, dim=-1)",
    ],
)
def test_heads_that_unflatten_makes(body: str) -> None:
    heads = "q, k, v = (q.unflatten(2, (2, 4)), k.unflatten(2, (2, 4)), v.unflatten(2, [2, 4]))"
    body = f"{body}\n{heads}\nq, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)\nout = "
    call = 'torch_npu.npu_fusion_attention(q, k, v, head_num=q.shape[1], input_layout="BNSD", scale=1.0)[0]'
    check_tuned(TUNE, model(f"{body}F.scaled_dot_product_attention(q, k, v, scale=1.0)"), model(f"{body}{call}", AFTER))


def test_the_layout_and_the_comments_stay() -> None:
    check_tuned(
        TUNE,
        model(
            "out = F.scaled_dot_product_attention(  # fused\n"
            "    q, k, v,  # (B, N, S, D)\n"
            "    dropout_p=self.p,  # only here\n"
            "    is_causal=causal  # or not\n"
            ")"
        ),
        "\n"
        + model(
            "out = torch_npu.npu_fusion_attention(  # fused\n"
            "    q, k, v,  # (B, N, S, D)\n"
            "    head_num=q.shape[1],\n"
            '    input_layout="BNSD",\n'
            "    keep_prob=1.0 - self.p,  # only here\n"
            "    atten_mask=causal_mask(q.device) if causal else None,\n"
            "    sparse_mode=2,\n"
            "    scale=q.shape[-1] ** -0.5  # or not\n"
            ")[0]",
            AFTER,
        )
        .replace("import torch\n", "import functools\nimport torch\n", 1)
        .replace("import nn\n", f"import nn\n\n{MASK}", 1),
    )


def test_arguments_over_several_lines() -> None:
    check_tuned(
        TUNE,
        FLASH.format(
            imports="flash_attn_func",
            call="flash_attn_func(\n        q, k, v, rest\n        .p, scale,\n        causal or\n        kv\n    )",
        ),
        FLASH.format(
            imports="flash_attn_func",
            call="torch_npu.npu_fusion_attention(\n"
            '        q, k, v, head_num=q.shape[2],\n        input_layout="BSND",\n'
            "        keep_prob=1.0 - rest\n        .p, scale=q.shape[-1] ** -0.5 if scale is None else scale,\n"
            "        atten_mask=causal_mask(q.device) if causal or\n        kv else None,\n"
            "        sparse_mode=3\n    )[0]",
        )
        .replace("import torch\n", "import functools\nimport torch\n")
        .replace("from flash_attn import flash_attn_func\n", f"import torch_npu  # noqa: F401\n\n{MASK}"),
    )


def test_an_import_of_the_function_goes() -> None:
    check_tuned(
        TUNE,
        """
        import torch
        from torch import nn
        from torch.nn.functional import relu, scaled_dot_product_attention

        class Attention(nn.Module):
            def __init__(self):
                self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, x):
                q = self.make(x).view(2, 5, 2, 4)
                y = scaled_dot_product_attention(q, q, q, scale=1.0)
                return relu(y)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch import nn
        from torch.nn.functional import relu

        class Attention(nn.Module):
            def __init__(self):
                self.q, self.kv = nn.Linear(8, 8), nn.Linear(8, 8)

            def forward(self, x):
                q = self.make(x).view(2, 5, 2, 4)
                y = torch_npu.npu_fusion_attention(q, q, q, head_num=q.shape[1], input_layout="BNSD", scale=1.0)[0]
                return relu(y)
        """,
    )


@pytest.mark.parametrize(
    "body",
    [
        "out = F.scaled_dot_product_attention(*qkv)",
        "out = F.scaled_dot_product_attention(q, k, v, **mask)",
        "out = F.scaled_dot_product_attention(q, k)",
        "out = F.scaled_dot_product_attention(q, k, v, None, 0.0, False, 1.0, False, mask)",
        "out = F.scaled_dot_product_attention(query, k, v)",  # a name that nothing in sight gives a value
        "q, k = self.q_norm(x).view(2, 6, 5, 4), self.qkv(x).view(2, 6, 5, 4)\n"
        "out = F.scaled_dot_product_attention(q, k, k)",  # of a layer that autocast leaves in float32
        "out = F.scaled_dot_product_attention(q, k, v, mask)",  # a parameter: float or boolean, of any shape
        "mask = mask > 0\nout = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
        "mask = torch.ones(1, 5, dtype=torch.bool)\nout = F.scaled_dot_product_attention(q, k, v, mask)",
        "mask = torch.ones(q.size(2), k.size(2)).tril()\nout = F.scaled_dot_product_attention(q, k, v, mask)",
        "out = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)",
        "q, k = self.q_norm(q), self.q_norm(k)\nout = F.scaled_dot_product_attention(q, k, v)",  # float32 in autocast
        "q = q.float()\nout = F.scaled_dot_product_attention(q, k, v)",
        "if causal:\n    q = mask\nout = F.scaled_dot_product_attention(q, k, v)",
        "q = q[0]\nout = F.scaled_dot_product_attention(q, k, v)",
        "q = q.flatten(0, 1)\nout = F.scaled_dot_product_attention(q, k, v)",
        "q *= 2\nout = F.scaled_dot_product_attention(q, k, v)",
        "for q in (q, k):\n    out = F.scaled_dot_product_attention(q, k, v)",
        "for _ in range(2):\n    out = F.scaled_dot_product_attention(q, k, v)\n    q = mask",
        "out = F.scaled_dot_product_attention(self.make(q), k, v)",
        "out = F.scaled_dot_product_attention(x, x, x)",
        "with torch.nn.attention.sdpa_kernel(mask):\n    out = F.scaled_dot_product_attention(q, k, v)",
    ],
)
def test_what_cannot_be_read_stays_with_a_remark(body: str) -> None:
    check_untuned(TUNE, model(body), open_codes=["NPU766"])


@pytest.mark.parametrize(
    "body",
    [
        "out = self.scaled_dot_product_attention(q, k, v)",
        "out = torch.scaled_dot_product_attention(q, k, v)",
        "out = hasattr(F, 'scaled_dot_product_attention')",
        "out = F.multi_head_attention_forward(q, k, v)",
        "out = F.scaled_dot_product_attention",
    ],
)
def test_what_is_no_call_of_it(body: str) -> None:
    check_untuned(TUNE, model(body))


def test_script_and_portable_programs_keep_it() -> None:
    scripted = model("out = F.scaled_dot_product_attention(q, k, v)").replace(
        "    def f", "    @torch.jit.export\n    def f"
    )
    check_untuned(TUNE, scripted, open_codes=["NPU766"])
    causal = model("out = F.scaled_dot_product_attention(q, k, v, is_causal=True)")
    check_untuned(TUNE, causal, style="portable", open_codes=["NPU760"])


# --- flash_attn ------------------------------------------------------------------------------------------------------

FLASH = """
import torch
from flash_attn import {imports}


def attend(q, k, v, qkv, kv, ends, causal, scale, rest):
    return {call}
"""


@pytest.mark.parametrize(
    ("name", "given", "written"),
    [
        ("flash_attn_func", "q, k, v", 'q, k, v, head_num=q.shape[2], input_layout="BSND", scale=q.shape[-1] ** -0.5'),
        (
            "flash_attn_func",
            "q, k, v, 0.1, 0.5",
            'q, k, v, head_num=q.shape[2], input_layout="BSND", keep_prob=0.9, scale=0.5',
        ),
        (
            "flash_attn_func",
            "q.to(torch.bfloat16), k, v, softmax_scale=1.0",
            'q.to(torch.bfloat16), k, v, head_num=q.shape[2], input_layout="BSND", scale=1.0',
        ),
        (
            "flash_attn_func",
            "q=q, k=k, v=v, softmax_scale=2**-1, deterministic=False, return_attn_probs=False",
            'query=q, key=k, value=v, head_num=q.shape[2], input_layout="BSND", scale=2**-1',
        ),
        (
            "flash_attn_qkvpacked_func",
            "qkv, softmax_scale=1.0",
            '*qkv.unbind(2), head_num=qkv.shape[3], input_layout="BSND", scale=1.0',
        ),
        (
            "flash_attn_kvpacked_func",
            "q, kv=kv, softmax_scale=1.0",
            'q, *kv.unbind(2), head_num=q.shape[2], input_layout="BSND", scale=1.0',
        ),
        (
            "flash_attn_varlen_qkvpacked_func",
            "qkv, ends, 9, 0.0, 1.0",
            '*qkv.unbind(1), head_num=qkv.shape[2], input_layout="TND", actual_seq_qlen=ends[1:].tolist(), '
            "actual_seq_kvlen=ends[1:].tolist(), scale=1.0",
        ),
        (
            "flash_attn_unpadded_kvpacked_func",
            "q, kv, ends, rest, 9, 9, 0.0, 1.0",
            'q, *kv.unbind(1), head_num=q.shape[1], input_layout="TND", actual_seq_qlen=ends[1:].tolist(), '
            "actual_seq_kvlen=rest[1:].tolist(), scale=1.0",
        ),
    ],
)
def test_functions_of_flash_attn(name: str, given: str, written: str) -> None:
    line = f"torch_npu.npu_fusion_attention({written})[0]"
    if len(line) + 11 > 120:
        line = "torch_npu.npu_fusion_attention(\n        " + ",\n        ".join(written.split(", ")) + ",\n    )[0]"
    check_tuned(
        TUNE,
        FLASH.format(imports=name, call=f"{name}({given})"),
        FLASH.format(imports=name, call=line).replace(
            f"from flash_attn import {name}", "import torch_npu  # noqa: F401"
        ),
    )


@pytest.mark.parametrize(
    ("name", "given", "written"),
    [
        ("flash_attn_func", "q, k, v, causal=True, softmax_scale=1.0", f"{TRIANGLE}, sparse_mode=3"),
        ("flash_attn_func", "q, k, v, 0.0, 1.0, causal", f"{TRIANGLE} if causal else None, sparse_mode=3"),
        (
            "flash_attn_func",
            "q, k, v, softmax_scale=1.0, window_size=(7, 3)",
            f"{TRIANGLE}, pre_tockens=7, next_tockens=3, sparse_mode=4",
        ),
        (
            "flash_attn_func",
            "q, k, v, causal=True, softmax_scale=1.0, window_size=(7, 3)",
            f"{TRIANGLE}, pre_tockens=7, next_tockens=0, sparse_mode=4",
        ),
        (
            "flash_attn_func",
            "q, k, v, causal=True, softmax_scale=1.0, window_size=(-1, 5)",
            f"{TRIANGLE}, sparse_mode=3",
        ),
        ("flash_attn_unpadded_func", "q, k, v, ends, ends, 9, 9, 0.0, 1.0, True", f"{TRIANGLE}, sparse_mode=2"),
        ("flash_attn_varlen_func", "q, k, v, ends, ends, 9, 9, 0.0, 1.0, True", f"{TRIANGLE}, sparse_mode=3"),
    ],
)
def test_causal_and_sliding_masks(name: str, given: str, written: str) -> None:
    result = migrate(FLASH.format(imports=name, call=f"{name}({given})"), tune=((TUNE, ""),))
    text = result.data.decode()
    call = re.search(r"npu_fusion_attention\((.*?)\)\[0\]", text, re.DOTALL)
    assert call is not None
    words = {word.strip() for word in re.sub(r"\s+", " ", call[1]).split(", ")} | {call[1].strip().rstrip(",")}
    assert {word.strip(" ,") for word in written.split(", ")} <= {word.strip(" ,") for word in words}, text
    assert MASK in text
    assert "flash_attn" not in text
    assert codes(result, applied=False) == []


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("flash_attn_func", "flash_attn_func(*qkv)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, **rest)"),
        ("flash_attn_func", "flash_attn_func(q, k)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, alibi_slopes=rest)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, softcap=30.0)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, deterministic=True)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, return_attn_probs=True)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, window_size=rest)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, causal=causal, window_size=(4, 4))"),
        ("flash_attn_func", "flash_attn_func(torch.cat(q), k, v)"),
        ("flash_attn_func", "flash_attn_func(q, k, v, dropout=0.1)"),
        ("flash_attn_varlen_func", "flash_attn_varlen_func(q, k, v, ends, ends, 9, 9, block_table=rest)"),
        ("flash_attn_varlen_func", "flash_attn_varlen_func(q, k, v, torch.cat(ends), ends, 9, 9)"),
        ("flash_attn_with_kvcache", "flash_attn_with_kvcache(q, k, v)"),
    ],
)
def test_calls_of_flash_attn_that_stay(name: str, call: str) -> None:
    check_untuned(TUNE, FLASH.format(imports=name, call=call), open_codes=["NPU510", "NPU767"])


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nfrom flash_attn.bert_padding import pad_input\n\npad_input(1)\n",
        "import torch\nimport flash_attn\n",
    ],
)
def test_other_uses_of_the_package_are_as_before(source: str) -> None:
    check_untuned(TUNE, source, open_codes=["NPU510"])


def test_a_try_that_asks_for_the_package_stays() -> None:
    check_untuned(
        TUNE,
        """
        import torch

        try:
            from flash_attn import flash_attn_func
        except ImportError:
            flash_attn_func = None

        def attend(q, k, v):
            if flash_attn_func is not None:
                return flash_attn_func(q, k, v, causal=True)
            return torch.softmax(q @ k.mT, -1) @ v
        """,
        open_codes=["NPU510", "NPU767"],
    )


def test_a_try_that_only_looks_for_the_spelling_goes() -> None:
    check_tuned(
        TUNE,
        """
        import torch

        try:
            from flash_attn.flash_attn_interface import flash_attn_unpadded_qkvpacked_func as attention
        except ImportError:
            from flash_attn.flash_attn_interface import flash_attn_varlen_qkvpacked_func as attention
        from flash_attn.bert_padding import pad_input

        def attend(qkv, ends, size):
            return pad_input(attention(qkv, ends, size, 0.0, 1.0))
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        from flash_attn.bert_padding import pad_input

        def attend(qkv, ends, size):
            return pad_input(torch_npu.npu_fusion_attention(
                *qkv.unbind(1),
                head_num=qkv.shape[2],
                input_layout="TND",
                actual_seq_qlen=ends[1:].tolist(),
                actual_seq_kvlen=ends[1:].tolist(),
                scale=1.0,
            )[0])
        """,
        open_codes=["NPU510"],
    )


def test_forms_of_imports() -> None:
    check_tuned(
        TUNE,
        """
        import torch
        from flash_attn import (
            flash_attn_func,  # plain
            flash_attn_varlen_func as varlen,
        )

        def lazy(q: torch.Tensor):
            import flash_attn.flash_attn_interface as fa

            return fa.flash_attn_func(q.half(), q.to(torch.float16), q.to(q.dtype), 0.0, 1.0)

        kept = varlen
        a = flash_attn_func(kept, kept, kept, softmax_scale=1.0)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from flash_attn import (
            flash_attn_varlen_func as varlen,
        )

        def lazy(q: torch.Tensor):
            return torch_npu.npu_fusion_attention(
                q.half(),
                q.to(torch.float16),
                q.to(q.dtype),
                head_num=q.shape[2],
                input_layout="BSND",
                scale=1.0,
            )[0]

        kept = varlen
        a = torch_npu.npu_fusion_attention(kept, kept, kept, head_num=kept.shape[2], input_layout="BSND", scale=1.0)[0]
        """,
        open_codes=["NPU510", "NPU767"],
    )


def test_heads_of_a_transposed_tensor() -> None:
    source = FLASH.format(imports="flash_attn_func", call="flash_attn_func(q.transpose(1, 2), k, v)")
    text = migrate(source, tune=((TUNE, ""),)).data.decode()
    assert "head_num=q.shape[1]" in text
    assert "scale=q.shape[-1] ** -0.5" in text


def test_a_function_that_is_imported_on_a_condition_stays() -> None:
    check_untuned(
        TUNE,
        """
        import sys
        import torch

        if sys.platform == "linux":
            from flash_attn import flash_attn_func
        else:
            flash_attn_func = None

        def attend(q, k, v):
            return flash_attn_func(q, k, v, softmax_scale=1.0)
        """,
        open_codes=["NPU510", "NPU767"],
    )


def test_a_tensor_on_its_way_to_a_device_is_not_read_twice() -> None:
    source = FLASH.format(imports="flash_attn_func", call="flash_attn_func(q.to(ends), k, v, causal=True)")
    check_untuned(TUNE, source, open_codes=["NPU510", "NPU767"])


def test_what_is_said_of_an_import_moves_to_the_one_that_stays() -> None:
    result = check_tuned(
        TUNE,
        """
        import torch
        from flash_attn import flash_attn_func
        from flash_attn.bert_padding import pad_input

        def attend(q):
            a = flash_attn_func(q, q, q, 0.0, 1.0)
            return pad_input(a)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from flash_attn.bert_padding import pad_input

        def attend(q):
            a = torch_npu.npu_fusion_attention(q, q, q, head_num=q.shape[2], input_layout="BSND", scale=1.0)[0]
            return pad_input(a)
        """,
        open_codes=["NPU510"],
    )
    assert [finding.span.line for finding in result.findings if finding.code == "NPU510"] == [3]


def test_what_is_written_exists_in_the_versions() -> None:
    for name, target in (("fusion-attention", "npu_fusion_attention"), ("rms-norm", "npu_rms_norm")):
        assert tunings()[name].versions == versions(f"torch_npu.{target}")
    for name, target in (("rotary", "npu_rotary_mul"), ("swiglu", "npu_swiglu")):
        assert tunings()[name].versions == versions(f"torch_npu.{target}")
    for schema in schemas("torch_npu.npu_fusion_attention"):
        names = re.findall(r"(\w+)(?==|,|\))", schema.partition(" -> ")[0])
        wanted = "query key value head_num input_layout atten_mask scale keep_prob pre_tockens next_tockens".split()
        assert {*wanted, "inner_precise", "actual_seq_qlen", "actual_seq_kvlen", "sparse_mode"} <= set(names)


@pytest.mark.parametrize("use", ["attend = flash_attn_func", "out = run(flash_attn_func, q, k, v)"])
def test_a_function_of_flash_attn_under_another_name_is_said(use: str) -> None:
    source = f"import torch\nfrom flash_attn import flash_attn_func\nfrom project import q, k, v, run\n{use}\n"
    result = check_untuned("fusion-attention", source, open_codes=["NPU510", "NPU767"])
    assert [item.span.line for item in result.findings if item.code == "NPU767"] == [4]
