"""What Ascend apex documents, on the emulated device. Each section is one way of use; the arguments name them."""

import copy
import os
import sys

import torch
import torch._dynamo  # the first step of an optimizer imports it
import torch_npu  # noqa: F401
from apex import amp
from apex.optimizers import NpuFusedAdamW, NpuFusedSGD

section, *others = sys.argv[1:]
for each in (section, *others) if others else ():  # each in a process of its own, which need not import torch anew
    if not (child := os.fork()):
        section = each
        break
    os.waitpid(child, 0)
else:
    if others:
        raise SystemExit
torch.manual_seed(0)
X, Y = torch.randn(64, 8), torch.randn(64, 1)


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    ).npu()


def raises(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"did not raise {kind.__name__}: {text}")


def step(model, optimizer, x=X, y=Y):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x.npu()), y.npu())
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    return loss.item()


def scale():
    return amp.state_dict()["loss_scaler0"]["loss_scale"]


def plain_losses(steps=50):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(X.npu()), Y.npu())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def fused_sgd(model):
    return NpuFusedSGD(model.parameters(), lr=0.05, momentum=0.9)


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def train(level, make=sgd, **options):
    model = network()
    model, optimizer = amp.initialize(model, make(model), opt_level=level, verbosity=0, **options)
    return model, optimizer, [step(model, optimizer) for _ in range(50)]


def close(losses):
    wanted = plain_losses()
    assert wanted[-1] < 0.5 * wanted[0]
    assert all(abs(a - b) < 0.02 * wanted[0] for a, b in zip(losses, wanted, strict=True)), (losses, wanted)


if section == "o1":
    seen = []
    model, optimizer, losses = train("O1")
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    model[0].register_forward_hook(lambda module, args, out: seen.append(out.dtype))
    out = model(X.npu())
    assert seen == [torch.float16] and out.dtype == torch.float16
    assert torch.softmax(out, 1).dtype == torch.float32
    with amp.disable_casts():
        assert model(X.npu()).dtype == torch.float32
    chance, target = torch.sigmoid(out.float()), torch.ones_like(out, dtype=torch.float32)
    assert torch.nn.BCELoss()(chance, target).dtype == torch.float32
    for given in ((chance.half(), target), (chance, target.half())):
        raises(RuntimeError, "unsafe to autocast", lambda given=given: torch.nn.BCELoss()(*given))
    with torch.autocast("npu", enabled=False):
        close(losses)
    assert list(amp.master_params(optimizer)) == list(model.parameters())
elif section == "o2":
    for make, options in ((sgd, {}), (sgd, {"combine_grad": True}), (fused_sgd, {"combine_grad": True})):
        model, optimizer, losses = train("O2", make, **options)
        close(losses)
        kinds = {name: p.dtype for name, p in model.named_parameters()}
        assert kinds["0.weight"] == kinds["3.bias"] == torch.float16
        assert kinds["1.weight"] == torch.float32 and model[1].running_mean.dtype == torch.float32
        assert model(X.npu()).dtype == torch.float32
        masters = list(amp.master_params(optimizer))
        assert {p.dtype for p in masters} == {torch.float32}
        assert all(torch.equal(m.half(), p.half()) for m, p in zip(masters, model.parameters(), strict=True))
        assert not torch.equal(masters[0], masters[0].half().float())
        assert {v.dtype for v in model.state_dict().values() if v.is_floating_point()} == {torch.float32}
        raises(TypeError, "set_to_none", lambda o=optimizer: o.zero_grad(set_to_none=True))
        raises(RuntimeError, "closures", lambda o=optimizer: o.step(lambda: None))
elif section == "overflow":
    for level in ("O1", "O2"):
        model = network()
        model, optimizer = amp.initialize(model, sgd(model), opt_level=level)
        step(model, optimizer)
        before = [p.detach().clone() for p in model.parameters()]
        step(model, optimizer, y=Y * 1e20)
        assert scale() == 2.0**15
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
        step(model, optimizer)
        assert scale() == 2.0**15 and amp.state_dict()["loss_scaler0"]["unskipped"] == 1
        assert not torch.equal(before[0], next(model.parameters()))
        model = network()
        model, optimizer = amp.initialize(
            model, sgd(model), opt_level=level, verbosity=0, dynamic_init_scale=8, scale_window=3,
            scale_growth_factor=4, scale_backoff_factor=0.25, min_loss_scale=4, max_loss_scale=100,
        )  # fmt: skip
        seen = []
        for index in range(8):
            step(model, optimizer, y=Y * (1e20 if index == 7 else 1))
            seen.append(scale())
        assert seen == [8, 8, 32, 32, 32, 100, 100, 25], seen
        step(model, optimizer, y=Y * 1e20)
        step(model, optimizer, y=Y * 1e20)
        assert scale() == 4
        model = network()
        model, optimizer = amp.initialize(model, sgd(model), opt_level=level, loss_scale=128, verbosity=0)
        step(model, optimizer, y=Y * 1e20)
        assert scale() == 128 and not all(torch.isfinite(p).all() for p in model.parameters())
