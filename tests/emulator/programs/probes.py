"""Behaviours of the npu device. usage: probes.py [probe ...]  (named probes print their traceback)"""

import copy
import io
import os
import sys
import tempfile
import traceback

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch_npu

D = "npu"
P = []


def probe(f):
    P.append(f)
    return f


def raises(fn, *txt, exc=Exception):
    try:
        fn()
    except exc as e:
        m = f"{type(e).__name__}: {e}"
        assert any(t in m for t in txt) or not txt, "wrong message: " + m[:200]
        return m.split("\n")[0][:120]
    raise AssertionError("did not raise")


def close(a, b, tol=1e-5):
    a, b = a.detach().cpu().float(), b.detach().cpu().float()
    assert a.shape == b.shape, (a.shape, b.shape)
    assert torch.allclose(a, b, atol=tol, rtol=tol), (a - b).abs().max().item()


def npu(t):
    assert t.device.type == "npu", t.device
    return t


@probe
def create_strings():
    for d in ("npu", "npu:0", torch.device("npu"), torch.device("npu:0"), torch.device("npu", 0)):
        for f in (torch.randn, torch.zeros, torch.ones, torch.empty, torch.rand):
            npu(f(2, 3, device=d))
        npu(torch.tensor([1, 2], device=d))
        npu(torch.arange(4, device=d))
        npu(torch.full((2,), 3.0, device=d))
        npu(torch.eye(3, device=d))
        npu(torch.linspace(0, 1, 5, device=d))
        npu(torch.randint(0, 9, (3,), device=d))
        npu(torch.randperm(5, device=d))
        npu(torch.as_tensor([1.0, 2], device=d))


@probe
def create_int_device():
    npu(torch.zeros(2, device=0))


@probe
def like_and_new():
    x = torch.randn(2, 3, device=D)
    for f in (torch.zeros_like, torch.ones_like, torch.randn_like, torch.rand_like, torch.empty_like):
        npu(f(x))
    npu(x.new_zeros(2))
    npu(x.new_tensor([1.0]))
    npu(x.new_full((2,), 1.0))
    npu(x.new_empty(3))
    npu(torch.full_like(x, 2))


@probe
def transfers():
    c = torch.randn(2, 3)
    x = c.to("npu:0")
    npu(x)
    close(x, c)
    npu(c.npu())
    npu(c.npu(0))
    assert x.cpu().device.type == "cpu"
    assert x.to("npu:0") is x
    npu(c.to(x))
    npu(c.to(device="npu", dtype=torch.float16))
    npu(c.npu(non_blocking=True))
    assert x.is_npu and not c.is_npu
    assert c.to(torch.device("npu:0"), non_blocking=True).device == torch.device("npu:0")
    assert x.to("cpu").device.type == "cpu"
    npu(x.float())
    npu(x.half())
    npu(x.long())
    npu(x.type(torch.int32))


@probe
def plain_tensor_type():
    assert type(torch.randn(2, device=D)) is torch.Tensor
    assert type(nn.Linear(2, 2).npu().weight) is nn.Parameter


@probe
def second_device():
    x = torch.ones(2, device="npu:1")
    assert x.device.index == 1
    m = nn.Linear(2, 2).to("npu:1")
    m(x).sum().backward()
    assert m.weight.grad.device.index == 1
    raises(lambda: x + torch.ones(2, device="npu:0"), "same device")


@probe
def set_device():
    torch.npu.set_device(1)
    try:
        assert torch.npu.current_device() == 1
        assert torch.ones(2).npu().device.index == 1
        assert torch.ones(2).npu().new_tensor([1.0]).device.index == 1
        assert torch.ones(2).to("npu").device.index == 1
        assert torch.zeros(2, device="npu").device.index == 1
        assert torch.tensor([1], device="npu").device.index == 1
        with torch.npu.device(2):
            assert torch.zeros(2, device="npu").device.index == 2
    finally:
        torch.npu.set_device(0)


@probe
def mismatch_add():
    return raises(lambda: torch.randn(2, 3, device=D) + torch.randn(2, 3), "same device")


@probe
def mismatch_mm():
    return raises(lambda: torch.randn(2, 3, device=D) @ torch.randn(3, 2), "same device")


@probe
def mismatch_linear():
    return raises(lambda: nn.Linear(3, 2).npu()(torch.randn(4, 3)), "same device")


@probe
def mismatch_linear2():
    return raises(lambda: nn.Linear(3, 2)(torch.randn(4, 3).npu()), "same device")


@probe
def mismatch_conv():
    return raises(lambda: nn.Conv2d(3, 2, 3).npu()(torch.randn(4, 3, 8, 8)), "same device", "should be the same")


@probe
def mismatch_conv2():
    return raises(lambda: nn.Conv2d(3, 2, 3)(torch.randn(4, 3, 8, 8).npu()), "same device", "should be the same")


@probe
def mismatch_ce():
    return raises(lambda: F.cross_entropy(torch.randn(4, 3).npu(), torch.tensor([0, 1, 2, 0])), "same device")


