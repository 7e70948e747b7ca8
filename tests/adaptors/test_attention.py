"""The adaptor of flash-attn and xformers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered
from tests.distributed.running import in_process as transplt
from tests.harness import clean, migrate
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts


def line(before: str, after: str, rest: str, adapt: str = "attention") -> None:
    """An import becomes another, and what stands below it stays."""
    check_adapted(adapt, f"import torch\n{before}\n{rest}", f"import torch\n{after}\n{rest}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from flash_attn import flash_attn_func", "from npu_port import flash_attn_func"),
        ("from flash_attn import flash_attn_func as fa", "from npu_port import flash_attn_func as fa"),
        (
            "from flash_attn import flash_attn_func, flash_attn_varlen_func",
            "from npu_port import flash_attn_func, flash_attn_varlen_func",
        ),
        (
            "from flash_attn.flash_attn_interface import flash_attn_unpadded_qkvpacked_func",
            "from npu_port import flash_attn_unpadded_qkvpacked_func",
        ),
        ("from flash_attn.bert_padding import pad_input", "from npu_port import pad_input"),
        ("from flash_attn.bert_padding import rearrange", "from einops import rearrange"),
        (
            "from flash_attn.bert_padding import index_first_axis, rearrange as r",
            "from npu_port import index_first_axis\nfrom einops import rearrange as r",
        ),
        ("from flash_attn.layers.rotary import apply_rotary_emb", "from npu_port import apply_rotary_emb"),
        (
            "from flash_attn.layers.rotary import apply_rotary_emb_func",
            "from npu_port import apply_rotary_emb as apply_rotary_emb_func",
        ),
        ("from flash_attn.ops.rms_norm import RMSNorm, rms_norm", "from npu_port import RMSNorm, rms_norm"),
        ("from flash_attn.flash_attention import FlashAttention", "from npu_port import FlashAttention"),
        ("from flash_attn.modules.mha import FlashSelfAttention as F", "from npu_port import FlashSelfAttention as F"),
        ("from flash_attn import __version__ as version", 'version = "2.8.4"'),
        ("from xformers.ops import memory_efficient_attention, unbind",
         "from npu_port import memory_efficient_attention\nfrom torch import unbind"),
        ("from xformers.ops import SwiGLU", "from npu_port import SwiGLU"),
        ("from xformers.ops.fmha import BlockDiagonalMask", "from npu_port import BlockDiagonalMask"),
        ("from xformers.ops import AttentionMask", "from npu_port import AttentionBias as AttentionMask"),
    ],
)  # fmt: skip
def test_imports(before: str, after: str) -> None:
    line(before, after, "\nprint(1)\n")


def test_an_import_that_the_program_can_do_without_succeeds_then() -> None:
    check_adapted(
        "attention",
        """
        try:
            from flash_attn import flash_attn_func
            HAS_FLASH = True
        except ImportError:
            flash_attn_func = None
            HAS_FLASH = False


        def attend(q, k, v):
            return flash_attn_func(q, k, v) if HAS_FLASH else None
        """,
        """
        try:
            from npu_port import flash_attn_func
            HAS_FLASH = True
        except ImportError:
            flash_attn_func = None
            HAS_FLASH = False


        def attend(q, k, v):
            return flash_attn_func(q, k, v) if HAS_FLASH else None
        """,
    )


def test_modules_of_which_the_file_reads_what_is_known() -> None:
    check_adapted(
        "attention",
        """
        import torch
        import flash_attn
        from flash_attn import bert_padding, flash_attn_interface as fa
        from xformers.ops import fmha, memory_efficient_attention


        def attend(q, k, v, lengths):
            mask = fmha.BlockDiagonalMask.from_seqlens(lengths)
            print(flash_attn.__version__, bert_padding.pad_input(q, lengths, 1, 2))
            return fa.flash_attn_func(q, k, v) + memory_efficient_attention(q, k, v, mask)
        """,
        """
        import torch

        import npu_port
        from npu_port import memory_efficient_attention


        def attend(q, k, v, lengths):
            mask = npu_port.BlockDiagonalMask.from_seqlens(lengths)
            print("2.8.4", npu_port.pad_input(q, lengths, 1, 2))
            return npu_port.flash_attn_func(q, k, v) + memory_efficient_attention(q, k, v, mask)
        """,
    )


def test_a_flag_beside_an_import_of_a_module() -> None:
    check_adapted(
        "attention",
        """
        import torch

        try:
            import xformers
            import xformers.ops
            AVAILABLE = True
        except Exception:
            AVAILABLE = False


        def attend(q, k, v):
            if AVAILABLE:
                return xformers.ops.memory_efficient_attention(q, k, v, op=None)
            return torch.ops.aten.scaled_dot_product_attention(q, k, v)
        """,
        """
        import torch

        import npu_port

        try:
            AVAILABLE = True
        except Exception:
            AVAILABLE = False


        def attend(q, k, v):
            if AVAILABLE:
                return npu_port.memory_efficient_attention(q, k, v, op=None)
            return torch.ops.aten.scaled_dot_product_attention(q, k, v)
        """,
    )


def test_a_question_whether_a_module_is_there() -> None:
    check_adapted(
        "attention",
        """
        import torch

        try:
            import xformers.ops as xops
        except ImportError:
            xops = None


        def attend(q, k, v):
            if xops is not None:
                return xops.memory_efficient_attention(q, k, v)
            return q if xops is None else k
        """,
        """
        import torch

        import npu_port



        def attend(q, k, v):
            if True:
                return npu_port.memory_efficient_attention(q, k, v)
            return q if False else k
        """,
    )


def test_an_import_that_is_asked_for_goes_with_its_question() -> None:
    check_adapted(
        "attention",
        """
        import torch
        import importlib.util

        HAS = importlib.util.find_spec("flash_attn") is not None
        if HAS:
            from flash_attn.bert_padding import unpad_input
        if importlib.util.find_spec("flash_attn") is None:
            print("slow")


        def rows(x, mask):
            return unpad_input(x, mask)[0]
        """,
        """
        import torch

        HAS = True
        if HAS:
            from npu_port import unpad_input
        if False:
            print("slow")


        def rows(x, mask):
            return unpad_input(x, mask)[0]
        """,
    )


@pytest.mark.parametrize(
    ("use", "name"),
    [
        ("a, b, c, d = unpad_input(x, m)", "unpad_input_of_four as unpad_input"),
        ("a, b, c, d, e = unpad_input(x, m)", "unpad_input"),
        ("a, b, *rest = unpad_input(x, m)", "unpad_input"),
        ("a = unpad_input(x, m)[2]", "unpad_input"),
        ("a, b, c, d = unpad_input(x, m)[:4]", "unpad_input"),
    ],
)
def test_the_form_of_unpad_input_that_a_file_expects(use: str, name: str) -> None:
    rest = f"\n\ndef f(x, m):\n    {use}\n"
    line("from flash_attn.bert_padding import unpad_input", f"from npu_port import {name}", rest)


@pytest.mark.parametrize(
    "use",
    ["return unpad_input(x, m)", "a, b, c = unpad_input(x, m)", "given = unpad_input",
     "a, b, c, d = unpad_input(x, m)\n    a, b, c, d, e = unpad_input(x, m)"],
)  # fmt: skip
def test_a_form_that_cannot_be_read_is_left_with_a_remark(use: str) -> None:
    source = f"import torch\nfrom flash_attn.bert_padding import unpad_input\n\n\ndef f(x, m):\n    {use}\n"
    check_not_adapted("attention", source, open_codes=["NPU510", "NPU872"])


def test_the_package_for_ascend_is_the_other_choice() -> None:
    line(
        "from flash_attn import flash_attn_func, flash_attn_with_kvcache as cached",
        "from flash_attn_npu import flash_attn_func, flash_attn_with_kvcache as cached",
        "\nprint(cached)\n",
        "attention=package",
    )
    line(
        "from flash_attn.flash_attn_interface import flash_attn_unpadded_func, flash_attn_func",
        "from npu_port import flash_attn_unpadded_func\nfrom flash_attn_npu import flash_attn_func",
        "\nprint(flash_attn_func)\n",
        "attention=package",
    )
    check_adapted(
        "attention=package",
        "import torch\nimport flash_attn\n\nprint(flash_attn.flash_attn_func)\n",
        "import torch\nimport flash_attn_npu\n\nprint(flash_attn_npu.flash_attn_func)\n",
    )


def test_in_one_file_the_functions_stand_above() -> None:
    head = "import torch\nfrom flash_attn.ops.rms_norm import rms_norm\n"
    source = f"{head}\n\ndef norm(x, w):\n    return rms_norm(x, w, 1)\n"
    result = migrate(source, adapt=(("attention", ""),), helper_file=False)
    text = result.data.decode()
    assert "import rms_norm" not in text and "npu_port" not in text
    assert text.index("def rms_norm_(") < text.index("def norm(") and "return rms_norm_(x, w, 1)" in text


def test_in_one_file_a_try_with_two_spellings_goes() -> None:
    source = """
    import torch

    try:
        from flash_attn.flash_attn_interface import flash_attn_unpadded_qkvpacked_func as fa
    except ImportError:
        from flash_attn.flash_attn_interface import flash_attn_varlen_qkvpacked_func as fa


    def attend(qkv, ends):
        return fa(qkv, ends, 9, 0.0, causal=True)
    """
    text = migrate(source, adapt=(("attention", ""),), helper_file=False).data.decode()
    assert "flash_attn_interface import" not in text and "except ImportError" not in text
    assert "return flash_attn_unpadded_qkvpacked_func(qkv, ends, 9, 0.0, causal=True)" in text


GATED = """
    import torch
    from flash_attn import flash_attn_func

    def attend(q, k, v):
        if q.device.type == "cuda":
            return flash_attn_func(q, k, v)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)