elif section == "accumulation":
    for level in ("O1", "O2"):
        for combine in (None, True):
            whole, parts, delayed = network(), network(), network()
            whole, first = amp.initialize(whole, sgd(whole), opt_level=level, verbosity=0, combine_grad=combine)
            gradients = []
            for model, optimizer, delay in ((whole, first, None), (parts, None, False), (delayed, None, True)):
                for module in model.modules():
                    module.training = False  # statistics of a batch are not those of its halves
                if optimizer is None:
                    model, optimizer = amp.initialize(
                        model, sgd(model), opt_level=level, verbosity=0, combine_grad=combine
                    )
                pieces = [(X, Y, 1)] if delay is None else [(X[:32], Y[:32], 2), (X[32:], Y[32:], 2)]
                optimizer.zero_grad()
                for index, (x, y, share) in enumerate(pieces):
                    loss = torch.nn.functional.mse_loss(model(x.npu()), y.npu()) / share
                    last = index == len(pieces) - 1
                    with amp.scale_loss(loss, optimizer, delay_unscale=bool(delay) and not last) as scaled:
                        scaled.backward()
                gradients.append([p.grad.float() for p in amp.master_params(optimizer)])
            for others in gradients[1:]:
                for a, b in zip(gradients[0], others, strict=True):
                    torch.testing.assert_close(a.cpu(), b.cpu(), rtol=2e-2, atol=2e-3)
elif section == "losses":
    first, second = network(), network()
    both = [sgd(first), torch.optim.SGD(second.parameters(), lr=0.1)]
    [first, second], [a, b] = amp.initialize([first, second], both, opt_level="O1", num_losses=2, verbosity=0)
    for index, (model, optimizer) in enumerate(((first, a), (second, b))):
        loss = torch.nn.functional.mse_loss(model(X.npu()), Y.npu() * (1e20 if index else 1))
        with amp.scale_loss(loss, optimizer, loss_id=index) as scaled:
            scaled.backward()
    before = [next(m.parameters()).detach().clone() for m in (first, second)]
    a.step()
    b.step()
    assert not torch.equal(before[0], next(first.parameters()))
    assert torch.equal(before[1], next(second.parameters()))
    assert [s["loss_scale"] for s in amp.state_dict().values()] == [2.0**16, 2.0**15]
    amp.load_state_dict({"loss_scaler1": {"loss_scale": 64.0, "unskipped": 7}})
    assert amp.state_dict()["loss_scaler1"] == {"loss_scale": 64.0, "unskipped": 7}
    raises(RuntimeError, "unexpected key", lambda: amp.load_state_dict({"loss_scaler2": {}}))
    amp.load_state_dict({"loss_scaler0": {"loss_scale": 64.0, "unskipped": 0}})
    # one loss whose gradients belong to two optimizers
    a.zero_grad()
    b.zero_grad()
    loss = torch.nn.functional.mse_loss(first(X.npu()) + second(X.npu()), Y.npu())
    with amp.scale_loss(loss, [a, b]) as scaled:
        scaled.backward()
    assert all(torch.isfinite(p.grad).all() for p in [*first.parameters(), *second.parameters()])
elif section == "resume":
    for level in ("O1", "O2"):
        model, optimizer, losses = train(level)
        saved = copy.deepcopy([model.state_dict(), optimizer.state_dict(), amp.state_dict()])
        on = [step(model, optimizer) for _ in range(5)]
        other = network()
        other, again = amp.initialize(other, sgd(other), opt_level=level, verbosity=0, dynamic_init_scale=4)
        other.load_state_dict(saved[0])
        again.load_state_dict(saved[1])
        amp.load_state_dict(saved[2])
        assert scale() == 2.0**16 and amp.state_dict()["loss_scaler0"]["unskipped"] == 50
        resumed = [step(other, again) for _ in range(5)]
        assert all(abs(a - b) < (1e-6 if level == "O1" else 0.01) for a, b in zip(on, resumed, strict=True))
