"""Pairs of `--amp apex`."""

from __future__ import annotations

import io
from typing import Any

import pytest
from pyflakes import api as pyflakes
from pyflakes.reporter import Reporter

from tests import harness
from tests.harness import check_noop, check_rewrite, clean, pattern
from transplt.base.finding import FileResult
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts

HEAD = """
import torch
from project import loader, net

model = net.to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
IMPORTED = """
import torch
import torch_npu  # noqa: F401
from apex import amp
from project import loader, net

model = net.to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
INITIALIZED = (
    'model, optimizer = amp.initialize(model, optimizer, opt_level="O2", loss_scale="dynamic", combine_grad=True)\n'
)
LOOP = """
for x in loader:
    loss = model(x)
    loss.backward()
    optimizer.step()
"""
SCALED = """
for x in loader:
    loss = model(x)
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""


def flaws(text: str) -> set[str]:
    """What pyflakes says about a text, without the places."""
    said = io.StringIO()
    pyflakes.check(text, "", Reporter(said, said))
    return {line.split(" ", 1)[1] for line in said.getvalue().splitlines()}


def migrate(source: str, **more: Any) -> FileResult:
    """Under O2 where nothing else is asked for."""
    return harness.migrate(source, **{"opt_level": "O2", **more})


def becomes(before: str, after: str, **more: Any) -> None:
    """The pair holds, and the same options change nothing in its output."""
    more = {"opt_level": "O2", **more}
    result = check_rewrite(before, after, amp="apex", **more)
    settings = Settings(amp="apex", **{k: v for k, v in more.items() if k not in ("files", "open_codes", "path")})
    text = result.data
    assert flaws(text.decode()) <= {*flaws(clean(before)), "'torch_npu' imported but unused"}  # it has its noqa
    project = ProjectFacts.join([index_source(text, result.path, settings)])
    assert migrate_source(text, result.path, settings, project).data == text


def stays(source: str, *words: str, codes: tuple[str, ...] = ("NPU743",), **more: Any) -> None:
    """Nothing is written, and one finding says why."""
    more = {"opt_level": "O2", **more}
    result = check_noop(source, open_codes=codes, amp="apex", **more)
    said = " ".join(finding.message + finding.help for finding in result.findings)
    for word in words:
        assert word in said, said


@pattern("P51", "P52")
def test_a_flat_script() -> None:
    becomes(HEAD + LOOP, IMPORTED.replace("import torch_npu  # noqa: F401\n", "") + INITIALIZED + SCALED)


def test_cuda_becomes_npu_in_the_same_run() -> None:
    becomes(HEAD.replace('"npu"', '"cuda"') + LOOP, IMPORTED + INITIALIZED + SCALED)


def test_a_static_scale_and_o1() -> None:
    becomes(
        HEAD + LOOP,
        IMPORTED.replace("import torch_npu  # noqa: F401\n", "")
        + 'model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=128.0, combine_grad=True)\n'
        + SCALED,
        opt_level="O1",
        loss_scale="128",
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "(loss / 2).backward()",
            ["with amp.scale_loss(loss / 2, optimizer) as scaled_loss:", "    scaled_loss.backward()"],
        ),
        (
            "loss.backward(retain_graph=True)",
            ["with amp.scale_loss(loss, optimizer) as scaled_loss:", "    scaled_loss.backward(retain_graph=True)"],
        ),
        (
            "loss.mean().backward()",
            [
                "total_loss = loss.mean()",
                "with amp.scale_loss(total_loss, optimizer) as scaled_loss:",
                "    scaled_loss.backward()",
            ],
        ),
        (
            "(loss.sum() / len(x)).backward()  # a mean",
            [
                "total_loss = (loss.sum() / len(x))  # a mean",
                "with amp.scale_loss(total_loss, optimizer) as scaled_loss:",
                "    scaled_loss.backward()",
            ],
        ),
        (
            "if x:\n        loss.backward()",
            ["if x:", "    with amp.scale_loss(loss, optimizer) as scaled_loss:", "        scaled_loss.backward()"],
        ),
    ],
)
def test_backward_passes(before: str, after: list[str]) -> None:
    result = migrate(HEAD + LOOP.replace("loss.backward()", before), amp="apex")
    block = "\n".join("    " + line for line in after)
    assert f"    loss = model(x)\n{block}\n    optimizer.step()\n" in result.data.decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("optimizer.zero_grad(set_to_none=True)", "optimizer.zero_grad()"),
        ("optimizer.zero_grad(True)", "optimizer.zero_grad()"),
        ("model.zero_grad(set_to_none=True)", "model.zero_grad()"),
        ("optimizer.zero_grad()", "optimizer.zero_grad()"),
        (
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
            "torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)",
        ),
        (
            "torch.nn.utils.clip_grad_value_(model.parameters(), clip_value=1.0)",
            "torch.nn.utils.clip_grad_value_(amp.master_params(optimizer), clip_value=1.0)",
        ),
        (
            "torch.nn.utils.clip_grad_norm_(parameters=model.parameters(), max_norm=1.0)",
            "torch.nn.utils.clip_grad_norm_(parameters=amp.master_params(optimizer), max_norm=1.0)",
        ),
        ('torch.save({"optimizer": optimizer.state_dict()}, "x")',
         'torch.save({"optimizer": optimizer.state_dict(), "amp": amp.state_dict()}, "x")'),
        ('torch.save({"optimizer": optimizer.state_dict(), "amp": None}, "x")',
         'torch.save({"optimizer": optimizer.state_dict(), "amp_state": amp.state_dict(), "amp": None}, "x")'),
        ('torch.save(dict(optimizer=optimizer.state_dict()), "x")',
         'torch.save(dict(optimizer=optimizer.state_dict(), amp=amp.state_dict()), "x")'),
        ("state['optimizer'] = optimizer.state_dict()",
         "state['optimizer'] = optimizer.state_dict()\n    state['amp'] = amp.state_dict()"),
        ('optimizer.load_state_dict(state["optimizer"])',
         'optimizer.load_state_dict(state["optimizer"])\n    if "amp" in state:\n'
         '        amp.load_state_dict(state["amp"])'),
        ('torch.save({"model": model.state_dict()}, "x")', 'torch.save({"model": model.state_dict()}, "x")'),
        ("best = copy.deepcopy(optimizer.state_dict())", "best = copy.deepcopy(optimizer.state_dict())"),
    ],
)  # fmt: skip
def test_statements_around_the_step(before: str, after: str) -> None:
    source = HEAD + LOOP.replace("    optimizer.step()", f"    {before}\n    optimizer.step()")
    result = migrate(source, amp="apex")
    assert f"    {after}\n    optimizer.step()\n" in result.data.decode()


GAN = """
import torch
from project import G, D, loader, criterion

