"""The script that computes recorded operators again: it needs torch and the dump, and nothing of this program."""

from __future__ import annotations

import os

from transplt.base.render.cell import many, visible
from transplt.precision.replay.plan import Call, Plan

_HEAD = '''\
"""The operators of a recorded step, computed again from their recorded inputs; written by `transplt replay --script`.

    python SCRIPT -o replayed [--device npu|cuda|cpu] [--dump DIR]

needs torch (on an NPU torch_npu), and the folder of the dump. It writes replayed/step{step}/rank{rank}: dump.json, and
the results in dump_tensor_data. `transplt replay DUMP --read replayed` says which operators compute otherwise than in
the dump; `transplt compare` holds what two devices have replayed against each other.
"""

import argparse
import json
import os

import torch

try:
    import torch_npu
except ImportError:
    torch_npu = None

STEP, RANK = {step}, {rank}
#: {where}
DUMP = {dump!r}
DEVICE = "cpu"


def recorded(path, dtype):
    """The elements that the dump has; of a file of torch, nothing is run that is in it."""
    path = os.path.join(DUMP, path)
    if path.endswith(".npy"):
        import numpy

        return torch.from_numpy(numpy.load(path, allow_pickle=False)).to(dtype)
    return torch.load(path, map_location="cpu", weights_only=True).detach().to(dtype)


#: (name, function, arguments, how many results, the type it may have been computed in, name of the backward row,
#: gradients of results, tensors whose gradients are wanted, and where the backward row is that of the last node of the
#: graph alone: its gradients, each with its shape)
CALLS = [
'''
_END = '''\
]


def each(value, change):
    """`value` with all its tensors changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)([each(one, change) for one in value])
    return {key: each(one, change) for key, one in value.items()} if isinstance(value, dict) else value


def tensors(value):
    """All tensors in a value, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for one in inner for tensor in tensors(one)]


def computed(function, arguments, count, cast, wanted):
    """(results, the tensors whose gradients are wanted)."""
    placed = each(arguments(), lambda tensor: tensor.to(DEVICE))
    taken = tensors(placed)
    leaves = [taken[place] for place in wanted]
    for leaf in leaves:
        leaf.requires_grad_()

    def given(tensor):
        """A copy, since the operator may write into it."""
        floats = (torch.float16, torch.bfloat16, torch.float32)
        return tensor.to(cast, copy=True) if cast is not None and tensor.dtype in floats else tensor.clone()

    args, kwargs = each(placed, given)
    with torch.set_grad_enabled(bool(leaves)):
        results = tensors(function(args, kwargs))
    if len(results) != count:
        raise RuntimeError("gives %d tensors, and %d were recorded" % (len(results), count))
    return results, leaves


def computed_in_its_type(function, arguments, count, cast, wanted):
    """Where autocast was on, inputs have another type than the operator computed in."""
    if cast is None:
        return computed(function, arguments, count, None, wanted)
    try:
        results, leaves = computed(function, arguments, count, None, wanted)
    except RuntimeError:
        results, leaves = computed(function, arguments, count, cast, wanted)
    if any(result.is_floating_point() and result.dtype != cast for result in results):
        results, leaves = computed(function, arguments, count, cast, wanted)
    return results, leaves


def entry(row, place, tensor, folder):
    """A tensor as dump.json has it, and its elements in a file."""
    tensor = tensor.detach().cpu().contiguous()
    name = "%s.output.%d.pt" % (row, place)
    torch.save(tensor.clone(), os.path.join(folder, "dump_tensor_data", name))
    told = {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape), "data_name": name}
    wide = tensor.abs().double() if tensor.is_complex() else tensor.double()
    figures = [float(f()) for f in (wide.max, wide.min, wide.mean, wide.norm)] if tensor.numel() else [None] * 4
    return dict(told, **dict(zip(("Max", "Min", "Mean", "Norm"), figures)))


def gradients(results, leaves, given, picked):
    """Those of `leaves`; with `picked` those that the last node of the graph hands on."""
    into = [(results[place], gradient) for place, gradient in given]
    handed = []
    if picked:
        into[0][0].grad_fn.register_hook(lambda found, _: handed.extend(found))
    found = torch.autograd.grad(
        [result for result, _ in into], leaves,
        [gradient.to(DEVICE, result.dtype) for result, gradient in into], allow_unused=True,
    )
    if picked:
        found = [handed[place] if place < len(handed) else None for place, _ in picked]
        if any(one is not None and tuple(one.shape) != shape for one, (_, shape) in zip(found, picked)):
            raise RuntimeError("its backward pass has another last step than the recorded one")
    if any(gradient is None for gradient in found):
        raise RuntimeError("gives no gradient of a tensor that had one")
    return found


def replay(folder):
    """(rows, the errors of those that failed), by name."""
    rows, failed = {}, {}
    for name, function, arguments, count, cast, backward, given, wanted, picked in CALLS:
        failing = name
        try:
            results, leaves = computed_in_its_type(function, arguments, count, cast, wanted)
            told = [entry(name, place, result, folder) for place, result in enumerate(results)]
            rows[name] = {"input_args": [], "input_kwargs": {}, "output": told}
            if backward:
                failing = backward
                found = gradients(results, leaves, given(), picked)
                told = [entry(backward, place, gradient, folder) for place, gradient in enumerate(found)]
                rows[backward] = {"input": [], "output": told}
        except Exception as error:  # whatever an operator raises is the answer about it
            failed[failing] = ("%s: %s" % (type(error).__name__, error)).strip().split("\\n")[0][:300]
            if backward and failing == name:
                failed[backward] = "its forward call failed"
    return rows, failed


def best():
    """The device of this machine."""
    if torch_npu is not None and torch.npu.is_available():
        return "npu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def main():
    global DEVICE, DUMP
    parser = argparse.ArgumentParser(description="Computes the operators of a recorded step again.")
    parser.add_argument("-o", "--output", default="replayed", help="a new folder")
    parser.add_argument("--device", default=best(), help="npu, cuda or cpu (the best of this machine)")
    parser.add_argument("--dump", default=DUMP, help="the folder of the dump that has dump.json")
    options = parser.parse_args()
    DEVICE, DUMP = options.device, options.dump
    if not os.path.isfile(os.path.join(DUMP, "dump.json")):
        parser.error("%s has no dump.json: name its folder with --dump" % DUMP)
    folder = os.path.join(options.output, "step%d" % STEP, "rank%d" % RANK)
    if os.path.exists(options.output):
        parser.error("%s exists already" % options.output)
    os.makedirs(os.path.join(folder, "dump_tensor_data"))
    if DEVICE.startswith("cuda"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    rows, failed = replay(folder)
    replayed = {"device": DEVICE, "torch": torch.__version__, "step": STEP, "rank": RANK, "failed": failed}
    document = {"task": "tensor", "level": "L1", "framework": "pytorch", "dump_data_dir": None, "data": rows}
    with open(os.path.join(folder, "dump.json"), "w") as file:
        json.dump(dict(document, replay=replayed), file, indent=1)
    print("%d rows computed again on %s, %d failed: %s" % (len(rows), DEVICE, len(failed), options.output))


if __name__ == "__main__":
    main()
'''