@probe
def mismatch_embedding():
    return raises(lambda: nn.Embedding(4, 3).npu()(torch.tensor([0, 1])), "same device")


@probe
def mismatch_cat():
    return raises(lambda: torch.cat([torch.randn(2).npu(), torch.randn(2)]), "same device")


@probe
def mismatch_stack():
    return raises(lambda: torch.stack([torch.randn(2), torch.randn(2).npu()]), "same device")


@probe
def mismatch_inplace():
    return raises(lambda: torch.randn(2).add_(torch.randn(2).npu()), "same device")


@probe
def mismatch_bn():
    return raises(lambda: nn.BatchNorm1d(3).npu()(torch.randn(4, 3)), "same device")


@probe
def mismatch_lstm():
    return raises(lambda: nn.LSTM(3, 4).npu()(torch.randn(5, 2, 3)), "same device")


@probe
def mismatch_gather():
    return raises(lambda: torch.randn(3, 3).npu().gather(1, torch.zeros(3, 1, dtype=torch.long)), "same device")


@probe
def mismatch_where():
    return raises(
        lambda: torch.where(torch.ones(3, dtype=torch.bool), torch.randn(3).npu(), torch.randn(3).npu()), "same device"
    )


@probe
def scalar_cpu_mix():
    x = torch.randn(2, 3, device=D)
    npu(x * torch.tensor(2.0))
    npu(torch.tensor(2.0) * x)
    npu(x + 1)
    x.add_(torch.tensor(1.0))
    npu(torch.where(x > 0, x, torch.tensor(0.0)))


@probe
def numpy_error():
    return raises(lambda: torch.randn(2).npu().numpy(), "can't convert", exc=TypeError)


@probe
def np_asarray_error():
    import numpy as np

    return raises(lambda: np.asarray(torch.randn(2).npu()), "can't convert", exc=TypeError)


@probe
def from_numpy():
    import numpy as np

    close(torch.from_numpy(np.ones((2, 2), dtype=np.float32)).npu(), torch.ones(2, 2))


@probe
def item_tolist():
    assert torch.tensor(3.5).npu().item() == 3.5
    assert torch.tensor([1, 2]).npu().tolist() == [1, 2]
    assert float(torch.ones(()).npu()) == 1.0
    assert bool(torch.ones(1).npu() > 0)
    assert int(torch.tensor(4, device=D)) == 4
    assert len(torch.ones(3).npu()) == 3
    assert [int(v) for v in torch.arange(3).npu()] == [0, 1, 2]


@probe
def printing():
    s = repr(torch.ones(2, 2, device=D))
    assert "device='npu:0'" in s and "1., 1." in s, s
    str(torch.randn(2000).npu())
    str(nn.Linear(2, 2).npu().weight)
    f"{torch.ones(()).npu():.2f}"
    return s.replace("\n", " ")


@probe
def views_inplace():
    x = torch.zeros(4, 4, device=D)
    x[0] = 1
    x[:, 1].fill_(2)
    x.view(-1)[3] = 9
    x.t()[2, 0] = 7
    x[1:3, 1:3] += 5
    x.transpose(0, 1).mul_(2)
    c = torch.zeros(4, 4)
    c[0] = 1
    c[:, 1].fill_(2)
    c.view(-1)[3] = 9
    c.t()[2, 0] = 7
    c[1:3, 1:3] += 5
    c.transpose(0, 1).mul_(2)
    close(x, c)
    assert x.view(-1).data_ptr() == x.data_ptr()
    assert x[1]._is_view() and x[1]._base is x
    y = torch.arange(6.0, device=D)
    y.unsqueeze_(0)
    assert y.shape == (1, 6)
    y.squeeze_()
    y.resize_(2, 2)
    assert y.shape == (2, 2)
    y.resize_(5, 5)
    assert y.shape == (5, 5)
    z = torch.ones(2, 3).npu()
    z.t_()
    assert z.shape == (3, 2)
    z.transpose_(0, 1)
    assert z.shape == (2, 3)


@probe
def copy_():
    x = torch.zeros(3, device=D)
    x.copy_(torch.arange(3.0))
    close(x, torch.arange(3.0))
    c = torch.zeros(3)
    c.copy_(x)
    close(c, x)
    x.copy_(torch.arange(3).npu())
    x[:] = torch.tensor([5.0, 6, 7])
    close(x, torch.tensor([5.0, 6, 7]))


