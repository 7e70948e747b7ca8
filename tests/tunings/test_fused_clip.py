"""NPU751: clipping by the optimizer that holds all parameters of the model."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate
from tests.tunings.tuned import check_tuned, check_untuned

TUNE = "fused-optimizer,fused-clip"


def program(imports: str, made: str, clip: str) -> str:
    return (
        f"import torch\n{imports}from torch import nn\n\nmodel = nn.Linear(2, 2).cuda()\n"
        f"optimizer = {made}\nfor x in batches:\n    optimizer.zero_grad()\n    model(x.cuda()).sum().backward()\n"
        f"    {clip}\n    optimizer.step()\n"
    )


def tuned(made: str, clip: str, imports: str = "") -> str:
    text = program("import torch_npu  # noqa: F401\n" + imports, f"torch_npu.optim.NpuFused{made}", clip)
    return text.replace(".cuda()", ".npu()")


ADAM = "Adam(model.parameters())"


@pytest.mark.parametrize(
    ("clip", "after"),
    [
        ("nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "optimizer.clip_grad_norm_fused_(1.0)"),
        ("norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "norm = optimizer.clip_grad_norm_fused_(1.0)"),
        ("nn.utils.clip_grad_norm_(model.parameters(), max_norm=c)", "optimizer.clip_grad_norm_fused_(max_norm=c)"),
        ("nn.utils.clip_grad_norm_(model.parameters(), 1, 'inf')", "optimizer.clip_grad_norm_fused_(1, 'inf')"),
        (
            "nn.utils.clip_grad_norm_(model.parameters(), 1, error_if_nonfinite=False, foreach=True)",
            "optimizer.clip_grad_norm_fused_(1)",
        ),
        (
            "nn.utils.clip_grad_norm_(max_norm=1, parameters=model.parameters())",
            "optimizer.clip_grad_norm_fused_(max_norm=1)",
        ),
    ],
)
def test_arguments(clip: str, after: str) -> None:
    check_tuned(TUNE, program("", f"torch.optim.{ADAM}", clip), tuned(ADAM, after))


@pytest.mark.parametrize(
    ("made", "clip"),
    [
        (ADAM, "nn.utils.clip_grad_norm_(model.fc.parameters(), 1.0)"),
        (ADAM, "nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)"),
        (ADAM, "nn.utils.clip_grad_norm_(some, 1.0)"),
        (ADAM, "nn.utils.clip_grad_norm_(*arguments)"),
        (ADAM, "nn.utils.clip_grad_value_(model.parameters(), 1.0)"),
        ("SGD([{'params': model.parameters()}], lr=0.1)", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
        ("Adam(model.fc.parameters())", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
    ],
)
def test_another_set_of_parameters_is_clipped_as_before(made: str, clip: str) -> None:
    check_tuned(TUNE, program("", f"torch.optim.{made}", clip), tuned(made, clip))


def test_the_import_goes_and_unscale_stays() -> None:
    check_tuned(
        TUNE,
        """
        import torch
        from torch.nn.utils import clip_grad_norm_


        def one_pass(net, opt, scaler, batches):
            for x in batches:
                opt.zero_grad()
                scaler.scale(net(x.cuda()).sum()).backward()
                scaler.unscale_(opt)
                clip_grad_norm_(net.parameters(), 1.0)
                scaler.step(opt)
                scaler.update()


        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
        optimizer = torch.optim.AdamW(model.parameters())
        one_pass(model, optimizer, scaler, [])
        """,
        """
        import torch
        import torch_npu  # noqa: F401


        def one_pass(net, opt, scaler, batches):
            for x in batches:
                opt.zero_grad()
                scaler.scale(net(x.npu()).sum()).backward()
                scaler.unscale_(opt)
                opt.clip_grad_norm_fused_(1.0)
                scaler.step(opt)
                scaler.update()


        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).npu())
        optimizer = torch_npu.optim.NpuFusedAdamW(model.parameters())
        one_pass(model, optimizer, scaler, [])
        """,
    )


def test_an_optimizer_that_is_fused_already() -> None:
    check_tuned(
        "fused-clip",
        tuned(ADAM, "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
        tuned(ADAM, "optimizer.clip_grad_norm_fused_(1.0)"),
    )


@pytest.mark.parametrize("tune", ["fused-clip"])
def test_alone_it_leaves_other_optimizers(tune: str) -> None:
    source = program("", f"torch.optim.{ADAM}", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)")
    check_untuned(tune, source.replace(".cuda()", ".to(device)"))


@pytest.mark.parametrize(
    ("made", "there"),
    [
        ("if x:\n    optimizer = {}\n", False),
        ("optimizer = None\nif x:\n    optimizer = {}\n", False),
        ("if x:\n    optimizer = {}\nelse:\n    optimizer = {}\n", True),
        ("if x:\n    optimizer = {}\nelse:\n    raise ValueError(x)\n", True),
        ("with x:\n    optimizer = {}\n", True),
    ],
)
def test_an_optimizer_that_may_be_missing_clips_nothing(made: str, there: bool) -> None:
    """Where the gradients are clipped in any case, and the weights then changed by hand perhaps."""
    clip = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    source = program("", f"torch.optim.{ADAM}", clip)
    line = next(line for line in source.splitlines(keepends=True) if line.startswith("optimizer ="))
    source = source.replace(line, made.format(*[f"torch.optim.{ADAM}"] * 2))
    text = migrate(source, tune=(("fused-optimizer", ""), ("fused-clip", ""))).data.decode()
    assert ("clip_grad_norm_fused_" in text) is there


def test_a_model_that_a_function_gets_twice_is_one() -> None:
    source = """\
        import torch
        from torch import nn


        def train(model):
            optimizer = {0}(model.parameters())
            for x in batches:
                optimizer.zero_grad()
                model(x.cuda()).sum().backward()
                {1}
                optimizer.step()


        net = nn.Linear(2, 2).cuda()
        train(net)
        train(net)
        """
    before = source.format("torch.optim.Adam", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)")
    result = migrate(textwrap.dedent(before), tune=(("fused-optimizer", ""), ("fused-clip", "")))
    assert b"        optimizer.clip_grad_norm_fused_(1.0)\n" in result.data
