"""What options add in the portable style: many cards, adaptors, tunings and mixed precision, where CUDA does as before.

What would change on CUDA is refused one by one, each with its reason and its place.
"""

from __future__ import annotations

import pytest

from tests.harness import clean
from tests.test_portable import check, ported
from transplt.base.finding import FileResult
from transplt.base.npus_alone import FOR_NPUS_ALONE
from transplt.fixers.adaptors.table import adaptors, parse_adaptors
from transplt.fixers.tunings.table import parse_tunings, tunings

_HEAD = "import torch\nfrom project import data, net\nfrom torch.utils.data import DataLoader\n"
_LOOP = """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    x, y = x.cuda(), y.cuda()
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""


def adapt(names: str) -> dict[str, object]:
    return {"adapt": parse_adaptors(names, "2.8"), "torch_version": "2.8"}


def tune(names: str) -> dict[str, object]:
    return {"tune": parse_tunings(names, "2.8"), "torch_version": "2.8"}


def said(result: FileResult, code: str) -> list[str]:
    return [each.message for each in result.findings if each.code == code and not each.applied]


# --- many cards ------------------------------------------------------------------------------------------------------

MANY = {"entry": "train.py"}


_LOADED = "loader = DataLoader(data, batch_size=8)\nmodel = net().cuda()\n"
_SHARED = "start()\n\nloader = DataLoader(data, batch_size=8)\nloader = shard(loader)\n"
_MOVED = """\
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
_WRAPPED = """\
model = net().to(DEVICE_TYPE)
model = wrap(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
own_draws()
for x, y in loader:
    x, y = x.to(DEVICE_TYPE), y.to(DEVICE_TYPE)
"""


def test_a_flat_script_on_many_cards() -> None:
    """The functions come from the module that chooses the accelerator, and no line is for one of both alone."""
    before = f'n = 1\n{_LOADED}{_LOOP}torch.save(model.state_dict(), "m.pt")'
    after = f'{_SHARED}{_WRAPPED}{_MOVED}if is_first():\n    torch.save(model.module.state_dict(), "m.pt")'
    check(before, f"n = 1\n\n{after}", _HEAD, **MANY)


def test_a_question_in_front_of_what_was_data_parallel_is_the_accelerators() -> None:
    asked = "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
    loaded = "loader = DataLoader(data, batch_size=8)\nmodel = net().to(device)\n"
    many = "if device == 'cuda':\n    model = torch.nn.DataParallel(model)\n"
    loop = _LOOP.replace("x.cuda(), y.cuda()", "x.to(device), y.to(device)")
    out = ported(f"{_HEAD}{asked}{loaded}{many}{loop}", **MANY).data.decode()
    assert "if device in ('cuda', 'npu'):\n    model = wrap(model)\n" in out
    out = ported(f"{_HEAD}{asked}{loaded}{many}{loop}").data.decode()
    assert many in out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("d = torch.device('cuda:0')", "d = torch.device(DEVICE_TYPE)"),
        ("d = torch.device('cuda', gpu)", "d = torch.device(DEVICE_TYPE)"),
        ("d = torch.device(f'cuda:{gpu}')", "d = torch.device(DEVICE_TYPE)"),
        ("d = 'cuda:%d' % gpu", "d = DEVICE_TYPE"),
        ("d = net().cuda(gpu)", "d = net().to(DEVICE_TYPE)"),
        ("with torch.cuda.device(gpu):\n    f()", "with torch.cuda.device(device_module.current_device()):\n    f()"),
        ("d = torch.device('cpu')", "d = torch.device('cpu')"),
        ("d = net().cpu()", "d = net().cpu()"),
    ],
)
def test_a_card_by_its_number_is_that_of_the_rank(before: str, after: str) -> None:
    head = f"{_HEAD}gpu = 0\n{_LOADED}"
    out = ported(f"{head}{before}\n{_LOOP}", **MANY).data.decode()
    after = after.replace("with torch.cuda.device", "with device_module.device")
    assert after in out and "npu" not in out


@pytest.mark.parametrize(
    "body",
    [
        "for x in data:\n    print(x)\n",
        # A step under a condition that may differ between ranks.
        f"{_LOADED}{_LOOP}    if torch.isnan(loss):\n        break\n    loss.backward()\n    optimizer.step()\n",
    ],
)
def test_what_is_not_made_distributed_is_ported_for_one_card(body: str) -> None:
    result = ported(_HEAD + body, **MANY)
    assert result.data == ported(_HEAD + body).data
    assert said(result, "NPU332")


def test_a_program_that_is_distributed_already_is_only_ported() -> None:
    before = "torch.distributed.init_process_group('nccl')\nmodel = net().cuda()\n"
    after = "torch.distributed.init_process_group(DIST_BACKEND)\nmodel = net().to(DEVICE_TYPE)\n"
    check(before, after, _HEAD, **MANY)


