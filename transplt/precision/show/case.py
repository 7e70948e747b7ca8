"""A runnable test of one operator: the device against float64 on the CPU, with recorded or drawn inputs.

Everything of the dump goes into the text as a literal, and names of functions are identifiers or refused: a dump writes
no code. Tolerances by dtype: the bounds of msprobe's acc_check for accumulated results (float16 2**-8, bfloat16 2**-7,
float32 2**-11) and small values (2**-10, 2**-10, 2**-20), from mindstudio-probe 26.2.0.
"""

from __future__ import annotations

import os

from transplt.base.errors import UsageError, shown
from transplt.base.render.cell import visible
from transplt.precision.calls import Literals, expression, given
from transplt.precision.first_line import place
from transplt.precision.record import API, BACKWARD, FORWARD, Row
from transplt.precision.show.operator import Found

_HEAD = '''\
"""One operator of a recorded run as a test; written by `transplt show --case`. Run it with python, or with pytest.

It computes on the NPU of this machine, or on the CPU where there is none, and is held against the CPU in float64.
"""

from pathlib import Path

import torch

try:
    import torch_npu  # noqa: F401

    DEVICE = "npu" if torch.npu.is_available() else "cpu"
except ImportError:
    DEVICE = "cpu"

NAME = {name!r}
# {where}
{dump}#: (relative, absolute) by the type of the result.
TOLERANCE = {{
    torch.float16: (2**-8, 2**-10),
    torch.bfloat16: (2**-7, 2**-10),
    torch.float32: (2**-11, 2**-20),
    torch.complex64: (2**-11, 2**-20),
}}


def recorded(path, dtype):
    """The elements that the dump has."""
    if path.endswith(".npy"):
        import numpy

        return torch.from_numpy(numpy.load(DUMP / path, allow_pickle=False)).to(dtype)
    return torch.load(DUMP / path, map_location="cpu", weights_only=True).detach().to(dtype)


def drawn(shape, dtype, low, high, seed):
    """As large as the recorded tensor was; of its elements the dump has no more than figures."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(dtype)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low).to(dtype)


def arguments():
    args = {args}
    kwargs = {kwargs}
    return args, kwargs


def operator(args, kwargs):
    return {call}


def moved(value, device, wide=False):
    """A copy on a device; `wide`: in float64."""
    if isinstance(value, (list, tuple)):
        return type(value)(moved(each, device, wide) for each in value)
    if isinstance(value, dict):
        return {{key: moved(each, device, wide) for key, each in value.items()}}
    if not isinstance(value, torch.Tensor):
        return value
    value = value.clone().to(device)
    if wide and value.dtype.is_complex:
        return value.to(torch.complex128)
    return value.double() if wide and value.dtype.is_floating_point else value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for each in value for tensor in tensors(each)] if isinstance(value, (list, tuple)) else []


def close(found, expected):
    relative, absolute = TOLERANCE.get(found.dtype, (1e-7, 1e-9))
    if not (found.dtype.is_floating_point or found.dtype.is_complex):
        relative = absolute = 0
    largest = expected.detach().abs().double().nan_to_num(0, 0, 0).max().item() if expected.numel() else 0
    wide = expected.detach().cpu().to(torch.complex128 if found.dtype.is_complex else torch.float64)
    torch.testing.assert_close(
        found.detach().cpu().to(wide.dtype), wide, rtol=relative, atol=absolute * max(1.0, largest), equal_nan=True
    )

'''
_FORWARD = """
def test_forward():
    args, kwargs = arguments()
    expected = tensors(operator(moved(args, "cpu", wide=True), moved(kwargs, "cpu", wide=True)))
    found = tensors(operator(moved(args, DEVICE), moved(kwargs, DEVICE)))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        close(one, other)

"""
_RECORDED = '''
OUTPUTS = {outputs}


def test_as_recorded():
    """Does this machine compute what the run has recorded?"""
    args, kwargs = arguments()
    found = tensors(operator(moved(args, DEVICE), moved(kwargs, DEVICE)))
    assert len(found) == len(OUTPUTS)
    for one, (path, dtype) in zip(found, OUTPUTS):
        close(one, recorded(path, dtype))

'''
_BACKWARD = """
def gradients(device, wide):
    args, kwargs = (moved(each, device, wide) for each in arguments())
    leaves = [each.requires_grad_() for each in tensors([args, list(kwargs.values())]) if each.dtype.is_floating_point]
    # A function that writes into its input needs one that is no leaf.
    results = [each for each in tensors(operator(*branched(args, kwargs))) if each.requires_grad]
    given = [moved(each, device, wide).to(result.dtype) for each, result in zip({given}, results)]
    return torch.autograd.grad(results[: len(given)], leaves, given, allow_unused=True)


def branched(args, kwargs):
    def one(value):
        if isinstance(value, (list, tuple)):
            return type(value)(one(each) for each in value)
        return value.clone() if isinstance(value, torch.Tensor) else value

    return [one(each) for each in args], {{key: one(each) for key, each in kwargs.items()}}


def test_backward():
    for one, other in zip(gradients(DEVICE, False), gradients("cpu", True)):
        assert (one is None) == (other is None)
        if one is not None:
            close(one, other)

"""
_END = """
if __name__ == "__main__":
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "passed")
"""


def case_text(found: Found, row: Row) -> str:
    """The text of the test. UsageError for a row that is no function, or draws random numbers."""
    forward, backward = _pair(found, row)
    call = expression(forward)
    writer = Literals(found.record.folder, forward)
    args, kwargs = writer.arguments()
    parts = [_FORWARD]
    outputs = [tensor for tensor in forward.outputs if tensor.is_tensor]
    if outputs and all(writer.tensor(tensor).startswith("recorded") for tensor in outputs):
        listed = ", ".join(f"({tensor.path!r}, torch.{tensor.dtype})" for tensor in outputs)
        parts.append(_RECORDED.format(outputs=f"[{listed}]"))
    if backward is not None:
        gradients = [writer.tensor(tensor) for tensor in given(backward, outputs)]
        parts.append(_BACKWARD.format(given=f"[{', '.join(gradients)}]"))
    where = place(found.stacks.get(row.name, ()))
    origin = f"step {found.step}, rank {found.rank}" + (f", called at {where}" if where else "")
    dump = f"DUMP = Path({os.path.abspath(found.record.folder)!r})\n" if writer.loads else ""
    head = _HEAD.format(name=row.name, where=visible(origin), dump=dump, args=args, kwargs=kwargs, call=call)
    return head + "\n".join(parts) + _END


def _pair(found: Found, row: Row) -> tuple[Row, Row | None]:
    """The forward row, and the backward one where that is asked for."""
    if row.kind != API:
        inner = [name for name, parent in found.record.parents.items() if parent == row.name]
        more = f": {', '.join(map(shown, inner[:5]))}" if inner else ""
        raise UsageError(f"{shown(row.name)} is a module; a test needs a function in it{more}")
    if row.phase != BACKWARD:
        return row, None
    forward = next((r for r in found.record.rows if (r.api, r.index, r.phase) == (row.api, row.index, FORWARD)), None)
    if forward is None:
        raise UsageError(f"the dump has no forward pass of {shown(row.name)}, and a test needs it")
    return forward, row