netG = G().to("npu")
netD = D().to("npu")
optD = torch.optim.Adam(netD.parameters())
optG = torch.optim.Adam(netG.parameters())
for x in loader:
    optD.zero_grad()
    errD = criterion(netD(x))
    errD.backward()
    optD.step()
    optG.zero_grad()
    errG = criterion(netD(netG(x)))
    errG.backward()
    torch.nn.utils.clip_grad_norm_(netG.parameters(), 1.0)
    optG.step()
"""


def test_two_optimizers_have_a_scale_for_each_loss() -> None:
    becomes(
        GAN,
        GAN.replace("import torch\n", "import torch\nfrom apex import amp\n", 1)
        .replace(
            "optG = torch.optim.Adam(netG.parameters())\n",
            "optG = torch.optim.Adam(netG.parameters())\n"
            "[netD, netG], [optD, optG] = amp.initialize(\n"
            "    [netD, netG], [optD, optG],\n"
            '    opt_level="O2", loss_scale="dynamic", combine_grad=True, num_losses=2,\n'
            ")\n",
        )
        .replace(
            "    errD.backward()",
            "    with amp.scale_loss(errD, optD, loss_id=0) as scaled_loss:\n        scaled_loss.backward()",
        )
        .replace(
            "    errG.backward()",
            "    with amp.scale_loss(errG, optG, loss_id=1) as scaled_loss:\n        scaled_loss.backward()",
        )
        .replace("clip_grad_norm_(netG.parameters()", "clip_grad_norm_(amp.master_params(optG)"),
    )


def test_the_state_of_amp_is_loaded_once_behind_all_optimizers_of_a_checkpoint() -> None:
    loads = 'optD.load_state_dict(state["D"])\noptG.load_state_dict(state["G"])\n'
    source = GAN.replace("for x in", f'state = torch.load("x")\n{loads}for x in', 1)
    text = migrate(source, amp="apex").data.decode()
    assert f'{loads}if "amp" in state:\n    amp.load_state_dict(state["amp"])\nfor x in' in text


def test_one_loss_for_two_optimizers() -> None:
    source = GAN.replace("    optD.step()\n    optG.zero_grad()\n", "").replace("    errD.backward()\n", "")
    result = migrate(source.replace("    optG.step()", "    optD.step()\n    optG.step()"), amp="apex")
    assert "with amp.scale_loss(errG, [optD, optG], loss_id=0) as scaled_loss:" in result.data.decode()


WRAPPED = HEAD.replace(
    "optimizer =", "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])\noptimizer ="
)


def test_a_wrapper_moves_behind_the_initialization() -> None:
    result = migrate(WRAPPED + LOOP, amp="apex")
    text = result.data.decode()
    assert text.index("optimizer = ") < text.index("amp.initialize") < text.index("DistributedDataParallel(model")
    assert text.count("DistributedDataParallel") == 1


def test_a_wrapper_around_a_new_model_stays() -> None:
    wrapped = 'torch.nn.parallel.DistributedDataParallel(net.to("npu"), device_ids=[rank])'
    stays(HEAD.replace('net.to("npu")', wrapped) + LOOP, "wrapped where it is created")


def test_a_wrapper_under_a_condition_moves_too() -> None:
    block = (
        "if world > 1:\n    model = torch.nn.parallel.DistributedDataParallel(\n        model,\n"
        "        device_ids=[rank],\n    )\n"
    )
    result = migrate(HEAD.replace("optimizer =", block + "optimizer =") + LOOP, amp="apex")
    assert INITIALIZED + block in result.data.decode()
    assert result.data.decode().count("if world > 1:") == 1
    both = block.replace(")\n", ")\n    model.eval()\n")
    stays(HEAD.replace("optimizer =", both + "optimizer =") + LOOP, "wrapped before")


BRANCHES = """
import torch
from project import args, loader, net, world

model = net
# How many cards.
if not torch.cuda.is_available():
    print("on the CPU")
elif world > 1:
    model.cuda(args.gpu)
    args.batch_size = args.batch_size // world
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
elif args.many:
    model = torch.nn.DataParallel(model).cuda()
else:
    model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
KEPT = """
model = net
wrap = None
# How many cards.
if not torch.npu.is_available():
    print("on the CPU")
elif world > 1:
    model.npu(args.gpu)
    args.batch_size = args.batch_size // world
    wrap = functools.partial(torch.nn.parallel.DistributedDataParallel, device_ids=[args.gpu])
elif args.many:
    model = model.npu()
    wrap = OneCardDataParallel
else:
    model.npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_branches_that_wrap_the_model_keep_the_wrapper() -> None:
    text = migrate(BRANCHES + LOOP, amp="apex").data.decode()
    assert f"{KEPT}{INITIALIZED}if wrap is not None:\n    model = wrap(model)\n\nfor x in loader:" in text
    assert flaws(text) <= {"'torch_npu' imported but unused"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model, device_ids=[args.gpu])", "model, [args.gpu])"),
        ("model, device_ids=[args.gpu])", "model, **options)"),
        ("device_ids=[args.gpu])\n", "device_ids=[args.gpu])\n    bare = model.module\n"),
        ("optimizer =", "show(model)\noptimizer ="),
        ("model = torch.nn.DataParallel(model).cuda()", "model = wrapped = torch.nn.DataParallel(model).cuda()"),
    ],
)
def test_branches_whose_wrapper_cannot_wait_stay(old: str, new: str) -> None:
    result = migrate(BRANCHES.replace(old, new) + LOOP, amp="apex")
    assert b"amp.initialize" not in result.data
    assert "NPU743" in {finding.code for finding in result.findings}


@pytest.mark.parametrize(
    "between",
    ["bare = model.module\n", "print(model)\n", "params = dict(model.named_parameters())\n"],
)
def test_a_wrapper_that_is_used_before_the_optimizer_stays(between: str) -> None:
    source = WRAPPED.replace("optimizer =", f"{between}optimizer =")
    stays(source + LOOP, "the model is wrapped before the optimizer is created")


def test_a_wrapper_behind_the_optimizer_stays_where_it_is() -> None:
    wrapper = "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])\n"
    result = migrate(HEAD + wrapper + LOOP, amp="apex")
    assert INITIALIZED + wrapper in result.data.decode()


ENGINE = """
import torch


def train(model, optimizer, loader):
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
"""
MAIN = """
import torch
from engine import train
from project import loader, Net


def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.to("npu")
    train(model, optimizer, loader)


if __name__ == "__main__":
    main()