@probe
def indexing():
    x = torch.randn(5, 4, device=D)
    c = x.cpu()
    i = torch.tensor([0, 2])
    close(x[i], c[i])
    close(x[i.npu()], c[i])
    close(x[x > 0], c[c > 0])
    close(x[:, i.npu()], c[:, i])
    x[i] = 0.0
    x[x < 0] = 1.0
    close(x[..., -1], x.cpu()[..., -1])
    x[i.npu(), 1] = torch.tensor([3.0, 4.0], device=D)
    close(x.index_select(0, i.npu()), x.cpu()[i])
    close(x.masked_fill(x > 1, 0), x.cpu().masked_fill(x.cpu() > 1, 0))
    close(x.gather(1, torch.zeros(5, 1, dtype=torch.long).npu()), x.cpu()[:, :1])
    x.scatter_(1, torch.zeros(5, 1, dtype=torch.long).npu(), 7.0)
    close(torch.nonzero(x).float(), torch.nonzero(x.cpu()).float())
    close(x.topk(2)[0], x.cpu().topk(2)[0])
    close(torch.sort(x, 1)[0], torch.sort(x.cpu(), 1)[0])
    close(x.max(1)[0], x.cpu().max(1)[0])
    assert (x.argmax(1).cpu() == x.cpu().argmax(1)).all()
    torch.unique(x)


@probe
def cpu_index_by_npu():
    return raises(lambda: torch.randn(3)[torch.tensor([0]).npu()], "indices should be", "same device", "device")


@probe
def out_variant():
    o = torch.empty(0, device=D)
    torch.add(torch.ones(3).npu(), torch.ones(3).npu(), out=o)
    close(o, torch.full((3,), 2.0))
    o2 = torch.empty(3, device=D)
    torch.mul(o, o, out=o2)
    close(o2, torch.full((3,), 4.0))
    raises(lambda: torch.add(torch.ones(3).npu(), 1, out=torch.empty(3)), "device")


@probe
def autograd_basic():
    w = torch.randn(3, 3)
    a = w.clone().npu().requires_grad_()
    b = w.clone().requires_grad_()
    for t in (a, b):
        ((t @ t).tanh().pow(2).sum() + t.exp().mean()).backward()
    close(a.grad, b.grad)
    npu(a.grad)
    assert a.is_leaf


@probe
def autograd_double():
    x = torch.randn(3, device=D, requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    close(gg, 6 * x)


@probe
def autograd_hooks_function():
    class Sq(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = torch.randn(3, device=D, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.device.type))
    y = Sq.apply(x)
    y.sum().backward()
    close(x.grad, 2 * x)
    assert seen == ["npu"]


@probe
def autograd_inplace_view():
    x = torch.randn(4, device=D, requires_grad=True)
    y = x * 2
    y[:2] = 0
    y.sum().backward()
    close(x.grad, torch.tensor([0.0, 0, 2, 2]))
    z = torch.randn(3, device=D, requires_grad=True)
    e = z.exp()
    e.add_(1)
    raises(lambda: e.sum().backward(), "modified by an inplace")


@probe
def autograd_thread():
    import threading

    err = []

    def f():
        try:
            x = torch.randn(3, device="npu:0", requires_grad=True)
            (x * x).sum().backward()
        except Exception as e:
            err.append(e)

    t = threading.Thread(target=f)
    t.start()
    t.join()
    assert not err, err


@probe
def module_to_identity():
    m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    p = list(m.parameters())
    assert m.to("npu:0") is m
    assert all(a is b for a, b in zip(p, m.parameters(), strict=False))
    npu(m[1].running_mean)
    assert all(q.device.type == "npu" for q in opt.param_groups[0]["params"])
    m.npu()
    m.cpu()
    assert m[0].weight.device.type == "cpu"
    m.to(torch.device("npu"), torch.float16)
    assert m[0].weight.dtype == torch.float16
    npu(m[0].weight)


@probe
def state_dict_io():
    m = nn.Linear(3, 4).npu()
    b = io.BytesIO()
    torch.save(m.state_dict(), b)
    b.seek(0)
    s = torch.load(b)
    npu(s["weight"])
    close(s["weight"], m.weight)
    b.seek(0)
    s = torch.load(b, map_location="cpu")
    assert s["weight"].device.type == "cpu"
    b.seek(0)
    s = torch.load(b, map_location={"npu:0": "npu:1"})
    assert s["weight"].device.index == 1
    b.seek(0)
    s = torch.load(b, map_location=lambda st, loc: st)
    assert s["weight"].device.type == "cpu"
    c = io.BytesIO()
    torch.save(nn.Linear(3, 4).state_dict(), c)
    c.seek(0)
    s = torch.load(c, map_location="npu:0")
    npu(s["weight"])
    m.load_state_dict(s)
    c.seek(0)
    s = torch.load(c, map_location=torch.device("npu"))
    npu(s["weight"])
    m2 = nn.Linear(3, 4)
    m2.load_state_dict(m.state_dict())
    close(m2.weight, m.weight)


@probe
def save_whole_module():
    m = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).npu()
    f = os.path.join(tempfile.mkdtemp(), "m.pt")
    torch.save(m, f)
    m2 = torch.load(f, weights_only=False)
    npu(m2[0].weight)
    close(m2[0].weight, m[0].weight)
    x = torch.randn(2, 3).npu()
    m.eval()
    m2.eval()
    close(m(x), m2(x))
    torch.save({"opt": torch.optim.Adam(m.parameters()).state_dict(), "w": [m[0].weight, m[0].weight]}, f)
    torch.load(f)