def script_text(plan: Plan, step: int, rank: int) -> str:
    """The whole script."""
    folder = os.path.abspath(plan.folder)
    where = visible(f"step {step}, rank {rank}: {many(len(plan.calls), 'call')}")
    head = _HEAD.replace("{step}", str(step)).replace("{rank}", str(rank)).replace("{where}", where)
    return head.replace("{dump!r}", repr(folder)) + "".join(map(_line, plan.calls)) + _END


def _line(call: Call) -> str:
    cast = f"torch.{call.cast}" if call.cast else "None"
    args, kwargs = call.arguments
    back, given, wanted, picked = "", "", "", ""
    if call.backward is not None:
        back = call.backward.row.name
        given = "".join(f"({number}, {literal}), " for number, literal in call.backward.given)
        wanted = "".join(f"{number}, " for number in call.backward.node or [each for each, _ in call.backward.wanted])
        if call.backward.node:
            picked = "".join(f"({number}, {tensor.shape!r}), " for number, tensor in call.backward.wanted)
    return (
        f"    ({call.row.name!r}, lambda args, kwargs: {call.expression}, lambda: ({args}, {kwargs}),\n"
        f"     {len(call.outputs)}, {cast}, {back!r}, lambda: [{given.rstrip(', ')}], [{wanted.rstrip(', ')}],\n"
        f"     [{picked.rstrip(', ')}]),\n"
    )