"""


def test_training_in_another_file() -> None:
    becomes(
        MAIN,
        MAIN.replace("import torch\n", "import torch\nfrom apex import amp\n", 1).replace(
            '    model.to("npu")\n', '    model.to("npu")\n    ' + INITIALIZED
        ),
        files={"engine.py": ENGINE},
        path="main.py",
    )
    becomes(
        ENGINE,
        ENGINE.replace("import torch\n", "import torch\nfrom apex import amp\n", 1).replace(
            "        loss.backward()",
            "        with amp.scale_loss(loss, optimizer) as scaled_loss:\n            scaled_loss.backward()",
        ),
        files={"main.py": MAIN},
        path="engine.py",
    )


def test_two_programs_that_share_their_training_get_one_scale_in_it() -> None:
    text = migrate(ENGINE, amp="apex", files={"main.py": MAIN, "other.py": MAIN}, path="engine.py").data.decode()
    scaled = "        with amp.scale_loss(loss, optimizer) as scaled_loss:\n            scaled_loss.backward()\n"
    assert scaled in text and text.count("scale_loss(") == 1


@pytest.mark.parametrize("made", ['return net().to("npu")', 'made = net()\n    made.to("npu")\n    return made'])
def test_a_model_that_a_function_puts_on_the_card(made: str) -> None:
    source = HEAD.replace("\nmodel", f"\n\ndef build():\n    {made}\n\n\nmodel", 1).replace('net.to("npu")', "build()")
    text = migrate(source + LOOP, amp="apex").data.decode()
    assert f"model = build()\n{HEAD.splitlines()[-1]}\n{INITIALIZED}" in text


def test_a_function_that_makes_an_optimizer_by_calling_itself() -> None:
    again = "if again:\n        return make_optimizer(model, False)"
    made = f"{again}\n    return torch.optim.SGD(model.parameters(), lr=0.1)"
    model, _ = HEAD.strip().splitlines()[-2:]
    source = HEAD.partition("model =")[0] + f"\ndef make_optimizer(model, again):\n    {made}\n\n\n{model}\n"
    text = migrate(f"{source}optimizer = make_optimizer(model, True)\n{LOOP}", amp="apex").data.decode()
    assert f"optimizer = make_optimizer(model, True)\n{INITIALIZED}" in text


def test_many_cards_for_a_model_that_the_optimizer_gets_by_another_name() -> None:
    source = HEAD.replace("optimizer =", "trained = model\noptimizer =").replace("model.param", "trained.param") + LOOP
    result = migrate(source, amp="apex", entry="train.py")
    assert "amp.initialize" not in result.data.decode()
    assert any("wrapped for several cards at a place" in finding.message for finding in result.findings)


OWN_WRAPPER = "model = torch.nn.parallel.DistributedDataParallel(model)\n"
RANKS = {
    "its own group": ("GROUP", OWN_WRAPPER),
    "under a condition": ("if many:\n    GROUP", f"if many:\n    n = 2\n    {OWN_WRAPPER}"),
}


@pytest.mark.parametrize("combine_ddp", [False, True])
@pytest.mark.parametrize("case", RANKS)
def test_many_cards_where_distributed_writes_nothing(case: str, combine_ddp: bool) -> None:
    """A program that runs in several processes already gets what it gets without `distributed`."""
    group, between = RANKS[case]
    source = HEAD.replace("\nmodel", "\n" + group.replace("GROUP", GROUP) + "model", 1)
    source = source.replace("\noptimizer", f"\n{between}optimizer", 1) + LOOP
    alone = migrate(source, amp="apex", combine_ddp=combine_ddp)
    assert b"amp.initialize" in alone.data
    assert migrate(source, amp="apex", combine_ddp=combine_ddp, entry="train.py").data == alone.data


def test_many_cards_of_another_program() -> None:
    """The main file that `distributed` was asked for does not reach this training."""
    options = {"amp": "apex", "combine_ddp": True, "files": {"other.py": "print(1)\n"}}
    source = HEAD.replace("\nmodel", "\n" + GROUP + "model", 1) + LOOP
    assert migrate(source, entry="other.py", **options).data == migrate(source, **options).data


@pytest.mark.parametrize(
    ("between", "more", "told"),
    [
        ("if many:\n    n = 2\n    model = torch.nn.DataParallel(model)\n", {}, "`distributed` changes the wrapper"),
        ("", {"combine_ddp": True}, "which `distributed` writes"),
    ],
)
def test_many_cards_where_distributed_writes_the_wrapper(between: str, more: dict[str, bool], told: str) -> None:
    result = migrate(HEAD.replace("\noptimizer", f"\n{between}optimizer") + LOOP, amp="apex", entry="train.py", **more)
    assert b"amp.initialize" not in result.data
    assert any(told in finding.message for finding in result.findings)


def test_all_files_of_a_program_or_none() -> None:
    """A second main file that calls the same training, and whose optimizer cannot be followed."""
    other = MAIN.replace("optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", "optimizer = make()")
    stays(ENGINE, "(other.py:", files={"main.py": MAIN, "other.py": other}, path="engine.py")
    check_noop(MAIN, amp="apex", files={"engine.py": ENGINE.replace("optimizer.step()", "optimizer.step(f)")},
               path="main.py")  # fmt: skip


def test_an_evaluation_script_that_shares_the_checkpoints_is_told() -> None:
    both = ENGINE + """

def load(optimizer, state):
    optimizer.load_state_dict(state["optimizer"])
"""
    evaluation = """
import torch
from engine import load