elif section == "off":
    model = network()
    optimizer = sgd(model)
    same, other = amp.initialize(model, optimizer, enabled=False, opt_level="O2")
    assert same is model and other is optimizer and not hasattr(optimizer, "_amp_stash")
    loss = model(X.npu()).mean()
    with amp.scale_loss(loss, optimizer) as scaled:
        assert scaled is loss
    assert list(amp.master_params(optimizer)) == list(model.parameters())
    raises(AttributeError, "enabled=True", amp.state_dict)
    raises(AttributeError, "opt_level O1", lambda: amp.disable_casts().__enter__())
    assert [step(model, optimizer) for _ in range(3)] == plain_losses(3)
elif section == "refused":
    model = network()
    loss = model(X.npu()).mean()
    raises(RuntimeError, "comes before", lambda: amp.scale_loss(loss, sgd(model)).__enter__())
    raises(RuntimeError, "parallel wrappers", lambda: amp.initialize(torch.nn.DataParallel(model), sgd(model)))
    raises(RuntimeError, "on the npu", lambda: amp.initialize(torch.nn.Linear(1, 1), sgd(model)))
    raises(RuntimeError, "float32 models", lambda: amp.initialize(torch.nn.Linear(1, 1).npu().half(), sgd(model)))
    raises(RuntimeError, "O0, O1, O2 or O3", lambda: amp.initialize(model, sgd(model), opt_level="02"))
    raises(RuntimeError, "O1 and O2", lambda: amp.initialize(model, sgd(model), opt_level="O3", combine_grad=True))
    raises(RuntimeError, "combine_grad=True", lambda: amp.initialize(model, sgd(model), combine_ddp=True))
    raises(RuntimeError, "O1", lambda: amp.initialize(model, sgd(model), opt_level="O1", master_weights=True))
    raises(TypeError, "list of them", lambda: amp.initialize(model, (sgd(model),)))
    fused = NpuFusedAdamW(model.parameters())
    raises(RuntimeError, "O1 or O2", lambda: amp.initialize(model, fused, opt_level="O0", verbosity=0))
    model.zero_grad()
    model(X.npu()).mean().backward()
    raises(RuntimeError, "amp.initialize", fused.step)
    model, optimizer = amp.initialize(network(), sgd(network()), verbosity=0)
    raises(RuntimeError, "only once", lambda: amp.initialize(network(), optimizer, verbosity=0))
elif section == "clip":
    for make in (sgd, lambda m: NpuFusedAdamW(m.parameters(), lr=0.01)):
        model = network()
        model, optimizer = amp.initialize(model, make(model), opt_level="O2", combine_grad=True, verbosity=0)
        step(model, optimizer)
        loss = torch.nn.functional.mse_loss(model(X.npu()), Y.npu())
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        raw = model[0].weight.grad.abs().max()
        assert raw > 100 * next(amp.master_params(optimizer)).grad.abs().max()  # those of the model stay scaled
        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 0.01)
        total = torch.stack([p.grad.norm() for p in amp.master_params(optimizer)]).norm()
        assert abs(float(total) - 0.01) < 1e-4
        optimizer.clip_optimizer_grad_norm_fused(0.001)
        total = torch.stack([p.grad.norm() for p in amp.master_params(optimizer)]).norm()
        assert abs(float(total) - 0.001) < 1e-5
    raises(AssertionError, "set_to_none", lambda: model.zero_grad(set_to_none=True))
elif section == "ranks":
    import torch.distributed as dist

    dist.init_process_group("hccl")
    rank = dist.get_rank()
    torch.npu.set_device(rank)
    for level in ("O1", "O2"):
        torch.manual_seed(rank)
        model = torch.nn.Linear(8, 1).npu()
        model, optimizer = amp.initialize(
            model, fused_sgd(model), opt_level=level, loss_scale=128, combine_grad=True, combine_ddp=True, verbosity=0
        )
        weights = [torch.zeros_like(model.weight) for _ in range(2)]
        dist.all_gather(weights, model.weight.detach())
        assert torch.equal(*weights)
        for _ in range(10):
            step(model, optimizer, X[rank * 32 : rank * 32 + 32], Y[rank * 32 : rank * 32 + 32])
        dist.all_gather(weights, model.weight.detach())
        assert torch.equal(*weights)
        alone = torch.nn.Linear(8, 1).npu()
        torch.manual_seed(0)
        alone.load_state_dict(torch.nn.Linear(8, 1).state_dict())
        plain = sgd(alone)
        for _ in range(10):
            plain.zero_grad()
            with torch.autocast("npu", enabled=False):
                torch.nn.functional.mse_loss(alone(X.npu()), Y.npu()).backward()
            plain.step()
        torch.testing.assert_close(alone.weight.cpu(), model.weight.float().cpu(), rtol=0.02, atol=0.005)
    dist.destroy_process_group()
else:
    raise SystemExit(f"no section {section}")
print(f"{section} ok\n", end="", flush=True)  # in one piece: ranks write to one stream