@probe
def load_cuda_checkpoint():
    b = io.BytesIO()
    torch.save({"w": torch.ones(2)}, b)
    raw = b.getvalue()
    return raises(lambda: torch.load(io.BytesIO(raw), map_location="cuda:0"), "CUDA")


@probe
def deepcopy_clone():
    x = torch.randn(3, device=D)
    y = copy.deepcopy(x)
    npu(y)
    assert y.data_ptr() != x.data_ptr()
    npu(x.clone())
    m = copy.deepcopy(nn.LSTM(2, 3).npu())
    npu(m.weight_ih_l0)
    npu(x.detach())
    npu(x.data)
    assert x.detach().data_ptr() == x.data_ptr()
    p = copy.deepcopy(nn.Linear(2, 2).npu())
    assert isinstance(p.weight, nn.Parameter)


@probe
def pickle_tensor():
    import pickle

    npu(pickle.loads(pickle.dumps(torch.ones(2).npu())))


def _train(optf, dev, steps=4, **kw):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x = torch.randn(6, 4)
    t = torch.tensor([0, 1, 0, 1, 1, 0])
    m, x, t = m.to(dev), x.to(dev), t.to(dev)
    o = optf(m.parameters(), **kw)
    for _ in range(steps):
        o.zero_grad()
        loss = F.cross_entropy(m(x), t)
        loss.backward()
        o.step()
    return loss, o


for _n, _o, _k in (
    ("sgd", torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    ("adam", torch.optim.Adam, {"lr": 0.1}),
    ("adam_foreach", torch.optim.Adam, {"lr": 0.1, "foreach": True}),
    ("adam_noforeach", torch.optim.Adam, {"lr": 0.1, "foreach": False}),
    ("adam_fused", torch.optim.Adam, {"lr": 0.1, "fused": True}),
    ("adamw", torch.optim.AdamW, {"lr": 0.1}),
    ("adadelta", torch.optim.Adadelta, {}),
    ("rmsprop", torch.optim.RMSprop, {}),
    ("adagrad", torch.optim.Adagrad, {}),
):

    def f(_o=_o, _k=_k):
        a, o = _train(_o, "npu:0", **_k)
        b, _ = _train(_o, "cpu", **_k)
        close(a, b, 1e-4)
        npu(a)
        o.load_state_dict(o.state_dict())

    f.__name__ = "optim_" + _n
    P.append(f)


@probe
def optim_lbfgs():
    m = nn.Linear(2, 1).npu()
    o = torch.optim.LBFGS(m.parameters(), lr=0.5)
    x = torch.randn(8, 2).npu()

    def c():
        o.zero_grad()
        loss = (m(x) ** 2).mean()
        loss.backward()
        return loss

    o.step(c)
    o.step(c)


@probe
def clip_grad_sched():
    m = nn.Linear(2, 1).npu()
    o = torch.optim.SGD(m.parameters(), 0.1)
    s = torch.optim.lr_scheduler.StepLR(o, 1)
    m(torch.randn(2, 2).npu()).sum().backward()
    npu(nn.utils.clip_grad_norm_(m.parameters(), 1.0))
    nn.utils.clip_grad_value_(m.parameters(), 1.0)
    o.step()
    s.step()


@probe
def autocast_npu():
    m = nn.Linear(3, 4).npu()
    x = torch.randn(2, 3).npu()
    with torch.autocast("npu"):
        assert m(x).dtype == torch.float16
        assert m(x).softmax(-1).dtype == torch.float32
    with torch.autocast(device_type="npu", dtype=torch.bfloat16):
        y = m(x)
        assert y.dtype == torch.bfloat16
        loss = F.cross_entropy(y, torch.tensor([0, 1]).npu())
        assert loss.dtype == torch.float32
    loss.backward()
    assert m.weight.grad.dtype == torch.float32
    assert m(x).dtype == torch.float32
    with torch.npu.amp.autocast(enabled=False):
        assert m(x).dtype == torch.float32
    with torch.amp.autocast("npu"):
        assert (x @ x.t()).dtype == torch.float16
        assert nn.Conv2d(1, 1, 3).npu()(torch.randn(1, 1, 5, 5).npu()).dtype == torch.float16


@probe
def gradscaler():
    for S in (lambda: torch.npu.amp.GradScaler(), lambda: torch.amp.GradScaler("npu")):
        m = nn.Linear(3, 4).npu()
        o = torch.optim.SGD(m.parameters(), 0.1)
        s = S()
        assert s.is_enabled()
        for _ in range(2):
            o.zero_grad()
            with torch.autocast("npu"):
                loss = m(torch.randn(2, 3).npu()).float().pow(2).mean()
            s.scale(loss).backward()
            s.unscale_(o)
            nn.utils.clip_grad_norm_(m.parameters(), 1)
            s.step(o)
            s.update()
        assert s.get_scale() > 0
        s.load_state_dict(s.state_dict())
        (m.weight.grad).fill_(float("inf"))
        w = m.weight.clone()
        s.step(o)
        s.update()
        close(w, m.weight)


@probe
def dataloader_pin():
    ds = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.arange(8))
    for nw in (0, 2):
        for x, _y in torch.utils.data.DataLoader(ds, batch_size=4, pin_memory=True, num_workers=nw):
            assert x.is_pinned()
            npu(x.npu(non_blocking=True))