load(torch.optim.SGD([], lr=0.1), torch.load("x"))
"""
    result = migrate(both, amp="apex", files={"main.py": MAIN, "evaluate.py": evaluation}, path="engine.py")
    assert "amp.scale_loss(loss, optimizer)" in result.data.decode()
    assert "amp.load_state_dict" not in result.data.decode()
    assert any("a program that does not train" in finding.message for finding in result.findings)


def test_several_statements_on_a_line_are_parted() -> None:
    source = HEAD + LOOP.replace("loss.backward()", "loss.backward(); n = 1")
    result = migrate(source, amp="apex")
    assert (
        "    with amp.scale_loss(loss, optimizer) as scaled_loss:\n        scaled_loss.backward()\n    n = 1\n"
        in result.data.decode()
    )
    assert not [finding for finding in result.findings if finding.code == "NPU743"]


def test_the_name_amp_is_taken() -> None:
    result = migrate(HEAD + "amp = 3\n" + LOOP, amp="apex")
    assert "from apex import amp as apex_amp\n" in result.data.decode()
    assert "with apex_amp.scale_loss(loss, optimizer) as scaled_loss:" in result.data.decode()


def test_a_name_amp_that_nothing_binds_stays_unbound() -> None:
    result = migrate(HEAD + "def old(model):\n    amp.initialize(model)\n" + LOOP, amp="apex")
    assert "from apex import amp as apex_amp\n" in result.data.decode()
    assert "    amp.initialize(model)\n" in result.data.decode()


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (HEAD.replace('net.to("npu")', "net") + LOOP, "puts model on the NPU"),
        (HEAD.replace("model.parameters()", "weights") + LOOP, "the model that this optimizer trains"),
        (HEAD + LOOP.replace("optimizer.step()", "pass"), "no optimizer step"),
        (
            HEAD + LOOP.replace("loss.backward()", "loss.backward(); n = 1  # transplt: ignore[NPU750]"),
            "each statement on its own line",
        ),
        (HEAD + LOOP.replace("loss.backward()", "y = loss.backward()"), "not a separate statement"),
        (HEAD + LOOP.replace("loss.backward()", "loss.backward(create_graph=True)"), "create_graph"),
        (HEAD + LOOP.replace("loss.backward()", "engine.backward(loss)"), "runs the backward pass for the script"),
        (HEAD + LOOP.replace("model(x)", "model.encode(x)"), "model.encode(...) runs a part of the model"),
        (HEAD + LOOP.replace("model(x)", "model.head(model(x))"), "model.head(...) runs a part of the model"),
        (HEAD + LOOP + "    norm = model.weight.grad.norm()\n", "stay scaled and in float16"),
        (
            HEAD + LOOP + "    for p in model.parameters():\n        p.data.clamp_(-1, 1)\n",
            "O2 overwrites them",
        ),
        (HEAD + "torch.distributed.fsdp.fully_shard(model)\n" + LOOP, "in shards"),
        (HEAD + "model = amp.initialize(model)\n" + LOOP, "does not import amp"),
        ("from tools import *\n" + HEAD + "def old(model):\n    amp.initialize(model)\n" + LOOP, "not import amp"),
        (
            HEAD + LOOP.replace("    optimizer", "    torch.nn.utils.clip_grad_norm_(weights, 1)\n    optimizer"),
            "the optimizer of the parameters",
        ),
        (HEAD + LOOP + "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1)\n", "after the step of optimizer"),
        (HEAD + LOOP.replace("loss.backward()", "g = torch.autograd.grad(loss, x)\n    loss.backward()"), "loss scale"),
        (
            "import torch\nfrom project import net, x\n\nmodel = net.npu()\n"
            "optimizer = torch.optim.LBFGS(model.parameters())\n\n\ndef closure():\n    loss = model(x)\n"
            "    loss.backward()\n    return loss\n\n\noptimizer.step(closure)\n",
            "closure",
        ),
        (
            "import torch\nfrom project import net, folds\n\nfor fold in folds:\n    model = net().npu()\n"
            "    optimizer = torch.optim.SGD(model.parameters(), lr=1)\n    model(fold).backward()\n"
            "    optimizer.step()\n",
            "created in a loop",
        ),
        ("def train(model, optimizer, x):\n    model(x).backward()\n    optimizer.step()\n", "was not found"),
    ],
)
def test_what_cannot_be_decided_stays(source: str, word: str) -> None:
    stays(source, word)


def test_sparse_products_stay() -> None:
    sparse = HEAD + LOOP.replace("model(x)", "model(torch.spmm(x, x))")
    stays(sparse, "sparse tensors", codes=("NPU526", "NPU743"))


@pytest.mark.parametrize("line", ["loss.backward()", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"])
def test_a_part_that_is_switched_off_keeps_the_others_out(line: str) -> None:
    source = (HEAD + LOOP).replace(line, f"{line}  # transplt: ignore[NPU746, NPU747] not here")
    stays(source, "turned off here")
    ignores = (("engine.py", ("NPU747",)),)
    files = {"engine.py": ENGINE}
    check_noop(MAIN, amp="apex", files=files, path="main.py", per_file_ignores=ignores)
    stays(ENGINE, "turned off here", files={"main.py": MAIN}, path="engine.py", per_file_ignores=ignores)


@pytest.mark.parametrize("loss", ["torch.nn.BCELoss()(model(x), x)", "torch.nn.functional.binary_cross_entropy(x, x)"])
def test_binary_cross_entropy_and_o1(loss: str) -> None:
    source = HEAD + LOOP.replace("model(x)", loss)
    stays(source, "under opt_level O1, binary_cross_entropy only works", opt_level="O1")
    assert "amp.initialize" in migrate(source, amp="apex", opt_level="O2").data.decode()


SIGMOID = """
class Net(torch.nn.Module):
    def forward(self, x):
        return torch.sigmoid(self.head(x))


model = Net().to("npu")
optimizer ="""
BCE = "torch.nn.BCELoss()(model(x), x)"


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_the_sigmoid_in_front_of_binary_cross_entropy_gets_float32(level: str) -> None:
    """In half precision it rounds to 1 from 8.4 on, where the gradient of the loss has no bound."""
    before = HEAD.replace('model = net.to("npu")\noptimizer =', SIGMOID)
    after = IMPORTED.replace('model = net.to("npu")\noptimizer =', SIGMOID)
    after = after.replace("self.head(x)", "self.head(x).float()")
    becomes(
        before + LOOP.replace("model(x)", BCE),
        after.replace("import torch_npu  # noqa: F401\n", "")
        + INITIALIZED.replace("O2", level)
        + SCALED.replace("model(x)", BCE),
        opt_level=level,
    )


def test_a_sigmoid_that_is_a_layer_becomes_one_in_float32() -> None:
    layers = "model = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Sigmoid()).to('npu')"
    source = HEAD.replace('model = net.to("npu")', layers) + LOOP.replace("model(x)", BCE)
    for level in ("O1", "O2"):
        text = migrate(source, amp="apex", opt_level=level).data.decode()
        assert "torch.nn.Linear(4, 1), Float32Sigmoid())" in text
        assert "class Float32Sigmoid(torch.nn.Sigmoid):" in text


def test_a_target_that_a_network_makes_becomes_float32_with_o1() -> None:
    before = HEAD.replace('model = net.to("npu")\noptimizer =', SIGMOID)
    for target, written in (("teacher(x)", "teacher(x).float()"), ("torch.ones(4, 1)", "torch.ones(4, 1)")):
        loop = LOOP.replace("model(x)", f"torch.nn.functional.binary_cross_entropy(model(x), {target})")
        text = migrate(before.replace("loader, net", "loader, net, Teacher\n\nteacher = Teacher()") + loop, amp="apex",
                       opt_level="O1").data.decode()  # fmt: skip
        assert f"binary_cross_entropy(model(x), {written})" in text


def test_a_loss_that_nothing_calls_is_no_reason_with_o1() -> None:
    made = 'unused = torch.nn.BCELoss()\nunused.to("npu")\n'
    assert "amp.initialize" in migrate(HEAD + made + LOOP, amp="apex", opt_level="O1").data.decode()
    stays(HEAD + "used = torch.nn.BCELoss()\nprint(used)\n" + LOOP, "under opt_level O1", opt_level="O1")


@pytest.mark.parametrize(
    "forward",
    [
        "gate = torch.sigmoid(self.head(x))\n        return self.tail(gate)",
        "gate = torch.sigmoid(self.head(x))\n        self.seen = self.tail(gate)\n        return gate",
    ],
)
def test_a_sigmoid_inside_of_the_model_and_o2(forward: str) -> None:
    """Weights of float16 behind it would meet float32."""
    made = SIGMOID.replace("return torch.sigmoid(self.head(x))", forward)
    source = HEAD.replace('model = net.to("npu")\noptimizer =', made) + LOOP.replace("model(x)", BCE)
    stays(source, "a sigmoid of the model (train.py:7) that was rounded to half precision")


def test_a_sigmoid_outside_of_the_model_and_o2() -> None:
    outside = HEAD + LOOP.replace("model(x)", "torch.nn.BCELoss()(torch.sigmoid(model(x)), x)")
    assert "amp.initialize" in migrate(outside, amp="apex").data.decode()


PENALTY = """