"""


def test_a_condition_before_what_is_taken_over_asks_for_the_npu() -> None:
    taken = GATED.replace("from flash_attn", "from npu_port")
    after = taken.replace("import torch\n", "import torch\n    import torch_npu  # noqa: F401\n", 1)
    check_adapted("attention", GATED, after.replace('"cuda"', '"npu"'))


def test_a_condition_before_what_needs_cuda_stays() -> None:
    source = GATED.replace("import torch\n", "import cupy\n    import torch\n", 1).replace(
        "flash_attn_func(q, k, v)", "cupy.asarray(q)"
    )
    check_adapted(
        "attention", source, source.replace("from flash_attn", "from npu_port"), open_codes={"NPU270", "NPU510"}
    )


def test_it_is_offered() -> None:
    assert offered("import torch\nfrom flash_attn import flash_attn_func\n") == [("NPU510", 2, "attention")]
    assert offered("import torch\nimport xformers.ops as x\n\nx.unbind(1, 2)\n") == [("NPU510", 2, "attention")]
    assert not offered("import torch\nfrom flash_attn.modules.mha import MHA\n")


@pytest.mark.parametrize(
    "source",
    [
        # Something is imported at the top that nothing takes the place of: the file stops there anyway.
        "from flash_attn import flash_attn_func\nfrom flash_attn.utils.benchmark import benchmark_all\n",
        "from flash_attn.modules.mha import MHA, FlashSelfAttention\n",
        "from flash_attn import *\n",
        "import flash_attn\n\nprint(flash_attn.flash_attn_func, flash_attn.models)\n",
        "import flash_attn\n\nprint(flash_attn)\n",
        "import xformers.ops\n\nprint(xformers.ops.fmha.attn_bias.PagedBlockDiagonalPaddedKeysMask)\n",
        "from xformers.components import build_attention\n",
        # Which corner a mask begins in is open.
        "from flash_attn.flash_attn_interface import flash_attn_unpadded_func, flash_attn_varlen_func\n",
        "import flash_attn  # transplt: ignore[NPU872]\n\nprint(flash_attn.flash_attn_func)\n",
    ],
)
def test_what_it_leaves(source: str) -> None:
    check_not_adapted("attention", f"import torch\n{source}", open_codes=["NPU510"])


@pytest.mark.parametrize(
    "source",
    [
        "from mine.flash_attn import flash_attn_func\n",
        "import importlib.util\n\nprint(importlib.util.find_spec('flash_attn') is not None)\n",
        "from transformers.utils import is_flash_attn_2_available\n\nprint(is_flash_attn_2_available())\n",
        "from mine import xformers\n\nprint(xformers.ops.unbind)\n",
    ],
)
def test_what_it_does_not_look_at(source: str) -> None:
    check_not_adapted("attention", f"import torch\n{source}")


# --- a project -------------------------------------------------------------------------------------------------------


def of_project(files: dict[str, str], path: str) -> str:
    settings = Settings(helper_file=True, adapt=(("attention", ""),))
    project = ProjectFacts.join(index_source(clean(text).encode(), name, settings) for name, text in files.items())
    return migrate_source(clean(files[path]).encode(), path, settings, project).data.decode()


PROBE = "import importlib.util\nimport torch\n\nHAS = importlib.util.find_spec('flash_attn') is not None\n"
USE = "import torch\nimport probe\n{}\n\ntorch.ones(1).cuda()\n"


def test_a_question_of_a_file_that_takes_nothing_of_it() -> None:
    for line, answer in (
        ("from flash_attn import flash_attn_func", "HAS = True"),
        ("from flash_attn import flash_attn_func, other", "HAS = importlib.util.find_spec('flash_attn') is not None"),
        ("import os", "HAS = importlib.util.find_spec('flash_attn') is not None"),
    ):
        assert answer in of_project({"probe.py": PROBE, "train.py": USE.format(line)}, "probe.py")


REQUIRED = {
    "requirements.txt": "torch==2.8.0\nflash-attn>=2.5 ; sys_platform == 'linux'\nxformers\nnumpy\n",
    "pyproject.toml": '[project.optional-dependencies]\nfast = ["flash-attn==2.5.8", "numpy"]\n',
}


@pytest.mark.parametrize(
    ("adapt", "source", "stays", "asked"),
    [
        ("attention", "from flash_attn import flash_attn_func\nimport xformers.ops as x\n\nx.unbind(1)\n", set(), ""),
        ("attention=package", "from flash_attn import flash_attn_func\n", {"xformers"}, "flash-attn-npu"),
        ("attention", "from flash_attn import flash_attn_func\nimport xformers.triton\n", {"xformers"}, ""),
        ("attention", "from flash_attn import flash_attn_func, other\n", {"flash-attn", "xformers"}, ""),
        (
            "attention",
            "from flash_attn import flash_attn_func\ntry:\n    from flash_attn import other\nexcept: HAS = False\n",
            {"xformers"},
            "",
        ),
        ("attention", "import os\n", {"flash-attn", "xformers"}, ""),
        ("timm", "from flash_attn import flash_attn_func\n", {"flash-attn", "xformers"}, ""),
    ],
)
def test_requirements_that_nothing_needs_any_more(
    tmp_path: Path, adapt: str, source: str, stays: set[str], asked: str
) -> None:
    (tmp_path / "in").mkdir()
    for name, text in {**REQUIRED, "train.py": f"import torch\n{source}\ntorch.ones(1).cuda()\n"}.items():
        (tmp_path / "in" / name).write_text(text)
    transplt("-i", "in", "-o", "out", "--adapt", adapt, cwd=tmp_path)
    (out,) = (tmp_path / "out").iterdir()
    for name in REQUIRED:
        text = (out / name).read_text()
        names = {each for each in ("flash-attn", "xformers") if re.search(rf"\b{each}(?!-)", text)}
        assert names == stays & ({"flash-attn"} if name == "pyproject.toml" else {"flash-attn", "xformers"}), text
        assert "numpy" in text and (not asked or asked in text)


def test_a_question_for_transformers_is_left() -> None:
    probe = f"{PROBE}KIND = 'flash_attention_2' if HAS else 'sdpa'\n"
    files = {"probe.py": probe, "train.py": USE.format("from flash_attn import flash_attn_func")}
    assert "find_spec('flash_attn') is not None" in of_project(files, "probe.py")


def test_a_package_of_the_project_itself_is_left() -> None:
    files = {
        "flash_attn/__init__.py": "import torch\n\n\ndef flash_attn_func(q, k, v):\n    return q.cuda()\n",
        "train.py": "import torch\nfrom flash_attn import flash_attn_func\n\nflash_attn_func(torch.ones(1).cuda())\n",
    }
    assert "from flash_attn import flash_attn_func" in of_project(files, "train.py")


def test_the_tuning_leaves_calls_that_the_adaptor_has() -> None:
    head = "import torch\nfrom flash_attn import flash_attn_func\n"
    source = f"{head}\n\ndef f(q):\n    return flash_attn_func(q, q, q)\n"
    given = {"helper_file": True, "tune": (("fusion-attention", ""),)}
    assert b"npu_fusion_attention" in migrate(source, **given).data
    both = migrate(source, adapt=(("attention", ""),), **given).data
    assert b"from npu_port import flash_attn_func" in both and b"npu_fusion_attention" not in both