@probe
def dataloader_pin_device():
    ds = torch.utils.data.TensorDataset(torch.randn(8, 3))
    for (_x,) in torch.utils.data.DataLoader(ds, batch_size=4, pin_memory=True, pin_memory_device="npu"):
        pass


@probe
def pin_memory_tensor():
    a = torch.randn(3)
    assert not a.is_pinned()
    b = a.pin_memory()
    assert b.is_pinned()
    torch.zeros(3, pin_memory=True)


@probe
def dataset_on_npu():
    ds = torch.utils.data.TensorDataset(torch.randn(8, 3).npu())
    for (x,) in torch.utils.data.DataLoader(ds, batch_size=4):
        npu(x)


@probe
def rng():
    torch.manual_seed(3)
    a = torch.randn(3, device=D)
    torch.manual_seed(3)
    b = torch.randn(3, device=D)
    close(a, b)
    torch.npu.manual_seed(1)
    a = torch.rand(3, device=D)
    torch.npu.manual_seed_all(1)
    close(a, torch.rand(3, device=D))
    st = torch.npu.get_rng_state()
    a = torch.randn(2, device=D)
    torch.npu.set_rng_state(st)
    close(a, torch.randn(2, device=D))
    c = torch.get_rng_state()
    torch.randn(3, device=D)
    assert (torch.get_rng_state() == c).all(), "npu randomness moved the cpu generator"
    torch.npu.get_rng_state_all()
    torch.npu.initial_seed()
    torch.npu.seed()
    with torch.random.fork_rng(device_type="npu"):
        torch.randn(2, device=D)


@probe
def generator():
    g = torch.Generator(device="npu")
    g.manual_seed(5)
    a = torch.randn(3, generator=g, device=D)
    g.manual_seed(5)
    close(a, torch.randn(3, generator=g, device=D))
    assert g.device.type == "npu"
    assert isinstance(g, torch.Generator)
    torch.Generator().manual_seed(0)
    torch.randperm(4, generator=g, device=D)
    torch.utils.data.DataLoader([1, 2, 3], shuffle=True, generator=torch.Generator().manual_seed(1))
    next(iter(torch.utils.data.DataLoader([1, 2, 3], shuffle=True)))


@probe
def dropout_rng():
    torch.manual_seed(0)
    a = F.dropout(torch.ones(50).npu(), 0.5)
    torch.manual_seed(0)
    b = F.dropout(torch.ones(50).npu(), 0.5)
    close(a, b)


@probe
def streams_events():
    s = torch.npu.Stream()
    e1 = torch.npu.Event(enable_timing=True)
    e2 = torch.npu.Event(enable_timing=True)
    e1.record()
    with torch.npu.stream(s):
        x = torch.randn(3).npu()
        assert torch.npu.current_stream() == s
    e2.record()
    torch.npu.synchronize()
    assert e1.elapsed_time(e2) > 0
    s.synchronize()
    torch.npu.current_stream().wait_stream(s)
    x.record_stream(torch.npu.current_stream())
    s.wait_event(e1)
    torch.npu.default_stream()
    s.query()
    with torch.npu.stream(torch.npu.Stream(1)):  # its card is the current one inside
        assert torch.npu.current_device() == 1 and torch.npu.current_stream(0) == torch.npu.default_stream(0)
    assert torch.npu.current_device() == 0 and torch.npu.current_stream(1) == torch.npu.default_stream(1)


@probe
def mem_api():
    torch.npu.empty_cache()
    torch.npu.memory_allocated()
    torch.npu.max_memory_allocated(0)
    torch.npu.reset_peak_memory_stats()
    torch.npu.mem_get_info()
    torch.npu.memory_summary()
    torch.npu.get_device_name(0)
    assert torch.npu.get_device_properties(0).total_memory > 0
    torch.npu.device_count()
    torch.npu.utilization()


@probe
def compile_():
    m = torch.compile(nn.Linear(2, 2).npu())
    m(torch.randn(1, 2).npu()).sum().backward()


@probe
def data_parallel_1():
    m = nn.DataParallel(nn.Linear(3, 2).npu(), device_ids=[0])
    m(torch.randn(4, 3).npu()).sum().backward()


@probe
def data_parallel_2():
    m = nn.DataParallel(nn.Linear(3, 2).npu(), device_ids=[0, 1])
    m(torch.randn(4, 3).npu()).sum().backward()


@probe
def data_parallel_default():
    m = nn.DataParallel(nn.Linear(3, 2)).npu()
    m(torch.randn(4, 3).npu()).sum().backward()