def penalty(model, real, fake):
    mixed = (0.5 * real + 0.5 * fake).requires_grad_(True)
    grads = torch.autograd.grad(model(mixed).sum(), mixed, create_graph=True)[0]
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()

"""
PENALIZED = """
begun = list(net.parameters())
for x in loader:
    fake = net(x)
    p = penalty(model, x, fake.data)
    loss = model(fake).mean() - model(x).mean() + p
    loss.backward()
    optimizer.step()
"""


def test_a_gradient_penalty_runs_in_float32_with_o1() -> None:
    after = PENALIZED.replace(
        "    p = penalty(model, x, fake.data)\n",
        "    with amp.disable_casts():\n        p = penalty(model, x, fake.data.float())\n",
    ).replace("    loss.backward()\n", "    with amp.scale_loss(loss, optimizer) as scaled_loss:\n"
              "        scaled_loss.backward()\n")  # fmt: skip
    becomes(
        HEAD + PENALTY + PENALIZED,
        IMPORTED.replace("import torch_npu  # noqa: F401\n", "") + INITIALIZED.replace("O2", "O1") + PENALTY + after,
        opt_level="O1",
    )


@pytest.mark.parametrize(
    ("source", "word", "more"),
    [
        (HEAD + PENALTY + PENALIZED, "loss scale", {"opt_level": "O2"}),
        (HEAD + PENALTY + PENALIZED.replace("p = penalty", "p = 10 * penalty"), "as `p = penalty(...)`", {}),
        (HEAD + PENALTY + PENALIZED + "print(penalty(model, x, x))\n", "loss scale", {}),
        (HEAD + PENALTY + PENALIZED + "check = map(penalty, [])\n", "loss scale", {}),
    ],
)
def test_gradient_penalties_that_stay(source: str, word: str, more: dict[str, Any]) -> None:
    stays(source, word, **{"opt_level": "O1", **more})


WRAPPED_ABOVE = """
import torch
from project import loader, net, state

model = net.to("npu")
model = torch.nn.DataParallel(model)
model.load_state_dict(state)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_a_data_parallel_above_the_optimizer_is_looked_into_with_o1() -> None:
    """O1 changes nothing of a model: it is given the module, and the wrapper stays where it is."""
    text = migrate(WRAPPED_ABOVE + LOOP, amp="apex", opt_level="O1").data.decode()
    assert """
optimizer = amp.initialize(
    model.module if isinstance(model, torch.nn.DataParallel) else model, optimizer,
    opt_level="O1", loss_scale="dynamic", combine_grad=True,
)[1]
""" in text
    assert "model = OneCardDataParallel(model)\nmodel.load_state_dict(state)\n" in text
    stays(WRAPPED_ABOVE.replace("torch.nn.Data", "torch.nn.parallel.DistributedData") + LOOP,
          "wrapped before the optimizer", opt_level="O1")  # fmt: skip


def test_a_data_parallel_around_a_model_by_another_name_with_o1() -> None:
    source = HEAD.replace('model = net.to("npu")', 'model = net\nif rank:\n    model = torch.nn.DataParallel(net)\n'
                          'model = model.to("npu")').replace("loader, net", "loader, net, rank")  # fmt: skip
    text = migrate(source + LOOP, amp="apex", opt_level="O1").data.decode()
    assert "model.module if isinstance(model, torch.nn.DataParallel) else model, optimizer," in text


SECOND = """
import torch
from project import Net, loader, second


def build():
    model, fine = Net().to("npu"), None
    weights = list(model.parameters())
    if second:
        fine = Net().to("npu")
        weights += list(fine.parameters())
    optimizer = torch.optim.SGD(weights, lr=0.1)
    return model, fine, optimizer


model, fine, optimizer = build()
"""


def test_a_model_that_may_be_none_and_an_optimizer_that_a_function_returns_with_o1() -> None:
    text = migrate(SECOND + LOOP, amp="apex", opt_level="O1").data.decode()
    assert """
    optimizer = torch.optim.SGD(weights, lr=0.1)
    optimizer = amp.initialize(
        [each for each in (model, fine) if each is not None], optimizer,
        opt_level="O1", loss_scale="dynamic", combine_grad=True,
    )[1]
    return model, fine, optimizer
""" in text
    stays(SECOND + LOOP, "the model that this optimizer trains")
    twice = SECOND + "if second:\n    model, fine, optimizer = build()\n"
    stays(twice + LOOP, "was not found", opt_level="O1")


def test_a_model_that_may_be_none_and_o2() -> None:
    body = SECOND.split("def build():\n")[1].split("    return")[0].replace("\n    ", "\n")[4:]
    source = SECOND.split("def build")[0] + body + LOOP
    stays(source, "is None otherwise")
    assert "for each in (model, fine)" in migrate(source, amp="apex", opt_level="O1").data.decode()


@pytest.mark.parametrize(
    ("asks", "reads", "scaled"),
    [
        ("x.requires_grad_()", "attack = x + 0.1 * x.grad", True),
        ("x.requires_grad = True", "print(x.grad.norm())", True),
        ("x = torch.ones(4, requires_grad=True)", "step = x.grad.data", True),
        ("x.requires_grad_()", "attack = x + 0.1 * x.grad.sign()", False),
        ("x.requires_grad_()", "x.grad.zero_()", False),
        ("x.requires_grad_()", "print(x.grad is None)", False),
        ("p = model.weight", "print(p.grad)", False),
    ],
)
def test_gradients_of_what_no_optimizer_has_stay_scaled_with_o1(asks: str, reads: str, scaled: bool) -> None:
    """amp unscales the gradients of parameters that optimizers have."""
    loop = LOOP.replace("    loss = ", f"    {asks}\n    loss = ")
    loop = loop.replace("    optimizer", f"    {reads}\n    optimizer")
    if scaled:
        stays(HEAD + loop, "gradients of x stay scaled", opt_level="O1")
    else:
        assert "amp.initialize" in migrate(HEAD + loop, amp="apex", opt_level="O1").data.decode()