# --- adaptors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from flash_attn import flash_attn_func as fa\nfa(q, k, v)",
            """
            if DEVICE_TYPE == "npu":
                from device import flash_attn_func as fa
            else:
                from flash_attn import flash_attn_func as fa
            fa(q, k, v)
            """,
        ),
        (
            """
            try:
                from flash_attn.bert_padding import (
                    pad_input,  # back
                    index_first_axis,
                )
            except ImportError:
                pad_input = None
            """,
            """
            try:
                if DEVICE_TYPE == "npu":
                    from device import pad_input, index_first_axis
                else:
                    from flash_attn.bert_padding import (
                        pad_input,  # back
                        index_first_axis,
                    )
            except ImportError:
                pad_input = None
            """,
        ),
        (
            "import importlib.util\nfrom flash_attn import flash_attn_func\n"
            "has = importlib.util.find_spec('flash_attn') is not None\n"
            "no = importlib.util.find_spec('flash_attn') is None",
            """
            import importlib.util
            if DEVICE_TYPE == "npu":
                from device import flash_attn_func
            else:
                from flash_attn import flash_attn_func
            has = (DEVICE_TYPE == "npu" or importlib.util.find_spec('flash_attn') is not None)
            no = (DEVICE_TYPE != "npu" and importlib.util.find_spec('flash_attn') is None)
            """,
        ),
        (
            "from timm.utils import NativeScaler, accuracy\ns = NativeScaler()",
            """
            if DEVICE_TYPE == "npu":
                from timm.utils import accuracy
                from device import NativeScaler
            else:
                from timm.utils import NativeScaler, accuracy
            s = NativeScaler()
            """,
        ),
        (
            "import timm.utils\ns = timm.utils.NativeScaler()",
            'import timm.utils\ns = (NativeScaler if DEVICE_TYPE == "npu" else timm.utils.NativeScaler)()',
        ),
        # Functions that do on CUDA what they are given.
        (
            "from timm.data import create_loader\nl = create_loader(d, 224, 8)",
            "from timm.data import create_loader\nl = timm_loader_on_npu(create_loader, d, 224, 8)",
        ),
        (
            "import lightning as L\nt = L.Trainer(accelerator='gpu')",
            "import lightning as L\nt = lightning_on_npu(L.Trainer, accelerator='gpu')",
        ),
        (
            "x = torch.zeros(3, dtype=torch.float64, device='cuda')\ny = x.erfinv()",
            "x = torch.zeros(3, dtype=torch.float64, device=DEVICE_TYPE)\ny = on_cpu(torch.Tensor.erfinv, x)",
        ),
    ],
)
def test_on_cuda_the_package_is_used(before: str, after: str) -> None:
    before, after = (f"{clean(each).rstrip()}\n" for each in (before, after))
    check(before, after, **adapt("attention,timm,lightning,float64"))


_INNER = """
from flash_attn import flash_attn_func

def attend(q, k, v, fast):
    {gate}
        from flash_attn import flash_attn_func as f
        return f(q, k, v)
    return flash_attn_func(q, k, v)
"""


@pytest.mark.parametrize(
    ("gate", "stays"),
    [
        ('if q.device.type == "cuda":', True),
        ("if fast and q.is_cuda and k is v:", True),
        ("if fast:", False),
        ('if fast or q.device.type == "cuda":', False),
        ('if q.device.type != "cuda":', False),
        ('if q.is_cuda:\n        pass\n    else:', False),
    ],
)
def test_behind_a_question_for_cuda_no_branch_for_npus_is_written(gate: str, stays: bool) -> None:
    text = ported(_INNER.format(gate=gate), **adapt("attention")).data.decode()
    assert text.count('if DEVICE_TYPE == "npu":') == (1 if stays else 2), text


@pytest.mark.parametrize(
    "source",
    [
        # One name for the package and for what takes its place.
        "import flash_attn\nflash_attn.flash_attn_func(q, k, v)",
        "import flash_attn as fa\nfa.flash_attn_func(q, k, v)",
        # No place for a branch.
        "x = 1; from flash_attn import flash_attn_func\nflash_attn_func(q, k, v)",
        # Something that is not here.
        "from flash_attn import flash_attn_func, other\nflash_attn_func(q, k, v)",
    ],
)
def test_a_package_that_stays(source: str) -> None:
    result = ported(f"import torch\n{source}\n", **adapt("attention"))
    assert result.data.decode() == f"import torch\n{source}\n"
    assert said(result, "NPU510")


_TRIED = """
    import torch.nn.functional as F
    def attend(q, k, v):
        if asked:
            try:
                from flash_attn import flash_attn_func
                return flash_attn_func(q, k, v)
            except (ImportError, RuntimeError):
                pass
        return F.scaled_dot_product_attention(q, k, v)
    """
