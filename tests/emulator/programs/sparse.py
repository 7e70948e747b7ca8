"""Sparse tensors: operators that torch_npu lacks raise its error, and the list of those it has is PyTorch's."""

from pathlib import Path

import torch
import torch_npu  # noqa: F401
import torchgen
from torch_npu import _sparse


def raises(words, function):
    try:
        function()
    except (RuntimeError, NotImplementedError) as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


indices = torch.tensor([[0, 1, 1], [2, 0, 2]]).npu()
matrix = torch.sparse_coo_tensor(indices, torch.ones(3).npu(), (2, 3))
dense = torch.ones(3, 2).npu()
unsupported = "The operator 'aten::addmm' is not currently supported on the NPU backend"
raises(unsupported, lambda: torch.sparse.mm(matrix, dense))
raises(unsupported, lambda: torch.spmm(matrix, dense))
raises(unsupported, lambda: matrix @ dense)
raises("add(sparse, dense) is not supported", lambda: matrix + dense.t())
raises("only COO is emulated", matrix.to_sparse_csr)

table = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
shared, kernels, name = set(), {}, ""
for line in [*table.read_text().splitlines(), "- func: ("]:
    if line.startswith("- func: "):
        if kernels.get("SparseCPU") and kernels.get("SparseCPU") == kernels.get("SparseCUDA"):
            shared.add(name)
        name, kernels = line.removeprefix("- func: ").partition("(")[0], {}
    elif line.startswith("    ") and ": " in line:
        keys, _, kernel = line.strip().partition(": ")
        kernels |= dict.fromkeys(keys.split(", "), kernel)
assert shared - {"add.out", "_coalesce", "max", "mul.out"} == _sparse.SHARED, shared ^ _sparse.SHARED

# Gradients of an embedding, and an optimizer that takes them.
table = torch.nn.Embedding(5, 3, sparse=True).npu()
before = table.weight.detach().cpu()
table(torch.tensor([1, 2, 1]).npu()).sum().backward()
assert table.weight.grad.layout is torch.sparse_coo and table.weight.grad.device.type == "npu"
torch.optim.SparseAdam(table.parameters(), lr=0.1).step()
changed = (table.weight.detach().cpu() != before).any(1).tolist()
assert changed == [False, True, True, False, False], changed
print("sparse: ok")