def _model(name, mk, inp, loss=lambda o: o.float().pow(2).sum(), tol=1e-4):
    def f():
        torch.manual_seed(0)
        c = mk()
        torch.manual_seed(1)
        i = inp()
        n = copy.deepcopy(c).to("npu:0")

        def mv(v):
            return (
                v.to("npu:0")
                if isinstance(v, torch.Tensor)
                else ([mv(q) for q in v] if isinstance(v, (list, tuple)) else v)
            )

        def first(o):
            return o[0] if isinstance(o, (tuple, list)) else o

        lo = loss(first(c(*i)))
        lo.backward()
        ln = loss(first(n(*mv(list(i)))))
        ln.backward()
        npu(ln)
        close(lo, ln, tol)
        for (_k, p), q in zip(c.named_parameters(), n.parameters(), strict=False):
            if p.grad is not None:
                npu(q.grad)
                close(p.grad, q.grad, tol)
        for p, q in zip(c.buffers(), n.buffers(), strict=False):
            npu(q)
            close(p, q, tol)
        with torch.no_grad():
            close(first(c.eval()(*i)), first(n.eval()(*mv(list(i)))), tol)
        with torch.inference_mode():
            close(first(c(*i)), first(n(*mv(list(i)))), tol)

    f.__name__ = "model_" + name
    P.append(f)


_model("linear", lambda: nn.Linear(3, 4), lambda: [torch.randn(2, 3)])
_model(
    "convnet",
    lambda: nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=2, bias=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    ),
    lambda: [torch.randn(2, 3, 12, 12)],
)
_model(
    "conv1d3d_t",
    lambda: nn.Sequential(
        nn.ConvTranspose2d(3, 4, 3, 2, 1, 1),
        nn.GroupNorm(2, 4),
        nn.LeakyReLU(0.2),
        nn.Upsample(scale_factor=2, mode="bilinear"),
    ),
    lambda: [torch.randn(2, 3, 5, 5)],
)
_model("conv1d", lambda: nn.Conv1d(3, 4, 3), lambda: [torch.randn(2, 3, 9)])
_model("conv3d", lambda: nn.Conv3d(2, 3, 2), lambda: [torch.randn(1, 2, 4, 4, 4)])
_model("lstm", lambda: nn.LSTM(3, 5, 2, bidirectional=True), lambda: [torch.randn(4, 2, 3)])
_model("gru", lambda: nn.GRU(3, 5, 2, batch_first=True), lambda: [torch.randn(4, 2, 3)])
_model("rnn", lambda: nn.RNN(3, 5), lambda: [torch.randn(4, 2, 3)])
_model("lstmcell", lambda: nn.LSTMCell(3, 5), lambda: [torch.randn(4, 3)])
_model("mha", lambda: nn.MultiheadAttention(8, 2, batch_first=True), lambda: [torch.randn(2, 5, 8)] * 3)
_model(
    "encoder",
    lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2),
    lambda: [torch.randn(2, 5, 8)],
)
_model(
    "transformer",
    lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0),
    lambda: [torch.randn(5, 2, 8), torch.randn(4, 2, 8)],
)
_model(
    "embedding",
    lambda: nn.Sequential(nn.Embedding(10, 6), nn.LayerNorm(6), nn.GELU()),
    lambda: [torch.tensor([[1, 2], [3, 3]])],
)
_model("embeddingbag", lambda: nn.EmbeddingBag(10, 6), lambda: [torch.tensor([[1, 2], [3, 3]])])
_model(
    "norms",
    lambda: nn.Sequential(nn.InstanceNorm2d(4, affine=True), nn.BatchNorm2d(4), nn.PReLU(), nn.PixelShuffle(2)),
    lambda: [torch.randn(2, 4, 4, 4)],
)


@probe
def packed_sequence():
    from torch.nn.utils.rnn import pack_padded_sequence as pk
    from torch.nn.utils.rnn import pad_packed_sequence as up

    loss = nn.LSTM(3, 4, batch_first=True)
    n = copy.deepcopy(loss).npu()
    x = torch.randn(2, 5, 3)
    a = up(loss(pk(x, [5, 3], batch_first=True))[0], batch_first=True)[0]
    o = n(pk(x.npu(), torch.tensor([5, 3]), batch_first=True))[0]
    b = up(o, batch_first=True)[0]
    close(a, b)
    b.sum().backward()
    pk(x, [5, 3], batch_first=True).to("npu")
    pk(x, [5, 3], batch_first=True).npu()