def test_a_hook_that_limits_gradients_sees_scaled_ones() -> None:
    hooked = HEAD + "for p in model.parameters():\n    p.register_hook(lambda g: g.clamp(-1, 1))\n" + LOOP
    for level in ("O1", "O2"):
        stays(hooked, "a hook limits gradients while they are scaled", opt_level=level)


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        ("-Normal(model(x), 1.0).log_prob(x).mean()", "log-probabilities"),
        ("torch.log(1 - model(x).pow(2)).mean()", "no digits left"),
    ],
)
def test_what_loses_its_digits_with_o1(loss: str, why: str) -> None:
    """As for native mixed precision; with O2 what comes out of the model is float32."""
    source = HEAD.replace("import torch\n", "import torch\nfrom torch.distributions import Normal\n")
    stays(source + LOOP.replace("model(x)", loss), why, opt_level="O1")


def test_a_program_without_a_card() -> None:
    source = HEAD.replace('net.to("npu")', "torch.nn.Linear(4, 1)") + LOOP
    stays(source, "no code that puts this program on a card was found")


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("optims.critic.step()", "the optimizer optims.critic of the next step is created was not found"),
        ("scheduler.step()", "no optimizer step follows this backward pass in the same function"),
        ("env.step(x)", "no optimizer step follows this backward pass in the same function"),
    ],
)
def test_a_backward_pass_without_a_step(step: str, why: str) -> None:
    source = HEAD.replace("loader, net", "env, loader, net, optims, scheduler")
    stays(source + LOOP.replace("optimizer.step()", step), why)


def test_processes_that_train() -> None:
    worker = (
        "import torch\n\n\ndef train(model, loader):\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for x in loader:\n        model(x).backward()\n        optimizer.step()\n"
    )
    main = (
        "import torch.multiprocessing as mp\nfrom project import loader, net\nfrom train import train\n\n"
        'model = net.to("npu")\nmp.Process(target=train, args=(model, loader)).start()\n'
    )
    stays(worker, "processes that the program starts train here", files={"main.py": main})
    stays(worker, "the code that calls this training was not found")


@pytest.mark.parametrize(
    "given",
    [
        "[p for p in model.parameters() if p.requires_grad]",
        "some",
    ],
)
def test_an_optimizer_of_some_parameters_clips_those_of_the_model_with_o1(given: str) -> None:
    some = "some = []\nfor p in model.parameters():\n    some.append(p)\noptimizer ="
    source = HEAD.replace("model.parameters()", given).replace("optimizer =", some)
    clip = "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n    optimizer.step()"
    text = migrate(source + LOOP.replace("    optimizer.step()", clip), amp="apex", opt_level="O1").data.decode()
    assert "        scaled_loss.backward()\n" + clip in text


RECURRENT = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.zeros(4)
        self.lstm = torch.nn.LSTM(4, 4)

    def forward(self, x):
        h0 = torch.zeros(1, 4).to(x.device)
        return self.lstm(x, h0)


model = Net().to("npu")
optimizer ="""


@pytest.mark.parametrize(
    ("made", "refused"),
    [
        ("torch.zeros(1, 4).to(x.device)", True),
        ("torch.autograd.Variable(torch.zeros(1, 4)).npu()", True),
        ("torch.npu.FloatTensor(1, 4).fill_(0)", True),
        ("torch.zeros(1, 4, dtype=x.dtype)", False),
        ("torch.zeros(1, 4).to(x)", False),
        ("torch.zeros(1, 4).type_as(x)", False),
        ("torch.rand(1, 4) < 0.5", False),
        ("torch.randn_like(x)", False),
        ("x.new_zeros(1, 4)", False),
    ],
)
def test_tensors_that_a_forward_pass_makes(made: str, refused: bool) -> None:
    source = HEAD.replace('model = net.to("npu")\noptimizer =', RECURRENT) + LOOP
    source = source.replace("torch.zeros(1, 4).to(x.device)", made)
    if refused:
        stays(source, "creates a float32 tensor here")
    else:
        assert "amp.initialize" in migrate(source, amp="apex").data.decode()
    assert "amp.initialize" in migrate(source, amp="apex", opt_level="O1").data.decode()


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ('torch.save(model, "net.pt")', True),
        ("best = copy.deepcopy(model)", True),
        ('torch.save(model.state_dict(), "net.pt")', False),
        ("best = copy.deepcopy(model.state_dict())", False),
        ("batch = copy.deepcopy(x)", False),
    ],
)
def test_a_model_that_is_saved_or_copied_whole(line: str, refused: bool) -> None:
    source = HEAD.replace("import torch", "import copy\n\nimport torch") + LOOP + f"    {line}\n"
    result = migrate(source, amp="apex")
    assert any("the whole model here" in finding.message for finding in result.findings) is refused
    assert (b"amp.initialize" not in result.data) is refused
    assert "amp.initialize" in migrate(source, amp="apex", opt_level="O1").data.decode()


def test_a_copy_from_before_the_initialization() -> None:
    source = HEAD.replace("import torch", "import copy\n\nimport torch").replace(
        "optimizer =", "average = copy.deepcopy(model)\noptimizer ="
    )
    assert "amp.initialize" in migrate(source + LOOP, amp="apex").data.decode()


GRAM_MATRIX = """
    f = model(x)
    f = f.view(8, 4 * 4)
    loss = torch.mm(f, f.t()).mean()
"""


def test_a_gram_matrix_and_o1() -> None:
    source = HEAD + LOOP.replace("\n    loss = model(x)\n", GRAM_MATRIX)
    stays(source, "a Gram matrix sums over all pixels", opt_level="O1")
    assert "amp.initialize" in migrate(source, amp="apex", opt_level="O2").data.decode()


SHARED = """
import itertools
import torch
from project import D, G, loader

G = G().to("npu")
D = D().to("npu")
first = torch.optim.SGD(G.parameters(), lr=0.1)
second = torch.optim.SGD(itertools.chain(G.parameters(), D.parameters()), lr=0.1)
for x in loader:
    first.zero_grad()
    loss = G(x)
    loss.backward()
    first.step()
    second.zero_grad()
    other = D(G(x))
    other.backward()
    second.step()
