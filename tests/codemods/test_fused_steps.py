"""Scalers of torch_npu, of accelerate and of transformers beside fused optimizers: reported, with what to do."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate

HEAD = "import functools, torch, torch_npu\n"
FUSED = "optimizer = torch.optim.AdamW(model.parameters(), fused=True)\n"


def told(source: str, **more: object) -> list[str]:
    """What is said of scalers: level and message."""
    found = migrate(source, **more).findings  # type: ignore[arg-type]
    return [f"{each.level.value}: {each.message}" for each in found if each.code == "NPU160"]


@pytest.mark.parametrize(
    "scaler",
    [
        "make = functools.partial(torch.cuda.amp.GradScaler, enabled=on)",
        "class Scaler(torch.cuda.amp.GradScaler): ...",
        "kinds = {'amp': torch.cuda.amp.GradScaler}",
        "scaler = torch.npu.amp.GradScaler()",
        "scaler = torch_npu.npu.amp.GradScaler()",
        "from torch.npu.amp import GradScaler; scaler = GradScaler()",
    ],
)
def test_a_scaler_that_stays_with_torch_npu(scaler: str) -> None:
    wanted = "manual: torch.npu.amp.GradScaler cannot step AdamW(fused=True) in line 2: TypeError at the first step"
    assert told(HEAD + FUSED + scaler + "\n") == [wanted]
    assert told(HEAD + FUSED.replace("True", "False") + scaler + "\n") == []
    assert told(HEAD + FUSED.replace(", fused=True", "") + scaler + "\n") == []
    assert told(HEAD + FUSED + scaler + "\n", torch_version="2.2") == []


@pytest.mark.parametrize(
    "fused",
    [
        "torch.optim.Adam(p, lr=1e-3, fused=use_fused)",
        "torch.optim.SGD(p, 0.1, momentum=0.9, fused=True)",
        "extra = dict(fused=True) if on else dict()\noptimizer = torch.optim.AdamW(p, **extra)",
        'extra = {"fused": on}\noptimizer = torch.optim.AdamW(p, **extra)',
    ],
)
def test_optimizers_that_may_be_fused(fused: str) -> None:
    assert len(told(f"{HEAD}{fused}\nscaler = torch.npu.amp.GradScaler()\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "scaler = torch.cuda.amp.GradScaler()",
        'scaler = torch.amp.GradScaler("npu")',
        "isinstance(scaler, torch.npu.amp.GradScaler)",
        "def f(scaler: torch.npu.amp.GradScaler): ...",
    ],
)
def test_scalers_that_do_not_raise(line: str) -> None:
    assert told(f"{HEAD}{FUSED}{line}\n") == []


def test_something_else_that_is_fused() -> None:
    assert told(f"{HEAD}layer = Attention(fused=True)\nscaler = torch.npu.amp.GradScaler()\n") == []


def test_the_optimizer_stands_in_another_file() -> None:
    other = {"optim.py": f"import torch\n{FUSED}"}
    source = "import torch\nimport optim\nmake = torch.cuda.amp.GradScaler\noptim.optimizer.zero_grad()\n"
    assert "AdamW(fused=True) in optim.py:2" in told(source, files=other, tune=(("fused-optimizer", ""),))[0]


TRANSFORMERS = "from transformers import Seq2SeqTrainingArguments, TrainingArguments\nimport trl\n"
NAME = "torch.npu.amp.GradScaler, which TrainingArguments(fp16=...) takes, cannot step adamw_torch_fused"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('TrainingArguments("out", fp16=True)', f"manual: {NAME}: TypeError at the first step"),
        ('TrainingArguments("out", fp16=a.fp16)', f"info: {NAME}: TypeError at the first step, where fp16 is on"),
        (
            'TrainingArguments("out", fp16=True, optim="adamw_torch_fused", deepspeed=None)',
            f"manual: {NAME}: TypeError at the first step",
        ),
        (
            'TrainingArguments("out", fp16=True, optim=OptimizerNames.ADAMW_TORCH_FUSED)',
            f"manual: {NAME}: TypeError at the first step",
        ),
        (
            "trl.SFTConfig(fp16=True)",
            f"manual: {NAME.replace('TrainingArguments', 'SFTConfig')}: TypeError at the first step",
        ),
    ],
)
def test_float16_of_transformers(call: str, said: str) -> None:
    found = [each for each in migrate(f"{TRANSFORMERS}{call}\n").findings if each.code == "NPU160"]
    assert [f"{each.level.value}: {each.message}" for each in found] == [said]
    assert 'optim="adamw_torch"' in found[0].help


@pytest.mark.parametrize(
    "call",
    [
        "TrainingArguments('out')",
        "TrainingArguments('out', fp16=False)",
        "TrainingArguments('out', bf16=True)",
        "TrainingArguments('out', fp16=True, optim='adamw_torch')",
        "TrainingArguments('out', fp16=True, optim='adafactor')",
        "TrainingArguments('out', fp16=True, optim=args.optim)",
        "TrainingArguments('out', fp16=True, **rest)",
        "TrainingArguments('out', fp16=True, deepspeed='zero2.json')",
        "own.TrainingArguments('out', fp16=True)",
        "trl.load(fp16=True)",
    ],
)
def test_trainers_that_step_something_else(call: str) -> None:
    check_noop(f"{TRANSFORMERS}import own\n{call}\n")


def test_the_default_is_fused_in_new_versions_alone() -> None:
    source = f"{TRANSFORMERS}TrainingArguments('out', fp16=True)\n"
    assert told(source, torch_version="2.7") == []
    assert told(source, pins=(("transformers", "<4.50"),)) == []
    assert len(told(source, pins=(("transformers", ">=4.40"),))) == 1
    asked = source.replace("fp16=True", "fp16=True, optim='adamw_torch_fused'")
    assert len(told(asked, torch_version="2.7", pins=(("transformers", "<4.50"),))) == 1


def test_float16_of_accelerate() -> None:
    head = f"import torch\nfrom accelerate import Accelerator\n{FUSED}"
    wanted = (
        "manual: the scaler of accelerate is torch.npu.amp.GradScaler on an NPU, which cannot step AdamW(fused=True) "
        "in line 3: TypeError at the first step"
    )
    assert told(f'{head}a = Accelerator(mixed_precision="fp16")\n') == [wanted]
    for call in ('Accelerator(mixed_precision="bf16")', "Accelerator()", "Accelerator(mixed_precision=args.precision)"):
        assert told(f"{head}a = {call}\n") == []
    assert told('from accelerate import Accelerator\na = Accelerator(mixed_precision="fp16")\n') == []