_HANDLED = "return F.scaled_dot_product_attention(q, v, k)"


@pytest.mark.parametrize(
    ("old", "new", "stays"),
    [
        ("pass", "pass", True),
        ("pass", _HANDLED, True),
        # Nobody gets to torch's: the handler leaves; or something else stands there.
        ("pass", "return None", False),
        ("F.scaled_dot_product_attention(q, k, v)", "other(q, k, v)", False),
        # What is called outside of it has to be there.
        ("    return flash_attn_func(q, k, v)\n", "    pass\n", False),
        ("return F", "return flash_attn_func(q, k, v) + F", False),
        # It stops the program.
        ("(ImportError, RuntimeError)", "RuntimeError", False),
    ],
)
def test_where_torchs_attention_follows_nothing_is_written(old: str, new: str, stays: bool) -> None:
    """On an NPU flash-attn is not there, and the program goes on with torch's own."""
    source = clean(_TRIED).replace(old, new)
    result = ported(source, **adapt("attention"))
    assert ("from device import flash_attn_func" not in result.data.decode()) is stays
    assert not stays or (result.data.decode() == source and not said(result, "NPU872"))


@pytest.mark.parametrize(
    ("name", "source", "code"),
    [
        ("rope", "x = torch.zeros(3, dtype=torch.float64, device=d)\ny = torch.polar(x, x)", "NPU137"),
        ("ray", "import ray\n@ray.remote(num_gpus=1)\ndef f():\n    pass", "NPU147"),
        (
            "frameworks",
            "from transformers import TrainingArguments\na = TrainingArguments('x', optim='adamw_apex_fused')",
            "NPU144",
        ),
    ],
)
def test_an_adaptor_that_would_change_cuda_says_why_at_the_finding(name: str, source: str, code: str) -> None:
    source = f"import torch\nd = torch.device('cuda')\n{source}\n"
    result = ported(source, **adapt(name))
    assert result.data == ported(source).data
    assert [each for each in said(result, code) if each.endswith(FOR_NPUS_ALONE[f"adapt:{name}"])]
    assert not any("for both" in each for each in said(ported(source), code))


# --- tunings ---------------------------------------------------------------------------------------------------------

_EPOCHS = "for epoch in range(3):\n" + "".join(f"    {line}\n" for line in _LOOP.splitlines()[1:])
_TUNED = f"{_HEAD}loader = DataLoader(data, num_workers=2)\nmodel = net().cuda()\n{_LOOP.splitlines()[0]}\n{_EPOCHS}"


@pytest.mark.parametrize(
    ("names", "line"),
    [
        ("compile-mode", '\nif DEVICE_TYPE == "npu":\n    torch.npu.set_compile_mode(jit_compile=False)\n'),
        ("internal-format", '\nif DEVICE_TYPE == "npu":\n    torch.npu.config.allow_internal_format = False\n'),
        ("data-loader", "DataLoader(data, num_workers=2, pin_memory=True)\n"),
        ("data-loader,non-blocking", "x.to(DEVICE_TYPE, non_blocking=True), y.to(DEVICE_TYPE, non_blocking=True)\n"),
    ],
)
def test_a_tuning_that_is_the_same_on_cuda_or_asks_for_the_npu(names: str, line: str) -> None:
    result = ported(_TUNED, **tune(names))
    assert line in result.data.decode()
    assert ported(result.data.decode(), **tune(names)).data == result.data


def test_workers_that_stay_would_draw_otherwise_on_cuda() -> None:
    result = ported(_TUNED, **tune("data-loader"))
    assert "persistent_workers is not written for both" in said(result, "NPU756")
    assert b"persistent_workers" not in result.data


@pytest.mark.parametrize(
    ("name", "source", "code"),
    [
        ("fused-optimizer", _TUNED, "NPU750"),
        ("hf32", f"{_TUNED}torch.backends.cuda.matmul.allow_tf32 = True\n", "NPU754"),
        ("drop-last", _TUNED.replace("num_workers=2", "batch_size=4"), "NPU757"),
        ("max-steps=7", _TUNED, "NPU782"),
        ("step-time", _TUNED, "NPU780"),
    ],
)
def test_a_tuning_that_would_change_cuda_says_why_at_its_place(name: str, source: str, code: str) -> None:
    result = ported(source, **tune(name))
    assert result.data == ported(source).data
    reason = FOR_NPUS_ALONE[f"tune:{name.partition('=')[0]}"]
    assert [each for each in said(result, code) if each.startswith("not written for both") and each.endswith(reason)]
    assert not said(ported(source), code)


