"""Tensors of the card go to another process, which writes into the same memory, and come back."""

import torch
import torch.multiprocessing as mp
import torch_npu  # noqa: F401


def add(tensors, done):
    given, model = tensors.get()
    given += 1
    with torch.no_grad():
        model.weight.fill_(2.0)
    done.put(given.sum().item())
    tensors.get()  # until the other has read them


def main():
    context = mp.get_context("spawn")
    tensors, done = context.Queue(), context.Queue()
    process = context.Process(target=add, args=(tensors, done))
    process.start()
    # The second lies in the middle of a block.
    spare, given = torch.zeros(1000, device="npu"), torch.arange(6.0, device="npu").view(2, 3)
    model = torch.nn.Linear(3, 1, bias=False).npu()
    model.share_memory()
    tensors.put((given, model))
    assert done.get(timeout=120) == 21.0
    assert torch.equal(given.cpu(), torch.arange(1.0, 7.0).view(2, 3))
    assert torch.equal(model.weight.cpu(), torch.full((1, 3), 2.0)) and not spare.any()
    assert torch.equal(model(given).cpu(), torch.tensor([[12.0], [30.0]]))
    tensors.put(None)
    process.join()
    assert process.exitcode == 0


if __name__ == "__main__":
    main()
