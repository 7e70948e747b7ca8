"""What `npu` of a module makes of its argument, by release; tensors and `to` take all of them."""

import json

import torch
import torch_npu  # noqa: F401


def tried(move):
    try:
        made = move()
    except TypeError as error:
        return f"TypeError: {error}"
    return str(made.weight.device if isinstance(made, torch.nn.Module) else made.device)


def layer():
    return torch.nn.Linear(2, 2)


device = torch.device("npu:1")
torch.npu.set_device(2)
found = [
    tried(lambda: layer().npu()),
    tried(lambda: layer().npu(None)),
    tried(lambda: layer().npu(1)),
    tried(lambda: layer().npu("npu:1")),
    tried(lambda: layer().npu(device)),
    tried(lambda: layer().npu(device=device)),
    tried(lambda: layer().to("npu:1")),
    tried(lambda: layer().to(device=device)),
    tried(lambda: torch.ones(2).npu("npu:1")),
    tried(lambda: torch.ones(2).npu(device=device)),
]
print(json.dumps(found))