"""


def test_two_optimizers_of_the_same_parameters() -> None:
    """O2 gives each optimizer float32 weights of its own, and the last that steps would win."""
    stays(SHARED, "two optimizers train the same parameters")
    text = migrate(SHARED, amp="apex", opt_level="O1").data.decode()
    assert "num_losses=2" in text and "combine_grad" not in text
    apart = SHARED.replace("itertools.chain(G.parameters(), D.parameters())", "D.parameters()")
    assert "combine_grad=True" in migrate(apart, amp="apex").data.decode()


MADE = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


@pytest.mark.parametrize(
    ("made", "there"),
    [
        (f"if x:\n    {MADE}", False),
        (f"if x:\n    {MADE}else:\n    print(x)\n", False),
        (f"if x:\n    {MADE}elif y:\n    {MADE}", False),
        (f"if x:\n    {MADE}else:\n    {MADE}", True),
        (f"if x:\n    {MADE}else:\n    raise ValueError(x)\n", True),
        (f"optimizer = None\nif x:\n    {MADE}", True),
        (f"with x:\n    {MADE}", True),
    ],
)
def test_an_optimizer_under_a_condition(made: str, there: bool) -> None:
    source = HEAD.replace(MADE, made) + LOOP
    if there:
        assert "amp.initialize" in migrate(source, amp="apex").data.decode()
    else:
        stays(source, "the optimizer is created under a condition")


def test_weights_that_are_changed_before_the_training() -> None:
    source = HEAD.replace("optimizer =", "for p in model.parameters():\n    p.data.normal_()\noptimizer =") + LOOP
    assert "amp.initialize" in migrate(source, amp="apex").data.decode()


def test_weights_that_are_only_read_in_the_training() -> None:
    source = HEAD + LOOP + "    for p in model.parameters():\n        print(p.data)\n"
    assert "amp.initialize" in migrate(source, amp="apex").data.decode()


def test_parts_of_the_model_run_with_o1() -> None:
    source = HEAD + LOOP.replace("model(x)", "model.head(model.encode(x))")
    assert "amp.initialize" in migrate(source, amp="apex", opt_level="O1").data.decode()


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nfrom apex import amp\n\nmodel, optimizer = amp.initialize(m, o)\n",
        "import torch\n\nwith torch.autocast('npu'):\n    loss = f()\nloss.backward()\n",
        "import deepspeed\n\nengine = deepspeed.initialize(model=m)\nengine.backward(loss)\n",
    ],
)
def test_programs_that_have_mixed_precision_are_only_migrated(source: str) -> None:
    result = migrate(source, amp="apex")
    assert result.data.decode() == clean(source)
    assert any(finding.code == "NPU742" for finding in result.findings)


def test_without_the_option_nothing_is_written() -> None:
    check_noop(HEAD + LOOP)


def test_files_that_do_not_train() -> None:
    check_noop("import torch\n\noptimizer = torch.optim.SGD(w, lr=0.1)\noptimizer.zero_grad(set_to_none=True)\n",
               amp="apex")  # fmt: skip
    check_noop("def backward(ctx, g):\n    return g\n", amp="apex")


GROUP = 'torch.distributed.init_process_group("hccl")\n'


@pytest.mark.parametrize(
    "line", ["for p in model.parameters():\n        p.grad = None", "model.eval().cpu()", 'model.to("cpu")']
)
def test_gradients_that_are_not_left_alone_are_not_combined(line: str) -> None:
    result = migrate(HEAD + LOOP + f"    {line}\n", amp="apex", tune=(("fused-optimizer", ""),))
    text = result.data.decode()
    assert 'loss_scale="dynamic")\n' in text and "combine_grad" not in text and "NpuFused" not in text
    assert any("not combined in one tensor" in finding.message for finding in result.findings)
    source = HEAD.replace("\nmodel", "\n" + GROUP + "model", 1) + LOOP + f"    {line}\n"
    stays(source, "combine_ddp needs gradients", combine_ddp=True)


def test_the_portable_style_inserts_no_apex_of_ascend() -> None:
    source = HEAD.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "apex.optimizers.FusedSGD(model.parameters())")
    text = source.replace("from project", "import apex\nfrom project") + LOOP
    assert migrate(text, amp="apex", style="portable").data == clean(text).encode()


def test_combine_ddp() -> None:
    before = HEAD.replace("\nmodel", "\n" + GROUP + "model", 1)
    result = migrate(before + LOOP, amp="apex", combine_ddp=True)
    assert "combine_grad=True, combine_ddp=True" in result.data.decode()
    stays(HEAD + LOOP, "needs a process group", combine_ddp=True)


PARALLEL = "torch.nn.parallel.DistributedDataParallel"
COMBINED = """
import torch
from apex import amp
import torch_npu  # noqa: F401
from project import loader, net