@probe
def losses():
    x = torch.randn(4, 5)
    y = torch.tensor([0, 4, 2, 1])
    z = torch.rand(4, 5)

    def n(t):
        return t.npu()

    for a, b in (
        (F.cross_entropy(x, y, label_smoothing=0.1), F.cross_entropy(n(x), n(y), label_smoothing=0.1)),
        (F.nll_loss(x.log_softmax(1), y), F.nll_loss(n(x).log_softmax(1), n(y))),
        (F.mse_loss(x, z), F.mse_loss(n(x), n(z))),
        (F.l1_loss(x, z), F.l1_loss(n(x), n(z))),
        (F.smooth_l1_loss(x, z), F.smooth_l1_loss(n(x), n(z))),
        (F.binary_cross_entropy(z, z), F.binary_cross_entropy(n(z), n(z))),
        (F.binary_cross_entropy_with_logits(x, z), F.binary_cross_entropy_with_logits(n(x), n(z))),
        (F.kl_div(x.log_softmax(1), z), F.kl_div(n(x).log_softmax(1), n(z))),
        (F.triplet_margin_loss(x, z, x + z), F.triplet_margin_loss(n(x), n(z), n(x + z))),
        (F.multi_margin_loss(x, y), F.multi_margin_loss(n(x), n(y))),
        (F.huber_loss(x, z), F.huber_loss(n(x), n(z))),
        (F.cosine_embedding_loss(x, z, torch.ones(4)), F.cosine_embedding_loss(n(x), n(z), n(torch.ones(4)))),
    ):
        close(a, b)
        npu(b)
    lp = torch.randn(6, 2, 5).log_softmax(2)
    t = torch.tensor([[1, 2], [3, 4]])
    close(
        F.ctc_loss(lp, t, torch.tensor([6, 6]), torch.tensor([2, 2])),
        F.ctc_loss(n(lp), n(t), torch.tensor([6, 6]), torch.tensor([2, 2])),
    )


@probe
def sdpa():
    q = torch.randn(2, 2, 5, 4)
    a = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    x = q.npu().requires_grad_()
    b = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    close(a, b)
    b.sum().backward()
    npu(x.grad)


@probe
def misc_ops():
    x = torch.randn(4, 4)
    n = x.npu()
    s = x @ x.t() + 4 * torch.eye(4)
    sn = s.npu()
    for a, b in (
        (torch.linalg.inv(s), torch.linalg.inv(sn)),
        (torch.linalg.cholesky(s), torch.linalg.cholesky(sn)),
        (torch.linalg.svdvals(s), torch.linalg.svdvals(sn)),
        (torch.einsum("ij,jk->ik", x, x), torch.einsum("ij,jk->ik", n, n)),
        (torch.fft.fft(x).abs(), torch.fft.fft(n).abs()),
        (torch.cumsum(x, 0), torch.cumsum(n, 0)),
        (torch.cdist(x, x), torch.cdist(n, n)),
        (F.interpolate(x[None, None], 8), F.interpolate(n[None, None], 8)),
        (
            F.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2)),
            F.grid_sample(n[None, None], torch.zeros(1, 2, 2, 2).npu()),
        ),
        (F.pad(x, (1, 1)), F.pad(n, (1, 1))),
        (torch.bincount(torch.tensor([1, 1])).float(), torch.bincount(torch.tensor([1, 1]).npu()).float()),
        (F.one_hot(torch.tensor([1])).float(), F.one_hot(torch.tensor([1]).npu()).float()),
        (x.norm(), n.norm()),
        (x.std(), n.std()),
        (torch.roll(x, 1), torch.roll(n, 1)),
        (x.flip(0), n.flip(0)),
        (torch.view_as_real(torch.complex(x, x)), torch.view_as_real(torch.complex(n, n))),
        (x.unfold(0, 2, 1), n.unfold(0, 2, 1)),
        (F.unfold(x[None, None], 2), F.unfold(n[None, None], 2)),
        (torch.meshgrid(x[0], x[1], indexing="ij")[0], torch.meshgrid(n[0], n[1], indexing="ij")[0]),
        (torch.multinomial(torch.eye(4), 1).float(), torch.multinomial(torch.eye(4).npu(), 1).float()),
        (torch.histc(x), torch.histc(n)),
        (x.quantile(0.5), n.quantile(0.5)),
        (x.median(), n.median()),
        (x.repeat_interleave(2, 0), n.repeat_interleave(2, 0)),
        (torch.tril(x), torch.tril(n)),
        (torch.conj(torch.complex(x, x)).imag, torch.conj(torch.complex(n, n)).imag),
    ):
        close(a, b, 1e-4)
    raises(lambda: torch.tensor([1, 2]).npu().type("torch.cuda.FloatTensor"))
    n.type(torch.float64)


@probe
def functorch():
    m = nn.Linear(3, 1).npu()
    x = torch.randn(5, 3).npu()
    g = torch.func.vmap(torch.func.grad(lambda v: m(v).sum()))(x)
    npu(g)
    close(g, m.weight.expand(5, 3))


@probe
def checkpointing():
    from torch.utils.checkpoint import checkpoint

    m = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 3)).npu()
    x = torch.randn(2, 3, device=D, requires_grad=True)
    checkpoint(m, x, use_reentrant=False).sum().backward()
    checkpoint(m, x, use_reentrant=True).sum().backward()
    npu(x.grad)


@probe
def default_device():
    with torch.device("npu"):
        npu(torch.zeros(2))
        npu(nn.Linear(2, 2).weight)
    torch.set_default_device("npu")
    try:
        npu(torch.zeros(2))
    finally:
        torch.set_default_device(None)


