"""Programs against their tuned form: the original on the CPU, the tuned one on the emulated NPU, gradients too.

    tuned_pair.py ORIGINAL TUNED CASES.json

A case names a class or a function and its inputs: {"normal": sizes}, {"uniform": sizes}, {"integers": sizes},
{"mask": sizes} or {"value": anything}. It prints one line for each case that is equal.
"""

import copy
import json
import math
import sys
import types
from pathlib import Path

import torch

#: Of the largest number of a tensor: the original is computed in float32.
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def attend(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1)):
    """flash_attn_func after the words of its documentation, one sequence at a time; (length, heads, size)."""
    assert dropout_p == 0.0
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    left, right = window_size[0], 0 if causal else window_size[1]
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    weights = torch.einsum("ihd,jhd->hij", q, k) * scale
    place = torch.arange(q.shape[0])[:, None] + k.shape[0] - q.shape[0]
    keys = torch.arange(k.shape[0])[None]
    dropped = (keys > place + right) if right >= 0 else torch.zeros(q.shape[0], k.shape[0], dtype=torch.bool)
    if left >= 0:
        dropped = dropped | (keys < place - left)
    return torch.einsum("hij,jhd->ihd", weights.masked_fill(dropped, -math.inf).softmax(-1), v)


def package():
    """The functions of flash_attn."""

    def func(q, k, v, *args, **more):
        return torch.stack([attend(*each, *args, **more) for each in zip(q, k, v, strict=True)])

    def varlen(q, k, v, ends, key_ends, most, key_most, *args, **more):
        spans = [zip(e[:-1].tolist(), e[1:].tolist(), strict=True) for e in (ends, key_ends)]
        parts = zip(*spans, strict=True)
        return torch.cat([attend(q[a:b], k[c:d], v[c:d], *args, **more) for (a, b), (c, d) in parts])

    def by_name(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *args, **more):
        return varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *args, **more)

    return {
        "flash_attn_func": func,
        "flash_attn_qkvpacked_func": lambda qkv, *args, **more: func(*qkv.unbind(2), *args, **more),
        "flash_attn_kvpacked_func": lambda q, kv, *args, **more: func(q, *kv.unbind(2), *args, **more),
        "flash_attn_varlen_func": by_name,
        "flash_attn_varlen_qkvpacked_func": lambda qkv, ends, most, *args, **more: varlen(
            *qkv.unbind(1), ends, ends, most, most, *args, **more
        ),
        "flash_attn_varlen_kvpacked_func": lambda q, kv, *args, **more: varlen(q, *kv.unbind(1), *args, **more),
    }


def load(path):
    module = types.ModuleType(path)
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec"), module.__dict__)
    return module


def made(spec, dtype):
    kind, value = next(iter(spec.items()))
    if kind == "normal":
        return torch.randn(value, dtype=torch.float32).to(dtype)
    if kind == "uniform":
        return torch.rand(value, dtype=torch.float32).to(dtype) * 2 - 1
    if kind == "integers":
        return torch.randint(0, 10, value)
    if kind == "mask":
        mask = torch.rand(value) < 0.4
        mask[..., 0] = False
        return mask
    if kind == "ends":
        return torch.tensor(value, dtype=torch.int32)
    return value


def run(function, inputs, parameters):
    """Results, and the gradients of a fixed sum of them with regard to all that is floating."""
    leaves = [x for x in inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
    for leaf in leaves:
        leaf.requires_grad_()
    out = function(*inputs)
    outs = out if isinstance(out, tuple) else (out,)
    if not outs[0].is_floating_point():
        return outs, []
    generator = torch.Generator().manual_seed(5)
    total = sum((o.float() * torch.randn(o.shape, generator=generator).to(o.device)).nansum() for o in outs)
    total.backward()
    return outs, [leaf.grad for leaf in (*leaves, *parameters)]


def compare(name, dtype, pair, tolerance):
    for which in (0, 1):
        for want, got in zip(pair[0][which], pair[1][which], strict=True):
            assert got.device.type == "npu", name
            assert want.shape == got.shape, (name, want.shape, got.shape)
            assert got.dtype == (dtype if want.is_floating_point() else want.dtype), (name, got.dtype)
            near = tolerance * max(1.0, float(want.float().abs().nan_to_num(0, 0, 0).max()))
            torch.testing.assert_close(
                got.cpu().float(), want.float(), rtol=tolerance, atol=near, equal_nan=True, msg=lambda m: name + m
            )


def main(original, tuned, cases):
    functions = package()
    for name in ("flash_attn", "flash_attn.flash_attn_interface"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(functions)
    first = load(original)
    for name in ("flash_attn", "flash_attn.flash_attn_interface"):
        del sys.modules[name]
    import torch_npu  # noqa: F401

    second = load(tuned)
    for case in json.loads(Path(cases).read_text(encoding="utf-8")):
        name, dtype = case["name"], getattr(torch, case.get("dtype", "float32"))
        torch.manual_seed(case.get("seed", 0))
        inputs = [made(spec, dtype) for spec in case["inputs"]]
        wide = [
            x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in copy.deepcopy(inputs)
        ]
        there = [x.npu() if isinstance(x, torch.Tensor) else x for x in copy.deepcopy(inputs)]
        functions = [getattr(first, name), getattr(second, name)]
        parameters = [[], []]
        if isinstance(functions[0], type):
            model = functions[0]().eval()
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.2)
            model.to(dtype).float()
            other = functions[1]().eval().to(dtype)
            other.load_state_dict(model.state_dict())
            functions = [model, other.npu()]
            parameters = [list(each.parameters()) for each in functions]
        pair = [
            run(function, values, each)
            for function, values, each in zip(functions, (wide, there), parameters, strict=True)
        ]
        compare(f"{name} {case}\n", dtype, pair, _TOLERANCE[dtype])
        print(name, "equal")


main(*sys.argv[1:])
