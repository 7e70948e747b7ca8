"""PyTorch's own operator samples (op_db), npu against CPU, forward and backward. usage: op_samples.py DTYPE"""

import collections
import os
import signal
import sys

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map_only

T = torch.Tensor
dtname = sys.argv[1]
dt = getattr(torch, dtname)
compared = collections.Counter()


def mv(x):
    return tree_map_only(T, lambda t: t.detach().to("npu:0").requires_grad_(t.requires_grad), x)


def devmap(x):  # device kwargs in samples
    return tree_map_only(torch.device, lambda d: torch.device("npu:0"), x)


res = collections.OrderedDict()


def alarm(*a):
    raise TimeoutError()


signal.signal(signal.SIGALRM, alarm)
for op in op_db:
    name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
    if dt not in op.dtypes:
        continue
    r = None
    print(">", name, file=sys.stderr, flush=True)
    try:
        signal.alarm(60)
        grad = op.supports_autograd and dt.is_floating_point
        samples = list(op.sample_inputs("cpu", dt, requires_grad=grad))[:8]
        for s in samples:
            try:
                torch.manual_seed(0)
                ref = op(s.input, *s.args, **s.kwargs)
            except Exception:
                continue
            inp, args = mv(s.input), mv(s.args)
            kw = {k: (torch.device("npu:0") if k == "device" else mv(v)) for k, v in s.kwargs.items()}
            torch.manual_seed(0)
            out = op(inp, *args, **kw)
            lr = [t for t in tree_leaves(ref) if isinstance(t, T)]
            lo = [t for t in tree_leaves(out) if isinstance(t, T)]
            assert len(lr) == len(lo)
            nondet = "empty" in name or name in ("new_empty_strided", "bernoulli")
            for a, b in zip(tree_leaves(ref), tree_leaves(out), strict=False):  # item, equal, allclose: Python values
                if isinstance(a, (bool, int, float, complex)):
                    assert a == b or (a != a and b != b), (a, b)
                    compared[name] += 1
            for a, b in zip(lr, lo, strict=False):
                if a.layout != torch.strided:
                    continue
                assert b.device.type == "npu" or name in ("to", "cpu", "item"), f"device {b.device}"
                assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
                if not nondet:
                    compared[name] += 1
                    torch.testing.assert_close(b.detach().cpu(), a.detach(), rtol=1e-3, atol=1e-3, equal_nan=True)
            if grad:

                def gsum(ls):
                    ls = [t for t in ls if t.requires_grad and t.layout == torch.strided]
                    return sum((t.abs() if t.is_complex() else t).sum().cpu() for t in ls) if ls else None

                ga = gsum(lr)
                gb = gsum(lo)
                if (
                    ga is not None
                    and gb is not None
                    and isinstance(s.input, T)
                    and s.input.requires_grad
                    and not nondet
                ):
                    s.input.grad = None
                    ga.backward()
                    gb.backward()
                    if s.input.grad is not None:
                        compared["backward"] += 1
                        torch.testing.assert_close(inp.grad.cpu(), s.input.grad, rtol=1e-3, atol=1e-3, equal_nan=True)
        r = "ok"
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        r = f"{type(e).__name__}: {str(e)[:160]}".replace("\n", " ")
    finally:
        signal.alarm(0)
    res[name] = r
    if r != "ok":
        print(name, "|", r, flush=True)
empty = [n for n in res if res[n] == "ok" and not compared[n]]
results, gradients = sum(compared.values()) - compared["backward"], compared["backward"]
good = sum(v == "ok" for v in res.values())
print(f"samples {dtname}: {good}/{len(res)}; {results} results and {gradients} gradients compared; empty: {len(empty)}")
sys.stdout.flush()
os._exit(0)