@probe
def sparse():
    i = torch.tensor([[0, 1], [1, 0]])
    s = torch.sparse_coo_tensor(i, torch.tensor([1.0, 2]), (2, 2)).npu()
    npu(s)
    dense = torch.tensor([[0.0, 1], [2, 0]])
    close(s.to_dense(), dense)
    close((torch.ones(2, 2).npu() + s).cpu(), dense + 1)
    close((s + s * 2).coalesce().to_dense(), 3 * dense)
    close(s.neg().t().to_dense(), -dense.t())
    assert s._nnz() == 2 and s.sum().item() == 3 and s.cpu().device.type == "cpu"
    close(dense.npu().to_sparse().values(), torch.tensor([1.0, 2]))
    close(torch.zeros(2, 2).to_sparse().npu().copy_(s).to_dense(), dense)


@probe
def sparse_embedding_grad():
    e = nn.Embedding(5, 3, sparse=True).npu()
    e(torch.tensor([1]).npu()).sum().backward()
    torch.optim.SGD(e.parameters(), 0.1).step()


@probe
def accelerator_api():
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "npu"
    torch.accelerator.synchronize()
    assert torch.accelerator.device_count() == torch.npu.device_count()
    torch.accelerator.set_device_index(1)
    assert torch.npu.current_device() == 1
    torch.npu.set_device(0)
    assert torch.get_device_module("npu") is torch.npu


@probe
def jit_trace():
    m = torch.jit.trace(nn.Linear(3, 2).npu(), torch.randn(1, 3).npu())
    npu(m(torch.randn(2, 3).npu()))


@probe
def jit_script():
    m = torch.jit.script(nn.Linear(3, 2)).npu()
    npu(m(torch.randn(2, 3).npu()))


@probe
def storage_ptr():
    x = torch.zeros(4, device=D)
    assert x.untyped_storage().device.type == "npu"
    assert x[1:].untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert x.storage().device.type == "npu"


@probe
def profiler():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        torch.randn(3).npu().sum()
    with torch_npu.profiler.profile(
        activities=[torch_npu.profiler.ProfilerActivity.NPU],
        schedule=torch_npu.profiler.schedule(wait=0, warmup=0, active=1),
        on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(tempfile.mkdtemp()),
    ) as p:
        torch.randn(3).npu().sum()
        p.step()


@probe
def weight_norm_spectral():
    m = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)).npu()
    m(torch.randn(1, 3).npu()).sum().backward()
    s = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4)).npu()
    s(torch.randn(1, 3).npu()).sum().backward()


@probe
def init_functions():
    w = torch.empty(3, 4, device=D)
    for f in (
        nn.init.xavier_uniform_,
        nn.init.kaiming_normal_,
        nn.init.orthogonal_,
        nn.init.zeros_,
        nn.init.trunc_normal_,
    ):
        f(w)


@probe
def dlpack_user():
    x = torch.ones(2, device="npu:1")
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert y.device == x.device and y.data_ptr() == x.data_ptr()
    y.add_(1)
    close(x, torch.full((2,), 2.0))


@probe
def distributions():
    d = torch.distributions.Normal(torch.zeros(3).npu(), torch.ones(3).npu())
    npu(d.rsample())
    npu(d.log_prob(torch.zeros(3).npu()))
    c = torch.distributions.Categorical(torch.ones(4).npu())
    npu(c.sample())
    npu(c.log_prob(c.sample()))


@probe
def map_location_that_maps_nothing():
    from npu_emulator.record import record

    b = io.BytesIO()
    torch.save(torch.ones(2).npu(), b)
    for location, found in (({"cuda:0": "npu:1"}, 1), ({"npu:0": "npu:1", "cuda:0": "npu:1"}, 0), ("npu:1", 0)):
        b.seek(0)
        record.findings.clear()
        torch.load(b, map_location=location)
        assert len(record.findings) == found


def _double(x, queue, received):
    x.mul_(2)
    queue.put(x[:1].clone())  # what came from another process is not sent on
    received.wait(60)


@probe
def tensors_sent_to_another_process():
    x = torch.ones(3, device="npu:1")
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    received = context.Event()
    child = context.Process(target=_double, args=(x, queue, received))
    child.start()
    got = queue.get(timeout=60)
    assert got.device == x.device and got.tolist() == [2.0]
    received.set()
    child.join()
    assert x.tolist() == [2.0] * 3


@probe
def invalid_ordinal():
    return raises(lambda: torch.zeros(2, device="npu:99"), "ordinal", "invalid", "device")


@probe
def legacy_ctor():
    npu(torch.npu.FloatTensor([1.0, 2.0]))
    npu(torch.npu.LongTensor([1, 2]))
    npu(torch.randn(2).npu().new(3))


if __name__ == "__main__":
    only = sys.argv[1:]
    failed = []
    ran = 0
    for f in P:
        if only and f.__name__ not in only:
            continue
        ran += 1
        try:
            f()
        except Exception as e:
            failed.append(f.__name__)
            print(f"{f.__name__}: {type(e).__name__}: {str(e)[:300]}")
            if only:
                traceback.print_exc()
    print(f"probes: {ran - len(failed)}/{ran}; failed: {' '.join(sorted(failed)) or 'none'}", flush=True)
