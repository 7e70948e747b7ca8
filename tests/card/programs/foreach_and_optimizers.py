"""Operators on lists of tensors, optimizers and loss scaling on the card, beside the same on the CPU."""

from __future__ import annotations

from typing import Any

import torch

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
BINARY = "add sub mul div maximum minimum pow clamp_max clamp_min".split()


def tensors(*sizes: Any, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Numbers between 0.1 and 0.9 of several sizes."""
    torch.manual_seed(0)
    return [(torch.rand(size) * 0.8 + 0.1).to(dtype) for size in sizes]


def check(name: str, *arguments: Any, **keywords: Any) -> None:
    """Call `torch._foreach_<name>` and its form in place on both devices, and compare."""

    def there(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.clone().npu()
        return [there(each) for each in value] if isinstance(value, list) else value

    def here(value: Any) -> Any:
        return [here(each) for each in value] if isinstance(value, list) else getattr(value, "clone", lambda: value)()

    for form in (f"_foreach_{name}", f"_foreach_{name}_"):
        function = getattr(torch, form, None)
        if function is None:
            continue
        one, other = here(list(arguments)), there(list(arguments))
        expected, found = function(*one, **keywords), function(*other, **keywords)
        if form.endswith("_"):
            expected, found = one[0], other[0]
        for left, right in zip(found, expected, strict=True):
            assert left.dtype == right.dtype, form
            torch.testing.assert_close(left.cpu(), right, rtol=2e-3, atol=2e-3, msg=lambda text: f"{form}: {text}")  # noqa: B023


def foreach() -> None:
    """All of torch._foreach_... that the card has."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        given = tensors((3, 4), 7, (), 1, dtype=dtype)
        others = [each.flip(0) if each.dim() else each * 2 for each in given]
        for name in UNARY:
            check(name, given)
        for name in BINARY:
            check(name, given, others)
            check(name, given, 2.0)
            check(name, given, [1.0, 2.0, 3.0, 4.0])
        check("add", given, others, alpha=0.5)
        check("sub", given, others, alpha=2)
        check("lerp", given, others, 0.3)
        check("lerp", given, others, others)
        for name in ("addcmul", "addcdiv"):
            check(name, given, others, others, value=0.5)
            check(name, given, others, others, [1.0, 2.0, 3.0, 4.0])
        check("norm", given)
        check("norm", given, 1)
        check("zero", given) if hasattr(torch, "_foreach_zero") else None
    check("copy", tensors(3, 4), tensors(4, 3)[::-1])
    powers = torch._foreach_pow(2.0, [each.npu() for each in tensors((3, 4), 7)])
    for found, exponent in zip(powers, tensors((3, 4), 7), strict=True):
        torch.testing.assert_close(found.cpu(), 2**exponent)
    many = tensors(*range(1, 120))
    check("add", many, 1.0)
    check("mul", many, [float(at) for at in range(len(many))])
    check("addcdiv", many, many, many, [float(at) for at in range(len(many))])


def trained(device: str, make: Any, steps: int = 6) -> list[torch.Tensor]:
    """Parameters after some steps of the optimizer that `make` gives."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(device)
    optimizer = make(list(model.parameters()))
    given = torch.rand(16, 5).to(device)
    for _ in range(steps):
        optimizer.zero_grad()
        model(given).square().mean().backward()
        optimizer.step()
    return [each.detach().cpu() for each in model.parameters()]


def optimizers() -> None:
    """Optimizers of torch, with their ways through lists and through fused operators where torch_npu has them."""
    made: dict[str, Any] = {}
    for foreach_too in (False, True):
        for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam"):
            kind = getattr(torch.optim, name)
            made[f"{name} foreach={foreach_too}"] = lambda p, k=kind, f=foreach_too: k(p, lr=0.01, foreach=f)
    for amsgrad in (False, True):
        for maximize in (False, True):
            words = {"amsgrad": amsgrad, "maximize": maximize, "weight_decay": 0.1}
            for kind in (torch.optim.Adam, torch.optim.AdamW):
                made[f"{kind.__name__} fused {words}"] = lambda p, k=kind, w=words: k(
                    p, lr=0.01, **w, fused=p[0].device.type == "npu"
                )
    for words in (
        {"nesterov": True}, {"dampening": 0.3}, {"maximize": True}, {"weight_decay": 0.1},
    ):  # fmt: skip
        made[f"SGD fused {words}"] = lambda p, w=words: torch.optim.SGD(
            p, lr=0.01, momentum=0.9, **w, fused=p[0].device.type == "npu"
        )
    for name, make in made.items():
        for found, expected in zip(trained("npu", make), trained("cpu", make), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, msg=lambda text: f"{name}: {text}")  # noqa: B023


def scaling() -> None:
    """Gradients are unscaled, a number that is not finite is found, and the scale follows."""
    scaler = torch.amp.GradScaler("npu", init_scale=1024.0, growth_interval=2)
    weight = torch.nn.Parameter(torch.ones(3, device="npu"))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scales = []
    for factor in (1.0, 1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [1024.0, 2048.0, 1024.0, 1024.0], scales
    torch.testing.assert_close(weight.detach().cpu(), torch.full((3,), 0.7))
    grads = [torch.rand(5, device="npu").half() for _ in range(70)]
    norm = torch.nn.utils.get_total_norm(grads)
    assert abs(norm.item() - sum(each.float().square().sum().item() for each in grads) ** 0.5) < 0.05


foreach()
optimizers()
scaling()
