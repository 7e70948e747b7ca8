"""PyTorch's own samples of its operators (op_db) on the card, beside the CPU: run by the tests in a process on the NPU.

    op_database.py TYPE [--backward] [--slice I/N] [--only WORDS]

prints one JSON object: entry -> [verdict, why]. Verdicts: `right`; `form alone` (drawn, not initialised, or for another
reason below: shape and type are as the CPU's); `refused` (torch_npu or the card says so, in `why`); `partly refused`
(some samples, and the others are right); `own form` (the values are right, and torch_npu gives a result another type or
shape than the CPU); `wrong`; `no sample`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import warnings
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

#: So many samples of an entry are looked at, of those that the CPU computes, and so long (seconds).
_SAMPLES, _SECONDS = 6, 60
#: Entries whose values are drawn or not initialised; whose samples read memory beyond the tensor that is moved
#: (as_strided); which take a mask of bits that torch_npu's own forward operator gives.
_FORM_ALONE = frozenset(
    "bernoulli cauchy exponential geometric log_normal normal normal.in_place normal.number_mean multinomial uniform "
    "randint randint_like randn randn_like rand_like empty empty_like empty_permuted empty_strided new_empty "
    "new_empty_strided nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d "
    "nn.functional.dropout3d nn.functional.feature_alpha_dropout.with_train nn.functional.rrelu "
    "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d svd_lowrank pca_lowrank "
    "nn.functional.multi_head_attention_forward as_strided.partial_views native_dropout_backward".split()
)
_TOLERANCE = {torch.float32: 2e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def moved(value: Any) -> Any:
    """`value` with its tensors on the card, as leaves of their own."""
    if isinstance(value, torch.Tensor):
        return value.detach().npu().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(*map(moved, value)) if hasattr(value, "_fields") else type(value)(map(moved, value))
    return {key: moved(each) for key, each in value.items()} if isinstance(value, dict) else value


def tensors(value: Any) -> list[torch.Tensor]:
    """All tensors in `value`, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in tensors(part)] if isinstance(value, (list, tuple)) else []


def seed(number: int) -> None:
    """As torch.manual_seed, which writes down its caller's stack for each device that is not here."""
    torch.default_generator.manual_seed(number)
    torch.npu.manual_seed(number)


def computed(entry: Any, sample: Any, backward: bool) -> list[torch.Tensor]:
    """What an entry gives for a sample, and with `backward` the gradients of what it is given."""
    seed(0)
    given = tensors([sample.input, sample.args, sample.kwargs])
    results = tensors(entry.op(sample.input, *sample.args, **sample.kwargs))
    if not backward:
        return results
    wanted = [each for each in given if each.requires_grad]
    loss = [each.abs().sum() if each.is_complex() else each.sum() for each in results if each.requires_grad]
    if not wanted or not loss:
        return []
    found = torch.autograd.grad(sum(loss[1:], loss[0]), wanted, allow_unused=True)
    return [each for each in found if each is not None]


def verdict(entry: Any, dtype: torch.dtype, backward: bool) -> list[str]:
    """The verdict of one entry, and why."""
    name = entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")
    compared, refused, own_form = 0, "", ""
    # Not `sample_inputs`, which looks for the test that calls it with `inspect.stack()`: most of what a run would take.
    samples = iter(entry.sample_inputs_func(entry, "cpu", dtype, backward))
    while compared < _SAMPLES:
        seed(1234)
        try:
            sample = next(samples, None)
        except Exception as error:
            return ["no sample", str(error)[:200]]
        if sample is None:
            break
        if sample.kwargs.get("dropout_p"):
            continue
        there = type(sample)(moved(sample.input), args=moved(sample.args), kwargs=on_card(moved(sample.kwargs)))
        try:
            expected = computed(entry, sample, backward)
        except Exception:
            continue
        try:
            found = computed(entry, there, backward)
        except Exception as error:
            refused = refused or " ".join(str(error).split())[:400]
            continue
        compared += 1
        wrong, form = differ(name, expected, found, dtype)
        own_form = own_form or form[:400]
        if wrong and not as_near(entry, sample, backward, expected, found):
            return ["wrong", wrong[:400]]
    match compared, refused, own_form:
        case 0, "", _:
            return ["no sample", "the CPU computes none"]
        case 0, _, _:
            return ["refused", refused]
        case _, "", "":
            return ["form alone" if name in _FORM_ALONE else "right", ""]
        case _, "", _:
            return ["own form", own_form]
        case _:
            return ["partly refused", refused]


def as_near(entry: Any, sample: Any, backward: bool, expected: list[Any], found: list[Any]) -> bool:
    """Whether results of a small type are as near to those of float64 as the CPU's are, within half as much again."""
    if sample.input.dtype not in (torch.float16, torch.bfloat16):
        return False
    exact = computed(entry, sample.transform(widened), backward)
    return all(
        (other.detach().cpu().double() - truth).abs().max() <= 1.5 * (one.double() - truth).abs().max()
        for one, other, truth in zip(expected, found, exact, strict=True)
    )


def widened(value: Any) -> Any:
    """A tensor of a small type in float64."""
    small = isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.detach().double().requires_grad_(value.requires_grad) if small else value


def on_card(keywords: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments that name the CPU name the card."""
    return {key: "npu" if key == "device" else value for key, value in keywords.items()}


def differ(name: str, expected: list[torch.Tensor], found: list[torch.Tensor], dtype: torch.dtype) -> tuple[str, str]:
    """How the values of two lists of results differ, and how the forms (types, shapes); "" where they agree. A card has
    no float64: there float32 stands for it."""
    own_form = "" if len(expected) == len(found) else f"{len(found)} results for {len(expected)}"
    pairs = zip(expected, found, strict=True) if not own_form else zip(expected[:1], found[:1], strict=False)
    for one, other in pairs:
        one, there = one.detach(), other.detach().cpu()
        narrowed = {torch.float64: torch.float32}.get(one.dtype, one.dtype)
        if there.dtype not in (one.dtype, narrowed):
            own_form = own_form or f"type {there.dtype} for {one.dtype}"
        elif there.shape != one.shape:
            own_form = own_form or f"shape {tuple(there.shape)} for {tuple(one.shape)}"
        elif name not in _FORM_ALONE:
            tolerance = _TOLERANCE.get(dtype, 2e-4)
            try:
                torch.testing.assert_close(
                    there.to(one.dtype), one, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False,
                    check_layout=False,
                )  # fmt: skip
            except AssertionError as error:
                return " ".join(str(error).split()), own_form
    return "", own_form


def main() -> None:
    """Print the verdicts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("type")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--slice", default="0/1")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    dtype = getattr(torch, options.type)
    at, of = map(int, options.slice.split("/"))
    verdicts: dict[str, list[str]] = {}

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"longer than {_SECONDS} s")

    signal.signal(signal.SIGALRM, too_long)
    for number, entry in enumerate(op_db):
        name = entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")
        supported = entry.backward_dtypes if options.backward else entry.dtypes
        if number % of != at or dtype not in supported or (options.backward and not entry.supports_autograd):
            continue
        if options.only and not any(word in name for word in options.only):
            continue
        print("@", name, file=sys.stderr, flush=True)
        signal.alarm(_SECONDS)
        verdicts[name] = verdict(entry, dtype, options.backward)
        signal.alarm(0)
    json.dump(verdicts, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