def test_every_theme_that_is_refused_is_one() -> None:
    known = {f"tune:{name}" for name in tunings()} | {f"adapt:{name}" for name in adaptors()}
    assert {*FOR_NPUS_ALONE} - known == {"amp:apex"}


# --- mixed precision -------------------------------------------------------------------------------------------------

_UNDER_AUTOCAST = """\
model = net().to(DEVICE_TYPE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{scaler}for x, y in loader:
    x, y = x.to(DEVICE_TYPE), y.to(DEVICE_TYPE)
    optimizer.zero_grad()
    with torch.autocast(DEVICE_TYPE, dtype=torch.{dtype}, enabled=DEVICE_TYPE == "npu"):
        loss = torch.nn.functional.mse_loss(model(x), y)
"""
_SCALED = "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n"


@pytest.mark.parametrize(
    ("more", "scaler", "dtype", "end"),
    [
        ({}, 'scaler = grad_scaler(enabled=DEVICE_TYPE == "npu")\n', "float16", _SCALED),
        (
            {"torch_version": "2.8", "oldest_torch": "2.4"},
            'scaler = torch.amp.GradScaler(DEVICE_TYPE, enabled=DEVICE_TYPE == "npu")\n', "float16", _SCALED,
        ),
        ({"amp_dtype": "bfloat16"}, "", "bfloat16", "    loss.backward()\n    optimizer.step()\n"),
    ],
)  # fmt: skip
def test_mixed_precision_is_off_on_cuda(more: dict[str, object], scaler: str, dtype: str, end: str) -> None:
    after = f"loader = DataLoader(data, batch_size=8)\n{_UNDER_AUTOCAST.format(scaler=scaler, dtype=dtype)}{end}"
    check(_LOADED + _LOOP, after, _HEAD, amp="native", **more)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"loss_scale": "64"}, "no mixed precision here: only torch_npu has a scale that never changes"),
        ({"fused": True}, "no mixed precision here: AdamW may be fused, and its fused step on an NPU does not work"),
    ],
)
def test_mixed_precision_that_cuda_would_notice(more: dict[str, object], why: str) -> None:
    more = {**more}
    fused = "AdamW(model.parameters(), fused=True, lr=0.1)" if more.pop("fused", False) else ""
    loop = _LOOP.replace("SGD(model.parameters(), lr=0.1)", fused) if fused else _LOOP
    result = ported(_HEAD + _LOADED + loop, amp="native", **more)
    assert result.data == ported(_HEAD + _LOADED + loop).data
    assert [each for each in said(result, "NPU743") if each.startswith(why)]


def test_checkpoints_stay_those_of_cuda() -> None:
    saving = f"{_LOADED}{_LOOP}torch.save({{'optimizer': optimizer.state_dict()}}, 'o')\n"
    result = ported(_HEAD + saving, amp="native")
    assert said(result, "NPU744") == ["checkpoints do not keep the scaler's state"]
    assert b"torch.save({'optimizer': optimizer.state_dict()}, 'o')\n" in result.data


# --- gates -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "def f(names):\n    if torch.cuda.is_available():\n        names.append('cuda')",
        "def f():\n    names = ['cpu']\n    if torch.cuda.is_available():\n        names += ['cuda']\n    return names",
        "names = register('cuda') if torch.cuda.is_available() else None",
    ],
)
def test_a_gate_stays_with_the_string_that_it_guards(source: str) -> None:
    result = ported(f"import torch\n{source}\n")
    assert result.data.decode() == f"import torch\n{source}\n"
    assert said(result, "NPU203")


_RESUME = """\
import torch
if {}torch.cuda.is_available():
    {}
else:
    {}
"""


@pytest.mark.parametrize("negated", [False, True])
def test_a_gate_stays_with_a_word_of_cuda_that_it_guards(negated: bool) -> None:
    """On an NPU the other side goes on as it did; with as much again that is written, only what is left would stop."""
    left, other = "s = restore(p, lambda s, l: s.cuda(0))", "s = restore(p)"
    for more, stays in (("", True), ("; torch.cuda.synchronize()", True), ("; torch.cuda.synchronize()" * 2, False)):
        sides = [other, left + more] if negated else [left + more, other]
        text = ported(_RESUME.format("not " * negated, *sides)).data.decode()
        assert ("torch.cuda.is_available()" in text) == stays


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "if torch.cuda.is_available():\n    torch.cuda.synchronize()\n    register('cuda')",
            "if device_module.is_available():\n    device_module.synchronize()\n    register('cuda')",
        ),
        (
            "if torch.cuda.is_available():\n    pass\nelse:\n    register('cuda')",
            "if device_module.is_available():\n    pass\nelse:\n    register('cuda')",
        ),
    ],
)
def test_a_gate_moves_with_what_is_written_behind_it(before: str, after: str) -> None:
    check(before, after)