torch.distributed.init_process_group("hccl")
model = net.to("npu")
{between}optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(
    model, optimizer,
    opt_level="O2", loss_scale="dynamic", combine_grad=True, combine_ddp={when},
)
{behind}"""
ASKED = "torch.distributed.is_initialized()"


def many(between: str = "", behind: str = "") -> str:
    """A program with a process group and something above and below the line that makes the optimizer."""
    group = 'torch.distributed.init_process_group("hccl")\n'
    source = HEAD.replace("\nmodel", f"\n{group}model", 1).replace("\noptimizer", f"\n{between}optimizer", 1)
    return source.replace("torch\n", "torch\nimport torch_npu  # noqa: F401\n", 1) + behind + LOOP


@pytest.mark.parametrize(
    ("between", "behind", "left", "left_behind", "when"),
    [
        (f"model = {PARALLEL}(model)\n", "", "", "", "True"),
        ("", f"model = {PARALLEL}(model, device_ids=[0], bucket_cap_mb=50)\n", "", "", "True"),
        ("", f"if many:\n    model = {PARALLEL}(model)\n", "", "", ASKED),
        (f"if many:\n    model = {PARALLEL}(model)\n", "", "", "", ASKED),
        (f"if many:\n    n = 2\n    model = {PARALLEL}(model)\n", "", "if many:\n    n = 2\n", "", ASKED),
        (
            f"if many:\n    model = {PARALLEL}(model)\nelse:\n    n = 1\n", "",
            "if many:\n    pass\nelse:\n    n = 1\n", "", ASKED,
        ),
        ("", f"wrapped = {PARALLEL}(model)\n", "", "wrapped = model\n", "True"),
        (
            f"if many:\n    model = {PARALLEL}(model).to('npu')\n", "",
            "if many:\n    model = model.to('npu')\n", "", ASKED,
        ),
    ],
)  # fmt: skip
def test_combine_ddp_leaves_the_wrapper_out(
    between: str, behind: str, left: str, left_behind: str, when: str
) -> None:
    result = migrate(many(between, behind), amp="apex", combine_ddp=True)
    after = COMBINED.format(between=left, behind=left_behind, when=when)
    assert result.data.decode().strip() == (after.rstrip("\n") + "\n" + SCALED).strip()


def test_combine_ddp_in_a_chain_of_branches() -> None:
    branch = f"    n = 1\n    model = {PARALLEL}(model)\n"
    chain = f"if alone:\n    n = 0\nelif many:\n{branch}else:\n    model = model.to('npu')\n"
    text = migrate(many(chain), amp="apex", combine_ddp=True).data.decode()
    assert "if alone:\n    n = 0\nelif many:\n    n = 1\nelse:\n    model = model.to('npu')\noptimizer" in text
    assert f"combine_ddp={ASKED}" in text and "wrap" not in text


def test_combine_ddp_says_what_a_wrapper_had() -> None:
    result = migrate(many(behind=f"model = {PARALLEL}(model)\n"), amp="apex", combine_ddp=True)
    said = [finding for finding in result.findings if "no `module.` in its names" in finding.message]
    assert [finding.level.value for finding in said] == ["info"]


def test_combine_ddp_for_two_models_in_one_branch() -> None:
    source = many().replace("optimizer = ", "other = net.to('npu')\noptimizer = ", 1)
    source = source.replace("optimizer.step()", "optimizer.step()\n    other(x).backward()\n    second.step()")
    second = "second = torch.optim.SGD(other.parameters(), lr=0.1)\n"
    both = f"if many:\n    model = {PARALLEL}(model)\n    other = {PARALLEL}(other)\n"
    text = migrate(source.replace("\nfor x", f"{second}{both}\nfor x", 1), amp="apex", combine_ddp=True).data.decode()
    assert "if many" not in text and PARALLEL not in text
    assert f"combine_ddp={ASKED}" in text


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (many(behind="model = torch.nn.DataParallel(model)\n"), "replaces DataParallel"),
        (many(behind=f"model = {PARALLEL}(model, find_unused_parameters=True)\n"), "but has no find_unused_parameters"),
        (many(behind=f"model = {PARALLEL}(model, **more)\n"), "but has no **"),
        (many(behind=f"model = {PARALLEL}(model)\nprint(model.module)\n"), "this uses its module"),
        (many(behind=f"model = {PARALLEL}(model)\nwith model.no_sync():\n    pass\n"), "this uses its no_sync"),
        (many(behind=f"model = {PARALLEL}(model)\nbare = getattr(model, 'module')\n"), "uses a part of it"),
        (many(behind=f"models = [1]\nmodels.append({PARALLEL}(model))\n"), "replaces"),
        (many(behind=f"def wrap(m):\n    return {PARALLEL}(m)\n\n\nwrapped = wrap(model)\n"), "replaces"),
    ],
)
def test_combine_ddp_is_refused(source: str, why: str) -> None:
    result = migrate(source, amp="apex", combine_ddp=True)
    assert b"amp" not in result.data
    left = [finding for finding in result.findings if finding.code == "NPU743"]
    assert [why in finding.message for finding in left] == [True], left


def test_combine_ddp_needs_amp_in_any_case() -> None:
    options = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr')\n"
    source = many(behind=f"model = {PARALLEL}(model)\n")
    source = source.replace("model = net", f"{options}args = parser.parse_args()\nmodel = net", 1)
    result = migrate(source, amp="apex", combine_ddp=True, amp_flag=True)
    assert any("without --amp nothing would combine" in finding.message for finding in result.findings)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("FusedSGD(model.parameters(), 0.1, 0.9)", "NpuFusedSGD(model.parameters(), 0.1, 0.9)"),
        ("FusedAdam(model.parameters(), lr=1)", "NpuFusedAdamW(model.parameters(), lr=1, weight_decay=0.0)"),
        ("FusedAdam(model.parameters(), weight_decay=0.1)", "NpuFusedAdamW(model.parameters(), weight_decay=0.1)"),
        ("FusedAdam(model.parameters(), adam_w_mode=False)", "NpuFusedAdam(model.parameters())"),
        (
            "FusedAdam(model.parameters(), set_grad_none=True, bias_correction=True)",
            "NpuFusedAdamW(model.parameters(), weight_decay=0.0)",
        ),
    ],
)
@pattern("P53")
def test_optimizers_of_apex(before: str, after: str) -> None:
    name, new = before.partition("(")[0], after.partition("(")[0]
    source = HEAD.replace("torch.optim.SGD(model.parameters(), lr=0.1)", before)
    source = source.replace("from project", f"from apex.optimizers import {name}\nfrom project")
    text = migrate(source + LOOP, amp="apex").data.decode()
    assert f"optimizer = {after}\n" in text
    assert f"from apex.optimizers import {new}\n" in text and f"import {name}\n" not in text


@pytest.mark.parametrize(
    "call",
    [
        "FusedLAMB(model.parameters())",
        "FusedNovoGrad(model.parameters())",
        "FusedAdam(model.parameters(), bias_correction=False)",
        "FusedAdam(model.parameters(), adam_w_mode=mode)",
        "FusedAdam(model.parameters(), **options)",
        "FusedSGD(model.parameters(), 0.1, wd_after_momentum=True)",
    ],
)
def test_optimizers_of_apex_that_have_no_equal(call: str) -> None:
    source = HEAD.replace("torch.optim.SGD(model.parameters(), lr=0.1)", f"apex.optimizers.{call}")
    source = source.replace("from project", "import apex\nfrom project")
    result = migrate(source + LOOP, amp="apex")
    assert f"apex.optimizers.{call}" in result.data.decode()
    assert any(finding.code == "NPU749" and not finding.applied for finding in result.findings)


def test_layers_of_apex() -> None:
    source = "import torch\nfrom apex.normalization import FusedLayerNorm\n" + HEAD.replace("import torch\n", "")
    text = migrate(source + "norm = FusedLayerNorm(8)\n" + LOOP, amp="apex").data.decode()
    assert "norm = torch.nn.LayerNorm(8)\n" in text and "FusedLayerNorm" not in text
    text = migrate(source + "norm = FusedLayerNorm(8, memory_efficient=True)\n" + LOOP, amp="apex").data.decode()
    assert "norm = FusedLayerNorm(8, memory_efficient=True)\n" in text


def test_layers_that_fall_back_stay() -> None:
    source = """
    try:
        from apex.normalization import FusedLayerNorm as Norm
    except ImportError:
        from torch.nn import LayerNorm as Norm
    """
    text = clean(source) + HEAD + "norm = Norm(8)\n" + LOOP
    assert "as Norm\n" in migrate(text, amp="apex").data.decode()


def test_optimizers_of_torch_on_request() -> None:
    text = migrate(HEAD + LOOP, amp="apex", tune=(("fused-optimizer", ""), ("fused-clip", ""))).data.decode()
    assert "from apex.optimizers import NpuFusedSGD\n" in text
    assert "optimizer = NpuFusedSGD(model.parameters(), lr=0.1)\n" in text
    assert "torch_npu.optim" not in text


def test_none_ahead_of_a_main_guard_makes_nothing() -> None:
    source = """
    import torch
    from project import net, loader

    model = None
    optimizer = None


    def train():
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).mean()
            loss.backward()
            optimizer.step()


    if __name__ == "__main__":
        model = net().to("npu")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train()
    """
    text = migrate(source, amp="apex").data.decode()
    assert "    model, optimizer = amp.initialize(" in text and "with amp.scale_loss(loss, optimizer)" in text


def test_a_module_of_the_name_of_the_model_makes_it() -> None:
    source = """
    import torch
    import model
    from project import loader

    model = model.Net().to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
    """
    files = {"model.py": "from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n"}
    result = migrate(source, amp="apex", files=files)
    assert "amp.initialize(" in result.data.decode()
