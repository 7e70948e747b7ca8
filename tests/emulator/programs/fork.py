"""Loader workers are forked: one that touches npu after the parent did must raise, one that does not must work."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset


class OnNpu(Dataset):
    def __len__(s):
        return 4

    def __getitem__(s, i):
        return torch.ones(2).npu() * 2


def main():
    torch.ones(2).npu() + 1
    it = iter(DataLoader(OnNpu(), num_workers=1))
    raised = False
    try:
        next(it)
    except RuntimeError as e:
        raised = "spawn" in str(e)
        print("raised", str(e).splitlines()[-1][:150])
    it._shutdown_workers()
    del it
    batches = sum(float(b[0].npu().sum()) for b in DataLoader(TensorDataset(torch.ones(4, 2)), num_workers=2))
    print(f"fork: {raised + (batches == 8)}/2 (worker on npu raises, plain workers load)")
    return not (raised and batches == 8)


if __name__ == "__main__":
    sys.exit(main())
