"""Programs with mixed precision are migrated and no more; who counts as one program is decided by imports."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate
from transplt.base.finding import FileResult, Level

TRAIN = """\
import torch
from net import build

model = build().npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(4, 8, 8).npu():
    loss = model(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NET = "import torch\n\n\ndef build():\n    return torch.nn.Linear(8, 8)\n"


def said(result: FileResult) -> list[str]:
    return [f"{item.message} | {item.help}" for item in result.findings if item.code == "NPU742"]


@pytest.mark.parametrize(
    ("head", "line", "what", "where"),
    [
        ("import torch", "torch.autocast('npu')", "torch's autocast", ""),
        ("import torch", "torch.npu.amp.autocast()", "torch's autocast", ""),
        ("from torch.amp import GradScaler", "GradScaler('npu')", "torch's GradScaler", ""),
        ("import torch_npu", "torch_npu.npu.amp.GradScaler()", "torch_npu's GradScaler", ""),
        ("from apex import amp", "amp.initialize(1, 2)", "apex.amp", "opt_level"),
        ("import deepspeed", "deepspeed.initialize()", "DeepSpeed", '"fp16": {"enabled": true}'),
        ("from accelerate import Accelerator", "Accelerator()", "accelerate", "mixed_precision of Accelerator"),
        ("import pytorch_lightning as pl", "pl.Trainer()", "Lightning", 'precision="16-mixed"'),
        ("from lightning.pytorch import Trainer", "Trainer()", "Lightning", 'precision="16-mixed"'),
        ("from lightning.fabric import Fabric", "Fabric()", "Lightning Fabric", 'precision="16-mixed"'),
        ("from transformers import TrainingArguments", "TrainingArguments()", "the Trainer of transformers", "fp16 or"),
        ("from transformers import Seq2SeqTrainer", "Seq2SeqTrainer()", "the Trainer of transformers", "fp16 or bf16"),
        ("from trl import SFTTrainer", "SFTTrainer()", "a Trainer of trl", "fp16 or bf16"),
        ("from mmengine.runner import Runner", "Runner()", "mmengine", 'type="AmpOptimWrapper"'),
        ("from colossalai.booster import Booster", "Booster()", "ColossalAI", "mixed_precision of Booster"),
        ("from composer import Trainer", "Trainer()", "Composer", "precision of Trainer"),
        ("import torch", "torch.zeros(2).half()", "`.half()`", "the casts in the code"),
        ("import torch", "torch.zeros(2).to(torch.bfloat16)", "`.to()`", "the casts in the code"),
        ("import torch", "torch.set_default_dtype(torch.float16)", "torch.set_default_dtype", "the call of"),
    ],
)
def test_what_is_recognised(head: str, line: str, what: str, where: str) -> None:
    source = f"{head}\n\nthing = {line}\nloss = thing.run()\nloss.backward()\nthing.step()\n"
    result = migrate(source, amp="native")
    assert not result.changed
    (text,) = said(result)
    assert text.startswith(f"this program already has mixed precision ({what}): nothing is added | ")
    assert (where in text.partition(" | ")[2]) if where else text.endswith(" | ")
    assert all(item.level is Level.INFO for item in result.findings if item.code == "NPU742")


def test_a_lightning_module_is_recognised() -> None:
    source = textwrap.dedent("""\
        import torch
        from lightning.pytorch import LightningModule


        class Net(LightningModule):
            def training_step(self, batch, index):
                return self.layer(batch).mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.1)
        """)
    result = migrate(source, amp="native")
    assert not result.changed and "Lightning" in said(result)[0]


@pytest.mark.parametrize(
    "line",
    [
        "torch.autocast('npu', enabled=False)",
        "torch.set_default_dtype(torch.float32)",
        "torch.zeros(2).to(torch.float32)",
        "torch.zeros(2).half(1)",
    ],
)
def test_what_is_no_mixed_precision(line: str) -> None:
    result = migrate(TRAIN + f"\n{line}\n", files={"net.py": NET}, amp="native")
    assert said(result) == [] and b"GradScaler" in result.data


def test_a_file_that_is_imported_counts() -> None:
    net = "import torch\n\n\ndef build():\n    with torch.autocast('npu'):\n        return torch.nn.Linear(8, 8)\n"
    result = migrate(TRAIN, files={"net.py": net}, amp="native")
    assert not result.changed
    assert said(result)[0].startswith("this program already has mixed precision (torch's autocast in net.py)")


@pytest.mark.parametrize(
    ("statement", "counts"),
    [
        ("from package import (\n    other,\n    scaled,\n)", True),
        ("from package import \\\n    scaled", True),
        ("import os; import package.scaled", True),
        ('TEXT = """\nimport package.scaled\n"""', False),
    ],
)
def test_a_file_counts_where_it_is_imported(statement: str, counts: bool) -> None:
    files = {"package/scaled.py": "import torch\n\nscaler = torch.npu.amp.GradScaler()\n", "net.py": NET}
    result = migrate(f"{statement}\n{TRAIN}", files=files, amp="native")
    assert (not result.changed and "in package/scaled.py" in said(result)[0]) == counts
    assert (b"autocast" in result.data) != counts


def test_a_file_that_imports_counts() -> None:
    main = "import torch\nimport train\n\nscaler = torch.npu.amp.GradScaler()\n"
    result = migrate(TRAIN, files={"net.py": NET, "main.py": main}, amp="native")
    assert not result.changed and "in main.py" in said(result)[0]


def test_a_file_beside_does_not_count() -> None:
    """It imports what this file imports; the two have nothing else to do with each other."""
    other = "import torch\nfrom net import build\n\nscaler = torch.npu.amp.GradScaler()\nbuild()\n"
    result = migrate(TRAIN, files={"net.py": NET, "other.py": other}, amp="native")
    assert b"autocast" in result.data and said(result) == []


def test_files_that_do_not_train_stay() -> None:
    result = migrate(NET, path="net.py", files={"train.py": TRAIN}, amp="native")
    assert not result.changed and not result.findings


def test_nothing_is_imported_where_nothing_is_written() -> None:
    source = """\
        from torch import nn, optim
        from project import closure, net

        optimizer = optim.LBFGS(net.parameters())
        loss = nn.MSELoss()(net(1), 2)
        loss.backward()
        optimizer.step(closure)
        """
    result = migrate(source, amp="native")
    assert not result.changed and [item.code for item in result.findings] == ["NPU743"]


def test_without_the_option_nothing_happens() -> None:
    assert not migrate(TRAIN, files={"net.py": NET}).changed


@pytest.mark.parametrize("code", ["NPU740", "NPU74", "NPU741"])
def test_switched_off_for_a_file(code: str) -> None:
    result = migrate(TRAIN, files={"net.py": NET}, amp="native", per_file_ignores=(("train.py", (code,)),))
    assert not result.changed


ENGINE = """\
import torch


def train_one_epoch(model, criterion, data, optimizer):
    model.train()
    for x, y in data:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
MAIN = """\
import torch
from engine import train_one_epoch
from net import build

model = build().npu()
criterion = torch.nn.{loss}()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    train_one_epoch(model, criterion, [], optimizer)
    torch.save({{"optimizer": optimizer.state_dict()}}, "last.pt")
"""


def test_callers_in_another_file_need_no_edit() -> None:
    """The scaler is made in the file that trains; what has to be done about checkpoints is said."""
    files = {"net.py": NET, "main.py": MAIN.format(loss="MSELoss")}
    result = migrate(ENGINE, path="engine.py", files=files, amp="native")
    text = result.data.decode()
    assert '\nscaler = torch.amp.GradScaler("npu")\n\n\ndef train_one_epoch(model, criterion, data, optimizer):' in text
    left = [item for item in result.findings if item.code == "NPU744"]
    assert len(left) == 1 and "written in main.py" in left[0].message
    assert not migrate(
        files["main.py"], path="main.py", files={"engine.py": ENGINE, "net.py": NET}, amp="native"
    ).changed


@pytest.mark.parametrize("other", ["", "from engine import train_one_epoch\n\ntrain_one_epoch(1, 2, [], 3)\n"])
def test_a_function_that_a_file_without_a_word_of_cards_calls_gets_no_parameter(other: str) -> None:
    main = MAIN.format(loss="MSELoss").replace("from engine import train_one_epoch\n", "").replace("import torch\n", "")
    files = {"net.py": NET, "other.py": other or "print(1)\n"}
    text = migrate(f"{ENGINE}\n\n{main}", path="engine.py", files=files, amp="native").data.decode()
    assert ("train_one_epoch(model, criterion, data, optimizer, scaler):" in text) == (not other)
    assert "scaler.step(optimizer)" in text


@pytest.mark.parametrize("head", ["", "import os; import torch\n\n\n"])
def test_a_scaler_above_a_function_with_nothing_above_it_that_stands_alone(head: str) -> None:
    engine = head + ENGINE.partition("\n\n\n")[2]
    files = {"net.py": NET, "main.py": MAIN.format(loss="MSELoss")}
    text = migrate(engine, path="engine.py", files=files, amp="native").data.decode()
    assert '\nscaler = torch.amp.GradScaler("npu")\n\n\ndef train_one_epoch(' in text
    assert text.count("import os") == head.count("import os")


def test_the_loss_of_a_caller_is_looked_at() -> None:
    files = {"net.py": NET, "main.py": MAIN.format(loss="BCELoss")}
    result = migrate(ENGINE, path="engine.py", files=files, amp="native")
    assert not result.changed
    assert [item.code for item in result.findings] == ["NPU743"]


def test_a_penalty_in_another_file_is_looked_at() -> None:
    losses = """\
        import torch


        def penalty(out, x):
            return torch.autograd.grad(out.sum(), x, create_graph=True)[0].norm()
        """
    train = TRAIN.replace("from net import build", "from losses import penalty\nfrom net import build")
    train = train.replace("loss = model(x).mean()", "out = model(x)\n    loss = out.mean() + penalty(out, x)")
    result = migrate(train, files={"net.py": NET, "losses.py": losses}, amp="native")
    assert not result.changed and "(losses.py)" in result.findings[0].message
    assert migrate(train, files={"net.py": NET, "losses.py": losses}, amp="native", amp_dtype="bfloat16").changed


@pytest.mark.parametrize("where", ["train.py", "main.py"])
def test_sharded_programs_need_another_scaler(where: str) -> None:
    head = "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    main = "import train\n"
    train = head + TRAIN if where == "train.py" else TRAIN
    files = {"net.py": NET, "main.py": head + main if where == "main.py" else main}
    result = migrate(train, files=files, amp="native")
    assert not result.changed
    assert [item.code for item in result.findings] == ["NPU743"]


def test_constants_in_the_files_of_a_network() -> None:
    net = NET + "\n\ndef attend(s, m):\n    return s.masked_fill_(mask=m, value=-1e9) + s.masked_fill(m, 70000)\n"
    for dtype, codes in (("float16", ["NPU740", "NPU745"]), ("bfloat16", [])):
        result = migrate(net, path="net.py", files={"train.py": TRAIN}, amp="native", amp_dtype=dtype)
        assert sorted(item.code for item in result.findings) == codes
        assert (b"s.masked_fill_(mask=m, value=max(-1e9, torch.finfo(s.dtype).min))" in result.data) is bool(codes)


EVALUATED = """\
import torch
from project import net, loader, criterion

augment = net.augment
model = net.to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    model.train()
    x = augment(x)
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    out = model(x)
    loss = criterion(out, y)
    print(loss.item())
"""


def test_augmentation_stays_in_float32() -> None:
    """What `augment` is cannot be seen, and its name says that it is no network."""
    text = migrate(EVALUATED, amp="native").data.decode()
    assert (
        '    x = augment(x)\n    with torch.autocast("npu", dtype=torch.float16):\n'
        "        loss = criterion(model(x), y)\n"
    ) in text


def test_the_loss_of_an_evaluation_is_worked_out_under_autocast() -> None:
    text = migrate(EVALUATED, amp="native").data.decode()
    assert (
        'with torch.no_grad():\n    with torch.autocast("npu", dtype=torch.float16):\n        out = model(x)\n'
        "        loss = criterion(out, y)\n    print(loss.item())\n"
    ) in text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("from apex import amp\nmodel, optimizer = amp.initialize(model, optimizer)\n", []),
        ("import apex\nfrom apex.parallel import LARC\noptimizer = LARC(optimizer)\n", []),
        ("from apex.optimizers import NpuFusedAdam\noptimizer = NpuFusedAdam(x)\n", []),
        ("from apex.optimizers import FusedNovoGrad\noptimizer = FusedNovoGrad(x)\n", ["NPU511"]),
        ("import apex.contrib\n", ["NPU510"]),
    ],
)
def test_who_asks_for_apex_has_the_build_for_ascend(text: str, left: list[str]) -> None:
    def open_codes(amp: str) -> list[str]:
        result = migrate(text, amp=amp)
        return [each.code for each in result.findings if each.level is Level.MANUAL]

    assert open_codes("apex") == left
    assert "NPU511" in open_codes("native") or left
